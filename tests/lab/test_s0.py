"""Chapter S0: judges on tables whose verdict is known, cell functions on small data."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest

from lab.outcomes import ALL_FOUR, SIGNS, check, noise
from lab.test_s0_outcomes import race
from zerogap.lab import DEPENDS, FAILS, HOLDS, UNDECIDED, Arm
from zerogap.lab.chapters import s0, s0_cells, s0_outputs, s0_races, s0_theory
from zerogap.lab.data import load


def _cells(experiment, **changes):
    return dataclasses.replace(experiment, **changes).cells()


def _rows(experiment, seed=0, **changes):
    (cell,) = _cells(experiment, seeds=(seed,), **changes)
    return experiment.function(cell, load(cell.data, seed))


def test_sdca_is_the_textbook_method_everywhere():
    solvers = [arm.solver for e in s0.CHAPTER.experiments for arm in e.arms]
    sdca = [solver for solver in solvers if solver.startswith("sdca")]
    assert sdca
    assert all("shrink=false" in solver for solver in sdca)


# Races


def test_a_run_that_leaves_again_has_not_arrived():
    table = race({"SDCA": 2, "PEGASOS": 5})
    table.loc[(table["solver"] == "SDCA") & (table["updates"] == 8), "hinge_primal"] = 1.0
    found = s0_races.arrivals(s0_races.with_limit(table), "updates", 0.2, ("SDCA", "PEGASOS"))
    assert [s0_races.order(places) for places in found] == [["PEGASOS", "SDCA"]] * 6


def test_a_race_is_ranked_by_arrival_on_each_axis():
    table = race({"SDCA": 4, "PEGASOS": 9, "ASDCA": 3, "mini-batch PEGASOS": 1})
    table = s0_races.with_limit(table)
    steps = [s0_races.order(places) for places in s0_races.arrivals(table, "updates", 0.2)]
    assert steps == [["mini-batch PEGASOS", "ASDCA", "SDCA", "PEGASOS"]] * 6
    examples = [s0_races.order(places) for places in s0_races.arrivals(table, "examples", 0.2)]
    assert examples == [["SDCA", "mini-batch PEGASOS", "PEGASOS", "ASDCA"]] * 6


def test_figure_10_shows_the_ordinary_hinge_objective():
    figures = {figure.id: figure for figure in s0.FIGURES_8_11.figures}
    assert figures["S0-fig10"].y[0] == "hinge_primal"
    assert figures["S0-fig8"].y[0] == "primal"


def test_the_printed_table_spans_seven_test_examples():
    entries = [entry for pair in s0_outputs.PRINTED.values() for entry in pair]
    examples = {round(np.ceil(s0_outputs.TESTED * entry)) for entry in entries}
    assert (min(examples), max(examples)) == (284, 291)


def outputs(turn, spread=0.0, gain=0.0):
    """Return outputs of PEGASOS; projected ones are turned by so many degrees."""
    rows = []
    for name in ("PEGASOS", "mini-batch PEGASOS"):
        for projected, output, seed in itertools.product((0, 1), ("last", "averaged"), range(8)):
            angle = np.radians(projected * turn + spread * (-1) ** seed * seed)
            w = {f"w{j}": 0.0 for j in range(3, 11)} | {"w1": np.cos(angle), "w2": np.sin(angle)}
            solver = f"{name}, projected" if projected else name
            labels = {"solver": solver, "output": output, "seed": seed}
            errors = {"test_error": 0.12 - gain * (1 + 0.1 * seed), "beta_error": 0.12}
            for data in ("one sample", "simulated"):
                rows.append({"data": data, **labels, **w, **errors})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("turn", "spread", "verdict", "words"),
    [
        (0.2, 0.0, HOLDS, "0.2 and 0.0"),
        (9.0, 0.0, FAILS, "9.0 and 0.0"),
        (8.0, 4.0, UNDECIDED, "without"),
    ],
)
def test_projection_moves_the_output_no_more_than_another_run(turn, spread, verdict, words):
    check(s0_outputs.judge_same_output(outputs(turn, spread)), verdict, words)


@pytest.mark.parametrize(
    ("gain", "verdict", "words"),
    [(0.001, HOLDS, "4 of 4"), (0.03, FAILS, "4 are not"), (0.0148, UNDECIDED, "0 of 4")],
)
def test_accuracies_are_around_that_of_beta(gain, verdict, words):
    table = outputs(0.0, gain=gain)
    table = table[~table["solver"].str.endswith("projected")]
    found = check(s0_outputs.judge_around_beta(table), verdict, words)
    assert len(found.evidence) == 4


# Cells


def test_duality_holds_on_a_small_problem():
    rows = _rows(s0_theory.DUALITY, data=(s0_theory.SMALL[0],))
    assert {row["statement"] for row in rows} >= {"weak duality", "dual accuracy"}
    assert all(row["slack"] >= 0 for row in rows)
    table = pd.DataFrame(rows * 2).assign(data="made up", seed=[0] * len(rows) + [1] * len(rows))
    judge = s0_outputs.judge_statement("So it is", "weak duality")
    assert judge(table).verdict == "holds"
    assert judge(table.assign(slack=-1.0)).verdict == "does not hold"


def test_the_promised_steps_are_enough():
    rows = _rows(s0_theory.PROMISE, data=(s0_theory.SMALL[0],), lams=(0.1,))
    assert [row["T"] for row in rows] == sorted((row["T"] for row in rows), reverse=True)
    for row in rows:
        assert row["gap_at_T"] <= row["eps"]
        assert 0 <= row["dual_distance_at_T0"] <= row["eps"] / 2
        assert 0 < row["needed"] <= row["T"]


def test_steps_to_an_accuracy_grow_and_stay_below_the_theorem():
    arm = Arm("SDCA", s0_theory.RATES.arms[0].solver)
    rows = _rows(s0_theory.RATES, lams=(0.01,), arms=(arm,), epochs=20)
    steps = [row["steps"] for row in rows]
    assert len(rows) == 4
    assert steps == sorted(steps)
    assert all(row["steps"] <= row["sdca"] for row in rows)
    table = pd.DataFrame(rows * 2).assign(solver="SDCA", lam=0.01, seed=[0] * 4 + [1] * 4)
    assert s0_outputs.judge_rates(table).verdict == "holds"
    table.loc[table["eps"] == 0.01, "steps"] = np.inf  # not reached is not passed
    assert s0_outputs.judge_rates(table).verdict == "does not hold"


def test_metrics_of_table_2_know_the_true_parameter():
    (cell, *_) = _cells(s0.TABLE_2, seeds=(3,), data=(s0.SIMULATED,))
    data = load(cell.data, cell.seed)
    angle = s0_cells.angle(None, data, None)
    assert angle(2 * data.beta, 0.0) == pytest.approx(0.0, abs=1e-6)
    assert angle(-data.beta, 0.0) == pytest.approx(180.0)


# Theorems: every verdict, with a sentence that follows the outcome


def slack(value):
    return pd.DataFrame(
        {"statement": "weak duality", "checks": 10, "data": "x", "seed": range(3), "slack": value}
    )


def test_statements():
    judge = s0_outputs.judge_statement("The dual value is below", "weak duality")
    check(judge(slack(0.0)), HOLDS, "The dual value is below, in all of 30 checks")
    check(judge(slack(-0.02)), FAILS, "Not so in 3 of 3 runs", "2 % of the objective")


@ALL_FOUR
def test_promised_steps(verdict):
    if verdict == DEPENDS:
        gaps = (0.1, 5.0)
    else:
        gaps = {HOLDS: (0.1, 0.2), FAILS: (5.0, 5.0), UNDECIDED: (0.1, 1 + noise(0))}[verdict]
    table = pd.concat(
        pd.DataFrame({"data": name, "form": "f", "eps": 1.0, "seed": range(6), "gap_at_T": gap})
        for name, gap in zip("ab", gaps, strict=True)
    )
    table = table.assign(dual_distance_at_T0=table["gap_at_T"] / 2, T=1000, needed=10)
    words = {HOLDS: "20 % of eps", FAILS: "not enough", DEPENDS: "2 of 4", UNDECIDED: "2 of 4"}
    found = check(s0_outputs.judge_promise(table), verdict, words[verdict])
    assert "1/100 of T" in found.robustness


@pytest.mark.parametrize("verdict", [HOLDS, FAILS, DEPENDS])
def test_rates(verdict):
    steps = {1: 10.0, -1: 1000.0}
    rows = [
        {"solver": s, "lam": 0.1, "seed": k, "eps": e, "steps": steps[sign] / e}
        | {"sdca": 100 / e, "pegasos": 100 / e}
        for s, sign in zip(("SDCA", "PEGASOS"), SIGNS[verdict], strict=True)
        for k in range(3)
        for e in (0.1, 0.01)
    ]
    words = {HOLDS: "6 of 6 runs stay within", FAILS: "0 of 6", DEPENDS: "3 of 6"}
    check(s0_outputs.judge_rates(pd.DataFrame(rows)), verdict, words[verdict])


@pytest.mark.parametrize("verdict", [HOLDS, FAILS, DEPENDS])
def test_random_iterates(verdict):
    rows = [
        {"data": data, "solver": "PEGASOS", "lam": 0.1, "updates": 5000, "largest_norm": 1.0}
        | {"seed": seed, "suboptimality": 0.01 if sign > 0 else 1e6}
        for data, sign in zip("ab", SIGNS[verdict], strict=True)
        for seed in range(4)
    ]
    words = {HOLDS: "8 of 8", FAILS: "0 of 8", DEPENDS: "4 of 8"}
    check(s0_outputs.judge_random(pd.DataFrame(rows)), verdict, words[verdict])

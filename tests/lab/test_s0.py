"""Chapter S0: judges on tables whose verdict is known, cell functions on small data."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from zerogap.lab import Arm
from zerogap.lab.chapters import s0, s0_judges
from zerogap.lab.data import load
from zerogap.lab.inventory import items


def _cells(experiment, **changes):
    return dataclasses.replace(experiment, **changes).cells()


def _rows(experiment, seed=0, **changes):
    (cell,) = _cells(experiment, seeds=(seed,), **changes)
    return experiment.function(cell, load(cell.data, seed))


def test_every_row_of_the_inventory_has_its_place():
    wanted = {item.id for item in items().values() if item.report == "S0"}
    assert wanted
    assert wanted <= s0.CHAPTER.covers


def test_sdca_is_the_textbook_method_everywhere():
    solvers = [arm.solver for e in s0.CHAPTER.experiments for arm in e.arms]
    sdca = [solver for solver in solvers if solver.startswith("sdca")]
    assert sdca
    assert all("shrink=false" in solver for solver in sdca)


# Races


def _race(places):
    """Return runs that jump from 1 to the optimum 0.2 at the given number of updates."""
    rows = [
        {
            "data": "made up",
            "lam": 0.1,
            "loss": "hinge",
            "solver": solver,
            "seed": seed,
            "updates": t,
            "examples": t * (8 if solver in ("ASDCA", "mini-batch PEGASOS") else 1),
            "hinge_primal": 1.0 if t < place else 0.2,
            "optimum": 0.2,
        }
        for solver, place in places.items()
        for seed in range(6)
        for t in range(11)
    ]
    return pd.DataFrame(rows)


def test_a_race_is_ranked_by_arrival_on_each_axis():
    table = _race({"SDCA": 4, "PEGASOS": 9, "ASDCA": 3, "mini-batch PEGASOS": 1})
    table = s0_judges.with_excess(table)
    steps = s0_judges.rankings(table, "updates", 0.2, s0_judges.FOUR)
    assert steps == [["mini-batch PEGASOS", "ASDCA", "SDCA", "PEGASOS"]] * 6
    examples = s0_judges.rankings(table, "examples", 0.2, s0_judges.FOUR)
    assert examples == [["SDCA", "mini-batch PEGASOS", "PEGASOS", "ASDCA"]] * 6


def test_the_verdict_on_a_race_depends_on_the_axis():
    table = _race({"SDCA": 4, "PEGASOS": 9, "ASDCA": 3, "mini-batch PEGASOS": 1})
    verdict = s0_judges.judge_genomic(table)
    assert verdict.verdict == "depends"
    assert "iterations on made up for half and four fifths of the way" in verdict.sentence
    assert "examples read nowhere" in verdict.sentence
    five = s0_judges.judge_genomic(table[table["seed"] < 5])
    assert five.verdict == "does not hold"  # five of five may be chance
    assert s0_judges.judge_simulated(table).verdict == "does not hold"
    assert s0_judges.judge_advice("SDCA")(table).verdict == "holds"
    assert s0_judges.judge_advice("ASDCA")(table).verdict == "does not hold"


def test_a_run_that_leaves_again_has_not_arrived():
    table = _race({"SDCA": 2, "PEGASOS": 5})
    table.loc[(table["solver"] == "SDCA") & (table["updates"] == 8), "hinge_primal"] = 1.0
    orders = s0_judges.rankings(s0_judges.with_excess(table), "updates", 0.2, ("SDCA", "PEGASOS"))
    assert orders == [["PEGASOS", "SDCA"]] * 6


# Orders, projection, lambda


def _curves(values, seeds=6):
    """Return runs with the given distances from the optimum 1, a little different per seed."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "data": "made up",
            "lam": lam,
            "solver": solver,
            "seed": seed,
            "updates": k + 1,
            "epoch": float(k + 1),
            "optimum": 1.0,
            "suboptimality": value * factor,
            "primal": 1.0 + value * factor,
        }
        for (solver, lam), curve in values.items()
        for seed in range(seeds)
        for factor in (1 + 0.01 * rng.random(),)
        for k, value in enumerate(curve)
    ]
    return pd.DataFrame(rows)


def test_the_slowest_order_is_found():
    curves = {"random": [1, 0.1], "permutation": [1, 0.01], "cyclic": [1, 0.5]}
    table = _curves({(name, 0.1): curve for name, curve in curves.items()})
    assert s0_judges.judge_order("cyclic")(table).verdict == "holds"
    assert s0_judges.judge_order("random")(table).verdict == "depends"
    assert s0_judges.judge_order("permutation")(table).verdict == "does not hold"
    assert s0_judges.judge_default(table).verdict == "does not hold"


def test_projection_is_judged_where_the_runs_have_arrived():
    same = {("PEGASOS", 1.0): [1, 0.001], ("PEGASOS, projected", 1.0): [1, 0.001]}
    short = {("PEGASOS", 0.1): [9, 5.0], ("PEGASOS, projected", 0.1): [9, 2.0]}
    verdict = s0_judges.judge_limit(_curves(same | short))
    assert verdict.verdict == "holds"
    assert "lambda = 0.1 the budget is too short" in verdict.sentence
    apart = {("PEGASOS", 1.0): [1, 0.001], ("PEGASOS, projected", 1.0): [1, 0.05]}
    assert s0_judges.judge_limit(_curves(apart)).verdict == "does not hold"


def test_a_smoother_curve_is_seen():
    calm, wild = [1, 0.9, 0.8, 0.7], [1, 0.1, 1, 0.1]
    curves = {("PEGASOS", 1.0): wild, ("PEGASOS, projected", 1.0): calm}
    assert s0_judges.judge_smoother(_curves(curves)).verdict == "holds"
    swapped = {("PEGASOS", 1.0): calm, ("PEGASOS, projected", 1.0): wild}
    assert s0_judges.judge_smoother(_curves(swapped)).verdict == "does not hold"


def test_lambda_and_the_number_of_steps():
    fast, slow = [1, 0.001, 0.001], [1, 1, 0.001]
    table = _curves({("SDCA", 1.0): fast, ("SDCA", 0.1): slow})
    assert s0_judges.judge_faster(table).verdict == "holds"
    table = _curves({("SDCA", 0.1): fast, ("SDCA", 1.0): slow})
    assert s0_judges.judge_faster(table).verdict == "does not hold"


# Table 2


def _accuracies(noise, gain=0.0, as_printed=False, seeds=40):
    """Return repeats of table 2: the printed accuracies or all alike, plus noise and a gain."""
    rng = np.random.default_rng(1)
    rows = [
        {
            "data": "simulated",
            "solver": solver,
            "output": output,
            "seed": seed,
            "test_error": 1 - (printed[k] if as_printed else 0.87) - gain * k - noise * z,
            "beta_error": 0.12,
        }
        for seed in range(seeds)
        for solver, printed in s0_judges.PRINTED.items()
        for k, output in enumerate(("last", "averaged"))
        for z in (rng.standard_normal(),)
    ]
    return pd.DataFrame(rows)


def test_table_2_is_chance_unless_repeats_agree_with_it():
    chance = _accuracies(noise=0.01).assign(test_error=0.13)
    assert s0_judges.judge_table(chance).verdict == "does not hold"
    verdict = s0_judges.judge_table(_accuracies(noise=1e-4, as_printed=True))
    assert verdict.verdict == "holds"
    assert "7 of 330" in verdict.sentence
    assert any("1.17 standard errors" in str(part) for part in verdict.evidence)


def test_the_printed_table_spans_seven_test_examples():
    entries = [entry for pair in s0_judges.PRINTED.values() for entry in pair]
    examples = {round(np.ceil(s0_judges.TESTED * entry)) for entry in entries}
    assert (min(examples), max(examples)) == (284, 291)


@pytest.mark.parametrize(("gain", "verdict"), [(0.0, "holds"), (0.02, "does not hold")])
def test_averaging_is_judged_by_paired_differences(gain, verdict):
    judge = s0_judges.judge_averaging("accuracy", "accuracy")
    table = _accuracies(noise=0.002, gain=gain)
    assert judge(table).verdict == verdict


def test_projection_must_improve_both_forms():
    table = _accuracies(noise=0.002)
    judge = s0_judges.judge_projected("averaged")
    assert judge(table).verdict == "does not hold"
    better = table["solver"].str.endswith("projected")
    table.loc[better, "test_error"] -= 0.05
    assert judge(table).verdict == "holds"


# Cells


def test_duality_holds_on_a_small_problem():
    rows = _rows(s0.DUALITY, data=(s0.SMALL[0],))
    assert {row["statement"] for row in rows} >= {"weak duality", "dual accuracy"}
    assert all(row["slack"] >= 0 for row in rows)
    table = pd.DataFrame(rows * 2).assign(data="made up", seed=[0] * len(rows) + [1] * len(rows))
    judge = s0_judges.judge_statement("weak duality")
    assert judge(table).verdict == "holds"
    assert judge(table.assign(slack=-1.0)).verdict == "does not hold"


def test_the_promised_steps_are_enough():
    rows = _rows(s0.PROMISE, data=(s0.SMALL[0],), lams=(0.1,))
    assert [row["T"] for row in rows] == sorted((row["T"] for row in rows), reverse=True)
    for row in rows:
        assert row["gap_at_T"] <= row["eps"]
        assert 0 <= row["dual_distance_at_T0"] <= row["eps"] / 2
        assert 0 < row["needed"] <= row["T"]


def test_steps_to_an_accuracy_grow_and_stay_below_the_theorem():
    arm = Arm("SDCA", s0.RATES.arms[0].solver)
    rows = _rows(s0.RATES, lams=(0.01,), arms=(arm,), epochs=20)
    steps = [row["steps"] for row in rows]
    assert len(rows) == 4
    assert steps == sorted(steps)
    assert all(row["steps"] <= row["sdca"] for row in rows)
    table = pd.DataFrame(rows * 2).assign(solver="SDCA", lam=0.01, seed=[0] * 4 + [1] * 4)
    assert s0_judges.judge_rates(table).verdict == "holds"
    table.loc[table["eps"] == 0.01, "steps"] = np.inf  # not reached is not passed
    assert s0_judges.judge_rates(table).verdict == "does not hold"


def test_metrics_of_table_2_know_the_true_parameter():
    (cell, *_) = _cells(s0.TABLE_2, seeds=(3,), data=(s0.SIMULATED,))
    data = load(cell.data, cell.seed)
    angle = s0.angle(None, data, None)
    assert angle(2 * data.beta, 0.0) == pytest.approx(0.0, abs=1e-6)
    assert angle(-data.beta, 0.0) == pytest.approx(180.0)

"""Chapter S0: judges on tables whose verdict is known, cell functions on small data."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from lab.test_s0_outcomes import race
from zerogap.lab import Arm
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


# Cells


def test_duality_holds_on_a_small_problem():
    rows = _rows(s0_theory.DUALITY, data=(s0_theory.SMALL[0],))
    assert {row["statement"] for row in rows} >= {"weak duality", "dual accuracy"}
    assert all(row["slack"] >= 0 for row in rows)
    table = pd.DataFrame(rows * 2).assign(data="made up", seed=[0] * len(rows) + [1] * len(rows))
    judge = s0_outputs.judge_statement("weak duality")
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

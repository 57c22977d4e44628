"""Chapter S2: its cell functions on small data, its judges on made-up tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from zerogap.lab import FAILS, Arm, Data
from zerogap.lab.chapters import s2, s2_cells, s2_judges, s2_output_cells, s2_tables
from zerogap.lab.data import Loaded
from zerogap.lab.experiment import Cell
from zerogap.losses import Logistic
from zerogap.problem import Problem

TABLE = {"c_sgd": 100.0, "eps": 1e-3, "c_sdca": 0.1}


@pytest.fixture
def rows() -> Loaded:
    rng = np.random.default_rng(0)
    X = 2.0 * rng.standard_normal((60, 5))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(60) > 0, 1, -1)
    return Loaded(X[:40], y[:40], X[40:], y[40:])


def make_cell(arm: Arm, epochs: float = 30, metrics: tuple[str, ...] = ()) -> Cell:
    data = Data("made-up", columns=TABLE)
    return Cell("", data, "logistic", None, arm, 0, epochs, 0.0, "epoch", metrics, False, False)


def make_problem(rows: Loaded, lam: float = 0.1) -> Problem:
    return Problem(rows.X, rows.y.astype(float), "logistic", lam)


@pytest.mark.parametrize("rule", s2_cells.RULES)
@pytest.mark.parametrize("q", [0.01, 1.0, 100.0])
def test_every_rule_ascends_and_none_gains_more_than_the_exact_step(
    rows: Loaded, rule: str, q: float
) -> None:
    mean_square = float(np.mean(np.sum(rows.X**2, axis=1)))
    problem = make_problem(rows, lam=mean_square / (40 * q))
    rng = np.random.default_rng(1)
    alpha = problem.y * rng.uniform(size=40)
    w, before, shares = problem.weights(alpha), problem.dual(alpha), np.full(40, np.nan)
    s2_cells._logistic_steps(problem, s2_cells.RULES[rule], np.arange(40), alpha, w, shares)
    assert problem.dual(alpha) > before
    np.testing.assert_allclose(w, problem.weights(alpha), atol=1e-10)
    known = shares[~np.isnan(shares)]
    assert len(known) > 20
    assert known.min() > 0
    assert known.max() <= 1 + 1e-9


def test_rules_for_the_step_reach_the_same_optimum_with_certified_gaps(rows: Loaded) -> None:
    ends = []
    for rule in s2_cells.RULES:
        arm = Arm(rule, "sdca", columns={"rule": rule, "lam_of": "SDCA"})
        found = s2_cells.logistic_steps(make_cell(arm, epochs=300), rows)
        assert len(found) == 301
        assert found[0]["gap"] == pytest.approx(np.log(2))
        assert all(row["gap"] >= 0 for row in found)
        assert found[-1]["gap"] < 1e-8
        ends.append(found[-1]["primal"])
    assert max(ends) - min(ends) < 1e-8


def test_lambda_and_step_are_those_of_table_1() -> None:
    sgd = s2_cells._as_reported(make_cell(Arm("SGD", "sgd", columns={"lam_of": "SGD"})))
    assert sgd.lam == 0.01
    assert sgd.arm.solver == "sgd:step=0.1"
    sdca = s2_cells._as_reported(make_cell(Arm("SDCA", "sdca", columns={"lam_of": "SDCA"})))
    assert (sdca.lam, sdca.arm.solver, sdca.intercept) == (0.1, "sdca", False)


def test_the_returned_iterate_is_zero_when_c_is_small(rows: Loaded) -> None:
    def norm(answer: str) -> float:
        columns = {"lam_of": "SDCA", "sweeps": "c_sdca", "value": 1e-4, "answer": answer}
        cell = make_cell(Arm("SDCA", "sdca:shrink=false", columns=columns), metrics=("norm",))
        (row,) = s2_cells.sweep(cell, rows)
        assert row["lam"] == 1e-4
        return row["norm"]

    assert norm("returned") == 0
    assert norm("last") > 1


def test_recorded_loss_is_the_one_of_the_report(rows: Loaded) -> None:
    problem, w = make_problem(rows), np.arange(5.0)
    row = {"norm": np.linalg.norm(w), "primal": problem.primal(w), "lam": problem.lam}
    losses = np.log1p(np.exp(-problem.y * (rows.X @ w)))
    wanted = 3.0 * losses.sum() + 0.5 * w @ w
    assert s2_cells.recorded_loss(row, 3.0, 40) == pytest.approx(wanted)


def test_sdca_ends_at_the_optimum_from_any_start(rows: Loaded) -> None:
    arm = Arm("SDCA", "sdca", columns={"lam_of": "SDCA"})
    (row,) = s2_cells.from_anywhere(make_cell(arm, epochs=200), rows)
    assert row["start"] > 1
    assert row["end"] < 1e-3
    assert row["gap"] < 1e-8


def test_a_score_of_zero_counts_as_the_positive_class(rows: Loaded) -> None:
    accuracy = s2_cells.test_accuracy(make_problem(rows), rows, rows.y_test)
    assert accuracy(np.zeros(5), 0.0) == np.mean(rows.y_test == 1)


@pytest.mark.parametrize(
    ("name", "lam", "other", "right", "printed"),
    [("arrhythmia", 0.1, 0.05, 201_862, 401_549), ("adult-codes", 0.05, 0.1, 795_985, 629_840)],
)
def test_table_2_has_printed_and_corrected_values(
    name: str, lam: float, other: float, right: int, printed: int
) -> None:
    data = {d.label: d for d in s2.TABLE_2.data}["Arrhythmia" if name == "arrhythmia" else "Adult"]
    assert (data.name, data.columns["lam"], data.columns["other_lam"]) == (name, lam, other)
    n = {"arrhythmia": 452, "adult-codes": 48_842}[name]
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 2)), np.where(rng.uniform(size=n) < 0.5, -1, 1)
    cell = Cell("", data, "logistic", None, Arm(), 0, 1, 0.0, "end", (), False, False)
    (row,) = s2_cells.stopping_times(cell, Loaded(X[:-50], y[:-50], X[-50:], y[-50:]))
    assert (row["lipschitz"], row["exchanged"]) == (right, printed)
    assert row["gap_lipschitz"] <= s2_cells.TARGET
    assert 0 < row["needed"] < right
    table = pd.DataFrame([{"data": data.label, **data.columns, **row}] * 2)
    assert s2_judges.judge_table_2(table).verdict == FAILS
    (line,) = s2_tables.show_stopping_times(table)
    assert line["printed"] == printed
    assert line["formula, lambda of table 1"] == right


@pytest.mark.parametrize("q", [0.01, 1.0, 100.0])
def test_newton_finds_the_exact_step_and_the_closed_form_is_the_report_s(q: float) -> None:
    for b in (0.0, 0.2, 0.7):
        for margin in (-3.0, 0.1, 4.0):
            exact = Logistic().dual_step(b, 1.0, margin, q)
            assert s2_cells.newton_step(b, margin, q) == pytest.approx(exact, abs=1e-3)
            closed = Logistic(approximate=True).dual_step(b, 1.0, margin, q)
            assert s2_cells.closed_form_step(b, margin, q) == pytest.approx(closed, abs=1e-12)


def test_sdca_takes_the_report_s_step_and_the_exact_one_is_a_further_line() -> None:
    for experiment in (s2.FIG_1, s2.FIG_4, s2.FIG_2, s2.FIG_3, s2.LOCAL, s2.STARTS):
        arms = [arm for arm in experiment.arms if arm.name.startswith("SDCA")]
        exact = [arm for arm in arms if "exact" in arm.name]
        assert exact
        assert all(arm.loss is None for arm in exact)
        assert all(arm.loss == s2_cells.CLOSED for arm in arms if arm not in exact)


def test_times_of_both_rules_are_measured(rows: Loaded) -> None:
    for rule in ("closed form", "Newton"):
        for code in ("Python", "compiled"):
            arm = Arm("x", "sdca", columns={"rule": rule, "code": code, "lam_of": "SDCA"})
            (row,) = s2_cells.step_time(make_cell(arm, epochs=2), rows)
            assert row["seconds_per_update"] > 0


def test_choices_of_the_exact_step_have_lines_of_their_own() -> None:
    rows = [
        {"data": "Adult", "sweeps": "c_sdca", "solver": solver, "answer": "last", "seed": seed}
        | {"value": c, "test_accuracy": 0.7 + 0.1 * (c == 0.05) + 0.01 * seed, "majority": 0.76}
        for solver in ("SDCA", "SDCA, exact step")
        for c in (0.05, 1.0)
        for seed in range(3)
    ]
    lines = s2_tables.compare_choices(pd.DataFrame(rows))
    names = [line["hyper-parameter"] for line in lines]
    assert names == ["c of SDCA (lambda)", "c of SDCA (lambda), exact step"]
    assert all(line["best here"] == line["report"] == 0.05 for line in lines)


def test_a_run_that_has_converged_does_not_depend_on_its_stop(rows: Loaded) -> None:
    """The average still does: it forgets the early iterates only by and by."""
    last, average = (
        s2_output_cells.changes(make_cell(Arm("", f"{s2.SDCA}:output={output}")), rows)[0]
        for output in ("last", "average")
    )
    assert last["lam"] == TABLE["c_sdca"]
    assert last["change"] < average["change"] < 0.01

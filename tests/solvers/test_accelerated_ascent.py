"""Accelerated ascent: its sums follow its dual variables, and it ends at the optimum."""

import numpy as np
import pytest

import zerogap as zg
from zerogap.solvers.accelerated_ascent import FIRST_PASSES, AcceleratedAscent

LOSSES = ["absolute", "epsilon-insensitive", "quantile", "hinge", "squared-hinge"]


def problem_of(loss: str, intercept: bool, C: float = 10.0, d: int = 400) -> zg.Problem:
    X, y, _ = zg.datasets.make_text(200, d, random_state=1)
    rng = np.random.default_rng(2)
    if "hinge" not in loss:
        y = y + 0.5 * rng.standard_normal(len(y)) + 3.0
    weights = np.where(np.arange(len(y)) % 5, rng.uniform(0.5, 2.0, len(y)), 0.0)
    lam = 1.0 / (C * len(y))
    return zg.Problem(X, y, loss, lam=lam, fit_intercept=intercept, sample_weight=weights)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_other_methods(loss, intercept):
    problem = problem_of(loss, intercept)
    result = zg.solve(problem, AcceleratedAscent(), tol=1e-5, random_state=0)
    assert result.stop_reason == "converged"
    other = zg.solve(problem, zg.SDCA(finish=loss != "squared-hinge"), tol=1e-7, random_state=0)
    assert other.certificate.dual <= result.certificate.primal * (1.0 + 1e-12)
    assert result.certificate.dual <= other.certificate.primal * (1.0 + 1e-12)
    again = problem.certificate(result.w, result.b, result.alpha)
    assert again.relative_gap <= 1e-5


def test_dual_sums_follow_the_dual_variables():
    problem = problem_of("absolute", True)
    solver, rng = AcceleratedAscent(), np.random.default_rng(0)
    state = solver.begin(problem, rng)
    for _ in range(FIRST_PASSES + 7):  # beyond a restart
        solver.advance(problem, state, 1)
        alpha = state.near + state.theta**2 * state.far
        u = state.sums @ [1.0, state.theta**2]
        assert u == pytest.approx(problem.dual_sum(alpha), abs=1e-9 * np.abs(u).max())
        mean = state.means @ [1.0, state.theta**2]
        assert mean == pytest.approx(problem.share @ alpha, abs=1e-12)
    assert state.passes == 7
    assert state.length > FIRST_PASSES


def test_momentum_saves_passes_where_rows_are_nearly_collinear():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 20)) @ rng.standard_normal((20, 300))
    X += 0.02 * rng.standard_normal(X.shape)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    problem = zg.Problem(X, rng.standard_normal(150), "absolute", lam=1e-5)
    plain, fast = (
        zg.solve(problem, solver, tol=1e-2, max_epochs=6000, random_state=0)
        for solver in (zg.SDCA(), AcceleratedAscent())
    )
    assert fast.stop_reason == "converged"
    assert 5.0 * fast.certificate.epochs < plain.certificate.epochs


@pytest.mark.parametrize("loss", ["absolute", "quantile"])
def test_auto_begins_with_it_on_text(loss, tmp_path):
    problem = problem_of(loss, True, C=1000.0, d=4000)
    given = {"tol": 1e-5, "random_state": 0}
    whole = zg.solve(problem, zg.Auto(), **given)
    assert whole.stop_reason == "converged"
    assert "accelerated" in whole.certificate.solver
    file = tmp_path / "run"
    part = {"checkpoint": file, "checkpoint_every": 0.0}
    zg.solve(problem, zg.Auto(), max_epochs=30, **given, **part)
    resumed = zg.solve(problem, zg.Auto(), **given, **part)
    assert resumed.stop_reason == "converged"
    assert np.array_equal(resumed.w, whole.w)


def test_other_penalties_and_many_classes_are_refused():
    X, y, _ = zg.datasets.make_text(50, 100, random_state=1)
    problem = zg.Problem(X, y, "hinge", lam=1e-2, l1_ratio=0.5)
    with pytest.raises(ValueError, match="L2 penalty"):
        zg.solve(problem, AcceleratedAscent())

"""Value, gradient and Hessian in one pass, and what small fits rely on."""

import numpy as np
import pytest

import zerogap as zg
from problems import make_problem
from zerogap.solvers import fused
from zerogap.solvers.polish import polished


@pytest.mark.parametrize("flat", [0.0, 0.5, 0.95, 1.0])
def test_rows_without_slope_and_curvature_are_left_out_of_nothing_else(flat):
    rng = np.random.default_rng(0)
    n, d, lam = 300, 4, 0.01  # more than two blocks of rows
    X = rng.standard_normal((n, d))
    w, b = rng.standard_normal(d), 0.3
    z = X @ w + b
    y = np.where(rng.random(n) < flat, np.sign(z), -np.sign(z))
    X *= np.where(y * z > 0, 1e3, 1.0)[:, None]  # those on the right side are far beyond the margin
    problem = zg.Problem(X, y, "squared-hinge", lam, fit_intercept=True)
    found = fused._look(problem, np.append(w, b))
    ones, z = np.column_stack([X, np.ones(n)]), X @ w + b
    active = y * z < 1.0
    gradient = ones.T @ problem.slopes(z) / n + np.append(lam * w, 0.0)
    hessian = problem.loss.smoothness * ones[active].T @ ones[active] / n
    hessian += np.diag([lam] * d + [0.0])
    assert found.value == pytest.approx(problem.primal(w, b), rel=1e-12)
    assert found.gradient == pytest.approx(gradient, rel=1e-10, abs=1e-12)
    assert np.tril(found.hessian) == pytest.approx(np.tril(hessian), rel=1e-10, abs=1e-12)


def test_the_best_intercept_of_a_parabola_is_the_mean_residual():
    rng = np.random.default_rng(1)
    X, y, weight = rng.standard_normal((30, 3)), rng.standard_normal(30), rng.random(30)
    problem = zg.Problem(X, y, "squared", 0.1, weight, fit_intercept=True)
    w = rng.standard_normal(3)
    z = problem.scores(w)
    best = problem.best_intercept(z, near=7.0)
    assert best == pytest.approx(np.average(y - z, weights=weight), abs=1e-12)
    assert problem.primal(w, best) <= min(problem.primal(w, best + t) for t in (-1e-3, 1e-3))


def test_polishing_ends_at_once_where_dual_variables_leave_their_domain():
    problem = make_problem("hinge")
    alpha, w = np.zeros(problem.shape[0]), np.ones(problem.shape[1])
    responses = []

    def respond(dz):
        responses.append(dz)
        return 0.0 * dz

    best, _ = polished(
        problem, w, alpha, lambda p, b: (p, b), respond, 0.5 * w, lambda a: float("inf")
    )
    assert best is alpha
    assert len(responses) == 1


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge"])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_a_last_step_is_looked_at_by_its_certificate_alone(loss, tol, monkeypatch):
    """Hessians are made where a step begins, and not where a run ends."""
    problem = make_problem(loss, n=3000, lam=1e-3)
    zg.solve(problem, zg.Newton(), random_state=0)  # which may compile, and look for that
    looks = []
    look = fused._look
    monkeypatch.setattr(fused, "_look", lambda *given: looks.append(1) or look(*given))
    run = zg.solve(problem, zg.Newton(), tol=tol, random_state=0)
    with_tol = len(looks)
    assert run.stop_reason == "converged"
    monkeypatch.setattr(fused, "SURE", 0.0)
    looks.clear()
    again = zg.solve(problem, zg.Newton(), tol=tol, random_state=0)
    assert again.stop_reason == "converged"
    assert with_tol <= len(looks)
    assert run.certificate.epochs <= again.certificate.epochs

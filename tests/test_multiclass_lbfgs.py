"""L-BFGS for the softmax: the optimum of Newton's method, by products of matrices alone."""

import numpy as np
import pytest
from scipy import sparse

import zerogap as zg
from zerogap.problem.circulation import balancing_factors, is_balanced
from zerogap.solvers import MulticlassLBFGS, MulticlassNewton
from zerogap.solvers.multiclass_lbfgs import (
    _answer_scores,
    _newton_step_of_intercepts,
    suits,
)

SOLVER = MulticlassLBFGS()
intercepts = pytest.mark.parametrize("intercept", [False, True])


def make(n=240, d=30, C=20, lam=3e-3, intercept=False, weighted=False, dtype=np.float64, noise=1.0):
    """Correlated features far from zero, classes of very different sizes, noisy labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) / np.sqrt(d) + 1.0
    scores = X @ rng.standard_normal((d, C)) + noise * rng.standard_normal((n, C))
    y = np.argmax(scores + np.linspace(2.0, -2.0, C), axis=1)
    y[:C] = np.arange(C)
    s = np.maximum(rng.integers(0, 3, n), np.arange(n) < C) if weighted else None
    return zg.Problem(X.astype(dtype), y, "softmax", lam, s, intercept)


def solve(problem, tol=1e-9, max_epochs=300, solver=SOLVER, **options):
    return zg.solve(problem, solver, tol=tol, max_epochs=max_epochs, random_state=0, **options)


@intercepts
@pytest.mark.parametrize("weighted", [False, True])
def test_same_optimum_as_newton(intercept, weighted):
    problem = make(intercept=intercept, weighted=weighted)
    best = solve(problem, solver=MulticlassNewton()).certificate
    run = solve(problem, record="epoch")
    assert run.stop_reason == "converged"
    assert run.certificate.primal == pytest.approx(best.primal, rel=1e-8)
    above = run.history["primal"] - best.dual
    assert np.all(run.history["gap"] >= above - 1e-9 * best.primal), "never below the true distance"


def test_sparse_rows_and_few_weights_have_the_same_optimum():
    problem = make(n=60, d=4, C=3, intercept=True)
    rows = sparse.csr_matrix(problem.rows.X)
    other = zg.Problem(rows, problem.y, "softmax", problem.lam, fit_intercept=True)
    primal = [solve(p).certificate.primal for p in (problem, other)]
    assert primal[0] == pytest.approx(primal[1], rel=1e-9)


def test_slopes_are_the_gradient_of_the_loss_along_a_line():
    problem, rng = make(weighted=True), np.random.default_rng(1)
    w, v = rng.standard_normal((2, *problem.weight_shape))
    z, dz, c = problem.scores(w), problem.scores(v), np.empty(problem.dual_shape)
    value, slope = problem.over_rows(_answer_scores, problem.y, problem.share, z, dz, 0.3, c)
    assert value == pytest.approx(problem.mean_loss(z + 0.3 * dz), rel=1e-13)
    assert slope == pytest.approx(float((c * dz).sum()), rel=1e-12)
    gradient = problem.gathered(c) + problem.lam * (w + 0.3 * v)
    np.testing.assert_allclose(gradient, problem.gradient(w + 0.3 * v), rtol=1e-10, atol=1e-13)


@intercepts
def test_its_own_estimate_is_the_gap(intercept):
    """|grad P|^2 / (2 lam), as votes balance to second order where intercepts are free."""
    problem = make(intercept=intercept)
    state = SOLVER.begin(problem, np.random.default_rng(0))
    for _ in range(12):
        SOLVER.steps(problem, state, 1)
    estimate = SOLVER.relative_gap(problem, state)
    certificate = problem.certificate(*SOLVER.answer(problem, state))
    assert 1e-9 < estimate < 0.1
    assert certificate.relative_gap == pytest.approx(estimate, rel=0.1)


def test_a_step_on_the_intercepts_balances_the_votes():
    problem = make(intercept=True, noise=5.0)
    z = np.tile(problem.first_intercept(), (problem.shape[0], 1))
    z += 0.01 * np.random.default_rng(0).standard_normal(z.shape)
    c, lack = np.empty_like(z), []
    for _ in range(3):
        problem.over_rows(_answer_scores, problem.y, problem.share, z, c * 0.0, 0.0, c)
        lack.append(np.abs(c.sum(axis=0)).max())
        z += _newton_step_of_intercepts(problem, c)
    assert lack[1] < 0.01 * lack[0]
    assert lack[2] < 0.01 * lack[1]


def test_single_precision_gives_the_certificate_of_double():
    problem = make(d=200, C=21, lam=1e-3, dtype=np.float32, intercept=True)
    double = make(d=200, C=21, lam=1e-3, intercept=True)
    rows = problem.rows.X.astype(np.float64)
    exact = zg.Problem(rows, double.y, "softmax", 1e-3, fit_intercept=True)
    for tol in (1e-3, 1e-8):
        run = solve(problem, tol=tol)
        assert run.stop_reason == "converged"
        again = exact.certificate(run.w, run.b, run.alpha)
        assert again.primal == pytest.approx(run.certificate.primal, rel=1e-12)
        assert again.relative_gap <= 1.01 * tol


@intercepts
def test_a_warm_start_at_the_optimum_needs_no_step(intercept):
    problem = make(intercept=intercept)
    first = solve(problem, tol=1e-6)
    again = solve(problem, tol=1e-6, warm_start=first)
    assert again.certificate.epochs == 0
    nearby = solve(problem, tol=1e-8, warm_start=(first.w, first.b, None))
    assert nearby.certificate.epochs < first.certificate.epochs


def test_without_features_that_differ_the_constant_model_is_found():
    X, y = np.zeros((6, 2000)), [0, 0, 1, 1, 2, 2]
    run = solve(zg.Problem(X, y, "softmax", 0.1, fit_intercept=True), tol=1e-6)
    assert run.certificate.primal == pytest.approx(np.log(3.0))


@intercepts
def test_auto_chooses_it_for_many_weights_in_dense_rows(intercept):
    problem = make(n=300, d=210, C=20, lam=1e-3, intercept=intercept)
    assert suits(problem)
    run = solve(problem, solver=zg.solvers.Auto(), tol=1e-3)
    assert run.certificate.solver.startswith("L-BFGS, chosen automatically")
    assert run.stop_reason == "converged"
    uneven = problem.rows.X * np.logspace(0, 6, 210)
    assert not suits(zg.Problem(uneven, problem.y, "softmax", 1e-3))
    assert not suits(make())
    assert not suits(zg.Problem(problem.rows.X, problem.y, "multiclass-hinge", 1e-3))


def test_where_it_stalls_newton_ends_with_a_certificate_at_once():
    """Almost separable classes: after a change of methods the new one's estimate is heard."""
    problem = make(n=300, d=210, C=20, lam=1e-9)
    run = solve(problem, solver=zg.solvers.Auto(), tol=1e-3, max_epochs=1000)
    assert run.stop_reason == "converged"
    story = run.certificate.solver
    assert story.startswith("L-BFGS for")
    steps = run.certificate.epochs - float(story.split()[2])
    assert steps < 40


@pytest.mark.parametrize("C", [3, 40, 300])
def test_flows_of_many_classes_are_balanced_without_a_linear_program(C, monkeypatch):
    rng = np.random.default_rng(C)
    flow = rng.random((C, C)) ** 4
    flow *= np.exp(rng.standard_normal(C)[:, None] - 0.0)
    np.fill_diagonal(flow, 0.0)
    monkeypatch.setattr("zerogap.problem.circulation._LEAST_KEPT", 0.0)
    monkeypatch.delattr("zerogap.problem.circulation._largest_circulation")
    balanced = flow * balancing_factors(flow)
    assert is_balanced(balanced)
    assert balanced.sum() > 0.0

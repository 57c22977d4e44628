"""Steps on the face: they raise the dual, solve its equations, and end the crawling of SDCA."""

import numpy as np
import pytest

import zerogap as zg
from problems import make_problem
from zerogap.solvers.free_variables import has_free_steps, improve

STRAIGHT = ["hinge", "absolute", "epsilon-insensitive", "quantile"]
BENT = ["squared-hinge", "smooth-hinge", "huber"]


def start(problem, seed=0):
    """Return a feasible dual point, half of it at an end, with its sums."""
    rng = np.random.default_rng(seed)
    ends = np.array([problem.loss.domain(y) for y in problem.y])
    end = np.where(np.isfinite(ends[:, 1]), ends[:, 1], ends[:, 0])
    low, high = np.clip(ends, -2.0, 2.0).T
    inside = rng.uniform(0.1, 0.9, len(low))
    alpha = np.where(rng.random(len(low)) < 0.5, low + inside * (high - low), end)
    bias = np.array([0.3 * problem.fit_intercept, problem.share @ alpha])
    return alpha, problem.dual_sum(alpha), bias


def raised_dual(problem, alpha, bias, rho, centre):
    """The dual of the proximal method of multipliers: an intercept of centre + rho mean(alpha)."""
    conjugates = [problem.loss.conjugate(a, y) for a, y in zip(alpha, problem.y, strict=True)]
    u, mean = problem.dual_sum(alpha), problem.share @ alpha
    dual = -problem.share @ conjugates - 0.5 * problem.lam * u @ u
    return dual - centre * mean - 0.5 * rho * mean**2


@pytest.mark.parametrize("limit", [1, 3, 50])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", STRAIGHT + BENT)
def test_step_raises_the_dual_and_keeps_its_sums(loss, intercept, limit):
    problem = make_problem(loss, n=40, d=30, lam=0.05, weighted=True, intercept=intercept)
    for seed in range(10):
        alpha, u, bias = start(problem, seed)
        rho = 2.0 * intercept
        centre = bias[0] - rho * bias[1]
        before, held = raised_dual(problem, alpha, bias, rho, centre), alpha.copy()
        places = np.arange(0, 40, 2)
        products, _ = improve(problem, places, alpha, u, bias, rho, limit)
        assert 0 < products <= limit
        assert raised_dual(problem, alpha, bias, rho, centre) > before
        np.testing.assert_allclose(u, problem.dual_sum(alpha), atol=1e-12)
        assert bias[1] == pytest.approx(problem.share @ alpha, abs=1e-14)
        assert bias[0] == pytest.approx(centre + rho * bias[1], abs=1e-13)
        assert np.isfinite(raised_dual(problem, alpha, bias, rho, centre))
        np.testing.assert_array_equal(alpha[1::2], held[1::2])


@pytest.mark.parametrize("loss", ["hinge", *BENT])
def test_whole_steps_lead_to_the_scores_of_the_dual_variables(loss):
    problem = make_problem(loss, n=12, d=30, lam=0.4)
    alpha, places = 0.5 * np.sign(problem.y), np.arange(1, 12)
    u = problem.dual_sum(alpha)
    for _ in range(20):
        improve(problem, places, alpha, u, np.zeros(2), 0.0, 50)
    z = problem.scores(u)
    free = [problem.loss.stiffness(a, y) < np.inf for a, y in zip(alpha, problem.y, strict=True)]
    rows = np.flatnonzero(free)[1:]
    assert len(rows)
    if loss == "hinge":
        np.testing.assert_allclose(problem.y[rows] * z[rows], 1.0, atol=1e-12)
    else:
        slopes = [problem.loss.derivative(z[i], problem.y[i]) for i in rows]
        np.testing.assert_allclose(alpha[rows], -np.array(slopes), atol=1e-12)


def test_nothing_is_done_without_free_rows():
    problem = make_problem("hinge", n=10, d=3)
    alpha = problem.y.copy()
    u, bias = problem.dual_sum(alpha), np.zeros(2)
    assert improve(problem, np.arange(10), alpha, u, bias, 0.0, 5) == (0, True)
    np.testing.assert_array_equal(alpha, problem.y)


def test_faces_are_those_of_lines_and_parabolas_with_ends_and_l2():
    assert all(has_free_steps(make_problem(loss)) for loss in STRAIGHT + BENT)
    assert not has_free_steps(make_problem("squared"))
    assert not has_free_steps(make_problem("logistic"))
    assert not has_free_steps(make_problem("hinge", l1_ratio=0.5))
    assert not has_free_steps(zg.Problem(np.eye(3), [0, 1, 2], "multiclass-hinge"))


def alike(n=300, d=400, copies=4, seed=0):
    """Rows that are nearly the same, some with wrong labels: coordinate ascent crawls."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.standard_normal((n // copies, d)), copies, axis=0)
    X += 0.05 * rng.standard_normal(X.shape)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(rng.random(n) < 0.05, -1.0, 1.0) * np.sign(X[:, :5].sum(axis=1))


LOSSES = pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])


@pytest.mark.parametrize("intercept", [False, True])
@LOSSES
def test_rows_that_are_alike_take_a_fraction_of_the_epochs(loss, intercept):
    problem = zg.Problem(*alike(100, 120), loss, lam=1e-5, fit_intercept=intercept)
    options = {"tol": 1e-7, "random_state": 0, "max_epochs": 100_000}
    plain, finished = (
        zg.solve(problem, zg.SDCA(finish=finish), **options) for finish in (False, True)
    )
    assert finished.stop_reason == plain.stop_reason == "converged"
    assert finished.certificate.epochs < 0.5 * plain.certificate.epochs
    best = zg.solve(problem, zg.Newton(), tol=1e-10).certificate
    assert best.dual <= finished.certificate.primal
    assert finished.certificate.primal - finished.certificate.gap <= best.primal * (1 + 1e-14)


@LOSSES
def test_resume_is_exact(loss, tmp_path):
    """Stopped before, between and in the middle of what leads to steps on the face."""
    problem = zg.Problem(*alike(), loss, lam=1e-5, fit_intercept=True)
    solver, options = zg.SDCA(finish=True), {"tol": 0.0, "random_state": 5}
    for epochs in (9, 50.3, 120, 161.7, 200):
        pieces = zg.solve(
            problem, solver, checkpoint=tmp_path / "run", max_epochs=epochs, **options
        )
    whole = zg.solve(problem, solver, max_epochs=200, **options)
    np.testing.assert_array_equal(pieces.w, whole.w)
    plain = zg.solve(problem, zg.SDCA(), max_epochs=200, **options)
    assert not np.array_equal(plain.w, whole.w)


@LOSSES
def test_weights_equal_repetition(loss):
    X, y = alike()
    times = np.random.default_rng(2).integers(1, 4, len(y))
    options = {"tol": 1e-9, "random_state": 0, "max_epochs": 100_000}
    weighted, repeated = (
        zg.solve(problem, zg.SDCA(finish=True), **options).certificate
        for problem in (
            zg.Problem(X, y, loss, lam=1e-5, sample_weight=times),
            zg.Problem(np.repeat(X, times, axis=0), np.repeat(y, times), loss, lam=1e-5),
        )
    )
    assert max(weighted.relative_gap, repeated.relative_gap) <= 1e-9
    assert weighted.primal == pytest.approx(repeated.primal, rel=2e-9)


def test_averages_cannot_be_finished():
    with pytest.raises(ValueError, match="finish=True needs output='last' or 'best'"):
        zg.solve(make_problem("hinge"), zg.SDCA(finish=True, output="average"))

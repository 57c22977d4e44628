"""Steps on the face: they raise the dual, lead to kinks, and end the crawling of SDCA."""

import numpy as np
import pytest

import zerogap as zg
from problems import make_problem
from zerogap.solvers.face import has_faces, improve

STRAIGHT = ["hinge", "absolute", "epsilon-insensitive", "quantile"]


def start(problem, seed=0):
    """Return a feasible dual point, half of it at an end, with its sums."""
    rng = np.random.default_rng(seed)
    low, high = np.array([problem.loss.domain(y) for y in problem.y]).T
    inside = rng.uniform(0.1, 0.9, len(low))
    alpha = np.where(rng.random(len(low)) < 0.5, low + inside * (high - low), high)
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
@pytest.mark.parametrize("loss", STRAIGHT)
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


def test_whole_step_leads_to_the_kinks():
    problem = make_problem("hinge", n=12, d=30, lam=0.4)
    alpha, places = 0.5 * problem.y, np.arange(1, 12)
    u = problem.dual_sum(alpha)
    for _ in range(20):
        improve(problem, places, alpha, u, np.zeros(2), 0.0, 50)
    margins = problem.y * problem.scores(u)
    free = (alpha * problem.y > 0.0) & (alpha * problem.y < 1.0) & (places[0] <= np.arange(12))
    assert free.any()
    np.testing.assert_allclose(margins[free], 1.0, atol=1e-12)


def test_nothing_is_done_without_free_rows():
    problem = make_problem("hinge", n=10, d=3)
    alpha = problem.y.copy()
    u, bias = problem.dual_sum(alpha), np.zeros(2)
    assert improve(problem, np.arange(10), alpha, u, bias, 0.0, 5) == (0, True)
    np.testing.assert_array_equal(alpha, problem.y)


def test_faces_are_those_of_straight_lines_and_l2():
    assert all(has_faces(make_problem(loss)) for loss in STRAIGHT)
    assert not has_faces(make_problem("logistic"))
    assert not has_faces(make_problem("hinge", l1_ratio=0.5))
    assert not has_faces(zg.Problem(np.eye(3), [0, 1, 2], "multiclass-hinge"))


def alike(n=300, copies=4, seed=0):
    """Rows that are nearly the same, with any label: coordinate ascent crawls."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.standard_normal((n // copies, 400)), copies, axis=0)
    X += 0.05 * rng.standard_normal(X.shape)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(rng.random(n) < 0.5, 1.0, -1.0)


@pytest.mark.parametrize("intercept", [False, True])
def test_rows_that_are_alike_take_a_fraction_of_the_epochs(intercept):
    problem = zg.Problem(*alike(), "hinge", lam=1e-4, fit_intercept=intercept)
    options = {"tol": 1e-7, "random_state": 0, "max_epochs": 100_000}
    plain, finished = (
        zg.solve(problem, zg.SDCA(finish=finish), **options) for finish in (False, True)
    )
    assert finished.stop_reason == plain.stop_reason == "converged"
    assert finished.certificate.epochs < 0.5 * plain.certificate.epochs
    best = zg.solve(problem, zg.InteriorPoint(), tol=1e-10).certificate
    assert best.dual <= finished.certificate.primal
    assert finished.certificate.primal - finished.certificate.gap <= best.primal * (1 + 1e-14)


def test_averages_cannot_be_finished():
    with pytest.raises(ValueError, match="finish=True needs output='last' or 'best'"):
        zg.solve(make_problem("hinge"), zg.SDCA(finish=True, output="average"))

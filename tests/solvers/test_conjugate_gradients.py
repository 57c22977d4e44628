"""Conjugate gradients end at gaps, not at gradients: they know the gap of a parabola."""

import numpy as np
import pytest
from scipy import sparse

import zerogap as zg
from zerogap.solvers.conjugate_gradients import Enough, conjugate_gradients
from zerogap.solvers.hessian import DIRECT, MOST_EVEN, Hessian


def text(n: int = 1500, d: int = DIRECT + 500) -> tuple[sparse.csr_matrix, np.ndarray]:
    X, y, _ = zg.datasets.make_text(n, d, random_state=3)
    return X, y + 0.5 * np.random.default_rng(4).standard_normal(n)


def ridge(C: float) -> zg.Problem:
    X, y = text()
    return zg.Problem(X, y, "squared", lam=1.0 / (C * len(y)))


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_gap_of_other_weights_dual_point_is_known(C):
    problem = ridge(C)
    hessian = Hessian(problem, problem.share.copy())
    target = problem.lam * problem.dual_sum(problem.y)
    start = problem.primal(np.zeros(problem.shape[1]))
    for gap in (0.3, 1e-2, 1e-5):
        enough = Enough(start, gap, problem.lam, smooths=True)
        found = conjugate_gradients(hessian.__matmul__, lambda r: r, target, 0.0, 400, 0.0, enough)
        if found.smooth is None:
            continue
        alpha = problem.dual_point(problem.scores(found.smooth))
        certificate = problem.certificate(found.solution, alpha=alpha)
        assert certificate.gap == pytest.approx(found.gap, rel=1e-6)
        assert certificate.relative_gap <= gap
        plain = problem.certificate(found.solution)
        assert certificate.gap < 0.7 * plain.gap


def test_smoothed_residuals_save_products():
    problem = ridge(100.0)
    hessian = Hessian(problem, problem.share.copy())
    target = problem.lam * problem.dual_sum(problem.y)
    start = problem.primal(np.zeros(problem.shape[1]))
    products = []
    for smooths in (False, True):
        enough = Enough(start, 1e-3, problem.lam, smooths)
        given = (hessian.__matmul__, hessian._diagonal(True), target, 0.0, 400, 0.0, enough)
        products.append(conjugate_gradients(*given).products)
    assert products[1] < 0.9 * products[0]


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared-hinge", "huber"])
@pytest.mark.parametrize("intercept", [False, True])
def test_newton_proves_text_with_that_dual_point(loss, intercept):
    X, y = text()
    y = np.sign(y) if loss in ("logistic", "squared-hinge") else y
    problem = zg.Problem(X, y, loss, lam=1e-2 / len(y), fit_intercept=intercept)
    result = zg.solve(problem, zg.Newton(), tol=1e-4, random_state=0)
    assert result.stop_reason == "converged"
    again = problem.certificate(result.w, result.b, result.alpha)
    assert again.relative_gap <= 1e-4
    assert problem.primal(result.w, result.b) >= again.dual


def test_columns_in_other_units_are_scaled_by_the_whole_diagonal():
    """A power of the diagonal would leave columns of money far from those of words."""
    X, y = text()
    money = sparse.csr_matrix(1e5 * np.random.default_rng(5).standard_normal((X.shape[0], 8)))
    problem = zg.Problem(sparse.hstack([X, money], "csr"), y, "squared", lam=1e-2 / len(y))
    assert problem.mean_sqnorm > MOST_EVEN * problem.lam * len(y)
    result = zg.solve(problem, zg.Newton(), tol=1e-4, max_epochs=20, random_state=0)
    assert result.certificate.relative_gap <= 1e-4

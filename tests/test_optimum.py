"""The optima that proofs are held against are right, and found without the library."""

import ast
from pathlib import Path

import numpy as np
import pytest

import optimum as reference
import zerogap as zg
from optimum import optimum
from proofs import JOINT, REGRESSION
from zerogap.losses import LOSSES, MULTICLASS_LOSSES

ALL = [*LOSSES, *MULTICLASS_LOSSES]


def make(loss, n=30, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) + 0.4
    if loss in JOINT:
        return X, np.digitize(score, np.quantile(score, [0.3, 0.6]))
    return X, (score if loss in REGRESSION else np.where(score > 0, 1.0, -1.0))


def test_nothing_of_the_library_is_used():
    for name in ("optimum", "optimum_search"):
        tree = ast.parse((Path(__file__).parent / f"{name}.py").read_text())
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        assert imports
        assert "zerogap" not in " ".join(map(ast.unparse, imports))


@pytest.mark.parametrize("loss", reference.CONJUGATES)
def test_losses_are_those_of_the_library(loss):
    rng = np.random.default_rng(0)
    theirs = LOSSES[loss]()
    low, high, kappa, tube = reference.CONJUGATES[loss]
    for z, y in rng.standard_normal((200, 2)) * 3.0:
        y = y if loss in REGRESSION else np.sign(y)
        assert reference.value(loss, z, y) == pytest.approx(theirs.value(z, y), rel=1e-15)
        ends = np.sort((low, high) if loss in REGRESSION else (low * y, high * y))
        assert tuple(ends) == theirs.domain(y)
        a = np.clip(rng.standard_normal(), *ends)
        conjugate = -a * y + 0.5 * kappa * a**2 + tube * abs(a)
        assert conjugate == pytest.approx(theirs.conjugate(a, y), rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ALL)
def test_the_library_certifies_every_optimum(loss, intercept, l1_ratio):
    X, y = make(loss)
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    best = optimum(X, y, loss, 0.05, weights, intercept, l1_ratio)
    assert 0.0 < best.gap <= 1e-12 * best.primal
    problem = zg.Problem(X, y, loss, 0.05, weights, intercept, l1_ratio)
    w, b = best.w.astype(float), best.b.astype(float)
    w, b = (w, b) if loss in JOINT else (w[0], b.item())
    assert problem.primal(w, b) == pytest.approx(best.primal, rel=1e-14)
    solved = zg.solve(problem, zg.SDCA(), tol=1e-7, max_epochs=20_000, random_state=0)
    assert solved.certificate.dual <= best.primal * (1.0 + 1e-14)
    assert solved.certificate.primal >= best.primal * (1.0 - 1e-12)
    mu = 0.05 * (1.0 - l1_ratio)
    assert np.linalg.norm(solved.w - w) <= np.sqrt(2.0 * solved.certificate.gap / mu) + best.radius


def test_ridge_regression_has_a_closed_form():
    X, y = make("squared")
    best = optimum(X, y, "squared", 0.1, fit_intercept=True)
    centred, target = X - X.mean(axis=0), y - y.mean()
    w = np.linalg.solve(centred.T @ centred + 0.1 * len(y) * np.eye(4), centred.T @ target)
    np.testing.assert_allclose(best.w[0], w, rtol=1e-12)
    np.testing.assert_allclose(best.b, y.mean() - X.mean(axis=0) @ w, rtol=1e-12)


def test_one_weight_in_closed_form():
    """Half the squared loss of one row with w >= 0: w (x^2 + lam (1 - r)) = x y - lam r."""
    best = optimum(np.array([[2.0]]), np.array([3.0]), "squared", 0.5, l1_ratio=0.3)
    assert best.w.item() == pytest.approx((6.0 - 0.15) / (4.0 + 0.35), rel=1e-14)


def test_an_intercept_that_is_not_unique_is_one_of_the_best():
    X, y = np.zeros((4, 1)), np.array([-1.0, 1.0, -1.0, 1.0])
    best = optimum(X, y, "hinge", 0.1, fit_intercept=True)
    assert abs(best.b.item()) <= 1.0 + best.shift
    assert best.shift < 1e-6
    assert best.primal == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax"])
def test_a_wrong_optimum_would_be_found(loss, monkeypatch):
    X, y = make(loss)
    true = reference.minimise

    def wrong(*given):
        theta, a = true(*given)
        return theta + 1e-5, a

    monkeypatch.setattr(reference, "minimise", wrong)
    with pytest.raises(ArithmeticError, match=r"relative gap of .* is left"):
        optimum(X, y, loss, 0.1)

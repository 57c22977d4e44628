"""Directions from a matrix as wide as the rows are those from one as wide as the weights."""

import numpy as np
import pytest
from scipy import sparse

import zerogap as zg
from zerogap.solvers.hessian import Hessian
from zerogap.solvers.multiclass_hessian import MulticlassHessian
from zerogap.solvers.wide_hessian import WideHessian, WideMulticlassHessian, hessian_of


def make_wide_problem(loss, intercept, form=np.asarray):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 20))
    y = np.arange(6) % 3 if loss == "softmax" else np.where(np.arange(6) % 2, 1.0, -1.0)
    problem = zg.Problem(form(X), y, loss, 0.1, fit_intercept=intercept, l1_ratio=0.5)
    ridge = 10.0 ** rng.uniform(-3, 3, problem.weight_shape)
    return problem, ridge, rng


@pytest.mark.parametrize("intercept", [False, True])
def test_one_score(intercept):
    problem, ridge, rng = make_wide_problem("hinge", intercept)
    h = rng.random(6) * [1, 1, 0, 1e-12, 1e6, 1]
    target = rng.standard_normal(20 + intercept)
    wide = hessian_of(problem, h, ridge)
    assert isinstance(wide, WideHessian)
    found = wide.inverse()(target)
    left = np.linalg.norm(wide @ found - target)
    assert left <= 1e-4 * np.linalg.norm(target), "conjugate gradients end at a millionth or so"
    narrow = Hessian(problem, h, damping=0.0, ridge=ridge).inverse()(target)
    np.testing.assert_allclose(problem.scores(found[:20]), problem.scores(narrow[:20]), atol=1e-3)


@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_matrix])
@pytest.mark.parametrize("intercept", [False, True])
def test_many_classes_of_which_one_dominates(intercept, form):
    problem, ridge, rng = make_wide_problem("softmax", intercept, form)
    h = rng.random((6, 3))
    h[0] = [1.0, 1e-9, 1e-12]
    target = rng.standard_normal((3, 20 + intercept))
    if intercept:
        target[:, 20] -= target[:, 20].mean()  # to lift all classes changes nothing
    wide = hessian_of(problem, h, ridge)
    assert isinstance(wide, WideMulticlassHessian)
    found = wide.factorised()[0](target)
    np.testing.assert_allclose(wide @ found, target, atol=1e-9)
    narrow = MulticlassHessian(problem, h, ridge).factorised()[0](target)
    np.testing.assert_allclose(found[:, :20], narrow[:, :20], rtol=1e-6, atol=1e-9)


def test_narrow_tables_keep_their_matrix():
    rng = np.random.default_rng(0)
    problem = zg.Problem(rng.standard_normal((30, 20)), rng.standard_normal(30), "absolute", 0.1)
    assert type(hessian_of(problem, np.ones(30), np.ones(20))) is Hessian

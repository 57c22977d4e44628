"""Small problems of every kind, shared by the tests."""

import numpy as np
from scipy import sparse

import zerogap as zg
from zerogap.losses import LOSSES


def make_data(loss, n=40, d=5, seed=0, storage="dense", dtype=np.float64):
    """Rows and targets for a loss: some zeros, one empty row, targets away from zero mean."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    X[0] = 0.0
    score = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) + 0.4
    cls = LOSSES[loss] if isinstance(loss, str) else type(loss)
    y = np.where(score > 0, 1.0, -1.0) if cls.task == "classification" else score + 1.0
    X = X.astype(dtype)
    return (sparse.csr_matrix(X) if storage == "csr" else X), y


def make_problem(
    loss,
    storage="dense",
    dtype=np.float64,
    weighted=False,
    intercept=False,
    l1_ratio=0.0,
    lam=0.03,
    **size,
):
    X, y = make_data(loss, storage=storage, dtype=dtype, **size)
    weights = np.random.default_rng(1).integers(0, 4, len(y)) if weighted else None
    return zg.Problem(X, y, loss, lam, weights, intercept, l1_ratio)


def random_dual(problem, rng):
    """A random feasible dual point."""
    return problem.feasible(3.0 * rng.standard_normal(problem.shape[0]) * (rng.random() < 0.9))

"""Random problems on which leave-one-out predictions are held against optima without the row."""

import numpy as np
from scipy import sparse

import zerogap as zg
from optimum import optimum
from zerogap.leave_one_out import leave_one_out
from zerogap.losses import LOSSES

ROWS = 3  # of each problem, left out
NAMES = {cls: name for name, cls in LOSSES.items()}


def make_random_problem(seed):
    """Any loss, dense or CSR, with or without weights, intercept and L1."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 12)), int(rng.integers(1, 5))
    loss = rng.choice(list(LOSSES))
    X = np.round(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.8), int(rng.integers(1, 9)))
    score = X @ rng.standard_normal(d) + rng.standard_normal(n) * rng.choice([0.1, 1.0]) + 0.3
    y = score + 1.0
    if LOSSES[loss].task == "classification":
        y = np.where(score > 0, 1.0, -1.0)
        y[:2] = -1.0, 1.0
    weights = rng.integers(0, 4, n) + 0.5 * rng.random() if rng.random() < 0.5 else np.ones(n)
    weights[:2] = 1.0
    l1_ratio = 0.3 if rng.random() < 0.2 else 0.0
    lam = 10.0 ** rng.uniform(-3.0, 0.0)
    X = sparse.csr_matrix(X) if rng.random() < 0.5 else X
    return zg.Problem(X, y, loss, lam, weights, bool(rng.random() < 0.5), l1_ratio), X, weights


def score_without(problem, X, weights, i):
    """Return the score of row i by the optimum of the others, and how far it may be off."""
    others = np.arange(len(weights)) != i
    best = optimum(
        X[others],
        problem.y[others],
        NAMES[type(problem.loss)],
        problem.lam * weights.sum() / weights[others].sum(),
        weights[others],
        problem.fit_intercept,
        problem.l1_ratio,
    )
    score, doubt = best.scores(X[[i]].toarray() if sparse.issparse(X) else X[[i]])
    return score.item(), doubt.item()


def prove_leave_one_out(seed):
    """Hold bounds and decisions of a random problem against optima; return how many rows."""
    problem, X, weights = make_random_problem(seed)
    found = leave_one_out(problem, tol=1e-3)
    assert np.all(found.low <= found.high)
    assert 0.0 <= found.error_low <= found.error_high
    rng = np.random.default_rng(seed)
    checked = 0
    for i in rng.permutation(len(weights))[:ROWS]:
        same = (problem.y == problem.y[i]) & (weights > 0)
        if problem.loss.task == "classification" and problem.fit_intercept and same.sum() < 2:
            continue  # no fit exists
        score, doubt = score_without(problem, X, weights, i)
        # an intercept need not be unique: then the score is one of those between the bounds
        where = (
            f"seed {seed}, row {i}: {found.low[i]} <= {score} <= {found.high[i]}, {found.how[i]}"
        )
        assert found.low[i] - doubt <= score <= found.high[i] + doubt, where
        if found.signs[i] and abs(score) > doubt:
            assert found.signs[i] == np.sign(score), where
        checked += 1
    return checked or None

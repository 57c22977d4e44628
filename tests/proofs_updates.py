"""Random problems on which updated and forgetful models are held against training from scratch."""

import warnings

import numpy as np
from scipy import sparse

import zerogap as zg
from proofs import BINARY, JOINT, REGRESSION, fit, optima, random_case


def prove_updates(seed):
    """Rows added, then others forgotten: the certificate holds the exact optimum of what is left.

    Returns the relative gap, or None if the case has a class too few.
    """
    loss, X, y, weights, _, settings = random_case(seed, [*BINARY, *JOINT, *REGRESSION])
    rng = np.random.default_rng(seed)
    n = len(y)
    weights = np.ones(n) if weights is None else weights
    old = rng.permutation(n) < rng.integers(n // 2, n)
    if rng.random() < 0.3:
        settings["lam"] = None
    forgotten = rng.choice(n, int(rng.integers(1, n // 3)), replace=False)
    order = np.append(np.flatnonzero(old), np.flatnonzero(~old))
    left = np.delete(order, forgotten)
    classifies = loss not in REGRESSION
    if classifies and not len(np.unique(y)) == len(np.unique(y[old])) == len(np.unique(y[left])):
        return None
    cls = zg.LinearClassifier if classifies else zg.LinearRegressor
    tol = 10.0 ** rng.uniform(-8, -2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = cls(loss, tol=tol, keep_data=True, max_epochs=5000, **settings)
        model.fit(X[old], y[old], weights[old])
        model.update(X[~old], y[~old], weights[~old])
        model.forget(forgotten)
    assert np.array_equal(np.arange(n)[model.row_ids_], np.delete(np.arange(n), forgotten))
    data = X[left], y[left], weights[left]
    scratch = fit(cls, *data, loss=loss, tol=0.5, **settings)
    assert model.fingerprint_ == scratch.fingerprint_, (seed, loss, sparse.issparse(X))
    best = optima(loss, *data, settings)
    primal, gap = sum(part.primal for part in best), sum(part.gap for part in best)
    mine, rounding = model.certificate_, 1e-12 * primal
    assert mine.dual <= primal + rounding, (seed, loss, settings)
    assert mine.primal >= primal - gap - rounding, (seed, loss, settings)
    assert mine.primal - primal <= mine.gap + rounding, (seed, loss, settings)
    return mine.relative_gap

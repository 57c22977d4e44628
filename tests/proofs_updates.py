"""Random problems on which updated and forgetful models are held against training from scratch."""

import warnings

import numpy as np
from scipy import sparse

import zerogap as zg
from proofs import BINARY, JOINT, REGRESSION, exact_model, random_case


def prove(seed):
    """Rows added, then others forgotten: the certificate holds the exact optimum of what is left.

    Returns the relative gap, or None if the case has a class too few or no exact optimum.
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
    exact = exact_model(cls, loss, X[left], y[left], weights[left], settings)
    if exact is None:
        return None
    assert model.fingerprint_ == exact.fingerprint_, (seed, loss, sparse.issparse(X))
    mine, best = model.certificate_, exact.certificate_
    slack = 1e-12 * abs(best.primal)
    assert mine.primal >= best.dual - slack, (seed, loss, settings)
    assert mine.dual <= best.primal + slack, (seed, loss, settings)
    assert mine.primal - best.primal <= mine.gap + slack, (seed, loss, settings)
    return mine.relative_gap

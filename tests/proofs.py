"""Random problems on which certified statements are held against the exact optimum.

`prove_*` raise AssertionError if a statement is wrong; tests run them for some hundred seeds,
benchmarks/prove.py for many thousand.  Rough models come from coordinate ascent, the optimum, to a
relative gap of 1e-12, from `optimum`, which has nothing of the library.
"""

import warnings

import numpy as np
from scipy import sparse

import zerogap as zg
from optimum import optimum
from zerogap.losses import LOSSES, MULTICLASS_LOSSES

BINARY = [name for name, cls in LOSSES.items() if cls.task == "classification"]
REGRESSION = [name for name, cls in LOSSES.items() if cls.task == "regression"]
JOINT = list(MULTICLASS_LOSSES)


def random_case(seed, losses):
    """Return (loss, X, y, weights, X_test, settings) of a small random problem."""
    rng = np.random.default_rng(seed)
    loss = losses[seed % len(losses)]
    n, d = int(rng.integers(8, 60)), int(rng.integers(1, 8))
    X, X_test = (rng.standard_normal((m, d)) * (rng.random((m, d)) < 0.7) for m in (n, 40))
    X *= 10.0 ** rng.uniform(-1, 1)
    truth = rng.standard_normal(d)
    score = X @ truth + 0.5 * rng.standard_normal(n) + rng.standard_normal()
    if loss in REGRESSION:
        y = score
    elif loss in JOINT or rng.random() < 0.3:
        y = np.digitize(score, np.quantile(score, [0.3, 0.6]))
    else:
        y = (score > np.median(score)).astype(int)
    weights = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else None
    if rng.random() < 0.4:
        X, X_test = sparse.csr_matrix(X), sparse.csr_matrix(X_test)
    settings = {
        "lam": 10.0 ** rng.uniform(-3, 0),
        "fit_intercept": bool(rng.random() < 0.6),
        "l1_ratio": 0.3 if rng.random() < 0.2 else 0.0,
        "random_state": 0,
    }
    return loss, X, y, weights, X_test, settings


def fit(estimator, X, y, weights, **options):
    """Return a model; if it ended short of its tolerance, its certificate says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimator(**options).fit(X, y, weights)


def optima(loss, X, y, weights, settings):
    """Return the optima that an estimator looks for: one per class if it handles them one by one.

    Certified statements must hold for each optimum, so for the one near to what is found.
    """
    options = {key: settings[key] for key in ("lam", "fit_intercept", "l1_ratio")}
    classes = np.unique(y)
    targets = [y]
    if loss in BINARY:
        targets = [np.where(y == k, 1.0, -1.0) for k in (classes if len(classes) > 2 else [1])]
    return [optimum(X, target, loss, weights=weights, **options) for target in targets]


def score_bounds(best, X):
    """Return bounds of the scores that optima give to rows, one column per output."""
    X = X.toarray() if sparse.issparse(X) else X
    scores, doubt = (np.hstack(parts) for parts in zip(*(b.scores(X) for b in best), strict=True))
    return scores - doubt, scores + doubt


def rough_model(estimator, loss, X, y, weights, settings, seed):
    tol = 10.0 ** np.random.default_rng(seed).uniform(-6, -1)
    return fit(estimator, X, y, weights, loss=loss, solver="sdca", tol=tol, **settings)


def prove_labels(seed):
    """No certified label differs from the optimum's; return the share that is held against it."""
    loss, X, y, weights, X_test, settings = random_case(seed, [*BINARY, *JOINT])
    rough = rough_model(zg.LinearClassifier, loss, X, y, weights, settings, seed)
    low, high = score_bounds(optima(loss, X, y, weights, settings), X_test)
    if low.shape[1] == 1:  # one score for the second class, none for the first
        low, high = (np.hstack([np.zeros_like(x), x]) for x in (low, high))
    labels, certified = rough.predict_certified(X_test)
    rows = np.arange(len(labels))
    beaten = low > high[rows, labels][:, None]
    assert not np.any(certified & beaten.any(axis=1)), (seed, loss, settings)
    high[rows, labels] = -np.inf
    return float(np.mean(certified & (low[rows, labels] > high.max(axis=1))))


def prove_intervals(seed):
    """No prediction of the optimum is outside its interval; return the mean width."""
    loss, X, y, weights, X_test, settings = random_case(seed, REGRESSION)
    rough = rough_model(zg.LinearRegressor, loss, X, y, weights, settings, seed)
    least, most = score_bounds(optima(loss, X, y, weights, settings), X_test)
    _, low, high = rough.predict_certified(X_test)
    assert np.all(least[:, 0] <= high), (seed, loss, settings)
    assert np.all(low <= most[:, 0]), (seed, loss, settings)
    return float(np.mean(high - low))

"""Random problems on which certified statements are held against the exact optimum.

`prove_*` raise AssertionError if a statement is wrong; tests run them for some hundred seeds,
benchmarks/prove.py for many thousand.  Rough models come from coordinate ascent, the optimum from
Newton's method where that is defined.
"""

import warnings

import numpy as np
from scipy import sparse

import zerogap as zg
from zerogap.losses import LOSSES
from zerogap.multiclass_losses import MULTICLASS_LOSSES

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


def exact_model(estimator, loss, X, y, weights, settings):
    """Return a model at most 1e-10 of its objective above the optimum, None if none is found."""
    settings = {"loss": loss, "tol": 1e-12, "max_epochs": 20_000, **settings}
    second_order = loss not in JOINT and settings["l1_ratio"] == 0.0
    for solver in ("newton", "sdca") if second_order else ("sdca",):
        model = fit(estimator, X, y, weights, solver=solver, **settings)
        if model.certificate_.relative_gap <= 1e-10:
            return model
    return None


def rough_model(estimator, loss, X, y, weights, settings, seed):
    tol = 10.0 ** np.random.default_rng(seed).uniform(-6, -1)
    return fit(estimator, X, y, weights, loss=loss, solver="sdca", tol=tol, **settings)


def prove_labels(seed):
    """No certified label differs from the exact optimum's; return the share that is certified."""
    loss, X, y, weights, X_test, settings = random_case(seed, [*BINARY, *JOINT])
    given = (zg.LinearClassifier, loss, X, y, weights, settings)
    rough, exact = rough_model(*given, seed), exact_model(*given)
    if exact is None:
        return None
    labels, certified = rough.predict_certified(X_test)
    wrong = certified & (labels != exact.predict(X_test))
    # where the exact model itself is as good as undecided, its label says nothing
    doubtful = ~exact.predict_certified(X_test)[1]
    assert not np.any(wrong & ~doubtful), (seed, loss, settings)
    return float(certified.mean())


def prove_intervals(seed):
    """No prediction of the exact optimum is outside its interval; return the mean width."""
    loss, X, y, weights, X_test, settings = random_case(seed, REGRESSION)
    given = (zg.LinearRegressor, loss, X, y, weights, settings)
    rough, exact = rough_model(*given, seed), exact_model(*given)
    if exact is None:
        return None
    _, low, high = rough.predict_certified(X_test)
    _, least, most = exact.predict_certified(X_test)
    assert np.all(least <= high), (seed, loss, settings)
    assert np.all(low <= most), (seed, loss, settings)
    return float(np.mean(high - low))

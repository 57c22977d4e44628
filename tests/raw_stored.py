"""Small tables in raw units, for fits from stores and on clusters."""

import numpy as np

from zerogap.losses import as_loss

KINDS = ("year", "million", "billion", "far columns", "far targets")
LOSSES = {
    "squared": "regression",
    "huber": "regression",
    "absolute": "regression",
    "quantile": "regression",
    "epsilon-insensitive": "regression",
    "logistic": "binary",
    "squared-hinge": "binary",
    "smooth-hinge": "binary",
    "hinge": "binary",
    "softmax": "three classes",
    "multiclass-hinge": "three classes",
}


def kinds_of(loss):
    """Return the kinds of tables that there are for a loss."""
    return KINDS if as_loss(loss).task == "regression" else KINDS[:-1]


CASES = [(loss, kind) for loss in LOSSES for kind in kinds_of(loss)]


def make_table(kind, loss, n=600, d=4):
    """Return X and y: a year, a large unit, or offsets of a billion spreads."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, d))
    scores = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    if kind == "year":
        X[:, 0] = np.round(2000 + 10 * X[:, 0])
    elif kind in ("million", "billion"):
        X[:, 0] *= {"million": 1e6, "billion": 1e9}[kind]
    elif kind == "far columns":
        X[:, :2] += [1e9, -1e9]
    else:
        scores += 1e9
    targets = {
        "regression": scores,
        "binary": np.where(scores > 0, 1, -1),
        "three classes": np.digitize(scores, [-1, 1]),
    }
    return X, targets[LOSSES[loss]]

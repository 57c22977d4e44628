"""Choosing between all strengths of an interval, not between those of a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from zerogap.sweeps.curve import Curve, path_cv

ALL = "all"  # in place of a grid
INTERVAL = (1e-4, 1e4)  # of C, and of alpha in ridge regression: the ends of scikit-learn's Cs


def over_all_lambdas(
    model: Any,
    X: Any,
    y: np.ndarray,
    loss: str,
    l1_ratio: float,
    folds: list[Any],
    low: float,
    high: float,
) -> Curve:
    """Return the validation error at every lam of an interval, over given folds in threads."""
    return path_cv(
        X,
        y,
        low,
        high,
        loss=loss,
        l1_ratio=l1_ratio,
        fit_intercept=model.fit_intercept,
        folds=check_cv(folds),
        n_jobs=getattr(model, "n_jobs", None),
        random_state=0,
    )

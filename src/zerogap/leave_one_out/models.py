"""Leave-one-out of a fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.cuda.device import to_host
from zerogap.leave_one_out.search import LeaveOneOut, leave_one_out
from zerogap.problem import Problem
from zerogap.problem.validation import class_factors, fingerprint, sample_weights
from zerogap.rows import CSRRows, DenseRows


def leave_one_out_of(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    tol: float,
    max_seconds: float | None,
    width: float | None = None,
) -> LeaveOneOut:
    """Leave out every row of the data of a fit; refuse other data."""
    rows = X if isinstance(X, DenseRows | CSRRows) else model._rows(X)
    y = np.asarray(y)
    weights = sample_weights(sample_weight, len(y))
    classes = getattr(model, "classes_", None)
    if classes is None:
        targets = y.astype(np.float64)
    elif len(classes) > 2:
        raise ValueError(
            f"leave-one-out needs two classes, this model has {len(classes)}: fit each class "
            f"against the rest with labels of its own, and ask those models"
        )
    else:
        codes = np.searchsorted(classes, y).clip(max=1)
        targets = codes
    if fingerprint(rows, targets, weights) != model.fingerprint_:
        raise ValueError(
            "these are not the data of the fit: leave-one-out needs the same rows, in the same "
            "order and form, with the same targets and sample weights"
        )
    if classes is not None:
        targets = 2.0 * codes - 1.0
        if model.class_weight is not None:
            factors = class_factors(model.class_weight, classes, codes, weights)
            weights = weights * factors[codes]
    settings = (model._loss(), model.lam, weights, model.fit_intercept, model.l1_ratio)
    if settings[0].task == "multiclass":
        raise ValueError(f"leave-one-out needs a binary loss, not {settings[0]}: fit 'logistic'")
    duals = np.atleast_2d(to_host(model.dual_coef_))[0]
    return leave_one_out(
        Problem(rows, targets, *settings),
        start=(
            np.atleast_2d(to_host(model.coef_))[0],
            float(np.atleast_1d(to_host(model.intercept_))[0]),
            duals if len(duals) == len(y) else None,
        ),
        tol=tol,
        width=width,
        max_seconds=max_seconds,
        random_state=model.random_state,
    )

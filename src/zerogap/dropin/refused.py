"""Parameters that scikit-learn's methods refuse together: refused here as well, in its words.

A search over parameters that counts such settings as failed counts them so with our import, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model._logistic import _check_solver
from sklearn.svm._base import _get_liblinear_solver_type

FOR_SPARSE = ("auto", "lbfgs", "lsqr", "sag", "sparse_cg")  # of Ridge, with an intercept
PROGRAMS_FOR_SPARSE = ("highs", "highs-ds", "highs-ipm")  # of QuantileRegressor


def logistic_method(model: Any, ratios: Any) -> None:
    """Refuse a solver of LogisticRegression that lacks the penalty, or the dual.

    `ratios` are the shares of L1 that are tried, or the one; None is none.
    """
    named = getattr(model, "penalty", "deprecated")
    shares = np.array([ratio or 0.0 for ratio in np.ravel(ratios)], dtype=np.float64)
    mixed = "l2" if not shares.any() else "l1" if (shares == 1).all() else "elasticnet"
    if named == "deprecated":
        named = None if getattr(model, "C", 1.0) == np.inf else mixed
    _check_solver(model.solver, named, model.dual)


def liblinear_method(model: Any) -> None:
    """Refuse a loss of LinearSVC or LinearSVR that has no method in the primal or in the dual."""
    if model.dual != "auto":
        kind, penalty = getattr(model, "multi_class", "ovr"), getattr(model, "penalty", "l2")
        _get_liblinear_solver_type(kind, penalty, model.loss, bool(model.dual))


def ridge_method(model: Any, X: Any) -> None:
    """Refuse a solver of Ridge that cannot take the rows; `positive=True` is not ours to refuse."""
    if model.positive:
        return
    if model.solver == "lbfgs":
        raise ValueError(
            "'lbfgs' solver can be used only when positive=True. Please use another solver."
        )
    if sparse.issparse(X) and model.fit_intercept and model.solver not in FOR_SPARSE:
        raise ValueError(
            f"solver='{model.solver}' does not support fitting the intercept on sparse data. "
            f"Please set the solver to 'auto' or 'lsqr', 'sparse_cg', 'sag', 'lbfgs' or set "
            f"`fit_intercept=False`"
        )


def quantile_method(model: Any, X: Any) -> None:
    """Refuse a solver of QuantileRegressor that is gone, or that cannot take sparse rows."""
    if model.solver == "interior-point":
        raise ValueError(f"Solver {model.solver} is not anymore available in SciPy >= 1.11.0.")
    if sparse.issparse(X) and model.solver not in PROGRAMS_FOR_SPARSE:
        raise ValueError(
            f"Solver {model.solver} does not support sparse X. Use solver 'highs' for example."
        )

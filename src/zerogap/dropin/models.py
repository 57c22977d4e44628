"""scikit-learn's linear models with a certified fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn import linear_model
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_sample_weight, validate_data

from zerogap.audit.convention import Convention
from zerogap.dropin.fit import (
    BinarizedDropIn,
    DropIn,
    RegressorDropIn,
    epochs_of,
)

_DIRECT = ("auto", "svd", "cholesky")  # solvers of ridge regression that do not know `tol`


class LogisticRegression(DropIn, linear_model.LogisticRegression):
    """scikit-learn's LogisticRegression, certified: C sum s_i log-loss_i + penalty."""

    def _find_classes(self: Any, y: np.ndarray) -> None:
        super()._find_classes(y)
        if self.solver == "liblinear" and len(self.classes_) > 2:
            raise ValueError(
                "The 'liblinear' solver does not support multiclass classification (n_classes >= "
                "3): use another solver, or OneVsRestClassifier"
            )

    def _keep(self: Any, coef: np.ndarray, intercept: np.ndarray, dimensions: int) -> None:
        super()._keep(coef, intercept, dimensions)
        self.intercept_ = intercept if self.fit_intercept else np.zeros_like(intercept)
        self.n_iter_ = np.array([self.n_iter_], dtype=np.int32)


class _Ridge(DropIn):
    """What both ridge models do: direct solvers are exact, so a small gap is asked for."""

    _several_targets = True

    def _gap(self: Any, convention: Convention) -> float:
        return 1e-17 if self.solver in _DIRECT else super()._gap(convention)

    def _keep(self: Any, coef: np.ndarray, intercept: np.ndarray, dimensions: int) -> None:
        super()._keep(coef, intercept, dimensions)
        self.solver_ = self.solver


class Ridge(_Ridge, RegressorDropIn, linear_model.Ridge):
    """scikit-learn's Ridge, certified: sum s_i (x_i.w + b - y_i)^2 + alpha |w|^2."""


class RidgeClassifier(_Ridge, BinarizedDropIn, linear_model.RidgeClassifier):
    """scikit-learn's RidgeClassifier, certified: ridge regression of signs."""


class ElasticNet(RegressorDropIn, linear_model.ElasticNet):
    """scikit-learn's ElasticNet, certified.

    1/S sum s_i r_i^2 / 2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2).
    """

    _several_targets = True

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Fit as scikit-learn's ElasticNet does; `check_input` is ignored, data are checked."""
        return self._fit_certified(X, y, sample_weight)

    def _keep(self: Any, coef: np.ndarray, intercept: np.ndarray, dimensions: int) -> None:
        super()._keep(coef, intercept, 1 if len(coef) == 1 else dimensions)
        parts = self.certificate_.parts or (self.certificate_,)
        gaps = np.array([part.gap for part in parts])
        self.dual_gap_ = float(gaps[0]) if len(gaps) == 1 else gaps
        if len(parts) > 1:
            self.n_iter_ = [epochs_of(part) for part in parts]


class _SGD(DropIn):
    """What both SGD models do: the objective without a learning rate, and rows that come later."""

    _scales_weights = True  # so that a weight of 2 is a row that occurs twice
    _seen: Any = None  # rows, targets and weights of `partial_fit`

    def fit(  # type: ignore[override]
        self: Any,
        X: Any,
        y: Any,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        """Fit to the optimum; initial coefficients are accepted and change nothing."""
        self._more_validate_params()
        self._seen = None
        return self._fit_certified(X, y, sample_weight)

    def partial_fit(
        self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Any:
        """Fit to all rows that `partial_fit` has been given, these included.

        The result does not depend on how rows were cut into batches.  The model keeps all of them;
        `classes` is accepted and not needed.  Until a second class has been seen the model is
        not fitted.
        """
        first = self._seen is None
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=first
        )
        seen: Any = X, y, _check_sample_weight(sample_weight, X, dtype=np.float64)
        if not first:
            stack = sparse.vstack if sparse.issparse(X) else np.vstack
            joined = zip((stack, np.concatenate, np.concatenate), self._seen, seen, strict=True)
            seen = tuple(join([old, new]) for join, old, new in joined)
        several = not is_classifier(self) or len(np.unique(seen[1])) > 1
        if several:
            self.fit(*seen[:2], sample_weight=seen[2])
        self._seen = seen
        return self

    def _keep(self: Any, coef: np.ndarray, intercept: np.ndarray, dimensions: int) -> None:
        super()._keep(coef, intercept, dimensions)
        self.intercept_ = intercept if self.fit_intercept else np.zeros_like(intercept)
        self.t_ = 1.0


class SGDClassifier(_SGD, DropIn, linear_model.SGDClassifier):
    """The objective of scikit-learn's SGDClassifier, solved: no learning rate."""


class SGDRegressor(_SGD, RegressorDropIn, linear_model.SGDRegressor):
    """The objective of scikit-learn's SGDRegressor, solved: no learning rate."""

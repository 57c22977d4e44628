"""How an estimator takes X: arrays, tables, stores, and arrays on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_n_features,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from zerogap.cuda.device import is_on_device, to_host, watched
from zerogap.cuda.placing import on_device, on_device_array
from zerogap.estimators.outputs import several_targets
from zerogap.io.tensors import as_array, as_tensor, library_of
from zerogap.problem.validation import is_plain, refuse_targets, refuse_type
from zerogap.rows import NotFiniteError, as_rows
from zerogap.store import Store

_NO_TARGETS = object()


class TakesRows(BaseEstimator):
    """The part of an estimator that checks its rows, wherever they are."""

    encoder_: Any = None  # of a model file: what turns tables into features
    _task: str
    _moved = False  # whether the fit's rows were on a GPU
    _library = ""  # whose tensors the fit's results are, if not numpy's or CuPy's arrays

    def _rows(self, X: Any, y: Any = _NO_TARGETS) -> Any:
        """Validate X (and y, if this is a fit) by scikit-learn's rules and ours."""
        if y is not _NO_TARGETS:
            self._moved, self._library = False, library_of(X)
        X, y = as_array(X), as_array(y)
        if is_on_device(X):
            return self._device_rows(X, y)
        if self.encoder_ is None:
            refuse_type(X)
        common: dict[str, Any] = {
            "accept_sparse": True,
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": False,
        }
        if y is _NO_TARGETS:
            if self.encoder_ is not None and not self._has_own_names(X):
                X = check_array(self.encoder_.features_of(X), **common)
                _check_n_features(self, X, reset=False)
                return as_rows(X)
            return self._checked(validate_data(self, X, reset=False, **common))
        self.encoder_ = None
        refuse_targets(y, self._task)
        if is_plain(X, y):  # validation would take longer than small fits
            self.n_features_in_ = X.shape[1]
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            rows = as_rows(X)
            return (rows if isinstance(X, np.ndarray) else rows.with_own_structure()), y
        common["multi_output"] = several_targets(y)
        X, y = validate_data(self, X, y, y_numeric=self._task == "regression", **common)
        return self._checked(X).with_own_structure(), y

    def _checked(self, X: Any) -> Any:
        """Return X as rows; what is not finite is refused with the name of its column."""
        try:
            return as_rows(X)
        except NotFiniteError as error:
            names = getattr(self, "feature_names_in_", None)
            if names is None:
                raise
            name = str(names[error.column])
            raise NotFiniteError(error.value, error.row, error.column, name) from None

    def _has_own_names(self, X: Any) -> bool:
        """Tell whether the columns of X are the features, not raw columns for an encoder."""
        own = getattr(self, "feature_names_in_", ())
        return hasattr(X, "columns") and [*map(str, X.columns)] == [*own]

    def _device_rows(self, X: Any, y: Any) -> Any:
        """Validate X where it is, and y on the processor."""
        rows = on_device(X)
        if y is _NO_TARGETS:
            if rows.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
            return rows
        if self.device == "cpu":
            raise ValueError("X is on a GPU: use device='cuda', or move X to main memory")
        if self.keep_data:
            raise ValueError("keep_data needs rows in main memory: move X there")
        y = column_or_1d(to_host(y))
        check_consistent_length(np.empty((rows.shape[0], 0)), y)
        self.n_features_in_, self._moved = rows.shape[1], True
        return rows, y

    @watched()
    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "coef_")
        if isinstance(X, Store):
            return np.vstack([self._scores(part.X) for _, part in X.stream()])
        place = on_device_array if is_on_device(X) else to_host
        coef, intercept = place(self.coef_), place(self.intercept_)
        return self._rows(X).product(np.atleast_2d(coef)) + intercept

    def _returned(self, result: Any, X: Any) -> Any:
        """Return numbers where the rows X are and in their kind; text stays in numpy's arrays."""
        if is_on_device(X) and result.dtype.kind in "biuf":
            result = on_device_array(result)
        return as_tensor(result, library_of(X))

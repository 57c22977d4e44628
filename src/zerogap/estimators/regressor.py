"""The regressor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from zerogap.cuda.device import to_host
from zerogap.estimators.model import LinearModel
from zerogap.estimators.outputs import refuse_several
from zerogap.estimators.parameters import all_or_nothing, keep, with_shared_parameters
from zerogap.losses import Loss
from zerogap.problem.validation import fingerprint, sample_weights
from zerogap.regions.certified_predictions import score_bounds
from zerogap.solvers import Result
from zerogap.store import Store


@with_shared_parameters
class LinearRegressor(RegressorMixin, LinearModel):
    """Linear regressor trained to a certified duality gap.

    Minimises 1/S sum_i s_i phi(x_i.w + b - y_i) + lam/2 |w|^2 for the chosen loss, with weights
    s_i of sum S, and proves how close the result is to the optimum.

    Parameters
    ----------
    loss : str or Loss
        "squared" (half the square: ridge regression), "absolute", "epsilon-insensitive" (support
        vector regression), "huber", "quantile", or an object such as ``zg.Quantile(q=0.9)``.
    SHARED PARAMETERS

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Weights.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept.
    certificate_ : Certificate
        Primal value, dual value and duality gap.
    history_ : History
        The certificates along the way.
    dual_coef_ : ndarray of shape (n_samples,)
        Dual variables.
    n_iter_ : int
        Epochs run.
    n_features_in_ : int
        Number of features.
    row_ids_ : ndarray of shape (n_samples,)
        Numbers of the training rows, for `forget`: from 0 on, rows that `update` adds after them.
    fingerprint_ : str
        Checksums of the rows, targets and weights of the fit.

    Examples
    --------
    >>> import numpy as np, zerogap as zg
    >>> X = np.arange(10.0)[:, None]
    >>> model = zg.LinearRegressor(loss="absolute", tol=1e-6, random_state=0).fit(X, 2 * X[:, 0])
    >>> model.certificate_.relative_gap <= 1e-6
    True
    """

    _task = "regression"
    n_jobs = None  # there is one problem only

    def __init__(
        self,
        loss: str | Loss = "squared",
        *,
        lam: float | None = None,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_epochs: int = 1000,
        max_seconds: float | None = None,
        device: str = "cpu",
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable | None = None,
        checkpoint: str | None = None,
        keep_data: bool = False,
    ) -> None:
        keep(self, locals())

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or Store, of shape (n_samples, n_features)
            Rows.  float32 and float64 values are used without a copy; do not change X meanwhile.
            The indices of a CSR matrix are copied, so that changing them is no danger.  A Store is
            loaded if it has no `max_memory` and takes less than a quarter of the free memory; else
            it is read block by block, by `zerogap.solvers.BlockSDCA` and `BlockNewton`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; those of a Store are its own.  Several targets have one model each.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is exactly a row that occurs twice.  A Store has its own.

        Returns
        -------
        self
            The fitted model.  After Ctrl-C, KeyboardInterrupt is raised and the best certified
            model so far is in the attributes.
        """
        self._check_parameters()
        if isinstance(X, Store):
            return self._fit_store(X, y, sample_weight)
        X, y = self._rows(X, y)
        weights = sample_weights(to_host(sample_weight), X.shape[0])
        self._data = (X, y, weights) if self.keep_data else None
        self.fingerprint_ = "" if self._moved else fingerprint(X, y.astype(np.float64), weights)
        given = None if sample_weight is None else weights
        if np.ndim(y) == 1:
            return self._conclude(self._solve(X, y[None, :], given))
        self._publish(self._solve(X, np.ascontiguousarray(y.T, dtype=np.float64), given))
        return self._finish()

    def _fit_streamed(self, store: Store) -> Self:
        return self._conclude(self._solve_streamed(store))

    def _conclude(self, results: list[Result]) -> Self:
        self._publish(results)
        self.coef_, self.dual_coef_ = self.coef_[0], self.dual_coef_[0]
        self.intercept_ = float(self.intercept_[0])
        return self._finish()

    def predict(self, X: Any) -> np.ndarray:
        """Return x.w + b for each row of X, which may be a Store.

        Parameters
        ----------
        X : array, CSR matrix, DataFrame or Store
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions, in units of the target.
        """
        scores = self._scores(X)
        return self._returned(scores.ravel() if np.ndim(self.coef_) == 1 else scores, X)

    def predict_certified(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return predictions, and bounds between which those of the exact optimum lie.

        The optimal weights lie within ``radius`` of `coef_` and the optimal intercept in an
        interval, both of which follow from the certificate (see `zerogap.regions`).

        For a model from a file, radius and interval are what the file says.  A UserWarning tells
        so until `zerogap.model_io.recertify` has found them true on the data of the fit.

        Parameters
        ----------
        X : array, CSR matrix, DataFrame or Store
            Rows.

        Returns
        -------
        predictions, low, high : ndarray of shape (n_rows,)
            What `predict` returns, and the least and largest value of the optimum's prediction.

        Examples
        --------
        >>> import numpy as np, zerogap as zg
        >>> X = np.arange(10.0)[:, None]
        >>> model = zg.LinearRegressor(tol=1e-8, random_state=0).fit(X, 2 * X[:, 0])
        >>> predictions, low, high = model.predict_certified(X)
        >>> bool((high - low).max() < 0.1)
        True
        """
        refuse_several(self, "predict_certified")
        regions, rows = self._regions(), self._rows(to_host(X))
        coef, b = to_host(self.coef_)[None, :], np.atleast_1d(to_host(self.intercept_))
        scores = rows.product(coef) + b
        low, high = score_bounds(rows, coef, regions)
        return scores[:, 0], low[:, 0], high[:, 0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R2 on rows and targets, or on a Store, its weights not counted.

        Parameters
        ----------
        X : array, CSR matrix, DataFrame or Store
            Rows.
        y : array, optional
            Targets; those of the Store if X is one.
        sample_weight : array, optional
            Weights of the rows.

        Returns
        -------
        float
            R2: 1 is perfect, 0 as good as the mean.
        """
        if not isinstance(X, Store):
            return super().score(to_host(X), to_host(y), sample_weight)
        errors = squares = total = 0.0
        for _, part in X.stream():
            errors += float(np.sum((part.y - self.predict(part.X)) ** 2))
            total += float(part.y.sum())
        for _, part in X.stream():
            squares += float(np.sum((part.y - total / X.n_samples) ** 2))
        return 1.0 - errors / squares

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

"""What classifier and regressor share: validation, problems, results."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from zerogap.cuda.device import to_host
from zerogap.cuda.placing import on_device_array
from zerogap.estimators.outputs import refuse_several
from zerogap.estimators.rows import TakesRows
from zerogap.estimators.rows_that_come import Updatable
from zerogap.estimators.running import Running
from zerogap.io.tensors import as_tensor
from zerogap.leave_one_out import LeaveOneOut, leave_one_out_of
from zerogap.losses import ALL_LOSSES, Loss, as_loss
from zerogap.problem.certificate import Certificate
from zerogap.problem.validation import check_number, warn_if_short
from zerogap.regions import Region
from zerogap.solvers import Result, as_solver
from zerogap.solvers.placement import check_device
from zerogap.store import Store
from zerogap.streamed import Column, check_task, load, worth_loading


def _names(tasks: tuple[str, ...]) -> str:
    """Return the names of the losses for these tasks."""
    known = ALL_LOSSES
    return ", ".join(name for name, cls in known.items() if cls.task in tasks)


class LinearModel(Updatable, Running, TakesRows):
    """What classifier and regressor share: parameters checked, problems solved, results kept."""

    _task: str
    _data: Any = None  # of the fit, if they are kept

    def _regions(self) -> list[Region]:
        check_is_fitted(self, "coef_")
        if not self._region_sources:
            raise ValueError(
                "this model does not know how far its predictions are from the optimum's: it was "
                "trained block by block, or read from an older file"
            )
        if not all(source.proved for source in self._region_sources):
            warnings.warn(
                "what is certified here is the word of a model file: nothing of it was checked "
                "against the data of the fit, as zerogap.model_io.recertify(model, X, y) does",
                UserWarning,
                stacklevel=3,
            )
        return [source.region for source in self._region_sources]

    @property
    def support_(self) -> np.ndarray:
        """Rows whose dual variables are not zero.

        The optimum is also that of these rows alone, with the weights that they have, if C =
        1 / (lam S) stays the same.  It does with ``lam=None``; an explicit lam has to grow as S,
        the sum of the weights, falls.
        """
        return np.flatnonzero(np.atleast_2d(to_host(self.dual_coef_)).any(axis=0))

    @property
    def n_support_(self) -> np.ndarray:
        """Number of such rows for each row of `dual_coef_`; of two classes, for each class."""
        duals = np.atleast_2d(to_host(self.dual_coef_))
        if len(getattr(self, "classes_", ())) == 2:  # their signs are those of the classes
            return np.array([np.sum(duals < 0), np.sum(duals > 0)])
        return np.count_nonzero(duals, axis=1)

    def leave_one_out(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        tol: float = 1e-3,
        max_seconds: float | None = None,
    ) -> LeaveOneOut:
        """Predict every row of the fit by the optimal model of the other rows, with proofs.

        Most of these models need not be fitted: `zerogap.leave_one_out.bounds` has the theorem.
        They keep this model's C = 1 / (lam S) and its class weights.

        Parameters
        ----------
        X, y, sample_weight
            The data of the fit, of two classes or a regression; others are refused.  Not needed
            with ``keep_data=True``.
        tol : float
            Relative accuracy of the error of a regression; that of a classifier is exact.
        max_seconds : float, optional
            Return bounds of the error after about so many seconds.

        Returns
        -------
        LeaveOneOut
            The error, and for each row bounds of its score and what decided them; a score is
            positive for the second of the `classes_`.

        Examples
        --------
        >>> import zerogap as zg
        >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
        >>> clf = zg.LinearClassifier("hinge", lam=0.01, random_state=0).fit(X, y)
        >>> found = clf.leave_one_out(X, y)
        >>> found.error_low == found.error_high
        True
        """
        check_is_fitted(self, "coef_")
        refuse_several(self, "leave_one_out")
        if X is None and isinstance(self._data, tuple):
            X, y, sample_weight = self._data
        if X is None or y is None:
            raise ValueError("leave-one-out needs the data of the fit: give X and y, or keep_data")
        return leave_one_out_of(self, X, y, sample_weight, tol, max_seconds)

    def _fit_store(self, store: Store, y: Any, sample_weight: Any) -> Self:
        """Fit to a store: in memory if it is small, else block by block."""
        if y is not None or sample_weight is not None:
            raise ValueError("a store has its own targets and weights: give fit the store alone")
        check_task(store, self._loss())
        if worth_loading(store):
            self.fit(*load(store))
            self.fingerprint_ = store.fingerprint
        else:
            self._fit_streamed(store)
        self._data = store if self.keep_data else None
        return self

    def _publish(self, results: list[Result]) -> None:
        """Set the fitted attributes; warn, or pass Ctrl-C on, if the asked gap was not reached."""
        single = len(results) == 1
        self.coef_ = np.array([result.w for result in results])
        self.intercept_: Any = np.array([result.b for result in results])
        on_disk = isinstance(results[0].alpha, Column)
        duals = [np.empty(0) if on_disk else result.alpha for result in results]
        self.dual_coef_ = np.array(duals)
        self.row_ids_ = np.arange(self.dual_coef_.shape[1])
        self.certificate_ = Certificate.combine([result.certificate for result in results])
        self.history_ = results[0].history if single else [r.history for r in results]
        self.n_iter_ = max(1, int(np.ceil(self.certificate_.epochs)))
        warn_if_short(self.certificate_, self.tol, self._about_columns)

    def _finish(self) -> Self:
        if self._failure is not None:
            raise self._failure
        for name in ("coef_", "intercept_", "dual_coef_") if self._moved or self._library else ():
            found = np.asarray(getattr(self, name))  # one model's intercept may be a number
            found = on_device_array(found) if self._moved else found
            setattr(self, name, as_tensor(found, self._library))
        if self.certificate_.stop_reason == "interrupted":
            raise KeyboardInterrupt("fit interrupted; the best certified model so far is kept")
        return self

    def _loss(self) -> Loss:
        tasks = {"classification": ("classification", "multiclass")}.get(self._task, (self._task,))
        known = ALL_LOSSES
        if isinstance(self.loss, str) and self.loss not in known:
            raise ValueError(f"unknown loss {self.loss!r} for {self._task}: choose {_names(tasks)}")
        loss = as_loss(self.loss)
        if loss.task not in tasks:
            raise ValueError(f"{loss} is a loss for {loss.task}: choose {_names(tasks)}")
        return loss

    def _check_parameters(self) -> None:
        """Refuse impossible parameters, before any data are read."""
        self._loss(), as_solver(self.solver)
        check_number("tol", self.tol, Real, 0)
        check_number("max_epochs", self.max_epochs, Integral, 1)
        check_number("l1_ratio", self.l1_ratio, Real, 0)
        if self.max_seconds is not None:
            check_number("max_seconds", self.max_seconds, Real, 0)
        for name in ("fit_intercept", "warm_start", "keep_data"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.n_jobs is not None and not isinstance(self.n_jobs, Integral):
            raise ValueError(f"n_jobs must be an integer or None, got {self.n_jobs!r}")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be callable or None, got {self.callback!r}")
        check_device(self.device)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

"""The estimators of `zerogap`, trained on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

import dask
from zerogap import estimators
from zerogap.dask.backend import DaskBackend
from zerogap.dask.fitting import connected, run_id, specs, state, train
from zerogap.dask.sources import as_sources, known_size
from zerogap.dask.workers import Workers
from zerogap.estimators.outputs import joint_model
from zerogap.estimators.parameters import keep
from zerogap.losses import Loss, as_loss
from zerogap.problem.certificate import Certificate
from zerogap.problem.checks import as_seed
from zerogap.problem.validation import check_number, describe_sizes, warn_if_short
from zerogap.solvers.limits import Limits
from zerogap.store import Store

_SHARED = (
    *("loss", "lam", "l1_ratio", "fit_intercept", "tol", "max_seconds"),
    *("random_state", "verbose", "callback"),
)
_FITTED = (
    *("coef_", "intercept_", "classes_", "n_features_in_"),
    *("certificate_", "history_", "fingerprint_"),
)
_PARAMETERS = """
    lam, l1_ratio, fit_intercept, tol, random_state
        As for the estimator of the same name in `zerogap`.
    max_rounds : int
        Stop after so many round trips to the workers, with a ConvergenceWarning.
    max_seconds : float, optional
        Stop after so many seconds.
    client : distributed.Client, optional
        The cluster.  By default the current one; if there is none, one is started on this machine
        and closed at the end.
    n_groups : "workers" or int
        Number of local problems.  "workers": the chunks that a worker holds are one.  With a
        number, results do not depend on which workers there are.
    checkpoint_every : int
        Rounds between two copies of the dual variables to the client, which serve groups whose
        worker is lost.
    checkpoint_dir : path, optional
        Folder to write these copies to and, if it has some of the same fit, to go on from.
    max_recoveries : int
        Give up when workers have been lost so often.
    round_timeout : float, optional
        Seconds after which a worker that does not answer is treated as lost; by default ten
        times the median round, and 30 at least.
    verbose : int
        Whether to print a line per round: gap, bytes sent and received, workers.
    callback : callable, optional
        Called with each `zerogap.solvers.history.Record`; the fit stops if it returns True.
"""


def _with_parameters(cls: type) -> type:
    if cls.__doc__:  # absent under python -OO
        cls.__doc__ = cls.__doc__.replace("    SHARED PARAMETERS\n", _PARAMETERS.lstrip("\n"))
    return cls


class _Distributed(BaseEstimator):
    """What both estimators share: the fit on a cluster, and predictions of collections."""

    _local: type

    def _train(self: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any) -> Any:
        local = self.to_local()
        local._check_parameters()
        self._check_own_parameters()
        loss, classify = local._loss(), local._task == "classification"
        sources = as_sources(X, y, sample_weight)
        limits = Limits(self.tol, self.max_rounds, None, self.max_seconds, self.callback)
        folder = None if self.checkpoint_dir is None else Path(self.checkpoint_dir)
        with connected(self.client) as client:
            workers = Workers(
                DaskBackend(client),
                sources,
                run_id(),
                classify=classify,
                n_groups=self.n_groups,
                checkpoint_every=self.checkpoint_every,
                max_recoveries=self.max_recoveries,
                round_timeout=self.round_timeout,
                size=known_size(X),
            )
            try:
                stated = state(workers.load(), classify, class_weight)
                given = (loss, self.lam, float(self.l1_ratio), bool(self.fit_intercept))
                problems = specs(stated, *given, as_seed(self.random_state))
                more = (limits, folder, self.verbose)
                outcomes = [train(workers, spec, stated, b, *more) for spec, b in problems]
                self._about_columns = ""
                if any(outcome.stop_reason in ("stalled", "rounding") for outcome in outcomes):
                    names = X.feature_names if isinstance(X, Store) else None
                    self._about_columns = describe_sizes(np.sqrt(workers.measure().squares), names)
            finally:
                workers.release()
        self.n_features_in_ = stated.n_features
        self.fingerprint_ = X.fingerprint if isinstance(X, Store) else stated.digest
        self.coef_ = np.array([outcome.w for outcome in outcomes])
        self.intercept_ = np.array([outcome.b for outcome in outcomes])
        self.certificate_ = Certificate.combine([outcome.certificate for outcome in outcomes])
        histories = [outcome.history for outcome in outcomes]
        self.history_ = histories[0] if len(histories) == 1 else histories
        self.n_rounds_ = workers.rounds
        self.recoveries_ = workers.recoveries
        return stated

    def _finish(self: Any) -> Any:
        certificate = self.certificate_
        warn_if_short(certificate, self.tol, self._about_columns)
        if certificate.stop_reason == "interrupted":
            raise KeyboardInterrupt("fit interrupted; the best certified model so far is kept")
        return self

    def _check_own_parameters(self: Any) -> None:
        for name in ("max_rounds", "checkpoint_every"):
            check_number(name, getattr(self, name), Integral, 1)
        check_number("max_recoveries", self.max_recoveries, Integral, 0)
        if self.n_groups != "workers":
            check_number("n_groups", self.n_groups, Integral, 1)
        if self.round_timeout is not None:
            check_number("round_timeout", self.round_timeout, Real, 0)

    def to_local(self: Any) -> Any:
        """Return the plain estimator with the same model, which needs no cluster."""
        names = [name for name in (*_SHARED, "class_weight") if hasattr(self, name)]
        local = self._local(**{name: getattr(self, name) for name in names})
        for name in _FITTED:
            if hasattr(self, name):
                setattr(local, name, getattr(self, name))
        if hasattr(self, "coef_"):
            local.n_iter_, local._region_sources = self.n_rounds_, []
            local.dual_coef_ = np.empty((*self.coef_.shape[:-1], 0))  # the workers had them
            local.row_ids_ = np.arange(0)
        return local

    def predict(self: Any, X: Any) -> Any:
        """Return the prediction for each row, lazily for a dask collection.

        Parameters
        ----------
        X : array or dask collection
            Rows.

        Returns
        -------
        ndarray or dask array
            Labels, or numbers in units of the target.
        """
        return self._lazily("predict", X)

    def _lazily(self: Any, method: str, X: Any) -> Any:
        """Apply a method of the local model, to the chunks of a collection without waiting."""
        local = self.to_local()
        local.callback = None  # need not travel
        function = getattr(local, method)
        if not dask.is_dask_collection(X):
            return function(X)
        X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        sample = function(np.zeros((1, self.n_features_in_)))
        shape: dict[str, Any] = {"drop_axis": 1}
        if sample.ndim == 2:
            shape = {"chunks": (X.chunks[0], (sample.shape[1],))}
        return X.map_blocks(function, dtype=sample.dtype, meta=sample[:0], **shape)


@_with_parameters
class LinearClassifier(ClassifierMixin, _Distributed):
    """Linear classifier trained on a Dask cluster to a certified duality gap.

    The rows stay on their workers.  A round is one question to each of them: local epochs of dual
    coordinate ascent, joined by a line search, bring the gap down at first; then L-BFGS for smooth
    losses, or solving for the undecided rows in one place for the others.  The certificate is that
    of all rows, and says the same as on one machine.  Losing workers is normal: their rows are read
    again, elsewhere, and training goes on from the dual variables that are left.

    Parameters
    ----------
    loss : str or Loss
        As for `zerogap.LinearClassifier`.
    SHARED PARAMETERS
    class_weight : dict or "balanced", optional
        Weights of the classes, multiplied with the sample weights.

    Attributes
    ----------
    coef_, intercept_, classes_, certificate_, history_, n_features_in_
        As for `zerogap.LinearClassifier`; the history has one row per round, with the bytes that
        travelled, and ``certified`` is 0 where ``gap`` is an estimate.
    n_rounds_ : int
        Round trips to the workers.
    recoveries_ : list of Recovery
        What was lost, why, and what replaced it.

    Examples
    --------
    >>> import dask.array as da
    >>> from zerogap.dask import LinearClassifier
    >>> X = da.random.default_rng(0).normal(size=(1000, 5), chunks=(250, 5))
    >>> clf = LinearClassifier(loss="logistic", tol=1e-6)
    >>> clf.fit(X, X[:, 0] > 0).certificate_.relative_gap <= 1e-6  # doctest: +SKIP
    True
    """

    _local = estimators.LinearClassifier

    def __init__(
        self,
        loss: str | Loss = "hinge",
        *,
        lam: float | None = None,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        class_weight: dict | str | None = None,
        tol: float = 1e-3,
        max_rounds: int = 1000,
        max_seconds: float | None = None,
        client: Any = None,
        n_groups: str | int = "workers",
        checkpoint_every: int = 5,
        checkpoint_dir: Any = None,
        max_recoveries: int = 50,
        round_timeout: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable | None = None,
    ) -> None:
        keep(self, locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : dask array or dataframe, list of delayed or futures, or zerogap.Store
            Rows, in dense or CSR chunks; or a list of parts (X, y) or (X, y, sample_weight); or a
            store, whose blocks the workers read for themselves.
        y, sample_weight : dask collections or arrays, optional
            Labels and weights, if X is a dask array or dataframe.

        Returns
        -------
        self
            The fitted model.  After Ctrl-C, KeyboardInterrupt is raised and the best certified
            model so far is in the attributes.
        """
        stated = self._train(X, y, sample_weight, self.class_weight)
        self.classes_ = stated.classes
        if as_loss(self.loss).task == "multiclass":
            self.coef_, self.intercept_ = joint_model(self.coef_[0], self.intercept_[0])
        return self._finish()

    def decision_function(self, X: Any) -> Any:
        """Return the scores, lazily for a dask collection.

        Parameters
        ----------
        X : array or dask collection
            Rows.

        Returns
        -------
        ndarray or dask array
            The scores.
        """
        return self._lazily("decision_function", X)

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities (logistic and softmax losses), lazily for a dask collection.

        Parameters
        ----------
        X : array or dask collection
            Rows.

        Returns
        -------
        ndarray or dask array
            One column per class.
        """
        return self._lazily("predict_proba", X)


@_with_parameters
class LinearRegressor(RegressorMixin, _Distributed):
    """Linear regressor trained on a Dask cluster to a certified duality gap.

    How it is trained, and what happens when workers are lost, is as for
    `zerogap.dask.LinearClassifier`.

    Parameters
    ----------
    loss : str or Loss
        As for `zerogap.LinearRegressor`.
    SHARED PARAMETERS

    Attributes
    ----------
    coef_, intercept_, certificate_, history_, n_features_in_
        As for `zerogap.LinearRegressor`.
    n_rounds_, recoveries_
        As for `zerogap.dask.LinearClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from dask.distributed import Client
    >>> from zerogap.dask import LinearRegressor
    >>> X, y = np.arange(20.0)[:, None], 3.0 * np.arange(20.0)
    >>> client = Client(processes=False)  # doctest: +SKIP
    >>> LinearRegressor(client=client).fit(X, y).coef_  # doctest: +SKIP
    array([2.99])
    """

    _local = estimators.LinearRegressor

    def __init__(
        self,
        loss: str | Loss = "squared",
        *,
        lam: float | None = None,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_rounds: int = 1000,
        max_seconds: float | None = None,
        client: Any = None,
        n_groups: str | int = "workers",
        checkpoint_every: int = 5,
        checkpoint_dir: Any = None,
        max_recoveries: int = 50,
        round_timeout: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable | None = None,
    ) -> None:
        keep(self, locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model, to data as for `zerogap.dask.LinearClassifier.fit`.

        Parameters
        ----------
        X, y, sample_weight
            As for `zerogap.dask.LinearClassifier.fit`.

        Returns
        -------
        LinearRegressor
            The model itself.
        """
        self._train(X, y, sample_weight, None)
        self.coef_ = self.coef_[0]
        self.intercept_: Any = float(self.intercept_[0])
        return self._finish()

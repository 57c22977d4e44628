"""What classifier and regressor share: validation, problems, results."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self, cast

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_n_features,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from zerogap.cuda.device import DeviceError, is_on_device, to_host
from zerogap.cuda.placing import on_device, on_device_array
from zerogap.estimators.outputs import refuse_several, several_targets
from zerogap.estimators.rows_that_come import Updatable
from zerogap.estimators.threads import Budget, run_all
from zerogap.estimators.updates import start_without
from zerogap.leave_one_out import LeaveOneOut, leave_one_out_of
from zerogap.losses import ALL_LOSSES, Loss, as_loss
from zerogap.problem import Problem
from zerogap.problem.certificate import Certificate
from zerogap.problem.checks import as_seed
from zerogap.problem.validation import (
    check_number,
    class_factors,
    describe_sizes,
    is_plain,
    refuse_targets,
    refuse_type,
    warn_if_short,
)
from zerogap.regions import Evidence, Known, Region
from zerogap.rows import CSRRows, DenseRows, as_rows
from zerogap.solvers import SDCA, Auto, BlockSDCA, Result, Solver, as_solver, solve
from zerogap.solvers.placement import Together, check_device, problems_together
from zerogap.store import Store
from zerogap.streamed import Column, StreamedProblem, check_task, load, worth_loading

_NO_TARGETS = object()


def _names(tasks: tuple[str, ...]) -> str:
    """Return the names of the losses for these tasks."""
    known = ALL_LOSSES
    return ", ".join(name for name, cls in known.items() if cls.task in tasks)


class LinearModel(Updatable, BaseEstimator):
    """What classifier and regressor share: parameters checked, problems solved, results kept."""

    encoder_: Any = None  # of a model file: what turns tables into features
    _task: str
    _data: Any = None  # of the fit, if they are kept
    _failure: Exception | None = None  # of a GPU, in the fit
    _sizes = ""  # of columns, in words, if no method made progress
    _moved = False  # whether the fit's rows were on a GPU
    _rows_left = False  # whether rows have left the dual variables to start from

    def _solve(
        self, X: DenseRows | CSRRows, targets: np.ndarray, weights: Any, validation: Any = None
    ) -> list[Result]:
        """Solve one problem per row of `targets`, in threads if there are several."""
        loss = self._loss()
        self._failure = None
        if self.device != "cpu":
            if validation is not None:
                raise ValueError("stop='labels' needs device='cpu'")
            X = on_device(X)
        problems = [
            Problem(X, y, loss, self.lam, weights, self.fit_intercept, self.l1_ratio)
            for y in targets
        ]
        until = None if validation is None else self._until(len(problems), validation)
        several = len(problems) > 1 and self.device == "cpu"
        jobs = effective_n_jobs(self.n_jobs) if several else 1
        results = self._run(problems, as_solver(self.solver), jobs, until)
        self._sizes = ""
        if any(result.stop_reason == "stalled" for result in results):
            self._sizes = describe_sizes(X, getattr(self, "feature_names_in_", None))
        return results

    def _solve_streamed(self, store: Store) -> list[Result]:
        """Solve the problems of a store, one after the other."""
        solver = as_solver(self.solver)
        if solver not in (Auto(), SDCA(), BlockSDCA()):
            raise ValueError(
                f"{solver} cannot read its rows from a store: use solver='auto' or 'sdca', or a "
                f"store without max_memory that fits into memory"
            )
        self.n_features_in_, self.fingerprint_ = store.n_features, store.fingerprint
        method = solver if solver == Auto() else BlockSDCA()
        return self._run(self._streamed_problems(store), method, 1)

    def _streamed_problems(self, store: Store) -> list[StreamedProblem]:
        """Return one problem per class to be separated, or the only one."""
        classes: Any = store.classes
        factors = None
        if getattr(self, "class_weight", None) is not None:
            codes, weights = np.arange(len(classes)), cast("np.ndarray", store.class_weights)
            factors = class_factors(self.class_weight, classes, codes, weights)
        settings = (self._loss(), self.lam, self.fit_intercept, self.l1_ratio)
        problem = StreamedProblem(store, *settings, factors)
        several = problem.loss.task == "classification" and len(classes) > 2
        return [problem.against(k) for k in range(len(classes))] if several else [problem]

    def _run(
        self,
        problems: list[Any],
        solver: Solver,
        jobs: int,
        until: Callable[[Problem], Callable] | None = None,
    ) -> list[Result]:
        """Solve problems that differ in their targets only, in so many threads.

        `until` makes the callback that ends the run of a problem, in place of the gap.
        """
        starts = self._starts(len(problems), problems[0].shape)
        if self._rows_left:
            pairs = zip(problems, starts, strict=True)
            starts = [start_without(*pair, self.tol) for pair in pairs]
        seeds = np.random.SeedSequence(as_seed(self.random_state)).generate_state(len(problems))
        stop = threading.Event()
        budget = Budget(self.max_seconds, len(problems), jobs)
        files = [self.checkpoint] * len(problems)
        if self.checkpoint is not None and len(problems) > 1:
            files = [f"{self.checkpoint}.{k}" for k in range(len(problems))]

        def run(k: int) -> Result:
            try:
                return solve(
                    problems[k],
                    solver,
                    tol=self.tol if until is None else 0.0,
                    max_epochs=self.max_epochs,
                    max_seconds=budget.share(k),
                    callback=self.callback if until is None else until(problems[k]),
                    record="auto" if until is None else 1.2,
                    warm_start=starts[k],
                    random_state=int(seeds[k]),
                    verbose=self.verbose,
                    checkpoint=files[k],
                    interrupt=stop,
                    device=self.device,
                )
            except DeviceError as error:
                if error.result is None:
                    raise
                self._failure = error  # raised when the model has its attributes
                return error.result

        if together := problems_together(problems, solver, self.device):
            results = self._run_together(problems, together, starts, seeds, stop)
        elif len(problems) == 1:
            results = [run(0)]
        else:
            results = run_all(run, len(problems), jobs, stop)
        self._evidence: list[Evidence | Known] = [
            Evidence.of(problem, result.w, result.proof)
            for problem, result in zip(problems, results, strict=True)
            if isinstance(problem, Problem) and result.proof is not None
        ]
        return results

    def _run_together(
        self, problems: list[Any], together: Together, starts: Any, seeds: Any, stop: Any
    ) -> list[Result]:
        """Solve problems on a GPU that read their rows together."""
        if self.checkpoint is not None:
            raise ValueError("checkpoints are not written from a GPU: leave checkpoint out")
        try:
            return together(
                problems,
                tol=self.tol,
                max_epochs=self.max_epochs,
                max_seconds=self.max_seconds,
                callback=self.callback,
                warm_starts=starts,
                seeds=[int(seed) for seed in seeds],
                verbose=self.verbose,
                interrupt=stop,
            )
        except DeviceError as error:
            if error.result is None:
                raise
            self._failure = error
            return error.result

    def _regions(self) -> list[Region]:
        check_is_fitted(self, "coef_")
        if not self._evidence:
            raise ValueError(
                "this model does not know how far its predictions are from the optimum's: it was "
                "trained block by block, or read from an older file"
            )
        if not all(evidence.proved for evidence in self._evidence):
            warnings.warn(
                "what is certified here is the word of a model file: nothing of it was checked "
                "against the data of the fit, as zerogap.model_io.recertify(model, X, y) does",
                UserWarning,
                stacklevel=3,
            )
        return [evidence.region for evidence in self._evidence]

    @property
    def support_(self) -> np.ndarray:
        """Rows whose dual variables are not zero.

        The optimum is also that of these rows alone, with the weights that they have, if C =
        1 / (lam S) stays the same.  It does with ``lam=None``; an explicit lam has to grow as S,
        the sum of the weights, falls.
        """
        return np.flatnonzero(np.atleast_2d(self.dual_coef_).any(axis=0))

    @property
    def n_support_(self) -> np.ndarray:
        """Number of such rows for each row of `dual_coef_`; of two classes, for each class."""
        duals = np.atleast_2d(self.dual_coef_)
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
        warn_if_short(self.certificate_, self.tol, self._sizes)

    def _finish(self) -> Self:
        if self._failure is not None:
            raise self._failure
        if self._moved:
            for name in ("coef_", "intercept_", "dual_coef_"):
                setattr(self, name, on_device_array(getattr(self, name)))
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

    def _rows(self, X: Any, y: Any = _NO_TARGETS) -> Any:
        """Validate X (and y, if this is a fit) by scikit-learn's rules and ours."""
        if is_on_device(X):
            return self._device_rows(X, y)
        if y is not _NO_TARGETS:
            self._moved = False
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
            return as_rows(validate_data(self, X, reset=False, **common))
        self.encoder_ = None
        refuse_targets(y)
        if is_plain(X, y):  # validation would take longer than small fits
            self.n_features_in_ = X.shape[1]
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return as_rows(X), y
        common["multi_output"] = several_targets(y)
        X, y = validate_data(self, X, y, y_numeric=self._task == "regression", **common)
        return as_rows(X).with_own_structure(), y

    def _has_own_names(self, X: Any) -> bool:
        """Tell whether X is a table of the features themselves, and not of what they come from."""
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
            raise ValueError("X is on a GPU: use device='cuda', or X.get()")
        if self.keep_data:
            raise ValueError("keep_data needs rows on the processor: use X.get()")
        y = column_or_1d(to_host(y))
        check_consistent_length(np.empty((rows.shape[0], 0)), y)
        self.n_features_in_, self._moved = rows.shape[1], True
        return rows, y

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "coef_")
        if isinstance(X, Store):
            return np.vstack([self._scores(part.X) for _, part in X.stream()])
        place = on_device_array if is_on_device(X) else to_host
        coef, intercept = place(self.coef_), place(self.intercept_)
        return self._rows(X).product(np.atleast_2d(coef)) + intercept

    def _starts(self, count: int, shape: tuple[int, int]) -> list[Any]:
        """Return where each problem starts: the previous fit, if it is to be used and fits."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return [None] * count
        if self._loss().task == "multiclass":
            return [self._joint_start(shape)]
        coef = np.atleast_2d(self.coef_)
        if coef.shape != (count, shape[1]):
            return [None] * count
        duals = np.atleast_2d(self.dual_coef_)
        intercepts = np.atleast_1d(self.intercept_)
        kept = duals.shape == (count, shape[0])
        return [(coef[k], float(intercepts[k]), duals[k] if kept else None) for k in range(count)]

    def _joint_start(self, shape: tuple[int, int]) -> Any:
        W, b, alpha = self.coef_, self.intercept_, self.dual_coef_.T
        if len(W) == 1:  # two classes, of which the difference was kept: the optimum is symmetric
            W, b = np.vstack([-W, W]) / 2, np.append(-b, b) / 2
            alpha = np.hstack([-alpha, alpha])
        same_classes = len(W) == len(self.classes_) and W.shape[1] == shape[1]
        if not same_classes:
            return None
        return W, b, alpha if len(alpha) == shape[0] else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

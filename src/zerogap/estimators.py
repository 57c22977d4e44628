"""scikit-learn estimators: validation, labels, one problem per class, fitted attributes."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral, Real
from typing import Any, Self, cast

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from zerogap import updates
from zerogap.certificate import Certificate
from zerogap.certified import difference, score_bounds, settled_rows, until_settled
from zerogap.checks import as_seed
from zerogap.loo import LeaveOneOut, leave_one_out_of
from zerogap.losses import LOSSES, Logistic, Loss, as_loss
from zerogap.memory import free_memory
from zerogap.multiclass_losses import MULTICLASS_LOSSES, Softmax
from zerogap.problem import Problem
from zerogap.regions import Evidence, Region
from zerogap.rows import CSRRows, DenseRows, as_rows
from zerogap.solvers import SDCA, Auto, BlockSDCA, Result, Solver, as_solver, solve
from zerogap.store import Store
from zerogap.streamed import Column, StreamedProblem, check_task, load, worth_loading
from zerogap.validation import (
    check_number,
    class_factors,
    fingerprint,
    refuse_targets,
    refuse_type,
    sample_weights,
    warn_if_short,
)

_NO_TARGETS = object()
_SHARED_PARAMETERS = """
    lam : float, optional
        Regularisation, > 0.  By default 1 / (sum of the sample weights), that is 1 / n_samples,
        which is ``C=1`` in scikit-learn's support vector machines: C = 1 / (lam n).
    l1_ratio : float in [0, 1)
        Share of L1 in the penalty: lam ((1 - l1_ratio) |w|^2 / 2 + l1_ratio |w|_1).
    fit_intercept : bool
        Whether to fit an intercept.  It is not regularised.
    solver : str or Solver
        "auto", "sdca", "asdca", "pegasos", "sgd", "gd", "bcfw", "newton", "interior-point", or an
        object such as ``zg.SDCA(sampling="cyclic")``.
    tol : float
        Stop when the duality gap is at most tol times the objective: a proof that the objective
        is within a factor 1 / (1 - tol) of the optimum.
    max_epochs : int
        Stop after so many passes over the data, with a ConvergenceWarning.
    max_seconds : float, optional
        Stop after so many seconds.
    device : "cpu"
        Where to compute.
    warm_start : bool
        Whether to start from the previous fit.
    random_state : None, int, numpy Generator or RandomState
        Seed: same seed, same bits.
    verbose : int
        Whether to show progress.
    callback : callable, optional
        Called with each `zerogap.history.Record`; the fit stops if it returns True.
    checkpoint : path, optional
        File to save the fit to now and then and, if it exists, to resume it from, bit for bit;
        one for each class where they are separated one against the rest, with the class' number
        appended.  It needs a `random_state` that is a number.
    keep_data : bool
        Whether the fitted model keeps a reference to its training data, so that `update` and
        `forget` need not be given them.  A pickle then holds the data; a model file never does.
"""


def _with_shared_parameters(cls: type) -> type:
    """Write the parameters that both estimators have into a docstring."""
    if cls.__doc__:  # absent under python -OO
        cls.__doc__ = cls.__doc__.replace(
            "    SHARED PARAMETERS\n", _SHARED_PARAMETERS.lstrip("\n")
        )
    return cls


def _all_or_nothing(fit: Callable) -> Callable:
    """Make a refused fit leave the estimator as it was."""

    @functools.wraps(fit)
    def wrapped(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except (ValueError, TypeError):
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapped


class _LinearModel(BaseEstimator):
    """What classifier and regressor share: parameters checked, problems solved, results kept."""

    _task: str
    _data: Any = None  # of the fit, if they are kept
    _rows_left = False  # whether rows have left the dual variables to start from

    def _solve(
        self, X: DenseRows | CSRRows, targets: np.ndarray, weights: Any, validation: Any = None
    ) -> list[Result]:
        """Solve one problem per row of `targets`, in threads if there are several."""
        self._check_parameters()
        loss = self._loss()
        problems = [
            Problem(X, y, loss, self.lam, weights, self.fit_intercept, self.l1_ratio)
            for y in targets
        ]
        until = None if validation is None else self._until(len(problems), validation)
        return self._run(problems, as_solver(self.solver), effective_n_jobs(self.n_jobs), until)

    def _solve_streamed(self, store: Store) -> list[Result]:
        """Solve the problems of a store, one after the other."""
        self._check_parameters()
        solver = as_solver(self.solver)
        if solver not in (Auto(), SDCA(), BlockSDCA()):
            raise ValueError(
                f"{solver} cannot read its rows from a store: use solver='auto' or 'sdca', or a "
                f"store without max_memory that fits into memory"
            )
        self.n_features_in_, self.fingerprint_ = store.n_features, store.fingerprint
        return self._run(self._streamed_problems(store), BlockSDCA(), 1)

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
            starts = [updates.start_without(*pair, self.tol) for pair in pairs]
        seeds = np.random.SeedSequence(as_seed(self.random_state)).generate_state(len(problems))
        stop = threading.Event()
        budget = _Budget(self.max_seconds, len(problems), jobs)
        files = [self.checkpoint] * len(problems)
        if self.checkpoint is not None and len(problems) > 1:
            files = [f"{self.checkpoint}.{k}" for k in range(len(problems))]

        def run(k: int) -> Result:
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
            )

        single = len(problems) == 1
        results = [run(0)] if single else _run_all(run, len(problems), jobs, stop)
        self._evidence = [
            Evidence.of(problem, result.w, result.proof)
            for problem, result in zip(problems, results, strict=True)
            if isinstance(problem, Problem) and result.proof is not None
        ]
        return results

    def _regions(self) -> list[Region]:
        check_is_fitted(self, "coef_")
        if not self._evidence:
            raise ValueError(
                "this model does not know how far its predictions are from the optimum's: it was "
                "trained block by block, or read from an older file"
            )
        return [evidence.region for evidence in self._evidence]

    @property
    def support_(self) -> np.ndarray:
        """Rows whose dual variables are not zero: without the others the model is the same."""
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
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        tol: float = 1e-3,
        max_seconds: float | None = None,
    ) -> LeaveOneOut:
        """Predict every row of the fit by the optimal model of the other rows, with proofs.

        Most of these models need not be fitted: `zerogap.loo.bounds` has the theorem.  They keep
        this model's C = 1 / (lam S) and its class weights.

        Parameters
        ----------
        X, y, sample_weight
            The data of the fit, of two classes or a regression; others are refused.
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
        warn_if_short(self.certificate_, self.tol)

    def _finish(self) -> Self:
        if self.certificate_.stop_reason == "interrupted":
            raise KeyboardInterrupt("fit interrupted; the best certified model so far is kept")
        return self

    def update(self, X: Any, y: Any, sample_weight: Any = None, *, data: Any = None) -> Self:
        """Train on further rows, from the dual variables that the model has.

        The result is, to the gap that `tol` allows, the model of a fit to all rows; a certificate
        of that problem comes with it.  With ``lam=None``, lam becomes 1 / (new sum of weights);
        ``class_weight="balanced"`` balances anew.

        Parameters
        ----------
        X, y : array-like
            New rows and their targets, of classes that the model knows.
        sample_weight : array-like, optional
            Their weights.
        data : (X, y), (X, y, sample_weight) or Store, optional
            The training data so far, refused if they are others.  Not needed with
            ``keep_data=True``.

        Returns
        -------
        self
            The updated model.  After an error or Ctrl-C it is as it was.

        Examples
        --------
        >>> import zerogap as zg
        >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
        >>> clf = zg.LinearClassifier("hinge", keep_data=True, random_state=0).fit(X[:900], y[:900])
        >>> clf.update(X[900:], y[900:]).certificate_.relative_gap <= 1e-3
        True
        >>> clf.dual_coef_.shape
        (1, 1000)
        """
        updates.update(self, X, y, sample_weight, data)
        return self

    def forget(self, rows: Any, *, data: Any = None) -> Self:
        """Train on fewer rows, from the dual variables that the model has.

        The dual variables of the forgotten rows leave the weights, and the solver goes on.  The
        certificate then proves how far the model is from the optimum of the problem without these
        rows, which owes nothing to them.  It does not prove that other copies of the rows, or
        parameters chosen with them, are gone: see `zerogap.updates`.  `lam` and `class_weight` as
        in `update`.

        Parameters
        ----------
        rows : int or array-like of int
            Numbers of the rows in the data of the fit, as in ``row_ids_``; of a Store, in its own
            order.  The other rows keep their numbers.
        data : (X, y), (X, y, sample_weight) or Store, optional
            The training data, with or without rows forgotten earlier, refused if they are others.
            Not needed with ``keep_data=True``.

        Returns
        -------
        self
            The model without the rows.  After an error or Ctrl-C it is as it was.

        Examples
        --------
        >>> import zerogap as zg
        >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
        >>> clf = zg.LinearClassifier("hinge", random_state=0).fit(X, y)
        >>> clf.forget([3, 14], data=(X, y)).certificate_.relative_gap <= 1e-3
        True
        >>> clf.row_ids_[:5]
        array([0, 1, 2, 4, 5])
        """
        updates.forget(self, rows, data)
        return self

    def _loss(self) -> Loss:
        classifies = self._task == "classification"
        tasks = ("classification", "multiclass") if classifies else ("regression",)
        names = [n for n, cls in {**LOSSES, **MULTICLASS_LOSSES}.items() if cls.task in tasks]
        if isinstance(self.loss, str) and self.loss not in names:
            raise ValueError(
                f"unknown loss {self.loss!r} for {self._task}: choose {', '.join(names)}"
            )
        loss = as_loss(self.loss)
        if loss.task not in tasks:
            raise ValueError(f"{loss} is a loss for {loss.task}: choose {', '.join(names)}")
        return loss

    def _check_parameters(self) -> None:
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
        if self.device != "cpu":
            raise ValueError(f"device must be 'cpu' in this version, got {self.device!r}")

    def _rows(self, X: Any, y: Any = _NO_TARGETS) -> Any:
        """Validate X (and y, if this is a fit) by scikit-learn's rules and ours."""
        refuse_type(X)
        common: dict[str, Any] = {
            "accept_sparse": True,
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": False,
        }
        if y is _NO_TARGETS:
            return as_rows(validate_data(self, X, reset=False, **common))
        refuse_targets(y)
        X, y = validate_data(self, X, y, y_numeric=self._task == "regression", **common)
        return as_rows(X).with_own_structure(), y

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "coef_")
        if isinstance(X, Store):
            return np.vstack([self._scores(part.X) for _, part in X.stream()])
        return self._rows(X).product(np.atleast_2d(self.coef_)) + self.intercept_

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


@_with_shared_parameters
class LinearClassifier(ClassifierMixin, _LinearModel):
    """Linear classifier trained to a certified duality gap.

    Minimises 1/S sum_i s_i phi(y_i (x_i.w + b)) + lam/2 |w|^2 for the chosen loss, with weights
    s_i of sum S, and proves how close the result is to the optimum.  More than two classes are
    handled jointly by the multiclass losses, and one against the rest by the others.

    Parameters
    ----------
    loss : str or Loss
        "hinge" (support vector machine), "smooth-hinge", "squared-hinge", "logistic",
        "multiclass-hinge" (Crammer and Singer), "softmax", or an object such as
        ``zg.SmoothHinge(gamma=0.1)``.
    SHARED PARAMETERS
    class_weight : dict or "balanced", optional
        Weights of the classes, multiplied with the sample weights.
    n_jobs : int, optional
        Threads for one-against-rest problems.  The result does not depend on it.
    stop : "gap" or "labels"
        When the fit is done: at the gap that `tol` asks for, or when the labels of the rows `X_val`
        are those of the exact optimum, whatever the gap.
    settled : float in (0, 1]
        Share of the labels that must be settled if stop is "labels".

    Attributes
    ----------
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercepts.
    classes_ : ndarray
        Class labels.
    certificate_ : Certificate
        Primal value, dual value and duality gap; ``parts`` has one certificate per class.
    history_ : History, or list of History with more than two classes
        The certificates along the way.
    dual_coef_ : ndarray of shape (1 or n_classes, n_samples)
        Dual variables; those of a support vector machine are zero except at its support vectors.
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
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> clf = zg.LinearClassifier(loss="logistic", tol=1e-6, random_state=0).fit(X, y)
    >>> clf.certificate_.relative_gap <= 1e-6
    True
    >>> clf.predict(X[:3])
    array([...])
    """

    _task = "classification"

    def __init__(
        self,
        loss: str | Loss = "hinge",
        *,
        lam: float | None = None,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        class_weight: dict | str | None = None,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_epochs: int = 1000,
        max_seconds: float | None = None,
        device: str = "cpu",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable | None = None,
        checkpoint: str | None = None,
        keep_data: bool = False,
        stop: str = "gap",
        settled: float = 0.999,
    ) -> None:
        self.loss = loss
        self.lam = lam
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_epochs = max_epochs
        self.max_seconds = max_seconds
        self.device = device
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.keep_data = keep_data
        self.stop = stop
        self.settled = settled

    @_all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, X_val: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or Store, of shape (n_samples, n_features)
            Rows.  float32 and float64 values are used without a copy; do not change X meanwhile.
            The indices of a CSR matrix are copied, so that changing them is no danger.  A Store is
            loaded if it has no `max_memory` and takes less than a quarter of the free memory; else
            it is read block by block, by `zerogap.solvers.BlockSDCA`.
        y : array-like of shape (n_samples,)
            Class labels; those of a Store are its own.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is exactly a row that occurs twice.  A Store has its own.
        X_val : array-like or sparse matrix of shape (n_rows, n_features), optional
            Rows whose labels decide when to stop, if ``stop="labels"``.

        Returns
        -------
        self
            The fitted model.  After Ctrl-C, KeyboardInterrupt is raised and the best certified
            model so far is in the attributes.
        """
        self._check_stop(X, X_val)
        if isinstance(X, Store):
            return self._fit_store(X, y, sample_weight)
        X, y = self._rows(X, y)
        validation = None if X_val is None else self._rows(X_val)
        check_classification_targets(y)
        weights = sample_weights(sample_weight, len(y))
        self._data = (X, y, weights) if self.keep_data else None
        classes = np.unique(y[weights > 0])  # rows without weight are as good as absent
        if len(classes) < 2:
            raise ValueError(
                f"a classifier needs at least two classes, but y has only one class, {classes[0]!r}"
                + (" among rows with positive weight" if len(np.unique(y)) > 1 else "")
            )
        codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        self.fingerprint_ = fingerprint(X, codes, weights)
        if self.class_weight is not None:
            weights = weights * class_factors(self.class_weight, classes, codes, weights)[codes]
        joint = self._loss().task == "multiclass"
        targets = codes[None, :] if joint else _signs(codes, len(classes), X.shape)
        return self._conclude(self._solve(X, targets, weights, validation), classes)

    def _check_stop(self, X: Any, X_val: Any) -> None:
        if self.stop not in ("gap", "labels"):
            raise ValueError(f"stop must be 'gap' or 'labels', got {self.stop!r}")
        check_number("settled", self.settled, Real, 0)
        if not 0 < self.settled <= 1:
            raise ValueError(f"settled must be a share in (0, 1], got {self.settled!r}")
        if (self.stop == "labels") != (X_val is not None):
            raise ValueError("stop='labels' and X_val, the rows to be labelled, go together")
        if X_val is not None and isinstance(X, Store):
            raise ValueError("stop='labels' needs rows in memory, not a store")

    def _until(self, problems: int, validation: Any) -> Callable[[Problem], Callable]:
        if problems > 1:
            raise ValueError(
                "stop='labels' needs one model for all classes: use loss='softmax' or "
                "'multiclass-hinge'"
            )
        return lambda problem: until_settled(problem, validation, self.settled, self.callback)

    def _fit_streamed(self, store: Store) -> Self:
        return self._conclude(self._solve_streamed(store), cast("np.ndarray", store.classes))

    def _conclude(self, results: list[Result], classes: np.ndarray) -> Self:
        self.classes_ = classes
        self._publish(results)
        if self._loss().task == "multiclass":
            self._unstack()
        return self._finish()

    def _unstack(self) -> None:
        """Give the attributes of one joint model the shapes that several binary models have."""
        W, b, alpha = self.coef_[0], self.intercept_[0], self.dual_coef_[0].T
        b = np.broadcast_to(b, (len(W),))
        if len(W) == 2:  # only differences matter
            W, b, alpha = W[1:] - W[:1], b[1:] - b[:1], alpha[1:]
        self.coef_, self.intercept_, self.dual_coef_ = W.copy(), b.copy(), alpha.copy()

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores x.w + b: one per row, and per class if there are three or more."""
        scores = self._scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on rows and labels, or on a Store, its weights not counted."""
        if not isinstance(X, Store):
            return super().score(X, y, sample_weight)
        classes: Any = X.classes
        right = sum(
            np.sum(self.predict(part.X) == classes[part.y.astype(np.int64)])
            for _, part in X.stream()
        )
        return float(right / X.n_samples)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row of X, which may be a Store."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def predict_certified(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the class of each row, and whether the exact optimum is proved to agree.

        The optimal weights lie within ``radius`` of `coef_` and the optimal intercept in an
        interval, both of which follow from the certificate (see `zerogap.regions`); so a row's
        optimal score is known up to |x| radius and the interval's length.  A row is certified if
        no score in question changes its class.  A smaller `tol` certifies more rows.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            As `predict` returns them.
        certified : ndarray of bool of shape (n_rows,)
            Whether the label is that of the exact optimum.

        Examples
        --------
        >>> import zerogap as zg
        >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
        >>> clf = zg.LinearClassifier(tol=1e-6, random_state=0).fit(X, y)
        >>> labels, certified = clf.predict_certified(X)
        >>> bool(certified.mean() > 0.9)
        True
        """
        regions, labels = self._regions(), self.predict(X)
        joint = self._loss().task == "multiclass"
        if joint and len(self.classes_) == 2:
            regions, joint = [difference(regions[0])], False
        model = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        return labels, settled_rows(self._rows(X), *model, regions, joint)

    def certified_fraction(self, X: Any) -> float:
        """Return the share of rows whose label is proved to be that of the exact optimum."""
        return float(self.predict_certified(X)[1].mean())

    def _has_probabilities(self) -> bool:
        if self.loss in ("logistic", "softmax") or isinstance(self.loss, Logistic | Softmax):
            return True
        raise AttributeError(
            f"predict_proba needs loss='logistic' or 'softmax', this model has loss={self.loss!r}"
        )

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class (logistic and softmax losses only).

        With more than two classes and the logistic loss, the one-against-rest probabilities
        divided by their sum.
        """
        scores = self._scores(X)
        if scores.shape[1] > 1 and self._loss().task == "multiclass":
            return softmax(scores, axis=1)
        likely = expit(scores)
        if likely.shape[1] == 1:
            return np.hstack([1.0 - likely, likely])
        total = likely.sum(axis=1, keepdims=True)
        return np.where(total > 0, likely / np.where(total > 0, total, 1), 1.0 / likely.shape[1])


@_with_shared_parameters
class LinearRegressor(RegressorMixin, _LinearModel):
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
    coef_ : ndarray of shape (n_features,)
        Weights.
    intercept_ : float
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
        self.loss = loss
        self.lam = lam
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_epochs = max_epochs
        self.max_seconds = max_seconds
        self.device = device
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.keep_data = keep_data

    @_all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or Store, of shape (n_samples, n_features)
            Rows.  float32 and float64 values are used without a copy; do not change X meanwhile.
            The indices of a CSR matrix are copied, so that changing them is no danger.  A Store is
            loaded if it has no `max_memory` and takes less than a quarter of the free memory; else
            it is read block by block, by `zerogap.solvers.BlockSDCA`.
        y : array-like of shape (n_samples,)
            Targets; those of a Store are its own.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is exactly a row that occurs twice.  A Store has its own.

        Returns
        -------
        self
            The fitted model.  After Ctrl-C, KeyboardInterrupt is raised and the best certified
            model so far is in the attributes.
        """
        if isinstance(X, Store):
            return self._fit_store(X, y, sample_weight)
        X, y = self._rows(X, y)
        weights = sample_weights(sample_weight, len(y))
        self._data = (X, y, weights) if self.keep_data else None
        self.fingerprint_ = fingerprint(X, y.astype(np.float64), weights)
        return self._conclude(self._solve(X, y[None, :], weights))

    def _fit_streamed(self, store: Store) -> Self:
        return self._conclude(self._solve_streamed(store))

    def _conclude(self, results: list[Result]) -> Self:
        self._publish(results)
        self.coef_, self.dual_coef_ = self.coef_[0], self.dual_coef_[0]
        self.intercept_ = float(self.intercept_[0])
        return self._finish()

    def predict(self, X: Any) -> np.ndarray:
        """Return x.w + b for each row of X, which may be a Store."""
        return self._scores(X).ravel()

    def predict_certified(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return predictions, and bounds between which those of the exact optimum lie.

        The optimal weights lie within ``radius`` of `coef_` and the optimal intercept in an
        interval, both of which follow from the certificate (see `zerogap.regions`).

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
        regions, rows = self._regions(), self._rows(X)
        coef, b = self.coef_[None, :], np.atleast_1d(self.intercept_)
        scores = rows.product(coef) + b
        low, high = score_bounds(scores, np.sqrt(rows.sqnorms), coef, b, regions)
        return scores[:, 0], low[:, 0], high[:, 0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R2 on rows and targets, or on a Store, its weights not counted."""
        if not isinstance(X, Store):
            return super().score(X, y, sample_weight)
        errors = squares = total = 0.0
        for _, part in X.stream():
            errors += float(np.sum((part.y - self.predict(part.X)) ** 2))
            total += float(part.y.sum())
        for _, part in X.stream():
            squares += float(np.sum((part.y - total / X.n_samples) ** 2))
        return 1.0 - errors / squares


def _signs(codes: np.ndarray, n_classes: int, shape: tuple[int, int]) -> np.ndarray:
    """Return targets -1 and +1: one row for two classes, one row per class for more."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[None, :]
    needed = 8.0 * n_classes * (3 * shape[0] + 2 * shape[1])
    if needed > free_memory():
        raise ValueError(
            f"{n_classes} classes against the rest need about {needed / 1e9:.1f} GB, but "
            f"{free_memory() / 1e9:.1f} GB are free: is y really a column of class labels?"
        )
    return np.where(codes == np.arange(n_classes)[:, None], 1.0, -1.0)


class _Budget:
    """Seconds for several problems: what is left is shared among those that have not begun."""

    def __init__(self, seconds: float | None, count: int, jobs: int) -> None:
        self.seconds, self.count, self.jobs = seconds, count, jobs
        self.began = time.monotonic()

    def share(self, k: int) -> float | None:
        if self.seconds is None:
            return None
        left = self.seconds - (time.monotonic() - self.began)
        return max(1e-3, left * min(1.0, self.jobs / (self.count - k)))


def _run_all(
    run: Callable[[int], Result], count: int, jobs: int, stop: threading.Event
) -> list[Result]:
    """Run all problems; after Ctrl-C those not yet finished return what they have certified."""
    with ThreadPoolExecutor(min(jobs, count)) as pool:
        futures = [pool.submit(run, k) for k in range(count)]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            stop.set()
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            raise

"""scikit-learn estimators: validation, labels, one problem per class, fitted attributes."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from zerogap.certificate import Certificate
from zerogap.checks import as_seed
from zerogap.losses import LOSSES, Logistic, Loss, as_loss
from zerogap.memory import free_memory
from zerogap.multiclass_losses import MULTICLASS_LOSSES, Softmax
from zerogap.problem import Problem
from zerogap.rows import CSRRows, DenseRows, as_rows
from zerogap.solvers import Result, as_solver, solve
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

    def _solve(self, X: DenseRows | CSRRows, targets: np.ndarray, weights: Any) -> list[Result]:
        """Solve one problem per row of `targets`, in threads if there are several."""
        self._check_parameters()
        loss = self._loss()
        solver = as_solver(self.solver)
        problems = [
            Problem(X, y, loss, self.lam, weights, self.fit_intercept, self.l1_ratio)
            for y in targets
        ]
        starts = self._starts(len(problems), X.shape)
        seeds = np.random.SeedSequence(as_seed(self.random_state)).generate_state(len(problems))
        stop = threading.Event()
        jobs = effective_n_jobs(self.n_jobs)
        budget = _Budget(self.max_seconds, len(problems), jobs)

        def run(k: int) -> Result:
            return solve(
                problems[k],
                solver,
                tol=self.tol,
                max_epochs=self.max_epochs,
                max_seconds=budget.share(k),
                callback=self.callback,
                warm_start=starts[k],
                random_state=int(seeds[k]),
                verbose=self.verbose,
                interrupt=stop,
            )

        if len(problems) == 1:
            return [run(0)]
        return _run_all(run, len(problems), jobs, stop)

    def _publish(self, results: list[Result]) -> None:
        """Set the fitted attributes; warn, or pass Ctrl-C on, if the asked gap was not reached."""
        single = len(results) == 1
        self.coef_ = np.array([result.w for result in results])
        self.intercept_: Any = np.array([result.b for result in results])
        self.dual_coef_ = np.array([result.alpha for result in results])
        self.certificate_ = Certificate.combine([result.certificate for result in results])
        self.history_ = results[0].history if single else [r.history for r in results]
        self.n_iter_ = max(1, int(np.ceil(self.certificate_.epochs)))
        warn_if_short(self.certificate_, self.tol)

    def _finish(self) -> Self:
        if self.certificate_.stop_reason == "interrupted":
            raise KeyboardInterrupt("fit interrupted; the best certified model so far is kept")
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
        for name in ("fit_intercept", "warm_start"):
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

    @_all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.  float32 and float64 values are used without a copy; do not change X meanwhile.
            The indices of a CSR matrix are copied, so that changing them is no danger.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is exactly a row that occurs twice.

        Returns
        -------
        self
            The fitted model.  After Ctrl-C, KeyboardInterrupt is raised and the best certified
            model so far is in the attributes.
        """
        X, y = self._rows(X, y)
        check_classification_targets(y)
        weights = sample_weights(sample_weight, len(y))
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
        results = self._solve(X, targets, weights)
        self.classes_ = classes
        self._publish(results)
        if joint:
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

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

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

    @_all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.  float32 and float64 values are used without a copy; do not change X meanwhile.
            The indices of a CSR matrix are copied, so that changing them is no danger.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is exactly a row that occurs twice.

        Returns
        -------
        self
            The fitted model.  After Ctrl-C, KeyboardInterrupt is raised and the best certified
            model so far is in the attributes.
        """
        X, y = self._rows(X, y)
        weights = sample_weights(sample_weight, len(y))
        self.fingerprint_ = fingerprint(X, y.astype(np.float64), weights)
        self._publish(self._solve(X, y[None, :], weights))
        self.coef_, self.dual_coef_ = self.coef_[0], self.dual_coef_[0]
        self.intercept_ = float(self.intercept_[0])
        return self._finish()

    def predict(self, X: Any) -> np.ndarray:
        """Return x.w + b for each row."""
        return self._scores(X).ravel()


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

"""The sweep itself: fold by fold, setting by setting."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.utils import indexable
from sklearn.utils.multiclass import check_classification_targets

from zerogap.estimators import LinearClassifier, LinearRegressor
from zerogap.kernels.jit import kernel
from zerogap.losses import Loss, as_loss
from zerogap.problem.checks import as_seed
from zerogap.solvers import as_solver
from zerogap.solvers.progress import Progress
from zerogap.sweeps.grid import Setting, in_order, settings
from zerogap.sweeps.outcome import Fit, Sweep, collect, standard_error
from zerogap.transforms import GaussianLandmarks

Part = tuple[np.ndarray, np.ndarray]


def sweep(
    X: Any,
    y: Any,
    grid: Mapping[str, Sequence[Any]],
    *,
    loss: str | Loss = "hinge",
    solver: Any = "auto",
    transform: Any = None,
    folds: int = 5,
    validation: float | None = None,
    groups: Any = None,
    warm_start: bool = True,
    random_state: Any = None,
    verbose: int = 0,
    callback: Callable[[Fit], Any] | None = None,
    **parameters: Any,
) -> Sweep:
    """Fit a model for every setting of a grid and measure its error on rows it has not seen.

    Settings that differ in lambda alone are fitted from the largest lambda to the smallest, each
    from its neighbour, and each with a certificate.

    Parameters
    ----------
    X, y
        Rows and targets, as in `LinearClassifier` and `LinearRegressor`.
    grid : dict of lists
        Values by parameter: of the estimator (lam, l1_ratio), of its solver (step, theta,
        batch_size), of its loss (gamma), or of the transform (h, the bandwidth of
        `GaussianLandmarks`).  Where two have a parameter of that name, write ``loss__gamma``.
    loss : str or Loss
        A loss for classification sweeps a `LinearClassifier`, else a `LinearRegressor`.
    solver : str or Solver
        As in the estimators.
    transform : transformer, optional
        Fitted on the training rows of each fold, such as ``StandardScaler()``.  By default
        ``GaussianLandmarks()`` if a parameter of that is swept, else none.
    folds : int
        Number of folds; every row is in the validation part of one of them.
    validation : float, optional
        Share of the rows for a single validation part, instead of folds.
    groups : array of shape (n_samples,), optional
        Rows of the same group stay on one side of every split.
    warm_start : bool
        Whether to start from the next larger lambda.  Turn it off to compare solvers after a
        fixed number of epochs.
    random_state : None, int, numpy Generator or RandomState
        Seed of splits and fits.
    verbose : int
        Whether to show progress: fits done, rate and time left.
    callback : callable, optional
        Called with each `Fit`.
    **parameters
        Further parameters of the estimator: tol, max_epochs, fit_intercept, class_weight ...

    Returns
    -------
    Sweep
        After Ctrl-C, the folds that were done by then, with a warning.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(n_samples=200, random_state=0)
    >>> result = sweep(X, y, {"lam": [1e-3, 1e-1, 1e3]}, loss="logistic", random_state=0)
    >>> result.best.error <= result.simplest.error < result.cells[-1].error
    True
    >>> max(cell.relative_gap for cell in result.cells) <= 1e-3
    True
    """
    seed = as_seed(random_state) % 2**32
    model = _make_model(loss, solver, {**parameters, "random_state": seed})
    if transform is None and set(grid) & set(GaussianLandmarks().get_params()):
        transform = GaussianLandmarks(random_state=seed)
    found = settings(grid, model, transform)
    X, y, groups = indexable(X, y, groups)
    y = np.asarray(y)
    regression = isinstance(model, LinearRegressor)
    if not regression:
        check_classification_targets(y)
    parts = split(y, groups, folds, validation, regression, seed)
    order = in_order(found)
    line = _Line(len(parts) * len(order)) if verbose else None
    fits: list[Fit] = []
    interrupted = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # one for all of them, below
            for fit in _fits(X, y, parts, order, model, transform, warm_start):
                fits.append(fit)
                if line is not None:
                    line.advance()
                if callback is not None:
                    callback(fit)
    except KeyboardInterrupt:
        if not fits:
            raise
        interrupted = True
    if line is not None:
        line.end()
    chosen = repr(model.loss).removesuffix("()")
    measure = f"mean loss, {chosen}" if regression else "misclassified rows"
    outcome = collect(
        fits,
        [setting.values for setting in found],
        len(parts),
        measure=measure,
        tol=model.tol,
        interrupted=interrupted,
    )
    _warn(outcome, len(fits), len(parts) * len(order))
    return outcome


def _make_model(loss: str | Loss, solver: Any, parameters: dict[str, Any]) -> Any:
    """Return the estimator of the loss; objects of loss and solver have parameters to sweep."""
    loss = as_loss(loss)
    estimator = LinearRegressor if loss.task == "regression" else LinearClassifier
    known = set(estimator().get_params())
    if unknown := set(parameters) - known:
        raise TypeError(f"{estimator.__name__} has no parameter {', '.join(sorted(unknown))}")
    return estimator(loss=loss, solver=as_solver(solver), **parameters)


def split(
    y: np.ndarray, groups: Any, folds: Any, validation: float | None, regression: bool, seed: int
) -> list[Part]:
    """Return training and validation rows: classes in proportion, groups undivided."""
    shuffled: dict[str, Any] = {"shuffle": True, "random_state": seed}
    one: dict[str, Any] = {"n_splits": 1, "test_size": validation, "random_state": seed}
    splitter: Any
    if validation is None:
        if hasattr(folds, "split"):
            splitter = folds
        elif groups is None:
            splitter = (KFold if regression else StratifiedKFold)(folds, **shuffled)
        else:
            splitter = (GroupKFold if regression else StratifiedGroupKFold)(folds, **shuffled)
    elif not 0 < validation < 1:
        raise ValueError(f"validation must be a share of the rows in (0, 1), got {validation!r}")
    elif groups is None:
        splitter = (ShuffleSplit if regression else StratifiedShuffleSplit)(**one)
    elif regression:
        splitter = GroupShuffleSplit(**one)
    else:  # the first of so many folds, because no splitter of one part keeps classes and groups
        splitter = StratifiedGroupKFold(max(2, round(1 / validation)), **shuffled)
    parts = list(splitter.split(y, y, groups))
    return parts if validation is None else parts[:1]


def _fits(
    X: Any,
    y: np.ndarray,
    parts: list[Part],
    order: list[Setting],
    model: Any,
    transform: Any,
    warm_start: bool,
) -> Iterator[Fit]:
    """Fit all settings fold by fold, so that one fold at a time is in memory."""
    for fold, (train, test) in enumerate(parts):
        y_train, y_test = y[train], y[test]
        last: Setting | None = None
        for setting in order:
            new_rows = last is None or setting.transform != last.transform
            if new_rows:
                Z, Z_test = transformed(transform, setting.transform, X[train], X[test])
            if last is None or new_rows or setting.model != last.model or not warm_start:
                fitted = clone(model).set_params(warm_start=warm_start, **setting.model)
            fitted.set_params(**setting.lam).fit(Z, y_train)
            errors = _row_errors(fitted, Z_test, y_test)
            yield Fit(
                setting.values,
                fold,
                float(errors.mean()),
                standard_error(errors),
                float(_row_errors(fitted, Z, y_train).mean()),
                fitted.certificate_,
            )
            last = setting


def transformed(
    transform: Any, parameters: Mapping[str, Any], train: Any, test: Any
) -> tuple[Any, Any]:
    """Return training and validation rows after a transform that has seen the former only."""
    if transform is None:
        return train, test
    fitted = clone(transform).set_params(**parameters)
    return fitted.fit_transform(train), fitted.transform(test)


def _row_errors(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Return the error of each row: 0 or 1 for classes, the model's loss for numbers."""
    predicted = model.predict(X)
    if isinstance(model, LinearClassifier):
        return (predicted != y).astype(np.float64)
    return losses(as_loss(model.loss), predicted.astype(np.float64), y.astype(np.float64))


def losses(loss: Loss, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return phi(z_i; y_i) for all rows."""
    errors = np.empty(len(y))
    _losses(loss, z, y, errors)
    return errors


@kernel
def _losses(loss, z, y, out):
    """phi(z_i; y_i)"""
    for i in range(len(y)):
        out[i] = loss.value(z[i], y[i])


def _warn(outcome: Sweep, done: int, asked: int) -> None:
    if outcome.interrupted:
        kept = f"{outcome.folds} of {outcome.asked_folds} folds, {len(outcome.cells)} settings"
        message = f"interrupted after {done} of {asked} fits: {kept} are kept"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    if outcome.short:
        worst = max(cell.relative_gap for cell in outcome.cells)
        message = (
            f"{outcome.short} of {done} fits stopped before the relative gap {outcome.tol:g} that "
            f"was asked for; the largest is {worst:.1e}.  If that is not enough, raise max_epochs"
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


class _Line(Progress):
    """One live line: fits done, rate, time left."""

    def __init__(self, total: int) -> None:
        super().__init__(tol=0.0)
        self.done, self.total = 0, total

    def advance(self) -> None:
        self.done += 1
        now = time.monotonic() - self.began
        if now - self.shown < (0.1 if self.live else 5.0) and self.done < self.total:
            return
        self.shown = now
        left = now / self.done * (self.total - self.done)
        rate = f"{self.done / now:.3g} fits/s" if now > 0 else ""
        self._write(f"fit {self.done} of {self.total}  {rate}  about {left:.0f} s left")

    def end(self) -> None:
        if self.live:
            self.stream.write("\n")
            self.stream.flush()

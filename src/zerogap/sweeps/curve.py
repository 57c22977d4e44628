r"""Cross-validation over all lambdas of an interval, by one path without holes for each fold.

The model of a path serves a piece of the interval, so that its validation error is a step
function, known exactly.  What the optimum itself would err is known within bounds: by `regions`,
at each lambda of the piece the optimal weights are within the root of 2 gap(lam) / mu(lam) of the
model's, and the intercept is where the rows add gap(lam) at most.  With mu in proportion to lam,
gap(lam) is convex in lam and gap(lam) / lam, which is E s + g(w) + g*(s v) - s w.v, is convex in
s = 1 / lam (see `paths.intervals`): both are largest at an end of the piece.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import clone

from zerogap.display import BLUE, ORANGE, Shown, finish, new_axes, to_frame
from zerogap.losses import Loss, as_loss
from zerogap.paths.intervals import CoverLine, Reach, check_interval, cover
from zerogap.paths.run import two_classes
from zerogap.problem import Problem
from zerogap.problem.centring import centred
from zerogap.problem.checks import as_seed
from zerogap.problem.gap import EVALUATION, gamma
from zerogap.problem.proving import Proof
from zerogap.regions import ProofWithoutRows, Region
from zerogap.regions.certified_predictions import score_bounds
from zerogap.rows import Rows, as_rows, moved_targets
from zerogap.solvers import as_solver, solve
from zerogap.sweeps.run import losses, split, transformed


class Step(NamedTuple):
    """The validation error on one piece of the interval, from `start` to `stop`."""

    start: float
    stop: float
    error: float  #: mean over the folds
    standard_error: float  #: of that mean, between folds
    low: float  #: the exact optima, at any lambda of the piece, err so much at least
    high: float  #: and at most

    @property
    def lam(self) -> float:
        """The middle of the piece, on a logarithmic scale."""
        return math.sqrt(self.start) * math.sqrt(self.stop)


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Shown):
    """Validation error at every lambda of an interval.

    Attributes
    ----------
    steps : tuple of Step
        The pieces on which the error is constant, from the smallest lambda to the largest.
    measure : str
        What the errors are: "misclassified rows", or the mean loss of a regression.
    tol : float
        Relative gap that no model of any fold exceeds at any lambda.
    folds, models, epochs : int, int, float
        How many folds there were, models in all of them, and passes over the data.
    """

    steps: tuple[Step, ...]
    measure: str
    tol: float
    folds: int
    models: int
    epochs: float

    def _facts(self) -> Mapping[str, Any]:
        return {
            "measure": self.measure,
            "lowest error": float(self.best.error),
            "at lambda": self.best.lam,
            "simplest lambda within one standard error": self.simplest.lam,
            "folds": self.folds,
            "models": self.models,
        }

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, a row per piece of the interval (needs pandas).

        Returns
        -------
        pandas.DataFrame
        """
        return to_frame([step._asdict() for step in self.steps])

    def plot(self, ax: Any = None) -> Any:
        """Draw the validation error over lambda, with its standard error (needs matplotlib).

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
        """
        axes = new_axes(ax)
        edges = np.array([self.steps[0].start, *(step.stop for step in self.steps)])
        error = np.array([step.error for step in self.steps])
        spread = np.array([step.standard_error for step in self.steps])
        axes.stairs(
            error + spread,
            edges,
            baseline=error - spread,
            fill=True,
            color=BLUE,
            alpha=0.25,
            label="one standard error of the folds",
        )
        axes.stairs(error, edges, baseline=None, color=BLUE, lw=1.5, label="validation")
        axes.axvline(self.best.lam, color=ORANGE, ls="--", label=f"best: {self.best.lam:.3g}")
        return finish(axes, xscale="log", xlabel=r"regularisation $\lambda$", ylabel=self.measure)

    @property
    def best(self) -> Step:
        """The step of the lowest error; the largest lambdas among equals."""
        return min(self.steps, key=lambda step: (step.error, -step.stop))

    @property
    def simplest(self) -> Step:
        """The step of the largest lambdas within one standard error of the best."""
        limit = self.best.error + self.best.standard_error
        return next(step for step in reversed(self.steps) if step.error <= limit)

    def at(self, lam: float) -> Step:
        """Return the step that lam is on.

        Parameters
        ----------
        lam : float
            A lambda of the interval.

        Returns
        -------
        Step
            The piece of the curve, with its error.
        """
        low, high = self.steps[0].start, self.steps[-1].stop
        if not low <= lam <= high:
            raise ValueError(f"lam={lam!r} is outside of the path, from {low:g} to {high:g}")
        return next(step for step in self.steps if lam <= step.stop)


def path_cv(
    X: Any,
    y: Any,
    lam_min: float,
    lam_max: float | None = None,
    *,
    loss: str | Loss = "hinge",
    l1_ratio: float = 0.0,
    fit_intercept: bool = True,
    transform: Any = None,
    folds: Any = 5,
    groups: Any = None,
    solver: Any = "auto",
    tol: float = 1e-3,
    max_epochs: int = 1000,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Curve:
    """Return the validation error at every lambda of an interval, and the best lambda.

    Each fold has a `path` without holes.  The error of its models is drawn from finitely many
    rows, which the standard error between folds tells; and a model is not the exact optimum, which
    the bounds `low` and `high` tell: they shrink with `tol`, the standard error does not.

    Parameters
    ----------
    X, y, lam_min, lam_max, loss, l1_ratio, fit_intercept
        As in `path`.
    transform : transformer, optional
        Fitted on the training rows of each fold, such as ``StandardScaler()``.  Where no lam_max
        is given, it is that of all rows, transformed.
    folds : int or splitter
        Number of folds, or a splitter of scikit-learn such as ``RepeatedKFold()``.
    groups : array of shape (n_samples,), optional
        Rows of the same group stay on one side of every split.
    solver, tol, max_epochs
        As in `path`.
    n_jobs : int, optional
        Threads, at most one per fold.  The result does not depend on it.
    random_state : None, int, numpy Generator or RandomState
        Seed of splits and fits.
    verbose : int
        Whether to show progress.

    Returns
    -------
    Curve
        The error as a step function of lambda.

    Raises
    ------
    PathError
        A solve of some fold ended before the gap that its neighbours need.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(n_samples=200, random_state=0)
    >>> curve = zg.path_cv(X, y, 1e-3, 10.0, loss="logistic", random_state=0)
    >>> curve.best.error <= curve.at(1e-2).error
    True
    >>> curve.best.low <= curve.best.error <= curve.best.high
    True
    """
    loss, seed = as_loss(loss), as_seed(random_state) % 2**32
    if loss.task == "multiclass":
        raise ValueError(f"{loss} is a loss of many classes: choose one for two, or a regression")
    regression = loss.task == "regression"
    make = functools.partial(Problem, loss=loss, fit_intercept=fit_intercept, l1_ratio=l1_ratio)
    features = X if transform is None else clone(transform).fit_transform(X)
    given = functools.partial(make, as_rows(features), y if regression else two_classes(y))
    whole, last = check_interval(given, lam_min, lam_max, tol)
    y = whole.y
    parts = split(y, groups, folds, None, regression, seed)
    line, stop = CoverLine(len(parts)) if verbose else None, threading.Event()
    run = functools.partial(
        solve, solver=as_solver(solver), max_epochs=max_epochs, random_state=seed, interrupt=stop
    )

    rows_of: Callable[[np.ndarray], Any]
    if transform is None:
        rows_of = whole.rows.take
    else:
        rows_of = (X.tocsr() if sparse.issparse(X) else np.asarray(X)).__getitem__

    def validate(k: int) -> _Fold:
        train, test = parts[k]
        report = None if line is None else functools.partial(line.advance, path=k)
        seen, unseen = map(as_rows, transformed(transform, {}, rows_of(train), rows_of(test)))
        problem = make(seen, y[train], lam=lam_min)
        return _validate(problem, unseen, y[test], last, tol, run, report)

    with ThreadPoolExecutor(min(effective_n_jobs(n_jobs), len(parts))) as pool:
        try:
            found = list(pool.map(validate, range(len(parts))))
        except BaseException:
            stop.set()
            raise
    measure = f"mean loss, {loss!r}".removesuffix("()") if regression else "misclassified rows"
    models, epochs = sum(len(fold.errors) for fold in found), sum(fold.epochs for fold in found)
    return Curve(_steps(found), measure, tol, len(parts), models, epochs)


class _Fold(NamedTuple):
    """Errors of the models of one path, one per piece."""

    edges: np.ndarray
    errors: np.ndarray
    low: np.ndarray
    high: np.ndarray
    epochs: float


def _validate(
    problem: Problem,
    rows: Rows,
    y: np.ndarray,
    lam_max: float,
    tol: float,
    run: Callable[..., Any],
    report: Callable[[int, float], None] | None,
) -> _Fold:
    """Follow the path of one fold, and measure its errors on other rows."""
    shifted = centred(problem)
    problem, (y, lost) = shifted.problem, moved_targets(y, shifted.target)
    rows = rows.minus(shifted.origin) if shifted else rows
    reaches, edges = cover(problem, lam_max, tol, run, report)
    coef = np.array([reach.result.w for reach in reaches])
    b = np.array([reach.result.b for reach in reaches])
    scores = rows.product(coef) + b
    regions = list(map(functools.partial(_region, problem), reaches, edges, edges[1:]))
    low, high = score_bounds(rows, coef, regions)
    columns = zip(scores.T, low.T, high.T, strict=True)
    found = [_errors(problem.loss, y, lost, *column) for column in columns]
    errors, least, most = np.array(found).T
    epochs = math.fsum(reach.result.certificate.epochs for reach in reaches)
    return _Fold(edges, errors, least, most, epochs)


def _region(problem: Problem, reach: Reach, start: float, stop: float) -> Region:
    """Return a region that holds the optima of all lambdas of a piece.

    A gap G without slack gives a ball of the radius root of G / mu(reach.lam).
    """
    gaps = [(lam, reach.certificate(lam).gap) for lam in (start, stop)]
    largest = max(max(1.0, 2.0 * reach.lam / lam) * gap for lam, gap in gaps)
    largest *= 1.0 + gamma(4)
    proof = cast("Proof", reach.result.proof)._replace(gap=largest, slack=0.0)
    return ProofWithoutRows.of(problem._with(lam=reach.lam), reach.result.w, proof).region


def _errors(
    loss: Loss, y: np.ndarray, lost: float, score: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[float, float, float]:
    """Return the mean error of scores, and the least and the largest of scores within bounds.

    Numbers y may be off by what was `lost`; bounds of their errors are rounded outwards.
    """
    if loss.task == "classification":
        wrong = (score > 0.0) != (y > 0.0)
        doubt = (low <= 0.0) & (high > 0.0)
        return wrong.mean(), (wrong & ~doubt).mean(), (wrong | doubt).mean()
    room = lost + gamma(4) * np.abs(y)
    low, high = low - room - gamma(4) * np.abs(low), high + room + gamma(4) * np.abs(high)
    ends = losses(loss, low, y), losses(loss, high, y)
    nearest = losses(loss, np.clip(y, low, high), y)  # phi is convex, and least at y
    off = gamma(len(y) + EVALUATION + 8)
    most = np.maximum(*ends).mean() * (1.0 + off)
    return losses(loss, score, y).mean(), nearest.mean() * (1.0 - off), most


def _steps(folds: list[_Fold]) -> tuple[Step, ...]:
    """Return the mean of the folds' step functions: a step ends where one of theirs does."""
    edges = np.unique(np.concatenate([fold.edges for fold in folds]))
    places = [np.searchsorted(fold.edges, edges[1:]) - 1 for fold in folds]
    errors, low, high = (
        np.array([getattr(fold, name)[place] for fold, place in zip(folds, places, strict=True)])
        for name in ("errors", "low", "high")
    )
    spread = errors.std(axis=0, ddof=1) / math.sqrt(len(folds))
    off = gamma(len(folds) + 2)
    least, most = low.mean(axis=0) * (1.0 - off), high.mean(axis=0) * (1.0 + off)
    columns = (edges, edges[1:], errors.mean(axis=0), spread, least, most)
    return tuple(Step(*map(float, step)) for step in zip(*columns, strict=False))

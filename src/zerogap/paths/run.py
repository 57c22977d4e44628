"""Regularisation paths: certified models along a list of lambdas, or along an interval."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zerogap import cuda
from zerogap.cuda.device import to_host, watched
from zerogap.cuda.placing import on_device
from zerogap.display import BLUE, Shown, finish, new_axes, to_frame
from zerogap.losses import Loss, as_loss
from zerogap.paths.intervals import CoverLine, Reach, check_interval, cover
from zerogap.problem import Problem
from zerogap.problem.certificate import Certificate
from zerogap.problem.checks import as_seed
from zerogap.problem.validation import describe_columns, warn_if_short
from zerogap.rows import as_rows
from zerogap.solvers import Result, as_solver, solve
from zerogap.solvers.placement import check_device, problems_together


class Model(NamedTuple):
    """A model, its dual point, and the proof that both give at one lambda."""

    w: np.ndarray
    b: Any
    alpha: np.ndarray
    certificate: Certificate

    def _facts(self) -> Mapping[str, Any]:
        shape = " x ".join(map(str, np.shape(self.w)))
        return {"weights": shape, **self.certificate._facts()}

    def __repr__(self) -> str:
        return Shown.__repr__(self)  # type: ignore[arg-type]

    def _repr_html_(self) -> str:
        return Shown._repr_html_(self)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False)
class Path(Shown):
    """Models along a grid of lambda.

    Attributes
    ----------
    lams : ndarray of shape (n_lams,)
        The grid: in the order it was given, or chosen, from the smallest to the largest.
    coefs : ndarray of shape (n_lams, n_features)
        Weights.
    intercepts : ndarray of shape (n_lams,)
        Intercepts.
    certificates : tuple of Certificate
        A proof for every model.
    results : tuple of Result
        All that the solver returned.
    edges : ndarray of shape (n_lams + 1,)
        The model of lams[k] serves from edges[k] to edges[k + 1].  Empty for a grid that was
        given, which may have holes.
    reaches : tuple of Reach
        The certificate of each model as a function of lambda.  Empty for a grid that was given.
    """

    lams: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray
    certificates: tuple[Certificate, ...]
    results: tuple[Result, ...]
    edges: np.ndarray
    reaches: tuple[Reach, ...] = ()

    def _facts(self) -> Mapping[str, Any]:
        worst = max(certificate.relative_gap for certificate in self.certificates)
        return {
            "models": len(self.lams),
            "lambda": f"{self.lams.min():.3g} to {self.lams.max():.3g}",
            "lambdas between them": "proved" if len(self.edges) else "not proved",
            "largest relative gap at a model": f"{worst:.2g}",
        }

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, a row per model (needs pandas).

        Returns
        -------
        pandas.DataFrame
        """
        names = ("primal", "dual", "gap", "relative_gap", "epochs", "seconds", "stop_reason")
        return to_frame(
            [
                {"lam": float(lam), **{name: getattr(certificate, name) for name in names}}
                for lam, certificate in zip(self.lams, self.certificates, strict=True)
            ]
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the weights against lambda (needs matplotlib).

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
        """
        axes = new_axes(ax)
        weights = self.coefs.reshape(len(self.lams), -1)
        if len(self.edges):  # each model serves an interval
            for column in weights.T:
                axes.stairs(column, self.edges, baseline=None, lw=1, color=BLUE)
        else:
            axes.plot(self.lams, weights, ".-", lw=1, color=BLUE)
        return finish(axes, xscale="log", xlabel=r"regularisation $\lambda$", ylabel="weights")

    def at(self, lam: float) -> Model:
        """Return the model of a path without holes that serves lam, and its certificate there.

        Parameters
        ----------
        lam : float
            A lambda of the interval.

        Returns
        -------
        Model
            Weights, intercept, and the certificate for this lambda.
        """
        if not len(self.edges):
            raise ValueError("this path has models for the given lams only: give lam_min instead")
        low, high = self.edges[0], self.edges[-1]
        if not low <= lam <= high:
            raise ValueError(f"lam={lam!r} is outside of the path, from {low:g} to {high:g}")
        k = min(int(np.searchsorted(self.edges, lam, side="right")), len(self.lams)) - 1
        result = self.results[k]
        return Model(result.w, result.b, result.alpha, self.reaches[k].certificate(float(lam)))


@watched()
def path(
    X: Any,
    y: Any,
    lams: Any = None,
    *,
    lam_min: float | None = None,
    lam_max: float | None = None,
    loss: str | Loss = "hinge",
    l1_ratio: float = 0.0,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    solver: Any = "auto",
    tol: float = 1e-3,
    max_epochs: int = 1000,
    device: str = "cpu",
    random_state: Any = None,
    verbose: int = 0,
) -> Path:
    """Fit a model for each lambda of a list, or as many as prove every lambda of an interval.

    A dual point that is feasible for one lambda is feasible for all.  Along a list each solve
    begins with the dual variables of the next larger lambda; on a GPU, where rows are best read for
    many models at once, those of a list are solved together if there are many features.

    From `lam_min` to `lam_max` the path chooses its own grid, and **every** lambda of the interval
    has a model with gap <= tol * primal: see `Path.at`.  For a model (w, b) and a dual point a that
    were found for one lambda prove, at every other one and without a solve (here for L2),

        gap(lam) = E + |lam w - v|^2 / (2 lam),    v = 1/S sum_i s_i a_i x_i,

    where E >= 0 is the part of the gap that has no lambda in it.  The lambdas within tol are an
    interval.  The next solve is placed where no interval reaches yet, and begins between its two
    neighbours; the path ends when the intervals touch.

    Parameters
    ----------
    X, y, loss, l1_ratio, fit_intercept, sample_weight
        As in `Problem`; for classification losses y may hold any two labels, the larger of which
        is +1.
    lams : array-like, optional
        Values of lambda.
    lam_min, lam_max : float, optional
        An interval, instead of `lams`.  By default it ends at a lambda at which w = 0 is already
        within `tol`.
    solver, tol, max_epochs, device, random_state, verbose
        As in `solve`, for each lambda of a list; on an interval, where `max_epochs` are not
        enough for a fourth of `tol`, a PathError says so.  All models are kept in memory.

    Returns
    -------
    Path
        Models, intercepts and certificates along lambda.

    Raises
    ------
    PathError
        If `max_epochs` are not enough to leave no hole in the interval.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(n_samples=100, random_state=0)
    >>> path = zg.path(X, y, [1e-3, 1e-2, 1e-1], loss="logistic", random_state=0)
    >>> path.coefs.shape, max(c.relative_gap for c in path.certificates) <= 1e-3
    ((3, 10), True)
    >>> path = zg.path(X, y, lam_min=1e-4, lam_max=1.0, loss="logistic", random_state=0)
    >>> path.at(0.0123).certificate.relative_gap <= 1e-3
    True
    """
    check_device(device)
    loss, y = as_loss(loss), to_host(y)
    there = device != "cpu" and lams is not None  # what proves an interval is computed here
    rows = on_device(X) if there else as_rows(to_host(X))
    if loss.task == "classification":
        y = two_classes(y)
    make = functools.partial(
        Problem,
        rows,
        y,
        loss,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
        l1_ratio=l1_ratio,
    )
    solver = as_solver(solver)
    run = functools.partial(
        solve, solver=solver, max_epochs=max_epochs, device=device, random_state=random_state
    )
    if lams is None:
        problem, lam_max = check_interval(make, lam_min, lam_max, tol)
        if device != "cpu":
            run = functools.partial(_run_there, cuda.to_device(problem), run)
        report = CoverLine(1).advance if verbose else None
        reaches, edges = cover(problem, lam_max, tol, run, report)
        grid = np.array([reach.lam for reach in reaches])
        return _collect(grid, [reach.result for reach in reaches], edges, tuple(reaches))
    if lam_min is not None or lam_max is not None:
        raise ValueError("give either lams, or lam_min with or without lam_max")
    problems = _problems(lams, make)
    if together := problems_together(problems, solver, device):
        seeds = [as_seed(random_state)] * len(problems)
        settings = {"tol": tol, "max_epochs": max_epochs, "verbose": verbose}
        results = together(problems, seeds=seeds, **settings)
    else:
        results = _one_by_one(problems, functools.partial(run, tol=tol, verbose=verbose))
    if any(result.stop_reason == "interrupted" for result in results):
        raise KeyboardInterrupt
    for result in results:
        lost = result.stop_reason in ("stalled", "rounding") and device == "cpu"
        about = describe_columns(problems[0].rows) if lost else ""
        warn_if_short(result.certificate, tol, about)
    return _collect(np.array([problem.lam for problem in problems]), results, np.empty(0))


def _run_there(
    on_device: Any, run: Callable[..., Result], problem: Problem, **named: Any
) -> Result:
    """Solve a problem whose rows have been moved to a GPU."""
    return run(on_device._with(lam=problem.lam), **named)


def _problems(lams: Any, make: Callable[..., Problem]) -> list[Problem]:
    lams = np.asarray(lams, dtype=np.float64)
    if lams.ndim != 1 or not len(lams):
        raise ValueError(f"lams must be a list of numbers, got shape {lams.shape}")
    return [make(lam=lam) for lam in lams]


def _one_by_one(problems: list[Problem], run: Callable[..., Result]) -> list[Result]:
    """Solve from the largest lambda to the smallest, each from where the last one ended."""
    results: dict[int, Result] = {}
    last = None
    for k in sorted(range(len(problems)), key=lambda k: -problems[k].lam):
        last = results[k] = run(problems[k], warm_start=last)
        if last.stop_reason == "interrupted":
            raise KeyboardInterrupt
    return [results[k] for k in range(len(problems))]


def _collect(
    lams: np.ndarray, results: list[Result], edges: np.ndarray, reaches: tuple[Reach, ...] = ()
) -> Path:
    return Path(
        lams,
        np.array([result.w for result in results]),
        np.array([result.b for result in results]),
        tuple(result.certificate for result in results),
        tuple(results),
        edges,
        reaches,
    )


def two_classes(y: Any) -> np.ndarray:
    """Return -1 for the smaller and +1 for the larger of two labels."""
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(labels) != 2:
        raise ValueError(f"a path needs y with two classes, got {len(labels)}: fit one per class")
    return np.where(codes == 1, 1.0, -1.0)

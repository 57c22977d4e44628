"""The regularisation path: one certified model per lambda, each started from its neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.certificate import Certificate
from zerogap.losses import Loss, as_loss
from zerogap.problem import Problem
from zerogap.rows import as_rows
from zerogap.solvers import Result, as_solver, solve
from zerogap.validation import warn_if_short


@dataclass(frozen=True, eq=False)
class Path:
    """Models along a grid of lambda.

    Attributes
    ----------
    lams : ndarray of shape (n_lams,)
        The grid, in the order it was given.
    coefs : ndarray of shape (n_lams, n_features)
        Weights.
    intercepts : ndarray of shape (n_lams,)
        Intercepts.
    certificates : tuple of Certificate
        A proof for every model.
    results : tuple of Result
        All that the solver returned.
    """

    lams: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray
    certificates: tuple[Certificate, ...]
    results: tuple[Result, ...]


def path(
    X: Any,
    y: Any,
    lams: Any,
    *,
    loss: str | Loss = "hinge",
    l1_ratio: float = 0.0,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    solver: Any = "auto",
    tol: float = 1e-3,
    max_epochs: int = 1000,
    random_state: Any = None,
    verbose: int = 0,
) -> Path:
    """Fit a model for each lambda, from the largest to the smallest, with warm starts.

    A dual point that is feasible for one lambda is feasible for all, so each solve begins with
    the dual variables of the last one.

    Parameters
    ----------
    X, y, loss, l1_ratio, fit_intercept, sample_weight
        As in `Problem`; for classification losses y may hold any two labels, the larger of which
        is +1.
    lams : array-like
        Values of lambda.
    solver, tol, max_epochs, random_state, verbose
        As in `solve`, for each lambda.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(n_samples=100, random_state=0)
    >>> path = zg.path(X, y, [1e-3, 1e-2, 1e-1], loss="logistic", random_state=0)
    >>> path.coefs.shape, max(c.relative_gap for c in path.certificates) <= 1e-3
    ((3, 10), True)
    """
    loss, rows = as_loss(loss), as_rows(X)
    lams = np.asarray(lams, dtype=np.float64)
    if lams.ndim != 1 or not len(lams):
        raise ValueError(f"lams must be a list of numbers, got shape {lams.shape}")
    if loss.task == "classification":
        y = _two_classes(y)
    solver = as_solver(solver)
    results: dict[int, Result] = {}
    last = None
    for k in np.argsort(-lams, kind="stable"):
        problem = Problem(rows, y, loss, lams[k], sample_weight, fit_intercept, l1_ratio)
        last = results[int(k)] = solve(
            problem,
            solver,
            tol=tol,
            max_epochs=max_epochs,
            warm_start=last,
            random_state=random_state,
            verbose=verbose,
        )
        if last.stop_reason == "interrupted":
            raise KeyboardInterrupt
    ordered = tuple(results[k] for k in range(len(lams)))
    for result in ordered:
        warn_if_short(result.certificate, tol)
    return Path(
        lams,
        np.array([result.w for result in ordered]),
        np.array([result.b for result in ordered]),
        tuple(result.certificate for result in ordered),
        ordered,
    )


def _two_classes(y: Any) -> np.ndarray:
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(labels) != 2:
        raise ValueError(f"a path needs y with two classes, got {len(labels)}: fit one per class")
    return np.where(codes == 1, 1.0, -1.0)

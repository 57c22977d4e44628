"""Solvers side by side: the same problem, the same clock, a certificate for every point."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from zerogap.comparison.contestants import default_solvers, parse_solver, short_name
from zerogap.comparison.outcome import Comparison, Curve, Run, Summary
from zerogap.problem import Problem
from zerogap.problem.checks import check_targets
from zerogap.rows import as_rows
from zerogap.solvers import SDCA, Result, Solver, solve
from zerogap.solvers.history import Record

__all__ = ["Comparison", "Curve", "Run", "Summary", "compare", "default_solvers", "parse_solver"]

REFERENCE = "reference"  # name of the run that looks for the best lower bound

OnRecord = Callable[[str, int, Record], Any]


def compare(
    problem: Problem,
    solvers: Iterable[Solver | str] | None = None,
    *,
    tol: float = 1e-3,
    max_epochs: float = 100,
    seeds: Sequence[int] = range(5),
    X_test: Any = None,
    y_test: Any = None,
    data: str = "",
    on_record: OnRecord | None = None,
) -> Comparison:
    """Run several solvers on one problem, each with several seeds, and certify every epoch.

    Each solver makes one epoch beforehand that does not count, then all run in turn for the first
    seed, in turn for the second, and so on.  The clock counts updates only.  At the end SDCA goes
    on from the best answer, so that the distance of every record from the optimum can be told
    from a lower bound that is closer than its own: that distance is an upper bound of the true
    one, by at most ``upper - lower`` too large.

    Parameters
    ----------
    problem : Problem
        What to solve.
    solvers : iterable of Solver or str, optional
        Who runs: objects, or texts such as ``"pegasos:batch_size=8"``.  By default SDCA, ASDCA,
        Pegasos, mini-batch Pegasos and SGD, as far as they can take the problem.
    tol : float
        A run stops when gap <= tol * primal.
    max_epochs : float
        And after so many passes over the data.
    seeds : sequence of int
        One run per seed and solver.
    X_test, y_test : array-like, optional
        Data for the column ``test_error``: the share of misclassified rows, or the mean absolute
        error for regression losses.  Targets are coded as in `problem`.
    data : str
        Name of the data, for titles.
    on_record : callable, optional
        Called with (name, seed, record); the last record of a run has a ``stop_reason`` in its
        certificate.

    Returns
    -------
    Comparison
        On Ctrl-C, with what had been done.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(n_samples=200, random_state=0)
    >>> problem = zg.Problem(X, y, "smooth-hinge", lam=0.01)
    >>> outcome = zg.compare(problem, ["sdca", zg.GD()], max_epochs=50, seeds=[0, 1])
    >>> [(line.name, line.reached) for line in outcome.summary()]
    [('SDCA', 2), ('GD', 0)]
    """
    field = _field(problem, solvers)
    if not len(seeds):
        raise ValueError("seeds must hold one number at least")
    metrics, error_name = _test_metric(problem, X_test, y_test)
    options = {"tol": tol, "max_epochs": max_epochs, "record": "epoch", "metrics": metrics}
    follow = functools.partial(_follow, problem, on_record)
    runs: list[Run] = []
    reference: list[Run] = []
    interrupted = False
    with np.errstate(over="ignore", invalid="ignore"):  # a run may diverge, its record says so
        for solver in field.values():
            _pass_on(solve(problem, solver, tol=0.0, max_epochs=1, random_state=0))
        began = time.monotonic()
        try:
            for seed in seeds:
                for name, solver in field.items():
                    runs.append(follow(name, solver, seed, options))
                    _pass_on(runs[-1].result)
            best = min((run.result for run in runs), key=lambda result: result.certificate.gap)
            options = {"tol": 1e-3 * tol, "max_epochs": 10 * max_epochs, "warm_start": best}
            options["max_seconds"] = max(1.0, time.monotonic() - began)  # no longer than all runs
            reference.append(follow(REFERENCE, SDCA(), 0, options))
            _pass_on(reference[0].result)
        except KeyboardInterrupt:
            if not runs:
                raise
            interrupted = True
    histories = [run.result.history for run in runs + reference]
    lower = max(float(np.nanmax(history["dual"])) for history in histories)
    upper = min(float(np.nanmin(history["primal"])) for history in histories)
    return Comparison(problem, tol, tuple(runs), lower, upper, error_name, data, interrupted)


def _field(problem: Problem, solvers: Iterable[Solver | str] | None) -> dict[str, Solver]:
    """Return the solvers by name."""
    given = default_solvers(problem)[0] if solvers is None else solvers
    listed = [parse_solver(solver) if isinstance(solver, str) else solver for solver in given]
    if not listed:
        raise ValueError("name one solver at least")
    field = {short_name(solver): solver for solver in listed}
    if len(field) < len(listed):
        names = [short_name(solver) for solver in listed]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice} is listed twice: each solver already runs once per seed")
    return field


def _follow(
    problem: Problem,
    on_record: OnRecord | None,
    name: str,
    solver: Solver,
    seed: int,
    options: dict[str, Any],
) -> Run:
    """Run a solver; report each record, and the end, to the caller."""
    last: list[Record] = []

    def callback(record: Record) -> None:
        last[:] = [record]
        if on_record is not None:
            on_record(name, seed, record)

    result = solve(problem, solver, random_state=seed, callback=callback, **options)
    if on_record is not None:
        on_record(name, seed, dataclasses.replace(last[0], certificate=result.certificate))
    return Run(name, solver, seed, result)


def _pass_on(result: Result) -> None:
    """Raise KeyboardInterrupt again: `solve` has turned it into an answer."""
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt


def _test_metric(problem: Problem, X: Any, y: Any) -> tuple[dict[str, Any], str]:
    """Return the metric to record on the test data, and what it is."""
    if X is None or y is None:
        return {}, ""
    X = X if sparse.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] != problem.shape[1]:
        raise ValueError(f"X_test must have {problem.shape[1]} columns, got shape {X.shape}")
    task = problem.loss.task
    error = error_rate(X, check_targets(y, X.shape[0], problem.loss), task)
    name = "mean absolute error" if task == "regression" else "misclassified rows"
    return {"test_error": error}, name


def error_rate(X: Any, y: np.ndarray, task: str) -> Callable[[np.ndarray, Any], float]:
    """Return the function (w, b) -> share of misclassified rows, or mean absolute error."""
    rows = as_rows(X)

    def error(w: np.ndarray, b: Any) -> float:
        z = rows.product(np.atleast_2d(w)) + b
        z = z if w.ndim > 1 else z[:, 0]
        if task == "regression":
            return float(np.mean(np.abs(z - y)))
        predicted = z.argmax(axis=1) if task == "multiclass" else np.where(z > 0, 1.0, -1.0)
        return float(np.mean(predicted != y))

    return error

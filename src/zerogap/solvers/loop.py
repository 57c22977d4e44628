"""The one loop that runs, certifies and stops solvers: one run, or several side by side."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from zerogap.errors import DeviceError
from zerogap.problem import Problem
from zerogap.problem.checks import as_seed
from zerogap.solvers import checkpoint as checkpoints
from zerogap.solvers.interrupt import interruptible
from zerogap.solvers.limits import Callback, Limits
from zerogap.solvers.placement import failing, placed, watched
from zerogap.solvers.progress import Progress
from zerogap.solvers.protocol import Answer, Solver
from zerogap.solvers.result import Result
from zerogap.solvers.run import Run
from zerogap.streamed import StreamedProblem


@watched()
def solve(
    problem: Problem | StreamedProblem,
    solver: Solver,
    *,
    tol: float = 1e-3,
    max_epochs: float = 1000,
    max_examples: int | None = None,
    max_seconds: float | None = None,
    record: Literal["auto", "epoch"] | int | float = "auto",
    metrics: Mapping[str, Callable[[np.ndarray, float], float]] | None = None,
    callback: Callback | None = None,
    warm_start: Result | Answer | None = None,
    random_state: Any = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 30.0,
    interrupt: threading.Event | None = None,
    device: str | None = None,
) -> Result:
    """Run a solver until a certificate, a budget, a callback or Ctrl-C says stop.

    Parameters
    ----------
    problem : Problem or StreamedProblem
        What to solve.
    solver : Solver
        How to solve it; `Auto`, or a method that reads stores for a StreamedProblem.
    tol : float
        Stop when gap <= tol * primal, as proved by a certificate.
    max_epochs, max_examples, max_seconds : float, int, float
        Budgets.  Seconds are wall time of the whole call, certificates included.
    record : "auto", "epoch", int or float
        When to take a certificate: when it pays, at every epoch, every so many updates (int), or
        at geometrically growing numbers of updates with this ratio (float > 1).
    metrics : dict of callables, optional
        Functions of (w, b) recorded as further columns of the history.
    callback : callable, optional
        Called with each `Record`; the run stops if it returns True, or why it should.
    warm_start : Result or (w, b, alpha), optional
        Where to start.
    random_state : None, int, numpy Generator or RandomState
        Seed of the run: same seed, same bits.
    verbose : int
        Whether to show progress on standard error.
    checkpoint : path, optional
        File to save the run to and, if it exists, to resume it from, bit for bit.  It serves one
        run at a time; if it cannot be written, a warning says so and the run goes on.
    checkpoint_every : float
        Seconds between checkpoints, which are taken at certificates only; 0 for all of them.
    interrupt : threading.Event, optional
        Stops the run when set, as Ctrl-C does in the main thread.
    device : "cpu", "cuda" or "cuda-deterministic", optional
        Where to work; by default where the arrays of the problem are.  On a GPU the bits of a
        result depend on the order in which threads run, unless "cuda-deterministic" is asked for,
        which makes SDCA slower.

    Returns
    -------
    Result
        On Ctrl-C, the answer with the smallest certified gap so far.  If a GPU fails, the
        `zerogap.cuda.DeviceError` has it as its ``result``.

    Examples
    --------
    >>> import zerogap as zg
    >>> problem = zg.Problem([[1.0], [2.0]], [-1, 1], "hinge", lam=0.5)
    >>> zg.solve(problem, zg.SDCA(), tol=1e-8).stop_reason
    'converged'
    """
    if not isinstance(solver, Solver):
        raise ValueError(f"solver must be an object such as zg.SDCA(), got {solver!r}")
    stop = interrupt or threading.Event()
    limits = Limits(tol, max_epochs, max_examples, max_seconds, callback, stop)
    problem, solver = placed(problem, solver, device)
    _check_fit(problem, solver)
    if problem.on_device and checkpoint is not None:
        raise ValueError("checkpoints are not written from a GPU: leave checkpoint out")
    run = Run(
        problem,
        solver,
        limits,
        as_seed(random_state),
        record=record,
        metrics=metrics,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    if isinstance(warm_start, Result):
        warm_start = (warm_start.w, warm_start.b, warm_start.alpha)
    progress = Progress(tol) if verbose else None
    with checkpoints.reserved(run.path):
        try:
            return run_all([run], [Alone(warm_start)], progress)[0]
        except DeviceError as error:
            error.result = error.result and error.result[0]
            raise


def _check_fit(problem: Any, solver: Solver) -> None:
    """Refuse a solver that cannot take the problem."""
    if problem.loss.task == "multiclass" and not solver.multiclass:
        raise ValueError(f"{type(solver).__name__} cannot take {problem.loss}: use Auto")
    if ("store" if problem.streamed else "memory") not in solver.reads:
        right = "a store: use Auto" if problem.streamed else "memory: use Auto or another solver"
        raise ValueError(f"{type(solver).__name__} cannot take rows in {right}")
    solver.check(problem)


class Way(Protocol):
    """A way to step: what `run_all` needs to take runs from one certificate to the next.

    On a processor and on a GPU these are of `zerogap.solvers.run.Run`, on a cluster they are of
    `zerogap.dask.run.Run`.
    """

    holds: bool  # whether Ctrl-C waits until updates are whole

    def begin(self, runs: Any) -> None:
        """Start all runs and certify their starts, if this is the first way."""

    def chosen(self, going: list[Any]) -> list[Any]:
        """Return which of the runs that have not ended step now; none to leave this way."""

    def advance(self, runs: Any) -> None:
        """Make updates until a certificate is due."""

    def certify(self, runs: Any) -> None:
        """Take a record of each run."""


class Alone:
    """The way of a single run, or of several, one after another."""

    holds = True

    def __init__(self, warm: Answer | None = None) -> None:
        self.warm = warm

    def begin(self, runs: Sequence[Run]) -> None:
        """Start every run from the same point."""
        for run in runs:
            run.begin(self.warm)

    def chosen(self, going: list[Run]) -> list[Run]:
        """Return the first run, until it ends."""
        return going[:1]

    def advance(self, runs: list[Run]) -> None:
        """Make updates until a certificate is due."""
        for run in runs:
            run.advance_to_record()

    def certify(self, runs: list[Run]) -> None:
        """Take a record of each run."""
        for run in runs:
            run.take_record()


def run_all(runs: list[Any], ways: Sequence[Way], progress: Progress | None) -> list[Result]:
    """Step, certify and judge until every run has a reason to stop.

    Parameters
    ----------
    runs : list of Run
        With the same limits, in the same place.
    ways : sequence of Way
        How to step: the first way begins; the next one takes the runs that the last one left.
    progress : Progress, optional
        Shows the run that is farthest from its end.

    Returns
    -------
    list of Result
        On Ctrl-C, of the best certified answers so far.  If a GPU fails, the DeviceError has them
        as its ``result``.
    """
    try:
        with interruptible(runs[0].limits.interrupt) as hold, failing(runs[0].problem):
            ways[0].begin(runs)
            going = _judged(runs, progress)
            for way in ways:
                while chosen := way.chosen(going):
                    with hold() if way.holds else contextlib.nullcontext():
                        way.advance(chosen)
                    way.certify(chosen)
                    for run in chosen:
                        run.save()
                    _judged(chosen, progress)
                    going = [run for run in going if not run.reason]
    except KeyboardInterrupt:
        if any(run.best is None for run in runs):
            raise
        for run in runs:
            run.save(now=True)
    except DeviceError as error:
        if all(run.best is not None for run in runs):
            error.result = _results(runs, "device failed", progress)
        raise
    return _results(runs, "interrupted", progress)


def _judged(runs: list[Any], progress: Progress | None) -> list[Any]:
    """Look for reasons to stop; return the runs that have none."""
    if progress is not None:
        progress.show(
            max((run.last for run in runs), key=lambda last: last.certificate.relative_gap)
        )
    for run in runs:
        reason = run.verdict()
        if reason:
            run.save(now=True)
        run.reason = reason
    return [run for run in runs if not run.reason]


def _results(runs: list[Any], otherwise: str, progress: Progress | None) -> list[Result]:
    results = [run.result(otherwise) for run in runs]
    if progress is not None:
        certificates = [result.certificate for result in results]
        progress.close(max(certificates, key=lambda certificate: certificate.relative_gap))
    return results

"""The one loop that runs, times, certifies and stops every solver."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from zerogap.display import Shown
from zerogap.problem import Problem
from zerogap.problem.centring import Centred, centred
from zerogap.problem.certificate import Certificate
from zerogap.problem.checks import as_seed
from zerogap.problem.gap import ENOUGH, TINY, UNIT, displaced, gamma, is_blurred
from zerogap.problem.proving import Proof
from zerogap.solvers import checkpoint as checkpoints
from zerogap.solvers.history import History, Record
from zerogap.solvers.interrupt import interruptible
from zerogap.solvers.placement import DeviceError, failing, placed
from zerogap.solvers.progress import Progress
from zerogap.solvers.protocol import Answer, Solver
from zerogap.streamed import StreamedProblem

Callback = Callable[[Record], bool | str | None]

_PATIENCE = 16  # epochs without a certificate if the solver knows that none would do
FLOOR = 1e-13  # of the best constant model's objective: a gap that counts as zero,
NEARLY_ZERO = 1e-4  # where the model's objective is less than so much of it
NEAR_EXACT = 1e-9  # of P: where rounding is less, terms of the gap that are smaller yet are noise
MOST_ALIGNED = 1e8  # n d^2 up to which all weights are rounded together, in half a second
_CHUNK = 1_000_000  # values touched between two looks at the clock: a few milliseconds


@dataclass(frozen=True, eq=False, repr=False)
class Result(Shown):
    """What `solve` returns: the model, its dual point, its certificate and the history.

    Attributes
    ----------
    w : ndarray
        Weights; with many classes, one column per class.
    b : float or ndarray
        Intercept, one per class if there are many; 0.0 without.
    alpha : ndarray
        Dual variables that prove the certificate.
    certificate : Certificate
        How far (w, b) is from the optimum.
    history : History
        The certificates along the way.
    stop_reason : str
        Why the run ended, as in the certificate.
    proof : Proof, optional
        What the certificate was computed from, where it was kept.
    """

    w: np.ndarray
    b: float
    alpha: np.ndarray
    certificate: Certificate
    history: History
    stop_reason: str
    proof: Proof | None = None

    def _facts(self) -> Mapping[str, Any]:
        shape = " x ".join(map(str, np.shape(self.w)))
        return {"weights": shape, **self.certificate._facts()}


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
    _check_budgets(tol, max_epochs, max_examples, max_seconds, record)
    problem, solver = placed(problem, solver, device)
    if problem.on_device and checkpoint is not None:
        raise ValueError("checkpoints are not written from a GPU: leave checkpoint out")
    if problem.loss.task == "multiclass" and not solver.multiclass:
        raise ValueError(f"{type(solver).__name__} cannot take {problem.loss}: use Auto")
    if ("store" if problem.streamed else "memory") not in solver.reads:
        right = "a store: use Auto" if problem.streamed else "memory: use Auto or another solver"
        raise ValueError(f"{type(solver).__name__} cannot take rows in {right}")
    solver._check(cast("Problem", problem))
    run = _Run(problem, solver, tol, as_seed(random_state), dict(metrics or {}))
    limits = _Limits(max_epochs, max_examples, max_seconds, interrupt or threading.Event())
    warm = (
        (warm_start.w, warm_start.b, warm_start.alpha)
        if isinstance(warm_start, Result)
        else warm_start
    )
    if warm is not None:
        warm = cast("Answer", tuple(map(problem.place, warm)))
    path = None if checkpoint is None else Path(checkpoint)
    progress = Progress(tol) if verbose else None
    reason = ""
    with checkpoints.reserved(path):
        try:
            with interruptible(limits.interrupt) as hold, failing(problem):
                run.begin(warm, limits, path)
                while not (reason := run.verdict(limits, callback, progress)):
                    with hold():
                        run.advance_to_record(record, limits)
                    run.take_record()
                    run.save(path, checkpoint_every)
                run.save(path, 0.0)
        except KeyboardInterrupt:
            if run.best is None:
                raise
            run.save(path, 0.0)
            reason = "interrupted"
        except DeviceError as error:
            if run.best is not None:
                error.result = run.result("device failed", progress)
            raise
    return run.result(reason, progress)


@dataclass
class _Best:
    """The best dual bound so far, and the best model: either value may get worse for a while."""

    dual: float = -math.inf
    alpha: np.ndarray = field(default_factory=lambda: np.empty(0))
    primal: float = math.inf
    w: np.ndarray = field(default_factory=lambda: np.empty(0))
    b: Any = 0.0  # on centred data
    blur: float = 0.0  # how far `primal` may be from P
    gap: float = math.inf  # of the two, if they were proved together


@dataclass(frozen=True)
class _Limits:
    epochs: float
    examples: int | None
    seconds: float | None
    interrupt: threading.Event
    began: float = field(default_factory=time.monotonic)

    def out_of_time(self) -> bool:
        return self.seconds is not None and time.monotonic() - self.began >= self.seconds

    def last_update(self, run: _Run) -> int:
        last = math.ceil(min(self.epochs * run.length, sys.maxsize // 2))
        if self.examples is not None:
            per_update = run.problem.shape[0] / run.length
            last = min(last, math.ceil(self.examples / per_update))
        return last

    def reached(self, run: _Run) -> str:
        if self.interrupt.is_set():
            return "interrupted"
        if self.out_of_time():
            return "max_seconds"
        if self.examples is not None and run.state.examples >= self.examples:
            return "max_examples"
        return "max_epochs" if run.state.updates >= self.last_update(run) else ""


def _without_warnings(method: Callable[..., Any]) -> Callable[..., Any]:
    """Silence overflows: such steps are rejected, and certificates count nothing infinite."""

    @functools.wraps(method)
    def wrapped(*args: Any, **named: Any) -> Any:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return method(*args, **named)

    return wrapped


class _Run:
    """The moving parts of one call of `solve`."""

    def __init__(
        self, problem: Any, solver: Solver, tol: float, seed: int, metrics: dict[str, Any]
    ) -> None:
        self.centred = centred(problem)
        self.problem, self.solver = self.centred.problem, solver
        self.tol, self.seed, self.metrics = tol, seed, metrics
        self.length = solver.epoch_length(problem)
        n, _ = problem.shape
        per_update = (self.problem.rows.stored / n + 20.0) * n / self.length
        self.chunk = max(1, int(_CHUNK * problem.pace / per_update))  # updates at a time
        self.history = History()
        self.best_so_far = _Best()
        self.scale = 0.0  # objective of the best constant model
        self.last: Record
        self.best: Record | None = None
        self.seconds = self.cpu_seconds = 0.0
        self.saved = (-1, time.monotonic())  # updates, when
        self.whole = True  # not in the middle of an update

    @_without_warnings
    def begin(self, warm: Answer | None, limits: _Limits, path: Path | None) -> None:
        """Make the state, anew or from a checkpoint, and certify it."""
        if warm is not None:
            w, b, alpha = warm
            b = b if self.problem.fit_intercept else 0.0 * b  # of a problem that had one
            warm = (w, self.centred.inward(w, b), alpha)
        with self._clock():
            self.state = self.solver.begin(self.problem, np.random.default_rng(self.seed), warm)
        spent, self.seconds, self.cpu_seconds = (self.seconds, self.cpu_seconds), 0.0, 0.0
        t0 = self.solver.t0
        self.state.t0 = limits.last_update(self) // 2 if t0 is None else t0
        if path is not None and path.exists():
            parts = {"state": self.state, "best": self.best_so_far}
            reshape = functools.partial(self.solver.reshape, self.problem, self.state)
            rows = checkpoints.load(path, self.identity, parts, self.problem, reshape)
            self.history = History(rows)
            self._check_best(path)
            row = self.history.rows[-1]
            self.seconds, self.cpu_seconds = row["seconds"], row["cpu_seconds"]
            self.saved = (self.state.updates, time.monotonic())
        resumed = bool(self.history.rows)
        constant = self._consider_constant()
        # a given point is certified as it is: one that was the answer before is so again
        point = None if warm is None or warm[2] is None or resumed else warm
        point = self.solver.answer(self.problem, self.state) if point is None else point
        known = not self.problem.streamed and _is_origin(point)
        self.take_record(resumed, point, constant if known else None)
        self.seconds, self.cpu_seconds = self.seconds + spent[0], self.cpu_seconds + spent[1]
        if not self.problem.on_device:
            self.solver._steps(self.problem, self.state, 0)  # compiles, outside the clock
        with self._clock():
            self.solver.prepare(self.problem, self.state)

    def _consider_constant(self) -> Proof:
        """Certify the best constant model, which is the first model to beat."""
        proof, best, host = _constant_proof(self.problem), self.best_so_far, self.problem.host
        self.scale = proof.primal
        if self.solver.output == "best" and proof.primal < best.primal:
            best.primal, best.blur, best.b = proof.primal, proof.blur, host(proof.b)
            best.w = np.zeros(self.problem.weight_shape)
            if proof.dual > best.dual:
                best.dual, best.alpha = proof.dual, host(proof.alpha)
        return proof

    def _check_best(self, path: Path) -> None:
        """Refuse a checkpoint whose best bound or best objective is better than its point says."""
        best = self.best_so_far
        if self.solver.output == "best" and len(best.w):
            primal = self.problem.primal(self.problem.place(best.w), best.b)
            if not best.primal >= primal - 1e-9 * (1.0 + abs(primal)):
                raise checkpoints.CheckpointError(
                    f"{path} claims an objective of {best.primal:.9g}, its model has {primal:.9g}: "
                    f"delete it to start anew"
                )
        least = best.primal - best.dual - 1e-9 * (1.0 + abs(best.primal))
        if best.gap < least:
            raise checkpoints.CheckpointError(
                f"{path} claims a gap of {best.gap:.3g} between {best.primal:.9g} and "
                f"{best.dual:.9g}: delete it to start anew"
            )
        if len(best.alpha):
            alpha = self.problem.feasible(best.alpha)
            proved = self.problem.dual(alpha)
            if self.can_refine:  # large terms of the dual sum may cancel
                u = self.problem.precise_dual_sum_of(alpha)
                proved = max(proved, self.problem._dual_value(alpha, u))
            if not best.dual <= proved + 1e-9 * (1.0 + abs(proved)):
                raise checkpoints.CheckpointError(
                    f"{path} claims a dual bound of {best.dual:.9g}, its dual point proves "
                    f"{proved:.9g}: delete it to start anew"
                )
            self._claim_no_more_than_proved(best)

    def _claim_no_more_than_proved(self, best: _Best) -> None:
        """Take from a file the points alone, and from what it claims of them no more than is so."""
        problem = self.problem
        alpha = problem.feasible(problem.place(best.alpha))
        if self.solver.output == "best" and len(best.w):
            w, b = map(problem.place, (best.w, best.b))
            proof = problem.prove(w, b, problem.scores(w), alpha)
            best.blur = max(best.blur, proof.blur + abs(best.primal - proof.primal))
            best.gap = max(best.gap, proof.gap)
        else:
            w = problem.to_weights(problem.dual_sum(alpha))
            proof = problem.examine(w, problem.constant(), alpha)
        best.dual = min(best.dual, proof.dual)

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.problem.finish()
        self.seconds += time.perf_counter() - wall
        self.cpu_seconds += time.process_time() - cpu

    @property
    def identity(self) -> str:
        return f"{self.problem.fingerprint} {self.solver!r} seed {self.seed}"

    def advance_to_record(self, record: str | int | float, limits: _Limits) -> None:
        """Update until the next certificate is due, or the solver's own estimate asks for one."""
        cpu = time.process_time()  # a call of the system: not for every update
        self._advance_to_record(record, limits)
        self.cpu_seconds += time.process_time() - cpu

    @_without_warnings
    def _advance_to_record(self, record: str | int | float, limits: _Limits) -> None:
        target, last = self.next_record(record), limits.last_update(self)
        known = record == "auto" and self.solver.relative_gap(self.problem, self.state) is not None
        latest = max(_PATIENCE * self.length, 2 * self.state.updates)
        while True:
            step = self.state.updates + self.length if known else target
            self._advance(min(step, last), limits)
            if not known or self.state.updates >= min(latest, last) or limits.reached(self):
                return
            gap = self.solver.relative_gap(self.problem, self.state)
            if gap is None or gap <= self.tol:
                return

    def _advance(self, target: int, limits: _Limits) -> None:
        """Update until `target`, timing nothing else, with a look at the limits now and then."""
        self.whole = False
        while self.state.updates < target and not limits.interrupt.is_set():
            count = min(self.chunk, target - self.state.updates)
            began = time.perf_counter()
            self.solver.advance(self.problem, self.state, count)
            self.problem.finish()
            self.seconds += time.perf_counter() - began
            if limits.out_of_time():
                break
        self.whole = True

    @_without_warnings
    def take_record(
        self, resumed: bool = False, point: Answer | None = None, proof: Proof | None = None
    ) -> None:
        """Certify the present answer; record it, unless a resumed run must repeat its history."""
        if point is None:
            point = self.solver.answer(self.problem, self.state)
        w, proof = self._certified(*point, proof)
        best_wanted = self.solver.output == "best"
        if self.problem.fit_intercept or best_wanted:
            proof = self._with_best_dual(proof)
        if best_wanted:
            w, proof = self._with_best_model(w, proof)
        self._append(*self._delivered(w, proof), resumed)

    @_without_warnings
    def refine_record(self) -> None:
        """Certify the present answer and the best one so far with all the digits that it takes."""
        best, (w, b, alpha) = self.best_so_far, self.solver.answer(self.problem, self.state)
        if alpha is None:
            alpha = self.problem.dual_point(self.problem.scores(w), b)
        rest = self.solver.rest(self.problem, self.state)
        points = [(w, b, alpha)]
        if rest is None and self.solver.output == "best" and len(best.alpha):
            points += [(best.w, best.b, best.alpha), (best.w, best.b, alpha)]
        found = []
        for point in points:
            asked_for = (self.accuracy, self.tolerated, rest)
            for w, proof, added in self.problem.refined(*point, *asked_for):
                found.append(self._delivered(w, proof, added))
        best_found = min(found, key=lambda delivered: delivered[2].gap)
        if best_found[2].gap < self.last.gap:
            self.history.rows.pop()  # of the same moment
            self._append(*best_found, False)

    def _certified(
        self, w: Any, b: Any, alpha: Any, proof: Proof | None = None
    ) -> tuple[np.ndarray, Proof]:
        """Return weights and what is proved of them, in the memory of the processor."""
        if proof is None:
            given = (self.accuracy, self.solver.dual, self.tolerated)
            proof = self.problem.examine(w, b, alpha, *given)
        host = self.problem.host
        proof = proof._replace(b=host(proof.b), alpha=host(proof.alpha), z=host(proof.z))
        return host(w), proof

    def _append(self, w: np.ndarray, b: Any, proof: Proof, resumed: bool) -> None:
        """Make a record of a model and what is proved of it."""
        alpha, primal, gap = proof.alpha, proof.primal, proof.gap
        certificate = proof.certified(
            epochs=self.state.updates / self.length,
            seconds=self.seconds,
            solver=self.solver.story(self.problem, self.state),
            floor=_floor(self.centred, self.scale, primal),
        )
        metrics = self.solver.extras(self.problem, self.state)
        metrics |= {name: float(f(w, b)) for name, f in self.metrics.items()}
        counts = (certificate.epochs, self.state.updates, self.state.examples)
        costs = (self.seconds, self.cpu_seconds)
        self.last = Record(*counts, *costs, certificate, w, _plain(b), alpha, metrics, proof)
        if self.best is None or gap < self.best.gap:
            self.best = self.last
        if not resumed:
            self.history.append(self.last.row())
            self.solver.observe(self.problem, self.state, self.last, self.tol)

    @property
    def accuracy(self) -> float:
        """How far from the best intercept the next certificate may be, in P."""
        return 1e-3 * self.history.rows[-1]["gap"] if self.history.rows else 0.0

    @property
    def tolerated(self) -> float:
        """Share of P that rounding may take without harm to the certificate that is asked for."""
        return ENOUGH * self.tol

    def _delivered(
        self, w: np.ndarray, proof: Proof, rest: np.ndarray | None = None
    ) -> tuple[np.ndarray, Any, Proof]:
        """Return the model on the data as given, whose b is rounded, and what is proved of it."""
        b, problem = self.centred.outward(w, proof.b), self.problem
        if not self.centred:
            return w, b, proof
        moved = displaced(problem, proof, self.centred.doubt(w, b))
        worse = moved.gap - proof.gap > max(ENOUGH * proof.gap, self.tolerated * proof.primal)
        if not worse and not is_blurred(moved.blur - proof.blur, proof.gap, proof.primal):
            return w, b, moved
        ways = [self.centred.nudged(w, proof.b, problem.host(problem.column_sizes))]
        small = math.prod(problem.shape) * problem.shape[1] <= MOST_ALIGNED
        if rest is not None and small and problem.loss.task != "multiclass":  # all digits matter
            ways.append(self.centred.aligned(w, float(proof.b)))
        found = [self._brought_back(*way, proof, rest) for way in ways]
        return min(found, key=lambda delivered: delivered[2].gap)

    def _brought_back(
        self, w: np.ndarray, b: Any, proof: Proof, rest: np.ndarray | None
    ) -> tuple[np.ndarray, Any, Proof]:
        """Return a model of the data as given, and what is proved of it on shifted data."""
        problem = self.problem
        inner, off = self.centred.precisely_inward(w, b)
        placed_w, placed_b, alpha = map(problem.place, (w, inner, proof.alpha))
        z = problem.scores(placed_w)
        again = problem.prove(placed_w, placed_b, z, alpha, self.tolerated, rest, off)
        return w, b, again._replace(b=inner, alpha=proof.alpha, z=problem.host(z))

    def _with_best_dual(self, proof: Proof) -> Proof:
        """Return the proof by the better of this dual point and the best one before."""
        # P - D by subtraction is only as exact as P, so the older point must be clearly better
        best, now = self.best_so_far, proof.gap
        before = proof.primal + proof.blur - best.dual
        if before < now - 1e-12 * abs(proof.primal):
            # the older bound was lowered by what was not known of its P, too
            rounding = min(before, 2.0 * proof.blur)
            return proof._replace(alpha=best.alpha, gap=before, slack=math.nan, rounding=rounding)
        if proof.dual > best.dual:
            best.dual, best.alpha, best.gap = proof.dual, proof.alpha, math.inf
        return proof

    def _with_best_model(self, w: np.ndarray, proof: Proof) -> tuple[np.ndarray, Proof]:
        """Return the better of this model and the best one before, with what is proved of it."""
        best = self.best_so_far
        if proof.primal <= best.primal + 1e-12 * abs(best.primal):  # not if it is NaN
            best.primal, best.w, best.b, best.blur = proof.primal, w, proof.b, proof.blur
            best.gap = proof.gap if proof.alpha is best.alpha else math.inf
            return w, proof
        gap = min(best.gap, best.primal + best.blur - best.dual)
        z = None
        if not self.problem.streamed:  # where they are not kept
            z = self.problem.host(self.problem.scores(self.problem.place(best.w)))
        rounding = (min(gap, 2.0 * best.blur), best.blur)
        return best.w, Proof(best.b, best.alpha, best.primal, gap, math.nan, z, *rounding)

    def verdict(self, limits: _Limits, callback: Callback | None, progress: Progress | None) -> str:
        """Return why to stop now, or nothing."""
        reason = self._verdict(limits, callback, progress)
        worth_it = reason == "rounding" or self.solver.is_stuck(self.state)
        if worth_it and reason != "converged" and self.can_refine:
            self.refine_record()
            if self._verdict(limits, None, None) == "converged":
                return "converged"
            if reason == "rounding" and self.solver.sharpen(self.problem, self.state):
                return ""
        return reason

    @property
    def can_refine(self) -> bool:
        """Whether a dual point with more digits than one number has may be tried."""
        return not self.problem.streamed and not self.problem.on_device

    def _verdict(
        self, limits: _Limits, callback: Callback | None, progress: Progress | None
    ) -> str:
        record = self.last
        if progress is not None:
            progress.show(record)
        asked = None if callback is None else callback(record)
        if not math.isfinite(record.certificate.primal):
            return "diverged"
        primal, floor = abs(record.certificate.primal), record.certificate.floor
        if record.gap <= max(self.tol * primal, floor):
            return "converged"
        rounding, asked_for = record.certificate.rounding, self.tol * primal
        noise = ENOUGH * rounding if rounding <= NEAR_EXACT * primal else 0.0
        enough = max(ENOUGH * asked_for, noise)  # of what was computed: more may still be gained
        if asked_for > 0.0 and record.gap - rounding <= enough < 2.0 * rounding:
            return "rounding"
        if isinstance(asked, str):
            return asked
        if asked is True:
            return "callback"
        return "stalled" if self.solver.is_stalled(self.state) else limits.reached(self)

    def next_record(self, record: str | int | float) -> int:
        """Return the number of updates at which to take the next certificate."""
        updates, length = int(self.history.rows[-1]["updates"]), self.length
        if isinstance(record, int):
            return updates + record
        if isinstance(record, float):
            return max(updates + 1, math.ceil(updates * record))
        epoch, wait = updates // length, 1
        if record == "auto":
            least = self.solver.epochs_apart(self.problem)
            wait = max(least, self._epochs_until_worthwhile(epoch))
        return length * (epoch + wait)

    def _epochs_until_worthwhile(self, epoch: int) -> int:
        """Extrapolate the last two gaps to the target; wait for half of the run at most."""
        rows, target = self.history.rows, self.tol * abs(self.last.certificate.primal)
        if len(rows) < 2 or target <= 0:
            return 3 + epoch // 4
        then, now = rows[-2], rows[-1]
        if now["gap"] == then["gap"]:  # the best model is still that of before
            return 1 + epoch // 4
        if not 0 < now["gap"] < then["gap"]:
            return 1 + epoch // 8
        per_epoch = math.log(then["gap"] / now["gap"]) / (now["epoch"] - then["epoch"])
        left = math.log(now["gap"] / target) / per_epoch if per_epoch > 0.0 else math.inf
        return round(min(max(1.0, left), 1 + epoch // 2))  # the quotients may have overflown

    def save(self, path: Path | None, every: float) -> None:
        """Write a checkpoint if it is time; a full disk costs the checkpoint, not the run."""
        updates, when = self.saved
        due = updates != self.state.updates and time.monotonic() - when >= every
        sound = self.whole and math.isfinite(self.last.certificate.primal)
        if path is None or not due or not sound:
            return
        parts = {"state": self.state, "best": self.best_so_far}
        try:
            checkpoints.save(path, self.identity, parts, self.history.rows)
        except OSError as error:
            warnings.warn(f"could not write checkpoint {path}: {error}; going on", stacklevel=3)
        self.saved = (self.state.updates, time.monotonic())

    def result(self, reason: str, progress: Progress | None) -> Result:
        """Return the answer: the last one, or the best certified one if that was asked for."""
        chosen = self.last
        unplanned = reason in ("interrupted", "diverged", "device failed")
        if self.best is not None and (unplanned or self.solver.output == "best"):
            chosen = self.best
        certificate = dataclasses.replace(chosen.certificate, stop_reason=reason)
        if progress is not None:
            progress.close(dataclasses.replace(chosen, certificate=certificate))
        found = (chosen.w, chosen.b, chosen.alpha, certificate)
        return Result(*found, self.history, reason, chosen.proof)


def gap_floor(problem: Any, primal: float) -> float:
    """Return the gap that counts as zero for a model with this objective: `Certificate.floor`."""
    inner = centred(problem)
    return _floor(inner, float(inner.problem.constant_loss(inner.problem.constant())), primal)


def _constant_proof(problem: Any) -> Proof:
    """Return what is proved of the best constant model, without any dual variables."""
    if not problem.streamed:
        return problem.constant_proof()
    b, alpha = problem.constant(), problem.column()
    primal = float(problem.constant_loss(b))
    gap = primal - float(problem.dual(alpha))
    return Proof(b, alpha, primal, gap, blur=gamma(problem.shape[0] + 100) * primal)


def _is_origin(point: Answer) -> bool:
    """Tell whether this is the start of most runs: no weights, and no dual variables."""
    w, _, alpha = point
    return alpha is not None and not bool(w.any()) and not bool(alpha.any())


def _floor(inner: Centred, scale: float, primal: float) -> float:
    problem = inner.problem
    if not primal <= NEARLY_ZERO * scale and primal > 0.0:
        return 0.0
    least = 0.0
    if problem.loss.task == "regression":
        largest = problem.largest_target + abs(inner.target)
        unit = 8.0 * UNIT * largest  # in the last place of the targets
        least = float(problem.loss.value(unit, 0.0))
    return max(FLOOR * scale, least, 4.0 * TINY)  # what underflow may hide, where P is zero


def _plain(b: Any) -> Any:
    """Return one intercept as a float, several as an array."""
    return b if np.ndim(b) else float(b)


def _check_budgets(
    tol: float, max_epochs: float, max_examples: int | None, max_seconds: float | None, record: Any
) -> None:
    if not 0 <= tol < math.inf:
        raise ValueError(f"tol must be a number >= 0, got {tol!r}")
    if not max_epochs > 0:
        raise ValueError(f"max_epochs must be positive, got {max_epochs!r}")
    if max_examples is not None and not max_examples > 0:
        raise ValueError(f"max_examples must be positive, got {max_examples!r}")
    if max_seconds is not None and not max_seconds > 0:
        raise ValueError(f"max_seconds must be positive, got {max_seconds!r}")
    number = isinstance(record, (int, float)) and not isinstance(record, bool)
    valid = (
        record >= 1 and (isinstance(record, int) or record > 1)
        if number
        else record in ("auto", "epoch")
    )
    if not valid:
        raise ValueError(
            f"record must be 'auto', 'epoch', a number of updates (int >= 1) or a ratio "
            f"(float > 1), got {record!r}"
        )

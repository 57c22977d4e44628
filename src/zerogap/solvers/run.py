"""One run of a solver: its state, its clock, its certificates and its checkpoints."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from zerogap.kernels.machine_code import clock
from zerogap.problem.centring import centred
from zerogap.problem.gap import ENOUGH
from zerogap.problem.proving import Proof
from zerogap.solvers import checkpoint as checkpoints
from zerogap.solvers.certifying import Certifier
from zerogap.solvers.history import History, Record
from zerogap.solvers.limits import Limits
from zerogap.solvers.protocol import Answer, Solver
from zerogap.solvers.result import Result

MOST_EPOCHS_BETWEEN = 16  # certificates, at first, if the solver knows that none would do
NEAR_EXACT = 1e-9  # of P: where rounding is less, terms of the gap that are smaller yet are noise
VALUES_BETWEEN_LOOKS = 1_000_000  # at the clock: a few milliseconds
VALUES_PER_ROW = 20.0  # that the work on a row costs apart from its entries


def _without_warnings(method: Callable[..., Any]) -> Callable[..., Any]:
    """Silence overflows: such steps are rejected, and certificates count nothing infinite."""

    @functools.wraps(method)
    def wrapped(*args: Any, **named: Any) -> Any:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return method(*args, **named)

    return wrapped


class Run:
    """The moving parts of a run; `zerogap.solvers.loop` moves them.

    Parameters
    ----------
    problem, solver
        What to solve, and how.
    limits : Limits
        What ends the run.
    seed : int
        Of its random numbers.
    record, metrics, checkpoint, checkpoint_every
        As in `zerogap.solve`.
    """

    def __init__(
        self,
        problem: Any,
        solver: Solver,
        limits: Limits,
        seed: int,
        *,
        record: str | int | float = "auto",
        metrics: Mapping[str, Callable[..., Any]] | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: float = 30.0,
    ) -> None:
        _check_record(record)
        self.centred = centred(problem)
        self.problem, self.solver, self.limits = self.centred.problem, solver, limits
        self.seed, self.record, self.metrics = seed, record, dict(metrics or {})
        self.path = None if checkpoint is None else Path(checkpoint)
        self.checkpoint_every = checkpoint_every
        n, _ = problem.shape
        self.length = solver.epoch_length(problem)
        self.last_update = limits.last_update(n, self.length)
        per_update = (self.problem.rows.stored / n + VALUES_PER_ROW) * n / self.length
        self.chunk = max(1, int(VALUES_BETWEEN_LOOKS * problem.pace / per_update))  # updates
        self.certifier = Certifier(self.centred, solver, limits.tol)
        self.history = History()
        self.last: Record
        self.best: Record | None = None
        self.reason = ""  # to stop, once there is one
        self.seconds = self.cpu_seconds = 0.0
        self.saved = (-1, time.monotonic())  # updates, when
        self.whole = True  # not in the middle of an update
        self.doubtful = False  # whether the state is from a file, and has not made a record yet

    @_without_warnings
    def begin(self, warm: Answer | None) -> None:
        """Make the state, anew or from a checkpoint, and certify it."""
        with self._clock():
            point = self.start(warm)
        spent, self.seconds, self.cpu_seconds = (self.seconds, self.cpu_seconds), 0.0, 0.0
        resumed = self._resume()
        constant = self.certifier.certify_constant()
        # a given point is certified as it is: one that was the answer before is so again
        if point is None or point[2] is None or resumed:
            with self._trusting():
                point = self.solver.answer(self.problem, self.state)
        known = not self.problem.streamed and _is_origin(point)
        self.take_record(resumed, point, constant if known else None)
        self.seconds, self.cpu_seconds = self.seconds + spent[0], self.cpu_seconds + spent[1]
        if not self.problem.on_device:
            with self._trusting():
                self.solver.steps(self.problem, self.state, 0)  # compiles, outside the clock
        with self._clock(), self._trusting():
            self.solver.prepare(self.problem, self.state)

    def start(self, warm: Answer | None) -> Answer | None:
        """Make a new state; return the point it starts from, as seen from the shifted data."""
        if warm is not None:
            w, b, alpha = map(self.problem.place, warm)
            b = b if self.problem.fit_intercept else 0.0 * b  # of a problem that had one
            warm = (w, self.centred.inward(w, b), alpha)
        self.state = self.solver.begin(self.problem, np.random.default_rng(self.seed), warm)
        t0 = self.solver.t0
        self.state.t0 = self.last_update // 2 if t0 is None else t0
        return warm

    def _resume(self) -> bool:
        """Fill the state from the checkpoint; tell whether there was one."""
        if self.path is None or not self.path.exists():
            return False
        reshape = functools.partial(self.solver.reshape, self.problem, self.state)
        rows = checkpoints.load(self.path, self.identity, self._parts, self.problem, reshape)
        self.history, self.doubtful = History(rows), True
        with self._trusting():
            self.certifier.check(self.path)
        self.seconds, self.cpu_seconds = rows[-1]["seconds"], rows[-1]["cpu_seconds"]
        self.saved = (self.state.updates, time.monotonic())
        return True

    @property
    def identity(self) -> str:
        """Text that tells this run from others; a checkpoint must have the same."""
        return f"{self.problem.fingerprint} {self.solver!r} seed {self.seed}"

    @property
    def _parts(self) -> dict[str, Any]:
        """What a checkpoint holds, besides the history."""
        return {"state": self.state, "best": self.certifier.best}

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        wall, cpu = clock(), time.process_time()
        yield
        self.problem.finish()
        self.seconds += max(0.0, clock() - wall)
        self.cpu_seconds += time.process_time() - cpu

    def advance_to_record(self) -> None:
        """Update until the next certificate is due, or the solver's own estimate asks for one."""
        cpu = time.process_time()  # a call of the system: not for every update
        with self._trusting():
            self._advance_to_record()
        self.cpu_seconds += time.process_time() - cpu

    @_without_warnings
    def _advance_to_record(self) -> None:
        target, last, state = self.next_record(), self.last_update, self.state
        knows = self.record == "auto" and self.solver.relative_gap(self.problem, state) is not None
        latest = max(MOST_EPOCHS_BETWEEN * self.length, 2 * state.updates)
        while True:
            step = state.updates + self.length if knows else target
            self._advance(min(step, last))
            if not knows or state.updates >= min(latest, last) or self._limit_reached():
                return
            gap = self.solver.relative_gap(self.problem, state)
            if gap is None or gap <= self.limits.tol:
                return

    @contextlib.contextmanager
    def _trusting(self) -> Iterator[None]:
        """Turn errors right after resuming into errors of the checkpoint."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if not self.doubtful or isinstance(error, checkpoints.CheckpointError):
                raise
            raise checkpoints.CheckpointError(
                f"{self.path} does not fit its run: {str(error).splitlines()[0]}"
            ) from error

    def _advance(self, target: int) -> None:
        """Update until `target`, timing nothing else, with a look at the limits now and then."""
        self.whole = False
        while self.state.updates < target and not self.limits.interrupt.is_set():
            count = min(self.chunk, target - self.state.updates)
            began = clock()
            self.solver.advance(self.problem, self.state, count)
            self.problem.finish()
            self.seconds += max(0.0, clock() - began)  # other threads may compile
            if self.limits.out_of_time():
                break
        self.whole = True

    def next_record(self) -> int:
        """Return the number of updates at which to take the next certificate."""
        updates, length, record = int(self.history.rows[-1]["updates"]), self.length, self.record
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
        rows, target = self.history.rows, self.limits.tol * abs(self.last.certificate.primal)
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

    def accuracy(self, resumed: bool = False) -> float:
        """Return how far from the best intercept the next certificate may be, in P.

        That of a resumed run is the last one of its history, to the same bits.
        """
        before = self.history.rows[:-1] if resumed else self.history.rows
        return 1e-3 * before[-1]["gap"] if before else 0.0

    @_without_warnings
    def take_record(
        self, resumed: bool = False, point: Answer | None = None, proof: Proof | None = None
    ) -> None:
        """Certify the present answer; record it, unless a resumed run must repeat its history."""
        with self._trusting():
            if point is None:
                point = self.solver.answer(self.problem, self.state)
            found = self.certifier.certify(point, self.accuracy(resumed), proof)
        self.doubtful &= resumed
        self._append(*found, resumed)

    @_without_warnings
    def _refine_record(self) -> None:
        """Put a certificate with all the digits that it takes in the place of the last one."""
        point = self.solver.answer(self.problem, self.state)
        rest = self.solver.rest(self.problem, self.state)
        b_low = self.solver.intercept_rest(self.problem, self.state)
        found = self.certifier.refine(point, self.accuracy(), rest, b_low)
        if found[2].gap < self.last.gap:
            self.history.rows.pop()  # of the same moment
            self._append(*found, False)

    def _append(self, w: np.ndarray, b: Any, proof: Proof, resumed: bool) -> None:
        """Make a record of a model and what is proved of it."""
        certificate = proof.certified(
            epochs=self.state.updates / self.length,
            seconds=self.seconds,
            solver=self.solver.story(self.problem, self.state),
            floor=self.certifier.floor(proof.primal),
        )
        metrics = self.solver.extras(self.problem, self.state)
        metrics |= {name: float(f(w, b)) for name, f in self.metrics.items()}
        counts = (certificate.epochs, self.state.updates, self.state.examples)
        costs = (self.seconds, self.cpu_seconds)
        b = b if np.ndim(b) else float(b)
        self.last = Record(*counts, *costs, certificate, w, b, proof.alpha, metrics, proof)
        key = (
            proof.gap,
            proof.primal,
        )  # gaps are infinite where nothing bounds a loss of one's own
        if self.best is None or key < (self.best.gap, self.best.certificate.primal):
            self.best = self.last
        if not resumed:
            self.history.append(self.last.row())
            self.solver.observe(self.problem, self.state, self.last, self.limits.tol)

    def verdict(self) -> str:
        """Return why to stop now, or nothing."""
        callback = self.limits.callback
        reason = self._verdict(None if callback is None else callback(self.last))
        worth_it = reason == "rounding" or self.solver.is_stuck(self.state)
        if worth_it and reason != "converged" and self.certifier.can_refine:
            self._refine_record()
            if self._verdict() == "converged":
                return "converged"
            can_go_on = reason in ("rounding", "stalled") and not self._limit_reached()
            if can_go_on and self.solver.sharpen(self.problem, self.state):
                return ""
        return reason

    def _verdict(self, asked: bool | str | None = None) -> str:
        """Return why to stop, if a callback has answered so."""
        certificate = self.last.certificate
        if not math.isfinite(certificate.primal):
            return "diverged"
        primal, rounding, gap = abs(certificate.primal), certificate.rounding, certificate.gap
        asked_for = self.limits.tol * primal
        if gap <= max(asked_for, certificate.floor):
            return "converged"
        noise = ENOUGH * rounding if rounding <= NEAR_EXACT * primal else 0.0
        enough = max(ENOUGH * asked_for, noise)  # of what was computed: more may still be gained
        if asked_for > 0.0 and gap - rounding <= enough < 2.0 * rounding:
            return "rounding"
        if isinstance(asked, str):
            return asked
        if asked is True:
            return "callback"
        return "stalled" if self.solver.is_stalled(self.state) else self._limit_reached()

    def _limit_reached(self) -> str:
        return self.limits.reached(self.state.examples, self.state.updates, self.last_update)

    def save(self, now: bool = False) -> None:
        """Write a checkpoint if it is time; a full disk costs the checkpoint, not the run."""
        updates, when = self.saved
        every = 0.0 if now else self.checkpoint_every
        if self.path is None or updates == self.state.updates or time.monotonic() - when < every:
            return
        if not self.whole or not math.isfinite(self.last.certificate.primal):
            return
        try:
            checkpoints.save(self.path, self.identity, self._parts, self.history.rows)
        except OSError as error:
            text = f"could not write checkpoint {self.path}: {error}; going on"
            warnings.warn(text, stacklevel=4)
        self.saved = (self.state.updates, time.monotonic())

    def result(self, otherwise: str) -> Result:
        """Return the answer: the last one, or the best certified one if that was asked for.

        `otherwise` is why the run ended if it had no reason of its own.
        """
        chosen, reason = self.last, self.reason or otherwise
        unplanned = reason in ("interrupted", "diverged", "device failed")
        if self.best is not None and (unplanned or self.solver.output == "best"):
            chosen = self.best
        certificate = dataclasses.replace(chosen.certificate, stop_reason=reason)
        found = (chosen.w, chosen.b, chosen.alpha, certificate)
        return Result(*found, self.history, reason, chosen.proof)


def _is_origin(point: Answer) -> bool:
    """Tell whether this is the start of most runs: no weights, and no dual variables."""
    w, _, alpha = point
    return alpha is not None and not bool(w.any()) and not bool(alpha.any())


def _check_record(record: Any) -> None:
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

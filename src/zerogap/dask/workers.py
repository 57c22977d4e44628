"""Groups of chunks on workers: rounds of one question to all, and recovery when some are lost.

Any dual variables are a valid place to go on from, and the dual sum is added up again from those
that are held, so losing a worker costs time, never truth.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import zerogap
from zerogap.dask import work
from zerogap.dask.backend import LOST, RUNNING, Backend
from zerogap.dask.chunks import Summary
from zerogap.dask.messages import Measure, Message, Reply, merge, sent
from zerogap.dask.work import Spec
from zerogap.problem.proving import PreciseSums

POLL_SECONDS = 0.2  # between two checks of which workers are alive
READING_SECONDS = 5.0  # the same while rows are being loaded
ABSENCE_SECONDS = 300.0  # without any worker, before the fit gives up
LEAST_TIMEOUT_SECONDS = 30.0  # without an answer, before a worker counts as lost
STUCK_SECONDS = 60.0  # for which workers that begin nothing may hold up the reading of rows
SLOW_ROUNDS = 10  # times the median round, before a worker counts as lost
SAVE_SECONDS = 30.0  # between two copies of the dual variables, if rounds are slow


class Restart(Exception):
    """Some dual variables were lost and replaced; `totals` has the sums over those held now."""

    def __init__(self, totals: Reply) -> None:
        super().__init__()
        self.totals = totals


@dataclasses.dataclass(frozen=True)
class Recovery:
    """What was lost, why, and where its dual variables came from.

    Attributes
    ----------
    round : int
        Round in which the loss was seen.
    groups : tuple of int
        Groups of chunks that were lost.
    reason : str
        What was seen: a worker that died, left, or did not answer.
    origins : dict of str to int
        How many groups got their dual variables from where.
    seconds : float
        Time until all groups were there again.
    """

    round: int
    groups: tuple[int, ...]
    reason: str
    origins: dict[str, int]  #: chunks by "kept", "checkpoint" and "zeros"
    seconds: float


class Workers:
    """The groups of one fit, wherever they are."""

    def __init__(
        self,
        backend: Backend,
        sources: Sequence[Any],
        run: str,
        *,
        classify: bool,
        n_groups: str | int = "workers",
        checkpoint_every: int = 5,
        max_recoveries: int = 50,
        round_timeout: float | None = None,
        size: int = 0,
    ) -> None:
        self.backend, self.sources, self.run, self.classify = backend, sources, run, classify
        self.size = size  # bytes of the rows, 0 if not known
        self.n_groups, self.checkpoint_every = n_groups, checkpoint_every
        self.max_recoveries, self.round_timeout = max_recoveries, round_timeout
        self.groups: list[list[int]] = []
        self.places: list[str] = []
        self.summaries: dict[int, Summary] = {}
        self.spec: Spec | None = None
        self.saved: dict[int, tuple[int, np.ndarray]] = {}
        self.saved_at = (0, time.monotonic())  # round, when
        self.stamp = self.rounds = self.bytes = self.losses = 0
        self.recoveries: list[Recovery] = []
        self.times: list[float] = []
        self.strange: Counter[int] = Counter()
        self.suspects: dict[str, Any] = {}  # workers that did not answer, and a question to each

    def load(self) -> list[Summary]:
        """Bring the rows into the workers' memory; return what there is to know about them."""
        self._healthy()
        self._check_memory()
        data = [self.backend.data(source, None) for source in self.sources]
        homes = self._homes(data)
        self._divide(homes, self._healthy())
        lost = self._load(dict.fromkeys(range(len(self.groups)), ""), data)
        if lost:
            self._reload(lost)
        filled = [k for k, s in self.summaries.items() if s.rows]
        kept = [g for g, numbers in enumerate(self.groups) if set(numbers) & set(filled)]
        if len(kept) < len(self.groups):  # groups without rows have nothing to say
            self.release()
            self.groups = [self.groups[g] for g in kept]
            self.places = [self.places[g] for g in kept]
            self._reload(dict.fromkeys(range(len(kept)), ""))
        return [self.summaries[k] for k in sorted(self.summaries)]

    def begin(self, spec: Spec, saved: dict[int, np.ndarray] | None = None) -> Reply:
        """State the problem, start from these dual variables or from zero; return the totals."""
        self.spec = spec
        self.saved = {k: (self.stamp, alpha) for k, alpha in (saved or {}).items()}
        totals, lost = self._resync()
        return self._recover(lost) if lost else totals

    def step(self, messages: Message | list[Message]) -> Reply:
        """Ask all groups for a step; their state then has the next stamp."""
        rounds, when = self.saved_at
        due = self.rounds - rounds >= self.checkpoint_every
        save = due or time.monotonic() - when > SAVE_SECONDS
        if isinstance(messages, Message):
            messages = [messages] * len(self.groups)
        messages = [dataclasses.replace(message, save=save) for message in messages]
        began = time.monotonic()
        reply = self._ask(work.step, [(self.stamp, message) for message in messages])
        self.times.append(time.monotonic() - began)
        if save:
            self.saved = {k: (self.stamp, alpha) for k, alpha in reply.alphas.items()}
            self.saved_at = self.rounds, time.monotonic()
        self.stamp += 1
        if save:
            self._rebalance()
        return reply

    def evaluate(self, w: np.ndarray, b: Any, diagonal: bool) -> Reply:
        """Ask for the objective and its gradient; if a worker is lost, recover and ask again."""
        while True:
            try:
                reply = self._ask(work.evaluate, [(self.stamp, w, b, diagonal)] * len(self.groups))
            except Restart:
                continue
            self.stamp += 1
            return reply

    def newton(self, w: np.ndarray, b: Any, bends: tuple[float, float], recentre: bool) -> Reply:
        """Ask for the sums of a Newton step at (w, b), whose dual variables are kept.

        `bends` are gamma and damping of `zerogap.solvers.summed_newton.sums_at`.
        """
        given = (self.stamp, w, b, bends, recentre)
        reply = self._ask(work.newton, [given] * len(self.groups))
        self.stamp += 1
        return reply

    def measure(self) -> Measure:
        """Ask for the sizes of rows and columns that bounds of rounding depend on."""
        while True:
            try:
                return self._ask(work.measure, [()] * len(self.groups)).summed
            except Restart:
                continue

    def examine(self, w: np.ndarray, b: Any, offsets: np.ndarray, sums: Any) -> Reply:
        """Ask for the certificate of (w, b) by the dual variables held, made feasible by `sums`."""
        return self._ask(work.examine, [(self.stamp, w, b, offsets, sums)] * len(self.groups))

    def precisely(
        self, w: np.ndarray, b: Any, sums: Any, rounded: np.ndarray, missing: Any, doubt: float
    ) -> PreciseSums:
        """Ask for the sums of that certificate in twice the precision."""
        given = (self.stamp, w, b, sums, rounded, missing, doubt)
        return self._ask(work.precisely, [given] * len(self.groups)).summed

    def release(self) -> None:
        """Ask the workers to drop this fit's rows, without waiting for those that do not answer."""
        places = set(self.places) & set(self.backend.workers())
        tasks = [self.backend.submit(worker, work.forget, self.run) for worker in places]
        until = time.monotonic() + 2.0
        while time.monotonic() < until:
            if all(self.backend.outcome(task) is not RUNNING for task in tasks):
                break
            time.sleep(0.02)

    def _homes(self, data: list[Any]) -> list[str | None]:
        """Return who holds which rows, once all are read; nobody, if workers hold that up."""
        since = math.inf
        while (homes := self.backend.homes(data, READING_SECONDS)) is None:
            self._healthy()
            now = time.monotonic()
            since = min(since, now) if self.backend.stuck() else math.inf
            if now - since > STUCK_SECONDS:
                self.backend.cancel(data)  # which are then read by others
                return [None] * len(data)
        return homes

    def _divide(self, homes: list[str | None], workers: list[str]) -> None:
        """Make the groups: the chunks that one worker holds, or consecutive chunks if none does."""
        numbers = range(len(self.sources))
        if self.n_groups == "workers" and all(homes):
            found = sorted({home for home in homes if home})
            self.groups = [[k for k in numbers if homes[k] == home] for home in found]
            self.places = list(found)
            return
        count = len(workers) if self.n_groups == "workers" else int(self.n_groups)
        parts = np.array_split(np.array(numbers), min(count, len(numbers)))
        self.groups = [part.tolist() for part in parts]
        used: Counter[str] = Counter()
        for group in self.groups:
            wanted = Counter(homes[k] for k in group if homes[k] in workers)
            place = min(workers, key=lambda worker: (used[worker], -wanted[worker]))
            used[place] += 1
            self.places.append(place)

    def _ask(self, function: Callable, arguments: list[tuple[Any, ...]]) -> Reply:
        """Ask all groups; if some are lost, recover them and raise Restart."""
        self.rounds += 1
        tasks = {
            g: self.backend.submit(place, function, self.run, g, *arguments[g])
            for g, place in enumerate(self.places)
        }
        self.bytes += sum(sent(argument) for given in arguments for argument in given)
        answers, lost = self._collect(tasks, self._timeout())
        for g, answer in answers.items():
            self.bytes += answer.nbytes
            if not answer.finite:
                lost[g] = "its answer was not finite"
                self.strange[g] += 1
                if self.strange[g] > 1:
                    raise ValueError(
                        f"the sums over chunks {self.groups[g]} are not finite, twice: look for "
                        f"huge values there"
                    )
        if lost:
            raise Restart(self._recover(lost))
        return merge([answers[g] for g in range(len(self.groups))])

    def _collect(
        self, tasks: dict[int, Any], limit: float
    ) -> tuple[dict[int, Any], dict[int, str]]:
        """Wait for the answers; return them, and for lost groups the reason."""
        answers: dict[int, Any] = {}
        lost: dict[int, str] = {}
        until = time.monotonic() + limit
        try:
            while waiting := [g for g in tasks if g not in answers and g not in lost]:
                self.backend.wait([tasks[g] for g in waiting], POLL_SECONDS)
                quiet = True
                for g in waiting:
                    outcome = self.backend.outcome(tasks[g])
                    if outcome is LOST or outcome is None:
                        lost[g] = "its worker died" if outcome is LOST else "its state was gone"
                    elif outcome is not RUNNING:
                        answers[g] = outcome
                    quiet = quiet and outcome is RUNNING
                if quiet:
                    alive = self.backend.workers()
                    lost |= {g: "its worker left" for g in waiting if self.places[g] not in alive}
                if time.monotonic() > until:
                    for g in waiting:
                        if g not in answers and g not in lost:
                            lost[g] = f"no answer for {limit:.0f} s"
                            self._suspect(self.places[g])
        finally:
            abandoned = [task for g, task in tasks.items() if g not in answers]
            if abandoned:
                self.backend.cancel(abandoned)
        return answers, lost

    def _recover(self, lost: dict[int, str], failed: bool = True) -> Reply:
        """Bring lost groups back, on whatever workers there are; return the new totals."""
        while True:
            began, groups = time.monotonic(), tuple(sorted(lost))
            reasons = "; ".join(sorted(set(lost.values())))
            if failed:
                self._count(lost)
            self._reload(lost)
            totals, lost = self._resync()
            origins = dict(Counter(totals.origins.values()))
            seconds = time.monotonic() - began
            self.recoveries.append(Recovery(self.rounds, groups, reasons, origins, seconds))
            if not lost:
                return totals
            failed = True

    def _count(self, lost: dict[int, str]) -> None:
        """Give up if there have been too many losses: something kills every worker."""
        self.losses += 1
        if self.losses > self.max_recoveries:
            chunks = [self.groups[g] for g in sorted(lost)]
            raise RuntimeError(
                f"gave up after {self.max_recoveries} recoveries (max_recoveries); last, chunks "
                f"{chunks} were lost: {'; '.join(sorted(set(lost.values())))}.  Do their rows fit "
                f"into the workers' memory?  {self._memory()}"
            )

    def _check_memory(self) -> None:
        """Refuse rows that cannot fit into the workers' memory."""
        limits = self.backend.memory()
        if all(limits) and self.size > sum(limits):
            raise MemoryError(
                f"the rows do not fit into the workers' memory.  {self._memory()}  Start more "
                f"workers, give them more (memory_limit), or train from a store on one machine"
            )

    def _memory(self) -> str:
        """Return a sentence on what the rows take and the workers have."""
        limits = self.backend.memory()
        rows = f"The rows take {self.size / 1e9:.2g} GB; " if self.size else ""
        if not all(limits):
            return f"{rows}{len(limits)} workers have no limit."
        shares = f"{min(limits, default=0) / 1e9:.2g} to {max(limits, default=0) / 1e9:.2g} GB each"
        return f"{rows}{len(limits)} workers may use {sum(limits) / 1e9:.2g} GB, {shares}."

    def _reload(self, lost: dict[int, str]) -> None:
        """Read the rows of lost groups again, on workers that are alive."""
        while lost:
            workers = self._healthy()
            used = Counter(self.places[g] for g in range(len(self.groups)) if g not in lost)
            for g in lost:
                least = min(used[worker] for worker in workers)
                choices = [worker for worker in workers if used[worker] == least]
                self.places[g] = self.places[g] if self.places[g] in choices else choices[0]
                used[self.places[g]] += 1
            lost = self._load(lost)
            if lost:
                self._count(lost)

    def _load(self, wanted: dict[int, str], data: list[Any] | None = None) -> dict[int, str]:
        """Read groups where they are placed; return those that were lost on the way."""
        tasks, rows = {}, {}
        for g in wanted:
            numbers, place = self.groups[g], self.places[g]
            rows[g] = [
                data[k] if data else self.backend.data(self.sources[k], place) for k in numbers
            ]
            arguments = (self.run, g, self.classify, numbers, *rows[g])
            tasks[g] = self.backend.submit(place, work.load, *arguments)
        answers, lost = self._collect(tasks, SLOW_ROUNDS * self._timeout())
        for g in lost:
            self.backend.check(rows[g])
        for summary in (summary for answer in answers.values() for summary in answer):
            self._recognise(summary)
        return lost

    def _recognise(self, summary: Summary) -> None:
        """Refuse rows that are not those the fit began with."""
        k = summary.number
        if summary.version not in ("", zerogap.__version__):
            raise RuntimeError(
                f"a worker has zerogap {summary.version}, the client {zerogap.__version__}: "
                f"install the same version everywhere"
            )
        known = self.summaries.setdefault(k, summary)
        if known.fingerprint != summary.fingerprint:
            raise ValueError(
                f"chunk {k} has changed since the fit began ({known.fingerprint}, now "
                f"{summary.fingerprint}): a certificate would be about other data.  Fit again"
            )

    def _resync(self) -> tuple[Reply, dict[int, str]]:
        """Give all groups one new stamp and add up what they hold."""
        self.stamp += 2  # a step that is still on its way makes the next one
        tasks = {
            g: self.backend.submit(
                place,
                work.resync,
                self.run,
                g,
                self.stamp,
                self.spec,
                {k: self.saved[k] for k in self.groups[g] if k in self.saved},
            )
            for g, place in enumerate(self.places)
        }
        answers, lost = self._collect(tasks, self._timeout())
        return merge([answers[g] for g in sorted(answers)]), lost

    def _rebalance(self) -> None:
        """Move groups from shared to idle workers; called just after their state was saved."""
        for worker in [w for w, task in self.suspects.items() if self._answered(task)]:
            del self.suspects[worker]
        idle = [worker for worker in self._healthy() if worker not in self.places]
        used = Counter(self.places)
        moved: dict[int, str] = {}
        for g, place in enumerate(self.places):
            if idle and used[place] > 1:
                used[place] -= 1
                self.backend.submit(place, work.forget, self.run, g)
                self.places[g] = idle.pop()
                moved[g] = "moved to a worker that had nothing to do"
        if moved:
            raise Restart(self._recover(moved, failed=False))

    def _answered(self, task: Any) -> bool:
        return self.backend.outcome(task) is not RUNNING

    def _suspect(self, worker: str) -> None:
        """Avoid a worker until it answers: it may be frozen, which the scheduler notices late."""
        self.suspects[worker] = self.backend.submit(worker, work.forget, "")

    def _healthy(self) -> list[str]:
        """Return the workers to use; wait if there are none."""
        until = time.monotonic() + ABSENCE_SECONDS
        while True:
            known, stuck = self.backend.workers(), self.backend.stuck()
            awake = [worker for worker in known if worker not in stuck]
            if fine := [worker for worker in awake if worker not in self.suspects] or awake:
                return fine
            if time.monotonic() > until:
                spent = f"{ABSENCE_SECONDS:.0f} s"
                if known:
                    raise MemoryError(
                        f"all workers were paused for {spent}, as their memory is nearly used up.  "
                        f"{self._memory()}  Start more workers, or give them more (memory_limit)"
                    )
                raise RuntimeError(f"there were no workers for {spent}: see their logs")
            time.sleep(POLL_SECONDS)

    def _timeout(self) -> float:
        if self.round_timeout is not None:
            return self.round_timeout
        median = statistics.median(self.times) if self.times else 0.0
        return max(LEAST_TIMEOUT_SECONDS, SLOW_ROUNDS * median)

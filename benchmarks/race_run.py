"""Timing fits in processes of their own, and sub-optimality against a certified optimum."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import statistics
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from race_peers import Contender

import zerogap as zg

Goals = tuple[float, ...]  # relative sub-optimality, the loosest first

FORK = multiprocessing.get_context("fork")  # shares the data
CAP, STUCK = "cap", "not reached"  # stopped; tighter tolerances change nothing
TOO_SLOW = 5  # times the fastest peer
AGREE = 2e-3  # relative distance to a small optimum: the same problem was solved
WARM_UP = 30.0  # seconds for a tiny fit, which may have to load or compile


@dataclass
class Run:
    """One contender at one tolerance."""

    tolerance: float
    seconds: float  # or the cap, if the run was stopped there
    primal: float = float("inf")
    gap: float = float("inf")  # relative; proved by our own certificate
    failure: str = ""


@dataclass
class Data:
    """A set of rows and targets, in the form each contender wants."""

    name: str
    X: Any
    y: np.ndarray
    prepared: dict[Any, tuple] = field(default_factory=dict)

    def arguments(self, contender: Contender) -> tuple:
        if contender.prepare not in self.prepared:
            self.prepared[contender.prepare] = contender.prepare(self.X, self.y)
        return self.prepared[contender.prepare]

    @cached_property
    def few(self) -> Data:
        """A tiny part of the same kind, with targets of either sign."""
        rows = np.concatenate([np.flatnonzero(self.y > 0)[:20], np.flatnonzero(self.y <= 0)[:20]])
        return Data(self.name, self.X[rows], self.y[rows])

    @cached_property
    def digest(self) -> str:
        values = self.X if isinstance(self.X, np.ndarray) else self.X.data
        return hashlib.sha256(values.tobytes() + self.y.tobytes()).hexdigest()


@dataclass
class Task:
    """A problem to solve, and the best lower bound of its optimum that was proved."""

    data: Data
    loss: str
    C: float

    def __post_init__(self) -> None:
        self.rows = self.data.X.shape[0]
        self.problem = zg.Problem(self.data.X, self.data.y, self.loss, 1.0 / (self.C * self.rows))
        self.bound = -float("inf")
        self.upper = float("inf")

    def find_optimum(self, folder: Path, ours: Contender) -> None:
        """Take the bounds of an earlier race, or prove some."""
        key = f"{self.data.digest} {self.loss} {self.C!r}"
        self.path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.json"
        if self.path.exists():
            self.bound, self.upper = json.loads(self.path.read_text())
        else:
            self.prove(ours)

    def prove(self, ours: Contender) -> None:
        """Bound the optimum as closely as ours can in the time it has."""
        model = ours.make(self.loss, self.C, self.rows, 1e-8)
        _fit(model, (self.data.X, self.data.y))
        self.bound, self.upper = model.certificate_.dual, model.certificate_.primal

    def keep_optimum(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps([self.bound, self.upper]))

    def load_kernels(self, ours: Iterable[Contender]) -> None:
        """Fit a few rows with each variant of ours, so that children find all kernels loaded."""
        few = self.data.few
        for variant in ours:
            _fit(variant.make(self.loss, self.C, len(few.y), 1e-3), (few.X, few.y))

    def measure(self, contender: Contender, tolerance: float, cap: float, repeats: int = 0) -> Run:
        """Time one fit; or, with repeats, the median of so many after one that is not timed."""
        model = contender.make(self.loss, self.C, self.rows, tolerance)
        tiny = contender.make(self.loss, self.C, len(self.data.few.y), contender.ladder[0])
        warm_up = (tiny, contender.prepare(self.data.few.X, self.data.few.y))
        fit = (model, self.data.arguments(contender))
        if contender.compiles:
            _fit(*warm_up)
        answer = in_child(warm_up, fit, cap, repeats)
        if isinstance(answer, str):
            return Run(tolerance, cap, failure=answer)
        times, w, gap, dual = answer
        certificate = self.problem.certificate(w)
        self.bound = max(self.bound, certificate.dual, dual)
        self.upper = min(self.upper, certificate.primal)
        return Run(tolerance, statistics.median(times), certificate.primal, gap)

    def suboptimality(self, run: Run) -> float:
        """(P(w) - D) / D for the largest lower bound D: never below the true one."""
        return (run.primal - self.bound) / self.bound


def in_child(warm_up: tuple, fit: tuple, cap: float, repeats: int) -> Any:
    """Return seconds of each fit, weights, proved gap and bound; or a word that says why not.

    The parent starts no threads, so that it can part safely; the child is killed at the cap.
    """
    receive, send = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_work, args=(send, warm_up, fit, repeats))
    child.start()
    send.close()
    try:
        if not receive.poll(WARM_UP):
            return "warm-up too long"
        ready = receive.recv()
        if ready != "ready":
            return ready
        if not receive.poll(cap * (repeats + 1)):
            return CAP
        return receive.recv()
    except EOFError:
        return "crashed"
    finally:
        child.kill()
        child.join()


def _work(send: Connection, warm_up: tuple, fit: tuple, repeats: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        _fit(*warm_up)
        send.send("ready")
        times = [_fit(*fit) for _ in range(repeats + 1)]
        model = fit[0]
        w = np.asarray(model.coef_, dtype=float).ravel()
        own = getattr(model, "certificate_", None)
        proof = (own.relative_gap, own.dual) if own else (float("inf"), -float("inf"))
        send.send((times[1:] or times, w, *proof))
    except Exception as error:
        send.send(f"{type(error).__name__}: {str(error).splitlines()[0][:80]}")


def _fit(model: Any, arguments: tuple) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(*arguments)
        return time.perf_counter() - start


def contest(
    task: Task, peers: list[Contender], goals: Goals, first: float, most: float
) -> dict[Contender, list[Run]]:
    """Sweep all peers, with more and more patience for those that were stopped.

    From `first` to `most` seconds, or until those left take TOO_SLOW times as long as the fastest.
    """
    swept: dict[Contender, list[Run]] = {peer: [] for peer in peers}
    left, limit = peers, first
    while left:
        for peer in left:
            sweep(task, peer, swept[peer], goals, limit)
        done = [runs[-1].seconds for runs in swept.values() if not runs[-1].failure]
        enough = min(most, max(first, TOO_SLOW * min(done, default=most)))
        left = [peer for peer in left if swept[peer][-1].failure == CAP]
        if limit >= enough:
            break
        limit = min(4 * limit, enough)
    return swept


def sweep(task: Task, peer: Contender, runs: list[Run], goals: Goals, cap: float) -> None:
    """Tighten the tolerance until all goals are reached, a run is stopped or nothing changes.

    By two rungs of the ladder at a time; where that reaches a goal, the rung between them may do
    so in less time, and is tried too.
    """
    if runs:
        runs.pop()  # stopped with less patience
    last = len(peer.ladder) - 1
    for k in [*range(0, last, 2), last]:
        if any(run.tolerance == peer.ladder[k] for run in runs):
            continue
        before = min(map(task.suboptimality, runs), default=np.inf)
        run = task.measure(peer, peer.ladder[k], cap)
        reached = task.suboptimality(run)
        if k and not run.failure and any(reached <= goal < before for goal in goals):
            runs.append(task.measure(peer, peer.ladder[k - 1], cap))
        runs.append(run)
        if len(runs) > 2 and len({run.primal for run in runs[-3:]}) == 1 and not run.failure:
            run.failure = STUCK
        if run.failure or reached <= min(goals):
            return
    runs[-1].failure = STUCK


def agreement(contenders: Iterable[Contender], ours: Contender) -> dict[tuple[str, str], float]:
    """Return how near each comes to the optimum of a small problem with a strong penalty.

    With twice or half the lam it would stay further away than AGREE.
    """
    X, y, _ = zg.datasets.make_simulated(n_samples=400, random_state=0)
    data = Data("simulated", X, y)
    found = {}
    for loss in sorted({loss for contender in contenders for loss in contender.losses}):
        task = Task(data, loss, C=0.01)
        task.prove(ours)
        for contender in contenders:
            if loss in contender.losses:
                runs: list[Run] = []
                sweep(task, contender, runs, (AGREE,), 10.0)
                found[contender.name, loss] = min(map(task.suboptimality, runs))
    return found

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
from race_peers import MULTICLASS, Contender
from scipy import sparse
from sklearn.preprocessing import scale

import zerogap as zg

Goals = tuple[float, ...]  # relative sub-optimality, the loosest first

FORK = multiprocessing.get_context("fork")  # shares the data
CAP, STUCK = "cap", "not reached"  # stopped; tighter tolerances change nothing
TOO_SLOW = 5  # times the fastest peer
AGREE = 2e-3  # relative distance to a small optimum: the same problem was solved
VAGUE = 5e-4  # relative distance of known bounds from which on an optimum is looked for again
WARM_UP = 30.0  # seconds for a tiny fit, which may have to load or compile


@dataclass
class Run:
    """One contender at one tolerance."""

    tolerance: float
    seconds: float  # or the cap, if the run was stopped there
    primal: float = float("inf")
    gap: float = float("inf")  # relative; proved by our own certificate
    failure: str = ""
    task: Task | None = field(default=None, repr=False)  # whose bound this run is held against

    @property
    def suboptimality(self) -> float:
        """(P(w) - D) / D for the largest lower bound D: never below the true one."""
        if self.task is None or self.task.bound <= 0:
            return float("inf")
        return (self.primal - self.task.bound) / self.task.bound


@dataclass
class Data:
    """A set of rows and targets, in the form each contender wants."""

    name: str
    X: Any
    y: np.ndarray
    intercept: bool = False  # fit one that is not regularised
    prepared: dict[Any, tuple] = field(default_factory=dict)

    def arguments(self, contender: Contender) -> tuple:
        if contender.prepare not in self.prepared:
            self.prepared[contender.prepare] = contender.prepare(self.X, self.y)
        return self.prepared[contender.prepare]

    @cached_property
    def few(self) -> Data:
        """A tiny part of the same kind, with targets of either sign, or of every class.

        It is scaled: on raw rows some contenders take longer than WARM_UP for 40 of them.
        """
        groups = self.y if self.y.dtype.kind == "i" else self.y > 0
        rows = np.concatenate([np.flatnonzero(groups == g)[:20] for g in np.unique(groups)])
        X = scale(self.X[rows], with_mean=not sparse.issparse(self.X))
        return Data(self.name, X, self.y[rows], self.intercept)

    @cached_property
    def with_ones(self) -> Data:
        """The same with a column of ones instead of the intercept."""
        ones = np.ones((len(self.y), 1))
        stack = sparse.hstack if sparse.issparse(self.X) else np.hstack
        options = {"format": "csr"} if sparse.issparse(self.X) else {}
        return Data(self.name, stack([self.X, ones], **options), self.y)

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
        self.problem = zg.Problem(
            *(self.data.X, self.data.y, self.loss, 1.0 / (self.C * self.rows)),
            fit_intercept=self.data.intercept,
        )
        self.bound = -float("inf")
        self.upper = float("inf")

    @cached_property
    def with_ones(self) -> Task:
        """The problem of contenders without a free intercept: they regularise it."""
        return Task(self.data.with_ones, self.loss, self.C)

    def problem_of(self, contender: Contender) -> Task:
        """Return what a contender solves: this task, or the one with a column of ones."""
        return self if contender.free_intercept or not self.data.intercept else self.with_ones

    @property
    def doubt(self) -> float:
        """Relative distance of the bounds of the optimum."""
        return (self.upper - self.bound) / self.bound if self.bound > 0 else float("inf")

    def make(self, contender: Contender, rows: int, tolerance: float) -> Any:
        """Return the estimator of a contender, with an intercept if the data ask for one."""
        model = contender.make(self.loss, self.C, rows, tolerance)
        return model.set_params(fit_intercept=True) if self.data.intercept else model

    def find_optimum(self, folder: Path, ours: Contender) -> None:
        """Take the bounds of an earlier race, or prove some."""
        key = f"{self.data.digest} {self.loss} {self.C!r}{' intercept' * self.data.intercept}"
        self.path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.json"
        if self.path.exists():
            self.bound, self.upper = json.loads(self.path.read_text())
        if self.doubt > VAGUE:
            self.prove(ours)

    def prove(self, ours: Contender) -> None:
        """Bound the optimum as closely as ours can in the time it has."""
        model = self.make(ours, self.rows, 1e-8)
        _fit(model, (self.data.X, self.data.y))
        self.bound = max(self.bound, model.certificate_.dual)
        self.upper = min(self.upper, model.certificate_.primal)

    def keep_optimum(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps([self.bound, self.upper]))

    def load_kernels(self, ours: Iterable[Contender]) -> None:
        """Fit a few rows with each variant of ours, so that children find all kernels loaded."""
        few = self.data.few
        for variant in ours:
            _fit(self.make(variant, len(few.y), 1e-3), (few.X, few.y))

    def measure(self, contender: Contender, tolerance: float, cap: float, repeats: int = 0) -> Run:
        """Time one fit; or, with repeats, the median of so many after one that is not timed."""
        if self.problem_of(contender) is not self:
            return self.with_ones.measure(contender, tolerance, cap, repeats)
        model = self.make(contender, self.rows, tolerance)
        tiny = self.make(contender, len(self.data.few.y), contender.ladder[0])
        warm_up = (tiny, contender.prepare(self.data.few.X, self.data.few.y))
        fit = (model, self.data.arguments(contender))
        if contender.compiles:
            _fit(*warm_up)
        answer = in_child(warm_up, fit, cap, repeats)
        if isinstance(answer, str):
            return Run(tolerance, cap, failure=answer, task=self)
        times, w, b, gap, dual = answer
        certificate = self.problem.certificate(w, b if self.data.intercept else 0.0)
        self.bound = max(self.bound, certificate.dual, dual)
        self.upper = min(self.upper, certificate.primal)
        return Run(tolerance, statistics.median(times), certificate.primal, gap, task=self)


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
        w = np.atleast_2d(np.asarray(model.coef_, dtype=float))
        b = np.ravel(getattr(model, "intercept_", 0.0))
        if len(w) == 1:
            w, b = w[0], b[0]
        own = getattr(model, "certificate_", None)
        proof = (own.relative_gap, own.dual) if own else (float("inf"), -float("inf"))
        send.send((times[1:] or times, w, b, *proof))
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
        before = min((run.suboptimality for run in runs), default=np.inf)
        run = task.measure(peer, peer.ladder[k], cap)
        reached = run.suboptimality
        if k and not run.failure and any(reached <= goal < before for goal in goals):
            runs.append(task.measure(peer, peer.ladder[k - 1], cap))
        runs.append(run)
        if len(runs) > 2 and len({run.primal for run in runs[-3:]}) == 1 and not run.failure:
            run.failure = STUCK
        if run.failure or reached <= min(goals):
            return
    runs[-1].failure = STUCK


def agreement(
    contenders: Iterable[Contender], ours: Contender, intercept: bool
) -> dict[tuple[str, str], float]:
    """Return how near each comes to the optimum of a small problem with a strong penalty.

    With twice or half the lam it would stay further away than AGREE, and so it would with a
    regularised intercept where a free one is asked for: classes are unbalanced.
    """
    X, y, _ = zg.datasets.make_simulated(n_samples=400, random_state=0)
    if intercept:
        kept = (y > 0) | (np.arange(len(y)) % 3 == 0)
        X, y = X[kept], y[kept]
    classes = np.digitize(X[:, 0] + 0.5 * y, (-0.5, 0.5))
    found = {}
    for loss in sorted({loss for contender in contenders for loss in contender.losses}):
        data = Data("simulated", X, classes if loss in MULTICLASS else y, intercept)
        task = Task(data, loss, C=0.01)
        task.prove(ours)
        for contender in contenders:
            if loss in contender.losses:
                runs: list[Run] = []
                sweep(task, contender, runs, (AGREE,), 10.0)
                found[contender.name, loss] = min(run.suboptimality for run in runs)
    return found

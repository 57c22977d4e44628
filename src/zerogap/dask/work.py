"""What workers do: they hold rows and dual variables, and answer one question per round.

The dual variables of a group of chunks live in its worker's memory under a stamp.  A step asks
for the stamp it was made for, works on copies and stores its result under the next one; without
that stamp it answers None.  So a step that runs twice, late, or on another worker never counts
twice: at worst it says that the state is missing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap._jit import rowwise
from zerogap.dask.chunks import Data, Summary, read
from zerogap.dask.messages import Message, Reply
from zerogap.losses import Loss
from zerogap.multiclass import MulticlassProblem, set_row_gaps
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.solvers.sdca import block_steps, sdca_steps

_EMPTY = np.empty(0)


@dataclass(frozen=True)
class Spec:
    """What makes the rows of a worker a part of the one problem."""

    number: int  # of the problem: one class after the other against the rest
    loss: Loss
    lam: float
    l1_ratio: float
    fit_intercept: bool
    total: float  # sum of all weights
    classes: np.ndarray | None  # labels in order; None in regression
    factors: np.ndarray | None  # weights of the classes
    rho: float  # of the proximal term of the intercept
    seed: int

    def part(self, data: Data) -> Problem:
        """Return these rows as a part of the problem.

        The intercept is handled here, not by the part: its constraint is one of all rows.
        """
        weights = data.weights
        y = data.y
        if self.classes is not None:
            codes = np.searchsorted(self.classes, data.labels)[data.y]
            # a label that has no weight anywhere is no class: any code does
            codes = np.minimum(codes, len(self.classes) - 1)
            if self.factors is not None:
                weights = weights * self.factors[codes]
            positive = self.number if len(self.classes) > 2 else 1
            joint = self.loss.task == "multiclass"
            y = codes if joint else np.where(codes == positive, 1.0, -1.0)
        n_classes = 0 if self.classes is None else len(self.classes)
        fixed = (self.loss, self.lam, False, self.l1_ratio, n_classes)
        return Problem.part(data.rows, y, weights / self.total, *fixed)


@dataclass
class _Chunk:
    data: Data
    part: Problem = field(init=False)
    versions: dict[int, tuple[np.ndarray, np.ndarray | None]] = field(default_factory=dict)

    def keep(self, stamp: int, alpha: np.ndarray, change: np.ndarray | None) -> None:
        """Store a version, and forget all but the one before."""
        self.versions = {s: v for s, v in self.versions.items() if s == stamp - 1}
        self.versions[stamp] = alpha, change


@dataclass
class _Group:
    chunks: dict[int, _Chunk]  # by number, without empty ones
    summaries: list[Summary]
    lock: threading.Lock = field(default_factory=threading.Lock)  # workers may have threads
    spec: Spec | None = None


_GROUPS: dict[tuple[str, int], _Group] = {}


@contextmanager
def _held(run: str, group: int, stamp: int | None = None) -> Iterator[_Group | None]:
    """Give exclusive use of a group, None if it is not here or has no such version."""
    found = _GROUPS.get((run, group))
    if found is None:
        yield None
        return
    with found.lock:
        chunks = found.chunks.values()
        yield found if stamp is None or all(stamp in c.versions for c in chunks) else None


def load(run: str, group: int, classify: bool, numbers: list[int], *data: Any) -> list[Summary]:
    """Take the rows of a group into this process; return what there is to know about them."""
    if (run, group) not in _GROUPS:
        read_all = [read(k, item, classify) for k, item in zip(numbers, data, strict=True)]
        chunks = {d.summary.number: _Chunk(d) for d in read_all if d.rows is not None}
        summaries = [d.summary for d in read_all]
        _GROUPS.setdefault((run, group), _Group(chunks, summaries))
    return _GROUPS[run, group].summaries


def forget(run: str, group: int | None = None) -> None:
    """Drop a group, or all groups of a run."""
    for key in [k for k in _GROUPS if k[0] == run and group in (None, k[1])]:
        _GROUPS.pop(key, None)


def resync(
    run: str, group: int, stamp: int, spec: Spec, saved: dict[int, tuple[int, np.ndarray]]
) -> Reply | None:
    """Give all chunks the same stamp: with the newest dual variables there are, or zeros."""
    with _held(run, group) as found:
        if found is None:
            return None
        if found.spec is None or found.spec.number != spec.number:
            for chunk in found.chunks.values():
                chunk.part, chunk.versions = spec.part(chunk.data), {}
            found.spec = spec
        reply = Reply()
        for k, chunk in found.chunks.items():
            newest, (when, alpha) = max(chunk.versions, default=-1), saved.get(k, (-1, _EMPTY))
            if newest >= max(when, 0):
                alpha, origin = chunk.versions[newest][0], "kept"
            elif when >= 0:
                alpha, origin = chunk.part.feasible(alpha), "checkpoint"
            else:
                alpha, origin = np.zeros(chunk.part.dual_shape), "zeros"
            chunk.versions = {stamp: (alpha, None)}
            reply.origins[k] = origin
            _add_totals(reply, chunk.part, alpha)
        return reply


def step(run: str, group: int, stamp: int, message: Message) -> Reply | None:
    """Accept the last changes, add up the gap at (u, b, alpha), and do the job."""
    with _held(run, group, stamp) as found:
        if found is None or found.spec is None:
            return None
        spec, reply = found.spec, Reply()
        weights = next(iter(found.chunks.values())).part.to_weights(message.u)
        old = {k: _accepted(c, stamp, message, k) for k, c in found.chunks.items()}
        for k, chunk in found.chunks.items():
            part, alpha = chunk.part, old[k]
            z = part.scores(weights)
            terms = part.row_terms(z, message.b, alpha)
            reply.value += terms.value
            reply.excess += terms.excess
            if message.save:
                reply.alphas[k] = alpha
            if message.job == "look":
                _add_totals(reply, part, alpha)
            if message.job == "gather":
                known = message.alphas.get(k, (np.empty(0, np.int64),))[0]
                reply.rows[k] = _undecided(part, z, message.b, alpha, known)
        new = {}
        if message.job == "epoch":
            new = _local_epoch(found, old, message, [spec.seed, stamp, group], reply)
        for k, chunk in found.chunks.items():
            chunk.keep(stamp + 1, old[k], new.get(k))
        return reply


def evaluate(
    run: str, group: int, stamp: int, w: np.ndarray, b: Any, diagonal: bool
) -> Reply | None:
    """Set the dual variables that belong to (w, b): loss, dual sum and so the gradient there."""
    with _held(run, group) as found:
        if found is None or found.spec is None:
            return None
        reply = Reply()
        for chunk in found.chunks.values():
            part = chunk.part
            z = part.scores(w) + b
            alpha = part.dual_from_scores(z)
            reply.value += part.value_at(z, np.zeros(1))
            _add_totals(reply, part, alpha)
            if diagonal:
                reply.diagonal += part.rows.square_sums(part.share)
            chunk.keep(stamp + 1, alpha, None)
        return reply


def examine(
    run: str, group: int, stamp: int, w: np.ndarray, b: Any, offsets: np.ndarray, sums: Any
) -> Reply | None:
    """Certify (w, b) and intercepts near b by the dual variables held, made feasible."""
    with _held(run, group, stamp) as found:
        if found is None or found.spec is None:
            return None
        reply = Reply()
        for chunk in found.chunks.values():
            part, alpha = chunk.part, chunk.versions[stamp][0]
            alpha = part.feasible(alpha)
            if found.spec.fit_intercept:
                alpha = part.balanced(alpha, sums)
            z, free = part.scores(w), part._with(fit_intercept=found.spec.fit_intercept)
            terms = [free.row_terms(z, b + offset, alpha) for offset in offsets]
            known = zip(reply.terms, terms, strict=True)
            reply.terms = [a + t for a, t in known] if reply.terms else terms
            reply.conjugates += part._mean_conjugate(alpha)
            reply.u += part.dual_sum(alpha)
        return reply


def _accepted(chunk: _Chunk, stamp: int, message: Message, k: int) -> np.ndarray:
    """Return the dual variables after the change that the client has decided on."""
    alpha, change = chunk.versions[stamp]
    if change is not None and message.theta:
        return alpha + message.theta * change
    if k in message.alphas:
        places, values = message.alphas[k]
        alpha = alpha.copy()
        alpha[places] = values
    return alpha


def _local_epoch(
    group: _Group, old: dict[int, np.ndarray], message: Message, seed: list[int], reply: Reply
) -> dict[int, np.ndarray]:
    """Run one epoch over the group's own rows; return the changes of its dual variables."""
    rng, spec = np.random.default_rng(seed), group.spec
    assert spec is not None
    some = next(iter(group.chunks.values())).part
    u = some.by_feature(message.u).copy()
    bias = np.array([np.asarray(message.b, float), np.asarray(message.mean, float)])
    new = {}
    for k in rng.permutation(list(group.chunks)):
        part, alpha = group.chunks[k].part, old[k].copy()
        order = rng.permutation(len(alpha))
        moved = np.zeros(len(alpha), np.bool_)
        common = (part, part.rows, order, order, moved, alpha, u)
        rest = (bias, spec.rho, 1.0, np.empty((0, *alpha.shape[1:])), 0, False)
        if isinstance(part, MulticlassProblem):
            w = u if isinstance(part.penalty, L2) else part.to_weights(u)
            block_steps(*common, w, *rest)
        else:
            sdca_steps(*common, *rest, False)
        new[k] = alpha - old[k]
        reply.undecided += int(part.rows.nbytes * moved.mean())
    reply.u = some.by_class(u) - message.u
    reply.mean = bias[1] - message.mean
    reply.conjugates = np.zeros(len(message.grid))
    for k, chunk in group.chunks.items():
        for j, theta in enumerate(message.grid):
            alpha = old[k] + theta * new[k]
            # at scores of zero: phi(0) + phi*(-a), less phi(0)
            terms = chunk.part.row_terms(np.zeros(alpha.shape), 0.0, alpha)
            reply.conjugates[j] += terms.excess - terms.value
    return new


def _add_totals(reply: Reply, part: Problem, alpha: np.ndarray) -> None:
    reply.u += part.dual_sum(alpha)
    reply.mean += part.share @ alpha
    reply.sums += part.balance_sums(alpha)


def _undecided(
    part: Problem, z: np.ndarray, b: Any, alpha: np.ndarray, known: np.ndarray
) -> tuple[Any, ...]:
    """Return the rows, but for those known, whose dual variables are not at their best."""
    gaps = np.empty(len(alpha))
    if isinstance(part, MulticlassProblem):
        votes = part._votes(alpha)
        part.over_rows(set_row_gaps, part.loss, part.y, part.share, votes, z + b, gaps)
    else:
        part.over_rows(_set_row_gaps, part.loss, part.y, part.share, alpha, z, b, gaps)
    gaps[known] = 0.0
    places = np.flatnonzero(gaps > 0.0)
    rows = part.rows.take(places) if len(places) else None
    return places, rows, part.y[places], part.share[places], alpha[places]


@rowwise(sums=0)
def _set_row_gaps(loss, y, share, alpha, z, b, gaps, start, stop):
    for i in range(start, stop):
        gaps[i] = share[i] * loss.excess(alpha[i], z[i] + b, y[i])

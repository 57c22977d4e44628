"""What workers do: they hold rows and dual variables, and answer one question per round.

The dual variables of a group of chunks live in its worker's memory under a stamp.  A step asks
for the stamp it was made for, works on copies and stores its result under the next one; without
that stamp it answers None.  So a step that runs twice, late, or on another worker never counts
twice: at worst it says that the state is missing.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.dask.chunks import Data, Summary, read
from zerogap.dask.messages import Measure, Message, Reply
from zerogap.kernels.jit import rowwise
from zerogap.losses import Loss
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.problem.checks import check_shares
from zerogap.problem.multiclass import MulticlassProblem
from zerogap.problem.vote_sums import set_row_gaps
from zerogap.rows import moved_targets
from zerogap.solvers.sdca_steps import block_steps, sdca_steps
from zerogap.solvers.summed_newton import sums_at

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
    seed: int
    origin: np.ndarray  # what is subtracted from the columns,
    target: float  # and from the targets

    def part(self, data: Data) -> Problem:
        """Return these rows as a part of the problem.

        The intercept is handled here, not by the part: its constraint is one of all rows.
        """
        weights, factors = data.weights, 1.0
        y = data.y
        if self.classes is not None:
            codes = np.searchsorted(self.classes, data.labels)[data.y]
            # a label that has no weight anywhere is no class: any code does
            codes = np.minimum(codes, len(self.classes) - 1)
            if self.factors is not None:
                factors = self.factors[codes]
            positive = self.number if len(self.classes) > 2 else 1
            joint = self.loss.task == "multiclass"
            y = codes if joint else np.where(codes == positive, 1.0, -1.0)
        y, lost = moved_targets(y, self.target) if self.target else (y, 0.0)
        rows: Any = data.rows
        rows = rows.minus(self.origin) if self.origin.any() else rows
        n_classes = 0 if self.classes is None else len(self.classes)
        fixed = (self.loss, self.lam, False, self.l1_ratio, n_classes)
        share = weights * factors / self.total
        check_shares(share, weights, factors)
        return Problem.part(rows, y, share, *fixed, lost)


@dataclass
class _Chunk:
    data: Data
    part: Problem = field(init=False)
    centre: np.ndarray = field(default_factory=lambda: _EMPTY)  # of Newton's sub-problem
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
                chunk.part, chunk.versions, chunk.centre = spec.part(chunk.data), {}, _EMPTY
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


def newton(
    run: str, group: int, stamp: int, w: np.ndarray, b: Any, bends: Any, recentre: bool
) -> Reply | None:
    """Set the dual variables that answer (w, b) in the sub-problem: the sums of a Newton step.

    The centre of the sub-problem is zero at first, and again where rows had to be read again.
    """
    with _held(run, group, stamp if recentre else None) as found:
        if found is None or found.spec is None:
            return None
        reply = Reply()
        for chunk in found.chunks.values():
            if recentre:
                chunk.centre = chunk.versions[stamp][0]
            if not len(chunk.centre):
                chunk.centre = np.zeros(chunk.part.dual_shape)
            part = chunk.part._with(fit_intercept=found.spec.fit_intercept)
            sums, alpha = sums_at(part, w, b, chunk.centre, *bends)
            reply.summed = sums if reply.summed is None else reply.summed + sums
            reply.sums += part.balance_sums(alpha)
            chunk.keep(stamp + 1, alpha, None)
        return reply


def measure(run: str, group: int) -> Reply | None:
    """Return what bounds of rounding need to know of the rows."""
    with _held(run, group) as found:
        if found is None or found.spec is None:
            return None
        reply = Reply()
        for part in (chunk.part for chunk in found.chunks.values()):
            rows, share = part.rows, part.share
            shares = float(share.min()), float(share.max())
            more = Measure(rows.square_sums(share), rows.width, rows.largest_entries(), shares)
            reply.summed = more if reply.summed is None else reply.summed + more
        return reply


def examine(
    run: str, group: int, stamp: int, w: np.ndarray, b: Any, offsets: np.ndarray, sums: Any
) -> Reply | None:
    """Certify (w, b) and intercepts near b by the dual variables held, made feasible."""
    with _held(run, group, stamp) as found:
        if found is None or found.spec is None:
            return None
        reply = Reply()
        for free, alpha in _feasible(found, stamp, sums):
            z = free.scores(w)
            terms = [free.row_terms(z, b + offset, alpha) for offset in offsets]
            known = zip(reply.terms, terms, strict=True)
            reply.terms = [a + t for a, t in known] if reply.terms else terms
            reply.conjugates += free._mean_conjugate(alpha)
            reply.u += free.dual_sum(alpha)
            reply.numbers.append(free.precise_balance(alpha))
        return reply


def precisely(
    run: str,
    group: int,
    stamp: int,
    w: np.ndarray,
    b: Any,
    sums: Any,
    rounded: np.ndarray,
    missing: Any,
    doubt: float,
) -> Reply | None:
    """Return the sums of a certificate in twice the precision."""
    with _held(run, group, stamp) as found:
        if found is None or found.spec is None:
            return None
        parts = [
            part.precise_sums(w, b, alpha, rounded, missing, doubt)
            for part, alpha in _feasible(found, stamp, sums)
        ]
        # a group may have no rows at all
        return Reply(summed=functools.reduce(operator.add, parts) if parts else None)


def _feasible(group: _Group, stamp: int, sums: Any) -> Iterator[tuple[Problem, np.ndarray]]:
    """Yield the parts with their intercept, and their dual variables made feasible."""
    free = group.spec is not None and group.spec.fit_intercept
    for chunk in group.chunks.values():
        alpha = chunk.part.feasible(chunk.versions[stamp][0])
        if free:
            alpha = chunk.part.balanced(alpha, sums)
        yield chunk.part._with(fit_intercept=free), alpha


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
    rng = np.random.default_rng(seed)
    some = next(iter(group.chunks.values())).part
    u = some.by_feature(message.u).copy()
    bias = np.array([np.asarray(message.b, float), np.asarray(message.mean, float)])
    new = {}
    for k in rng.permutation(list(group.chunks)):
        part, alpha = group.chunks[k].part, old[k].copy()
        order = rng.permutation(len(alpha))
        moved = np.zeros(len(alpha), np.bool_)
        common = (part, part.rows, order, order, moved, alpha, u)
        rest = (bias, message.rho, 1.0, np.empty((0, *alpha.shape[1:])), 0, False)
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
    """Return the rows, except for those known, whose dual variables are not at their best."""
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

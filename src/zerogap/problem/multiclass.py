"""The multiclass problem: a weight vector and an intercept per class, a score vector per row."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.kernels.jit import kernel, rowwise
from zerogap.kernels.precise import (
    imbalance,
    joined,
    precise_dual_sum,
    precise_rest,
    precise_scores,
    precise_votes,
)
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.problem.gap import Terms
from zerogap.problem.proving import NO_ROW, PreciseSums, Proof
from zerogap.problem.refining import Moves
from zerogap.rows import CLASSES

_IDENTITY = L2()
ALMOST_ZERO = (1e-9, 1e-6)  # votes of a row that may be zero at the optimum
ROUNDING_OF_SUMS = 1e-13  # of the terms' sizes: more would be an imbalance


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MulticlassProblem(Problem):
    """A linear model with a score vector: weights W of shape (n_classes, n_features).

    P(W, b) = 1/S sum_i s_i phi(W x_i + b, y_i) + lam g(W)
    D(a)    = 1/S sum_i -s_i phi*(-a_i, y_i)    - lam g*(U(a))
    U(a)    = 1/(lam S) sum_i s_i a_i x_i'      of shape (n_classes, n_features)

    with dual vectors a_i = e_{y_i} - p_i, p_i in the simplex.  With an intercept, a feasible `a`
    also satisfies sum_i s_i a_i = 0.  Made by ``Problem(X, y, "softmax")`` or "multiclass-hinge";
    targets are the class numbers 0, 1, ..., n_classes - 1.
    """

    n_classes: int = 0

    def _more_fields(self, y: np.ndarray) -> tuple[Any, ...]:
        return (int(y.max()) + 1,)

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return (self.shape[0], self.n_classes)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        return (self.n_classes, self.shape[1])

    def first_intercept(self) -> np.ndarray:
        """Return the intercept to start from: log-frequencies suit the softmax, and do no harm."""
        counts = self.share @ (self.y[:, None] == self.xp.arange(self.n_classes))
        return np.log(np.maximum(counts, 1e-3 / len(self.y)))

    def constant(self) -> np.ndarray:
        """Return the intercepts of a good constant model: log-frequencies, or the majority vote."""
        none = self.xp.zeros(self.n_classes)
        if not self.fit_intercept or math.isfinite(self.loss.smoothness):
            return self.first_intercept() if self.fit_intercept else none
        counts = self.share @ (self.y[:, None] == self.xp.arange(self.n_classes))
        majority = 1.0 * (counts == counts.max())
        return majority if float(counts.max()) > 0.5 else none

    def gradient(self, w: Any, b: Any = 0.0) -> np.ndarray:
        """Return the (sub-)gradient in W, with one more column for b with ``fit_intercept``."""
        W, b = self._vector(w), self.checked_intercept(b)
        slopes = -self.dual_from_scores(self.scores(W) + b)
        r = self.l1_ratio
        gradient = self.lam * ((1 - r) * W + r * np.sign(W) + self.dual_sum(slopes))
        if not self.fit_intercept:
            return gradient
        return np.column_stack([gradient, self.share @ slopes])

    def dual(self, alpha: Any) -> float:
        """Return D(alpha), which is -inf if alpha is not feasible."""
        alpha = self._dual_vector(alpha)
        p = self._votes(alpha)
        outside = np.any(p < 0) or np.abs(p.sum(axis=1) - 1).max() > 1e-9
        unbalanced = self.fit_intercept and np.abs(self.share @ alpha).max() > 1e-12
        if outside or unbalanced:
            return -math.inf
        return self._dual_value(alpha, self.dual_sum(alpha).ravel())

    def _mean_conjugate(self, alpha: np.ndarray) -> float:
        votes = self._votes(alpha)
        return self.over_rows(_conjugates, self.loss, self.y, self.share, votes)

    def best_intercept(self, z: Any, near: Any = 0.0, accuracy: float = 0.0) -> Any:
        """Return the intercepts that are near: for many classes those of a solver are kept."""
        return near

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Return W x_i for all rows, of shape (n_samples, n_classes)."""
        z = np.zeros((self.shape[0], self.n_classes))
        if not w.any():  # the start of most runs, certified before the data are read
            return z
        listed, padded = self.by_feature(w), np.empty(self.padded)
        for block in self.rows.blocks():
            _scores(self.rows, listed, z, padded, *block)
        return z

    def mean_loss(self, z: np.ndarray) -> float:
        return self.over_rows(_values, self.loss, self.y, self.share, z)

    def dual_from_scores(self, z: np.ndarray) -> np.ndarray:
        """Return a_i = -phi'(z_i) for all rows."""
        p = np.empty_like(z)
        self.over_rows(_set_votes, self.loss, self.y, z, p)
        return self.duals_of(p)

    def dual_point(self, z: np.ndarray, b: Any = 0.0) -> np.ndarray:
        """Return a feasible dual point for the scores z."""
        return self.feasible(self.dual_from_scores(z + b))

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        """Return alpha moved into its domain and, with an intercept, made to sum to zero.

        Votes for other classes are scaled down and given back to the row's own class, which
        cannot leave the simplex.  With an intercept the factors depend on the two classes only:
        the votes of class l for class k, summed over rows, must become a circulation; see
        `balancing_factors`.
        """
        p = self._votes(alpha)
        self.over_rows(_normalise, p)
        alpha = self.duals_of(p)
        return self.balanced(alpha, self.balance_sums(alpha)) if self.fit_intercept else alpha

    def balance_sums(self, alpha: np.ndarray) -> np.ndarray:
        return self.flow(alpha)

    def balanced(self, alpha: np.ndarray, sums: np.ndarray) -> np.ndarray:
        if is_balanced(sums):
            return alpha
        factors = self.xp.asarray(balancing_factors(sums))
        return self.duals_of(self._votes(alpha) * factors[self.y])

    def row_gaps(self, w: Any, b: Any, alpha: Any) -> np.ndarray:
        """Return what each row adds to the gap; with W = W(alpha) their sum is the whole gap."""
        W, alpha = self._vector(w), self.feasible(self._dual_vector(alpha))
        gaps = self.xp.empty(self.shape[0])
        data = (self.loss, self.y, self.share, self._votes(alpha), self.scores(W) + b)
        self.over_rows(set_row_gaps, *data, gaps)
        return gaps

    def to_weights(self, u: np.ndarray) -> np.ndarray:
        """Return the primal matrix of a dual sum U."""
        return super().to_weights(u.ravel()).reshape(u.shape)

    def dual_sum(self, alpha: np.ndarray) -> np.ndarray:
        """Return U(alpha)."""
        if not alpha.any():  # the start of most runs
            return self.xp.zeros(self.weight_shape)
        return self.gathered(self.share[:, None] * alpha / self.lam)

    def gathered(self, c: np.ndarray) -> np.ndarray:
        """Return sum_i c_i x_i' for coefficients of shape (n_samples, n_classes)."""
        u, padded = np.zeros(self.shape[1] * self.padded), np.zeros(self.padded)
        for block in self.rows.blocks():
            _add_rows(self.rows, c, u, padded, _IDENTITY, *block)
        return self.by_class(u)

    @property
    def padded(self) -> int:
        """Number of classes, rounded up to what kernels handle together."""
        return -(-self.n_classes // CLASSES) * CLASSES

    def by_feature(self, w: np.ndarray) -> np.ndarray:
        listed = _aligned_zeros(self.shape[1] * self.padded).reshape(-1, self.padded)
        listed[:, : self.n_classes] = w.T
        return listed.ravel()

    def by_class(self, u: np.ndarray) -> np.ndarray:
        listed = u.reshape(self.shape[1], self.padded)
        return np.ascontiguousarray(listed[:, : self.n_classes].T)

    def _votes(self, alpha: np.ndarray) -> np.ndarray:
        """Return e_y - alpha: votes for dual variables, and dual variables for votes."""
        p = np.empty_like(alpha)
        self.over_rows(_set_complements, self.y, alpha, p)
        return p

    def duals_of(self, p: np.ndarray) -> np.ndarray:
        """Return e_y - p for rows p of the simplex, from the votes for the other classes alone.

        1 - p_y would lose the digits of small votes, which long rows need.
        """
        alpha = np.empty_like(p)
        self.over_rows(_set_duals, self.y, p, alpha)
        return alpha

    def row_terms(self, z: np.ndarray, b: Any, alpha: np.ndarray) -> Terms:
        """Return what the rows add to P, to the gap, and to the bounds of its rounding."""
        votes = self._votes(alpha)
        data = (self.loss, self.y, self.share, votes, z + b)
        value, excess, mass, energy, cross = self.over_rows(_row_terms, *data)
        flow = self.flow(alpha) if self.fit_intercept else 0.0
        return Terms(value, excess, flow, mass, energy, cross)

    def flow(self, alpha: np.ndarray) -> np.ndarray:
        """Return the votes of each class for each other class, summed over its rows."""
        flow = np.zeros((self.n_classes, self.n_classes))
        _add_votes(self.y, self.share, alpha, flow)
        return flow

    def precise_sums(
        self,
        w: np.ndarray,
        b: Any,
        alpha: np.ndarray,
        rounded: np.ndarray,
        missing: Any,
        doubt: float = 0.0,
        rest: np.ndarray | None = None,
        b_low: Any = 0.0,
    ) -> PreciseSums:
        z, dual, off = self._precise_scores(w, b, b_low), self.precise_dual_parts(alpha), 0.0
        whole = alpha if rest is None else alpha + rest
        terms = self.row_terms(z, 0.0, whole)
        if math.isinf(self.loss.smoothness):
            off_by = self._doubt(np.abs(z).max(axis=1), w, b, rounded) + doubt
            given = (self.loss, self.y, self.share, self._votes(whole), z, off_by)
            off, excess = self.over_rows(_outward_terms, *given)
            terms = dataclasses.replace(terms, excess=max(terms.excess, excess))
        if rest is not None:
            dual = joined(dual, self.precise_dual_parts(rest))
        squares, ranges = float((self.share @ (z * z)).sum()), float(self.share @ np.ptp(z, axis=1))
        longest = 1.01 * math.sqrt(float(self.sqnorms.max(initial=0.0)))
        return PreciseSums(dual, terms, off, squares, ranges, (NO_ROW, NO_ROW), longest)

    def precise_balance(self, alpha: np.ndarray) -> np.ndarray:
        return precise_votes(self.y, self._exact_weights[0], alpha)

    def missing_balance(self, numbers: np.ndarray, rows: int, mass: float) -> Any:
        if not self.fit_intercept:
            return 0.0
        missing, off = imbalance(numbers, rows)
        return (np.abs(missing) + off) * (2.0 * self.lam / self._exact_weights[1])

    def lack(self, w: np.ndarray, alpha: np.ndarray, rest: np.ndarray) -> np.ndarray:
        _, scale = self._exact_weights
        u = self.precise_dual_sum_of(alpha) + self.precise_dual_sum_of(rest)
        off = scale * (u - self.penalty_slope(w, u))
        if self.fit_intercept:
            votes = np.concatenate([self.precise_balance(alpha), self.precise_balance(rest)])
            off = np.column_stack([off, imbalance(votes, len(alpha))[0]])
        return off.ravel()

    def room(self, alpha: np.ndarray) -> np.ndarray:
        return np.maximum(self._votes(alpha), 0.0)

    def moves(self, alpha: np.ndarray) -> Moves:
        """Return how far votes may move between each row's largest one and the others."""
        votes = self.room(alpha)
        places, top = np.arange(len(votes)), votes.argmax(axis=1)
        room = np.minimum(votes, votes[places, top][:, None])
        room[places, top] = 0.0
        room[self.share == 0.0] = 0.0
        row, other = np.nonzero(room > 0.0)
        return Moves(row, other, top[row], room[row, other])

    def refined(
        self,
        w: np.ndarray,
        b: Any,
        alpha: np.ndarray,
        accuracy: float,
        tolerated: float,
        rest: np.ndarray | None = None,
        b_low: Any = 0.0,
    ) -> Iterator[tuple[np.ndarray, Proof, np.ndarray | None, Any]]:
        """Yield weights, what is proved of them, and what to add to alpha and to b for it.

        With kinks, votes are zero at the optimum that are almost zero close to it: these are tried
        as zero, too.
        """
        yield from super().refined(w, b, alpha, accuracy, tolerated, rest, b_low)
        if math.isfinite(self.loss.smoothness):
            return
        votes = np.maximum(self._votes(alpha), 0.0)
        for almost in ALMOST_ZERO:
            settled = np.where(votes <= almost * votes.sum(axis=1, keepdims=True), 0.0, votes)
            settled /= settled.sum(axis=1, keepdims=True)
            yield from super().refined(w, b, self.duals_of(settled), accuracy, tolerated)

    def _precise_scores(self, w: np.ndarray, b: Any, b_low: Any = 0.0) -> np.ndarray:
        none, shape = np.zeros(self.shape[0]), self.n_classes
        models = zip(w, np.broadcast_to(b, shape), np.broadcast_to(b_low, shape), strict=True)
        columns = [precise_scores(self.rows, v, high, none, low) for v, high, low in models]
        return np.ascontiguousarray(np.transpose(columns))

    def precise_dual_parts(self, alpha: np.ndarray) -> np.ndarray:
        weight, rest = self._exact_weights[0], precise_rest(alpha)
        sums = []
        for k, a in enumerate(np.ascontiguousarray(alpha.T)):
            more = np.where(self.y == k, rest, 0.0)  # which the sum of the other votes has lost
            own, lost = (precise_dual_sum(self.rows, weight, part) for part in (a, more))
            sums.append(joined(own, lost))
        return np.stack(sums, axis=1)

    def _vector(self, w: Any) -> np.ndarray:
        return self._matrix(w, (self.n_classes, self.shape[1]), "w")

    def _dual_vector(self, alpha: Any) -> np.ndarray:
        return self._matrix(alpha, (self.shape[0], self.n_classes), "alpha")

    def _matrix(self, a: Any, shape: tuple[int, int], name: str) -> np.ndarray:
        a = np.ascontiguousarray(a, dtype=np.float64)
        if a.shape != shape or not np.isfinite(a).all():
            raise ValueError(f"{name} must be a finite matrix of shape {shape}, got {a.shape}")
        return a


def _aligned_zeros(size: int) -> np.ndarray:
    """Return zeros from the beginning of a cache line on: lanes that cross one take two reads."""
    room = np.zeros(size + 7)
    start = -room.ctypes.data % 64 // 8
    return room[start : start + size]


HARDLY_ANY = 1e-12  # of all votes: those of a class that may be dropped,
UNEVEN = 1e-6  # if so much of them is not balanced
_KEPT = 0.9  # share of the flow that balancing must keep, else a linear program is asked


def balancing_factors(flow: np.ndarray) -> np.ndarray:
    """Return factors in [0, 1] that turn a matrix of flows into one with equal in- and outflows.

    A diagonal similarity finds them where flows are nearly balanced, as near an optimum.  Where
    that fails or loses much of the flow, a linear program finds the largest circulation.
    """
    circling = np.where(_is_on_cycles(flow), flow, 0.0)  # no other flow can be balanced
    circling = _without_noise(circling)
    if is_balanced(circling):
        return (circling > 0.0) * 1.0
    best = circling * _similarity_factors(circling)
    if not _is_circulation(best) or best.sum() < _KEPT * circling.sum():
        # a linear program is exact to some ten digits only, cycles are balanced one by one
        largest, rough = map(_sum_of_cycles, (_largest_circulation(circling), circling))
        largest = max(largest, rough, key=np.sum)
        if not _is_circulation(best) or largest.sum() > best.sum():
            best = largest
    return np.minimum(np.divide(best, flow, out=np.zeros_like(flow), where=flow > 0), 1.0)


def is_balanced(flow: np.ndarray) -> bool:
    """Tell whether in- and outflows of each class are equal, but for rounding."""
    into, out = flow.sum(axis=0), flow.sum(axis=1)
    return bool(np.all(np.abs(out - into) <= ROUNDING_OF_SUMS * (out + into)))


def _without_noise(flow: np.ndarray) -> np.ndarray:
    """Return flows without those of classes that have hardly any, and not even balanced ones.

    Rows of such classes are decided.  What is left of their votes is rounding of those of others:
    to balance it takes large parts of it, to drop it costs nothing that shows.
    """
    flow = flow.copy()
    for _ in range(len(flow)):
        into, out = flow.sum(axis=0), flow.sum(axis=1)
        noise = (out + into <= HARDLY_ANY * flow.sum()) & (
            np.abs(out - into) > UNEVEN * (out + into)
        )
        if not noise.any():
            break
        flow[noise] = flow[:, noise] = 0.0
    return flow


def _is_circulation(flow: np.ndarray) -> bool:
    """Tell whether in- and outflows are equal, but for rounding."""
    return bool(np.abs(flow.sum(axis=1) - flow.sum(axis=0)).max() <= 1e-14 * flow.sum())


def _is_on_cycles(flow: np.ndarray) -> np.ndarray:
    """Tell for each pair of classes whether there is a flow, and a way back."""
    there = flow > 0
    if (there | np.eye(len(flow), dtype=bool)).all():  # near an optimum, as a rule
        return there
    from scipy.sparse import csgraph

    _, part = csgraph.connected_components(there, connection="strong")
    return there & (part[:, None] == part)


def _similarity_factors(flow: np.ndarray) -> np.ndarray:
    """Balance a matrix by a diagonal similarity (Osborne, 1960), if that is possible."""
    scale = np.ones(len(flow))
    for _ in range(200):
        flows = flow * scale[:, None] / scale
        out, into = flows.sum(axis=1), flows.sum(axis=0)
        if np.abs(out - into).max() <= 1e-15 * out.sum():
            break
        for k in range(len(flow)):
            flows = flow * scale[:, None] / scale
            out_k, into_k = flows[k].sum(), flows[:, k].sum()
            if out_k > 0 and into_k > 0:
                scale[k] *= math.sqrt(into_k / out_k)
    factors = np.where(flow > 0, scale[:, None] / scale, 0.0)
    top = factors.max()
    return factors / top if top > 0 else factors


def _largest_circulation(flow: np.ndarray) -> np.ndarray:
    """Return the flows f <= flow with equal in- and outflows and the largest sum."""
    from scipy import optimize, sparse

    sources, sinks = np.nonzero(flow)
    if not len(sources):
        return np.zeros_like(flow)
    places = np.arange(len(sources))
    ends = np.concatenate([sources, sinks]), np.concatenate([places, places])
    signs = np.repeat([1.0, -1.0], len(sources))
    conservation = sparse.csr_matrix((signs, ends), (len(flow), len(sources)))
    limits, unit = flow[sources, sinks], float(flow.max())
    bounds = np.column_stack([np.zeros(len(limits)), limits / unit])
    zeros = np.zeros(len(flow))
    found = optimize.linprog(-np.ones(len(limits)), A_eq=conservation, b_eq=zeros, bounds=bounds)
    best = np.zeros_like(flow)
    if found.status == 0:
        best[sources, sinks] = np.clip(unit * found.x, 0.0, limits)
    return best


def _sum_of_cycles(flow: np.ndarray) -> np.ndarray:
    """Return a circulation below a matrix of flows, which follows the largest flows around."""
    rest, total = flow.copy(), np.zeros_like(flow)
    while rest.any():
        at = int(np.argmax(rest.max(axis=1)))
        path = [at]
        while rest[at].any():
            at = int(np.argmax(rest[at]))
            if at in path:
                ring = path[path.index(at) :]
                steps = (ring, [*ring[1:], ring[0]])
                least = rest[steps].min()
                total[steps] += least
                rest[steps] -= least  # which is zero for one of them
                break
            path.append(at)
        else:
            rest[:, at] = 0.0  # no way out of this class
    return total


@kernel
def _scores(rows, W, z, padded, start, stop):
    for i in range(start, stop):
        for k in range(len(padded)):
            padded[k] = 0.0
        rows.add_scores(padded, i, W)
        for k in range(z.shape[1]):
            z[i, k] = padded[k]


@kernel
def _add_rows(rows, c, u, padded, identity, start, stop):
    for i in range(start, stop):
        moved = False
        for k in range(c.shape[1]):
            padded[k] = c[i, k]
            moved = moved or c[i, k] != 0.0
        if moved:
            rows.add_outer(u, u, i, padded, identity)


@rowwise(sums=0)
def _normalise(p, start, stop):
    """Move rows of p into the simplex, as those that left it by rounding alone need"""
    for i in range(start, stop):
        total = 0.0
        for k in range(p.shape[1]):
            p[i, k] = max(p[i, k], 0.0)
            total += p[i, k]
        for k in range(p.shape[1]):
            p[i, k] /= total


@rowwise(sums=0)
def _set_complements(y, alpha, p, start, stop):
    """p_i = e_y - alpha_i"""
    for i in range(start, stop):
        for k in range(p.shape[1]):
            p[i, k] = -alpha[i, k]
        p[i, y[i]] += 1.0


@rowwise(sums=0)
def _set_duals(y, p, alpha, start, stop):
    """alpha_i = e_y - p_i, whose own class has the sum of the other votes"""
    for i in range(start, stop):
        others = 0.0
        for k in range(p.shape[1]):
            alpha[i, k] = -p[i, k]
            others += p[i, k] if k != y[i] else 0.0
        alpha[i, y[i]] = min(others, 1.0)


@rowwise(sums=1)
def _values(loss, y, share, z, start, stop):
    """sum_i share_i phi(z_i)"""
    total = 0.0
    for i in range(start, stop):
        total += share[i] * loss.vector_value(z[i], y[i])
    return total


@rowwise(sums=1)
def _conjugates(loss, y, share, p, start, stop):
    total = 0.0
    for i in range(start, stop):
        total += share[i] * loss.vector_conjugate(p[i], y[i])
    return total


@rowwise(sums=0)
def _set_votes(loss, y, z, p, start, stop):
    for i in range(start, stop):
        loss.votes(z[i], y[i], p[i])


@kernel
def _add_votes(y, share, alpha, flow):
    for i in range(len(y)):
        for k in range(alpha.shape[1]):
            if k != y[i]:
                flow[y[i], k] -= share[i] * alpha[i, k]


@rowwise(sums=5)
def _row_terms(loss, y, share, p, z, start, stop):
    """The sums of `gap.Terms` but for the balance: a_y is the sum of the other votes"""
    value, excess, mass, energy, cross = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(start, stop):
        if share[i] > 0.0:
            value += share[i] * loss.vector_value(z[i], y[i])
            others, squares = 0.0, 0.0
            for k in range(z.shape[1]):
                value += 0.0 * z[i, k]  # which must be finite
                if k != y[i]:
                    others += p[i, k]
                    squares += p[i, k] * p[i, k]
                    cross += share[i] * abs(p[i, k] * (z[i, k] - z[i, y[i]]))
            mass += 2.0 * share[i] * others
            energy += share[i] * (others * others + squares)
            term = loss.vector_excess(p[i], z[i], y[i])
            excess += share[i] * term if not term < 0.0 else 0.0
    return value, excess, mass, energy, cross


@rowwise(sums=2)
def _outward_terms(loss, y, share, p, z, doubt, start, stop):
    """How far the losses may be off, and their part of the gap, where scores are off by doubt"""
    off, excess = 0.0, 0.0
    for i in range(start, stop):
        if share[i] > 0.0:
            lost, worst = loss.within(p[i], z[i], y[i], doubt[i])
            off += share[i] * lost
            excess += share[i] * worst
    return off, excess


@rowwise(sums=0)
def set_row_gaps(loss, y, share, p, z, gaps, start, stop):
    """Fill gaps with what each row adds to the gap"""
    for i in range(start, stop):
        gaps[i] = share[i] * loss.vector_excess(p[i], z[i], y[i])

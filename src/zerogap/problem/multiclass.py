"""The multiclass problem: a weight vector and an intercept per class, a score vector per row."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.kernels.precise import imbalance, joined, precise_dual_sum, precise_rest, precise_votes
from zerogap.penalties import L2
from zerogap.problem.circulation import balancing_factors, is_balanced
from zerogap.problem.gap import LOST_LENGTH, UNIT, Terms
from zerogap.problem.one_score import Problem
from zerogap.problem.proving import NO_ROW, PreciseSums, Proof
from zerogap.problem.refining import Moves
from zerogap.problem.vote_sums import (
    add_rows,
    add_votes,
    normalise,
    set_complements,
    set_duals,
    set_row_gaps,
    set_scores,
    set_votes,
    sum_outward_terms,
    sum_row_terms,
    sum_values,
    sum_vote_conjugates,
)
from zerogap.problem.votes import precise_differences
from zerogap.rows import CLASSES, DenseRows

_IDENTITY = L2()
# Weights from which they leave the first caches: 20 000 x 512 with 100 classes take 36 ms by BLAS
# and 101 by loops, and 256 x 10 the same by both.
MANY_WEIGHTS = 4000
ALMOST_ZERO = (1e-9, 1e-6)  # votes of a row that may be zero at the optimum


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
        return np.log(np.maximum(self._class_shares, 1e-3 / len(self.y)))

    def constant(self) -> np.ndarray:
        """Return the intercepts of a good constant model: log-frequencies, or the majority vote."""
        none = self.xp.zeros(self.n_classes)
        if not self.fit_intercept or math.isfinite(self.loss.smoothness):
            return self.first_intercept() if self.fit_intercept else none
        largest = float(self._class_shares.max())
        return 1.0 * (self._class_shares == largest) if largest > 0.5 else none

    @functools.cached_property
    def _class_shares(self) -> np.ndarray:
        """Shares of the rows of each class."""
        return self.xp.bincount(self.y, self.share, self.n_classes)

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
        return self.over_rows(sum_vote_conjugates, self.loss, self.y, self.share, votes)

    def best_intercept(self, z: Any, near: Any = 0.0, accuracy: float = 0.0) -> Any:
        """Return the intercepts that are near: for many classes those of a solver are kept."""
        return near

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Return W x_i for all rows, of shape (n_samples, n_classes)."""
        z = np.zeros((self.shape[0], self.n_classes))
        if not w.any():  # the start of most runs, certified before the data are read
            return z
        if self.by_matrices:
            return self.rows.product(w)
        listed, padded = self.by_feature(w), np.empty(self.padded)
        for block in self.rows.blocks():
            set_scores(self.rows, listed, z, padded, *block)
        return z

    def mean_loss(self, z: np.ndarray) -> float:
        return self.over_rows(sum_values, self.loss, self.y, self.share, z)

    def dual_from_scores(self, z: np.ndarray) -> np.ndarray:
        """Return a_i = -phi'(z_i) for all rows."""
        p = np.empty_like(z)
        self.over_rows(set_votes, self.loss, self.y, z, p)
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
        alpha = self._normalised(alpha)
        return self.balanced(alpha, self.balance_sums(alpha)) if self.fit_intercept else alpha

    def nearly_feasible(self, alpha: np.ndarray) -> np.ndarray:
        alpha = self._normalised(alpha)
        if not self.fit_intercept:
            return alpha
        return self._balanced(alpha, self.balance_sums(alpha), largest=False)

    def _normalised(self, alpha: np.ndarray) -> np.ndarray:
        """Return alpha with votes that sum to one."""
        p = self._votes(alpha)
        self.over_rows(normalise, p)
        return self.duals_of(p)

    def balance_sums(self, alpha: np.ndarray) -> np.ndarray:
        return self.flow(alpha)

    def balanced(self, alpha: np.ndarray, sums: np.ndarray) -> np.ndarray:
        return self._balanced(alpha, sums, largest=True)

    def _balanced(self, alpha: np.ndarray, sums: np.ndarray, largest: bool) -> np.ndarray:
        if is_balanced(sums):
            return alpha
        factors = self.xp.asarray(balancing_factors(sums, largest))
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
        if self.by_matrices:
            return self.rows.transposed_product(c)
        u, padded = np.zeros(self.shape[1] * self.padded), np.zeros(self.padded)
        for block in self.rows.blocks():
            add_rows(self.rows, c, u, padded, _IDENTITY, *block)
        return self.by_class(u)

    @property
    def by_matrices(self) -> bool:
        """Whether products of matrices are faster than loops over the rows."""
        return isinstance(self.rows, DenseRows) and math.prod(self.weight_shape) >= MANY_WEIGHTS

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
        self.over_rows(set_complements, self.y, alpha, p)
        return p

    def duals_of(self, p: np.ndarray) -> np.ndarray:
        """Return e_y - p for rows p of the simplex, from the votes for the other classes alone.

        1 - p_y would lose the digits of small votes, which long rows need.
        """
        alpha = np.empty_like(p)
        self.over_rows(set_duals, self.y, p, alpha)
        return alpha

    def row_terms(self, z: np.ndarray, b: Any, alpha: np.ndarray) -> Terms:
        """Return what the rows add to P, to the gap, and to the bounds of its rounding."""
        votes = self._votes(alpha)
        data = (self.loss, self.y, self.share, votes, z + b)
        value, excess, mass, energy, cross = self.over_rows(sum_row_terms, *data)
        flow = self.flow(alpha) if self.fit_intercept else 0.0
        return Terms(value, excess, flow, mass, energy, cross)

    def flow(self, alpha: np.ndarray) -> np.ndarray:
        """Return the votes of each class for each other class, summed over its rows."""
        flow = np.zeros((self.n_classes, self.n_classes))
        add_votes(self.y, self.share, alpha, flow)
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
        z, dual = self._precise_scores(w, b, b_low), self.precise_dual_parts(alpha)
        whole = alpha if rest is None else alpha + rest
        terms = self.row_terms(z, 0.0, whole)
        # a difference is one of two scores, of which each is off by so much
        off_by = 2.0 * (self._doubt(np.zeros(len(z)), w, b, rounded) + doubt)
        off_by = off_by[:, None] + 4.0 * UNIT * np.abs(z)
        given = (self.loss, self.y, self.share, self._votes(whole), z, off_by)
        off, excess = self.over_rows(sum_outward_terms, *given)
        terms = dataclasses.replace(terms, excess=max(terms.excess, excess))
        if rest is not None:
            dual = joined(dual, self.precise_dual_parts(rest))
        squares, ranges = float((self.share @ (z * z)).sum()), float(self.share @ np.ptp(z, axis=1))
        longest = 1.01 * math.sqrt(float(self.sqnorms.max(initial=0.0))) + LOST_LENGTH
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
        """Return differences from the largest score of each row, rounded once."""
        b, b_low = (np.broadcast_to(part, self.n_classes) for part in (b, b_low))
        return precise_differences(self.rows, w, b, b_low)

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


Problem.joint = MulticlassProblem

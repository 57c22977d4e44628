"""What a model and a dual point prove: from bounds of norms to products in twice the precision."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from zerogap.certificate import Certificate
from zerogap.gap import (
    UNIT,
    Errors,
    Evaluation,
    Sizes,
    Terms,
    conclude,
    displaced,
    evaluate,
    gamma,
    precise_errors,
)
from zerogap.losses import Loss
from zerogap.penalties import L2, ElasticNet
from zerogap.precise import precise_dual_sum, precise_scores, precise_sum
from zerogap.refining import Moves
from zerogap.row_sums import set_domain, sum_outward_terms, sum_penalty_terms


class Proof(NamedTuple):
    """A model with its best intercept, and what proves how far it is from the optimum."""

    b: Any
    alpha: Any  # feasible
    primal: float
    gap: float
    slack: float = math.nan  # the part of the gap that w != w(alpha) costs; NaN if not known
    z: Any = None  # scores of the training rows, without b; None if not kept
    rounding: float = 0.0  # the part of the gap that bounds rounding
    blur: float = 0.0  # how far `primal` may be from P, by rounding

    @classmethod
    def of(cls, found: Evaluation, b: Any, alpha: Any, z: Any = None) -> Proof:
        """Return the proof that an evaluation is."""
        return cls(b, alpha, found.primal, found.gap, found.slack, z, found.rounding, found.blur)

    @property
    def dual(self) -> float:
        """A lower bound of D, and so of every model's objective."""
        return self.primal - self.gap - self.blur

    @property
    def certificate(self) -> Certificate:
        """The proof's numbers."""
        return Certificate(self.primal, self.dual, self.gap, rounding=self.rounding)


class Proving:
    """The part of a problem that certifies; the rest is `zerogap.problem.Problem`."""

    rows: Any
    y: np.ndarray
    share: np.ndarray
    sqnorms: np.ndarray
    loss: Loss
    penalty: L2 | ElasticNet
    lam: float
    fit_intercept: bool
    origin: np.ndarray
    weight: np.ndarray
    shape: Any
    on_device: Any
    dual_sum: Any
    row_terms: Any
    over_rows: Any
    over_features: Any
    _mean_conjugate: Any
    _penalty_conjugate: Any

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def prove(
        self,
        w: np.ndarray,
        b: Any,
        z: np.ndarray,
        alpha: np.ndarray,
        tolerated: float = 0.0,
        rest: np.ndarray | None = None,
        doubt: float = 0.0,
        terms: Terms | None = None,
    ) -> Proof:
        """Return what (w, b), with the scores z of w, and a feasible alpha prove.

        The rows' `terms` need not be given.

        Where rounding might be more than the tolerated share of P, and more than some of the gap,
        better bounds of it are tried, and then more precise arithmetic.  A `rest` that is to be
        added to alpha, see `zerogap.refining`, is tried too.  `doubt` is how far b may be from the
        one that is meant.
        """
        u, terms = self.dual_sum(alpha), self.row_terms(z, b, alpha) if terms is None else terms
        sizes = Sizes(self.shape[0], self.rows.width, self._length)
        penalty = self.over_features(sum_penalty_terms, self.penalty, w.ravel(), u.ravel())

        def conjugates() -> tuple[float, float]:
            return self._mean_conjugate(alpha), self._penalty_conjugate(u)

        found, errors = conclude(self, sizes, terms, w, b, penalty, u, conjugates)
        if found.is_coarse(tolerated):
            sizes = sizes._replace(columns=self._column_sizes)
            found, errors = conclude(self, sizes, terms, w, b, penalty, u, conjugates)
        found = displaced(self, found, doubt)
        given = (w, b, alpha, terms, sizes, errors, doubt)
        if found.is_coarse(tolerated) and not self.on_device:
            found = min(found, self._precisely(*given), key=lambda e: e.gap)
        if rest is not None:
            found = min(found, self._precisely(*given, rest), key=lambda e: e.gap)
        return Proof.of(found, b, alpha, z)

    def _precisely(
        self,
        w: np.ndarray,
        b: Any,
        alpha: np.ndarray,
        terms: Terms,
        sizes: Sizes,
        rough: Errors,
        doubt: float,
        rest: np.ndarray | None = None,
    ) -> Evaluation:
        """Return P and the gap from scores and a dual sum in twice the precision.

        The dual point is alpha, or alpha + rest.
        """
        z, u = self._precise_scores(w, b), self.precise_dual_sum_of(alpha)
        if rest is not None:
            u = u + self.precise_dual_sum_of(rest)
        score = math.sqrt(float((self.share @ (z * z)).sum()))
        once = sizes._replace(rows=1, width=1, columns=self._rounded_columns)
        rounded = once.errors(Terms(0.0, 0.0, energy=terms.energy), w, 0.0, self.lam)
        length = math.sqrt(float((u * u).sum()))
        errors = precise_errors(rough, sizes, rounded, score, length)
        if not len(self.weight) and self.share.min() < self.share.max():
            errors = errors._replace(dual_sum=errors.dual_sum + 4.0 * UNIT * rough.lengths)
        errors = errors._replace(scores=errors.scores + doubt)
        terms, errors = self._outward(w, b, z, alpha, errors, doubt, rest)
        cost, slack = self.over_features(sum_penalty_terms, self.penalty, w.ravel(), u.ravel())
        return evaluate(self, terms, cost, slack, length, sizes.rows, errors, b)

    def _precise_scores(self, w: np.ndarray, b: Any) -> np.ndarray:
        """Return x_i.w + b, less the targets of a loss of residuals, rounded once."""
        aim = self.y if self.loss.task == "regression" else np.zeros(self.shape[0])
        return precise_scores(self.rows, w, float(b), aim)

    def precise_dual_sum_of(self, alpha: np.ndarray) -> np.ndarray:
        """Return u(alpha), rounded as if it had no large terms that cancel."""
        return precise_dual_sum(self.rows, *self._exact_weights, alpha)

    def lack(self, w: np.ndarray, alpha: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Return by how much lam S u(alpha + rest) differs from what w needs, and from zero sums.

        One vector: features, and then the intercept if it is free; for many classes one of these
        after another.
        """
        weight, scale = self._exact_weights
        u = self.precise_dual_sum_of(alpha) + self.precise_dual_sum_of(rest)
        off = scale * (u - self.penalty_slope(w, u))
        if self.fit_intercept:
            off = np.append(off, precise_sum(weight, alpha) + precise_sum(weight, rest))
        return off

    def penalty_slope(self, w: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the slopes of g at w that are the nearest ones to u."""
        r = getattr(self.penalty, "l1_ratio", 0.0)
        return (1.0 - r) * w + np.where(w == 0.0, np.clip(u, -r, r), r * np.sign(w))

    def moves(self, alpha: np.ndarray) -> Moves:
        """Return how far dual variables may move."""
        low, high = np.empty_like(alpha), np.empty_like(alpha)
        self.over_rows(set_domain, self.loss, self.y, low, high)
        room = np.minimum(np.minimum(alpha - low, high - alpha), np.maximum(np.abs(alpha), 1.0))
        room[self.share == 0.0] = 0.0
        row = np.flatnonzero(room > 0.0)
        return Moves(row, row, row, room[row])

    @functools.cached_property
    def _exact_weights(self) -> tuple[np.ndarray, float]:
        """Weights of the dual sum's terms, and what it is to be divided by."""
        if not len(self.weight):
            return self.share, self.lam
        return self.weight, self.lam * math.fsum(self.weight)

    def _outward(
        self,
        w: np.ndarray,
        b: Any,
        z: np.ndarray,
        alpha: np.ndarray,
        errors: Errors,
        doubt: float,
        rest: np.ndarray | None = None,
    ) -> tuple[Terms, Errors]:
        """Return the rows' terms at the worse ends of precise scores, and no error of scores."""
        y, off_by = self.y, self._doubt(np.abs(z), w, b) + doubt
        if self.loss.task == "regression":
            y = np.zeros_like(y)  # scores are seen from there
        whole, rounded_off = (alpha, 0.0) if rest is None else (alpha + rest, 2.0 * UNIT)
        given = (self.loss, y, self.share, whole, z, off_by, rounded_off)
        *sums, off = self.over_rows(sum_outward_terms, *given)
        errors = errors._replace(scores=0.0, value=off)
        if self.fit_intercept:
            errors = self._balanced_by_one_row(y, z, alpha, errors, rest)
        return Terms(*sums), errors

    def _doubt(self, sizes: np.ndarray, w: np.ndarray, b: Any) -> np.ndarray:
        """Return how far each row's precise scores, of these sizes, may be off."""
        twice = gamma(self.rows.width + 6) ** 2
        squares = np.square(w)
        length = math.sqrt(float(squares.sum(axis=-1).max()))
        rounded = squares[..., self._rounded_columns > 0.0]
        per_length = twice * length + 2.0 * UNIT * math.sqrt(float(rounded.sum(axis=-1).max()))
        doubt = 2.0 * UNIT * sizes + per_length * np.sqrt(self.sqnorms)
        doubt += twice * float(np.abs(b).max())
        return doubt + twice * np.abs(self.y) if self.loss.task == "regression" else doubt

    def _balanced_by_one_row(
        self,
        y: np.ndarray,
        z: np.ndarray,
        alpha: np.ndarray,
        errors: Errors,
        rest: np.ndarray | None = None,
    ) -> Errors:
        """Return errors of the point in which one row, as short as can be, makes a sum to zero."""
        weight, scale = self._exact_weights
        excess, size = precise_sum(weight, alpha), float(weight @ np.abs(alpha))
        if rest is not None:
            excess += precise_sum(weight, rest)
        doubt = 2.0 * UNIT * abs(excess) + gamma(self.shape[0] + 8) ** 2 * size
        cost = moved = 0.0
        for sign in (-1.0, 1.0):  # both, where it is not known which one is too much
            over = (sign * excess + doubt) * self.lam / scale
            if not over > 0.0:
                continue
            able = sign * self.share * alpha >= 2.0 * over
            if not able.any():
                return errors
            k = int(np.argmin(np.where(able, self.sqnorms, np.inf)))
            cost = max(cost, over / abs(alpha[k]) * self.loss.value(z[k], y[k]))
            moved = max(moved, over * math.sqrt(self.sqnorms[k]) / self.lam)
        return errors._replace(
            excess=2.0 * cost, dual_sum=errors.dual_sum + 2.0 * moved, balanced=True
        )

    @functools.cached_property
    def _rounded_columns(self) -> np.ndarray:
        """Root mean squares of columns whose entries were rounded by a shift, zero for others.

        A difference of two numbers is exact if neither is more than twice the other.
        """
        sizes = self._column_sizes.copy()
        if not len(self.origin):
            return 0.0 * sizes
        exact = self.rows.largest_entries() <= 0.5 * np.abs(self.origin)
        sizes[exact | (self.origin == 0.0)] = 0.0
        return sizes

    @functools.cached_property
    def _length(self) -> float:
        """Root of the mean of |x_i|^2."""
        return math.sqrt(float(self.share @ self.sqnorms))

    @functools.cached_property
    def _column_sizes(self) -> np.ndarray:
        """Roots of the mean squares of the columns."""
        return np.sqrt(self.rows.square_sums(self.share))

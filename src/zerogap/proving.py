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
    evaluate,
    gamma,
    precise_errors,
)
from zerogap.losses import Loss
from zerogap.penalties import L2, ElasticNet
from zerogap.precise import precise_dual_sum, precise_scores, precise_sum
from zerogap.row_sums import sum_outward_terms, sum_penalty_terms


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
        self, w: np.ndarray, b: Any, z: np.ndarray, alpha: np.ndarray, tolerated: float = 0.0
    ) -> Proof:
        """Return what (w, b), with the scores z of w, and a feasible alpha prove.

        Where rounding might be more than the tolerated share of P, and more than some of the gap,
        better bounds of it are tried, and then more precise arithmetic.
        """
        u, terms = self.dual_sum(alpha), self.row_terms(z, b, alpha)
        sizes = Sizes(self.shape[0], self.rows.width, self._length)
        penalty = self.over_features(sum_penalty_terms, self.penalty, w.ravel(), u.ravel())

        def conjugates() -> tuple[float, float]:
            return self._mean_conjugate(alpha), self._penalty_conjugate(u)

        found, errors = conclude(self, sizes, terms, w, b, penalty, u, conjugates)
        if found.is_coarse(tolerated):
            sizes = sizes._replace(columns=self._column_sizes)
            found, errors = conclude(self, sizes, terms, w, b, penalty, u, conjugates)
        if found.is_coarse(tolerated) and not self.on_device:
            found = min(
                found, self._precisely(w, b, alpha, terms, sizes, errors), key=lambda e: e.gap
            )
        return Proof.of(found, b, alpha, z)

    def _precisely(
        self,
        w: np.ndarray,
        b: Any,
        alpha: np.ndarray,
        terms: Terms,
        sizes: Sizes,
        rough: Errors,
    ) -> Evaluation:
        """Return P and the gap from scores and a dual sum in twice the precision."""
        z, u = self._precise_scores(w, b), self.precise_dual_sum_of(alpha)
        score = math.sqrt(float((self.share @ (z * z)).sum()))
        once = sizes._replace(rows=1, width=1, columns=self._rounded_columns)
        rounded = once.errors(Terms(0.0, 0.0, energy=terms.energy), w, 0.0, self.lam)
        length = math.sqrt(float((u * u).sum()))
        errors = precise_errors(rough, sizes, rounded, score, length)
        if not len(self.weight) and self.share.min() < self.share.max():
            errors = errors._replace(dual_sum=errors.dual_sum + 4.0 * UNIT * rough.lengths)
        terms, errors = self._outward(w, b, z, alpha, errors)
        cost, slack = self.over_features(sum_penalty_terms, self.penalty, w.ravel(), u.ravel())
        return evaluate(self, terms, cost, slack, length, sizes.rows, errors, b)

    def _precise_scores(self, w: np.ndarray, b: Any) -> np.ndarray:
        """Return x_i.w + b, less the targets of a loss of residuals, rounded once."""
        aim = self.y if self.loss.task == "regression" else np.zeros(self.shape[0])
        return precise_scores(self.rows, w, float(b), aim)

    def precise_dual_sum_of(self, alpha: np.ndarray) -> np.ndarray:
        """Return u(alpha), rounded as if it had no large terms that cancel."""
        return precise_dual_sum(self.rows, *self._exact_weights, alpha)

    @functools.cached_property
    def _exact_weights(self) -> tuple[np.ndarray, float]:
        """Weights of the dual sum's terms, and what it is to be divided by."""
        if not len(self.weight):
            return self.share, self.lam
        return self.weight, self.lam * math.fsum(self.weight)

    def _outward(
        self, w: np.ndarray, b: Any, z: np.ndarray, alpha: np.ndarray, errors: Errors
    ) -> tuple[Terms, Errors]:
        """Return the rows' terms at the worse ends of precise scores, and no error of scores."""
        y, twice = self.y, gamma(self.rows.width + 6) ** 2
        rounded = w[self._rounded_columns > 0.0]
        per_length = twice * math.sqrt(float(w @ w)) + 2.0 * UNIT * math.sqrt(rounded @ rounded)
        doubt = 2.0 * UNIT * np.abs(z) + per_length * np.sqrt(self.sqnorms) + twice * abs(b)
        if self.loss.task == "regression":
            doubt += twice * np.abs(y)
            y = np.zeros_like(y)  # scores are seen from there
        *sums, off = self.over_rows(sum_outward_terms, self.loss, y, self.share, alpha, z, doubt)
        errors = errors._replace(scores=0.0, value=off)
        if self.fit_intercept:
            errors = self._balanced_by_one_row(y, z, alpha, errors)
        return Terms(*sums), errors

    def _balanced_by_one_row(
        self, y: np.ndarray, z: np.ndarray, alpha: np.ndarray, errors: Errors
    ) -> Errors:
        """Return errors of the point in which one row, as short as can be, makes a sum to zero."""
        weight, scale = self._exact_weights
        excess = precise_sum(weight, alpha) * self.lam / scale
        over = abs(excess) * (1.0 + gamma(self.shape[0] + 8))
        able = self.share * alpha * np.sign(excess) >= 2.0 * over
        if not over:
            return errors._replace(balanced=True)
        if not able.any():
            return errors
        k = int(np.argmin(np.where(able, self.sqnorms, np.inf)))
        cost = over / abs(alpha[k]) * self.loss.value(z[k], y[k])
        moved = over * math.sqrt(self.sqnorms[k]) / self.lam
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

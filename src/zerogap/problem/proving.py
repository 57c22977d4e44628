"""What a model and a dual point prove: from bounds of norms to products in twice the precision."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zerogap.kernels.precise import joined, precise_dual_sum, precise_scores, precise_sum
from zerogap.losses import Loss
from zerogap.penalties import L2, ElasticNet
from zerogap.problem.certificate import Certificate
from zerogap.problem.gap import (
    LOST_LENGTH,
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
    size_of,
)
from zerogap.problem.refining import Moves
from zerogap.problem.row_sums import (
    penalty_and_slack,
    set_domain,
    sum_outward_terms,
    sum_penalty_terms,
)


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
    rest: Any = None  # what is to be added to alpha, in twice the precision; None if nothing

    @classmethod
    def of(cls, found: Evaluation, b: Any, alpha: Any, z: Any = None, rest: Any = None) -> Proof:
        """Return the proof that an evaluation is."""
        primal, gap, slack, rounding, blur, _ = found
        return cls(b, alpha, primal, gap, slack, z, rounding, blur, rest)

    def __repr__(self) -> str:
        return f"Proof(primal {self.primal:.6g}, dual {self.dual:.6g}, gap {self.gap:.6g})"

    @property
    def dual(self) -> float:
        """A lower bound of D, and so of every model's objective."""
        return self.primal - self.gap - self.blur

    @property
    def certificate(self) -> Certificate:
        """The proof's numbers."""
        return self.certified()

    def certified(self, **more: Any) -> Certificate:
        """Return the proof's numbers as a certificate that says more of a run."""
        return Certificate(self.primal, self.dual, self.gap, rounding=self.rounding, **more)


Row = tuple[float, float, float]  # |x|^2, alpha and loss
NO_ROW: Row = (math.inf, 1.0, 0.0)


@dataclass(frozen=True, eq=False)
class PreciseSums:
    """What rows in twice the precision add to a proof; those of parts of the rows add up."""

    dual: np.ndarray  # sum_i s_i alpha_i x_i, and then what rounding has taken from it
    terms: Terms
    off: float  # how far the losses are off
    squares: float  # of the scores, seen from the targets
    ranges: float  # of the scores over classes
    shortest: tuple[Row, Row]  # of those that can make the sum of dual variables larger, or smaller
    longest: float = math.inf  # length of a row, or a little more

    def __add__(self, other: PreciseSums) -> PreciseSums:
        return PreciseSums(
            joined(self.dual, other.dual),
            self.terms + other.terms,
            self.off + other.off,
            self.squares + other.squares,
            self.ranges + other.ranges,
            (min(self.shortest[0], other.shortest[0]), min(self.shortest[1], other.shortest[1])),
            max(self.longest, other.longest),
        )


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
    blurred: float
    shape: Any
    on_device: Any
    dual_sum: Any
    row_terms: Any
    over_rows: Any
    over_features: Any
    _mean_conjugate: Any
    _penalty_conjugate: Any

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
        u: np.ndarray | None = None,
        b_low: Any = 0.0,
    ) -> Proof:
        """Return what (w, b), with the scores z of w, and a feasible alpha prove."""
        found, _, added = self.evaluated(w, b, z, alpha, tolerated, rest, doubt, terms, u, b_low)
        return Proof.of(found, b, alpha, z, added)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def evaluated(
        self,
        w: np.ndarray,
        b: Any,
        z: np.ndarray,
        alpha: np.ndarray,
        tolerated: float = 0.0,
        rest: np.ndarray | None = None,
        doubt: float = 0.0,
        terms: Terms | None = None,
        u: np.ndarray | None = None,
        b_low: Any = 0.0,
    ) -> tuple[Evaluation, np.ndarray, np.ndarray | None]:
        """Return the numbers of a proof, the dual sum that they are about, and what alpha lacks.

        The rows' `terms` and the dual sum u need not be given.

        Where rounding might be more than the tolerated share of P, and more than some of the gap,
        better bounds of it are tried, and then more precise arithmetic.  A `rest` that is to be
        added to alpha, see `zerogap.problem.refining`, is tried too.  The intercept that is meant
        is b + b_low, a number of twice the precision, or at most `doubt` from it.
        """
        u = self.dual_sum(alpha) if u is None else u
        terms = self.row_terms(z, b, alpha) if terms is None else terms
        sizes = Sizes(self.shape[0], self.rows.width, self._length)
        penalty = self.over_features(sum_penalty_terms, self.penalty, w.ravel(), u.ravel())

        def conjugates() -> tuple[float, float]:
            return self._mean_conjugate(alpha), self._penalty_conjugate(u)

        found, errors = conclude(self, sizes, terms, w, b, penalty, u, conjugates)
        coarse = found.is_coarse(tolerated)
        if coarse:
            sizes = sizes._replace(columns=self.column_sizes)
            found, errors = conclude(self, sizes, terms, w, b, penalty, u, conjugates)
        moved = doubt + size_of(np.atleast_1d(b_low))
        if coarse or moved:
            found = displaced(self, found, moved)
            coarse = found.is_coarse(tolerated)
        given = (w, b, b_low, alpha, terms, sizes, errors, doubt)
        if coarse and not self.on_device:
            precise = self._precisely(*given)
            found, u = min((found, u), precise, key=lambda pair: pair[0].gap)
        if rest is not None:
            refined = self._precisely(*given, rest)
            if refined[0].gap < found.gap:
                return *refined, rest
        return found, u, None

    def _precisely(
        self,
        w: np.ndarray,
        b: Any,
        b_low: Any,
        alpha: np.ndarray,
        terms: Terms,
        sizes: Sizes,
        rough: Errors,
        doubt: float,
        rest: np.ndarray | None = None,
    ) -> tuple[Evaluation, np.ndarray]:
        """Return P and the gap from scores and a dual sum in twice the precision, and that sum.

        The dual point is alpha, or alpha + rest.
        """
        rounded, parts = self._rounded_columns, [alpha] if rest is None else [alpha, rest]
        numbers = np.concatenate([self.precise_balance(part) for part in parts])
        missing = self.missing_balance(numbers, self.shape[0], terms.mass)
        sums = self.precise_sums(w, b, alpha, rounded, missing, doubt, rest, b_low)
        even = bool(len(self.weight)) or not self.share.min() < self.share.max()
        scale = self._exact_weights[1]
        known = (terms, sizes, rough, sums, missing, rounded, scale, even)
        return conclude_precisely(self, w, b, *known, doubt), sums.dual.sum(axis=0) / scale

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
        """Return what these rows add to the proof of (w, b + b_low) and alpha, or alpha + rest.

        `rounded` are the root mean squares of columns whose entries a shift has rounded, `missing`
        is what all dual variables add up to: rows are to be found that can make it zero.  `doubt`
        is how far b may be from the one that is meant.
        """
        z, y, dual = self._precise_scores(w, b, b_low), self.y, self.precise_dual_parts(alpha)
        off_by = self._doubt(np.abs(z), w, b, rounded) + doubt
        if self.loss.task == "regression":
            y = np.zeros_like(y)  # scores are seen from there
        whole, rounded_off = (alpha, 0.0) if rest is None else (alpha + rest, 2.0 * UNIT)
        given = (self.loss, y, self.share, whole, z, off_by, rounded_off)
        *sums, off = self.over_rows(sum_outward_terms, *given)
        if rest is not None:
            dual = joined(dual, self.precise_dual_parts(rest))
        shortest = [self._shortest(over, y, z, alpha) for over in _too_much(missing)]
        squares = float(self.share @ (z * z))
        return PreciseSums(dual, Terms(*sums), off, squares, 0.0, (shortest[0], shortest[1]))

    def _shortest(self, over: float, y: np.ndarray, z: np.ndarray, alpha: np.ndarray) -> Row:
        """Return the shortest row whose dual variable is far more than over, of its sign."""
        able = np.sign(over) * self.share * alpha >= 2.0 * abs(over)
        if not over or not able.any():
            return NO_ROW
        k = int(np.argmin(np.where(able, self.sqnorms, np.inf)))
        return float(self.sqnorms[k]), float(alpha[k]), float(self.loss.value(z[k], y[k]))

    def precise_balance(self, alpha: np.ndarray) -> np.ndarray:
        """Return numbers that add up to the sum of the dual variables; lists of parts join."""
        return precise_sum(self._exact_weights[0], alpha)

    def missing_balance(self, numbers: np.ndarray, rows: int, mass: float) -> Any:
        """Return what dual variables miss a sum of zero by, and how far that may be off.

        `mass` is the sum of their sizes.
        """
        if not self.fit_intercept:
            return 0.0, 0.0
        excess = math.fsum(numbers) * self.lam / self._exact_weights[1]
        return excess, 2.0 * UNIT * abs(excess) + gamma(rows + 8) ** 2 * mass

    def excess_of_balance(self, alpha: np.ndarray, mass: float) -> float:
        """Return |1/S sum_i s_i alpha_i|, or a little more if alpha is rounded once.

        `mass` is the sum of their sizes.
        """
        excess, doubt = self.missing_balance(self.precise_balance(alpha), self.shape[0], mass)
        return abs(excess) + doubt + 4.0 * UNIT * mass

    def _precise_scores(self, w: np.ndarray, b: Any, b_low: Any = 0.0) -> np.ndarray:
        """Return x_i.w + b + b_low, less the targets of a loss of residuals, rounded once."""
        aim = self.y if self.loss.task == "regression" else np.zeros(self.shape[0])
        return precise_scores(self.rows, w, float(b), aim, float(b_low))

    def precise_dual_sum_of(self, alpha: np.ndarray) -> np.ndarray:
        """Return u(alpha), rounded as if it had no large terms that cancel."""
        return self.precise_dual_parts(alpha).sum(axis=0) / self._exact_weights[1]

    def precise_dual_parts(self, alpha: np.ndarray) -> np.ndarray:
        """Return sum_i s_i alpha_i x_i, and then what rounding has taken from it."""
        return precise_dual_sum(self.rows, self._exact_weights[0], alpha)

    def lack(self, w: np.ndarray, alpha: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Return by how much lam S u(alpha + rest) differs from what w needs, and from zero sums.

        One vector: features, and then the intercept if it is free; for many classes one of these
        after another.
        """
        weight, scale = self._exact_weights
        u = self.precise_dual_sum_of(alpha) + self.precise_dual_sum_of(rest)
        off = scale * (u - self.penalty_slope(w, u))
        if self.fit_intercept:
            both = np.append(precise_sum(weight, alpha), precise_sum(weight, rest))
            off = np.append(off, math.fsum(both))
        return off

    def penalty_slope(self, w: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the slopes of g at w that are the nearest ones to u."""
        r = getattr(self.penalty, "l1_ratio", 0.0)
        return (1.0 - r) * w + np.where(w == 0.0, np.clip(u, -r, r), r * np.sign(w))

    def room(self, alpha: np.ndarray) -> np.ndarray:
        """Return how far each dual variable is from the ends of its domain."""
        low, high = np.empty_like(alpha), np.empty_like(alpha)
        self.over_rows(set_domain, self.loss, self.y, low, high)
        return np.minimum(np.minimum(alpha - low, high - alpha), np.maximum(np.abs(alpha), 1.0))

    def moves(self, alpha: np.ndarray) -> Moves:
        """Return how far dual variables may move."""
        room = np.where(self.share > 0.0, self.room(alpha), 0.0)
        row = np.flatnonzero(room > 0.0)
        return Moves(row, row, row, room[row])

    @functools.cached_property
    def _exact_weights(self) -> tuple[np.ndarray, float]:
        """Weights of the dual sum's terms, and what it is to be divided by."""
        if not len(self.weight):
            return self.share, self.lam
        return self.weight, self.lam * math.fsum(self.weight)

    def _doubt(
        self, sizes: np.ndarray, w: np.ndarray, b: Any, rounded_columns: np.ndarray
    ) -> np.ndarray:
        """Return how far each row's precise scores, of these sizes, may be off."""
        twice = gamma(self.rows.width + 6) ** 2
        squares = np.square(w)
        length = math.sqrt(float(squares.sum(axis=-1).max())) + LOST_LENGTH
        doubt = 2.0 * UNIT * sizes + twice * length * (np.sqrt(self.sqnorms) + LOST_LENGTH)
        places = np.flatnonzero(rounded_columns)
        if len(places):
            of_rounded = math.sqrt(float(squares[..., places].sum(axis=-1).max())) + LOST_LENGTH
            lengths = np.sqrt(self.rows.columns(places).sqnorms) + LOST_LENGTH
            doubt += 2.0 * UNIT * of_rounded * lengths
        doubt += twice * float(np.abs(b).max())
        if self.loss.task == "regression":
            sizes = np.abs(self.y)
            doubt += twice * sizes + np.minimum(self.blurred, 2.0 * UNIT * sizes)
        return doubt

    @functools.cached_property
    def _rounded_columns(self) -> np.ndarray:
        """Root mean squares of columns whose entries were rounded by a shift, zero for others."""
        if not len(self.origin):
            return 0.0 * self.column_sizes
        return rounded_columns(self.column_sizes, self.rows.largest_entries(), self.origin)

    @functools.cached_property
    def _length(self) -> float:
        """Root of the mean of |x_i|^2."""
        return math.sqrt(self.mean_sqnorm)

    @functools.cached_property
    def mean_sqnorm(self) -> float:
        """Weighted mean of |x_i|^2."""
        return float(self.share @ self.sqnorms)

    @functools.cached_property
    def column_sizes(self) -> np.ndarray:
        """Roots of the mean squares of the columns."""
        return np.sqrt(self.rows.square_sums(self.share))


def rounded_columns(sizes: np.ndarray, largest: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """Return the sizes of columns whose entries a shift from the origin has rounded, 0 for others.

    A difference is exact if both numbers are within twice the other; half may have been rounded.
    """
    exact = largest < 0.5 * np.abs(origin)
    return np.where(exact | (origin == 0.0), 0.0, sizes)


def conclude_precisely(
    problem: Any,
    w: np.ndarray,
    b: Any,
    terms: Terms,
    sizes: Sizes,
    rough: Errors,
    sums: PreciseSums,
    missing: Any,
    rounded: np.ndarray,
    scale: float,
    even: bool,
    doubt: float = 0.0,
) -> Evaluation:
    """Return P and the gap from sums over all rows in twice the precision.

    Parameters
    ----------
    problem, w, b
        The problem and the model.
    terms, sizes, rough
        What `conclude` has used and found.
    sums, missing, rounded
        From `Proving.precise_sums`, and what that was given.
    scale : float
        What the dual sum is to be divided by.
    even : bool
        Whether the weights of rows are not rounded, or all in the same way.
    doubt : float
        How far b may be from the one that is meant.
    """
    u = sums.dual.sum(axis=0) / scale
    once = sizes._replace(rows=1, width=1, columns=rounded)
    of_shift = once.errors(Terms(0.0, 0.0, energy=terms.energy), w, 0.0, problem.lam)
    length = size_of(u)
    errors = precise_errors(rough, sizes, of_shift, math.sqrt(sums.squares), length)
    if not even:
        errors = errors._replace(dual_sum=errors.dual_sum + 4.0 * UNIT * rough.lengths)
    errors = errors._replace(scores=0.0, value=sums.off)
    if problem.loss.task == "multiclass":
        errors = errors._replace(range=sums.ranges, longest=sums.longest)
        errors = errors._replace(imbalance=missing) if problem.fit_intercept else errors
    elif problem.fit_intercept:
        errors = _balanced_by_one_row(problem, sums.shortest, missing, errors)
    cost, slack = penalty_and_slack(problem.penalty, w.ravel(), u.ravel())
    return evaluate(problem, sums.terms, cost, slack, length, sizes.rows, errors, b)


def _too_much(missing: tuple[float, float]) -> tuple[float, float]:
    """Return by how much sums of dual variables may be too small, and too large; 0 if they are not.

    Both, where it is not known which one.
    """
    excess, doubt = missing
    return min(excess - doubt, 0.0), max(excess + doubt, 0.0)


def _balanced_by_one_row(
    problem: Any, shortest: tuple[Row, Row], missing: tuple[float, float], errors: Errors
) -> Errors:
    """Return errors of the point in which one row, as short as can be, makes a sum to zero."""
    cost = moved = 0.0
    for over, (sqnorm, alpha, loss) in zip(_too_much(missing), shortest, strict=True):
        if not over:
            continue
        if sqnorm == math.inf:
            return errors
        cost = max(cost, over / alpha * loss)
        moved = max(moved, abs(over) * (math.sqrt(sqnorm) + LOST_LENGTH) / problem.lam)
    return errors._replace(excess=2.0 * cost, dual_sum=errors.dual_sum + 2.0 * moved, balanced=True)

"""The one gap: P, D and their distance, from sums over rows that may be added up in parts.

With u = u(a), and with sum_i s_i a_i = 0 if b is free,

    P(w, b) - D(a) = 1/S sum_i s_i [phi(z_i) + phi*(-a_i) + a_i z_i]  +  lam [g(w) + g*(u) - w.u]

where z_i = x_i.w + b, and all terms are >= 0 (Fenchel and Young).  Whoever holds rows - memory, a
store, a GPU, workers of a cluster - adds up `Terms`; `evaluate` makes numbers of them that hold
for the data as given, in exact arithmetic.  What rounding may hide is bounded and added:

* **scores** that are off by t change the rows' terms by 2 L t at most, or by
  sqrt(2 beta E) t + beta t^2 / 2 if E is their sum and phi is beta-smooth;
* a **dual sum** that is off by t, in the same way: g* is smooth;
* **sums of a that are not zero**: the point meant is a', in which the heavier sign is scaled down
  until they are.  With a' = (1 - e) a there, the rows' terms rise by e P at most, since they are
  convex in a, and at a = 0 they are phi(z_i) at most.  Where that is too much, a short row alone
  is scaled;
* **losses** are evaluated to `EVALUATION` units in the last place of their terms.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zerogap.problem.rerouting import rerouted

UNIT = 2.0**-53  # relative error of one operation
ROOT_OF_TWO = 1.4142135623730954  # rounded up
EVALUATION = 16.0  # error of a loss' three terms, in units; libraries' exp and log are right to 4
TINY = 1e-285  # bound of what underflow can add to losses, or to P and D if lam is moderate
LOST_SQUARES = 1e-308  # bound of what underflow takes from a sum of 2^50 (weighted) squares
LOST_LENGTH = 1e-154  # the root of that: |x| is at most sqrt(computed x.x) + LOST_LENGTH
CLEAR_OF_UNDERFLOW = 1e-280  # sum of squares above which LOST_SQUARES is less than one rounding
# Gap over P above which D is computed directly: P - D no longer cancels
FAR_FROM_OPTIMUM = 0.5
ENOUGH = 0.1  # share of the gap that rounding may take before more precision is tried
# Share of P to which P must be known: CLEAR whatever the gap, or this share of the rounding that
# the caller tolerates (five digits beyond `tol`)
CLEAR = 1e-11
CLEAR_OF_TOLERATED = 1e-3
ASKED_FOR = 1e-10  # relative gap at which a single certificate is exact enough: 10 times CLEAR
LOG_OF_ROUNDING = 40.0  # log(1 / x) <= 40 for any x of at least one rounding
EXACT = 2e-14  # share of P: rounding below it is rarely reduced by twice the precision
MOST_IN_A_PART = 64  # roundings of a total of weights: 16, and one for each doubling of a block


@functools.lru_cache(maxsize=256)
def gamma(k: float) -> float:
    """Return the relative error of k operations in a row."""
    return k * UNIT / (1.0 - k * UNIT) if k * UNIT < 0.5 else math.inf


@functools.lru_cache(maxsize=256)
def of_rows(rows: int, more: int = 0) -> float:
    """Return the relative error of a sum over so many rows, with some operations to spare.

    Shares of rows are rounded with their total, of which numpy adds up eight parts.
    """
    return gamma(rows + min(rows // 8, MOST_IN_A_PART) + more + 8)


def of_weights(problem: Any) -> float:
    """Return the relative error of a sum of terms of all weights, with some to spare."""
    return gamma(math.prod(problem.weight_shape) + 16)


def size_of(v: Any) -> float:
    """Return the root of the sum of squares of all entries, whatever underflows."""
    flat = v.ravel()
    squares = float(flat.dot(flat))
    if squares > CLEAR_OF_UNDERFLOW or not len(flat):
        return math.sqrt(squares)
    largest = float(abs(flat).max())
    if not 0.0 < largest < math.inf:  # not a number: no more is one
        return largest
    scaled = flat / largest
    return math.nextafter(largest * math.sqrt(float(scaled.dot(scaled))), math.inf)


def hidden_by_underflow(lam: float, length: float = math.inf) -> float:
    """Return a bound of what underflow can take from P, D and the gap.

    `length` is that of the longest vector whose square is multiplied by lam: a short vector cannot
    lose more than itself.
    """
    root = 2.0 * math.sqrt(lam) * length
    return TINY + min(LOST_SQUARES * lam, root * root)


def blur_of_constant(problem: Any, b: Any, primal: float) -> float:
    """Return how far the computed objective of a model without weights may be from P.

    Its scores are exact, and so are residuals to one rounding of their own size, which is at most
    the loss and the half-width of its tube.
    """
    loss, slip = problem.loss, 0.0
    if loss.task == "regression":
        slip = 2.0 * UNIT * min(loss.tube, abs(b) + problem.largest_target) + problem.blurred
    units = (EVALUATION + 2.0 * getattr(problem, "n_classes", 1)) * UNIT
    blur = (of_rows(problem.shape[0]) + units) * primal + TINY
    return blur + _rise(_slope(loss), loss.smoothness, primal, slip)


def is_blurred(blur: float, gap: float, primal: float, tolerated: float = 0.0) -> bool:
    """Tell whether `blur`, the uncertainty of P, is too large for P - D to show the gap.

    A small part of `tolerated` times P, what rounding may take, does not count.
    """
    clear = max(CLEAR, CLEAR_OF_TOLERATED * tolerated)
    return blur > max(ENOUGH * min(gap, primal), clear * primal)


@dataclass(frozen=True, eq=False)
class Terms:
    """Sums over some rows, each row times s_i / S; the terms of parts of the data add up.

    Attributes
    ----------
    value, excess : float
        The losses, and the rows' part of the gap.
    balance : float or ndarray
        The dual variables; for many classes, the votes of each class for each other one.
    mass, energy : float
        Sizes and squares of the dual variables.
    cross, target : float
        Sizes of a_i z_i, with z_i measured from the targets; squares of the targets.
    """

    value: Any
    excess: Any
    balance: Any = 0.0
    mass: float = 2.0
    energy: float = 2.0
    cross: float = 0.0
    target: float = 0.0

    @property
    def duals_size(self) -> float:
        """Root mean square of the dual variables, rounded up; zero if all of them are zero."""
        return math.sqrt(self.energy) + LOST_LENGTH if self.mass else 0.0

    def __add__(self, other: Any) -> Terms:
        if not isinstance(other, Terms):
            return self
        return Terms(
            self.value + other.value,
            self.excess + other.excess,
            self.balance + other.balance,
            self.mass + other.mass,
            self.energy + other.energy,
            self.cross + other.cross,
            self.target + other.target,
        )

    __radd__ = __add__


class Errors(NamedTuple):
    """Bounds of the distances between computed and exact numbers."""

    scores: float  # root of the mean square over rows
    dual_sum: float  # length of the vector
    reach: float  # root mean square of |x_i| |w|
    lengths: float  # sum of the lengths of the dual sum's terms, at most
    value: float = 0.0  # error of the losses' sum that does not come from `scores`
    excess: float = 0.0  # further error of the rows' terms
    balanced: bool = False  # whether `excess` and `dual_sum` are for a that sum to exactly zero
    range: float | None = None  # mean of the scores' ranges over classes, if it is known
    imbalance: Any = None  # missing or surplus votes of each class, if known
    longest: float = math.inf  # length of the longest row
    weights: float = math.inf  # length of w


class Evaluation(NamedTuple):
    """What is proved of a model and a dual point: P - D <= gap in exact arithmetic."""

    primal: float  # P, rounded
    gap: float
    slack: float  # the penalty's part of the gap, a bound of its rounding included; NaN if unknown
    rounding: float  # the part of the gap that bounds rounding
    blur: float  # how far `primal` may be from P
    off: float = math.inf  # how far the dual sum may be from that of the exactly feasible point

    def is_coarse(self, tolerated: float) -> bool:
        """Tell whether rounding takes too much of the gap, and more of P than is tolerated."""
        computed, primal = self.gap - self.rounding, self.primal
        coarse = self.rounding > max(ENOUGH * computed, max(tolerated, EXACT) * primal)
        return coarse or is_blurred(self.blur, computed, primal, tolerated)


NOTHING = Evaluation(math.nan, math.inf, math.inf, 0.0, 0.0)


class Sizes(NamedTuple):
    """The sizes of the data from which bounds of rounding are computed."""

    rows: int
    width: int  # number of values of the longest row
    columns: Any  # roots of the mean squares of all columns, or of |x_i| as one number

    def errors(self, terms: Terms, w: Any, b: Any, lam: float) -> Errors:
        """Return how far scores and the dual sum may be off.

        Each score is a sum of `width` products, b and a target; each dual sum one of `rows`.
        """
        columns, weights = self.columns + LOST_LENGTH, size_of(w)
        if not isinstance(columns, float):  # whatever the units of the columns
            reach, length = size_of(np.abs(w) @ columns), size_of(columns)
        else:
            reach, length = columns * weights, columns
        several, classes = getattr(b, "ndim", 0) > 0, len(w) if w.ndim > 1 else 0
        largest = reach + (math.hypot(*b) if several else abs(b)) + math.sqrt(terms.target)
        lengths = terms.duals_size * length / lam
        # a shifted entry, a share, a product with lam; a row's own class has the sum of its other
        # dual variables
        scores = gamma(self.width + 6) * largest
        dual_sum = of_rows(self.rows, classes) * lengths
        return Errors(scores, dual_sum, reach, lengths, weights=weights)


def precise_errors(rough: Errors, sizes: Sizes, rounded: Errors, score: float, u: float) -> Errors:
    """Return the errors of `zerogap.kernels.precise`, for scores and a dual sum of these sizes.

    `rounded` are the errors that come from entries which a shift has rounded.
    """
    products = gamma(sizes.width + 6)
    scores = 2.0 * UNIT * score + products * rough.scores + rounded.scores
    dual_sum = 8.0 * UNIT * u + gamma(sizes.rows + 6) ** 2 * rough.lengths + rounded.dual_sum
    return Errors(scores, dual_sum, rough.reach, rough.lengths, weights=rough.weights)


def conclude(
    problem: Any,
    sizes: Sizes,
    terms: Terms,
    w: Any,
    b: Any,
    penalty: tuple[float, float],
    u: Any,
    conjugates: Callable[[], tuple[float, float]],
) -> tuple[Evaluation, Errors]:
    """Return what a model and a dual point prove, and how exact scores and dual sum were.

    Parameters
    ----------
    problem : Problem or StreamedProblem
        Its loss, penalty, lam and whether b is free.
    sizes : Sizes
        Of its data.
    terms : Terms
        Sums over all rows.
    w, b, u
        The model, and the dual sum.
    penalty : (float, float)
        g(w), and g(w) + g*(u) - w.u.
    conjugates : callable
        Returns the mean of phi*(-a_i), and g*(u); called far from the optimum only.
    """
    errors = sizes.errors(terms, w, b, problem.lam)
    size = size_of(u)
    found = evaluate(problem, terms, *penalty, size, sizes.rows, errors, b)
    if found.gap > FAR_FROM_OPTIMUM * found.primal:
        found = _with_dual(problem, found, terms, conjugates(), size, sizes.rows, errors, b)
    return found, errors


def evaluate(
    problem: Any,
    terms: Terms,
    cost: float,
    slack: float,
    u_size: float,
    rows: int,
    errors: Errors,
    b: Any = 0.0,
) -> Evaluation:
    """Return P and an upper bound of P - D; see `conclude`."""
    primal = terms.value + problem.lam * cost
    if not math.isfinite(primal):
        return NOTHING
    plain = terms.excess + problem.lam * slack
    loss, classes = problem.loss, getattr(problem, "n_classes", 1)
    sums, units = of_rows(rows), (EVALUATION + 2.0 * classes) * UNIT
    of_cost = of_weights(problem)
    scaled, moved = scaling(problem, terms, rows, errors, b)
    feasible = to_domain(problem)  # all dual variables by the same factor
    off = errors.dual_sum + _moved_by_scaling(problem, scaled, errors) + feasible * u_size
    length = errors.weights + u_size + off
    least = hidden_by_underflow(problem.lam / problem.penalty.convexity(), length)
    blur = (sums + units) * terms.value + of_cost * problem.lam * cost + errors.value + least
    blur += _rise(_slope(loss), loss.smoothness, terms.value, errors.scores)
    if math.isnan(plain + blur):
        return NOTHING._replace(primal=primal, blur=math.inf if math.isnan(blur) else blur)
    size = 2.0 * (terms.value + terms.excess + terms.cross)
    evaluated = units * (size + loss.unit * (terms.mass + terms.energy))
    excess = (1.0 + sums) * terms.excess + evaluated
    excess += _rise(_excess_slope(loss), loss.smoothness, excess, errors.scores)
    # a row's term is convex in its dual variables: scaled down by a factor, it rises by no more
    # than that part of its loss; where a vote is rounded to nothing, x log x is lost as well
    lost = LOG_OF_ROUNDING * terms.mass if classes > 1 else 0.0
    excess += scaled * (terms.value + moved) + feasible * (terms.value + lost) + errors.excess
    part = slack_above(problem.penalty, cost, slack, of_cost, off)
    gap = excess + problem.lam * part + least
    if math.isnan(gap):
        return NOTHING._replace(primal=primal, blur=blur)
    found = (primal, gap, problem.lam * part + least, gap - plain, blur, off)
    return Evaluation(*map(float, found))


def slack_above(penalty: Any, cost: float, slack: float, sums: float, off: float) -> float:
    """Return g(w) + g*(u) - w.u, or more, where u may be off and sums are rounded that much."""
    convexity = penalty.convexity()
    part = (1.0 + sums) * slack + (16.0 * UNIT * cost if convexity < 1.0 else 0.0)
    return part + _rise(math.inf, 1.0 / convexity, part, off)


def _with_dual(
    problem: Any,
    found: Evaluation,
    terms: Terms,
    conjugates: tuple[float, float],
    u_size: float,
    rows: int,
    errors: Errors,
    b: Any = 0.0,
) -> Evaluation:
    """Return the better of an evaluation and the difference of P and D.

    Far from the optimum, as for weights that grow without bounds, D is a moderate number and the
    terms of the gap are huge.  `conjugates` are the mean of phi*(-a_i), and g*(u).
    """
    sums, lam, unit = of_rows(rows), problem.lam, problem.loss.unit
    scaled, _ = scaling(problem, terms, rows, errors, b)
    feasible = to_domain(problem)
    losses, penalty = conjugates
    size = abs(losses) + 2.0 * (terms.mass * unit + terms.energy)
    size += 2.0 * terms.duals_size * math.sqrt(terms.target)
    off = errors.dual_sum + scaled * errors.lengths
    lost = (sums + EVALUATION * UNIT + scaled + feasible) * size
    lost += of_weights(problem) * lam * penalty
    lost += feasible * LOG_OF_ROUNDING * terms.mass  # a vote that is one rounding has a logarithm
    off += feasible * u_size
    convexity = problem.penalty.convexity()
    lost += lam * (u_size * off + 0.5 * off * off) / convexity
    lost += hidden_by_underflow(lam / convexity, u_size + off)
    gap = _difference_above(found.primal, -losses - lam * penalty - lost) + found.blur
    if not gap < found.gap:
        return found
    return found._replace(gap=gap, slack=math.nan, rounding=min(gap, lost + found.blur))


def displaced(problem: Any, proof: Any, t: float) -> Any:
    """Return what a proof says of a model whose scores are all off by t at most."""
    if not t:
        return proof
    loss = problem.loss
    more = _rise(_excess_slope(loss), loss.smoothness, proof.gap, t)
    blur = _rise(_slope(loss), loss.smoothness, proof.primal, t)
    return proof._replace(
        gap=proof.gap + more, rounding=proof.rounding + more, blur=proof.blur + blur
    )


def _rise(slope: float, smoothness: float, height: float, t: float) -> float:
    """Return by how much a convex function >= 0 rises at most, t away from where it is `height`."""
    if t == 0.0:
        return 0.0
    if smoothness == math.inf:
        return slope * t
    # a sum of losses may be a little below zero by rounding
    smooth = math.sqrt(2.0 * smoothness * max(height, 0.0)) * t + 0.5 * smoothness * t * t
    return min(slope * t, smooth)


def _slope(loss: Any) -> float:
    """Return the largest slope of a loss; if it has many scores, the largest length of all slopes.

    That is the distance of two corners of the simplex.
    """
    return ROOT_OF_TWO if loss.task == "multiclass" else loss.lipschitz


def _excess_slope(loss: Any) -> float:
    """Return the largest slope of a row's part of the gap: of the loss, and a dual variable."""
    return ROOT_OF_TWO if loss.task == "multiclass" else 2.0 * loss.lipschitz


def to_domain(problem: Any) -> float:
    """Return by how much dual variables may be outside of their domain, relative to themselves."""
    if problem.loss.task == "multiclass":
        return gamma(problem.n_classes + 2)  # votes sum to one
    rounded_ends = problem.loss.task == "regression" and problem.loss.has_ends
    return gamma(4) if rounded_ends else 0.0


def scaling(problem: Any, terms: Terms, rows: int, errors: Errors, b: Any) -> tuple[float, float]:
    """Return by how much dual variables are scaled down to sum to zero, and what it may cost more.

    For one score no row's term rises by more than its loss; for many, by the range of its scores,
    unless phi* is linear in the votes: then a vote that goes to the row's own class costs at most
    the loss.
    """
    if problem.loss.task == "multiclass":
        scaled = 0.0
        if problem.fit_intercept:
            flow, missing = np.asarray(terms.balance), errors.imbalance
            if missing is None:
                through = flow.sum(axis=1) + flow.sum(axis=0)
                missing = np.abs(flow.sum(axis=1) - flow.sum(axis=0))
                missing += gamma(rows + len(flow) + 8) * through
            scaled = min(1.0, rerouted(flow, missing))
        if not problem.loss.bends_in_votes:
            return scaled, 0.0
        spread = 2.0 * errors.reach + float(np.ptp(b)) if errors.range is None else errors.range
        return scaled, spread
    if not problem.fit_intercept or errors.balanced or not terms.mass > 0.0:
        return 0.0, 0.0
    return min(1.0, 2.0 * (abs(terms.balance) / terms.mass + gamma(rows + 8))), 0.0


def _moved_by_scaling(problem: Any, scaled: float, errors: Errors) -> float:
    """Return how far a dual sum moves if votes are scaled down until they are balanced.

    Where a class has few votes that is a large part of them, but no more than what was missing: one
    vote less, on each of the ways from class to class, moves lam u by sqrt(2) |x_i|.
    """
    if errors.imbalance is None or not scaled < 1.0:
        return scaled * errors.lengths
    missing = np.asarray(errors.imbalance)
    longest = 2.0 * errors.longest / problem.lam
    return min(scaled * errors.lengths, len(missing) * float(missing.sum()) * longest)


def _difference_above(primal: float, dual: float) -> float:
    """Return P - D, rounded so that P minus it is D at most."""
    gap = primal - dual
    return gap if primal - gap <= dual else math.nextafter(gap, math.inf)

"""What statements about an optimum need beside the gap: bounds of rounding, all outwards.

A certificate's gap holds in exact arithmetic, for a dual point a' that is feasible in exact
arithmetic.  The numbers at hand are a, near a'.  `Slip` says how near, `excess_below` bounds a
row's part of the gap at a' from below, and the other functions bound lengths and scores.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from zerogap.kernels.jit import inlined
from zerogap.problem.gap import EVALUATION, UNIT, Errors, Terms, gamma, scaling, to_domain

UNDERFLOW = 2.0**-1074  # the most that one product can lose by it
LARGEST_LOG = 40.0  # more than |log| of what is left of 1 next to the largest double below it
_NO_ERRORS = Errors(0.0, 0.0, 0.0, 0.0)


class Slip(NamedTuple):
    """How far the dual variables of a proof, a', may be from those at hand, a.

    Those that are zero are zero in both, and none changes its sign.
    """

    scaled: float  # |a_i' - a_i| over |a_i|, except for one row
    moved: float  # s_i / S |a_i' - a_i| of that row
    unit: float  # of the loss, see `Loss.unit`
    steep: float  # more than its conjugate's slope, except for |a| and what a line has

    @classmethod
    def of(cls, problem: Any, alpha: np.ndarray) -> Slip:
        """Return the bounds for dual variables that the problem takes for feasible."""
        y, share, alpha = map(problem.host, (problem.y, problem.share, alpha))
        sizes, moved = np.abs(alpha), 0.0
        balance: Any
        if problem.loss.task == "multiclass":
            votes = np.maximum(-alpha, 0.0)
            balance = np.array([share[y == k] @ votes[y == k] for k in range(alpha.shape[1])])
            mass = float((share @ sizes).sum())
        else:
            balance, mass = float(share @ alpha), float(share @ sizes)
            if problem.fit_intercept and not problem.on_device:
                moved = 2.0 * problem.excess_of_balance(alpha, mass)
        terms = Terms(0.0, 0.0, balance, mass)
        scaled, _ = scaling(problem, terms, len(y), _NO_ERRORS, np.zeros(1))
        scaled = 2.0 * (scaled + to_domain(problem) + gamma(8))
        scaled = scaled if scaled < 0.5 else math.inf  # nothing is known of far points
        unit = problem.loss.unit
        return cls(scaled, moved, unit, unit if problem.loss.quadratic else LARGEST_LOG)


@inlined
def dual_slope(loss, slip, a, z, y):
    """A bound of the slope of a row's part of the gap in its dual variable, from a / 2 to a"""
    if a == 0.0:
        return 0.0
    aim = loss.aim(y)
    conjugate = abs(loss.conjugate(a, y) + a * aim) / abs(a) + 8.0 * UNIT * abs(aim)
    return abs(z - aim) + 2.0 * conjugate + slip.steep + max(1.0, slip.unit) * abs(a)


@inlined
def excess_error(loss, slip, a, z, y):
    """How far a computed `Loss.excess` may be from the exact one"""
    sizes = loss.value(z, y) + abs(loss.excess(a, z, y)) + abs(a * (z - loss.aim(y)))
    return EVALUATION * UNIT * (2.0 * sizes + slip.unit * (abs(a) + a * a))


@inlined
def excess_below(loss, slip, a, z, y):
    """A lower bound of `Loss.excess` at a dual variable within |slip.scaled a| of a"""
    lost = slip.scaled * abs(a) * dual_slope(loss, slip, a, z, y)
    return loss.excess(a, z, y) - excess_error(loss, slip, a, z, y) - lost


def length_above(w: np.ndarray) -> float:
    """Return |w|, or a little more."""
    rounded = math.sqrt(float(np.square(w).sum())) * (1.0 + gamma(w.size + 4))
    return rounded + math.sqrt(w.size * UNDERFLOW) if w.any() else 0.0


def empty_rows(rows: Any, sqnorms: np.ndarray) -> np.ndarray:
    """Return places of rows without entries: those of a GPU are not looked for."""
    short = np.flatnonzero(sqnorms == 0.0)
    if not len(short) or not hasattr(rows, "are_zero"):
        return short[:0]
    return short[rows.take(short).are_zero()]


def lengths_above(sqnorms: np.ndarray, width: int, empty: np.ndarray) -> np.ndarray:
    """Return |x_i| of all rows, or a little more, but zero for rows without entries."""
    lengths = np.sqrt(sqnorms) * (1.0 + gamma(width + 4)) + math.sqrt(width * UNDERFLOW)
    lengths[empty] = 0.0
    return lengths


def score_doubt(width: int, lengths: np.ndarray, size: Any) -> np.ndarray:
    """Return how far products of rows and weights of this length may be off.

    Entries may have been rounded by a shift, and weights by a difference of two.
    """
    return gamma(width + 6) * _outer(lengths, size) + 4.0 * width * UNDERFLOW


def times_length(lengths: np.ndarray, radius: Any) -> np.ndarray:
    """Return lengths times radii, rounded up, where zero times infinity is zero."""
    product = _outer(lengths, radius) * (1.0 + gamma(4)) + UNDERFLOW
    return np.where(np.reshape(lengths, (-1,) + (1,) * np.ndim(radius)) != 0.0, product, 0.0)


def _outer(lengths: np.ndarray, size: Any) -> np.ndarray:
    """Return all products; zero times infinity is zero: what overflowed is finite."""
    with np.errstate(invalid="ignore"):
        product = np.multiply.outer(lengths, size)
    return np.where(np.logical_or.outer(lengths == 0.0, np.equal(size, 0.0)), 0.0, product)


def outward(low: Any, high: Any, *sizes: Any) -> tuple[Any, Any]:
    """Return ends moved by more than the sums of so few terms are rounded."""
    room = gamma(len(sizes) + 4) * sum(map(np.abs, sizes)) + UNDERFLOW
    return low - room, high + room

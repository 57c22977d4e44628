"""Where a second-order method goes from a point, and how far.

With an L1 penalty the objective is smooth within an orthant: the signs of the weights say in which
one a step may end.  Weights at zero join only if the gradient exceeds what the penalty holds, and
a weight that would change its sign stops at zero.

Reference: M. Schmidt, "Graphical model structure learning with L1-regularization", PhD thesis,
University of British Columbia, 2010, chapter 2 (projected scaled sub-gradients).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from zerogap.problem import Problem

_FEWEST_NEW = 100  # weights that may leave zero in one step where there are too many for all


class Way(NamedTuple):
    """A straight way from a point, the intercept last."""

    p: np.ndarray  # of the weights
    p_b: np.ndarray  # of the intercepts: one, one for each class, or none
    slope: float  # of the objective, at the start
    longest: float = math.inf  # step
    kink: float = 0.0  # slope of the L1 penalty along the way
    l1_before: float = 0.0  # L1 penalty at the start, over lam
    end: np.ndarray | None = None  # weights after a step of one, with their zeros

    def at(self, w: np.ndarray, t: float) -> np.ndarray:
        """Return the weights after a step of t."""
        return self.end if t == 1.0 and self.end is not None else w + t * self.p


def straight_way(direction: np.ndarray, gradient: np.ndarray, d: int) -> Way:
    """Return the way along a direction of d weights and, perhaps, an intercept."""
    return Way(direction[:d], direction[d:], float(gradient @ direction))


def orthant(w: np.ndarray, gradient: np.ndarray, l1: float, most: int) -> np.ndarray:
    """Return the signs that weights may have after the next step, zero for those that stay there.

    Weights at zero move where the gradient of all but the L1 penalty exceeds that; the steepest
    first where more than `most` weights would move.
    """
    signs = np.sign(w)
    pull = np.where(signs == 0.0, np.abs(gradient) - l1, 0.0)
    joining = np.flatnonzero(pull > 0.0)
    support = int(np.count_nonzero(signs))
    room = max(_FEWEST_NEW, min(most, 3 * support) - support)
    if support + len(joining) > most and len(joining) > room:
        joining = joining[np.argsort(-pull[joining], kind="stable")[:room]]
    signs[joining] = -np.sign(gradient[joining])
    return signs


def orthant_way(
    problem: Problem,
    w: np.ndarray,
    direction: np.ndarray,
    gradient: np.ndarray,
    signs: np.ndarray,
) -> Way:
    """Return the way to where a direction leads, moved into the orthant of these signs.

    If that leads upwards, a shorter part of the direction is moved: in the end no sign changes.
    """
    l1, d, size = problem.lam * problem.l1_ratio, len(w), float(np.abs(w).sum())
    length = 1.0
    for _ in range(60):
        end = w + length * direction[:d]
        end[end * signs <= 0.0] = 0.0
        p, p_b = end - w, length * direction[d:]
        kink = l1 * (float(np.abs(end).sum()) - size)
        slope = float(gradient[:d] @ p + gradient[d:] @ p_b) + kink
        if slope < 0.0:
            break
        length *= 0.5
    return Way(p, p_b, slope, 1.0, kink, problem.l1_ratio * size, end)


def search(
    look: Callable[[float], tuple[float, float]],
    start: float,
    slope: float,
    longest: float = math.inf,
) -> tuple[float, float]:
    """Return a step at which a convex function has fallen and is half as steep at most.

    `look` returns value and slope; it is asked for the returned step last, and at 0 these are
    `start` and `slope`.  A step of `longest`, where the function still falls, is as good.
    """
    slack = 1e-14 * abs(start)
    low, at_low, high, at_high, t = 0.0, slope, math.inf, 0.0, 1.0
    for _ in range(40):
        value, now = look(t)
        fallen = value <= start + slack
        if fallen and (abs(now) <= 0.5 * abs(slope) or (t >= longest and now < 0.0)):
            return t, value
        if fallen and now < 0.0:
            low, at_low = t, now
        else:
            high, at_high = t, max(now, 0.0)
        if high == math.inf:
            t = min(2.0 * t, longest)
        elif not fallen:  # far too long
            t = low + 0.1 * (high - low)
        else:
            secant = low - at_low * (high - low) / (at_high - at_low)
            t = min(max(secant, low + 0.05 * (high - low)), high - 0.05 * (high - low))
    return low, look(low)[0]

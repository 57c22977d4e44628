"""Where a second-order method goes from a point, and how far."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Way(NamedTuple):
    """A straight way from a point, the intercept last."""

    p: np.ndarray  # of the weights
    p_b: np.ndarray  # of the intercepts: one, one for each class, or none
    slope: float  # of the objective, at the start
    longest: float = math.inf  # step
    kink: float = 0.0  # slope of the L1 penalty along the way
    l1_before: float = 0.0  # L1 penalty at the start, over lam
    end: np.ndarray | None = None  # weights after a step of one, with their zeros
    dual: np.ndarray | None = None  # p and p_b to the weights that give the dual point, if others

    def at(self, w: np.ndarray, t: float) -> np.ndarray:
        """Return the weights after a step of t."""
        return self.end if t == 1.0 and self.end is not None else w + t * self.p


def straight_way(direction: np.ndarray, gradient: np.ndarray, d: int) -> Way:
    """Return the way along a direction of d weights and, perhaps, an intercept."""
    return Way(direction[:d], direction[d:], float(gradient @ direction))


SHORT_STEP, LONG_STEP = 1e-4, 0.1  # of a Newton step, that ask for more and for less damping
LEAST_DAMPING = 1e-4  # of the largest curvature: from less than that on, none is added


def adapted_damping(damping: float, step: float) -> float:
    """Return the damping for the next direction, from the length of the last step.

    Where many rows have no curvature, as with residuals beyond the bend of Huber's loss, Newton's
    direction is as long as the penalty allows.  Damping adds a part of the largest curvature that
    a loss can have to every row, which limits what scores move, whatever the units.
    """
    if step < SHORT_STEP:
        return min(max(LEAST_DAMPING, 100.0 * damping), 1.0)
    if step < LONG_STEP:
        return damping
    return 0.1 * damping if damping > LEAST_DAMPING else 0.0


def search(
    look: Callable[[float], tuple[float, float]],
    start: float,
    slope: float,
    longest: float = math.inf,
    looks: int = 40,
) -> tuple[float, float]:
    """Return a step at which a convex function has fallen and is half as steep at most.

    `look` returns value and slope; it is asked for the returned step last, and at 0 these are
    `start` and `slope`.  A step of `longest`, where the function still falls, is as good.  After so
    many looks it is the longest step known at which the function falls.
    """
    slack = 1e-14 * abs(start)
    low, at_low, high, at_high, t, lowest = 0.0, slope, math.inf, 0.0, 1.0, start
    for _ in range(looks):
        value, now = look(t)
        fallen = value <= start + slack
        if fallen and (abs(now) <= 0.5 * abs(slope) or (t >= longest and now < 0.0)):
            return t, value
        if fallen and now < 0.0:
            low, at_low, lowest = t, now, value
        else:
            high, at_high = t, max(now, 0.0)
        if high == math.inf:
            t = min(2.0 * t, longest)
        elif not fallen:  # far too long: a parabola may tell how much
            width = high - low
            bend = value - lowest - at_low * width
            parabola = -0.5 * at_low * width * width / bend if bend < math.inf else 0.1 * width
            t = low + min(parabola, 0.1 * width)
        else:
            secant = low - at_low * (high - low) / (at_high - at_low)
            t = min(max(secant, low + 0.05 * (high - low)), high - 0.05 * (high - low))
    return low, look(low)[0]


def flatter_step(slope: Callable[[float], float]) -> float:
    """Return a step along which a convex function falls, by doubling and then halving a bracket.

    `slope` returns the slope after a step over that at the start; it is called for the returned
    step last, where it is between -0.5 and 0.5.
    """
    low, high, step = 0.0, math.inf, 1.0
    for _ in range(30):
        left = slope(step)
        if abs(left) <= 0.5:
            break
        low, high = (step, high) if left > 0.0 else (low, step)
        step = 2.0 * step if high == math.inf else 0.5 * (low + high)
    return step

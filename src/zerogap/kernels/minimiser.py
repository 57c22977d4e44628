"""Where a convex function of one number is least, by its slope."""

from __future__ import annotations

import math
from collections.abc import Callable


def minimiser(slope: Callable[[float], float], near: float = 0.0, accuracy: float = 0.0) -> float:
    """Return where a convex function is least, to within `accuracy`, by its slope.

    The slope rises: bracket its root, then close in on it by alternating the secant with the
    midpoint.
    """
    old, at_old = near, slope(near)
    if at_old == 0.0:
        return near
    new, at_new, width = old, at_old, abs(at_old)
    while at_new * at_old > 0.0:
        if width > 1e300:
            return old
        old, at_old = new, at_new
        new -= math.copysign(width, at_old)
        at_new, width = slope(new), 2.0 * width
    ends = sorted([(old, at_old), (new, at_new)])
    for trial in range(200):
        (left, at_left), (right, at_right) = ends
        best, at_best = min(ends, key=lambda end: abs(end[1]))
        middle = 0.5 * (left + right)
        if abs(at_best) * (right - left) <= accuracy or not left < middle < right:
            break
        if trial % 2 == 0:
            secant = left - at_left * (right - left) / (at_right - at_left)
            middle = secant if left < secant < right else middle
        at_middle = slope(middle)
        ends[0 if at_middle < 0.0 else 1] = (middle, at_middle)
    return best

"""Conjugate gradients for Newton directions, and smoothed residuals for dual points.

References: J. Galli and C.-J. Lin, "A study on truncated Newton methods for linear classification",
IEEE Transactions on Neural Networks and Learning Systems 33, 2022 (stopping by what the quadratic
model gains); L. Zhou and H. F. Walker, "Residual smoothing techniques for iterative methods", SIAM
Journal on Scientific Computing 15, 1994.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

WORTH_SMOOTHING = 0.7  # estimated gap with smoothed residuals over that without, at most


class Solution(NamedTuple):
    """What conjugate gradients have found."""

    solution: np.ndarray
    products: int  # with the matrix
    left: float  # |residual|^2
    smooth: np.ndarray | None  # a mean of iterates whose dual point is much better, if it is
    gap: float  # what remains with that dual point, if the objective is a parabola


class _Smoothed:
    """Mean of the iterates so far whose residual is the shortest between the last two of these.

    The steps of conjugate gradients reduce the objective, and their residuals may be long.  The
    dual point of other weights may be better: with the residual s at q and the present p,

        P(p) - D(q) = m(p) - m(q) + |s|^2 / (2 lam),    m(p) = p'Hp / 2 - t'p,

    where the objective is the parabola m, whose gradient at p is -residual.
    """

    def __init__(self, target: np.ndarray, ridge: float) -> None:
        self.target, self.at, self.rest = target, np.zeros_like(target), target.copy()
        self.ridge = ridge

    def take(self, p: np.ndarray, rest: np.ndarray) -> None:
        """Move towards the iterate p, as far as that makes the residual shorter."""
        change = rest - self.rest
        size = float(change @ change)
        if size > 0.0:
            share = -float(self.rest @ change) / size
            self.at += share * (p - self.at)
            self.rest += share * change

    def gap(self, gained: float) -> float:
        """Return the gap of the present iterate, which has gained so much, and this dual point."""
        gained_here = 0.5 * float((self.target + self.rest) @ self.at)
        return gained_here - gained + 0.5 * float(self.rest @ self.rest) / self.ridge


class Enough(NamedTuple):
    """When a direction is exact enough: once the gap is this share of the objective."""

    value: float = 0.0  # of the objective at the start
    gap: float = 0.0  # 0: never
    ridge: float = 1.0  # curvature of the penalty
    smooths: bool = False  # whether other weights than the last ones may give the dual point


NEVER_ENOUGH = Enough()


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    precondition: Callable[[np.ndarray], np.ndarray],
    target: np.ndarray,
    reduction: float,
    most: int,
    least: float = 0.0,
    enough: Enough = NEVER_ENOUGH,
) -> Solution:
    """Solve a positive definite system, until a short enough residual is left.

    Parameters
    ----------
    product, precondition : callable
        Multiply by the matrix, and by what is nearly its inverse.
    target : ndarray
        The right-hand side.
    reduction : float
        Share of the first residual's square, in the preconditioner's norm, that may be left.
    most : int
        Products, at most.
    least : float
        Stop at a direction with less than this share of the preconditioner's curvature.
    enough : Enough
        Stop once the gap is small.
    """
    p, rest = np.zeros_like(target), target.copy()
    eased = precondition(rest)
    along, size = eased, float(rest @ eased)
    unit = rest.copy()  # `along` is the preconditioner applied to this
    goal, products, gained, gap = reduction * size, 0, 0.0, math.inf
    smoothed = _Smoothed(target, enough.ridge) if enough.smooths else None
    while size > goal and products < most:
        wanted = enough.gap * (enough.value - gained)
        if min(gap, 0.5 * float(rest @ rest) / enough.ridge) <= wanted:
            break
        products += 1
        image = product(along)
        curvature = float(along @ image)
        if not curvature > least * float(along @ unit):  # nothing but rounding
            break
        step = size / curvature
        p += step * along
        rest -= step * image
        gained += 0.5 * step * size
        if smoothed is not None:
            smoothed.take(p, rest)
            gap = smoothed.gap(gained)
        eased = precondition(rest)
        before, size = size, float(rest @ eased)
        along = eased + (size / before) * along
        if least:
            unit = rest + (size / before) * unit
    left = float(rest @ rest)
    if smoothed is None or gap > WORTH_SMOOTHING * 0.5 * left / enough.ridge:
        return Solution(p, products, left, None, math.inf)
    return Solution(p, products, left, smoothed.at, gap)

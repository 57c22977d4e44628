"""Dual variables, curvatures and parts of the gap that belong to given scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerogap.kernels.jit import kernel, rowwise
from zerogap.problem import Problem

_NEARLY_KINKED = 30.0  # a bend counts as a kink if scores are so many times its width apart


@kernel
def _dual(loss, y, z, centre, gamma):
    """The a that maximises -phi*(-a) - a z - gamma/2 (a - centre)^2"""
    low, high = loss.domain(y)
    return min(high, max(low, centre + loss.dual_step(centre, y, z, gamma)))


@rowwise(sums=2)
def _respond_exactly(loss, y, share, z, dz, t, alpha, h, start, stop):
    """`respond` with gamma = 0: alpha_i = -phi'(z_i + t dz_i)"""
    value, slope = 0.0, 0.0
    for i in range(start, stop):
        # all is read before anything is written: else rows share no instructions
        target, s, d = y[i], share[i], dz[i]
        score = z[i] + t * d
        a = -loss.derivative(score, target)
        slope -= s * a * d
        value += s * loss.value(score, target)
        h[i] = s / loss.stiffness(a, target)
        alpha[i] = a
    return value, slope


@rowwise(sums=2)
def _respond_smoothly(loss, y, share, z, dz, t, alpha, h, centre, gamma, start, stop):
    value, slope = 0.0, 0.0
    for i in range(start, stop):
        target, s, d, middle = y[i], share[i], dz[i], centre[i]
        score = z[i] + t * d
        a = _dual(loss, target, score, middle, gamma)
        slope -= s * a * d
        shift = a - middle
        value -= s * (loss.conjugate(a, target) + a * score + 0.5 * gamma * shift * shift)
        h[i] = s / (gamma + loss.stiffness(a, target))
        alpha[i] = a
    return value, slope


def respond(
    problem: Problem,
    z: np.ndarray,
    dz: np.ndarray,
    t: float,
    alpha: np.ndarray,
    h: np.ndarray,
    centre: np.ndarray,
    gamma: float,
) -> tuple[float, float]:
    """Set the dual variables that belong to the scores z + t dz, and h_i = -s_i d alpha_i / d z_i.

    Returns the smoothed loss and its slope in t.
    """
    data = (problem.loss, problem.y, problem.share, z, dz, t, alpha, h)
    if gamma:
        return problem.over_rows(_respond_smoothly, *data, centre, gamma)
    return problem.over_rows(_respond_exactly, *data)


def two_like(problem: Problem, z: np.ndarray) -> Any:
    """Return two arrays like z for `respond` to fill, with room around them.

    A compiled loop adds up in another order where arrays lie so close that they might overlap, and
    the bits of a result would depend on where memory was free.
    """
    return problem.xp.empty((2, len(z) + 128))[:, 64 : 64 + len(z)]


@rowwise(sums=1)
def sum_excess(loss, y, share, alpha, z, start, stop):
    """The rows' part of the gap"""
    total = 0.0
    for i in range(start, stop):
        total += share[i] * max(0.0, loss.excess(alpha[i], z[i], y[i]))
    return total


@rowwise(sums=0)
def mark_movable(loss, y, z, centre, gamma, reach, movable, start, stop):
    """Mark the rows whose dual variables change if scores change by reach_i at most.

    Dual variables fall as scores rise: equal at both ends is equal in between.
    """
    for i in range(start, stop):
        top = _dual(loss, y[i], z[i] - reach[i], centre[i], gamma)
        bottom = _dual(loss, y[i], z[i] + reach[i], centre[i], gamma)
        movable[i] = top - bottom > 1e-12 * abs(top)


def first_gamma(problem: Any, b: float) -> tuple[float, float]:
    """Return how much to smooth a loss at first, and at least: nothing if it is smooth.

    It bends at all scores but far ones then: its own scale is value / slope^2.
    """
    loss = problem.loss
    if not (math.isfinite(loss.lipschitz) and loss.quadratic):
        return 0.0, 0.0
    gamma = 2.0 * problem.constant_loss(b) / loss.lipschitz**2
    if not gamma * loss.smoothness > _NEARLY_KINKED:
        return 0.0, 0.0
    least = 1e-5 * gamma
    return gamma, min(least, 0.1 / loss.smoothness) if math.isfinite(loss.smoothness) else least

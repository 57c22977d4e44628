"""The L1 penalty with its kink rounded, as on the central path of an interior point method.

|v| is the sum of two slacks, v = p - q, with p (1 - c) = q (1 + c) = mu for a sub-gradient c:

    c(v) = v / (s + mu),   s = sqrt(v^2 + mu^2),   mu -> 0

which is the slope of a smooth convex function.  Each weight has its own mu, in its own unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.losses import Absolute

COOLING = 0.1  # next mu over the present one
LEAST_MU = 1e-14  # last mu over the first one
# Of the largest part of scores: weights that have more stay, though the dual point holds them at 0
SMALL_PARTS = (1.0, 1e-3, 1e-5)
SAME_GAP = 1e-14  # share of the objective: gaps that differ by less count as equal
GAIN_LEFT = 0.3  # mu falls when a step gains less than this share of what rounding the kink costs


def first_mu(problem: Any) -> np.ndarray:
    """Return a mu for each weight that is about as large as the weight could be."""
    of_features = problem.column_sizes
    unit = 1.0 / np.where(of_features > 0.0, of_features, 1.0)
    scale = 1.0
    if problem.loss.task == "regression":
        scale = problem.with_loss(Absolute()).constant_loss(problem.constant()) or 1.0
    return np.broadcast_to(scale * unit, problem.weight_shape).copy()


def value(v: np.ndarray, mu: np.ndarray) -> float:
    """Return the rounded |v|, summed."""
    s = np.hypot(v, mu)
    return float((s - mu - mu * np.log(0.5 * (s / mu + 1.0))).sum())


def slope(v: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Return its derivative, between -1 and 1."""
    return v / (np.hypot(v, mu) + mu)


def curvature(v: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Return its second derivative."""
    s = np.hypot(v, mu)
    return mu / (s * (s + mu))


def cooler(v: np.ndarray, mu: np.ndarray, l1: float, gain: float, first: np.ndarray) -> np.ndarray:
    """Return the next mu: a smaller one if a step gains less than rounding the kink costs."""
    cost = l1 * float((np.abs(v) - slope(v, mu) * v).sum())
    if gain > GAIN_LEFT * cost:
        return mu
    return np.maximum(COOLING * mu, LEAST_MU * first)


def sparsest(
    problem: Any, w: np.ndarray, b: Any, alpha: np.ndarray, enough: float = 0.0
) -> np.ndarray:
    """Return w without weights that the dual point holds at zero, if that proves as much.

    Or if the relative gap is `enough`.  Rounding may hide that a weight is not zero.
    """
    alpha = problem.feasible(alpha)
    primal, gap = problem.plain_gap(w, b, problem.scores(w), alpha)
    held = problem.to_weights(problem.dual_sum(alpha)) == 0.0
    sizes = np.abs(w) * problem.column_sizes
    most = max(gap, SAME_GAP * primal, enough * primal)
    for part in SMALL_PARTS if enough else SMALL_PARTS[:1]:
        bare = np.where(held & (sizes <= part * sizes.max()), 0.0, w)
        if problem.plain_gap(bare, b, problem.scores(bare), alpha)[1] <= most:
            return bare
    return w

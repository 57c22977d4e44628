"""Coordinate descent on a quadratic model with an L1 penalty: directions for many features.

Where there are more features than rows, most weights stay at zero.  A working set of the others
grows from step to step.

Reference: M. Massias, A. Gramfort and J. Salmon, "Celer: a fast solver for the Lasso with dual
extrapolation", ICML 2018, for working sets.
"""

from __future__ import annotations

import numpy as np

from zerogap.kernels.jit import kernel
from zerogap.problem import Problem
from zerogap.rows import DenseRows
from zerogap.solvers.line_search import Way

FIRST_WORKING_SET = 100  # weights in the first working set
MOST_PASSES = 200  # passes over the working set for one direction, at most
LEAST_GAIN = 1e-6  # share of the first pass' gain: a pass that gains less is the last


def descent_way(
    problem: Problem, part: Problem, h: np.ndarray, w: np.ndarray, gradient: np.ndarray
) -> tuple[Way, int]:
    """Return the way to the minimum of the quadratic model, and its cost in products.

    Parameters
    ----------
    problem, part
        The problem, and the rows that are near.
    h : ndarray
        Curvatures of these rows.
    w, gradient : ndarray
        Weights, and the gradient of all but the L1 penalty; that of the intercept comes last.
    """
    d, l1 = problem.shape[1], problem.lam * problem.l1_ratio
    chosen = _working_set(w, gradient[:d], l1)
    columns = np.zeros((0, part.shape[0]))
    if len(chosen):
        some = part.rows.columns(chosen)
        columns = some.X if isinstance(some, DenseRows) else some._matrix().toarray()
        columns = np.ascontiguousarray(columns.T, dtype=np.float64)
    change, moved = np.zeros(len(chosen)), np.zeros(1)
    data = (columns, h, w[chosen], gradient[chosen], change, moved)
    free = (problem.fit_intercept, float(gradient[d:].sum()))
    passes = _descend(*data, *free, problem.strength, l1, MOST_PASSES, LEAST_GAIN)
    end = w.copy()
    end[chosen] += change
    p, p_b = end - w, moved[: int(problem.fit_intercept)]
    kink = l1 * float(np.abs(end).sum() - np.abs(w).sum())
    slope = float(gradient[:d] @ p + gradient[d:] @ p_b) + kink
    before = problem.l1_ratio * float(np.abs(w).sum())
    way = Way(p, p_b, slope, 1.0, kink, before, end)
    return way, int(2 * passes * columns.size / max(1, part.rows.stored)) + 2


def _working_set(w: np.ndarray, gradient: np.ndarray, l1: float) -> np.ndarray:
    """Return the features whose weights are not zero, or whose gradient exceeds the penalty most.

    The set may grow to three times its size.
    """
    support = np.flatnonzero(w)
    pull = np.where(w == 0.0, np.abs(gradient) - l1, 0.0)
    joining = np.flatnonzero(pull > 0.0)
    room = max(FIRST_WORKING_SET, 2 * len(support))
    if len(joining) > room:
        joining = joining[np.argsort(-pull[joining], kind="stable")[:room]]
    return np.sort(np.concatenate([support, joining]))


@kernel
def _descend(
    columns, h, w, gradient, change, moved, intercept, of_intercept, strength, l1, limit, enough
):
    """Minimise gradient.c + c' H c / 2 + l1 |w + c|_1 over the changes c; return the passes."""
    bent = np.zeros(len(h))  # h_i times what the scores have changed
    total = h.sum()
    most = 0.0
    for k in range(limit):
        gain = 0.0
        for j in range(len(w)):
            slope, curvature = gradient[j] + strength * change[j], strength
            for i in range(len(h)):
                slope += columns[j, i] * bent[i]
                curvature += h[i] * columns[j, i] * columns[j, i]
            aim = curvature * (w[j] + change[j]) - slope
            new = np.sign(aim) * max(0.0, abs(aim) - l1) / curvature
            step = new - w[j] - change[j]
            if step != 0.0:
                change[j] += step
                gain += curvature * step * step
                for i in range(len(h)):
                    bent[i] += step * h[i] * columns[j, i]
        if intercept and total > 0.0:
            step = -(of_intercept + bent.sum()) / total
            moved[0] += step
            gain += total * step * step
            bent += step * h
        most = max(most, gain)
        if gain <= enough * most:
            return k + 1
    return limit

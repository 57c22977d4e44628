"""Dual points for weights that are already as exact as rounding allows.

At the optimum of a smooth loss a_i = -phi'(z_i), and u(a) = w.  In a column of large values u(a)
shows every digit that z has lost: scores that are right to 1e-9 leave it 1e3 off where values are
1e12.  So dual variables are moved, to first order as scores would move them, until u(a) = w: that
costs the square of what they move.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from zerogap.problem.circulation import ROUNDING_OF_SUMS
from zerogap.solvers.hessian import DIRECT
from zerogap.solvers.responses import respond, sum_excess, two_like

MOST_ROUNDS = 6  # rounds of corrections; each gains some digits


POLISHED_GAP = 1e-10  # relative gap that needs no polish
PENALTY_OF_ROWS = 1e-2  # penalty's part of the gap over the rows' part at which polishing ends
CONVERGING = 0.1  # a step that leaves less of the residual converges by itself
LARGEST_GAIN = 1e-2  # share of the objective that a step may gain; with more, steps come first


def is_worth_polishing(problem: Any, state: Any, slope: float) -> bool:
    """Tell whether the weights are exact enough for their dual point to be the larger error.

    `slope` is that of the objective along the last Newton step: twice what the step could gain.
    While steps still reduce the residual, nothing is polished.
    """
    falling = state.residual <= CONVERGING * state.unpolished
    state.unpolished = state.residual
    if falling:
        return False
    near = -slope <= LARGEST_GAIN * state.value
    few = problem.shape[1] <= DIRECT and not problem.on_device
    return few and near and state.residual > POLISHED_GAP * state.value


def polished(
    problem: Any,
    w: np.ndarray,
    alpha: np.ndarray,
    solve: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    respond: Callable[[np.ndarray], np.ndarray],
    wanted: np.ndarray,
    excess: Callable[[np.ndarray], float] | None = None,
) -> tuple[np.ndarray, float]:
    """Return dual variables near alpha whose sum belongs to w, and the penalty's part of the gap.

    Parameters
    ----------
    problem, w, alpha
        A problem, weights, and dual variables near those that belong to them.
    solve : callable
        Solves with the Hessian, for weights and intercepts.
    respond : callable
        How far dual variables fall if scores rise by so much.
    wanted : ndarray
        The dual sum that belongs to w: a sub-gradient of the penalty, over lam.
    excess : callable, optional
        The rows' part of the gap for some dual variables, infinite outside of their domain: there,
        and where the penalty's part is far less, it ends the rounds.
    """
    best, least, slack = alpha, math.inf, math.inf
    for k in range(MOST_ROUNDS + 1):
        rough = problem.on_device or not k  # what the first sum has lost, the next round mends
        u = problem.dual_sum(alpha) if rough else problem.precise_dual_sum_of(alpha)
        now = problem.penalty_terms(w, u)[1]
        cost = now + problem.lam * _imbalance(problem, alpha)
        rows = excess(alpha) if excess is not None and k else 0.0
        if cost < least and rows < math.inf:
            best, slack = alpha, now
        if not cost < 0.5 * least or rows == math.inf or cost < PENALTY_OF_ROWS * rows:
            break
        least = cost
        lack = problem.lam * (u - wanted)
        p, p_b = solve(lack, problem.share @ alpha if problem.fit_intercept else np.zeros(0))
        dz = problem.scores(p)
        alpha = alpha - respond(dz + p_b if problem.fit_intercept else dz)
    return best, slack


def take_dual_of_others(problem: Any, state: Any, change: np.ndarray) -> None:
    """Take the dual point of other weights, which differ by `change`, if its gap is smaller.

    The state is that of `Newton`, for a smooth loss, after a step that conjugate gradients found.
    """
    d = problem.shape[1]
    dz = problem.scores(change[:d]) + float(change[d:].sum())
    alpha, h = two_like(problem, dz)
    respond(problem, state.near_z, dz, 1.0, alpha, h, state.centre, 0.0)
    if state.hessian is not None and not len(state.near_u):  # a parabola: its gap is known
        excess, residual = 0.0, state.hessian.dual_gap
    else:
        data = (problem.loss, problem.y, problem.share, alpha, state.near_z)
        excess = problem.over_rows(sum_excess, *data)
        residual = problem.penalty_terms(state.w, problem.dual_sum(alpha))[1]
    if excess + residual < state.excess + state.residual:
        state.polished, state.excess, state.residual = alpha, excess, residual


def _imbalance(problem: Any, alpha: np.ndarray) -> float:
    """Return the squared sums of the dual variables, which should be zero, over their sizes."""
    if not problem.fit_intercept:
        return 0.0
    total = float((problem.share @ np.abs(alpha)).sum())
    rest = float(np.abs(problem.share @ alpha).max())
    return (rest / (ROUNDING_OF_SUMS * total)) ** 2 if total > 0.0 else 0.0

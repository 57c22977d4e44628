"""Conjugate gradients over the free dual variables: those strictly between their bounds.

If the loss is made of lines and parabolas, the free dual variables solve linear equations as soon
as it is known which of the others are at a bound.  Coordinate ascent solves these equations one row
at a time, which is very slow if rows are nearly collinear.

Reference: J. J. Moré and G. Toraldo, "On the solution of large quadratic programming problems with
bound constraints", SIAM Journal on Optimization 1, 1991.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from zerogap.kernels.jit import rowwise
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.problem.row_sums import clip_duals, sum_conjugates

ROUGH_RESIDUAL = 1e-2  # conjugate gradients stop at this share of the first residual
LEAST_CURVATURE = 1e-12  # share of the largest curvature so far below which it counts as zero
SHORTER_STEPS = (1.0, 0.5, 0.25, 0.125)  # shares of the step that are tried, in this order


@rowwise(sums=0)
def _find_scores(loss, y, alpha, scores, bend, start, stop):
    """The scores at which alpha is optimal, or NaN if it is not free; and the curvature there"""
    for i in range(start, stop):
        a = alpha[i]
        bend[i] = loss.stiffness(a, y[i])
        free = a != 0.0 and bend[i] < np.inf
        scores[i] = -loss.conjugate(a, y[i]) / a - 0.5 * bend[i] * a if free else np.nan


@rowwise(sums=0)
def _find_room(loss, y, alpha, step, room, start, stop):
    """The share of the step after which alpha meets a bound or zero"""
    for i in range(start, stop):
        low, high = loss.domain(y[i])
        end = high if step[i] > 0.0 else low
        if step[i] * alpha[i] < 0.0:
            end = 0.0
        room[i] = (end - alpha[i]) / step[i] if step[i] != 0.0 else np.inf


class Step(NamedTuple):
    """The outcome of `improve`."""

    products: int
    whole: bool  # whether all of it was taken


def has_free_steps(problem: Problem) -> bool:
    """Tell whether `improve` applies: bounded dual variables with linear equations between them."""
    loss = problem.loss
    return loss.quadratic and loss.has_ends and isinstance(problem.penalty, L2)


def compile_for(problem: Problem) -> None:
    """Compile or load what `improve` needs."""
    n, d = problem.shape
    few = problem.take(np.arange(min(1, n)))
    improve(few, np.arange(min(1, n)), 0.4 * few.y, np.zeros(d), np.zeros(2), 0.0, 1)


@np.errstate(over="ignore", invalid="ignore")  # steps that are not finite are rejected
def improve(
    problem: Problem,
    places: np.ndarray,
    alpha: np.ndarray,
    u: np.ndarray,
    bias: np.ndarray,
    rho: float,
    limit: int,
) -> Step:
    """Raise the dual over the free ones among alpha[places], with at most `limit` products.

    With an intercept, the dual is the one that `SDCA` maximises: b has rho mean(alpha) added.
    """
    scores, bend = np.empty((2, problem.shape[0]))
    problem.over_rows(_find_scores, problem.loss, problem.y, alpha, scores, bend)
    places = places[np.isfinite(scores[places]) & (problem.share[places] > 0.0)]
    if not len(places):
        return Step(0, True)
    part, before = problem.take(places), alpha[places]
    lack = scores[places] - part.scores(u) - bias[0]
    step, products = _solve(part, lack, bend[places], rho, limit)
    if not products:
        return Step(0, True)
    level = part.over_rows(sum_conjugates, part.loss, part.y, part.share, before)
    for size in _sizes(part, before, step):
        after = before + size * step
        part.over_rows(clip_duals, part.loss, part.y, part.share, after)
        change = after - before
        du, shift = part.dual_sum(change), float(part.share @ change)
        gain = level - part.over_rows(sum_conjugates, part.loss, part.y, part.share, after)
        gain -= problem.lam * float(du @ u + 0.5 * (du @ du))
        gain -= shift * float(bias[0]) + 0.5 * rho * shift * shift
        if gain > 0.0:
            alpha[places] = after
            u += du
            bias += (rho * shift, shift)
            return Step(products, size == 1.0)
    return Step(products, False)


def _sizes(part: Problem, alpha: np.ndarray, step: np.ndarray) -> Iterator[float]:
    """Yield the shares of the step to try; few steps need the last one."""
    yield from SHORTER_STEPS
    yield _longest(part, alpha, step)


def _longest(part: Problem, alpha: np.ndarray, step: np.ndarray) -> float:
    """Return the share of the step that keeps free variables free: it always raises the dual."""
    room = np.empty(len(alpha))
    part.over_rows(_find_room, part.loss, part.y, alpha, step, room)
    return min(1.0, float(room.min()))


def _solve(
    part: Problem, lack: np.ndarray, bend: np.ndarray, rho: float, limit: int
) -> tuple[np.ndarray, int]:
    """Return the step that would change the scores by `lack`, and the number of products.

    The equations are multiplied by roots of the shares, which makes them symmetric.
    """
    root = np.sqrt(part.share)
    rest, eta, products = root * lack, np.zeros(len(lack)), 0
    along, size = rest.copy(), float(rest @ rest)
    goal, steepest = ROUGH_RESIDUAL**2 * size, 0.0
    while products < limit and size > goal:
        products += 1
        step = along / root
        moved = part.scores(part.dual_sum(step)) + rho * float(part.share @ step)
        product = root * moved + bend * along
        curvature, square = float(along @ product), float(along @ along)
        steepest = max(steepest, curvature / square)
        if not curvature > LEAST_CURVATURE * steepest * square:  # nearly collinear rows
            break
        length = size / curvature
        eta += length * along
        rest -= length * product
        before, size = size, float(rest @ rest)
        along = rest + (size / before) * along
    return eta / root, products

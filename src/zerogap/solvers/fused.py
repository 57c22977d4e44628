"""Newton's method for few features and smooth losses: one pass over the rows for each step.

A look at a point returns value, gradient and Hessian together.  Rows are read in blocks whose
columns stay in cache, so that loops over rows share vector instructions, and nothing as long as the
data is written.  A step that is taken has been looked at, so the next one costs nothing to begin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from zerogap._jit import kernel
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.solvers.hessian import SMALL_PIVOT, is_parabola
from zerogap.solvers.line_search import search

MOST_FEATURES = 64  # beyond, BLAS sums up Hessians faster
BLOCK_ROWS = 128  # whose columns stay in the first cache
LEAST_FILLED = 0.3  # share of non-zeros below which sparse loops are faster
LEAST_GAIN = 1e-9  # of the objective: a smaller one is the business of more careful steps


class Look(NamedTuple):
    """The objective near a point: the intercept, if there is one, comes last."""

    value: float
    gradient: np.ndarray
    hessian: np.ndarray  # its lower triangle


def can_fuse(problem: Problem) -> bool:
    """Tell whether steps can be made so: the loss itself must be smooth."""
    n, d = problem.shape
    few = d <= MOST_FEATURES and problem.rows.stored >= LEAST_FILLED * n * d
    return few and isinstance(problem.penalty, L2) and not problem.on_device


def step(problem: Problem, state: Any) -> bool:
    """Make one step, and tell if it could be made: the Hessian must be clearly positive.

    Where little is gained, or nothing can be, other steps are asked for by ``state.fused = False``.
    """
    d, here = problem.shape[1], state.here
    at = np.append(state.w, state.b) if problem.fit_intercept else state.w
    if here is None:
        here = _look(problem, at)
    direction = _direction(here)
    state.fused = direction is not None
    if direction is None:
        return False
    slope = float(here.gradient @ direction)
    if is_parabola(problem.loss):
        t, there = 1.0, _along_parabola(here, direction, slope)
    else:
        t, there = _search(problem, here, at, direction, slope)
    found = at + t * direction
    state.w, state.b = found[:d], float(found[d:].sum())
    state.here, state.value, state.steps = there, there.value, state.steps + 1
    of_weights, of_intercept = there.gradient[:d], there.gradient[d:]
    state.residual = float(of_weights @ of_weights) / (2.0 * problem.lam)
    curvature = max(float(there.hessian[-1, -1]), 1e-300)
    state.excess = float(of_intercept @ of_intercept) / (2.0 * curvature)
    state.fused = here.value - there.value > LEAST_GAIN * abs(there.value)
    return True


def _look(problem: Problem, at: np.ndarray) -> Look:
    """Return the objective near a point."""
    d, size = problem.shape[1], len(at)
    gradient, hessian, columns = np.zeros(size), np.zeros((size, size)), np.ones((size, BLOCK_ROWS))
    data = (problem.rows, problem.loss, problem.y, problem.share, at, d)
    blocks = problem.rows.blocks()
    value = sum(_add_look(*data, gradient, hessian, columns, *block) for block in blocks)
    w, places = at[:d], np.arange(d)
    gradient[:d] += problem.lam * w
    hessian[places, places] += problem.lam
    return Look(value + 0.5 * problem.lam * float(w @ w), gradient, hessian)


def _direction(here: Look) -> np.ndarray | None:
    """Return the Newton direction, unless the Hessian is too near to a singular one.

    It is factorised with its diagonal scaled to one: units of features are no matter.
    """
    diagonal = np.diagonal(here.hessian)
    if not diagonal.min() > 0.0:
        return None
    scale = 1.0 / np.sqrt(diagonal)
    matrix = here.hessian * scale * scale[:, None]
    # the transposed matrix has the order that LAPACK wants
    factor, found, failed = lapack.dposv(matrix.T, -scale * here.gradient, overwrite_a=True)
    if failed or not float(np.diagonal(factor).min()) ** 2 >= SMALL_PIVOT:
        return None
    return scale * found


def _along_parabola(here: Look, direction: np.ndarray, slope: float) -> Look:
    """Return what a look at the end of the step would see: the Hessian is the same everywhere."""
    lower = here.hessian
    product = lower @ direction + np.tril(lower, -1).T @ direction
    value = here.value + slope + 0.5 * float(direction @ product)
    return Look(value, here.gradient + product, lower)


def _search(
    problem: Problem, here: Look, at: np.ndarray, direction: np.ndarray, slope: float
) -> tuple[float, Look]:
    """Return how far to go, and what is seen there."""
    there = here

    def seen(t: float) -> tuple[float, float]:
        nonlocal there
        there = _look(problem, at + t * direction)
        return there.value, float(there.gradient @ direction)

    t, _ = search(seen, here.value, slope)
    return t, there


@kernel
def _add_look(rows, loss, y, share, at, d, gradient, hessian, columns, start, stop):
    """Add the rows' part of gradient and Hessian, return that of the value

    `columns` has room for a block of columns, with ones in that of the intercept.
    """
    value, length = 0.0, columns.shape[1]
    z, a, h, scaled = np.empty(length), np.empty(length), np.empty(length), np.empty(length)
    for first in range(start, stop, length):
        count = min(length, stop - first)
        columns[:d] = 0.0
        for i in range(count):
            for k in rows.span(first + i):
                columns[rows.entry_column(first + i, k), i] = rows.entry_value(first + i, k)
        z[:] = 0.0
        for j in range(len(at)):
            for i in range(count):
                z[i] += at[j] * columns[j, i]
        for i in range(count):
            target, s = y[first + i], share[first + i]
            dual = -loss.derivative(z[i], target)
            value += s * loss.value(z[i], target)
            h[i] = s / loss.stiffness(dual, target)
            a[i] = s * dual
        for j in range(len(at)):
            total = 0.0
            for i in range(count):
                total += a[i] * columns[j, i]
                scaled[i] = h[i] * columns[j, i]
            gradient[j] -= total
            for k in range(j + 1):
                total = 0.0
                for i in range(count):
                    total += scaled[i] * columns[k, i]
                hessian[j, k] += total
    return value

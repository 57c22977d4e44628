"""Newton's method for few features and smooth losses: one pass over the rows for each step.

A look at a point returns value, gradient and Hessian together.  Rows are read in blocks whose
columns stay in cache, so that loops over rows share vector instructions, and nothing as long as the
data is written.  A step that is taken has been looked at, so the next one costs nothing to begin.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from zerogap.kernels.jit import kernel
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.solvers.hessian import SMALL_PIVOT, is_parabola
from zerogap.solvers.line_search import search

MOST_FEATURES = 32  # beyond, Hessians of a sample of the rows are cheaper
LEAST_FILLED = 0.3  # share of non-zeros below which sparse loops are faster
_BLOCK_ROWS = 128  # whose few columns stay in the first cache
_FEW_LEFT = 0.7  # of a block's rows: fewer are worth moving together
# A step multiplies the gap by about this times what it gains of the objective: 0.5 to 30 was seen.
# Where that makes it so small a part of the tolerance, it is made without a look.
CONTRACTION, SURE = 100.0, 0.3
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
    state.steps += 1
    gap = -CONTRACTION * slope / max(here.value, 1e-300) * sum(_gap(problem, here))
    if gap <= SURE * state.tol * here.value and not is_parabola(problem.loss):
        # the certificate will look there, and nobody needs another Hessian
        _move(state, at + direction, d)
        state.here, state.value = None, here.value + 0.5 * slope
        state.residual, state.excess = gap, 0.0
        return True
    if is_parabola(problem.loss):
        t, there = 1.0, _along_parabola(here, direction, slope)
    else:
        t, there = _search(problem, here, at, direction, slope)
    _move(state, at + t * direction, d)
    state.here, state.value = there, there.value
    state.residual, state.excess = _gap(problem, there)
    state.fused = here.value - there.value > LEAST_GAIN * abs(there.value)
    return True


def _move(state: Any, to: np.ndarray, d: int) -> None:
    state.w, state.b = to[:d], float(to[d:].sum())


def _gap(problem: Problem, here: Look) -> tuple[float, float]:
    """Return the parts of the gap that the gradients of weights and intercept tell."""
    d = problem.shape[1]
    of_weights, of_intercept = here.gradient[:d], here.gradient[d:]
    curvature = max(float(here.hessian[-1, -1]), 1e-300)
    residual = float(of_weights @ of_weights) / (2.0 * problem.lam)
    return residual, float(of_intercept @ of_intercept) / (2.0 * curvature)


def _look(problem: Problem, at: np.ndarray) -> Look:
    """Return the objective near a point."""
    gradient, hessian = np.zeros(len(at)), np.zeros((len(at), len(at)))
    data = (problem.rows, problem.loss, problem.y, problem.share, problem.lam)
    found = [
        _add_look(*data, at, problem.shape[1], gradient, hessian, *block)
        for block in problem.rows.blocks()
    ]
    return Look(math.fsum(found), gradient, hessian)


def _direction(here: Look) -> np.ndarray | None:
    """Return the Newton direction, unless the Hessian is too near to a singular one."""
    direction = np.empty_like(here.gradient)
    pivot = _solve(here.hessian, here.gradient, direction)
    return direction if pivot >= SMALL_PIVOT else None


def _along_parabola(here: Look, direction: np.ndarray, slope: float) -> Look:
    """Return what a look at the end of the step would see: the Hessian is the same everywhere."""
    lower, product = here.hessian, np.zeros_like(direction)
    _add_product(lower, direction, product)
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
def _drop_flat_rows(columns, a, h, places, count):
    """Move the rows of a block that have slope or curvature to its front, if they are few

    Returns how many there are: the others add nothing to gradient and Hessian.
    """
    kept = 0
    for i in range(count):
        places[kept] = i
        kept += a[i] != 0.0 or h[i] != 0.0
    if kept > _FEW_LEFT * count:
        return count
    for j in range(len(columns)):
        for i in range(kept):
            columns[j, i] = columns[j, places[i]]
    for i in range(kept):
        a[i], h[i] = a[places[i]], h[places[i]]
    return kept


@kernel
def _add_look(rows, loss, y, share, lam, at, d, gradient, hessian, start, stop):
    """Add the part of some rows to gradient and Hessian, return that of the value

    The penalty belongs to the first rows.
    """
    value, length = 0.0, _BLOCK_ROWS
    columns = np.ones((len(at), length))  # that of the intercept has ones
    z, a, h, scaled = np.empty(length), np.empty(length), np.empty(length), np.empty(length)
    places = np.empty(length, np.intp)
    if start == 0:
        for j in range(d):
            value += 0.5 * lam * at[j] * at[j]
            gradient[j] += lam * at[j]
            hessian[j, j] += lam
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
        count = _drop_flat_rows(columns, a, h, places, count)
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


@kernel
def _add_product(lower, v, out):
    """Add the product of a symmetric matrix, of which the lower triangle is known, and v"""
    for j in range(len(v)):
        out[j] += lower[j, j] * v[j]
        for k in range(j):
            out[j] += lower[j, k] * v[k]
            out[k] += lower[j, k] * v[j]


@kernel
def _solve(hessian, gradient, direction):
    """Set direction = -hessian^-1 gradient, return the smallest pivot: direction is void if <= 0

    The matrix is factorised with its diagonal scaled to one: units of features are no matter.
    """
    size, smallest = len(gradient), 1.0
    factor, scale = np.empty((size, size)), np.empty(size)
    for j in range(size):
        if not hessian[j, j] > 0.0:
            return 0.0
        scale[j] = 1.0 / np.sqrt(hessian[j, j])
        for k in range(j + 1):
            total = hessian[j, k] * scale[j] * scale[k]
            for m in range(k):
                total -= factor[j, m] * factor[k, m]
            if k < j:
                factor[j, k] = total / factor[k, k]
            elif total > 0.0:
                factor[j, j], smallest = np.sqrt(total), min(smallest, total)
            else:
                return 0.0
    for j in range(size):  # forwards
        total = -scale[j] * gradient[j]
        for k in range(j):
            total -= factor[j, k] * direction[k]
        direction[j] = total / factor[j, j]
    for j in range(size - 1, -1, -1):  # and back
        direction[j] /= factor[j, j]
        for k in range(j):
            direction[k] -= factor[j, k] * direction[j]
    for j in range(size):
        direction[j] *= scale[j]
    return smallest

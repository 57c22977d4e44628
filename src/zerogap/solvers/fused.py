"""Newton's method for few features and smooth losses: one pass over the rows for each step.

One pass computes value, gradient and Hessian at a point together (a `Look`).  Rows are read in
blocks that stay in cache, which lets the compiler use vector instructions, and no vector of length
n is written.  The line search ends at a point whose Hessian is known: the next step starts there.
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

MOST_FEATURES = 32  # features; with more, Hessians of a sample of the rows are cheaper
LEAST_FILLED = 0.3  # share of non-zeros below which sparse loops are faster
_BLOCK_ROWS = 128  # rows whose few columns stay in the first-level cache
_FEW_LEFT = 0.7  # share of a block's rows below which moving them together pays
# A step that gains the share s of the objective multiplies the gap by at most CONTRACTION * s
# (0.5 to 30 times s was seen).  If that leaves at most SURE times the tolerance, the step is made
# without a line search.
CONTRACTION, SURE = 100.0, 0.3
LEAST_GAIN = 1e-9  # relative gain of a step below which the slower, more exact steps take over


class Look(NamedTuple):
    """Value, gradient and Hessian at a point; the intercept, if there is one, comes last."""

    value: float
    gradient: np.ndarray
    hessian: np.ndarray  # its lower triangle


def can_fuse(problem: Problem) -> bool:
    """Tell whether the shape, storage and penalty allow `step`; the loss must be smooth as well."""
    n, d = problem.shape
    few = d <= MOST_FEATURES and problem.rows.stored >= LEAST_FILLED * n * d
    return few and isinstance(problem.penalty, L2) and not problem.on_device


def step(problem: Problem, state: Any) -> bool:
    """Make one step; return False if it could not be made, as the Hessian is nearly singular.

    Sets ``state.fused = False`` if the next step should be one of `Newton`'s own.
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
        # the certificate computes the objective there, and no further Hessian is needed
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
    """Return the parts of the gap that follow from the gradients of weights and intercept."""
    d = problem.shape[1]
    of_weights, of_intercept = here.gradient[:d], here.gradient[d:]
    curvature = max(float(here.hessian[-1, -1]), 1e-300)
    residual = float(of_weights @ of_weights) / (2.0 * problem.lam)
    return residual, float(of_intercept @ of_intercept) / (2.0 * curvature)


def _look(problem: Problem, at: np.ndarray) -> Look:
    """Return value, gradient and Hessian at a point."""
    gradient, hessian = np.zeros(len(at)), np.zeros((len(at), len(at)))
    data = (problem.rows, problem.loss, problem.y, problem.share, problem.lam)
    found = [
        _add_look(*data, at, problem.shape[1], gradient, hessian, *block)
        for block in problem.rows.blocks()
    ]
    return Look(math.fsum(found), gradient, hessian)


def _direction(here: Look) -> np.ndarray | None:
    """Return the Newton direction, or None if the Hessian is nearly singular."""
    direction = np.empty_like(here.gradient)
    pivot = _solve(here.hessian, here.gradient, direction)
    return direction if pivot >= SMALL_PIVOT else None


def _along_parabola(here: Look, direction: np.ndarray, slope: float) -> Look:
    """Return the `Look` at the end of the step without a pass: the Hessian stays the same."""
    lower, product = here.hessian, np.zeros_like(direction)
    _add_product(lower, direction, product)
    value = here.value + slope + 0.5 * float(direction @ product)
    return Look(value, here.gradient + product, lower)


def _search(
    problem: Problem, here: Look, at: np.ndarray, direction: np.ndarray, slope: float
) -> tuple[float, Look]:
    """Return the length of the step, and the `Look` at its end."""
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

    Returns the number of rows to read: the others add nothing to gradient and Hessian.
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
    """Add what some rows contribute to gradient and Hessian; return their part of the value

    The rows from 0 on include the penalty.
    """
    value, length = 0.0, _BLOCK_ROWS
    columns = np.ones((len(at), length))  # the intercept's column stays 1
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
    """out += M v for a symmetric matrix M with this lower triangle"""
    for j in range(len(v)):
        out[j] += lower[j, j] * v[j]
        for k in range(j):
            out[j] += lower[j, k] * v[k]
            out[k] += lower[j, k] * v[j]


@kernel
def _solve(hessian, gradient, direction):
    """Set direction = -hessian^-1 gradient; return the smallest pivot, which must be positive

    The matrix is factorised with its diagonal scaled to one, so units of features do not matter.
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
    for j in range(size):  # forward substitution
        total = -scale[j] * gradient[j]
        for k in range(j):
            total -= factor[j, k] * direction[k]
        direction[j] = total / factor[j, j]
    for j in range(size - 1, -1, -1):  # backward substitution
        direction[j] /= factor[j, j]
        for k in range(j):
            direction[k] -= factor[j, k] * direction[j]
    for j in range(size):
        direction[j] *= scale[j]
    return smallest

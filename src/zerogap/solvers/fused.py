"""Newton's method for few features and smooth losses: one pass over the rows for each step.

One pass computes value, gradient and Hessian at a point together (a `Look`).  Rows are read in
blocks that stay in cache, which lets the compiler use vector instructions, and no vector of length
n is written.  The line search ends at a point whose Hessian is known: the next step starts there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

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
    size, d, lam = len(at), problem.shape[1], problem.lam
    gradient, hessian = np.zeros(size), np.zeros((size, size))
    gradient[:d] = lam * at[:d]
    penalty = 0.5 * float(at[:d] @ gradient[:d])
    hessian.flat[: d * (size + 1) : size + 1] = lam
    data = (problem.rows, problem.loss, problem.y, problem.share, at, d, gradient, hessian)
    columns, places = np.ones((size, _BLOCK_ROWS)), np.empty(_BLOCK_ROWS, np.intp)
    room = (columns, np.empty((4, _BLOCK_ROWS)), places)
    found = [_add_look(*data, *room, *block) for block in problem.rows.blocks()]
    return Look(math.fsum([penalty, *found]), gradient, hessian)


def _direction(here: Look) -> np.ndarray | None:
    """Return the Newton direction, or None if the Hessian is nearly singular.

    LAPACK is called as it is: a loop of our own would have to be compiled for the first fit.
    Pivots are shares of the diagonal, so units of features do not matter.
    """
    factor, failed = dpotrf(here.hessian, lower=1, clean=0)
    pivots = factor.diagonal() ** 2
    if failed or not (pivots >= SMALL_PIVOT * here.hessian.diagonal()).all():
        return None
    return -dpotrs(factor, here.gradient, lower=1)[0]


def _along_parabola(here: Look, direction: np.ndarray, slope: float) -> Look:
    """Return the `Look` at the end of the step without a pass: the Hessian stays the same."""
    lower = here.hessian
    product = lower @ direction + np.tril(lower, -1).T @ direction
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
def _add_look(rows, loss, y, share, at, d, gradient, hessian, columns, work, places, start, stop):
    """Add what some rows contribute to gradient and Hessian; return their part of the value

    `columns`, `work` and `places` are room for a block of rows, made by NumPy: no code for that
    has to be compiled.  `columns` begins as ones, and that of the intercept stays so.
    """
    value, length = 0.0, len(places)
    z, a, h, scaled = work[0], work[1], work[2], work[3]
    for first in range(start, stop, length):
        count = min(length, stop - first)
        for j in range(d):
            for i in range(length):
                columns[j, i] = 0.0
        for i in range(count):
            for k in rows.span(first + i):
                columns[rows.entry_column(first + i, k), i] = rows.entry_value(first + i, k)
        for i in range(length):
            z[i] = 0.0
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

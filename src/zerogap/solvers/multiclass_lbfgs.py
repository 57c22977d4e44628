"""L-BFGS for the softmax of many classes: all the work is in products of matrices.

Reference: D. C. Liu and J. Nocedal, "On the limited memory BFGS method for large scale
optimization", Mathematical Programming 45, 1989.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np

from zerogap.kernels import exp_log
from zerogap.kernels.jit import rowwise
from zerogap.kernels.machine_code import first_time
from zerogap.losses import Softmax
from zerogap.penalties import L2
from zerogap.solvers.dual_start import warm_duals
from zerogap.solvers.hessian import DIRECT
from zerogap.solvers.line_search import search
from zerogap.solvers.multiclass_hessian import (
    LEAST_OF_INTERCEPT,
    inverse_of_correlations,
    preconditioned,
)
from zerogap.solvers.protocol import Answer, Solver, State
from zerogap.solvers.warm_votes import apart

# Steps that are remembered.  30 were measured to save a tenth of the steps at C = 100.
PAIRS_REMEMBERED = 10
ROWS_PER_FEATURE = 8  # rows per feature of the sample whose moments are the first Hessian
SINGLE_PRECISION_GAP = 1e-5  # relative gap down to which products in single precision are enough
# Largest column size over the median, up to which the method is taken.  At 1e3 it was measured to
# take twice Newton's time.
UNEVEN_COLUMNS = 100.0
LONGEST_INTERCEPT_STEP = 1.0  # odds change by a factor of e, where parabolas begin to mislead
LEAST_BEND = 1e-12  # curvature along a step over |step| |change|, below which it is rounding
BYTES_PER_VOTE = 70.0  # bytes for each row and class, those of a certificate included
_EMPTY = np.empty(0)


@rowwise(sums=2)
def _answer_scores(y, share, z, dz, t, c, start, stop):
    """c_i := share_i (softmax(z_i + t dz_i) - e_y); return the loss and its slope along dz"""
    value, slope = 0.0, 0.0
    for i in range(start, stop):
        top = z[i, 0] + t * dz[i, 0]
        for k in range(1, z.shape[1]):
            top = max(top, z[i, k] + t * dz[i, k])
        total, lean = 0.0, 0.0
        for k in range(z.shape[1]):
            e = exp_log.exp(z[i, k] + t * dz[i, k] - top)
            total += e
            lean += e * dz[i, k]
            c[i, k] = e
        value += share[i] * (log(total) + (top - (z[i, y[i]] + t * dz[i, y[i]])))
        slope += share[i] * (lean / total - dz[i, y[i]])
        c[i, y[i]] = 0.0  # minus the others: a class that dominates leaves them no digits
        others, unit = 0.0, share[i] / total
        for k in range(z.shape[1]):
            c[i, k] *= unit
            others += c[i, k]
        c[i, y[i]] = -others
    return value, slope


@dataclass
class MulticlassLBFGSState(State):
    """State of `MulticlassLBFGS`; intercepts are a last column of weights and their gradient."""

    w: np.ndarray = field(default_factory=lambda: _EMPTY)
    z: np.ndarray = field(default_factory=lambda: _EMPTY)  # scores
    c: np.ndarray = field(default_factory=lambda: _EMPTY)  # slopes of the rows' losses
    gradient: np.ndarray = field(default_factory=lambda: _EMPTY)
    scale: np.ndarray = field(default_factory=lambda: _EMPTY)  # the preconditioner
    inverse: np.ndarray = field(default_factory=lambda: _EMPTY)
    steps: np.ndarray = field(default_factory=lambda: _EMPTY)  # the last ones, oldest first
    changes: np.ndarray = field(default_factory=lambda: _EMPTY)  # of the gradient in them
    single: bool = False  # whether products are in single precision
    stalled: bool = False  # whether rounding ends the descent
    value: float = math.inf
    residual: float = math.inf  # the gap, roughly


@dataclass(frozen=True)
class MulticlassLBFGS(Solver):
    """L-BFGS for the softmax, from the inverse of the Hessian at the best constant model.

    That Hessian is the same matrix of the features for each class up to a factor, so its inverse
    takes one factorisation, of a sample of rows if there are many.  Each step is a product of the
    rows with a direction, and one of their slopes with the rows; the line search needs none.

    Notes
    -----
    An update is one step, and counts as an epoch.  Rows in single precision are multiplied in
    single precision until the gap is 1e-5 of the objective.  Memory: the data, three numbers for
    each row and class and as many for a certificate, 20 matrices of weights, and d^2.

    Examples
    --------
    >>> import zerogap as zg
    >>> from zerogap.solvers.multiclass_lbfgs import MulticlassLBFGS
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> problem = zg.Problem(X, [0, 1, 2], "softmax", lam=1e-3)
    >>> result = zg.solve(problem, MulticlassLBFGS(), tol=1e-9, random_state=0)
    >>> result.certificate.relative_gap <= 1e-9
    True
    """

    multiclass = True

    def begin(
        self, problem: Any, rng: np.random.Generator, warm: Answer | None = None
    ) -> MulticlassLBFGSState:
        (C, d), zeros = problem.weight_shape, problem.xp.zeros
        state = MulticlassLBFGSState(rng, draw=rng)
        state.w = zeros((C, d + problem.fit_intercept))
        if warm is not None:
            w, b, _ = warm
            state.w[:, :d] = apart(w)
            state.c = -problem.share[:, None] * warm_duals(problem, warm)
        if problem.fit_intercept:
            state.w[:, d] = problem.first_intercept() if warm is None else b
        state.single = _is_single(problem)
        state.steps = state.changes = zeros((0, *state.w.shape))
        return state

    def epoch_length(self, problem: Any) -> int:
        return 1

    def answer(self, problem: Any, state: MulticlassLBFGSState) -> Answer:
        d, w = problem.shape[1], state.w
        b: Any = w[:, d].copy() if problem.fit_intercept else problem.xp.zeros(len(w))
        if not len(state.c):
            return w[:, :d].copy(), b, problem.xp.zeros(problem.dual_shape)
        share = np.where(problem.share > 0.0, problem.share, 1.0)[:, None]
        return w[:, :d].copy(), b, state.c / -share

    def relative_gap(self, problem: Any, state: MulticlassLBFGSState) -> float:
        return state.residual / max(state.value, 1e-300)

    def is_stalled(self, state: MulticlassLBFGSState) -> bool:
        return state.stalled

    def steps(self, problem: Any, state: MulticlassLBFGSState, count: int) -> int:
        if not count and first_time(MulticlassLBFGS, *problem.kind):
            few = problem.take(problem.xp.arange(min(2, problem.shape[0])))
            self.steps(few, self.begin(few, np.random.default_rng(0)), 1)
        passes = 0
        for _ in range(count):
            if not len(state.scale):
                state.scale, state.inverse = _first_hessian(problem, state.rng)
            if not len(state.z):
                passes += self._look_around(problem, state)
            passes += self._step(problem, state)
        return passes * problem.shape[0]

    def _look_around(self, problem: Any, state: MulticlassLBFGSState) -> int:
        """Compute scores, slopes and gradient of the present weights; return the passes."""
        state.z = self._scores(problem, state.w, False)
        state.c = problem.xp.empty(problem.dual_shape, np.float32 if state.single else np.float64)
        self._answer(problem, state)
        self._set_gradient(problem, state)
        return 2

    def _answer(self, problem: Any, state: MulticlassLBFGSState) -> None:
        """Set the slopes and the value that belong to weights and scores."""
        none = np.zeros_like(state.c)
        data = (problem.y, problem.share, state.z, none, 0.0, state.c)
        loss, _ = problem.over_rows(_answer_scores, *data)
        w = state.w[:, : problem.shape[1]]
        state.value = loss + 0.5 * problem.strength * float((w * w).sum())

    def _set_gradient(self, problem: Any, state: MulticlassLBFGSState) -> None:
        d, w = problem.shape[1], state.w[:, : problem.shape[1]]
        gradient = np.empty_like(state.w)
        gradient[:, :d] = problem.gathered(state.c)
        gradient[:, :d] += problem.strength * w
        squares = float((gradient[:, :d] ** 2).sum())
        if problem.fit_intercept:
            gradient[:, d] = state.c.sum(axis=0, dtype=np.float64)
            # a dual point whose votes balance differs by about so much
            squares += float((gradient[:, d] ** 2).sum()) * problem.mean_sqnorm
        state.gradient, state.residual = gradient, 0.5 * squares / problem.strength

    def _scores(self, problem: Any, w: np.ndarray, single: bool) -> np.ndarray:
        """Return the scores of all rows, intercepts included."""
        d = problem.shape[1]
        v = problem.xp.ascontiguousarray(w[:, :d])
        z = problem.scores(v.astype(np.float32) if single else v)
        if problem.fit_intercept:
            z += w[:, d].astype(z.dtype)
        return z

    def _step(self, problem: Any, state: MulticlassLBFGSState) -> int:
        """Make one step with a line search; return the passes it took."""
        d, gradient = problem.shape[1], state.gradient
        direction = self._direction(state)
        dz = self._scores(problem, direction, state.single)
        w, v = state.w[:, :d].ravel(), direction[:, :d].ravel()
        ww, wv, vv = float(w @ w), float(w @ v), float(v @ v)

        def look(t: float) -> tuple[float, float]:
            data = (problem.y, problem.share, state.z, dz, t, state.c)
            value, slope = problem.over_rows(_answer_scores, *data)
            value += 0.5 * problem.strength * (ww + 2.0 * t * wv + t * t * vv)
            return value, slope + problem.strength * (wv + t * vv)

        t, value = search(look, state.value, _dot(gradient, direction))
        worn, fresh, before = not value < state.value, not len(state.steps), state.w
        state.w, state.value = state.w + t * direction, value
        state.z += t * dz
        if problem.fit_intercept:
            self._settle(problem, state)
        self._set_gradient(problem, state)
        self._remember(state, state.w - before, state.gradient - gradient)
        if state.single and (worn or state.residual <= SINGLE_PRECISION_GAP * state.value):
            state.single = False
            return 2 + self._look_around(problem, state)
        if worn:  # rounding, or what the last steps have shown misleads
            state.stalled, state.steps, state.changes = fresh, state.steps[:0], state.changes[:0]
        return 2

    def _settle(self, problem: Any, state: MulticlassLBFGSState) -> None:
        """Make a step of Newton's method on the intercepts: votes that balance are a dual point."""
        move, before = _newton_step_of_intercepts(problem, state.c), state.value
        for step in (move, -move):  # and back, if it was too long
            state.z += step
            state.w[:, -1] += step
            self._answer(problem, state)
            if not state.value > before:
                break

    def _remember(self, state: MulticlassLBFGSState, step: np.ndarray, change: np.ndarray) -> None:
        """Add a step to those that the next direction is made of."""
        sizes = math.sqrt(_dot(step, step) * _dot(change, change))
        if _dot(step, change) > LEAST_BEND * sizes:
            state.steps = np.concatenate([state.steps[1 - PAIRS_REMEMBERED :], step[None]])
            state.changes = np.concatenate([state.changes[1 - PAIRS_REMEMBERED :], change[None]])

    def _direction(self, state: MulticlassLBFGSState) -> np.ndarray:
        """Return minus the gradient times the inverse Hessian, as the last steps have shown it."""
        found, parts = -state.gradient, []
        pairs = [(s, c, _dot(s, c)) for s, c in zip(state.steps, state.changes, strict=True)]
        for step, change, bend in reversed(pairs):
            parts.append(_dot(step, found) / bend)
            found -= parts[-1] * change
        found = preconditioned(found, state.scale, state.inverse)
        for (step, change, bend), part in zip(pairs, reversed(parts), strict=True):
            found += (part - _dot(change, found) / bend) * step
        return found

    def check(self, problem: Any) -> None:
        known = isinstance(problem.loss, Softmax) and isinstance(problem.penalty, L2)
        self._require(known, "needs the softmax and an L2 penalty: use SDCA")
        needed, free = needed_memory(problem), problem.free_memory()
        enough = f"needs {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} are free: use SDCA"
        self._require(needed < free, enough)


def suits(problem: Any) -> bool:
    """Tell whether this is the fastest method for a problem in memory, if there is room for it.

    It is not if columns are of very different sizes: then the first Hessian is far from the last.
    """
    known = isinstance(problem.loss, Softmax) and isinstance(problem.penalty, L2)
    if not known or not problem.by_matrices:
        return False
    sizes = problem.column_sizes
    used = sizes[sizes > 0.0]
    return len(used) > 0 and float(used.max()) <= UNEVEN_COLUMNS * float(np.median(used))


def needed_memory(problem: Any) -> float:
    """Return the bytes that the method and its certificates need beyond the data, at most."""
    flat, d = math.prod(problem.weight_shape), problem.shape[1]
    pairs = 16.0 * (PAIRS_REMEMBERED + 3) * flat + 24.0 * min(d, DIRECT) ** 2
    return pairs + BYTES_PER_VOTE * math.prod(problem.dual_shape)


def _is_single(problem: Any) -> bool:
    """Tell whether products are to be in single precision, as the rows are."""
    return problem.by_matrices and problem.rows.X.dtype == np.float32


def _first_hessian(problem: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return scales and inverse correlations of the Hessian where scores are the same for all rows.

    There it is sum_i share_i x_i x_i' for each class, times the curvature of its score, plus lam.
    """
    xp, rows, share, (n, d) = problem.xp, problem.rows, problem.share, problem.shape
    C, intercept = problem.n_classes, problem.fit_intercept
    votes = xp.full(C, 1.0 / C)
    if intercept:
        b = problem.first_intercept()
        votes = np.exp(b - b.max())
        votes /= votes.sum()
    curvature = votes * (1.0 - votes)
    least = xp.full(d + intercept, problem.strength)
    if intercept:
        least[d] = LEAST_OF_INTERCEPT * float(curvature.max())
    if d > DIRECT:
        squares = rows.square_sums(share)
        squares = np.append(squares, 1.0) if intercept else squares
        return 1.0 / np.sqrt(curvature[:, None] * squares + least), xp.empty((0, 0))
    size = ROWS_PER_FEATURE * d
    if n > 2 * size:
        places = problem.place(np.sort(rng.choice(n, size, replace=False)))
        rows, share = rows.take(places), share[places]
        share = share / (float(share.sum()) or 1.0)
    matrix = rows.moments(share)
    if intercept:
        sums = rows.transposed_product(share[:, None])
        matrix = np.vstack([matrix, sums])
        matrix = np.column_stack([matrix, np.append(sums, share.sum())])
    scale = 1.0 / np.sqrt(curvature[:, None] * np.diagonal(matrix) + least)
    return scale, inverse_of_correlations(xp, float(curvature.mean()) * matrix, least)


def _newton_step_of_intercepts(problem: Any, c: np.ndarray) -> np.ndarray:
    """Return the step that would balance the votes, if the loss were a parabola."""
    xp, (n, C) = problem.xp, c.shape
    share = np.where(problem.share > 0.0, problem.share, 1.0)
    votes = c / share[:, None].astype(c.dtype)
    votes[xp.arange(n), problem.y] += 1.0
    votes *= np.sqrt(problem.share)[:, None].astype(c.dtype)
    bends, places = -(votes.T @ votes).astype(np.float64), xp.arange(C)
    bends[places, places] = 0.0
    bends[places, places] = -bends.sum(axis=1) * (1.0 + LEAST_OF_INTERCEPT) + LEAST_OF_INTERCEPT / C
    step = xp.linalg.solve(bends, -c.sum(axis=0, dtype=np.float64))
    return np.clip(step - step.mean(), -LONGEST_INTERCEPT_STEP, LONGEST_INTERCEPT_STEP)


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    return float(a.ravel() @ b.ravel())

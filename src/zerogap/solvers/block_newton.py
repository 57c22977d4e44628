"""Newton's method on data that are read block by block."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.losses import Loss, MulticlassHinge, Softmax
from zerogap.solvers import soft_l1, summed_newton
from zerogap.solvers.dual_start import warm_duals
from zerogap.solvers.hessian import DIRECT
from zerogap.solvers.newton import FEW_FEATURES
from zerogap.solvers.protocol import Answer, Solver, State
from zerogap.solvers.second import second_methods
from zerogap.solvers.summed_newton import Point, Sums

# Of the Hessian's size: that of a block, the sum, a factor, and room to work
_MATRICES_IN_MEMORY = 4
_LEAST_SAMPLE, _SAMPLED_PER_FEATURE = 20_000, 100  # rows that show where to start
_MOST_SAMPLE_STEPS = 50  # with these rows
_EMPTY = np.empty(0)


@dataclass
class BlockNewtonState(State):
    """State of `BlockNewton`: where it is, and the numbers of each row."""

    point: Point = field(default_factory=Point)
    alpha: Any = field(default_factory=lambda: _EMPTY)  # at the point; an array, or on disk
    centre: Any = field(default_factory=lambda: _EMPTY)  # of the sub-problem, if there is one
    started: bool = False

    @property
    def value(self) -> float:
        """The objective of the sub-problem."""
        return self.point.value

    @property
    def stalled(self) -> bool:
        """Whether no step makes the objective smaller."""
        return self.point.stalled


@dataclass(frozen=True)
class BlockNewton(Solver):
    """`Newton` for a `zerogap.streamed.StreamedProblem`, whose rows are read block by block.

    Every pass over the store adds up the objective, its gradient and its Hessian; losses with
    kinks are smoothed as `Newton` does, around dual variables that are kept for each row.

    Notes
    -----
    An update is one Newton step, and counts as an epoch: one pass over the store, and one more for
    each further length of the step that is tried.  Memory: some matrices of d^2 numbers, for many
    classes C^2 times as much, and the numbers of each row.

    Examples
    --------
    >>> from zerogap.solvers import BlockNewton
    >>> BlockNewton()
    BlockNewton()
    """

    multiclass = True
    reads = ("store",)

    def begin(
        self, problem: Any, rng: np.random.Generator, warm: Answer | None = None
    ) -> BlockNewtonState:
        state = BlockNewtonState(rng, draw=rng.spawn(1)[0])
        point, many = state.point, problem.loss.task == "multiclass"
        b = problem.constant()
        point.gamma, point.least = summed_newton.first_smoothing(problem, b)
        point.w = np.zeros(problem.weight_shape)
        state.alpha = problem.column()
        state.centre = problem.column() if point.gamma else _EMPTY
        if problem.l1_ratio:
            point.soft = point.first_soft = soft_l1.first_mu(problem)
        if warm is not None:
            w, b, _ = warm
            state.started = True
            point.w = np.array(w - w.mean(axis=0) if many else w)
            if point.gamma:
                state.centre = warm_duals(problem, warm)
                gap = problem.certificate(w, b, state.centre).relative_gap
                point.gamma = max(point.gamma * min(1.0, 3.0 * math.sqrt(gap)), point.least)
        if problem.fit_intercept:
            point.b = np.atleast_1d(np.array(b, np.float64))
        return state

    def prepare(self, problem: Any, state: BlockNewtonState) -> None:
        """Start at the optimum of a sample of the rows, which is off by some d / rows only."""
        d = problem.shape[1]
        if state.started:
            return
        state.started = True
        part = problem.sample(max(_SAMPLED_PER_FEATURE * d, _LEAST_SAMPLE))
        classes = len(np.unique(part.y[part.share > 0.0]))
        of_all = {"classification": 2, "multiclass": problem.n_classes}.get(problem.loss.task, 1)
        if classes < of_all or part.shape[0] < 10 * d or not (methods := second_methods(part)):
            return
        method, point = methods[0], state.point
        ahead = method.begin(part, state.rng)
        for _ in range(_MOST_SAMPLE_STEPS):
            method.steps(part, ahead, 1)
            gap = method.relative_gap(part, ahead)
            if gap is not None and gap <= d / part.shape[0]:
                break
        w, b, _ = method.answer(part, ahead)
        if not np.isfinite(w.sum() + np.sum(b)):
            return
        point.w, point.b = w, np.atleast_1d(np.array(b, np.float64))[: len(point.b)]
        # the optimum of all rows differs from that by d / rows: such a gap is hidden by smoothing
        point.gamma *= min(1.0, 3.0 * math.sqrt(d / part.shape[0]))

    def epoch_length(self, problem: Any) -> int:
        return 1

    def answer(self, problem: Any, state: BlockNewtonState) -> Answer:
        point = state.point
        b = summed_newton.intercept(problem, point.b)
        w = point.w.copy()
        if len(point.soft):
            w = soft_l1.sparsest(problem, w, b, state.alpha)
        return w, b, state.alpha

    def relative_gap(self, problem: Any, state: BlockNewtonState) -> float:
        return state.point.relative_gap

    def steps(self, problem: Any, state: BlockNewtonState, count: int) -> int:
        point, passes = state.point, 0

        def evaluate(w: np.ndarray, b: Any) -> Sums:
            return self._evaluate(problem, state, w, b)

        if not count:
            self._compile(problem, point)
        for _ in range(count):
            if point.is_solved:
                for rows in problem.spans():
                    state.centre[rows] = state.alpha[rows]
                point.move_centre()
            passes += summed_newton.step(problem.nothing, point, evaluate)
        return passes * problem.shape[0]

    def _evaluate(self, problem: Any, state: BlockNewtonState, w: np.ndarray, b: Any) -> Sums:
        """Add up the sums of all blocks, and keep the dual variables there."""
        total: Any = None
        with contextlib.closing(problem.stream()) as blocks:
            for k, part in blocks:
                rows, gamma, damping = problem.span(k), state.point.gamma, state.point.damping
                centre = state.centre[rows] if gamma else _EMPTY
                sums, alpha = summed_newton.sums_at(part, w, b, centre, gamma, damping)
                state.alpha[rows] = alpha
                total = sums if total is None else total + sums
        return total

    def _compile(self, problem: Any, point: Point) -> None:
        """Run the kernels on a few rows."""
        few = problem.sample(2)
        few = few.take(np.arange(min(2, few.shape[0])))
        b = summed_newton.intercept(problem, point.b)
        summed_newton.sums_at(few, point.w, b, np.zeros(few.dual_shape), point.gamma)
        for method in second_methods(few)[:1]:
            method.steps(few, method.begin(few, np.random.default_rng(0)), 0)

    def check(self, problem: Any) -> None:
        why = why_not(problem)
        self._require(not why, f"{why}: use BlockSDCA")


def why_not(problem: Any) -> str:
    """Return why `BlockNewton` cannot take a problem, or nothing if it can."""
    loss, (n, d), weights = problem.loss, problem.shape, math.prod(problem.weight_shape)
    if loss.task == "multiclass":
        known = isinstance(loss, Softmax | MulticlassHinge)
    else:
        known = type(loss).stiffness is not Loss.stiffness
    if not known:
        return f"knows no second derivative of {loss}"
    if weights > DIRECT or (problem.l1_ratio and d > max(n, FEW_FEATURES)):
        return f"takes up to {DIRECT:,} weights, there are {weights:,}"
    room = problem.spare_memory()
    needed = 8.0 * _MATRICES_IN_MEMORY * (weights + problem.n_classes) ** 2
    return "" if needed < room else f"needs {needed / 1e6:.0f} MB, {room / 1e6:.0f} MB are free"

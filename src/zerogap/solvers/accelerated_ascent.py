"""Accelerated dual coordinate ascent, with restarts.

Reference: O. Fercoq and P. Richtarik, "Accelerated, parallel and proximal coordinate descent", SIAM
Journal on Optimization 25, 2015 (APPROX, one coordinate at a time); restarts: O. Fercoq and Z. Qu,
"Restarting the accelerated coordinate descent method with a rough strong convexity estimate",
Computational Optimization and Applications 75, 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from zerogap.kernels.instructions import prefetch
from zerogap.kernels.jit import kernel
from zerogap.kernels.machine_code import first_time
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.problem.row_sums import clip_duals
from zerogap.solvers.dual_start import first_rho, warm_duals
from zerogap.solvers.protocol import Answer, Solver, State

# Passes before the first restart, and how much longer each run is than the one before.  Measured on
# the absolute loss: rcv1 at C = 10 needs some 170 passes in all, at C = 100 some 700.
FIRST_PASSES, LONGER = 20, 1.5
# Shares of a run after which its average of weights is worth a certificate (of two passes' time)
WORTHWHILE = (0.6, 0.8, 1.0)
# rho over that of `SDCA`: the centre of b moves at restarts only.  With 1, 10 and 100 times it 200
# rows of 400 words take to 1e-5 with the quantile 3000, 136 and 225 passes, absolute 855, 136, 225
TIMES_RHO = 10.0
ROWS_AHEAD = 16  # rows between asking for one and using it
_EMPTY = np.empty(0)


@dataclass
class AcceleratedAscentState(State):
    """State of `AcceleratedAscent`: dual variables alpha = near + theta^2 far, and dual sums."""

    near: np.ndarray = field(default_factory=lambda: _EMPTY)
    far: np.ndarray = field(default_factory=lambda: _EMPTY)
    sums: np.ndarray = field(default_factory=lambda: _EMPTY)  # of both, feature by feature
    means: np.ndarray = field(default_factory=lambda: np.zeros(2))  # of both
    theta: float = 1.0
    centre: float = 0.0  # of the intercept
    rho: float = 0.0
    length: int = FIRST_PASSES  # passes of this run, until the next restart
    passes: int = 0  # of this run
    average: np.ndarray = field(default_factory=lambda: _EMPTY)  # of weights, times `mass`
    mass: float = 0.0


@dataclass(frozen=True)
class AcceleratedAscent(Solver):
    """Coordinate ascent with momentum: for duals most of whose variables are free.

    A pass costs nearly two of `SDCA`, but where rows are nearly collinear, and dual variables do
    not settle at their ends, the gap falls with the square of the passes.  The weights are an
    average over the second half of the passes since the last restart, or those of the dual point.
    An update is one pass.
    """

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> AcceleratedAscentState:
        n, d = problem.shape
        state = AcceleratedAscentState(rng, draw=rng, average=np.zeros(d))
        alpha = np.zeros(n)
        if problem.fit_intercept:
            state.rho = TIMES_RHO * first_rho(problem.mean_sqnorm, problem.strength)
            state.centre = problem.first_intercept() if warm is None else float(warm[1])
        if warm is not None:
            alpha = warm_duals(problem, warm)
        self._restart(problem, state, alpha)
        return state

    def _restart(self, problem: Problem, state: AcceleratedAscentState, alpha: np.ndarray) -> None:
        state.near, state.far = alpha, np.zeros_like(alpha)
        state.sums = np.zeros((problem.shape[1], 2))
        state.sums[:, 0] = problem.dual_sum(alpha)
        state.means = np.array([problem.share @ alpha, 0.0])
        state.theta, state.passes = 1.0 / len(alpha), 0
        state.average, state.mass = np.zeros_like(state.average), 0.0

    def _alpha(self, problem: Problem, state: AcceleratedAscentState) -> np.ndarray:
        """Return the dual variables, which rounding may have moved out of their domain."""
        alpha = state.near + state.theta**2 * state.far
        problem.over_rows(clip_duals, problem.loss, problem.y, problem.share, alpha)
        return alpha

    def answer(self, problem: Problem, state: AcceleratedAscentState) -> Answer:
        alpha = self._alpha(problem, state)
        b = state.centre + state.rho * float(problem.share @ alpha)
        w = problem.dual_sum(alpha)
        if state.mass:
            average = state.average / state.mass
            w = min(w, average, key=lambda weights: problem.primal(weights, b))
        return w, b, alpha

    def relative_gap(self, problem: Problem, state: AcceleratedAscentState) -> float:
        """Ask for certificates at some moments of a run: what the gap is, only they can tell."""
        worthwhile = any(state.passes == math.ceil(part * state.length) for part in WORTHWHILE)
        return 0.0 if worthwhile else math.inf

    def epoch_length(self, problem: Problem) -> int:
        return 1

    def steps(self, problem: Problem, state: AcceleratedAscentState, count: int) -> int:
        n = problem.shape[0]
        for _ in range(count):
            if state.passes == state.length:
                alpha = self._alpha(problem, state)
                state.centre += state.rho * float(problem.share @ alpha)
                state.length = math.ceil(LONGER * state.length)
                self._restart(problem, state, alpha)
            self._visit(problem, state, state.rng.permutation(n))
            state.passes += 1
            if state.passes > state.length // 2:
                state.average += state.passes * (state.sums @ [1.0, state.theta**2])
                state.mass += state.passes
        if not count and first_time(AcceleratedAscent, *problem.kind):
            self._visit(problem, state, np.empty(0, np.int64))
        return n * count

    def _visit(self, problem: Problem, state: AcceleratedAscentState, order: np.ndarray) -> None:
        of_rows, of_sums = (state.near, state.far), (state.sums, state.means)
        state.theta = accelerated_steps(
            *(problem, problem.rows, order, *of_rows, *of_sums),
            *(state.theta, state.centre, state.rho),
        )

    def check(self, problem: Problem) -> None:
        scalar = isinstance(problem.penalty, L2) and problem.loss.task != "multiclass"
        self._require(scalar, "accelerated ascent needs an L2 penalty and a loss of one score")


@kernel
def accelerated_steps(problem, rows, order, near, far, sums, means, theta, centre, rho):
    """Maximise over alpha_i, for each i in `order`, what is seen from near + theta^2 far

    `sums` and `means` follow both.  Returns the next theta.
    """
    loss, n, last = problem.loss, len(near), len(order) - 1
    for k in range(len(order)):
        soon = order[min(k + 2 * ROWS_AHEAD, last)]
        rows.hint(soon)
        prefetch(near, soon)
        prefetch(far, soon)
        rows.fetch(order[min(k + ROWS_AHEAD, last)])

        i, square = order[k], theta * theta
        s = problem.share[i]
        of_near, of_far = 0.0, 0.0
        for m in rows.span(i):
            j, value = rows.entry_column(i, m), rows.entry_value(i, m)
            of_near += value * sums[j, 0]
            of_far += value * sums[j, 1]
        z = of_near + square * of_far + centre + rho * (means[0] + square * means[1])
        q = s * (problem.sqnorms[i] / problem.lam + rho) * n * theta
        step = loss.dual_step(near[i], problem.y[i], z, q)
        if step != 0.0:
            other = -(1.0 - n * theta) / square * step
            near[i] += step
            far[i] += other
            means[0] += s * step
            means[1] += s * other
            step *= s / problem.lam
            other *= s / problem.lam
            for m in rows.span(i):
                j, value = rows.entry_column(i, m), rows.entry_value(i, m)
                sums[j, 0] += value * step
                sums[j, 1] += value * other
        theta = 0.5 * (np.sqrt(square * square + 4.0 * square) - square)
    return theta

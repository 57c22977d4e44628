"""Gradient descent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.problem import Problem
from zerogap.solvers.protocol import Answer, Solver, State
from zerogap.solvers.sgd import check_l2, check_step, curvature

_EMPTY = np.empty(0)


@dataclass
class GDState(State):
    """State of `GD`: the iterate, its dual variables, and their sums over the iterates after t0."""

    w: np.ndarray = field(default_factory=lambda: _EMPTY)
    b: Any = 0.0
    alpha: np.ndarray = field(default_factory=lambda: _EMPTY)
    step: float = 0.0
    objective: float = math.nan
    sum_w: np.ndarray = field(default_factory=lambda: _EMPTY)
    sum_alpha: np.ndarray = field(default_factory=lambda: _EMPTY)
    drawn_w: np.ndarray = field(default_factory=lambda: _EMPTY)
    drawn_alpha: np.ndarray = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True)
class GD(Solver):
    """Gradient descent: one (sub-)gradient of the whole objective per update.

    Parameters
    ----------
    step : float, optional
        Constant step, at most 1 / lam.  By default 1 / L, where L is the smoothness of the
        objective (the largest eigenvalue of the data's second moments, by power iteration, times
        the smoothness of the loss, plus lam).  For losses with kinks no constant step converges,
        and the default is the decreasing 1 / (L' + lam t) with L' for a loss of smoothness 1.
    output, t0
        As in `SDCA`; an update is an epoch.

    Notes
    -----
    The history has a further column, ``estimate``: the objective before the last update.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> problem = zg.Problem(X, y, "logistic", lam=0.01)
    >>> zg.solve(problem, zg.GD(), tol=1e-4, random_state=0).stop_reason
    'converged'
    """

    dual = False
    multiclass = True
    step: float | None = None
    output: str = "last"
    t0: int | None = None

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> GDState:
        state = GDState(rng, draw=rng.spawn(1)[0])
        zeros = problem.xp.zeros
        state.w, state.alpha = zeros(problem.weight_shape), zeros(problem.dual_shape)
        if warm is not None:
            w, state.b, alpha = warm
            state.w = w.copy()
            state.alpha = state.alpha if alpha is None else alpha.copy()
        elif problem.fit_intercept:
            state.b = problem.first_intercept()
        smoothness = curvature(problem) * largest_moment(problem, rng) + problem.lam
        state.step = 1.0 / smoothness if self.step is None else self.step
        if self.averaging:
            state.sum_w, state.sum_alpha = np.zeros_like(state.w), np.zeros_like(state.alpha)
        return state

    def epoch_length(self, problem: Problem) -> int:
        return 1

    def answer(self, problem: Problem, state: GDState) -> Answer:
        if self.output == "random" and len(state.drawn_w):
            return state.drawn_w, state.b, state.drawn_alpha
        if self.averaging and state.updates > state.t0:
            total = self._total_weight(state)
            return state.sum_w / total, state.b, state.sum_alpha / total
        return state.w.copy(), state.b, state.alpha.copy()

    def extras(self, problem: Problem, state: GDState) -> dict[str, float]:
        """Return the objective before the last update."""
        return {"estimate": state.objective}

    def steps(self, problem: Problem, state: GDState, count: int) -> int:
        decreasing = self.step is None and not math.isfinite(problem.loss.smoothness)
        for t in range(state.updates + 1, state.updates + count + 1):
            if self.averaging and t > state.t0:
                weight = t - state.t0 if self.output == "weighted-average" else 1
                state.sum_w += weight * state.w
                state.sum_alpha += weight * state.alpha
            eta = 1.0 / (1.0 / state.step + problem.lam * (t - 1)) if decreasing else state.step
            z = problem.scores(state.w) + state.b
            state.objective = problem.value_at(z, state.w)
            pull = problem.dual_from_scores(z)
            # With u(pull) = -(gradient of the loss) / lam the step is an average, and so is alpha's
            state.w += eta * problem.lam * (problem.dual_sum(pull) - state.w)
            state.alpha += eta * problem.lam * (pull - state.alpha)
            if problem.fit_intercept:
                state.b = state.b + min(eta, 1.0 / curvature(problem)) * (problem.share @ pull)
        return count * problem.shape[0]

    def _draw(self, problem: Problem, state: GDState) -> None:
        state.drawn_w, state.drawn_alpha = state.w.copy(), state.alpha.copy()

    def check(self, problem: Problem) -> None:
        self._check_output()
        check_step(self, problem)
        check_l2(self, problem)


def largest_moment(problem: Problem, rng: np.random.Generator) -> float:
    """Return the largest eigenvalue of 1/S sum_i s_i x_i x_i', with a constant feature for b.

    Power iteration approaches it from below; gradient descent converges up to twice the step.
    """
    v = problem.place(rng.spawn(1)[0].standard_normal(problem.shape[1]))
    offset, value = float(problem.fit_intercept), 0.0
    for _ in range(50):
        size = math.sqrt(float(v @ v) + offset * offset)
        if size == 0.0:
            return 0.0
        v, offset = v / size, offset / size
        z = problem.rows.times(v) + offset
        v = problem.rows.transposed_times(problem.share * z)
        offset = float(problem.share @ z) if problem.fit_intercept else 0.0
        before, value = value, float(problem.share @ z**2)
        if abs(value - before) <= 1e-3 * value:
            break
    return value

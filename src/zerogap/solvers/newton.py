"""Newton's method: for smooth losses as it is, for losses with kinks on proximal sub-problems.

References: R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point
algorithm in convex programming", Mathematics of Operations Research 1, 1976; X. Li, D. Sun and
K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
problems", SIAM Journal on Optimization 28, 2018 (the same combination for another problem).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.kernels.machine_code import first_time
from zerogap.losses import Loss
from zerogap.problem import Problem
from zerogap.solvers import fused, soft_l1
from zerogap.solvers.conjugate_gradients import Enough
from zerogap.solvers.coordinates import descent_way
from zerogap.solvers.dual_start import warm_duals
from zerogap.solvers.hessian import DIRECT, Hessian, check_memory, is_even, is_parabola
from zerogap.solvers.history import Record
from zerogap.solvers.line_search import Way, adapted_damping, search, straight_way
from zerogap.solvers.polish import is_worth_polishing, polished, take_dual_of_others
from zerogap.solvers.protocol import Answer, Solver, State
from zerogap.solvers.responses import first_gamma, mark_movable, respond, sum_excess, two_like

# The centre moves when the sub-problem's part of the gap is at most this times smoothing's part
BALANCE = 0.5
# Steps that solve a sub-problem: after at most the first number the next one is smoothed less,
# after at least the second one more
FEW_STEPS, MANY_STEPS = 8, 20
LESS_SMOOTHING = 0.3  # next gamma over the present one, after few steps
ROWS_PER_SAMPLED = 8  # the first steps are made on one row in so many
SAMPLED_PER_FEATURE = 10  # sampled rows per feature, at least
# Steps on the sampled rows, at most: at a large C their optimum is far from that of all rows
SAMPLE_STEPS, SAMPLE_STEPS_WITH_KINKS = 5, 50
FEW_VALUES = 10_000  # stored values up to which all rows are read as quickly as some of them
SUBPROBLEM_GAIN = 1e-3  # a sub-problem is solved when a step can gain less than this of its gap
# Features up to which an L1 penalty is rounded; with more of them than rows, and more than this,
# coordinate descent is faster
FEW_FEATURES = 300
# Gap that conjugate gradients may leave: a share of P for a parabola, whose Hessian is kept for
# further steps; or a share of the tolerance, if it is known (and of a parabola the gap is, too)
PARABOLA_GAP, PARABOLA_PART, STEP_PART = 1e-7, 0.9, 0.5
STEPS_BETWEEN_POLISHES = 8  # steps to wait after a polish without gain: each takes several passes
_EMPTY = np.empty(0)


@dataclass
class NewtonState(State):
    """State of `Newton`.

    The `near` rows are those whose dual variables may change while the iterate stays within
    `radius` of the point `at`; `near_` arrays belong to them.  The sums over all other rows are
    kept in `far_` fields.
    """

    w: np.ndarray = field(default_factory=lambda: _EMPTY)
    b: float = 0.0
    alpha: np.ndarray = field(default_factory=lambda: _EMPTY)  # valid for the far rows only
    centre: np.ndarray = field(default_factory=lambda: _EMPTY)
    gamma: float = 0.0
    least: float = 0.0  # smallest gamma: below it, rounding of scores shows in dual variables
    at: np.ndarray = field(default_factory=lambda: _EMPTY)  # w, then b
    radius: float = math.inf
    near: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    near_z: np.ndarray = field(default_factory=lambda: _EMPTY)
    near_alpha: np.ndarray = field(default_factory=lambda: _EMPTY)
    near_h: np.ndarray = field(default_factory=lambda: _EMPTY)
    near_u: np.ndarray = field(default_factory=lambda: _EMPTY)  # their dual sum
    far_u: np.ndarray = field(default_factory=lambda: _EMPTY)
    far_mean: float = 0.0  # of alpha
    far_value: float = 0.0  # of the smoothed loss
    steps: int = 0  # since the centre moved
    factor: int = 1  # the Hessian's rows over those of the first Hessian
    started: bool = False
    value: float = math.inf  # of the sub-problem, at most that of the problem
    excess: float = math.inf  # the part of the gap that smoothing costs
    residual: float = math.inf  # the part of the gap that the sub-problem's solution would close
    mu: np.ndarray = field(default_factory=lambda: _EMPTY)  # how far the L1 penalty is rounded
    first_mu: np.ndarray = field(default_factory=lambda: _EMPTY)
    polished: np.ndarray = field(default_factory=lambda: _EMPTY)  # a better dual point, if any
    smoothed: bool = False  # whether the last direction has a dual point of other weights
    damping: float = 0.0  # share of the largest curvature that is added to each row's own
    unpolished: float = math.inf  # the residual of the step before, without polishing
    unpolishable: int = 0  # steps still to wait before the next polish
    patience: int = STEPS_BETWEEN_POLISHES  # steps to wait after the next polish without gain
    part: Problem | None = field(default=None, metadata={"saved": False})  # the near rows
    hessian: Any = field(default=None, metadata={"saved": False})  # of a parabola, for all steps
    fused: bool = False  # whether steps are those of `fused`, which keep no vector of length n
    tol: float = 0.0  # the relative gap that is asked for, if it is known
    here: Any = field(default=None, metadata={"saved": False})  # the last `Look` of such steps

    def misfit(self) -> str:
        of_near = ("near_z", "near_alpha", "near_h")
        other = [name for name in of_near if len(getattr(self, name)) != len(self.near)]
        return super().misfit() or next(iter(other), "")


@dataclass(frozen=True)
class Newton(Solver):
    """Newton's method: few, expensive steps, for any accuracy and any condition of the data.

    A smooth loss is minimised as it is.  For a loss with kinks (hinge, absolute,
    epsilon-insensitive, quantile) the dual is maximised by the proximal point method: its
    sub-problems, D(a) - gamma/2 mean (a - centre)^2, have smooth primals, in whose Hessian only
    those rows appear whose dual variables are between their bounds.  Rows that provably stay at
    their bounds while w stays in a ball are left out until it leaves the ball.

    The Newton direction is found by conjugate gradients.  With up to 3000 features they are
    preconditioned by the factorised Hessian, of a sample of the rows if there are many, and summed
    up in single precision if they are dense; else by its diagonal.

    Notes
    -----
    An update is one Newton step, and counts as an epoch; it costs a few passes over the data and,
    with up to 3000 features, O(4 d^3).  Memory: the data, once more for the rows with curvature,
    and d^2 numbers.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> problem = zg.Problem(X, y, "hinge", lam=1e-4)
    >>> result = zg.solve(problem, zg.Newton(), tol=1e-9, random_state=0)
    >>> result.certificate.relative_gap <= 1e-9
    True
    """

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> NewtonState:
        (n, d), zeros = problem.shape, problem.xp.zeros
        state = NewtonState(rng, draw=rng, w=zeros(d), centre=zeros(n))
        if problem.fit_intercept:
            state.b = problem.first_intercept()
        state.gamma, state.least = first_gamma(problem, state.b)
        if warm is not None:
            w, b, _ = warm
            state.w, state.b, state.centre = w.copy(), float(b), warm_duals(problem, warm)
            gap = problem.certificate(state.w, state.b, state.centre).relative_gap
            state.gamma = max(state.gamma * min(1.0, 3.0 * math.sqrt(gap)), state.least)
            state.started = True
        state.alpha = state.centre.copy()
        state.near, state.near_alpha = problem.xp.zeros(0, np.int64), zeros(0)
        if problem.l1_ratio and d <= max(n, FEW_FEATURES):
            state.mu = state.first_mu = soft_l1.first_mu(problem)
        state.fused = not state.gamma and fused.can_fuse(problem)
        return state

    def prepare(self, problem: Problem, state: NewtonState) -> None:
        """Start at the optimum of a sample of the rows: its gap is about d / (sampled rows)."""
        n, d = problem.shape
        size = n // ROWS_PER_SAMPLED
        if state.started or size < max(SAMPLED_PER_FEATURE * d, 1000) or is_parabola(problem.loss):
            return
        state.started = True
        drawn = state.rng.integers(ROWS_PER_SAMPLED, size=size)
        chosen = problem.place(ROWS_PER_SAMPLED * np.arange(size) + drawn)
        part = problem.take(chosen)
        mass = float(part.share.sum())
        one_class = len(np.unique(part.y[part.share > 0.0])) < 2
        if one_class and problem.loss.task == "classification":
            return
        part = part._with(share=part.share / mass)
        ahead = self.begin(part, state.rng)
        self.prepare(part, ahead)
        for _ in range(SAMPLE_STEPS_WITH_KINKS if ahead.gamma else SAMPLE_STEPS):
            self.steps(part, ahead, 1)
            if self.relative_gap(part, ahead) <= d / size:
                break
        state.w, state.b, alpha = self.answer(part, ahead)
        if ahead.gamma:
            state.gamma = ahead.gamma
            state.centre = problem.dual_point(problem.scores(state.w), state.b)
            state.centre[chosen] = alpha
            state.alpha = state.centre.copy()

    def epoch_length(self, problem: Problem) -> int:
        return 1

    def answer(self, problem: Problem, state: NewtonState) -> Answer:
        if state.steps and not len(state.at):  # fused steps
            return state.w.copy(), state.b, None
        alpha = state.polished if len(state.polished) else self._alpha(state)
        w = state.w.copy()
        if len(state.mu):
            w = soft_l1.sparsest(problem, w, state.b, alpha)
        return w, state.b, alpha

    def observe(self, problem: Problem, state: NewtonState, record: Record, tol: float) -> None:
        """Learn the tolerance."""
        state.tol = tol

    def _alpha(self, state: NewtonState) -> np.ndarray:
        alpha = state.alpha.copy()
        alpha[state.near] = state.near_alpha
        return alpha

    def relative_gap(self, problem: Problem, state: NewtonState) -> float:
        return (state.excess + state.residual) / max(state.value, 1e-300)

    def steps(self, problem: Problem, state: NewtonState, count: int) -> int:
        passes = 0
        for _ in range(count):
            if state.fused and fused.step(problem, state):
                passes += 2
                continue
            moved = self._distance(state)
            if not len(state.at):
                passes += self._divide(problem, state, math.inf)
            elif state.gamma and state.steps and state.residual <= BALANCE * state.excess:
                self._move_centre(state)
                passes += self._divide(problem, state, moved)
            elif moved > state.radius:
                passes += self._divide(problem, state, 2.0 * moved)
            passes += self._step(problem, state)
        if not count and first_time(Newton, *problem.kind, state.gamma > 0.0):
            self._compile(problem, state.gamma)
        return passes * problem.shape[0]

    def _distance(self, state: NewtonState) -> float:
        if not len(state.at):
            return math.inf
        return float(np.linalg.norm(np.append(state.w, state.b) - state.at))

    def _move_centre(self, state: NewtonState) -> None:
        state.centre = state.polished.copy() if len(state.polished) else self._alpha(state)
        if state.steps <= FEW_STEPS:
            state.gamma = max(LESS_SMOOTHING * state.gamma, state.least)
        elif state.steps > MANY_STEPS:
            state.gamma *= 2.0
        state.steps = 0

    def _divide(self, problem: Problem, state: NewtonState, radius: float) -> int:
        """Find the rows that may change within the radius; add up the others; return the passes."""
        n = problem.shape[0]
        z = problem.scores(state.w) + state.b
        (alpha, h), smoothed = two_like(problem, z), (state.centre, state.gamma)
        value, _ = respond(problem, z, z, 0.0, alpha, h, *smoothed)
        state.value = value + self._penalty(problem, state)
        state.at, state.alpha, state.part = np.append(state.w, state.b), alpha, None
        movable = problem.xp.ones(n, np.bool_)
        if math.isfinite(radius):
            reach = radius * np.sqrt(problem.sqnorms + problem.fit_intercept)
            data = (problem.loss, problem.y, z, *smoothed, reach, movable)
            problem.over_rows(mark_movable, *data)
        if math.isinf(radius) or movable.sum() > 0.5 * n or problem.rows.stored <= FEW_VALUES:
            state.radius, state.near, state.part = math.inf, problem.xp.arange(n), problem
            state.near_z, state.near_alpha, state.near_h = z, alpha.copy(), h
            state.far_u, state.far_mean, state.far_value = np.zeros_like(state.w), 0.0, 0.0
        else:
            state.radius, state.near = radius, np.flatnonzero(movable)
            state.near_z = z[movable]
            state.near_alpha, state.near_h = two_like(problem, state.near_z)
            part = self._part(problem, state)
            near_value, _ = respond(
                *(part, state.near_z, state.near_z, 0.0, state.near_alpha, state.near_h),
                *(state.centre[movable], state.gamma),
            )
            far = np.where(movable, 0.0, alpha)
            state.far_u, state.far_mean = problem.dual_sum(far), float(problem.share @ far)
            state.far_value = value - near_value
        state.near_u = self._part(problem, state).dual_sum(state.near_alpha)
        return 3

    def _part(self, problem: Problem, state: NewtonState) -> Problem:
        if state.part is None:
            everything = len(state.near) == problem.shape[0]
            state.part = problem if everything else problem.take(state.near)
        return state.part

    def _step(self, problem: Problem, state: NewtonState) -> int:
        """Make one step of Newton's method with a line search; return the passes it took."""
        part = self._part(problem, state)
        centre = state.centre[state.near] if state.gamma else state.centre
        if not len(state.near_u):
            state.near_u = part.dual_sum(state.near_alpha)
        gradient = problem.strength * state.w - problem.lam * (state.far_u + state.near_u)
        if problem.fit_intercept:
            mean = state.far_mean + part.share @ state.near_alpha
            gradient = np.append(gradient, -mean)
        way, products = self._find_way(problem, part, state, gradient)
        p_b = float(way.p_b.sum())
        dz = part.scores(way.p) + p_b
        alpha, h = two_like(problem, dz)
        # the far rows' part of the objective is a line: their dual variables do not change
        far_line = -problem.lam * float(state.far_u @ way.p) - state.far_mean * p_b
        ww, wp, pp = float(state.w @ state.w), float(state.w @ way.p), float(way.p @ way.p)

        def look(t: float) -> tuple[float, float]:
            value, slope = respond(part, state.near_z, dz, t, alpha, h, centre, state.gamma)
            value += state.far_value + t * (far_line + way.kink) + problem.lam * way.l1_before
            value += 0.5 * problem.strength * (ww + 2.0 * t * wp + t * t * pp)
            slope += far_line + way.kink + problem.strength * (wp + t * pp)
            if len(state.mu):
                moved, l1 = state.w + t * way.p, problem.lam * problem.l1_ratio
                value += l1 * soft_l1.value(moved, state.mu)
                slope += l1 * float(soft_l1.slope(moved, state.mu) @ way.p)
            return value, slope

        t, state.value = search(look, state.value, way.slope, way.longest)
        if not state.gamma:
            state.damping = adapted_damping(state.damping, t if way.slope < 0.0 else 0.0)
        state.far_value += t * far_line
        state.w = way.at(state.w, t)
        if way.kink and t != 1.0:  # signs may change on the way, where the penalty bends
            kinked = problem.l1_ratio * float(np.abs(state.w).sum()) - way.l1_before
            state.value += problem.lam * kinked - t * way.kink
        state.b += t * p_b
        state.near_z += t * dz
        known = state.hessian is not None and not state.steps and t == 1.0
        left = state.hessian.left if known else math.inf
        self._take_answers(part, state, alpha, h, left)
        if len(state.mu):
            self._cool(problem, state, -way.slope)
        self._measure(problem, part, state, left)
        if way.dual is not None and t == 1.0:
            change = way.dual - np.append(way.p, way.p_b)
            take_dual_of_others(problem, state, change)
        done = not state.gamma or -way.slope <= SUBPROBLEM_GAIN * state.residual
        worth = done and part is problem and is_worth_polishing(problem, state, way.slope)
        if worth and not state.unpolishable:
            self._polish(problem, state)
        state.unpolishable = max(0, state.unpolishable - 1)
        return math.ceil((products + 2) * len(state.near) / problem.shape[0])

    def _take_answers(
        self, part: Problem, state: NewtonState, alpha: np.ndarray, h: np.ndarray, left: float
    ) -> None:
        """Keep the dual variables at the end of a step, and their sum.

        `left` is the square of the gradient, if it is known; then the sum waits for another step.
        """
        if state.gamma:  # late in a run few have changed
            state.near_u += part.dual_sum(alpha - state.near_alpha)
        else:
            state.near_u = part.dual_sum(alpha) if math.isinf(left) else _EMPTY
        state.near_alpha, state.near_h = alpha, h
        state.steps += 1

    def _measure(self, problem: Problem, part: Problem, state: NewtonState, left: float) -> None:
        """Compute the two parts of the gap: the sub-problem's and that of smoothing."""
        state.residual = left / (2.0 * problem.strength)
        if math.isinf(left):
            state.residual = problem.penalty_terms(state.w, state.far_u + state.near_u)[1]
        state.excess, state.polished = 0.0, _EMPTY
        if state.gamma:
            data = (part.loss, part.y, part.share, state.near_alpha, state.near_z)
            state.excess = part.over_rows(sum_excess, *data)

    def _penalty(self, problem: Problem, state: NewtonState) -> float:
        """Return the penalty, with its kinks rounded if they are."""
        if not len(state.mu):
            return problem.penalty_terms(state.w, state.w)[0]
        l1 = problem.lam * problem.l1_ratio * soft_l1.value(state.w, state.mu)
        return 0.5 * problem.strength * float(state.w @ state.w) + l1

    def _cool(self, problem: Problem, state: NewtonState, gain: float) -> None:
        """Round the L1 penalty less, if that is what is left to gain."""
        before, l1 = self._penalty(problem, state), problem.lam * problem.l1_ratio
        state.mu = soft_l1.cooler(state.w, state.mu, l1, gain, state.first_mu)
        state.value += self._penalty(problem, state) - before

    def _polish(self, problem: Problem, state: NewtonState) -> None:
        """Replace the dual point of a smooth loss by one whose sum belongs to w."""
        d, share = problem.shape[1], np.maximum(problem.share, 1e-300)
        inverse = Hessian(problem, state.near_h).damped_inverse()

        def solve(of_weights: np.ndarray, of_intercept: Any) -> tuple[np.ndarray, Any]:
            found = inverse(np.append(of_weights, of_intercept))
            return found[:d], found[d:].sum()

        wanted = state.w
        if len(state.mu):
            r = problem.l1_ratio
            wanted = (1.0 - r) * state.w + r * soft_l1.slope(state.w, state.mu)

        def respond(dz: np.ndarray) -> np.ndarray:
            return state.near_h * dz / share

        def excess_of(alpha: np.ndarray) -> float:
            data = (problem.loss, problem.y, problem.share, alpha, state.near_z)
            return problem.over_rows(sum_excess, *data)

        given = (problem, state.w, state.near_alpha, solve, respond, wanted, excess_of)
        alpha, residual = polished(*given)
        excess = excess_of(alpha)
        better = excess + residual < state.excess + state.residual
        if better and alpha is not state.near_alpha:
            state.polished, state.residual, state.excess = alpha, residual, excess
        else:
            state.unpolishable, state.patience = state.patience, 2 * state.patience

    def _find_way(
        self, problem: Problem, part: Problem, state: NewtonState, gradient: np.ndarray
    ) -> tuple[Way, int]:
        """Return the way of the next step, and the products that its direction took."""
        d, ridge = problem.shape[1], None
        if len(state.mu):
            l1 = problem.lam * problem.l1_ratio
            gradient[:d] += l1 * soft_l1.slope(state.w, state.mu)
            ridge = problem.strength + l1 * soft_l1.curvature(state.w, state.mu)
        elif problem.l1_ratio:
            return descent_way(problem, part, state.near_h, state.w, gradient)
        h, same = state.near_h, is_parabola(problem.loss) and part is problem and ridge is None
        if state.damping:
            h = h + state.damping * problem.loss.smoothness * part.share
        hessian = state.hessian if same else None
        if hessian is None:
            hessian = Hessian(part, h, ridge=ridge)
        state.hessian = hessian if same else None
        gap = (PARABOLA_PART if same else STEP_PART) * state.tol or (PARABOLA_GAP if same else 0.0)
        before = float(gradient @ gradient)
        # else there are few products; a step that ended so, and was not the last, was too short
        smooths = d > DIRECT and is_even(problem) and not state.smoothed
        if state.gamma or ridge is not None or before <= 2.0 * problem.strength * gap * state.value:
            gap, smooths = 0.0, False  # the gradient is not the gap, or it was not enough
        enough = Enough(state.value, gap, problem.strength, smooths)
        given = (-gradient, state.rng, state.factor, enough)
        direction, products, state.factor = hessian.solve(*given)
        way = straight_way(direction, gradient, d)
        state.smoothed = hessian.dual_direction is not None
        return way._replace(dual=hessian.dual_direction), products

    def _compile(self, problem: Problem, gamma: float) -> None:
        few = problem.take(np.arange(min(2, problem.shape[0])))
        rng, n = np.random.default_rng(0), few.shape[0]
        probe = NewtonState(rng, rng, w=np.zeros(few.shape[1]), gamma=gamma)
        if not gamma and fused.can_fuse(few):
            fused.step(few, probe)
        probe.alpha, probe.centre = np.zeros(n), np.zeros(n)
        self.steps(few, probe, 1)

    def check(self, problem: Problem) -> None:
        known = type(problem.loss).stiffness is not Loss.stiffness
        self._require(known, f"{problem.loss} has no stiffness(a, y), which Newton's method needs")
        check_memory(self, problem)

"""Newton's method: for smooth losses as it is, for losses with kinks on proximal sub-problems.

References: R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point
algorithm in convex programming", Mathematics of Operations Research 1, 1976; X. Li, D. Sun and
K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
problems", SIAM Journal on Optimization 28, 2018 (the same combination for another problem).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from zerogap._jit import kernel
from zerogap.losses import Loss
from zerogap.problem import Problem
from zerogap.solvers.hessian import Hessian
from zerogap.solvers.protocol import Answer, Solver, State
from zerogap.solvers.sgd import check_l2

_BALANCE = 0.5  # the sub-problem's part of the gap at which its centre moves
_PART = 8  # one row in so many shows where to start
_ROWS_PER_FEATURE = 8  # in that part, at least
_EMPTY = np.empty(0)


@kernel
def _dual(loss, y, z, centre, gamma):
    """The a that maximises -phi*(-a) - a z - gamma/2 (a - centre)^2"""
    if gamma == 0.0:
        return -loss.derivative(z, y)
    low, high = loss.domain(y)
    return min(high, max(low, centre + loss.dual_step(centre, y, z, gamma)))


@kernel
def _respond(loss, y, share, z, centre, gamma, alpha, h):
    """Set the dual variables that answer the scores z, and h_i = -s_i d alpha_i / d z_i.

    Returns the parts of the objective and of the gap that the rows add up to.
    """
    value, excess = 0.0, 0.0
    for i in range(len(z)):
        a = _dual(loss, y[i], z[i], centre[i], gamma)
        alpha[i] = a
        h[i] = share[i] / (gamma + loss.stiffness(a, y[i]))
        value += share[i] * loss.value(z[i], y[i])
        if gamma > 0.0:
            excess += share[i] * max(0.0, loss.excess(a, z[i], y[i]))
    return value, excess


@kernel
def _mark_movable(loss, y, z, centre, gamma, reach, movable):
    """Mark the rows whose dual variables change if scores change by reach_i at most.

    Dual variables fall as scores rise: equal at both ends is equal in between.
    """
    for i in range(len(z)):
        top = _dual(loss, y[i], z[i] - reach[i], centre[i], gamma)
        bottom = _dual(loss, y[i], z[i] + reach[i], centre[i], gamma)
        movable[i] = top - bottom > 1e-12 * abs(top)


@kernel
def _slope(loss, y, share, z, dz, t, centre, gamma):
    """Slope in t of the smoothed loss at the scores z + t dz."""
    total = 0.0
    for i in range(len(z)):
        total -= share[i] * dz[i] * _dual(loss, y[i], z[i] + t * dz[i], centre[i], gamma)
    return total


@dataclass
class NewtonState(State):
    """State of `Newton`.

    Arrays named `near_` are of the rows whose dual variables may change while the iterate stays
    within `radius` of where it was `at`; what all the others add up to is kept as `far_`.
    """

    w: np.ndarray = field(default_factory=lambda: _EMPTY)
    b: float = 0.0
    alpha: np.ndarray = field(default_factory=lambda: _EMPTY)  # the far ones; near ones may be old
    centre: np.ndarray = field(default_factory=lambda: _EMPTY)
    gamma: float = 0.0
    at: np.ndarray = field(default_factory=lambda: _EMPTY)  # w and b
    radius: float = math.inf
    near: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    near_z: np.ndarray = field(default_factory=lambda: _EMPTY)
    near_alpha: np.ndarray = field(default_factory=lambda: _EMPTY)
    near_h: np.ndarray = field(default_factory=lambda: _EMPTY)
    near_u: np.ndarray = field(default_factory=lambda: _EMPTY)  # their dual sum
    far_u: np.ndarray = field(default_factory=lambda: _EMPTY)
    far_mean: float = 0.0  # of alpha
    far_value: float = 0.0  # of the objective, where the iterate was
    steps: int = 0  # since the centre moved
    primal: float = math.inf
    excess: float = math.inf  # the part of the gap that smoothing costs
    residual: float = math.inf  # the part of the gap that the sub-problem's solution would close
    part: Problem | None = field(default=None, metadata={"saved": False})  # the near rows


@dataclass(frozen=True)
class Newton(Solver):
    """Newton's method: few, expensive steps, for any accuracy and any condition of the data.

    A smooth loss is minimised as it is.  For a loss with kinks (hinge, absolute,
    epsilon-insensitive, quantile) the dual is maximised by the proximal point method: its
    sub-problems, D(a) - gamma/2 mean (a - centre)^2, have smooth primals, in whose Hessian only
    those rows appear whose dual variables are between their bounds.  Rows that provably stay at
    their bounds while w stays in a ball are left out until it leaves the ball.

    The Newton direction is found by conjugate gradients.  With up to 3000 features they are
    preconditioned by the factorised Hessian, of a sample of the rows if there are many; else by
    its diagonal.

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
        n, d = problem.shape
        state = NewtonState(rng, draw=rng.spawn(1)[0], w=np.zeros(d), centre=np.zeros(n))
        if problem.fit_intercept:
            state.b = problem.first_intercept()
        smooth = math.isfinite(problem.loss.smoothness)
        if not smooth:  # bend the loss at all scores but far ones: its own scale is value / slope^2
            value = problem.value_at(np.full(n, state.b), state.w)
            state.gamma = 2.0 * value / problem.loss.lipschitz**2
        if warm is None:
            self._foresee(problem, state)
        else:
            w, b, alpha = warm
            alpha = problem.dual_point(problem.scores(w), b) if alpha is None else alpha
            state.w, state.b, state.centre = np.array(w), float(b), problem.feasible(alpha)
            gap = problem.certificate(state.w, state.b, state.centre).relative_gap
            state.gamma *= min(1.0, 3.0 * math.sqrt(gap))
        state.alpha = state.centre.copy()
        return state

    def _foresee(self, problem: Problem, state: NewtonState) -> None:
        """Start at the optimum of a part of the rows, which is off by some d / rows only."""
        n, d = problem.shape
        size = n // _PART
        if size < max(_ROWS_PER_FEATURE * d, 1000):
            return
        chosen = np.sort(state.rng.choice(n, size, replace=False))
        part = problem.take(chosen)
        mass = float(part.share.sum())
        if mass == 0.0 or (problem.loss.task == "classification" and len(set(part.y)) < 2):
            return
        part = part._with(share=part.share / mass)
        ahead = self.begin(part, state.rng)
        for _ in range(50):
            self._steps(part, ahead, 1)
            if self.relative_gap(part, ahead) <= d / size:
                break
        state.w, state.b, alpha = self.answer(part, ahead)
        if ahead.gamma:
            state.gamma = ahead.gamma
            state.centre = problem.dual_point(problem.scores(state.w), state.b)
            state.centre[chosen] = alpha

    def epoch_length(self, problem: Problem) -> int:
        return 1

    def answer(self, problem: Problem, state: NewtonState) -> Answer:
        return state.w.copy(), state.b, self._alpha(state)

    def _alpha(self, state: NewtonState) -> np.ndarray:
        alpha = state.alpha.copy()
        alpha[state.near] = state.near_alpha
        return alpha

    def relative_gap(self, problem: Problem, state: NewtonState) -> float:
        return (state.excess + state.residual) / max(state.primal, 1e-300)

    def _steps(self, problem: Problem, state: NewtonState, count: int) -> int:
        passes = 0
        for _ in range(count):
            moved = self._distance(state)
            if not len(state.at):
                passes += self._divide(problem, state, math.inf)
            elif state.steps and state.residual <= _BALANCE * state.excess:
                self._move_centre(problem, state)
                passes += self._divide(problem, state, moved)
            elif moved > state.radius:
                passes += self._divide(problem, state, 2.0 * moved)
            passes += self._step(problem, state)
        if not count:
            self._compile(problem, state.gamma)
        return passes * problem.shape[0]

    def _distance(self, state: NewtonState) -> float:
        if not len(state.at):
            return math.inf
        return float(np.linalg.norm(np.append(state.w, state.b) - state.at))

    def _move_centre(self, problem: Problem, state: NewtonState) -> None:
        state.centre = self._alpha(state)
        if state.steps <= 8:
            state.gamma *= 0.3
        elif state.steps > 20:
            state.gamma *= 2.0
        state.steps = 0

    def _divide(self, problem: Problem, state: NewtonState, radius: float) -> int:
        """Find the rows that may change within the radius; add up the others; return the passes."""
        n = problem.shape[0]
        z = problem.scores(state.w) + state.b
        alpha, h, movable = np.empty(n), np.empty(n), np.ones(n, np.bool_)
        data = (problem.loss, problem.y)
        value, _ = _respond(*data, problem.share, z, state.centre, state.gamma, alpha, h)
        if math.isfinite(radius):
            reach = radius * np.sqrt(problem.sqnorms + problem.fit_intercept)
            _mark_movable(*data, z, state.centre, state.gamma, reach, movable)
        if movable.sum() > 0.5 * n:
            movable[:], radius = True, math.inf
        state.at, state.radius, state.part = np.append(state.w, state.b), radius, None
        state.near, state.alpha = np.flatnonzero(movable), alpha
        state.near_z, state.near_alpha, state.near_h = z[movable], alpha[movable], h[movable]
        part = self._part(problem, state)
        state.near_u = part.dual_sum(state.near_alpha)
        far = np.where(movable, 0.0, alpha)
        state.far_u, state.far_mean = problem.dual_sum(far), float(problem.share @ far)
        state.far_value = value - part.loss_at(state.near_z)
        return 3

    def _part(self, problem: Problem, state: NewtonState) -> Problem:
        if state.part is None:
            everything = len(state.near) == problem.shape[0]
            state.part = problem if everything else problem.take(state.near)
        return state.part

    def _step(self, problem: Problem, state: NewtonState) -> int:
        """Make one step of Newton's method with a line search; return the passes it took."""
        part, lam = self._part(problem, state), problem.lam
        centre = state.centre[state.near]
        gradient = lam * (state.w - state.far_u - state.near_u)
        if problem.fit_intercept:
            mean = state.far_mean + part.share @ state.near_alpha
            gradient = np.append(gradient, -mean)
        hessian = Hessian(part, state.near_h)
        direction, products = hessian.solve(-gradient, state.rng)
        d = problem.shape[1]
        p, p_b = direction[:d], float(direction[d]) if problem.fit_intercept else 0.0
        dz = part.scores(p) + p_b
        data = (part.loss, part.y, part.share, state.near_z, dz)
        # the far rows' part of the objective is a line: their dual variables do not change
        line = -lam * float(state.far_u @ p) - state.far_mean * p_b
        first, second = line + lam * float(state.w @ p), lam * float(p @ p)

        def slope(t: float) -> float:
            return float(_slope(*data, t, centre, state.gamma)) + first + t * second

        t = _line_search(slope, float(gradient @ direction))
        state.far_value += t * line
        state.w += t * p
        state.b += t * p_b
        state.near_z += t * dz
        state.steps += 1
        self._respond(problem, state, centre)
        return math.ceil((products + 2) * len(state.near) / problem.shape[0])

    def _respond(self, problem: Problem, state: NewtonState, centre: np.ndarray) -> None:
        """Answer the near rows' scores: dual variables, curvatures and both parts of the gap."""
        part = self._part(problem, state)
        before = state.near_alpha.copy()
        data = (part.loss, part.y, part.share, state.near_z, centre, state.gamma)
        value, state.excess = _respond(*data, state.near_alpha, state.near_h)
        state.near_u += part.dual_sum(state.near_alpha - before)  # late in a run few have changed
        rest = state.w - state.far_u - state.near_u
        state.residual = 0.5 * problem.lam * float(rest @ rest)
        state.primal = state.far_value + value + 0.5 * problem.lam * float(state.w @ state.w)

    def _compile(self, problem: Problem, gamma: float) -> None:
        few = problem.take(np.arange(min(2, problem.shape[0])))
        rng, n = np.random.default_rng(0), few.shape[0]
        probe = NewtonState(rng, rng, w=np.zeros(few.shape[1]), gamma=gamma)
        probe.alpha, probe.centre = np.zeros(n), np.zeros(n)
        self._steps(few, probe, 1)

    def _check(self, problem: Problem) -> None:
        check_l2(self, problem)
        known = type(problem.loss).stiffness is not Loss.stiffness
        self._require(known, f"{problem.loss} has no stiffness(a, y), which Newton's method needs")


def _line_search(slope: Callable[[float], float], start: float) -> float:
    """Return a step at which a convex function, of slope `start` at 0, is half as steep at most."""
    low, at_low, high, at_high, t = 0.0, start, math.inf, 0.0, 1.0
    for _ in range(30):
        now = slope(t)
        if abs(now) <= 0.5 * abs(start):
            break
        if now > 0.0 or math.isnan(now):
            high, at_high = t, now
        else:
            low, at_low = t, now
        if high == math.inf:
            t *= 2.0
        else:
            secant = low - at_low * (high - low) / (at_high - at_low)
            t = min(max(secant, low + 0.05 * (high - low)), high - 0.05 * (high - low))
    return t

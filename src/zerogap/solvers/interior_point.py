"""An interior point method for losses made of straight lines.

Such a loss is a line and some hinges.  Between its bounds and kinks phi*(-a) is made of segments,
of length l_k and slope c_k, and a dual variable is the sum of how far each of them is covered:

    phi(z)   = -low z - phi*(-low) + sum_k l_k max(0, -(z + c_k))
    a        = low + sum_k t_k,    0 <= t_k <= l_k

So the optimum satisfies, for all rows i and segments k, with room s = l - t left on a segment,

    w = 1/lam sum_i p_i a_i x_i,   sum_i p_i a_i = 0 (intercept),   r - v = z + c,
    t r = 0,   s v = 0,   t, s, r, v >= 0                           p_i the weights, of sum 1

and the method follows the points with t r = s v = mu instead to mu = 0.

References: S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM
Journal on Optimization 2, 1992; M. C. Ferris and T. S. Munson, "Interior-point methods for massive
support vector machines", SIAM Journal on Optimization 13, 2002.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from zerogap._jit import rowwise
from zerogap.losses import Loss
from zerogap.problem import Problem
from zerogap.solvers.hessian import DIRECT, Hessian, check_memory
from zerogap.solvers.protocol import Answer, Solver, State
from zerogap.solvers.sgd import check_l2

_EMPTY = np.empty(0)
_LEAST = 1e-20  # of the first mu: all that rounding leaves of a gap is larger


@rowwise(sums=0)
def _fill_segments(loss, y, low, length, slope, start, stop):
    """Set where the dual variables begin, and the lengths and slopes of their segments."""
    last = length.shape[1] - 1
    for i in range(start, stop):
        low[i], high = loss.domain(y[i])
        begin = low[i]
        for k in range(last + 1):
            end = high if k == last else 0.0
            length[i, k] = end - begin
            slope[i, k] = (loss.conjugate(end, y[i]) - loss.conjugate(begin, y[i])) / (end - begin)
            begin = end


@rowwise(sums=1)
def _weigh(share, t, s, r, v, theta, h, start, stop):
    """Set how dual variables answer to scores, theta = 1 / (r / t + v / s), and the Hessian's h.

    Returns the weighted sum of t r and s v.
    """
    total = 0.0
    for i in range(start, stop):
        bend, product = 0.0, 0.0
        for k in range(t.shape[1]):
            theta[i, k] = 1.0 / (r[i, k] / t[i, k] + v[i, k] / s[i, k])
            bend += theta[i, k]
            product += t[i, k] * r[i, k] + s[i, k] * v[i, k]
        h[i] = share[i] * bend
        total += share[i] * product
    return total


@rowwise(sums=0)
def _aim(low, t, s, r, v, dt, dr, dv, goal, theta, q, ahead, start, stop):
    """Set the dual variables that lead to t r = s v = goal if the scores stay.

    Products of an earlier direction's parts bend the way.
    """
    for i in range(start, stop):
        a = low[i]
        for k in range(t.shape[1]):
            change = (goal - dt[i, k] * dr[i, k]) / t[i, k] - r[i, k]
            q[i, k] = change - ((goal + dt[i, k] * dv[i, k]) / s[i, k] - v[i, k])
            a += t[i, k] + theta[i, k] * q[i, k]
        ahead[i] = a


@rowwise(sums=0)
def _turn(share, t, s, r, v, goal, theta, q, dz, dt, dr, dv, pace, start, stop):
    """Set the direction for scores that change by dz, and how soon a row would be at the boundary.

    Rows without weight stay where they are.
    """
    for i in range(start, stop):
        fastest = 0.0
        for k in range(t.shape[1]):
            first, second, third = 0.0, 0.0, 0.0
            if share[i] > 0.0:
                tr = goal - t[i, k] * r[i, k] - dt[i, k] * dr[i, k]
                sv = goal - s[i, k] * v[i, k] + dt[i, k] * dv[i, k]
                first = theta[i, k] * (q[i, k] - dz[i])
                second = (tr - r[i, k] * first) / t[i, k]
                third = (sv + v[i, k] * first) / s[i, k]
                fastest = max(fastest, -first / t[i, k], first / s[i, k])
                fastest = max(fastest, -second / r[i, k], -third / v[i, k])
            dt[i, k], dr[i, k], dv[i, k] = first, second, third
        pace[i] = fastest


@rowwise(sums=1)
def _reach(share, t, s, r, v, dt, dr, dv, step, start, stop):
    """The weighted sum of t r and s v after a step"""
    total = 0.0
    for i in range(start, stop):
        for k in range(t.shape[1]):
            up = (t[i, k] + step * dt[i, k]) * (r[i, k] + step * dr[i, k])
            down = (s[i, k] - step * dt[i, k]) * (v[i, k] + step * dv[i, k])
            total += share[i] * (up + down)
    return total


@rowwise(sums=0)
def _move(t, s, r, v, dt, dr, dv, step, start, stop):
    for i in range(start, stop):
        for k in range(t.shape[1]):
            t[i, k] += step * dt[i, k]
            s[i, k] -= step * dt[i, k]
            r[i, k] += step * dr[i, k]
            v[i, k] += step * dv[i, k]


@dataclass
class InteriorPointState(State):
    """State of `InteriorPoint`; the letters are those at the head of this file."""

    w: np.ndarray = field(default_factory=lambda: _EMPTY)
    b: float = 0.0
    low: np.ndarray = field(default_factory=lambda: _EMPTY)
    t: np.ndarray = field(default_factory=lambda: _EMPTY)
    s: np.ndarray = field(default_factory=lambda: _EMPTY)  # small ones are lost in l - t
    r: np.ndarray = field(default_factory=lambda: _EMPTY)
    v: np.ndarray = field(default_factory=lambda: _EMPTY)
    least: float = 0.0  # mu to end at

    @property
    def alpha(self) -> np.ndarray:
        return self.low + self.t.sum(axis=1)


@dataclass(frozen=True)
class InteriorPoint(Solver):
    """Mehrotra's interior point method, for losses made of straight lines.

    These are hinge, absolute, epsilon-insensitive and quantile.  A few dozen steps reach any
    accuracy, and hardly more if the data are ill-conditioned or lam is tiny; close to the optimum
    each step gains two digits and more.

    Notes
    -----
    An update is one step, and counts as an epoch.  It costs five passes over the data and the
    factorisation of lam + X' diag(h) X, O(n d^2) for dense rows and O(d^3): more than 3000
    features are refused.  Memory: 3 d^2 numbers, and 20 per row (36 for epsilon-insensitive).

    The method must begin far from all bounds: a warm start is certified, but not used.  Nothing is
    random.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> problem = zg.Problem(X, y, "hinge", lam=1e-6, fit_intercept=True)
    >>> result = zg.solve(problem, zg.InteriorPoint(), tol=1e-10)
    >>> result.certificate.relative_gap <= 1e-10, result.certificate.epochs < 30
    (True, True)
    """

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> InteriorPointState:
        (n, d), xp = problem.shape, problem.xp
        state = InteriorPointState(rng, draw=rng.spawn(1)[0], w=xp.zeros(d), low=xp.empty(n))
        if problem.fit_intercept:
            state.b = problem.first_intercept()
        length, slope = xp.empty((2, n, count_segments(problem.loss)))
        problem.over_rows(_fill_segments, problem.loss, problem.y, state.low, length, slope)
        state.t, state.s = 0.5 * length, 0.5 * length
        above = state.b + slope  # z + c
        size = _sum(problem, np.abs(above)) / length.shape[1] or 1.0
        state.r, state.v = np.maximum(above, 0.0) + size, np.maximum(-above, 0.0) + size
        products = _sum(problem, state.t * state.r + state.s * state.v)
        state.least = _LEAST * 0.5 * products / length.shape[1]
        return state

    def epoch_length(self, problem: Problem) -> int:
        return 1

    def answer(self, problem: Problem, state: InteriorPointState) -> Answer:
        return state.w.copy(), state.b, state.alpha

    def _steps(self, problem: Problem, state: InteriorPointState, count: int) -> int:
        for _ in range(count):
            self._step(problem, state)
        if not count:  # compile
            few = problem.take(np.flatnonzero(problem.share)[:2])
            self._step(few, self.begin(few, np.random.default_rng(0)))
        return 5 * count * problem.shape[0]

    def _step(self, problem: Problem, state: InteriorPointState) -> None:
        """Predict where mu could fall to along a straight line, then aim there along a curve."""
        place, share = (state.t, state.s, state.r, state.v), problem.share
        theta, q = problem.xp.empty((2, *state.t.shape))
        change = tuple(problem.xp.zeros((3, *state.t.shape)))
        h, ahead, pace = problem.xp.empty((3, len(share)))
        count = 2.0 * state.t.shape[1]
        mu = problem.over_rows(_weigh, share, *place, theta, h) / count
        solve = Hessian(problem, h, damping=0.0).inverse()

        def turn(goal: float) -> tuple[np.ndarray, float, float]:
            """Find the direction towards a mu; return its weights, intercept and longest step."""
            problem.over_rows(_aim, state.low, *place, *change, goal, theta, q, ahead)
            target = problem.lam * (problem.dual_sum(ahead) - state.w)
            if problem.fit_intercept:
                target = np.append(target, (share * ahead).sum())
            p = solve(target)
            dw, db = p[: len(state.w)], float(p[-1]) if problem.fit_intercept else 0.0
            dz = problem.scores(dw) + db
            problem.over_rows(_turn, share, *place, goal, theta, q, dz, *change, pace)
            fastest = float(pace.max())
            return dw, db, 1.0 / fastest if fastest > 0.0 else math.inf

        *_, longest = turn(0.0)
        reached = problem.over_rows(_reach, share, *place, *change, min(1.0, longest)) / count
        sigma = (reached / mu) ** 3
        dw, db, longest = turn(max(sigma * mu, state.least))
        # far from the central path the boundary must not come close
        step = min(1.0, min(max(0.9, 1.0 - sigma), 0.9999) * longest)
        state.w += step * dw
        state.b += step * db
        problem.over_rows(_move, *place, *change, step)

    def _check(self, problem: Problem) -> None:
        check_l2(self, problem)
        lines = "hinge, absolute, epsilon-insensitive and quantile"
        self._require(
            count_segments(problem.loss) > 0,
            f"{problem.loss} is not made of straight lines, as {lines} are: use Newton",
        )
        self._require(
            (d := problem.shape[1]) <= DIRECT,
            f"factorises a matrix as wide as the data, and {d:,} features are too many (at most "
            f"{DIRECT:,}): use Auto",
        )
        check_memory(self, problem)


def _sum(problem: Problem, x: np.ndarray) -> float:
    """Return 1/S sum_i s_i sum_k x_ik."""
    return float((problem.share[:, None] * x).sum())


def count_segments(loss: Loss) -> int:
    """Return how many straight lines the conjugate is made of, with zero as their only kink.

    0 if it is none of these.  A convex function that meets a chord in its middle is that chord.
    """

    def straight(start: float, end: float) -> bool:
        left, middle, right = (loss.conjugate(a, 1.0) for a in (start, 0.5 * (start + end), end))
        return abs(0.5 * (left + right) - middle) <= 1e-12 * (abs(left) + abs(right))

    low, high = loss.domain(1.0)
    if not math.isfinite(high - low):
        return 0
    if straight(low, high):
        return 1
    return 2 if low < 0.0 < high and straight(low, 0.0) and straight(0.0, high) else 0

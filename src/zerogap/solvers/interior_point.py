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

_Direction = tuple[np.ndarray, float, np.ndarray, np.ndarray, np.ndarray]


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
        state.least = _LEAST * _mu(problem, state.t, state.s, state.r, state.v)
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
        t, s, r, v = state.t, state.s, state.r, state.v
        mu = _mu(problem, t, s, r, v)
        theta = 1.0 / (r / t + v / s)
        h = problem.share * theta.sum(axis=1)
        solve = Hessian(problem, h, damping=0.0).inverse()

        def direction(tr: np.ndarray, sv: np.ndarray) -> _Direction:
            """Return the direction that changes t r and s v by so much, and meets the equations."""
            q = tr / t - sv / s
            ahead = state.alpha + (theta * q).sum(axis=1)  # alpha if the scores stayed
            target = problem.lam * (problem.dual_sum(ahead) - state.w)
            if problem.fit_intercept:
                target = np.append(target, (problem.share * ahead).sum())
            p = solve(target)
            dw, db = p[: len(state.w)], float(p[-1]) if problem.fit_intercept else 0.0
            dz = problem.scores(dw) + db
            dt = weighted * theta * (q - dz[:, None])
            dr = weighted * (tr - r * dt) / t
            dv = weighted * (sv + v * dt) / s
            return dw, db, dt, dr, dv

        def longest(dt: np.ndarray, dr: np.ndarray, dv: np.ndarray) -> float:
            """Return the step to the boundary."""
            paces = [np.max(x) for x in (-dt / t, dt / s, -dr / r, -dv / v)]
            pace = float(np.max(problem.xp.stack(paces)))
            return 1.0 / pace if pace > 0.0 else math.inf

        weighted = problem.share[:, None] > 0.0  # rows without weight stay where they are
        _, _, dt, dr, dv = direction(-t * r, -s * v)
        step = min(1.0, longest(dt, dr, dv))
        reached = _mu(problem, t + step * dt, s - step * dt, r + step * dr, v + step * dv)
        sigma = (reached / mu) ** 3
        goal = max(sigma * mu, state.least)
        dw, db, dt, dr, dv = direction(goal - t * r - dt * dr, goal - s * v + dt * dv)
        # far from the central path the boundary must not come close
        step = min(1.0, min(max(0.9, 1.0 - sigma), 0.9999) * longest(dt, dr, dv))
        state.w += step * dw
        state.b += step * db
        t += step * dt
        s -= step * dt
        r += step * dr
        v += step * dv

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


def _mu(problem: Problem, t: np.ndarray, s: np.ndarray, r: np.ndarray, v: np.ndarray) -> float:
    """Return the mean of t r and s v."""
    return 0.5 * _sum(problem, t * r + s * v) / t.shape[1]


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

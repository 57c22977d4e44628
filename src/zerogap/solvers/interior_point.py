"""An interior point method for losses made of lines or parabolas, and for those of many classes.

Such a loss is a line and some hinges.  Between its bounds and kinks phi*(-a) is made of segments,
of length l_k and slope c_k, and a dual variable is the sum of how far each of them is covered:

    phi(z)   = -low z - phi*(-low) + sum_k l_k max(0, -(z + c_k))
    a        = low + sum_k t_k,    0 <= t_k <= l_k

So the optimum satisfies, for all rows i and segments k, with room s = l - t left on a segment,

    w = 1/lam sum_i p_i a_i x_i,   sum_i p_i a_i = 0 (intercept),   r - v = z + c,
    t r = 0,   s v = 0,   t, s, r, v >= 0                           p_i the weights, of sum 1

and the method follows the points with t r = s v = mu instead to mu = 0.  A loss with a parabola
instead of a kink (squared and smooth hinge, Huber, squared) has one bent segment, on which
r - v = z + c + q t.

With an elastic net, lam r |w_j| is one more row, e_j, of the absolute loss with the target zero;
what is left of lam is lam (1 - r).  The multiclass hinge and the softmax have votes instead of
segments, see `interior_votes`.

References: S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM
Journal on Optimization 2, 1992; M. C. Ferris and T. S. Munson, "Interior-point methods for massive
support vector machines", SIAM Journal on Optimization 13, 2002; K. Crammer and Y. Singer, "On the
algorithmic implementation of multiclass kernel-based vector machines", Journal of Machine Learning
Research 2, 2001.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.kernels.machine_code import first_time
from zerogap.losses import MulticlassHinge, Softmax
from zerogap.problem.row_sums import set_domain
from zerogap.solvers.hessian import DIRECT, check_memory
from zerogap.solvers.history import Record
from zerogap.solvers.interior_parts import Lines, shape_of
from zerogap.solvers.interior_system import System, scores
from zerogap.solvers.interior_votes import Votes
from zerogap.solvers.protocol import Answer, Solver, State, empty_like
from zerogap.solvers.soft_l1 import sparsest
from zerogap.solvers.wide_hessian import can_factorise

_EMPTY = np.empty(0)
NEAR_AN_END = 1e-6  # a dual variable nearer to a bound, as a share of its range, is tried at it
LEAST_MU = 1e-26  # last mu over the first one: gaps are limited by rounding before that
SPARSE_GAP = 0.5  # of the gap asked for, that weights which are exactly zero may cost
EXACT_GAP = 1e-14  # smallest mu or gap that is aimed at, as a share of the objective
LAST_MU_OVER_GAP = 0.1  # last mu over the gap asked for: a smaller mu shows more rounding
CENTRED_TO = 0.1  # a Newton step that gains less, in units of a row's part, is on the central path
MOST_CENTRINGS = 40  # Newton steps towards the central path, at most
LEAST_CORRECTED_STEP = 0.1  # shortest predicted step for which a correction is computed
# part that mu falls by, and steps of that kind until Newton steps help: 11 steps on easy problems,
# where 0.2 and 2 took 13
SLOW_FALL, SLOW_STEPS = 0.1, 3
FAR_FROM_PATH = 100.0  # times the gap of the central path: a point with more is far from it
STEPS_WITHOUT_GAIN = 12  # steps after which a run has stalled; not tuned


@dataclass
class InteriorPointState(State):
    """State of `InteriorPoint`; the letters are those at the head of this file."""

    w: np.ndarray = field(default_factory=lambda: _EMPTY)  # the intercept is a last entry or column
    rows: Any = None  # Lines or Votes
    coordinates: Any = None  # Lines, if there is an L1 penalty
    mu: float = math.inf
    least: float = 0.0  # the last mu
    slow: int = 0  # consecutive steps that gained little
    centrings: int = 0  # Newton steps to the central path that are still allowed
    goal: float = math.inf  # mu of the last Newton steps to the central path
    tol: float = 0.0  # relative gap that is asked for
    idle: int = 0  # steps in which neither mu nor the least gap has fallen
    least_gap: float = math.inf
    gained: float = math.inf  # the least gap when one of them last fell
    best: float = math.inf  # gap of the best point: close to rounding later ones are worse
    best_w: np.ndarray = empty_like("w", beside="best_alpha")
    best_alpha: np.ndarray = field(default_factory=lambda: _EMPTY)
    value: float = math.inf  # objective, before the last step
    stalled: bool = False  # nothing more can be gained


@dataclass(frozen=True)
class InteriorPoint(Solver):
    """Mehrotra's interior point method, for losses made of straight lines or of parabolas.

    These are hinge, absolute, epsilon-insensitive, quantile and the multiclass hinge, squared and
    smooth hinge, Huber's and the squared loss, with L2 or elastic net; and the softmax.  A few
    dozen steps reach any accuracy, and hardly more if the data are ill-conditioned or lam is tiny;
    close to the optimum each step gains two digits and more.

    Notes
    -----
    An update is one step, and counts as an epoch.  It costs some ten passes over the data, more
    where rounding shows, and the factorisation of lam + X' diag(h) X, O(n d^2) for dense rows and
    O(d^3): more than 3000 features are refused.  With C classes the matrix has C d rows, at most
    3000 too, and costs C (C - 1) / 2 times as much to set up.  With an elastic net and few rows
    the matrix is as wide as these, times C.  Memory: 3 d^2 numbers (C d for d),
    and 30 per row (50 for epsilon-insensitive, 15 C for C classes).

    Where mu falls slowly, as it may with heavy tails, Newton steps on the smooth function that the
    weights have at a fixed mu lead to the central path (Nesterov and Nemirovskii, 1994).  Along
    near copies of columns and other weak directions, directions are refined until the residual
    costs little of the gap.  What is proved ends where sums over rows are rounded.

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

    multiclass = True

    def begin(
        self, problem: Any, rng: np.random.Generator, warm: Answer | None = None
    ) -> InteriorPointState:
        xp, d, many = problem.xp, problem.shape[1], len(problem.weight_shape) == 2
        shape = (*problem.weight_shape[:-1], d + problem.fit_intercept)
        state = InteriorPointState(rng, draw=rng, w=xp.zeros(shape))
        if problem.fit_intercept and not many:
            state.w[d] = problem.first_intercept()
        state.rows = (Votes if many else Lines).of_rows(problem, scores(problem, state.w))
        mu = state.rows.weigh() / state.rows.products
        if problem.l1_ratio:
            share = 1.0 / np.count_nonzero(problem.share)
            state.coordinates = Lines.of_coordinates(problem, share, mu)
        state.least = LEAST_MU * mu
        return state

    def epoch_length(self, problem: Any) -> int:
        return 1

    def answer(self, problem: Any, state: InteriorPointState) -> Answer:
        d, near = problem.shape[1], math.isfinite(state.best)
        best, alpha = (state.best_w, state.best_alpha) if near else (state.w, state.rows.alpha)
        w, alpha = problem.xp.ascontiguousarray(best[..., :d]).copy(), alpha.copy()
        b: Any = best[..., d].copy() if problem.fit_intercept else 0.0 * best[..., 0]
        b = b if np.ndim(b) else float(b)
        if problem.l1_ratio:
            w = sparsest(problem, w, b, alpha, SPARSE_GAP * state.tol)
        return w, b, _at_ends(problem, w, b, alpha, state.tol)

    def observe(self, problem: Any, state: InteriorPointState, record: Record, tol: float) -> None:
        state.tol = tol

    def relative_gap(self, problem: Any, state: InteriorPointState) -> float:
        """Return that of the best point, whose gap every step computes."""
        return state.best / max(abs(state.value), 1e-300) if state.best < math.inf else math.inf

    def steps(self, problem: Any, state: InteriorPointState, count: int) -> int:
        with np.errstate(all="ignore"):  # steps that are not finite are not made
            for _ in range(count):
                if not state.stalled:
                    self._step(problem, state)
        if not count and first_time(InteriorPoint, *problem.kind):
            few = problem.take(np.flatnonzero(problem.share)[:2])
            self.steps(few, self.begin(few, np.random.default_rng(0)), 1)
        return 10 * count * problem.shape[0]

    def _system(self, problem: Any, state: InteriorPointState) -> Any:
        return System(problem, state.w, state.rows, state.coordinates)

    def _step(self, problem: Any, state: InteriorPointState) -> None:
        """Predict where mu could fall to along a straight line, then aim there along a curve."""
        system = self._system(problem, state)
        mu, parts, objective = system.mu, system.parts, system.objective()
        state.value = objective / system.total_weight
        if state.centrings:
            near = system.recentre(state.goal) <= CENTRED_TO
            state.centrings = 0 if near else state.centrings - 1
            return
        gained = mu < 0.9 * state.mu or state.least_gap < 0.9 * state.gained
        state.idle = 0 if gained else state.idle + 1
        if gained:
            state.mu, state.gained = min(mu, state.mu), state.least_gap
        if state.idle > STEPS_WITHOUT_GAIN or not 0.0 < mu < math.inf:
            state.stalled = True
            return
        _, longest = system.turn(0.0)
        reached = sum(part.reach(min(1.0, longest)) for part in parts) / system.products
        sigma = max(0.0, min(1.0, reached / mu)) ** 3
        enough = max(EXACT_GAP, LAST_MU_OVER_GAP * state.tol / system.products) * objective
        least = max(state.least, enough)
        if longest < LEAST_CORRECTED_STEP:
            for part in parts:
                part.stand()
        dw, longest = system.turn(max(sigma * mu, least), exact=True)
        # far from the central path the boundary must not come close
        step = min(1.0, min(max(0.9, 1.0 - sigma), 0.9999) * longest)
        state.slow = state.slow + 1 if step * (1.0 - sigma) < SLOW_FALL else 0
        again = mu < 0.5 * state.goal or state.slow >= 3 * SLOW_STEPS
        # on the central path the gap is mu for each product
        lost = state.least_gap > FAR_FROM_PATH * system.products * mu
        if state.slow >= SLOW_STEPS and (mu > 100.0 * least or lost) and again:
            state.goal, state.slow = max(0.1 * mu, least), 0
            state.centrings = MOST_CENTRINGS
            return
        if not (math.isfinite(step) and bool(np.isfinite(dw).all())):
            state.stalled = True
            return
        system.move(step, dw)
        w, alpha = system.point()
        gap = system.gap_of(w, alpha)
        state.least_gap = min(gap, state.least_gap)
        # gaps above P are those of rounded dual variables: they tell nothing until mu is small
        small = max(state.tol, EXACT_GAP) * system.objective()
        if gap <= state.best and (gap <= system.objective() or mu * system.products <= small):
            state.best, state.best_w, state.best_alpha = gap, w, alpha

    def check(self, problem: Any) -> None:
        many = isinstance(problem.loss, MulticlassHinge | Softmax)
        self._require(
            many or (problem.loss.task != "multiclass" and shape_of(problem.loss).segments > 0),
            f"{problem.loss} is not made of lines and parabolas: use Newton",
        )
        d, wide = problem.shape[1], math.prod(problem.weight_shape)
        features = (
            f"{d:,} features for each of {wide // d:,} classes" if many else f"{d:,} features"
        )
        self._require(
            can_factorise(problem),
            f"factorises a matrix as wide as the weights, and {features} are too many (at most "
            f"{DIRECT:,}): use Auto",
        )
        check_memory(self, problem)


def _at_ends(problem: Any, w: np.ndarray, b: Any, alpha: np.ndarray, tol: float) -> np.ndarray:
    """Return the dual variables, with those near zero or near a bound moved exactly there.

    That is where most of them are at the optimum.  If it costs too much of the gap, they stay.
    """
    settled = np.where(np.abs(alpha) <= NEAR_AN_END, 0.0, alpha)
    if settled.ndim == 1:
        low, high = (problem.xp.empty(len(alpha)) for _ in range(2))
        problem.over_rows(set_domain, problem.loss, problem.y, low, high)
        near = NEAR_AN_END * np.where(np.isfinite(high - low), high - low, 1.0)
        settled = np.where(high - settled <= near, high, settled)
        settled = np.where(settled - low <= near, low, settled)
        settled = np.where(np.abs(alpha) <= near, 0.0, settled)
    else:
        settled = problem.duals_of(problem._votes(settled))
    z = problem.scores(w)

    def gap(duals: np.ndarray) -> tuple[float, float]:
        return problem.plain_gap(w, b, z, problem.nearly_feasible(duals))

    (primal, before), (_, after) = gap(alpha), gap(settled)
    return settled if after <= max(before, 0.5 * tol * primal) else alpha

"""Newton's method for losses of score vectors: as it is, or on entropic proximal sub-problems.

References: M. Teboulle, "Entropic proximal mappings with applications to nonlinear programming",
Mathematics of Operations Research 17, 1992; Y. Nesterov, "Smooth minimization of non-smooth
functions", Mathematical Programming 103, 2005, for the maximum that entropy makes smooth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.kernels.machine_code import first_time
from zerogap.losses import MulticlassHinge, Softmax
from zerogap.penalties import L2
from zerogap.solvers import soft_l1
from zerogap.solvers.dual_start import warm_duals
from zerogap.solvers.hessian import DAMPING, MOST_PRODUCTS, check_memory
from zerogap.solvers.line_search import Way, search, straight_way
from zerogap.solvers.multiclass_hessian import MulticlassHessian, all_scores, all_sums, bend
from zerogap.solvers.newton import ROWS_PER_SAMPLED, SAMPLED_PER_FEATURE
from zerogap.solvers.polish import is_worth_polishing, polished
from zerogap.solvers.protocol import Answer, Solver, State
from zerogap.solvers.warm_votes import apart, as_centre, listed, vote
from zerogap.solvers.wide_hessian import can_factorise, hessian_of

# Products with the Hessian that are cheaper than a new preconditioner.
PRODUCTS_ON_PROCESSOR, PRODUCTS_ON_GPU = 4, 8
MOST_DIRECT = 3000  # weights of all classes together up to which the whole Hessian is factorised:
FEW_WEIGHTS = 100  # at once if there are so few,
PRODUCTS_BEFORE_DIRECT = 60  # else when one direction has taken so many products
FIRST_TEMPERATURE = 0.3  # first temperature over the mean loss at the start
COOLING = 0.35  # next temperature over the present one
# The centre moves when the sub-problem's part of the gap is at most this times smoothing's part
BALANCE = 2.0
# Relative gap up to which weights of a loss with kinks are worth more than none; above, votes of
# coordinate ascent with weights of zero took a quarter fewer passes over images than either alone
USEFUL_WEIGHTS = 0.5
LEAST_TEMPERATURE = 1e-5  # last temperature over the first: a lower one shows rounding
_EMPTY = np.empty(0)


@dataclass
class MulticlassNewtonState(State):
    """State of `MulticlassNewton`; intercepts are a last column of weights and their gradient."""

    w: np.ndarray = field(default_factory=lambda: _EMPTY)
    z: np.ndarray = field(default_factory=lambda: _EMPTY)  # scores
    p: np.ndarray = field(default_factory=lambda: _EMPTY)  # votes
    gradient: np.ndarray = field(default_factory=lambda: _EMPTY)
    centre: np.ndarray = field(default_factory=lambda: _EMPTY)  # logarithms of votes
    mu: float = 0.0  # temperature
    least: float = 0.0  # one below which rounding of scores shows in votes
    scale: np.ndarray = field(default_factory=lambda: _EMPTY)  # the preconditioner
    inverse: np.ndarray = field(default_factory=lambda: _EMPTY)
    soft: np.ndarray = field(default_factory=lambda: _EMPTY)  # how far the L1 penalty is rounded
    first_soft: np.ndarray = field(default_factory=lambda: _EMPTY)
    polished: np.ndarray = field(default_factory=lambda: _EMPTY)  # a better dual point, if any
    unpolished: float = math.inf  # the residual of the step before, as it was
    direct: bool = False  # whether conjugate gradients have taken too long
    products: int = 0  # for the last direction
    limit: int = -1  # products from which the preconditioner is renewed
    steps: int = 0  # since the centre moved
    started: bool = False
    value: float = math.inf  # of the sub-problem, at most that of the problem
    excess: float = math.inf  # the part of the gap that smoothing costs
    residual: float = math.inf  # the part of the gap that the sub-problem's solution would close


@dataclass(frozen=True)
class MulticlassNewton(Solver):
    """Newton's method for many classes: few, expensive steps, whatever the condition of the data.

    The softmax is minimised as it is.  For the multiclass hinge the dual is maximised by the
    entropic proximal point method: its sub-problems, D(a) - mu mean KL(p, centre) with votes
    p = e_y - a, have smooth primals, in which mu log(sum centre exp(score / mu)) stands for the
    largest score.  In the Hessian only those rows count that vote for two classes or more.

    The Newton direction is found by conjugate gradients.  They are preconditioned by the
    curvatures of all weights and, with up to 3000 features, by the inverse of one matrix: the
    correlations of the features, of a sample of rows if there are many.

    Notes
    -----
    An update is one Newton step, and counts as an epoch; it costs a few dozen passes over the
    data.  Memory: the data, once more for the rows with curvature, a dozen numbers for each row and
    class, and d^2.

    Examples
    --------
    >>> import zerogap as zg
    >>> from zerogap.solvers.multiclass_newton import MulticlassNewton
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> problem = zg.Problem(X, [0, 1, 2], "softmax", lam=1e-3)
    >>> result = zg.solve(problem, MulticlassNewton(), tol=1e-9, random_state=0)
    >>> result.certificate.relative_gap <= 1e-9
    True
    """

    multiclass = True

    def begin(
        self, problem: Any, rng: np.random.Generator, warm: Answer | None = None
    ) -> MulticlassNewtonState:
        (C, d), zeros = problem.weight_shape, problem.xp.zeros
        state = MulticlassNewtonState(rng, draw=rng)
        state.w = zeros((C, d + problem.fit_intercept))
        if problem.fit_intercept:
            state.w[:, d] = problem.first_intercept()
        state.z = zeros(problem.dual_shape) + (state.w[:, d] if problem.fit_intercept else 0.0)
        if not math.isfinite(problem.loss.smoothness):
            state.mu = FIRST_TEMPERATURE * problem.mean_loss(state.z)
            state.least = LEAST_TEMPERATURE * state.mu
            state.centre = zeros(problem.dual_shape) - math.log(C)
        alpha = zeros(problem.dual_shape)
        if warm is not None:
            w, b, alpha = *warm[:2], warm_duals(problem, warm)
            gap = problem.certificate(w, b, alpha).relative_gap
            state.mu = max(state.mu * min(1.0, 3.0 * math.sqrt(gap)), state.least)
            state.centre = as_centre(problem._votes(alpha), math.sqrt(min(gap, 1.0)))
            if not state.mu or gap <= USEFUL_WEIGHTS:
                state.w[:, :d] = w - w.mean(axis=0)
                if problem.fit_intercept:
                    state.w[:, d] = b
                state.z = all_scores(problem, state.w)
            state.started = True
        state.p = problem._votes(alpha)
        if problem.l1_ratio:
            state.soft = state.first_soft = soft_l1.first_mu(problem)
        return state

    def prepare(self, problem: Any, state: MulticlassNewtonState) -> None:
        """Start at the optimum of a sample of the rows: its gap is about d / (sampled rows)."""
        n, d = problem.shape
        size = n // ROWS_PER_SAMPLED
        small = size < max(SAMPLED_PER_FEATURE * d, 1000)
        if state.started or small or problem.on_device:  # where few rows take as long as many
            return
        state.started = True
        chosen = problem.place(np.sort(state.rng.choice(n, size, replace=False)))
        part = problem.take(chosen)
        if len(np.unique(part.y[part.share > 0.0])) < problem.n_classes:
            return
        part = part._with(share=part.share / part.share.sum())
        ahead = self.begin(part, state.rng)
        self.prepare(part, ahead)
        for _ in range(50):
            self.steps(part, ahead, 1)
            if self.relative_gap(part, ahead) <= d / size:
                break
        state.w, state.z = ahead.w, all_scores(problem, ahead.w)
        for name in ("mu", "soft", "scale", "inverse", "products", "limit"):
            setattr(state, name, getattr(ahead, name))

    def epoch_length(self, problem: Any) -> int:
        return 1

    def answer(self, problem: Any, state: MulticlassNewtonState) -> Answer:
        d, w = problem.shape[1], state.w
        b: Any = w[:, d].copy() if problem.fit_intercept else problem.xp.zeros(len(w))
        alpha = state.polished if len(state.polished) else problem.duals_of(state.p)
        w = w[:, :d].copy()
        return soft_l1.sparsest(problem, w, b, alpha) if len(state.soft) else w, b, alpha

    def relative_gap(self, problem: Any, state: MulticlassNewtonState) -> float:
        return (state.excess + state.residual) / max(state.value, 1e-300)

    def steps(self, problem: Any, state: MulticlassNewtonState, count: int) -> int:
        passes = 0
        for _ in range(count):
            if state.mu and state.steps and state.residual <= BALANCE * state.excess:
                self._move_centre(state)
            if not state.steps:
                passes += self._look_around(problem, state)
            passes += self._step(problem, state)
        if not count and first_time(MulticlassNewton, *problem.kind):
            self._compile(problem)
        return passes * problem.shape[0]

    def _move_centre(self, state: MulticlassNewtonState) -> None:
        state.centre = as_centre(state.p)
        if state.steps <= 8:
            state.mu = max(COOLING * state.mu, state.least)
        elif state.steps > 20:
            state.mu *= 2.0
        state.steps = 0

    def _look_around(self, problem: Any, state: MulticlassNewtonState) -> int:
        """Begin a sub-problem where the last one ended; return the passes."""
        state.p = np.empty_like(state.z)
        value, _, state.excess = vote(problem, state.z, state.z, state.p, state.centre, state.mu)
        state.value = value + self._penalty(problem, state)
        self._set_gradient(problem, state)
        return 1

    def _penalty(self, problem: Any, state: MulticlassNewtonState) -> float:
        """Return the penalty, with its kinks rounded if they are."""
        w = problem.xp.ascontiguousarray(state.w[:, : problem.shape[1]])
        if not len(state.soft):
            return problem.penalty_terms(w, w)[0]
        l1 = problem.lam * problem.l1_ratio * soft_l1.value(w, state.soft)
        return 0.5 * problem.strength * float((w * w).sum()) + l1

    def _cool(self, problem: Any, state: MulticlassNewtonState, gain: float) -> None:
        """Round the L1 penalty less, if that is what is left to gain."""
        before, l1 = self._penalty(problem, state), problem.lam * problem.l1_ratio
        w = state.w[:, : problem.shape[1]]
        state.soft = soft_l1.cooler(w, state.soft, l1, gain, state.first_soft)
        state.value += self._penalty(problem, state) - before

    def _set_gradient(self, problem: Any, state: MulticlassNewtonState) -> None:
        """Set the gradient of all but the L1 penalty, and the penalty's part of the gap."""
        d, w = problem.shape[1], state.w[:, : problem.shape[1]]
        alpha = problem.duals_of(state.p)
        sums = all_sums(problem, problem.share[:, None] * alpha)
        state.gradient = -sums
        state.gradient[:, :d] += problem.strength * w
        u = sums[:, :d] / problem.lam
        state.residual = problem.penalty_terms(w.copy(), u.copy())[1]

    def _step(self, problem: Any, state: MulticlassNewtonState) -> int:
        """Make one step of Newton's method with a line search; return the passes it took."""
        d = problem.shape[1]
        way = self._find_way(problem, state)
        direction = state.w.copy()
        direction[:, :d] = way.p.reshape(-1, d)
        direction[:, d:] = way.p_b.reshape(len(direction), -1)
        dz = all_scores(problem, direction)
        p, before = np.empty_like(state.p), state.w[:, :d].ravel()
        both = problem.xp.stack([before, way.p])
        (ww, wd), (_, dd) = (both @ both.T).tolist()
        strength, l1 = problem.strength, problem.lam * problem.l1_ratio

        def look(t: float) -> tuple[float, float]:
            z = state.z + t * dz
            value, slope, state.excess = vote(problem, z, dz, p, state.centre, state.mu)
            value += 0.5 * strength * (ww + 2.0 * t * wd + t * t * dd)
            slope += strength * (wd + t * dd)
            if len(state.soft):
                moved, soft = before + t * way.p, state.soft.ravel()
                value += l1 * soft_l1.value(moved, soft)
                slope += l1 * float(soft_l1.slope(moved, soft) @ way.p)
            return value, slope

        t, state.value = search(look, state.value, way.slope, way.longest)
        state.w = state.w + t * direction
        state.w[:, :d] = way.at(before, t).reshape(-1, d)
        state.z = state.z + t * dz
        state.p = p
        state.steps += 1
        if len(state.soft):
            self._cool(problem, state, -way.slope)
        self._set_gradient(problem, state)
        state.polished = _EMPTY
        small = state.w.size <= MOST_DIRECT
        if not state.mu and small and is_worth_polishing(problem, state, way.slope):
            self._polish(problem, state)
        return 2 + state.products

    def _polish(self, problem: Any, state: MulticlassNewtonState) -> None:
        """Replace the dual point of a smooth loss by one whose sum belongs to w."""
        d, ones = problem.shape[1], np.ones(len(state.p))
        inverse, _ = MulticlassHessian(problem, state.p).factorised(DAMPING)

        def solve(of_weights: np.ndarray, of_intercept: np.ndarray) -> Any:
            of_intercept = of_intercept.reshape(len(of_weights), -1)
            found = inverse(np.column_stack([of_weights, of_intercept]))
            found = apart(found) if isinstance(problem.penalty, L2) else found
            return found[:, :d].copy(), found[:, d:].ravel()

        def respond(dz: np.ndarray) -> np.ndarray:
            problem.over_rows(bend, ones, state.p, dz)
            return dz

        wanted = w = np.ascontiguousarray(state.w[:, :d])
        if len(state.soft):
            r = problem.l1_ratio
            wanted = (1.0 - r) * w + r * soft_l1.slope(w, state.soft)
        alpha, _ = polished(problem, w, problem.duals_of(state.p), solve, respond, wanted)
        alpha = problem.duals_of(np.maximum(problem._votes(alpha), 0.0))
        u = problem.precise_dual_sum_of(alpha)
        excess = problem.row_terms(state.z, 0.0, alpha).excess
        residual = problem.penalty_terms(w, np.ascontiguousarray(u))[1]
        if excess + residual < state.excess + state.residual:
            state.polished, state.excess, state.residual = alpha, excess, residual

    def _find_way(self, problem: Any, state: MulticlassNewtonState) -> Way:
        """Return the way of the next step, along the Newton direction."""
        d, C = problem.shape[1], len(state.w)
        h = state.p / (state.mu or 1.0)
        if not len(state.soft):
            direction = apart(self._direction(problem, state, MulticlassHessian(problem, h)))
            return straight_way(listed(direction, d), listed(state.gradient, d), C * d)
        l1, w, gradient = problem.lam * problem.l1_ratio, state.w[:, :d], state.gradient.copy()
        gradient[:, :d] += l1 * soft_l1.slope(w, state.soft)
        ridge = problem.strength + l1 * soft_l1.curvature(w, state.soft)
        direction = hessian_of(problem, h, ridge).inverse()(-gradient)
        if problem.fit_intercept:
            direction[:, d] -= direction[:, d].mean()
        return straight_way(listed(direction, d), listed(gradient, d), C * d)

    def _direction(self, problem: Any, state: MulticlassNewtonState, hessian: Any) -> np.ndarray:
        """Return the Newton direction: by conjugate gradients, or directly if these take long."""
        possible = state.w.size <= MOST_DIRECT and not problem.on_device
        if possible and (state.direct or state.w.size <= FEW_WEIGHTS):
            return hessian.inverse()(-state.gradient)
        worn = state.products > state.limit
        if worn:
            state.scale, state.inverse = hessian.preconditioner(state.rng)
        preconditioner = (state.scale, state.inverse)
        limit = PRODUCTS_BEFORE_DIRECT if possible else MOST_PRODUCTS
        direction, state.products = hessian.solve(-state.gradient, *preconditioner, limit)
        if worn:
            more = PRODUCTS_ON_GPU if problem.on_device else PRODUCTS_ON_PROCESSOR
            state.limit = state.products + max(more, state.products // 2)
        if possible and state.products >= limit:
            state.direct = True
            return hessian.inverse()(-state.gradient)
        return direction

    def _compile(self, problem: Any) -> None:
        few = problem.take(problem.xp.arange(min(2, problem.shape[0])))
        self.steps(few, self.begin(few, np.random.default_rng(0)), 1)

    def check(self, problem: Any) -> None:
        if not isinstance(problem.penalty, L2):
            self._require(
                can_factorise(problem) and not problem.on_device,
                f"takes an elastic net with up to {MOST_DIRECT:,} weights, or as many dual "
                f"variables of fewer rows, on the CPU: use SDCA",
            )
        known = isinstance(problem.loss, Softmax | MulticlassHinge)
        self._require(known, f"knows no derivative of the votes of {problem.loss}: use SDCA")
        check_memory(self, problem)

"""Newton's method on sums over rows that lie elsewhere: in blocks of a store, or on workers.

It is the method of `zerogap.solvers.Newton` and `MulticlassNewton`.  What a step needs of the rows
- value, gradient, Hessian, and what smoothing costs - are sums, which whoever holds rows adds up in
one pass over them.  So a step whose first length is accepted costs one pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.problem.multiclass import MulticlassProblem
from zerogap.solvers import multiclass_newton, soft_l1
from zerogap.solvers.hessian import Hessian, SummedHessian
from zerogap.solvers.line_search import Way, adapted_damping, search, straight_way
from zerogap.solvers.multiclass_hessian import MulticlassHessian, SummedMulticlassHessian
from zerogap.solvers.newton import BALANCE, FEW_STEPS, LESS_SMOOTHING, MANY_STEPS
from zerogap.solvers.responses import first_gamma, respond, sum_excess, two_like
from zerogap.solvers.warm_votes import apart, as_centre, listed, vote

MOST_LOOKS = 12  # points of a line search, each of which is a pass over all rows
# Slope over the objective below which the slope is rounding alone; it enters squared
SLOPE_OF_ROUNDING = 1e-28
MOST_NOISY = 3  # steps along such slopes before the method gives up
MOST_OF_LEAST = 1e7  # largest gamma over the smallest one: a hundred times the first gamma
_EMPTY = np.empty(0)


@dataclass(frozen=True, eq=False)
class Sums:
    """What rows add to a Newton step; those of parts of the rows add up."""

    value: float  # of the loss, smoothed
    excess: float  # the part of the gap that smoothing costs
    u: Any  # dual sum
    mean: Any  # of the dual variables: one number, or one for each class
    hessian: Any  # without the penalty

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.value + other.value,
            self.excess + other.excess,
            self.u + other.u,
            self.mean + other.mean,
            self.hessian + other.hessian,
        )


def sums_at(
    part: Problem, w: np.ndarray, b: Any, centre: np.ndarray, gamma: float, damping: float = 0.0
) -> tuple[Sums, np.ndarray]:
    """Return the sums over these rows at (w, b), and the dual variables that belong to it.

    With gamma > 0 these are the dual variables of the sub-problem around `centre`.  `damping` is
    the share of the largest curvature that is added to each row's own, see `adapted_damping`.
    """
    z = part.scores(w) + b
    if isinstance(part, MulticlassProblem):
        p = np.empty_like(z)
        near = as_centre(part._votes(centre)) if gamma else _EMPTY
        value, _, excess = vote(part, z, z, p, near, gamma)
        alpha = part.duals_of(p)
        matrix = MulticlassHessian(part, p / (gamma or 1.0)).rows_part()
    else:
        alpha, h = two_like(part, z)
        value, _ = respond(part, z, z, 0.0, alpha, h, centre, gamma)
        data = (part.loss, part.y, part.share, alpha, z)
        excess = part.over_rows(sum_excess, *data) if gamma else 0.0
        h = h + damping * part.loss.smoothness * part.share if damping else h
        matrix = Hessian(part, h).rows_part()
    return Sums(value, excess, part.dual_sum(alpha), part.share @ alpha, matrix), alpha


@dataclass
class Point:
    """Where the method is: the model, and the sub-problem that it solves."""

    w: np.ndarray = field(default_factory=lambda: _EMPTY)
    b: np.ndarray = field(default_factory=lambda: _EMPTY)  # none, one, or one for each class
    gamma: float = 0.0  # how much the loss is smoothed
    least: float = 0.0  # gamma, below which rounding of scores shows in dual variables
    soft: np.ndarray = field(default_factory=lambda: _EMPTY)  # how far the L1 penalty is rounded
    first_soft: np.ndarray = field(default_factory=lambda: _EMPTY)
    steps: int = 0  # since the centre moved
    value: float = math.inf  # of the sub-problem, at most that of the problem
    excess: float = math.inf  # the part of the gap that smoothing costs
    residual: float = math.inf  # the part of the gap that the sub-problem's solution would close
    damping: float = 0.0  # part of the largest curvature that is added to each row's own
    noisy: int = 0  # steps in a row that were all noise
    stalled: bool = False  # whether no step makes the objective smaller
    sums: Sums | None = field(default=None, metadata={"saved": False})  # at the point

    @property
    def relative_gap(self) -> float:
        """The gap over the objective, except for what rounding and the intercept cost."""
        return (self.excess + self.residual) / max(self.value, 1e-300)

    @property
    def is_solved(self) -> bool:
        """Whether the sub-problem is solved well enough for its centre to move."""
        many = np.ndim(self.w) > 1
        balance = multiclass_newton.BALANCE if many else BALANCE
        return bool(self.gamma and self.steps and self.residual <= balance * self.excess)

    def move_centre(self) -> None:
        """Begin the next sub-problem; the caller takes the dual variables as its centre."""
        if self.steps <= FEW_STEPS:
            cooler = multiclass_newton.COOLING if np.ndim(self.w) > 1 else LESS_SMOOTHING
            self.gamma = max(cooler * self.gamma, self.least)
        elif self.steps > MANY_STEPS:
            self.gamma *= 2.0
        self.steps, self.noisy, self.sums = 0, 0, None


Evaluate = Callable[[np.ndarray, Any], Sums]


def first_smoothing(problem: Any, b: Any) -> tuple[float, float]:
    """Return how much to smooth a loss at first, and at least: nothing if it is smooth."""
    if problem.loss.task != "multiclass":
        return first_gamma(problem, b)
    if math.isfinite(problem.loss.smoothness):
        return 0.0, 0.0
    mu = multiclass_newton.FIRST_TEMPERATURE * problem.constant_loss(b)
    return mu, multiclass_newton.LEAST_TEMPERATURE * mu


def step(frame: Any, point: Point, evaluate: Evaluate) -> int:
    """Make one step with a line search; return the passes it took.

    Parameters
    ----------
    frame : Problem
        The problem, whose rows are not needed.
    point : Point
        Changed in place.
    evaluate : callable
        Returns the `Sums` at (w, b), and keeps the dual variables there.
    """
    passes = 0

    def look_at(w: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal passes
        passes += 1
        point.sums = evaluate(w, intercept(frame, b))
        return point.sums.value + _penalty(frame, point, w), _gradient(frame, point, w)

    if point.sums is None:
        point.value, gradient = look_at(point.w, point.b)
    else:
        gradient = _gradient(frame, point, point.w)
    way = _find_way(frame, point, gradient)
    direction = np.append(way.p, way.p_b)

    def look(t: float) -> tuple[float, float]:
        value, there = look_at(*_moved(point, way, t))
        return value, float(there @ direction)

    noise = not -way.slope > SLOPE_OF_ROUNDING * abs(point.value)
    t, point.value = search(look, point.value, way.slope, looks=1 if noise else MOST_LOOKS)
    point.w, point.b = _moved(point, way, t)
    point.noisy = point.noisy + 1 if noise else 0
    stuck = t == 0.0 and not noise
    if stuck and point.gamma and point.gamma < MOST_OF_LEAST * point.least:  # too few rows bend
        point.gamma, point.sums = 10.0 * point.gamma, None
        return passes
    if not point.gamma and np.ndim(point.w) == 1:
        before, point.damping = point.damping, adapted_damping(point.damping, t)
        if stuck and before < point.damping:
            point.sums = None
            return passes
    point.stalled = stuck or point.noisy > MOST_NOISY
    point.steps += 1
    if len(point.soft):
        before, l1 = _penalty(frame, point, point.w), frame.lam * frame.l1_ratio
        point.soft = soft_l1.cooler(point.w, point.soft, l1, -way.slope, point.first_soft)
        point.value += _penalty(frame, point, point.w) - before
    assert point.sums is not None
    point.residual = frame.penalty_terms(point.w, point.sums.u)[1]
    point.excess = point.sums.excess
    return passes


def _moved(point: Point, way: Way, t: float) -> tuple[np.ndarray, np.ndarray]:
    return point.w + t * way.p.reshape(point.w.shape), point.b + t * way.p_b


def intercept(frame: Any, b: np.ndarray) -> Any:
    """Return intercepts as a problem takes them."""
    if frame.loss.task == "multiclass":
        return b if len(b) else np.zeros(frame.n_classes)
    return float(b.sum())


def _penalty(frame: Any, point: Point, w: np.ndarray) -> float:
    """Return the penalty, with its kinks rounded if they are."""
    if not len(point.soft):
        return frame.penalty_terms(w, w)[0]
    l1 = frame.lam * frame.l1_ratio * soft_l1.value(w, point.soft)
    return 0.5 * frame.strength * float((w * w).sum()) + l1


def _gradient(frame: Any, point: Point, w: np.ndarray) -> np.ndarray:
    """Return the gradient: of the weights, and then of the intercepts."""
    assert point.sums is not None
    of_weights = frame.strength * w - frame.lam * point.sums.u
    if len(point.soft):
        of_weights += frame.lam * frame.l1_ratio * soft_l1.slope(w, point.soft)
    if not frame.fit_intercept:
        return of_weights.ravel()
    return np.append(of_weights, -point.sums.mean)


def _find_way(frame: Any, point: Point, gradient: np.ndarray) -> Way:
    """Return the way of the next step, along the Newton direction."""
    assert point.sums is not None
    ridge, size = None, point.w.size
    if len(point.soft):
        l1 = frame.lam * frame.l1_ratio
        ridge = frame.strength + l1 * soft_l1.curvature(point.w, point.soft)
    if np.ndim(point.w) == 1:
        inverse = SummedHessian(frame, point.sums.hessian, ridge).inverse()
        return straight_way(inverse(-gradient), gradient, size)
    C, d = point.w.shape
    solve = SummedMulticlassHessian(frame, point.sums.hessian, ridge).inverse()
    matrix = gradient[:size].reshape(C, d)
    if frame.fit_intercept:
        matrix = np.column_stack([matrix, gradient[size:]])
    direction = solve(-matrix)
    if isinstance(frame.penalty, L2):
        direction = apart(direction)
    elif frame.fit_intercept:
        direction[:, d] -= direction[:, d].mean()
    return straight_way(listed(direction, d), gradient, size)

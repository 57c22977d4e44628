r"""What a model and its dual point say of the model without one row.

Leaving out row i keeps Lambda = lam S, that is C: the problem without it is

    Q(v, c) = sum_{j != i} s_j phi_j(x_j.v + c) + Lambda g(v).

Theorem.  Let alpha be feasible for the problem with all rows, (w, b) a model with w = w(alpha), G
its duality gap times S, e_j(z) = phi_j(z) + phi_j*(-alpha_j) + alpha_j z the terms that add up to
G, a = s_i alpha_i, and mu the strong convexity of Lambda g.  Every optimum (w*, b*) of Q satisfies

    mu |w - w*|^2 + sum_{j != i} s_j e_j(x_j.w* + b*)  <=  G - s_i e_i(f) + a (f - f*)

where f and f* are the scores that (w, b) and (w*, b*) give to row i.

Proof.  By Fenchel and Young, and because the s_j alpha_j add up to zero if there is an intercept,
Q(v, c) = sum_{j != i} s_j e_j(x_j.v + c) + B(v) + a (x_i.v + c) + constant, for all (v, c), where
B(v) >= mu/2 |v - w|^2 and B(w) = 0.  Subtract this at (w*, b*) from it at (w, b); the difference
is at least mu/2 |w - w*|^2, since Q is strongly convex.  If w is not w(alpha), the midpoint of the
two takes its place on the left, and mu/4 of their squared distance is subtracted on the right.

What follows, in the limit of G = 0:

* If a = 0 then w* = w: rows that are not support vectors are free.
* a (f - f*) >= 0: a score moves away from its target.  What is predicted wrongly remains wrong.
* Without an intercept, |f - f*| <= |x_i| |w - w*|: f* lies between f - a |x_i|^2 / mu and f.
* With one, let t be the change of the score at some point, from which rows are measured from here
  on.  Replacing e_j by its tangent at the score of w plus t, with sums E(t) of heights and v(t) of
  slopes times rows, excludes every t with  h E + a t - |h v + a x_i|^2 / (4 mu) > 0  for some
  h in [0, 1].  The others form an interval around 0, and (f - f* + t)^2 <= |x_i|^2 a (f - f*) / mu.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zerogap._jit import kernel
from zerogap.problem import Problem
from zerogap.proving import Proof

_ROUNDING = 1e-12  # of a score, relative to the sizes it is made of
_NOISE = 1e-14  # of the gap, relative to the terms that cancel in it
_HERE = np.empty(0)


@dataclass(frozen=True, eq=False)
class Witness:
    """A model of a problem and a dual point, as the theorem needs them."""

    problem: Problem
    w: np.ndarray
    b: float
    alpha: np.ndarray
    z: np.ndarray  # scores of the model
    at: np.ndarray  # scores of the midpoint between w and w(alpha)
    lean: np.ndarray  # from there to w
    budget: float  # G / S, less what the distance between w and w(alpha) says
    rounding: float  # what the terms of the gap may be off by
    strength: float  # mu / S

    @classmethod
    def of(cls, problem: Problem, w: np.ndarray, proof: Proof) -> Witness:
        """Return what a proof about the weights w says."""
        b, alpha = proof.b, proof.alpha
        lean = 0.5 * (w - problem.weights(alpha))
        z = problem.scores(w) + b
        at = problem.scores(w - lean) + b if lean.any() else z
        strength = problem.lam * problem.penalty.convexity()
        budget = max(0.0, proof.gap - strength * float(lean @ lean))
        # the terms of the gap are differences of scores and targets; beside a kink they have the
        # slope of its other side
        smooth = math.isfinite(problem.loss.smoothness)
        slopes = np.abs(alpha) if smooth else problem.loss.lipschitz
        sizes = float(problem.share @ (slopes * (np.abs(z) + np.abs(problem.y))))
        rounding = _NOISE * (abs(proof.primal) + sizes)
        return cls(problem, w, b, alpha, z, at, lean, budget, rounding, strength)

    def bounds(
        self, rows: np.ndarray, origin: Origin, grid: np.ndarray = _HERE
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the scores that the optimal models without one of the rows give to it.

        `grid` has the changes t to look at, to either side; without them t = 0, which is true if
        there is no intercept.
        """
        problem, low, high = self.problem, np.empty(len(rows)), np.empty(len(rows))
        at = self.at + origin.point @ self.lean  # t = 0 is the score of w at the origin
        planes = np.array([[self._plane(origin, at, s * t) for t in grid] for s in (-1.0, 1.0)])
        _bound(
            *(problem.loss, problem.y, problem.share, self.alpha, self.z, at),
            *(origin.distances, self.budget, self.rounding, self.strength),
            *(grid, planes.reshape(2, len(grid), 2), rows, low, high),
        )
        sizes = np.sqrt(problem.sqnorms[rows]) * np.linalg.norm(self.w) + abs(self.b)
        return low - _ROUNDING * sizes, high + _ROUNDING * sizes

    def steps(self, origin: Origin) -> np.ndarray:
        """Return a grid of the size that changes have if there are no support vectors to go."""
        gap = self.budget + self.rounding
        size = max(math.sqrt(gap), float(origin.distances.mean()) * math.sqrt(gap / self.strength))
        return size * 4.0 ** np.arange(-1, 6, 2)

    def _plane(self, origin: Origin, at: np.ndarray, t: float) -> tuple[float, float]:
        """Return E(t) and |v(t)|, over S and of all rows."""
        problem = self.problem
        height = problem.row_terms(at, t, self.alpha).excess
        slopes = problem.slopes(at + t) + self.alpha
        normal = problem.lam * problem.dual_sum(slopes) - (problem.share @ slopes) * origin.point
        return height, float(np.linalg.norm(normal))


@dataclass(frozen=True, eq=False)
class Origin:
    """The point from which rows are measured, and their distances from it."""

    point: np.ndarray
    distances: np.ndarray

    @classmethod
    def of(cls, witness: Witness) -> Origin:
        """Return zero or, with an intercept, the mean of the rows that hold it in its place."""
        problem, at = witness.problem, witness.at
        if not problem.fit_intercept:
            return cls(np.zeros(problem.shape[1]), np.sqrt(problem.sqnorms))
        weight = np.zeros(len(at))
        shift = 1e-3 * float(np.sqrt(np.mean(at**2)))  # any: it decides how tight the bounds are
        for t in (-shift, shift):
            _add_excess(problem.loss, problem.y, witness.alpha, at + t, weight)
        total = float(problem.share @ weight)
        point = problem.lam * problem.dual_sum(weight / total if total > 0.0 else weight)
        size = float(point @ point)
        squares = problem.sqnorms - 2.0 * problem.scores(point) + size
        cancelled = _ROUNDING * (problem.sqnorms + size)
        return cls(point, np.sqrt(np.maximum(squares, 0.0) + cancelled))


@kernel
def _bound(
    loss,
    y,
    share,
    alpha,
    z,
    at,
    distances,
    budget,
    rounding,
    strength,
    grid,
    planes,
    rows,
    low,
    high,
):
    """The scores f* that the theorem leaves possible for each of the rows"""
    for k in range(len(rows)):
        i = rows[k]
        a, x, gap = share[i] * alpha[i], distances[i], budget
        if share[i] > 0.0:
            gap = max(0.0, gap - share[i] * max(0.0, loss.excess(alpha[i], z[i], y[i])))
        gap += a * (z[i] - at[i]) + rounding
        left, right = 0.0, 0.0
        if len(grid) > 0:
            row = (y[i], share[i], alpha[i], at[i], x)
            left = _first_excluded(loss, row, gap, strength, -grid, planes[0])
            right = _first_excluded(loss, row, gap, strength, grid, planes[1])
        # (f - f* + t)^2 <= x^2 / strength (gap + a (f - f*)) for some t from left to right
        pull = x * x * a / strength
        square = x * x * gap / strength + 0.25 * pull * pull
        if pull != 0.0:
            square += max(-pull * left, -pull * right)
        root = np.sqrt(max(0.0, square))
        least, most = 0.5 * pull - right - root, 0.5 * pull - left + root
        # 0 <= gap + a (f - f*)
        if a > 0.0:
            least = max(least, -gap / a)
        elif a < 0.0:
            most = min(most, -gap / a)
        low[k], high[k] = at[i] - most, at[i] - least


@kernel
def _first_excluded(loss, row, gap, strength, ts, planes):
    """The first of the changes t that is excluded, and with it all beyond; else infinity"""
    y, share, alpha, at, x = row
    pull = abs(share * alpha) * x
    for m in range(len(ts)):
        height, slope = planes[m, 0], planes[m, 1]
        if share > 0.0:  # the row's own part is not there
            height = max(0.0, height - share * max(0.0, loss.excess(alpha, at + ts[m], y)))
            slope += share * abs(loss.derivative(at + ts[m], y) + alpha) * x
        part = 1.0  # h, the best one
        if slope > 0.0:
            part = min(1.0, max(0.0, (2.0 * strength * height / slope - pull) / slope))
        tilt = part * slope + pull
        if part * height + share * alpha * ts[m] - 0.25 * tilt * tilt / strength > gap:
            return ts[m]
    return np.copysign(np.inf, ts[0])


@kernel
def _add_excess(loss, y, alpha, z, out):
    for i in range(len(z)):
        out[i] += max(0.0, loss.excess(alpha[i], z[i], y[i]))

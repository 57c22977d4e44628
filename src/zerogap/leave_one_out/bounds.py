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

All of it holds for the exactly feasible dual point that a proof is about, near the one at hand, and
is bounded outwards: gaps, distances and |a| up, heights and mu down, see
`zerogap.regions.enclosures`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from zerogap.kernels.jit import kernel
from zerogap.problem import Problem
from zerogap.problem.gap import EVALUATION, UNIT, gamma, of_rows
from zerogap.problem.proving import Proof
from zerogap.regions.enclosures import (
    Slip,
    dual_slope,
    empty_rows,
    excess_below,
    excess_error,
    length_above,
    lengths_above,
    score_doubt,
)

_HERE = np.empty(0)


class Plane(NamedTuple):
    """The rows' terms at a change t of all scores, from below, and their slopes, from above."""

    height: float
    slope: float  # |v|
    doubt: float  # how far the height may be off


@dataclass(frozen=True, eq=False)
class PrimalDualPair:
    """A model of a problem and a dual point, as the theorem needs them."""

    problem: Problem
    w: np.ndarray
    b: float
    alpha: np.ndarray
    slip: Slip
    z: np.ndarray  # scores of the model
    at: np.ndarray  # scores of the midpoint between w and w(alpha)
    lean: np.ndarray  # from there to w
    off: float  # how far `lean` may be from the one that is meant
    doubt: np.ndarray  # how far z, and except for `off` also `at`, may be from what is meant
    lengths: np.ndarray  # |x_i|
    budget: float  # G / S, less what the distance between w and w(alpha) says
    strength: float  # mu / S, or a little less
    least: float  # a gap that is next to nothing

    @classmethod
    def of(cls, problem: Problem, w: np.ndarray, proof: Proof) -> PrimalDualPair:
        """Return what the model and the dual point of a proof say."""
        b, alpha, plain = proof.b, proof.alpha, problem.scores(w)
        found, u, _ = problem.evaluated(w, b, plain, alpha)
        convexity, p = problem.penalty.convexity(), problem.to_weights(u)
        size = length_above(w) + length_above(p)
        off = 0.5 * (found.off + gamma(8) * length_above(u)) / convexity + gamma(4) * size
        lean = 0.5 * (w - p)
        z = plain + b
        at = problem.scores(w - lean) + b if lean.any() else z
        rows, sqnorms = problem.rows, problem.sqnorms
        lengths = lengths_above(sqnorms, rows.width, empty_rows(rows, sqnorms))
        doubt = score_doubt(rows.width, lengths, size) + gamma(4) * (np.abs(z) + abs(b))
        if problem.loss.task == "regression":
            doubt = doubt + gamma(4) * np.abs(problem.y)
        strength = problem.strength * (1.0 - gamma(8))
        apart = max(0.0, math.sqrt(float(lean @ lean)) * (1.0 - gamma(lean.size + 4)) - off)
        budget = max(0.0, found.gap * (1.0 + gamma(8)) - strength * apart * apart)
        slip = Slip.of(problem, alpha)
        model = (problem, w, b, alpha, slip, z, at, lean)
        return cls(*model, off, doubt, lengths, budget, strength, UNIT * found.primal)

    def bounds(
        self, rows: np.ndarray, origin: Origin, grid: np.ndarray = _HERE
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the scores that the optimal models without one of the rows give to it.

        `grid` has the changes t to look at, to either side; without them t = 0, which is true if
        there is no intercept.
        """
        problem, low, high = self.problem, np.empty(len(rows)), np.empty(len(rows))
        shift = float(origin.point @ self.lean)  # t = 0 is the score of w at the origin
        at = self.at + shift
        doubt = self.doubt + self.lengths * self.off + gamma(4) * (np.abs(at) + abs(shift))
        size = length_above(origin.point)
        aside = size * (self.off + gamma(len(self.w) + 4) * length_above(self.lean))
        free, grid = (
            len(grid) > 0,
            grid[grid > aside],
        )  # the score of w is at t = 0 except for rounding
        planes = np.array([[self._plane(origin, at + s * t, doubt) for t in grid] for s in (-1, 1)])
        _bound(
            *(problem.loss, self.slip, problem.y, problem.share, self.alpha),
            *(self.z, at, doubt, origin.distances, self.budget, self.strength),
            *(free, grid, planes.reshape(2, len(grid), 3), rows, low, high),
        )
        return low, high

    def steps(self, origin: Origin) -> np.ndarray:
        """Return a grid of the size that changes have if there are no support vectors to go."""
        gap = self.budget + self.least
        size = max(math.sqrt(gap), float(origin.distances.mean()) * math.sqrt(gap / self.strength))
        return size * 4.0 ** np.arange(-1, 6, 2)

    def _plane(self, origin: Origin, at: np.ndarray, doubt: np.ndarray) -> Plane:
        """Return E and |v| where the scores are `at`, over S and of all rows."""
        problem, loss, slip = self.problem, self.problem.loss, self.slip
        slopes = problem.slopes(at) + self.alpha
        rows = (problem.y, problem.share, self.alpha, at, doubt, slopes)
        height, sizes, farthest, drift = _height(loss, slip, *rows, origin.distances)
        sums = of_rows(len(at), 8)
        lost = sums * sizes + slip.moved * farthest * (1.0 + sums)
        normal = problem.lam * problem.dual_sum(slopes) - (problem.share @ slopes) * origin.point
        mass = float(problem.share @ (np.abs(slopes) * (self.lengths + length_above(origin.point))))
        slope = length_above(normal) + 2.0 * sums * mass + drift
        slope += slip.moved * float(origin.distances.max())
        return Plane(height, slope * (1.0 + sums), lost)


@dataclass(frozen=True, eq=False)
class Origin:
    """The point from which rows are measured, and upper bounds of their distances from it."""

    point: np.ndarray
    distances: np.ndarray

    @classmethod
    def of(cls, pair: PrimalDualPair) -> Origin:
        """Return zero or, with an intercept, the mean of the rows that its value depends on."""
        problem, at = pair.problem, pair.at
        if not problem.fit_intercept:
            return cls(np.zeros(problem.shape[1]), pair.lengths)
        weight = np.zeros(len(at))
        shift = 1e-3 * float(np.sqrt(np.mean(at**2)))  # any: it decides how tight the bounds are
        for t in (-shift, shift):
            _add_excess(problem.loss, problem.y, pair.alpha, at + t, weight)
        total = float(problem.share @ weight)
        point = problem.lam * problem.dual_sum(weight / total if total > 0.0 else weight)
        size = float(point @ point)
        squares = problem.sqnorms - 2.0 * problem.scores(point) + size
        cancelled = gamma(problem.shape[1] + 16) * (pair.lengths + length_above(point)) ** 2
        return cls(point, np.sqrt(np.maximum(squares, 0.0) + cancelled) * (1.0 + gamma(4)))


@kernel
def _height(loss, slip, y, share, alpha, at, doubt, slopes, distances):
    """A lower bound of the rows' terms at these scores, their sizes, and how far slopes are off

    The third number is how much the term of the row whose dual variable is moved may fall, over how
    far that is.
    """
    height, sizes, farthest, drift = 0.0, 0.0, 0.0, 0.0
    for i in range(len(at)):
        if share[i] > 0.0:
            off = slip.scaled * abs(alpha[i]) + EVALUATION * UNIT * (abs(slopes[i]) + abs(alpha[i]))
            term = _term(loss, slip, alpha[i], at[i], y[i], doubt[i], slopes[i])
            height += share[i] * term
            sizes += share[i] * abs(term)
            drift += share[i] * off * distances[i]
            if alpha[i] != 0.0:
                farthest = max(farthest, dual_slope(loss, slip, alpha[i], at[i], y[i]) + doubt[i])
    return height, sizes, farthest, drift


@kernel
def _term(loss, slip, a, z, y, doubt, slope):
    """A row's term from below, for a score that may be off by `doubt`, and is rounded"""
    steep = abs(slope) + 2.0 * EVALUATION * UNIT * (abs(slope) + abs(a)) + slip.scaled * abs(a)
    return excess_below(loss, slip, a, z, y) - steep * (doubt + 8.0 * UNIT * abs(z))


@kernel
def _bound(
    loss,
    slip,
    y,
    share,
    alpha,
    z,
    at,
    doubt,
    distances,
    budget,
    strength,
    free,
    grid,
    planes,
    rows,
    low,
    high,
):
    """The scores f* that the theorem leaves possible for each of the rows"""
    hair = 32.0 * UNIT
    for k in range(len(rows)):
        i = rows[k]
        a, x, gap = share[i] * alpha[i], distances[i], budget
        slack = slip.scaled * abs(a) + slip.moved if a != 0.0 else 0.0  # of a
        if share[i] > 0.0:
            slope = loss.derivative(z[i], y[i]) + alpha[i]
            own = share[i] * _term(loss, slip, alpha[i], z[i], y[i], doubt[i], slope)
            own -= slip.moved * (dual_slope(loss, slip, alpha[i], z[i], y[i]) + doubt[i])
            gap = max(0.0, gap - max(0.0, own * (1.0 - hair))) + hair * gap
        away = z[i] - at[i]
        gap += a * away + slack * abs(away) + 2.0 * (abs(a) + slack) * doubt[i]
        gap += hair * (gap + abs(a * away))
        left, right = 0.0, 0.0
        if free:
            row = (y[i], share[i], alpha[i], slack, at[i], x, doubt[i])
            left = -_first_excluded(loss, slip, row, gap, strength, -grid, planes[0])
            right = _first_excluded(loss, slip, row, gap, strength, grid, planes[1])
        least, most = np.inf, -np.inf
        for force in (a - slack, a + slack):
            # (f - f* + t)^2 <= x^2 / strength (gap + a (f - f*)) for some t from left to right
            pull = x * x * force / strength
            square = x * x * gap / strength + 0.25 * pull * pull
            if pull != 0.0:
                square += max(-pull * left, -pull * right)
            root = np.sqrt(max(0.0, square * (1.0 + hair)))
            room = hair * (abs(pull) + root) + doubt[i]
            least = min(least, 0.5 * pull - right - root - room)
            most = max(most, 0.5 * pull - left + root + room)
        # 0 <= gap + a (f - f*)
        if a > slack:
            least = max(least, -gap / (a - slack) * (1.0 + hair) - doubt[i])
        elif a < -slack:
            most = min(most, -gap / (a + slack) * (1.0 + hair) + doubt[i])
        low[k] = at[i] - most - hair * (abs(at[i]) + abs(most))
        high[k] = at[i] - least + hair * (abs(at[i]) + abs(least))


@kernel
def _first_excluded(loss, slip, row, gap, strength, ts, planes):
    """The size of the first change t that is excluded, and with it all beyond; else infinity"""
    y, share, alpha, slack, at, x, doubt = row
    hair = 32.0 * UNIT
    pull = (abs(share * alpha) + slack) * x
    for m in range(len(ts)):
        height, slope, lost = planes[m]
        score = at + ts[m]
        if share > 0.0:  # the row's own part is not there
            own = loss.derivative(score, y) + alpha
            term = share * _term(loss, slip, alpha, score, y, doubt, own)
            height -= term
            lost += hair * abs(term) + 4.0 * share * excess_error(loss, slip, alpha, score, y)
            slope += share * abs(own) * x * (1.0 + hair)
        height -= lost
        part = 1.0  # h, the best one
        if slope > 0.0:
            part = min(1.0, max(0.0, (2.0 * strength * height / slope - pull) / slope))
        tilt = part * slope + pull
        gain, cost = part * height, 0.25 * tilt * tilt / strength
        force = share * alpha * ts[m]
        least = gain + force - slack * abs(ts[m]) - cost
        if least - hair * (abs(gain) + abs(force) + cost) > gap:
            return abs(ts[m])
    return np.inf


@kernel
def _add_excess(loss, y, alpha, z, out):
    for i in range(len(z)):
        out[i] += max(0.0, loss.excess(alpha[i], z[i], y[i]))

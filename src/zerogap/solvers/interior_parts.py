"""The units that an interior point method moves: losses made of lines and parabolas.

A part holds many units of one kind.  A unit has a score, dual variables, and pairs of positive
numbers whose products all go to zero together.  Parts share the methods that a step needs:

    weigh      how dual variables answer to scores, and the sum of the products
    aim        the dual variables that a goal for the products leads to if the scores stay
    turn       the direction for a change of the scores, and how soon it meets the boundary
    landing    the dual variables after a whole step
    reach      the sum of the products after a step
    move       make the step
    settle     take the place on the central path that belongs to scores

Votes of the multiclass hinge are another kind, see `interior_votes`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from zerogap.kernels.jit import rowwise
from zerogap.losses import Loss

_SCRATCH: Any = {"saved": False}
_EMPTY = np.empty(0)
WIDE_SPAN = 1e4  # of weights: below, it is no matter
HOTTEST = 1e12  # mu of a row with little weight over the mean, at most
BRACKETINGS = 100  # Newton steps or halvings of a bracket, which end at rounding


@rowwise(sums=0)
def _fill_segments(loss, y, bend, most, low, length, slope, start, stop):
    """Set where the dual variables begin, and the lengths and first slopes of their segments.

    An endless segment ends at `most`.
    """
    last = length.shape[1] - 1
    for i in range(start, stop):
        begin, high = loss.domain(y[i])
        begin, high = max(begin, -most[i]), min(high, most[i])
        low[i] = begin
        for k in range(last + 1):
            end = high if k == last else 0.0
            length[i, k] = end - begin
            chord = (loss.conjugate(end, y[i]) - loss.conjugate(begin, y[i])) / (end - begin)
            slope[i, k] = chord - 0.5 * bend * (end - begin)
            begin = end


@rowwise(sums=1)
def _weigh_lines(share, t, s, r, v, bend, theta, h, start, stop):
    """Set how dual variables answer to scores, 1 / (r / t + v / s + bend), and the Hessian's h.

    Returns the weighted sum of t r and s v.
    """
    total = 0.0
    for i in range(start, stop):
        answer, product = 0.0, 0.0
        for k in range(t.shape[1]):
            theta[i, k] = 1.0 / (r[i, k] / t[i, k] + v[i, k] / s[i, k] + bend)
            answer += theta[i, k]
            product += t[i, k] * r[i, k] + s[i, k] * v[i, k]
        h[i] = share[i] * answer
        total += share[i] * product
    return total


@rowwise(sums=0)
def _aim_lines(
    z, slope, bend, a, t, s, r, v, dt, dr, dv, goal, theta, up, down, off, ahead, start, stop
):
    """Set the dual variables that lead to t r = s v = the row's goal if the scores stay.

    And `up` and `down`, by which r and v would change if t and s stayed.  Products of an earlier
    direction's parts bend the way.  What rounding has left of r - v = z + c + q t, `off`, is made
    up for by as much as moves t and s a little.
    """
    for i in range(start, stop):
        change = 0.0
        for k in range(t.shape[1]):
            up[i, k] = (goal[i] - dt[i, k] * dr[i, k]) / t[i, k] - r[i, k]
            down[i, k] = (goal[i] + dt[i, k] * dv[i, k]) / s[i, k] - v[i, k]
            most = 0.1 * min(t[i, k], s[i, k]) / theta[i, k]
            off[i, k] = (z[i] + slope[i, k] + bend * t[i, k]) - (r[i, k] - v[i, k])
            off[i, k] = min(most, max(-most, off[i, k]))
            change += theta[i, k] * (up[i, k] - down[i, k] - off[i, k])
        ahead[i] = a[i] + change


@rowwise(sums=0)
def _turn_lines(share, t, s, r, v, theta, up, down, off, dz, dt, dr, dv, pace, start, stop):
    """Set the direction for scores that change by dz, and how soon a row would be at the boundary.

    Rows without weight stay where they are.
    """
    for i in range(start, stop):
        fastest = 0.0
        for k in range(t.shape[1]):
            first, second, third = 0.0, 0.0, 0.0
            if share[i] > 0.0:
                first = theta[i, k] * ((up[i, k] - down[i, k]) - (dz[i] + off[i, k]))
                second = up[i, k] - r[i, k] * first / t[i, k]
                third = down[i, k] + v[i, k] * first / s[i, k]
                fastest = max(fastest, -first / t[i, k], first / s[i, k])
                fastest = max(fastest, -second / r[i, k], -third / v[i, k])
            dt[i, k], dr[i, k], dv[i, k] = first, second, third
        pace[i] = fastest


@rowwise(sums=1)
def _reach_lines(t, s, r, v, dt, dr, dv, step, share, start, stop):
    """The weighted sum of t r and s v after a step"""
    total = 0.0
    for i in range(start, stop):
        for k in range(t.shape[1]):
            up = (t[i, k] + step * dt[i, k]) * (r[i, k] + step * dr[i, k])
            down = (s[i, k] - step * dt[i, k]) * (v[i, k] + step * dv[i, k])
            total += share[i] * (up + down)
    return total


@rowwise(sums=0)
def _move_lines(low, length, t, s, r, v, dt, dr, dv, step, a, start, stop):
    """Make the step; near zero a dual variable has the digits of its distance from zero"""
    last = t.shape[1] - 1
    for i in range(start, stop):
        change = 0.0
        for k in range(last + 1):
            change += step * dt[i, k]
            t[i, k] += step * dt[i, k]
            s[i, k] -= step * dt[i, k]
            r[i, k] += step * dr[i, k]
            v[i, k] += step * dv[i, k]
        if last == 1:
            a[i] = t[i, 1] - s[i, 0]
        elif low[i] == 0.0:
            a[i] = t[i, 0]
        elif low[i] + length[i, 0] == 0.0:
            a[i] = -s[i, 0]
        else:
            a[i] += change


@dataclass
class Lines:
    """Units of a loss made of lines; the letters are those at the head of `interior_point`.

    The dual variables `a` are kept beside t: where they are near zero, and no end of a segment is,
    they have more digits than t.
    """

    share: np.ndarray = field(metadata=_SCRATCH)
    slope: np.ndarray = field(metadata=_SCRATCH)
    bend: float = field(metadata=_SCRATCH)  # q: how the slope of the conjugate rises
    low: np.ndarray = field(metadata=_SCRATCH)
    length: np.ndarray = field(metadata=_SCRATCH)
    over: Callable[..., Any] = field(metadata=_SCRATCH)  # runs a kernel over the units
    a: np.ndarray = field(default_factory=lambda: _EMPTY)
    t: np.ndarray = field(default_factory=lambda: _EMPTY)
    s: np.ndarray = field(default_factory=lambda: _EMPTY)
    r: np.ndarray = field(default_factory=lambda: _EMPTY)
    v: np.ndarray = field(default_factory=lambda: _EMPTY)

    @classmethod
    def of_rows(cls, problem: Any, z: np.ndarray) -> Lines:
        """Return the rows of a problem with scores z."""
        xp, n = problem.xp, problem.shape[0]
        shape, low = shape_of(problem.loss), xp.empty(n)
        length, slope = xp.empty((2, n, shape.segments))
        most = xp.full(n, math.inf)
        if shape.bend:  # s phi <= P at the optimum, and phi = bend a^2 / 2: twice that is far away
            share = np.maximum(problem.share, 1e-12)
            most = 2.0 * np.sqrt(2.0 * problem.mean_loss(z) / (shape.bend * share)) + 1e-300
        given = (problem.loss, problem.y, shape.bend, most)
        problem.over_rows(_fill_segments, *given, low, length, slope)
        lines = cls(problem.share, slope, shape.bend, low, length, problem.over_rows)
        size = _mean(problem.share, np.abs(z[:, None] + slope)) or 1.0
        lines.settle(z, 0.5 * size * _mean(problem.share, length))
        return lines

    @classmethod
    def of_coordinates(cls, problem: Any, share: float, mu: float) -> Lines:
        """Return units for the absolute values of all weights, which are zero."""
        xp, count = problem.xp, math.prod(problem.weight_shape)
        low, zeros = xp.full(count, -1.0), xp.zeros((count, 1))
        lines = cls(xp.full(count, share), zeros, 0.0, low, zeros + 2.0, problem.over_features)
        lines.settle(zeros[:, 0], mu)
        return lines

    def settle(self, z: np.ndarray, mu: float) -> None:
        """Set r - v = z + c + q t and t r = s v = mu, times what the row's weight makes of it."""
        goal = (mu * self.heat)[:, None]
        above = z[:, None] + self.slope
        if self.bend:
            above = above + self.bend * self._covered(above, goal)
        self._settle_straight(above, goal)
        if self.length.shape[1] == 2:  # with zero between them
            self.a = self.t[:, 1] - self.s[:, 0]
        else:
            t, s, low = self.t[:, 0], self.s[:, 0], self.low
            self.a = np.where(t < s, low + t, (low + self.length[:, 0]) - s)

    def _covered(self, above: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Return t with mu / t - mu / (l - t) = above + q t, by Newton's method in brackets."""
        low, high = np.zeros_like(self.length), self.length.copy()
        t = 0.5 * self.length
        for _ in range(BRACKETINGS):
            rest = mu / t - mu / (self.length - t) - above - self.bend * t
            low, high = np.where(rest > 0.0, t, low), np.where(rest > 0.0, high, t)
            fall = mu / (t * t) + mu / np.square(self.length - t) + self.bend
            trial = t + rest / fall
            inside = (trial > low) & (trial < high)
            t = np.where(inside, trial, 0.5 * (low + high))
        return t

    def _settle_straight(self, above: np.ndarray, mu: np.ndarray) -> None:
        """Set r - v = above and t r = s v = mu, by the root of a parabola."""
        length = self.length
        kappa = np.abs(above) * (length / mu)
        root = np.hypot(kappa, 2.0)
        less = 2.0 * length / (kappa + 2.0 + root)
        more = length * ((kappa + root) / (kappa + 2.0 + root))
        small = mu / more
        large = small + np.abs(above)
        up = above > 0.0
        self.t, self.s = np.where(up, less, more), np.where(up, more, less)
        self.r, self.v = np.where(up, large, small), np.where(up, small, large)

    @functools.cached_property
    def heat(self) -> np.ndarray:
        """How many times mu the products of each unit are."""
        return heat_of(self.share)

    @property
    def products(self) -> float:
        """The weighted number of products."""
        return 2.0 * self.t.shape[1] * float(self.share.sum())

    @property
    def alpha(self) -> np.ndarray:
        """The dual variables."""
        return self.a

    @property
    def _place(self) -> tuple[np.ndarray, ...]:
        return self.t, self.s, self.r, self.v

    def weigh(self) -> float:
        self.theta, self.up, self.down, self.off = (np.empty_like(self.t) for _ in range(4))
        self.h, self.ahead, self.pace = (np.empty_like(self.a) for _ in range(3))
        self.stand()
        return self.over(_weigh_lines, self.share, *self._place, self.bend, self.theta, self.h)

    def stand(self) -> None:
        """Forget the direction."""
        self.change = tuple(np.zeros_like(self.t) for _ in range(3))

    def aim(self, z: np.ndarray, goal: float) -> np.ndarray:
        state = (z, self.slope, self.bend, self.a, *self._place, *self.change)
        out = (self.up, self.down, self.off, self.ahead)
        self.over(_aim_lines, *state, goal * self.heat, self.theta, *out)
        return self.ahead

    def turn(self, dz: np.ndarray) -> float:
        state = (self.share, *self._place, self.theta, self.up, self.down, self.off, dz)
        self.over(_turn_lines, *state, *self.change, self.pace)
        return float(self.pace.max())

    def landing(self) -> np.ndarray:
        return self.a + self.change[0].sum(axis=1)

    def reach(self, step: float) -> float:
        return self.over(_reach_lines, *self._place, *self.change, step, self.share)

    def move(self, step: float) -> None:
        domain = (self.low, self.length)
        self.over(_move_lines, *domain, *self._place, *self.change, step, self.a)


def heat_of(share: np.ndarray) -> np.ndarray:
    """Return what mu is multiplied by for each row: mean weight over weight if weights span much.

    All rows weigh the same in the barrier then.  With the same mu for all, a row of little weight
    bends the path in a small part of it only: weights that span 1e8 took thousands of steps.
    """
    there = share > 0.0
    least, most = np.where(there, share, share.max()).min(), share.max()
    if not most > WIDE_SPAN * least:
        return np.ones_like(share)
    mean = float(share.sum()) / int(there.sum())
    return np.where(there, np.minimum(mean / np.where(there, share, mean), HOTTEST), 1.0)


def _mean(share: np.ndarray, x: np.ndarray) -> float:
    """Return the weighted mean of the entries of x."""
    return float((share[:, None] * x).sum()) / x.shape[1]


class Shape(NamedTuple):
    """What a conjugate is made of: segments, all of the same curvature."""

    segments: int  # 0 if it is made of something else
    bend: float = 0.0

    @property
    def is_straight(self) -> bool:
        """Whether the loss is made of straight lines."""
        return self.segments > 0 and not self.bend


def shape_of(loss: Loss) -> Shape:
    """Return the shape of a loss' conjugate: one or two lines that meet at zero, or a parabola.

    A convex function that meets a chord in its middle is that chord, and one that sags a quarter
    as far below the chords of both halves is taken for a parabola.
    """
    low, high = loss.domain(1.0)
    endless = not math.isfinite(high - low)
    if endless:  # a part of it tells
        low, high = (
            (low, low + 1.0) if math.isfinite(low) else (min(high, 0.0) - 1.0, min(high, 1.0))
        )

    def sag(start: float, end: float) -> float:
        left, middle, right = (loss.conjugate(a, 1.0) for a in (start, 0.5 * (start + end), end))
        below = 0.5 * (left + right) - middle
        return below if below > 1e-12 * (abs(left) + abs(right)) else 0.0

    whole, middle = sag(low, high), 0.5 * (low + high)
    if not whole:
        return Shape(0 if endless else 1)
    halves = sag(low, middle), sag(middle, high)
    if all(abs(4.0 * half - whole) <= 1e-6 * whole for half in halves):
        return Shape(1, 8.0 * whole / (high - low) ** 2)
    lines = not endless and low < 0.0 < high and not sag(low, 0.0) and not sag(0.0, high)
    return Shape(2 if lines else 0)


def is_straight(loss: Loss) -> bool:
    """Tell whether a loss is made of straight lines."""
    return shape_of(loss).is_straight

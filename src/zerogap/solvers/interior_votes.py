"""The votes of many classes as units of an interior point method; see `interior_parts`."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from math import exp, inf, log, log1p
from typing import Any

import numpy as np

from zerogap.kernels.jit import kernel, rowwise
from zerogap.losses import Softmax
from zerogap.solvers.interior_parts import heat_of

_SCRATCH: Any = {"saved": False}
_EMPTY = np.empty(0)


@rowwise(sums=1)
def _weigh_votes(share, p, r, entropy, h, start, stop):
    """Set h = p / (r + entropy); return the weighted sum of p r"""
    total = 0.0
    for i in range(start, stop):
        for k in range(p.shape[1]):
            h[i, k] = p[i, k] / (r[i, k] + entropy)
            total += share[i] * p[i, k] * r[i, k]
    return total


@rowwise(sums=0)
def _aim_votes(y, z, p, r, h, goal, entropy, q, lift, off, start, stop):
    """Set the votes that lead to p r = goal if the scores stay, less p: q; and the level's change.

    The class with the largest h takes what the others leave: it has the fewest digits.  What
    rounding has left of the equations for r, `off`, is made up for by a tenth of r at most.
    """
    for i in range(start, stop):
        top, rest, total, sum_q, others = 0, 1.0, 0.0, 0.0, 0.0
        for k in range(p.shape[1]):
            top = k if h[i, k] > h[i, top] else top
            others += p[i, k]
        log_top = 0.0
        if entropy > 0.0:  # of what the others leave, if that is nearly all
            others -= p[i, top]
            log_top = log1p(-others) if others < 0.5 else log(p[i, top])
        cost = (top != y[i]) * (1.0 - entropy)
        for k in range(p.shape[1]):
            off[i, k] = (z[i, top] - z[i, k]) + (cost - (k != y[i]) * (1.0 - entropy))
            if entropy > 0.0 and k != top:
                off[i, k] += log(p[i, k]) - log_top
            off[i, k] = off[i, k] + r[i, top] - r[i, k]
            most = 0.1 * r[i, k] + 0.5 * entropy
            off[i, k] = min(most, max(-most, off[i, k]))
            rest -= p[i, k]
            q[i, k] = (goal[i, k] - p[i, k] * r[i, k]) / (r[i, k] + entropy) - h[i, k] * off[i, k]
            sum_q += q[i, k]
            total += h[i, k]
        lift[i], others = (sum_q - rest) / total, 0.0
        for k in range(p.shape[1]):
            q[i, k] -= h[i, k] * lift[i]
            others += q[i, k] if k != top else 0.0
        q[i, top] = rest - others


@rowwise(sums=0)
def _turn_votes(share, p, r, h, q, lift, off, dz, entropy, dp, dr, pace, start, stop):
    """Set the direction for scores that change by dz, and how soon a row would be at the boundary.

    Rows without weight stay where they are.
    """
    for i in range(start, stop):
        top, total, mean, rest, others, fastest = 0, 0.0, 0.0, 1.0, 0.0, 0.0
        for k in range(p.shape[1]):
            top = k if h[i, k] > h[i, top] else top
        for k in range(p.shape[1]):
            dr[i, k] = dz[i, k] - dz[i, top]
            mean += h[i, k] * dr[i, k]
            total += h[i, k]
            rest -= p[i, k]
        mean /= total
        for k in range(p.shape[1]):
            dp[i, k] = q[i, k] + h[i, k] * (dr[i, k] - mean)
            dr[i, k] = (mean - dr[i, k]) + (lift[i] + off[i, k])
            others += dp[i, k] if k != top else 0.0
        dp[i, top] = rest - others
        for k in range(p.shape[1]):
            dr[i, k] += entropy * dp[i, k] / p[i, k]
            if not share[i] > 0.0:
                dp[i, k], dr[i, k] = 0.0, 0.0
            fastest = max(fastest, -dp[i, k] / p[i, k], -dr[i, k] / r[i, k])
        pace[i] = fastest


@rowwise(sums=0)
def _set_duals(y, p, a, start, stop):
    """a = e_y - p: minus the votes, and for the own class the sum of the others"""
    for i in range(start, stop):
        own = 0.0
        for k in range(p.shape[1]):
            a[i, k] = -p[i, k]
            own += p[i, k] if k != y[i] else 0.0
        a[i, y[i]] = own


@rowwise(sums=1)
def _reach_votes(share, p, r, dp, dr, step, start, stop):
    """The weighted sum of p r after a step"""
    total = 0.0
    for i in range(start, stop):
        for k in range(p.shape[1]):
            total += share[i] * (p[i, k] + step * dp[i, k]) * (r[i, k] + step * dr[i, k])
    return total


@rowwise(sums=0)
def _move_votes(p, r, dp, dr, step, start, stop):
    for i in range(start, stop):
        for k in range(p.shape[1]):
            p[i, k] += step * dp[i, k]
            r[i, k] += step * dr[i, k]


@rowwise(sums=0)
def _settle_votes(y, z, mu, p, r, start, stop):
    """Set p r = mu with votes that sum to one, by Newton's method on the level's height"""
    for i in range(start, stop):
        top = z[i, y[i]]
        for k in range(p.shape[1]):
            top = max(top, z[i, k] + (k != y[i]))
        height = mu[i]  # above the best class; sum_k mu / r_k falls and is convex in it
        for _ in range(60):
            total, fall = 0.0, 0.0
            for k in range(p.shape[1]):
                r[i, k] = height + ((top - z[i, k]) - (k != y[i]))
                p[i, k] = mu[i] / r[i, k]
                total += p[i, k]
                fall += p[i, k] / r[i, k]
            if total - 1.0 <= 1e-14:
                break
            height += (total - 1.0) / fall


@rowwise(sums=0)
def _settle_soft_votes(z, mu, p, r, start, stop):
    """Set p r = mu with votes of the softmax that sum to one, by Newton's method in brackets"""
    for i in range(start, stop):
        top = z[i, 0]
        for k in range(1, p.shape[1]):
            top = max(top, z[i, k])
        low, high, level = -inf, inf, mu[i]  # above the best class
        for _ in range(200):
            total, fall = 0.0, 0.0
            for k in range(p.shape[1]):
                p[i, k] = _soft_vote(level + (top - z[i, k]), mu[i])
                r[i, k] = mu[i] / p[i, k]
                total += p[i, k]
                fall += p[i, k] / (1.0 + r[i, k])
            if abs(total - 1.0) <= 1e-14:
                break
            low, high = (level, high) if total > 1.0 else (low, level)
            level += (total - 1.0) / fall
            if not low < level < high:
                level = 0.5 * (low + high) if high - low < inf else (low if low > -inf else high)
                far = 1.0 + mu[i]
                level += far if high == inf else (-far if low == -inf else 0.0)


@kernel
def _soft_vote(t, mu):
    """The vote p with mu / p - log p = t, which is convex in log p: Newton from below"""
    x = max(-t, log(mu) - log(max(abs(t), 1.0) + 1.0 + abs(log(mu))))
    for _ in range(100):
        r = mu * exp(-x)
        move = (r - x - t) / (r + 1.0)
        x += move
        if abs(move) <= 1e-15 * (1.0 + abs(x)):
            break
    return exp(x)


@dataclass
class Votes:
    """Rows of many classes: the votes p, how far classes are below a level m, and mu = p r.

    For the multiclass hinge, with cost 1 for classes other than the row's own,

        r_k = m - z_k - 1[k != y],         p_k r_k = 0,   sum_k p_k = 1,   p, r >= 0

    and for the softmax, whose conjugate is the entropy of the votes, r_k = m - z_k + log p_k.
    """

    problem: Any = field(metadata=_SCRATCH)
    p: np.ndarray = field(default_factory=lambda: _EMPTY)
    r: np.ndarray = field(default_factory=lambda: _EMPTY)

    @classmethod
    def of_rows(cls, problem: Any, z: np.ndarray) -> Votes:
        """Return the rows of a problem with scores z."""
        votes = cls(problem)
        votes.settle(z, 1.0 / problem.n_classes)
        return votes

    def settle(self, z: np.ndarray, mu: float) -> None:
        """Set the level such that p r = mu, as far as the row is heated, and votes sum to one."""
        self.p, self.r = np.empty_like(z), np.empty_like(z)
        if self.entropy:
            self.problem.over_rows(_settle_soft_votes, z, mu * self.heat, self.p, self.r)
        else:
            given = (self.problem.y, z, mu * self.heat)
            self.problem.over_rows(_settle_votes, *given, self.p, self.r)

    @functools.cached_property
    def heat(self) -> np.ndarray:
        """How many times mu the products of each row are."""
        return heat_of(self.problem.share)

    @property
    def entropy(self) -> float:
        """How much of their entropy the conjugate has: one for the softmax, else none."""
        return float(isinstance(self.problem.loss, Softmax))

    @property
    def products(self) -> float:
        """The weighted number of products."""
        return float(self.p.shape[1])

    @property
    def alpha(self) -> np.ndarray:
        """The dual variables."""
        return self._duals(self.p)

    def _duals(self, p: np.ndarray) -> np.ndarray:
        a = np.empty_like(p)
        self.problem.over_rows(_set_duals, self.problem.y, p, a)
        return a

    def weigh(self) -> float:
        self.h, self.q, self.off = (np.empty_like(self.p) for _ in range(3))
        self.lift, self.pace = np.empty_like(self.p[:, 0]), np.empty_like(self.p[:, 0])
        self.stand()
        state = (self.problem.share, self.p, self.r, self.entropy)
        return self.problem.over_rows(_weigh_votes, *state, self.h)

    def stand(self) -> None:
        """Forget the direction."""
        self.change = np.zeros_like(self.p), np.zeros_like(self.p)

    def aim(self, z: np.ndarray, goal: float) -> np.ndarray:
        self.goal = goal * self.heat[:, None] - self.change[0] * self.change[1]
        state = (self.problem.y, z, self.p, self.r, self.h, self.goal, self.entropy)
        self.problem.over_rows(_aim_votes, *state, self.q, self.lift, self.off)
        return self._duals(self.p + self.q)

    def turn(self, dz: np.ndarray) -> float:
        state = (self.problem.share, self.p, self.r, self.h, self.q, self.lift, self.off, dz)
        self.problem.over_rows(_turn_votes, *state, self.entropy, *self.change, self.pace)
        return float(self.pace.max())

    def landing(self) -> np.ndarray:
        return self._duals(self.p + self.change[0])

    def reach(self, step: float) -> float:
        state = (self.problem.share, self.p, self.r, *self.change)
        return self.problem.over_rows(_reach_votes, *state, step)

    def move(self, step: float) -> None:
        self.problem.over_rows(_move_votes, self.p, self.r, *self.change, step)

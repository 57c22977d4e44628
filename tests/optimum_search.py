r"""Minimise a small convex function of theta, densely: the method behind `optimum`.

    1/2 sum_j ridge_j theta_j^2 + slope.theta + sum_i c_i phi_i(R_i.theta)       rows, with a kink
        + sum_i share_i (log sum_k exp(Z_ik.theta) - Z_iy.theta)                 soft rows

    phi_i(s) = max a (t_i - s) - kappa_i a^2 / 2,    low_i <= a <= high_i

Mehrotra's predictor-corrector method (1992) tells which a are at an end.  Newton steps with these
held there, and with ends that are left or met when signs ask for it, then solve the optimality
conditions to rounding.  Steps on soft rows are damped as Sun and Tran-Dinh (2019) do.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

LIMIT = 100  # steps
TINY = 1e-9  # makes systems regular; steps with it lead to the same solution


class Rows(NamedTuple):
    R: np.ndarray
    c: np.ndarray
    t: np.ndarray
    kappa: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Soft(NamedTuple):
    Z: np.ndarray  # of shape (n, classes, len(theta))
    share: np.ndarray
    hot: np.ndarray  # of shape (n, classes): one in the column of the row's class


@dataclass(frozen=True)
class Task:
    ridge: np.ndarray
    slope: np.ndarray
    rows: Rows
    soft: Soft | None
    pin: np.ndarray  # added to the Hessian where theta may be shifted without a change

    def smooth(self, theta):
        """Return gradient and Hessian of all but the rows with a kink."""
        gradient, hessian = self.ridge * theta + self.slope, np.diag(self.ridge + self.pin + TINY)
        if self.soft is not None:
            Z, share, hot = self.soft
            s, flat = Z @ theta, Z.reshape(-1, len(theta))
            p = np.exp(s - s.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            gradient += flat.T @ (share[:, None] * (p - hot)).ravel()
            p = p.astype(float)
            mean, weights = (p[:, :, None] * Z).sum(axis=1), share[:, None] * p
            hessian += (flat.T * weights.ravel()) @ flat - (mean.T * share) @ mean
        return gradient, hessian

    def pace(self, move):
        """Return the share of a Newton step that is safe."""
        rush = 0.0 if self.soft is None else np.ptp(self.soft.Z @ move, axis=1).max()
        return np.log1p(rush) / rush if rush > 0.0 else 1.0

    def lack(self, theta, a):
        """Return t - s - kappa a: zero where a is free, negative at low, positive at high."""
        rows = self.rows
        return rows.t - rows.R @ theta - rows.kappa * a

    def slip(self, theta, a):
        """Return by how much, at most, scores differ from some that a is best for."""
        lack = self.lack(theta, a)
        lack = np.where(a == self.rows.low, np.maximum(lack, 0.0), lack)
        lack = np.where(a == self.rows.high, np.minimum(lack, 0.0), lack)
        return float(np.abs(lack).max(initial=0.0))


class Interior:
    """An iterate with all a inside, at some distance `room` from each end, which pushes back."""

    def __init__(self, task):
        self.task, rows = task, task.rows
        self.theta = np.zeros(len(task.ridge))
        self.a = 0.5 * (np.maximum(rows.low, -2.0) + np.minimum(rows.high, 2.0))
        low, high = np.flatnonzero(np.isfinite(rows.low)), np.flatnonzero(np.isfinite(rows.high))
        self.end = np.append(low, high)
        self.inward = np.repeat([1.0, -1.0], [len(low), len(high)])
        edges = np.append(rows.low[low], rows.high[high])
        self.room = self.inward * (self.a[self.end] - edges)
        self.force = 1.0 + np.maximum(0.0, -self.inward * task.lack(self.theta, self.a)[self.end])
        self.weight = rows.c[self.end]

    def work(self):
        """Return the duality gap, once the iterate is feasible."""
        return float(self.weight @ (self.room * self.force))

    def advance(self):
        """Take a step towards room * force = 0, by way of the central path."""
        rows = self.task.rows
        stiffness = np.bincount(self.end, self.force / self.room, len(rows.t))
        self.give = 1.0 / (rows.kappa + stiffness)
        self.gradient, hessian = self.task.smooth(self.theta)
        self.hessian = hessian + (rows.R.T * (rows.c * self.give)) @ rows.R
        work = self.work()
        _, _, inside, push = self.direction(np.zeros(len(self.end)))
        size = min(1.0, self.longest(inside, push))
        left = self.weight @ ((self.room + size * inside) * (self.force + size * push))
        centre = (left / work) ** 3 * work / self.weight.sum()
        move, change, inside, push = self.direction(centre - inside * push)
        size = min(1.0, 0.99 * self.longest(inside, push), self.task.pace(move))
        self.theta += size * move
        self.a += size * change
        self.room += size * inside
        self.force += size * push

    def direction(self, goal):
        """Return the changes of theta, a, room and force that linearly give room * force = goal."""
        rows = self.task.rows
        pull = np.bincount(self.end, self.inward * goal / self.room, len(rows.t))
        pull += self.task.lack(self.theta, self.a)
        residual = rows.R.T @ (rows.c * (self.a + self.give * pull)) - self.gradient
        move = np.linalg.solve(self.hessian, residual)
        change = self.give * (pull - rows.R @ move)
        inside = self.inward * change[self.end]
        return move, change, inside, (goal - self.force * inside) / self.room - self.force

    def longest(self, inside, push):
        """Return the step at which the first room or force vanishes."""
        rate = max(np.max(-inside / self.room), np.max(-push / self.force))
        return 1.0 / rate if rate > 0.0 else np.inf


def polish(task, theta, a):
    """Return (theta, a) at the optimum but for rounding of long doubles, from a point that is near.

    Residuals are in that precision, corrections need not be.
    """
    rows, size = task.rows, len(theta)
    theta, a = theta.astype(np.longdouble), a.astype(np.longdouble)
    for _ in range(LIMIT):
        lack = task.lack(theta, a)
        at_low, at_high = a + lack <= rows.low, a + lack >= rows.high
        a = np.where(at_low, rows.low, np.where(at_high, rows.high, a))
        free = np.flatnonzero(~(at_low | at_high))
        gradient, hessian = task.smooth(theta)
        R = rows.R[free]
        system = np.block([[hessian, -R.T * rows.c[free]], [R, np.diag(rows.kappa[free] + TINY)]])
        residual = np.append(rows.R.T @ (rows.c * a) - gradient, lack[free])
        step = np.linalg.solve(system, residual.astype(float))
        part = task.pace(step[:size])
        theta = theta + part * step[:size]
        a[free] += part * step[size:]
        if np.abs(step).max() <= 1e-10 * (1.0 + np.abs(theta).max()):  # the next would be rounding
            break
    return theta, np.clip(a, rows.low, rows.high)


def minimise(task, accuracy, polished=True):
    """Return the best theta and the dual variables a, ends told apart to `accuracy`."""
    rows = Rows(*(x.astype(float) for x in task.rows))
    point = Interior(replace(task, rows=rows))
    for _ in range(LIMIT):
        if point.work() <= accuracy:
            break
        point.advance()
    if polished:
        return polish(task, point.theta, point.a)
    return point.theta.astype(np.longdouble), np.clip(point.a, rows.low, rows.high)

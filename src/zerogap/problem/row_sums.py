"""Sums over rows, of losses and what certificates need, and over the coordinates of penalties.

Each is one loop for processors and GPUs, see `zerogap.kernels.jit.rowwise`.
"""

from __future__ import annotations

import numpy as np

from zerogap.kernels.jit import rowwise
from zerogap.penalties import L2, ElasticNet


@rowwise(sums=1)
def sum_losses(loss, y, share, z, start, stop):
    """1/S sum_i s_i phi(z_i)"""
    total = 0.0
    for i in range(start, stop):
        total += share[i] * loss.value(z[i], y[i])
    return total


@rowwise(sums=1)
def sum_conjugates(loss, y, share, alpha, start, stop):
    """1/S sum_i s_i phi*(-alpha_i)"""
    total = 0.0
    for i in range(start, stop):
        if share[i] > 0.0:
            total += share[i] * loss.conjugate(alpha[i], y[i])
    return total


@rowwise(sums=7)
def sum_terms(loss, y, share, alpha, z, b, start, stop):
    """The sums of `zerogap.problem.gap.Terms`"""
    value, excess, balance, mass, energy, cross, target = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(start, stop):
        if share[i] > 0.0:
            score, a, aim = z[i] + b, share[i] * alpha[i], loss.aim(y[i])
            value += share[i] * loss.value(score, y[i]) + 0.0 * score  # which must be finite
            term = loss.excess(alpha[i], score, y[i])
            excess += share[i] * term if not term < 0.0 else 0.0  # rounding; NaN must show
            balance += a
            mass += abs(a)
            energy += a * alpha[i]
            cross += abs(a * (score - aim))
            target += share[i] * aim * aim
    return value, excess, balance, mass, energy, cross, target


@rowwise(sums=7)
def set_own_terms(loss, y, share, z, alpha, start, stop):
    """alpha_i = -phi'(z_i), and the sums of `sum_terms`: what these add to the gap is rounding

    Sums have a loop of their own: in one that also writes, the compiler sums in another order where
    the arrays lie close together in memory, and equal runs end in other bits.
    """
    value, balance, mass, energy, cross, target = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(start, stop):
        alpha[i] = -loss.derivative(z[i], y[i])
    for i in range(start, stop):
        score, s, sign, aim = z[i], share[i], y[i], loss.aim(y[i])
        slope = -alpha[i]
        a = s * slope
        value += s * (loss.value(score, sign) + 0.0 * score)  # which must be finite
        balance -= a
        mass += abs(a)
        energy += a * slope
        cross += abs(a * (score - aim))
        target += s * aim * aim
    return value, 0.0, balance, mass, energy, cross, target


@rowwise(sums=8)
def sum_outward_terms(loss, y, share, alpha, z, doubt, rounded, start, stop):
    """The sums of `sum_terms`, of which the gap's are taken at the worst of z +- doubt

    and of alpha (1 +- rounded): they are convex in both.  The last sum is how far the losses are
    off.
    """
    value, excess, balance, mass, energy, cross = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    off = 0.0
    for i in range(start, stop):
        if share[i] > 0.0:
            a, low, high = share[i] * alpha[i], z[i] - doubt[i], z[i] + doubt[i]
            here = loss.value(z[i], y[i])
            value += share[i] * here
            left, right = loss.value(low, y[i]), loss.value(high, y[i])
            off += share[i] * max(abs(left - here), abs(right - here))
            term = max(loss.excess(alpha[i], low, y[i]), loss.excess(alpha[i], high, y[i]))
            if rounded > 0.0:
                least, most = loss.domain(y[i])
                for sign in (-1.0, 1.0):
                    end = min(most, max(least, alpha[i] * (1.0 + sign * rounded)))
                    term = max(term, loss.excess(end, low, y[i]), loss.excess(end, high, y[i]))
            excess += share[i] * term if not term < 0.0 else 0.0
            balance += a
            mass += abs(a)
            energy += a * alpha[i]
            cross += abs(a * z[i])
    return value, excess, balance, mass, energy, cross, 0.0, off


@rowwise(sums=0)
def set_slopes(loss, y, z, out, start, stop):
    """phi'(z_i) for each row"""
    for i in range(start, stop):
        out[i] = loss.derivative(z[i], y[i])


@rowwise(sums=1)
def sum_slopes(loss, y, share, z, b, start, stop):
    """Derivative of P in b: 1/S sum_i s_i phi'(z_i + b)"""
    total = 0.0
    for i in range(start, stop):
        total += share[i] * loss.derivative(z[i] + b, y[i])
    return total


@rowwise(sums=0)
def set_domain(loss, y, low, high, start, stop):
    """Fill in the ends of the dual variables' domains"""
    for i in range(start, stop):
        low[i], high[i] = loss.domain(y[i])


@rowwise(sums=2)
def clip_duals(loss, y, share, alpha, start, stop):
    """Clip alpha to its domain, in place; sum the positive and the negative ones, times shares"""
    up, down = 0.0, 0.0
    for i in range(start, stop):
        low, high = loss.domain(y[i])
        alpha[i] = min(high, max(low, alpha[i]))
    for i in range(start, stop):
        up += share[i] * max(alpha[i], 0.0)
        down += share[i] * max(-alpha[i], 0.0)
    return up, down


@rowwise(sums=0)
def set_weights(penalty, w, u, start, stop):
    """w(u) for each coordinate"""
    for j in range(start, stop):
        w[j] = penalty.to_primal(u[j])


@rowwise(sums=1)
def sum_costs(penalty, w, start, stop):
    """g(w)"""
    total = 0.0
    for j in range(start, stop):
        total += penalty.cost(w[j])
    return total


@rowwise(sums=2)
def sum_penalty_terms(penalty, w, u, start, stop):
    """g(w) and g(w) + g*(u) - w.u, the sums over their coordinates"""
    cost, slack = 0.0, 0.0
    for j in range(start, stop):
        cost += penalty.cost(w[j])
        term = penalty.slack(w[j], u[j])
        slack += term if not term < 0.0 else 0.0  # rounding; NaN must show
    return cost, slack


def penalty_cost(penalty: L2 | ElasticNet, w: np.ndarray) -> float:
    """Return g(w), the sum over the coordinates of w."""
    return sum_costs(penalty, w, 0, len(w))


def penalty_and_slack(
    penalty: L2 | ElasticNet, w: np.ndarray, u: np.ndarray
) -> tuple[float, float]:
    """Return g(w), and g(w) + g*(u) - w.u."""
    return sum_penalty_terms(penalty, w, u, 0, len(w))

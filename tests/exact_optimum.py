"""Optima of small problems in exact arithmetic, whatever the units and offsets of their columns.

Losses made of lines and parabolas have conjugates -a y + kappa a^2 / 2 + tube |a| on an interval:
once it is known which dual variables are at an end, optimality is a linear system.  A solver's
answer suggests which; the system is solved, and all conditions are checked, in fractions.  The
logistic loss is left to Newton's method with 100 digits.
"""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy import sparse

import zerogap as zg

DIGITS = 100
DISTANCES = (1e-9, 1e-6, 1e-12, 1e-4)  # of dual variables from an end that they may have reached


def exact_optimum(X, y, loss, lam, weights, free, ratio, start):
    """Return weights and intercept as fractions, or None; `start` is a (w, b, alpha) near them."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    if isinstance(loss, zg.Logistic):
        return None if ratio else _newton(X, y, lam, weights, free, start)
    for distance in DISTANCES:
        found = _solved(X, y, loss, lam, weights, free, ratio, start, distance)
        if found is not None:
            return found
    return None


def _conjugate(loss, y):
    """Return the ends of the domain, kappa and the tube."""
    one, half = Fraction(1), Fraction(1, 2)
    if loss.task == "classification":
        width, kappa = one, Fraction(0)
        if isinstance(loss, zg.SmoothHinge):
            kappa = Fraction(loss.gamma)
        if isinstance(loss, zg.SquaredHinge):
            width, kappa = None, half
        ends = (Fraction(0), width) if y > 0 else (width if width is None else -width, Fraction(0))
        return *ends, kappa, Fraction(0)
    if isinstance(loss, zg.Squared):
        return None, None, one, Fraction(0)
    if isinstance(loss, zg.Huber):
        return -Fraction(loss.delta), Fraction(loss.delta), one, Fraction(0)
    if isinstance(loss, zg.Quantile):
        return Fraction(loss.q) - 1, Fraction(loss.q), Fraction(0), Fraction(0)
    tube = Fraction(loss.eps) if isinstance(loss, zg.EpsilonInsensitive) else Fraction(0)
    return -one, one, Fraction(0), tube


def _solved(X, y, loss, lam, weights, free, ratio, start, distance):
    w, _, alpha = start
    n, d = X.shape
    s = [Fraction(x) for x in (np.ones(n) if weights is None else weights)]
    lam_s, r = Fraction(lam) * sum(s), Fraction(ratio)
    rows = [[Fraction(float(x)) for x in row] for row in X]
    kept = [j for j in range(d) if w[j] != 0.0] if ratio else list(range(d))
    states = [_state(loss, y[i], float(alpha[i]), distance) for i in range(n)]
    loose = [i for i in range(n) if states[i][0] == "free" and s[i] > 0]
    size = len(kept) + free + len(loose)
    system, b_at = [], len(kept)
    for k, j in enumerate(kept):  # lam S ((1 - r) w + r sign w) = sum_i s_i a_i x_i
        line = [Fraction(0)] * (size + 1)
        line[k] = lam_s * (1 - r)
        line[size] = -lam_s * r * int(np.sign(w[j])) if ratio else Fraction(0)
        _add_duals(line, s, states, loose, size, [row[j] for row in rows], -1, b_at + free)
        system.append(line)
    if free:
        line = [Fraction(0)] * (size + 1)
        _add_duals(line, s, states, loose, size, [Fraction(1)] * n, -1, b_at + free)
        system.append(line)
    for k, i in enumerate(loose):  # x.w + b + kappa a = y - tube sign a
        _, _, _, kappa, tube = states[i]
        line = [rows[i][j] for j in kept] + [Fraction(1)] * free + [Fraction(0)] * (len(loose) + 1)
        line[b_at + free + k] = kappa
        line[size] = Fraction(float(y[i])) - tube * int(np.sign(alpha[i]))
        system.append(line)
    found = _eliminate(system)
    if found is None:
        return None
    weights_found = [Fraction(0)] * d
    for k, j in enumerate(kept):
        weights_found[j] = found[k]
    b = found[b_at] if free else Fraction(0)
    a = [state[1] for state in states]
    for k, i in enumerate(loose):
        a[i] = found[b_at + free + k]
    fits = _is_optimal(rows, y, loss, lam_s, s, r, weights_found, b, a)
    return (weights_found, b) if fits else None


def _state(loss, y, a, distance):
    """Return whether the dual variable is free or where it is held, with the conjugate's terms."""
    low, high, kappa, tube = _conjugate(loss, y)
    for end in (low, high, Fraction(0) if tube else None):
        if end is not None and abs(a - end) <= distance:
            return "held", end, end, kappa, tube
    return "free", Fraction(0), None, kappa, tube


def _add_duals(line, s, states, loose, size, column, sign, first):
    """Add sign times sum_i s_i a_i x_i to a line: known terms go to the right side."""
    for i, state in enumerate(states):
        if state[0] == "held":
            line[size] -= sign * s[i] * state[1] * column[i]
    for k, i in enumerate(loose):
        line[first + k] += sign * s[i] * column[i]


def _eliminate(system):
    """Solve a square system of fractions, or return None."""
    n = len(system)
    for k in range(n):
        pivot = next((i for i in range(k, n) if system[i][k] != 0), None)
        if pivot is None:
            return None
        system[k], system[pivot] = system[pivot], system[k]
        top = [x / system[k][k] for x in system[k]]
        system[k] = top
        for i in range(n):
            if i != k and system[i][k] != 0:
                c = system[i][k]
                system[i] = [x - c * t for x, t in zip(system[i], top, strict=True)]
    return [line[n] for line in system]


def _is_optimal(rows, y, loss, lam_s, s, r, w, b, a):
    for i, row in enumerate(rows):
        low, high, kappa, tube = _conjugate(loss, y[i])
        if not s[i]:
            continue
        z = sum(x * v for x, v in zip(row, w, strict=True)) + b
        if (low is not None and a[i] < low) or (high is not None and a[i] > high):
            return False
        # z = y - kappa a - tube sign a, with more room at the ends
        middle, above, below = Fraction(float(y[i])) - kappa * a[i], tube, tube
        if tube:
            above, below = (
                (-tube, tube) if a[i] > 0 else (tube, -tube) if a[i] < 0 else (tube, tube)
            )
        at_most, at_least = middle + above, middle - below
        if low is not None and a[i] == low:
            at_most = None
        if high is not None and a[i] == high:
            at_least = None
        if (at_most is not None and z > at_most) or (at_least is not None and z < at_least):
            return False
    for j, v in enumerate(w):
        pull = sum(c * t * row[j] for c, t, row in zip(s, a, rows, strict=True))
        rest = pull - lam_s * (1 - r) * v
        if (v == 0 and abs(rest) > lam_s * r) or (
            v != 0 and rest != lam_s * r * (1 if v > 0 else -1)
        ):
            return False
    return True


def _newton(X, y, lam, weights, free, start):
    """Return a minimiser for the logistic loss, right to far more digits than a double has."""
    (n, d), lam = X.shape, Fraction(lam)
    with localcontext(Context(prec=DIGITS)):
        s = [Decimal(float(x)) for x in (np.ones(n) if weights is None else weights)]
        total, size = sum(s), d + free
        Z = [[Decimal(float(x)) for x in row] + [Decimal(1)] * free for row in X]
        signs, lam = [int(v) for v in y], Decimal(lam.numerator) / Decimal(lam.denominator)
        ridge = [lam] * d + [Decimal(0)] * free
        theta = [Decimal(float(x)) for x in np.append(start[0], [start[1]] * free)]
        for _ in range(60):
            gradient = [c * v for c, v in zip(ridge, theta, strict=True)]
            hessian = [[ridge[j] * (j == k) for k in range(size)] for j in range(size)]
            for row, sign, weight in zip(Z, signs, s, strict=True):
                m = sign * sum(x * v for x, v in zip(row, theta, strict=True))
                e = (-abs(m)).exp()
                p = (e if m > 0 else Decimal(1)) / (1 + e)
                for j in range(size):
                    gradient[j] -= weight / total * sign * p * row[j]
                    for k in range(size):
                        hessian[j][k] += weight / total * p * (1 - p) * row[j] * row[k]
            system = [[*line, -g] for line, g in zip(hessian, gradient, strict=True)]
            step = _eliminate(system)
            if step is None:
                return None
            theta = [v + t for v, t in zip(theta, step, strict=True)]
            sizes = zip(step, theta, strict=True)
            if all(abs(t) <= Decimal(10) ** -60 * (abs(v) + Decimal(10) ** -300) for t, v in sizes):
                found = [Fraction(v) for v in theta]
                return found[:d], found[d] if free else Fraction(0)
    return None

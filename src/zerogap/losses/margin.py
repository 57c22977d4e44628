"""Losses of the margin y z, for labels -1 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, log1p

from zerogap.kernels import exp_log
from zerogap.losses.base import NEAR_BOUND, TINY_CURVATURE, MarginLoss


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """The support vector machine's loss.

    ::

        phi(z; y) = max(0, 1 - y z)
        phi*(-a; y) = -a y  for a y in [0, 1], else +inf.

    1-Lipschitz, not smooth.

    Examples
    --------
    >>> import zerogap as zg
    >>> loss = zg.Hinge()
    >>> loss.value(z=0.25, y=1.0)
    0.75
    """

    quadratic = True
    lipschitz = 1.0

    def value(self, z, y):
        return max(0.0, 1.0 - y * z)

    def derivative(self, z, y):
        return -y if y * z < 1.0 else 0.0

    def conjugate(self, a, y):
        return -a * y if 0.0 <= a * y <= 1.0 else inf

    def stiffness(self, a, y):
        return 0.0 if NEAR_BOUND < a * y < 1.0 - NEAR_BOUND else inf

    def dual_step(self, a, y, z, q):
        b = a * y + (1.0 - y * z) / max(q, TINY_CURVATURE)
        return y * min(1.0, max(0.0, b)) - a


@dataclass(frozen=True)
class SmoothHinge(MarginLoss):
    """Hinge with its kink rounded over a width ``gamma``.

    ::

        phi(z; y) = 0                    if m <= 0,          m = 1 - y z
                  = m^2 / (2 gamma)      if 0 < m < gamma
                  = m - gamma / 2        if m >= gamma
        phi*(-a; y) = -a y + gamma a^2 / 2  for a y in [0, 1], else +inf.

    1-Lipschitz and 1/gamma-smooth.

    Parameters
    ----------
    gamma : float
        Width over which the kink is rounded; must be positive.

    Examples
    --------
    >>> import zerogap as zg
    >>> loss = zg.SmoothHinge(gamma=0.5)
    >>> loss.value(z=0.25, y=1.0), loss.value(z=0.75, y=1.0)
    (0.5, 0.0625)
    """

    gamma: float = 1.0
    quadratic = True
    lipschitz = 1.0

    @property
    def smoothness(self) -> float:
        return 1.0 / self.gamma

    @property
    def unit(self) -> float:
        return max(1.0, self.gamma)

    def value(self, z, y):
        m = 1.0 - y * z
        if m <= 0.0:
            return 0.0
        return m - 0.5 * self.gamma if m >= self.gamma else 0.5 * m * m / self.gamma

    def derivative(self, z, y):
        return -y * min(1.0, max(0.0, (1.0 - y * z) / self.gamma))

    def conjugate(self, a, y):
        b = a * y
        return -b + 0.5 * self.gamma * b * b if 0.0 <= b <= 1.0 else inf

    def stiffness(self, a, y):
        return self.gamma if NEAR_BOUND < a * y < 1.0 - NEAR_BOUND else inf

    def dual_step(self, a, y, z, q):
        b = a * y + (1.0 - y * z - self.gamma * a * y) / (q + self.gamma)
        return y * min(1.0, max(0.0, b)) - a

    def check(self) -> None:
        self._require(0 < self.gamma < inf, "gamma must be positive")
        self._require_moderate("gamma")


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """The square of the hinge, as in LIBLINEAR (no factor 1/2).

    ::

        phi(z; y) = max(0, 1 - y z)^2
        phi*(-a; y) = -a y + a^2 / 4  for a y >= 0, else +inf.

    2-smooth.

    Examples
    --------
    >>> import zerogap as zg
    >>> loss = zg.SquaredHinge()
    >>> loss.value(z=0.5, y=1.0)
    0.25
    """

    quadratic = True
    smoothness = 2.0

    def domain(self, y):
        return (0.0, inf) if y > 0.0 else (-inf, 0.0)

    def value(self, z, y):
        m = max(0.0, 1.0 - y * z)
        return m * m

    def derivative(self, z, y):
        return -2.0 * y * max(0.0, 1.0 - y * z)

    def conjugate(self, a, y):
        b = a * y
        return -b + 0.25 * b * b if b >= 0.0 else inf

    def stiffness(self, a, y):
        return 0.5 if a * y > 0.0 else inf

    def dual_step(self, a, y, z, q):
        b = a * y + (1.0 - y * z - 0.5 * a * y) / (q + 0.5)
        return y * max(0.0, b) - a


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """Logistic loss, the negative log-likelihood of logistic regression.

    ::

        phi(z; y) = log(1 + exp(-y z))
        phi*(-a; y) = b log b + (1 - b) log(1 - b),  b = a y in [0, 1], else +inf.

    1-Lipschitz and 1/4-smooth.

    The dual step has no closed form.  By default it is found exactly.  ``approximate=True`` takes
    the published step towards u = -phi'(z) instead, (u - a) / max(1, 1/4 + q), which always
    ascends but is short when q is large (Shalev-Shwartz & Zhang, 2013, section 6.2).

    Parameters
    ----------
    approximate : bool
        Whether to take the published, shorter dual step instead of the exact one.

    Examples
    --------
    >>> import zerogap as zg
    >>> loss = zg.Logistic()
    >>> round(float(loss.value(z=0.0, y=1.0)), 4)
    0.6931
    """

    approximate: bool = False
    lipschitz = 1.0
    smoothness = 0.25

    def value(self, z, y):
        m = y * z
        return exp_log.log1p(exp_log.exp(-abs(m))) + max(0.0, -m)

    def derivative(self, z, y):
        m = y * z
        e = exp_log.exp(-abs(m))
        return -y * (e if m > 0.0 else 1.0) / (1.0 + e)

    def conjugate(self, a, y):
        b = a * y
        if b == 0.0 or b == 1.0:
            return 0.0
        return b * log(b) + (1.0 - b) * log1p(-b) if 0.0 < b < 1.0 else inf

    def excess(self, a, z, y):
        """The relative entropy of b to p = -y phi'(z), without cancellation where they agree."""
        b, p = a * y, -y * self.derivative(z, y)
        x, least = b - p, min(p, 1.0 - p)
        if abs(x) < 1e-5 * least and least > 1e-100:  # two terms of the series are exact
            inverse, mirrored = 1.0 / p, 1.0 / (1.0 - p)
            return x * x * (inverse + mirrored) * (0.5 - x * (inverse - mirrored) / 6.0)
        if abs(x) < 0.5 * least:
            return b * log1p((b - p) / p) + (1.0 - b) * log1p((p - b) / (1.0 - p))
        return self.value(z, y) + self.conjugate(a, y) + a * z

    def stiffness(self, a, y):
        b = a * y
        return 1.0 / (b * (1.0 - b)) if 0.0 < b < 1.0 else inf

    def dual_step(self, a, y, z, q):
        if self.approximate:
            return (-self.derivative(z, y) - a) / max(1.0, 0.25 + q)
        # After the step the margin s and the dual variable t = 1 / (1 + exp(s)) belong together:
        # h(s) = s - c - q t = 0 with c = m - q b.  Seen from the class that makes s >= 0, h is
        # concave: Newton's tangent lands left of the root from anywhere, and then climbs to it.
        b, m = a * y, y * z
        mirrored = q * (0.5 - b) + m < 0.0
        if mirrored:
            b, m = 1.0 - b, -m
        c = m - q * b
        left = max(0.0, c)  # of the root
        if q > 1000.0:
            # So is that of s - c - q/2 exp(-s), c + W(x): Lambert's W(x) >= log(x) - log(log(x))
            size = log(0.5 * q) - c
            left = max(left, c + size - log(size)) if size > 1.0 else left
        s, t, d = max(m, left), 0.0, 0.0
        for _ in range(60):
            e = exp(-s)
            rest = 1.0 / (1.0 + e)  # 1 - t
            t = e * rest
            p = t * rest
            slope = 1.0 + q * p
            d = (c + q * t - s) / slope
            bend = 0.5 * q * p * (rest - t) / slope * d
            if abs(bend) <= 0.3:  # near enough for Halley's method, of third order
                d /= 1.0 - bend
            if abs(d) <= 1e-4:  # what comes after is below d^3, and t has a series
                t -= p * d * (1.0 - d * (0.5 * (rest - t) - d * (1.0 - 6.0 * p) / 6.0))
                break
            s = max(s + d, left)
        if q > 4.0 + abs(m):  # the margin has moved by q times the step: more digits of it
            step = max((s + d - m) / q, -b)
            return -y * step if mirrored else y * step
        return y * ((1.0 - t) if mirrored else t) - a

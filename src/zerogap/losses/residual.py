"""Losses of the residual z - y, for numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from zerogap.losses.base import LARGEST, NEAR_BOUND, TINY_CURVATURE, ResidualLoss


@dataclass(frozen=True)
class Squared(ResidualLoss):
    """Half the squared residual, the loss of ridge regression.

    ::

        phi(z; y) = (z - y)^2 / 2
        phi*(-a; y) = -a y + a^2 / 2.

    1-smooth.

    Examples
    --------
    >>> import zerogap as zg
    >>> loss = zg.Squared()
    >>> loss.value(z=3.0, y=1.0)
    2.0
    """

    quadratic = True
    tube = 0.0
    smoothness = 1.0

    def domain(self, y):
        return (-inf, inf)

    def value(self, z, y):
        return 0.5 * (z - y) * (z - y)

    def derivative(self, z, y):
        return z - y

    def conjugate(self, a, y):
        return a * (0.5 * a - y)

    def stiffness(self, a, y):
        return 1.0

    def dual_step(self, a, y, z, q):
        return (y - z - a) / (1.0 + q)


@dataclass(frozen=True)
class Absolute(ResidualLoss):
    """Absolute residual, for regression of the median.

    ::

        phi(z; y) = |z - y|
        phi*(-a; y) = -a y  for |a| <= 1, else +inf.

    1-Lipschitz, not smooth.

    Examples
    --------
    >>> import zerogap as zg
    >>> loss = zg.Absolute()
    >>> loss.value(z=3.0, y=1.0)
    2.0
    """

    quadratic = True
    tube = 0.0
    lipschitz = 1.0

    def domain(self, y):
        return (-1.0, 1.0)

    def value(self, z, y):
        return abs(z - y)

    def derivative(self, z, y):
        return 1.0 * (z > y) - 1.0 * (z < y)

    def conjugate(self, a, y):
        return -a * y if abs(a) <= 1.0 else inf

    def stiffness(self, a, y):
        return 0.0 if abs(a) < 1.0 - NEAR_BOUND else inf

    def dual_step(self, a, y, z, q):
        return min(1.0, max(-1.0, a + (y - z) / max(q, TINY_CURVATURE))) - a


@dataclass(frozen=True)
class EpsilonInsensitive(ResidualLoss):
    """Absolute residual beyond a tube of half-width ``eps``, for support vector regression.

    ::

        phi(z; y) = max(0, |z - y| - eps)
        phi*(-a; y) = -a y + eps |a|  for |a| <= 1, else +inf.

    1-Lipschitz, not smooth.

    Parameters
    ----------
    eps : float
        Half-width of the tube in which residuals cost nothing, in units of the target.

    Examples
    --------
    >>> import zerogap as zg
    >>> loss = zg.EpsilonInsensitive(eps=0.5)
    >>> loss.value(z=3.0, y=1.0), loss.value(z=1.25, y=1.0)
    (1.5, 0.0)
    """

    eps: float = 0.1
    quadratic = True
    lipschitz = 1.0

    @property
    def tube(self) -> float:
        return self.eps

    def domain(self, y):
        return (-1.0, 1.0)

    def value(self, z, y):
        return max(0.0, abs(z - y) - self.eps)

    def derivative(self, z, y):
        return 1.0 * (z - y > self.eps) - 1.0 * (y - z > self.eps)

    def conjugate(self, a, y):
        return -a * y + self.eps * abs(a) if abs(a) <= 1.0 else inf

    def stiffness(self, a, y):
        held = self.eps > 0.0 and abs(a) <= NEAR_BOUND
        return 0.0 if abs(a) < 1.0 - NEAR_BOUND and not held else inf

    def dual_step(self, a, y, z, q):
        q = max(q, TINY_CURVATURE)
        above = a + (y - z - self.eps) / q  # the maximiser if it is positive
        below = a + (y - z + self.eps) / q  # the maximiser if it is negative
        return min(1.0, max(-1.0, max(0.0, above) + min(0.0, below))) - a

    def check(self) -> None:
        self._require(0 <= self.eps < inf, "eps must not be negative")
        self._require(self.eps <= LARGEST, f"eps must be {LARGEST:g} at most")


@dataclass(frozen=True)
class Huber(ResidualLoss):
    """Squared residual near zero, absolute beyond ``delta``: regression that resists outliers.

    ::

        phi(z; y) = r^2 / 2                     if |r| <= delta,     r = z - y
                  = delta (|r| - delta / 2)     if |r| > delta
        phi*(-a; y) = -a y + a^2 / 2  for |a| <= delta, else +inf.

    delta-Lipschitz and 1-smooth.

    Parameters
    ----------
    delta : float
        Residual from which on the loss is linear, in units of the target.

    Examples
    --------
    >>> import zerogap as zg
    >>> loss = zg.Huber(delta=1.0)
    >>> loss.value(z=3.0, y=1.0), loss.value(z=1.5, y=1.0)
    (1.5, 0.125)
    """

    delta: float = 1.35
    quadratic = True
    tube = 0.0
    smoothness = 1.0

    @property
    def lipschitz(self) -> float:
        return self.delta

    def domain(self, y):
        return (-self.delta, self.delta)

    def value(self, z, y):
        r = abs(z - y)
        return 0.5 * r * r if r <= self.delta else self.delta * (r - 0.5 * self.delta)

    def derivative(self, z, y):
        return min(self.delta, max(-self.delta, z - y))

    def conjugate(self, a, y):
        return a * (0.5 * a - y) if abs(a) <= self.delta else inf

    def stiffness(self, a, y):
        return 1.0 if abs(a) < self.delta * (1.0 - NEAR_BOUND) else inf

    def dual_step(self, a, y, z, q):
        return min(self.delta, max(-self.delta, a + (y - z - a) / (1.0 + q))) - a

    def check(self) -> None:
        self._require(0 < self.delta < inf, "delta must be positive")
        self._require_moderate("delta")


@dataclass(frozen=True)
class Quantile(ResidualLoss):
    """Pinball loss: its minimiser predicts the quantile ``q`` of the target.

    ::

        phi(z; y) = q (y - z)          if z <= y
                  = (1 - q) (z - y)    if z > y
        phi*(-a; y) = -a y  for q - 1 <= a <= q, else +inf.

    max(q, 1 - q)-Lipschitz, not smooth.

    Parameters
    ----------
    q : float
        Quantile that the model predicts, between 0 and 1.

    Examples
    --------
    >>> import zerogap as zg
    >>> loss = zg.Quantile(q=0.75)
    >>> loss.value(z=0.0, y=1.0), loss.value(z=2.0, y=1.0)
    (0.75, 0.25)
    """

    q: float = 0.5
    quadratic = True
    tube = 0.0

    @property
    def lipschitz(self) -> float:
        return max(self.q, 1.0 - self.q)

    def domain(self, y):
        return (self.q - 1.0, self.q)

    def value(self, z, y):
        return self.q * (y - z) if z <= y else (1.0 - self.q) * (z - y)

    def derivative(self, z, y):
        return (1.0 - self.q) * (z > y) - self.q * (z < y)

    def conjugate(self, a, y):
        return -a * y if self.q - 1.0 <= a <= self.q else inf

    def stiffness(self, a, y):
        return 0.0 if self.q - 1.0 + NEAR_BOUND < a < self.q - NEAR_BOUND else inf

    def dual_step(self, a, y, z, q):
        return min(self.q, max(self.q - 1.0, a + (y - z) / max(q, TINY_CURVATURE))) - a

    def check(self) -> None:
        self._require(0 < self.q < 1, "q must lie strictly between 0 and 1")

"""A loss that other libraries have and that estimators here do not offer by name."""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, inf

from zerogap.losses import ResidualLoss


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(ResidualLoss):
    """Half the squared distance of the residual from the tube [-eps, eps].

    phi(z; y) = max(0, |z - y| - eps)^2 / 2
    phi*(-a; y) = -a y + eps |a| + a^2 / 2.

    1-smooth.
    """

    eps: float = 0.1
    quadratic = True
    smoothness = 1.0

    def domain(self, y):
        return (-inf, inf)

    def value(self, z, y):
        return 0.5 * max(0.0, abs(z - y) - self.eps) ** 2

    def derivative(self, z, y):
        return copysign(max(0.0, abs(z - y) - self.eps), z - y)

    def conjugate(self, a, y):
        return -a * y + self.eps * abs(a) + 0.5 * a * a

    def stiffness(self, a, y):
        return inf if a == 0.0 and self.eps > 0.0 else 1.0

    def dual_step(self, a, y, z, q):
        above = (y - z + q * a - self.eps) / (1.0 + q)  # a + s if that is positive
        below = (y - z + q * a + self.eps) / (1.0 + q)  # a + s if that is negative
        return max(0.0, above) + min(0.0, below) - a

    def check(self) -> None:
        self._require(0 <= self.eps < inf, "eps must not be negative")

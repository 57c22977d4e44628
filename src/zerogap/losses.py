"""Losses phi(z; y) of a score z and a target y: value, derivative, conjugate, exact dual step.

Every loss is one frozen dataclass, written once and used by Python code and kernels alike.
Dual variables are signed and unscaled; the conjugate is always taken at -a, because that is how
it enters the dual:

    conjugate(a, y) = phi*(-a; y) = max_z  -a z - phi(z; y)

Five laws pin a loss completely, and the tests check them for all of `LOSSES`:
phi(z) + phi*(-a) + a z >= 0, with equality at a = -phi'(z); phi' is the slope of phi;
`dual_step` maximises its one-dimensional dual; `stiffness` is the curvature of phi*.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, isfinite, log, log1p
from typing import ClassVar

from zerogap import elementary
from zerogap._jit import Struct
from zerogap._params import Parameters

# A zero row has curvature q = 0 and its best dual variable is an end of the domain: dividing by
# a tiny q instead of zero leads there, and leaves alpha alone where the slope is zero as well.
_TINY = 1e-300
_HAIR = 1e-12  # dual variables so close to a bound have reached it but for rounding


@dataclass(frozen=True)
class Loss(Parameters, Struct):
    """Base of all losses.

    A loss phi >= 0 defines ``value``, ``derivative``, ``conjugate``, ``domain`` and ``dual_step``
    with the parameter names used here, and the properties ``lipschitz`` and ``smoothness``, of
    which one must be finite; with ``stiffness`` second-order methods can take it too.
    """

    task: ClassVar[str]  #: "classification" (targets are -1 and +1) or "regression"
    quadratic: ClassVar[bool] = False  #: whether phi is made of lines and parabolas

    @property
    def lipschitz(self) -> float:
        """Largest slope of phi in z (infinite for losses that grow faster than linearly)."""
        return inf

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of phi' (infinite for losses with a kink)."""
        return inf

    @property
    def unit(self) -> float:
        """Size of phi*(-a) over that of a and a^2, beside what `excess` adds to it; see `gap`."""
        return 1.0

    @property
    def has_ends(self) -> bool:
        """Whether dual variables are bounded, on one side at least."""
        return any(isfinite(end) for end in self.domain(1.0))

    def value(self, z, y):
        """phi(z; y)"""
        raise NotImplementedError

    def derivative(self, z, y):
        """phi'(z; y), any sub-gradient at a kink"""
        raise NotImplementedError

    def conjugate(self, a, y):
        """phi*(-a; y)"""
        raise NotImplementedError

    def domain(self, y):
        """The smallest and the largest dual variable a with a finite conjugate"""
        raise NotImplementedError

    def dual_step(self, a, y, z, q):
        """The step s that maximises  -phi*(-(a + s)) - s z - q s^2 / 2"""
        raise NotImplementedError

    def stiffness(self, a, y):
        """Second derivative of phi*(-a) in a, infinite where a is held by a bound or a kink.

        At a = -phi'(z) it is 1 / phi''(z).  Needed by second-order methods only.
        """
        raise NotImplementedError

    def excess(self, a, z, y):
        """phi(z) + phi*(-a) + a z >= 0: what row and dual variable add to the duality gap"""
        return self.value(z, y) + self.conjugate(a, y) + a * z

    def aim(self, y):
        """The score from which phi(.; y) and its conjugate are seen: `excess` depends on z - aim"""
        return 0.0

    def _check(self) -> None:
        """Raise ValueError if a parameter is outside its range."""


class MarginLoss(Loss):
    """A loss of the margin y z, for targets y in {-1, +1}; dual variables satisfy a y >= 0."""

    task = "classification"

    def domain(self, y):
        return (0.0, 1.0) if y > 0.0 else (-1.0, 0.0)


class ResidualLoss(Loss):
    """A loss of the residual z - y, for real targets."""

    task = "regression"
    unit = 0.0

    def aim(self, y):
        return y

    def excess(self, a, z, y):
        """phi(z) + phi*(-a) + a z, shifted to y = 0 so that large targets cancel exactly."""
        return self.value(z - y, 0.0) + self.conjugate(a, 0.0) + a * (z - y)


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """The support vector machine's loss.

    phi(z; y) = max(0, 1 - y z)
    phi*(-a; y) = -a y  for a y in [0, 1], else +inf.

    1-Lipschitz, not smooth.
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
        return 0.0 if _HAIR < a * y < 1.0 - _HAIR else inf

    def dual_step(self, a, y, z, q):
        b = a * y + (1.0 - y * z) / max(q, _TINY)
        return y * min(1.0, max(0.0, b)) - a


@dataclass(frozen=True)
class SmoothHinge(MarginLoss):
    """Hinge with its kink rounded over a width ``gamma``.

    phi(z; y) = 0                    if m <= 0,          m = 1 - y z
              = m^2 / (2 gamma)      if 0 < m < gamma
              = m - gamma / 2        if m >= gamma

    phi*(-a; y) = -a y + gamma a^2 / 2  for a y in [0, 1], else +inf.

    1-Lipschitz and 1/gamma-smooth.
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
        return self.gamma if _HAIR < a * y < 1.0 - _HAIR else inf

    def dual_step(self, a, y, z, q):
        b = a * y + (1.0 - y * z - self.gamma * a * y) / (q + self.gamma)
        return y * min(1.0, max(0.0, b)) - a

    def _check(self) -> None:
        self._require(0 < self.gamma < inf, "gamma must be positive")


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """The square of the hinge, as in LIBLINEAR (no factor 1/2).

    phi(z; y) = max(0, 1 - y z)^2
    phi*(-a; y) = -a y + a^2 / 4  for a y >= 0, else +inf.

    2-smooth.
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

    phi(z; y) = log(1 + exp(-y z))
    phi*(-a; y) = b log b + (1 - b) log(1 - b),  b = a y in [0, 1], else +inf.

    1-Lipschitz and 1/4-smooth.

    The dual step has no closed form.  By default it is found exactly.  ``approximate=True`` takes
    the published step towards u = -phi'(z) instead, (u - a) / max(1, 1/4 + q), which always
    ascends but is short when q is large (Shalev-Shwartz & Zhang, 2013, section 6.2).
    """

    approximate: bool = False
    lipschitz = 1.0
    smoothness = 0.25

    def value(self, z, y):
        m = y * z
        return elementary.log1p(elementary.exp(-abs(m))) + max(0.0, -m)

    def derivative(self, z, y):
        m = y * z
        e = elementary.exp(-abs(m))
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


@dataclass(frozen=True)
class Squared(ResidualLoss):
    """Half the squared residual, the loss of ridge regression.

    phi(z; y) = (z - y)^2 / 2
    phi*(-a; y) = -a y + a^2 / 2.

    1-smooth.
    """

    quadratic = True
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

    phi(z; y) = |z - y|
    phi*(-a; y) = -a y  for |a| <= 1, else +inf.

    1-Lipschitz, not smooth.
    """

    quadratic = True
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
        return 0.0 if abs(a) < 1.0 - _HAIR else inf

    def dual_step(self, a, y, z, q):
        return min(1.0, max(-1.0, a + (y - z) / max(q, _TINY))) - a


@dataclass(frozen=True)
class EpsilonInsensitive(ResidualLoss):
    """Absolute residual beyond a tube of half-width ``eps``, for support vector regression.

    phi(z; y) = max(0, |z - y| - eps)
    phi*(-a; y) = -a y + eps |a|  for |a| <= 1, else +inf.

    1-Lipschitz, not smooth.
    """

    eps: float = 0.1
    quadratic = True
    lipschitz = 1.0

    def domain(self, y):
        return (-1.0, 1.0)

    def value(self, z, y):
        return max(0.0, abs(z - y) - self.eps)

    def derivative(self, z, y):
        return 1.0 * (z - y > self.eps) - 1.0 * (y - z > self.eps)

    def conjugate(self, a, y):
        return -a * y + self.eps * abs(a) if abs(a) <= 1.0 else inf

    def stiffness(self, a, y):
        held = self.eps > 0.0 and abs(a) <= _HAIR
        return 0.0 if abs(a) < 1.0 - _HAIR and not held else inf

    def dual_step(self, a, y, z, q):
        q = max(q, _TINY)
        above = a + (y - z - self.eps) / q  # the maximiser if it is positive
        below = a + (y - z + self.eps) / q  # the maximiser if it is negative
        return min(1.0, max(-1.0, max(0.0, above) + min(0.0, below))) - a

    def _check(self) -> None:
        self._require(0 <= self.eps < inf, "eps must not be negative")


@dataclass(frozen=True)
class Huber(ResidualLoss):
    """Squared residual near zero, absolute beyond ``delta``: regression that resists outliers.

    phi(z; y) = r^2 / 2                     if |r| <= delta,     r = z - y
              = delta (|r| - delta / 2)     if |r| > delta
    phi*(-a; y) = -a y + a^2 / 2  for |a| <= delta, else +inf.

    delta-Lipschitz and 1-smooth.
    """

    delta: float = 1.35
    quadratic = True
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
        return 1.0 if abs(a) < self.delta * (1.0 - _HAIR) else inf

    def dual_step(self, a, y, z, q):
        return min(self.delta, max(-self.delta, a + (y - z - a) / (1.0 + q))) - a

    def _check(self) -> None:
        self._require(0 < self.delta < inf, "delta must be positive")


@dataclass(frozen=True)
class Quantile(ResidualLoss):
    """Pinball loss: its minimiser predicts the quantile ``q`` of the target.

    phi(z; y) = q (y - z)          if z <= y
              = (1 - q) (z - y)    if z > y
    phi*(-a; y) = -a y  for q - 1 <= a <= q, else +inf.

    max(q, 1 - q)-Lipschitz, not smooth.
    """

    q: float = 0.5
    quadratic = True

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
        return 0.0 if self.q - 1.0 + _HAIR < a < self.q - _HAIR else inf

    def dual_step(self, a, y, z, q):
        return min(self.q, max(self.q - 1.0, a + (y - z) / max(q, _TINY))) - a

    def _check(self) -> None:
        self._require(0 < self.q < 1, "q must lie strictly between 0 and 1")


LOSSES: dict[str, type[Loss]] = {
    "hinge": Hinge,
    "smooth-hinge": SmoothHinge,
    "squared-hinge": SquaredHinge,
    "logistic": Logistic,
    "squared": Squared,
    "absolute": Absolute,
    "epsilon-insensitive": EpsilonInsensitive,
    "huber": Huber,
    "quantile": Quantile,
}
"""Losses by the name that estimators and the command line accept."""


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the loss itself, with its parameters checked."""
    if isinstance(loss, str):
        from zerogap.multiclass_losses import MULTICLASS_LOSSES  # built on this file

        known = {**LOSSES, **MULTICLASS_LOSSES}
        if loss not in known:
            raise ValueError(f"unknown loss {loss!r}: choose one of {', '.join(known)}")
        loss = known[loss]()
    if not isinstance(loss, Loss):
        raise ValueError(f"loss must be a name or a zerogap Loss, got {loss!r}")
    loss._check()
    return loss

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
from math import inf, isfinite
from typing import ClassVar

from zerogap._params import Parameters
from zerogap.kernels.jit import Struct

# A zero row has curvature q = 0 and its best dual variable is an end of the domain: dividing by
# a tiny q instead of zero leads there, and leaves alpha alone where the slope is zero as well.
TINY_CURVATURE = 1e-300
SMALLEST, LARGEST = 1e-100, 1e100  # parameter of a loss: its squares do not overflow nor vanish
NEAR_BOUND = 1e-12  # dual variables so close to a bound have reached it except for rounding


@dataclass(frozen=True)
class Loss(Parameters, Struct):
    """Base of all losses.

    A loss phi >= 0 defines ``value``, ``derivative``, ``conjugate``, ``domain`` and ``dual_step``
    with the parameter names used here, and the properties ``lipschitz`` and ``smoothness``, of
    which one must be finite; with ``stiffness`` second-order methods can take it too.

    Examples
    --------
    All losses by name, and the two numbers that theory asks for:

    >>> from zerogap.losses import LOSSES
    >>> hinge = LOSSES["hinge"]()
    >>> hinge.lipschitz, hinge.smoothness
    (1.0, inf)
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
        low, high = self.domain(1.0)
        return isfinite(low) or isfinite(high)

    @property
    def is_parabola(self) -> bool:
        """Whether the second derivative is the same everywhere."""
        return self.quadratic and not self.has_ends

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

    def check(self) -> None:
        """Raise ValueError if a parameter is outside its range."""

    def _require_moderate(self, name: str) -> None:
        """Refuse a parameter that arithmetic with 16 digits cannot handle."""
        moderate = SMALLEST <= getattr(self, name) <= LARGEST
        self._require(moderate, f"{name} must be between {SMALLEST:g} and {LARGEST:g}")


class MarginLoss(Loss):
    """A loss of the margin y z, for targets y in {-1, +1}; dual variables satisfy a y >= 0.

    Examples
    --------
    >>> import zerogap as zg
    >>> isinstance(zg.Hinge(), zg.losses.MarginLoss), zg.Hinge().domain(y=1.0)
    (True, (0.0, 1.0))
    """

    task = "classification"

    def domain(self, y):
        return (0.0, 1.0) if y > 0.0 else (-1.0, 0.0)


class ResidualLoss(Loss):
    """A loss of the residual z - y, for real targets.

    Examples
    --------
    >>> import zerogap as zg
    >>> isinstance(zg.Squared(), zg.losses.ResidualLoss), zg.Absolute().domain(y=2.0)
    (True, (-1.0, 1.0))
    """

    task = "regression"
    unit = 0.0

    @property
    def tube(self) -> float:
        """Half-width of the tube in which residuals cost nothing, infinite if it is not known."""
        return inf

    def aim(self, y):
        return y

    def excess(self, a, z, y):
        """phi(z) + phi*(-a) + a z, shifted to y = 0 so that large targets cancel exactly."""
        return self.value(z - y, 0.0) + self.conjugate(a, 0.0) + a * (z - y)

"""Penalties lam * g(w), coordinate by coordinate: the cost, and the map from dual to primal.

The dual methods maintain the dual sum u = 1/(lam S) sum_i s_i a_i x_i; the primal vector is
w = to_primal(u), the gradient of the conjugate.  For L2 that map is the identity, and it vanishes
from the compiled kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign

from zerogap.kernels.jit import Struct


@dataclass(frozen=True)
class L2(Struct):
    """g(w) = w^2 / 2.  Its conjugate is u^2 / 2 and w = u."""

    def cost(self, w):
        return 0.5 * w * w

    def to_primal(self, u):
        return u

    def slack(self, w, u):
        """g(w) + g*(u) - w u >= 0: what the coordinate adds to the duality gap, over lam."""
        return 0.5 * (w - u) * (w - u)

    def convexity(self):
        """Strong convexity of g: lam times this divides the curvature of the dual."""
        return 1.0


@dataclass(frozen=True)
class ElasticNet(Struct):
    """g(w) = (1 - r) w^2 / 2 + r |w| with r = ``l1_ratio`` in [0, 1).

    Its conjugate is soft(u, r)^2 / (2 (1 - r)), and w = soft(u, r) / (1 - r), where soft(u, r)
    moves u towards zero by r.
    """

    l1_ratio: float

    def cost(self, w):
        return 0.5 * (1.0 - self.l1_ratio) * w * w + self.l1_ratio * abs(w)

    def to_primal(self, u):
        return copysign(max(0.0, abs(u) - self.l1_ratio), u) / (1.0 - self.l1_ratio)

    def slack(self, w, u):
        """g(w) + g*(u) - w u, arranged so that nothing cancels when w is near to_primal(u)."""
        p = self.to_primal(u)
        slope = u - (1.0 - self.l1_ratio) * p  # in [-r, r], a sub-gradient of r |.| at p
        kink = self.l1_ratio * abs(w) - slope * w
        return 0.5 * (1.0 - self.l1_ratio) * (w - p) * (w - p) + kink

    def convexity(self):
        return 1.0 - self.l1_ratio


def as_penalty(l1_ratio: float) -> L2 | ElasticNet:
    """Return the penalty with that share of L1."""
    if not 0 <= l1_ratio < 1:
        raise ValueError(
            f"l1_ratio must be in [0, 1), got {l1_ratio!r}: "
            f"the dual needs some L2, so use 0.99 rather than 1"
        )
    return ElasticNet(float(l1_ratio)) if l1_ratio > 0 else L2()

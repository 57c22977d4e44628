r"""Audits of penalties without an L2 part, by the elastic net next to them.

Of P(w, b) = 1/S sum_i s_i phi_i + lam |w|_1, take P_e = P + e/2 |w|^2, which has a dual bound D_e
and an optimum w_e.  Let P(w, b) be at most P0, the least value that is known.  As losses are not
negative, |w|_2 <= |w|_1 <= W = P0 / lam, and as P_e(w, b) >= D_e + e/2 |w - w_e|^2::

    P(w, b) = P_e(w, b) - e/2 |w|^2 >= D_e - e W min(W / 2, |w_e|_inf)

A model (w0, b0) that is proved to be near the optimum of P_e is near w_e: with its gap g, which is
at least e/2 |w0 - w_e|^2, |w_e|_inf <= |w0|_inf + sqrt(2 g / e).  What the best answer (w1, b1) to
the elastic net costs bounds the model's distance from below::

    P(w0, b0) - P(w1, b1) >= P_e(w0, b0) - P_e(w1, b1) - e/2 |w0|^2
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zerogap.audit.bound import Audit, audit_all
from zerogap.losses import Loss
from zerogap.problem import Problem
from zerogap.problem.checks import is_positive
from zerogap.solvers.protocol import Answer

SHARES = (1e-4, 1e-7, 1e-10)  # of P0, that the L2 part may cost, one after the other
LEAST_L2 = 1e-14  # of lam: so much L2 an elastic net has in doubles
DECIDED = 0.05  # of the distance from below: an L2 part that costs less is not lessened further
ROUNDED = 1e-12  # of the cost of the L2 part: what computing it may lose
STRENGTHS = 2.0**-48  # of P0: lam of the elastic net is that of P up to rounding


@dataclass(frozen=True, eq=False)
class PureL1:
    """A problem that lacks the L2 part its dual needs: 1/S sum s_i phi_i + lam |w|_1."""

    rows: Any
    y: np.ndarray
    loss: Loss
    lam: float
    weight: np.ndarray
    fit_intercept: bool

    def with_l2(self, e: float) -> Problem:
        """Return the elastic net with e |w|^2 / 2 added."""
        lam, rest = self.lam + e, (self.weight, self.fit_intercept)
        return Problem(self.rows, self.y, self.loss, lam, *rest, l1_ratio=self.lam / lam)


def audit_pure_l1(problem: PureL1, model: Answer, effort: int, random_state: Any = 0) -> Audit:
    """Certify a model of a pure L1 penalty, with an L2 part as small as the distance asks for."""
    w, lam = np.asarray(model[0], dtype=np.float64), problem.lam
    if not is_positive(lam):
        raise ValueError(f"lam must be a positive, finite number, got {lam!r}")
    first, origin = problem.with_l2(LEAST_L2 * lam), np.zeros_like(w)
    value = min(first.primal(w, b=model[1]), first.primal(origin))
    spent, seconds, audits = 0.0, 0.0, []
    for share in SHARES:
        wished = 2.0 * share * lam * (lam / value) if value > 0 else lam
        near = problem.with_l2(min(max(wished, LEAST_L2 * lam), lam))
        found = audit_all([near], [model], effort - int(spent), random_state)
        spent, seconds = spent + found.epochs, seconds + found.seconds
        audits.append(_without_l2(found, near.strength, w, lam))
        cost, known = audits[-1].gap - found.gap, max(audits[-1].at_least, found.gap)
        if cost <= DECIDED * known or wished <= LEAST_L2 * lam or spent >= effort > 0:
            break
    return replace(max(audits, key=lambda audit: audit.dual), epochs=spent, seconds=seconds)


def _without_l2(found: Audit, e: float, w: np.ndarray, lam: float) -> Audit:
    """Return what the audit of an elastic net says of the model without its part e |w|^2 / 2."""
    blur = max(0.0, found.primal - found.dual - found.gap)
    lost = STRENGTHS * found.primal
    longest = (found.primal - found.at_least + blur + lost) / lam
    size = float(np.abs(w).max()) + math.sqrt(2.0 * (found.gap + blur) / e)
    cost = e * longest * min(0.5 * longest, size) * (1.0 + ROUNDED) + lost
    own = 0.5 * e * float(np.sum(np.square(w)))
    return replace(
        found,
        primal=found.primal - own,
        dual=found.dual - cost,
        gap=found.gap + cost,
        at_least=max(0.0, found.at_least - own * (1.0 + ROUNDED) - lost),
    )

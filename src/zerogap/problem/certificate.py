"""The proof that comes with every fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zerogap.display import Shown

_GOOD_REASONS = ("converged", "bound is tight", "own dual point")


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """A proof of how far a model is from the optimum: gap >= P(w, b) - min P.

    Attributes
    ----------
    primal : float
        P(w, b), the objective of the model.
    dual : float
        D(alpha) of a feasible dual point: no model whatsoever has a lower objective.
    gap : float
        primal - dual, summed from non-negative terms so that it stays accurate when it is tiny.
    rounding : float
        The part of the gap that bounds what rounding may hide: gap - rounding is what was computed.
    floor : float
        A gap up to this counts as zero: 1e-13 times the objective of the best constant model where
        the model's own is less than 1e-4 of it, or the loss of residuals of some units in the last
        place of the targets if that is more; else 0.  About what double precision can tell apart
        where a model fits its data to the last digit.
    epochs : float
        Passes over the data that were spent.
    seconds : float
        Time spent on updates; certificates and recording are not counted.
    stop_reason : str
        "converged", "labels settled", "max_epochs", "max_examples", "max_seconds", "stalled" (no
        method that is known makes progress), "rounding" (what was computed is within tol, but
        double precision cannot prove it), "callback", "interrupted" or "device failed".
    solver : str
        What was run and, if it was chosen automatically, why.
    parts : tuple of Certificate
        One certificate per class for one-vs-rest models, else empty.

    Examples
    --------
    >>> print(Certificate(primal=0.5, dual=0.4999, gap=1e-4))
    primal 0.5, dual 0.4999, gap 1.0e-04 (0.02 % of primal)
    """

    primal: float
    dual: float
    gap: float
    epochs: float = 0.0
    seconds: float = 0.0
    stop_reason: str = ""
    solver: str = ""
    parts: tuple[Certificate, ...] = ()
    floor: float = 0.0
    rounding: float = 0.0

    @property
    def relative_gap(self) -> float:
        """Gap over primal value: the optimum is at most this share of the primal value below it.

        Zero if the gap is not above `floor`.
        """
        if self.gap <= max(0.0, self.floor):
            return 0.0
        return self.gap / abs(self.primal) if self.primal else math.inf

    def __str__(self) -> str:
        text = (
            f"primal {self.primal:.7g}, dual {self.dual:.7g}, gap {self.gap:.1e} "
            f"({_percent(self.relative_gap)} of primal)"
        )
        if self.stop_reason:
            text += f"; {self.stop_reason} after {self.epochs:g} epochs, {self.seconds:.3g} s"
        return text

    def _facts(self) -> Mapping[str, Any]:
        facts = {
            "primal": self.primal,
            "dual": self.dual,
            "gap": float(self.gap),
            "relative gap": _percent(self.relative_gap),
        }
        if self.rounding:
            facts["rounding"] = self.rounding
        if self.parts:
            facts["classes certified"] = len(self.parts)
        if self.stop_reason:
            facts |= {"stopped": self.stop_reason, "epochs": self.epochs, "seconds": self.seconds}
        return facts | ({"solver": self.solver} if self.solver else {})

    @classmethod
    def combine(cls, parts: Sequence[Certificate]) -> Certificate:
        """Return the certificate of several problems solved side by side: the sum of theirs."""
        if len(parts) == 1:
            return parts[0]
        worst = max(parts, key=lambda part: part.relative_gap)
        reasons = [part.stop_reason for part in parts]
        return cls(
            primal=math.fsum(part.primal for part in parts),
            dual=math.fsum(part.dual for part in parts),
            gap=math.fsum(part.gap for part in parts),
            epochs=max(part.epochs for part in parts),
            seconds=math.fsum(part.seconds for part in parts),
            stop_reason=next((r for r in reasons if r not in _GOOD_REASONS), worst.stop_reason),
            solver=worst.solver,
            parts=tuple(parts),
            floor=math.fsum(part.floor for part in parts),
            rounding=math.fsum(part.rounding for part in parts),
        )


def _percent(share: float) -> str:
    """Return a share in percent, to two digits; large ones up to a million without an exponent."""
    large = 0.995 <= share < 1e6
    return f"{100 * share:,.0f} %" if large else f"{100 * share:.2g} %"

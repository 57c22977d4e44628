"""Whether the regions in a model file contain the optimum, from the data alone.

A file says: the optimal weights are within `radius` of the model's, and the optimal intercepts lie
between `low` and `high`.  The model and its dual point prove a region, as at the end of the fit.
If that is larger than the file's, a better model (w', b') of the same problem is looked for, whose
own region has the radius r'.  Then |w - w*| lies between |w - w'| - r' and |w - w'| + r'.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.problem import Problem
from zerogap.problem.centring import centred
from zerogap.regions import ProofWithoutRows, Region, find_region
from zerogap.regions.certified_predictions import difference, score_bounds
from zerogap.rows import DenseRows
from zerogap.solvers import Auto, solve
from zerogap.solvers.history import Record
from zerogap.solvers.protocol import Answer

_ROUNDING = 1e-12  # of weights and intercepts, relative to their sizes
_SAME_WITHIN = 1e-6  # of a radius or interval: what is found again differs by less
_LEAST_TOL = 1e-12  # relative gap beyond which rounding decides


class RegionClaim:
    """What a file says of the optimum of one problem, and what was found.

    Attributes
    ----------
    claim : "true", "false" or "unproved"
        Whether the optimum is proved to be in the stored region, or proved not to be.
    found : Region
        What the data prove around the model's own weights.
    """

    def __init__(self, problem: Problem, answer: Answer, stored: Region | None) -> None:
        self.problem, self.answer, self.stored = problem, answer, stored
        self.two = problem.loss.task == "multiclass" and len(answer[0]) == 2
        self.claim = "unproved"
        self.found = find_region(problem, *answer)
        self._judge()

    def work(self, effort: int) -> None:
        """Look for a better model, with so many epochs at most, until the claim is decided."""
        if self.claim != "unproved" or not effort:
            return
        result = solve(
            self.problem,
            Auto(),
            tol=_LEAST_TOL,
            max_epochs=effort,
            callback=self._look,
            warm_start=self.answer,
            random_state=0,
        )
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt

    def _look(self, record: Record) -> bool:
        assert record.proof is not None
        region = ProofWithoutRows.of(self.problem, record.w, record.proof).region
        w, b, _ = self.answer
        distance = float(np.linalg.norm(self._seen(w) - self._seen(record.w)))
        radius, _, _ = self._compared(region)
        shift = 0.0
        if self.problem.loss.task == "multiclass":  # of intercepts, only differences matter
            shifted = centred(self.problem)
            inner = [shifted.inward(w, b), shifted.inward(record.w, np.asarray(record.b))]
            shift = float(np.mean(inner[0]) - np.mean(inner[1]))
        apart = float(np.linalg.norm(w - record.w))
        self.found = Region(
            min(self.found.radius, apart + region.radius),
            np.maximum(self.found.low, region.low + shift),
            np.minimum(self.found.high, region.high + shift),
            region.origin,
        )
        self._judge(distance - radius)
        return self.claim != "unproved"

    def _judge(self, least: float = 0.0) -> None:
        """Set the claim, given that the optimal weights are at least this far from the model's."""
        if self.stored is None:
            self.claim = "true"
            return
        w, b, _ = self.answer
        radius, low, high = self._compared(self._seen_from(self.stored.origin))
        most, left, right = self._compared(self.stored)
        most += _SAME_WITHIN * most + _ROUNDING * float(np.linalg.norm(w))
        slack = _SAME_WITHIN * (right - left) + _ROUNDING * (1.0 + np.abs(b).max())
        left, right = left - slack, right + slack
        if radius <= most and (low >= left).all() and (high <= right).all():
            self.claim = "true"
        elif least > most or (low > right).any() or (high < left).any():
            self.claim = "false"

    def _seen(self, w: np.ndarray) -> np.ndarray:
        """Return the weights that a model keeps: of two classes together, their difference."""
        return w[1] - w[0] if self.two else w

    def _seen_from(self, origin: np.ndarray) -> Region:
        """Return what was found, with the optimum's scores at the origin of the file."""
        found = self.found
        if np.array_equal(origin, found.origin):
            return found
        point = origin if len(origin) else np.zeros(self.problem.shape[1])
        coef = np.atleast_2d(self.answer[0])
        regions = [
            Region(found.radius, found.low[k : k + 1], found.high[k : k + 1], found.origin)
            for k in range(len(coef))
        ]
        low, high = score_bounds(DenseRows(point[None, :]), coef, regions)
        return Region(found.radius, low[0], high[0], origin)

    def _compared(self, region: Region) -> tuple[float, np.ndarray, np.ndarray]:
        region = difference(region) if self.two else region
        return region.radius, region.low, region.high


def check_regions(
    problems: list[Problem], answers: list[Answer], stored: list[Any], effort: int
) -> tuple[str, list[Region]]:
    """Return whether stored regions are true, and what was found: one region for each problem.

    The claim is "none" if nothing is stored.
    """
    regions = stored or [None] * len(problems)
    checked = [RegionClaim(*parts) for parts in zip(problems, answers, regions, strict=True)]
    for claim in checked:
        claim.work(effort)
    claims = [claim.claim for claim in checked]
    worst = next((c for c in ("false", "unproved") if c in claims), "true")
    return worst if stored else "none", [claim.found for claim in checked]

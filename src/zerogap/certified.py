"""Predictions that the exact optimum is proved to share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from zerogap.history import Record
from zerogap.problem import Problem
from zerogap.regions import Evidence, Region
from zerogap.rows import CSRRows, DenseRows

SETTLED = "labels settled"
_ROUNDING = 1e-12  # of a score, relative to the sizes it is made of


def score_bounds(
    scores: np.ndarray, norms: np.ndarray, coef: np.ndarray, b: np.ndarray, regions: list[Region]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest scores that optimal models, one per column, can give.

    |x.w + b - x.w* - b*| <= |x| radius + |b - b*|, by Cauchy and Schwarz.
    """
    radii = np.array([region.radius for region in regions])
    low = np.concatenate([region.low for region in regions])
    high = np.concatenate([region.high for region in regions])
    sizes = np.outer(norms, np.linalg.norm(coef, axis=1)) + np.abs(b)
    reach = np.outer(norms, radii) + _ROUNDING * sizes
    reach = np.where(norms[:, None] > 0.0, reach, _ROUNDING * sizes)  # 0 times infinity is 0
    return scores - reach - (b - low), scores + reach + (high - b)


def settled_one_by_one(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Tell for which rows the largest of several scores, or the sign of a single one, is settled.

    One column per class, each of a model of its own.
    """
    if low.shape[1] == 1:
        return (low[:, 0] > 0.0) | (high[:, 0] < 0.0)
    first = (low + high).argmax(axis=1)
    rows = np.arange(len(low))
    others = high.copy()
    others[rows, first] = -math.inf
    return low[rows, first] > others.max(axis=1)


def settled_jointly(
    scores: np.ndarray, norms: np.ndarray, coef: np.ndarray, b: np.ndarray, region: Region
) -> np.ndarray:
    """Tell for which rows the largest of the scores of one joint model is settled.

    The weights of two classes, taken together, are off by `radius` at most, so that their
    difference is off by its double root of two, not by twice as much.
    """
    rows, first = np.arange(len(scores)), scores.argmax(axis=1)
    ahead = scores[rows, first][:, None] - scores
    doubt = (b - region.low)[first][:, None] + (region.high - b)
    sizes = np.outer(norms, np.linalg.norm(coef, axis=1)) + np.abs(b)
    doubt = doubt + math.sqrt(2.0) * region.radius * norms[:, None] + 4 * _ROUNDING * sizes
    sure = ahead > doubt
    sure[rows, first] = True
    return sure.all(axis=1)


def settled_rows(
    rows: DenseRows | CSRRows, coef: np.ndarray, b: np.ndarray, regions: list[Region], joint: bool
) -> np.ndarray:
    """Tell which rows get the same label from all models in the regions."""
    scores, norms = rows.product(coef) + b, np.sqrt(rows.sqnorms)
    if joint:
        return settled_jointly(scores, norms, coef, b, regions[0])
    return settled_one_by_one(*score_bounds(scores, norms, coef, b, regions))


def until_settled(
    problem: Problem, rows: DenseRows | CSRRows, share: float, then: Callable | None
) -> Callable[[Record], Any]:
    """Return a callback for `solve` that stops when this share of the rows has settled labels."""

    def look(record: Record) -> Any:
        stopped = None if then is None else then(record)
        assert record.proof is not None
        region = Evidence.of(problem, record.w, record.proof).region
        coef, b = np.atleast_2d(record.w), np.atleast_1d(record.b)
        sure = settled_rows(rows, coef, b, [region], problem.loss.task == "multiclass")
        return SETTLED if sure.mean() >= share else stopped

    return look


def difference(region: Region) -> Region:
    """Return the region of the difference of the second and the first class of a joint model."""
    return Region(
        math.sqrt(2.0) * region.radius,
        region.low[1:] - region.high[:1],
        region.high[1:] - region.low[:1],
    )

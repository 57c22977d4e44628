"""Predictions that the exact optimum is proved to share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from zerogap.problem import Problem
from zerogap.problem.gap import gamma
from zerogap.regions import ProofWithoutRows, Region
from zerogap.regions.enclosures import (
    empty_rows,
    length_above,
    lengths_above,
    outward,
    score_doubt,
    times_length,
)
from zerogap.rows import Rows
from zerogap.solvers.history import Record

SETTLED = "labels settled"
UNSETTLED = -1


def score_bounds(
    rows: Rows, coef: np.ndarray, regions: list[Region]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest scores that optimal models, one per column, can give.

    Seen from the regions' origin m, and with the optimum's score b* at m,

        |(x - m).w + b* - (x - m).w* - b*| <= |x - m| radius

    by Cauchy and Schwarz.
    """
    scores, lengths, doubt = _products(rows, coef, regions)
    low = np.concatenate([region.low for region in regions])
    high = np.concatenate([region.high for region in regions])
    reach = times_length(lengths, np.array([region.radius for region in regions])) + doubt
    return _between(scores, reach, low, high)


def _products(
    rows: Rows, coef: np.ndarray, regions: list[Region]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (x - m).w, |x - m| and how far the former may be off."""
    origin = regions[0].origin
    seen = rows.minus(origin) if origin.any() else rows
    lengths = lengths_above(seen.sqnorms, seen.width, empty_rows(seen, seen.sqnorms))
    sizes = np.array([length_above(w) for w in coef])
    return seen.product(coef), lengths, score_doubt(seen.width, lengths, sizes)


def _between(
    scores: np.ndarray, reach: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores - reach + low and scores + reach + high, rounded outwards."""
    with np.errstate(invalid="ignore", over="ignore"):
        least, _ = outward(scores - reach + low, 0.0, scores, reach, low)
        _, most = outward(0.0, scores + reach + high, scores, reach, high)
    return np.where(np.isnan(least), -math.inf, least), np.where(np.isnan(most), math.inf, most)


def settled_one_by_one(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the class with the largest of several scores, or of the sign of a single one.

    One column per class, each of a model of its own; UNSETTLED where bounds leave a choice.
    """
    if low.shape[1] == 1:
        return np.where(low[:, 0] > 0.0, 1, np.where(high[:, 0] < 0.0, 0, UNSETTLED))
    first, rows = low.argmax(axis=1), np.arange(len(low))
    others = high.copy()
    others[rows, first] = -math.inf
    return np.where(low[rows, first] > others.max(axis=1), first, UNSETTLED)


def settled_jointly(rows: Rows, coef: np.ndarray, region: Region, first: np.ndarray) -> np.ndarray:
    """Return for each row whether the class `first` has the largest score of one joint model.

    The weights of two classes, taken together, are off by `radius` at most.  So their difference
    is off by sqrt(2) times the radius at most, and not by twice the radius.
    """
    scores, lengths, doubt = _products(rows, coef, [region])
    places = np.arange(len(first))
    ahead = scores[places, first][:, None] - scores
    reach = times_length(lengths, math.sqrt(2.0) * region.radius)[:, None]
    reach = reach + doubt[places, first][:, None] + doubt
    reach += gamma(4) * (np.abs(scores[places, first])[:, None] + np.abs(scores))
    least, _ = _between(ahead, reach, region.low[first][:, None] - region.high, region.high)
    least -= gamma(4) * (np.abs(region.low[first])[:, None] + np.abs(region.high))
    sure = least > 0.0
    sure[places, first] = True
    return np.all(sure, axis=1)


def settled_labels(
    rows: Rows, coef: np.ndarray, b: np.ndarray, regions: list[Region], joint: bool
) -> np.ndarray:
    """Return the class that each row gets from all models in the regions, or UNSETTLED."""
    if joint:
        first = (rows.product(coef) + b).argmax(axis=1)
        return np.where(settled_jointly(rows, coef, regions[0], first), first, UNSETTLED)
    return settled_one_by_one(*score_bounds(rows, coef, regions))


def until_settled(
    problem: Problem, rows: Rows, share: float, then: Callable | None
) -> Callable[[Record], Any]:
    """Return a callback for `solve` that stops when this share of the rows has settled labels."""

    def look(record: Record) -> Any:
        stopped = None if then is None else then(record)
        assert record.proof is not None
        region = ProofWithoutRows.of(problem, record.w, record.proof).region
        coef, b = np.atleast_2d(record.w), np.atleast_1d(record.b)
        found = settled_labels(rows, coef, b, [region], problem.loss.task == "multiclass")
        return SETTLED if np.mean(found != UNSETTLED) >= share else stopped

    return look


def difference(region: Region) -> Region:
    """Return the region of the difference of the second and the first class of a joint model."""
    low, high = region.low[1:] - region.high[:1], region.high[1:] - region.low[:1]
    low, high = np.nextafter(low, -math.inf), np.nextafter(high, math.inf)
    return Region(math.sqrt(2.0) * region.radius * (1.0 + gamma(4)), low, high, region.origin)

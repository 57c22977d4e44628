"""Scores, sums and dual points of many classes with more digits than a double has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerogap.kernels.precise import precise_scores
from zerogap.kernels.twofold import Factor, add, class_moments, twofold
from zerogap.rows import DenseRows

ROUNDS = 6  # of refinement: each gains some ten digits unless columns are nearly copies
LARGEST_MOVE = 0.5  # of a dual variable's distance to an end of its domain, in all rounds together
MOST_EQUATIONS = 1000  # of all classes: a factor of twice the precision takes a third of a second
# Curvature of weights that an L1 penalty holds at zero, in units of the columns
CURVATURE_OF_FIXED = 1e20
# Curvature, over that of the penalty, from which votes follow what is missing.  Where they have
# less, at a corner of their domain, they would have to move too far.
SUPPORTED = 1e-6


def refinement_of_votes(problem: Any, w: np.ndarray, alpha: np.ndarray) -> np.ndarray | None:
    """Return what to add to alpha for a dual sum that belongs to w, or None if nothing helps.

    Votes move in proportion to themselves, as they answer scores, to first order.
    """
    width, (_, scale) = problem.shape[1] + problem.fit_intercept, problem._exact_weights
    if width * len(w) > MOST_EQUATIONS:
        return None
    votes = problem.room(alpha)
    factor = _factor(problem, w, votes)
    places, top = np.arange(len(alpha)), votes.argmax(axis=1)
    best, least, rest = None, math.inf, np.zeros_like(alpha)
    for _ in range(ROUNDS):
        lack = problem.lack(w, alpha, rest).reshape(len(w), width) * (problem.lam / scale)
        lack = (lack - lack.mean(axis=0)).ravel()  # a shift of all classes moves no vote
        delta = factor.solve(twofold(lack))
        high, low = (precise_all_scores(problem, v.reshape(len(w), width), top) for v in delta)
        dz = np.clip(high + low, -LARGEST_MOVE, LARGEST_MOVE)  # tiny votes may ask for far more
        moved = votes * (dz - ((votes * dz).sum(axis=1) / votes.sum(axis=1))[:, None])
        size = float(problem.share @ np.abs(moved).sum(axis=1))
        if not size < 0.5 * least:
            break
        best, least, rest = rest, size, rest.copy()
        rest = np.clip(rest - moved, -LARGEST_MOVE * votes, LARGEST_MOVE * votes)
        rest[places, top] = 0.0
        rest[places, top] = -rest.sum(axis=1)
        if not bool((np.abs(rest) <= LARGEST_MOVE * votes).all()):  # not if it is NaN
            break
    return best


def _factor(problem: Any, w: np.ndarray, votes: np.ndarray) -> Factor:
    """Return the factor of how sums answer weights, if votes do."""
    matrix = class_moments(dense_rows(problem), problem.share, votes)
    ridge = np.full(w.shape, SUPPORTED * problem.strength)
    if problem.l1_ratio:
        ridge[w == 0.0] = CURVATURE_OF_FIXED * (problem.strength + problem.column_sizes.max() ** 2)
    if problem.fit_intercept:
        ridge = np.column_stack([ridge, np.zeros(len(w))])
    places = np.arange(ridge.size)
    diagonal = add(matrix[:, places, places], twofold(ridge.ravel()))
    matrix[:, places, places] = diagonal
    fix_shifts(matrix, len(w))
    return Factor(matrix)


def fix_shifts(matrix: np.ndarray, classes: int) -> None:
    """Add curvature along shifts of all classes, in place, which change no vote.

    That is an outer product of powers of two: rounding would leave it more than one direction.
    """
    width = matrix.shape[1] // classes
    parts = matrix.reshape(2, classes, width, classes, width)
    k, j = np.arange(classes), np.arange(width)
    same_feature = (slice(None), k[:, None, None], j, k[:, None], j)
    size = _power_of_two(np.diagonal(matrix[0]).reshape(classes, width))
    outer = size[:, None] * (size / _power_of_two(size.sum(axis=0)))
    parts[same_feature] = add(parts[same_feature], twofold(outer))


def shift_columns(diagonal: np.ndarray) -> np.ndarray:
    """Return vectors along shifts whose outer products do what `fix_shifts` adds, about."""
    size = _power_of_two(diagonal)
    return size / np.sqrt(size.sum(axis=0))


def _power_of_two(x: np.ndarray) -> np.ndarray:
    """Return the powers of two that are next to positive numbers."""
    return np.exp2(np.round(np.log2(np.maximum(x, 1e-250))))


def precise_all_scores(
    problem: Any, w: np.ndarray, seen_from: np.ndarray | None = None
) -> np.ndarray:
    """Return scores of all rows, intercepts included, as differences from one class of each row.

    By default that is the one with the largest score.  Losses know differences alone, and those of
    classes that are nearly equal have all their digits.
    """
    d, rows = problem.shape[1], problem.rows
    b = w[:, d] if problem.fit_intercept else np.zeros(len(w))
    weights = np.ascontiguousarray(w[:, :d])
    return precise_differences(rows, weights, b, np.zeros(len(w)), seen_from)


def precise_differences(
    rows: Any,
    w: np.ndarray,
    b: np.ndarray,
    b_low: np.ndarray,
    seen_from: np.ndarray | None = None,
) -> np.ndarray:
    """Return W x_i + b + b_low of all rows as differences from one class of each row."""
    none, models = np.zeros(rows.shape[0]), list(zip(w, b, b_low, strict=True))
    high = [precise_scores(rows, v, c, none, c_low) for v, c, c_low in models]
    low = [
        precise_scores(rows, v, c, z, c_low) for (v, c, c_low), z in zip(models, high, strict=True)
    ]
    z, rest = np.array(high).T, np.array(low).T
    at = (z.argmax(axis=1) if seen_from is None else seen_from)[:, None]
    z = z - np.take_along_axis(z, at, axis=1)
    return np.ascontiguousarray(z + (rest - np.take_along_axis(rest, at, axis=1)))


def dense_rows(problem: Any) -> np.ndarray:
    """Return the rows, with a one for the intercept, as doubles."""
    rows = problem.rows
    X = rows.values if isinstance(rows, DenseRows) else rows._matrix().toarray()
    X = X.astype(np.float64, copy=False)
    return np.column_stack([X, np.ones(len(X))]) if problem.fit_intercept else X

"""What passes over a store tell of all its rows, before anything is solved."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from zerogap.rows import SAMPLED_ROWS, CSRRows, DenseRows, find_shift
from zerogap.store import Store
from zerogap.streamed.reading import block_rows


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass over a store has found."""

    y: Any  # targets as the store has them, for each row
    weight: Any  # for each row; None if all are one
    squares: np.ndarray  # weighted means of x_ij^2, for each column
    largest: np.ndarray  # sizes of the largest entries of columns; empty if these are not moved
    width: int  # values of the longest row
    even: bool  # whether all rows have the same weight
    largest_target: float


def survey(problem: Any) -> Survey:
    """Read all rows of a streamed problem once; keep what there is one number of for each."""
    store = problem.store
    y = problem.column((store.n_samples,))
    weight: Any = problem.column((store.n_samples,)) if store.weighted else None
    squares, width, largest_target = np.zeros(store.n_features), 0, 0.0
    largest = np.zeros(store.n_features if problem.moves_columns else 0)
    shares = (math.inf, 0.0)
    with contextlib.closing(problem.read_blocks()) as blocks:
        for k, rows, block in blocks:
            y[problem.span(k)] = block.y
            if weight is not None:
                weight[problem.span(k)] = block.sample_weight
            part = problem.part(rows, block.y, block.sample_weight)
            squares += part.rows.square_sums(part.share)
            width = max(width, part.rows.width)
            largest_target = max(largest_target, float(np.abs(part.y).max()))
            shares = min(shares[0], part.share.min()), max(shares[1], part.share.max())
            if len(largest):
                largest = np.maximum(largest, part.rows.largest_entries())
    even = shares[0] == shares[1]
    return Survey(y, weight, squares, largest, width, even, largest_target)


def find_shifts(store: Store) -> tuple[np.ndarray, float]:
    """Return what to subtract from columns and targets so that they are near zero, if anything.

    Rows lie in a store in random order: the first ones are a sample of all.
    """
    parts, ys, found = [], [], 0
    for k in range(len(store.blocks)):
        block = store.read(k)
        rows = block_rows(block)
        some = np.arange(min(rows.shape[0], SAMPLED_ROWS - found))
        parts.append(rows.take(some))
        ys.append(block.y[some])
        found += len(some)
        if found == SAMPLED_ROWS:
            break
    origin = stacked(parts)._far_columns()
    return origin, float(find_shift(np.concatenate(ys)[:, None])[0])


def stacked(parts: list[Any]) -> DenseRows | CSRRows:
    """Return rows that lie one below the other."""
    if isinstance(parts[0], DenseRows):
        return DenseRows(np.concatenate([rows.X for rows in parts]))
    matrix = sparse.vstack([rows._matrix() for rows in parts], format="csr")
    indices = matrix.indices.view(f"u{matrix.indices.itemsize}")
    return CSRRows(matrix.data, indices, matrix.indptr, matrix.shape[1])

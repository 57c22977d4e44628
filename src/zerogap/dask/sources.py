"""What a distributed fit accepts as data: always a list of sources, one per chunk.

A source can be read again after its worker has died: a block of a store, or a Dask object that
stands for a pair (X, y) or a triple (X, y, sample_weight).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed import Future

import dask
from zerogap.dask.chunks import StoreBlock
from zerogap.store import Store


def as_sources(X: Any, y: Any = None, sample_weight: Any = None) -> list[Any]:
    """Return the chunks of the data."""
    if isinstance(X, Store):
        if y is not None or sample_weight is not None:
            raise ValueError("a Store has its targets and weights: leave y and sample_weight out")
        return [StoreBlock(X, k) for k in range(len(X.blocks))]
    if isinstance(X, list | tuple) and X and all(map(_is_part, X)):
        if y is not None or sample_weight is not None:
            raise ValueError("with a list of parts, each of them holds X, y and perhaps weights")
        return list(X)
    if not dask.is_dask_collection(X):
        raise ValueError(
            f"X must be a dask array or dataframe, a list of delayed (X, y) or a zg.Store, got "
            f"{type(X).__name__}: for data in memory use zg.LinearClassifier or zg.LinearRegressor"
        )
    if y is None:
        raise ValueError("y is missing: targets are needed with a dask array or dataframe")
    if len(getattr(X, "numblocks", ())) == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    blocks = _blocks(X)
    columns = [_aligned(blocks, X, y, "y")]
    if sample_weight is not None:
        columns.append(_aligned(blocks, X, sample_weight, "sample_weight"))
    return [_bundle(*parts) for parts in zip(blocks, *columns, strict=True)]


def known_size(X: Any) -> int:
    """Return how many bytes the rows take in memory at least, 0 if that is not known."""
    if isinstance(X, Store):
        return sum(block.nbytes for block in X.blocks)
    is_dense = isinstance(getattr(X, "_meta", None), np.ndarray)
    return int(X.nbytes) if is_dense and not np.isnan(X.nbytes) else 0


def _is_part(item: Any) -> bool:
    return isinstance(item, Future) or dask.is_dask_collection(item)


def _blocks(collection: Any) -> list[Any]:
    return list(np.ravel(np.asarray(collection.to_delayed(), dtype=object)))


def _aligned(blocks: list[Any], X: Any, column: Any, name: str) -> list[Any]:
    """Return the pieces of a column that belong to the blocks of X."""
    sizes = getattr(X, "chunks", ((np.nan,),))[0]  # dataframes do not know them
    known = not np.isnan(sizes).any()
    if not dask.is_dask_collection(column):
        if not known:
            raise ValueError(f"{name} must be a dask collection too: the sizes of X are unknown")
        column = np.asarray(column)
        if len(column) != sum(sizes):
            raise ValueError(f"X has {sum(sizes)} rows but {name} has {len(column)} entries")
        ends = np.cumsum(sizes)
        return [column[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    if known and hasattr(column, "chunks") and column.chunks[0] != sizes:
        if sum(column.chunks[0]) != sum(sizes):
            raise ValueError(
                f"X has {sum(sizes)} rows but {name} has {sum(column.chunks[0])} entries"
            )
        column = column.rechunk((sizes,))
    pieces = _blocks(column)
    if len(pieces) != len(blocks):
        raise ValueError(f"X has {len(blocks)} chunks but {name} has {len(pieces)}: rechunk one")
    return pieces


@dask.delayed(pure=False)
def _bundle(*parts: Any) -> tuple[Any, ...]:
    return parts

"""From sorted runs to the blocks of a store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from zerogap.kernels.precise import total_of, totals_by_class
from zerogap.store.intake import Intake
from zerogap.store.layout import Block, Layout
from zerogap.store.manifest import Manifest
from zerogap.store.runs import Batch, Runs

_BLOCKS, _LEAST_ROWS = 100, 100  # so many blocks, unless they had fewer rows than this


class Progress(NamedTuple):
    """How far a store is written.

    Attributes
    ----------
    stage : {"scanning", "reading", "writing"}
        Looking for the categories of a table, reading the rows, writing the blocks.
    rows : int
        How many rows have gone through the stage.
    done, total : int
        Bytes of the source, or of the store, that have been read or written, and all of them;
        total is None if it is not known.
    """

    stage: str
    rows: int
    done: int
    total: int | None


def write_blocks(
    file: BinaryIO,
    runs: Runs,
    intake: Intake,
    block_size: int,
    progress: Callable[[Progress], Any],
) -> Manifest:
    """Write the blocks one after the other; return the manifest."""
    first, n = runs.list[0], intake.rows
    exact = all(run.dtype == "float32" for run in runs.list)
    layout = Layout(first.sparse, np.dtype("float32" if exact else "float64"), first.weighted)
    stored = sum(run.stored for run in runs.list)
    total = layout.nbytes(n, stored)
    classes: Any = None
    places: Any = None
    if intake.labels is not None:
        classes, places = intake.labels.sorted()
    blocks: list[Block] = []
    weights, of_classes = [], []  # of each batch
    start = 0
    # a little more than needed: blocks do not all have the same size
    count = max(math.ceil(1.05 * total / block_size), min(_BLOCKS, n // _LEAST_ROWS), 1)
    for batch in _batches(runs, count):
        if places is not None:
            codes = places[batch.y.astype(np.int64)]
            batch.y = codes.astype(np.float64)
            of_classes.append(totals_by_class(codes, batch.weight, len(classes)))
        weights.append(len(batch.y) if batch.weight is None else total_of(batch.weight))
        for part in _divided(batch, layout, block_size):
            offset, rows = file.tell(), len(part.y)
            nbytes, crc = layout.write(file, part.arrays())
            blocks.append(Block(rows, part.values.size, start, nbytes, offset, crc))
            start += rows
            progress(Progress("writing", start, file.tell(), total))
    return Manifest(
        n_samples=n,
        n_features=intake.columns,
        stored=stored,
        sparse=layout.sparse,
        dtype=layout.dtype.name,
        weighted=layout.weighted,
        total_weight=math.fsum(weights),
        largest_sqnorm=max(run.largest_sqnorm for run in runs.list),
        classes=classes,
        class_weights=None if classes is None else _added_up(of_classes),
        blocks=tuple(blocks),
    )


def _added_up(parts: list[np.ndarray]) -> np.ndarray:
    """Return the sum of vectors, rounded once."""
    return np.array([math.fsum(numbers) for numbers in zip(*parts, strict=True)])


def _batches(runs: Runs, count: int) -> Iterator[Batch]:
    """Yield the rows whose keys lie in each of so many equal ranges."""
    limits = np.array([(k << 64) // count for k in range(1, count)], dtype=np.uint64)
    cuts = []
    for run in runs.list:
        between = np.searchsorted(runs.keys(run), limits)
        cuts.append(np.concatenate(([0], between, [run.rows])).astype(np.int32))
    for k in range(count):
        ranges = (
            (run, int(cut[k]), int(cut[k + 1])) for run, cut in zip(runs.list, cuts, strict=True)
        )
        if parts := [(run, start, stop) for run, start, stop in ranges if start < stop]:
            yield runs.read(parts)


def _divided(batch: Batch, layout: Layout, block_size: int) -> Iterator[Batch]:
    """Yield the rows in parts that fit into a block."""
    n = len(batch.y)
    size = layout.nbytes(n, batch.values.size)
    parts = min(n, math.ceil(size / block_size))
    for k in range(parts):
        yield batch.part(n * k // parts, n * (k + 1) // parts)

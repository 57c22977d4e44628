"""Rows on their way into a store: runs of them on disk, each sorted by the rows' random keys.

A run is a block with keys.  Beside the file of runs lies a journal, one JSON object per line: what
is being written, then every run once it is safely on disk.  What a killed process has left beyond
the last of these is cut off when the work goes on.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from zerogap.io.system import read_at
from zerogap.store.layout import Layout
from zerogap.store.manifest import MOST_FEATURES

_ROWS, _JOURNAL = "rows.bin", "journal"


@dataclass
class Batch:
    """Rows in memory: a CSR or dense matrix, targets, weights or None, and keys."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    key: np.ndarray

    @classmethod
    def joined(cls, batches: list[Batch]) -> Batch:
        """Return the rows of several batches as one, in the order of their keys."""
        key = np.concatenate([batch.key for batch in batches])
        order = np.argsort(key, kind="stable")
        X = [batch.X for batch in batches]
        together = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
        weights = [batch.weight for batch in batches if batch.weight is not None]
        return cls(
            together[order],
            np.concatenate([batch.y for batch in batches])[order],
            np.concatenate(weights)[order] if weights else None,
            key[order],
        )

    @property
    def values(self) -> np.ndarray:
        return self.X.data if sparse.issparse(self.X) else self.X

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values() if array is not None)

    def part(self, start: int, stop: int) -> Batch:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[start:stop]
        return Batch(self.X[start:stop], self.y[start:stop], weight, self.key[start:stop])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the rows as the arrays of a block."""
        own: dict[str, Any] = {"y": self.y, "weight": self.weight, "key": self.key}
        if sparse.issparse(self.X):
            own |= {"indices": self.X.indices, "indptr": self.X.indptr}
        return own | {"values": self.values}


@dataclass(frozen=True)
class Run:
    """A run, and what was known once it had been read.

    `columns` are those seen so far, `position` is where the source goes on, `labels` lists the
    labels that the run was the first to have.
    """

    rows: int
    stored: int
    offset: int
    sparse: bool
    dtype: str
    weighted: bool
    columns: int
    largest_sqnorm: float
    position: Any
    labels: list[Any]
    float_labels: bool

    @property
    def layout(self) -> Layout:
        return Layout(self.sparse, np.dtype(self.dtype), self.weighted, keyed=True)


class Runs:
    """The runs in a folder: those that are there, until `begin` removes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.begun: dict[str, Any] | None = None
        self.list: list[Run] = []
        self.end = self._journal_end = 0
        try:
            text = (folder / _JOURNAL).read_bytes()
            text = text[: text.rfind(b"\n") + 1]  # a line that was being written does not count
            begun, *runs = map(json.loads, text.splitlines())
            int(begun["block"])
            self.list = [Run(**run) for run in runs]
            for run in self.list:
                self.end = run.offset + run.layout.nbytes(run.rows, run.stored)
            if (folder / _ROWS).stat().st_size >= self.end:
                self.begun, self._journal_end = begun, len(text)
        except (OSError, LookupError, ValueError, TypeError):
            pass  # there are none, or none of use

    def begin(self, begun: dict[str, Any]) -> None:
        """Remove what is there, and say what is being written."""
        self.remove()
        self.folder.mkdir(parents=True)
        self.begun, self.list, self.end, self._journal_end = begun, [], 0, 0
        (self.folder / _ROWS).touch()
        self._note(begun)

    def remove(self) -> None:
        """Remove the folder."""
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def append(self, batch: Batch, dtype: np.dtype, **known: Any) -> None:
        """Write a run of rows that are in the order of their keys."""
        layout = Layout(sparse.issparse(batch.X), dtype, batch.weight is not None, keyed=True)
        with open(self.folder / _ROWS, "r+b") as file:
            file.truncate(self.end)
            file.seek(self.end)
            size, _ = layout.write(file, batch.arrays())
            file.flush()
            os.fsync(file.fileno())
        run = Run(
            rows=len(batch.y),
            stored=batch.values.size,
            offset=self.end,
            sparse=layout.sparse,
            dtype=dtype.name,
            weighted=layout.weighted,
            **known,
        )
        self._note(asdict(run))
        self.list.append(run)
        self.end += size

    def _note(self, value: dict[str, Any]) -> None:
        path = self.folder / _JOURNAL
        with open(path, "r+b" if path.exists() else "xb") as file:
            file.truncate(self._journal_end)
            file.seek(self._journal_end)
            file.write(json.dumps(value, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self._journal_end = file.tell()

    def keys(self, run: Run) -> np.ndarray:
        """Return the keys of a run, in order."""
        with open(self.folder / _ROWS, "rb") as file:
            return _Reader(file.fileno(), run).array("key", 0, run.rows)

    def read(self, parts: list[tuple[Run, int, int]]) -> Batch:
        """Return rows start to stop of some runs, in the order of their keys."""
        with open(self.folder / _ROWS, "rb") as file:
            readers = [(_Reader(file.fileno(), run), start, stop) for run, start, stop in parts]
            return Batch.joined([reader.rows(start, stop) for reader, start, stop in readers])


class _Reader:
    """Reads parts of a run."""

    def __init__(self, file: int, run: Run) -> None:
        self.file, self.run = file, run
        self.places = {p.name: p for p in run.layout.places(run.rows, run.stored)}

    def array(self, name: str, start: int, stop: int) -> np.ndarray:
        place = self.places[name]
        size = place.dtype.itemsize
        raw: Any = np.empty((stop - start) * size, dtype=np.uint8)
        first = self.run.offset + place.offset + start * size
        if read_at(self.file, raw, first) < len(raw):
            raise OSError(errno.EIO, "the file has become shorter", _ROWS)
        return raw.view(place.dtype)

    def rows(self, start: int, stop: int) -> Batch:
        if self.run.sparse:
            indptr = self.array("indptr", start, stop + 1)
            first, last = int(indptr[0]), int(indptr[-1])
            entries = self.array("values", first, last), self.array("indices", first, last)
            shape = stop - start, MOST_FEATURES
            X = sparse.csr_matrix((*entries, indptr - indptr[0]), shape=shape)
        else:
            d = self.run.stored // self.run.rows
            X = self.array("values", start * d, stop * d).reshape(-1, d)
        weight = self.array("weight", start, stop) if self.run.weighted else None
        return Batch(X, self.array("y", start, stop), weight, self.array("key", start, stop))

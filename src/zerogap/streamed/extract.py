"""Some rows of a store, copied into a file of their own."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from zerogap.io.system import free_disk
from zerogap.problem import Problem
from zerogap.store import Store
from zerogap.store.layout import Block, Layout
from zerogap.streamed.columns import nameless_file


class Extract(Store):
    """Rows of a store in a nameless file, with their targets and shares in a problem.

    Rows are added by blocks of the store, and written when there are enough for a block of the
    file.  So the blocks of the file depend only on which rows were added, and in which order.
    """

    def __init__(self, store: Store, dtype: np.dtype) -> None:
        self.path, self.max_memory, self.n_features = store.path, store.max_memory, store.n_features
        self.sparse, self.dtype = store.sparse, dtype
        self.blocks, self.nbytes, self.n_samples = (), 0, 0
        self.origins: list[list[int]] = []  # of each block: which blocks of the store it is from
        self._layout = Layout(store.sparse, dtype, weighted=True)
        size = max(self._layout.nbytes(b.rows, b.stored) for b in store.blocks)
        self._largest = size, max(b.rows for b in store.blocks)
        self._waiting: list[tuple[int, Any]] = []
        self._target = nameless_file(store.path)
        self._file, self._checked = self._target.fileno(), set()
        weakref.finalize(self, self._target.close)

    @property
    def room(self) -> int:
        """Bytes that are free on the disk."""
        return free_disk(self._target)

    def add(self, k: int, part: Problem) -> None:
        """Append rows of block k of the store."""
        parts = [*(waiting for _, waiting in self._waiting), part]
        rows, stored = sum(p.shape[0] for p in parts), sum(p.rows.stored for p in parts)
        size, most = self._largest
        if self._waiting and (self._layout.nbytes(rows, stored) > size or rows > most):
            self._write()
        if part.shape[0]:
            self._waiting.append((k, part))
            self.n_samples += part.shape[0]

    def finish(self) -> None:
        """Write what still waits, so that all can be read."""
        if self._waiting:
            self._write()
        self._target.flush()

    def _write(self) -> None:
        origin, parts = zip(*self._waiting, strict=True)
        rows = [part.rows for part in parts]
        arrays = {
            "y": np.concatenate([part.y for part in parts]),
            "weight": np.concatenate([part.share for part in parts]),
        }
        if self.sparse:
            arrays["values"] = np.concatenate([r.data for r in rows])
            arrays["indices"] = np.concatenate([r.indices.view(np.int32) for r in rows])
            lengths = [np.diff(r.indptr) for r in rows]
            arrays["indptr"] = np.cumsum(np.concatenate([[0], *lengths]))
        else:
            arrays["values"] = np.concatenate([r.X for r in rows])
        start, offset = self.n_samples - len(arrays["y"]), self.nbytes
        nbytes, crc = self._layout.write(self._target, arrays)
        block = Block(len(arrays["y"]), arrays["values"].size, start, nbytes, offset, crc)
        self.blocks, self.nbytes = (*self.blocks, block), offset + nbytes
        self.origins.append(list(origin))
        self._waiting.clear()

    def _check(self, arrays: dict[str, np.ndarray], block: Block) -> None:
        """Trust what the checksum proves: the store has checked these rows."""

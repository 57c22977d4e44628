"""Reading a store block by block."""

from __future__ import annotations

import os
import weakref
import zlib
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from zerogap.display import table_html
from zerogap.io.system import drop_from_page_cache, read_at
from zerogap.rows import as_rows
from zerogap.store.layout import Block, aligned_buffer
from zerogap.store.manifest import DATA_NAMES, StoreError, open_regular, read_manifest
from zerogap.store.sizes import parse_size

_CHECKED: dict[tuple[Any, ...], set[int]] = {}  # blocks that this process has checked, by file


class Part(NamedTuple):
    """Rows of a store: X, y as class codes or numbers, and sample weights or None.

    Attributes
    ----------
    X : ndarray or CSR matrix
        Rows.
    y : ndarray
        Codes of classes, or numbers.
    sample_weight : ndarray or None
        Weights, if the store has them.
    """

    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None


class Store:
    """Rows in a folder, in random order, of which one block at a time is in memory.

    `zerogap data convert` and `write_store` make one.  Opening it reads and checks its manifest;
    a block's bytes are checked when a process reads it for the first time.

    Parameters
    ----------
    path : path
        The folder.
    max_memory : int or str, optional
        What a process that trains from the store may take in all: bytes, or text like "2GB".

    Attributes
    ----------
    n_samples, n_features, stored : int
        Rows, columns, and values that are stored.
    sparse : bool
        Whether the rows are CSR or dense.
    dtype : dtype
        float32 or float64, of the values.
    classes : array or None
        Class labels in order, of which y holds the positions; None if y holds numbers.
    class_weights : array or None
        Sum of the sample weights of each class, the number of its rows without weights.
    weighted : bool
        Whether there are sample weights.
    total_weight : float
        Their sum; the number of rows without.
    largest_sqnorm : float
        Largest squared norm of a row.
    blocks : tuple of Block
    nbytes : int
        Size of all blocks.
    feature_names : tuple of str or None
        Of tables.
    encoder : dict or None
        Of tables: what `Encoder.from_json` turns into the encoder of their columns.
    source : dict or None
        What the store was made from.
    fingerprint : str
        Digest of the content.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from zerogap.store import write_store
    >>> with TemporaryDirectory() as folder:
    ...     X, y = np.eye(3), ["no", "yes", "no"]
    ...     store = write_store(f"{folder}/store", [(X, y)])
    ...     part = store.read(0)
    >>> store.n_samples, store.classes[part.y.astype(int)][part.X[:, 1] == 1]
    (3, array(['yes'], dtype='<U3'))
    """

    def __init__(self, path: str | os.PathLike[str], max_memory: int | str | None = None) -> None:
        self.path = Path(path)
        self.max_memory = None if max_memory is None else parse_size(max_memory)
        content = read_manifest(self.path)
        self.n_samples, self.n_features = content.n_samples, content.n_features
        self.stored, self.sparse = content.stored, content.sparse
        self.dtype = np.dtype(content.dtype)
        self.weighted, self.total_weight = content.weighted, content.total_weight
        self.largest_sqnorm = content.largest_sqnorm
        self.classes, self.class_weights = content.classes, content.class_weights
        self.blocks: tuple[Block, ...] = content.blocks
        self.nbytes = sum(block.nbytes for block in self.blocks)
        names = content.feature_names
        self.feature_names = None if names is None else tuple(names)
        self.encoder, self.source = content.encoder, content.source
        self.fingerprint = content.fingerprint
        self._layout = content.layout
        self._file = self._open(DATA_NAMES[content.data])
        weakref.finalize(self, os.close, self._file)

    def _open(self, name: str) -> int:
        try:
            handle = open_regular(self.path / name)
        except FileNotFoundError:
            raise StoreError(f"{self.path}: {name} is missing") from None
        except StoreError as error:
            raise StoreError(f"{self.path}: {error}") from error
        status = os.fstat(handle)
        end = self.blocks[-1].offset + self.blocks[-1].nbytes
        if status.st_size < end:
            os.close(handle)
            raise StoreError(
                f"{self.path}: {name} has {status.st_size} bytes, its blocks end at {end}: "
                f"convert the source again"
            )
        place = status.st_dev, status.st_ino, status.st_mtime_ns, self.fingerprint
        self._checked = _CHECKED.setdefault(place, set())
        return handle

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def _repr_html_(self) -> str:
        facts = {
            "folder": self.path,
            "rows": self.n_samples,
            "features": self.n_features,
            "values stored": self.stored,
            "kind": f"{'sparse' if self.sparse else 'dense'} {self.dtype}",
            "classes": "numbers" if self.classes is None else len(self.classes),
            "sample weights": "yes" if self.weighted else "no",
        }
        return table_html(list(facts.items()), caption="Store")

    def __reduce__(self) -> Any:
        return _reopen, (self.path, self.max_memory, self.fingerprint)

    def read(self, k: int, buffers: np.ndarray | None = None) -> Part:
        """Return the rows of block k.

        Parameters
        ----------
        k : int
        buffers : array of bytes, optional
            Memory from `buffer` that the arrays then lie in, until it is used again.

        Returns
        -------
        Part
            Rows, targets and weights, in the buffer if one is given.
        """
        block = self.blocks[k]
        memory = aligned_buffer(block.nbytes) if buffers is None else buffers
        raw: Any = memory[: block.nbytes]
        self._fill(raw, k)
        arrays = self._layout.views(raw, block.rows, block.stored)
        arrays = {
            name: a.astype(a.dtype.newbyteorder("="), copy=False) for name, a in arrays.items()
        }
        if k not in self._checked:
            if zlib.crc32(raw) != block.crc32:
                raise self._damaged(k, "its checksum differs")
            try:
                self._check(arrays, block)
            except ValueError as error:
                raise self._damaged(k, str(error)) from error
            self._checked.add(k)
        return Part(self._matrix(arrays, block), arrays["y"], arrays.get("weight"))

    def buffer(self) -> np.ndarray:
        """Return memory that every block fits in.

        Returns
        -------
        ndarray
            For `read`.
        """
        return aligned_buffer(max(block.nbytes for block in self.blocks))

    def stream(
        self, order: Iterable[int] | None = None, kept: int = 1
    ) -> Generator[tuple[int, Part]]:
        """Yield the number and the rows of each block.

        While the caller works on one block, a thread reads the next one into another buffer.

        Parameters
        ----------
        order : iterable of int, optional
            Numbers of blocks; by default all of them, from the first to the last.
        kept : int
            How many of the last blocks stay valid: the arrays of others are overwritten.

        Yields
        ------
        k : int
            Number of the block.
        part : Part
            Its rows, targets and weights.
        """
        numbers = list(range(len(self.blocks)) if order is None else order)
        if not numbers:
            return
        buffers = [self.buffer() for _ in numbers[: kept + 1]]
        with ThreadPoolExecutor(1, "zerogap-store") as reader:
            ahead = reader.submit(self.read, numbers[0], buffers[0])
            for i, k in enumerate(numbers):
                part = ahead.result()
                if i + 1 < len(numbers):
                    buffer = buffers[(i + 1) % len(buffers)]
                    ahead = reader.submit(self.read, numbers[i + 1], buffer)
                yield k, part

    def _fill(self, raw: Any, k: int) -> None:
        """Read the bytes of a block."""
        block = self.blocks[k]
        if read_at(self._file, memoryview(raw)[: block.nbytes], block.offset) < block.nbytes:
            raise self._damaged(k, "the file has become shorter")
        large = self.max_memory is not None and self.nbytes > self.max_memory
        if large:  # it would be gone from the page cache before the next pass: leave that to others
            drop_from_page_cache(self._file, block.offset, block.nbytes)

    def _matrix(self, arrays: dict[str, np.ndarray], block: Block) -> Any:
        shape = block.rows, self.n_features
        if not self.sparse:
            return arrays["values"].reshape(shape)
        X = sparse.csr_matrix(shape, dtype=self.dtype)
        # set one by one: the constructor copies arrays that lie in a larger buffer
        X.data, X.indices, X.indptr = arrays["values"], arrays["indices"], arrays["indptr"]
        X.has_canonical_format = True
        return X

    def _check(self, arrays: dict[str, np.ndarray], block: Block) -> None:
        """Refuse what a kernel would stumble over, even if the checksum is right."""
        if self.sparse and arrays["indptr"][-1] != block.stored:
            raise ValueError("its rows do not end with its values")
        rows: Any = as_rows(self._matrix(arrays, block))
        if self.sparse and block.stored and not np.shares_memory(rows.data, arrays["values"]):
            raise ValueError("its column indices do not increase along a row")
        y, weight = arrays["y"], arrays.get("weight", np.ones(1))
        if not np.isfinite(y).all() or not np.isfinite(weight).all() or weight.min() <= 0:
            raise ValueError("it holds impossible targets or weights")
        if self.classes is not None:
            codes = y.astype(np.int64)
            if (codes != y).any() or codes.min() < 0 or codes.max() >= len(self.classes):
                raise ValueError("it holds codes of classes that do not exist")

    def _damaged(self, k: int, what: str) -> StoreError:
        return StoreError(f"{self.path}: block {k} is damaged: {what}; convert the source again")


def _reopen(path: Path, max_memory: int | None, fingerprint: str) -> Store:
    """Open the store that another process had open."""
    store = Store(path, max_memory)
    if store.fingerprint != fingerprint:
        raise StoreError(f"{path}: has been replaced by another store meanwhile")
    return store

"""Where the arrays of a block lie."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np

ALIGNMENT = 64  # bytes: a cache line


class Block(NamedTuple):
    """Some rows of a store.

    Attributes
    ----------
    rows, stored : int
        Number of rows, and of values stored for them.
    start : int
        How many rows the blocks before it have.
    nbytes, offset : int
        Its size and place in the file.
    crc32 : int
    """

    rows: int
    stored: int
    start: int
    nbytes: int
    offset: int
    crc32: int


class Place(NamedTuple):
    """An array inside a block: its type, its length and where it begins."""

    name: str
    dtype: np.dtype
    size: int
    offset: int


@dataclass(frozen=True)
class Layout:
    """Which arrays a block has.

    values, of dense rows or of CSR rows with their indices and indptr; y; weight if there are
    sample weights; key, which orders the rows, while a store is being written.
    """

    sparse: bool
    dtype: np.dtype
    weighted: bool
    keyed: bool = False

    def places(self, rows: int, stored: int) -> Iterator[Place]:
        """Yield the arrays of a block in their order."""
        sizes = {"values": (self.dtype.newbyteorder("<"), stored)}
        if self.sparse:
            sizes |= {"indices": (np.dtype("<i4"), stored), "indptr": (np.dtype("<i4"), rows + 1)}
        sizes["y"] = np.dtype("<f8"), rows
        if self.weighted:
            sizes["weight"] = np.dtype("<f8"), rows
        if self.keyed:
            sizes["key"] = np.dtype("<u8"), rows
        offset = 0
        for name, (dtype, size) in sizes.items():
            yield Place(name, dtype, size, offset)
            offset += aligned(size * dtype.itemsize)

    def nbytes(self, rows: int, stored: int) -> int:
        """Return the size of a block."""
        return sum(aligned(p.size * p.dtype.itemsize) for p in self.places(rows, stored))

    def views(self, raw: np.ndarray, rows: int, stored: int) -> dict[str, np.ndarray]:
        """Return the arrays of a block that was read."""
        return {
            p.name: np.frombuffer(raw, p.dtype, p.size, p.offset)
            if p.size
            else np.empty(0, p.dtype)
            for p in self.places(rows, stored)
        }

    def write(self, file: BinaryIO, arrays: dict[str, np.ndarray]) -> tuple[int, int]:
        """Append a block to a file; return its size and checksum."""
        size = crc = 0
        rows, stored = len(arrays["y"]), arrays["values"].size
        for name, dtype, _, _ in self.places(rows, stored):
            raw: Any = np.ascontiguousarray(arrays[name], dtype).reshape(-1).view(np.uint8)
            padding = bytes(aligned(raw.nbytes) - raw.nbytes)
            for piece in (raw, padding):
                file.write(piece)
                crc = zlib.crc32(piece, crc)
                size += len(piece)
        return size, crc


def aligned(size: int) -> int:
    """Return the next multiple of 64 bytes."""
    return -size // ALIGNMENT * -ALIGNMENT


def aligned_buffer(size: int) -> np.ndarray:
    """Return bytes in memory that begin at a multiple of 64."""
    raw = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]

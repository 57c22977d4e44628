"""Numbers for each row, on disk."""

from __future__ import annotations

import math
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

_ROWS_PER_PIECE = 1 << 17  # a megabyte of numbers


def nameless_file(folder: Any) -> Any:
    """Return an open file without a name in a folder: it is deleted when it is closed."""
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError:  # a store that one may only read
        return tempfile.TemporaryFile()


class Column:
    """Numbers for each row in a nameless file, read and written by slices as an array is."""

    def __init__(self, shape: tuple[int, ...], folder: Any) -> None:
        self.shape = shape
        self._width = 8 * math.prod(shape[1:])
        self._file = nameless_file(folder)
        weakref.finalize(self, self._file.close)
        self._file.truncate(shape[0] * self._width)

    def pieces(self) -> Iterator[np.ndarray]:
        """Yield all numbers, some after others."""
        for start in range(0, len(self), _ROWS_PER_PIECE):
            yield self[start : min(start + _ROWS_PER_PIECE, len(self))]

    def fill(self, file: BinaryIO) -> int:
        """Take all numbers from a file; return their checksum."""
        checksum = 0
        for start in range(0, len(self), _ROWS_PER_PIECE):
            stop = min(start + _ROWS_PER_PIECE, len(self))
            content = file.read((stop - start) * self._width)
            values = np.frombuffer(content).reshape(-1, *self.shape[1:])
            if not np.isfinite(values).all():
                raise ValueError("there are values that are no numbers")
            self[start:stop] = values
            checksum = zlib.crc32(content, checksum)
        return checksum

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        values = np.empty((rows.stop - rows.start, *self.shape[1:]))
        self._file.seek(rows.start * self._width)
        self._file.readinto(values.reshape(-1).view(np.uint8).data)
        return values

    def __setitem__(self, rows: slice, values: np.ndarray) -> None:
        self._file.seek(rows.start * self._width)
        self._file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)

"""Numbers for each row, on disk."""

from __future__ import annotations

import math
import tempfile
import weakref
from typing import Any

import numpy as np


class Column:
    """Numbers for each row in a nameless file, read and written by slices as an array is."""

    def __init__(self, shape: tuple[int, ...], folder: Any) -> None:
        self.shape = shape
        self._width = 8 * math.prod(shape[1:])
        try:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError:  # a store that one may only read
            self._file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._file.truncate(shape[0] * self._width)

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

"""Shapes of texts: each digit as 0.  A column of a million prices has some ten of them.

What a text means is told by its shape, once for each, and its digits are then read all at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

EXACT_DIGITS = 15  # whole numbers of so many digits are doubles
_TO_SHAPE = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else byte for byte in range(256))


class Shaped(NamedTuple):
    """Texts taken apart.

    Attributes
    ----------
    shapes : pyarrow array of strings
        Those that occur.
    codes : int array
        The place of each text's own among them.
    content, starts : arrays
        Bytes of all texts, and where each text begins.
    """

    shapes: Any
    codes: np.ndarray
    content: np.ndarray
    starts: np.ndarray

    def groups(self, wanted: np.ndarray) -> Iterator[tuple[int, str, np.ndarray]]:
        """Yield the number of each wanted shape, the shape, and its texts."""
        number = len(self.shapes)
        narrow = self.codes.astype(np.uint16) if number <= 1 << 16 else self.codes
        order = np.argsort(narrow, kind="stable")
        ends = np.cumsum(np.bincount(self.codes, minlength=number))
        for k in np.flatnonzero(wanted):
            yield int(k), self.shapes[int(k)].as_py(), order[ends[k - 1] if k else 0 : ends[k]]

    def whole(self, texts: np.ndarray, places: Sequence[int]) -> np.ndarray:
        """Return, as a number, the digits that texts of one shape have at these bytes."""
        starts, value = self.starts[texts], np.zeros(len(texts), dtype=np.int64)
        for place in places:
            value *= 10
            value += self.content[starts + place] - ord("0")
        return value


def shaped(texts: Any) -> Shaped:
    """Take a pyarrow array of strings, none of them missing, apart."""
    import pyarrow as pa

    texts = pa.concat_arrays([texts])  # begins at its own first byte, whatever it was a slice of
    _, offsets, content = texts.buffers()
    raw = b"" if content is None else content.to_pybytes()
    plain = pa.py_buffer(raw.translate(_TO_SHAPE))
    coded = pa.StringArray.from_buffers(len(texts), offsets, plain).dictionary_encode()
    starts = (
        np.frombuffer(offsets, dtype=np.int32)[: len(texts)]
        if len(texts)
        else np.empty(0, np.int32)
    )
    bytes_ = np.frombuffer(raw, dtype=np.uint8)
    return Shaped(coded.dictionary, coded.indices.to_numpy(), bytes_, starts.astype(np.int64))


def digits(shape: str, begin: int = 0, end: int | None = None) -> list[int]:
    """Return the bytes of a shape's digits, those of some of its characters alone."""
    first = len(shape[:begin].encode())
    return [first + k for k, byte in enumerate(shape[begin:end].encode()) if byte == ord("0")]

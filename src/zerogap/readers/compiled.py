"""Large tables of text, cut into cells by compiled code.

It reads what most large files hold: lines of UTF-8 with the same number of cells, in which numbers
are plain.  Whatever else there is, also how wrong cells are told, is left to pyarrow.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from zerogap.readers import lines
from zerogap.readers.cells import MISSING_TEXTS
from zerogap.readers.large import Unfit

_MOST_TEXT = 1 << 27  # bytes of memory for texts: columns times the size of a piece
_MOST_WORKERS = 4  # threads, more than which find nothing to do
_LONGEST_LINE = 1 << 20  # bytes, as pyarrow reads in pieces


class Cutter:
    """What cuts pieces of text into columns of these types; Unfit if it cannot.

    Parameters
    ----------
    dialect : Dialect
    types : dict
        Types of all columns.
    missing : tuple of str
        Texts that mean that there is no value, besides the usual ones.
    """

    def __init__(self, dialect: Any, types: dict[str, Any], missing: tuple[str, ...]) -> None:
        import pyarrow as pa

        signs = [sign.encode() for sign in (dialect.sep, dialect.quote, dialect.decimal)]
        plain = dialect.encoding in ("utf-8", "utf-8-sig") and all(len(s) == 1 for s in signs)
        if not plain or dialect.below:
            raise Unfit
        self.header = dialect.skip_lines, dialect.header
        self.signs = tuple(sign[0] for sign in signs)
        self.types = types
        self.kinds = np.zeros(len(types), dtype=np.int8)
        for k, type_ in enumerate(types.values()):
            if pa.types.is_integer(type_):
                self.kinds[k] = lines.WHOLE
            else:
                self.kinds[k] = lines.NUMBER if pa.types.is_floating(type_) else lines.TEXT
        self.is_text = self.kinds == lines.TEXT
        self.is_number = (self.kinds == lines.NUMBER) | (self.kinds == lines.WHOLE)
        self.slots = np.where(self.is_text, self.is_text.cumsum(), self.is_number.cumsum()) - 1
        texts = [text.encode() for text in (*MISSING_TEXTS, *missing)]
        self.absent = np.frombuffer(b"".join(texts), dtype=np.uint8)
        self.ends = np.cumsum([len(text) for text in texts])
        self.missing = pa.array([*MISSING_TEXTS, *missing], pa.string())

    def tables(self, stream: Any) -> Iterator[Any]:
        """Yield the rows of a stream, some after others; Unfit where the next one does not fit.

        Threads cut pieces that end with lines.  Where such an end is one inside a cell, the rest
        of the text is cut by one thread, each piece beginning where the one before has ended.
        """
        text = self._after_header(stream)
        ahead: deque[tuple[bytes, Future[Any]]] = deque()
        workers, piece = min(_MOST_WORKERS, os.cpu_count() or 1), b"more"
        with ThreadPoolExecutor(workers) as pool:
            try:
                while piece or text or ahead:
                    while (piece or text) and len(ahead) <= workers:
                        piece = piece and stream.read()
                        text, whole = _split(text + piece, last=not piece)
                        if len(text) > _LONGEST_LINE:
                            raise Unfit
                        ahead.append((whole, pool.submit(self.cut, whole)))
                    cut, job = ahead.popleft()
                    table, place = job.result()
                    if table is not None:
                        yield table
                    if place < len(cut):
                        if not place and (not piece or len(cut) > _LONGEST_LINE):
                            raise Unfit
                        workers = 0  # one piece after the other
                        text = b"".join((cut[place:], *(later for later, _ in ahead), text))
                        ahead.clear()
            finally:
                pool.shutdown(cancel_futures=True)

    def _after_header(self, stream: Any) -> bytes:
        """Return the beginning of the text after the lines above the first row."""
        text, place = stream.read(), 0
        skip, header = self.header
        if text.startswith(b"\xef\xbb\xbf") and not skip and not header:
            place = 3
        for k in range(skip + header):
            before, place = place, text.find(b"\n", place) + 1
            line = text[before:place].strip()
            if not place or (k == skip and (not line or line.count(b'"') % 2)):
                raise Unfit
        return text[place:]

    def cut(self, text: bytes) -> tuple[Any, int]:
        """Return the rows of whole lines, None if there are none, and the place after them."""
        import pyarrow as pa

        signs, texts = np.frombuffer(text, dtype=np.uint8), int(self.is_text.sum())
        if texts * len(text) > _MOST_TEXT:
            raise Unfit
        most = lines.count_ends(signs)
        numbers = np.empty((int(self.is_number.sum()), most))
        gaps = np.zeros(len(numbers), dtype=bool)
        codes = np.empty((texts, most), dtype=np.int32)
        table = np.full((texts, 2 << most.bit_length()), -1, dtype=np.int32)
        starts = np.zeros((texts, most + 2), dtype=np.int32)
        found = np.empty((texts, len(text)), dtype=np.uint8)
        rows, place, unfit = lines.cut(
            signs,
            self.signs,
            self.kinds,
            self.slots,
            self.absent,
            self.ends,
            lines.powers_of_five(),
            numbers,
            gaps,
            codes,
            table,
            starts,
            found,
        )
        if unfit:
            raise Unfit
        if not rows:
            return None, place
        columns = {}
        for k, (name, type_) in enumerate(self.types.items()):
            slot = self.slots[k]
            if self.is_number[k]:
                columns[name] = _numbers(numbers[slot, :rows], bool(gaps[slot]), type_)
            elif self.is_text[k]:
                columns[name] = self._texts(codes[slot, :rows], starts[slot], found[slot], type_)
        return pa.table(columns), place

    def _texts(self, codes: np.ndarray, starts: np.ndarray, found: np.ndarray, type_: Any) -> Any:
        """Return a column of text, or of what that is cast to."""
        import pyarrow as pa
        import pyarrow.compute as pc

        size = int(codes.max()) + 1
        begins, content = starts[: size + 1].copy(), found[: starts[size]].tobytes()
        buffers = [None, pa.py_buffer(begins), pa.py_buffer(content)]
        texts = pa.Array.from_buffers(pa.string(), size, buffers)
        try:
            texts.validate(full=True)  # UTF-8
            gone = pc.is_in(texts, self.missing).to_numpy(zero_copy_only=False)
            values = texts if _is_text(type_) else texts.filter(~gone).cast(type_)
        except pa.ArrowInvalid:
            raise Unfit from None
        if not _is_text(type_):
            places = (~gone).cumsum() - 1
            absent = gone[codes]
            taken = pa.array(places.astype(np.int32)[codes], mask=absent)
            return values.take(taken)
        mask = gone[codes] if gone.any() else None
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), values)


def _split(text: bytes, last: bool) -> tuple[bytes, bytes]:
    """Return what follows the last end of a line, and what comes before; all ends, if `last`."""
    if last:
        return b"", text if text.endswith(b"\n") or not text else text + b"\n"
    stop = text.rfind(b"\n") + 1
    return text[stop:], text[:stop]


def _numbers(values: np.ndarray, gaps: bool, type_: Any) -> Any:
    """Return a column of numbers; NaN are nulls."""
    import pyarrow as pa

    mask = np.isnan(values) if gaps else None
    if pa.types.is_integer(type_):
        values = (values if mask is None else np.where(mask, 0.0, values)).astype(np.int64)
    return pa.array(values, mask=mask)


def _is_text(type_: Any) -> bool:
    from pyarrow import types

    return types.is_dictionary(type_) or types.is_string(type_)

"""svmlight and LIBSVM text: `label [qid:n] index:value index:value ... [# comment]`, a row a line.

Strict: indices increase along a row, numbers are finite decimals, and whatever does not fit is
refused with its line and column (of bytes, from 1).  Query numbers (qid) and comments, of whatever
bytes, are skipped; empty lines are no rows.  Lines end in LF or CRLF, the last one also without;
a byte order mark of UTF-8 is skipped.  Numbers are rounded as Python's float() rounds them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from zerogap.readers import lines
from zerogap.readers.files import DataError, Stream

_LONGEST_LINE = 1 << 26  # bytes: all of a line is in memory
_LARGEST_INDEX = 2**31 - 1  # indices are kept in 32 bits
_FEATURES_PER_ENTRY = 1000  # more columns than this for each entry: a typing error, not data
_FEW_FEATURES = 1 << 20  # which nobody minds, however few the entries

_NUMBER = re.compile(rb"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_TOKEN = re.compile(rb"[^ \t\n#]{0,40}")


def read_svmlight(
    stream: Stream, n_features: int | None, zero_based: bool, labelled: bool
) -> tuple[Any, np.ndarray | None]:
    """Return CSR matrix and labels, None if not `labelled` and the first row has none."""
    rows = _Rows(stream.max_bytes, n_features, zero_based, labelled)
    for text in rows.whole_lines(stream):
        rows.add(text)
    rows.check_width()
    X, targets = rows.take()
    return X, targets if rows.labelled else None


def svmlight_pieces(
    stream: Stream, n_features: int | None, zero_based: bool, position: dict[str, Any] | None
) -> Iterator[tuple[Any, np.ndarray, dict[str, Any]]]:
    """Yield CSR matrix, labels and the position after them, for some lines after others.

    A matrix has the columns seen so far.  `position` is one that an earlier piece came with.
    """
    rows = _Rows(stream.max_bytes, n_features, zero_based, labelled=True)
    rows.go_on(position or {})
    stream.skip(rows.bytes)
    for text in rows.whole_lines(stream):
        rows.add(text)
        if rows.state[0]:
            yield *rows.take(), rows.position()
    rows.check_width()


class _Rows:
    """Rows so far, in arrays that grow by halves."""

    def __init__(self, max_bytes: int, n_features: int | None, zero_based: bool, labelled: bool):
        self.max_bytes, self.n_features, self.first = max_bytes, n_features, 1 - zero_based
        # rows, entries, columns, place of the last column, labels: what the kernel carries on
        self.state = np.array([0, 0, 0, 0, lines.LABELLED if labelled else lines.OPTIONAL])
        self.go_on({})
        self._empty()

    def go_on(self, position: dict[str, Any]) -> None:
        """Begin at a position: what is known of the lines before it."""
        self.bytes, self.lines = position.get("bytes", 0), position.get("lines", 0)
        self.taken = position.get("rows", 0), position.get("entries", 0)
        self.state[2], self.widest = position.get("columns", 0), position.get("widest", "")

    def position(self) -> dict[str, Any]:
        """Return where the next rows begin, as JSON."""
        (rows, entries), columns = self.taken, int(self.state[2])
        names = {"bytes": self.bytes, "lines": self.lines, "rows": rows, "entries": entries}
        return names | {"columns": columns, "widest": self.widest}

    def _empty(self) -> None:
        self.targets, self.indptr = np.empty(0), np.zeros(1, dtype=np.int64)
        self.values, self.indices = np.empty(0), np.empty(0, dtype=np.int32)
        self.state[:2] = 0

    @property
    def labelled(self) -> bool:
        return self.state[4] != lines.UNLABELLED

    def whole_lines(self, stream: Stream) -> Iterator[bytes]:
        """Yield the text in pieces that end with a line."""
        rest = [] if self.bytes else [stream.read(3)]  # of the line before the piece
        if rest == [codecs.BOM_UTF8]:
            rest, self.bytes = [], 3
        while piece := stream.read():
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield b"".join((*rest, piece[:cut]))
                rest = []
            rest.append(piece[cut:])
            if sum(map(len, rest)) > _LONGEST_LINE:
                raise DataError(f"line {self.lines + 1}: longer than {_LONGEST_LINE} bytes")
        if any(rest):
            yield b"".join((*rest, b"\n"))

    def add(self, text: bytes) -> None:
        """Add the rows of some whole lines."""
        rows, entries, columns = (int(s) for s in self.state[:3])
        signs = np.frombuffer(text, dtype=np.uint8)
        ends, pairs = (int(np.count_nonzero(signs == sign)) for sign in b"\n:")
        self._resize(rows + ends, entries + pairs, spare=2)
        fault, place = lines.parse(
            signs,
            self.first,
            self.n_features or _LARGEST_INDEX,
            lines.powers_of_five(),
            self.targets.view(np.uint64),
            self.indptr,
            self.indices,
            self.values.view(np.uint64),
            self.state,
        )
        self._round(text, self.targets[rows : self.state[0]])
        self._round(text, self.values[entries : self.state[1]])
        if fault != lines.FINE:
            raise DataError(f"{self._where(text, place)}: {self._explain(fault, text, place)}")
        if self.state[2] > columns:
            self.widest = self._where(text, int(self.state[3]))
        self.lines += text.count(b"\n")
        self.bytes += len(text)
        if 16 * self.state[0] + 12 * self.state[1] > self.max_bytes:
            raise DataError(
                f"line {self.lines}: the rows so far need more than "
                f"max_bytes={self.max_bytes} bytes"
            )

    def check_width(self) -> None:
        """Refuse a source without rows, or with more columns than its entries can explain."""
        rows, entries = (int(s) + t for s, t in zip(self.state, self.taken, strict=False))
        columns = int(self.state[2])
        if rows == 0:
            raise DataError("has no rows")
        if self.n_features is None and columns > max(_FEW_FEATURES, _FEATURES_PER_ENTRY * entries):
            raise DataError(
                f"{self.widest}: index {columns - 1 + self.first} is too large for {entries} "
                f"entries: correct it, or give n_features if it is right"
            )
        if not (self.n_features or columns):
            raise DataError("has rows without entries only: give n_features if that is right")

    def take(self) -> tuple[Any, np.ndarray]:
        """Return the rows as a CSR matrix, and their labels; others can follow them."""
        from scipy import sparse

        rows, entries, columns = (int(s) for s in self.state[:3])
        self._resize(rows, entries)
        shape = rows, self.n_features or max(columns, 1)
        X = sparse.csr_matrix((self.values, self.indices, self.indptr), shape=shape)
        X.has_canonical_format = True  # increasing indices: no need to look again
        targets = self.targets
        self.taken = self.taken[0] + rows, self.taken[1] + entries
        self._empty()
        return X, targets

    def _resize(self, rows: int, entries: int, spare: int = 0) -> None:
        """Make room for rows and entries; with `spare`, for 1/spare more, and never less room."""
        wanted = (self.targets, rows), (self.indptr, rows + 1)
        for array, size in (*wanted, (self.indices, entries), (self.values, entries)):
            if not spare:
                array.resize(size, refcheck=False)
            elif len(array) < size:
                array.resize(size + size // spare, refcheck=False)

    def _round(self, text: bytes, numbers: np.ndarray) -> None:
        """Let Python round the numbers that the kernel has left as NaN with their place."""
        for k in np.flatnonzero(np.isnan(numbers)):
            place = int(numbers.view(np.uint64)[k]) & lines.PLACE_BITS
            numbers[k] = float(_NUMBER.match(text, place)[0])  # type: ignore[index]
            if np.isinf(numbers[k]):
                raise DataError(f"{self._where(text, place)}: {_found(text, place)} is too large")

    def _where(self, text: bytes, place: int) -> str:
        line = self.lines + text.count(b"\n", 0, place) + 1
        column = place - text.rfind(b"\n", 0, place)
        return f"line {line}, column {column}"

    def _explain(self, fault: int, text: bytes, place: int) -> str:
        found = _found(text, place)
        if fault == lines.BAD_LABEL and "," in found:
            return f"several labels, {found}: only one is supported; of CSV files, give the format"
        if fault == lines.BAD_INDEX and re.match("'0+:", found):
            return f"index 0 in {found}: indices begin with 1 unless zero_based is set"
        if fault == lines.BAD_INDEX:
            most = self.n_features or _LARGEST_INDEX
            return f"the index of {found} is beyond the {most} features there can be"
        return {
            lines.BAD_LABEL: f"expected a finite number as label, found {found}",
            lines.NO_LABEL: f"expected a label before {found}",
            lines.EMPTY: "an empty line among rows without labels: write a label, such as 0",
            lines.BAD_PAIR: f"expected index:value with a whole index, found {found}",
            lines.BAD_ORDER: f"the index of {found} is not larger than the one before it",
            lines.BAD_VALUE: f"expected a finite decimal number, found {found}",
        }[fault]


def _found(text: bytes, place: int) -> str:
    """Return the token at a place as quoted, printable text."""
    return repr(_TOKEN.match(text, place)[0])[1:]  # type: ignore[index]

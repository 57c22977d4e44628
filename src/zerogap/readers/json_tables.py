"""Tables in JSON: a line or an array element for each row, or one object that holds a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from zerogap.io.nesting import Rise
from zerogap.readers.files import DataError
from zerogap.readers.sheets import MOST_CELLS, as_array

_DEEPEST = 500  # lists and objects in others that are no doubt harmless: pyarrow crashes at 20 000
_BAD, _NO_JSON = object(), json.JSONDecodeError
_BLOCK = 1 << 23  # bytes of text that pyarrow reads at a time: no line may be longer


def read_json(opened: Callable[[], Any], skips: bool) -> tuple[Any, int]:
    """Return the table of a file that `opened` opens, and how many lines were left out.

    `skips` tells to leave lines out that are no JSON.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    with opened() as stream:
        start = stream.start().lstrip(b"\xef\xbb\xbf \t\r\n")
        if not start.startswith((b"[", b"{")):  # pyarrow crashes
            raise DataError("is no file of JSON lines: the first one must begin with {")
        if start.startswith(b"{"):
            how = arrow_json.ReadOptions(block_size=_BLOCK, use_threads=False)
            try:
                found = arrow_json.read_json(pa.PythonFile(_Shallow(stream), mode="r"), how)
            except (pa.ArrowInvalid, _TooDeep):  # also of a column that holds numbers and text
                found = None
            if found is not None and (found.num_rows > 1 or not _is_nested(found)):
                return found, 0
    with opened() as stream:
        text = b"".join(iter(stream.read, b"")).decode("utf-8-sig")
    try:
        whole = _parsed(text)
    except ValueError as error:
        if start.startswith(b"["):
            raise DataError(f"is no JSON: {error}") from None
        lines = list(enumerate(text.splitlines(), 1))
        whole = [row for row in (_object(*pair, skips) for pair in lines) if row is not _BAD]
        return _of_rows(whole), len(lines) - len(whole)
    return _of_rows(whole if isinstance(whole, list) else _rows_of(whole)), 0


class _TooDeep(Exception):
    """The text may be nested so deeply that pyarrow, which calls itself, ends the process."""


class _Shallow:
    """A stream for pyarrow, as long as nothing in it is nested deeply."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self.stream, self.rise = stream, Rise()

    def read(self, size: int) -> bytes:
        piece: bytes = self.stream.read(size)
        self.rise.add(piece)
        if self.rise.most > _DEEPEST:
            raise _TooDeep
        return piece


def _is_nested(table: Any) -> bool:
    """Tell whether one object holds a list, or nothing but objects: it may be a table."""
    from pyarrow import types

    kinds = table.schema.types
    return any(types.is_list(kind) for kind in kinds) or all(map(types.is_struct, kinds))


def _object(number: int, line: str, skips: bool) -> Any:
    """Return the object of a line, None of an empty one, _BAD of one to leave out."""
    try:
        plain = line.strip().removesuffix(",")  # as in arrays whose brackets were cut off
        return _parsed(plain) if plain else None
    except ValueError as error:
        if skips:
            return _BAD
        what = f"{error.msg}, column {error.colno}" if isinstance(error, _NO_JSON) else error
        raise DataError(
            f"line {number}: is no JSON: {what}; --skip-bad-lines leaves such lines out"
        ) from None


def _parsed(text: str) -> Any:
    """Return what a text of JSON holds; ValueError for anything else."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def _rows_of(whole: dict[str, Any]) -> list[Any]:
    """Return the rows of one object that holds a table, of itself if it holds none.

    It may hold names and rows, as pandas writes with orient="split", a list of objects, lists of
    cells, one for each column, or objects by the names of columns or of rows.
    """
    if whole and all(isinstance(part, dict) for part in whole.values()):
        return _rows_of_objects(whole)
    if isinstance(whole.get("columns"), list) and isinstance(whole.get("data"), list):
        names, rows = whole["columns"], whole["data"]
        if any(isinstance(name, list | dict) for name in names):
            raise DataError('is a table in JSON whose "columns" are not all names')
        if not all(isinstance(row, list) for row in rows):
            raise DataError('is a table in JSON whose "data" are not lists of cells, one for a row')
        names = ["" if name is None else str(name) for name in names]
        return [dict(zip(names, row, strict=False)) for row in rows]
    lists = {name: cells for name, cells in whole.items() if isinstance(cells, list)}
    rows = [cells for cells in lists.values() if cells and isinstance(cells[0], dict)]
    if len(rows) == 1:
        return list(rows[0])
    if len(lists) == len(whole) and len({len(cells) for cells in lists.values()}) == 1:
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return [whole]


def _rows_of_objects(whole: dict[str, Any]) -> list[Any]:
    """Return the rows of an object of columns, whose names of rows are alike, or of rows.

    The columns are what has the fewer names, and no numbers for names.
    """
    parts = list(whole.values())
    names = dict.fromkeys(name for part in parts for name in part)
    numbered = [all(name.isdecimal() for name in own) for own in (whole, names)]
    by_column = not numbered[0] and (numbered[1] or len(names) > len(whole))
    if by_column and all(part.keys() == names.keys() for part in parts):
        return [{name: part[row] for name, part in whole.items()} for row in names]
    return parts if len(parts) > 1 else [whole]


def _of_rows(rows: list[Any]) -> Any:
    """Return objects, one for each row, as a table."""
    import pyarrow as pa

    rows = [row for row in rows if row is not None]
    if not all(isinstance(row, dict) for row in rows):
        raise DataError("is a JSON array of something else than objects, one for each row")
    names = list(dict.fromkeys(name for row in rows for name in row))
    if len(rows) * len(names) > MOST_CELLS:
        raise DataError(
            f"has {len(rows):,} rows of {len(names):,} columns in all, more than {MOST_CELLS:,} "
            f"cells: save the table as Parquet or CSV"
        )
    return pa.table({name: _column(name, rows) for name in names})


def _column(name: str, rows: list[Any]) -> Any:
    """Return the cells of one name."""
    try:
        name.encode()
        return as_array([row.get(name) for row in rows])
    except UnicodeEncodeError:
        raise DataError(f"column {name!r} holds half of a character, which is no text") from None
    except (OverflowError, ValueError) as error:
        raise DataError(f"column {name!r} cannot be read: {error}") from None

"""Sheets of spreadsheets (.xlsx) as pyarrow tables."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from zerogap.io.nesting import Rise
from zerogap.readers.dialect import refuse_title
from zerogap.readers.files import DataError, Stream
from zerogap.readers.options import TableOptions

MOST_CELLS = 1 << 26  # of a sheet: a gigabyte or more of Python objects
_MOST_PACKED = 100  # bytes that become one: sheets of one text throughout have 24
_HARMLESS = 1 << 20  # bytes when unpacked: of short parts, the beginnings are most
_DEEPEST = 500  # tags in others; sheets have 6, and 170 more look so in a window
_PIECE = 1 << 20  # bytes of a part looked at together
_LOOKED_AT = 50  # rows from which a title above the table is told
_OVERLAP = 1 << 12  # bytes of a piece that are looked at again: no tag is longer
_MERGED = re.compile(rb'mergeCell [^>]*?ref="([A-Z]{1,3})([0-9]{1,7}):([A-Z]{1,3})([0-9]{1,7})"')
_UNCOMPUTED = re.compile(rb"</f>(?:<v ?/>|<v></v>)?</c>")


class Sheet(NamedTuple):
    """A sheet.

    Attributes
    ----------
    table : pyarrow table
    rows : list of int
        Number of each row in the sheet, from 1.
    sheets : tuple of str
        The sheets, if there are several and none was named.
    notes : list of str
        What the user ought to know.
    """

    table: Any
    rows: list[int]
    sheets: tuple[str, ...]
    notes: list[str]


def read_sheet(stream: Stream, options: TableOptions) -> Sheet:
    """Return a sheet.

    Cells that hold formulas have the values that were last computed, and those below the first of
    merged ones the value of that.  Empty rows are left out.
    """
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError("reading xlsx needs openpyxl: pip install 'zerogap[cli]'") from error
    content = io.BytesIO(b"".join(iter(stream.read, b"")))
    try:
        _check_parts(content, stream.max_bytes)
        return _read(openpyxl.load_workbook(content, read_only=True, data_only=True), options)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # openpyxl lets those of zipfile, XML and of its own types through
        raise DataError(f"is no spreadsheet that can be read: {error}") from error


def _check_parts(content: io.BytesIO, max_bytes: int) -> None:
    """Refuse parts that are far larger when unpacked, or nested as no sheet is."""
    with zipfile.ZipFile(content) as archive:
        parts = archive.infolist()
        packed = sum(part.compress_size for part in parts)
        size = sum(part.file_size for part in parts)
        if size > min(max_bytes, _HARMLESS + _MOST_PACKED * packed):
            raise DataError(
                f"is a spreadsheet of {packed:,} bytes that are {size:,} when unpacked, more than "
                f"any should be: save the sheet as CSV"
            )
        for part in parts:
            with archive.open(part) as file:
                tags = Rise()
                while piece := file.read(_PIECE):
                    plain = piece.translate(None, b"[]{}").replace(b"</", b"]")
                    tags.add(plain.replace(b"/>", b"]").replace(b"<", b"["))
            if tags.most > _DEEPEST:
                raise DataError("is a spreadsheet whose tags are nested as those of none are")


def _read(book: Any, options: TableOptions) -> Sheet:
    names = book.sheetnames
    several = tuple(names) if options.sheet is None and len(names) > 1 else ()
    if options.sheet is not None and options.sheet not in names:
        raise DataError(f"has no sheet {options.sheet!r}; its sheets are {', '.join(names)}")
    sheet = book[options.sheet or names[0]]
    merged, notes = _looked_through(sheet, book)
    whole = enumerate(_unmerged(sheet.iter_rows(values_only=True), merged), 1)
    rows: Any = islice(whole, options.skip_lines, None)
    if not options.skip_lines:
        first = list(islice(rows, _LOOKED_AT))
        texts = [["" if cell is None else str(cell) for cell in row] for _, row in first]
        refuse_title(texts, "row", list(range(len(texts))))
        rows = chain(first, rows)
    number, header = next((pair for pair in rows if _is_filled(pair[1])), (0, ()))
    width = max((k + 1 for k, cell in enumerate(header) if cell is not None), default=0)
    if not width:
        rest = f"; its sheets are {', '.join(names)} (--sheet)" if several else ""
        raise DataError(f"has a sheet without cells{rest}")
    if options.header is False or options.names:
        rows = chain([(number, header)], rows)
        header = options.names or ("",) * width
    rows = islice(rows, options.skip_below, None)
    columns: list[list[Any]] = [[] for _ in range(width)]
    numbers = _fill(columns, rows, width)
    table = _table([str(name).strip() for name in header[:width]], columns)
    return Sheet(table, numbers, several, notes)


def _is_filled(row: tuple[Any, ...]) -> bool:
    return any(cell is not None for cell in row)


def _looked_through(sheet: Any, book: Any) -> tuple[dict[int, list[tuple[int, int]]], list[str]]:
    """Return cells that are merged with those below, and what there is to say.

    The former by row, as columns and last rows, counted from 1; openpyxl does not tell while it
    reads row by row.
    """
    merged: dict[int, list[tuple[int, int]]] = {}
    found, uncomputed, before = set[tuple[bytes, ...]](), 0, b""
    with book._archive.open(sheet._worksheet_path) as file:
        while piece := file.read(_PIECE):
            text = before + piece
            found.update(match.groups() for match in _MERGED.finditer(text))
            uncomputed += len(_UNCOMPUTED.findall(text)) - len(_UNCOMPUTED.findall(before))
            before = text[-_OVERLAP:]
    for letters, first, _, last in found:
        if int(first) < int(last):
            column = sum(26**k * (sign - 64) for k, sign in enumerate(reversed(letters)))
            merged.setdefault(int(first), []).append((column, int(last)))
    told = f"{uncomputed:,} formulas have no values in the file, which a spreadsheet program writes"
    return merged, [told] if uncomputed else []


def _unmerged(rows: Any, merged: dict[int, list[tuple[int, int]]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows in which merged cells have the value of the first one."""
    values: dict[int, tuple[Any, int]] = {}  # by column: the value and its last row
    for number, row in enumerate(rows, 1):
        values = {column: pair for column, pair in values.items() if pair[1] >= number}
        if values:
            row = [*row]
            for column, (value, _) in values.items():
                if column <= len(row) and row[column - 1] is None:
                    row[column - 1] = value
        for column, last in merged.get(number, ()):
            if column <= len(row):
                values[column] = (row[column - 1], last)
        yield tuple(row)


def _fill(columns: list[list[Any]], rows: Any, width: int) -> list[int]:
    """Append rows that are not empty; return their numbers."""
    numbers = []
    for number, row in rows:
        cells = (*row[:width], *([None] * (width - len(row))))
        if _is_filled(cells):
            numbers.append(number)
            for cell, column in zip(cells, columns, strict=True):
                column.append(cell)
        if len(numbers) * width > MOST_CELLS:
            raise DataError(f"has more than {MOST_CELLS:,} cells: save the sheet as CSV")
    return numbers


def _table(names: list[str], columns: list[list[Any]]) -> Any:
    import pyarrow as pa

    cleaned = ["" if name == "None" else name for name in names]
    return pa.table([as_array(column) for column in columns], names=cleaned)


def as_array(cells: list[Any]) -> Any:
    """Return cells of one type as such, others as text."""
    import pyarrow as pa

    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int} and max(abs(cell or 0) for cell in cells) < 1 << 62:
        return pa.array(cells, pa.int64())
    if kinds <= {int, float}:
        return pa.array(cells, pa.float64() if kinds else pa.null())
    if kinds == {bool}:
        return pa.array(cells, pa.bool_())
    if kinds & {dict, list}:  # of JSON: columns of them are refused by name
        return pa.array([cell if isinstance(cell, dict | list) else None for cell in cells])
    if kinds == {datetime.timedelta}:
        return pa.array(cells, pa.duration("us"))
    if kinds <= {datetime.datetime, datetime.date}:
        return pa.array([_moment(cell) for cell in cells], pa.timestamp("us"))
    return pa.array([None if cell is None else _text(cell) for cell in cells], pa.string())


def _moment(cell: Any) -> Any:
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        return datetime.datetime.combine(cell, datetime.time())
    return cell


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)

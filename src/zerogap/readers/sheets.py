"""Sheets of spreadsheets (.xlsx) as pyarrow tables."""

from __future__ import annotations

import datetime
import io
import zipfile
from itertools import chain, islice
from typing import Any

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


def read_sheet(stream: Stream, options: TableOptions) -> tuple[Any, int, tuple[str, ...]]:
    """Return a sheet, the number of its first row of data, and the sheets if none was named.

    Cells that hold formulas have the values that were last computed.  Empty rows are left out.
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


def _read(book: Any, options: TableOptions) -> tuple[Any, int, tuple[str, ...]]:
    names = book.sheetnames
    several = tuple(names) if options.sheet is None and len(names) > 1 else ()
    if options.sheet is not None and options.sheet not in names:
        raise DataError(f"has no sheet {options.sheet!r}; its sheets are {', '.join(names)}")
    sheet = book[options.sheet or names[0]]
    rows: Any = islice(sheet.iter_rows(values_only=True), options.skip_lines, None)
    if not options.skip_lines:
        first = list(islice(rows, _LOOKED_AT))
        texts = [["" if cell is None else str(cell) for cell in row] for row in first]
        refuse_title(texts, "row", list(range(len(texts))))
        rows = chain(first, rows)
    number = options.skip_lines
    header: tuple[Any, ...] = ()
    for header in rows:
        number += 1
        if any(cell is not None for cell in header):
            break
    width = max((k + 1 for k, cell in enumerate(header) if cell is not None), default=0)
    if not width:
        rest = f"; its sheets are {', '.join(names)} (--sheet)" if several else ""
        raise DataError(f"has a sheet without cells{rest}")
    columns: list[list[Any]] = [[] for _ in range(width)]
    if options.header is False or options.names:
        for cell, column in zip(header, columns, strict=False):
            column.append(cell)
        header, number = options.names or ("",) * width, number - 1
    _fill(columns, rows, width)
    return _table([str(name).strip() for name in header[:width]], columns), number + 1, several


def _fill(columns: list[list[Any]], rows: Any, width: int) -> None:
    """Append rows that are not empty."""
    for row in rows:
        cells = (*row[:width], *([None] * (width - len(row))))
        if any(cell is not None for cell in cells):
            for cell, column in zip(cells, columns, strict=True):
                column.append(cell)
        if len(columns[0]) * width > MOST_CELLS:
            raise DataError(f"has more than {MOST_CELLS:,} cells: save the sheet as CSV")


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

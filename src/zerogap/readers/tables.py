"""Tables in files, as pyarrow tables: CSV, TSV, Parquet, Arrow, JSON lines and spreadsheets.

A `TableFile` can be read as a whole or some rows after others, as often as needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from zerogap.io.memory import check_room
from zerogap.readers import dialect as dialects
from zerogap.readers import large
from zerogap.readers.cells import MISSING_TEXTS
from zerogap.readers.columnar import (
    as_text,
    parquet_batches,
    parquet_schema,
    read_arrow,
    read_parquet,
)
from zerogap.readers.files import DataError, Stream
from zerogap.readers.json_tables import read_json
from zerogap.readers.large import Retyped
from zerogap.readers.options import TableOptions
from zerogap.readers.reading import CellError
from zerogap.readers.respelling import respelt
from zerogap.readers.sheets import read_sheet

_BLOCK = 1 << 23  # bytes of text that pyarrow reads at a time: no line may be longer
_MOST_CODED = 1 << 16  # texts of a column in a block that are each stored once
PIECE = 1 << 20  # the same where memory is scarce: pyarrow reads 32 ahead
NO_QUOTES = "--quote none takes quotes for letters"
_ROOM = 1 << 26  # bytes for stacks of threads and first blocks: with 15 MB left, pyarrow hung
_NO_NUMBER = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (.*)")
_NO_NAME = re.compile(r"^Unnamed: \d+$")  # as pandas calls the columns of an index
_BAD_ROW = re.compile(r"^CSV parse error: (?:Row #\d+: )?E(.*)")


class TableFile:
    """A table in a file.

    Parameters
    ----------
    opened : callable
        Opens the file, as a context that is a `Stream`, as often as needed.
    kind : str
        Its format.
    options : TableOptions
    decimal : str, optional
        Decimal sign of the training data, for text that does not tell.

    Attributes
    ----------
    opened, as_it_is : callable
        Open the file as pyarrow reads it, and byte by byte.
    names : tuple of str
        Of the columns; all different.
    unnamed : set of str
        Those that have no name in the file.
    guesses : dict of str
        What was guessed of the text: separator, encoding, decimal sign.
    copies : list of str
        Columns whose names in the file another one has.
    coded : set of str
        Columns in which some numbers begin with a zero, as codes do.
    notes : list of str
        What the user ought to know.
    """

    def __init__(
        self,
        opened: Callable[[], Any],
        kind: str,
        options: TableOptions,
        decimal: str | None = None,
    ) -> None:
        self.opened, self.as_it_is, self.kind, self.options = opened, opened, kind, options
        self.guesses: dict[str, str] = {}
        self.notes: list[str] = []
        self.is_short = True  # text that is in memory whole when its dialect is guessed
        self.quoted = False  # whether cells may be quoted, and hold lines then
        self.retyped = False  # whether a column turned out to be text
        self.is_plain = True  # whether compiled code can read the text, as far as it was tried
        self.bad_lines = self.place = 0  # place: bytes of the file that `batches` has read
        self.dialect = dialects.Dialect(decimal=options.decimal or decimal or ".")
        self._whole: Any = None  # of formats that have no other way
        self.rows: list[int] = []  # numbers of those of a sheet
        self.sheets: tuple[str, ...] = ()  # where none was named, and there are several
        self.is_text = kind in ("csv", "tsv")
        with arrow_errors(kind):
            if self.is_text:
                with opened() as stream:
                    sample = _sample(stream)
                    self.quoted = stream.quoted
                short = self.is_short = len(sample) < dialects.SAMPLE
                self.dialect, self.guesses = dialects.guess(sample, short, kind, options, decimal)
                self.quoted |= self.dialect.quote != '"'
                if self.dialect.rules:
                    how = self.dialect.rules, self.dialect.encoding
                    self.opened = respelt(opened, *how)
                given = self.dialect.names
            else:
                given = tuple(self._schema().names)
        dialects.refuse_width(len(given))
        self.names = dialects.told_apart(given, self.notes)
        self.coded = {self.names[k] for k in self.dialect.coded if k < len(self.names)}
        pairs = list(zip(given, self.names, strict=True))
        self.copies = [new for old, new in pairs if old and old != new]
        self.unnamed = {new for old, new in pairs if not old or _NO_NAME.match(old)}

    def table(self, types: dict[str, Any]) -> Any:
        """Return all rows; of text, columns of these names have these types."""
        with arrow_errors(self.kind, self):
            if self.is_text:
                found = large.table(self, types) or self._read_text(types)
            elif self.kind == "parquet":
                with self.opened() as stream:
                    found = read_parquet(stream, PIECE)
            else:
                found = self._loaded()
            if not self.is_text:
                found.validate(full=True)  # offsets and texts, which pyarrow takes on trust
                found = as_text(found, self.options.encoding)
        if found.num_rows == 0:
            raise DataError("has no rows")
        return found.rename_columns(list(self.names))

    def first_types(self) -> dict[str, Any]:
        """Return types of columns, those of text from its first rows."""
        import pyarrow as pa

        with arrow_errors(self.kind, self):
            if not self.is_text:
                own = as_text(self._schema().empty_table(), None).schema.types
                return dict(zip(self.names, own, strict=True))
            from pyarrow import csv

            with self.opened() as stream:
                options = self._csv_options({}, piece=PIECE)
                with csv.open_csv(pa.PythonFile(stream, mode="r"), *options) as reader:
                    types = {field.name: field.type for field in reader.schema}
        for name, type_ in types.items():
            if pa.types.is_null(type_) or pa.types.is_time(type_):
                types[name] = pa.string()
            elif pa.types.is_binary(type_):
                self._not_utf8()
                return self.first_types()
        return types

    def batches(self, types: dict[str, Any], only: list[str] | None = None) -> Iterator[Any]:
        """Yield some rows after others as tables; Retyped if a column has another type."""
        import pyarrow as pa

        if (cutter := large.cutter(self, types)) is not None:
            yield from large.pieces(self, cutter, only)
            return
        with arrow_errors(self.kind, self), self.opened() as stream:
            names = list(self.names)
            if self.is_text:
                from pyarrow import csv

                file = pa.PythonFile(stream, mode="r")
                options = self._csv_options(types, only, PIECE)
                with self._retyping(types):
                    found: Any = csv.open_csv(file, *options)
                names = only or names
            elif self.kind == "parquet":
                size = max(1, PIECE // (8 * len(names)))
                found = parquet_batches(stream, PIECE, size)
            elif self.kind == "arrow" and not stream.packed and _has_index(stream):
                file = pa.ipc.open_file(stream.seekable_file())
                found = (file.get_batch(k) for k in range(file.num_record_batches))
            else:
                found = self._loaded().to_batches()
            batches = iter(found)
            while True:
                with self._retyping(types):
                    batch = next(batches, None)
                if batch is None:
                    return
                if not self.is_text:
                    batch.validate(full=True)
                if self.is_text and stream.quoted and not self.quoted:
                    self.quoted = True
                    raise Retyped
                self.place = stream.place()
                table = pa.Table.from_batches([batch])
                table = table if self.is_text else as_text(table, self.options.encoding)
                yield table.rename_columns(names)

    def locate(self, error: CellError) -> DataError:
        """Return an error of a cell with its place in the file."""
        what = f"column {error.column!r}: {error.what}"
        if self.is_text:
            return DataError(f"line {self.line(error.row)}, {what}")
        return DataError(f"row {self.row(error.row)}, {what}")

    def row(self, row: int) -> int:
        """Return the number of a row, which is counted from 0, in a file that is no text."""
        return self.rows[row] if self.rows else row + 1

    def line(self, row: int) -> int:
        """Return the line of a row, both counted from 1 and 0: quoted cells may hold lines."""
        skip = self.dialect.skip_lines
        with self.as_it_is() as stream:
            text = dialects.text_lines(Raw(stream), self.dialect.encoding)
            reader = self.dialect.lines(islice(text, skip, None))
            records, before = row + 1 + self.dialect.header + self.dialect.below, 0
            for record in reader:
                bad = self.options.skip_bad_lines and len(record) != len(self.names)
                records -= bool(record) and not bad
                if not records:
                    break
                before = reader.line_num
            return skip + before + 1

    # Text

    def _read_text(self, types: dict[str, Any]) -> Any:
        """Return the table; threads read it, unless lines are to be counted."""
        import pyarrow as pa
        from pyarrow import csv

        threads = not self.options.skip_bad_lines
        try:
            with self.opened() as stream:
                options = self._csv_options(types, threads=threads)
                file, pool = pa.PythonFile(stream, mode="r"), pa.system_memory_pool()
                found = csv.read_csv(
                    file, *options, memory_pool=pool
                )  # others fault five times as much
                if stream.quoted and not self.quoted:  # cells may hold lines after all
                    self.quoted = True
                    return self._read_text(types)
        except pa.ArrowInvalid as error:
            if "UTF8" not in str(error):
                raise
            self._not_utf8()
            return self._read_text(types)
        if any(_is_binary(type_) for type_ in found.schema.types):
            self._not_utf8()
            return self._read_text(types)
        times = {f.name: pa.string() for f in found.schema if pa.types.is_time(f.type)}
        return self._read_text(types | times) if times else found

    def _not_utf8(self) -> None:
        """Go on with another encoding, if none was given."""
        if self.options.encoding is not None or self.dialect.encoding not in ("utf-8", "utf-8-sig"):
            raise DataError(
                f"is not text in {self.dialect.encoding}: give another --encoding, as latin-1"
            )
        self.dialect = replace(self.dialect, encoding="cp1252")
        self.guesses["encoding"] = "cp1252"

    @contextmanager
    def _retyping(self, types: dict[str, Any]) -> Iterator[None]:
        """Raise Retyped where a conversion fails, with its column made text."""
        import pyarrow as pa

        try:
            yield
        except pa.ArrowInvalid as error:
            found = _NO_NUMBER.match(str(error))
            if found is None:
                raise
            if "UTF8" in str(error):
                self._not_utf8()
            types[self.names[int(found[1])]] = pa.string()
            self.retyped = True
            raise Retyped from None

    def _csv_options(
        self,
        types: dict[str, Any],
        only: list[str] | None = None,
        piece: int = 0,
        threads: bool = True,
    ) -> tuple[Any, ...]:
        """Return how pyarrow reads text: types of columns, which ones, bytes at a time."""
        from pyarrow import csv

        how = self.dialect
        skip = {"invalid_row_handler": self._skip_line} if self.options.skip_bad_lines else {}
        self.bad_lines = 0
        return (
            csv.ReadOptions(
                use_threads=threads,
                block_size=piece or _BLOCK,
                skip_rows=how.skip_lines,
                skip_rows_after_names=how.header + how.below,
                column_names=list(self.names),
                encoding="utf8" if how.encoding in ("utf-8", "utf-8-sig") else how.encoding,
            ),
            csv.ParseOptions(
                delimiter=how.sep,
                quote_char=how.quote or False,
                newlines_in_values=self.quoted,
                **skip,
            ),
            csv.ConvertOptions(
                column_types={name: _coded(type_) for name, type_ in types.items()},
                include_columns=only,
                auto_dict_encode=not piece,
                auto_dict_max_cardinality=_MOST_CODED,
                strings_can_be_null=True,
                null_values=[*MISSING_TEXTS, *self.options.missing],
                decimal_point=how.decimal,
            ),
        )

    def _skip_line(self, row: Any) -> str:
        self.bad_lines += 1 + str(row.text or "").count("\n")  # of a cell that was never closed
        return "skip"

    def plain(self, error: Exception) -> str:
        """Return pyarrow's message in one line, beginning with the line of the file if known."""
        message = str(error).split("\n")[0]
        if "straddling object" in message:
            return f"has a line that is too long: more than {PIECE:,} bytes"
        if (found := _BAD_ROW.match(message)) and self.is_text:
            line, lines = self.first_line(lambda record: len(record) != len(self.names))
            hint = "--skip-bad-lines leaves such lines out"
            if lines > 1:
                hint = f"a quote is opened there, and {lines:,} lines are one cell: {NO_QUOTES}"
            if (sign := re.search(r"got \d+: *(#|//|%)", message)) is not None:
                hint = f"--comment '{sign[1]}' passes over lines that begin with it, {hint}"
            return f"line {line}: e{found[1]}; {hint}"
        return message

    def first_line(self, wanted: Callable[[list[str]], bool]) -> tuple[int, int]:
        """Return the first line of such a record, and how many lines its cells hold."""
        skip, before = self.dialect.skip_lines, 0
        with self.as_it_is() as stream:
            text = dialects.text_lines(Raw(stream), self.dialect.encoding)
            reader = self.dialect.lines(islice(text, skip, None))
            for record in reader:
                if record and (before or not self.dialect.header) and wanted(record):
                    break
                before = reader.line_num
        return skip + before + 1, reader.line_num - before

    # Other formats

    def _schema(self) -> Any:
        """Return names and types of the columns."""
        if self.kind == "parquet":
            with self.opened() as stream:
                return parquet_schema(stream, PIECE)
        return self._loaded().schema

    def _loaded(self) -> Any:
        if self._whole is None:
            with self.opened() as stream:
                if self.kind == "xlsx":
                    found = read_sheet(stream, self.options)
                    self._whole, self.rows, self.sheets, notes = found
                    self.notes += notes
                    if self.sheets:
                        of = f"the first of {len(self.sheets)} (--sheet NAME for another)"
                        self.guesses["sheet"] = f"{self.sheets[0]!r}, {of}"
                elif self.kind == "jsonl":
                    whole = read_json(self.opened, self.options.skip_bad_lines)
                    self._whole, self.bad_lines = whole
                else:
                    self._whole = read_arrow(stream, _has_index(stream))
        return self._whole


def _coded(type_: Any) -> Any:
    """Return the type that text is read as: each text once, and its place in each row."""
    import pyarrow as pa

    return pa.dictionary(pa.int32(), type_) if pa.types.is_string(type_) else type_


def _is_binary(type_: Any) -> bool:
    from pyarrow import types

    return types.is_binary(type_.value_type if types.is_dictionary(type_) else type_)


def _sample(stream: Stream) -> bytes:
    """Return the beginning of a text, with two whole lines if they are not too long."""
    pieces: list[bytes] = []
    size = lines = 0
    while size < dialects.SAMPLE or (lines < 2 and size < _BLOCK):
        if not (piece := stream.read(dialects.SAMPLE)):
            break
        pieces.append(piece)
        size, lines = size + len(piece), lines + piece.count(b"\n")
    return b"".join(pieces)


class Raw:
    """A stream as the file that TextIOWrapper wants."""

    closed = False
    readable, writable, seekable = (lambda self: True), (lambda self: False), (lambda self: False)

    def __init__(self, stream: Stream) -> None:
        self.read, self.read1 = stream.read, stream.read

    def flush(self) -> None:
        """Do nothing: there is nothing to write."""

    def close(self) -> None:
        """Leave the stream to who opened it."""


@contextmanager
def arrow_errors(kind: str, table: TableFile | None = None) -> Iterator[None]:
    """Turn pyarrow's errors, and its absence, into ours."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(f"reading {kind} needs pyarrow: pip install 'zerogap[cli]'") from error
    check_room(_ROOM, f"reading {kind}")
    try:
        yield
    except (pa.ArrowException, UnicodeError, OSError) as error:
        if isinstance(error, OSError) and kind in ("csv", "tsv", "jsonl", "xlsx"):
            raise
        damaged = "is damaged: " if isinstance(error, OSError) else ""  # pyarrow's word for that
        message = str(error).split("\n")[0] if table is None else table.plain(error)
        raise DataError(f"{damaged}{message}") from error


def _has_index(stream: Stream) -> bool:
    """Tell an Arrow file, whose parts can be read in any order, from an Arrow stream."""
    return stream.start().startswith(b"ARROW1")

"""Tables that do not fit into memory: CSV and TSV by pieces, Parquet by batches of rows.

Columns of text need their categories before the first row can be encoded, so a table that has some
is read twice; one of numbers alone is read once.  Of CSV and TSV, the first piece tells which
columns are numbers: text that comes later in such a column is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from zerogap.readers import columns
from zerogap.readers.encoder import Column, Encoder
from zerogap.readers.files import DataError, Stream
from zerogap.readers.tables import arrow_errors, check_names, csv_options, find_target

_PIECE = 1 << 20  # bytes of text, of which pyarrow reads 32 ahead; about those of a batch
_MOST_CATEGORIES = 100_000


class Table(NamedTuple):
    """How a table is read: format, encoder, target column and, of CSV and TSV, types of columns."""

    kind: str
    encoder: Encoder
    target: str
    types: dict[str, Any]


def learn_table(
    opened: Callable[[], Any],
    kind: str,
    target: str | None,
    numeric_target: bool,
    seen: Callable[[int, Stream], Any],
) -> Table:
    """Find out how a table is read.

    `opened` opens it, as a context, as often as needed; `seen` is told the rows that have been
    searched for categories.
    """
    with arrow_errors(kind), opened() as stream:
        schema = _schema(stream, kind)
    import pyarrow as pa

    check_names(schema.names, kind, fit=True)
    target = str(find_target(schema.names, target, None, labelled=True))
    types = {field.name: field.type for field in schema}
    for name, type_ in types.items():
        if pa.types.is_integer(type_) and (name != target or numeric_target):
            types[name] = pa.float64()  # a number of the next piece may have a point
    text = [name for name in types if name != target and columns.is_text(types[name])]
    tallies = {name: columns.Tally(name) for name in text}
    if text:
        with opened() as stream:
            for batch in _batches(stream, kind, types, text):
                for name, tally in tallies.items():
                    tally.add(batch.column(name))
                    if len(tally.texts) > _MOST_CATEGORIES:
                        raise DataError(
                            f"column {name!r} has more than {_MOST_CATEGORIES} categories: "
                            f"leave it out"
                        )
                seen(tally.rows, stream)
    learnt = tuple(
        Column(name, tallies[name].categories() if name in tallies else None)
        for name in types
        if name != target
    )
    encoder = Encoder.of_columns(learnt, target, columns.is_text(types[target]))
    return Table(kind, encoder, target, types)


def table_pieces(stream: Stream, table: Table, skip: int) -> Iterator[tuple[Any, Any, int]]:
    """Yield features, targets and the number of rows so far, for some rows after others."""
    encoder, rows = table.encoder, 0
    step = max(1, _PIECE // (16 * (encoder.n_features if encoder.is_dense else len(table.types))))
    for batch in _batches(stream, table.kind, table.types):
        begin, rows = rows, rows + batch.num_rows
        for before in range(max(begin, skip), rows, step):
            part = batch.slice(before - begin, step)
            y = columns.targets(table.target, part[table.target], before)
            yield encoder.transform(part, before)[0], y, before + len(y)
    if not rows:
        raise DataError("has no rows")


def _schema(stream: Stream, kind: str) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    if kind == "parquet":
        return _parquet(stream).schema_arrow
    with csv.open_csv(
        pa.PythonFile(stream, mode="r"), *csv_options(kind, {}, piece=_PIECE)
    ) as reader:
        return reader.schema


def _batches(
    stream: Stream, kind: str, types: dict[str, Any], only: list[str] | None = None
) -> Iterator[Any]:
    """Yield some rows after others as tables, of some columns only if they are given."""
    import pyarrow as pa
    from pyarrow import csv

    with arrow_errors(kind):
        if kind == "parquet":
            size = max(1, _PIECE // (8 * len(only or types)))
            batches = _parquet(stream).iter_batches(size, columns=only, use_threads=False)
        else:
            file = pa.PythonFile(stream, mode="r")
            batches = csv.open_csv(file, *csv_options(kind, types, only, _PIECE))
        for batch in batches:
            yield pa.Table.from_batches([batch])


def _parquet(stream: Stream) -> Any:
    import pyarrow.parquet as pq

    if stream.packed:
        raise DataError("is a packed Parquet file: unpack it first, Parquet packs by itself")
    return pq.ParquetFile(stream.seekable_file(), buffer_size=_PIECE)

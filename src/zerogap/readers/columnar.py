"""Parquet and Arrow files, a few bytes of which may stand for many.

Parquet may store a text once and refer to it in every row: 800 bytes can be a table of 100 GB.
Texts are therefore read as references, and written out only after their sizes have been added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zerogap.readers.files import DataError, Stream, default_limit

_TEXTS = "BYTE_ARRAY"  # Parquet's name for texts and bytes of any length
_MOST_SHORT = (1 << 31) - 1  # bytes of texts in one array whose offsets have 32 bits


def parquet_schema(stream: Stream, buffer_size: int) -> Any:
    """Return names and types of the columns."""
    plain, _ = _opened(stream, buffer_size)
    return plain.schema_arrow


def read_parquet(stream: Stream, buffer_size: int) -> Any:
    """Return the table in a file; DataError where it takes more than `max_bytes`."""
    plain, file = _opened(stream, buffer_size)
    _check(_declared(plain), stream.max_bytes)
    return _written_out(file.read(), plain.schema_arrow, stream.max_bytes)


def parquet_batches(stream: Stream, buffer_size: int, rows: int) -> Iterator[Any]:
    """Yield so many rows after others; DataError where these take more than all memory."""
    import pyarrow as pa

    plain, file = _opened(stream, buffer_size)
    most = min(stream.max_bytes, default_limit())
    for batch in file.iter_batches(rows, use_threads=False):
        table = _written_out(pa.Table.from_batches([batch]), plain.schema_arrow, most)
        yield from table.to_batches()


def read_arrow(stream: Stream, has_index: bool) -> Any:
    """Return the table in a file; DataError where it takes more than `max_bytes`."""
    import pyarrow as pa

    file = stream.seekable_file()
    if stream.start().startswith(b"FEA1"):
        from pyarrow import feather

        return feather.read_table(file)
    batches, size = [], 0
    with (pa.ipc.open_file if has_index else pa.ipc.open_stream)(file) as reader:
        count = range(reader.num_record_batches) if has_index else None
        for batch in map(reader.get_batch, count) if count is not None else reader:
            size += batch.nbytes
            _check(size, stream.max_bytes)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


def as_text(table: Any, encoding: str | None) -> Any:
    """Return a table whose columns of bytes are text, if they are; some programs do not say so."""
    import pyarrow as pa

    for k, field in enumerate(table.schema):
        if field.type not in (pa.binary(), pa.large_binary()):
            continue
        column = table.column(k)
        kind = pa.string() if field.type == pa.binary() else pa.large_string()
        if encoding is not None:
            texts = [None if v is None else v.decode(encoding) for v in column.to_pylist()]
            column = pa.array(texts, kind)
        try:
            column = column.cast(kind)
        except pa.ArrowInvalid:  # refused by name where it is used
            continue
        table = table.set_column(k, field.with_type(kind), column)
    return table


def _opened(stream: Stream, buffer_size: int) -> tuple[Any, Any]:
    """Return an open file twice: as it says that it is, and with texts as references."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = stream.seekable_file()
    plain = pq.ParquetFile(source, buffer_size=buffer_size)
    kinds = pa.string(), pa.large_string(), pa.binary(), pa.large_binary()
    texts = [field.name for field in plain.schema_arrow if field.type in kinds]
    return plain, pq.ParquetFile(source, read_dictionary=texts, buffer_size=buffer_size)


def _declared(file: Any) -> int:
    """Return how many bytes a file says that it takes; texts in lists count as the longest."""
    metadata, names = file.metadata, set(file.schema_arrow.names)
    columns = [metadata.schema.column(k) for k in range(metadata.num_columns)]
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    inside = [k for k, c in enumerate(columns) if c.physical_type == _TEXTS and c.path not in names]
    parts = [group.column(k) for k in inside for group in groups]
    texts = sum(part.num_values * part.total_uncompressed_size for part in parts)
    cells = metadata.num_rows * sum(max(8, column.length) for column in columns)
    return max(sum(group.total_byte_size for group in groups), cells) + texts


def _written_out(table: Any, schema: Any, most: int) -> Any:
    """Return a table with the texts that its references stand for."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table.validate(full=True)  # references too are taken on trust
    size = table.nbytes
    for k, field in enumerate(schema):
        column = table.column(k)
        if column.type == field.type:
            continue
        texts = sum(
            pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
            for chunk in column.chunks
        )
        _check(size := size + texts, most)
        wide = pa.large_string() if pa.types.is_string(field.type) else pa.large_binary()
        kind = field.type if texts <= _MOST_SHORT else wide
        table = table.set_column(k, field.with_type(kind), column.cast(kind))
    return table


def _check(size: int, most: int) -> None:
    if size > most:
        raise DataError(f"needs {size} bytes when unpacked, max_bytes={most}")

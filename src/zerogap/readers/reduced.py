"""A file without some of its rows, the others as they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from zerogap.io.atomic import write_file
from zerogap.readers import TableOptions
from zerogap.readers.dialect import text_lines
from zerogap.readers.encoder import Encoder
from zerogap.readers.files import DataError, open_source
from zerogap.readers.formats import TABLES, open_as
from zerogap.readers.tables import Raw, TableFile

_UNLIMITED = 1 << 62  # rows: more than any file has


def write_without(
    source: str | os.PathLike[str],
    out: Path,
    rows: np.ndarray,
    *,
    format: str | None = None,
    options: TableOptions | None = None,
    encoder: Encoder | None = None,
) -> None:
    """Write a file like another one, without some of its rows, which are counted from 0.

    Lines of text that are kept stay as they are, byte for byte; spreadsheets, JSON and Arrow files
    become Parquet files or are refused.
    """
    is_table = encoder is not None and bool(encoder.columns)
    with open_as(source, format, _UNLIMITED, is_table) as (_, kind):
        pass
    if kind == "npz":
        with np.load(source, allow_pickle=False) as arrays:
            if "indptr" in arrays:
                raise DataError(f"{source}: the reduced file of a sparse npz is not written")
            kept = {name: np.delete(arrays[name], rows, axis=0) for name in arrays.files}
        write_file(out, lambda file: np.savez(file, **kept))
        return
    if kind == "svmlight":
        lines = _svmlight_lines(source, set(rows.tolist()))
    else:
        how = options or TableOptions()
        how = how.after(encoder.reading) if encoder is not None else how
        decimal = None if encoder is None else encoder.reading.get("decimal")
        table = TableFile(lambda: open_source(source, _UNLIMITED), kind, how, decimal)
        if not table.is_text:
            _write_parquet(table, out, rows)
            return
        lines = _table_lines(table, set(rows.tolist()))
    write_file(out, lambda file: file.writelines(lines))


def _svmlight_lines(source: Any, rows: set[int]) -> Iterator[bytes]:
    row = -1
    with open_source(source, _UNLIMITED) as stream:
        rest = b""
        while piece := stream.read():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                row += bool(line.split(b"#")[0].strip())
                if row not in rows or not line.split(b"#")[0].strip():
                    yield line + b"\n"
        if rest and (row + 1 not in rows or not rest.split(b"#")[0].strip()):
            yield rest


def _table_lines(table: TableFile, rows: set[int]) -> Iterator[bytes]:
    """Yield the lines of the records that are kept, in the encoding of the file."""
    how, row = table.dialect, -1 - table.dialect.header - table.dialect.below
    encoding = "utf-16-le" if how.encoding == "utf-16" else how.encoding
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    raw: list[str] = []
    with table.as_it_is() as stream:
        text = text_lines(Raw(stream), how.encoding)

        def seen() -> Iterator[str]:
            for line in text:
                raw.append(line)
                yield line

        lines = seen()
        for _ in range(how.skip_lines):
            yield next(lines).encode(encoding)
            raw.clear()
        for record in how.lines(lines):
            bad = table.options.skip_bad_lines and len(record) != len(table.names)
            row += bool(record) and not bad
            if row not in rows or not record or bad:
                yield "".join(raw).encode(encoding)
            raw.clear()


def _write_parquet(table: TableFile, out: Path, rows: np.ndarray) -> None:
    import pyarrow.parquet as pq

    if table.kind not in TABLES or out.suffix != ".parquet":
        raise DataError(f"the reduced file of {table.kind} is Parquet: call it something.parquet")
    whole = table.table({})
    kept = whole.take(np.delete(np.arange(whole.num_rows), rows))
    write_file(out, lambda file: pq.write_table(kept, file))

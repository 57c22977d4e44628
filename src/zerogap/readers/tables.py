"""Tables: CSV, TSV and Parquet files through pyarrow."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from zerogap.readers import columns
from zerogap.readers.encoder import Encoder
from zerogap.readers.files import DataError, Stream

_TARGETS = ("target", "label", "y", "class")
_LARGEST_LINE = 1 << 24


def read_table(
    stream: Stream, kind: str, target: str | None, encoder: Encoder | None, labelled: bool
) -> tuple[Any, np.ndarray | None, Encoder, tuple[str, ...]]:
    """Return features, targets, the encoder (fitted here unless given) and notes."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(f"reading {kind} needs pyarrow: pip install 'zerogap[cli]'") from error
    if encoder is not None and not encoder.columns:
        raise DataError("is a table, but the model was trained on a matrix (svmlight or npz)")
    try:
        if kind == "parquet":
            table = _read_parquet(stream)
        else:
            table = _read_csv(stream, "," if kind == "csv" else "\t", encoder)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(_plain(error)) from error
    if table.num_rows == 0:
        raise DataError("has no rows")
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise DataError(f"has two columns named {twice!r}: each needs a name of its own")
    target = _find_target(names, target, encoder, labelled)
    y = None if target is None else columns.targets(target, table[target])
    encoder = encoder or Encoder.fit(table, target)
    needed = table.num_rows * (8 * encoder.n_features if encoder.is_dense else 12 * len(names))
    if needed > stream.max_bytes:
        raise DataError(
            f"becomes {encoder.n_features} features of {table.num_rows} rows, more than "
            f"max_bytes={stream.max_bytes} bytes: leave out columns with many categories"
        )
    X, notes = encoder.transform(table)
    return X, y, encoder, notes


def _plain(error: Exception) -> str:
    """Return pyarrow's message in one line, beginning with the line of the file if it is known."""
    message = str(error).split("\n")[0]
    return re.sub(r"^CSV parse error: Row #(\d+): E", r"line \1: e", message)


def _read_csv(stream: Stream, delimiter: str, encoder: Encoder | None) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    text = [] if encoder is None else [c.name for c in encoder.columns if c.categories is not None]
    if encoder is not None and encoder.target is not None and encoder.text_target:
        text.append(encoder.target)
    table = csv.read_csv(
        pa.PythonFile(stream, mode="r"),
        # one thread: only then do pyarrow's messages know the row
        csv.ReadOptions(use_threads=False, block_size=_LARGEST_LINE),
        csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        csv.ConvertOptions(column_types=dict.fromkeys(text, pa.string()), strings_can_be_null=True),
    )
    if all(columns.NUMBER.match(name) for name in table.column_names):
        raise DataError("line 1: only numbers; the first line must name the columns")
    return table


def _read_parquet(stream: Stream) -> Any:
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(stream.seekable_file())
        size = max(
            sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)),
            8 * file.metadata.num_rows * file.metadata.num_columns,
        )
        if size > stream.max_bytes:
            raise DataError(f"needs {size} bytes when unpacked, max_bytes={stream.max_bytes}")
        return file.read()
    except OSError as error:  # pyarrow's word for damaged content
        raise DataError(f"is damaged: {_plain(error)}") from error


def _find_target(
    names: list[str], target: str | None, encoder: Encoder | None, labelled: bool
) -> str | None:
    if encoder is not None:
        target = encoder.target
    elif target is None and names[-1].lower() in _TARGETS:
        target = names[-1]
    if target in names or not labelled:
        return target if target in names else None
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    what = "needs the name of its target column" if target is None else f"has no column {target!r}"
    raise DataError(f"{what}; its columns are {listed}; the first line of a CSV file names them")

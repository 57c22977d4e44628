"""Tables: CSV, TSV and Parquet files through pyarrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from zerogap.readers import columns
from zerogap.readers.encoder import Encoder
from zerogap.readers.files import DataError, Stream

_TARGETS = ("target", "label", "y", "class")
_LARGEST_LINE = 1 << 24
_NO_NUMBER = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error to \w+: invalid value (.*)"
)


def read_table(
    stream: Stream, kind: str, target: str | None, encoder: Encoder | None, labelled: bool
) -> tuple[Any, np.ndarray | None, Encoder, tuple[str, ...]]:
    """Return features, targets, the encoder (fitted here unless given) and notes."""
    if encoder is not None and not encoder.columns:
        raise DataError("is a table, but the model was trained on a matrix (svmlight or npz)")
    with arrow_errors(kind):
        table = _read_parquet(stream) if kind == "parquet" else _read_csv(stream, kind, encoder)
    if table.num_rows == 0:
        raise DataError("has no rows")
    names = table.column_names
    check_names(names, kind, fit=encoder is None)
    target = find_target(names, target, encoder, labelled)
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


@contextmanager
def arrow_errors(kind: str) -> Iterator[None]:
    """Turn pyarrow's errors, and its absence, into ours."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(f"reading {kind} needs pyarrow: pip install 'zerogap[cli]'") from error
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and kind != "parquet":
            raise
        damaged = "is damaged: " if isinstance(error, OSError) else ""  # pyarrow's word for that
        raise DataError(f"{damaged}{_plain(error)}") from error


def _plain(error: Exception) -> str:
    """Return pyarrow's message in one line, beginning with the line of the file if it is known."""
    message = str(error).split("\n")[0]
    if found := _NO_NUMBER.match(message):
        column, line, text = found.groups()
        place = f"line {line}, column {int(column) + 1}"
        return f"{place}: {text} where the first lines have values of another kind"
    if "straddling object" in message:
        return "has a line that is too long"
    return re.sub(r"^CSV parse error: Row #(\d+): E", r"line \1: e", message)


def check_names(names: list[str], kind: str, fit: bool) -> None:
    """Refuse columns whose names do not tell them apart; all need one if there is a fit."""
    if kind != "parquet" and all(columns.NUMBER.match(name) for name in names):
        raise DataError("line 1: only numbers; the first line must name the columns")
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise DataError(f"has two columns named {twice!r}: each needs a name of its own")
    if fit and "" in names:
        place = names.index("") + 1
        raise DataError(f"column {place} has no name: name it, or leave it out")


def csv_options(
    kind: str, types: dict[str, Any], only: list[str] | None = None, piece: int | None = None
) -> tuple[Any, ...]:
    """Return how pyarrow reads CSV and TSV: types of columns, which ones, bytes at a time."""
    from pyarrow import csv

    return (
        # one thread: only then do pyarrow's messages know the row
        csv.ReadOptions(use_threads=False, block_size=piece or _LARGEST_LINE),
        csv.ParseOptions(delimiter="," if kind == "csv" else "\t", newlines_in_values=True),
        csv.ConvertOptions(column_types=types, include_columns=only, strings_can_be_null=True),
    )


def _read_csv(stream: Stream, kind: str, encoder: Encoder | None) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    text = [] if encoder is None else [c.name for c in encoder.columns if c.categories is not None]
    if encoder is not None and encoder.target is not None and encoder.text_target:
        text.append(encoder.target)
    types = dict.fromkeys(text, pa.string())
    return csv.read_csv(pa.PythonFile(stream, mode="r"), *csv_options(kind, types))


def _read_parquet(stream: Stream) -> Any:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(stream.seekable_file())
    size = max(
        sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)),
        8 * file.metadata.num_rows * file.metadata.num_columns,
    )
    if size > stream.max_bytes:
        raise DataError(f"needs {size} bytes when unpacked, max_bytes={stream.max_bytes}")
    return file.read()


def find_target(
    names: list[str], target: str | None, encoder: Encoder | None, labelled: bool
) -> str | None:
    """Return the name of the target column, None if it need not be there and is not."""
    if encoder is not None:
        target = encoder.target
    elif target is None and names[-1].lower() in _TARGETS:
        target = names[-1]
    if target in names or not labelled:
        return target if target in names else None
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    what = "needs the name of its target column" if target is None else f"has no column {target!r}"
    raise DataError(f"{what}; its columns are {listed}; the first line of a CSV file names them")

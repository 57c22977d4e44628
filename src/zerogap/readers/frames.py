"""DataFrames, pyarrow tables and files in the place of arrays of features."""

from __future__ import annotations

import os
from typing import Any

from zerogap.readers.files import DataError


def as_table(X: Any) -> Any:
    """Return a pandas or polars DataFrame, or a pyarrow table, as a pyarrow table; else None."""
    if not (hasattr(X, "columns") or hasattr(X, "column_names")) or hasattr(X, "indptr"):
        return None
    import pyarrow as pa

    if isinstance(X, pa.RecordBatch):
        return pa.Table.from_batches([X])
    if isinstance(X, pa.Table):
        return X
    if hasattr(X, "to_arrow"):  # polars
        return X.to_arrow()
    if not hasattr(X, "iloc"):
        return None
    names = [str(name) for name in X.columns]
    return pa.table([_array(X.iloc[:, k]) for k in range(len(names))], names=names)


def _array(series: Any) -> Any:
    """Return a pandas column; objects of several types become text."""
    import pyarrow as pa

    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        missing = series.isna()
        texts = [None if gone else str(v) for v, gone in zip(series, missing, strict=True)]
        return pa.array(texts, pa.string())


def features_of(encoder: Any, X: Any) -> Any:
    """Return the features of a table or file; X itself if it is an array of features already."""
    if isinstance(X, str | os.PathLike):
        from zerogap.readers import read

        return read(X, encoder=encoder, labelled=False).X
    table = as_table(X)
    if table is None:
        return X
    names = table.column_names
    if len(set(names)) < len(names):
        raise DataError("the table has two columns of one name")
    try:
        return encoder.transform(table)[0]
    except DataError as error:
        raise DataError(f"the table {error}") from None

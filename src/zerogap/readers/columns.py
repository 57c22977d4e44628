"""Columns of a pyarrow Table as NumPy arrays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from zerogap.readers.files import DataError

NUMBER = re.compile(r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$")
_MOSTLY = 0.9  # a text column with this share of numbers is a numeric one with stray text


def is_text(kind: Any) -> bool:
    """Tell whether a pyarrow type is that of strings."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def numbers(name: str, column: Any) -> np.ndarray:
    """Return a column as finite float64."""
    import pyarrow as pa

    kind = pa.types
    if is_text(column.type):
        row, text = _first_text(column)
        raise DataError(f"row {row}, column {name!r}: {text!r} where the model needs a number")
    if kind.is_null(column.type):
        raise DataError(f"column {name!r} is empty: leave it out")
    if kind.is_binary(column.type):
        raise DataError(f"column {name!r} is not text in UTF-8: save the file as UTF-8")
    numeric = kind.is_integer, kind.is_floating, kind.is_boolean, kind.is_decimal
    if not any(test(column.type) for test in numeric):
        raise DataError(
            f"column {name!r} holds {column.type} values: turn them into numbers, "
            f"or leave the column out"
        )
    if kind.is_boolean(column.type):
        column = column.cast(pa.uint8())
    values = column.cast(pa.float64(), safe=False).to_numpy()  # nulls become NaN
    if not (finite := np.isfinite(values)).all():
        row = int(np.argmin(finite))
        what = "infinity" if np.isinf(values[row]) else "no value"
        raise DataError(
            f"row {row + 1}, column {name!r}: {what}; fill in a number, or leave the row out"
        )
    return values


def targets(name: str, column: Any) -> np.ndarray:
    """Return a column as strings, whole numbers, booleans or finite float64."""
    import pyarrow as pa

    if is_text(column.type):
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy()))
            raise DataError(f"row {row + 1}, column {name!r}: no target; leave the row out")
        return np.array(column.cast(pa.string()).to_pylist())
    values = numbers(name, column)
    whole = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    return column.to_numpy() if whole else values


def categories(name: str, column: Any) -> tuple[str, ...] | None:
    """Return the categories of a column of text, in order; None for one of numbers."""
    if not is_text(column.type):
        numbers(name, column)
        return None
    import pyarrow.compute as pc

    counts = pc.value_counts(_text(column))
    values, rows = counts.field("values"), counts.field("counts").to_numpy()
    numeric = pc.match_substring_regex(values, NUMBER.pattern).to_numpy(zero_copy_only=False)
    if _MOSTLY * len(column) < rows[numeric].sum() < len(column):
        row, text = _first_text(column)
        raise DataError(
            f"row {row}, column {name!r}: {text!r} among numbers; "
            f"write a number there, or leave the row out"
        )
    return tuple(sorted(values.to_pylist()))


def codes(known: tuple[str, ...], column: Any) -> np.ndarray:
    """Return the position of each row's category among those known, -1 for another."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.index_in(_text(column), pa.array(known, pa.string())).fill_null(-1).to_numpy()


def _text(column: Any) -> Any:
    """Return a column as strings, "" where missing."""
    import pyarrow as pa

    return column.cast(pa.string()).fill_null("")


def _first_text(column: Any) -> tuple[int, str]:
    """Return row number and text of the first value that is not a number."""
    import pyarrow.compute as pc

    text = _text(column)
    row = int(np.argmin(pc.match_substring_regex(text, NUMBER.pattern).to_numpy()))
    return row + 1, text[row].as_py()

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


def numbers(name: str, column: Any, before: int = 0) -> np.ndarray:
    """Return a column as finite float64; messages count the rows before it."""
    import pyarrow as pa

    kind = pa.types
    if is_text(column.type):
        row, text = _first_text(column, before)
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
            f"row {before + row + 1}, column {name!r}: {what}; "
            f"fill in a number, or leave the row out"
        )
    return values


def targets(name: str, column: Any, before: int = 0) -> np.ndarray:
    """Return a column as strings, whole numbers, booleans or finite float64."""
    import pyarrow as pa

    if is_text(column.type):
        if column.null_count:
            row = before + int(np.argmax(column.is_null().to_numpy()))
            raise DataError(f"row {row + 1}, column {name!r}: no target; leave the row out")
        return np.array(column.cast(pa.string()).to_pylist())
    values = numbers(name, column, before)
    whole = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    return column.to_numpy() if whole else values


class Tally:
    """The texts of a column, counted, some rows after others."""

    def __init__(self, name: str) -> None:
        self.name, self.rows, self.numeric = name, 0, 0
        self.texts: set[str] = set()
        self.stray: tuple[int, str] | None = None  # row and text of the first that is no number

    def add(self, column: Any) -> None:
        """Count some rows."""
        import pyarrow.compute as pc

        counts = pc.value_counts(_text(column))
        values, rows = counts.field("values"), counts.field("counts").to_numpy()
        numeric = pc.match_substring_regex(values, NUMBER.pattern).to_numpy(zero_copy_only=False)
        if self.stray is None and not numeric.all():
            self.stray = _first_text(column, self.rows)
        self.rows, self.numeric = self.rows + len(column), self.numeric + int(rows[numeric].sum())
        self.texts.update(values.to_pylist())

    def categories(self) -> tuple[str, ...]:
        """Return the texts in order."""
        if _MOSTLY * self.rows < self.numeric < self.rows and self.stray is not None:
            row, text = self.stray
            raise DataError(
                f"row {row}, column {self.name!r}: {text!r} among numbers; "
                f"write a number there, or leave the row out"
            )
        return tuple(sorted(self.texts))


def categories(name: str, column: Any) -> tuple[str, ...] | None:
    """Return the categories of a column of text, in order; None for one of numbers."""
    if not is_text(column.type):
        numbers(name, column)
        return None
    tally = Tally(name)
    tally.add(column)
    return tally.categories()


def codes(known: tuple[str, ...], column: Any) -> np.ndarray:
    """Return the position of each row's category among those known, -1 for another."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.index_in(_text(column), pa.array(known, pa.string())).fill_null(-1).to_numpy()


def _text(column: Any) -> Any:
    """Return a column as strings, "" where missing."""
    import pyarrow as pa

    return column.cast(pa.string()).fill_null("")


def _first_text(column: Any, before: int = 0) -> tuple[int, str]:
    """Return row number and text of the first value that is not a number."""
    import pyarrow.compute as pc

    text = _text(column)
    row = int(np.argmin(pc.match_substring_regex(text, NUMBER.pattern).to_numpy()))
    return before + row + 1, text[row].as_py()

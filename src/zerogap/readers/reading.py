"""Columns as numbers, days, texts and words; cells that are none of them are refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from zerogap.readers import cells, dates
from zerogap.readers.files import DataError

_PLAIN = r"[-+]?(\d+\.?\d*|\.\d+|inf|infinity)(e[-+]?\d+)?"  # numbers that Python reads, without _
BETWEEN_WORDS = r"[^\p{L}\p{N}]+"  # neither letters nor digits, of any script


class CellError(DataError):
    """A cell is not what it should be; `row` counts from 0, and readers turn it into a line."""

    def __init__(self, row: int, column: str, what: str) -> None:
        super().__init__(f"row {row + 1}, column {column!r}: {what}")
        self.row, self.column, self.what = row, column, what


def is_text(kind: Any) -> bool:
    """Tell whether a pyarrow type is that of strings."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def is_number(kind: Any) -> bool:
    """Tell whether a pyarrow type is that of numbers or truth values."""
    from pyarrow import types

    tests = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
    return any(test(kind) for test in tests)


def is_date(kind: Any) -> bool:
    """Tell whether a pyarrow type is that of dates, with a time or not."""
    from pyarrow import types

    return types.is_date(kind) or types.is_timestamp(kind)


def read_numbers(
    name: str, column: Any, before: int, decimal: str, missing: tuple[str, ...], unit: str = ""
) -> np.ndarray:
    """Return a column as float64, NaN where there is no value; anything else is refused."""
    import pyarrow as pa

    kind = pa.types
    if is_text(column.type):
        found = cells.numbers(column, decimal, missing, unit)
        if found.bad.any():
            row = int(np.argmax(found.bad))
            text = column[row].as_py()
            wanted = f"a number in {unit}" if unit else "a number"
            raise CellError(before + row, name, f"{text!r} where the model needs {wanted}")
        values = found.values
    elif kind.is_null(column.type):
        values = np.full(len(column), np.nan)
    else:
        values = _plain_numbers(name, column)
        if missing and (absent := np.isin(values, as_numbers(missing))).any():
            values = np.where(absent, np.nan, values)
    with np.errstate(over="ignore", invalid="ignore"):
        doubtful = not np.isfinite(values.sum())  # one pass, where all is well
    if doubtful and np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise CellError(
            before + row,
            name,
            "infinity; write a number there, or --missing=inf takes it for a missing value",
        )
    return values


def as_numbers(texts: tuple[str, ...]) -> np.ndarray:
    """Return the numbers among texts that mean that there is no value, as -999 or inf."""
    plain = (text for text in texts if re.fullmatch(_PLAIN, text, re.IGNORECASE))
    return np.unique(np.fromiter(map(float, plain), np.float64))


def _plain_numbers(name: str, column: Any) -> np.ndarray:
    import pyarrow as pa

    kind = pa.types
    if column.type == pa.float64():
        return np.asarray(column.to_numpy(**cells.copied(column)))  # nulls become NaN
    if kind.is_binary(column.type):
        raise DataError(
            f"column {name!r} is not text in UTF-8: give --encoding, as latin-1, or leave the "
            f"column out (--drop {name})"
        )
    if kind.is_time(column.type) or kind.is_duration(column.type):
        column = _hours(column)
    if not is_number(column.type):
        raise DataError(
            f"column {name!r} holds {column.type} values: turn them into numbers, "
            f"or leave the column out (--drop {name})"
        )
    if kind.is_boolean(column.type):
        column = column.cast(pa.uint8())
    values = column.cast(pa.float64(), safe=False)
    return np.asarray(values.to_numpy(**cells.copied(values)))


def _hours(column: Any) -> Any:
    """Return times of day and durations as hours."""
    import pyarrow as pa
    import pyarrow.compute as pc

    second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
    whole = pa.int32() if column.type.bit_width == 32 else pa.int64()
    return pc.divide(column.cast(whole).cast(pa.float64()), 3600.0 * second)


def read_dates(
    name: str, column: Any, before: int, order: str, missing: tuple[str, ...]
) -> dates.Dates:
    """Return a column as days since 1970, NaN where there is none; anything else is refused."""
    if is_date(column.type):
        days = dates.temporal_days(column)
        return dates.Dates(days, np.zeros(len(days), dtype=bool), bool((days % 1 > 0).any()))
    import pyarrow as pa

    found = dates.dates(column.cast(pa.string()), order, missing)
    if found.bad.any():
        row = int(np.argmax(found.bad))
        text = column[row].as_py()
        raise CellError(before + row, name, f"{text!r} where the model needs a date ({order})")
    return found


def plain_texts(column: Any) -> Any:
    """Return a column as strings, "" where missing."""
    import pyarrow as pa

    return column.cast(pa.string()).fill_null("")


def category_texts(column: Any, missing: tuple[str, ...]) -> cells.Coded:
    """Return the texts of a column without blanks around them, "" where missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):  # a number in whose column others have a point
        column = pc.replace_substring_regex(column.cast(pa.string()), r"\.0$", "")
    texts, places = cells.distinct(column)
    absent = pc.is_in(texts, pa.array([*cells.MISSING_TEXTS, *missing], pa.string()))
    return cells.Coded(pc.if_else(absent, "", texts), places)


def split_words(column: Any) -> Any:
    """Return the words of each row, in small letters."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lower = pc.utf8_lower(plain_texts(column))
    lower = lower.combine_chunks() if isinstance(lower, pa.ChunkedArray) else lower
    return pc.split_pattern_regex(lower, BETWEEN_WORDS)

"""What in a table is rather a mistake than meant."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from shlex import quote
from typing import Any

import numpy as np

from zerogap.readers.files import DataError
from zerogap.readers.tables import NO_QUOTES, TableFile

_CODES = (-99.0, -999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0, 999999.0)  # for no value
_FAR = 3  # times as far from zero as all other numbers, or all others are not negative
_DAYS = 19000101, 21001231  # between these, numbers may be dates
_FEWEST_DAYS = 3
_FEW_UNITS = 6  # of numbers in one column; more are rather parts of names
_MOSTLY = 0.8  # share of the cells of a column
_FEWEST_INSIDE = 2  # whole lines of the table in a cell: a quote was opened and never closed


def refuse_open_quotes(file: TableFile, tallies: Iterable[Any]) -> None:
    """Refuse a cell of text that holds lines of the table."""
    if not (file.is_text and file.quoted and len(file.names) > 1):
        return
    separators = len(file.names) - 1
    for tally in tallies:
        for text in tally.texts or ():
            inside = text.split("\n")[1:-1] if "\n" in text else []
            if len(inside) < _FEWEST_INSIDE:
                continue
            if all(line.count(file.dialect.sep) == separators for line in inside):
                line, lines = file.first_line(partial(_has, text.strip()))
                name = quote(tally.name)
                raise DataError(
                    f"line {line}, column {tally.name!r}: a quote is opened there, and {lines:,} "
                    f"lines are one cell: {NO_QUOTES}, --drop {name} leaves the column out"
                )


def _has(cell: str, record: list[str]) -> bool:
    return any(own.strip() == cell for own in record)


def tell(file: TableFile, columns: Iterable[tuple[str, np.ndarray]]) -> None:
    """Note columns of numbers, given by name with their first values, that look like others."""
    found = ((name, of_numbers(values)) for name, values in columns)
    file.notes += [f"column {name!r} {doubt}" for name, doubt in found if doubt]


def of_numbers(values: np.ndarray) -> str:
    """Say what numbers, NaN where one is missing, look like besides; nothing if like numbers."""
    if not len(values):
        return ""
    low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
    for code in (low, high):
        if code in _CODES:
            rest = values[(values != code) & ~np.isnan(values)]
            rows = int((values == code).sum())
            away = np.abs(rest).max(initial=0.0) < abs(code) / _FAR
            if rows > 1 and len(rest) and (away or (code < 0 and rest.min() >= 0)):
                return (
                    f"is {code:g} in {rows:,} rows, which may mean that there is no value: "
                    f"--missing={code:g} says so"
                )
    if _DAYS[0] <= low and high <= _DAYS[1] and _are_days(values[~np.isnan(values)]):
        return (
            f"holds dates such as {low:.0f}, and counts as a number: write them as 2021-03-31 for "
            f"--dates"
        )
    return ""


def of_texts(tally: Any) -> str:
    """Say in parentheses what texts that become categories are rather."""
    known = tally.rows - tally.missing
    if tally.dated > _MOSTLY * known:
        return " (dates in several orders: write them as 2021-03-31)"
    bad = [numbers.bad for numbers in tally.decimals.values()]
    if len(bad) > 1 and min(bad) and sum(bad) <= known:
        return " (numbers with decimal points and with commas: write them with one sign)"
    units = tally.units if tally.units and len(tally.units) < _FEW_UNITS else ()
    return f" (numbers in {', '.join(units)}: write them in one unit)" if units else ""


def _are_days(values: np.ndarray) -> bool:
    """Tell whether all numbers are such as 20210331."""
    whole = np.unique(values)
    if len(whole) < _FEWEST_DAYS or (whole != np.floor(whole)).any():
        return False
    number = whole.astype(np.int64)
    months = 12 * (number // 10_000 - 1970) + number // 100 % 100 - 1
    start = months.astype("datetime64[M]").astype("datetime64[D]")
    days = start + (number % 100 - 1)
    valid = (number // 100 % 100 >= 1) & (number // 100 % 100 <= 12) & (number % 100 >= 1)
    return bool((valid & (days.astype("datetime64[M]") == months.astype("datetime64[M]"))).all())

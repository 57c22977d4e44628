"""Columns out of the JSON of model files, every value of it checked."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import Any

from zerogap.readers.columns import KINDS, Category, Column, Date, HashedText, Number, Text
from zerogap.readers.dates import DATE_ORDERS
from zerogap.readers.files import DataError
from zerogap.readers.options import MOST_WORDS

_MOST_DAYS = 4e6  # from 1970: ten thousand years


def column_from_json(value: Any) -> Column:
    """Return the column that `to_json` described, also that of earlier versions."""
    check(isinstance(value, dict), "bad column")
    if set(value) == {"name", "categories"}:  # before there were kinds
        name, categories = value["name"], value["categories"]
        own = {"name": name, "kind": "number"}
        value = own if categories is None else own | {"categories": categories, "trims": False}
        value["kind"] = "number" if categories is None else "category"
    cls = KINDS.get(value["kind"]) if isinstance(value.get("kind"), str) else None
    check(cls is not None, "a column of a kind that is unknown here")
    assert cls is not None
    given = {k: v for k, v in value.items() if k != "kind"}
    check(set(given) <= {f.name for f in fields(cls)}, "a column with too much in it")
    check(type(given.get("name")) is str, "a column's name is no text")
    checked = {k: _CHECKS[k](v) for k, v in given.items() if k != "name"}
    made = cls(given["name"], **checked)
    if isinstance(made, Category):
        check(len(made.categories) > 0, "categories is no list")
    if isinstance(made, Number):
        check(made.decimal in (".", ","), "a decimal sign that is none")
    if isinstance(made, Date):
        check(made.order in DATE_ORDERS, "an order of dates that is none")
        check(abs(made.origin) < _MOST_DAYS, "an origin beyond the calendar")
        check(abs(made.fill or 0.0) < _MOST_DAYS, "a date beyond the calendar")
    if isinstance(made, Text):
        check(0 < len(made.vocabulary) == len(made.idf), "as many words as weights")
    if isinstance(made, HashedText):
        check("buckets" in given, "a hashed text without buckets")
    return made


def check(valid: bool, what: str) -> None:
    """Refuse a description of an encoder."""
    if not valid:
        raise DataError(f"is no encoder: {what}")


def _texts(value: Any) -> tuple[str, ...]:
    check(isinstance(value, list), "categories is no list")
    check(all(type(c) is str for c in value), "a category is no text")
    check(len(set(value)) == len(value), "a category is there twice")
    return tuple(value)


def _finite(value: Any) -> float:
    check(type(value) in (int, float) and abs(value) <= sys.float_info.max, "no finite number")
    return float(value)


def _size(value: Any) -> int:
    check(type(value) is int and 0 < value <= MOST_WORDS, "no number of buckets")
    return value


def _flag(value: Any) -> bool:
    check(type(value) is bool, "neither true nor false")
    return value


def _word(value: Any) -> str:
    check(type(value) is str and len(value) <= 200, "no word")
    return value


def _maybe(value: Any) -> float | None:
    return None if value is None else _finite(value)


def _floats(value: Any) -> tuple[float, ...]:
    check(isinstance(value, list), "idf is no list")
    return tuple(map(_finite, value))


_CHECKS: dict[str, Any] = {
    **dict.fromkeys(("categories", "vocabulary"), _texts),
    **dict.fromkeys(("indicator", "pooled", "trims", "has_time"), _flag),
    **dict.fromkeys(("decimal", "form", "unit", "false", "true", "order"), _word),
    **{"fill": _maybe, "origin": _finite, "idf": _floats},
    "buckets": _size,
}

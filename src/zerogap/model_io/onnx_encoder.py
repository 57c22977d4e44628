"""Encoders as parts of ONNX graphs: one input for each column of the table.

Numbers and truth values are numbers, NaN where missing; categories are texts, "" where missing;
dates are days since 1970 with the time as a fraction; texts are texts.  All have shape
(n_samples, 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.readers import Category, Column, Date, Encoder, HashedText, Number, Text

_ML, _MICROSOFT = "ai.onnx.ml", "com.microsoft"


def encode(graph: Any, encoder: Encoder) -> str:
    """Add inputs and the nodes that turn them into features; return the features' name."""
    parts = [_PARTS[type_](graph, column, f"in_{k}") for k, (column, type_) in _kinds(encoder)]
    X = graph.node("Concat", parts, axis=1) if len(parts) > 1 else parts[0]
    if encoder.scale is None:
        return X
    if encoder.shift is not None:
        X = graph.node("Sub", [X, graph.number("shift", encoder.shift[None, :])])
    return graph.node("Mul", [X, graph.number("scale", encoder.scale[None, :])])


def _kinds(encoder: Encoder) -> Any:
    return enumerate((c, Number if isinstance(c, Number) else type(c)) for c in encoder.columns)


def _number(graph: Any, column: Number, key: str) -> str:
    x = graph.input(column.name, graph.dtype)
    value, absent = _filled(graph, x, column, key)
    if not column.indicator:
        return value
    told = graph.node("Cast", [absent], to=graph.kind)
    return graph.node("Concat", [value, told], axis=1)


def _filled(graph: Any, x: str, column: Any, key: str) -> tuple[str, str]:
    """Return a column with missing numbers filled in, and which ones were missing."""
    absent = graph.node("IsNaN", [x])
    if column.fill is None:
        return x, absent
    return graph.node("Where", [absent, graph.number(f"{key}_fill", column.fill), x]), absent


def _category(graph: Any, column: Category, key: str) -> str:
    """Compare a text with all categories; one more for what is none of them, if they are pooled."""
    x = graph.input(column.name, np.dtype(object))
    codes = graph.node(
        "LabelEncoder",
        [x],
        domain=_ML,
        keys_strings=list(column.categories),
        values_int64s=list(range(len(column.categories))),
        default_int64=len(column.categories) if column.pooled else -1,
    )
    return _one_hot(graph, codes, column.width, key)


def _one_hot(graph: Any, codes: str, width: int, key: str) -> str:
    places = graph.tensor(f"{key}_places", np.arange(width, dtype=np.int64)[None, :])
    return graph.node("Cast", [graph.node("Equal", [codes, places])], to=graph.kind)


def _date(graph: Any, column: Date, key: str) -> str:
    """Compute the calendar from days since 1970, by the algorithm of Howard Hinnant."""
    x = graph.input(column.name, np.dtype(np.float64))
    days, absent = x, graph.node("IsNaN", [x])
    if column.fill is not None:
        fill = graph.tensor(f"{key}_fill", np.array(column.fill))
        days = graph.node("Where", [absent, fill, x])
    floor = graph.node("Floor", [days])
    whole = graph.node("Cast", [floor], to=graph.onnx.TensorProto.INT64)
    year, month = _calendar(graph, whole, key)
    origin = graph.tensor(f"{key}_origin", np.array(column.origin))
    since = graph.node("Cast", [graph.node("Sub", [days, origin])], to=graph.kind)
    weekday = _op(graph, "Mod", _op(graph, "Add", whole, 3 + 7_000_000, key), 7, key)
    parts = [
        since,
        graph.node("Cast", [year], to=graph.kind),
        _one_hot(graph, _op(graph, "Sub", month, 1, key), 12, f"{key}_m"),
        _one_hot(graph, weekday, 7, f"{key}_d"),
    ]
    if column.has_time:
        day = graph.tensor(f"{key}_24", np.array(24.0))
        hour = graph.node("Mul", [graph.node("Sub", [days, floor]), day])
        parts.append(graph.node("Cast", [hour], to=graph.kind))
    if column.indicator:
        parts.append(graph.node("Cast", [absent], to=graph.kind))
    return graph.node("Concat", parts, axis=1)


def _op(graph: Any, kind: str, x: str, number: int, key: str) -> str:
    return graph.node(kind, [x, graph.tensor(f"{key}_{number}", np.array(number))])


def _calendar(graph: Any, days: str, key: str) -> tuple[str, str]:
    """Return year and month of days since 1970; all numbers stay positive, so / rounds down."""

    def op(kind: str, x: str, number: int) -> str:
        return _op(graph, kind, x, number, key)

    def sub(x: str, y: str) -> str:
        return graph.node("Sub", [x, y])

    z = op("Add", days, 719_468)
    era = op("Div", z, 146_097)
    doe = sub(z, op("Mul", era, 146_097))
    some = sub(doe, op("Div", doe, 1460))
    some = graph.node("Add", [some, op("Div", doe, 36_524)])
    yoe = op("Div", sub(some, op("Div", doe, 146_096)), 365)
    doy = sub(doe, op("Mul", yoe, 365))
    doy = graph.node("Add", [sub(doy, op("Div", yoe, 4)), op("Div", yoe, 100)])
    mp = op("Div", op("Add", op("Mul", doy, 5), 2), 153)
    late = graph.node("Greater", [mp, graph.tensor(f"{key}_9", np.array(9))])
    month = graph.node("Where", [late, op("Sub", mp, 9), op("Add", mp, 3)])
    year = graph.node("Add", [yoe, op("Mul", era, 400)])
    return graph.node("Where", [late, op("Add", year, 1), year]), month


def _text(graph: Any, column: Text, key: str) -> str:
    """Split texts into words, and weigh these."""
    counts = graph.node(
        "TfIdfVectorizer",
        [_split(graph, column, key)],
        mode="TF",
        min_gram_length=1,
        max_gram_length=1,
        max_skip_count=0,
        ngram_counts=[0],
        ngram_indexes=list(range(column.width)),
        pool_strings=list(column.vocabulary),
    )
    weights = graph.number(f"{key}_idf", np.array(column.idf)[None, :])
    cast = graph.node("Cast", [counts], to=graph.kind)
    return _unit(graph, graph.node("Mul", [cast, weights]), key)


def _hashed(graph: Any, column: HashedText, key: str) -> str:
    """Split texts into words, and count each word at the place of its hash."""
    words = _split(graph, column, key)
    hashes = graph.node("MurmurHash3", [words], domain=_MICROSOFT, seed=0, positive=0)
    wide = graph.node("Cast", [hashes], to=graph.onnx.TensorProto.INT64)
    places = _op(graph, "Mod", graph.node("Abs", [wide]), column.buckets, key)
    there = graph.node(
        "LabelEncoder", [words], domain=_ML, keys_strings=[""], values_int64s=[0], default_int64=1
    )
    ones = graph.node("Cast", [there], to=graph.kind)
    rows = graph.node("Shape", [words], end=1)
    size = graph.node(
        "Concat", [rows, graph.tensor(f"{key}_wide", np.array([column.width]))], axis=0
    )
    none = graph.node("Expand", [graph.number("zero", 0.0), size])
    counts = graph.node("ScatterElements", [none, places, ones], axis=1, reduction="add")
    return _unit(graph, counts, key)


def _split(graph: Any, column: Column, key: str) -> str:
    """Return the words of each row, "" where a row has fewer; the tokenizer is ONNX Runtime's."""
    x = graph.input(column.name, np.dtype(object))
    flat = graph.node("Reshape", [x, graph.tensor(f"{key}_flat", np.array([-1]))])
    lower = graph.node("StringNormalizer", [flat], case_change_action="LOWER", locale="C.UTF-8")
    return graph.node(
        "Tokenizer",
        [lower],
        domain=_MICROSOFT,
        tokenexp=r"[\p{L}\p{N}]+",
        mark=0,
        mincharnum=1,
        pad_value="",
    )


def _unit(graph: Any, rows: str, key: str) -> str:
    """Give each row that is not zero length 1."""
    axis = graph.tensor(f"{key}_axis", np.array([1]))
    square = graph.node("ReduceSum", [graph.node("Mul", [rows, rows]), axis], keepdims=1)
    norm = graph.node("Sqrt", [square])
    some = graph.node("Greater", [norm, graph.number("zero", 0.0)])
    return graph.node("Div", [rows, graph.node("Where", [some, norm, graph.number("one", 1.0)])])


_PARTS: dict[Any, Any] = {
    Number: _number,
    Category: _category,
    Date: _date,
    Text: _text,
    HashedText: _hashed,
}
DOMAINS = {_ML: 3, _MICROSOFT: 1}

"""Columns of a table, and the features that each of them becomes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from zerogap.readers import cells
from zerogap.readers.reading import (
    CellError,
    category_texts,
    plain_texts,
    read_dates,
    read_numbers,
    split_words,
)

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
POOLED = "(other)"


class Entries(NamedTuple):
    """Some features of some rows: entry k of row i has this value and belongs to this feature."""

    values: np.ndarray
    features: np.ndarray
    unseen: int = 0  # rows whose category is not known


@dataclass(frozen=True)
class Column:
    """A column of a table, and how it becomes features.

    The subclasses are what there is; `column_from_json` chooses among them.

    Attributes
    ----------
    name : str
        Name in the table.
    """

    name: str
    kind: ClassVar[str] = ""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """How many features the column becomes."""
        return len(self.features)

    @property
    def per_row(self) -> int:
        """How many of them a row has at most, those of a text apart."""
        return 1

    def entries(self, column: Any, before: int, missing: tuple[str, ...]) -> Any:
        """Return the features of some rows; `before` counts those before them, for messages."""
        raise NotImplementedError

    def words(self) -> str:
        """Say what is done to the column."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return the column as plain lists, numbers and strings."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"kind": self.kind} | {k: list(v) if type(v) is tuple else v for k, v in own.items()}


@dataclass(frozen=True)
class Number(Column):
    """Numbers; with `fill` for missing ones and, if `indicator`, a feature that tells of them.

    `decimal` is the decimal sign of the text that the column was read from, `form` what else it
    had: percent, grouped or a currency, in words.

    Attributes
    ----------
    name : str
        Name in the table.
    fill : float or None
        What takes the place of missing values; None if they are refused.
    indicator : bool
        Whether a feature tells of missing values.
    decimal : str
        Decimal sign of the text that the column was read from.
    form : str
        What else the text had: percent, grouped or a currency, in words.
    unit : str
        What follows the numbers in the text, as kg.
    """

    fill: float | None = None
    indicator: bool = False
    decimal: str = "."
    form: str = ""
    unit: str = ""
    kind: ClassVar[str] = "number"

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} missing") if self.indicator else (self.name,)

    @property
    def per_row(self) -> int:
        return 1 + self.indicator

    def read(self, column: Any, before: int, missing: tuple[str, ...]) -> np.ndarray:
        """Return the numbers of some rows, NaN where one is missing."""
        return read_numbers(self.name, column, before, self.decimal, missing, self.unit)

    def values(
        self, column: Any, before: int, missing: tuple[str, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of some rows, filled in, and which ones were missing."""
        return filled(self, self.read(column, before, missing), before)

    def entries(self, column: Any, before: int, missing: tuple[str, ...]) -> Entries:
        values, absent = self.values(column, before, missing)
        if not self.indicator:
            return Entries(values[:, None], np.broadcast_to(np.int32(0), (len(values), 1)))
        pair = np.column_stack([values, absent])
        return Entries(pair, np.broadcast_to(np.arange(2, dtype=np.int32), pair.shape))

    def words(self) -> str:
        form = f" ({self.form})" if self.form else ""
        filled = "" if self.fill is None else f", missing ones become {self.fill:.6g}"
        told = ", with a feature that tells of them" if self.indicator else ""
        return f"number{form}{filled}{told}"


@dataclass(frozen=True)
class Flag(Number):
    """False and true, in these words, as 0 and 1; missing ones as among numbers.

    Attributes
    ----------
    name : str
        Name in the table.
    false, true : str
        Words for 0 and 1.
    fill, indicator, decimal, form, unit
        As for `Number`.
    """

    false: str = "false"
    true: str = "true"
    kind: ClassVar[str] = "flag"

    def read(self, column: Any, before: int, missing: tuple[str, ...]) -> np.ndarray:
        texts, places = cells.distinct(column)
        known = {word: float(meaning) for word, meaning in cells.MEANINGS.items()}
        known |= {self.false: 0.0, self.true: 1.0}
        gone = {*cells.MISSING_TEXTS, *missing}
        lower = [text.casefold() for text in texts.to_pylist()]
        absent = np.array([text in gone for text in texts.to_pylist()], dtype=bool)
        values = np.array([known.get(text, np.nan) for text in lower])
        bad = (np.isnan(values) & ~absent)[places]
        if bad.any():
            row = int(np.argmax(bad))
            text = texts[int(places[row])].as_py()
            raise CellError(
                before + row,
                self.name,
                f"{text!r} where the model needs {self.false} or {self.true}",
            )
        return values[places]

    def words(self) -> str:
        return super().words().replace("number", f"{self.false} is 0, {self.true} is 1", 1)


@dataclass(frozen=True)
class Category(Column):
    """Text of these categories, 1 for the row's own and 0 for the others.

    Missing text is the category "".  With `pooled`, there is one more for all others; without,
    those are zeros.  `trims` tells whether blanks around the text count for nothing.

    Attributes
    ----------
    name : str
        Name in the table.
    categories : tuple of str
        Values that have a feature each.
    pooled : bool
        Whether one more feature stands for all other values.
    trims : bool
        Whether blanks around the text count for nothing.
    """

    categories: tuple[str, ...] = ()
    pooled: bool = False
    trims: bool = True
    kind: ClassVar[str] = "category"

    @property
    def width(self) -> int:
        return len(self.categories) + self.pooled

    @property
    def features(self) -> tuple[str, ...]:
        named = (*self.categories, POOLED) if self.pooled else self.categories
        return tuple(f"{self.name}={value}" for value in named)

    def entries(self, column: Any, before: int, missing: tuple[str, ...]) -> Entries:
        import pyarrow as pa
        import pyarrow.compute as pc

        known = pa.array(self.categories, pa.string())
        if self.trims:
            texts, places = category_texts(column, missing)
            code = pc.index_in(texts, known).fill_null(-1).to_numpy()[places]
        else:
            code = pc.index_in(plain_texts(column), known).fill_null(-1).to_numpy()
        unseen = code < 0
        if self.pooled:
            code = np.where(unseen, len(self.categories), code)
            unseen = np.zeros_like(unseen)
        values = np.where(unseen, 0.0, 1.0)[:, None]
        features = np.maximum(code, 0).astype(np.int32)[:, None]
        return Entries(values, features, int(unseen.sum()))

    def words(self) -> str:
        pooled = ", rare ones pooled" if self.pooled else ""
        found = len(self.categories)
        return f"{'1 category' if found == 1 else f'{found:,} categories'}{pooled}"


@dataclass(frozen=True)
class Date(Column):
    """Dates: days since `origin`, a day counted from 1970, year, month, weekday and hour.

    `order` is that of day, month and year in text, `has_time` whether hours are features, `fill`
    the day that takes the place of missing ones, of which a feature tells if `indicator`.

    Attributes
    ----------
    name : str
        Name in the table.
    origin : float
        Day from which days are counted, itself counted from 1970.
    order : str
        Order of day, month and year in text.
    has_time : bool
        Whether hours are a feature.
    fill : float or None
        What takes the place of missing values; None if they are refused.
    indicator : bool
        Whether a feature tells of missing values.
    """

    origin: float = 0.0
    order: str = "ymd"
    has_time: bool = False
    fill: float | None = None
    indicator: bool = False
    kind: ClassVar[str] = "date"

    @property
    def features(self) -> tuple[str, ...]:
        parts = ("days", "year", *(f"month={m}" for m in _MONTHS), *(f"day={d}" for d in _WEEKDAYS))
        more = ("hour",) * self.has_time + ("missing",) * self.indicator
        return tuple(f"{self.name} {part}" for part in (*parts, *more))

    @property
    def per_row(self) -> int:
        return 4 + self.has_time + self.indicator

    def entries(self, column: Any, before: int, missing: tuple[str, ...]) -> Entries:
        found = read_dates(self.name, column, before, self.order, missing)
        days, absent = filled(self, found.days, before)
        whole = np.floor(days)
        months = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        weekday = (whole.astype(np.int64) + 3) % 7  # 1 January 1970 was a Thursday
        one, n = np.ones(len(days)), len(days)
        values = [days - self.origin, 1970.0 + months // 12, one, one]
        features = [np.zeros(n), one, 2 + months % 12, 14 + weekday]
        if self.has_time:
            values.append(24.0 * (days - whole))
            features.append(np.full(n, 21.0))
        if self.indicator:
            values.append(absent.astype(np.float64))
            features.append(np.full(n, 21.0 + self.has_time))
        return Entries(np.column_stack(values), np.column_stack(features).astype(np.int32))

    def words(self) -> str:
        first = np.datetime64(int(self.origin), "D")
        parts = "year, month, weekday" + (" and hour" if self.has_time else "")
        filled = "" if self.fill is None else ", missing ones filled in"
        return f"date: days since {first}, {parts}{filled}"


@dataclass(frozen=True)
class Words(Column):
    """Words of a text: each has a weight, times how often it is there, and a row has length 1.

    Attributes
    ----------
    name : str
        Name in the table.
    """

    @property
    def per_row(self) -> int:
        return 0

    def places(self, words: Any) -> np.ndarray:
        """Return the feature of each word, -1 for those that have none."""
        raise NotImplementedError

    def weights(self) -> np.ndarray | float:
        """Return the weight of each feature."""
        return 1.0

    def entries(self, column: Any, before: int, missing: tuple[str, ...]) -> Any:
        """Return the words of some rows as a CSR matrix."""
        import pyarrow.compute as pc
        from scipy import sparse

        split = split_words(column)
        words = split.flatten().dictionary_encode()
        found = self.places(words.dictionary)[words.indices.to_numpy()]
        lengths = pc.list_value_length(split).fill_null(0).to_numpy()
        rows = np.repeat(np.arange(len(lengths)), lengths)[found >= 0]
        found = found[found >= 0]
        X = sparse.csr_matrix((np.ones(len(found)), (rows, found)), (len(lengths), self.width))
        X.sum_duplicates()
        X.data *= np.broadcast_to(self.weights(), X.shape[1])[X.indices]
        norms = np.sqrt(np.bincount(_rows_of(X), X.data**2, minlength=X.shape[0]))
        X.data /= np.repeat(np.where(norms > 0, norms, 1.0), np.diff(X.indptr))
        return X


@dataclass(frozen=True)
class Text(Words):
    """Words of a text that are in a vocabulary, with the weight count times `idf`.

    Attributes
    ----------
    name : str
        Name in the table.
    vocabulary : tuple of str
        Words that have a feature each.
    idf : tuple of float
        Weight of each word.
    """

    vocabulary: tuple[str, ...] = ()
    idf: tuple[float, ...] = ()
    kind: ClassVar[str] = "text"

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"{self.name}: {word}" for word in self.vocabulary)

    def places(self, words: Any) -> np.ndarray:
        import pyarrow as pa
        import pyarrow.compute as pc

        known = pa.array(self.vocabulary, pa.string())
        return np.asarray(pc.index_in(words, known).fill_null(-1).to_numpy(zero_copy_only=False))

    def weights(self) -> np.ndarray:
        return np.asarray(self.idf)

    def words(self) -> str:
        return f"text: {len(self.vocabulary):,} words, tf-idf"


@dataclass(frozen=True)
class HashedText(Words):
    """Words of a text, each at the place that its hash gives; there is nothing to learn.

    The place is the absolute value of MurmurHash3 (32 bits, seed 0) of the word in UTF-8, modulo
    the number of places, as in scikit-learn's ``HashingVectorizer``.

    Attributes
    ----------
    name : str
        Name in the table.
    buckets : int
        How many places there are.
    """

    buckets: int = 1
    kind: ClassVar[str] = "hashed text"

    @property
    def width(self) -> int:
        return self.buckets

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"{self.name} #{k}" for k in range(self.buckets))

    def places(self, words: Any) -> np.ndarray:
        from sklearn.utils import murmurhash3_32

        hashes = (abs(murmurhash3_32(word)) for word in words.to_pylist())
        found = np.fromiter(hashes, np.int64, len(words)) % self.buckets
        return np.where([word != "" for word in words.to_pylist()], found, -1)

    def words(self) -> str:
        return f"text: words hashed to {self.buckets:,} features"


def filled(column: Number | Date, values: np.ndarray, before: int) -> tuple[np.ndarray, np.ndarray]:
    """Return values with the missing ones filled in, and which ones were missing."""
    absent = np.isnan(values)
    if not absent.any():
        return values, absent
    if column.fill is None:
        row = before + int(np.argmax(absent))
        raise CellError(
            row,
            column.name,
            "no value, and the model was trained without --impute: fill one in, or leave the row "
            "out (--drop-missing)",
        )
    return np.where(absent, column.fill, values), absent


KINDS: dict[str, type[Column]] = {
    c.kind: c for c in (Number, Flag, Category, Date, Text, HashedText)
}


def _rows_of(X: Any) -> np.ndarray:
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))

"""What each column of a table is, from its training rows, some after others."""

from __future__ import annotations

from collections import Counter
from shlex import quote
from typing import Any

import numpy as np

from zerogap.readers import cells, dates, doubts, reading
from zerogap.readers import columns as kinds
from zerogap.readers.columns import Column
from zerogap.readers.files import DataError
from zerogap.readers.options import TableOptions
from zerogap.readers.reading import CellError

MOST_CATEGORIES = 100_000  # of a column: each is a feature with a name
_NUMERIC_SHARE = 0.8  # a text column with this share of numbers is a numeric one with stray text
_MANY_CATEGORIES = 100  # categories of which the user is told
_MANY_SHARE = 0.25  # the same, as a share of the rows, from 21 categories on
_SAMPLED_VALUES = 1 << 18  # values of a column that a median comes from, if not from all
_ENOUGH_ROWS = 10_000  # a column that is mostly text in so many rows is not one of numbers
_MOST_WORDS = 1 << 20  # counted at a time; the rare half is forgotten beyond
_MOST_ABOVE = 6  # rows among which those of units or questions are
_MOST_STRAYS = 4  # texts among numbers that are named
_OTHER = {".": ",", ",": "."}
_FORMS = {
    "percent": "percent as shares",
    "grouped": "thousands separators",
    "clock": "time in hours",
}


class LeftOut(Exception):
    """The column is no feature, and why."""


class Tally:
    """What is known of a column so far.

    Numbers: how many, missing and bad ones, sum, and values for the median.  Texts: the distinct
    ones with their counts, what they are as numbers with either decimal sign, and what they are as
    dates in each order.  `units` are what follows the first numbers, None before there were any.
    """

    def __init__(
        self,
        name: str,
        options: TableOptions,
        decimal: str,
        exact: bool,
        units: tuple[str, ...] | None = None,
    ) -> None:
        self.name, self.options, self.exact = name, options, exact
        self.rows = self.missing = 0
        self.first_missing = -1
        self.type: Any = None
        self.texts: Counter[str] | None = Counter()
        fills = options.impute is not None
        signs = (decimal, _OTHER[decimal])
        self.decimals = {sign: _NumberTally(exact, fills) for sign in signs}
        orders = (options.date_order,) if options.date_order else dates.DATE_ORDERS
        self.orders = {order: _NumberTally(exact, options.dates) for order in orders}
        self.slashed = self.has_time = self.is_words = False
        self.dated = 0  # cells in the form of a date, in whatever order
        self.doubt = ""  # what numbers are rather
        self.units = units
        self.words: Counter[str] = Counter()

    def add(self, column: Any) -> None:
        """Count some rows."""
        import pyarrow as pa

        before, self.rows = self.rows, self.rows + len(column)
        if self.type is None or pa.types.is_null(self.type):
            self.type = column.type
        if self.name in self.options.text:
            if self.options.text_method == "tf-idf":
                self._add_words(column)
        elif reading.is_text(column.type) or self.name in self.options.category:
            self._add_texts(column, before)
        elif pa.types.is_null(column.type):
            self._miss(np.ones(len(column), dtype=bool), before)
        elif reading.is_date(column.type):
            days = dates.temporal_days(column)
            self._miss(np.isnan(days), before)
            self.has_time |= bool((days % 1 > 0).any())
            self.orders.setdefault("ymd", _NumberTally(self.exact, self.options.dates)).add(days)
            self.orders = {"ymd": self.orders["ymd"]}
        elif pa.types.is_boolean(column.type):
            values = reading.read_numbers(self.name, column, before, ".", ())
            self._miss(np.isnan(values), before)
            self._first.add(values)
        else:
            values = reading.read_numbers(self.name, column, before, ".", self.options.missing)
            self.doubt = self.doubt if before else doubts.of_numbers(values)
            self._miss(np.isnan(values), before)
            self._first.add(values)

    @property
    def _first(self) -> _NumberTally:
        return next(iter(self.decimals.values()))

    def _miss(self, absent: np.ndarray, before: int) -> None:
        if self.first_missing < 0 and absent.any():
            self.first_missing = before + int(np.argmax(absent))
        self.missing += int(absent.sum())

    def _add_texts(self, column: Any, before: int) -> None:
        import pyarrow.compute as pc

        coded = reading.category_texts(column, self.options.missing)
        counts = np.bincount(coded.places, minlength=len(coded.texts))
        known = pc.not_equal(coded.texts, "")
        absent = ~known.to_numpy(zero_copy_only=False)
        if counts[absent].any():
            self._miss(absent[coded.places], before)
        if np.count_nonzero(counts) > MOST_CATEGORIES:
            self.texts = None
        if self.texts is not None:
            for text, count in zip(coded.texts.to_pylist(), counts.tolist(), strict=True):
                if count:
                    self.texts[text] += count
            if len(self.texts) > MOST_CATEGORIES:
                self.texts = None
        if self.units is None and counts[~absent].any():
            money = {sign.lower() for sign in cells.CURRENCIES}
            self.units = tuple(u for u in cells.common_unit(coded.texts) if u not in money)
        if not self.is_words:
            for decimal, tally in self.decimals.items():
                found = cells.read_numbers(coded.texts, decimal, (), self.unit)
                tally.forms |= found.forms
                tally.add_cells(found.values, found.bad, coded, counts, before)
            self._narrow()
        if self.orders and counts[~absent].any():
            self._add_dates(coded, counts, before)

    @property
    def unit(self) -> str:
        """What follows the numbers, if that is the same for all."""
        return self.units[0] if self.units is not None and len(self.units) == 1 else ""

    def _narrow(self) -> None:
        """Go on with what the cells can still be: numbers with one decimal sign, or with another.

        All readings of all cells would take most of the time of a large file.
        """
        own, *others = self.decimals
        if self.decimals[own].bad == 0:
            for sign in others:
                if self.decimals[sign].bad:
                    del self.decimals[sign]
        enough = self.rows - self.missing > _ENOUGH_ROWS
        least = min(tally.bad for tally in self.decimals.values())
        self.is_words = enough and least > (self.rows - self.missing) / 2

    def _add_dates(self, coded: cells.Coded, counts: np.ndarray, before: int) -> None:
        """Go on with the orders in which most of these texts, too, are dates."""
        apart = dates.fields(coded.texts)
        some = int(counts[~apart.absent].sum())
        self.dated += int(counts[apart.known & apart.fine & ~apart.absent].sum())
        for order, tally in list(self.orders.items()):
            found = apart.read(order)
            bad = found.bad
            if order == "ymd" and self.options.date_order is None:
                bad = bad | (apart.known & ~apart.iso)
            if 2 * int(counts[bad].sum()) > some:
                del self.orders[order]
                continue
            tally.add_cells(np.where(bad, np.nan, found.days), bad, coded, counts, before)
            self.has_time |= found.has_time
        self.slashed |= bool(self.orders) and dates.is_slashed(coded.texts)

    def _add_words(self, column: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        split = reading.split_words(column)
        lengths = pc.list_value_length(split).fill_null(0).to_numpy()
        coded = split.flatten().dictionary_encode()
        codes = coded.indices.to_numpy().astype(np.int64)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        once = np.unique(rows * max(1, len(coded.dictionary)) + codes)
        counts = np.bincount(once % max(1, len(coded.dictionary)), minlength=len(coded.dictionary))
        words = pa.array(coded.dictionary).to_pylist()
        self.words.update(dict(zip(words, counts.tolist(), strict=True)))
        self.words.pop("", None)
        if len(self.words) > _MOST_WORDS:
            self.words = Counter(dict(self.words.most_common(_MOST_WORDS // 2)))

    # Decisions

    def column(self, notes: list[str]) -> Column:
        """Return what the column is; LeftOut if it is nothing."""
        import pyarrow as pa

        name = self.name
        if name in self.options.text:
            return self._text()
        if name in self.options.category:
            return self._category(notes)
        if self.missing == self.rows:
            raise LeftOut("is empty")
        if reading.is_date(self.type):
            return self._date("ymd")
        if pa.types.is_boolean(self.type):
            return kinds.Flag(name, *self._filling(self._first))
        if not reading.is_text(self.type):
            decimal = next(iter(self.decimals))
            return kinds.Number(name, *self._filling(self._first), decimal=decimal)
        number = self._number()
        if number is not None:
            return number
        if self.orders:
            order = self._order()
            if order is not None:
                return self._date(order)
        pair = cells.truths([text for text in self.texts or {} if text])
        if pair is not None:
            return self._flag(pair)
        return self._category(notes)

    def _number(self) -> Column | None:
        """Return a column of numbers, if the texts are some."""
        if self.is_words:
            return None
        for decimal, tally in self.decimals.items():
            known = self.rows - tally.missing
            if tally.bad == 0 and known:
                signs = sorted(tally.forms & set(cells.CURRENCIES))
                if len(signs) > 1:
                    raise DataError(
                        f"column {self.name!r} holds money in {' and '.join(signs)}: turn it into "
                        f"one currency, or leave the column out (--drop {quote(self.name)})"
                    )
                form = ", ".join(_FORMS.get(f, f"money in {f}") for f in sorted(tally.forms))
                form += f"{', ' if form else ''}in {self.unit}" if self.unit else ""
                self.missing, self.first_missing = tally.missing, tally.first_missing
                filling = self._filling(tally)
                return kinds.Number(self.name, *filling, decimal=decimal, form=form, unit=self.unit)
        for tally in self.decimals.values():
            self._refuse_stray(tally, "numbers")
        return None

    def refuse_stray_target(self) -> None:
        """Refuse a column that is to be numbers and mostly is, but for some other text."""
        for tally in self.decimals.values():
            self._refuse_stray(tally, "numbers", "")

    def _order(self) -> str | None:
        """Return the order in which the texts are dates; None if they are none."""
        fits = [order for order, tally in self.orders.items() if tally.bad == 0]
        if not fits and not self.options.dates:  # left out all the same
            known = (self.rows - tally.missing for tally in self.orders.values())
            pairs = zip(self.orders.items(), known, strict=True)
            fits = [o for (o, tally), n in pairs if tally.bad < (1.0 - _NUMERIC_SHARE) * n]
        if not fits:
            for tally in self.orders.values():
                self._refuse_stray(tally, "dates")
            return None
        order = fits[0]
        if (
            {"dmy", "mdy"} <= set(fits)
            and "ymd" not in fits
            and self.slashed
            and self.options.dates
        ):
            text = next(text for text in self.texts or {"": 1} if text)
            raise DataError(
                f"column {self.name!r} holds dates such as {text!r}, in which day or month may "
                f"come first: give --date-order dmy or mdy"
            )
        tally = self.orders[order]
        self.missing, self.first_missing = tally.missing, tally.first_missing
        return order

    def _refuse_stray(self, tally: _NumberTally, what: str, option: str = "--category") -> None:
        """Refuse a column that is mostly numbers, or dates, with some other text.

        The option takes the column for text.
        """
        known = self.rows - tally.missing
        if tally.bad < (1.0 - _NUMERIC_SHARE) * known and tally.stray is not None:
            row, text = tally.stray
            other = f", {option} {quote(self.name)} the column for text" if option else ""
            rest = [t for t in tally.strays if t != text]
            found = [text, *rest[: _MOST_STRAYS - 1]]
            like = f", as are {', '.join(map(repr, found[1:]))}" if rest else ""
            like += f" and {len(rest) + 1 - len(found)} more" if len(rest) >= len(found) else ""
            named = " ".join(f"--missing {quote(t)}" for t in found)
            takes = "take them for missing values" if rest else "takes it for a missing value"
            rows = "the rows are" if rest else "the row is"
            if 0 < tally.above == tally.bad:
                other += f", --skip-below {tally.above} passes over it as no row"
            raise CellError(
                row,
                self.name,
                f"{text!r} among {what}{like}; {named} {takes} (with --drop-missing, {rows} left "
                f"out){other}",
            )

    def _filling(self, tally: _NumberTally) -> tuple[float | None, bool]:
        """Return what takes the place of missing values, and whether a feature tells of them."""
        filling = self.options.filling()
        if filling is None:
            return None, False
        return tally.filled(*filling), self.missing > 0

    def _flag(self, pair: tuple[str, str]) -> Column:
        counts = {text.casefold(): count for text, count in (self.texts or {}).items() if text}
        zeros, ones = (counts.get(word, 0) for word in pair)
        tally = _NumberTally(True, True)
        tally.add(np.repeat([0.0, 1.0], [zeros, ones]))
        fill, indicator = self._filling(tally)
        return kinds.Flag(self.name, fill, indicator, false=pair[0], true=pair[1])

    def _date(self, order: str) -> Column:
        if not self.options.dates:
            raise LeftOut("holds dates: --dates makes features of them")
        tally = self.orders[order]
        fill, indicator = self._filling(tally)
        if fill is not None and self.options.filling()[0] == "constant":  # type: ignore[index]
            fill = tally.filled("median", 0.0)
        origin = float(np.floor(tally.low))
        return kinds.Date(self.name, origin, order, self.has_time, fill, indicator)

    def _category(self, notes: list[str]) -> Column:
        if self.texts is None:
            raise DataError(
                f"column {self.name!r} has more than {MOST_CATEGORIES} categories: leave it out "
                f"(--drop {quote(self.name)}), or make words of it (--text {quote(self.name)})"
            )
        least = self.options.min_count
        kept = [text for text, count in self.texts.items() if count >= least]
        pooled = len(kept) < len(self.texts)
        if not kept:
            raise LeftOut(f"has no category of {least} rows or more")
        if len(kept) > _MANY_CATEGORIES or (len(kept) > 20 and len(kept) > _MANY_SHARE * self.rows):
            name = quote(self.name)
            mixed = doubts.of_texts(self)
            notes.append(
                f"column {self.name!r} becomes {len(kept):,} categories in {self.rows:,} "
                f"rows{mixed}: --min-count 10 pools rare ones, --text {name} takes its words, "
                f"--id {name} or --drop {name} leaves it out"
            )
        return kinds.Category(self.name, tuple(sorted(kept)), pooled)

    def _text(self) -> Column:
        if self.options.text_method == "hashed":
            return kinds.HashedText(self.name, self.options.max_words)
        least = 2 if self.rows > 10 else 1
        common = [w for w in self.words.most_common(self.options.max_words) if w[1] >= least]
        if not common:
            raise LeftOut("has no words that two rows share")
        common.sort()
        idf = [float(np.log((1 + self.rows) / (1 + count)) + 1.0) for _, count in common]
        return kinds.Text(self.name, tuple(word for word, _ in common), tuple(idf))

    def has_gaps(self) -> bool:
        """Tell whether these are texts of numbers or dates, some of which say that there is none.

        Rows of which nobody can tell that have been left out already.
        """
        tallies = (*self.decimals.values(), *self.orders.values())
        read = (t for t in tallies if t.bad == 0 and self.rows > t.missing)
        return reading.is_text(self.type) and any(t.missing for t in read)

    def refuse_missing(self, column: Column) -> bool:
        """Tell whether values are missing that nothing takes the place of."""
        needs = isinstance(column, kinds.Number | kinds.Date)
        return needs and self.missing > 0 and column.fill is None  # type: ignore[attr-defined]


class _NumberTally:
    """Numbers so far; their sum, least and a sample only if `keeps`, for what is filled in."""

    def __init__(self, exact: bool, keeps: bool) -> None:
        self.exact, self.keeps = exact, keeps
        self.count = self.missing = self.bad = 0
        self.total = 0.0
        self.low = np.inf
        self.first_missing = -1
        self.stray: tuple[int, str] | None = None
        self.strays: dict[str, None] = {}
        self.above = 0  # bad ones before the first number, among few rows
        self.forms: frozenset[str] = frozenset()
        self.sample: list[np.ndarray] = []
        self.rng: np.random.Generator | None = None  # made when needed: there may be 10^5 columns

    def add(self, values: np.ndarray) -> None:
        """Add numbers, of which those that are NaN are missing."""
        if not self.keeps:
            self.count += len(values)
            return
        known = values[~np.isnan(values)]
        if not len(known):
            return
        self.count += len(known)
        self.total += float(known.sum())
        self.low = min(self.low, float(known.min()))
        self.sample.append(known)
        if not self.exact and sum(map(len, self.sample)) > 2 * _SAMPLED_VALUES:
            together = np.concatenate(self.sample)
            self.rng = self.rng or np.random.default_rng(0)
            self.sample = [self.rng.choice(together, _SAMPLED_VALUES, replace=False)]

    def add_cells(
        self,
        values: np.ndarray,
        bad: np.ndarray,
        coded: cells.Coded,
        counts: np.ndarray,
        before: int,
    ) -> None:
        """Add texts, of which each has a value, NaN if missing or bad, and occurs so often."""
        absent = np.isnan(values) & ~bad
        if self.first_missing < 0 and counts[absent].any():
            self.first_missing = before + int(np.argmax(absent[coded.places]))
        self.missing += int(counts[absent].sum())
        if self.stray is None and counts[bad].any():
            row = int(np.argmax(bad[coded.places]))
            self.stray = before + row, str(coded.texts[int(coded.places[row])].as_py())
        if not before:
            first = bad[coded.places[:_MOST_ABOVE]]
            self.above = int(np.argmin(first)) if not first.all() else 0
        if bad.any() and len(self.strays) < _MANY_CATEGORIES:
            some = coded.texts.take(np.flatnonzero(bad & (counts > 0))[:_MANY_CATEGORIES])
            self.strays.update(dict.fromkeys(some.to_pylist()))
        self.bad += int(counts[bad].sum())
        if self.keeps:
            self.add(values[coded.places])
        else:
            self.count += int(counts[~np.isnan(values)].sum())

    def filled(self, how: str, constant: float) -> float:
        """Return what takes the place of a missing value."""
        if how == "constant" or not self.count:
            return constant
        if how == "mean":
            return self.total / self.count
        values = np.concatenate(self.sample)
        if how == "median":
            return float(np.median(values))
        known, counts = np.unique(values, return_counts=True)
        return float(known[np.argmax(counts)])

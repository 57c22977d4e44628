"""Cells of text as numbers, dates and truth values, the way that people write them.

All functions work on the distinct texts of a column (`Coded`), so that a column of a million rows
with a hundred values costs a hundred.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from zerogap.readers.shapes import EXACT_DIGITS, digits, shaped

NUMBER = re.compile(r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$")
MISSING_TEXTS = (  # what pyarrow, pandas and databases write where there is nothing, and "?"
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "?", "<NA>", "NaT", "#NULL!", "(null)"),
    "\\N",
)
MISSING_NUMBERS = (  # among numbers and dates also these, in capitals or not
    *(
        "-",
        "--",
        "---",
        ".",
        "..",
        "...",
        "none",
        "nil",
        "n.a.",
        "n. a.",
        "k.a.",
        "#div/0!",
        "#ref!",
    ),
    *("#value!", "#num!", "missing", "unknown", "not available", "n/d", "nd", "tbd"),
)
CURRENCIES = (*"$€£¥₹₽₩", "EUR", "USD", "GBP", "CHF", "JPY", "CNY", "INR", "SEK", "NOK", "DKK")
TRUTHS = (  # (false, true)
    *(("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("off", "on")),
    *(("nein", "ja"), ("non", "oui"), ("falsch", "wahr"), ("faux", "vrai")),
)
_SIGNS = "|".join(re.escape(sign) for sign in CURRENCIES)
_BLANKS = "[\u00a0\u2007\u2009\u202f]"  # no-break, figure, thin and narrow spaces
_GROUPS = {".": "[, '\u2019_]", ",": "[. '\u2019_]"}  # what parts thousands, by the decimal sign
_DAY = r"(?P<a>\d{1,4})(?P<s>[-/.])(?P<b>\d{1,2})[-/.](?P<c>\d{1,4})"
_TIME = (
    r"(?:[T ]+(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<sec>\d{2})(?:[.,](?P<part>\d{1,9}))?)?"
    r" ?(?P<half>[AaPp]\.?[Mm]\.?)? ?(?:Z|UTC|GMT|(?P<sign>[+-])(?P<zh>\d{2}):?(?P<zm>\d{2}))?)?"
)
_DATE = f"^{_DAY}{_TIME}$"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED = "(?P<month>" + "|".join(_MONTHS) + ")[a-z]*"
_NTH = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_WORDED = (  # 3 March 2021, 03-Mar-21, and March 3, 2021
    rf"^(?i:{_NTH}[ .\-/]*{_NAMED}[ .,\-/]*(?P<y>\d{{4}}|\d{{2}})){_TIME}$",
    rf"^(?i:{_NAMED}\.? +{_NTH},? +(?P<y>\d{{4}})){_TIME}$",
)
_TURN_OF_CENTURY = 70  # years of two digits below this one are of the 21st century
DATE_ORDERS = ("ymd", "dmy", "mdy")


class Coded(NamedTuple):
    """A column of text: its texts without blanks around them, and the place of each row's own."""

    texts: Any
    places: np.ndarray


class Numbers(NamedTuple):
    """Texts read as numbers.

    `values` are NaN where a cell is missing or no number, `bad` tells the latter; `forms` are what
    was found beside plain numbers, of percent, grouped and the currencies.
    """

    values: np.ndarray
    bad: np.ndarray
    forms: frozenset[str]


def distinct(column: Any) -> Coded:
    """Return the texts of a column, "" where one is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        is_coded = pa.types.is_dictionary(column.type)
        column = column.unify_dictionaries() if is_coded else column
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    known = column.dictionary.cast(pa.string()).fill_null("")
    texts = pa.concat_arrays([known, pa.array([""], pa.string())])
    places = column.indices.fill_null(len(known)).to_numpy()
    return Coded(pc.utf8_trim_whitespace(texts), places)


def numbers(column: Any, decimal: str, missing: tuple[str, ...] = ()) -> Numbers:
    """Read the cells of a column as numbers; see `read_numbers`."""
    texts, places = distinct(column)
    found = read_numbers(texts, decimal, missing)
    return Numbers(found.values[places], found.bad[places], found.forms)


def read_numbers(texts: Any, decimal: str, missing: tuple[str, ...] = ()) -> Numbers:
    """Read numbers with thousands separators, percent and currency signs, or in parentheses."""
    gone, apart = _gone(texts, missing), shaped(texts)
    form = _forms(apart.shapes, decimal)
    values = np.full(len(texts), np.nan)
    for k, shape, rows in apart.groups(form.good):
        plain = form.plain[k].as_py()
        places = digits(shape)
        if len(places) > EXACT_DIGITS or not plain.lstrip("+-").replace(".", "").isdigit():
            own = _forms(texts.take(rows), decimal).plain  # an exponent, or many digits
            values[rows] = own.cast("float64").to_numpy()
            continue
        power = len(plain) - 1 - plain.index(".") if "." in plain else 0
        sign = -1.0 if plain.startswith("-") else 1.0
        values[rows] = sign * apart.whole(rows, places) / 10.0**power
    values = np.where(form.percent[apart.codes], values / 100.0, values)
    read = form.good[apart.codes] & ~gone
    values = np.where(gone, np.nan, values)
    used = np.bincount(apart.codes[read], minlength=len(apart.shapes)) > 0
    found = {"percent": form.percent, "grouped": form.grouped}
    forms = {name for name, test in found.items() if (test & used).any()}
    forms |= _currencies(apart.shapes, form.money & used)
    return Numbers(values, ~read & ~gone, frozenset(forms))


class _Forms(NamedTuple):
    """What texts are as numbers: `plain` is how Python writes them, of those that are `good`."""

    plain: Any
    good: np.ndarray
    percent: np.ndarray
    grouped: np.ndarray
    money: np.ndarray


def _forms(texts: Any, decimal: str) -> _Forms:
    import pyarrow.compute as pc

    texts = pc.replace_substring_regex(texts, _BLANKS, " ")
    texts = pc.replace_substring_regex(texts, "^[\u2212\u2013]", "-")
    negative = r"^\(\s*(.*?)\s*\)$"
    texts = pc.replace_substring_regex(texts, negative, r"-\1")
    percent = pc.match_substring_regex(texts, "%$")
    texts = pc.replace_substring_regex(texts, r"\s*%$", "")
    bare = pc.replace_substring_regex(texts, rf"^([-+]?)\s*(?:{_SIGNS})\s*([-+]?)", r"\1\2")
    bare = pc.replace_substring_regex(bare, rf"\s*(?:{_SIGNS})$", "")
    money = pc.not_equal(bare, texts)
    point, groups = re.escape(decimal), _GROUPS[decimal]
    grouped = pc.or_(
        *(
            pc.match_substring_regex(bare, rf"^[-+]?\d{{1,3}}(?:{one}\d{{3}})+(?:{point}\d*)?$")
            for one in (groups.replace(" ", ""), " ")
        )
    )
    plain = pc.if_else(grouped, pc.replace_substring_regex(bare, groups, ""), bare)
    usual = rf"^[-+]?(?:\d+(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?$"
    good = pc.match_substring_regex(plain, usual)
    pointed = plain if decimal == "." else pc.replace_substring(plain, ",", ".")
    flags = (f.to_numpy(zero_copy_only=False) for f in (good, percent, grouped, money))
    return _Forms(pointed, *flags)


def _gone(texts: Any, missing: tuple[str, ...]) -> np.ndarray:
    """Tell which texts say that there is no number or date."""
    import pyarrow as pa
    import pyarrow.compute as pc

    absent = {text.lower() for text in (*MISSING_TEXTS, *MISSING_NUMBERS, *missing)}
    known = pa.array(sorted(absent), pa.string())
    return pc.is_in(pc.utf8_lower(texts), known).to_numpy(zero_copy_only=False)


def _currencies(shapes: Any, money: np.ndarray) -> set[str]:
    """Return the currency signs of the shapes that are money."""
    import pyarrow as pa
    import pyarrow.compute as pc

    marked = shapes.filter(pa.array(money))
    return {sign for sign in CURRENCIES if _any_with(marked, sign, pc)} if len(marked) else set()


def _any_with(texts: Any, sign: str, pc: Any) -> bool:
    return bool(pc.any(pc.match_substring(texts, sign)).as_py())


def decimal_evidence(texts: list[str], sep: str) -> str | None:
    """Return the decimal sign of a file from some of its cells: "?" if unclear, None if all fits.

    A comma that is followed by other than three digits is no thousands separator.
    """
    clear = {
        ",": re.compile(r"^\D{0,4}(\d+|\d{1,3}(\.\d{3})+),(\d{1,2}|\d{4,})(\s*\D{0,4})$"),
        ".": re.compile(r"^\D{0,4}(\d+|\d{1,3}(,\d{3})+)\.(\d{1,2}|\d{4,})(\s*\D{0,4})$"),
    }
    counts = {sign: sum(bool(form.match(text)) for text in texts) for sign, form in clear.items()}
    if counts[","] and not counts["."]:
        return ","
    if counts["."] or sep == ",":
        return "."
    if any(re.match(r"^\D{0,4}\d{1,3}(,\d{3})+\D{0,4}$", text) for text in texts):
        return "?"
    return None


class Dates(NamedTuple):
    """Texts read as dates: `days` since 1970, NaN where missing or none, `bad` tells the latter."""

    days: np.ndarray
    bad: np.ndarray
    has_time: bool


def dates(column: Any, order: str, missing: tuple[str, ...] = ()) -> Dates:
    """Read the cells of a column as dates; see `read_dates`."""
    texts, places = distinct(column)
    found = read_dates(texts, order, missing)
    return Dates(found.days[places], found.bad[places], found.has_time)


def read_dates(texts: Any, order: str, missing: tuple[str, ...] = ()) -> Dates:
    """Read dates with the year, the month and the day in this order; ISO dates in any case."""
    gone = _gone(texts, missing)
    found = _fields(texts)
    days, valid = found.days(order)
    good = valid & ~gone
    has_time = bool((good & found.timed).any())
    return Dates(np.where(good, days, np.nan), ~good & ~gone, has_time)


def date_orders(texts: Any) -> tuple[str, ...]:
    """Return the orders in which all these texts are dates; of ISO dates only ymd."""
    found = _fields(texts.filter(~_gone(texts, ())))
    if not (len(found.known) and found.known.all()):
        return ()
    orders = ("ymd",) if found.iso.all() else ("dmy", "mdy")
    return tuple(order for order in orders if found.days(order)[1].all())


class _Fields(NamedTuple):
    """Texts taken apart as dates.

    `known` tells which ones have the form of a date, `iso` that the year comes first. `clock` is
    the time as a share of a day, in UTC where a zone is stated, `fine` that there is such a time.
    """

    known: np.ndarray
    iso: np.ndarray
    first: np.ndarray
    second: np.ndarray
    third: np.ndarray
    timed: np.ndarray
    clock: np.ndarray
    fine: np.ndarray

    def days(self, order: str) -> tuple[np.ndarray, np.ndarray]:
        """Return days since 1970, and which ones there are, if day and month have this order."""
        swapped = ~self.iso & (order == "mdy")
        year = np.where(self.iso, self.first, self.third)
        month = np.where(swapped, self.first, self.second)
        day = np.where(self.iso, self.third, np.where(swapped, self.second, self.first))
        century = np.where(year < _TURN_OF_CENTURY, 2000, 1900)
        days, valid = _days(np.where(year < 100, century + year, year), month, day)
        return days + self.clock, valid & self.known & self.fine


def _fields(texts: Any) -> _Fields:
    """Take texts apart as dates, shape by shape."""
    import pyarrow.compute as pc

    apart, n = shaped(texts), len(texts)
    forms = [re.compile(form, re.ASCII) for form in (_DATE, *_WORDED)]
    likely = [pc.match_substring_regex(apart.shapes, form.pattern) for form in forms]
    wanted = np.logical_or.reduce([test.to_numpy(zero_copy_only=False) for test in likely])
    known, iso, timed, fine = (np.zeros(n, dtype=bool) for _ in range(4))
    first, second, third = (np.zeros(n, dtype=np.int64) for _ in range(3))
    clock = np.zeros(n)
    for _, shape, rows in apart.groups(wanted):
        match = next((found for form in forms if (found := form.match(shape))), None)
        if match is None:  # letters that differ from ASCII ones in their case alone
            continue

        def number(name: str, match: Any = match, shape: str = shape, rows: Any = rows) -> Any:
            return apart.whole(rows, digits(shape, *match.span(name)) if match[name] else ())

        known[rows], timed[rows] = True, bool(match["h"])
        if match.re is forms[0]:
            first[rows], second[rows], third[rows] = map(number, "abc")
            iso[rows] = first[rows] > 31
        else:
            first[rows], third[rows], iso[rows] = number("y"), number("d"), True
            second[rows] = 1 + _MONTHS.index(match["month"].lower())
        clock[rows], fine[rows] = _clock(match, number)
    return _Fields(known, iso, first, second, third, timed, clock, fine)


def _clock(match: re.Match[str], number: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the time of texts of one shape as a share of a day, and whether there is such a time.

    What a zone is ahead of UTC is subtracted.
    """
    hour, minute, fraction = number("h"), number("m"), number("part")
    seconds = number("sec") + fraction / 10.0 ** len(match["part"] or "")
    fine = (hour < 24) & (minute < 60) & (seconds < 61)
    if match["half"]:
        fine &= (hour >= 1) & (hour <= 12)
        hour = hour % 12 + 12 * (match["half"][0].lower() == "p")
    sign = -1.0 if match["sign"] == "-" else 1.0
    ahead = sign * (3600.0 * number("zh") + 60.0 * number("zm"))
    return (hour * 3600.0 + minute * 60.0 + seconds - ahead) / 86400.0, fine


def is_slashed(texts: Any) -> bool:
    """Tell whether dates are written with slashes: then month or day may come first."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring(texts, "/")).as_py())


def _days(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return days since 1970, and whether there is such a day."""
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (year >= 1) & (year <= 9999)
    months = 12 * (np.where(valid, year, 1970) - 1970) + np.where(valid, month, 1) - 1
    start = months.astype("datetime64[M]")
    days = start.astype("datetime64[D]") + (np.where(valid, day, 1) - 1)
    valid &= days.astype("datetime64[M]") == start
    return days.astype(np.int64).astype(np.float64), valid


def temporal_days(column: Any) -> np.ndarray:
    """Return days since 1970 of a column of pyarrow dates or timestamps, NaN where missing."""
    import pyarrow as pa

    micro = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None)), safe=False)
    values = micro.cast(pa.int64())
    whole = values.cast(pa.float64(), safe=False).to_numpy(**copied(values))  # to a microsecond
    return whole / 86_400e6


def copied(column: Any) -> dict[str, bool]:
    """Return the option with which `to_numpy` of a column may copy; chunks need none."""
    import pyarrow as pa

    return {} if isinstance(column, pa.ChunkedArray) else {"zero_copy_only": False}


def truths(texts: list[str]) -> tuple[str, str] | None:
    """Return which words mean false and true, if these are the words of one pair."""
    found = {text.casefold() for text in texts}
    return next((pair for pair in TRUTHS if found <= set(pair)), None) if len(found) == 2 else None

"""Cells of text as numbers, dates and truth values, the way that people write them.

All functions work on the distinct texts of a column (`Coded`), so that a column of a million rows
with a hundred values costs a hundred.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

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
    r"(?:[T ]+(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<sec>\d{2}(?:[.,]\d{1,9})?))?"
    r" ?(?P<half>[AaPp]\.?[Mm]\.?)? ?(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?"
)
_DATE = f"^{_DAY}{_TIME}$"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED = "(?P<m>" + "|".join(_MONTHS) + ")[a-z]*"
_NTH, _REST = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?", r"(?P<t>[T ].*)?$"
_WORDED = (  # 3 March 2021, 03-Mar-21, and March 3, 2021
    rf"(?i)^{_NTH}[ .\-/]*{_NAMED}[ .,\-/]*(?P<y>\d{{4}}|\d{{2}}){_REST}",
    rf"(?i)^{_NAMED}\.? +{_NTH},? +(?P<y>\d{{4}}){_REST}",
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
    import pyarrow as pa
    import pyarrow.compute as pc

    gone = _gone(texts, missing)
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
    values = pc.if_else(good, pointed, None).cast(pa.float64()).to_numpy(zero_copy_only=False)
    values = np.where(percent.to_numpy(zero_copy_only=False), values / 100.0, values)
    read = good.to_numpy(zero_copy_only=False) & ~gone
    values = np.where(gone, np.nan, values)
    found = {"percent": percent, "grouped": grouped}
    forms = {name for name, test in found.items() if _any(test, read)}
    forms |= _currencies(texts, money, read)
    return Numbers(values, ~read & ~gone, frozenset(forms))


def _gone(texts: Any, missing: tuple[str, ...]) -> np.ndarray:
    """Tell which texts say that there is no number or date."""
    import pyarrow as pa
    import pyarrow.compute as pc

    absent = {text.lower() for text in (*MISSING_TEXTS, *MISSING_NUMBERS, *missing)}
    known = pa.array(sorted(absent), pa.string())
    return pc.is_in(pc.utf8_lower(texts), known).to_numpy(zero_copy_only=False)


def _any(test: Any, read: np.ndarray) -> bool:
    return bool((test.to_numpy(zero_copy_only=False) & read).any())


def _currencies(texts: Any, money: Any, read: np.ndarray) -> set[str]:
    """Return the currency signs of the cells that were read as money."""
    import pyarrow as pa
    import pyarrow.compute as pc

    marked = texts.filter(pa.array(money.to_numpy(zero_copy_only=False) & read))
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
    import pyarrow.compute as pc

    gone = _gone(texts, missing)
    parts = pc.extract_regex(_with_month_numbers(texts), _DATE)
    found = ~parts.is_null().to_numpy(zero_copy_only=False)
    first, second, third, hour, minute = (
        _whole(pc.struct_field(parts, name)) for name in ("a", "b", "c", "h", "m")
    )
    second_text = pc.struct_field(parts, "sec")
    seconds = _floats(pc.replace_substring(second_text, ",", "."))
    iso = first > 31
    year = np.where(iso, first, third)
    day_first = order != "mdy"
    month = np.where(iso | day_first, second, first)
    day = np.where(iso, third, np.where(day_first, first, second))
    century = np.where(year < _TURN_OF_CENTURY, 2000, 1900)
    year = np.where((year < 100) & found, century + year, year)
    days, valid = _days(year, month, day)
    half = pc.utf8_lower(pc.utf8_slice_codeunits(pc.struct_field(parts, "half"), 0, 1))
    stated_half = np.array(half.fill_null("").to_pylist(), dtype=str)
    valid &= (stated_half == "") | ((hour >= 1) & (hour <= 12))
    hour = np.where(stated_half == "", hour, hour % 12 + 12 * (stated_half == "p"))
    clock = (hour * 3600.0 + minute * 60.0 + seconds - _ahead(parts)) / 86400.0
    good = found & valid & (hour < 24) & (minute < 60) & (seconds < 61) & ~gone
    stated = pc.struct_field(parts, "h").to_numpy(zero_copy_only=False)
    has_time = bool(np.any(good & np.array([bool(text) for text in stated], dtype=bool)))
    values = np.where(good, days + clock, np.nan)
    return Dates(values, ~good & ~gone, has_time)


def date_orders(texts: Any) -> tuple[str, ...]:
    """Return the orders in which all these texts are dates; of ISO dates only ymd."""
    import pyarrow.compute as pc

    texts = _with_month_numbers(texts)
    if not pc.all(pc.match_substring_regex(texts, _DATE)).as_py():
        return ()
    iso = _whole(pc.struct_field(pc.extract_regex(texts, _DATE), "a")) > 31
    if iso.all():
        return () if read_dates(texts, "ymd").bad.any() else ("ymd",)
    return tuple(order for order in ("dmy", "mdy") if not read_dates(texts, order).bad.any())


def _with_month_numbers(texts: Any) -> Any:
    """Return dates with named months (in English) as ISO dates; other texts as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    named = [pc.match_substring_regex(texts, form) for form in _WORDED]
    if not pc.any(pc.or_(*named)).as_py():
        return texts
    forms = [re.compile(form) for form in _WORDED]
    return pa.array([_iso(text, forms) for text in texts.to_pylist()], pa.string())


def _iso(text: str | None, forms: list[re.Pattern[str]]) -> str | None:
    found = text and next((match for form in forms if (match := form.match(text))), None)
    if not found:
        return text
    year = int(found["y"])
    if year < 100:
        year += 2000 if year < _TURN_OF_CENTURY else 1900
    month = 1 + _MONTHS.index(found["m"].lower())
    return f"{year:04d}-{month:02d}-{int(found['d']):02d}{found['t'] or ''}"


def _ahead(parts: Any) -> np.ndarray:
    """Return the seconds by which clocks are ahead of UTC; 0 where no zone is stated."""
    import pyarrow.compute as pc

    zones = pc.extract_regex(
        pc.struct_field(parts, "zone"), r"(?P<s>[+-])(?P<h>\d{2}):?(?P<m>\d{2})"
    )
    hour, minute = (_floats(pc.struct_field(zones, name)) for name in ("h", "m"))
    behind = pc.equal(pc.struct_field(zones, "s"), "-").fill_null(False)
    sign = np.where(behind.to_numpy(zero_copy_only=False), -1.0, 1.0)
    return sign * (3600.0 * hour + 60.0 * minute)


def is_slashed(texts: Any) -> bool:
    """Tell whether dates are written with slashes: then month or day may come first."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring(texts, "/")).as_py())


def _whole(texts: Any) -> np.ndarray:
    return _floats(texts).astype(np.int64)


def _floats(texts: Any) -> np.ndarray:
    """Return numbers, 0 where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pc.if_else(pc.equal(texts, ""), None, texts)
    return known.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)


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

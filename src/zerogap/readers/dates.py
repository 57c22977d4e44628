"""Cells of text as dates, the way that people and programs write them.

A text is taken apart by its shape (`zerogap.readers.shapes`): day, month and year, ISO weeks,
months and quarters of a year, months by their names, with a time and a zone or not.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from zerogap.readers.cells import copied, distinct, gone, with_plain_digits
from zerogap.readers.shapes import digits, shaped

DATE_ORDERS = ("ymd", "dmy", "mdy")
_TURN_OF_CENTURY = 70  # years of two digits below this one are of the 21st century
_MONTHS = (  # how their names begin: English, German, French, Spanish, Italian, Portuguese, Dutch
    ("jan", "jän", "ene", "gen"),
    ("feb", "fév", "fev"),
    ("mar", "mär", "mrz", "maa"),
    ("apr", "avr", "abr"),
    ("may", "mai", "mei", "mag"),
    ("juni", "jun", "juin", "giu"),
    ("juli", "jul", "juil", "lug"),
    ("aug", "aoû", "ago"),
    ("sep", "set"),
    ("oct", "okt", "ott", "out"),
    ("nov",),
    ("dec", "dez", "dic", "déc"),
)
_NUMBERS = {name: k + 1 for k, names in enumerate(_MONTHS) for name in names}
_ZONES = {  # hours ahead of UTC
    **{"Z": 0, "UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2, "EET": 2},
    **{"EEST": 3, "MSK": 3, "JST": 9, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7},
    **{"MDT": -6, "PST": -8, "PDT": -7},
}
_TIME = (
    r"(?:(?:[T ]+|, *)(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<sec>\d{2})(?:[.,](?P<part>\d{1,9}))?)?"
    r" ?(?P<half>[AaPp]\.?[Mm]\.?)? ?(?:Uhr)?"
    rf"(?P<zone>{'|'.join(sorted(_ZONES, key=len, reverse=True))})?"
    r"(?:(?P<sign>[+-])(?P<zh>\d{2}|\d)(?::?(?P<zm>\d{2}))?)?(?: ?[\[(][A-Za-z_/ ]+[\])])?)?"
)
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*[.,]? +)?"
_NAMED = f"(?P<month>{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})[a-zà-ÿ]*"
_NTH, _BETWEEN = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?", r"(?: *[.\-/,]? *|\.? de | of )"
_FORMS = tuple(
    re.compile(f"^{form}$")
    for form in (
        rf"(?P<a>\d{{1,2}}|\d{{4}})[-/.](?P<b>\d{{1,2}})[-/.](?P<c>\d{{1,2}}|\d{{4}}){_TIME}",
        # 3 March 2021, 03-Mar-21, Wed, 3 Mar 2021, 3. März 2021, 3 de marzo de 2021
        rf"(?i:{_WEEKDAY}{_NTH}{_BETWEEN}{_NAMED}{_BETWEEN}(?P<y>\d{{4}}|\d{{2}})){_TIME}",
        rf"(?i:{_WEEKDAY}{_NAMED}\.? +{_NTH},? +(?P<y>\d{{4}})){_TIME}",  # March 3, 2021
        r"(?P<y>\d{4})-?W(?P<week>\d{2})(?:-?(?P<weekday>\d))?",  # 2021-W09-3
        rf"(?P<y>\d{{4}})[年년] ?(?P<b>\d{{1,2}})[月월] ?(?P<d>\d{{1,2}})[日일]{_TIME}",
        r"(?P<y>\d{4})-(?P<b>\d{1,2})",  # 2021-03
        r"(?P<b>\d{1,2})[/.](?P<y>\d{4})",  # 03/2021
        rf"(?i:{_NAMED}[. \-/]*(?P<y>\d{{4}}))",  # March 2021
        r"(?i:(?P<y>\d{4})[ \-/]?Q(?P<quarter>\d))",
        r"(?i:Q(?P<quarter>\d)[ \-/]?(?P<y>\d{4}))",
    )
)


class Dates(NamedTuple):
    """Texts read as dates: `days` since 1970, NaN where missing or none, `bad` tells the latter."""

    days: np.ndarray
    bad: np.ndarray
    has_time: bool


class Fields(NamedTuple):
    """Texts taken apart as dates, whatever the order of day and month.

    `known` tells which ones have the form of a date, `iso` that its order is clear: year, month,
    day. `clock` is the time as a share of a day, in UTC where a zone is stated, `fine` that there
    is such a time, `timed` that there is any. `absent` are the texts that say that there is no
    date.
    """

    known: np.ndarray
    iso: np.ndarray
    first: np.ndarray
    second: np.ndarray
    third: np.ndarray
    timed: np.ndarray
    clock: np.ndarray
    fine: np.ndarray
    absent: np.ndarray

    def read(self, order: str) -> Dates:
        """Return the days, if those whose order is not clear have this one."""
        leads = self.iso | (order == "ymd")
        swapped = ~self.iso & (order == "mdy")
        year = np.where(leads, self.first, self.third)
        month = np.where(swapped, self.first, self.second)
        day = np.where(leads, self.third, np.where(swapped, self.second, self.first))
        century = np.where(year < _TURN_OF_CENTURY, 2000, 1900)
        days, valid = _days(np.where(year < 100, century + year, year), month, day)
        good = valid & self.known & self.fine & ~self.absent
        has_time = bool((good & self.timed).any())
        return Dates(np.where(good, days + self.clock, np.nan), ~good & ~self.absent, has_time)


def dates(column: Any, order: str, missing: tuple[str, ...] = ()) -> Dates:
    """Read the cells of a column as dates, in this order where it is not clear."""
    texts, places = distinct(column)
    found = fields(texts, missing).read(order)
    return Dates(found.days[places], found.bad[places], found.has_time)


def fields(texts: Any, missing: tuple[str, ...] = ()) -> Fields:
    """Take texts apart as dates, shape by shape."""
    import pyarrow.compute as pc

    texts = with_plain_digits(texts)
    apart, n = shaped(texts), len(texts)
    likely = [pc.match_substring_regex(apart.shapes, form.pattern) for form in _FORMS]
    wanted = np.logical_or.reduce([test.to_numpy(zero_copy_only=False) for test in likely])
    known, iso, timed, fine = (np.zeros(n, dtype=bool) for _ in range(4))
    first, second, third = (np.zeros(n, dtype=np.int64) for _ in range(3))
    clock = np.zeros(n)
    for _, shape, rows in apart.groups(wanted):
        match = next((found for form in _FORMS if (found := form.match(shape))), None)
        if match is None:  # pyarrow and Python differ in what is the capital of what
            continue

        def number(name: str, match: Any = match, shape: str = shape, rows: Any = rows) -> Any:
            there = name in match.re.groupindex and match[name]
            return apart.whole(rows, digits(shape, *match.span(name)) if there else ())

        known[rows], fine[rows] = True, True
        if "a" in match.re.groupindex:
            first[rows], second[rows], third[rows] = map(number, "abc")
            iso[rows] = first[rows] > 31
            lengths = [match.end(name) - match.start(name) for name in "ac"]
            fine[rows] = max(lengths) > 1  # 1.3.2 is a version, or a section
        else:
            first[rows], second[rows], third[rows] = _named(match, number)
            iso[rows] = True
        if "h" in match.re.groupindex:
            timed[rows] = bool(match["h"])
            clock[rows], fine[rows] = _clock(match, number)
    return Fields(known, iso, first, second, third, timed, clock, fine, gone(texts, missing))


def _named(match: re.Match[str], number: Any) -> tuple[Any, Any, Any]:
    """Return year, month and day of texts of one shape; of a month or quarter, its first day."""
    parts, year = match.groupdict(), number("y")
    if "week" in parts:
        return _of_week(year, number("week"), number("weekday") if parts["weekday"] else 1)
    if "quarter" in parts:
        return year, 3 * number("quarter") - 2, 1
    month = _NUMBERS.get(parts["month"].lower(), 0) if "month" in parts else number("b")
    return year, month, number("d") if "d" in parts else 1


def _of_week(year: Any, week: Any, weekday: Any) -> tuple[Any, Any, Any]:
    """Return year, month and day of a day of an ISO week; month 0 where there is none."""
    fourth = _days(year, np.ones_like(year), np.full_like(year, 4))[0].astype(np.int64)
    days = fourth - (fourth + 3) % 7 + 7 * (week - 1) + weekday - 1  # week 1 has 4 January
    when = days.astype("datetime64[D]")
    months = when.astype("datetime64[M]")
    own = (when - (days + 3) % 7 + 3).astype("datetime64[Y]").astype(np.int64) + 1970
    valid = (own == year) & (week > 0) & (weekday > 0) & (weekday < 8)
    month = np.where(valid, months.astype(np.int64) % 12 + 1, 0)
    day = (when - months.astype("datetime64[D]")).astype(np.int64) + 1
    return months.astype("datetime64[Y]").astype(np.int64) + 1970, month, day


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
    ahead += 3600.0 * _ZONES[match["zone"] or "UTC"]
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

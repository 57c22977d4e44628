"""Cells of text as numbers, dates and truth values, the way that people write them.

All functions work on the distinct texts of a column (`Coded`), so that a column of a million rows
with a hundred values costs a hundred.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from zerogap.readers.shapes import EXACT_DIGITS, Shaped, digits, shaped

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
    *("n.d.", "n. d.", "n.v.", "k. a.", "keine angabe", "unbekannt", "s/d", "s.d.", "sin datos"),
    *("no data", "no answer", "not applicable", "inconnu", "desconocido", "(blank)", "(leer)"),
    *(
        "(vide)",
        "#nv",
        "#bezug!",
        "#wert!",
        "#zahl!",
        "#n/d",
        "#valeur!",
        "-/-",
        "*",
        "…",
        "\u2014",
        "\u2013",
    ),
    *("0000-00-00", "0000-00-00 00:00:00", "00/00/0000", "00.00.0000"),  # databases' word for it
)
CURRENCIES = (  # longer ones before those that they hold
    *("US$", "C$", "A$", "R$", *"$€£¥₹₽₩₺₴₪฿₫₦", "Rs.", "Rs", "kr.", "kr", "zł", "Kč"),
    *("EUR", "USD", "GBP", "CHF", "JPY", "CNY", "INR", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF"),
    *("CAD", "AUD", "NZD", "BRL", "MXN", "TRY", "RUB", "KRW", "SGD", "HKD", "ZAR"),
)
TRUTHS = (  # (false, true)
    *(("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("off", "on")),
    *(("nein", "ja"), ("non", "oui"), ("falsch", "wahr"), ("faux", "vrai"), ("no", "si")),
    *(("no", "sí"), ("não", "sim"), ("nee", "ja"), ("nej", "ja"), ("nie", "tak"), ("нет", "да")),
)
MEANINGS = {"0": False, "1": True} | {
    word: meaning for pair in TRUTHS for word, meaning in zip(pair, (False, True), strict=True)
}
_SIGNS = "|".join(re.escape(sign) for sign in CURRENCIES)
_CLOCK = re.compile(
    r"^(?P<h>\d{1,3}):(?P<m>\d{2})(?::(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?$"
)
_WITH_UNIT = r"^[-+(]*\d[\d.,' ]*?\s*(?P<unit>[\pL°µ²³‰\"][\pL°²³\"/.]{0,9})\)?$"
_DIGITS = {chr(first + k): str(k) for first in (0x660, 0x6F0, 0x966, 0xFF10) for k in range(10)}
_DIGITS |= {"\u066b": ".", "\u066c": ","}  # of Arabic numbers
_BLANKS = "[\u00a0\u2007\u2009\u202f]"  # no-break, figure, thin and narrow spaces
_GROUPS = {".": "[, '\u2019_]", ",": "[. '\u2019_]"}  # what parts thousands, by the decimal sign


class Coded(NamedTuple):
    """A column of text: its texts without blanks around them, and the place of each row's own."""

    texts: Any
    places: np.ndarray


class Numbers(NamedTuple):
    """Texts read as numbers.

    `values` are NaN where a cell is missing or no number, `bad` tells the latter; `forms` are what
    was found beside plain numbers, of percent, grouped, clock and the currencies.
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


def numbers(column: Any, decimal: str, missing: tuple[str, ...] = (), unit: str = "") -> Numbers:
    """Read the cells of a column as numbers; see `read_numbers`."""
    texts, places = distinct(column)
    found = read_numbers(texts, decimal, missing, unit)
    return Numbers(found.values[places], found.bad[places], found.forms)


def read_numbers(
    texts: Any, decimal: str, missing: tuple[str, ...] = (), unit: str = ""
) -> Numbers:
    """Read numbers with thousands separators, percent and currency signs, or in parentheses.

    Times become hours.  The unit may follow each number.
    """
    texts = with_plain_digits(texts)
    absent, apart = gone(texts, missing), shaped(texts)
    form = _forms(apart.shapes, decimal, unit)
    values = np.full(len(texts), np.nan)
    for k, shape, rows in apart.groups(form.good):
        plain, places = form.plain[k].as_py(), digits(shape)
        if len(places) > EXACT_DIGITS or not plain.lstrip("+-").replace(".", "").isdigit():
            own = _forms(texts.take(rows), decimal, unit).plain  # an exponent, or many digits
            values[rows] = own.cast("float64").to_numpy()
            continue
        power = len(plain) - 1 - plain.index(".") if "." in plain else 0
        sign = -1.0 if plain.startswith("-") else 1.0
        values[rows] = sign * apart.whole(rows, places) / 10.0**power
    values = np.where(form.percent[apart.codes], values / 100.0, values)
    clock = _add_hours(apart, values)
    _add_hex(texts, apart, values)
    values = np.where(absent, np.nan, values)
    read = ~np.isnan(values)
    used = np.bincount(apart.codes[read], minlength=len(apart.shapes)) > 0
    found = {"percent": form.percent, "grouped": form.grouped, "clock": clock}
    forms = {name for name, test in found.items() if (test & used).any()}
    forms |= _currencies(apart.shapes, form.money & used)
    return Numbers(values, ~read & ~absent, frozenset(forms))


class _Forms(NamedTuple):
    """What texts are as numbers: `plain` is how Python writes them, of those that are `good`."""

    plain: Any
    good: np.ndarray
    percent: np.ndarray
    grouped: np.ndarray
    money: np.ndarray


def _forms(texts: Any, decimal: str, unit: str) -> _Forms:
    import pyarrow.compute as pc

    def replaced(texts: Any, *pairs: tuple[str, str]) -> Any:
        for pattern, by in pairs:
            texts = pc.replace_substring_regex(texts, pattern, by)
        return texts

    texts = replaced(
        texts,
        (_BLANKS, " "),
        ("^[\u2212\u2013]", "-"),
        (r"^\(\s*(.*?)\s*\)$", r"-\1"),
        *([(rf"(?i)(\d)\s*{re.escape(unit)}$", r"\1")] if unit else []),
    )
    percent = pc.match_substring_regex(texts, "%$")
    texts = replaced(texts, (r"\s*%$", ""))
    bare = replaced(
        texts,
        (rf"^([-+]?)\s*(?:{_SIGNS})\s*([-+]?)", r"\1\2"),
        (rf"\s*(?:{_SIGNS})$", ""),
    )
    money = pc.not_equal(bare, texts)
    bare = replaced(bare, ("(\\d)[.,] ?[-\u2013]$", r"\1"), (r"^([\d.,' ]*\d)-$", r"-\1"))
    point, groups = re.escape(decimal), _GROUPS[decimal]
    threes = [rf"\d{{1,3}}(?:{one}\d{{3}})+" for one in (groups.replace(" ", ""), " ")]
    threes += [r"\d{1,2}(?:,\d{2})+,\d{3}"] if decimal == "." else []  # as in India
    grouped = pc.match_substring_regex(bare, rf"^[-+]?(?:{'|'.join(threes)})(?:{point}\d*)?$")
    plain = pc.if_else(grouped, pc.replace_substring_regex(bare, groups, ""), bare)
    usual = rf"^[-+]?(?:\d+(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?$"
    good = pc.match_substring_regex(plain, usual)
    pointed = plain if decimal == "." else pc.replace_substring(plain, ",", ".")
    flags = (f.to_numpy(zero_copy_only=False) for f in (good, percent, grouped, money))
    return _Forms(pointed, *flags)


def _add_hours(apart: Shaped, values: np.ndarray) -> np.ndarray:
    """Set the hours of times such as 14:30, 9:05:10 or 2:30 PM; return which shapes they have."""
    import pyarrow.compute as pc

    clock = pc.match_substring_regex(apart.shapes, _CLOCK.pattern).to_numpy(zero_copy_only=False)
    for _, shape, rows in apart.groups(clock):
        match = _CLOCK.match(shape)
        spans = [match.span(name) if match[name] else (0, 0) for name in "hmsf"] if match else []
        hour, minute, second, part = (apart.whole(rows, digits(shape, *span)) for span in spans)
        second = second + part / 10.0 ** (spans[3][1] - spans[3][0])
        fine = (minute < 60) & (second < 60)
        if match and match["half"]:
            fine &= (hour >= 1) & (hour <= 12)
            hour = hour % 12 + 12 * (match["half"].lower() == "p")
        values[rows] = np.where(fine, hour + minute / 60.0 + second / 3600.0, np.nan)
    return np.asarray(clock)


def _add_hex(texts: Any, apart: Shaped, values: np.ndarray) -> None:
    """Set whole numbers such as 0x1F, which pyarrow, too, takes for numbers."""
    import pyarrow.compute as pc

    found = pc.match_substring_regex(apart.shapes, "^0[xX][0-9a-fA-F]{1,16}$")
    for _, _, rows in apart.groups(found.to_numpy(zero_copy_only=False)):
        for row, text in zip(rows, texts.take(rows).to_pylist(), strict=True):
            if text[0] == "0":  # a shape has a 0 for every digit: 4x4 is none
                values[row] = int(text, 16)


def with_plain_digits(texts: Any) -> Any:
    """Return texts whose digits, of Arabic, Indian or wide letters, are 0 to 9."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts
    if not pc.any(pc.match_substring_regex(texts, f"[{''.join(_DIGITS)}]")).as_py():
        return texts
    table = str.maketrans(_DIGITS)
    return pa.array([text.translate(table) for text in texts.to_pylist()], pa.string())


def common_unit(texts: Any) -> tuple[str, ...]:
    """Return what follows the numbers in these texts, in small letters; nothing if few have any."""
    import pyarrow.compute as pc

    known = texts.filter(~gone(texts, ()))
    apart = shaped(known)
    found = pc.struct_field(pc.extract_regex(apart.shapes, _WITH_UNIT), "unit")
    units = pc.utf8_lower(found).to_pylist()
    share = sum(np.bincount(apart.codes, minlength=len(units))[[u is not None for u in units]])
    return tuple(sorted({u for u in units if u is not None})) if 2 * share > len(known) else ()


def gone(texts: Any, missing: tuple[str, ...]) -> np.ndarray:
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

    marked, found = shapes.filter(pa.array(money)), set()
    for sign in CURRENCIES if len(marked) else ():
        if pc.any(pc.match_substring(marked, sign)).as_py():
            found.add(sign.rstrip("."))
            marked = pc.replace_substring(marked, sign, "")
    return found


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


def copied(column: Any) -> dict[str, bool]:
    """Return the option with which `to_numpy` of a column may copy; chunks need none."""
    import pyarrow as pa

    return {} if isinstance(column, pa.ChunkedArray) else {"zero_copy_only": False}


def truths(texts: list[str]) -> tuple[str, str] | None:
    """Return which words mean false and true, if these are words of one pair or of several.

    Words of several pairs, and 0 and 1 among them, all mean false or true.
    """
    found = {text.casefold() for text in texts}
    if len(found) == 2 and (pair := next((p for p in TRUTHS if found <= set(p)), None)):
        return pair
    meant = {MEANINGS.get(text) for text in found}
    return TRUTHS[0] if meant == {False, True} and len(found) > 2 else None

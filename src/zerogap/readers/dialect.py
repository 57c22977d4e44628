"""How the text of a table is written: separator, decimal sign, encoding, header."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from zerogap.readers import cells
from zerogap.readers.files import DataError
from zerogap.readers.options import MOST_COLUMNS, SEPARATORS, TableOptions
from zerogap.readers.respelling import (
    BLANKS,
    ESCAPED,
    WHOLE_LINES,
    WITH_ZEROS,
    Rule,
    are_quoted,
    has_escapes,
    respelt_lines,
    rules,
)

SAMPLE = 1 << 18  # bytes that a guess is made from
_MOST_RECORDS = 200  # of them, at most
_ZEROS_OF_UTF16 = 0.6  # share of every second byte that is zero in UTF-16 of mostly ASCII text
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CP1252_HOLES = frozenset(b"\x81\x8d\x8f\x90\x9d")
_WORD = re.compile(rb"[A-Za-z\x80-\xff]+")
_ODD = re.compile(  # between letters: what cp1252 has no letter for, nor a sign that joins them
    rb"(?<=[A-Za-z\x80-\xff])[\x81\x84\x86-\x89\x8b\x8d\x8f\x90\x93-\x95\x98\x99\x9b\x9d\xa1-\xac\xae\xaf\xb1-\xb3"
    rb"\xb6\xb8\xb9\xbb-\xbf\xd7\xf7]+[A-Za-z]"
)
_FEW_WORDS, _MOST_HIGH = 3, 0.6  # words with accents, and the most letters in them that have one
_OTHERS = "cp1251 (Cyrillic), cp1250 (Polish), gbk, shift_jis, euc-kr, cp1253, cp850 or mac-roman"
_CODE = re.compile(r"^0\d+$")
_LIKELY = ("\t", ";", "|", ",")  # commas last: they also part digits
NAMES = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "pipe", BLANKS: "blanks"}
_FEWEST_LINES = 3  # that have equally many cells, where blanks separate these
_LOOKED_AT = 50  # lines from which it is told whether something stands above the table


@dataclass(frozen=True)
class Dialect:
    """How the text of a table is written.

    Attributes
    ----------
    sep, quote, decimal, encoding : str
    rules : tuple
        What is replaced in each line before it is cut into cells, see `respelling`.
    header : bool
        Whether the first line names the columns.
    skip_lines : int
        Lines before that one.
    names : tuple of str
        Of the columns.
    below : int
        Records below that one that are no rows.
    coded : tuple of int
        Columns in which some of the first numbers begin with a zero, as codes do.
    """

    sep: str = ","
    quote: str = '"'
    rules: tuple[Rule, ...] = ()
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool = True
    skip_lines: int = 0
    names: tuple[str, ...] = ()
    below: int = 0
    coded: tuple[int, ...] = ()

    def lines(self, text: Any) -> Any:
        """Return a reader of the records of a text file, which knows its lines."""
        lines = respelt_lines(text, self.rules)
        quotes = {"quotechar": self.quote} if self.quote else {"quoting": csv.QUOTE_NONE}
        return csv.reader(lines, delimiter=self.sep, strict=False, **quotes)


def guess(
    sample: bytes, whole: bool, kind: str, options: TableOptions, trained: str | None = None
) -> tuple[Dialect, dict[str, str]]:
    """Return how the text that begins with a sample is written, and what of that was guessed.

    `whole` tells that the sample is all, `trained` is the decimal sign of the training data.
    """
    guesses: dict[str, str] = {}
    encoding = options.encoding or _encoding(sample, whole, options.skip_bad_lines)
    text = _decoded(sample, encoding, whole).removeprefix("\ufeff")
    if options.encoding is None and encoding not in ("utf-8", "utf-8-sig"):
        guesses["encoding"] = encoding
    lines = io.StringIO(text, newline="").readlines()
    skip, sep = _above(lines, options, guesses)
    lines = lines[skip:]
    if options.skip_bad_lines and "\0" in text:
        lines = list(respelt_lines(lines, (WITH_ZEROS,)))
    how = _cut(lines, sep, kind, options, guesses)
    if options.skip_bad_lines and "\0" in text:
        how = replace(how, rules=(WITH_ZEROS, *how.rules))
    records = _records(lines, how)
    refuse_width(len(records[0]))
    if not options.skip_lines:
        refuse_title(records, "line", _numbers(lines, how, skip))
    del records[1 : 1 + options.skip_below]
    decimal = options.decimal
    if decimal is None:
        texts = [cell.strip() for row in records[1:] for cell in row]
        found = cells.decimal_evidence(texts, how.sep)
        if found == "?" and trained is None:
            raise DataError(_unclear(records))
        decimal = trained or "." if found in (None, "?") else found
        if decimal == ",":
            guesses["decimal sign"] = "comma"
    header = options.header if not options.names else False
    if header is None:
        header = _has_header(records, skip)
    names = tuple(name.strip() for name in options.names or (records[0] if header else ()))
    names = _with_unnamed(names, records[header:], skip)
    coded = {k for row in records for k, cell in enumerate(row) if _CODE.match(cell.strip())}
    told: dict[str, Any] = {
        "decimal": decimal,
        "encoding": encoding,
        "header": header,
        "skip_lines": skip,
        "below": options.skip_below,
    }
    return replace(how, names=names, coded=tuple(sorted(coded)), **told), guesses


def _above(
    lines: list[str], options: TableOptions, guesses: dict[str, str]
) -> tuple[int, str | None]:
    """Return how many lines are above the table, and its separator if it is told there."""
    skip, sep, sign = options.skip_lines, options.sep, options.comment

    def passes() -> bool:
        line = lines[skip].strip()
        return not line or (sign is not None and line.startswith(sign))

    while skip < len(lines) - 1 and passes():
        skip += 1
    if skip < len(lines) and sep is None:
        said = lines[skip].strip().strip('"')
        if said.lower()[:4] == "sep=":  # as spreadsheets write it
            skip, sep = skip + 1, said[4:5] or ","
    if not any(line.strip() for line in lines[skip:]):
        raise DataError("is empty")
    comments = 0
    while skip < len(lines) - 1 and (_is_comment(lines[skip:]) or (comments and passes())):
        comments += not passes()
        skip += 1
    if comments:
        guesses["comments"] = f"in {comments} lines at the beginning"
    return skip, sep


def _cut(
    lines: list[str], sep: str | None, kind: str, options: TableOptions, guesses: dict[str, str]
) -> Dialect:
    """Return how lines are cut into cells."""
    if options.quote is None and are_quoted(lines):
        guesses["quotes"] = "around whole lines"
        how = _cut(list(respelt_lines(lines, (WHOLE_LINES,))), sep, kind, options, guesses)
        return replace(how, rules=(WHOLE_LINES, *how.rules))
    if sep is None:
        sep = _separator(lines, kind)
        if sep != ("\t" if kind == "tsv" else ","):
            guesses["separator"] = NAMES[sep]
    quote = '"' if options.quote is None else options.quote
    if options.quote is None and _in_single_quotes(lines[0], sep):
        quote = guesses["quotes"] = "'"
    blanks = any(re.search(rf'{re.escape(sep)} +"', line) for line in lines)
    found = rules(sep, options.comment, blanks and quote == '"')
    if quote == '"' and has_escapes(lines, sep):
        guesses["quotes"] = "in cells after backslashes"
        found = (ESCAPED, *found)
    return Dialect(sep, quote, found)


def _in_single_quotes(line: str, sep: str) -> bool:
    """Tell whether all names of columns are in single quotes."""
    names = [name.strip() for name in line.split(sep)]
    return len(names) > 1 and all(re.match("^'[^']+'$", name) for name in names)


def _is_comment(lines: list[str]) -> bool:
    """Tell whether the first line begins with # and is not made of cells as the later ones are."""
    if not lines[0].startswith("#"):
        return False
    rest = [line for line in lines[1:50] if line.strip() and not line.startswith("#")]
    own = [lines[0].count(sep) for sep in SEPARATORS]
    return bool(rest) and all([line.count(sep) for sep in SEPARATORS] != own for line in rest[:1])


def refuse_width(columns: int) -> None:
    """Refuse a table of more columns than can be read as columns."""
    if columns > MOST_COLUMNS:
        raise DataError(
            f"has {columns:,} columns, and a table {MOST_COLUMNS:,} at most: save more of them as "
            f"an array X (npz) or as svmlight"
        )


def refuse_title(records: list[list[str]], line: str, numbers: list[int]) -> None:
    """Refuse a first line, or row of a sheet, of fewer cells than most others have.

    `numbers` tells how many lines are above each record.
    """
    seen = records[:_LOOKED_AT]
    sizes = [sum(bool(cell.strip()) for cell in row) for row in seen]
    if not seen or not sizes[0] or not records[0][0].strip():
        return
    usual, rows = Counter(map(len, seen)).most_common(1)[0]
    wide = next((k for k, size in enumerate(sizes) if size > 2), None)
    if sizes[0] > 1:  # names of columns may lack one, above the names of rows
        short = len(records[0]) < usual - 1 and 2 * rows > len(seen)
        wide = next(k for k, row in enumerate(seen) if len(row) == usual) if short else None
    elif sum(size > 2 for size in sizes) <= len(sizes) / 2:
        wide = None
    if wide is not None:
        what = f"one cell, {records[0][0].strip()!r}," if sizes[0] == 1 else f"{sizes[0]} cells"
        raise DataError(
            f"{line} {numbers[0] + 1}: {what} where most {line}s have {sizes[wide]}: "
            f"--skip-lines {numbers[wide]} passes over it"
        )


def _with_unnamed(names: tuple[str, ...], rows: list[list[str]], skip: int) -> tuple[str, ...]:
    """Return a name for each cell, also where all lines begin or end with one more than names."""
    if not names:
        return ("",) * len(rows[0])
    sizes = {len(row) for row in rows[:-1] or rows}
    if sizes != {len(names) + 1}:
        return names
    if not any(row[-1].strip() for row in rows[:-1] or rows):
        return (*names, "")
    first = [row[0].strip() for row in rows[:-1] or rows]
    if all(cells.NUMBER.match(cell) for cell in first):
        values = [float(cell) for cell in first]
        if any(b <= a for a, b in pairwise(values)):  # no names of rows, which R writes
            raise DataError(
                f"has {len(names)} names and {len(names) + 1} cells in each line: if the comma is "
                f"the decimal sign and parts the cells, too, save the table with another "
                f"separator; else --names A,B,... --skip-lines {skip + 1} names all columns"
            )
    return ("", *names)


def _encoding(sample: bytes, whole: bool, skips: bool) -> str:
    for bom, name in _BOMS:
        if sample.startswith(bom):
            return name
    if b"\0" in sample and (wide := _wide_encoding(sample, skips)):
        return wide
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=whole)
    except UnicodeDecodeError as error:
        if not is_western(sample):
            line = sample.count(b"\n", 0, error.start) + 1
            raise DataError(
                f"line {line}: is text in an encoding that cannot be guessed: give --encoding, as "
                f"{_OTHERS}"
            ) from None
        return fallback(sample)
    return "utf-8"


def _wide_encoding(sample: bytes, skips: bool) -> str | None:
    """Return the encoding without a mark in which most of the text is ASCII; refuse other zeros.

    `skips` tells that lines that hold them are left out.
    """
    share = {k: sample[k::2].count(0) / max(1, len(sample[k::2])) for k in (0, 1)}
    for zeros, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if share[zeros] > _ZEROS_OF_UTF16 and share[1 - zeros] < 1.0 - _ZEROS_OF_UTF16:
            return name
    if skips:
        return None
    line = sample.count(b"\n", 0, sample.index(b"\0")) + 1
    raise DataError(
        f"line {line}: holds zero bytes: the file is damaged (--skip-bad-lines leaves such lines "
        f"out), or its text has an encoding to be given, as --encoding utf-16-le"
    )


def is_western(sample: bytes) -> bool:
    """Tell whether what is not UTF-8 may be text in cp1252: letters with accents among others.

    Not in most letters of most words, as in Cyrillic or Chinese, and no § or † between letters.
    """
    words = {word for word in _WORD.findall(sample) if len(word) > 1 and not word.isascii()}
    if any(_ODD.search(word) for word in words):
        return False
    high = sum(byte >= 0x80 for word in words for byte in word)
    return len(words) < _FEW_WORDS or high <= _MOST_HIGH * sum(map(len, words))


def fallback(sample: bytes) -> str:
    """Return the likeliest encoding of what is not UTF-8."""
    return "latin-1" if _CP1252_HOLES & set(sample) else "cp1252"


def _decoded(sample: bytes, encoding: str, whole: bool) -> str:
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample, final=whole)
    except UnicodeDecodeError as error:
        line = sample.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"line {line}: is not text in {encoding}: give another --encoding, as latin-1"
        ) from None


def _records(lines: list[str], how: Dialect) -> list[list[str]]:
    """Return the first records that are not empty; the last one may be cut short."""
    return [record for record, _ in _numbered(lines, how)]


def _numbers(lines: list[str], how: Dialect, skip: int) -> list[int]:
    """Return how many lines of the file are above each of these records."""
    return [skip + before for _, before in _numbered(lines, how)]


def _numbered(lines: list[str], how: Dialect) -> list[tuple[list[str], int]]:
    reader = how.lines(lines)
    found: list[tuple[list[str], int]] = []
    before = 0
    try:
        for record in reader:
            if record:
                found.append((record, before))
            before = reader.line_num
            if len(found) > _MOST_RECORDS:
                break
    except csv.Error as error:
        raise DataError(f"line {reader.line_num}: {error}") from None
    return found


def _separator(lines: list[str], kind: str) -> str:
    """Return what parts the cells of most lines into as many as the first one has."""
    usual = "\t" if kind == "tsv" else ","
    best, share = usual, 0.0
    counts: dict[str, list[int]] = {}
    for sep in (usual, *(s for s in _LIKELY if s != usual)):
        try:
            records = _records(lines, Dialect(sep))
        except DataError:  # a whole line of many cells may be too long to be one cell
            continue
        sizes = counts[sep] = [len(record) for record in records[:-1] or records]
        if sizes[0] < 2:
            continue
        agree = sum(size == sizes[0] for size in sizes) / len(sizes)
        if agree > share or (agree == share and sep != "," and best == ","):
            best, share = sep, agree
    return best if share >= 0.5 else _below_a_title(lines, counts, best)


def _below_a_title(lines: list[str], counts: dict[str, list[int]], best: str) -> str:
    """Return what parts most lines into equally many cells, whatever the first one has."""
    share = 0.5
    for sep, sizes in counts.items():
        size, rows = Counter(sizes[1:] or sizes).most_common(1)[0]
        agree = rows / max(1, len(sizes) - 1)
        if size > 1 and (agree > share or (agree == share and sep != "," and best == ",")):
            best, share = sep, agree
    if share > 0.5 or any(size > 1 for sizes in counts.values() for size in sizes):
        return best
    sizes = [len(row) for row in _records(lines, Dialect(BLANKS, rules=rules(BLANKS, None, False)))]
    alike = len(sizes) >= _FEWEST_LINES and sizes[0] > 1 and len(set(sizes[1:-1])) == 1
    named = sizes[1:2] in ([sizes[0]], [sizes[0] + 1])  # or names of rows have no name, as of R
    return BLANKS if alike and named else best


def _has_header(records: list[list[str]], skip: int) -> bool:
    """Tell whether the first line has names; refuse one that may be either."""
    first, rest = records[0], [row for row in records[1:] if len(row) == len(records[0])]
    numeric = [k for k, cell in enumerate(first) if cells.NUMBER.match(cell)]
    if not numeric:
        return True
    line = f"line {skip + 1}"
    if len(numeric) == len(first):
        raise DataError(
            f"{line}: only numbers; the first line must name the columns, unless --no-header says "
            f"that it does not"
        )
    alike = [k for k in numeric if any(cells.NUMBER.match(row[k]) for row in rest[:20])]
    if alike or not rest:
        above = bool(records[1:]) and not any(cells.NUMBER.match(cell) for cell in records[1])
        more = f", --skip-lines {skip + 1} if the next line does" if above else ""
        raise DataError(
            f"{line}: holds the number {first[numeric[0]].strip()!r}; give --no-header if that "
            f"line is data, --header if it names the columns{more}"
        )
    return True


def _unclear(records: list[list[str]]) -> str:
    texts = (cell.strip() for row in records[1:] for cell in row)
    text = next(t for t in texts if "," in t and any(c.isdigit() for c in t))
    plain = "".join(c for c in text if c.isdigit() or c == ",")
    return (
        f"{text!r} may be {plain.replace(',', '')} or {plain.replace(',', '.', 1)}: "
        f"give --decimal . or --decimal ,"
    )


def told_apart(names: tuple[str, ...], notes: list[str]) -> tuple[str, ...]:
    """Return names that differ: those without one are numbered, and so are the same ones."""
    given, taken = set(names), dict[str, None]()
    copies: Counter[str] = Counter(dict.fromkeys(given, 1))
    for k, name in enumerate(names):
        base = new = name or f"column{k + 1}"
        while new in taken or (new != name and new in given):
            copies[base] = max(2, copies[base] + 1)
            new = f"{base} ({copies[base]})"
        if new != name and name:
            notes.append(f"has two columns named {name!r}: the later one is called {new!r}")
        taken[new] = None
    return tuple(taken)


def text_lines(raw: Any, encoding: str) -> Any:
    """Return a binary file as text, line by line."""
    return io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline="")


__all__ = ["SEPARATORS", "Dialect", "fallback", "guess", "text_lines", "told_apart"]

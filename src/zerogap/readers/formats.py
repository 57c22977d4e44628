"""Formats of data files, and how to tell one from another."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from zerogap.readers.files import DataError, Stream, open_source

FORMATS = ("svmlight", "csv", "tsv", "parquet", "arrow", "jsonl", "xlsx", "npz")
TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl", "xlsx")
_ROWS_OUT = "save its table as CSV or Parquet"
_MAGIC = {
    b"\xff\xff\xff\xff": "arrow",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "arrow",
    b"PK\x03\x04": "npz",
}
_PAGE = "a web page or XML: save its table as CSV"
_FOREIGN = {  # first bytes of files that are no tables here, and what to do
    b"\xd0\xcf\x11\xe0": "an old spreadsheet (.xls): save it as .xlsx or as CSV",
    b"%PDF": "a PDF document: save its table as CSV",
    b"SQLite format 3": "a SQLite database: export a table of it as CSV",
    b"\x89HDF": "an HDF5 file: save its table as CSV or Parquet",
    **dict.fromkeys((b"<!doctype", b"<html", b"<?xml", b"<table"), _PAGE),
    **dict.fromkeys((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0"), "packed twice: unpack it once"),
    b"PK\x05\x06": "an empty zip",
    b"\x93NUMPY": "one array of NumPy: numpy.savez writes X and y to one file",
    b"<stata_dta>": f"a file of Stata: {_ROWS_OUT}",
    b"$FL2": f"a file of SPSS: {_ROWS_OUT}",
    bytes(12) + b"\xc2\xea\x81\x60": f"a file of SAS: {_ROWS_OUT}",
    b"X\n\0\0\0": f"a file of R: {_ROWS_OUT}",
    b"RDX": f"a file of R: {_ROWS_OUT}",
    b"insert into": "a script of SQL: save the table as CSV",
    b"create table": "a script of SQL: save the table as CSV",
    b"-- mysql dump": "a script of SQL: save the table as CSV",
    b"--\n-- postgresql": "a script of SQL: save the table as CSV",
    b"@relation": "an ARFF file: save its table as CSV",
    b"\x80\x04": "a pickle: save its table as CSV or Parquet",
    b"\x80\x05": "a pickle: save its table as CSV or Parquet",
}
_SUFFIXES = {
    "feather": "arrow",
    "ndjson": "jsonl",
    "json": "jsonl",
    "xlsm": "xlsx",
    "svm": "svmlight",
}
_SUFFIXES |= {"tab": "tsv", "libsvm": "svmlight"}
_LONGEST_MESSAGE = 2000  # characters of a line for people: names and cells may be anything
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SEPARATED = re.compile(rb"[,;\t|]")
_PAIR = re.compile(rb"^(\d+|qid):\S")
_FEWEST_LINES, _LOOKED_AT = 3, 20
_BEGIN_OTHERWISE = ("xlsx", "parquet", "npz")  # than text: what has such a name is something else
_SVMLIGHT = re.compile(rb"^\s*(#|[-+]?[\d.]+([eE][-+]?\d+)?(\s|$)|\d+:\S)")


@contextmanager
def named(source: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors begin with the name of a source."""
    name = "<stdin>" if source == "-" else os.fspath(source)
    try:
        yield
    except DataError as error:
        message = f"{name}: {error}".replace("\n", " ")  # of names of files and columns
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[:_LONGEST_MESSAGE]} ..."
        raise DataError(message) from error.__cause__


@contextmanager
def open_as(
    source: str | os.PathLike[str], format: str | None, max_bytes: int, is_table: bool = False
) -> Iterator[tuple[Stream, str]]:
    """Open a source, and tell its format unless that is given; errors begin with its name.

    Text is a table where that is known, and else svmlight or a table.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    with named(source), open_source(source, max_bytes) as stream:
        kind = format or _sniff(stream, is_table)
        if kind == "svmlight" and stream.start().startswith(_UTF16):
            raise DataError("is text in UTF-16: save it as UTF-8")
        yield stream, kind


def _sniff(stream: Stream, known_table: bool) -> str:
    """Return the format that the first bytes tell, or else the name."""
    start = stream.start()
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            sheet = kind == "npz" and stream.suffix in (".xlsx", ".xlsm")
            return stream.zipped or ("xlsx" if sheet else kind)
    if start[257:262] == b"ustar":
        raise DataError("is a tar archive: unpack the file to read")
    for magic, what in _FOREIGN.items():
        if start.startswith(magic) or start[:100].lstrip().lower().startswith(magic):
            raise DataError(f"is {what}")
    suffix = stream.suffix[1:]
    kind = _SUFFIXES.get(suffix, suffix)
    if kind in FORMATS and not (kind in _BEGIN_OTHERWISE and start):
        return kind
    if known_table and kind not in FORMATS:
        return "csv"
    if start.lstrip().startswith((b'{"', b'[{"')):
        return "jsonl"
    line = start.split(b"\n")[0]
    is_table = start.startswith(_UTF16) or known_table or _separated_by_blanks(start)
    is_table |= bool((not _SVMLIGHT.match(line) or b"," in line) and _SEPARATED.search(line))
    if not is_table and line.strip() and not _SVMLIGHT.match(line.removeprefix(codecs.BOM_UTF8)):
        raise DataError(
            "line 1: neither svmlight nor a table with cells separated by , ; | tab or blanks: "
            "--sep SIGN tells which other sign separates them, --comment SIGN or --skip-lines N "
            "passes over lines above a table"
        )
    return "csv" if is_table else "svmlight"


def _separated_by_blanks(start: bytes) -> bool:
    """Tell whether the first lines have equally many cells between blanks, none as in svmlight.

    The very first one may have one less: R names no names of rows.
    """
    lines = [line for line in start.split(b"\n")[:_LOOKED_AT] if line.strip()]
    cells = [re.findall(rb'"[^"]*"|\S+', line) for line in lines]
    if len(cells) < _FEWEST_LINES:
        return False
    first, *sizes = (len(row) for row in (cells[:-1] if len(cells) > _FEWEST_LINES else cells))
    alike = len(set(sizes)) == 1 and first > 1 and sizes[0] - first in (0, 1)
    return alike and not any(_PAIR.match(cell) for row in cells for cell in row)

"""Formats of data files, and how to tell one from another."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from contextlib import contextmanager

from zerogap.readers.files import DataError, Stream, open_source

FORMATS = ("svmlight", "csv", "tsv", "parquet", "npz")
TABLES = ("csv", "tsv", "parquet")
_MAGIC = {b"PAR1": "parquet", b"PK\x03\x04": "npz"}


@contextmanager
def named(source: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors begin with the name of a source."""
    name = "<stdin>" if source == "-" else os.fspath(source)
    try:
        yield
    except DataError as error:
        message = f"{name}: {error}".replace("\n", " ")  # of names of files and columns
        raise DataError(message) from error.__cause__


@contextmanager
def open_as(
    source: str | os.PathLike[str], format: str | None, max_bytes: int
) -> Iterator[tuple[Stream, str]]:
    """Open a source, and tell its format unless that is given; errors begin with its name."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    with named(source), open_source(source, max_bytes) as stream:
        if stream.start().startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataError("is text in UTF-16: save it as UTF-8")
        yield stream, format or _sniff(stream)


def _sniff(stream: Stream) -> str:
    """Return the format that the first bytes tell, or else the name."""
    start = stream.start()
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            return kind
    kind = stream.suffix[1:]
    return kind if kind in FORMATS else "svmlight"

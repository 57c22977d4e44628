"""Large tables of text: compiled code cuts them into cells, as long as it can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

LEAST = 1 << 26  # bytes of a file for which compiling, once, is worth while


class Retyped(Exception):
    """The text is to be read again: it is not as it began, in types of columns or in its cells."""


class Unfit(Exception):
    """The text needs another reader."""


def cutter(file: Any, types: dict[str, Any]) -> Any:
    """Return what cuts a large text into columns of these types, None if pyarrow reads it."""
    if not file.is_text or not file.is_plain or file.options.skip_bad_lines:
        return None
    with file.opened() as stream:
        if stream.size() < LEAST:
            return None
    from zerogap.readers.compiled import Cutter

    try:
        return Cutter(file.dialect, file.first_types() | types, file.options.missing)
    except Unfit:
        file.is_plain = False
        return None


def pieces(file: Any, cutter: Any, only: list[str] | None) -> Iterator[Any]:
    """Yield some rows after others; Retyped where pyarrow has to read."""
    try:
        with file.opened() as stream:
            for table in cutter.tables(stream):
                file.place = stream.place()
                yield table if only is None else table.select(only)
    except Unfit:
        file.is_plain = False
        raise Retyped from None


def table(file: Any, types: dict[str, Any]) -> Any:
    """Return all rows, None if pyarrow has to read them."""
    import pyarrow as pa

    if (found := cutter(file, types)) is None:
        return None
    try:
        with file.opened() as stream:
            return pa.concat_tables(found.tables(stream))
    except (Unfit, pa.ArrowInvalid):
        file.is_plain = False
        return None

"""Lines of text as pyarrow reads them: one separator between cells, quotes at their ends.

Lines stay lines, so that what is counted in them is counted in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from zerogap.readers.files import DataError
from zerogap.readers.options import SEPARATORS

BLANKS = " "  # as a separator: any number of blanks and tabs, also at the ends of a line
_QUOTED = r'"(?:[^"\n]|"")*"'
_WIDE = ("utf-16", "utf-32")  # encodings in which a sign is several bytes

Rule = tuple[str, Callable[[Any], Any]]


def _bare(match: Any) -> Any:
    quote = match[0][:1]
    return match[1].replace(2 * quote, quote)


WHOLE_LINES: Rule = (rf"(?m)^{_QUOTED.replace('(?:', '((?:').replace(')*', ')*)')}(?=\r?$)", _bare)


ESCAPED: Rule = (r'\\"', lambda match: match[0][1:] * 2)  # quotes after backslashes, as doubled
WITH_ZEROS: Rule = (r"(?m)^[^\n]*\x00[^\n]*", lambda match: match[0][:0])


def has_escapes(lines: list[str], sep: str) -> bool:
    """Tell whether quotes in quoted cells have a backslash before them, and are not doubled."""
    inside = re.compile(rf'\\"(?! *({re.escape(sep)}|\r?$))')
    quoted = [line for line in lines if '"' in line]
    return any(inside.search(line) for line in quoted)


def are_quoted(lines: list[str]) -> bool:
    """Tell whether each line is one cell in quotes, in which there are more, as saved twice."""
    lines = [line.rstrip("\r\n") for line in lines[:-1] or lines if line.strip()]
    if not all(re.fullmatch(WHOLE_LINES[0], line) for line in lines):
        return False
    return any(len({line.count(sep) for line in lines} | {0}) == 2 for sep in SEPARATORS)


def rules(sep: str, comment: str | None, blank_quotes: bool) -> tuple[Rule, ...]:
    """Return what is replaced in each line, as patterns and functions of their matches.

    Parameters
    ----------
    sep : str
        What separates the cells.
    comment : str, optional
        Lines that begin with it become empty.
    blank_quotes : bool
        Whether blanks come before quotes, which would be no quotes then.
    """
    found: list[Rule] = []
    if comment:
        found.append((rf"(?m)^[ \t]*{re.escape(comment)}[^\n\r]*", lambda match: match[0][:0]))
    if sep == BLANKS:
        ends = r"^[ \t]+|[ \t]+(?=\r?$)"
        found.append((rf"(?m)({_QUOTED})|({ends})|[ \t]+", _one_blank))
    elif blank_quotes:
        found.append((rf'(?m)({_QUOTED})|(?<={re.escape(sep)}) +(?=")', _as_quoted))
    return tuple(found)


def _one_blank(match: Any) -> Any:
    if match[1] is not None:
        return match[1]
    return match[0][:0] if match[2] is not None else match[0][:1].replace(*_tab_and_blank(match))


def _tab_and_blank(match: Any) -> tuple[Any, Any]:
    return (b"\t", b" ") if isinstance(match[0], bytes) else ("\t", " ")


def _as_quoted(match: Any) -> Any:
    return match[1] if match[1] is not None else match[0][:0]


def respelt_lines(lines: Iterable[str], replaced: tuple[Rule, ...]) -> Iterable[str]:
    """Return lines of text with these rules applied."""
    for pattern, by in replaced:
        lines = map(_applied(re.compile(pattern), by), lines)
    return lines


def _applied(pattern: re.Pattern[str], by: Callable[[Any], Any]) -> Callable[[str], str]:
    return lambda line: pattern.sub(by, line)


def respelt(
    opened: Callable[[], Any], replaced: tuple[Rule, ...], encoding: str
) -> Callable[[], Any]:
    """Return what opens a stream of bytes with these rules applied."""
    if encoding.startswith(_WIDE):
        raise DataError(f"is text in {encoding}: save it as UTF-8, or with another separator")

    @contextmanager
    def reopened() -> Iterator[_Respelt]:
        with opened() as stream:
            yield _Respelt(stream, replaced)

    return reopened


class _Respelt:
    """A stream of bytes, whole lines of which are respelt."""

    closed = False  # pyarrow asks

    def __init__(self, stream: Any, replaced: tuple[Rule, ...]) -> None:
        self._stream = stream
        self._rules = [(re.compile(pattern.encode()), by) for pattern, by in replaced]
        self._rest, self._ready = b"", b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def read(self, size: int = 1 << 20) -> bytes:
        """Return up to `size` bytes, none at the end."""
        while not self._ready:
            piece = self._stream.read(size)
            lines, end, rest = (self._rest + piece).rpartition(b"\n")
            if not piece:
                lines, end, rest = self._rest, b"", b""
            for pattern, by in self._rules:
                lines = pattern.sub(by, lines)
            self._ready, self._rest = lines + end, rest
            if not piece:
                break
        found, self._ready = self._ready[:size], self._ready[size:]
        return found

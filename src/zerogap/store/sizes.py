"""Amounts of memory."""

from __future__ import annotations

import re
from typing import Any

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


def parse_size(size: Any, name: str = "max_memory") -> int:
    """Return bytes of a number or of text such as "2GB" or "512 MiB".

    Examples
    --------
    >>> parse_size("2GB"), parse_size("1.5 KiB"), parse_size(100)
    (2000000000, 1536, 100)
    """
    if isinstance(size, str) and (found := _SIZE.fullmatch(size)):
        number, unit, binary = found.groups()
        power = " kmgt".index(unit.lower() or " ")
        size = int(float(number) * (1024**power if binary else 1000**power))
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
        raise ValueError(f"{name} must be a number of bytes or text like '2GB', got {size!r}")
    return size


def format_size(size: float) -> str:
    """Return bytes as text with three digits."""
    power = 0
    while size >= 1000 and power < 4:
        size, power = size / 1000, power + 1
    return f"{size:.3g} {' kMGT'[power].strip()}B"

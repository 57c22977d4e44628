"""The recorded figures of TABLES.md, read back from its Markdown tables."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent


def tables(heading: str, text: str | None = None) -> list[list[dict[str, str]]]:
    """Return the tables below a heading of TABLES.md: lists of rows, each a dict by column."""
    text = text or (FOLDER / "TABLES.md").read_text(encoding="utf-8")
    sections = re.split(r"^#+ (.*)$", text, flags=re.MULTILINE)
    body = sections[sections.index(heading) + 1]
    blocks = re.findall(r"(?:^\| .*\n?)+", body, flags=re.MULTILINE)
    return [_rows(block.splitlines()) for block in blocks]


def _rows(lines: list[str]) -> list[dict[str, str]]:
    head, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(head, cells, strict=True)) for cells in body]


def number(cell: str) -> float:
    """Return the number of a cell such as `> 4.5`, `**0.7**` or `1 315`."""
    return float(cell.strip("*> ").replace(" ", ""))


def at_least(cell: str) -> bool:
    """Tell whether the number of a cell is a lower bound: the peer was stopped."""
    return ">" in cell

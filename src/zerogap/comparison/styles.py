"""How solvers and numbers look, the same in print and on the page."""

from __future__ import annotations

from typing import NamedTuple


class Style(NamedTuple):
    """Colour, dashes as lengths in line widths, and the marker's name in matplotlib and plotly."""

    colour: str
    dashes: tuple[int, ...]
    marker: str
    symbol: str


BLACK = "#000000"
# Okabe and Ito's palette, without its yellow, which is not seen on white
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", BLACK, "#E69F00", "#56B4E9")
_DASHES = ((), (6, 2), (2, 1), (6, 2, 2, 2))
_MARKERS = (
    ("o", "circle"),
    ("s", "square"),
    ("^", "triangle-up"),
    ("D", "diamond"),
    ("v", "triangle-down"),
)


def style(k: int) -> Style:
    """Return the look of the k-th solver; 140 of them differ."""
    dashes, marker = _DASHES[k % len(_DASHES)], _MARKERS[k % len(_MARKERS)]
    return Style(_COLOURS[k % len(_COLOURS)], dashes, *marker)


def percent(share: float) -> str:
    """Return a share in percent, to two digits."""
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"

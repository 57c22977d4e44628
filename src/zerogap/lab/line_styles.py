"""One colour per solver in all figures; its variants differ in shade, dashes and marker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zerogap.comparison.styles import style

# places in the palette of `zerogap.comparison.styles`
_FAMILIES = {"sdca": 0, "asdca": 1, "pegasos": 2, "sgd": 3, "gd": 4, "bcfw": 5, "newton": 6}
_OTHER = 6
# names in matplotlib and plotly; more of them than `style` has, so that ten lines all differ
_MARKERS = (
    ("o", "circle"),
    ("s", "square"),
    ("^", "triangle-up"),
    ("D", "diamond"),
    ("v", "triangle-down"),
    ("P", "cross"),
    ("X", "x"),
    ("*", "star"),
    ("p", "pentagon"),
    ("<", "triangle-left"),
)


class Look(NamedTuple):
    """Colour, how far it is moved towards the colour of text, dashes, and the marker's names."""

    colour: str
    shade: float
    dashes: tuple[int, ...]
    marker: str
    symbol: str


def looks(
    names: Sequence[Any], solvers: Mapping[str, str], distinct: bool = False
) -> dict[Any, Look]:
    """Return a look for each line of a figure.

    Lines that are arms have the colour of their solver; numbers have a scale from light to dark;
    other names the colours of the palette, in turn.  With `distinct` every line has a colour,
    dashes and marker of its own, which an arm keeps in all figures of its experiment.
    """
    if distinct:
        order = list(solvers) if set(names) <= set(solvers) else list(names)
        return {name: _distinct(order.index(name)) for name in names}
    if len(names) > 1 and all(isinstance(name, int | float | np.number) for name in names):
        return {name: _on_scale(k, len(names)) for k, name in enumerate(names)}
    families = [solvers.get(name, "").partition(":")[0] for name in names]
    if not any(families):
        return {name: _distinct(k)._replace(dashes=()) for k, name in enumerate(names)}
    found, seen = {}, dict.fromkeys(range(_OTHER + 1), 0)
    for name, family in zip(names, families, strict=True):
        place = _FAMILIES.get(family, _OTHER)
        found[name] = _look(place, seen[place])
        seen[place] += 1
    return found


def _distinct(k: int) -> Look:
    found = style(k)
    return Look(found.colour, 0.0, found.dashes, *_MARKERS[k % len(_MARKERS)])


def _look(place: int, variant: int) -> Look:
    base, other = style(place), style(variant)
    marker = style(place + variant)
    return Look(base.colour, (0.0, 0.45, 0.75)[variant % 3], other.dashes, *marker[2:])


def _on_scale(k: int, count: int) -> Look:
    """Return the k-th colour from blue to yellow: in that order for the colour-blind, too."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    colour = to_hex(colormaps["viridis"](0.85 * k / max(count - 1, 1)))
    return Look(colour, 0.0, style(k % 4).dashes, *style(k)[2:])

"""How results show themselves: a short repr, a table in notebooks, and axes to draw on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#595959"  # from Okabe and Ito's palette
MOST_NUMBERS = 4  # of an array that is shown whole
MOST_ROWS = 12  # of a long table: the first and the last half of them are shown


class Shown:
    """A result that shows itself; subclasses say which facts."""

    def _facts(self) -> Mapping[str, Any]:
        """Return what a reader wants to know, by name."""
        raise NotImplementedError

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {as_text(value)}" for name, value in self._facts().items())
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        rows = [(name, as_text(value)) for name, value in self._facts().items()]
        return table_html(rows, caption=type(self).__name__)


def as_text(value: Any) -> str:
    """Return a number with few digits, the size of a long array, or any other value as it is."""
    if isinstance(value, np.ndarray):
        if value.size > MOST_NUMBERS:
            return f"array of {' x '.join(map(str, value.shape))}"
        return as_text(value.tolist())
    if isinstance(value, list):
        return f"[{', '.join(map(as_text, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def table_html(rows: Sequence[Iterable[Any]], header: Sequence[str] = (), caption: str = "") -> str:
    """Return an HTML table of texts, all of them escaped."""
    parts = ["<table>"]
    if caption:
        parts.append(f"<caption>{escape(caption)}</caption>")
    if header:
        cells = "".join(f"<th>{escape(str(name))}</th>" for name in header)
        parts.append(f"<thead><tr>{cells}</tr></thead>")
    parts.append("<tbody>")
    for row in rows:
        parts.append(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>")
    return "".join([*parts, "</tbody></table>"])


def records_html(rows: Sequence[Mapping[str, Any]], caption: str = "") -> str:
    """Return a table of records, without the middle ones if there are many."""
    if not rows:
        return table_html([], caption=f"{caption}: no records")
    names = list(rows[0])
    shown = [[as_text(row[name]) for name in names] for row in rows]
    if len(shown) > MOST_ROWS:
        half = MOST_ROWS // 2
        shown = [*shown[:half], ["..."] * len(names), *shown[-half:]]
    return table_html(shown, names, caption)


def new_axes(axes: Any = None) -> Any:
    """Return the axes given, or those of a new figure that notebooks show."""
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "the picture needs matplotlib: pip install 'zerogap[lab]'"
        ) from None
    return pyplot.subplots(layout="constrained")[1]


def finish(axes: Any, **labels: Any) -> Any:
    """Label axes, show a legend, and return them."""
    axes.set(**labels)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
    return axes


def to_frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return records as a pandas DataFrame."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "to_frame needs pandas: pip install pandas, or the extra lab of zerogap"
        ) from None
    return pd.DataFrame(list(rows))

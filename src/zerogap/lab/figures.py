"""Figures declared as data.  Each turns a tidy table into a drawing: plain lists and texts.

A drawing is rendered twice from the same numbers: in the page by plotly, for print by matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from zerogap.comparison.page import X_AXES
from zerogap.lab.images import png
from zerogap.lab.line_styles import Look, looks
from zerogap.lab.statistics import mean, number

SIDES = "the report's axis", "a fair axis"
MOST_POINTS = 250  # of a line: more cannot be told apart
LABELS = {
    **X_AXES,
    "updates": "iterations (updates)",
    "primal": "primal objective",
    "dual": "dual objective",
    "gap": "duality gap",
    "suboptimality": "primal objective minus optimum",
    "hinge_primal": "primal objective with the hinge loss",
    "test_error": "test error",
    "train_error": "training error",
    "lam": "lambda",
    "norm": "norm of w",
}
_PROBLEM = ("data", "loss", "lam", "solver")
_BANDS = ("range", "quartiles", "interval")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What all figures have.

    Attributes
    ----------
    id, title : str
        Name of its files, such as "S0-fig1", and heading.
    caption : str
        What to see, in a sentence or two.
    covers : tuple of str
        Rows of the inventory that have their place here.
    where : dict
        Rows of the table that are drawn: value, or tuple of values, by column.
    prepare : callable, optional
        Function (table) -> table that runs before anything else.
    labels : dict
        Words for columns that `LABELS` does not have, or others.
    """

    kind: ClassVar[str]
    id: str
    title: str
    caption: str = ""
    covers: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[Any], Any] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def drawing(self, table: Any, solvers: Mapping[str, str]) -> dict[str, Any]:
        """Return the drawing; `solvers` has the solver of each arm, for its look."""
        table = table if self.prepare is None else self.prepare(table)
        for column, wanted in self.where.items():
            values = wanted if isinstance(wanted, tuple | list) else (wanted,)
            table = table[table[column].isin(values)]
        if not len(table):
            raise ValueError(f"{self.id}: no row of the table is left to draw")
        made = self._draw(table, solvers)
        place = {"kind": self.kind, "across": _across(made["panels"])}
        return {"id": self.id, "title": self.title, **place, **made}

    def _draw(self, table: Any, solvers: Mapping[str, str]) -> dict[str, Any]:
        raise NotImplementedError

    def label(self, column: str) -> str:
        """Return the words for a column."""
        return self.labels.get(column) or LABELS.get(column) or column.replace("_", " ")


@dataclass(frozen=True, kw_only=True)
class Lines(Figure):
    """Curves: the middle over the seeds and a band around it.

    Attributes
    ----------
    y : str or tuple of str
        Columns; the reader can switch between several.
    x : str or tuple of str
        Columns; the reader can switch: "epoch", "examples", "updates", "seconds", "cpu_seconds" or
        a parameter such as "k" or "lam".
    side_by_side : bool
        Draw the first two of x side by side: the report's own axis and a fair one.
    zoom : dict
        Vertical ranges of the first y by title of a panel: each such panel is drawn once more,
        enlarged.
    distinct : bool
        Give every line a colour, marker and dashes of its own; by default lines of one solver share
        its colour.
    by : str
        A line per value of this column.  Solvers have their colours, numbers a scale of colours.
    panels : str
        A panel per value of this column.
    scale, x_scale : "log" or "linear"
        Of the axes at first; the reader can switch the vertical one.
    band : "range", "quartiles" or "interval"
        Median with smallest and largest value or with quartiles, or mean with its 95 % interval.
    overlay : dict
        Columns that are drawn once per panel as grey lines, such as a bound, with their names.
    """

    kind = "lines"
    y: str | tuple[str, ...] = "primal"
    x: str | tuple[str, ...] = ("epoch", "examples", "seconds", "cpu_seconds")
    side_by_side: bool = False
    zoom: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    distinct: bool = False
    by: str = "solver"
    panels: str = ""
    scale: str = "log"
    x_scale: str = "linear"
    band: str = "range"
    overlay: Mapping[str, str] = field(default_factory=dict)

    def _draw(self, table: Any, solvers: Mapping[str, str]) -> dict[str, Any]:
        if self.band not in _BANDS:
            raise ValueError(f"{self.id}: band must be one of {_BANDS}, got {self.band!r}")
        xs, ys = _tuple(self.x), _tuple(self.y)
        names = _in_order(table[self.by].unique())
        look = looks(names, solvers, self.distinct)
        panels: list[dict[str, Any]] = []
        for title, part in _parts(table, self.panels):
            series = [
                _curve(part[part[self.by] == name], xs, ys, self.band)
                | _named(self._line(name), look[name])
                for name in names
                if (part[self.by] == name).any()
            ]
            extra = [
                _curve(part, xs, (column,), "range", only_middle=True) | {"name": text}
                for column, text in self.overlay.items()
            ]
            panels.append({"title": title, "series": series, "overlay": extra})
        enlarged = [
            dict(panel, title=f"{panel['title']}, enlarged".lstrip(", "), zoom={ys[0]: zoom})
            for panel in panels
            for zoom in [self.zoom.get(panel["title"])]
            if zoom
        ]
        panels += enlarged
        if self.side_by_side:
            sides = tuple(zip(xs, SIDES, strict=False))
            panels = [dict(panel, axis=x, side=side) for panel in panels for x, side in sides]
        return {
            "x": {column: self.label(column) for column in xs},
            "y": {column: self.label(column) for column in ys},
            "scale": self.scale,
            "x_scale": self.x_scale,
            "band": self.band,
            "panels": panels,
        }

    def _line(self, value: Any) -> str:
        """Return the name of the line for a value: a number alone says too little."""
        return _text(value) if isinstance(value, str) else f"{self.label(self.by)} = {_text(value)}"


@dataclass(frozen=True, kw_only=True)
class Points(Figure):
    """Means with their 95 % intervals over the seeds, a line per category.

    Attributes
    ----------
    value : str
        Column; one value per seed and category is expected, several are averaged.
    category : str
        A line per value of this column.
    by : str
        A colour per value of this column, if there is one.
    panels : str
        A panel per value of this column.
    mark : dict
        Values to mark by a vertical line, with their names, such as {"printed": 0.878}.
    distinct : bool
        Give every value of `by` a colour and marker of its own, as for `Lines`.
    """

    kind = "points"
    value: str
    category: str = "solver"
    by: str = ""
    panels: str = ""
    scale: str = "linear"
    mark: Mapping[str, float] = field(default_factory=dict)
    distinct: bool = False

    def _draw(self, table: Any, solvers: Mapping[str, str]) -> dict[str, Any]:
        by = self.by or self.category
        names = list(table[by].unique())
        look = looks(names, solvers, self.distinct)
        panels = []
        for title, part in _parts(table, self.panels):
            series = [
                self._intervals(part[part[by] == name]) | _named(name, look[name])
                for name in names
                if (part[by] == name).any()
            ]
            panels.append({"title": title, "series": series})
        categories = [str(name) for name in table[self.category].unique()]
        crowd = max(len(panel["series"]) for panel in panels) if self.by else 1
        return {
            "x": {self.value: self.label(self.value)},
            "categories": categories,
            "lines": len(categories) * max(1.0, 0.3 * crowd),  # height, where one fits three points
            "scale": self.scale,
            "marks": [{"name": name, "value": value} for name, value in self.mark.items()],
            "panels": panels,
        }

    def _intervals(self, part: Any) -> dict[str, Any]:
        found: dict[str, list[Any]] = {"category": [], "value": [], "low": [], "high": []}
        for name, rows in part.groupby(self.category, sort=False):
            keys = "seed" if "seed" in rows else self.category
            values = rows.groupby(keys)[self.value].mean().to_numpy()
            middle = mean(values) if len(values) > 1 else None
            found["category"].append(str(name))
            found["value"].append(values[0] if middle is None else middle.estimate)
            found["low"].append(values[0] if middle is None else middle.low)
            found["high"].append(values[0] if middle is None else middle.high)
        return found


@dataclass(frozen=True, kw_only=True)
class Heat(Figure):
    """The mean over the seeds of `value` over two parameters, as colours and numbers."""

    kind = "heat"
    value: str
    x: str
    y: str
    panels: str = ""

    def _draw(self, table: Any, solvers: Mapping[str, str]) -> dict[str, Any]:
        columns, rows = (_in_order(table[name].unique()) for name in (self.x, self.y))
        panels = []
        for title, part in _parts(table, self.panels):
            grid = part.pivot_table(index=self.y, columns=self.x, values=self.value, aggfunc="mean")
            values = grid.reindex(index=rows, columns=columns).to_numpy()
            panels.append({"title": title, "values": values})
        return {
            "x": {self.x: self.label(self.x)},
            "y": {self.y: self.label(self.y)},
            "value": self.label(self.value),
            "columns": [_text(value) for value in columns],
            "rows": [_text(value) for value in rows],
            "panels": panels,
        }


@dataclass(frozen=True, kw_only=True)
class Gallery(Figure):
    """Images: rows with the columns of `pixels`, a label each, and one strip per value of `by`."""

    kind = "gallery"
    label_column: str = "label"
    by: str = ""

    def _draw(self, table: Any, solvers: Mapping[str, str]) -> dict[str, Any]:
        strips = []
        for title, part in _parts(table, self.by):
            images = [
                {"label": str(row[self.label_column]), "png": png(row)}
                for row in part.to_dict("records")
            ]
            strips.append({"title": title, "images": images})
        return {"panels": strips}


def _curve(
    part: Any, xs: Sequence[str], ys: Sequence[str], band: str, only_middle: bool = False
) -> dict[str, Any]:
    """Return middle, low and high of each y at every place, and the places on each x axis.

    Runs are put together update by update, or by the parameter that x is.
    """
    at = "updates" if "updates" in part and xs[0] in (*X_AXES, "updates") else xs[0]
    mixed = [
        name for name in _PROBLEM if at == "updates" and name in part and part[name].nunique() > 1
    ]
    if mixed and not only_middle:
        raise ValueError(
            f"a line puts several values of {mixed[0]} together: use `where` or `panels`"
        )
    groups = part.groupby(at, sort=True)
    places = groups[list(dict.fromkeys([x for x in xs if x != at] + list(ys)))]
    middle = places.mean() if band == "interval" else places.median()
    kept = np.unique(np.linspace(0, len(middle) - 1, min(len(middle), MOST_POINTS)).astype(int))
    index = middle.index.to_numpy()[kept]
    x = {name: index if name == at else middle[name].to_numpy()[kept] for name in xs}
    if only_middle:
        return {"x": x, "y": middle[ys[0]].to_numpy()[kept]}
    low, high = _band(groups[list(ys)], band)
    edges = {y: [m[y].to_numpy()[kept] for m in (middle, low, high)] for y in ys}
    return {"x": x, "y": edges, "runs": int(groups.size().max())}


def _band(groups: Any, band: str) -> tuple[Any, Any]:
    if band == "range":
        return groups.min(), groups.max()
    if band == "quartiles":
        return groups.quantile(0.25), groups.quantile(0.75)
    from scipy.stats import t

    counts = groups.count()
    half = groups.sem() * t.ppf(0.975, np.maximum(counts - 1, 1))
    return groups.mean() - half, groups.mean() + half


def _across(panels: Sequence[Mapping[str, Any]]) -> int:
    """Return how many panels are side by side: pairs of axes stay together, rows are full."""
    paired = "axis" in panels[0]
    return min(len(panels), 2 if paired or len(panels) % 3 else 3)


def _parts(table: Any, column: str) -> list[tuple[str, Any]]:
    if not column:
        return [("", table)]
    return [(_text(name), part) for name, part in table.groupby(column, sort=False)]


def _in_order(values: Any) -> list[Any]:
    """Return numbers in increasing order, anything else as it comes."""
    numbers = all(isinstance(value, int | float | np.number) for value in values)
    return sorted(values) if numbers else list(values)


def _named(name: Any, look: Look) -> dict[str, Any]:
    return {"name": _text(name), "look": look._asdict()}


def _tuple(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _text(value: Any) -> str:
    return number(value, 4) if isinstance(value, float) else str(value)

"""The picture of a sweep: validation error against the parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.sweeps.axes import LABELS, ORANGE, draw_over, short, unit
from zerogap.sweeps.outcome import Sweep

_MOST_NUMBERS = 150  # cells of a heat map that still have room for a number


def draw(sweep: Sweep, title: str = "") -> Any:
    """Return a figure of the errors.

    One swept parameter gives a curve with error bars, two give a heat map, more give a curve for
    each, with the best values of the others.

    Parameters
    ----------
    sweep : Sweep
        What to draw.
    title : str
        Title of the figure.

    Examples
    --------
    >>> draw(sweep(X, y, grid)).savefig("sweep.png")  # doctest: +SKIP
    """
    names = sweep.swept or tuple(sweep.cells[0].parameters)[:1]
    panels = 1 if len(names) == 2 else len(names)
    figure = new_figure(panels, title)
    if len(names) == 2:
        _heat_map(figure, sweep, *names)
        return figure
    for axes, name in zip(np.atleast_1d(figure.subplots(1, panels)), names, strict=True):
        draw_over(axes, sweep, name)
    return figure


def new_figure(panels: int, title: str) -> Any:
    """Return a figure with room for so many panels side by side."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "the picture needs matplotlib: pip install 'zerogap[lab]'"
        ) from None
    figure = Figure(figsize=(1.2 + 5.8 * panels, 4.4), layout="constrained")
    figure.suptitle(title)
    return figure


def _heat_map(figure: Any, sweep: Sweep, down: str, along: str) -> None:
    """Draw the error against two parameters; the best cell has a frame."""
    rows, columns = sweep.values(down), sweep.values(along)
    scale, percent = unit(sweep.measure)
    errors = np.full((len(rows), len(columns)), np.nan)
    for cell in sweep.cells:
        place = rows.index(cell.parameters[down]), columns.index(cell.parameters[along])
        errors[place] = scale * cell.error
    axes = figure.subplots()
    image = axes.imshow(errors, cmap="cividis_r", origin="lower", aspect="auto")
    figure.colorbar(image, label=f"{sweep.measure}{percent}")
    if errors.size <= _MOST_NUMBERS:
        for (i, j), error in np.ndenumerate(errors):
            if np.isfinite(error):
                shade = "white" if image.norm(error) > 0.5 else "black"
                axes.text(j, i, f"{error:.3g}", ha="center", va="center", color=shade, fontsize=8)
    best = sweep.best.parameters
    corner = columns.index(best[along]) - 0.5, rows.index(best[down]) - 0.5
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle(corner, 1, 1, fill=False, ec=ORANGE, lw=2.5, label="lowest error"))
    axes.set_xticks(range(len(columns)), [short(value) for value in columns])
    axes.set_yticks(range(len(rows)), [short(value) for value in rows])
    axes.set(xlabel=LABELS.get(along, along), ylabel=LABELS.get(down, down))
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False)

"""The picture of a sweep: validation error against the parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.sweeps.outcome import Cell, Sweep, is_number

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"  # from Okabe and Ito's palette
LABELS = {
    "lam": r"regularisation $\lambda$",
    "h": "bandwidth $h$ (distance between rows)",
    "step": "step of the solver",
    "theta": r"mini-batch parameter $\theta$",
    "batch_size": "batch size (rows)",
}
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
        _curve(axes, sweep, name)
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


def unit(measure: str) -> tuple[float, str]:
    """Return the factor and the name of the unit in which errors are shown."""
    return (100.0, " (%)") if measure == "misclassified rows" else (1.0, "")


def _curve(axes: Any, sweep: Sweep, name: str) -> None:
    """Draw the error against one parameter, at the best values of the others."""
    values = sweep.values(name)
    cells = [
        min((c for c in sweep.cells if c.parameters[name] == value), key=lambda cell: cell.error)
        for value in values
    ]
    scale, percent = unit(sweep.measure)
    places = _axis(axes.xaxis, axes.set_xscale, values)
    errors = scale * np.array([cell.error for cell in cells])
    spreads = scale * np.array([cell.standard_error for cell in cells])
    training = scale * np.array([cell.train_error for cell in cells])
    handles = {
        "validation, with standard error": axes.errorbar(
            places, errors, spreads, fmt="o-", color=BLUE, capsize=3
        ),
        "training": axes.plot(places, training, "s--", color=ORANGE)[0],
    }
    for cell, text, style in _marks(sweep, name):
        place = places[values.index(cell.parameters[name])]
        handles[text] = axes.axvline(place, color=GREEN, ls=style, zorder=0)
    axes.set(xlabel=LABELS.get(name, name), ylabel=f"{sweep.measure}{percent}")
    if len(sweep.swept) > 2:
        axes.set_title("at the best values of the others", fontsize="medium")
    if max(errors) > 30 * min(errors) > 0:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(handles.values(), handles, edgecolor="none")


def _marks(sweep: Sweep, name: str) -> list[tuple[Cell, str, str]]:
    best, simplest = sweep.best, sweep.simplest
    text = f"lowest error, at {_short(best.parameters[name])}"
    marks = [(best, text, "-")]
    if name == "lam" and simplest.parameters["lam"] != best.parameters["lam"]:
        text = f"largest within one standard error, at {_short(simplest.parameters['lam'])}"
        marks.append((simplest, text, ":"))
    return marks


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
    axes.set_xticks(range(len(columns)), [_short(value) for value in columns])
    axes.set_yticks(range(len(rows)), [_short(value) for value in rows])
    axes.set(xlabel=LABELS.get(along, along), ylabel=LABELS.get(down, down))
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False)


def _axis(axis: Any, set_scale: Any, values: list[Any]) -> list[Any]:
    """Set up an axis for the values; return their places: logarithmic for positive numbers."""
    if not all(is_number(value) for value in values):
        axis.set_ticks(range(len(values)), [_short(value) for value in values])
        return list(range(len(values)))
    if min(values) > 0 and max(values) > 8 * min(values):
        set_scale("log")
    if len(values) <= 6:
        axis.set_ticks(values, [_short(value) for value in values])
        axis.set_ticks([], minor=True)
    return values


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

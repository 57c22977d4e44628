"""The axes of a sweep: the error against one parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"  # from Okabe and Ito's palette
LABELS = {
    "lam": r"regularisation $\lambda$",
    "h": "bandwidth $h$ (distance between rows)",
    "step": "step of the solver",
    "theta": r"mini-batch parameter $\theta$",
    "batch_size": "batch size (rows)",
}


def unit(measure: str) -> tuple[float, str]:
    """Return the factor and the name of the unit in which errors are shown."""
    return (100.0, " (%)") if measure == "misclassified rows" else (1.0, "")


def is_number(value: Any) -> bool:
    """Tell whether a value has a place on an axis."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def draw_over(axes: Any, sweep: Any, name: str) -> None:
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


def _marks(sweep: Any, name: str) -> list[tuple[Any, str, str]]:
    best, simplest = sweep.best, sweep.simplest
    text = f"lowest error, at {short(best.parameters[name])}"
    marks = [(best, text, "-")]
    if name == "lam" and simplest.parameters["lam"] != best.parameters["lam"]:
        text = f"largest within one standard error, at {short(simplest.parameters['lam'])}"
        marks.append((simplest, text, ":"))
    return marks


def _axis(axis: Any, set_scale: Any, values: list[Any]) -> list[Any]:
    """Set up an axis for the values; return their places: logarithmic for positive numbers."""
    if not all(is_number(value) for value in values):
        axis.set_ticks(range(len(values)), [short(value) for value in values])
        return list(range(len(values)))
    if min(values) > 0 and max(values) > 8 * min(values):
        set_scale("log")
    if len(values) <= 6:
        axis.set_ticks(values, [short(value) for value in values])
        axis.set_ticks([], minor=True)
    return values


def short(value: Any) -> str:
    """Return a value as a label of an axis."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)

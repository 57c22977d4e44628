"""Curves for print: the gap that is proved, and the distance from the optimum."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap.comparison.styles import style

if TYPE_CHECKING:
    from zerogap.comparison.outcome import Comparison

GREY = "#595959"
PANELS = {
    "gap": "Duality gap: what is proved",
    "suboptimality": "Primal minus the best lower bound",
}


def draw(comparison: Comparison) -> Any:
    """Return a figure: gap and sub-optimality against epochs, median and range over the runs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, (column, title) in zip(panels, PANELS.items(), strict=True):
        for k, name in enumerate(comparison.names):
            _plot(axes, comparison, name, column, k)
        axes.set(yscale="log", title=title, xlabel="epochs (passes over the data)")
        axes.grid(axis="y", color="#d9d9d9", lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("difference of objectives (log scale)")
    if comparison.target > 0:
        label = f"target: {100 * comparison.tol:g} % of the objective"
        panels[0].axhline(comparison.target, color=GREY, ls=":", lw=1.5, label=label)
    figure.suptitle(caption(comparison))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure, the same bytes for the same figure."""
    import matplotlib as mpl

    metadata = {"Date": None} if path.suffix == ".svg" else {}
    with mpl.rc_context({"svg.hashsalt": "zerogap"}):
        figure.savefig(path, dpi=150, metadata=metadata)


def caption(comparison: Comparison) -> str:
    """Return one line about data, problem and runs."""
    n, d = comparison.problem.shape
    count = max(line.runs for line in comparison.summary())
    runs = f"median and range of {count} runs" if count > 1 else "one run"
    problem = f"{comparison.problem.loss}, lam = {comparison.problem.lam:.3g}"
    return f"{comparison.data or 'data'}, {n} x {d}: {problem}; {runs}"


def _plot(axes: Any, comparison: Comparison, name: str, column: str, k: int) -> None:
    look = style(k)
    curve = comparison.curve(name, "epoch", column)
    # zero has no place on a logarithmic axis
    middle, low, high = (np.where(y > 0, y, np.nan) for y in curve[1:])
    every = max(1, len(middle) // 10)
    start = k * every // 7  # markers of different solvers at different epochs
    axes.fill_between(curve.x, low, high, color=look.colour, alpha=0.15, lw=0)
    axes.plot(
        curve.x,
        middle,
        color=look.colour,
        ls=(0, look.dashes) if look.dashes else "-",
        lw=1.6,
        marker=look.marker,
        ms=5,
        markevery=(start, every),
        label=name,
    )

"""The picture of a validation curve: what the folds leave open, and what the optimisation does."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.sweeps.axes import BLUE, GREEN, LABELS, ORANGE, unit
from zerogap.sweeps.curve import Curve
from zerogap.sweeps.picture import new_figure


def draw_curve(curve: Curve, title: str = "") -> Any:
    """Return a figure of the validation error over lambda.

    Left, the curve with its standard error between folds; right, the same curve with the errors
    that the exact optima can have.

    Parameters
    ----------
    curve : Curve
        What to draw.
    title : str
        Title of the figure.

    Examples
    --------
    >>> draw_curve(path_cv(X, y, 1e-4)).savefig("path.png")  # doctest: +SKIP
    """
    figure = new_figure(2, title)
    scale, percent = unit(curve.measure)
    edges = np.array([curve.steps[0].start, *(step.stop for step in curve.steps)])
    _, _, error, spread, low, high = np.array(curve.steps).T
    bands = [
        ("one standard error of the folds", BLUE, error - spread, error + spread),
        (f"exact optima, from gaps up to {curve.tol:g}", ORANGE, low, high),
    ]
    for axes, (text, colour, least, most) in zip(figure.subplots(1, 2), bands, strict=True):
        axes.stairs(
            scale * most, edges, baseline=scale * least, fill=True, fc=colour, alpha=0.3, label=text
        )
        axes.stairs(scale * error, edges, baseline=None, color=BLUE, lw=1.5, label="validation")
        best, simplest = curve.best.lam, curve.simplest.lam
        axes.axvline(best, color=GREEN, lw=1, label=f"lowest error, at {best:.3g}")
        if curve.simplest is not curve.best:
            text = f"largest within one standard error, at {simplest:.3g}"
            axes.axvline(simplest, color=GREEN, lw=1, ls=":", label=text)
        axes.set(xscale="log", xlim=(edges[0], edges[-1]), xlabel=LABELS["lam"])
        axes.set_ylabel(f"{curve.measure}{percent}")
        axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(edgecolor="none")
    return figure

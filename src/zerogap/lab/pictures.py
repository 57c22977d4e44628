"""Drawings for print, by matplotlib."""

from __future__ import annotations

import base64
import io
import itertools
import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from zerogap.comparison.pictures import GREY, save_figure

_DASHES = ("--", ":", "-.")
_TEXT = "#1a1d21"
_MOST_NUMBERS = 100  # that a heat map shows
_LEGEND_INCH = 0.085  # width of a letter of the legend
_MOST_TICKS = 6  # along a linear axis: long numbers would overlap
_DRAWINGS_PER_PROCESS = 5  # take as long as the start of a process


def save_all(drawings: Sequence[Mapping[str, Any]], folder: Path, jobs: int = 1) -> None:
    """Write drawings, by so many processes if that is worth their start."""
    if min(jobs, len(drawings) // _DRAWINGS_PER_PROCESS) < 2:
        for drawing in drawings:
            save(drawing, folder)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        list(pool.map(save, drawings, itertools.repeat(folder)))


def save(drawing: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write a drawing as PNG and SVG."""
    figure = draw(drawing)
    paths = [folder / f"{drawing['id']}{suffix}" for suffix in (".png", ".svg")]
    for path in paths:
        save_figure(figure, path)
        figure.set_layout_engine("none")  # once is enough, and it takes half of the time
    return paths


def draw(drawing: Mapping[str, Any]) -> Any:
    """Return the matplotlib figure of a drawing."""
    from matplotlib.figure import Figure

    panels, kind = drawing["panels"], drawing["kind"]
    if kind == "gallery":
        return _gallery(drawing)
    across = drawing["across"]
    down = -(-len(panels) // across)
    height = max(3.0, 0.32 * drawing["lines"] + 1.2) if kind == "points" else 3.6
    size = (max(5.0 * across, 6.4), height * down + 1.0)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        {"lines": _lines, "points": _points, "heat": _heat}[kind](axes, drawing, panel)
        words = [word for word in (panel["title"], panel.get("side")) if word]
        axes.set_title(", ".join(words), fontsize=10)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    figure.suptitle(drawing["title"])
    if kind != "heat":
        _legend(figure, grid.flat[: len(panels)])
    return figure


def _legend(figure: Any, panels: Any) -> None:
    found: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    if len(found) > 1:
        room = figure.get_figwidth() / _LEGEND_INCH
        widest = max(map(len, found))
        figure.legend(
            list(found.values()),
            list(found),
            loc="outside lower center",
            ncols=max(1, min(3, int(room / (widest + 6)))),  # 6 letters are the line's sample
            frameon=False,
        )


def _lines(axes: Any, drawing: Mapping[str, Any], panel: Mapping[str, Any]) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator

    x, y = panel.get("axis") or next(iter(drawing["x"])), next(iter(drawing["y"]))
    log = drawing["scale"] == "log"
    for k, series in enumerate(panel["series"]):
        look, places = series["look"], np.asarray(series["x"][x], dtype=float)
        # zero has no place on a logarithmic axis
        values = [np.asarray(value, dtype=float) for value in series["y"][y]]
        middle, low, high = (np.where(v > 0, v, np.nan) if log else v for v in values)
        colour = _colour(look)
        every = max(1, len(middle) // 10)
        axes.fill_between(places, low, high, color=colour, alpha=0.15, lw=0)
        axes.plot(
            places,
            middle,
            color=colour,
            ls=_dashes(look),
            lw=1.6,
            marker=look["marker"],
            ms=4.5,
            markevery=(k * every // 7, every),
            label=series["name"],
        )
    for k, line in enumerate(panel["overlay"]):
        axes.plot(
            line["x"][x], line["y"], color=GREY, ls=_DASHES[k % 3], lw=1.3, label=line["name"]
        )
    axes.set(xlabel=drawing["x"][x], ylabel=drawing["y"][y], yscale=drawing["scale"])
    axes.set_xscale(drawing["x_scale"])
    if drawing["x_scale"] == "linear":
        axes.xaxis.set_major_locator(MaxNLocator(_MOST_TICKS))
    if y in panel.get("zoom", {}):
        axes.set_ylim(*panel["zoom"][y])
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if axis.get_scale() == "log" and high > 100 * low:
            axis.set_minor_locator(NullLocator())  # ticks that nobody reads take long to draw
    axes.grid(axis="y", color="#d9d9d9", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _points(axes: Any, drawing: Mapping[str, Any], panel: Mapping[str, Any]) -> None:
    from matplotlib.ticker import NullFormatter

    places = {name: k for k, name in enumerate(drawing["categories"])}
    count = len(panel["series"])
    several = any(len(series["category"]) > 1 for series in panel["series"])
    for k, series in enumerate(panel["series"]):
        look = series["look"]
        shift = (k - (count - 1) / 2) * 0.6 / max(count, 2) if several else 0.0
        y = [places[name] + shift for name in series["category"]]
        value, low, high = (np.array(series[name]) for name in ("value", "low", "high"))
        axes.errorbar(
            value,
            y,
            xerr=[value - low, high - value],
            fmt=look["marker"],
            color=_colour(look),
            ms=5,
            capsize=3,
            label=series["name"] if several else None,
        )
    for k, mark in enumerate(drawing["marks"]):
        axes.axvline(mark["value"], color=GREY, ls=_DASHES[k % 3], lw=1.3, label=mark["name"])
    axes.set_yticks(range(len(places)), list(places))
    axes.invert_yaxis()
    axes.set(xlabel=next(iter(drawing["x"].values())), xscale=drawing["scale"])
    if drawing["scale"] == "log":
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="x", color="#d9d9d9", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _heat(axes: Any, drawing: Mapping[str, Any], panel: Mapping[str, Any]) -> None:
    values = np.asarray(panel["values"], dtype=float)
    image = axes.imshow(values, cmap="cividis", origin="lower", aspect="auto")
    axes.figure.colorbar(image, ax=axes, label=drawing["value"])
    axes.set_xticks(range(len(drawing["columns"])), drawing["columns"])
    axes.set_yticks(range(len(drawing["rows"])), drawing["rows"])
    axes.set(xlabel=next(iter(drawing["x"].values())), ylabel=next(iter(drawing["y"].values())))
    if values.size <= _MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                shade = "white" if image.norm(value) < 0.5 else "black"
                axes.text(j, i, f"{value:.3g}", ha="center", va="center", color=shade, fontsize=8)


def _gallery(drawing: Mapping[str, Any]) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.image import imread

    strips = drawing["panels"]
    across = max(len(strip["images"]) for strip in strips)
    figure = Figure(figsize=(1.6 * across + 0.4, 1.9 * len(strips) + 0.6), layout="constrained")
    grid = figure.subplots(len(strips), across, squeeze=False)
    for row, strip in zip(grid, strips, strict=True):
        for axes in row:
            axes.set_axis_off()
        for axes, image in zip(row, strip["images"], strict=False):
            axes.imshow(imread(io.BytesIO(base64.b64decode(image["png"])), format="png"))
            axes.set_title(image["label"], fontsize=8)
        if strip["title"]:
            row[0].text(
                -0.1,
                0.5,
                strip["title"],
                transform=row[0].transAxes,
                rotation=90,
                va="center",
                ha="right",
            )
    figure.suptitle(drawing["title"])
    return figure


def _colour(look: Mapping[str, Any]) -> Any:
    """Return the colour, moved towards that of text by the shade."""
    from matplotlib.colors import to_rgb

    colour, text = np.array(to_rgb(look["colour"])), np.array(to_rgb(_TEXT))
    return tuple(colour + look["shade"] * (text - colour))


def _dashes(look: Mapping[str, Any]) -> Any:
    return (0, tuple(look["dashes"])) if look["dashes"] else "-"

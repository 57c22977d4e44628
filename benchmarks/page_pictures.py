"""The pictures of RESULTS.md, one for each question, drawn from the figures of TABLES.md."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from recorded import at_least, number, tables

OURS, PEER, GREEN, INK = "#D55E00", "#0072B2", "#009E73", "#444444"
LIBRARIES = {  # colour, width and kind of line
    "zerogap": (OURS, 3.0, "-"),
    "LIBLINEAR": (PEER, 1.5, "-"),
    "Snap ML": (GREEN, 1.5, "-"),
    "cyanure": ("#CC79A7", 1.5, "--"),
    "skglm": ("#E69F00", 1.5, "--"),
    "scikit-learn": (INK, 1.5, ":"),
}
LIBRARY_OF = {
    **dict.fromkeys(
        ("LIBLINEAR dual", "LIBLINEAR primal", "official dual", "official primal"), "LIBLINEAR"
    ),
    **dict.fromkeys(("snapml", "snapml, all cores"), "Snap ML"),
    **dict.fromkeys(
        ("newton-cg", "newton-cholesky", "lbfgs", "saga", "SGD", "Ridge direct", "Ridge cg"),
        "scikit-learn",
    ),
    **{name: name for name in ("cyanure", "skglm")},
}
LOSSES = ("hinge", "squared-hinge", "logistic", "squared", "absolute")


def race() -> Figure:
    """Draw one dot for each fit of the race: the fastest peer's time over ours."""
    groups = {}
    for loss in LOSSES:
        (rows,) = tables(loss)
        best = [next(c for c in row.values() if c.startswith("**")) for row in rows]
        groups[loss] = [cell for cell in best if number(cell) > 0]  # 0: ours was not proved
    return _ratios(groups, "time of the fastest peer / ours (one dot per fit)")


def profile() -> Figure:
    """Draw, for each library, in how many fits it is within each factor of the fastest."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    factors = np.geomspace(1, 10, 400)
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, target in ((left, "1e-03"), (right, "1e-06")):
        for library, ratios in _slower_than_fastest(target).items():
            colour, width, line = LIBRARIES[library]
            share = (np.array(ratios)[:, None] <= factors).mean(axis=0)
            axes.step(factors, 100 * share, color=colour, lw=width, ls=line, label=library)
        axes.set(xscale="log", xlim=(1, 10), ylim=(0, 101), xlabel="time / time of the fastest")
        axes.set_xticks([1, 2, 3, 5, 10], ["1", "2", "3", "5", "10"])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(f"to a relative distance of {target}", fontsize=10)
        axes.grid(color="#dddddd", lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    left.set_ylabel("fits that are done, % of those it takes")
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def _slower_than_fastest(target: str) -> dict[str, list[float]]:
    """Return each library's time over the fastest one's, infinite if it did not get there.

    Where ours was not proved, whether peers got there is not recorded: they count as the fastest.
    """
    found: dict[str, list[float]] = {library: [] for library in LIBRARIES}
    for row in (row for loss in LOSSES for row in tables(loss)[0] if row["target"] == target):
        own = {"zerogap": 1.0}
        for peer, cell in row.items():
            if cell and peer in LIBRARY_OF:
                reached = re.fullmatch(r"[\d.e+]+", cell.strip("*"))
                before = own.get(LIBRARY_OF[peer], math.inf)
                own[LIBRARY_OF[peer]] = min(before, number(cell) if reached else math.inf)
        if 0.0 in own.values():
            own = {name: 1.0 if time == 0.0 else math.inf for name, time in own.items()}
        fastest = min(own.values())
        for library, time in own.items():
            found[library].append(time / fastest)
    return found


def raw() -> Figure:
    """Draw one dot for each fit of a raw table."""
    groups: dict[str, list[str]] = {}
    for row in tables("Raw tables")[0]:
        groups.setdefault(row["data"], []).append(row["peer / ours"])
    return _ratios(groups, "time of the fastest peer / ours (one dot per fit)")


def _ratios(groups: dict[str, list[str]], label: str) -> Figure:
    figure, axes = _figure(9, 0.42 * len(groups) + 1.5)
    for k, cells in enumerate(groups.values()):
        up = k + np.linspace(-0.28, 0.28, len(cells))
        order = np.argsort([number(cell) for cell in cells], kind="stable")
        for y, j in zip(up, order, strict=True):
            ahead = number(cells[j]) >= 1
            marker = ">" if at_least(cells[j]) else "o"
            axes.plot(number(cells[j]), y, marker, ms=5, color=OURS if ahead else PEER)
    axes.axvline(1, color=INK, lw=1)
    axes.set(xscale="log", xlabel=label, ylim=(len(groups) - 0.5, -0.5))
    axes.set_xticks(
        [0.1, 0.2, 0.5, 1, 2, 5, 10, 20], ["0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]
    )
    axes.minorticks_off()
    axes.set_yticks(range(len(groups)), groups)
    for style, text in (
        ((OURS, "o"), "ours is faster"),
        ((OURS, ">"), "peer stopped before it got there"),
    ):
        axes.plot([], [], style[1], color=style[0], label=text)
    axes.plot([], [], "o", color=PEER, label="a peer is faster")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def classes() -> Figure:
    """Draw seconds against the distance from the optimum, for ours and the peers."""
    (rows,) = tables("Ten classes: MNIST")
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, loss in zip(panels, ("multiclass-hinge", "softmax"), strict=True):
        for lam, fill in (("0.001", "white"), ("0.0001", None)):
            own = [row for row in rows if (row["loss"], row["lam"]) == (loss, lam)]
            for ours, colour in ((True, OURS), (False, PEER)):
                part = [row for row in own if (row["solver"] == "Auto") == ours]
                part = [row for row in part if row["solver"] != "SDCA"]
                x = [number(row["seconds"]) for row in part]
                y = [number(row["objective above the bound"]) for row in part]
                style = {"ms": 10 if ours else 6, "mfc": fill or colour}
                axes.plot(x, y, "*" if ours else "o", color=colour, **style)
        axes.set(xscale="log", yscale="log", title=loss, xlabel="seconds")
        axes.set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"], minor=False)
        axes.set(xlim=(0.4, 20), ylim=(2e-5, 4e-3))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("relative distance\nfrom the optimum")
    for colour, marker, name in ((OURS, "*", "zerogap"), (PEER, "o", "peer, at its tolerances")):
        figure.axes[0].plot([], [], marker, color=colour, ms=8, label=name)
    for fill, lam in (("white", "1e-3"), (INK, "1e-4")):
        figure.axes[0].plot([], [], "s", color=INK, mfc=fill, label=f"lam = {lam}")
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return figure


def certified() -> Figure:
    """Draw the share of settled labels against the gap."""
    (rows,) = tables("Certified predictions")
    gaps = [key for key in rows[0] if re.fullmatch(r"1e-\d\d", key)]
    figure, axes = _figure(9, 3.6)
    colours = dict(zip(("a9a", "ijcnn1", "rcv1"), (PEER, OURS, GREEN), strict=True))
    for row in rows:
        line = "o-" if row["loss"] == "hinge" else "s--"
        share = [number(row[gap]) for gap in gaps]
        label = f"{row['data']}, {row['loss']}"
        axes.plot([float(g) for g in gaps], share, line, color=colours[row["data"]], label=label)
    axes.set(xscale="log", xlabel="relative duality gap", ylabel="test labels settled, %")
    axes.invert_xaxis()
    figure.legend(loc="outside right center", frameon=False)
    return figure


def path() -> Figure:
    """Draw the largest gap between the points of a grid, in multiples of the tolerance."""
    names, holes = [], []
    for row in tables("Paths without holes")[0]:
        for tol in ("1e-2", "1e-3"):
            names.append(f"{row['data']}, {row['loss']}, {tol}")
            holes.append(float(row[f"tol {tol}"].rsplit(" ", 1)[1].strip("]")) / float(tol))
    figure, axes = _figure(9, 4.2)
    axes.barh(range(len(names)), holes, color=PEER, label="a grid of as many models")
    axes.axvline(1, color=OURS, lw=2.5, label="zg.path: at most tol everywhere")
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="largest relative gap over all lambdas / tol")
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def leave_one_out() -> Figure:
    """Draw how the 1000 rows were decided."""
    (rows,) = tables("Leave-one-out")
    figure, axes = _figure(9, 4.4)
    names = [f"{r['loss']}, C = {r['C']}{', b' * (r['intercept'] == 'yes')}" for r in rows]
    start = np.zeros(len(rows))
    parts = (("free", GREEN, "dual variable is 0"), ("bound", PEER, "decided by the bound"))
    for key, colour, label in (*parts, ("solved", OURS, "a model was fitted")):
        width = np.array([number(row[key]) for row in rows])
        axes.barh(range(len(rows)), width, left=start, color=colour, label=label)
        start += width
    for k, row in enumerate(rows):
        axes.text(1010, k, f"{row['ratio']} times faster", va="center", fontsize=9, color=INK)
    axes.set_yticks(range(len(rows)), names)
    axes.set(xlabel="rows", xlim=(0, 1190), xticks=range(0, 1001, 200))
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def out_of_core() -> Figure:
    """Draw passes from a store and in memory, side by side."""
    rows = tables("Out of core")[0]
    figure, axes = _figure(9, 2.8)
    names = [f"{row['loss']}, lam n = {row['lam n']}" for row in rows]
    places = np.arange(len(rows))
    for shift, key, colour, label in (
        (-0.2, "passes", OURS, "from a store, a tenth of it in memory"),
        (0.2, "passes in memory", PEER, "all rows in memory"),
    ):
        axes.barh(places + shift, [number(r[key]) for r in rows], 0.38, color=colour, label=label)
    axes.set_yticks(places, names)
    axes.set(xlabel="passes over the data to a gap of 1e-3")
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def chaos() -> Figure:
    """Draw, for fits whose workers were killed, the reported gap and the true distance."""
    rows = tables("A cluster, and what kills it")[1]
    figure, axes = _figure(9, 3.4)
    for k, row in enumerate(rows):
        gap, true = number(row["reported gap"]), number(row["off the optimum"])
        axes.plot([gap, true], [k, k], color="#bbbbbb", lw=2, zorder=1)
        axes.plot(true, k, "o", color=PEER, ms=9, label="true distance" if k == 0 else None)
        axes.plot(gap, k, "|", color=OURS, ms=16, mew=3, label="reported gap" if k == 0 else None)
    axes.axvline(1e-6, color=INK, lw=1, ls="--", label="asked for")
    axes.set_yticks(range(len(rows)), [f"{row['loss']}, {row['kills']} kills" for row in rows])
    axes.set(xscale="log", xlabel="relative distance from the optimum")
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def gpu() -> Figure:
    """Draw milliseconds on the GPU and on the processor."""
    rows = tables("On a GPU")[0]
    figure, axes = _figure(9, 4.6)
    for shift, key, colour in ((-0.2, "GPU ms", OURS), (0.2, "CPU ms", PEER)):
        x = [number(row[key]) for row in rows]
        axes.barh(np.arange(len(rows)) + shift, x, 0.38, color=colour, label=key[:3])
    names = [f"{re.sub(r' ?[(].*?[)]', '', row['data'])}, {row['gap']}" for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set(xscale="log", xlabel="milliseconds of a fit")
    axes.set_xticks([10, 100, 1000, 10000], ["10", "100", "1 000", "10 000"])
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    f.__name__: f
    for f in (race, profile, raw, classes, certified, path, leave_one_out, out_of_core, chaos, gpu)
}


def draw(name: str, file: Path) -> None:
    """Save a picture: without date and version, so that the same figures give the same file."""
    PICTURES[name]().savefig(file, dpi=90, metadata={"Software": None})


def _figure(width: float, height: float):
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9)
    return figure, axes

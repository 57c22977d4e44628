"""Leave out every row of a support vector machine without fitting most of the models."""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import zerogap as zg
from zerogap.leave_one_out import LeaveOneOut

COLOURS = {"free": "#0072B2", "bound": "#009E73", "solved": "#D55E00"}  # Okabe and Ito's palette
NAMES = {
    "free": "free: its dual variable is zero",
    "bound": "decided by the bound from the dual",
    "solved": "fitted again without the row",
}


def draw(found: LeaveOneOut, margins: np.ndarray, y: np.ndarray) -> Figure:
    """Show between which bounds each row's margin y f(x) lies in the model without it."""
    ends = np.sort([y * found.low, y * found.high], axis=0)
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 1])
    for way, colour in COLOURS.items():
        rows = found.how == way
        left.vlines(margins[rows], *ends[:, rows], color=colour, lw=1, alpha=0.5)
        left.plot(margins[rows], ends.mean(axis=0)[rows], ".", color=colour, label=NAMES[way])
        right.barh(way, rows.sum(), color=colour)
        right.text(rows.sum(), way, f" {rows.sum()}", va="center")
    reach = (margins.min() - 0.5, margins.max() + 0.2)
    left.plot(reach, reach, color="#595959", lw=0.8, ls=":")
    left.axhline(0, color="#595959", lw=0.8)
    left.set(xlim=reach, ylim=(reach[0] - 2.0, reach[1]))
    left.set(xlabel="margin in the model of all rows", ylabel="margin in the model without the row")
    left.set_title(f"Leave-one-out error {found.error:.1%}, exact: rows below zero are wrong")
    left.legend(loc="upper left", frameon=False)
    right.set(title="What it took", xlabel="rows", xlim=(0, 1.2 * max(found.counts.values())))
    right.invert_yaxis()
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="leave_one_out.png", help="where to save the picture")
    out = Path(parser.parse_args().out).resolve()

    X, y, _ = zg.datasets.make_simulated(random_state=10)
    clf = zg.LinearClassifier("hinge", lam=0.01, random_state=0).fit(X, y)
    found = clf.leave_one_out(X, y)
    print(f"{len(clf.support_)} of {len(y)} rows are support vectors.\n{found}")
    draw(found, y * clf.decision_function(X), y).savefig(out, dpi=150)
    print(f"Picture: {out}")


if __name__ == "__main__":
    main()

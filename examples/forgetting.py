"""What it costs a support vector machine to forget rows, or to take them up, in epochs."""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import zerogap as zg

COUNTS = [1, 3, 10, 30, 100, 300, 1000]
COLORS = {"trained anew": "#595959", "forgetting": "#D55E00", "taking up": "#0072B2"}


def measure(count: int) -> dict[str, float]:
    """Return the epochs of three ways to the same proof, for so many rows of 10000."""
    X, y, _ = zg.datasets.make_simulated(10_000, 50, random_state=0)
    clf = zg.LinearClassifier("hinge", tol=1e-3, solver="sdca", keep_data=True, random_state=0)
    epochs = {"trained anew": clf.fit(X, y).certificate_.epochs}
    # other rows than support vectors have no part in the model, and cost nothing
    support = np.flatnonzero(clf.dual_coef_[0])
    rows = np.random.default_rng(0).choice(support, min(count, len(support)), replace=False)
    epochs["forgetting"] = clf.forget(rows).certificate_.epochs
    epochs["taking up"] = clf.update(X[rows], y[rows]).certificate_.epochs
    print(f"{len(rows):6}  ", "  ".join(f"{value:12g}" for value in epochs.values()), flush=True)
    return epochs


def draw(costs: list[dict[str, float]]) -> Figure:
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, color in COLORS.items():
        values = [epochs[name] for epochs in costs]
        axes.plot(COUNTS, values, "o-", ms=4, color=color)
        axes.annotate(
            name, (COUNTS[-1], values[-1]), (6, 0), textcoords="offset points", va="center"
        )
    axes.set(xscale="log", ylim=(0, None), xlabel="support vectors, of 10000 rows")
    axes.set(ylabel="epochs", title="The same proof, a relative gap of 0.001")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="forgetting.png", help="where to save the picture")
    out = Path(parser.parse_args().out).resolve()
    print("  rows  ", "  ".join(COLORS), flush=True)
    draw([measure(count) for count in COUNTS]).savefig(out, dpi=150)
    print(f"Picture: {out}")


if __name__ == "__main__":
    main()

"""Which labels are settled: the share of certified predictions grows as the gap closes."""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import zerogap as zg

GAPS = 10.0 ** -np.arange(1, 8)
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#595959"  # from Okabe and Ito's palette


def draw(scores: np.ndarray, certified: np.ndarray, shares: dict[str, list[float]]) -> Figure:
    """Left, scores and which of them are settled; right, the share that is, against the gap."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    bins = np.linspace(-4, 4, 41)
    kinds = [scores[certified], scores[~certified]]
    left.hist(kinds, bins, stacked=True, color=[BLUE, ORANGE], label=["settled", "not yet"])
    left.set(title="Labels at a relative gap of 0.001", xlabel="score x.w + b", ylabel="rows")
    for (name, share), colour in zip(shares.items(), (BLUE, ORANGE), strict=True):
        right.plot(GAPS, 100 * np.array(share), "o-", color=colour, label=name)
    right.set(xscale="log", xlabel="relative duality gap asked for", ylim=(0, 103))
    right.set(title="Labels proved to be the optimum's", ylabel="% of the rows")
    right.invert_xaxis()
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="certified.png", help="where to save the picture")
    out = Path(parser.parse_args().out).resolve()

    X, y, _ = zg.datasets.make_simulated(3000, random_state=0)
    train, test = slice(0, 1000), slice(1000, None)
    shares: dict[str, list[float]] = {"hinge": [], "logistic": []}
    for loss, share in shares.items():
        for gap in GAPS:
            clf = zg.LinearClassifier(loss, lam=0.01, tol=gap, max_epochs=10_000, random_state=0)
            share.append(clf.fit(X[train], y[train]).certified_fraction(X[test]))
            print(f"{loss:8s}  gap {gap:.0e}  {100 * share[-1]:5.1f} % of the labels are settled")

    clf = zg.LinearClassifier("hinge", lam=0.01, tol=1e-3, random_state=0).fit(X[train], y[train])
    _, certified = clf.predict_certified(X[test])
    draw(clf.decision_function(X[test]), certified, shares).savefig(out, dpi=120)
    print(f"picture  {out}")

    until = zg.LinearClassifier("hinge", lam=0.01, stop="labels", settled=0.99, random_state=0)
    print(until.fit(X[train], y[train], X_val=X[test]).certificate_)


if __name__ == "__main__":
    main()

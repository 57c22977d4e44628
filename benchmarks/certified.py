"""The share of test labels that the certificate settles, against the gap; where labels stop a fit.

    ZEROGAP_DATA=... python benchmarks/certified.py [--out certified.png]

C = 1 / (lam n) = 1, with an intercept.  Test rows are the data set's own, or one row in four.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from matplotlib.figure import Figure

import zerogap as zg

GAPS = [10.0**-k for k in range(1, 9)]
SETS, LOSSES = ("a9a", "ijcnn1", "rcv1"), ("hinge", "logistic")
COLOURS = {"a9a": "#0072B2", "ijcnn1": "#D55E00", "rcv1": "#009E73"}


def load(name: str) -> tuple[Any, Any, Any]:
    """Return training rows, their labels, and test rows."""
    data = zg.datasets.load(name)
    if data.X_test is not None:
        return data.X, data.y, data.X_test
    cut = 3 * data.X.shape[0] // 4
    return data.X[:cut], data.y[:cut], data.X[cut:]


def fit(loss: str, X: Any, y: Any, **options: Any) -> zg.LinearClassifier:
    X_val = options.pop("X_val", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        limits = {"max_epochs": 10**6, "max_seconds": 30, "random_state": 0}
        return zg.LinearClassifier(loss, **limits, **options).fit(X, y, X_val=X_val)


def draw(shares: dict[tuple[str, str], list[float]]) -> Figure:
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, loss in zip(figure.subplots(1, 2, sharey=True), LOSSES, strict=True):
        for name in SETS:
            share = [100 * value for value in shares[name, loss]]
            axes.plot(GAPS[: len(share)], share, "o-", color=COLOURS[name], label=name)
        axes.axhline(99.9, color="#595959", ls="--", lw=1)
        axes.set(xscale="log", title=f"{loss} loss", ylim=(0, 103))
        axes.set_xlabel("relative duality gap asked for")
        axes.invert_xaxis()
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("test labels proved to be the optimum's, %")
    figure.axes[0].text(GAPS[0], 98, "99.9 %", va="top", color="#595959")
    figure.axes[1].legend(loc="lower right", frameon=False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="certified.png", help="where to save the picture")
    out = parser.parse_args().out
    shares: dict[tuple[str, str], list[float]] = {}
    heads = [f"{gap:.0e}" for gap in GAPS]
    print(f"| data | loss | {' | '.join(heads)} | epochs to 1e-3, 1e-6 | to 99.9 % of the labels |")
    print("| --- | --- |" + " --- |" * (len(GAPS) + 2))
    for name in SETS:
        X, y, X_test = load(name)
        for loss in LOSSES:
            models = [fit(loss, X, y, tol=gap) for gap in GAPS]
            shares[name, loss] = [model.certified_fraction(X_test) for model in models]
            epochs = [models[k].certificate_.epochs for k in (2, 5)]
            until = fit(loss, X, y, stop="labels", X_val=X_test).certificate_
            cells = [f"{100 * share:.1f}" for share in shares[name, loss]]
            end = f"{until.epochs:g} (gap {until.relative_gap:.0e}, {until.stop_reason})"
            print(
                f"| {name} | {loss} | {' | '.join(cells)} | {epochs[0]:g}, {epochs[1]:g} | {end} |",
                flush=True,
            )
    draw(shares).savefig(out, dpi=120)


if __name__ == "__main__":
    main()

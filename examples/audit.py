"""Audit popular defaults: how much of their own objective could they still have gained?"""

import argparse
import warnings
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

import zerogap as zg
from zerogap import linear_model, svm

BLUE, ORANGE = "#0072B2", "#D55E00"  # from Okabe and Ito's palette


def audits() -> list[tuple[str, zg.Audit, zg.Audit]]:
    """Return audits of scikit-learn's defaults on raw data, each beside the class it maps to."""
    X, y = load_breast_cancer(return_X_y=True)
    pairs = [
        (SGDClassifier(random_state=0), linear_model.SGDClassifier(random_state=0)),
        (LogisticRegression(), linear_model.LogisticRegression()),
        (LinearSVC(random_state=0), svm.LinearSVC(random_state=0)),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # how far off it is, is measured here
        return [
            (type(theirs).__name__, *(zg.certify(m.fit(X, y), X, y) for m in (theirs, ours)))
            for theirs, ours in pairs
        ]


def draw(rows: list[tuple[str, zg.Audit, zg.Audit]]) -> Figure:
    """Draw bars: what theirs are proved to have missed, and what ours may at most have missed."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(rows))[::-1]
    theirs = [audit.at_least / audit.primal for _, audit, _ in rows]
    ours = [audit.relative_gap for _, _, audit in rows]
    kinds = [
        (0.19, "from sklearn", theirs, ORANGE, " at least {:g} %", ROUND_FLOOR),
        (-0.19, "from zerogap", ours, BLUE, " at most {:g} %", ROUND_CEILING),
    ]
    for shift, label, values, colour, words, rounding in kinds:
        bars = axes.barh(places + shift, values, 0.36, color=colour, label=label)
        digits = Context(prec=3, rounding=rounding)  # bounds are rounded to the safe side
        texts = [words.format(float(digits.create_decimal(100 * value))) for value in values]
        axes.bar_label(bars, texts, color=colour)
    axes.set(title="Default settings on raw data (breast cancer, 569 x 30)", xlim=(0, 1.2))
    axes.set_xlabel("share of the model's own objective that is avoidable")
    axes.set_yticks(places, [name for name, _, _ in rows])
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_xticks(np.arange(0, 1.01, 0.2))
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="audit.png", help="where to save the picture")
    out = Path(parser.parse_args().out).resolve()
    rows = audits()
    for name, theirs, ours in rows:
        print(f"{name:20} sklearn {theirs.at_least / theirs.primal:8.2e} at least, ", end="")
        print(f"zerogap {ours.relative_gap:8.2e} at most")
    draw(rows).savefig(out, dpi=150)
    print(f"picture: {out}")


if __name__ == "__main__":
    main()

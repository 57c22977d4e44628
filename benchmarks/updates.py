"""Epochs and seconds to forget rows and to add as many, against training anew; hinge loss.

ZEROGAP_DATA=... python benchmarks/updates.py [DATA ...]

Rows are drawn among the support vectors: forgetting any other row costs no epoch.  Seconds are
those of the whole call, medians over the seeds.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from data import load

import zerogap as zg

SEEDS = range(3)
COUNTS = (1, 10, 100)
TOLS = (1e-3, 1e-6)


def timed(call: Callable[[], zg.LinearClassifier]) -> tuple[float, float]:
    """Return epochs and wall seconds."""
    began = time.perf_counter()
    return call().certificate_.epochs, time.perf_counter() - began


def run(X, y, tol: float, count: int, seed: int) -> list[tuple[float, float]]:
    """Return epochs and seconds of training on fewer rows, forgetting, training on all, adding."""
    settings = {"tol": tol, "random_state": seed, "max_epochs": 10_000}
    whole = zg.LinearClassifier("hinge", **settings).fit(X, y)
    support = np.flatnonzero(whole.dual_coef_[0])
    rows = np.random.default_rng(seed).choice(support, count, replace=False)
    left = np.delete(np.arange(len(y)), rows)
    X_left, y_left = X[left], y[left]
    other = zg.LinearClassifier("hinge", **settings | {"random_state": seed + 100})
    return [
        timed(lambda: other.fit(X_left, y_left)),
        timed(lambda: whole.forget(rows, data=(X, y))),
        timed(lambda: other.fit(X, y)),
        timed(lambda: whole.update(X[rows], y[rows], data=(X_left, y_left))),
    ]


def main() -> None:
    folder = Path(os.environ["ZEROGAP_DATA"])
    zg.LinearClassifier().fit(np.eye(2), [0, 1])  # compiles
    names = ("anew", "forget", "anew", "add")
    print("| data | gap | rows |", " | ".join(f"{name}: epochs, s" for name in names), "|")
    print("| --- | --- | --- |", " | ".join("---" for _ in names), "|")
    for name in sys.argv[1:] or ("a9a", "ijcnn1", "rcv1"):
        X, y = load(name, folder)
        for tol in TOLS:
            run(X[:2000], y[:2000], tol, 10, 0)  # compiles
            for count in COUNTS:
                runs = [run(X, y, tol, count, seed) for seed in SEEDS]
                cells = []
                for k in range(len(names)):
                    epochs, seconds = zip(*(part[k] for part in runs), strict=True)
                    cells.append(f"{statistics.median(epochs):g}, {statistics.median(seconds):.2f}")
                print(f"| {name} | {tol:g} | {count} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()

"""Epochs and seconds that SDCA needs to a relative gap of 1e-3: data sets, layouts, intercept.

ZEROGAP_DATA=... python benchmarks/sdca_epochs.py
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

from data import load

import zerogap as zg
from zerogap.solvers import sdca

SEEDS = range(3)


def run(problem: zg.Problem, solver: zg.SDCA) -> tuple[float, float]:
    """Return median epochs and median update seconds over the seeds."""
    runs = [
        zg.solve(problem, solver, tol=1e-3, record="epoch", random_state=seed).certificate
        for seed in SEEDS
    ]
    return (
        statistics.median(c.epochs for c in runs),
        statistics.median(c.seconds for c in runs),
    )


def main() -> None:
    folder = Path(os.environ["ZEROGAP_DATA"])
    print("| data | rows x features | intercept | order | epochs | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in ("a9a", "ijcnn1", "rcv1", "skin"):
        X, y = load(name, folder)
        for intercept in (False, True):
            problem = zg.Problem(X, y, "hinge", fit_intercept=intercept)
            for layout, bucket in (("given", 8), ("shuffled", 8), ("shuffled", 64)):
                sdca._ROWS_PER_BUCKET = bucket
                epochs, seconds = run(problem, zg.SDCA(layout=layout))
                order = "permutation" if layout == "given" else f"shuffled, buckets of {bucket}"
                size = f"{X.shape[0]} x {X.shape[1]}"
                print(f"| {name} | {size} | {intercept} | {order} | {epochs:g} | {seconds:.3f} |")


if __name__ == "__main__":
    main()

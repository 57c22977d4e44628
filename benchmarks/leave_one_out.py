"""Exact leave-one-out errors of 1000 rows of a9a against 1000 fits, of which some are timed.

ZEROGAP_DATA=... python benchmarks/leave_one_out.py
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from data import load

import zerogap as zg
from zerogap.leave_one_out import leave_one_out

ROWS = 1000
SAMPLE = 10  # fits that are timed, without rows evenly spread
TOLS = (1e-3, 1e-6)  # of these fits, which prove no label


def seconds_of_fits(problem: zg.Problem, tol: float) -> float:
    """Return the CPU seconds of a fit without each row, extrapolated from some."""
    began = time.process_time()
    for i in np.linspace(0, ROWS - 1, SAMPLE).astype(int):
        rest = problem.take(np.flatnonzero(np.arange(ROWS) != i))
        zg.solve(rest, zg.Auto(), tol=tol, random_state=0)
    return (time.process_time() - began) * ROWS / SAMPLE


def main() -> None:
    X, y = load("a9a", Path(os.environ["ZEROGAP_DATA"]))
    fits = " | ".join(f"{ROWS} fits to {tol:.0e}, s | ratio" for tol in TOLS)
    print(f"| loss | C | intercept | error | free | bound | solved | other | s | {fits} |")
    print("| --- " * 13 + "|")
    for loss in ("hinge", "logistic", "squared-hinge"):
        for C in (0.01, 1.0):
            for intercept in (False, True):
                lam = 1.0 / (C * ROWS)
                problem = zg.Problem(X[:ROWS], y[:ROWS], loss, lam, fit_intercept=intercept)
                leave_one_out(problem, max_seconds=1.0)  # compiles
                began = time.process_time()
                found = leave_one_out(problem)
                seconds = time.process_time() - began
                ways = [found.counts[way] for way in ("free", "bound", "solved")]
                times = [seconds_of_fits(problem, tol) for tol in TOLS]
                cells = (
                    *(loss, f"{C:g}", intercept, f"{found.error:.3f}", *ways, ROWS - sum(ways)),
                    f"{seconds:.2f}",
                    *(cell for t in times for cell in (f"{t:.1f}", f"{t / seconds:.0f}")),
                )
                print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()

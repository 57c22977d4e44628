"""Solves that a path without holes needs over six decades of lambda, and what a fixed grid leaves.

ZEROGAP_DATA=... python benchmarks/path.py

The last three columns are those of a fixed grid: as many lambdas in equal ratios, each solved to
the same gap as those of the path, from its larger neighbour; and the largest relative gap between
them, by the better neighbour.
"""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import numpy as np
from data import load

import zerogap as zg
from zerogap.paths.intervals import SHARE_OF_TOL, Reach

LAM_MIN, LAM_MAX = 1e-6, 1.0


def worst_gap(X, y, loss: str, grid: zg.Path) -> float:
    """Return the largest relative gap in the middle of two lambdas of a grid."""
    proofs = [
        Reach(zg.Problem(X, y, loss, lam, fit_intercept=True), result, 1.0, lam, lam)
        for lam, result in zip(grid.lams, grid.results, strict=True)
    ]
    return max(
        min(proof.certificate(np.sqrt(a.lam * b.lam)).relative_gap for proof in (a, b))
        for a, b in itertools.pairwise(proofs)
    )


def main() -> None:
    folder = Path(os.environ["ZEROGAP_DATA"])
    heads = "data | loss | tol | models | solved | epochs | CPU s | epochs | CPU s | largest gap"
    print(f"| {heads} |\n|{' --- |' * 10}")
    for name in ("a9a", "ijcnn1", "rcv1"):
        X, y = load(name, folder)
        for loss in ("hinge", "logistic"):
            options = {"loss": loss, "max_epochs": 20_000, "random_state": 0}
            zg.path(X, y, lam_min=0.1, lam_max=1.0, tol=0.1, **options)  # compiles
            for tol in (1e-2, 1e-3):
                began = time.process_time()
                path = zg.path(X, y, lam_min=LAM_MIN, lam_max=LAM_MAX, tol=tol, **options)
                between = time.process_time()
                lams = np.geomspace(LAM_MIN, LAM_MAX, len(path.lams))
                grid = zg.path(X, y, lams, tol=SHARE_OF_TOL * tol, **options)
                seconds = between - began, time.process_time() - between
                epochs = [sum(c.epochs for c in found.certificates) for found in (path, grid)]
                solved = sum(c.epochs > 0 for c in path.certificates)
                print(
                    f"| {name} | {loss} | {tol:g} | {len(lams)} | {solved} | {epochs[0]:.0f} | "
                    f"{seconds[0]:.1f} | {epochs[1]:.0f} | {seconds[1]:.1f} | "
                    f"{worst_gap(X, y, loss, grid):.1e} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()

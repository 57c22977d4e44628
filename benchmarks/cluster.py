"""Distributed training on worker processes of one machine: rounds, traffic, overhead, agreement.

python benchmarks/cluster.py [rcv1 million] [--workers 2 4]

Each model is compared with that of one machine, trained to the smallest tolerance: its objective P,
computed here from all rows, may lie above by its own gap at most, and below by the other's.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import data
import numpy as np
from distributed import Client, LocalCluster
from scipy import sparse

import dask
import zerogap as zg
from zerogap.dask import LinearClassifier

LOSSES = ("hinge", "logistic")
TOLERANCES = (1e-3, 1e-6)
CHUNKS = 4


def read(folder: str, k: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return one chunk."""
    return sparse.load_npz(f"{folder}/{k}.npz"), np.load(f"{folder}/{k}.npy")


def write(folder: str, X: sparse.csr_matrix, y: np.ndarray) -> list[Any]:
    """Write the chunks to files; return what reads them again."""
    for k, span in enumerate(np.array_split(np.arange(len(y)), CHUNKS)):
        sparse.save_npz(Path(folder) / f"{k}.npz", X[span], compressed=False)
        np.save(Path(folder) / f"{k}.npy", y[span])
    return [dask.delayed(read)(folder, k) for k in range(CHUNKS)]


def local_cluster(workers: int) -> LocalCluster:
    """Return worker processes on this machine."""
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=":0",
        memory_limit="4GB",
        silence_logs=50,
    )


def measure(name: str, counts: list[int]) -> bool:
    """Print rounds, traffic and agreement for one set of rows; tell whether all models agree."""
    X, y = data.load(name)
    agrees = True
    problems = {loss: zg.Problem(X, y, loss) for loss in LOSSES}
    alone = {
        loss: zg.solve(problem, zg.Auto(), tol=min(TOLERANCES), random_state=0).certificate
        for loss, problem in problems.items()
    }
    for workers in counts:
        with (
            tempfile.TemporaryDirectory() as folder,
            local_cluster(workers) as machines,
            Client(machines) as client,
        ):
            parts = write(folder, X, y)
            for loss, tol in itertools.product(LOSSES, TOLERANCES):
                clf = LinearClassifier(
                    loss,
                    tol=tol,
                    fit_intercept=False,
                    client=client,
                    n_groups=workers,
                    random_state=0,
                ).fit(parts)
                local, got = alone[loss], clf.certificate_
                above = problems[loss].primal(clf.coef_[0]) - local.primal
                near = got.stop_reason == "converged" and -local.gap <= above <= got.gap
                agrees = agrees and near
                print(
                    f"| {name} | {loss} | {workers} | {tol:.0e} | {clf.n_rounds_} | "
                    f"{got.relative_gap:.1e} | {clf.history_['bytes'][-1] / 1e6:.1f} | "
                    f"{got.seconds:.1f} | {local.seconds:.1f} | {above / local.primal:+.1e} | "
                    f"{'yes' if near else 'NO'} |",
                    flush=True,
                )
    return agrees


def overhead(counts: list[int]) -> None:
    """Print what a round costs when there is next to nothing to compute."""
    print("\n| workers | features | ms per round |\n|--:|--:|--:|")
    for workers in counts:
        with local_cluster(workers) as machines, Client(machines) as client:
            for features in (1_000, 50_000, 1_000_000):
                rows = sparse.random(40, features, 20 / features, format="csr", random_state=0)
                y = np.where(np.arange(40) % 2, 1.0, -1.0)
                parts = [dask.delayed((rows[k::workers], y[k::workers])) for k in range(workers)]
                times: list[float] = []

                def tick(record: object, times: list[float] = times) -> bool:
                    times.append(time.perf_counter())
                    return len(times) == 40

                LinearClassifier(
                    "logistic",
                    tol=0.0,
                    lam=1e-6,
                    l1_ratio=0.5,  # local epochs to the end
                    fit_intercept=False,
                    client=client,
                    n_groups=workers,
                    callback=tick,
                ).fit(parts)
                milliseconds = 1e3 * statistics.median(np.diff(times))
                print(f"| {workers} | {features} | {milliseconds:.0f} |", flush=True)


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=["rcv1", "million"])
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 4])
    options = parser.parse_args()
    columns = ("data", "loss", "workers", "tol", "rounds", "gap", "MB", "seconds")
    print(f"| {' | '.join(columns)} | one machine | P above its P | within the gaps |")
    print("|:--|:--" + 8 * "|--:" + "|:--|")
    agree = [measure(name, options.workers) for name in options.names]
    overhead(options.workers)
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())

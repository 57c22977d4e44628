"""Distributed fits whose workers are killed: every fit must end, certified, and its proof be true.

python benchmarks/chaos.py [--kills N | --minutes M] [--first I] [--workers N] [--seed S]

Workers of a cluster that is started here are killed by kill -9, by their process numbers, and only
while the scheduler lists them; others take their place.  The moments are random: while rows are
loaded, in rounds of ascent and of Newton's method, during the last audit.  All fits share one
cluster, and each one's loss and moments follow from its number, so that a run can go on with
`--first`.  Each fit's objective is computed again from its model, and its certificate is held
against the optimum found on one machine.
"""

from __future__ import annotations

import argparse
import math
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from scipy import sparse

import dask
import zerogap as zg
from zerogap.dask import LinearClassifier

LAM, TOL = 1e-4, 1e-6
ROWS, FEATURES, CHUNKS = 20_000, 2_000, 6
LONGEST = 600  # seconds for one fit
LOSSES = ("hinge", "logistic", "squared-hinge")
SECONDS_BETWEEN_KILLS = 1.5  # on average: a fit takes 2 to 10 s, of which .5 s are loading
ALL_AT_ONCE = 0.1  # share of the kills that take every worker
MOST_KILLS = 6  # of one fit: three killed readers of one chunk in a row are an error of Dask


def make() -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return sparse rows and noisy labels."""
    rng = np.random.default_rng(0)
    X = sparse.random(ROWS, FEATURES, 0.01, format="csr", rng=rng)
    scores = X @ rng.standard_normal(FEATURES) + 0.3 * rng.standard_normal(ROWS)
    return X, np.where(scores > 0, 1.0, -1.0)


def read(folder: str, k: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return one chunk of the rows."""
    with np.load(f"{folder}/y.npz") as file:
        return sparse.load_npz(f"{folder}/{k}.npz"), file[f"y{k}"]


class Workers:
    """Worker processes, killed at random moments and replaced by new ones."""

    def __init__(self, cluster: LocalCluster, count: int) -> None:
        self.cluster = cluster
        self.processes: dict[str, subprocess.Popen] = {}
        self.started = self.kills = 0
        for _ in range(count):
            self.start()

    def start(self) -> None:
        """Start a worker without a nanny, under a name of its own."""
        name = f"worker-{self.started}"
        self.started += 1
        options = ("--no-nanny", "--no-dashboard", "--nthreads", "1", "--death-timeout", "300")
        address = self.cluster.scheduler_address
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", "dask", "worker", address, "--name", name, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @contextmanager
    def in_danger(self, rng: random.Random) -> Iterator[None]:
        """Kill workers while something runs."""
        over = threading.Event()

        def lurk() -> None:
            left = MOST_KILLS
            while left and not over.wait(rng.expovariate(1.0 / SECONDS_BETWEEN_KILLS)):
                left -= self.kill(rng, left)

        thread = threading.Thread(target=lurk)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def kill(self, rng: random.Random, most: int) -> int:
        """Kill workers that the scheduler lists, as others are not in the cluster yet."""
        listed = {worker.name for worker in list(self.cluster.scheduler.workers.values())}
        victims = sorted(listed & self.processes.keys())
        rng.shuffle(victims)
        count = len(victims) if rng.random() < ALL_AT_ONCE else 1
        for name in victims[: min(count, most)]:
            self.kills += 1
            self.end(name)
            self.start()
        return min(count, most, len(victims))

    def end(self, name: str) -> None:
        """Kill a worker, whatever it is doing."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        """End all workers."""
        for name in list(self.processes):
            self.end(name)


def audit(clf: LinearClassifier, problem: zg.Problem, best: zg.Certificate) -> str:
    """Return what is wrong with a fit, or nothing."""
    claim, (w,), (b,) = clf.certificate_, clf.coef_, clf.intercept_
    primal = problem.primal(w, b)
    if claim.stop_reason != "converged" or not claim.gap <= TOL * claim.primal:
        return f"not certified: {claim}"
    if abs(primal - claim.primal) > 1e-10 * primal:
        return f"the objective is {primal!r}, not {claim.primal!r}"
    if claim.dual > best.primal * (1 + 1e-10) or primal < best.dual * (1 - 1e-10):
        return f"the claim {claim} contradicts {best}"
    return ""


def fit(client: Client, parts: list, loss: str, number: int) -> LinearClassifier:
    """Return a model, or raise TimeoutError."""
    settings = {"lam": LAM, "tol": TOL, "client": client, "checkpoint_every": 2}
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LONGEST)
    try:
        return LinearClassifier(loss, random_state=number, **settings).fit(parts)
    finally:
        signal.alarm(0)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"no end after {LONGEST} s")


@contextmanager
def cluster_of(count: int) -> Iterator[tuple[Client, Workers]]:
    """Give a client and its workers, which end with the block."""
    with (
        LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
        closing(Workers(cluster, count)) as workers,
    ):
        client.wait_for_workers(count, timeout=LONGEST)
        yield client, workers


def write(folder: str, X: sparse.csr_matrix, y: np.ndarray) -> list:
    """Write the chunks; return what reads them."""
    spans = np.array_split(np.arange(len(y)), CHUNKS)
    np.savez(Path(folder) / "y.npz", **{f"y{k}": y[span] for k, span in enumerate(spans)})
    for k, span in enumerate(spans):
        sparse.save_npz(Path(folder) / f"{k}.npz", X[span])
    return [dask.delayed(read)(folder, k) for k in range(CHUNKS)]


def main() -> int:
    """Run the fits and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=60, help="end after so many")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after so long")
    parser.add_argument("--first", type=int, default=0, help="number of the first fit")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    X, y = make()
    problems = {loss: zg.Problem(X, y, loss, LAM, None, True) for loss in LOSSES}
    best = {
        loss: zg.solve(problem, zg.Auto(), tol=1e-8, random_state=0).certificate
        for loss, problem in problems.items()
    }
    failures, number = 0, options.first
    print("| fit | loss | kills | recoveries | rounds | seconds | reported gap | off the optimum |")
    print("|--:|:--|--:|--:|--:|--:|--:|--:|")
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster_of(options.workers) as (client, workers),
    ):
        parts, start = write(folder, X, y), time.monotonic()
        while workers.kills < options.kills and time.monotonic() - start < 60 * options.minutes:
            loss, before, began = LOSSES[number % len(LOSSES)], workers.kills, time.monotonic()
            try:
                with workers.in_danger(random.Random(options.seed << 32 | number)):
                    clf = fit(client, parts, loss, number)
                wrong = audit(clf, problems[loss], best[loss])
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            seconds, killed = time.monotonic() - began, workers.kills - before
            line = f"| {number} | {loss} | {killed} |"
            number += 1
            if wrong:
                failures += 1
                print(line, " ".join(wrong.split()), "|", flush=True)
                continue
            claim = clf.certificate_
            off = (claim.primal - best[loss].dual) / claim.primal
            print(
                f"{line} {len(clf.recoveries_)} | {clf.n_rounds_} | "
                f"{seconds:.1f} | {claim.relative_gap:.1e} | {off:.1e} |",
                flush=True,
            )
    fits = number - options.first
    print(
        f"{fits} fits tried, {workers.kills} workers killed, {fits - failures} survived, "
        f"{failures} lost; go on with --first {number}"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

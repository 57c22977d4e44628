"""Distributed fits whose workers are killed: every fit must end, certified, and its proof be true.

python benchmarks/chaos.py [--fits N] [--kills N] [--workers N] [--seed S]

Workers of a cluster that is started here are killed by kill -9, at random moments, by their process
numbers, and only while the scheduler lists them; others take their place.  Each fit's objective is
computed again from its model, and its certificate is held against the optimum found on one machine.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
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
LOSSES = ("hinge", "logistic")


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
    """Worker processes, killed a moment after a round has ended and replaced by new ones."""

    def __init__(self, cluster: LocalCluster, count: int, rng: random.Random) -> None:
        self.cluster, self.rng = cluster, rng
        self.processes: dict[str, subprocess.Popen] = {}
        self.lock = threading.Lock()
        self.started = self.kills = self.left = 0
        for _ in range(count):
            self.start()

    def start(self) -> None:
        """Start a worker without a nanny, under a name of its own."""
        name = f"worker-{self.started}"
        self.started += 1
        options = ("--no-nanny", "--no-dashboard", "--nthreads", "1", "--death-timeout", "60")
        address = self.cluster.scheduler_address
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", "dask", "worker", address, "--name", name, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __call__(self, record: object) -> None:
        """Take a record as the moment to kill: one worker, sometimes all of them."""
        if self.left:
            threading.Timer(self.rng.uniform(0.0, 0.3), self.kill).start()

    def kill(self) -> None:
        """Kill workers that the scheduler lists: others are not in the cluster yet."""
        with self.lock:
            listed = {worker.name for worker in list(self.cluster.scheduler.workers.values())}
            victims = sorted(listed & self.processes.keys())
            self.rng.shuffle(victims)
            count = len(victims) if self.rng.random() < 0.1 else 1
            for name in victims[: min(count, self.left)]:
                self.left -= 1
                self.kills += 1
                self.end(name)
                self.start()

    def rest(self) -> None:
        """Kill no more."""
        with self.lock:
            self.left = 0

    def end(self, name: str) -> None:
        """Kill a worker, whatever it is doing."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        """End all workers."""
        self.rest()
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


def main() -> int:
    """Run the fits and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    X, y = make()
    losses = LOSSES[: options.fits]
    problems = {loss: zg.Problem(X, y, loss, LAM, None, True) for loss in losses}
    best = {
        loss: zg.solve(problem, zg.Auto(), tol=1e-8, random_state=0).certificate
        for loss, problem in problems.items()
    }
    failures = fits = 0
    print("| fit | loss | kills | recoveries | rounds | seconds | reported gap | off the optimum |")
    print("|--:|:--|--:|--:|--:|--:|--:|--:|")
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
        closing(Workers(cluster, options.workers, random.Random(options.seed))) as killer,
    ):
        spans = np.array_split(np.arange(len(y)), CHUNKS)
        np.savez(Path(folder) / "y.npz", **{f"y{k}": y[span] for k, span in enumerate(spans)})
        for k, span in enumerate(spans):
            sparse.save_npz(Path(folder) / f"{k}.npz", X[span])
        parts = [dask.delayed(read)(folder, k) for k in range(CHUNKS)]
        client.wait_for_workers(options.workers, timeout=LONGEST)
        while fits < options.fits or killer.kills < options.kills:
            loss, fits, before = losses[fits % len(losses)], fits + 1, killer.kills
            killer.left, began = -(-options.kills // options.fits), time.monotonic()
            clf = LinearClassifier(
                loss,
                lam=LAM,
                tol=TOL,
                client=client,
                callback=killer,
                checkpoint_every=2,
                random_state=fits,
            )
            signal.signal(signal.SIGALRM, _too_long)
            signal.alarm(LONGEST)
            try:
                clf.fit(parts)
                wrong = audit(clf, problems[loss], best[loss])
            except (RuntimeError, ValueError, TimeoutError) as error:
                wrong = f"{type(error).__name__}: {error}"
            signal.alarm(0)
            killer.rest()
            seconds, killed = time.monotonic() - began, killer.kills - before
            if wrong:
                failures += 1
                print(f"| {fits} | {loss} | {killed} | {wrong} |", flush=True)
                continue
            claim = clf.certificate_
            off = (claim.primal - best[loss].dual) / claim.primal
            print(
                f"| {fits} | {loss} | {killed} | {len(clf.recoveries_)} | {clf.n_rounds_} | "
                f"{seconds:.1f} | {claim.relative_gap:.1e} | {off:.1e} |",
                flush=True,
            )
    print(f"{fits} fits, {killer.kills} kills, {failures} failures")
    return 1 if failures else 0


def _too_long(*_: object) -> None:
    raise TimeoutError(f"no end after {LONGEST} s")


if __name__ == "__main__":
    sys.exit(main())

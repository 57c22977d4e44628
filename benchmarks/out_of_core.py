"""Training from a store of ten times the memory that it may take.

    python benchmarks/out_of_core.py [FOLDER]

Sparse rows are generated into a store of ten times MEMORY.  A child process that may allocate
MEMORY and no more (RLIMIT_DATA) trains to a relative gap of 1e-3; its peak is what the
operating system has counted, as is what it has read and written in all, certificates included, in
sizes of the store.  Then the same is done with all rows in memory.  Needs three times the size of
the store, 3 GB, on disk and in memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import zerogap as zg
from zerogap.store import Store, write_store
from zerogap.streamed import load

MEMORY = 300_000_000
STORED, FEATURES = 100, 50_000  # values of a row, of so many
ROWS = 10 * MEMORY // (8 * STORED)
TOL = 1e-3
CASES = [(loss, lam) for loss in ("hinge", "logistic") for lam in (1e-5, 1.0 / ROWS)]
CHILD = """
import json, resource, sys
import zerogap as zg
from zerogap.solvers import BlockSDCA
from zerogap.store import Store
from zerogap.streamed import StreamedProblem
path, loss, memory, lam, tol = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
def transferred():
    with open("/proc/self/io") as file:
        return [int(line.split()[1]) for line in file][:2]
store = Store(path, max_memory=int(memory))
before = transferred()
resource.setrlimit(resource.RLIMIT_DATA, (int(memory), int(memory)))
problem = StreamedProblem(store, loss, lam, True)
result = zg.solve(problem, BlockSDCA(), tol=tol, random_state=0)
with open("/proc/self/status") as file:
    peak = next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))
proof = result.certificate
place = "memory" if problem.in_memory else "disk"
volumes = [(b - a) / store.nbytes for a, b in zip(before, transferred())]
print(json.dumps([peak, proof.relative_gap, proof.epochs, len(result.history["gap"]),
                  proof.seconds, place, *volumes]))
"""


def parts(rows: int = ROWS, size: int = 50_000) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield rows with few common and many rare features, and noisy labels."""
    rng = np.random.default_rng(0)
    width = FEATURES // STORED
    truth = rng.standard_normal(FEATURES)
    for start in range(0, rows, size):
        n = min(size, rows - start)
        within = (width * rng.random((n, STORED), dtype=np.float32) ** 3).astype(np.int32)
        indices = (within + width * np.arange(STORED, dtype=np.int32)).ravel()
        values = np.full(n * STORED, STORED**-0.5, dtype=np.float32)
        X = sparse.csr_matrix((values, indices, STORED * np.arange(n + 1)), (n, FEATURES))
        yield X, X @ truth + 0.5 * rng.standard_normal(n) > 0


def read_speed(store: Store) -> float:
    """Return bytes per second of reading the store from disk, with an empty cache."""
    path = max(store.path.iterdir(), key=lambda file: file.stat().st_size)
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        began = time.perf_counter()
        while file.read(1 << 22):
            pass
        return path.stat().st_size / (time.perf_counter() - began)


def in_memory(store: Store) -> list[tuple[float, int]]:
    """Return epochs and certificates of SDCA on all rows."""
    X, y, _ = load(store)
    found = []
    for loss, lam in CASES:
        problem = zg.Problem(X, np.where(y, 1.0, -1.0), loss, lam, None, True)
        result = zg.solve(problem, zg.SDCA(layout="given"), tol=TOL, random_state=0)
        found.append((result.certificate.epochs, len(result.history["gap"])))
    return found


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        began = time.perf_counter()
        store = write_store(Path(folder, "store"), parts())
        wrote = time.perf_counter() - began
        raw = read_speed(store)
        print(
            f"{store.n_samples:,} rows, {store.nbytes / 1e9:.2f} GB in {len(store.blocks)} blocks, "
            f"written in {wrote:.0f} s; read from disk at {raw / 1e6:.0f} MB/s\n"
            f"{MEMORY / 1e6:.0f} MB of memory allowed\n"
        )
        fits = []
        for loss, lam in CASES:
            values = (store.path, loss, MEMORY, lam, TOL)
            command = [sys.executable, "-c", CHILD, *map(str, values)]
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
            output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
            fits.append(json.loads(output.stdout))
        memory = in_memory(store)
    names = "loss,lam n,peak MB,duals in,gap,passes,certificates,read,written,MB/s"
    names += ",passes in memory,certificates"
    print(f"| {' | '.join(names.split(','))} |\n|{' --- |' * 12}")
    for (loss, lam), found, there in zip(CASES, fits, memory, strict=True):
        peak, gap, epochs, certificates, seconds, place, read, written = found
        rate = epochs * store.nbytes / seconds / 1e6
        ours = f"{peak / 1e6:.0f} | {place} | {gap:.1e} | {epochs:g} | {certificates}"
        disk = f"{read:.1f} | {written:.1f} | {rate:.0f}"
        print(f"| {loss} | {lam * ROWS:g} | {ours} | {disk} | {there[0]:g} | {there[1]} |")


if __name__ == "__main__":
    main()

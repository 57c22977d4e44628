"""What a user waits for: import, the first small fits of a machine and of a process, and Ctrl-C.

python benchmarks/latency.py
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import zerogap as zg

IMPORT = "import time; t = time.perf_counter(); import zerogap; print(time.perf_counter() - t)"
FIRST_FIT = """
import time, numpy as np
X = np.random.default_rng(0).standard_normal((200, 10)); y = np.sign(X[:, 0])
import zerogap as zg; zg.LinearClassifier
t = time.perf_counter()
zg.LinearClassifier(random_state=0).fit(X, y)
print(time.perf_counter() - t)
"""


def seconds_of(code: str, repeats: int = 7) -> float:
    """Return the median of what the code prints, each time in a process of its own."""
    command = [sys.executable, "-c", code]
    outputs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout]
    outputs = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for _ in range(repeats)
    ]
    return statistics.median(map(float, outputs))


NOTHING_COMPILED = """
import sys, time, numpy as np, scipy.sparse as sp
import zerogap as zg
loss, rows = sys.argv[1:]
task = zg.losses.as_loss(loss).task
X = np.random.default_rng(0).standard_normal((200, 10))
score = X[:, 0] + 0.1 * X[:, 1]
if rows == "raw":  # Newton's method is chosen
    X = X * 10.0 ** np.arange(-3, 7)
if rows == "sparse":
    X = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
kind = zg.LinearRegressor if task == "regression" else zg.LinearClassifier
y = score if task == "regression" else np.digitize(score, [-0.5, 0.5][: 1 + (task == "multiclass")])
t = time.process_time()
kind(loss, random_state=0).fit(X, y)
print(time.process_time() - t)
"""
FIRST_FITS = [
    *(("logistic", rows) for rows in ("dense", "sparse", "raw")),
    *(("hinge", rows) for rows in ("dense", "sparse", "raw")),
    *(("squared-hinge", "dense"), ("squared", "dense"), ("squared", "raw")),
    *(("softmax", "dense"), ("softmax", "raw"), ("multiclass-hinge", "dense")),
]


def seconds_uncompiled(loss: str, rows: str) -> float:
    """Return the processor seconds of a small fit with an empty folder for machine code."""
    with tempfile.TemporaryDirectory() as folder:
        return float(
            subprocess.run(
                [sys.executable, "-c", NOTHING_COMPILED, loss, rows],
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )


def ctrl_c_latency(repeats: int = 20) -> tuple[float, float]:
    """Return median and maximum of the seconds from SIGINT to the certified answer."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 100), dtype=np.float32)
    problem = zg.Problem(X, np.sign(X[:, 0] + rng.standard_normal(200_000)), "hinge")
    zg.solve(problem, zg.SDCA(), tol=0.5)  # compile
    waits = []
    for _ in range(repeats):
        sent = []

        def send(sent: list[float] = sent) -> None:
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(float(rng.uniform(0.5, 1.5)), send).start()
        result = zg.solve(problem, zg.SDCA(), tol=0.0, max_epochs=10**6)
        waits.append(time.perf_counter() - sent[0])
        assert result.stop_reason == "interrupted"
    return statistics.median(waits), max(waits)


def main() -> None:
    print("| what | seconds |")
    print("| --- | --- |")
    print(f"| import zerogap | {seconds_of(IMPORT):.4f} |")
    print(f"| first small fit of a process, kernels cached | {seconds_of(FIRST_FIT):.3f} |")
    for loss, rows in FIRST_FITS:
        seconds = min(seconds_uncompiled(loss, rows) for _ in range(2))
        print(f"| first small fit, nothing compiled, {loss}, {rows} | {seconds:.2f} of processor |")
    median, worst = ctrl_c_latency()
    print(f"| Ctrl-C to certified answer, median / worst of 20 | {median:.3f} / {worst:.3f} |")


if __name__ == "__main__":
    main()

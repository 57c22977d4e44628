"""Training on a GPU: whole fits to certified gaps, beside our own on the processor's cores.

    ZEROGAP_DATA=... python benchmarks/gpu.py [NAME ...] [--only-gpu]

Data are on the GPU before the clock starts; the second fit of the process is timed (the first one
compiles), as the median of several.  The last columns put the time beside what the memory allows:
the bytes of the data over the time that a copy of as many bytes takes, which is how often the data
could have been read in the time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cupy as cp
import cupyx.scipy.sparse as device_sparse
import numpy as np
from data import load

import zerogap as zg


class Case(NamedTuple):
    """What to train, how far, and in what time."""

    name: str
    X: Any  # on the GPU
    y: np.ndarray
    loss: str
    lam: float
    tol: float
    goal: float  # seconds


def rcv1() -> Iterator[Case]:
    X, y = load("rcv1")
    X, n = device_sparse.csr_matrix(X.astype(np.float32)), len(y)
    yield Case("rcv1 hinge C=1", X, y, "hinge", 1 / n, 1e-3, 0.020)
    yield Case("rcv1 hinge C=1", X, y, "hinge", 1 / n, 1e-6, 0.300)
    yield Case("rcv1 logistic C=1", X, y, "logistic", 1 / n, 1e-3, np.nan)


def text() -> Iterator[Case]:
    """Rows like those of `zerogap.datasets.make_text`, drawn on the GPU."""
    n, d, words = 2_000_000, 200_000, 70
    rng = cp.random.default_rng(0)
    ends = cp.cumsum(1 + rng.poisson(words - 1, n))
    shares = cp.cumsum(1.0 / cp.arange(1, d + 1))
    drawn = cp.searchsorted(shares, shares[-1] * rng.random(int(ends[-1])))
    keys = cp.searchsorted(ends, cp.arange(int(ends[-1])), side="right") * d + drawn
    keys, counts = cp.unique(keys, return_counts=True)
    rows, columns = keys // d, (keys % d).astype(cp.int32)
    documents = cp.bincount(columns, minlength=d)
    values = (1 + cp.log(counts)) * (1 + cp.log(n / documents[columns]))
    values /= cp.sqrt(cp.bincount(rows, values**2, minlength=n))[rows]
    scores = cp.bincount(rows, values * rng.standard_normal(d)[columns], minlength=n)
    y = cp.where(scores / scores.std() + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0).get()
    starts = cp.concatenate([cp.zeros(1, int), cp.cumsum(cp.bincount(rows, minlength=n))])
    arrays = (values.astype(cp.float32), columns, starts.astype(cp.int32))
    X = device_sparse.csr_matrix(arrays, shape=(n, d))
    yield Case("text 2M x 200k hinge C=1", X, y, "hinge", 1 / n, 1e-3, 1.0)
    yield Case("text 2M x 200k logistic C=1", X, y, "logistic", 1 / n, 1e-3, np.nan)


def covtype() -> Iterator[Case]:
    """The 20 000 rows at hand, 29 times: as many as the whole set has, no more information."""
    X, y = load("covtype")
    X, y, n = cp.asarray(np.tile(X.astype(np.float32), (29, 1))), np.tile(y, 29), 29 * len(y)
    yield Case("covtype x 29 hinge C=10", X, y, "hinge", 0.1 / n, 1e-6, 0.300)
    yield Case("covtype x 29 logistic C=10", X, y, "logistic", 0.1 / n, 1e-6, np.nan)


def mnist() -> Iterator[Case]:
    X, parity = load("mnist")
    X, y = cp.asarray(X.astype(np.float32)), zg.datasets.load("mnist").y
    yield Case("mnist even/odd hinge C=10", X, parity, "hinge", 0.1 / len(y), 1e-6, 2.0)
    yield Case("mnist softmax", X, y, "softmax", 1e-4, 1e-3, 0.200)
    yield Case("mnist multiclass hinge", X, y, "multiclass-hinge", 1e-4, 1e-3, 0.200)


def embeddings(*shapes: tuple[int, int, int, float]) -> Iterator[Case]:
    """Linear probes: features like those of `many_classes.py`, drawn on the GPU."""
    for n, d, classes, goal in shapes:
        rng = cp.random.default_rng(0)
        y = rng.integers(0, classes, n)
        spread = cp.arange(1, d + 1, dtype=np.float32) ** -0.5
        means = rng.standard_normal((classes, d), dtype=np.float32) * spread
        X = rng.standard_normal((n, d), dtype=np.float32)
        X *= spread
        X += means[y]
        X = X @ cp.linalg.qr(rng.standard_normal((d, d), dtype=np.float32))[0]
        wrong = rng.random(n) < 0.1
        y[wrong] = rng.integers(0, classes, int(wrong.sum()))
        name = f"{n} x {d} embeddings, {classes} classes, softmax"
        yield Case(name, X, y.get(), "softmax", 1.0 / n, 1e-3, goal)


SETS: dict[str, Callable[[], Iterator[Case]]] = {
    "rcv1": rcv1,
    "mnist": mnist,
    "covtype": covtype,
    "text": text,
    "embeddings": lambda: embeddings((100_000, 512, 100, np.nan), (200_000, 768, 1000, 10.0)),
    "large embeddings": lambda: embeddings((1_280_000, 1024, 1000, 40.0)),
}


def fitted(case: Case, X: Any, device: str) -> tuple[float, Any]:
    model = zg.LinearClassifier(
        case.loss,
        lam=case.lam,
        tol=case.tol,
        fit_intercept=False,
        device=device,
        n_jobs=-1,
        random_state=0,
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, case.y)
    cp.cuda.Device().synchronize()
    return time.perf_counter() - start, model


def copy_bandwidth() -> float:
    """Bytes per second, read and written, of a large copy on the GPU."""
    a = cp.zeros(1 << 30, cp.uint8)
    b = cp.empty_like(a)
    times = []
    for _ in range(10):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        cp.copyto(b, a)
        cp.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return 2 * a.nbytes / statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(SETS))
    parser.add_argument("--only-gpu", action="store_true")
    options = parser.parse_args()
    bandwidth = copy_bandwidth()
    print(f"copy bandwidth {bandwidth / 1e12:.2f} TB/s, {os.cpu_count()} cores")
    print("| data | gap | GPU ms | goal ms | CPU ms | ratio | data GB | reads possible | how |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in options.names:
        for case in SETS[name]():
            fitted(case, case.X, "cuda")
            runs = [fitted(case, case.X, "cuda") for _ in range(5)]
            gpu, model = statistics.median(t for t, _ in runs), runs[-1][1]
            cpu = np.nan
            if not options.only_gpu:
                fitted(case._replace(y=case.y[:1000]), case.X.get()[:1000], "cpu")  # compiles
                cpu, _ = fitted(case, case.X.get(), "cpu")
            sparse = hasattr(case.X, "indptr")
            size = case.X.data.nbytes + case.X.indices.nbytes if sparse else case.X.nbytes
            proof = model.certificate_
            print(
                f"| {case.name} | {case.tol:g} | {1e3 * gpu:.1f} | {1e3 * case.goal:.0f} "
                f"| {1e3 * cpu:.0f} | {cpu / gpu:.1f} | {size / 1e9:.3f} "
                f"| {gpu * bandwidth / size:.0f} | {proof.solver}; {proof.epochs:g} epochs, "
                f"gap {proof.relative_gap:.1e}, {proof.stop_reason} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

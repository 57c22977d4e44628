"""Many models on a GPU: one against the rest, and lists of lambdas, together and one by one.

    ZEROGAP_DATA=... python benchmarks/gpu_columns.py

Whole calls, data on the GPU before the clock starts; the median of three after one that compiles.
Beside them the same call on all of the processor's cores.  rcv1 gets ten classes: those of the
largest of ten random linear scores.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import cupy as cp
import cupyx.scipy.sparse as device_sparse
import numpy as np
from data import load

import zerogap as zg

LAMS = 20


def timed(call: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(repeats + 1):
            start = time.perf_counter()
            answer = call()
            cp.cuda.Device().synchronize()
            times.append(time.perf_counter() - start)
    return statistics.median(times[1:]), answer


def classes(X: Any, y: np.ndarray, loss: str, lam: float, tol: float, device: str) -> Any:
    options = {"lam": lam, "tol": tol, "device": device, "n_jobs": -1, "random_state": 0}
    return zg.LinearClassifier(loss, **options).fit(X, y).certificate_.parts


def class_by_class(X: Any, y: np.ndarray, loss: str, lam: float, tol: float) -> Any:
    return [classes(X, y == k, loss, lam, tol, "cuda") for k in np.unique(y)]


def path(X: Any, y: np.ndarray, loss: str, lams: np.ndarray, tol: float, device: str) -> Any:
    options = {"loss": loss, "tol": tol, "device": device, "random_state": 0}
    return zg.path(X, y, lams, **options).certificates


def lam_by_lam(X: Any, y: np.ndarray, loss: str, lams: np.ndarray, tol: float) -> Any:
    options = {"tol": tol, "device": "cuda", "random_state": 0, "warm_start": True}
    model = zg.LinearClassifier(loss, **options)
    return [model.set_params(lam=lam).fit(X, y).certificate_ for lam in np.sort(lams)[::-1]]


def show(name: str, tol: float, together: Callable, apart: Callable, here: Callable) -> None:
    seconds, parts = timed(together)
    alone, _ = timed(apart)
    cpu, _ = timed(here, 1)
    assert max(part.relative_gap for part in parts) <= tol
    print(
        f"| {name} | {tol:g} | {1e3 * seconds:.0f} | {1e3 * alone:.0f} | {alone / seconds:.1f} "
        f"| {1e3 * cpu:.0f} | {cpu / seconds:.1f} |",
        flush=True,
    )


def main() -> None:
    print("| models | gap | together ms | one by one ms | ratio | CPU ms | CPU / together |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    X, y = load("rcv1")
    X, n = X.astype(np.float32), len(y)
    there = device_sparse.csr_matrix(X)
    teachers = np.random.default_rng(0).standard_normal((X.shape[1], 10))
    ten = np.asarray(X @ teachers).argmax(axis=1)
    lams = np.geomspace(0.1 / n, 1e-2, LAMS)
    for loss in ("hinge", "logistic"):
        for C, tol in ((1, 1e-3), (1, 1e-5), (10, 1e-3)):
            case = (loss, 1 / (C * n), tol)
            show(
                f"rcv1, ten classes, {loss}, C={C}",
                tol,
                lambda case=case: classes(there, ten, *case, "cuda"),
                lambda case=case: class_by_class(there, ten, *case),
                lambda case=case: classes(X, ten, *case, "cpu"),
            )
        show(
            f"rcv1, {LAMS} lambdas, {loss}",
            1e-3,
            lambda loss=loss: path(there, y, loss, lams, 1e-3, "cuda"),
            lambda loss=loss: lam_by_lam(there, y, loss, lams, 1e-3),
            lambda loss=loss: path(X, y, loss, lams, 1e-3, "cpu"),
        )


if __name__ == "__main__":
    main()

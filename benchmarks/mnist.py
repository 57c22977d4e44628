"""MNIST, ten classes: multiclass hinge and softmax to a relative gap of 1e-3, beside the peers.

    ZEROGAP_DATA=... python benchmarks/mnist.py

All 60 000 training digits, pixels in [0, 1], dense float32, no intercept.  Ours runs until a gap of
1e-3 is certified; the time is that of `Problem` and `solve` together.  A peer is swept over its
tolerance; its objective is compared with our certified lower bound.
"""

from __future__ import annotations

import functools
import gzip
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import zerogap as zg
from zerogap.comparison.contestants import short_name


def images(path: Path) -> np.ndarray:
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784) / np.float32(255)


def labels(path: Path) -> np.ndarray:
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int64)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = call()
    return time.perf_counter() - start, answer


def peers(loss: str, lam: float, n: int) -> list[tuple[str, Any]]:
    C = 1.0 / (lam * n)
    if loss == "softmax":
        common = {"C": C, "fit_intercept": False, "max_iter": 2000}
        return [
            (f"LogisticRegression {tol:g}", LogisticRegression(tol=tol, **common))
            for tol in (1e-3, 1e-4, 5e-5)
        ]
    common = {"C": C, "fit_intercept": False, "multi_class": "crammer_singer", "random_state": 0}
    return [
        (f"LIBLINEAR -s 4 {tol:g}", LinearSVC(tol=tol, max_iter=1000, **common))
        for tol in (1e-1, 5e-2, 2e-2)
    ]


def fit(X: np.ndarray, y: np.ndarray, loss: str, lam: float, solver: Any) -> Any:
    problem = zg.Problem(X, y, loss, lam)
    return zg.solve(problem, solver, tol=1e-3, max_epochs=2000, max_seconds=120, random_state=0)


def main() -> None:
    folder = Path(os.environ["ZEROGAP_DATA"]) / "mnist"
    X, y = (
        images(folder / "train-images-idx3-ubyte.gz"),
        labels(folder / "train-labels-idx1-ubyte.gz"),
    )
    test_X, test_y = (
        images(folder / "t10k-images-idx3-ubyte.gz"),
        labels(folder / "t10k-labels-idx1-ubyte.gz"),
    )
    print("| loss | lam | solver | seconds | passes | objective above the bound | test error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for loss in ("multiclass-hinge", "softmax"):
        for lam in (1e-3, 1e-4):
            problem = zg.Problem(X, y, loss, lam)
            bound = -np.inf
            bcfw = [zg.BCFW(), zg.BCFW(sampling="gap")]
            for solver in [zg.SDCA(), *(bcfw if loss == "multiclass-hinge" else [])]:
                zg.solve(problem, solver, tol=1.0, random_state=0)  # compile
                seconds, run = timed(functools.partial(fit, X, y, loss, lam, solver))
                bound = max(bound, run.certificate.dual)
                error = np.mean((test_X @ run.w.T).argmax(axis=1) != test_y)
                above = run.certificate.primal / bound - 1
                row = f"{seconds:.1f} | {run.certificate.epochs:g} | {above:.1e} | {error:.2%}"
                print(f"| {loss} | {lam:g} | {short_name(solver)} | {row} |", flush=True)
            for name, model in peers(loss, lam, len(y)):
                seconds, model = timed(lambda m=model: m.fit(X, y))
                above = problem.primal(model.coef_) / bound - 1
                error = np.mean(model.predict(test_X) != test_y)
                passes = np.max(model.n_iter_)
                row = f"{seconds:.1f} | {passes:g} | {above:.1e} | {error:.2%}"
                print(f"| {loss} | {lam:g} | {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()

"""The cost of one pass over rcv1: Pegasos beside scikit-learn's SGD, SDCA beside LIBLINEAR.

    ZEROGAP_DATA=... python benchmarks/epoch_cost.py

Both sides are timed in turns, as the difference of a long and a short run divided by the extra
passes, so that what is done once does not count; medians of 9 repeats, one thread, same values.
LIBLINEAR cannot be told not to shrink: its first iterations, before rows are dropped, are taken.
"""

from __future__ import annotations

import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from data import load
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

import zerogap as zg

REPEATS = 9


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
    return time.perf_counter() - start


def main() -> None:
    X, y = load("rcv1", Path(os.environ["ZEROGAP_DATA"]))
    n = X.shape[0]
    lam = 1.0 / n
    problem = zg.Problem(X, y, "hinge", lam)

    def ours(solver: zg.Solver, epochs: int) -> float:
        run = zg.solve(
            problem, solver, tol=0.0, max_epochs=epochs, record=epochs * n, random_state=0
        )
        return run.certificate.seconds

    def sgd(epochs: int) -> float:
        model = SGDClassifier("hinge", alpha=lam, max_iter=epochs, tol=None, fit_intercept=False)
        return seconds(lambda: model.fit(X, y))

    def liblinear(iterations: int) -> float:
        model = LinearSVC(loss="hinge", max_iter=iterations, tol=1e-12, fit_intercept=False)
        return seconds(lambda: model.fit(X, y))

    def per_pass(run: Callable[[int], float], short: int, long: int) -> float:
        return (run(long) - run(short)) / (long - short)

    contests = [
        ("Pegasos, random rows", lambda: per_pass(lambda e: ours(zg.Pegasos(), e), 2, 12)),
        (
            "Pegasos, epochs",
            lambda: per_pass(lambda e: ours(zg.Pegasos(sampling="epochs"), e), 2, 12),
        ),
        ("SGDClassifier", lambda: per_pass(sgd, 2, 12)),
        ("SDCA", lambda: per_pass(lambda e: ours(zg.SDCA(), e), 1, 6)),
        ("SDCA, rows as given", lambda: per_pass(lambda e: ours(zg.SDCA(layout="given"), e), 1, 6)),
        ("LIBLINEAR", lambda: per_pass(liblinear, 1, 6)),
    ]
    measured: dict[str, list[float]] = {name: [] for name, _ in contests}
    for _ in range(REPEATS):
        for name, contest in contests:
            measured[name].append(contest())
    middle = {name: statistics.median(values) for name, values in measured.items()}
    print("| one pass over rcv1 | milliseconds | ratio to the peer |")
    print("| --- | --- | --- |")
    for name in measured:
        peer = "LIBLINEAR" if name.startswith(("SDCA", "LIB")) else "SGDClassifier"
        print(f"| {name} | {1e3 * middle[name]:.1f} | {middle[name] / middle[peer]:.2f} |")


if __name__ == "__main__":
    main()

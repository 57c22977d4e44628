"""What each ingredient of the second-order methods and of the choice is worth.

    ZEROGAP_DATA=... python benchmarks/ablation.py

Seconds of `Problem` and `solve` to a certified relative gap of 1e-6, with one ingredient taken away
at a time; one thread, median of three in turns, or the first run if that takes seconds.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterator
from unittest import mock

from data import load
from threadpoolctl import threadpool_limits

import zerogap as zg
from zerogap.solvers import hessian, newton, rotation

PROBLEMS = [
    ("a9a", "hinge", 10),
    ("w8a", "hinge", 10),
    ("skin", "hinge", 10),
    ("covtype", "hinge", 100),
    ("w8a", "logistic", 10),
    ("ijcnn1", "logistic", 10),
    ("mnist", "logistic", 1),
    ("gordon", "hinge", 10),
    ("rcv1", "hinge", 1),
]
LIMIT = 20.0  # seconds
SLOW = 3.0  # seconds from which a run is not repeated


@contextlib.contextmanager
def without(module: object, name: str, value: object) -> Iterator[None]:
    with mock.patch.object(module, name, value):
        yield


def everything_moves(*args: object) -> None:
    """Mark no row as decided."""


VARIANTS: dict[str, tuple[zg.solvers.Solver, Callable[[], contextlib.AbstractContextManager]]] = {
    "Auto": (zg.Auto(), contextlib.nullcontext),
    "without inner products": (zg.Auto(), lambda: without(rotation, "FEW_ROWS", 0)),
    "Newton": (zg.Newton(), contextlib.nullcontext),
    "without a start from a part": (
        zg.Newton(),
        lambda: without(newton, "ROWS_PER_SAMPLED", 10**9),
    ),
    "over all rows": (zg.Newton(), lambda: without(newton, "_mark_movable", everything_moves)),
    "Hessians of all rows": (zg.Newton(), lambda: without(hessian, "MOST_PASSES", math.inf)),
    "InteriorPoint": (zg.InteriorPoint(), contextlib.nullcontext),
    "SDCA": (zg.SDCA(), contextlib.nullcontext),
    "SDCA without shrinking": (zg.SDCA(shrink=False), contextlib.nullcontext),
}


def run(variant: str, X: object, y: object, loss: str, C: float) -> float:
    """Return the seconds to the gap: infinity if it was not reached, NaN if that is not defined."""
    solver, patched = VARIANTS[variant]
    with patched():
        start = time.perf_counter()
        try:
            problem = zg.Problem(X, y, loss, lam=1.0 / (C * X.shape[0]))
            limits = {"max_epochs": 10**6, "max_seconds": LIMIT}
            found = zg.solve(problem, solver, tol=1e-6, random_state=0, **limits)
        except ValueError:
            return math.nan
        seconds = time.perf_counter() - start
    return seconds if found.stop_reason == "converged" else math.inf


def text(seconds: float) -> str:
    if math.isnan(seconds):
        return ""
    return f"{seconds:.3f}" if math.isfinite(seconds) else f"> {LIMIT:g}"


def main() -> None:
    print(f"| data | loss | C | {' | '.join(VARIANTS)} |")
    print(f"| --- | --- | --- |{' --- |' * len(VARIANTS)}")
    for name, loss, C in PROBLEMS:
        X, y = load(name)
        found = {variant: [run(variant, X, y, loss, C)] for variant in VARIANTS}
        for _ in range(2):
            for variant, seconds in found.items():
                if seconds[0] < SLOW:
                    seconds.append(run(variant, X, y, loss, C))
        cells = [text(statistics.median(seconds)) for seconds in found.values()]
        print(f"| {name} | {loss} | {C} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

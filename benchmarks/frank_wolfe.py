"""Block-coordinate Frank-Wolfe (BCFW) and stochastic sub-gradients (SSGD) at equal passes.

    ZEROGAP_DATA=... python benchmarks/frank_wolfe.py

Two claims about the multiclass support vector machine on MNIST: after one pass BCFW has the lower
objective, without a step size to choose; and BCFW is fast for large mu and slow for small.  SSGD
runs with the defaults of `zerogap practical`, and tuned: averaged over the second half of its
steps, with the batch, step and schedule of the best objective after as many passes, found with a
seed that is not measured.
"""

from __future__ import annotations

import itertools
import math
import statistics
from typing import NamedTuple

from threadpoolctl import threadpool_limits

import zerogap as zg
from zerogap.datasets import Mnist, load_mnist
from zerogap.lab.practical import error_rate

SEEDS = range(7)  # smallest and largest enclose the median with probability 1 - 2 / 2^7 = 98 %
TUNING_SEED = 1000
DEFAULT_MU = 1e-3
MUS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
GRID = [
    zg.SGD(batch_size=batch, step=step, schedule=schedule, output="average")
    for batch, step, schedule in itertools.product(
        (4, 16), (1e-3, 3e-3, 1e-2, 3e-2, 1e-1), ("sqrt", "inverse")
    )
]
PATIENCE = 250  # passes to wait for a gap of half the objective

BLOCKS, SINGLE, AVERAGED = "BCFW, blocks of 256", "BCFW", "BCFW, weighted average"
DEFAULT, TUNED = "SSGD, batches of 256", "SSGD, tuned"


class Outcome(NamedTuple):
    """What a run came to."""

    objective: float
    gap: float
    error: float


def run(data: Mnist, mu: float, passes: int, solver: zg.solvers.Solver, seed: int) -> Outcome:
    """Run a solver for so many passes."""
    problem = zg.Problem(data.X_train, data.y_train, "multiclass-hinge", mu)
    result = zg.solve(
        problem, solver, tol=0.0, max_epochs=passes, record=1 << 40, random_state=seed
    )
    error = error_rate(data.X_test, data.y_test)(result.w, result.b)
    return Outcome(result.certificate.primal, result.certificate.gap, error)


def compare(name: str, data: Mnist, mu: float, passes: int) -> dict[str, list[Outcome]]:
    """Run all contenders with all seeds; print a row for each."""
    tuned = min(GRID, key=lambda solver: run(data, mu, passes, solver, TUNING_SEED).objective)
    contenders = {
        BLOCKS: zg.BCFW(batch_size=256),
        SINGLE: zg.BCFW(),
        AVERAGED: zg.BCFW(output="weighted-average", t0=0),
        DEFAULT: zg.SGD(batch_size=256, step=1e-2, schedule="sqrt"),
        TUNED: tuned,
    }
    outcomes = {}
    for contender, solver in contenders.items():
        runs = [run(data, mu, passes, solver, seed) for seed in SEEDS]
        objective, gap, error = (list(column) for column in zip(*runs, strict=True))
        label = contender
        if solver is tuned:
            label += f": batches of {tuned.batch_size}, step {tuned.step:g}, {tuned.schedule}"
        numbers = f"{interval(objective)} | {statistics.median(gap):.4f}"
        row = f"{numbers} | {100 * statistics.median(error):.1f} %"
        print(f"| {name} | {mu:g} | {passes} | {label} | {row} |", flush=True)
        outcomes[contender] = runs
    return outcomes


def passes_to_half(data: Mnist, mu: float, seed: int) -> float:
    """Return the passes until BCFW proves the objective to a factor of two."""
    problem = zg.Problem(data.X_train, data.y_train, "multiclass-hinge", mu)
    result = zg.solve(problem, zg.BCFW(), tol=0.5, max_epochs=PATIENCE, random_state=seed)
    return result.certificate.epochs if result.stop_reason == "converged" else math.inf


def interval(values: list[float], form: str = ".3f") -> str:
    """Return the median, and the smallest and the largest value."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):{form}} ({low:{form}} to {high:{form}})"


def verdict(ratios: list[float]) -> str:
    """Tell whether all ratios are below one."""
    return "holds" if max(ratios) < 1 else "does not hold" if min(ratios) > 1 else "undecided"


def first_claim(first: dict[str, dict[str, list[Outcome]]], ours: str, rival: str) -> str:
    """Return a sentence on the objectives of two contenders after one pass."""
    parts = []
    for name, runs in first.items():
        pairs = zip(runs[ours], runs[rival], strict=True)
        ratios = [a.objective / b.objective for a, b in pairs]
        parts.append(f"{interval(ratios)} on {name}, {verdict(ratios)}")
    return f"Lower after one pass, {ours} / {rival}: {'; '.join(parts)}."


def second_claim(passes: dict[float, list[float]]) -> str:
    """Return a sentence on the passes that BCFW needs at one mu and at the next."""
    reached = [mu for mu in MUS if max(passes[mu]) < math.inf]
    parts, worst = [], []
    for large, small in itertools.pairwise(reached):
        ratios = [a / b for a, b in zip(passes[small], passes[large], strict=True)]
        parts.append(f"{interval(ratios, '.1f')} times the passes from {large:g} to {small:g}")
        worst.append(max(passes[large]) / min(passes[small]))
    if len(reached) < len(MUS):
        parts.append(f"more than {PATIENCE} passes below")
    return f"Faster for larger mu: {verdict(worst)}; {', '.join(parts)}."


def main() -> None:
    digits = {name: load_mnist(name) for name in ("mini-mnist", "mnist")}
    mini = digits["mini-mnist"]
    print("| data | mu | passes | solver | objective | gap | test error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    first = {name: compare(name, data, DEFAULT_MU, 1) for name, data in digits.items()}
    for mu in MUS:
        compare("mini-mnist", mini, mu, 5)

    print("\n| mu | passes of BCFW until the gap is half of the objective |")
    print("| --- | --- |")
    passes = {mu: [passes_to_half(mini, mu, seed) for seed in SEEDS] for mu in MUS}
    for mu, counts in passes.items():
        enough = max(counts) < math.inf
        print(f"| {mu:g} | {interval(counts, '.0f') if enough else f'> {PATIENCE}'} |")

    print()
    for ours, rival in ((BLOCKS, DEFAULT), (SINGLE, TUNED), (AVERAGED, TUNED)):
        print(first_claim(first, ours, rival))
    print(second_claim(passes))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

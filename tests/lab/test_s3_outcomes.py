"""Chapters S3 and S4: every judge gives every verdict, with a sentence that follows the outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from lab.outcomes import ALL_FOUR, SIGNS, check, noise, told
from zerogap.lab import DEPENDS, FAILS, HOLDS, UNDECIDED
from zerogap.lab.chapters import s3_estimate, s3_judges, s3_printed_judges, s4
from zerogap.lab.chapters.s3_judges import (
    AVERAGED,
    BLOCKS,
    DEFAULT,
    GD,
    LARGE_BATCH,
    SGD,
    SINGLE,
    SMALL,
    TUNED,
    WORD_FOR_WORD,
)
from zerogap.lab.chapters.s4_cells import GRADIENT

DATA = ("mini-mnist", "mnist")
SEEDS = 6
YES_NO = pytest.mark.parametrize("verdict", [HOLDS, FAILS, DEPENDS])


def descent(passes: dict[str, Any], gd: tuple[float, float] = (10, 10)) -> pd.DataFrame:
    """GD reaches 0.5 after so many passes; SGD after so many, seed by seed, on two sets."""
    lines = []
    for data, n, slow in zip(DATA, (100, 1000), gd, strict=True):
        for epoch, primal in ((slow / 10, 2.0), (slow, 0.5)):
            lines.append((data, GD, 0, epoch, epoch, epoch * n, primal, epoch))
        for seed, epoch in enumerate(np.broadcast_to(passes[data], SEEDS)):
            for name in (SGD, SGD + LARGE_BATCH):
                for at, primal in ((epoch / 2, 1.0), (epoch, 0.4)):
                    lines.append((data, name, seed, at, at * n, at * n, primal, at))
    names = ["data", "solver", "seed", "epoch", "updates", "examples", "primal", "cpu_seconds"]
    return pd.DataFrame(lines, columns=names)


@pytest.mark.parametrize("choose", [s3_judges.as_given, s3_judges.best])
def test_sgd_is_faster_or_not(choose: Any) -> None:
    unclear = 5 + 4 * np.tile([-1, 1], 3)
    told(
        s3_judges.judge_speed(choose),
        {
            HOLDS: descent({"mini-mnist": 1.0, "mnist": 0.5}),
            FAILS: descent({"mini-mnist": 9.0, "mnist": 9.0}),
            DEPENDS: descent({"mini-mnist": 1.0, "mnist": 9.0}),
            UNDECIDED: descent({"mini-mnist": 1.0, "mnist": unclear}),
        },
        dict.fromkeys(SIGNS, "sooner by these factors"),
    )


def test_the_full_set() -> None:
    told(
        s3_judges.judge_full_set,
        {
            HOLDS: descent({"mini-mnist": 1.0, "mnist": 0.1}),
            FAILS: descent({"mini-mnist": 1.0, "mnist": 1.0}, gd=(10, 1)),
            DEPENDS: descent({"mini-mnist": 1.0, "mnist": 1.0}),
        },
        {HOLDS: "reads 10.0 times as many", FAILS: "reads 1.0 times as many"},
    )


@ALL_FOUR
def test_unequal_steps(verdict: str) -> None:
    rows = []
    for data, sign in zip(DATA, SIGNS[verdict], strict=True):
        rows.append({"data": data, "solver": GD, "seed": 0, "primal": 0.5})
        values = 0.5 - 0.1 * noise(sign, SEEDS)
        rows += [
            {"data": data, "solver": SGD, "seed": k, "primal": v} for k, v in enumerate(values)
        ]
    words = {1: "0.1 below the best GD", -1: "0.1 above the best GD", 0: "the best GD on mnist"}
    found = s3_judges.judge_unequal(pd.DataFrame(rows))
    check(found, verdict, *(words[sign] for sign in SIGNS[verdict]))


@pytest.mark.parametrize("verdict", [HOLDS, UNDECIDED])
def test_batch_size(verdict: str) -> None:
    """The best batch is never worse than the largest: there is nothing to refute."""
    rows = [
        {"budget": "one pass", "data": data, "batch": batch, "seed": seed}
        | {"primal": 0.5 if batch == 16 else 0.5 + 0.1 * shift}
        for data, sign in zip(DATA, SIGNS[verdict], strict=True)
        for seed, shift in enumerate(noise(sign, SEEDS) + 0.01)
        for batch in (16, 4096)
    ]
    check(s3_judges.judge_batch(pd.DataFrame(rows)), verdict, "of 16 on mini-mnist")


def duel(verdict: str, first: str, second: str) -> pd.DataFrame:
    names = {first, second, BLOCKS, SINGLE, WORD_FOR_WORD}
    rows = [
        {"data": data, "solver": name, "seed": seed, "epoch": 1.0}
        | {"primal": 1.0 if name == second else 1.0 - 0.5 * shift}
        for data, sign in zip(DATA, SIGNS[verdict], strict=True)
        for seed, shift in enumerate(noise(sign, SEEDS))
        for name in names
    ]
    return pd.DataFrame(rows)


@ALL_FOUR
@pytest.mark.parametrize(
    ("first", "second"), [(WORD_FOR_WORD, DEFAULT), (SINGLE, TUNED), (AVERAGED, TUNED)]
)
def test_duels(verdict: str, first: str, second: str) -> None:
    found = s3_judges.judge_duel(first, second, BLOCKS)(duel(verdict, first, second))
    names = (s3_judges.called(name) for name in (first, second))
    check(found, verdict, "objective of {} over that of {} is".format(*names))


@ALL_FOUR
def test_fewer_iterations(verdict: str) -> None:
    rows = []
    for data, sign in zip(DATA, SIGNS[verdict], strict=True):
        for seed, shift in enumerate(noise(sign, SEEDS, 0.7)):
            for name in (DEFAULT, WORD_FOR_WORD, BLOCKS):
                end = 100.0 if name == DEFAULT else 100.0 * 2.0 ** (-2 * shift)
                for at, primal in ((1.0, 2.0), (end, 0.5)):
                    rows.append((data, name, seed, at, primal))
    table = pd.DataFrame(rows, columns=["data", "solver", "seed", "updates", "primal"])
    check(s3_judges.judge_fewer(table), verdict, "% on mini-mnist", "share of its iterations")


@ALL_FOUR
def test_no_learning_rate(verdict: str) -> None:
    """BCFW beside an SSGD whose worst step ends at twice the best one."""
    ends = {1: 1.1, -1: 3.0}
    rows = []
    for seed in range(SEEDS):
        steps = {"SSGD, a": 1.0, "SSGD, b": 2.0 + 0.01 * seed}
        for name, sign in zip((SINGLE, AVERAGED), SIGNS[verdict], strict=True):
            steps[name] = ends.get(sign, 2.0 + 0.5 * (-1) ** seed)
        rows += [
            {"budget": "one pass", "batch": 4, "seed": seed, "solver": n, "primal": p}
            for n, p in steps.items()
        ]
    check(s3_judges.judge_no_rate(pd.DataFrame(rows)), verdict, "differ by a factor of 2.0")


def by_mu(excess: Any, reached: Any = 0.5) -> pd.DataFrame:
    """After five passes: objective over optimum minus 1, and share of the dual, at two mus."""
    rows = [
        {"lam": lam, "solver": solver, "seed": seed, "epoch": 5.0, "updates": 5}
        | {"primal": 1.0 + float(np.broadcast_to(e, SEEDS)[seed]), "optimum": 1.0}
        | {"dual": float(np.broadcast_to(r, SEEDS)[seed])}
        for solver in (BLOCKS, SINGLE, SMALL)
        for lam, e, r in ((0.1, 0.1, 0.5), (1e-5, excess, reached))
        for seed in range(SEEDS)
    ]
    return pd.DataFrame(rows).assign(gap=lambda t: t["primal"] - t["dual"])


def test_mu_changes_the_speed_or_is_not_shown_to() -> None:
    same = 0.1 * 10.0 ** noise(0, SEEDS)
    told(
        s3_judges.judge_mu,
        {HOLDS: by_mu(9.0 + 0.1 * np.arange(SEEDS)), UNDECIDED: by_mu(same)},
        dict.fromkeys((HOLDS, UNDECIDED), "times the optimum for mu = 0.1 and 1e-05"),
    )


def test_the_dual_is_harder_for_a_small_mu() -> None:
    told(
        s3_judges.judge_dual,
        {
            HOLDS: by_mu(1.0, 0.1 + 0.001 * np.arange(SEEDS)),
            FAILS: by_mu(1.0, 0.9 + 0.001 * np.arange(SEEDS)),
            UNDECIDED: by_mu(1.0, 0.5 + noise(0, SEEDS, 0.1)),
        },
        {HOLDS: "50 % at mu = 0.1 and 10 % at mu = 1e-05", FAILS: "90 % at mu = 1e-05"},
    )


def test_all_passes_of_the_table_by_mu_have_one_limit() -> None:
    lines = s3_judges.passes_to_half(by_mu(1.0, 0.1).assign(validation_error=0.1, epoch=[5.0] * 36))
    column = "passes until the gap is half of the objective"
    assert {line[column] for line in lines} == {"more than 5"}


# Printed algorithms and costs


def printed(verdict: str) -> pd.DataFrame:
    rows = [
        {"solver": f"{name}, {'clipped' if clipped else 'as printed'}", "data": "x", "lam": 0.1}
        | {"seed": seed, "clipped": clipped, "gap": -1.0 if sign < 0 and not clipped else 0.1}
        | {"long_steps": 0.1, "slack": 0.1 * sign, "gap_error": 1e-15 if sign > 0 else 1.0}
        for name, sign in zip(("algorithm 4", "algorithm 5, b = 16"), SIGNS[verdict], strict=True)
        for clipped in (True, False)
        for seed in range(3)
    ]
    return pd.DataFrame(rows)


@YES_NO
def test_printed_steps(verdict: str) -> None:
    words = {HOLDS: "is never negative in 6 runs", FAILS: "3 of 3 runs of algorithm 4 on x"}
    words[DEPENDS] = "3 of 3 runs of algorithm 5, b = 16"
    found = check(s3_printed_judges.judge_unclipped(printed(verdict)), verdict, words[verdict])
    assert "in 6 of 6 runs" in found.robustness


@pytest.mark.parametrize("judge", ["judge_subgradient", "judge_gap"])
def test_what_no_run_may_violate(judge: str) -> None:
    judge = getattr(s3_printed_judges, judge)
    tables = {verdict: printed(verdict) for verdict in (HOLDS, FAILS)}
    told(judge, tables, {HOLDS: "runs", FAILS: "in 0 of "})


def costs(operations: dict[str, float]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "solver": "algorithm 4",
            "seed": seed,
            "grows": size,
            "factor": factor,
            "numbers": 100.0 * factor ** s3_printed_judges.power("N d C", size),
            "operations": 10.0 * factor**power,
            "step_seconds": factor**2.0,
        }
        for size, power in operations.items()
        for factor in (1, 2, 4)
        for seed in range(3)
    )


def test_costs_are_counted_and_time_is_a_second_line() -> None:
    judge = s3_printed_judges.judge_cost("algorithm 4")
    found = check(judge(costs({"N": 0.0, "d": 1.0})), HOLDS, "no size enters with a larger power")
    assert "The measured time grows faster" in found.robustness
    check(judge(costs({"N": 1.0, "d": 1.0})), DEPENDS, "operations N^1 (algorithm 4)")
    table = costs({"N": 1.0}).assign(numbers=lambda t: t["factor"] ** 3.0)
    check(judge(table), FAILS, "operations N^1", "memory N^3")


# S4


def batches(verdict: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "solver": "Pegasos, last iterate",
            "data": data,
            "k": k,
            "seed": seed,
            "primal": 1.0 - 0.1 * shift * (k > 1),
        }
        for data, sign in zip(("reuters", "ijcnn1"), SIGNS[verdict], strict=True)
        for seed, shift in enumerate(noise(sign, SEEDS))
        for k in (1, 1024)
    )


@ALL_FOUR
def test_batches_at_a_fixed_number_of_steps(verdict: str) -> None:
    check(s4.judge_fixed_steps(batches(verdict)), verdict, "k = 1024 minus that with k = 1 is")


@ALL_FOUR
def test_batches_at_a_fixed_reading(verdict: str) -> None:
    table = batches(verdict)
    found = s4.judge_fixed_reading(table.assign(primal=2.0 - table["primal"]))
    check(found, verdict, "the same number of examples")


@pytest.mark.parametrize("name", ["Lemma 1", GRADIENT])
def test_lemmas(name: str) -> None:
    table = pd.DataFrame({"statement": name, "checks": 100, "worst_slack": [0.2, 0.3, 0.4]})
    judge = s4.judge_lemma(name)
    told(
        judge,
        {HOLDS: table, FAILS: table.assign(worst_slack=-0.02)},
        {HOLDS: "20 % to spare", FAILS: "Violated in 3 of 3 runs, by up to 2 %"},
    )
    check(judge(table.assign(worst_slack=0.0)), HOLDS, "with equality at times")


def regret(share: float) -> pd.DataFrame:
    return pd.DataFrame(
        {"data": "x", "solver": "k = 1", "seed": range(3), "bound": 2.0, "tight": 1.0}
    ).assign(average_regret=share)


def test_regret_says_how_much_of_the_bound_it_reaches() -> None:
    told(
        s4.judge_regret,
        {HOLDS: regret(0.00093), FAILS: regret(1.5)},
        {HOLDS: "reaches 0.093 % of it", FAILS: "above the bound in 3 of 3 runs"},
    )


def theorems(full: float, random: tuple[Any, Any] = (0.0, 0.0)) -> pd.DataFrame:
    """Distances as shares of c / (sigma T): of the average, and of random iterates by data."""
    steps, c, lam = 1024, 4.0, 0.01
    unit = c / (lam * steps)
    rows = [
        {"data": data, "solver": name, "seed": seed, "updates": steps, "lam": lam, "constant": c}
        | {"suboptimality": unit * float(np.broadcast_to(share, SEEDS)[seed])}
        for data, other in zip("xy", random, strict=True)
        for name, share in ((f"k = {s4.ROWS}, average", full), ("k = 1, random", other))
        for seed in range(SEEDS)
    ]
    return pd.DataFrame(rows)


def test_corollary() -> None:
    told(
        s4.judge_corollary,
        {HOLDS: theorems(0.01), FAILS: theorems(100.0)},
        {HOLDS: "stays below the bound", FAILS: "is above the bound in 12 of 12 runs"},
    )


def test_expectation() -> None:
    bound = (1 + np.log(1024)) / 2
    told(
        s4.judge_expectation,
        {
            HOLDS: theorems(0.0, (0.01, 0.02)),
            FAILS: theorems(0.0, (9 * bound, 8 * bound)),
            DEPENDS: theorems(0.0, (0.01, 9 * bound)),
            UNDECIDED: theorems(0.0, (0.01, bound * (1 + noise(0, SEEDS)))),
        },
        {HOLDS: "in 2 of 2 cases", FAILS: "in 0 of 2 cases", DEPENDS: "in 1 of 2 cases"},
    )


def test_probability_and_iterations() -> None:
    told(
        s4.judge_probability,
        {HOLDS: theorems(0.0), FAILS: theorems(0.0, (1e4, 1e4))},
        {HOLDS: "0 of 12 random iterates", FAILS: "12 of 12 random iterates"},
    )
    told(
        s4.judge_iterations,
        {
            HOLDS: theorems(0.5),
            FAILS: theorems(5.0, (1e4, 1e4)),
            DEPENDS: theorems(5.0),
        },
        {HOLDS: "within eps in 12 of 12 runs", FAILS: "within eps in 0 of 12 runs"},
    )
    assert "a logarithm more" in s4.judge_iterations(theorems(0.5)).robustness


@ALL_FOUR
def test_the_estimate_from_batches(verdict: str) -> None:
    """Within 10 % of the objective in most epochs, or not."""
    rows = [
        {"data": data, "solver": DEFAULT, "seed": seed, "updates": e, "epoch": e, "primal": 1.0}
        | {"estimate": {1: 1.05, -1: 1.5, 0: 1.05 if (seed + e) % 2 else 1.5}[sign]}
        for data, sign in zip(("mini-mnist", "mnist"), SIGNS[verdict], strict=True)
        for seed in range(4)
        for e in range(1, 5)
    ]
    words = {1: "100 % of", -1: " 0 % of", 0: " 50 % of"}
    found = s3_estimate.judge_estimate(pd.DataFrame(rows))
    check(found, verdict, *(words[sign] for sign in SIGNS[verdict]))

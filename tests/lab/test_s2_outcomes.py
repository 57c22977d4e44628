"""Chapter S2: every judge gives every verdict, with a sentence that follows the outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from lab.outcomes import ALL_FOUR, SIGNS, check, noise, told
from zerogap.lab import DEPENDS, FAILS, HOLDS, UNDECIDED
from zerogap.lab.chapters import s2_judges as judges
from zerogap.lab.chapters import s2_sgd_judges as sgd_judges
from zerogap.lab.chapters.s2_cells import CLOSED
from zerogap.lab.chapters.s2_tables import EXACT, FIVE, OWN, SGD_ARMS, STEPS

SEEDS, EPOCHS = 6, 20
DATA = ("Arrhythmia", "Adult")


def signed(verdict: str) -> dict[str, int]:
    return dict(zip(DATA, SIGNS[verdict], strict=True))


def runs(accuracy: Any, primal: Any = lambda *_: 1.0) -> pd.DataFrame:
    """Return curves: functions of (data, solver, seed, epoch) give accuracy and objective."""
    return pd.DataFrame(
        {
            "data": data,
            "solver": arm.name,
            "seed": seed,
            "epoch": float(epoch),
            "updates": 100 * epoch,
            "test_accuracy": accuracy(data, arm.name, seed, epoch),
            "primal": primal(data, arm.name, seed, epoch),
            "gap": 1.0 if epoch < 3 else 1e-4,
        }
        for data in DATA
        for arm in FIVE
        for seed in range(SEEDS)
        for epoch in range(EPOCHS + 1)
    )


@ALL_FOUR
def test_clarity(verdict: str) -> None:
    """SDCA moves by 1 a step; SGD by much more, by less, or now this and now that."""
    speed = {1: 10.0, -1: 0.1}

    def value(data: str, solver: str, seed: int, epoch: int) -> float:
        sign = signed(verdict)[data]
        moves = speed.get(sign) or (10.0 if seed % 2 else 0.1)
        step = 0.001 * (1.0 if solver.startswith("SDCA") else moves)
        return 1.0 + step * (epoch % 2) * (1 + 0.01 * seed)

    count = {1: 4, -1: 0}
    table = runs(value, value)
    so = sum(count.get(sign, 0) for sign in SIGNS[verdict]) // 2
    check(judges.judge_clarity(table), verdict, f"in {so} of 4 comparisons")


@ALL_FOUR
def test_sensitivity(verdict: str) -> None:
    def value(data: str, solver: str, seed: int, epoch: int) -> float:
        size = 0.02 + 0.015 * noise(signed(verdict)[data], SEEDS)[seed]
        return 0.7 + size * (epoch % 2)

    found = check(judges.judge_sensitive(runs(value)), verdict, "points on Arrhythmia")
    assert "Its objective rises" in found.robustness


def minimum(gap: float = 0.0, intercepts: tuple[bool, ...] = (False, True)) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "data": data,
            "solver": solver,
            "seed": seed,
            "lam_of": lam_of,
            "intercept": intercept,
            "lam": 0.1 if lam_of == "SDCA" else 0.001,
            "primal": 1.0,
            "gap": gap,
            "test_accuracy": 0.7 + 0.001 * seed * (solver == "SGD"),
        }
        for data in DATA
        for solver in ("SDCA", "SGD", "SDCA, exact step")
        for lam_of in ("SDCA", "SGD")
        for intercept in intercepts
        for seed in range(SEEDS)
    )


@ALL_FOUR
def test_better_accuracy_is_read_at_the_top_of_the_curve(verdict: str) -> None:
    def value(data: str, solver: str, seed: int, epoch: int) -> float:
        top = noise(signed(verdict)[data], SEEDS, 0.05)[seed]
        return (
            0.7
            + (top if solver == OWN[1] and epoch == 7 else -0.2 if epoch == 8 else 0.0)
            - (0.3 if solver == OWN[1] and epoch != 7 else 0.0)
        )

    found = check(judges.judge_better(runs(value), minimum()), verdict, "points on Arrhythmia")
    assert "picked on the test rows" in found.robustness


def test_trapped() -> None:
    starts = pd.DataFrame({"gap": [0.0] * 3, "primal": 1.0, "end": 1e-6})
    some = starts.assign(end=[1e-6, 1e-6, 0.5])
    told(
        judges.judge_trapped,
        {
            FAILS: (minimum(), starts),
            HOLDS: (minimum(gap=0.5), starts.assign(end=0.5)),
            DEPENDS: (minimum(gap=0.5), starts),
            UNDECIDED: (minimum(gap=0.5), some),
        },
        {FAILS: "every run is there", HOLDS: "No run is proved", UNDECIDED: "2 of 3 long runs"},
    )
    assert "100 times smaller on Arrhythmia" in judges.judge_trapped(minimum(), starts).robustness


@ALL_FOUR
def test_the_returned_iterate(verdict: str) -> None:
    rows = [
        {"data": data, "sweeps": "c_sdca", "value": 0.1, "solver": solver, "seed": seed}
        | {"test_accuracy": 0.7 - 0.02 * (solver != "SDCA") + 0.1 * (solver != "SDCA") * shift}
        for data, sign in signed(verdict).items()
        for seed, shift in enumerate(noise(sign, SEEDS))
        for solver in ("SDCA", "SDCA, iterate the report returned")
    ]
    worse = SIGNS[verdict].count(-1)
    check(judges.judge_returned(pd.DataFrame(rows)), verdict, f"at {worse} of 2 values of c")


def stopping(printed: tuple[int, int], gaps: tuple[float, float] = (1e-5, 1e-5)) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "data": data,
            "rows": rows,
            "printed": value,
            "lipschitz": 1000 if data == "Arrhythmia" else 2000,
            "exchanged": 2000 if data == "Arrhythmia" else 1000,
            "needed": 10,
            "gap_lipschitz": gaps[0],
            "gap_smooth": gaps[1],
        }
        for data, value in zip(DATA, printed, strict=True)
        for rows in ("standardised", "norm at most 1")
        for _ in range(2)
    )


def test_table_2() -> None:
    told(
        judges.judge_table_2,
        {
            HOLDS: stopping((1000, 2000)),
            FAILS: stopping((2000, 1000)),
            DEPENDS: stopping((1000, 5)),
        },
        {HOLDS: "the printed numbers", FAILS: "The two lambdas were exchanged"},
    )
    other = judges.judge_table_2(stopping((7, 8)))
    check(other, FAILS, "With the lambdas of table 1 the formula gives 1,000 on Arrhythmia")


def test_bounds() -> None:
    told(
        judges.judge_bounds,
        {
            HOLDS: stopping((1, 1)),
            FAILS: stopping((1, 1), (1.0, 1.0)),
            DEPENDS: stopping((1, 1), (1e-5, 1.0)),
        },
        {HOLDS: "4 of 4 runs (Lipschitz", FAILS: "0 of 4 runs (Lipschitz"},
    )


@pytest.mark.parametrize("verdict", [HOLDS, FAILS, DEPENDS, UNDECIDED])
def test_too_large(verdict: str) -> None:
    curves = runs(lambda *_: 0.7)
    enough = {HOLDS: (10_000, 10_000), FAILS: (1, 1), DEPENDS: (10_000, 100)}
    table = stopping((1, 1))
    if verdict == UNDECIDED:
        late = (curves["seed"] % 2 == 1) & (curves["epoch"] < 10)
        curves.loc[late, "gap"] = 1.0
        enough[UNDECIDED] = (1300, 1300)
    curves["updates"] *= 1 if verdict != FAILS else 1_000
    for data, value in zip(DATA, enough[verdict], strict=True):
        table.loc[table["data"] == data, "lipschitz"] = value
    check(judges.judge_too_large(table, curves), verdict, "updates on Arrhythmia (T is")


@ALL_FOUR
def test_closed_form(verdict: str) -> None:
    rows = [
        {"data": data, "lam": 0.1, "solver": STEPS["published"], "seed": seed, "epoch": 1}
        | {"share": 0.99 + (0.005 if sign > 0 else 0.3) * shift}
        for data, sign in signed(verdict).items()
        for seed, shift in enumerate(noise(sign, SEEDS))
    ]
    words = {HOLDS: "or more", FAILS: "which has no closed form"}
    check(judges.judge_closed_form(pd.DataFrame(rows)), verdict, words.get(verdict, "of what the"))


@ALL_FOUR
def test_time_of_newton(verdict: str) -> None:
    rows = [
        {"data": data, "code": code, "seed": seed, "rule": rule}
        | {"seconds_per_update": 10 + 9 * shift if rule == "Newton" else 1.0}
        for data, sign in signed(verdict).items()
        for seed, shift in enumerate(noise(sign, SEEDS))
        for code in ("Python", "compiled")
        for rule in ("Newton", "closed form")
    ]
    found = check(judges.judge_newton(pd.DataFrame(rows)), verdict, "times the CPU time")
    assert "Compiled" in found.robustness


def outputs(verdict: str, column: str, solver: str, base: float, size: float) -> pd.DataFrame:
    rows = [
        {"data": data, "loss": loss, "passes": 50, "solver": name, "seed": seed}
        | {"gap": 0.01, "test_accuracy": 0.7}
        | ({column: base + size * shift} if name == solver else {})
        for data, sign in signed(verdict).items()
        for seed, shift in enumerate(noise(sign, SEEDS))
        for loss in (CLOSED, "hinge")
        for name in ("SDCA, last", "SDCA, average", "SDCA, random")
    ]
    return pd.DataFrame(rows)


@ALL_FOUR
def test_average(verdict: str) -> None:
    table = outputs(verdict, "gap", "SDCA, average", 0.01, -0.005)
    stops = table.assign(change=0.1 * table["gap"])
    words = "times that of the last iterate"
    check(sgd_judges.judge_average(table, stops), verdict, words, "from the end of one epoch")


def test_an_average_that_is_steadier_but_further_away() -> None:
    """The two parts of the claim are told apart."""
    further = outputs(FAILS, "gap", "SDCA, average", 0.01, -0.005)
    steadier = outputs(HOLDS, "gap", "SDCA, average", 0.01, -0.005)
    found = sgd_judges.judge_average(further, steadier.assign(change=steadier["gap"]))
    assert check(found, DEPENDS).on_what.startswith("the part")


@ALL_FOUR
def test_random_stop(verdict: str) -> None:
    table = outputs(verdict, "test_accuracy", "SDCA, random", 0.69, 0.05)
    check(sgd_judges.judge_random_stop(table), verdict, "points on Arrhythmia")


def descent(values: Any, lams: tuple[float, ...] = (0.1, 1e-4)) -> pd.DataFrame:
    """Return curves of the SGD arms and SDCA; values(data, lam, seed, epoch) is the distance."""
    rows = [
        {"data": data, "lam": lam, "solver": name, "seed": seed, "epoch": float(epoch)}
        | {"updates": epoch * 100, "suboptimality": values(data, lam, seed, epoch), "optimum": 0.5}
        for data in DATA
        for lam in lams
        for name in ("SDCA", *(arm.name for arm in SGD_ARMS))
        for seed in range(SEEDS)
        for epoch in (0, 1, 2, 5, 10, 50, 100)
    ]
    table = pd.DataFrame(rows)
    return table.assign(primal=table["optimum"] + table["suboptimality"], gap=1.0)


@pytest.mark.parametrize(
    ("misled", "verdict"), [(SEEDS, HOLDS), (1, UNDECIDED), (0, UNDECIDED), (-1, FAILS)]
)
def test_stopping_by_eye(misled: int, verdict: str) -> None:
    """A calm objective 50 % above the optimum misleads; with few runs never is not certain."""

    def value(data: str, lam: float, seed: int, epoch: int) -> float:
        if misled == SEEDS:
            return 0.25
        return 0.25 if seed < misled and data == "Adult" and lam == 0.1 else 0.0

    lams = tuple(np.geomspace(1e-4, 0.1, 8)) if misled < 0 else (0.1, 1e-4)
    table = descent(value, lams)
    if misled >= 0:
        table = table[table["data"] == "Adult"]
    check(sgd_judges.judge_no_stopping(table), verdict, "runs at lambda = ")


@ALL_FOUR
def test_aggressive(verdict: str) -> None:
    def value(data: str, lam: float, seed: int, epoch: int) -> float:
        sign = signed(verdict)[data]
        power = noise(sign, SEEDS)[seed] if lam < 0.01 else -0.5 * sign - (sign == 0)
        return np.log(2) * 10.0**power - 0.5

    found = check(sgd_judges.judge_aggressive(descent(value)), verdict, "times its start")
    assert "times its start (SGD, constant step)" in found.robustness


def test_every_data_set_has_its_own_number() -> None:
    """In the order of the table, whatever the alphabet says."""
    reached = dict(zip(DATA, (1e5, 1e3), strict=True))
    table = descent(lambda data, lam, seed, epoch: reached[data] * np.log(2) - 0.5)
    sentence = sgd_judges.judge_aggressive(table).sentence
    assert f"on {DATA[0]} and {DATA[1]}, the objective reaches 100000 and 1000 times" in sentence


@ALL_FOUR
def test_slow(verdict: str) -> None:
    """Decades per epoch: quick at first and slow later, the other way round, or unclear."""

    def value(data: str, lam: float, seed: int, epoch: int) -> float:
        sign = signed(verdict)[data]
        late = {1: 0.001, -1: 0.5}.get(sign, 0.001 if seed % 2 else 0.5)
        early = 0.2 if sign != -1 else 0.001
        return 10.0 ** (-early * min(epoch, 10) - late * max(0, epoch - 10) - 0.01 * seed)

    table = descent(value)
    table["suboptimality"] = table["suboptimality"].clip(lower=1e-60)
    words = [f"{2 if sign == 1 else 0} on {data}" for data, sign in signed(verdict).items()]
    check(sgd_judges.judge_slow(table), verdict, *words)


def test_one_run_is_drawn_beside_the_median() -> None:
    from zerogap.lab.chapters.s2_figures import FIG_1

    table = runs(lambda *_: 0.7).assign(
        loss="logistic", lam=0.1, examples=1, seconds=0.0, majority=0.5
    )
    drawing = FIG_1.figures[0].drawing(table, FIG_1.solvers)
    lines = {line["name"]: line["runs"] for line in drawing["panels"][0]["series"]}
    assert lines[OWN[0]] == SEEDS
    assert lines[f"{OWN[0]}, one run"] == lines[f"{OWN[1]}, one run"] == 1
    assert EXACT in lines


def test_numerical_trouble_is_in_the_values_and_not_in_the_step() -> None:
    found = check(judges.judge_numerics(None), DEPENDS, "the step is accurate everywhere")
    assert "the loss and the conjugate overflow" in found.sentence
    assert "2001 of 2001" in found.evidence[0].what

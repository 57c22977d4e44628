"""The verdicts of chapter S3, and the tables behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zerogap.lab import (
    NO,
    OPEN,
    YES,
    Calculation,
    Interval,
    Verdict,
    above,
    below,
    conclude,
    final,
    listed,
    mean,
    paired_difference,
    split,
)
from zerogap.lab.chapters.s0_races import MUCH
from zerogap.lab.statistics import number

GD, SGD = "GD, step 0.01", "SGD, step 0.01 / sqrt(t)"  # the practical's steps
BLOCKS, SINGLE, AVERAGED = "BCFW, blocks of 256", "BCFW", "BCFW, weighted average"
WORD_FOR_WORD = "algorithm 5 as printed, b = 256"
DEFAULT, TUNED, SMALL = "SSGD, batches of 256", "SSGD, tuned", "SSGD, batches of 4"
LARGE_BATCH = ", batches of 256"
BATCHES = (4, 16, 64, 256, 1024, 4096)
HINGE_STEPS = (1e-3, 1e-2, 1e-1)


def begun(table: Any) -> Any:
    """Leave the starting point out, which a logarithmic axis does not have."""
    return table[table["updates"] > 0]


def by_budget(table: Any) -> Any:
    """Add what a panel is about."""
    return table.assign(panel=table["budget"] + " on " + table["data"])


def after(passes: float) -> Callable[[Any], Any]:
    """Return the function that keeps what was recorded after so many passes."""
    return lambda table: table[table["epoch"] == passes]


def with_shares(table: Any) -> Any:
    """Add objective, gap and dual objective as shares."""
    table = begun(table)
    return table.assign(
        excess=table["primal"] / table["optimum"] - 1.0,
        reached=table["dual"] / table["optimum"],
        relative_gap=table["gap"] / table["primal"],
    )


def first_below(table: Any, target: float, column: str) -> Any:
    """Return by seed the value of `column` at which the objective first falls to the target.

    Between two records it is interpolated, because records are far apart; runs that never get
    there are left out.
    """
    import pandas as pd

    found = {}
    for seed, run in table.sort_values("updates").groupby("seed"):
        primal, place = run["primal"].to_numpy(), run[column].to_numpy(np.float64)
        at = int(np.argmax(primal <= target))
        if primal[at] <= target:
            pair = slice(max(at - 1, 0), at + 1)
            found[seed] = np.interp(-target, -primal[pair], place[pair])
    return pd.Series(found, dtype=np.float64)


def ratio(values: Any, what: str) -> Interval:
    """Return the geometric mean of one ratio per run, with its interval."""
    effect = mean(np.log(values), what)
    estimate, low, high = np.exp([effect.estimate, effect.low, effect.high]).tolist()
    return Interval(what, estimate, low, high, effect.n, "t of logarithms")


def called(solver: str) -> str:
    """Return a solver's name as one reads it in a sentence.

    >>> called("SSGD, batches of 256")
    'SSGD (batches of 256)'
    """
    name, _, setting = solver.partition(", ")
    return f"{name} ({setting})" if setting else name


def _of(table: Any, solver: str) -> Any:
    return table[table["solver"] == solver]


def best(table: Any, family: str, batch: int = 64) -> Any:
    """Return the runs of the GD, or of the SGD with that batch, that ends lowest."""
    last = final(_family(table, family, batch))
    return _of(table, last.groupby("solver")["primal"].mean().idxmin())


def _family(table: Any, family: str, batch: int) -> Any:
    """Return the runs of GD, or of SGD with that batch."""
    large = table["solver"].str.endswith(LARGE_BATCH)
    wanted = large if family == "SGD" and batch == 256 else ~large
    return table[table["solver"].str.startswith(family) & wanted]


def _rows(table: Any) -> float:
    return float((table["examples"] / table["epoch"]).max())


def judge_full_set(table: Any) -> Verdict:
    """To the same objective GD reads ten times as much on ten times the rows; SGD does not."""
    parts = [part for _, part in split(table, ("data",))]
    gd, sgd = ([best(part, family) for part in parts] for family in ("GD", "SGD"))
    target = max(runs["primal"].min() for runs in gd)
    read = [first_below(runs, target, "examples").iloc[0] for runs in gd]
    small, large = (first_below(runs, target, "examples") for runs in sgd)
    times, size = read[1] / read[0], _rows(gd[1]) / _rows(gd[0])
    effect = ratio(large / small, "SGD: examples read on mnist / on mini-mnist")
    grows = YES if times > size / MUCH else NO
    return conclude(
        (grows, below(effect, times / MUCH)),
        f"To an objective of {target:.2f} the best GD reads {times:.1f} times as many examples on "
        f"the set that is {size:.0f} times as large, the best SGD {effect.estimate:.1f} times as "
        "many.",
        (
            Calculation(f"GD: {read[1]:,.0f} examples on mnist, {read[0]:,.0f} on mini-mnist"),
            effect,
        ),
        "the method",
    )


def judge_speed(choose: Callable[[Any, str, int], Any]) -> Callable[[Any], Verdict]:
    """Return the judge of "SGD is soon where GD ends"; `choose` picks the runs of the two.

    The claim is about a good batch size: the better of 64 and 256 counts.
    """

    def judge(table: Any) -> Verdict:
        found: dict[tuple[str, str], dict[int, Interval]] = {}
        for name, part in split(table, ("data",)):
            for column, unit in (("epoch", "passes"), ("cpu_seconds", "CPU time")):
                for batch in (64, 256):
                    gd, sgd = choose(part, "GD", batch), choose(part, "SGD", batch)
                    if len(sgd):
                        effect = _sooner(gd, sgd, column, f"{unit} on {name} (batches of {batch})")
                        found.setdefault((name, unit), {})[batch] = effect
        chosen = [max(ways.values(), key=lambda effect: effect.low) for ways in found.values()]
        evidence = [effect for ways in found.values() for effect in ways.values()]
        sentence = "SGD is where GD ends sooner by these factors: " + listed(
            f"{number(effect.estimate, 2)} in {effect.what.split(': ')[1]}" for effect in chosen
        )
        others = [effect for effect in evidence if effect not in chosen]
        robustness = ""
        if others:
            robustness = "With the other batch size: " + listed(
                f"{number(effect.estimate, 2)} in {effect.what.split(': ')[1]}" for effect in others
            )
            robustness += "."
        answers = (above(effect, MUCH) for effect in chosen)
        return conclude(answers, f"{sentence}.", evidence, "the data and the unit", robustness)

    return judge


def _sooner(gd: Any, sgd: Any, column: str, where: str) -> Interval:
    """Return what GD spends until its end over what SGD spends until it is as low."""
    target = gd["primal"].min()
    spent = first_below(gd, target, column).iloc[0]
    needed = first_below(sgd, target, column).reindex(sgd["seed"].unique())
    # who never gets there needs more than all it had
    return ratio(spent / needed.fillna(sgd[column].max()), f"of GD / of SGD: {where}")


def as_given(table: Any, family: str, batch: int) -> Any:
    """Return the runs with the practical's own step."""
    chosen = _family(table, family, batch)
    return chosen[chosen["solver"].str.startswith({"GD": GD, "SGD": SGD}[family])]


def judge_unequal(table: Any) -> Verdict:
    """SGD with the practical's step against the best GD."""
    effects = {}
    for name, part in split(final(table), ("data",)):
        lowest = float(part[part["solver"].str.startswith("GD")]["primal"].min())
        what = f"objective, {SGD} - best GD, {name}"
        effects[name] = mean(_of(part, SGD)["primal"] - lowest, what)
    sentence = "With the practical's step SGD ends " + listed(
        f"{abs(effect.estimate):.2g} {'below' if effect.estimate < 0 else 'above'} the best GD on "
        f"{name}"
        for name, effect in effects.items()
    )
    return conclude(map(below, effects.values()), f"{sentence}.", effects.values(), "the data set")


def judge_batch(table: Any) -> Verdict:
    """After one pass the best batch is far below the largest, each with its own best step."""
    evidence, chosen = [], []
    for name, part in split(table[table["budget"] == "one pass"], ("data",)):
        tuned = part.groupby(["batch", "seed"])["primal"].min().unstack()
        own = tuned.mean(axis=1).idxmin()
        chosen.append(f"of {own} on {name}")
        times = tuned.loc[tuned.index.max()] / tuned.loc[own]
        what = f"objective, batches of {tuned.index.max()} / of {own}, {name}"
        evidence.append(mean(times, what))
    return conclude(
        (above(effect, 1.0) for effect in evidence),
        f"After one pass, each with its best step, batches {listed(chosen)} end lowest; the "
        "largest batches, which make it nearly GD, end at "
        f"{listed(f'{effect.estimate:.2g}' for effect in evidence)} times that objective.",
        evidence,
        "the data set",
    )


def judge_duel(first: str, second: str, *others: str) -> Callable[[Any], Verdict]:
    """Return the judge of "`first` has a lower objective than `second` after one pass"."""

    def judge(table: Any) -> Verdict:
        table = after(1)(table)

        def compared(name: str) -> dict[str, Interval]:
            return {
                data: ratio(_paired(part, name, second), f"objective, {name} / {second}, {data}")
                for data, part in split(table, ("data",))
            }

        own = compared(first)
        further = {name: compared(name) for name in others}
        texts = [
            f"{called(name)}: {listed(f'{e.estimate:.2f} on {data}' for data, e in found.items())}"
            for name, found in further.items()
        ]
        values = listed(f"{effect.estimate:.2f} on {data}" for data, effect in own.items())
        return conclude(
            (below(effect, 1.0) for effect in own.values()),
            f"After one pass the objective of {called(first)} over that of {called(second)} is "
            f"{values}.",
            own.values(),
            "the data set",
            f"The same for {'; '.join(texts)}." if texts else "",
            [effect for found in further.values() for effect in found.values()],
        )

    return judge


def _paired(part: Any, first: str, second: str) -> Any:
    wide = part.pivot_table(index="seed", columns="solver", values="primal")
    return (wide[first] / wide[second]).dropna()


def judge_fewer(table: Any) -> Verdict:
    """BCFW needs fewer iterations to come where SSGD ends, both with 256 rows a step."""
    effects: dict[str, dict[str, Interval]] = {WORD_FOR_WORD: {}, BLOCKS: {}}
    for name, part in split(table, ("data",)):
        theirs = _of(part, DEFAULT)
        target, spent = float(final(theirs)["primal"].mean()), float(theirs["updates"].max())
        for method, found in effects.items():
            ours = _of(part, method)
            needed = first_below(ours, target, "updates").reindex(ours["seed"].unique())
            what = f"iterations, {method} / {DEFAULT}, {name}"
            found[name] = ratio(needed.fillna(2 * spent) / spent, what)
    own, clipped = effects.values()

    def told(found: dict[str, Interval]) -> str:
        return listed(f"{100 * effect.estimate:.0f} % on {name}" for name, effect in found.items())

    return conclude(
        (below(effect, 1.0) for effect in own.values()),
        f"{called(WORD_FOR_WORD).capitalize()} is where {called(DEFAULT)} ends after 5 epochs with "
        f"this share of its iterations: {told(own)}.",
        own.values(),
        "the data set",
        f"With the step kept in [0, 1] and random blocks: {told(clipped)}. These are first times; "
        f"at the end the objective of {called(WORD_FOR_WORD)} over that of {called(DEFAULT)} is "
        f"{_ends(table)}.",
        clipped.values(),
    )


def _ends(table: Any) -> str:
    """Return the objective of the printed algorithm over that of SSGD, after the last pass."""
    last = final(table).groupby(["data", "solver"], sort=False)["primal"].mean()
    names = table["data"].unique()
    return listed(f"{last[n, WORD_FOR_WORD] / last[n, DEFAULT]:.2f} on {n}" for n in names)


def judge_no_rate(table: Any) -> Verdict:
    """BCFW, which has no step to choose, loses less than SSGD does by a wrong choice."""
    one = table[table["budget"] == "one pass"]
    wide = one.groupby(["batch", "seed", "solver"])["primal"].mean().unstack()
    steps = wide[[name for name in wide if name.startswith("SSGD")]]
    worst = mean(
        (steps.max(axis=1) / steps.min(axis=1)).groupby("seed").median(), "worst / best step"
    )
    ours = {
        name: mean((wide[name] / steps.min(axis=1)).groupby("seed").median(), f"{name} / best step")
        for name in (SINGLE, AVERAGED)
    }
    answers = (
        YES if effect.high < worst.low else NO if effect.low > worst.high else OPEN
        for effect in ours.values()
    )
    return conclude(
        answers,
        f"BCFW computes its step; for SSGD steps between {HINGE_STEPS[0]:g} and "
        f"{HINGE_STEPS[-1]:g} differ by a factor of {worst.estimate:.1f} in the "
        f"objective after one pass, and BCFW ends at {ours[SINGLE].estimate:.2f} times the "
        f"best of them, averaged at {ours[AVERAGED].estimate:.2f} times.",
        (worst, *ours.values()),
        "the output of BCFW",
    )


def judge_mu(table: Any) -> Verdict:
    """The distance of BCFW from the optimum after five passes differs between the ends of mu."""
    table = after(5)(with_shares(table))
    log = table.assign(excess=np.log10(table["excess"]))
    small, large = log["lam"].min(), log["lam"].max()
    effects = {
        name: paired_difference(
            _of(log, name),
            "excess",
            small,
            large,
            of="lam",
            what=f"log10(objective / optimum - 1), {name}, mu = {small:g} minus {large:g}",
        )
        for name in (BLOCKS, SINGLE, SMALL)
    }
    times = table.assign(times=table["primal"] / table["optimum"])
    middle = times.groupby(["solver", "lam"])["times"].median()

    def told(name: str) -> str:
        ends = (middle[name, mu] for mu in (large, small))
        return f"{listed(number(value) for value in ends)} times the optimum"

    own = effects[BLOCKS]
    return conclude(
        [YES if YES in (above(own), below(own)) else OPEN],
        f"After five passes {called(BLOCKS)} is at {told(BLOCKS)} for mu = {large:g} and "
        f"{small:g}.",
        (own,),
        "mu",
        f"With single rows it is at {told(SINGLE)}, {called(SMALL)} at {told(SMALL)}. The "
        f"objective of {called(BLOCKS)} is {_range(_of(table, BLOCKS)['primal'])} over the values "
        f"of mu, the optimum {_range(table['optimum'])}.",
        (effects[SINGLE], effects[SMALL]),
    )


def _range(values: Any) -> str:
    return f"{number(values.min(), 2)} to {number(values.max(), 2)}"


def judge_dual(table: Any) -> Verdict:
    """The dual objective is further from its maximum at the smallest mu than at the largest."""
    found = after(5)(with_shares(table))
    small, large = found["lam"].min(), found["lam"].max()

    def reached(name: str) -> str:
        share = _of(found, name).groupby("lam")["reached"].median()
        return listed(f"{100 * part:.0f} % at mu = {mu:g}" for mu, part in share[::-1].items())

    own, single = (
        paired_difference(
            _of(found, name),
            "reached",
            small,
            large,
            of="lam",
            what=f"share of the dual optimum, {name}, mu = {small:g} - {large:g}",
        )
        for name in (BLOCKS, SINGLE)
    )
    return conclude(
        [below(own)],
        f"After five passes of {called(BLOCKS)} the dual objective has reached {reached(BLOCKS)} "
        "of its maximum.",
        (own,),
        "mu",
        f"With single rows: {reached(SINGLE)}.",
        (single,),
    )


def passes_to_half(table: Any) -> list[dict[str, Any]]:
    """Return the passes of BCFW until its gap is half of its objective, by mu."""
    lines = []
    for mu, part in _of(with_shares(table), SINGLE).groupby("lam"):
        five = after(5)(part)
        half = part[part["relative_gap"] <= 0.5].groupby("seed")["epoch"].min()
        enough = len(half) == part["seed"].nunique()
        passes = mean(half) if enough else f"more than {part['epoch'].max():.0f}"
        lines.append(
            {
                "mu": mu,
                "passes until the gap is half of the objective": passes,
                "objective after 5 passes": mean(five["primal"]),
                "optimum": five["optimum"].iloc[0],
                "validation error": mean(five["validation_error"]),
            }
        )
    return lines[::-1]


def first_pass(table: Any) -> list[dict[str, Any]]:
    """Return what there is after the first pass and after the fifth."""
    return [
        {
            "data": data,
            "solver": f"{solver}: {_chosen(part)}" if solver == TUNED else solver,
            "passes": int(passes),
            "objective": mean(part["primal"]),
            "gap": mean(part["gap"]),
            "test error": mean(part["test_error"]),
        }
        for (data, solver, passes), part in table.groupby(["data", "solver", "epoch"], sort=False)
        if passes in (1, 5)
    ]


def _chosen(runs: Any) -> str:
    """Return the setting that was found for a tuned solver, in short."""
    setting = runs["setting"].iloc[0].removeprefix("sgd:").removesuffix(":output=average")
    return setting.replace("batch_size", "batch").replace("schedule=", "").replace(":", ", ")

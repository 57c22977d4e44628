"""The verdicts of chapter S3, and the tables behind them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from zerogap.lab import (
    DEPENDS,
    FAILS,
    HOLDS,
    Calculation,
    Count,
    Interval,
    Verdict,
    final,
    lower,
    mean,
    paired_difference,
    split,
)
from zerogap.lab.statistics import number

GD, SGD = "GD, step 0.01", "SGD, step 0.01 / sqrt(t)"  # the practical's steps
BLOCKS, SINGLE, AVERAGED = "BCFW, blocks of 256", "BCFW", "BCFW, weighted average"
WORD_FOR_WORD = "algorithm 5 as printed, b = 256"
DEFAULT, TUNED, SMALL = "SSGD, batches of 256", "SSGD, tuned", "SSGD, batches of 4"
BATCHES = (4, 16, 64, 256, 1024, 4096)
HINGE_STEPS = (1e-3, 1e-2, 1e-1)
_LOWER_TERMS = 0.1  # what they may add to an exponent
LARGE = ", large"  # ends the names of methods whose arrays outgrow the cache
THEORY = {  # time of a step, and memory
    "Frank-Wolfe, A dense": ("N d C C", "N d C C"),
    "Frank-Wolfe, A sparse": ("N d C", "N d C"),
    "GD": ("N d C", "d C"),
    "SGD": ("b d C", "d C"),
    "algorithm 4": ("d C", "N d C"),
    "algorithm 5": ("b d C", "N d C / b"),
}


def begun(table: Any) -> Any:
    """Leave the starting point out, which a logarithmic axis does not have."""
    return table[table["updates"] > 0]


def by_budget(table: Any) -> Any:
    """Add what a panel is about."""
    return table.assign(panel=table["budget"] + " on " + table["data"])


def by_problem(table: Any) -> Any:
    """Add what a panel is about."""
    return table.assign(panel=table["data"] + ", mu = " + table["lam"].map("{:g}".format))


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


def _of(table: Any, solver: str) -> Any:
    return table[table["solver"] == solver]


def best(table: Any, family: str) -> Any:
    """Return the runs of the GD or SGD that ends lowest."""
    last = final(table[table["solver"].str.startswith(family)])
    return _of(table, last.groupby("solver")["primal"].mean().idxmin())


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
    return Verdict(
        HOLDS if times > size / 2 and effect.high < times / 2 else FAILS,
        f"To an objective of {target:.2f} the best GD reads {times:.1f} times as many examples on "
        f"the set that is {size:.0f} times as large, the best SGD {effect.estimate:.1f} times as "
        "many.",
        (
            Calculation(f"GD: {read[1]:,.0f} examples on mnist, {read[0]:,.0f} on mini-mnist"),
            effect,
        ),
    )


def judge_speed(choose: Callable[[Any, str], Any]) -> Callable[[Any], Verdict]:
    """Return the judge of "SGD is soon where GD ends"; `choose` picks the runs of the two."""

    def judge(table: Any) -> Verdict:
        evidence = []
        for name, part in split(table, ("data",)):
            gd, sgd = choose(part, "GD"), choose(part, "SGD")
            target = gd["primal"].min()
            for column, unit in (("epoch", "passes"), ("cpu_seconds", "CPU seconds")):
                spent = first_below(gd, target, column).iloc[0]
                needed = first_below(sgd, target, column).reindex(sgd["seed"].unique())
                who = f"{gd['solver'].iloc[0]} / of {sgd['solver'].iloc[0]}"
                # who never gets there needs more than all it had
                times = spent / needed.fillna(sgd[column].max())
                evidence.append(ratio(times, f"{unit} of {who}, {name}"))
        low, high = (f(effect.estimate for effect in evidence) for f in (min, max))
        return Verdict(
            HOLDS if min(effect.low for effect in evidence) > 2 else FAILS,
            f"SGD in batches of 64 is {low:.0f} to {high:.0f} times sooner where GD ends, in "
            "passes and in CPU time.",
            tuple(evidence),
        )

    return judge


def as_given(table: Any, family: str) -> Any:
    """Return the runs with the practical's own step."""
    return _of(table, {"GD": GD, "SGD": SGD}[family])


def judge_unequal(table: Any) -> Verdict:
    """SGD with the practical's step against the best GD."""
    effects = []
    for name, part in split(final(table), ("data",)):
        best = float(part[part["solver"].str.startswith("GD")]["primal"].min())
        effects.append(mean(_of(part, SGD)["primal"] - best, f"objective, {SGD} - best GD, {name}"))
    below = [effect.high < 0 for effect in effects]
    return Verdict(
        HOLDS if all(below) else FAILS,
        "With the practical's step SGD ends "
        f"{'below' if all(below) else 'above'} GD with a good one: "
        "the step counts for as much as the method.",
        tuple(effects),
    )


def judge_batch(table: Any) -> Verdict:
    """After one pass the best batch is far below the largest, each with its own best step."""
    evidence, best = [], []
    for name, part in split(table[table["budget"] == "one pass"], ("data",)):
        tuned = part.groupby(["batch", "seed"])["primal"].min().unstack()
        chosen = tuned.mean(axis=1).idxmin()
        best.append(f"of {chosen} on {name}")
        ratio = tuned.loc[BATCHES[-1]] / tuned.loc[chosen]
        evidence.append(mean(ratio, f"objective, batches of {BATCHES[-1]} / of {chosen}, {name}"))
    return Verdict(
        HOLDS if all(effect.low > 1 for effect in evidence) else FAILS,
        f"After one pass, each with its best step, batches {' and '.join(best)} end lowest; "
        f"batches of {BATCHES[-1]}, which make it nearly GD, end at "
        f"{' and '.join(f'{effect.estimate:.2g}' for effect in evidence)} times that objective.",
        tuple(evidence),
    )


def judge_duel(passes: int, first: str, second: str) -> Callable[[Any], Verdict]:
    """Return the judge of "`first` has a lower objective than `second` after so many passes"."""
    return lambda table: lower(after(passes)(table), "primal", first, second)


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
    return Verdict(
        HOLDS if all(effect.high < worst.low for effect in ours.values()) else FAILS,
        f"BCFW computes its step; for SSGD steps between {HINGE_STEPS[0]:g} and "
        f"{HINGE_STEPS[-1]:g} differ by a factor of {worst.estimate:.1f} in the "
        f"objective after one pass, and BCFW ends at {ours[SINGLE].estimate:.2f} times the "
        f"best of them, averaged at {ours[AVERAGED].estimate:.2f} times.",
        (worst, *ours.values()),
    )


def judge_mu(table: Any) -> Verdict:
    """The smaller mu, the further BCFW is from the optimum after five passes."""
    found = np.log10(after(5)(with_shares(_of(table, SINGLE))).set_index(["lam", "seed"])["excess"])
    found = found.rename("excess").reset_index()
    effects = [
        paired_difference(found, "excess", small, large, of="lam", what=_decade(large, small))
        for large, small in itertools.pairwise(sorted(found["lam"].unique(), reverse=True))
    ]
    five = after(5)(table).groupby(["solver", "lam"])[["primal", "optimum"]].median()
    times, own = five["primal"] / five["optimum"], five.loc[SINGLE, "primal"]
    large, small = own.index[-1], own.index[0]
    return Verdict(
        HOLDS if all(effect.low > 0 for effect in effects) else FAILS,
        f"After five passes BCFW is at {number(times[SINGLE, large])} times the optimum for "
        f"mu = {large:g} and at {number(times[SINGLE, small])} times for mu = {small:g}; {SMALL} "
        f"at {number(times[SMALL, large])} and {number(times[SMALL, small])} times. The objective "
        f"of BCFW is {own.min():.2f} to {own.max():.2f} at every mu: it is the optimum that falls.",
        tuple(effects),
    )


def _decade(large: float, small: float) -> str:
    return f"log10(objective / optimum - 1), mu = {small:g} minus mu = {large:g}"


def judge_dual(table: Any) -> Verdict:
    """A smaller mu leaves the dual objective further from its maximum after five passes."""
    found = after(5)(with_shares(_of(table, SINGLE)))
    effects = [
        paired_difference(
            found, "reached", small, large, of="lam", what=f"mu = {small:g} - {large:g}"
        )
        for large, small in itertools.pairwise(sorted(found["lam"].unique(), reverse=True))
    ]
    share = found.groupby("lam")["reached"].median()
    text = ", ".join(f"{100 * part:.0f} % at mu = {mu:g}" for mu, part in share[::-1].items())
    text = f"After five passes the dual objective has reached {text} of its maximum."
    falls = [effect.high < 0 for effect in effects]
    if any(falls) and not all(falls):
        return Verdict(DEPENDS, text, tuple(effects), on_what="the range of mu")
    return Verdict(HOLDS if all(falls) else FAILS, text, tuple(effects))


def passes_to_half(table: Any) -> list[dict[str, Any]]:
    """Return the passes of BCFW until its gap is half of its objective, by mu."""
    lines = []
    for mu, part in _of(with_shares(table), SINGLE).groupby("lam"):
        five = after(5)(part)
        half = part[part["relative_gap"] <= 0.5].groupby("seed")["epoch"].min()
        enough = len(half) == part["seed"].nunique()
        lines.append(
            {
                "mu": mu,
                "passes": mean(half) if enough else f"more than {part['epoch'].max():.0f}",
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


def power(formula: str, size: str) -> int:
    """Return the exponent of N, d, C or b in a formula.

    >>> [power("N d C C / b", size) for size in "NdCb"]
    [1, 1, 2, -1]
    """
    above, _, below = formula.partition("/")
    return above.count(size) - below.count(size)


def exponents(table: Any) -> list[dict[str, Any]]:
    """Return how time and memory grow, measured and stated, a line per method and size."""
    lines = []
    for (method, size), part in table.groupby(["solver", "grows"], sort=False):
        logs = np.log(part.groupby(["seed", "factor"])[["step_seconds", "numbers"]].first())
        logs = logs.unstack()
        time, memory = logs["step_seconds"], logs["numbers"]
        last, doubled = sorted(part["factor"].unique())[-1:-3:-1]
        stated = [power(formula, size) for formula in THEORY[_plain(method)]]
        lines.append(
            {
                "method": method,
                "grows": size,
                "time": mean((time[last] - time[1]) / np.log(last)),
                "time, stated": stated[0],
                "memory": round(float((memory[last] - memory[doubled]).iloc[0] / np.log(2)), 2),
                "memory, stated": stated[1],
            }
        )
    return lines


def judge_cost(*methods: str) -> Callable[[Any], Verdict]:
    """Return the judge of stated costs: no size may count for more than that."""

    def judge(table: Any) -> Verdict:
        found = [line for line in exponents(table) if _plain(line["method"]) in methods]
        over = [line for line in found if _exceeds(line)]
        counts = [f"{line['grows']}^{line['memory']:g} ({line['method']})" for line in found]
        times = (
            replace(line["time"], what=f"exponent of {line['grows']} in time, {line['method']}")
            for line in found
        )
        evidence = (Calculation(f"memory, counted: {', '.join(counts)}"), *times)
        stated = "; ".join(f"{m}: time {THEORY[m][0]}, memory {THEORY[m][1]}" for m in methods)
        if not over:
            return Verdict(HOLDS, f"No size counts for more than stated ({stated}).", evidence)
        more = ", ".join(
            f"{line['grows']}^{line['time'].estimate:.2g} ({line['method']})" for line in over
        )
        text = f"Stated: {stated}. Certainly above that is the time in {more}"
        if all(line["method"].endswith(LARGE) for line in over):
            return Verdict(
                DEPENDS,
                f"{text}: there the arrays outgrow the cache. The memory is as stated.",
                evidence,
                on_what="whether the arrays fit in the processor's cache",
            )
        return Verdict(FAILS, f"{text}.", evidence)

    return judge


def _plain(method: str) -> str:
    return method.removesuffix(LARGE)


def _exceeds(line: dict[str, Any]) -> bool:
    """Whether time, for certain, or memory grows with a larger power, and not for lower terms."""
    slow = line["time"].low > line["time, stated"] + _LOWER_TERMS
    return bool(slow or line["memory"] > line["memory, stated"] + _LOWER_TERMS)


def judge_subgradient(table: Any) -> Verdict:
    """mu (w - w_s) satisfies the inequality of sub-gradients everywhere."""
    last = final(table[table["clipped"]])
    good = int((last["slack"] >= -1e-9).sum())
    return Verdict(
        HOLDS if good == len(last) else FAILS,
        "mu (w - w_s), with the vertex s that Frank-Wolfe goes to, is a sub-gradient of the primal "
        "objective at every point that was tried.",
        (Count("P(v) >= P(w) + <mu (w - w_s), v - w> for all v", good, len(last)),),
    )


def judge_gap(table: Any) -> Verdict:
    """Both forms of the gap agree."""
    last = final(table)
    good = int((last["gap_error"] < 1e-9).sum())
    return Verdict(
        HOLDS if good == len(last) else FAILS,
        f"The gap that a step computes anyway equals P - D; largest relative difference "
        f"{last['gap_error'].max():.0e}.",
        (Count("mu <w, w - w_s> - l + l_s = P - D", good, len(last)),),
    )


def judge_unclipped(table: Any) -> Verdict:
    """Without the clip some steps are longer than 1, and the "gap" loses its meaning."""
    single = table[table["b"] == "1"]
    long = 100 * final(single[~single["clipped"].astype(bool)])["long_steps"]
    lowest = single.groupby(["data", "clipped", "lam", "seed"], sort=False)["gap"].min()
    evidence, negative = [], []
    for name in single["data"].unique():
        printed, right = lowest[name][False], lowest[name][True]
        evidence.append(
            Count(f"P - D < 0, as printed, {name}", int((printed < 0).sum()), len(printed))
        )
        evidence.append(Count(f"P - D < 0, clipped, {name}", int((right < 0).sum()), len(right)))
        if (printed < 0).any() and (right >= 0).all():
            negative.append(f"{name} ({printed.min():.2g})")
    return Verdict(
        FAILS if negative else HOLDS,
        f"With single rows {long.min():.0f} to {long.max():.0f} % of the printed steps are longer "
        f"than 1 and leave the simplex; P - D becomes negative on {', '.join(negative) or 'none'}.",
        tuple(evidence),
    )

"""Chapter S3: verdicts on its printed algorithms and their costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from zerogap.lab import (
    NO,
    YES,
    Calculation,
    Count,
    Verdict,
    always,
    conclude,
    final,
    listed,
    mean,
    split,
)

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


def by_problem(table: Any) -> Any:
    """Add what a panel is about."""
    return table.assign(panel=table["data"] + ", mu = " + table["lam"].map("{:g}".format))


def power(formula: str, size: str) -> int:
    """Return the exponent of N, d, C or b in a formula.

    >>> [power("N d C C / b", size) for size in "NdCb"]
    [1, 1, 2, -1]
    """
    above, _, below = formula.partition("/")
    return above.count(size) - below.count(size)


def exponents(table: Any) -> list[dict[str, Any]]:
    """Return how operations, memory and time grow, counted, stated and measured."""
    lines = []
    for (method, size), part in table.groupby(["solver", "grows"], sort=False):
        columns = ["step_seconds", "numbers", "operations"]
        logs = np.log(part.groupby(["seed", "factor"])[columns].first()).unstack()
        last, doubled = sorted(part["factor"].unique())[-1:-3:-1]
        time = logs["step_seconds"]
        counted = {
            name: round(float((logs[name][last] - logs[name][doubled]).iloc[0] / np.log(2)), 2)
            for name in ("operations", "numbers")
        }
        stated = [power(formula, size) for formula in THEORY[_plain(method)]]
        lines.append(
            {
                "method": method,
                "grows": size,
                "operations": counted["operations"],
                "operations, stated": stated[0],
                "memory": counted["numbers"],
                "memory, stated": stated[1],
                "time, measured": mean((time[last] - time[1]) / np.log(last)),
            }
        )
    return lines


def judge_cost(*methods: str) -> Callable[[Any], Verdict]:
    """Return the judge of stated costs: no size may count for more than that."""

    def judge(table: Any) -> Verdict:
        found = [line for line in exponents(table) if _plain(line["method"]) in methods]
        answers, over, evidence = [], [], []
        for kind in ("operations", "memory"):
            for line in found:
                good = line[kind] <= line[f"{kind}, stated"] + _LOWER_TERMS
                answers.append(YES if good else NO)
                text = f"{line['grows']}^{line[kind]:g} ({line['method']})"
                over += [] if good else [f"{kind} {text}"]
            counts = (f"{line['grows']}^{line[kind]:g} ({line['method']})" for line in found)
            evidence.append(Calculation(f"{kind}, counted: {', '.join(counts)}"))
        stated = "; ".join(
            f"{m}: {THEORY[m][0]}, memory {THEORY[m][1]}".replace("C C", "C^2") for m in methods
        )
        sentence = (
            f"Counted, these grow faster than stated: {', '.join(over)}; stated are {stated}."
            if over
            else f"Counted, no size enters with a larger power than stated ({stated})."
        )
        times = [
            replace(line["time, measured"], what=f"exponent of {line['grows']}, {line['method']}")
            for line in found
        ]
        slower = [
            f"{line['grows']}^{line['time, measured'].estimate:.2g} ({line['method']})"
            for line in found
            if line["time, measured"].low > line["operations, stated"] + _LOWER_TERMS
        ]
        robustness = (
            "The measured time grows faster, probably where arrays outgrow the cache, in "
            f"{', '.join(slower)}."
            if slower
            else "The measured time grows no faster."
        )
        return conclude(answers, sentence, evidence, "the size that grows", robustness, times)

    return judge


def _plain(method: str) -> str:
    return method.removesuffix(LARGE)


def judge_subgradient(table: Any) -> Verdict:
    """mu (w - w_s) satisfies the inequality of sub-gradients everywhere."""
    last = final(table[table["clipped"]])
    count = Count(
        "P(v) >= P(w) + <mu (w - w_s), v - w> for all v",
        int((last["slack"] >= -1e-9).sum()),
        len(last),
    )
    sentence = (
        f"With the vertex s that Frank-Wolfe goes to, mu (w - w_s) has the property of a "
        f"sub-gradient of the primal at every point tried in {count.k} of {count.n} runs."
    )
    return conclude([always(count)], sentence, (count,), "the run")


def judge_gap(table: Any) -> Verdict:
    """Both forms of the gap agree."""
    last = final(table)
    count = Count(
        "mu <w, w - w_s> - l + l_s = P - D", int((last["gap_error"] < 1e-9).sum()), len(last)
    )
    sentence = (
        f"What a step computes equals P - D to rounding in {count.k} of {count.n} runs; the "
        f"largest relative difference is {last['gap_error'].max():.0e}."
    )
    return conclude([always(count)], sentence, (count,), "the run")


def judge_unclipped(table: Any) -> Verdict:
    """With the printed step P - D never becomes negative, which no feasible point allows."""
    runs = ["algorithm_name", "data", "lam", "seed"]
    names = table["solver"].str.rpartition(", ")[0]
    lowest = table.assign(algorithm_name=names).groupby([*runs, "clipped"], sort=False)["gap"].min()
    lowest = lowest.reset_index()
    printed, right = (lowest[lowest["clipped"] == clipped] for clipped in (False, True))
    counts = {
        place: Count(f"P - D never negative, {place}", int((part["gap"] >= 0).sum()), len(part))
        for place, part in split(
            printed.assign(place=printed["algorithm_name"] + " on " + printed["data"]), ("place",)
        )
    }
    bad = {place: count for place, count in counts.items() if count.k < count.n}
    share = 100 * final(table[~table["clipped"].astype(bool)])["long_steps"]
    sentence = (
        "P - D becomes negative, so that the iterate has left the simplex, in "
        + listed(f"{c.n - c.k} of {c.n} runs of {place}" for place, c in bad.items())
        if bad
        else f"P - D is never negative in {len(printed)} runs of the printed algorithms"
    )
    kept = Count("P - D never negative, clipped", int((right["gap"] >= 0).sum()), len(right))
    robustness = (
        f"{share.min():.0f} to {share.max():.0f} % of the printed steps are longer than 1. Kept in "
        f"[0, 1], as algorithm 2 asks, the steps keep P - D from being negative in {kept.k} of "
        f"{kept.n} runs."
    )
    answers = map(always, counts.values())
    on_what = "the size of the blocks and the data"
    return conclude(answers, f"{sentence}.", counts.values(), on_what, robustness, (kept,))

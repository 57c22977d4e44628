"""What chapter S0 makes of its curves: orders of visits, projection and lambda."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zerogap.lab import (
    NO,
    YES,
    Calculation,
    Count,
    Interval,
    Verdict,
    above,
    below,
    conclude,
    final,
    listed,
    mean,
    mostly,
    paired_difference,
    split,
    within,
)
from zerogap.lab.chapters.s0_races import FOUR, MUCH, RUN, report_s_lambda, stays, with_problem
from zerogap.lab.statistics import number

# Order of visits


def slowness(table: Any) -> Any:
    """Return per run how high its curve is, by three measures.

    "height" is log10 of the mean distance from the optimum, which is what one sees on the report's
    linear axis; "slowness" the mean of log10 of the relative distance, which weighs all accuracies
    alike; "jump" the mean change of the latter between records.
    """
    far = (table["suboptimality"] / table["optimum"]).clip(lower=1e-6)  # the reference's accuracy
    late = table.assign(far=far, slowness=np.log10(far))[table["updates"] > 0]
    late = late.sort_values("updates", kind="stable")
    jumps = late.groupby(RUN, sort=False)["slowness"].diff().abs()
    runs = late.assign(jump=jumps).groupby(RUN, sort=False)
    means = runs[["far", "slowness", "jump"]].mean()
    return means.assign(height=np.log10(means["far"])).reset_index()


_MEASURES = {
    "height": "log10 of the mean distance",
    "slowness": "mean log10 distance",
    "jump": "jump of log10 distance",
}


def _orders(table: Any, name: str, other: str, column: str = "height") -> dict[str, Interval]:
    return {
        place: paired_difference(
            part, column, name, other, what=f"{_MEASURES[column]}, {name} - {other}, {place}"
        )
        for place, part in split(with_problem(slowness(table)), ("problem",))
    }


def _factor(effect: Interval) -> str:
    return number(10**effect.estimate)


def judge_order(name: str, *others: str) -> Callable[[Any], Verdict]:
    """Return the judge of "this order is slower than the others", at the report's own lambda."""

    def judge(table: Any) -> Verdict:
        own = _slower(table, name, others)
        robustness, further = _on_log_axis(table, name, others)
        on_what = "the order that it is compared with"
        sentence = f"With the {name} order {_beside(own)}."
        return conclude(
            map(above, own.values()), sentence, own.values(), on_what, robustness, further
        )

    return judge


def judge_three_orders(table: Any) -> Verdict:
    """All orders are within a factor of two of each other, and a new permutation is slowest."""
    own = _slower(table, "permutation", ("random", "cyclic"))
    (third,) = _slower(table, "random", ("cyclic",)).values()
    every = [*own.values(), third]
    apart = max(10 ** abs(effect.estimate) for effect in every)
    limit = float(np.log10(MUCH))
    answers = [within(effect, -limit, limit) for effect in every]
    robustness, further = _on_log_axis(table, "permutation", tuple(own))
    return conclude(
        [*answers, *map(above, own.values())],
        f"The mean distances from the optimum differ by a factor of {number(apart)} at most "
        f"(almost the same rate: within {MUCH:g}). With the permutation order {_beside(own)}.",
        every,
        "the part: rate or slowest order",
        robustness,
        further,
    )


def _slower(table: Any, name: str, others: Sequence[str]) -> dict[str, Interval]:
    """Return how much higher the curve of an order is than the others', at the report's lambda."""
    own = report_s_lambda(table)
    return {other: next(iter(_orders(own, name, other).values())) for other in others}


def _beside(effects: dict[str, Interval]) -> str:
    return "the mean distance is " + listed(
        f"{_factor(effect)} times that of the {other} order ({_certainty(effect)})"
        for other, effect in effects.items()
    )


def _on_log_axis(table: Any, name: str, others: Sequence[str]) -> tuple[str, list[Interval]]:
    """Return the comparison by the mean of the logarithms, in words and as effects."""
    found = {other: list(_orders(table, name, other, "slowness").values()) for other in others}
    words = {YES: "slower than", NO: "faster than"}

    def told(other: str, effects: list[Interval]) -> str:
        if len(effects) == 1:
            word = words.get(above(effects[0]), "neither slower nor faster than")
            return f"{word} the {other} order"
        slower, faster = (sum(above(e) == answer for e in effects) for answer in (YES, NO))
        return (
            f"slower than the {other} order for {slower} and faster for {faster} of the "
            f"{len(effects)} lambdas"
        )

    text = "On a logarithmic axis, which shows the end of the runs too, it is " + listed(
        told(other, effects) for other, effects in found.items()
    )
    further = [effect for effects in found.values() for effect in effects]
    return f"{text}{_one_problem(max(map(len, found.values())))}.", further


def _one_problem(lambdas: int) -> str:
    """Return the remark on several lambdas, which are nearly one problem."""
    return "" if lambdas == 1 else " (problems that differ in lambda alone are much alike)"


def _certainty(effect: Interval) -> str:
    words = {YES: "significantly more", NO: "significantly less"}
    return words.get(above(effect), "not significantly different")


def judge_default(*tables: Any) -> Verdict:
    """No other order is much faster than random draws, at the report's own lambdas."""
    effects: list[Interval] = []
    logs: list[Interval] = []
    for table in map(report_s_lambda, tables):
        for other in ("permutation", "cyclic"):
            effects += _orders(table, "random", other).values()
            logs += _orders(table, "random", other, "slowness").values()
    worst, deep = (max(found, key=lambda effect: effect.estimate) for found in (effects, logs))
    sentence = (
        f"The mean distance of random draws from the optimum is at most {_factor(worst)} times "
        f"that of another order ({_compared(worst)}); much slower would be {MUCH:g} times."
    )
    robustness = (
        "On a logarithmic axis, which shows the end of the runs too, it is up to "
        f"{_factor(deep)} times ({_compared(deep)})."
    )
    answers = (below(effect, np.log10(MUCH)) for effect in effects)
    return conclude(answers, sentence, effects, "the data and the order", robustness, logs)


def _compared(effect: Interval) -> str:
    return effect.what.partition("random - ")[2]


def judge_permutation(table: Any) -> Verdict:
    """A new permutation is as fast as random draws, and its curve is less steady."""
    (speed,) = _orders(table, "permutation", "random").values()
    (unrest,) = _orders(table, "permutation", "random", "jump").values()
    words = {YES: "larger", NO: "smaller"}
    sentence = (
        f"With a new permutation the mean distance from the optimum is {_factor(speed)} times that "
        f"of random draws (as fast: within a factor of {MUCH:g}), and its jumps from record to "
        f"record are {words.get(above(unrest), 'not significantly different')}."
    )
    limit = float(np.log10(MUCH))
    answers = (within(speed, -limit, limit), above(unrest))
    return conclude(answers, sentence, (speed, unrest), "the part: speed or variability")


# Projection


def roughness(table: Any) -> Any:
    """Return per run the mean jump of log10 P between records, over all and after one epoch."""
    runs = table.sort_values("updates", kind="stable")
    jump = np.log10(runs["primal"]).groupby([runs[key] for key in RUN], sort=False).diff().abs()
    runs = runs.assign(whole=jump, late=jump.where(runs["epoch"] > 1))
    return runs.groupby(RUN, sort=False)[["whole", "late"]].mean().reset_index()


def _projected(table: Any, column: str, words: str) -> dict[str, Interval]:
    what = f"{words}, projected - plain, "
    return {
        place: paired_difference(part, column, "PEGASOS, projected", "PEGASOS", what=what + place)
        for place, part in split(with_problem(table), ("problem",))
    }


def _speed(table: Any) -> Any:
    """Return per run log2 of the iterations to 95 % of the way from P(0) = 1 to the optimum."""
    rows = []
    for (data, lam, solver, seed), run in table.groupby(RUN, sort=False):
        run = run.sort_values("updates", kind="stable")
        inside = run["suboptimality"] <= 0.05 * (1.0 - run["optimum"]).clip(lower=1e-9)
        first, steps = stays(inside.to_numpy()), run["updates"].to_numpy()
        needed = steps[first] if first < len(steps) else 2.0 * steps[-1]
        rows.append((data, lam, solver, seed, float(np.log2(max(1.0, needed)))))
    import pandas as pd

    return pd.DataFrame(rows, columns=[*RUN, "speed"])


def judge_limit(table: Any) -> Verdict:
    """At the report's lambda both runs end at the same value, equally fast."""
    last = final(table)
    last = last.assign(far=last["suboptimality"] / last["optimum"])
    (end,) = _projected(report_s_lambda(last), "far", "P at the end over its optimum").values()
    speeds = _speed(report_s_lambda(table))
    (speed,) = _projected(speeds, "speed", "log2 of iterations to 95 % of the way").values()
    sentence = (
        f"The ends differ by {abs(end.estimate):.1g} of the optimum, and the projected runs take "
        f"{2**speed.estimate:.2g} times the iterations to 95 % of the way."
    )
    close = last.groupby(["data", "lam"])["far"].transform("max") < 0.1
    rest = sorted({f"{lam:g}" for lam in last[~close]["lam"]}, key=float)
    robustness = "The ball holds the optimum, so that the limits agree by proof" + (
        f"; for lambda = {', '.join(rest)} the budget is too short to see it." if rest else "."
    )
    proof = Calculation("|w*| <= 1 / sqrt(lambda): the projection never moves the optimum")
    answers = (within(end, -0.01, 0.01), within(speed, -1.0, 1.0))
    return conclude(
        answers, sentence, (end, speed), "the part: value or speed", robustness, (proof,)
    )


def judge_smoother(table: Any) -> Verdict:
    """At the report's lambda the projected curve has smaller jumps over the whole run."""
    rough = roughness(table)
    own = list(_projected(report_s_lambda(rough), "whole", "mean jump of log10 P").values())
    whole = list(_projected(rough, "whole", "mean jump of log10 P").values())
    late = list(_projected(rough, "late", "mean jump of log10 P after one epoch").values())
    levels = report_s_lambda(rough).groupby("solver")["whole"].mean()
    ratio = levels["PEGASOS, projected"] / levels["PEGASOS"]
    words = {YES: "significantly smaller", NO: "significantly larger"}
    sentence = (
        f"The jumps of the projected curve are {number(ratio, 2)} times those of the plain one, "
        f"{words.get(below(own[0]), 'not significantly different')}."
    )
    robustness = (
        f"It is smoother over the whole run for {_yes(whole)} of {len(whole)} values of lambda; "
        f"after the first epoch it is smoother for {_yes(late)} and rougher for "
        f"{sum(below(e) == NO for e in late)} of them{_one_problem(len(whole))}."
    )
    return conclude(map(below, own), sentence, own, "lambda", robustness, (*whole, *late))


def _yes(effects: Sequence[Interval]) -> int:
    return sum(below(effect) == YES for effect in effects)


# Influence of lambda


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Spearman's coefficient, 0 where one side is all alike."""
    from scipy.stats import spearmanr

    alike = len(set(a)) == 1 or len(set(b)) == 1
    return 0.0 if alike else float(spearmanr(a, b).statistic)


def judge_objective(table: Any) -> Verdict:
    """Each solver's runs end higher for a larger lambda."""
    last = final(table)
    counts = {}
    for solver, part in split(last, ("solver",)):
        runs = [
            r.sort_values("lam")["primal"] for _, r in part.groupby(["data", "seed"], sort=False)
        ]
        k = sum(bool((np.diff(values) > 0).all()) for values in runs)
        counts[solver] = Count(f"objective at the end rises with lambda, {solver}", k, len(runs))
    best = last[last["loss"] == "hinge"].groupby("lam")["optimum"].min()
    proof = Calculation(
        f"optimum {best.iloc[0]:.2g} at lambda {best.index[0]:g}, {best.iloc[-1]:.2g} at "
        f"{best.index[-1]:g}: P(w) grows with lambda for every w, so its minimum does"
    )
    own = {name: count for name, count in counts.items() if name in FOUR}
    parts = [f"{name} in {count.k} of {count.n} runs" for name, count in own.items()]
    sentence = f"The objective at the end rises from each lambda to the next with {listed(parts)}."
    late = last.assign(short=last["suboptimality"] > 0.1 * last["optimum"])
    short = late[late["solver"].isin(FOUR)].groupby("solver", sort=False)["short"].mean()
    robustness = (
        "The optimum itself rises with lambda, by proof; within 9 200 iterations it is not reached "
        "to 10 % by " + listed(f"{100 * s:.0f} % of the runs of {n}" for n, s in short.items())
    )
    return conclude(
        map(mostly, own.values()), sentence, own.values(), "the solver", f"{robustness}.", (proof,)
    )


def judge_faster(table: Any) -> Verdict:
    """A larger lambda needs fewer steps: the rank correlation is below zero."""
    own: dict[str, Interval] = {}
    relative: dict[str, Interval] = {}
    way = 1.0 - table["optimum"]
    for words, goal, effects in (
        ("95 % of the way", 0.05 * way, own),
        ("1 % of the optimum", 0.01 * table["optimum"], relative),
    ):
        far = table.assign(inside=table["suboptimality"] <= goal)
        for solver, part in split(far[far["solver"].isin(FOUR)], ("solver",)):
            found = []
            for _, runs in part.groupby(["data", "seed"], sort=False):
                steps = {lam: _steps(run) for lam, run in runs.groupby("lam")}
                found.append(rank_correlation(list(steps), list(steps.values())))
            text = f"rank correlation of lambda and steps to {words}, {solver}"
            effects[solver] = mean(found, text)

    def fewer(effects: dict[str, Interval]) -> str:
        parts = {YES: "fewer", NO: "more"}
        texts = [
            f"{parts.get(below(e), 'neither more nor fewer')} steps for {solver} "
            f"({e.estimate:+.2f})"
            for solver, e in effects.items()
        ]
        return ", ".join(texts)

    return conclude(
        map(below, own.values()),
        f"To 95 % of the way from the start to the optimum a larger lambda needs {fewer(own)}; in "
        "brackets the rank correlation of lambda and steps.",
        own.values(),
        "the solver",
        f"To within 1 % of the optimum, which is tiny for a small lambda: {fewer(relative)}.",
        relative.values(),
    )


def _steps(run: Any) -> float:
    """Return the steps after which the run is inside for good; twice its length if never."""
    run = run.sort_values("updates", kind="stable")
    first, steps = stays(run["inside"].to_numpy()), run["updates"].to_numpy()
    return float(steps[first]) if first < len(steps) else 2.0 * steps[-1]

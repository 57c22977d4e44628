"""Chapter S2: verdicts on its claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from zerogap.lab import (
    DEPENDS,
    FAILS,
    HOLDS,
    NO,
    OPEN,
    UNDECIDED,
    YES,
    Calculation,
    Count,
    Interval,
    Verdict,
    above,
    always,
    below,
    conclude,
    listed,
    mean,
    paired_difference,
    sorted_by,
    split,
)
from zerogap.lab.chapters.s0_races import MUCH
from zerogap.lab.chapters.s2_cells import TARGET
from zerogap.lab.chapters.s2_tables import (
    EXACT,
    FOUR,
    OWN,
    STEPS,
    report_s_own,
    with_place,
    with_setting,
)
from zerogap.lab.statistics import number

TENS_OF_THOUSANDS = 100_000  # updates: "some tens of thousands" are fewer
INCREDIBLY = 10.0  # times as long
POINT = 0.01  # of an accuracy


# Figures 1 and 4


def judge_clarity(table: Any) -> Verdict:
    """From epoch to epoch, SDCA's curves move less than half as much as SGD's ("much clearer")."""
    late = table[table["epoch"] > table["epoch"].max() / 2]
    keys = ["data", "solver", "seed"]
    loss = late.groupby(keys)["primal"].agg(lambda x: np.log(x).diff().abs().mean())
    accuracy = late.groupby(keys)["test_accuracy"].agg(lambda x: x.diff().abs().mean())
    moves = {"log objective": loss, "accuracy": accuracy}
    names = [arm.name for arm in FOUR]

    def compared(first: str, second: str) -> list[Interval]:
        found = []
        for name, values in moves.items():
            for data, part in values.groupby("data", sort=False):
                sdca, sgd = (part.xs(arm, level="solver") for arm in (first, second))
                what = f"change of {name} per epoch, ({first}) minus half of ({second}), {data}"
                found.append(mean(sdca - sgd / MUCH, what))
        return found

    own = compared(*OWN)
    equal = compared(names[0], names[3]) + compared(names[1], names[2])
    sentence = (
        f"From epoch to epoch SDCA's accuracy and objective change less than half as much as SGD's "
        f"in {so(own)} of {len(own)} comparisons."
    )
    robustness = f"With one lambda for both it is so in {so(equal)} of {len(equal)}."
    return conclude(map(below, own), sentence, own, "the data and the curve", robustness, equal)


def so(effects: list[Interval]) -> int:
    """Return how many effects are below 0 for certain."""
    return sum(below(effect) == YES for effect in effects)


def _second_half(table: Any, solver: str) -> Any:
    late = table[(table["solver"] == solver) & (table["epoch"] > table["epoch"].max() / 2)]
    return late.sort_values("epoch", kind="stable")


def _ranges(table: Any, solver: str) -> list[Interval]:
    """Return the range of the test accuracy over the second half of a run, by data."""
    late = _second_half(table, solver)
    return [
        mean(
            part.groupby("seed")["test_accuracy"].agg(np.ptp),
            f"range of the test accuracy over the last epochs, {solver}, {data}",
        )
        for data, part in split(late, ("data",))
    ]


def judge_sensitive(table: Any) -> Verdict:
    """Over the second half of SDCA's run the test accuracy ranges over two points or more."""
    effects, exact = _ranges(table, OWN[0]), _ranges(table, EXACT)
    names = [name for name, _ in split(table, ("data",))]
    late = _second_half(table, OWN[0])
    rises = late.groupby(["data", "seed"])["primal"].agg(lambda x: (x.diff().dropna() > 0).mean())
    points = listed(
        f"{100 * effect.estimate:.2g} points on {name}"
        for name, effect in zip(names, effects, strict=True)
    )
    sentence = (
        f"From epoch {late['epoch'].min():.0f} to {late['epoch'].max():.0f} the test accuracy of "
        f"SDCA ranges over {points}."
    )
    robustness = (
        f"Its objective rises from one of these epochs to the next in {100 * rises.mean():.0f} % "
        "of the cases; with the exact step the ranges are "
        f"{listed(f'{100 * e.estimate:.2g}' for e in exact)} points."
    )
    answers = (above(effect, 2 * POINT) for effect in effects)
    return conclude(answers, sentence, effects, "the data set", robustness, exact)


def judge_better(curves: Any, table: Any) -> Verdict:
    """The top of SGD's test curve is above where SDCA's has settled, as the report read it."""
    runs = curves[curves["epoch"] > 0].sort_values("epoch", kind="stable")
    runs = runs.groupby(["data", "solver", "seed"], sort=False)["test_accuracy"]
    tops, ends = (found.reset_index() for found in (runs.max(), runs.last()))
    sgd = tops["solver"] == OWN[1]
    best = tops.assign(test_accuracy=tops["test_accuracy"].where(sgd, ends["test_accuracy"]))
    own = [
        paired_difference(
            part, "test_accuracy", OWN[1], OWN[0], what=f"top of SGD - end of SDCA, {name}"
        )
        for name, part in split(best, ("data",))
    ]
    names = [name for name, _ in split(best, ("data",))]
    last = _sgd_minus_sdca(report_s_own(table), "last iterate as in the report")
    equal = [
        effect
        for setting, part in split(with_setting(table), ("setting",))
        for effect in _sgd_minus_sdca(part, setting)
    ]
    sentence = "The top of SGD's test curve differs from where SDCA's has settled by " + listed(
        f"{100 * effect.estimate:+.1f} points on {name}"
        for name, effect in zip(names, own, strict=True)
    )
    robustness = (
        f"The top of a curve that moves is picked on the test rows. At the last iterate SGD is at "
        f"{listed(f'{100 * e.estimate:+.1f}' for e in last)} points; with one lambda and intercept "
        f"for both it is ahead in {sum(above(e) == YES for e in equal)} and behind in "
        f"{sum(above(e) == NO for e in equal)} of {len(equal)} comparisons."
    )
    return conclude(
        map(above, own), f"{sentence}.", own, "the data set", robustness, (*last, *equal)
    )


def _sgd_minus_sdca(table: Any, what: str) -> list[Interval]:
    return [
        paired_difference(
            part, "test_accuracy", "SGD", "SDCA", what=f"accuracy, SGD - SDCA, {what}, {name}"
        )
        for name, part in split(table, ("data",))
    ]


def judge_trapped(table: Any, starts: Any) -> Verdict:
    """Some run of SDCA stays away from the global minimum, however long it goes on."""
    own = report_s_own(table)
    own = own[own["solver"] == "SDCA"]
    near = Count(
        "proved to be within 1 % of the global minimum after the report's 50 epochs",
        int((own["gap"] <= 0.01 * own["primal"]).sum()),
        len(own),
    )
    same = (starts["gap"] <= 1e-6 * starts["primal"]) & (starts["end"] <= 1e-3)
    there = Count("random starts proved to end at it", int(same.sum()), len(same))
    answers = [
        NO if count.k == count.n else YES if count.k == 0 else OPEN for count in (near, there)
    ]
    sentence = {
        FAILS: "The objective has one minimum, and the duality gap proves that every run is there: "
        "the curve stops because it is done.",
        HOLDS: "No run is proved to be at the global minimum.",
        DEPENDS: "Only one of the two, long runs from random starts or the report's 50 epochs, is "
        "proved to end at the global minimum.",
        UNDECIDED: f"{near.k} of {near.n} runs of 50 epochs, and {there.k} of {there.n} long runs "
        "from random starts, are proved to be at the global minimum.",
    }
    other = table[table["lam_of"] == "SGD"].groupby("data", sort=False)["lam"].first()
    times = own.groupby("data", sort=False)["lam"].first() / other
    robustness = (
        "The accuracy of SGD that the report compares with belongs to another problem, with a "
        f"lambda {listed(f'{t:.0f} times smaller on {data}' for data, t in times.items())}."
    )
    return conclude(answers, sentence, (near, there), "the length of the run", robustness)


# Figure 2


def judge_returned(table: Any) -> Verdict:
    """The iterate that the report's code returned is as accurate as the last one, for every c."""
    effects = []
    for (data, c), part in table[table["sweeps"] == "c_sdca"].groupby(["data", "value"]):
        pair = "SDCA, iterate the report returned", "SDCA"
        what = f"accuracy, returned - last, {data}, c = {c:g}"
        effects.append(paired_difference(part, "test_accuracy", *pair, what=what))
    answers = [above(effect, -2 * POINT) for effect in effects]
    worst = sorted(effects, key=lambda effect: effect.high)[:3]
    sentence = (
        f"The iterate that the report's code returned is more than 2 points less accurate than the "
        f"last one at {answers.count(NO)} of {len(answers)} values of c, and as accurate at "
        f"{answers.count(YES)}; the largest loss is {-100 * worst[0].estimate:.0f} points "
        f"({worst[0].what.split(', ', 2)[2]})."
    )
    return conclude(answers, sentence, worst, "c: the recorded loss prefers w = 0 when c is small")


# Table 2


def judge_table_2(table: Any) -> Verdict:
    """The printed stopping times are those of the formula with the report's own lambdas."""
    found = table[table["rows"] == "standardised"].groupby("data", sort=False).first()
    right = found["printed"] == found["lipschitz"]
    evidence = tuple(
        Calculation(
            f"{data}: printed {row['printed']:.0f}, formula {row['lipschitz']:.0f}, with the other "
            f"data set's lambda {row['exchanged']:.0f}"
        )
        for data, row in found.iterrows()
    )
    exchanged = bool((found["printed"] == found["exchanged"]).all())
    wrong = (
        "The two lambdas were exchanged: with those of table 1 the formula gives "
        if exchanged
        else "With the lambdas of table 1 the formula gives "
    ) + listed(f"{row['lipschitz']:,.0f} on {data}" for data, row in found.iterrows())
    sentence = {HOLDS: "The formula gives the printed numbers.", FAILS: f"{wrong}."}
    sentence[DEPENDS] = sentence[FAILS]
    answers = (YES if good else NO for good in right)
    return conclude(answers, sentence, evidence, "the data set")


def judge_bounds(table: Any) -> Verdict:
    """On rows of norm 1 the gap is below the target after the theorems' numbers of updates."""
    valid = table[table["rows"] != "standardised"]
    counts = {
        name: Count(
            f"gap <= {TARGET:g} after T, {name}", int((valid[column] <= TARGET).sum()), len(valid)
        )
        for column, name in (
            ("gap_lipschitz", "Lipschitz bound, average"),
            ("gap_smooth", "smooth bound, last iterate"),
        )
    }
    sentence = f"After the theorems' numbers of updates the gap is at most {TARGET:g} in " + listed(
        f"{count.k} of {count.n} runs ({name})" for name, count in counts.items()
    )
    return conclude(map(always, counts.values()), f"{sentence}.", counts.values(), "the theorem")


def judge_too_large(table: Any, curves: Any) -> Verdict:
    """T is more than twice what is needed, and some tens of thousands of updates are enough.

    What is needed is read off the runs of figure 1, as the report did.
    """
    standard = table[table["rows"] == "standardised"].groupby("data", sort=False).first()
    effects: list[Interval] = []
    answers: list[str] = []
    parts = []
    for data, runs in split(curves[curves["solver"] == OWN[0]], ("data",)):
        needed = mean([_updates_to_target(run) for _, run in runs.groupby("seed")], "")
        needed = replace(needed, what=f"updates needed, {data}")
        enough = float(standard.loc[data, "lipschitz"])
        effects.append(needed)
        answers += [below(needed, enough / MUCH), below(needed, TENS_OF_THOUSANDS)]
        parts.append(
            f"{needed.estimate:,.0f} updates on {data} (T is {enough:,.0f}, "
            f"{number(enough / needed.estimate, 2)} times as many)"
        )
    times = table.assign(times=table["lipschitz"] / table["needed"])
    robustness = "With all rows, T over what is needed is " + listed(
        f"{part['times'].median():.2g} on {data} ({number(part['needed'].median())} updates needed)"
        for data, part in split(times, ("data",))
    )
    return conclude(
        answers,
        f"The gap is below {TARGET:g} after {listed(parts)}.",
        effects,
        "the data set",
        f"{robustness}.",
    )


def _updates_to_target(run: Any) -> float:
    """Return the updates until the gap is small enough; all of them if it never is."""
    run = run.sort_values("updates")
    there = run[run["gap"] <= TARGET]
    return float(there["updates"].iloc[0] if len(there) else run["updates"].iloc[-1])


# The logistic step


def judge_closed_form(table: Any) -> Verdict:
    """The published closed form is the maximiser of the one-variable dual."""
    early = table[(table["solver"] == STEPS["published"]) & (table["epoch"] < 10)]
    effects = {
        place: mean(part.groupby("seed")["share"].mean(), f"share of the best gain, {place}")
        for place, part in split(with_place(early), ("place",))
    }
    low, high = (f(100 * e.estimate for e in effects.values()) for f in (min, max))
    sentence = {
        HOLDS: f"It gains {low:.1f} % or more of what the best step gains.",
        FAILS: f"It gains {low:.0f} to {high:.0f} % of what the best step gains: it is a safe step "
        "towards the maximiser, which has no closed form.",
    }
    sentence[DEPENDS] = sentence[UNDECIDED] = (
        f"It gains {low:.0f} to {high:.0f} % of what the best step gains."
    )
    answers = (above(effect, 0.99) for effect in effects.values())
    return conclude(answers, sentence, effects.values(), "|x|^2 against lambda n")


def judge_numerics(table: Any) -> Verdict:
    """The printed formulas of the logistic loss overflow, cancel or are undefined somewhere."""
    margins = np.linspace(-1000.0, 1000.0, 2001)
    stable = np.exp(-np.logaddexp(0.0, margins))
    with np.errstate(all="ignore"):
        step = np.abs(1.0 / (1.0 + np.exp(margins)) - stable) <= 1e-12 * stable + 1e-300
        loss = np.isfinite(np.log(1.0 + np.exp(-margins)))
        dual = np.array([0.0, 0.5, 1.0])
        conjugate = np.isfinite(dual * np.log(dual) + (1 - dual) * np.log(1 - dual))
    good = {"the step": step, "the loss": loss, "the conjugate": conjugate}
    found = sorted_by({name: NO if right.all() else YES for name, right in good.items()})
    parts = [f"{listed(found[NO])} is accurate everywhere"] if found[NO] else []
    parts += [f"{listed(found[YES])} overflow or take 0 log 0"] if found[YES] else []
    sentence = f"As printed, {'; '.join(parts)}."
    evidence = [
        Calculation(f"{name}: right at {right.sum()} of {len(right)} points")
        for name, right in good.items()
    ]
    robustness = "With logaddexp(0, -z) and 0 log 0 = 0 nothing is lost; SDCA needs the step alone."
    answers = (NO if right.all() else YES for right in good.values())
    return conclude(answers, sentence, evidence, "the formula: step or values", robustness)


def judge_newton(table: Any) -> Verdict:
    """An update with Newton's method takes ten times as long as one by the closed form."""
    found: dict[str, list[Interval]] = {}
    for (code, data), part in table.groupby(["code", "data"], sort=False):
        wide = part.pivot(index="seed", columns="rule", values="seconds_per_update")
        what = f"CPU time of an update, Newton / closed form, {code}, {data}"
        found.setdefault(code, []).append(mean(wide["Newton"] / wide["closed form"], what))
    own, compiled = found["Python"], found["compiled"]
    names = listed(str(name) for name in table["data"].unique())
    sentence = (
        f"In Python an update with Newton's method takes {_times(own)} times the CPU time of one "
        f"by the closed form, on {names}; incredibly long would be {INCREDIBLY:g} times."
    )
    robustness = f"Compiled it takes {_times(compiled)} times."
    answers = (above(effect, INCREDIBLY) for effect in own)
    return conclude(answers, sentence, own, "the data set", robustness, compiled)


def _times(effects: list[Interval]) -> str:
    return listed(f"{effect.estimate:.2g}" for effect in effects)

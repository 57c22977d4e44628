"""Chapter S2: verdicts on what it says about outputs and about SGD."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.lab import (
    NO,
    OPEN,
    YES,
    Count,
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
from zerogap.lab.chapters.s2_cells import CLOSED
from zerogap.lab.chapters.s2_judges import POINT, so
from zerogap.lab.chapters.s2_tables import SGD_ARMS, with_loss, with_place
from zerogap.lab.statistics import number

# Output


def _longest(table: Any, loss: str) -> Any:
    return table[(table["loss"] == loss) & (table["passes"] == table["passes"].max())]


def _average_minus_last(table: Any, column: str, by: tuple[str, ...]) -> list[Interval]:
    """Return log10 of the average's value over that of the last iterate, by group."""
    table = table.assign(log=np.log10(table[column].clip(lower=1e-16)))
    what = f"log10 {column}, average - last"
    return [
        paired_difference(part, "log", "SDCA, average", "SDCA, last", what=f"{what}, {place}")
        for place, part in split(table, by)
    ]


def judge_average(table: Any, stops: Any) -> Verdict:
    """The average changes less from stop to stop than the last iterate, and its gap is smaller."""
    gaps = _average_minus_last(_longest(table, CLOSED), "gap", ("data",))
    moves = _average_minus_last(stops, "change", ("data",))
    lengths = with_loss(table).assign(passes=table["passes"].map("{} epochs".format))
    every = _average_minus_last(lengths, "gap", ("place", "passes"))
    last = stops[stops["solver"] == "SDCA, last"].groupby("data", sort=False)["change"].median()

    def times(effects: list[Interval]) -> str:
        return listed(number(10**effect.estimate, 2) for effect in effects)

    sentence = (
        f"On {listed(last.index)}, the last iterate changes by "
        f"{listed(f'{number(100 * change, 2)} %' for change in last)} from the end of one epoch to "
        f"that of the next, and the average {times(moves)} times as much; the gap of the average "
        f"is {times(gaps)} times that of the last iterate."
    )
    points = [
        paired_difference(
            some, "test_accuracy", "SDCA, average", "SDCA, last", what=f"accuracy, {name}"
        )
        for name, some in split(_longest(table, CLOSED), ("data",))
    ]
    robustness = (
        f"Over three losses and all lengths of the run the gap of the average is smaller in "
        f"{so(every)} and larger in {sum(below(e) == NO for e in every)} of {len(every)} "
        f"comparisons; the accuracies differ by "
        f"{listed(f'{100 * e.estimate:+.2f}' for e in points)} points."
    )
    own = [*moves, *gaps]
    on_what = "the part, variations or gap, and the data set"
    return conclude(map(below, own), sentence, own, on_what, robustness, every)


def judge_random_stop(table: Any) -> Verdict:
    """A random iterate is at most a point less accurate than the last one."""
    own = [
        paired_difference(
            part,
            "test_accuracy",
            "SDCA, random",
            "SDCA, last",
            what=f"accuracy, random - last, {name}",
        )
        for name, part in split(_longest(table, CLOSED), ("data",))
    ]
    names = [name for name, _ in split(_longest(table, CLOSED), ("data",))]
    sentence = "The accuracy of a random iterate differs from that of the last one by " + listed(
        f"{100 * effect.estimate:+.2f} points on {name}"
        for name, effect in zip(names, own, strict=True)
    )
    answers = (above(effect, -POINT) for effect in own)
    return conclude(answers, f"{sentence}.", own, "the data set")


# What the report says about SGD


def _of(table: Any, k: int) -> Any:
    return table[table["solver"] == SGD_ARMS[k].name]


MISLED = 0.05  # of the runs: a clear criterion misleads in fewer


def judge_no_stopping(table: Any) -> Verdict:
    """To stop when the objective hardly changes is misleading: the run is not near the optimum."""
    own, runs = _of(table, 0), ["data", "seed"]
    misled = [
        Count(
            f"stopped more than 5 % above the optimum, lambda = {lam:g}",
            sum(_stopped_early(run) for _, run in part.groupby(runs)),
            part.groupby(runs).ngroups,
        )
        for lam, part in own.groupby("lam", sort=False)
    ]
    proved = [
        Count(
            f"its own gap proves 5 %, lambda = {lam:g}",
            int(
                part.assign(ok=part["gap"] <= 0.05 * part["primal"]).groupby(runs)["ok"].any().sum()
            ),
            part.groupby(runs).ngroups,
        )
        for lam, part in own.groupby("lam", sort=False)
    ]
    lams = [f"{lam:g}" for lam in own["lam"].unique()]

    def told(counts: list[Count]) -> str:
        return listed(
            f"{count.k} of {count.n} runs at lambda = {lam}"
            for lam, count in zip(lams, counts, strict=True)
        )

    sentence = (
        "SGD computes no bound of its distance from the optimum, and stopping when its objective "
        "changes by less than 1 % from record to record ends more than 5 % above the optimum in "
        f"{told(misled)}."
    )
    robustness = (
        "A bound can be had from any w, with alpha_i = -phi'(z_i): along these runs it proves 5 % "
        f"of the objective in {told(proved)}."
    )
    every = Count("misled, all lambdas", sum(c.k for c in misled), sum(c.n for c in misled))
    low, high = every.interval
    answer = YES if low > MISLED else NO if high < MISLED else OPEN
    return conclude([answer], sentence, (every, *misled), "lambda", robustness, proved)


def _stopped_early(run: Any) -> bool:
    """Whether the run is more than 5 % above the optimum when its objective hardly changes."""
    run = run[run["updates"] > 0].sort_values("updates")
    change = run["primal"].diff().abs() / run["primal"]
    calm = run[change < 0.01]
    return bool(len(calm) and calm["suboptimality"].iloc[0] > 0.05 * calm["optimum"].iloc[0])


def judge_aggressive(table: Any) -> Verdict:
    """With the smallest lambda SGD's first epoch takes the objective above its start, and more."""
    first = table[(table["epoch"] > 0) & (table["epoch"] <= 1)]
    keys = ["solver", "lam", "data", "seed"]
    worst = first.groupby(keys, sort=False)["primal"].max().reset_index()
    small, large = worst["lam"].min(), worst["lam"].max()

    def rises(k: int, lam: float) -> list[Interval]:
        runs = _of(worst, k)
        return _rises(runs[runs["lam"] == lam])

    own, tame = rises(0, small), rises(0, large)
    names = listed(name for name, _ in split(table, ("data",)))
    sentence = (
        f"In the first epoch, on {names}, the objective reaches {_powers(own)} times its start at "
        f"lambda = {small:g}, and {_powers(tame)} times at lambda = {large:g}."
    )
    others = {SGD_ARMS[k].name: rises(k, small) for k in range(1, len(SGD_ARMS))}
    robustness = f"At lambda = {small:g} it reaches " + listed(
        f"{_powers(found)} times its start ({name})" for name, found in others.items()
    )
    answers = [above(effect) for effect in own]
    answers += [
        YES if a.low > b.high else NO if a.high < b.low else OPEN
        for a, b in zip(own, tame, strict=True)
    ]
    further = [effect for found in others.values() for effect in found]
    return conclude(answers, sentence, (*own, *tame), "the data set", f"{robustness}.", further)


def _powers(effects: list[Interval]) -> str:
    return listed(number(10**effect.estimate, 2) for effect in effects)


def _rises(worst: Any) -> list[Interval]:
    """Return log10 of the largest objective of the first epoch over P(0) = log 2, by data."""
    return [
        mean(
            np.log10(part["primal"] / np.log(2)),
            f"log10 of largest P in epoch 1 / P(0), {part['solver'].iloc[0]}, {name}",
        )
        for name, part in split(with_place(worst), ("place",))
    ]


def judge_slow(table: Any) -> Verdict:
    """After a tenth of its epochs SGD's progress per epoch is less than half of what it was."""
    end = table["epoch"].max()
    turn = end / 10
    log = table.assign(log=np.log10(table["suboptimality"].clip(lower=1e-14)))

    def rates(name: str) -> list[Interval]:
        found = []
        for place, part in split(with_place(log[log["solver"] == name]), ("place",)):
            changes = []
            for _, run in part[part["epoch"] > 0].groupby("seed"):
                run = run.sort_values("epoch")
                at = np.interp([1.0, turn, end], run["epoch"], run["log"])
                early, late = (at[0] - at[1]) / (turn - 1), (at[1] - at[2]) / (end - turn)
                changes.append(late - early / MUCH)
            what = f"decades per epoch, late minus half of early, {name}, {place}"
            found.append(mean(changes, what))
        return found

    own = rates(SGD_ARMS[0].name)
    ends = final(log)
    behind = [
        paired_difference(
            part, "log", "SDCA", SGD_ARMS[0].name, what=f"log10 distance, SDCA - SGD, {place}"
        )
        for place, part in split(with_place(ends), ("place",))
    ]
    lams, names = table["lam"].nunique(), [name for name, _ in split(table, ("data",))]

    def told(effects: list[Interval]) -> str:
        found = {name: [e for e in effects if f", {name}, " in e.what] for name in names}
        return listed(f"{so(own)} on {name}" for name, own in found.items())

    sentence = (
        f"Of {lams} lambdas, SGD's progress per epoch (in powers of ten) is after epoch "
        f"{turn:.0f} less than half of what it was before for {told(own)}."
    )
    robustness = (
        f"After {end:.0f} epochs SDCA is closer to the optimum for {told(behind)} (problems that "
        "differ in lambda alone are much alike)."
    )
    return conclude(map(below, own), sentence, own, "the data and lambda", robustness, behind)

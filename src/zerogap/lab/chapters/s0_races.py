"""The races of chapter S0: which solver converges first, and by which axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from zerogap.lab import (
    NO,
    YES,
    Count,
    Interval,
    Verdict,
    conclude,
    final,
    listed,
    mean,
    mostly,
    split,
    within,
)

FOUR = ("SDCA", "PEGASOS", "ASDCA", "mini-batch PEGASOS")
THEORY = "ASDCA, theta of the theory"
AXES = {"updates": "iterations", "examples": "examples read"}
LEFT = {0.1: "90", 0.05: "95", 0.01: "99"}  # what is left of the way, and what is done, in %
COARSE = {0.5: "50", 0.2: "80"}
BUDGET = {"simulated": 33_500, "skin": 735_171}  # iterations of the report; genomic 9 200
STEPS = 9_200
STAND_IN = {"gravier": "gravier (for genomic)"}
MUCH = 2.0  # times: what "much" means wherever a report says it without a number
RUN = ["data", "lam", "solver", "seed"]
Places = dict[str, tuple[float, float]]


def place_of(name: str) -> str:
    """Return the name of a data set, and for which of the report's it stands in."""
    return STAND_IN.get(name, name)


def stays(inside: np.ndarray) -> int:
    """Return the first place from which on all are inside; the length if there is none."""
    outside = np.flatnonzero(~inside)
    return int(outside[-1]) + 1 if len(outside) else 0


def with_problem(table: Any) -> Any:
    """Add names for panels: the problem, and what runs on which data."""
    lam = table["lam"].map("{:.2g}".format)
    data = table["data"].map(place_of)
    return table.assign(problem=data + ", lambda = " + lam, run_of=table["solver"] + " on " + data)


def with_place(table: Any) -> Any:
    """Name the data set that stands in for another."""
    return table.assign(data=table["data"].map(place_of))


def report_s_lambda(table: Any) -> Any:
    """Return the rows with the largest lambda, 50 in the full version: the report's own."""
    return table[table["lam"] == table["lam"].max()]


# How fast


def with_excess(table: Any) -> Any:
    """Add how far the hinge objective is above the hinge optimum, for all solvers alike."""
    keys = ["data", "lam", "seed"]
    hinge = table[table["loss"] == "hinge"].groupby(keys)["optimum"].first()
    table = table.merge(hinge.rename("hinge_optimum").reset_index(), on=keys, how="left")
    return table.assign(excess=table["hinge_primal"] - table["hinge_optimum"])


def with_limit(table: Any) -> Any:
    """Add the hinge objective to which each solver converges.

    ASDCA minimises the smooth hinge: its limit is where its run with the theory's theta ends.
    """
    table = with_excess(table)
    theory = final(table[table["solver"] == THEORY]).set_index(["data", "seed"])["hinge_primal"]
    keys = zip(table["data"], table["seed"], strict=True)
    own = np.array([theory.get(key, np.nan) for key in keys], dtype=float)
    known = table["solver"].str.startswith("ASDCA") & ~np.isnan(own)
    return table.assign(limit=np.where(known, own, table["hinge_optimum"]))


WAYS = {f"left_{way}": f"{way} % of the way" for way in LEFT.values()}


def with_way(table: Any) -> Any:
    """Add the share of the way that is left, from 0.001 to 3, and the shares that are judged."""
    table = with_place(with_limit(table))
    left = (table["hinge_primal"] - table["limit"]) / (1.0 - table["limit"])
    marks = {f"left_{way}": share for share, way in LEFT.items()}
    return table.assign(way_left=left.clip(1e-3, 3.0), **marks)


def arrival(run: Any, axis: str, left: float) -> tuple[float, float]:
    """Return where on the axis a run has only a share `left` of its way before it, for good.

    The way leads from P(0) = 1 to the run's limit.  Between two records the place is interpolated;
    a run that does not arrive has the place infinity, and the second number, the distance at its
    end, tells it from others.
    """
    run = run.sort_values("updates", kind="stable")
    far = (run["hinge_primal"] - run["limit"]).to_numpy()
    goal = left * (1.0 - float(run["limit"].iloc[0]))
    places = run[axis].to_numpy(dtype=float)
    first = stays(far <= goal)
    if first == len(far):
        return np.inf, float(far[-1])
    if first == 0:
        return float(places[0]), float(far[-1])
    share = (far[first - 1] - goal) / (far[first - 1] - far[first])
    return float(places[first - 1] + share * (places[first] - places[first - 1])), float(far[-1])


def arrivals(table: Any, axis: str, left: float, names: Sequence[str] = FOUR) -> list[Places]:
    """Return for each problem and seed where each solver arrives."""
    found: dict[Any, Places] = {}
    for (data, lam, solver, seed), run in table.groupby(RUN, sort=False):
        if solver in names:
            found.setdefault((data, lam, seed), {})[solver] = arrival(run, axis, left)
    return list(found.values())


def order(places: Places) -> list[str]:
    """Return the solvers from fast to slow."""
    return sorted(places, key=lambda solver: places[solver])


def in_budget(table: Any) -> Any:
    """Leave out what is beyond the iterations of the report's figure."""
    budget = table["data"].map(lambda name: BUDGET.get(name, STEPS))
    return table[table["updates"] <= budget]


Good = Callable[[Places], bool]


def races(
    table: Any, axis: str, good: Good, shares: Mapping[float, str] = LEFT
) -> dict[str, dict[float, Count]]:
    """Return in how many runs something is so, by data set and share of the way."""
    found: dict[str, dict[float, Count]] = {}
    table = with_limit(table)
    table = in_budget(table) if axis == "updates" else table
    for name, part in split(table, ("data",)):
        place = place_of(name)
        for left, way in shares.items():
            runs = [good(places) for places in arrivals(part, axis, left)]
            text = f"{place}, {way} % of the way, by {AXES[axis]}"
            found.setdefault(place, {})[left] = Count(text, sum(runs), len(runs))
    return found


def told(counts: dict[str, dict[float, Count]]) -> str:
    """Return counts at 90, 95 and 99 % of the way as one reads them."""
    parts = [
        f"on {place} in {listed(str(c.k) for c in ways.values())} of {next(iter(ways.values())).n} "
        "runs"
        for place, ways in counts.items()
    ]
    return "; ".join(parts)


def judge_race(what: str, *goods: Good) -> Callable[..., Verdict]:
    """Return the judge of a ranking: by iterations for the verdict, by examples for robustness.

    Several conditions make a claim of several parts, each of which is answered by itself.
    """
    parts = dict(zip(what.split(" / "), goods, strict=True))

    def judge(*tables: Any) -> Verdict:
        found = {words: _together(tables, "updates", good) for words, good in parts.items()}
        fair = {words: _together(tables, "examples", good) for words, good in parts.items()}
        rough = {w: _together(tables, "updates", good, COARSE) for w, good in parts.items()}
        counts = {
            (words, place, left): count
            for words, places in found.items()
            for place, ways in places.items()
            for left, count in ways.items()
        }
        answers = {key: mostly(count) for key, count in counts.items()}
        evidence = [Count(f"{key[0]}: {c.what}", c.k, c.n) for key, c in counts.items()]
        return conclude(
            answers.values(),
            f"By iterations, at 90, 95 and 99 % of the way, {_all_told(found)}.",
            evidence,
            _on_what(answers) or "the data set",
            f"By examples read, {_all_told(fair)}. By iterations at 50 and 80 % of the way, "
            f"{_all_told(rough)}.",
        )

    return judge


def _together(
    tables: Sequence[Any], axis: str, good: Good, shares: Mapping[float, str] = LEFT
) -> dict[str, dict[float, Count]]:
    return {k: v for table in tables for k, v in races(table, axis, good, shares).items()}


def _all_told(found: dict[str, dict[str, dict[float, Count]]]) -> str:
    return "; ".join(f"{words} {told(counts)}" for words, counts in found.items())


def _on_what(answers: dict[tuple[Any, ...], str]) -> str:
    """Return the factors whose change alone turns a yes into a no."""
    names = ("the solver", "the data set", "how near the optimum one looks")
    found = []
    for j, name in enumerate(names):
        pairs = (
            (answers[a], answers[b])
            for a in answers
            for b in answers
            if a[j] != b[j] and a[:j] + a[j + 1 :] == b[:j] + b[j + 1 :]
        )
        if (YES, NO) in pairs:
            found.append(name)
    return listed(found) if found else ""


def _before(first: str, second: str) -> Good:
    return lambda places: places[first] < places[second]


judge_slowest = judge_race("PEGASOS is last of the four", lambda p: order(p)[-1] == "PEGASOS")
judge_genomic = judge_race(
    "mini-batch PEGASOS is first of the four", lambda p: order(p)[0] == "mini-batch PEGASOS"
)
judge_simulated = judge_race(
    "ASDCA is first of the four / SDCA is second behind it",
    lambda p: order(p)[0] == "ASDCA",
    lambda p: order(p)[:2] == ["ASDCA", "SDCA"],
)
judge_sdca_first = judge_race("SDCA is ahead of PEGASOS", _before("SDCA", "PEGASOS"))
judge_dual_first = judge_race(
    "SDCA is ahead of mini-batch PEGASOS / ASDCA is ahead of mini-batch PEGASOS",
    _before("SDCA", "mini-batch PEGASOS"),
    _before("ASDCA", "mini-batch PEGASOS"),
)
VARIANTS = {
    "ASDCA is ahead of SDCA": _before("ASDCA", "SDCA"),
    "mini-batch PEGASOS is ahead of PEGASOS": _before("mini-batch PEGASOS", "PEGASOS"),
}


def judge_variants(*tables: Any) -> Verdict:
    """Overall, the mini-batch variants are ahead of their plain forms more often than not."""

    def overall(axis: str) -> tuple[list[Count], dict[str, dict[str, dict[float, Count]]]]:
        found = {words: _together(tables, axis, good) for words, good in VARIANTS.items()}
        counts = []
        for left, way in LEFT.items():
            own = [ways[left] for places in found.values() for ways in places.values()]
            text = f"variants ahead of their plain forms, {way} % of the way, by {AXES[axis]}"
            counts.append(Count(text, sum(c.k for c in own), sum(c.n for c in own)))
        return counts, found

    own, found = overall("updates")
    fair, _ = overall("examples")
    return conclude(
        map(mostly, own),
        "By iterations, at 90, 95 and 99 % of the way, a mini-batch variant is ahead of its plain "
        f"form in {_of_all(own)} runs.",
        own,
        "how near the optimum one looks",
        f"One by one, {_all_told(found)}. By examples read, all together, in {_of_all(fair)} runs.",
        fair,
    )


def _of_all(counts: Sequence[Count]) -> str:
    return f"{listed(str(count.k) for count in counts)} of {counts[0].n}"


def judge_same_rate(table: Any) -> Verdict:
    """SDCA and ASDCA come near their limits within a factor of two of iterations of each other."""
    table = in_budget(with_limit(table))
    effects = []
    for left, way in LEFT.items():
        ratios = []
        for places in arrivals(table, "updates", left, ("SDCA", "ASDCA")):
            ends = [min(places[name][0], float(table["updates"].max())) for name in places]
            ratios.append(np.log2(ends[1] / ends[0]))
        effects.append(mean(ratios, f"log2 of iterations, ASDCA / SDCA, to {way} % of the way"))
    times = listed(f"{2**effect.estimate:.2g}" for effect in effects)
    sentence = (
        f"To 90, 95 and 99 % of its way ASDCA takes {times} times the iterations of SDCA; a run "
        "that does not get there counts with the whole budget."
    )
    read = [Interval(e.what, e.estimate + 1, e.low + 1, e.high + 1, e.n) for e in effects]
    robustness = (
        "Each iteration of ASDCA reads 2 rows: by examples read it takes "
        f"{listed(f'{2**effect.estimate:.2g}' for effect in read)} times as many."
    )
    answers = (within(effect, -1.0, 1.0) for effect in effects)
    return conclude(answers, sentence, effects, "how near the optimum one looks", robustness)


def judge_wide(table: Any) -> Verdict:
    """Mini-batch PEGASOS is first to 90 % of the way on wide data, at the report's lambda = 50."""
    counts, further = _advised(table, "mini-batch PEGASOS", max)
    return conclude(
        map(mostly, counts.values()),
        f"By iterations mini-batch PEGASOS is first {_by_place(counts)}.",
        counts.values(),
        "the data set",
        _over_lambdas(further),
        further,
    )


def judge_tall(table: Any, *figures: Any) -> Verdict:
    """ASDCA is first of the four in the report's own runs, figures 1 and 3; then on other data."""
    found = _together(figures, "updates", lambda places: order(places)[0] == "ASDCA")
    own = [
        Count(f"ASDCA is first: {count.what}", count.k, count.n)
        for ways in found.values()
        for count in ways.values()
    ]
    answers = {("", p, left): mostly(c) for p, ways in found.items() for left, c in ways.items()}
    counts, further = _advised(table, "ASDCA", min)
    return conclude(
        answers.values(),
        f"By iterations, at 90, 95 and 99 % of the way, ASDCA is first of the four {told(found)}.",
        own,
        _on_what(answers) or "the data set",
        "With batches of 8 and the theory's theta, at 90 % of the way and lambda = 1/n, it is "
        f"first {_by_place(counts)}. {_over_lambdas(further)}",
        (*counts.values(), *further),
    )


def _advised(
    table: Any, advised: str, own: Callable[[Any], float]
) -> tuple[dict[str, Count], list[Count]]:
    """Return in how many runs a solver is first to 90 % of the way, by data set.

    First at the report's lambda, the largest or the smallest, then over all lambdas, by either
    axis.  Problems that differ in lambda alone are nearly one problem: they count as one data set.
    """
    table = with_excess(table)
    table = table.assign(limit=table["hinge_optimum"])
    parts = {place_of(name): part for name, part in split(table, ("data",))}
    counts = {
        place: _firsts(part[part["lam"] == own(part["lam"])], "updates", advised, place)
        for place, part in parts.items()
    }
    further = [
        _firsts(part, axis, advised, f"{place}, all lambdas")
        for axis in AXES
        for place, part in parts.items()
    ]
    return counts, further


def _by_place(counts: Mapping[str, Count]) -> str:
    return listed(f"in {count.k} of {count.n} runs on {place}" for place, count in counts.items())


def _over_lambdas(further: Sequence[Count]) -> str:
    half = len(further) // 2
    return (
        f"Over three lambdas it is first {_runs(further[:half])} by iterations, and "
        f"{_runs(further[half:])} by examples read."
    )


def _firsts(part: Any, axis: str, advised: str, place: str) -> Count:
    found = arrivals(part, axis, 0.1, part["solver"].unique())
    k = sum(order(places)[0].startswith(advised) for places in found)
    return Count(f"{advised} first on {place}, by {AXES[axis]}", k, len(found))


def _runs(counts: Sequence[Count]) -> str:
    return f"in {sum(c.k for c in counts)} of {sum(c.n for c in counts)} runs"

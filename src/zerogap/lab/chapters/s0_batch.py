"""Chapter S0: what the size of the batches changes, which the report expects and does not study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zerogap.lab import (
    Arm,
    Count,
    Data,
    Experiment,
    Interval,
    Lines,
    Verdict,
    above,
    claim,
    conclude,
    final,
    listed,
    mean,
    mostly,
    split,
)
from zerogap.lab.chapters.s0_accuracy import SIMULATED
from zerogap.lab.chapters.s0_races import Places, arrivals
from zerogap.lab.statistics import number

BATCHES = (2, 8, 32)
LEFT = 0.05  # of the way: at 95 % the solvers are compared
OWN = "skin"  # the report says it of these data
SOLVERS = ("mini-batch PEGASOS", "ASDCA")


def _arms(passes: float, batches: Sequence[int] = BATCHES) -> tuple[Arm, ...]:
    """Return both solvers with every batch size; all make as many iterations as n * passes."""
    return tuple(
        Arm(f"{name}, batches of {k}", f"{solver}:batch_size={k}", loss=loss, epochs=k * passes)
        for name, solver, loss in zip(
            SOLVERS, ("pegasos", "asdca"), ("hinge", "smooth-hinge"), strict=True
        )
        for k in batches
    )


def with_own_way(table: Any) -> Any:
    """Measure every run by its own objective, from P(0), which becomes 1, to its optimum.

    ASDCA minimises the smooth hinge, whose P(0) is 1/2.
    """
    start = np.where(table["loss"] == "hinge", 1.0, 0.5)
    limit, primal = table["optimum"] / start, table["primal"] / start
    left = ((primal - limit) / (1.0 - limit)).clip(1e-3, 3.0)
    return table.assign(hinge_primal=primal, limit=limit, way_left=left, left_95=LEFT)


def judge_batches(table: Any) -> Verdict:
    """On skin data larger batches need fewer iterations, and an iteration takes longer."""
    found = {data: _compared(part) for data, part in split(with_own_way(table), ("data",))}
    sooner, reading, costs = found[OWN]
    low, high = (number(f(cost.estimate for cost in costs), 2) for f in (min, max))
    sizes = listed(map(str, _sizes(table)))
    sentence = (
        f"On {OWN} data, of batches of {sizes}, the larger ones are at 95 % of the way first by "
        f"iterations in {_told(sooner)}; an iteration with them takes {low} to {high} times the "
        "CPU time."
    )
    others = [counts for data, (counts, _, _) in found.items() if data != OWN]
    robustness = f"By examples read they are first in {_told(reading)}." + "".join(
        f" On other data, by iterations, in {_told(counts)}." for counts in others
    )
    return conclude(
        [*map(mostly, sooner), *(above(cost, 1.0) for cost in costs)],
        sentence,
        (*sooner, *costs),
        "the part, convergence or run time, and the solver",
        robustness,
        (*reading, *(count for counts in others for count in counts)),
    )


def _compared(part: Any) -> tuple[list[Count], list[Count], list[Interval]]:
    """Return how often larger batches are first, by iterations and by examples, and their cost."""
    data = part["data"].iloc[0]
    ends = final(part)
    steps = ends.assign(step=ends["cpu_seconds"] / ends["updates"])
    wide = steps.pivot(index="seed", columns="solver", values="step")
    small, large = (f", batches of {k}" for k in _sizes(part))
    sooner, reading, costs = [], [], []
    for solver in SOLVERS:
        pair = solver + large, solver + small
        sooner.append(_ahead(part, "updates", pair, f"{solver} on {data}, by iterations"))
        reading.append(_ahead(part, "examples", pair, f"{solver} on {data}, by examples read"))
        what = f"CPU time of an iteration, {large[2:]} / {small[2:]}, {solver} on {data}"
        costs.append(mean(wide[pair[0]] / wide[pair[1]], what))
    return sooner, reading, costs


def _sizes(table: Any) -> tuple[int, int]:
    """Return the smallest and the largest batch."""
    sizes = table["solver"].str.rpartition(" ")[2].astype(int)
    return int(sizes.min()), int(sizes.max())


def _ahead(part: Any, axis: str, pair: tuple[str, str], what: str) -> Count:
    """Return in how many runs the first solver of a pair gets to 95 % of the way first."""

    def first(places: Places) -> bool:
        return places[pair[0]] < places[pair[1]]

    runs = [first(places) for places in arrivals(part, axis, LEFT, pair)]
    return Count(f"larger batches first, {what}", sum(runs), len(runs))


def _told(counts: Sequence[Count]) -> str:
    return listed(
        f"{count.k} of {count.n} runs ({count.what.split(', ', 1)[1].rpartition(',')[0]})"
        for count in counts
    )


BATCH = Experiment(
    id="S0-batch",
    title="The size of the batches",
    question="Does a larger batch converge in fewer iterations, and what does an iteration cost?",
    data=(Data("skin", rows=50_000, first=("standardise",)), SIMULATED),
    arms=_arms(10),
    seeds=range(10),
    record=1.25,
    reference=1e-6,
    figures=(
        Lines(
            id="S0-batch",
            title="What is left of the way, by the size of the batches",
            caption="The share of the way from P(0) to the optimum that is left, each solver by "
            "the objective that it minimises. All make as many iterations.",
            covers=("S0-36",),
            y="way_left",
            x=("updates", "examples", "cpu_seconds"),
            x_scale="log",
            side_by_side=True,
            panels="data",
            band="quartiles",
            distinct=True,
            prepare=with_own_way,
            overlay={"left_95": "95 % of the way"},
            labels={"way_left": "share of the way that is left"},
        ),
    ),
    claims=(claim("S0-36", judge_batches),),
    original={
        "batches": "8 on simulated and genomic, 2 on skin; other sizes are not tried",
        "expected": "better convergence and a longer run time with larger ones",
    },
    differs=(
        "lambda = 1/n, 50 000 rows of skin, 10 n iterations; ASDCA takes the theory's theta, which "
        "depends on the size of the batch.",
    ),
    errata=("E0-11", "E0-18"),
    quick={"seeds": range(2), "rows": 2000, "arms": _arms(5)},
)

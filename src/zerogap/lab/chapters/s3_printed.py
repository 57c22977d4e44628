"""Chapter S3: algorithms 3 to 5 as printed, and what a step costs."""

from __future__ import annotations

import itertools

from zerogap.lab import Arm, Data, Experiment, Lines, Table, claim
from zerogap.lab.chapters import s3_printed_judges as judges
from zerogap.lab.chapters.s3_cells import COSTS, cost, textbook

LABELS = {
    "factor": "size, in units of the smallest",
    "operations": "multiplications per step",
    "step_seconds": "seconds per step",
    "numbers": "numbers stored",
}
# the gaps of the clipped steps, beside which the printed ones go far out
ZOOM = {"300 made-up rows, mu = 0.1": (-0.5, 1.5)}


ALGORITHMS = {
    "algorithm 3": "1",
    "algorithm 4": "1",
    "algorithm 5, b = 16": "16",
    "algorithm 5, b = 256": "256",
    "algorithm 5, b = N": "N",
}


PRINTED = Experiment(
    id="S3-printed",
    title="Algorithms 3 to 5 as printed",
    question="Do the printed algorithms work, word for word?",
    data=(Data(label="300 made-up rows"), Data("mini-mnist", label="1000 digits")),
    losses=("multiclass-hinge",),
    lams=(1e-1, 1e-2),
    arms=tuple(
        Arm(
            f"{name}, {'clipped' if clipped else 'as printed'}",
            "bcfw",
            columns={"algorithm": int(name[10]), "b": b, "clipped": clipped},
        )
        for clipped, (name, b) in itertools.product((True, False), ALGORITHMS.items())
    ),
    seeds=range(3),
    epochs=12,
    function=textbook,
    figures=(
        Lines(
            id="S3-printed",
            title="P - D by passes, with the step clipped to [0, 1] and as printed",
            caption="A duality gap cannot be negative: where it is, the iterate is not feasible. "
            "Blocks are contiguous, as printed.",
            covers=("S3-10", "S3-11", "S3-14", "S3-15", "S3-17"),
            x=("epoch", "updates"),
            y=("gap", "primal", "dual"),
            scale="linear",
            panels="panel",
            zoom=ZOOM,
            distinct=True,
            prepare=judges.by_problem,
            labels=LABELS,
        ),
    ),
    claims=(
        claim("S3-12", judges.judge_subgradient),
        claim("S3-10", judges.judge_gap),
        claim("S3-15", judges.judge_unclipped),
    ),
    original={"algorithms": "gamma* without clipping, no stopping rule"},
    differs=(
        "Word for word but for mistyped signs and indices (E3-2, E3-3, E3-5, E3-6), which no "
        "program could run; the missing clip is tried both ways.",
    ),
    errata=("E3-1", "E3-2", "E3-3", "E3-4", "E3-5", "E3-6", "E3-8", "E3-12"),
    quick={"lams": (1e-1,), "epochs": 5, "seeds": range(2), "rows": None},
)


COST = Experiment(
    id="S3-cost",
    title="Time of a step and memory",
    question="How do time and memory grow with rows N, features d, classes C and block size b?",
    arms=tuple(
        Arm(name, {"SGD": "sgd", "GD": "gd"}.get(name, "bcfw"), columns={"repeats": 7})
        for name in COSTS
    ),
    seeds=range(5),
    timed=True,
    function=cost,
    figures=(
        Lines(
            id="S3-cost",
            title="Operations per step as one size grows",
            covers=("S3-13", "S3-16", "S3-18"),
            x="factor",
            y=("operations", "step_seconds", "numbers"),
            distinct=True,
            x_scale="log",
            panels="grows",
            prepare=lambda table: table.assign(grows=table["grows"] + " grows"),
            labels=LABELS,
        ),
    ),
    tables=(Table("S3-cost", "Exponents, measured and stated", judges.exponents),),
    claims=(
        claim("S3-13", judges.judge_cost("Frank-Wolfe, A dense", "GD", "SGD")),
        claim("S3-16", judges.judge_cost("algorithm 4")),
        claim("S3-18", judges.judge_cost("algorithm 5", "SGD")),
    ),
    original={"costs": "on paper (questions 8, 12 and 13)"},
    differs=(
        "O() counts operations: multiplications and stored numbers are counted, and time is "
        "measured beside them, at two sizes, because arrays that outgrow the processor's cache "
        "while they grow make time grow faster than the number of operations.",
        "A has only 2 d non-zeros in a column: stored sparse, Frank-Wolfe takes O(N d C).",
        "The library keeps dual variables instead of the blocks' weights: O(N C + C d) memory.",
    ),
    errata=("E3-7",),
    quick={"seeds": range(2)},
)

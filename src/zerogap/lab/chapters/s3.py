"""Chapter S3: gradient descent, sub-gradients and block-coordinate Frank-Wolfe on MNIST."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from zerogap.lab import Arm, Chapter, Claim, Data, Experiment, Gallery, Lines, Table
from zerogap.lab.chapters import s3_judges as judges
from zerogap.lab.chapters.s3_cells import (
    COSTS,
    cost,
    digits,
    pictures,
    textbook,
    validation_error,
)
from zerogap.lab.chapters.s3_judges import (
    AVERAGED,
    BATCHES,
    BLOCKS,
    DEFAULT,
    HINGE_STEPS,
    SINGLE,
    SMALL,
    TUNED,
    WORD_FOR_WORD,
)

MINI, MNIST = Data("mini-mnist"), Data("mnist")
TINY = Data("mini-mnist", label="500 rows", rows=500)
MU = 1e-3
MUS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
STEPS = (0.01, 0.1, 0.3)
METRICS = ("test_error", validation_error)

ROOT = "sgd:schedule=sqrt:step={:g}"  # the schedule of the practical
SSGD = ROOT.format(0.01)
SGDS = {f"SGD, step {step:g} / sqrt(t)": ROOT.format(step) for step in STEPS}
BCFW = {
    BLOCKS: "bcfw:batch_size=256",
    SINGLE: "bcfw",
    AVERAGED: "bcfw:output=weighted-average:t0=0",
}
RIVALS = {
    SINGLE: BCFW[SINGLE],
    AVERAGED: BCFW[AVERAGED],
    **{f"SSGD, step {step:g} / sqrt(t)": ROOT.format(step) for step in HINGE_STEPS},
}
ALGORITHMS = {
    "algorithm 3": "1",
    "algorithm 4": "1",
    "algorithm 5, b = 16": "16",
    "algorithm 5, b = 256": "256",
    "algorithm 5, b = N": "N",
}
LABELS = {
    "batch": "rows per batch or block",
    "estimate": "objective as the practical prints it",
    "excess": "objective / optimum - 1",
    "reached": "dual objective / optimum",
    "relative_gap": "duality gap / objective",
    "validation_error": "validation error",
    "lam": "mu",
    "factor": "size, in units of the smallest",
    "step_seconds": "seconds per step",
    "numbers": "numbers stored",
}


def _descent(passes: int, more: int) -> tuple[Arm, ...]:
    """Return GD, which has nothing random, for so many passes, and SGD for `more`."""
    gd = {f"GD, step {step:g}": f"gd:step={step:g}" for step in (0.01, 0.1, 0.2)}
    gd["GD, step 1 / L"] = "gd"
    return (
        *(Arm(name, solver, epochs=passes, seeds=(0,)) for name, solver in gd.items()),
        *(Arm(name, f"{sgd}:batch_size=64", epochs=more) for name, sgd in SGDS.items()),
        *(
            Arm(f"{name}, batches of 256", f"{sgd}:batch_size=256", epochs=more)
            for name, sgd in SGDS.items()
        ),
    )


def _sweep(solvers: Mapping[str, str], batches: Sequence[int] = BATCHES) -> tuple[Arm, ...]:
    """Return an arm per solver, batch and budget."""
    return tuple(
        Arm(name, f"{solver}:batch_size={batch}", updates=updates, columns=columns)
        for (name, solver), batch in itertools.product(solvers.items(), batches)
        for updates, budget in ((20, "20 updates"), (None, "one pass"))
        for columns in ({"batch": batch, "budget": budget},)
    )


def _by_mu(mus: Sequence[float], patience: Mapping[float, int]) -> tuple[Arm, ...]:
    """Return BCFW for 30 passes, or as many as it is worth, and the others for fewer."""
    tuned = "sgd:batch_size=4:step=0.003:schedule=inverse:output=average"
    return (
        *(Arm(SINGLE, BCFW[SINGLE], lam=mu, epochs=patience.get(mu, 30)) for mu in mus),
        Arm(BLOCKS, BCFW[BLOCKS], epochs=30),
        Arm(AVERAGED, BCFW[AVERAGED], epochs=20),
        Arm(DEFAULT, f"{SSGD}:batch_size=256", epochs=5),
        Arm(SMALL, tuned, epochs=5),
    )


_ORIGINAL = {
    "data": "MNIST, 50 000 + 10 000 + 10 000 rows, normalised; mini-mnist 5000 + 1000 + 1000",
    "defaults": "5 epochs, batches of 256, step 0.01 / sqrt(t), mu = 0.001, seed at random",
    "start": "uniform random w for GD and SGD, zero for BCFW",
}
_SPLIT = (
    "The rows are split with a fixed seed, sizes as in the practical's code; which rows its "
    "mini-mnist had is not known.",
    "All methods start at w = 0.",
)
PICTURES = Experiment(
    id="S3-pictures",
    title="Digits, and a conditional-gradient step",
    question="What do the data look like, and what does a step of Frank-Wolfe do?",
    data=(MINI,),
    seeds=(0,),
    function=pictures,
    figures=(
        Gallery(
            id="S3-digits",
            title="Two examples of each digit",
            covers=("S3-35",),
            where={"figure": "digits"},
        ),
        Gallery(
            id="S3-step",
            title="A conditional-gradient step on a triangle",
            caption="Blue: level lines of the objective. Brown: level lines of its linear model at "
            "x, dashed where it is below its value at x. The best vertex s of the linear model is "
            "a corner; the step goes from x towards s, as far as is best.",
            covers=("S3-35", "S3-11"),
            where={"figure": "step"},
        ),
    ),
    differs=("The step is drawn in two dimensions; the practical shows a bowl in three.",),
)
DESCENT = Experiment(
    id="S3-descent",
    title="Gradient descent and SGD, cross-entropy",
    question="Is gradient descent slow on the full set, and SGD much faster?",
    data=(MINI, MNIST),
    losses=("softmax",),
    lams=(MU,),
    arms=_descent(30, 5),
    seeds=range(3),
    record=2.0,
    metrics=METRICS,
    function=digits,
    figures=(
        Lines(
            id="S3-descent",
            title="Objective by iteration, and by examples read",
            caption="An iteration of GD reads all rows, one of SGD 64: left the axis of the "
            "practical, right the fair one.",
            covers=("S3-07", "S3-08", "S3-09", "S3-20", "S3-21", "S3-22", "S3-23"),
            x=("updates", "examples", "epoch", "seconds", "cpu_seconds"),
            y=("primal", "estimate", "validation_error", "test_error"),
            side_by_side=True,
            x_scale="log",
            panels="data",
            prepare=judges.begun,
            labels=LABELS,
        ),
    ),
    claims=(
        Claim("S3-31a", "Gradient descent is slow on the full set", judges.judge_full_set),
        Claim(
            "S3-31b",
            "SGD is much faster: the practical's step for both",
            judges.judge_speed(judges.as_given),
        ),
        Claim(
            "S3-31c", "SGD is much faster: each with its best step", judges.judge_speed(judges.best)
        ),
        Claim(
            "S3-31d",
            "SGD is faster even with the practical's step and GD with its best",
            judges.judge_unequal,
        ),
    ),
    original={**_ORIGINAL, "steps": "GD also with --init-lr 0.1; SGD also with --batch-size 64"},
    differs=(
        *_SPLIT,
        "GD keeps its step, as theory allows for a smooth objective; the practical's code divides "
        "it by sqrt(t). GD goes on for 30 passes.",
        "Longer steps than the practical's 0.01 are shown for both, because 0.01 suits neither. "
        "The best step is the best of the runs shown, for GD and SGD alike.",
    ),
    errata=("E3-9", "E3-10", "E3-11"),
    quick={"data": (TINY, MINI), "arms": _descent(5, 1), "seeds": range(2), "record": 4.0},
)
BATCH = Experiment(
    id="S3-batch",
    title="Batch size of SGD, cross-entropy",
    question="Which batch size is good, at a fixed number of updates and for one pass?",
    data=(MINI, MNIST),
    losses=("softmax",),
    lams=(MU,),
    arms=_sweep(SGDS),
    seeds=range(3),
    epochs=1,
    record="end",
    metrics=METRICS,
    function=digits,
    figures=(
        Lines(
            id="S3-batch",
            title="Objective by batch size",
            caption="After 20 updates large batches win, having read up to a thousand times as "
            "much; after one pass small ones.",
            x="batch",
            y=("primal", "validation_error", "test_error"),
            x_scale="log",
            panels="panel",
            prepare=judges.by_budget,
            labels=LABELS,
        ),
    ),
    claims=(Claim("S3-31e", "It takes a good batch size", judges.judge_batch),),
    original={**_ORIGINAL, "batch": "64 and 256; students were to try others"},
    differs=(
        *_SPLIT,
        "Each batch size is run with three steps: a step that suits one does not suit another.",
    ),
    quick={"data": (MINI,), "arms": _sweep(SGDS, BATCHES[1::4]), "seeds": range(2), "rows": 1500},
)
DUEL = Experiment(
    id="S3-duel",
    title="Stochastic sub-gradients and block-coordinate Frank-Wolfe, multiclass hinge",
    question="Has BCFW the lower objective after one pass, without a learning rate?",
    data=(MINI, MNIST),
    losses=("multiclass-hinge",),
    lams=(MU,),
    arms=(
        Arm(WORD_FOR_WORD, "bcfw:batch_size=256", columns={"printed": 256}),
        *(Arm(name, solver) for name, solver in BCFW.items()),
        Arm(DEFAULT, f"{SSGD}:batch_size=256"),
        Arm(TUNED, "sgd:output=average", epochs=1, columns={"tuned": True}),
    ),
    seeds=range(5),
    epochs=5,
    metrics=METRICS,
    function=digits,
    figures=(
        Lines(
            id="S3-duel",
            title="Objective by iteration, and by passes",
            caption="BCFW proper has an iteration per row; only blocks and batches of 256 can be "
            "compared by iterations. The tuned SSGD is tuned for one pass.",
            covers=("S3-15", "S3-17", "S3-24", "S3-25"),
            x=("updates", "epoch", "seconds", "cpu_seconds"),
            y=("primal", "gap", "validation_error", "test_error"),
            side_by_side=True,
            x_scale="log",
            panels="data",
            prepare=judges.begun,
            labels=LABELS,
        ),
    ),
    tables=(Table("S3-duel", "After one pass, and after five", judges.first_pass),),
    claims=(
        Claim(
            "S3-32a",
            "After one epoch BCFW is below SSGD: both as the practical sets them, 256 rows a step",
            judges.judge_duel(1, BLOCKS, DEFAULT),
        ),
        Claim(
            "S3-32b",
            "The same, single rows, against a tuned SSGD: the last iterate of BCFW",
            judges.judge_duel(1, SINGLE, TUNED),
        ),
        Claim(
            "S3-32c",
            "The same, single rows, against a tuned SSGD: the weighted average of BCFW",
            judges.judge_duel(1, AVERAGED, TUNED),
        ),
        Claim(
            "S3-32d",
            "BCFW converges in fewer iterations than SSGD: after five passes, 256 rows a step",
            judges.judge_duel(5, BLOCKS, DEFAULT),
        ),
    ),
    original=_ORIGINAL,
    differs=(
        *_SPLIT,
        "Beside the practical's settings there are BCFW proper, with single rows and with a "
        "weighted average, and an SSGD with the best of 20 settings (batch 4 or 16, step, "
        "schedule; averaged over the second half), found with a seed that is not measured.",
    ),
    errata=("E3-4", "E3-5", "E3-6", "E3-13"),
    quick={"data": (MINI,), "seeds": range(2), "rows": 1500},
)
RATE = Experiment(
    id="S3-rate",
    title="Rows per step, with and without a learning rate",
    question="What is it worth that BCFW needs no learning rate?",
    data=(MINI,),
    losses=("multiclass-hinge",),
    lams=(MU,),
    arms=_sweep(RIVALS),
    seeds=range(4),
    epochs=1,
    record="end",
    metrics=METRICS,
    function=digits,
    figures=(
        Lines(
            id="S3-rate",
            title="Objective by rows per step",
            covers=("S3-14", "S3-17"),
            x="batch",
            y=("primal", "validation_error", "test_error"),
            x_scale="log",
            panels="panel",
            prepare=judges.by_budget,
            labels=LABELS,
        ),
    ),
    claims=(Claim("S3-32e", "BCFW needs no learning rate", judges.judge_no_rate),),
    original=_ORIGINAL,
    differs=_SPLIT,
    quick={"arms": _sweep(RIVALS, BATCHES[1::4]), "seeds": range(2), "rows": None},
)
MU_SWEEP = Experiment(
    id="S3-mu",
    title="BCFW by mu",
    question="How does the speed of BCFW depend on mu?",
    data=(MINI,),
    losses=("multiclass-hinge",),
    lams=MUS,
    arms=_by_mu(MUS, {MU: 180}),
    seeds=range(3),
    metrics=METRICS,
    function=digits,
    reference=0.05,
    figures=(
        Lines(
            id="S3-mu-passes",
            title="Distance from the optimum by passes, for each mu",
            covers=("S3-33",),
            x=("epoch", "updates", "seconds", "cpu_seconds"),
            y=("excess", "relative_gap", "primal", "test_error"),
            by="lam",
            panels="solver",
            x_scale="log",
            prepare=judges.with_shares,
            labels=LABELS,
        ),
        Lines(
            id="S3-mu-five",
            title="After five passes, by mu",
            covers=("S3-33", "S3-34"),
            x="lam",
            y=("excess", "relative_gap", "primal", "validation_error", "test_error"),
            x_scale="log",
            prepare=lambda table: judges.after(5)(judges.with_shares(table)),
            labels=LABELS,
        ),
    ),
    tables=(Table("S3-mu", "BCFW by mu", judges.passes_to_half),),
    claims=(
        Claim("S3-33a", "A smaller mu makes BCFW slower", judges.judge_mu),
        Claim("S3-33b", "The dual is easy for large mu and hard for small", judges.judge_dual),
    ),
    original={**_ORIGINAL, "mu": "powers of 10, which ones is left to the student"},
    differs=(
        *_SPLIT,
        "The optimum is known from a long run of SDCA, to 5 %.",
        "SSGD in batches of 4 has the setting that is best for one pass at mu = 0.001.",
    ),
    quick={"lams": MUS[:2], "arms": _by_mu(MUS[:2], {}), "seeds": range(2), "rows": 1500},
)
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
            caption="A duality gap cannot be negative: where it is, the iterate is not feasible.",
            covers=("S3-10", "S3-11", "S3-14", "S3-15", "S3-17"),
            x=("epoch", "updates"),
            y=("gap", "primal", "dual"),
            scale="linear",
            panels="panel",
            prepare=judges.by_problem,
            labels=LABELS,
        ),
    ),
    claims=(
        Claim(
            "S3-12",
            "The conditional gradient of the dual is a sub-gradient of the primal",
            judges.judge_subgradient,
        ),
        Claim(
            "S3-10", "The gap costs nothing: mu <w, w - w_s> - l + l_s = P - D", judges.judge_gap
        ),
        Claim("S3-15", "The step gamma* needs no clipping", judges.judge_unclipped),
    ),
    original={"algorithms": "gamma* without clipping, no stopping rule"},
    differs=("Mistyped signs and indices are corrected; the missing clip is tried both ways.",),
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
            title="Seconds per step as one size grows",
            covers=("S3-13", "S3-16", "S3-18"),
            x="factor",
            y=("step_seconds", "numbers"),
            x_scale="log",
            panels="grows",
            labels=LABELS,
        ),
    ),
    tables=(Table("S3-cost", "Exponents, measured and stated", judges.exponents),),
    claims=(
        Claim(
            "S3-13",
            "Frank-Wolfe with a dense A takes O(N d C^2) time and memory, SGD O(d C) a row",
            judges.judge_cost("Frank-Wolfe, A dense", "SGD"),
        ),
        Claim(
            "S3-16",
            "Algorithm 4 takes O(N C d) memory and O(C d) time",
            judges.judge_cost("algorithm 4"),
        ),
        Claim(
            "S3-18",
            "Algorithm 5 takes O(M C d) memory, M = N / b, and O(b C d) time, SGD the same time",
            judges.judge_cost("algorithm 5", "SGD"),
        ),
    ),
    original={"costs": "on paper (questions 8, 12 and 13)"},
    differs=(
        "Time is measured at two sizes, because arrays that outgrow the processor's cache while "
        "they grow make time grow faster than the number of operations.",
        "A has only 2 d non-zeros in a column: stored sparse, Frank-Wolfe takes O(N d C).",
        "The library keeps dual variables instead of the blocks' weights: O(N C + C d) memory.",
    ),
    errata=("E3-7",),
    quick={"seeds": range(2)},
)
CHAPTER = Chapter(
    id="S3",
    title="Digits: gradient descent, sub-gradients, Frank-Wolfe",
    source="Oxford (AIMS CDT) practical 2: GD, SGD and block-coordinate Frank-Wolfe on MNIST",
    introduction="The practical lets students find out that SGD outruns gradient descent on a "
    "large set, and that block-coordinate Frank-Wolfe (BCFW) does without a learning rate. Here "
    "each of its runs is repeated with several seeds, drawn by iterations and by passes over the "
    "data, and BCFW meets a tuned opponent as well.",
    experiments=(PICTURES, DESCENT, BATCH, DUEL, RATE, MU_SWEEP, PRINTED, COST),
    notes={
        "S3-03": "MNIST is split into 50 000 rows for training, 10 000 for validation and 10 000 "
        "for test; `zerogap practical` uses the same rows.",
        "S3-04": "mini-mnist has 5000 + 1000 + 1000 of these rows, as in the practical's code; its "
        "text says 1000.",
        "S3-34": "The task error is the share of misclassified rows.",
    },
)

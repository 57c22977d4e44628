"""Chapter S0: SDCA against Pegasos, with ASDCA and mini-batches, on three kinds of data."""

from __future__ import annotations

from typing import Any

from zerogap.lab import Arm, Chapter, Data, Experiment, Lines, Table, claim
from zerogap.lab.chapters import s0_judges as judges
from zerogap.lab.chapters import s0_outputs as outputs
from zerogap.lab.chapters import s0_races as races
from zerogap.lab.chapters.s0_accuracy import ORDERS, SIMULATED, STEPS, TABLE_2
from zerogap.lab.chapters.s0_batch import BATCH
from zerogap.lab.chapters.s0_cells import description
from zerogap.lab.chapters.s0_theory import (
    DUALITY,
    GENOMIC,
    PROMISE,
    RANDOM,
    RATES,
    TALL,
    WIDE,
    textbook_sdca,
)

SKIN = Data("skin", first=("standardise",))
LAMBDAS = (50.0, 10.0, 1.0, 0.1, 0.01, 0.001)
FEW_LAMBDAS = (50.0, 1.0, 0.01)
AXES = ("updates", "examples", "epoch", "cpu_seconds")
RACES = ("S0-fig1", "S0-fig2", "S0-fig3")
LABELS = {"suboptimality": "own objective minus its optimum"}
NO_VERT = (
    "The report's 184 x 4654 matrix is not published: gravier (168 x 2905, the same question, DNA "
    "copy numbers) replaces it. With the course's xtrain.txt, all is drawn on vert as well."
)
REPEATS = "Median and range over repeated runs, where the report shows one run."
BUDGET = "SDCA and PEGASOS go on until they have read as many examples as the mini-batch solvers."
THETA = (
    "ASDCA runs with the report's theta and with the largest one that the theory allows; its "
    "gamma is 1, as there."
)


def _four(steps: int, batch: int, theta: float, reading: int | None = None) -> tuple[Arm, ...]:
    """Return the report's four solvers; those without batches make `reading` steps."""
    single = steps if reading is None else reading
    smooth: dict[str, Any] = {"loss": "smooth-hinge", "updates": steps}
    return (
        Arm("SDCA", textbook_sdca("random"), updates=single),
        Arm("PEGASOS", "pegasos", updates=single),
        Arm("ASDCA", f"asdca:batch_size={batch}:theta={theta}", **smooth),
        Arm("ASDCA, theta of the theory", f"asdca:batch_size={batch}", **smooth),
        Arm("mini-batch PEGASOS", f"pegasos:batch_size={batch}", updates=steps),
    )


TABLE_1 = Experiment(
    id="S0-tab1",
    title="Table 1: the data",
    question="Which data are used, and how large are they?",
    data=(SIMULATED, *GENOMIC, SKIN),
    lams=(1.0,),
    seeds=(10,),
    function=description,
    tables=(Table("S0-tab1", "The data sets, standardised", outputs.shapes),),
    original={"table 1": "simulated 1000 x 10, genomic 184 x 4654, skin 245057 x 3"},
    differs=(NO_VERT, "All features are standardised, as in the report's notebook."),
    quick={"rows": None, "seeds": (10,)},
)


def _race(id: str, place: str, batch: int, theta: float, covers: str, **more: Any) -> Experiment:
    title = f"Figure {id[-1]}: four solvers on {place} data"
    steps = STEPS[place]
    return Experiment(
        id=id,
        title=title,
        question="Which of the four solvers brings the objective down first?",
        arms=_four(steps, batch, theta, batch * steps),
        metrics=("primal:hinge",),
        reference=1e-6,
        figures=(
            Lines(
                id=id,
                title=title,
                caption=f"Left the report's axis, where a step of {batch} examples counts as one; "
                "right the examples read. ASDCA minimises the smooth hinge, so that its hinge "
                "objective may end above the others'.",
                covers=(covers,),
                y=("hinge_primal", "suboptimality"),
                x=AXES,
                x_scale="log",
                side_by_side=True,
                panels="data",
                prepare=races.with_place,
                labels=LABELS,
            ),
            Lines(
                id=f"{id}-way",
                title=f"{title}: what is left of the way",
                caption="Where the verdicts are given: the share of the way from P(0) = 1 to the "
                "solver's own limit that is still before it. ASDCA's limit is the hinge objective "
                "at the optimum of the smooth hinge. Drawn between 0.001 and 3.",
                y="way_left",
                x=AXES,
                x_scale="log",
                side_by_side=True,
                panels="data",
                band="quartiles",
                prepare=races.with_way,
                overlay=races.WAYS,
                labels={"way_left": "share of the way that is left"},
            ),
        ),
        errata=("E0-11", "E0-13", "E0-18", "E0-20"),
        **more,
    )


FIGURE_1 = _race(
    "S0-fig1",
    "simulated",
    8,
    0.15,
    "S0-41",
    data=(SIMULATED,),
    lams=(1e-3,),
    seeds=range(20),
    record=1.1,
    claims=(claim("S0-50c", races.judge_simulated),),
    original={
        "data": "1000 x 10, X, beta and noise standard normal, 33 % test rows, one sample",
        "lambda": "1/1000 (n = 670)",
        "budget": "33 500 iterations, batch 8, theta 0.15; 10 000 of them drawn",
    },
    differs=("Every run has a sample of its own.", BUDGET, THETA, REPEATS),
    quick={"rows": None, "seeds": range(2), "arms": _four(8_000, 8, 0.15, 64_000)},
)
FIGURE_2 = _race(
    "S0-fig2",
    "genomic",
    8,
    0.15,
    "S0-42",
    data=GENOMIC,
    lams=(50.0,),
    seeds=range(20),
    record=1.1,
    claims=(claim("S0-50b", races.judge_genomic),),
    original={
        "data": "184 x 4654, standardised",
        "lambda": "50",
        "budget": "9 200 iterations, batch 8, theta 0.15; 1 000 of them drawn",
    },
    differs=(NO_VERT, BUDGET, THETA, REPEATS),
    quick={"rows": None, "seeds": range(2), "arms": _four(2_300, 8, 0.15, 18_400)},
)
FIGURE_3 = _race(
    "S0-fig3",
    "skin",
    2,
    0.75,
    "S0-43",
    data=(SKIN,),
    seeds=range(10),
    record=1.2,
    claims=(
        claim("S0-50a", races.judge_slowest, *RACES),
        claim("S0-57a", races.judge_sdca_first, *RACES),
        claim("S0-57b", races.judge_variants, *RACES),
        claim("S0-58a", races.judge_dual_first, "S0-fig1", "S0-fig3"),
        claim("S0-58b", races.judge_same_rate),
    ),
    original={
        "data": "245 057 x 3, standardised, skin +1",
        "lambda": "1/n",
        "budget": "3 epochs = 735 171 iterations, batch 2, theta 0.75; a point every 50 000",
    },
    differs=("Points at growing distances instead of every 50 000 iterations.", BUDGET, THETA),
    quick={"seeds": range(2), "rows": 20_000, "arms": _four(60_000, 2, 0.75, 120_000)},
)


def _orders(id: str, place: str, covers: tuple[str, ...], **more: Any) -> Experiment:
    title = f"Figure {id[-1]}: order of visits of SDCA on {place} data"
    return Experiment(
        id=id,
        title=title,
        question="Does it matter in which order SDCA visits the rows?",
        arms=ORDERS,
        reference=1e-6,
        figures=(
            Lines(
                id=id,
                title=title,
                caption="Random with repetition, a new permutation each epoch, or one random order "
                "kept. The verdicts are given by the mean distance, which is what one sees on the "
                "report's linear axis; the logarithmic one shows the end of the runs, too.",
                covers=covers,
                y=("suboptimality", "primal"),
                x=("epoch", "updates", "examples", "cpu_seconds"),
                panels="problem",
                prepare=races.with_problem,
                band="quartiles",
                distinct=True,
            ),
        ),
        **more,
    )


FIGURE_4 = _orders(
    "S0-fig4",
    "genomic",
    ("S0-44",),
    data=GENOMIC,
    lams=LAMBDAS,
    seeds=range(20),
    epochs=20,
    record=42,
    claims=(claim("S0-52b", judges.judge_three_orders),),
    original={"lambda": "50", "budget": "50 epochs"},
    differs=(NO_VERT, "Drawn for all lambdas of figures 8 to 11; 20 epochs show all there is."),
    quick={"rows": None, "seeds": range(3), "lams": FEW_LAMBDAS},
)
FIGURE_5 = _orders(
    "S0-fig5",
    "skin",
    ("S0-45",),
    data=(SKIN,),
    seeds=range(10),
    epochs=3,
    record=12_253,
    claims=(
        claim("S0-52a", judges.judge_order("cyclic", "random")),
        claim("S0-59", judges.judge_permutation),
        claim("S0-52c", judges.judge_default, "S0-fig4", "S0-fig5"),
    ),
    original={"lambda": "1/n", "budget": "3 epochs, a point every 50 000 iterations"},
    differs=("20 points per epoch.",),
    quick={"seeds": range(3), "rows": 20_000, "epochs": 3, "record": 1_000},
)
FIGURE_6 = Experiment(
    id="S0-fig6",
    title="Figure 6: PEGASOS with and without projection on genomic data",
    question="What does the projection on the ball of radius 1 / sqrt(lambda) change?",
    data=GENOMIC,
    lams=LAMBDAS,
    arms=(
        Arm("PEGASOS", "pegasos", updates=STEPS["genomic"]),
        Arm("PEGASOS, projected", "pegasos:projection=true", updates=STEPS["genomic"]),
    ),
    record=46,
    metrics=("primal:hinge",),
    reference=1e-6,
    figures=(
        Lines(
            id="S0-fig6",
            title="Figure 6: PEGASOS with and without projection, by lambda",
            caption="The report shows lambda = 50.",
            covers=("S0-46",),
            y=("primal", "suboptimality"),
            x=AXES,
            panels="problem",
            prepare=races.with_problem,
            distinct=True,
        ),
    ),
    claims=(
        claim("S0-54a", judges.judge_limit),
        claim("S0-54b", judges.judge_smoother),
    ),
    original={"lambda": "50", "budget": "9 200 iterations"},
    differs=(NO_VERT, "Drawn for all lambdas of figures 8 to 11.", REPEATS),
    errata=("E0-15",),
    quick={"rows": None, "seeds": range(3), "lams": FEW_LAMBDAS},
)


def _by_lambda(number: int, *solvers: str) -> Lines:
    smooth = solvers[0] == "ASDCA"
    hinge = " ASDCA minimises the smooth hinge; drawn is the ordinary hinge objective, as there."
    first, second = ("hinge_primal", "primal") if smooth else ("primal", "hinge_primal")
    return Lines(
        id=f"S0-fig{number}",
        title=f"Figure {number}: {solvers[0]} by lambda, genomic data",
        caption="A line per lambda, from dark (small) to light (large)." + hinge * smooth,
        covers=("S0-48",),
        where={"solver": solvers},
        y=(first, "suboptimality", second),
        x=AXES,
        by="lam",
        panels="run_of",
        prepare=races.with_problem,
        labels=LABELS,
    )


FIGURES_8_11 = Experiment(
    id="S0-fig8-11",
    title="Figures 8 to 11: influence of lambda on genomic data",
    question="Does a larger lambda make the solvers faster, and the objective larger?",
    data=GENOMIC,
    lams=LAMBDAS,
    arms=_four(STEPS["genomic"], 8, 0.15),
    seeds=range(6),
    record=46,
    metrics=("primal:hinge",),
    reference=1e-6,
    figures=(
        _by_lambda(8, "SDCA"),
        _by_lambda(9, "PEGASOS"),
        _by_lambda(10, "ASDCA", "ASDCA, theta of the theory"),
        _by_lambda(11, "mini-batch PEGASOS"),
    ),
    claims=(
        claim("S0-55a", judges.judge_objective),
        claim("S0-55b", judges.judge_faster),
    ),
    original={
        "lambda": "50, 10, 1, 0.1, 0.01, 0.001",
        "budget": "9 200 iterations, batch 8, theta 0.15",
    },
    differs=(NO_VERT, THETA, REPEATS),
    errata=("E0-11", "E0-13"),
    quick={
        "rows": None,
        "seeds": range(2),
        "lams": FEW_LAMBDAS,
        "arms": _four(2_300, 8, 0.15),
    },
)


CHAPTER = Chapter(
    id="S0",
    title="SDCA against PEGASOS",
    source="Ouillade & Vengathesa Sarma, ENSAE 2017",
    introduction="The report compares SDCA, PEGASOS, and a mini-batch form of each on simulated, "
    "genomic and skin data, by the primal objective against iterations. A mini-batch step reads "
    "8 examples and counts as one iteration there, so every figure has a second axis here: "
    "examples read.\n\n"
    "Its table 2 is one run on 330 test rows. Here it comes with 100 repeats.",
    experiments=(
        TABLE_1,
        FIGURE_1,
        FIGURE_2,
        FIGURE_3,
        FIGURE_4,
        FIGURE_5,
        FIGURE_6,
        TABLE_2,
        FIGURES_8_11,
        WIDE,
        TALL,
        BATCH,
        DUALITY,
        RATES,
        PROMISE,
        RANDOM,
    ),
    notes={
        "S0-56": "The report gives no run times because it computes the objective inside the loop. "
        "Here the clock stands still while the objective is computed: see the axis of CPU seconds.",
    },
)

"""Chapter S0, second part: its advice on more data, and its theorems held against runs."""

from __future__ import annotations

from typing import Any

from zerogap.lab import Arm, Data, Experiment, Lines, Table, claim
from zerogap.lab.chapters import s0_outputs as outputs
from zerogap.lab.chapters import s0_races as races
from zerogap.lab.chapters.s0_cells import duality, largest_norm, promised_steps, steps_to_accuracy

GENOMIC = (Data("gravier", first=("standardise",)), Data("vert", first=("standardise",)))


def textbook_sdca(sampling: str) -> str:
    """Return SDCA as in the report: rows as given, none left out."""
    return f"sdca:sampling={sampling}:layout=given:shrink=false"


def _advice(shape: str, advised: str, **more: Any) -> Experiment:
    title = f"The advice for {shape} data: {advised}"
    asdca = "asdca:batch_size=8"
    return Experiment(
        id=f"S0-{shape}",
        title=title,
        question="Is the advised solver the fastest, by iterations and by examples read?",
        arms=(
            Arm("SDCA", textbook_sdca("random")),
            Arm("PEGASOS", "pegasos"),
            Arm("ASDCA", asdca, loss="smooth-hinge"),
            Arm("ASDCA, gamma 0.1", asdca, loss="smooth-hinge:gamma=0.1"),
            Arm("mini-batch PEGASOS", "pegasos:batch_size=8"),
        ),
        record=1.25,
        metrics=("primal:hinge",),
        reference=1e-5,
        figures=(
            Lines(
                id=f"S0-{shape}",
                title=title,
                prepare=lambda table: races.with_problem(races.with_excess(table)),
                y=("excess", "hinge_primal"),
                x=("updates", "examples", "epoch", "cpu_seconds"),
                side_by_side=True,
                x_scale="log",
                panels="problem",
                labels={"excess": "hinge objective minus its optimum"},
            ),
        ),
        original={"evidence": "figures 1 to 3, one run each, on the axis of iterations"},
        differs=(
            "Two data sets, three lambdas; all solvers read the same number of examples. Problems "
            "that differ in lambda alone are nearly one problem and count once, by data set.",
            "ASDCA takes the theta of the theory, with gamma = 1 and 0.1: the better one counts.",
        ),
        errata=("E0-18",),
        **more,
    )


WIDE = _advice(
    "wide",
    "mini-batch PEGASOS",
    data=(GENOMIC[0], Data("gordon", first=("standardise",))),
    lams=(50.0, 1.0, None),
    seeds=range(10),
    epochs=20,
    claims=(claim("S0-51a", races.judge_wide),),
    quick={"seeds": range(2), "epochs": 3, "rows": None, "lams": (50.0,)},
)
TALL = _advice(
    "tall",
    "ASDCA",
    data=(Data("skin", rows=50_000, first=("standardise",)), Data("ijcnn1")),
    lams=(0.1, 1e-3, None),
    seeds=range(6),
    epochs=5,
    claims=(claim("S0-51b", races.judge_tall, "S0-tall", "S0-fig1", "S0-fig3"),),
    quick={"seeds": range(2), "epochs": 3, "rows": 2000, "lams": (1e-3,)},
)
SMALL = (Data("simulated", options={"n_samples": 1000}), Data("gravier", first=("standardise",)))
DUALITY = Experiment(
    id="S0-duality",
    title="Duality at work",
    question="Do the inequalities of duality hold at every record of real runs?",
    data=SMALL,
    lams=(0.1,),
    arms=(Arm("SDCA", textbook_sdca("random"), columns={"eps": 1e-3}),),
    seeds=range(10),
    epochs=30,
    function=duality,
    claims=(
        claim(
            "S0-07",
            outputs.judge_statement(
                "The dual value is at most the optimum and the primal value at least, and at the "
                "end of a long run the three agree to its accuracy",
                "weak duality",
                "strong duality",
            ),
        ),
        claim(
            "S0-09",
            outputs.judge_statement(
                "A run that stops when its relative gap is 0.001 is that near to the optimum",
                "stopping rule",
            ),
        ),
        claim(
            "S0-16b",
            outputs.judge_statement(
                "The distance from the optimum is at most (R + sqrt(2 lambda)) times the root of "
                "2 eps_D / lambda, where eps_D is the dual distance",
                "dual accuracy",
            ),
        ),
    ),
    differs=("The constant is worked out: eps <= (R + sqrt(2 lambda)) sqrt(2 eps_D / lambda).",),
    errata=("E0-1", "E0-2", "E0-6"),
    quick={"rows": None, "seeds": range(3)},
)
RATES = Experiment(
    id="S0-rates",
    title="Steps to an accuracy eps",
    question="Do the steps grow like 1 / (lambda eps)?",
    data=(Data("simulated", options={"n_samples": 1000}, transforms=("unit-rows",)),),
    lams=(0.01, 0.001),
    arms=(Arm("SDCA", textbook_sdca("random")), Arm("PEGASOS", "pegasos:output=average:t0=0")),
    seeds=range(10),
    epochs=200,
    function=steps_to_accuracy,
    figures=(
        Lines(
            id="S0-rates",
            title="Steps until P(w) - P(w*) stays below eps",
            x="eps",
            y="steps",
            x_scale="log",
            panels="problem",
            prepare=races.with_problem,
            overlay={"pegasos": "theorem, average of PEGASOS", "sdca": "theorem, SDCA"},
            labels={"eps": "accuracy eps", "steps": "iterations (updates)"},
        ),
    ),
    claims=(claim("S0-16a", outputs.judge_rates),),
    differs=(
        "Held against the theorems with their constants; rows of norm 1, and the average of the "
        "iterates of PEGASOS, because the theorem is about that.",
    ),
    errata=("E0-6",),
    quick={"rows": None, "seeds": range(3), "epochs": 100},
)
PROMISE = Experiment(
    id="S0-bounds",
    title="The number of steps that the theorem asks for",
    question="Are T and T_0 enough, and how far from necessary?",
    data=(SMALL[0], Data("gravier", first=("standardise",), transforms=("unit-rows",))),
    lams=(0.01,),
    arms=(Arm("SDCA", columns={"eps": 0.1}),),
    seeds=range(10),
    function=promised_steps,
    tables=(Table("S0-bounds", "Steps promised and steps needed", outputs.promises),),
    claims=(claim("S0-17", outputs.judge_promise),),
    differs=("The printed bound mixes two theorems: both correct forms are run.",),
    errata=("E0-7",),
    quick={"rows": None, "seeds": range(3)},
)
RANDOM = Experiment(
    id="S0-random",
    title="A random iterate of PEGASOS",
    question="Is a random iterate as good as the theorem says, with probability 1/2?",
    data=SMALL,
    lams=(0.1,),
    arms=(
        Arm("PEGASOS", "pegasos:output=random:t0=0", updates=5000),
        Arm("PEGASOS, projected", "pegasos:projection=true:output=random:t0=0", updates=5000),
    ),
    seeds=range(100),
    record="end",
    metrics=(largest_norm,),
    reference=1e-6,
    claims=(claim("S0-28", outputs.judge_random),),
    differs=(
        "delta = 0.1, so that the probability is 0.45; lambda = 0.1, because the theorem needs "
        "lambda <= 1/4.",
    ),
    errata=("E0-16",),
    quick={"rows": None, "seeds": range(10)},
)

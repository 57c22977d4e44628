"""What chapter S0 makes of its outputs and theorems: tables 1 and 2, figure 7, bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zerogap import bounds
from zerogap.datasets import make_simulated
from zerogap.lab import (
    FAILS,
    HOLDS,
    NO,
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
    within,
)
from zerogap.lab.chapters.s0_judges import rank_correlation
from zerogap.lab.chapters.s0_races import MUCH, place_of
from zerogap.lab.statistics import number
from zerogap.lab.verdicts import Statistic

TESTED = 330  # rows of the report's test part
DELTA = 0.1
IMPORTANT = 1.0  # percentage points of accuracy; one standard error of an entry of table 2 is 1.8
AROUND = 2.0  # percentage points: the printed accuracies are up to 1.8 from that of beta
ALIKE = 1.0  # degrees
PRINTED = {
    "SDCA, random": (0.863, 0.872),
    "SDCA, permutation": (0.881, 0.875),
    "SDCA, cyclic": (0.872, 0.875),
    "PEGASOS": (0.866, 0.863),
    "PEGASOS, projected": (0.860, 0.869),
    "ASDCA": (0.869, 0.875),
    "mini-batch PEGASOS": (0.881, 0.866),
    "mini-batch PEGASOS, projected": (0.872, 0.878),
}
BETA = 0.878


def shapes(table: Any) -> list[dict[str, Any]]:
    """Return table 1: the report's sizes and those used here."""
    printed = {"simulated": "1000 x 10", "skin": "245057 x 3"}
    return [
        {
            "data": place_of(row["data"]),
            "in the report": printed.get(row["data"], "184 x 4654"),
            "training rows here": f"{row['n']} x {row['d']}",
            "positive, %": 100 * row["positive"],
            "mean norm of a row": row["mean_norm"],
            "largest norm": row["largest_norm"],
        }
        for row in table.to_dict("records")
    ]


def with_accuracy(table: Any) -> Any:
    """Add accuracies in percent."""
    accuracy, beta = 100 * (1 - table["test_error"]), 100 * (1 - table["beta_error"])
    return table.assign(accuracy=accuracy, beta_accuracy=beta, over_beta=accuracy - beta)


def table_2(table: Any) -> list[dict[str, Any]]:
    """Return the report's table 2, with intervals over repeats beside each printed value."""
    table = with_accuracy(table)
    new, one = (table[table["data"] == name] for name in ("simulated", "one sample"))
    rows: list[dict[str, Any]] = []
    for (solver, output), part in new.groupby(["solver", "output"], sort=False):
        again = one[(one["solver"] == solver) & (one["output"] == output)]["accuracy"]
        rows.append(
            {
                "solver": solver,
                "output": output,
                "printed, %": 100 * PRINTED[solver][output == "averaged"],
                "mean accuracy, %": mean(part["accuracy"]),
                "minus that of beta": mean(part["accuracy"] - part["beta_accuracy"]),
                "deviation, new samples": _deviation(part["accuracy"]),
                "deviation, one sample": _deviation(again),
            }
        )
    beta = new.groupby("seed")["beta_accuracy"].first()
    line = {"solver": "true beta", "output": "", "printed, %": 100 * BETA}
    rows.append(line | {"mean accuracy, %": mean(beta), "deviation, new samples": _deviation(beta)})
    return rows


def _deviation(values: Any) -> float:
    return round(float(values.std(ddof=1)), 2)


def judge_table(table: Any) -> Verdict:
    """Each printed entry is above or below the mean of the table, as it is in repeats."""
    table = with_accuracy(table[table["data"] == "simulated"])
    wide = table.pivot_table(index="seed", columns=["solver", "output"], values="accuracy")
    printed = np.array([PRINTED[solver][output == "averaged"] for solver, output in wide])
    values = wide.to_numpy() * TESTED / 100
    excess = values - values.mean(axis=1, keepdims=True)
    effects = {
        f"{solver}, {output}": mean(column, f"{solver}, {output}: test examples above the mean")
        for (solver, output), column in zip(wide, excess.T, strict=True)
    }
    higher = printed > printed.mean()
    answers = {
        name: above(effect) if side else below(effect)
        for (name, effect), side in zip(effects.items(), higher, strict=True)
    }
    found = sorted_by(answers)
    span = values.max(axis=1) - values.min(axis=1)
    error = np.sqrt(0.875 * 0.125 * TESTED)
    like = mean(
        [rank_correlation(list(row), list(printed)) for row in values],
        "rank correlation of the printed table with one made anew",
    )
    decided = len(found[YES]) + len(found[NO])
    sentence = (
        f"Over repeats {decided} of {len(effects)} entries differ significantly from the mean of "
        f"the table; {len(found[YES])} of them lie on the printed side of it, {len(found[NO])} "
        "contradict the print."
    )
    robustness = (
        f"The printed table spans 7 of {TESTED} test examples, where one standard error of an "
        f"entry is {error:.1f}; a table made anew spans {span.mean():.1f}."
    )
    evidence: tuple[Statistic, ...] = (
        Calculation(f"7 / {error:.2f} = {7 / error:.2f} standard errors of one entry at 87.5 %"),
        Count("span of 7 test examples or more", int((span > 6.5).sum()), len(span)),
        like,
        *effects.values(),
    )
    return conclude(answers.values(), sentence, evidence, "the entry", robustness)


def judge_accuracy(table: Any) -> Verdict:
    """Averaging changes the accuracy of no option by an important amount."""
    effects = _averaged_minus_last(table, "accuracy", "test accuracy in %")
    largest = max(effects.values(), key=lambda effect: abs(effect.estimate))
    clear = [name for name, effect in effects.items() if YES in (above(effect), below(effect))]
    answers = [within(effect, -IMPORTANT, IMPORTANT) for effect in effects.values()]
    sentence = (
        f"Averaging changes the test accuracy by less than {IMPORTANT:g} percentage point, for "
        f"certain, with {answers.count(YES)} of {len(answers)} options, and by more with "
        f"{answers.count(NO)}; the largest change is {abs(largest.estimate):.2f} points "
        f"({largest.what.split(', ', 2)[2]})."
    )
    robustness = (
        f"Differences that small are still certain for {listed(clear)}: {len(clear)} of "
        f"{len(effects)} intervals do not hold 0."
        if clear
        else "No interval leaves 0 out: even small differences are not certain."
    )
    return conclude(answers, sentence, effects.values(), "the option", robustness)


def judge_closer(table: Any) -> Verdict:
    """Averaging does not bring any option much closer to the true direction."""
    table = table[table["data"] == "simulated"]
    effects, ratios = [], {}
    for name, part in split(table, ("solver",)):
        wide = part.pivot_table(index="seed", columns="output", values="angle")
        what = f"angle of the average minus 1/{MUCH:g} of that of the last iterate, {name}"
        effects.append(mean(wide["averaged"] - wide["last"] / MUCH, what))
        ratios[name] = float(wide["averaged"].mean() / wide["last"].mean())
    nearest = min(ratios, key=lambda name: ratios[name])
    sentence = (
        f"The average's angle to beta is {min(ratios.values()):.2f} to {max(ratios.values()):.2f} "
        f"times that of the last iterate, least with {nearest}; much closer would be "
        f"1/{MUCH:g} of it."
    )
    changes = _averaged_minus_last(table, "angle", "angle to beta in degrees")
    clear = [
        f"{name} ({effect.estimate:+.2g} degrees)"
        for name, effect in changes.items()
        if YES in (above(effect), below(effect))
    ]
    robustness = "Somewhat closer or farther, for certain: " + (listed(clear) if clear else "none")
    return conclude(
        map(above, effects), sentence, effects, "the option", f"{robustness}.", changes.values()
    )


def judge_around_beta(table: Any) -> Verdict:
    """Every option's accuracy is within two points of that of the true parameter."""
    table = with_accuracy(table[table["data"] == "simulated"])
    effects = [
        mean(part["over_beta"], f"test accuracy in % minus that of beta, {name}")
        for name, part in split(table, ("solver", "output"))
    ]
    low, high = (f(effect.estimate for effect in effects) for f in (min, max))
    answers = [within(effect, -AROUND, AROUND) for effect in effects]
    sentence = (
        f"On average the options' accuracies are {low:+.1f} to {high:+.1f} points from that of "
        f"beta; {answers.count(YES)} of {len(answers)} are within {AROUND:g} points for certain, "
        f"and {answers.count(NO)} are not."
    )
    return conclude(answers, sentence, effects, "the option")


def judge_same_output(table: Any) -> Verdict:
    """Projected and plain outputs are as near to each other as two plain runs are."""
    one = table[table["data"] == "one sample"]
    columns = [f"w{j}" for j in range(1, 11)]
    effects, parts = [], []
    for name in ("PEGASOS", "mini-batch PEGASOS"):
        for output in ("last", "averaged"):
            plain, other = (
                one[(one["solver"] == solver) & (one["output"] == output)].sort_values("seed")
                for solver in (name, f"{name}, projected")
            )
            runs = plain[columns].to_numpy()
            again = _degrees(runs, np.roll(runs, 1, axis=0))
            apart = _degrees(other[columns].to_numpy(), np.roll(runs, 1, axis=0))
            what = f"angle projected to plain - plain to plain, degrees, {name}, {output}"
            effects.append(mean(apart - again, what))
            parts.append(f"{apart.mean():.1f} and {again.mean():.1f} ({name}, {output})")
    sentence = (
        "In degrees, between a run with projection and one without, and between two without: "
        f"{listed(parts)}."
    )
    answers = (within(effect, -ALIKE, ALIKE) for effect in effects)
    return conclude(answers, sentence, effects, "batch size and output")


def _degrees(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the angles between the rows of two matrices."""
    cosines = np.sum(a * b, axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)))


def _averaged_minus_last(table: Any, column: str, words: str) -> dict[str, Interval]:
    table = with_accuracy(table[table["data"] == "simulated"])
    what = f"{words}, averaged - last, "
    return {
        name: paired_difference(part, column, "averaged", "last", of="output", what=what + name)
        for name, part in split(table, ("solver",))
    }


def judge_projected(output: str) -> Callable[[Any], Verdict]:
    """Return the judge of "projection gives a better accuracy" for an output."""

    def judge(table: Any) -> Verdict:
        table = with_accuracy(table[(table["data"] == "simulated") & (table["output"] == output)])
        names = ("PEGASOS", "mini-batch PEGASOS")
        effects = [
            paired_difference(
                table,
                "accuracy",
                f"{name}, projected",
                name,
                what=f"accuracy in %, {output}, projected - plain, {name}",
            )
            for name in names
        ]
        k = output == "averaged"
        printed = [100 * (PRINTED[f"{name}, projected"][k] - PRINTED[name][k]) for name in names]
        words = {YES: "significantly better", NO: "significantly worse"}
        parts = [
            f"{effect.estimate:+.2f} points for {name} (printed {before:+.1f}; "
            f"{words.get(above(effect), 'not significant')})"
            for name, effect, before in zip(names, effects, printed, strict=True)
        ]
        sentence = f"Projection changes the test accuracy, {output} output, by {listed(parts)}."
        less = [name for name, e, p in zip(names, effects, printed, strict=True) if e.high < p]
        robustness = f"A gain as large as printed is excluded for {listed(less)}." if less else ""
        return conclude(map(above, effects), sentence, effects, "the batch size", robustness)

    return judge


# permutation and projected options, which no panel shows together, share two of the seven colours
_OPTIONS = (
    "permutation, last",
    "permutation, averaged",
    "true beta",
    "last",
    "averaged",
    "cyclic, last",
    "cyclic, averaged",
    "projected, last",
    "projected, averaged",
)


def coordinates(table: Any) -> Any:
    """Return a row per coordinate of each direction, with the true beta as one more option."""
    import pandas as pd

    one = table[table["data"] == "one sample"]
    family = one["solver"].str.partition(", ")[0]
    option = one["solver"].str.partition(", ")[2].replace("random", "")
    option = (option + ", " + one["output"]).str.removeprefix(", ")
    w = one[[f"w{j}" for j in range(1, 11)]].to_numpy()
    beta = make_simulated(1000, noise=1.0, random_state=10).beta
    true = pd.DataFrame({"family": family.unique(), "option": "true beta", "seed": 0})
    labels = pd.DataFrame({"family": family, "option": option, "seed": one["seed"]})
    labels = pd.concat([labels, true], ignore_index=True)
    w = np.concatenate([w, np.tile(beta, (len(true), 1))])
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    parts = [labels.assign(coordinate=f"w{j + 1}", value=w[:, j]) for j in range(10)]
    return pd.concat(parts).sort_values(
        "option", key=lambda names: names.map(_OPTIONS.index), kind="stable"
    )


# Theorems


def judge_statement(words: str, *names: str) -> Callable[[Any], Verdict]:
    """Return the judge of inequalities, said in words, that no record of any run may violate."""

    def judge(table: Any) -> Verdict:
        found = table[table["statement"].isin(names)]
        good = found.groupby(["data", "seed"])["slack"].min() >= 0
        checks, worst = int(found["checks"].sum()), float(found["slack"].min())
        sentence = {
            HOLDS: f"{words}, in all of {checks:,} checks.",
            FAILS: f"Not so in {int((~good).sum())} of {len(good)} runs, by up to "
            f"{number(-100 * worst)} % of the objective: {words[0].lower()}{words[1:]}.",
        }
        count = Count("never violated", int(good.sum()), len(good))
        return conclude([always(count)], sentence, (count,), "the run")

    return judge


def judge_rates(table: Any) -> Verdict:
    """No run needs more steps than the theorem with its constants says."""
    counts, ratios, exponents = [], [], []
    for (solver, lam), part in table.groupby(["solver", "lam"], sort=False):
        name = f"{solver}, lambda {lam:g}"
        bound = part["sdca"] if solver == "SDCA" else part["pegasos"]
        kept = (part["steps"] <= bound).groupby(part["seed"]).all()
        counts.append(Count(f"{name}: below the theorem's number", int(kept.sum()), len(kept)))
        ratios.append((part["steps"] / bound).max())
        slopes = [
            -np.polyfit(np.log(run["eps"]), np.log(run["steps"]), 1)[0]
            for _, run in part[np.isfinite(part["steps"])].groupby("seed")
            if len(run) > 1
        ]
        exponents.append(mean(slopes, f"{name}: exponent of 1 / eps"))
    kept, runs = sum(c.k for c in counts), sum(c.n for c in counts)
    sentence = (
        f"{kept} of {runs} runs stay within the numbers of steps of the theorems of this order; "
        f"the slowest takes {_share(max(ratios))} of them."
    )
    found = listed(f"{e.estimate:.2f} ({e.what.partition(':')[0]})" for e in exponents)
    robustness = (
        f"The steps grow as a power of 1 / eps, with the exponent {found}: the order bounds them "
        "from above, and does not say how they grow below it."
    )
    return conclude(
        map(always, counts), sentence, counts, "solver and lambda", robustness, exponents
    )


def _share(ratio: float) -> str:
    return f"{number(100 * ratio, 2)} %" if np.isfinite(ratio) else "more than all"


def judge_promise(table: Any) -> Verdict:
    """The mean gap after T is at most eps, the mean dual distance after T_0 at most eps / 2."""
    effects = []
    for name, part in split(table, ("data", "form")):
        half = 2 * part["dual_distance_at_T0"] / part["eps"]
        effects.append(mean(part["gap_at_T"] / part["eps"], f"gap at T over eps, {name}"))
        effects.append(mean(half, f"dual distance at T_0 over eps / 2, {name}"))
    answers = [below(effect, 1.0) for effect in effects]
    worst = max(effects, key=lambda effect: effect.estimate)
    over = (table["T"] / table["needed"]).median()
    sentence = {
        HOLDS: f"In the corrected forms the gap after T steps, and twice the dual distance after "
        f"T_0, are at most {_share(worst.estimate)} of eps.",
        FAILS: f"Even in the corrected forms the numbers are not enough: {worst.what} is "
        f"{worst.estimate:.2g}.",
    }
    sentence["depends"] = sentence["undecided"] = (
        f"{answers.count(YES)} of {len(answers)} of the promises are kept; the worst is "
        f"{worst.what}, {worst.estimate:.2g}."
    )
    robustness = (
        f"A run that looks at its gap could have stopped after 1/{over:.0f} of T."
        if over >= 2
        else "T is about what is needed."
    )
    return conclude(answers, sentence, effects, "data and form", robustness)


def promises(table: Any) -> list[dict[str, Any]]:
    """Return promised and measured, line by line."""
    return [
        {
            "data": data,
            "theorem for": form,
            "eps": part["eps"].iloc[0],
            "T_0": int(part["T0"].iloc[0]),
            "T": int(part["T"].iloc[0]),
            "gap at T": mean(part["gap_at_T"]),
            "steps until the gap was eps": mean(part["needed"]),
        }
        for (data, form), part in table.groupby(["data", "form"], sort=False)
    ]


def judge_random(table: Any) -> Verdict:
    """At least (1 - delta) / 2 of the random iterates are below 42 c ln(T / delta) / (lambda T)."""
    counts, shares = [], []
    for name, part in split(table, ("data", "solver")):
        bound = bounds.pegasos(
            float(part["lam"].iloc[0]),
            n_iterations=int(part["updates"].iloc[0]),
            radius=float(part["largest_norm"].iloc[0]),
            projection="projected" in name,
            kind="high-probability-random",
            delta=DELTA,
        ).error
        shares.append(float((part["suboptimality"] / bound).max()))
        k = int((part["suboptimality"] <= bound).sum())
        counts.append(Count(f"{name}: below {bound:.3g}", k, len(part)))
    inside, runs = sum(c.k for c in counts), sum(c.n for c in counts)
    sentence = (
        f"{inside} of {runs} random iterates are below the bound, where {50 * (1 - DELTA):.0f} % "
        f"are promised; the worst reaches {_share(max(shares))} of it."
    )
    promised = 0.5 * (1 - DELTA)
    answers = (YES if c.k >= promised * c.n else NO for c in counts)
    return conclude(answers, sentence, counts, "data and projection")

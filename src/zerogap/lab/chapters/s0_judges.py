"""What chapter S0 makes of its tables: verdicts, and the lines of tables 1 and 2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from zerogap import bounds
from zerogap.lab import (
    DEPENDS,
    FAILS,
    HOLDS,
    Calculation,
    Count,
    Interval,
    Verdict,
    final,
    mean,
    paired_difference,
    split,
)
from zerogap.lab.statistics import number

FOUR = ("SDCA", "PEGASOS", "ASDCA", "mini-batch PEGASOS")
AXES = {"updates": "iterations", "examples": "examples read"}
SHARES = {0.5: "half", 0.2: "four fifths"}  # what is left of the way, and what is done
TESTED = 330  # rows of the report's test part
DELTA = 0.1
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
_RUN = ["data", "lam", "solver", "seed"]


def _decide(good: Iterable[bool], sentence: str, evidence: Iterable[Any], on_what: str) -> Verdict:
    good, evidence = list(good), tuple(evidence)
    if all(good):
        return Verdict(HOLDS, sentence, evidence)
    if not any(good):
        return Verdict(FAILS, sentence, evidence)
    return Verdict(DEPENDS, sentence, evidence, on_what)


def _mostly(count: Count) -> bool:
    """Whether it is so more often than not, for certain."""
    return count.interval[0] > 0.5


def _apart(effect: Interval) -> bool:
    return effect.low > 0 or effect.high < 0


def _stays(inside: np.ndarray) -> int:
    """Return the first place from which on all are inside; the length if there is none."""
    outside = np.flatnonzero(~inside)
    return int(outside[-1]) + 1 if len(outside) else 0


def with_problem(table: Any) -> Any:
    """Add names for panels: the problem, and what runs on which data."""
    lam = table["lam"].map("{:.2g}".format)
    return table.assign(
        problem=table["data"] + ", lambda = " + lam, run_of=table["solver"] + " on " + table["data"]
    )


# How fast


def with_excess(table: Any) -> Any:
    """Add how far the hinge objective is above the hinge optimum, for all solvers alike."""
    keys = ["data", "lam", "seed"]
    hinge = table[table["loss"] == "hinge"].groupby(keys)["optimum"].first()
    table = table.merge(hinge.rename("hinge_optimum").reset_index(), on=keys, how="left")
    return table.assign(excess=table["hinge_primal"] - table["hinge_optimum"])


def rankings(table: Any, axis: str, left: float, names: Sequence[str]) -> list[list[str]]:
    """Return for each seed the solvers from fast to slow.

    A run is as fast as it has only a share `left` of the way from P(0) = 1 to the optimum before
    it, for good; among those that never get there the lower end counts.
    """
    found: dict[Any, list[tuple[float, float, str]]] = {}
    for (*_, solver, seed), run in table.groupby(_RUN, sort=False):
        if solver in names:
            run = run.sort_values("updates", kind="stable")
            inside = (run["excess"] <= left * (1 - run["hinge_optimum"])).to_numpy()
            first = _stays(inside)
            place = float(run[axis].iloc[first]) if first < len(run) else np.inf
            found.setdefault(seed, []).append((place, float(run["excess"].iloc[-1]), solver))
    return [[solver for *_, solver in sorted(runs)] for runs in found.values()]


def judge_race(good: Callable[[list[str]], bool], what: str) -> Callable[..., Verdict]:
    """Return the judge of a ranking of the four, by data, axis and share of the way."""

    def judge(*tables: Any) -> Verdict:
        counts = {}
        for name, part in (p for table in tables for p in split(with_excess(table), ("data",))):
            for axis, words in AXES.items():
                for left, way in SHARES.items():
                    orders = rankings(part, axis, left, FOUR)
                    text = f"{what} on {name}, {words} for {way} of the way"
                    counts[name, axis, left] = Count(text, sum(map(good, orders)), len(orders))
        parts = []
        for axis, words in AXES.items():
            where: dict[str, list[str]] = {}
            for (name, on, left), count in counts.items():
                if on == axis and _mostly(count):
                    where.setdefault(name, []).append(SHARES[left])
            places = [f"on {n} for {' and '.join(ways)} of the way" for n, ways in where.items()]
            parts.append(f"by {words} {', '.join(places) or 'nowhere'}")
        sentence = f"{what} more often than not {'; '.join(parts)}."
        return _decide(
            map(_mostly, counts.values()), sentence, counts.values(), "data, axis and nearness"
        )

    return judge


judge_slowest = judge_race(lambda order: order[-1] == "PEGASOS", "PEGASOS is last")
judge_genomic = judge_race(lambda o: o[0] == "mini-batch PEGASOS", "Mini-batch PEGASOS is first")
judge_simulated = judge_race(
    lambda order: order[:2] == ["ASDCA", "SDCA"], "ASDCA is first and SDCA second"
)


def judge_advice(advised: str) -> Callable[[Any], Verdict]:
    """Return the judge of "this solver reads the fewest examples for nine tenths of the way"."""

    def judge(table: Any) -> Verdict:
        counts, winners = [], []
        for (data, lam), part in with_excess(table).groupby(["data", "lam"], sort=False):
            orders = rankings(part, "examples", 0.1, part["solver"].unique())
            k = sum(order[0].startswith(advised) for order in orders)
            counts.append(Count(f"{advised} first on {data}, lambda {lam:.2g}", k, len(orders)))
            winners += [order[0] for order in orders]
        good = list(map(_mostly, counts))
        names = sorted(set(winners), key=lambda name: (-winners.count(name), name))
        sentence = (
            f"By examples read, {advised} is first more often than not on {sum(good)} of "
            f"{len(good)} problems; over all {len(winners)} runs, first are "
            + ", ".join(f"{name} ({winners.count(name)})" for name in names)
            + "."
        )
        return _decide(good, sentence, counts, "data and lambda")

    return judge


# Order of visits


def slowness(table: Any) -> Any:
    """Return per run the mean over its records of log10 of the relative distance to the optimum."""
    far = (table["suboptimality"] / table["optimum"]).clip(lower=1e-6)  # the reference's accuracy
    late = table.assign(slowness=np.log10(far))[table["updates"] > 0]
    return late.groupby(_RUN, sort=False)["slowness"].mean().reset_index()


def _orders(table: Any, name: str, others: Sequence[str]) -> dict[str, list[Interval]]:
    return {
        place: [
            paired_difference(
                part, "slowness", name, other, what=f"log10 distance, {name} - {other}, {place}"
            )
            for other in others
        ]
        for place, part in split(slowness(table), ("data", "lam"))
    }


def judge_order(name: str) -> Callable[[Any], Verdict]:
    """Return the judge of "this order of visits is slower", than each of the two others."""

    def judge(table: Any) -> Verdict:
        others = [o for o in ("random", "permutation", "cyclic") if o != name]
        effects = list(zip(*_orders(table, name, others).values(), strict=True))
        parts = [
            f"than {other} on {sum(effect.low > 0 for effect in found)} of {_problems(found)} "
            f"({10 ** np.mean([effect.estimate for effect in found]):.2g} times its distance from "
            "the optimum)"
            for other, found in zip(others, effects, strict=True)
        ]
        sentence = f"The {name} order is significantly slower {' and '.join(parts)}."
        good = [all(effect.low > 0 for effect in found) for found in effects]
        flat = [effect for found in effects for effect in found]
        return _decide(good, sentence, flat, "the order that it is compared with")

    return judge


def _problems(found: Sequence[Any]) -> str:
    return f"{len(found)} problem" + "s" * (len(found) != 1)


def judge_default(*tables: Any) -> Verdict:
    """Random draws are no slower than a new permutation in each epoch."""
    found = [_orders(table, "random", ["permutation"]) for table in tables]
    effects = [effect for places in found for (effect,) in places.values()]
    slower = [effect for effect in effects if effect.low > 0]
    faster = [effect for effect in effects if effect.high < 0]
    sentence = (
        f"Random draws are significantly slower than a new permutation on {len(slower)} of "
        f"{len(effects)} problems and faster on {len(faster)}."
    )
    return _decide([effect.low <= 0 for effect in effects], sentence, effects, "data and lambda")


# Projection


def roughness(table: Any) -> Any:
    """Return per run the mean jump of log10 P between records, over all and after one epoch."""
    runs = table.sort_values("updates", kind="stable")
    jump = np.log10(runs["primal"]).groupby([runs[key] for key in _RUN], sort=False).diff().abs()
    runs = runs.assign(whole=jump, late=jump.where(runs["epoch"] > 1))
    return runs.groupby(_RUN, sort=False)[["whole", "late"]].mean().reset_index()


def _projected(table: Any, column: str, words: str) -> dict[str, Interval]:
    what = f"{words}, projected - plain, "
    return {
        place: paired_difference(part, column, "PEGASOS, projected", "PEGASOS", what=what + place)
        for place, part in split(table, ("data", "lam"))
    }


def judge_limit(table: Any) -> Verdict:
    """Where both runs have come close to the optimum, they agree to 1 % of it."""
    last = final(table)
    last = last.assign(far=last["suboptimality"] / last["optimum"])
    close = last.groupby(["data", "lam"])["far"].transform("max") < 0.1
    rest = sorted({f"{lam:g}" for lam in last[~close]["lam"]}, key=float)
    effects = _projected(last[close], "far", "P at the end over its optimum")
    sentence = (
        "The ball holds the optimum, so the limits agree by proof; where all runs have come within "
        "10 % of the optimum, they differ by at most "
        f"{max((abs(e.estimate) for e in effects.values()), default=np.nan):.1g} of it"
        + (
            f", and for lambda = {', '.join(rest)} the budget is too short to see it."
            if rest
            else "."
        )
    )
    proof = Calculation("|w*| <= 1 / sqrt(lambda): the projection never moves the optimum")
    good = [max(abs(effect.low), abs(effect.high)) < 0.01 for effect in effects.values()]
    return _decide(good, sentence, (*effects.values(), proof), "lambda")


def judge_smoother(table: Any) -> Verdict:
    """The projected curve has smaller jumps, over the whole run and after its first epoch."""
    rough = roughness(table)
    whole = _projected(rough, "whole", "mean jump of log10 P").values()
    late = _projected(rough, "late", "mean jump of log10 P after one epoch").values()
    good = [[effect.high < 0 for effect in effects] for effects in (whole, late)]
    rougher = sum(effect.low > 0 for effect in late)
    sentence = (
        f"The projected curve is significantly smoother over the whole run on {sum(good[0])} of "
        f"{len(good[0])} problems, after the first epoch on {sum(good[1])}, and rougher then on "
        f"{rougher}."
    )
    return _decide(good[0] + good[1], sentence, (*whole, *late), "lambda and the part of the run")


# Influence of lambda


def _rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
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
    bad = [solver for solver, count in counts.items() if not _mostly(count)]
    sentence = "The optimum always rises with lambda" + (
        f"; what is reached in the budget does not for {'; '.join(bad)}."
        if bad
        else ", and so do the ends of the runs."
    )
    return _decide(map(_mostly, counts.values()), sentence, (*counts.values(), proof), "solver")


def judge_faster(table: Any) -> Verdict:
    """A larger lambda needs fewer steps: the rank correlation is below zero."""
    effects = {}
    for words, unit in (("1 % of the optimum", table["optimum"]), ("0.01", 1.0)):
        far = table.assign(inside=table["suboptimality"] / unit <= 0.01)
        for solver, part in split(far, ("solver",)):
            found = []
            for _, runs in part.groupby(["data", "seed"], sort=False):
                steps = {lam: _steps(run) for lam, run in runs.groupby("lam")}
                found.append(_rank_correlation(list(steps), list(steps.values())))
            text = f"rank correlation of lambda and steps to within {words}, {solver}"
            effects[f"{solver} to within {words}"] = mean(found, text)
    good = {name: effect.high < 0 for name, effect in effects.items()}
    bad = [name for name, found in good.items() if not found]
    sentence = (
        f"A larger lambda needs significantly fewer steps in {sum(good.values())} of {len(good)} "
        "comparisons" + (f"; not {'; '.join(bad)}." if bad else ".")
    )
    return _decide(good.values(), sentence, effects.values(), "solver and accuracy")


def _steps(run: Any) -> float:
    """Return the steps after which the run is inside for good; twice its length if never."""
    run = run.sort_values("updates", kind="stable")
    first, steps = _stays(run["inside"].to_numpy()), run["updates"].to_numpy()
    return float(steps[first]) if first < len(steps) else 2.0 * steps[-1]


# Tables 1 and 2, figure 7


def shapes(table: Any) -> list[dict[str, Any]]:
    """Return table 1: the report's sizes and those used here."""
    printed = {"simulated": "1000 x 10", "skin": "245057 x 3"}
    return [
        {
            "data": row["data"],
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
    signs = np.sign(printed - printed.mean())
    good = [e.low * s > 0 and e.high * s > 0 for e, s in zip(effects.values(), signs, strict=True)]
    again = [name for name, found in zip(effects, good, strict=True) if found]
    span = values.max(axis=1) - values.min(axis=1)
    pairs = [(values[:, i] - values[:, j]).std(ddof=1) for i in range(len(good)) for j in range(i)]
    error = np.sqrt(0.875 * 0.125 * TESTED)
    farthest = max(abs(effect.estimate) for effect in effects.values())
    like = mean(
        [_rank_correlation(list(row), list(printed)) for row in values],
        "rank correlation of the printed table with one made anew",
    )
    sentence = (
        f"The printed table spans 7 of {TESTED} test examples, where one standard error of an "
        f"entry is {error:.1f} and the deviation of a difference of two entries, which share their "
        f"test rows, {np.mean(pairs):.1f}; a table made anew spans {span.mean():.1f}. Over repeats "
        f"no entry is further from the mean than {farthest:.1f} examples; significantly on the "
        f"printed side of it: {'; '.join(again) or 'none'}."
    )
    evidence = (
        Calculation(f"7 / {error:.2f} = {7 / error:.2f} standard errors of one entry at 87.5 %"),
        mean(span, "span of the table made anew, in test examples"),
        Count("span of 7 test examples or more", int((span > 6.5).sum()), len(span)),
        like,
        *effects.values(),
    )
    return _decide(good, sentence, evidence, "the entry")


def judge_averaging(column: str, words: str) -> Callable[[Any], Verdict]:
    """Return the judge of "averaging makes no significant difference"."""

    def judge(table: Any) -> Verdict:
        table = with_accuracy(table[table["data"] == "simulated"])
        what = f"{words}, averaged - last, "
        effects = {
            name: paired_difference(part, column, "averaged", "last", of="output", what=what + name)
            for name, part in split(table, ("solver",))
        }
        differ = [f"{n} by {e.estimate:+.2g}" for n, e in effects.items() if _apart(e)]
        sentence = (
            f"Averaging changes the {words} significantly for {'; '.join(differ) or 'no solver'}; "
            f"for {len(effects) - len(differ)} of {len(effects)} options it does not."
        )
        good = [not _apart(effect) for effect in effects.values()]
        return _decide(good, sentence, effects.values(), "the solver")

    return judge


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
        parts = [
            f"{name} by {effect.estimate:+.2f} (printed {before:+.1f})"
            for name, effect, before in zip(names, effects, printed, strict=True)
        ]
        sentence = f"Projection changes the accuracy in %, {output}, of {' and '.join(parts)}."
        good = [effect.low > 0 for effect in effects]
        return _decide(good, sentence, effects, "the batch size")

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

    from zerogap.datasets import make_simulated

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


def judge_statement(*names: str) -> Callable[[Any], Verdict]:
    """Return the judge of inequalities that no record of any run may violate."""

    def judge(table: Any) -> Verdict:
        found = table[table["statement"].isin(names)]
        good = found.groupby(["data", "seed"])["slack"].min() >= 0
        sentence = (
            f"{' and '.join(names).capitalize()}: {int(found['checks'].sum()):,} checks; the "
            f"smallest slack is {number(found['slack'].min())} of the objective."
        )
        count = Count("never violated", int(good.sum()), len(good))
        return _decide([bool(good.all())], sentence, (count,), "")

    return judge


def judge_rates(table: Any) -> Verdict:
    """No run needs more steps than the theorem with its constants says."""
    counts, ratios, exponents = [], [], []
    for (solver, lam), part in table.groupby(["solver", "lam"], sort=False):
        name = f"{solver}, lambda {lam:g}"
        bound = part["sdca"] if solver == "SDCA" else part["pegasos"]
        below = (part["steps"] <= bound).groupby(part["seed"]).all()
        counts.append(Count(f"{name}: below the theorem's number", int(below.sum()), len(below)))
        ratios.append((part["steps"] / bound).max())
        slopes = [
            -np.polyfit(np.log(run["eps"]), np.log(run["steps"]), 1)[0]
            for _, run in part[np.isfinite(part["steps"])].groupby("seed")
            if len(run) > 1
        ]
        exponents.append(mean(slopes, f"{name}: exponent of 1 / eps"))
    found = ", ".join(f"{e.what.partition(':')[0]} {e.estimate:.2f}" for e in exponents)
    sentence = (
        f"Runs need at most {max(ratios):.2g} of the steps that the theorems of this order allow. "
        f"The measured exponent of 1 / eps is not always below 1 ({found}): the order bounds the "
        "steps from above and does not describe their growth this far below it."
        if max(e.estimate for e in exponents) > 1
        else f"Runs need at most {max(ratios):.2g} of the steps that the theorems of this order "
        f"allow, and grow with 1 / eps to the power {found}."
    )
    good = [count.k == count.n for count in counts]
    return _decide(good, sentence, (*counts, *exponents), "solver and lambda")


def judge_promise(table: Any) -> Verdict:
    """The mean gap after T is at most eps, the mean dual distance after T_0 at most eps / 2."""
    effects = []
    for name, part in split(table, ("data", "form")):
        half = 2 * part["dual_distance_at_T0"] / part["eps"]
        effects.append(mean(part["gap_at_T"] / part["eps"], f"gap at T over eps, {name}"))
        effects.append(mean(half, f"dual distance at T_0 over eps / 2, {name}"))
    over = (table["T"] / table["needed"]).median()
    sentence = (
        "In the corrected forms T steps suffice for the gap and T_0 for half of it; a run that "
        f"looks at its gap could have stopped after 1/{over:.0f} of them."
    )
    return _decide([e.high <= 1 for e in effects], sentence, effects, "data and form")


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
        f"are promised; the worst is at {max(shares):.1g} of it."
    )
    good = [count.k >= 0.5 * (1 - DELTA) * count.n for count in counts]
    return _decide(good, sentence, counts, "data and projection")

"""Chapter S2: what its tables say, as rows, and as verdicts on its claims."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.lab import (
    DEPENDS,
    FAILS,
    HOLDS,
    Arm,
    Calculation,
    Count,
    Interval,
    Verdict,
    final,
    mean,
    median,
    paired_difference,
    split,
)
from zerogap.lab.chapters.s2_cells import CLOSED, TARGET, recorded_loss
from zerogap.lab.statistics import number

# Table 1 of the report: `c` is 1 / lambda for SGD and lambda for SDCA
TABLE_1 = {
    "Arrhythmia": {"c_sgd": 1e3, "eps": 1e-5, "c_sdca": 0.1},
    "Adult": {"c_sgd": 1e4, "eps": 5e-6, "c_sdca": 0.05},
}


SDCA, SGD = "sdca:sampling=random:shrink=false", "sgd:schedule=constant:sampling=random"


PUT = {"lam_of": "SDCA"}, {"lam_of": "SGD"}


FOUR = (
    Arm("SDCA, its lambda", SDCA, loss=CLOSED, columns=PUT[0]),
    Arm("SDCA, lambda of SGD", SDCA, loss=CLOSED, columns=PUT[1]),
    Arm("SGD, its lambda", SGD, columns=PUT[1]),
    Arm("SGD, lambda of SDCA", SGD, columns=PUT[0]),
)
EXACT = "SDCA, its lambda, exact step"
FIVE = (*FOUR, Arm(EXACT, SDCA, columns=PUT[0]))


OWN = ("SDCA, its lambda", "SGD, its lambda")


def with_recorded(table: Any) -> Any:
    """Add the loss that the report's code recorded, with `c` as it used it."""
    sdca = table["solver"].str.startswith("SDCA")
    c = np.where(sdca, table["lam"], 1.0 / table["lam"])
    n = (table["examples"] / table["epoch"]).groupby(table["data"]).transform("max").round()
    return table.assign(recorded=recorded_loss(table, c, n))


def summarise_curves(table: Any) -> list[dict[str, Any]]:
    """Return what one can read off a test curve: its end, its top, its unrest."""
    lines = []
    for (data, solver), part in table.groupby(["data", "solver"], sort=False):
        curves = part.pivot(index="epoch", columns="seed", values="test_accuracy").iloc[1:]
        late = curves.iloc[len(curves) // 2 :]
        last = part[part["epoch"] == part["epoch"].max()]
        lines.append(
            {
                "data": data,
                "solver": solver,
                "lambda": part["lam"].iloc[0],
                "last epoch": mean(curves.iloc[-1]),
                "best epoch (picked on the test rows)": mean(curves.max()),
                "change from epoch to epoch, second half": mean(late.diff().abs().mean()),
                "most frequent class": last["majority"].mean(),
                "relative gap at the end": relative_gap(last),
            }
        )
    return lines


def relative_gap(ends: Any) -> Interval:
    """Return the median of gap / objective; what is below 1e-16 is rounding."""
    return median((ends["gap"] / ends["primal"]).clip(lower=1e-16))


def judge_clarity(table: Any) -> Verdict:
    """From epoch to epoch, SDCA's curves move less than half as much as SGD's ("much clearer")."""
    late = table[table["epoch"] > table["epoch"].max() / 2]
    keys = ["data", "solver", "seed"]
    loss = late.groupby(keys)["primal"].agg(lambda x: np.log(x).diff().abs().mean())
    accuracy = late.groupby(keys)["test_accuracy"].agg(lambda x: x.diff().abs().mean())
    moves = {"log objective": loss, "accuracy": accuracy}
    effects, names = [], [arm.name for arm in FOUR]
    for first, second in (OWN, (names[0], names[3]), (names[1], names[2])):
        for name, found in moves.items():
            for data, part in found.groupby("data", sort=False):
                sdca, sgd = (part.xs(arm, level="solver") for arm in (first, second))
                what = f"change of {name} per epoch, ({first}) minus half of ({second}), {data}"
                effects.append(mean(sdca - 0.5 * sgd, what))
    much = sum(effect.high < 0 for effect in effects)
    text = (
        f"SDCA's curves move less than half as much as SGD's in {much} of {len(effects)} "
        "comparisons: it settles when it has converged, which takes longer the smaller lambda is."
    )
    if 0 < much < len(effects):
        return Verdict(DEPENDS, text, tuple(effects), on_what="lambda")
    return Verdict(HOLDS if much else FAILS, text, tuple(effects))


def _by_sign(effects: list[Interval], finding: str, on_what: str) -> Verdict:
    """Judge "the first is below the second", which `finding` says in words, by all intervals."""
    below = sum(effect.high < 0 for effect in effects)
    above = sum(effect.low > 0 for effect in effects)
    text = f"{finding} in {below} of {len(effects)} comparisons; the opposite is so in {above}."
    if 0 < below < len(effects):
        return Verdict(DEPENDS, text, tuple(effects), on_what=on_what)
    return Verdict(HOLDS if below else FAILS, text, tuple(effects))


def after_start(table: Any) -> Any:
    """Leave out w = 0, which names one class for all rows."""
    return table[table["updates"] > 0]


def sweeps_of_c(table: Any) -> Any:
    """Return the sweeps of c, with the most frequent class as a line of its own on both axes."""
    import pandas as pd

    table = table[table["sweeps"].isin(("c_sgd", "c_sdca"))].rename(columns={"value": "c"})
    plain = table[table["solver"] == "SDCA"]
    plain = plain.assign(solver="most frequent class", test_accuracy=plain["majority"])
    return pd.concat([table, plain])


def sweep_of_eps(table: Any) -> Any:
    """Return the sweep of eps."""
    table = table[table["sweeps"] == "eps"].drop(columns="eps")
    return table.rename(columns={"value": "eps"})


def compare_choices(table: Any) -> list[dict[str, Any]]:
    """Return table 1: the best value of each hyper-parameter, and what the report chose."""
    lines = []
    last = table[table["answer"] == "last"]
    for (data, sweeps), part in last.groupby(["data", "sweeps"], sort=False):
        wide = part.pivot(index="seed", columns="value", values="test_accuracy")
        best = wide.mean().idxmax()
        behind = {value: mean(wide[best] - wide[value]) for value in wide}
        good = [value for value, loss in behind.items() if loss.low <= 0 or value == best]
        printed = TABLE_1[data.partition(",")[0]][sweeps]
        lines.append(
            {
                "data": data,
                "hyper-parameter": _NAMES[sweeps],
                "report": printed,
                "best here": best,
                "as good within the interval": f"{number(min(good))} to {number(max(good))}",
                "accuracy at the best": mean(wide[best]),
                "lost at the report's value": behind[printed],
                "most frequent class": part.groupby("seed")["majority"].first().mean(),
            }
        )
    return lines


_NAMES = {"c_sgd": "c of SGD (1 / lambda)", "c_sdca": "c of SDCA (lambda)", "eps": "eps of SGD"}


def judge_returned(table: Any) -> Verdict:
    """The iterate that the report returned is as accurate as the last one, for every c."""
    effects = []
    for (data, c), part in table[table["sweeps"] == "c_sdca"].groupby(["data", "value"]):
        pair = "SDCA, iterate the report returned", "SDCA"
        what = f"accuracy, returned - last, {data}, c = {c:g}"
        effects.append(paired_difference(part, "test_accuracy", *pair, what=what))
    worst = sorted(effects, key=lambda effect: effect.high)[:3]
    lower = sum(effect.high < 0 for effect in effects)
    if not lower:
        text = "The iterate that the report returned is as accurate as the last one."
        return Verdict(HOLDS, text, tuple(worst))
    text = (
        f"At {lower} of {len(effects)} values of c the iterate that the report returned is worse "
        "than the last one: its loss prefers w = 0 when c is small."
    )
    return Verdict(FAILS, text, tuple(worst))


def summarise_bandwidths(table: Any) -> list[dict[str, Any]]:
    """Return the best bandwidth beside doing without the projection."""
    lines = []
    for (data, solver), part in table.groupby(["data", "solver"], sort=False):
        wide = part.pivot(index="seed", columns="h", values="test_accuracy")
        best = wide.mean().idxmax()
        good = [h for h in wide if mean(wide[best] - wide[h]).low <= 0 or h == best]
        lines.append(
            {
                "data": data,
                "solver": solver,
                "best h": best,
                "as good within the interval": f"{number(min(good))} to {number(max(good))}",
                "accuracy there": mean(wide[best]),
                "accuracy at h = 0.01": mean(wide[wide.columns.min()]),
                "most frequent class": part.groupby("seed")["majority"].first().mean(),
            }
        )
    return lines


def show_stopping_times(table: Any) -> list[dict[str, Any]]:
    """Return table 2: printed, corrected, and measured."""
    return [
        {
            "data": data,
            "n": int(part["n"].iloc[0]),
            "lambda": part["lam"].iloc[0],
            "printed": int(part["printed"].iloc[0]),
            "formula, lambdas exchanged": int(part["exchanged"].iloc[0]),
            "formula, lambda of table 1": int(part["lipschitz"].iloc[0]),
            "smooth bound, |x| <= 1": int(part["smooth"].iloc[0]),
            "smooth bound, mean |x|²": int(part["smooth_scaled"].iloc[0]),
            "mean |x|²": part["mean_square"].iloc[0],
            "largest |x|²": part["largest_square"].iloc[0],
            "needed by SDCA": median(part["needed"]),
        }
        for data, part in table.groupby("data", sort=False)
    ]


def judge_table_2(table: Any) -> Verdict:
    """The printed stopping times are those of the formula with the report's own lambdas."""
    found = table[table["rows"] == "standardised"].groupby("data", sort=False).first()
    right = all(found["printed"] == found["lipschitz"])
    evidence = tuple(
        Calculation(
            f"{data}: printed {row['printed']:.0f}, formula {row['lipschitz']:.0f}, with the other "
            f"data set's lambda {row['exchanged']:.0f}"
        )
        for data, row in found.iterrows()
    )
    text = "The two lambdas were exchanged: with those of table 1 the formula gives other numbers."
    return Verdict(HOLDS if right else FAILS, "" if right else text, evidence)


def judge_bounds(table: Any) -> Verdict:
    """On rows of norm 1 the gap is below the target after the theorems' numbers of updates."""
    valid = table[table["rows"] != "standardised"]
    counts = tuple(
        Count(
            f"gap <= {TARGET:g} after T, {name}", int((valid[column] <= TARGET).sum()), len(valid)
        )
        for column, name in (
            ("gap_lipschitz", "Lipschitz bound, average"),
            ("gap_smooth", "smooth bound, last iterate"),
        )
    )
    return Verdict(
        HOLDS if all(count.k == count.n for count in counts) else FAILS,
        "With rows of norm at most 1, as the theorems assume, both bounds suffice in every run.",
        counts,
    )


def judge_too_large(table: Any) -> Verdict:
    """The theorem's T is sufficient and much (here: ten times) too large."""
    effects = []
    for data, part in split(table, ("data",)):
        ratio = part["lipschitz"] / part["needed"]
        effects.append(mean(ratio, f"T of the theorem / updates needed, {data}"))
    if all(effect.low > 10 for effect in effects):
        return Verdict(HOLDS, "T is more than ten times what is needed everywhere.", tuple(effects))
    if all(effect.high < 10 for effect in effects):
        return Verdict(FAILS, "T is less than ten times what is needed.", tuple(effects))
    low, high = (f(effect.estimate for effect in effects) for f in (min, max))
    text = (
        f"T is {low:.2g} to {high:.2g} times what is needed: far too large where 20 / (lambda eps) "
        "dominates, a few times too large where n does. The gap itself is the rule to stop by."
    )
    return Verdict(DEPENDS, text, tuple(effects), on_what="n against 1 / (lambda eps)")


def with_place(table: Any) -> Any:
    """Name the problem of each row: its data and lambda."""
    lam = table["lam"].map("{:g}".format)
    return table.assign(place=table["data"] + ", lambda = " + lam)


def summarise_steps(table: Any) -> list[dict[str, Any]]:
    """Return how fast each rule for the logistic step is."""
    lines = []
    for (place, rule), part in with_place(table).groupby(["place", "solver"], sort=False):
        close = part[part["gap"] <= TARGET * part["primal"]].groupby("seed")["epoch"].min()
        runs, last = part["seed"].nunique(), part[part["epoch"] == part["epoch"].max()]
        early = part[part["epoch"] < 10]
        large = early.dropna(subset=["share_large_q"])
        lines.append(
            {
                "data": place,
                "step": rule,
                "epochs to a relative gap of 1e-3": median(close)
                if len(close) == runs
                else f"not within {part['epoch'].max():.0f} in {runs - len(close)} of {runs} runs",
                "relative gap at the end": relative_gap(last),
                "share of the best gain": mean(early.groupby("seed")["share"].mean()),
                "the same where q > 10": mean(large.groupby("seed")["share_large_q"].mean())
                if len(large)
                else "no such rows",
            }
        )
    return lines


def judge_closed_form(table: Any) -> Verdict:
    """The published closed form is the maximiser of the one-variable dual."""
    early = table[(table["solver"] == STEPS["published"]) & (table["epoch"] < 10)]
    effects = tuple(
        mean(part.groupby("seed")["share"].mean(), f"share of the best gain, {place}")
        for place, part in split(with_place(early), ("place",))
    )
    return Verdict(
        HOLDS if all(effect.high >= 1 for effect in effects) else FAILS,
        "It is a safe step towards the maximiser, which has no closed form: it always ascends, but "
        "gains a part of what the exact step gains, little when lambda n is small beside |x|².",
        effects,
    )


STEPS = {
    "exact": "exact step (Newton)",
    "published": "closed form, as published",
    "theory": "closed form, 1 / (1 + q / 4)",
}


def with_setting(table: Any) -> Any:
    """Add the words for lambda and intercept."""
    words = np.where(table["intercept"], ", intercept", ", no intercept")
    return table.assign(setting="lambda of " + table["lam_of"] + words)


def _report_s_own(table: Any) -> Any:
    return table[(table["lam_of"] == table["solver"]) & ~table["intercept"]]


def _sgd_minus_sdca(table: Any, what: str) -> list[Interval]:
    return [
        paired_difference(
            part, "test_accuracy", "SGD", "SDCA", what=f"accuracy, SGD - SDCA, {what}, {name}"
        )
        for name, part in split(table, ("data",))
    ]


def judge_better(table: Any) -> Verdict:
    """SGD's last iterate is more accurate than SDCA's: as in the report, and on equal terms."""
    effects = own = _sgd_minus_sdca(_report_s_own(table), "as in the report")
    for setting, part in split(with_setting(table), ("setting",)):
        effects = effects + _sgd_minus_sdca(part, setting)
    better = sum(effect.low > 0 for effect in effects)
    worse = sum(effect.high < 0 for effect in effects)
    asked = " and ".join(f"{e.estimate:+.3f} on {e.what.split(', ')[-1]}" for e in own)
    text = (
        f"SGD minus SDCA is {asked} in the report's own setting; of {len(effects)} comparisons, "
        f"on equal terms as well, SGD is the more accurate in {better} and the less in {worse}."
    )
    if better == len(effects):
        return Verdict(HOLDS, text, tuple(effects))
    if not better:
        return Verdict(FAILS, text, tuple(effects))
    return Verdict(DEPENDS, text, tuple(effects), on_what="the data set, lambda and the intercept")


def judge_trapped(table: Any, starts: Any) -> Verdict:
    """Some run of SDCA ends away from the global minimum."""
    own = _report_s_own(table)
    own = own[own["solver"] == "SDCA"]
    proved = own["gap"] <= TARGET * own["primal"]
    same = (starts["gap"] <= 1e-6 * starts["primal"]) & (starts["end"] <= 1e-3)
    counts = (
        Count("proved to be within 0.1 % of the global minimum", int(proved.sum()), len(own)),
        Count("random starts proved to end at the global minimum", int(same.sum()), len(same)),
    )
    if any(count.k < count.n for count in counts):
        return Verdict(HOLDS, "Some runs end above the global minimum.", counts)
    text = (
        "The objective has one minimum, and the duality gap proves that every run has reached it, "
        "from any start: the curve stops because it is done. SGD's accuracy belongs to another "
        "problem, with a lambda 100 or 500 times smaller."
    )
    return Verdict(FAILS, text, counts)


def take_apart(table: Any) -> list[dict[str, Any]]:
    """Return accuracy, gap and distance from the optimum in every setting."""
    return [
        {
            "data": data,
            "setting": setting,
            "lambda": part["lam"].iloc[0],
            "solver": solver,
            "test accuracy": mean(part["test_accuracy"]),
            "most frequent class": part["majority"].mean(),
            "relative gap": relative_gap(part),
            "|w - w*| / |w*|": median(part["distance"]),
        }
        for (data, setting, solver), part in with_setting(table).groupby(
            ["data", "setting", "solver"], sort=False
        )
    ]


def judge_no_stopping(table: Any) -> Verdict:
    """No run of SGD can tell when it is done."""
    runs = table[table["solver"] == SGD_ARMS[1].name]
    ends = final(runs)
    proved = runs.assign(ok=runs["gap"] <= 0.05 * runs["primal"]).groupby(["data", "lam", "seed"])[
        "ok"
    ]
    honest = int((ends["gap"] >= ends["suboptimality"] * (1 - 1e-6)).sum())
    count = Count("SGD runs whose own certificate proves 5 %", int(proved.any().sum()), len(ends))
    bound = Count("SGD's gap is above its true distance", honest, len(ends))
    text = (
        "SGD brings no criterion of its own, but alpha_i = -phi'(z_i) is a dual point for any w, "
        "so its gap is known like any other's; small enough to stop by (5 % of the objective) it "
        "gets only where SGD itself converges."
    )
    if not count.k:
        return Verdict(HOLDS, text, (count, bound))
    if count.k == count.n:
        return Verdict(FAILS, text, (count, bound))
    return Verdict(DEPENDS, text, (count, bound), on_what="how small lambda is")


def judge_aggressive(table: Any) -> Verdict:
    """With the smallest lambda, SGD's first epoch raises the objective above its start."""
    first = table[(table["epoch"] > 0) & (table["epoch"] <= 1)]
    worst = first.groupby(["solver", "lam", "data", "seed"])["primal"].max().reset_index()
    small, large = worst["lam"].min(), worst["lam"].max()
    effects: list[Interval] = []
    wild: list[str] = []
    tame: list[str] = []
    for arm in SGD_ARMS:
        own = worst[worst["solver"] == arm.name]
        rises = {lam: _rises(own[own["lam"] == lam]) for lam in (small, large)}
        effects += [effect for found in rises.values() for effect in found]
        if all(effect.low > 0 for effect in rises[small]):
            times = (
                f"to {number(10 ** max(effect.estimate for effect in found))} times at lambda = "
                f"{lam:g}"
                for lam, found in rises.items()
            )
            wild.append(f"{arm.name} ({', '.join(times)})")
        else:
            tame.append(arm.name)
    text = (
        "The first epoch takes the objective above its start with "
        f"{' and '.join(wild) or 'none'}; not with {' and '.join(tame) or 'none'}."
    )
    if wild and tame:
        return Verdict(DEPENDS, text, tuple(effects), on_what="the rule for the step")
    return Verdict(HOLDS if wild else FAILS, text, tuple(effects))


def _rises(worst: Any) -> list[Interval]:
    """Return log10 of the largest objective of the first epoch over P(0) = log 2, by data."""
    return [
        mean(
            np.log10(part["primal"] / np.log(2)),
            f"log10 of largest P in epoch 1 / P(0), {part['solver'].iloc[0]}, {name}",
        )
        for name, part in split(worst, ("lam", "data"))
    ]


def judge_slow(table: Any) -> Verdict:
    """After the same number of epochs SDCA is closer to the optimum than every SGD."""
    ends = final(table).assign(log=lambda t: np.log10(t["suboptimality"].clip(lower=1e-14)))
    effects = [
        paired_difference(
            part, "log", "SDCA", arm.name, what=f"log10 distance, SDCA - {arm.name}, {place}"
        )
        for place, part in split(ends, ("data", "lam"))
        for arm in SGD_ARMS
    ]
    return _by_sign(
        effects,
        "After the same number of epochs SDCA is closer to the optimum than SGD",
        "lambda, the data and the rule for the step",
    )


SGD_ARMS = (
    Arm("SGD, step 1 / (lambda t)", "pegasos"),
    Arm("SGD, bounded step, average", "sgd:schedule=inverse:output=average:sampling=random"),
    Arm("SGD, constant step", SGD),
)


def judge_average(table: Any) -> Verdict:
    """The average has a smaller gap than the last iterate."""
    table = table.assign(log=np.log10(table["gap"].clip(lower=1e-16)))
    effects = [
        paired_difference(
            part, "log", "SDCA, average", "SDCA, last", what=f"log10 gap, average - last, {place}"
        )
        for place, part in split(table, ("data", "loss", "passes"))
    ]
    return _by_sign(
        effects,
        "The average has a smaller gap than the last iterate",
        "the loss and the length of the run",
    )


def summarise_losses(table: Any) -> list[dict[str, Any]]:
    """Return accuracy and gap at the end, by data and loss."""
    ends = final(table)
    return [
        {
            "data": data,
            "loss": loss,
            "solver": solver,
            "test accuracy": mean(part["test_accuracy"]),
            "most frequent class": part["majority"].mean(),
            "relative gap": relative_gap(part),
        }
        for (data, loss, solver), part in ends.groupby(["data", "loss", "solver"], sort=False)
    ]


def summarise_times(table: Any) -> list[dict[str, Any]]:
    """Return the CPU time of an update by each rule, and their ratio."""
    lines = []
    for (data, code), part in table.groupby(["data", "code"], sort=False):
        wide = 1e6 * part.pivot(index="seed", columns="rule", values="seconds_per_update")
        lines.append(
            {
                "data": data,
                "code": code,
                "closed form": mean(wide["closed form"]),
                "Newton": mean(wide["Newton"]),
                "Newton / closed form": mean(wide["Newton"] / wide["closed form"]),
            }
        )
    return lines


def judge_newton(table: Any) -> Verdict:
    raise NotImplementedError

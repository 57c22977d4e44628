"""Chapter S2: its arms, and what its tables and figures show, as rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.lab import Arm, Interval, final, mean, median
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
ROUNDING = 1e-12  # relative gaps of a thousand rows in doubles are not known better than this
_NAMES = {"c_sgd": "c of SGD (1 / lambda)", "c_sdca": "c of SDCA (lambda)", "eps": "eps of SGD"}
STEPS = {
    "exact": "exact step (Newton)",
    "published": "closed form, as published",
    "theory": "closed form, 1 / (1 + q / 4)",
}
SGD_ARMS = (
    Arm("SGD, step 1 / (lambda t)", "pegasos"),
    Arm("SGD, bounded step, average", "sgd:schedule=inverse:output=average:sampling=random"),
    Arm("SGD, constant step", SGD),
)


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
    """Return the median of gap / objective; what is below 1e-12 is rounding."""
    return median((ends["gap"] / ends["primal"]).clip(lower=ROUNDING))


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
    for (data, sweeps, solver), part in last.groupby(["data", "sweeps", "solver"], sort=False):
        wide = part.pivot(index="seed", columns="value", values="test_accuracy")
        best = wide.mean().idxmax()
        behind = {value: mean(wide[best] - wide[value]) for value in wide}
        good = [value for value, loss in behind.items() if loss.low <= 0 or value == best]
        printed = TABLE_1[data.partition(",")[0]][sweeps]
        lines.append(
            {
                "data": data,
                "hyper-parameter": _NAMES[sweeps] + solver[len("SDCA") :],
                "report": printed,
                "best here": best,
                "as good within the interval": f"{number(min(good))} to {number(max(good))}",
                "accuracy at the best": mean(wide[best]),
                "lost at the report's value": behind[printed],
                "most frequent class": part.groupby("seed")["majority"].first().mean(),
            }
        )
    return lines


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


def with_setting(table: Any) -> Any:
    """Add the words for lambda and intercept."""
    words = np.where(table["intercept"], ", intercept", ", no intercept")
    return table.assign(setting="lambda of " + table["lam_of"] + words)


def report_s_own(table: Any) -> Any:
    """Return the runs in the report's own setting: each solver's lambda, no intercept."""
    return table[(table["lam_of"] == table["solver"]) & ~table["intercept"]]


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


def changes_by_output(table: Any) -> list[dict[str, Any]]:
    """Return how much each output changes between stops."""
    return [
        {"data": data, "output": solver.removeprefix("SDCA, "), "change": median(part["change"])}
        for (data, solver), part in table.groupby(["data", "solver"], sort=False)
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


def with_one_run(table: Any) -> Any:
    """Add the first run of each of the report's two lines by itself: the report shows one run."""
    import pandas as pd

    table = after_start(table)
    one = table[table["solver"].isin(OWN) & (table["seed"] == table["seed"].min())]
    return pd.concat([table, one.assign(solver=one["solver"] + ", one run")])


def with_loss(table: Any) -> Any:
    """Name the data and the loss of each row, in words."""
    words = table["loss"].replace({CLOSED: "logistic, closed-form step"})
    return table.assign(place=table["data"] + ", " + words)

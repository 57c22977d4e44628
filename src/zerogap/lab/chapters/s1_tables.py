"""Chapter S1: what its tables and figures show, as rows."""

from __future__ import annotations

from typing import Any

from zerogap import bounds
from zerogap.lab import Interval, differences, final, mean, median, split

SDCA, FIRST, PEGASOS = "SDCA", "SGD first, then SDCA", "Pegasos, batches of 100"
BUG, AVERAGED = "SDCA, report's step", "Pegasos, average"
OWN, BY_SOURCE, AT_RANDOM = "as given", "by photograph", "by picture"
EPS = 0.01  # of the objective


POINT = 0.01  # of an error rate


def arrivals(table: Any) -> Any:
    """Return when each run's test error comes within a point of where SDCA ends, to stay there.

    A row per run with the epoch, one more than there are if never, and the CPU time until then.
    """
    import pandas as pd

    end = final(table)
    goal = end[end["solver"] == SDCA].set_index("seed")["test_error"]
    rows = []
    for (solver, seed), part in table.groupby(["solver", "seed"], sort=False):
        part = part.sort_values("epoch")
        far = part["epoch"][(part["test_error"] - goal[seed]).abs() > POINT]
        epoch = 0.0 if far.empty else far.max() + 1.0
        cpu = part["cpu_seconds"][part["epoch"] <= epoch].max()
        rows.append({"solver": solver, "seed": seed, "epoch": epoch, "cpu_seconds": cpu})
    return pd.DataFrame(rows)


def numbers(table: Any) -> list[dict[str, Any]]:
    """Return final errors and losses, epochs and CPU time to get there, by solver."""
    end, there = final(table), arrivals(table)
    lines = []
    for solver in table["solver"].unique():
        part, own = end[end["solver"] == solver], there[there["solver"] == solver]
        lines.append(
            {
                "solver": solver,
                "test error": mean(part["test_error"]),
                "train loss": mean(part["primal"]),
                "epochs to reach it": median(own["epoch"]),
                "CPU s to reach it": median(own["cpu_seconds"]),
                "CPU s, all epochs": mean(part["cpu_seconds"]),
            }
        )
    return lines


def variance(table: Any) -> list[dict[str, Any]]:
    """Return the share of the variance that the first components have."""
    first = table[table["component"].isin((1, 2, 5, 10, 40))]
    rows = [*first.to_dict("records"), table.iloc[-1].to_dict()]
    return [
        {
            "components": int(row["component"]),
            "singular value": row["singular_value"],
            "share of the variance, %": 100 * row["share"],
        }
        for row in rows
    ]


def windows(table: Any) -> list[dict[str, Any]]:
    """Return how far the window moves with the report's blur, by class."""
    return [
        {
            "class": kind,
            "pictures": len(part),
            "median": float(part["moved"].median()),
            "90 % below": float(part["moved"].quantile(0.9)),
            "more than 10 pixels, %": 100 * float((part["moved"] > 10).mean()),
        }
        for kind, part in table.groupby("class", sort=False)
    ]


def sources(table: Any) -> list[dict[str, Any]]:
    """Return how numbers and groups of like pictures agree, by folder and class."""
    return [
        {
            "folder": row["folder"],
            "class": row["class"],
            "pictures": row["pictures"],
            "numbers": row["numbers"],
            "pictures per number": row["pictures"] / row["numbers"],
            "groups found": row["groups"],
            "pictures in a typical group": row["typical"],
            "most similar has the same number, %": 100 * row["same_number"],
            "most similar is of the same group, %": 100 * row["same_group"],
        }
        for row in table.to_dict("records")
    ]


def errors_by_split(table: Any) -> list[dict[str, Any]]:
    """Return test errors with their spread, by features, split and solver."""
    printed = {("pixels", SDCA): 0.2629, ("pixels", PEGASOS): 0.2637}
    printed |= {("PCA 40", SDCA): 0.2058, ("PCA 40", PEGASOS): 0.2066}
    lines = []
    for (features, name, solver), part in table.groupby(
        ["features", "split", "solver"], sort=False
    ):
        known = printed.get((features, solver)) if name == OWN else None
        lines.append(
            {
                "features": features,
                "split": name,
                "solver": solver,
                "test error": mean(part["test_error"]),
                "smallest and largest": f"{part['test_error'].min():.3f} to "
                f"{part['test_error'].max():.3f}",
                "training error": mean(part["train_error"]),
                "printed": "" if known is None else known,
            }
        )
    return lines


def excess(part: Any, what: str = "") -> Interval:
    """Return Pegasos minus SDCA of the test error, averaged over the epochs of a run."""
    means = part[part["epoch"] >= 1].groupby(["seed", "solver"])["test_error"].mean().reset_index()
    return mean(differences(means, "test_error", PEGASOS, SDCA), what)


def excess_table(table: Any) -> list[dict[str, Any]]:
    """Return how much worse Pegasos is on the way, by what was done to the images."""
    lines = []
    for name, part in split(table, ("data",)):
        started = part[part["epoch"] >= 1]
        peaks = started.groupby(["solver", "seed"])["primal"].max()
        lines.append(
            {
                "images": name,
                "mean test error over the epochs, Pegasos - SDCA": excess(part),
                "largest loss, Pegasos": mean(peaks[PEGASOS]),
                "largest loss, SDCA": mean(peaks[SDCA]),
            }
        )
    return lines


def above_rounding(table: Any) -> Any:
    """Show gaps that are nothing but rounding as 1e-12."""
    return table.assign(gap=table["gap"].clip(lower=1e-12))


def name_problems(table: Any) -> Any:
    """Add a name of data and lambda, for gaps to be shown."""
    table = above_rounding(table)
    names = [
        f"{data}, lambda = {lam:g}" for data, lam in zip(table["data"], table["lam"], strict=True)
    ]
    return table.assign(problem=names)


def reached(table: Any) -> Any:
    """Return a row per run with the updates until the objective is near the optimum."""
    near = table[table["suboptimality"] <= EPS]
    keys = ["data", "lam", "solver", "seed", "rows"]
    first = near.groupby(keys, sort=False)["updates"].min()
    found = first.rename("to_eps").reset_index()
    return found.assign(problem=[f"lambda = {lam:g}" for lam in found["lam"]])


def rates(table: Any) -> list[dict[str, Any]]:
    """Return updates measured and sufficient, by lambda, rows and solver."""
    lines = []
    for (lam, n, solver), part in reached(table).groupby(["lam", "rows", "solver"]):
        if solver == SDCA:
            enough = bounds.sdca(n, lam, EPS, loss="hinge", sharp=True)
        else:
            enough = bounds.pegasos(lam, EPS, projection=False)
        lines.append(
            {
                "lambda": lam,
                "n": int(n),
                "solver": solver,
                "updates": median(part["to_eps"]),
                "sufficient": enough.iterations,
            }
        )
    return lines

"""Judges and tables of chapter S1: functions of tidy tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap import bounds
from zerogap.lab import (
    DEPENDS,
    FAILS,
    HOLDS,
    Count,
    Interval,
    Verdict,
    differences,
    final,
    mean,
    median,
    paired_difference,
    split,
)

SDCA, FIRST, PEGASOS = "SDCA", "SGD first, then SDCA", "Pegasos, batches of 100"
BUG, AVERAGED = "SDCA, report's step", "Pegasos, average"
OWN, BY_SOURCE, AT_RANDOM = "as given", "by photograph", "by picture"
EPS = 0.01  # of the objective
POINT = 0.01  # of an error rate
FLAT = 0.2  # exponent: twice the rows change the updates by 15 %


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


def error_about_26(curves: Any, splits: Any) -> Verdict:
    """The report's number, on its own split and on splits by photograph."""
    raw = splits[(splits["features"] == "pixels") & (splits["solver"] == SDCA)]
    own = final(curves[curves["solver"] == SDCA])["test_error"]
    effects = [mean(own, "test error of SDCA, the report's split, over solver runs")]
    for name in (BY_SOURCE, AT_RANDOM):
        errors = raw[raw["split"] == name]["test_error"]
        effects.append(mean(errors, f"test error of SDCA, {len(errors)} splits {name}"))
    near = [effect.low - POINT <= 0.26 <= effect.high + POINT for effect in effects[:2]]
    honest = raw[raw["split"] == BY_SOURCE]["test_error"]
    sentence = (
        f"{100 * effects[0].estimate:.1f} % with these crops on the report's split; splits by "
        f"photograph range from {100 * honest.min():.1f} % to {100 * honest.max():.1f} %, so that "
        "one split settles little."
    )
    if all(near):
        return Verdict(HOLDS, sentence, tuple(effects))
    if not any(near):
        return Verdict(FAILS, sentence, tuple(effects))
    return Verdict(DEPENDS, sentence, tuple(effects), on_what="the split")


def epochs_needed(table: Any) -> Verdict:
    """SDCA in two epochs, Pegasos in about four."""
    there = arrivals(table)
    sdca, pegasos = (
        median(there[there["solver"] == name]["epoch"], f"epochs, {name}")
        for name in (SDCA, PEGASOS)
    )
    good = sdca.estimate <= 2 and pegasos.low <= 5 and pegasos.high >= 3
    return Verdict(
        HOLDS if good else FAILS,
        f"Within a point of the final error, to stay: SDCA from epoch {sdca.estimate:g} on, "
        f"Pegasos from epoch {pegasos.estimate:g} on.",
        (sdca, pegasos),
    )


def _cpu_ratio(table: Any, first: str, second: str, what: str) -> Interval:
    wide = table.pivot_table(index="seed", columns="solver", values="cpu_seconds")
    return median((wide[first] / wide[second]).dropna(), what)


def _code_ratios(table: Any, data: str) -> list[Interval]:
    part = table[table["data"] == data]
    return [
        _cpu_ratio(
            part,
            f"Pegasos, {code}",
            f"SDCA, {code}",
            f"CPU time of an epoch, Pegasos / SDCA, {data}, {code}",
        )
        for code in ("compiled", "interpreted")
    ]


def three_times_longer(curves: Any, code: Any) -> Verdict:
    """CPU time of Pegasos over that of SDCA: for an epoch, and until the error is reached."""
    reach = _cpu_ratio(
        arrivals(curves), PEGASOS, SDCA, "CPU time to reach the error, Pegasos / SDCA"
    )
    epoch, interpreted = _code_ratios(code, "pixels")
    effects = (reach, epoch, interpreted)
    good = [3 / 1.5 <= effect.estimate <= 3 * 1.5 for effect in effects]
    sentence = (
        f"To reach the error Pegasos takes {reach.estimate:.2g} times the CPU time of SDCA; "
        f"an epoch takes {epoch.estimate:.2g} times as long compiled, "
        f"{interpreted.estimate:.2g} times in Python."
    )
    if all(good) or not any(good):
        return Verdict(HOLDS if all(good) else FAILS, sentence, effects)
    return Verdict(
        DEPENDS, sentence, effects, on_what="what is timed: an epoch or the way to an error"
    )


def _both(raw: Any, pca: Any, epoch: float | None = None) -> Any:
    import pandas as pd

    both = pd.concat([raw, pca])
    return both if epoch is None else both[both["epoch"] == epoch]


def first_epoch_loss(raw: Any, pca: Any) -> Verdict:
    """After one epoch, SGD first has the lower loss."""
    effects = {
        name: paired_difference(part, "primal", FIRST, SDCA, what=f"loss, SGD first - SDCA, {name}")
        for name, part in split(_both(raw, pca, 1.0), ("data",))
    }
    better = [name for name, effect in effects.items() if effect.high < 0]
    others = [name for name in effects if name not in better]
    sentence = "After epoch 1 the loss is " + "; ".join(
        f"{words} with SGD first on {' and '.join(names)}"
        for words, names in (("lower", better), ("no lower", others))
        if names
    )
    if better and len(better) < len(effects):
        return Verdict(DEPENDS, f"{sentence}.", tuple(effects.values()), on_what="the features")
    return Verdict(HOLDS if better else FAILS, f"{sentence}.", tuple(effects.values()))


def first_epoch_error(raw: Any, pca: Any) -> Verdict:
    """After one epoch, SGD first does not have the lower test error."""
    effects = [
        paired_difference(part, "test_error", FIRST, SDCA)
        for _, part in split(_both(raw, pca, 1.0), ("data",))
    ]
    better = [effect.high < 0 for effect in effects]
    biggest = max(abs(effect.estimate) for effect in effects)
    sentence = f"After epoch 1 the test errors differ by {100 * biggest:.2g} points at most."
    if any(better) and not all(better):
        return Verdict(DEPENDS, sentence, tuple(effects), on_what="the features")
    return Verdict(FAILS if all(better) else HOLDS, sentence, tuple(effects))


def gap_is_safe(raw: Any, pca: Any) -> Verdict:
    """The duality gap is never below the distance from the optimum."""
    both = _both(raw, pca)
    safe = both["gap"] >= both["suboptimality"] - 1e-9  # rounding
    runs = safe.groupby([both["data"], both["solver"], both["seed"]]).all()
    small = final(raw[raw["solver"] == SDCA])["gap"]
    return Verdict(
        HOLDS if runs.all() else FAILS,
        f"At all {len(both):,} records the gap is at least the distance from the optimum; after 10 "
        f"epochs of SDCA on raw images it is {small.median():.1e}.",
        (
            Count("gap >= P(w) - min P at every record", int(runs.sum()), len(runs)),
            median(small, "gap after the last epoch, SDCA, raw images"),
        ),
    )


def same_error(curves: Any, splits: Any) -> Verdict:
    """The test errors of the three solvers are within half a point of each other."""
    end = final(curves)
    honest = splits[(splits["features"] == "PCA 40") & (splits["split"] == BY_SOURCE)]
    effects = tuple(
        paired_difference(
            part, "test_error", name, SDCA, what=f"test error, {name} - SDCA, {where}"
        )
        for name in (FIRST, PEGASOS)
        for part, where in ((end, "own split"), (honest, "splits by photograph"))
    )
    good = all(abs(end) < 0.5 * POINT for e in effects for end in (e.low, e.high))
    inside = end[end["solver"] == SDCA]["inside_margin"].mean()
    largest = 100 * max(abs(effect.estimate) for effect in effects)
    return Verdict(
        HOLDS if good else FAILS,
        f"The mean errors differ by {largest:.2g} points at most. At lambda = 1.6 "
        f"{100 * inside:.3g} % of the rows are inside the margin: where all are, the optimum is "
        "the mean of y x over lambda, a problem too easy to tell solvers apart.",
        effects,
    )


def faster_epochs(curves: Any, code: Any) -> Verdict:
    """Pegasos' epochs against SDCA's after PCA, compiled and interpreted."""
    ours = _cpu_ratio(
        final(curves), PEGASOS, SDCA, "CPU time of 10 epochs, Pegasos / SDCA, compiled"
    )
    interpreted = _code_ratios(code, "PCA 40")[1]
    good = [effect.high < 0.5 for effect in (ours, interpreted)]
    sentence = (
        f"In Python an epoch of Pegasos takes {interpreted.estimate:.2g} of the time of SDCA's, "
        f"compiled {ours.estimate:.2g}: the report timed n interpreted steps against n / 100."
    )
    if all(good) or not any(good):
        return Verdict(HOLDS if all(good) else FAILS, sentence, (ours, interpreted))
    return Verdict(DEPENDS, sentence, (ours, interpreted), on_what="interpreted or compiled steps")


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


def _excess(part: Any, what: str = "") -> Interval:
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
                "mean test error over the epochs, Pegasos - SDCA": _excess(part),
                "largest loss, Pegasos": mean(peaks[PEGASOS]),
                "largest loss, SDCA": mean(peaks[SDCA]),
            }
        )
    return lines


def robustness(table: Any) -> Verdict:
    """Which of dimension, noise and mean image makes Pegasos worse than SDCA on the way."""
    factors = ("d", "centred", "noise")
    groups = dict(list(table.groupby(list(factors), sort=False)))
    effects = {
        key: _excess(part, f"test error, Pegasos - SDCA, {part['data'].iloc[0]}")
        for key, part in groups.items()
    }
    worse = {key: effect.low > 2 * POINT for key, effect in effects.items()}
    evidence = tuple(effects.values())
    places = [groups[key]["data"].iloc[0] for key in worse if worse[key]]
    sentence = (
        f"Pegasos' error is more than 2 points above SDCA's over the first epochs in "
        f"{sum(worse.values())} of {len(worse)} settings: {'; '.join(places) or 'none'}."
    )
    decisive = [
        factor
        for j, factor in enumerate(factors)
        if any(
            worse[a] != worse[b]
            for a in worse
            for b in worse
            if a[j] != b[j] and a[:j] + a[j + 1 :] == b[:j] + b[j + 1 :]
        )
    ]
    if not decisive:
        return Verdict(HOLDS if any(worse.values()) else FAILS, sentence, evidence)
    names = {"d": "the dimension", "centred": "whether images are centred", "noise": "the noise"}
    return Verdict(DEPENDS, sentence, evidence, on_what=", ".join(names[f] for f in decisive))


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


def bug_is_harmless(table: Any) -> Verdict:
    """The gap after the last epoch with the report's step over that with the correct one."""
    effects, harmed = [], []
    for name, part in split(name_problems(final(table)), ("problem",)):
        effect = paired_difference(
            part, "gap", BUG, SDCA, what=f"gap, report's step - correct, {name}"
        )
        effects.append(effect)
        harmed.append(effect.low > 1e-3)
    sentence = (
        f"In {sum(harmed)} of {len(harmed)} problems the last gap is larger by more than "
        f"0.001, by up to {max(effect.estimate for effect in effects):.2g}."
    )
    if all(harmed) or not any(harmed):
        return Verdict(FAILS if all(harmed) else HOLDS, sentence, tuple(effects))
    return Verdict(DEPENDS, sentence, tuple(effects), on_what="lambda, and d against n")


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


def rates_in_n(table: Any) -> Verdict:
    """Exponents of n in the number of updates, and whether the bounds are kept."""
    effects, slopes = [], {}
    found = reached(table)
    for (lam, solver), part in found.groupby(["lam", "solver"]):
        exponents = [
            np.polyfit(np.log(run["rows"]), np.log(run["to_eps"]), 1)[0]
            for _, run in part.groupby("seed")
            if len(run) > 1
        ]
        slopes[lam, solver] = mean(exponents, f"exponent of n, {solver}, lambda = {lam:g}")
        effects.append(slopes[lam, solver])
    kept = sum(line["updates"].high <= line["sufficient"] for line in rates(table))
    total = len(rates(table))
    flat = all(max(-e.low, e.high) <= FLAT for (_, s), e in slopes.items() if s == AVERAGED)
    grows = all(e.high <= 1 + FLAT for (_, s), e in slopes.items() if s == SDCA)
    pegasos = max(e.estimate for (_, s), e in slopes.items() if s == AVERAGED)
    sdca = {lam: e.estimate for (lam, s), e in slopes.items() if s == SDCA}
    return Verdict(
        HOLDS if flat and grows and kept == total else FAILS,
        f"Pegasos' updates grow as n^{pegasos:.2f} at most, SDCA's as "
        + " and ".join(f"n^{e:.2f} (lambda = {lam:g})" for lam, e in sdca.items())
        + f"; {kept} of {total} medians are within the theorems' numbers.",
        tuple(effects),
    )

"""Chapter S3: the objective as the practical prints it, beside the true one."""

from __future__ import annotations

from typing import Any

from zerogap.lab import Verdict, above, conclude, listed, mean, split
from zerogap.lab.chapters.s3_judges import DEFAULT, begun, called

CLOSE = 0.1  # of the objective


def judge_estimate(table: Any) -> Verdict:
    """After most epochs of a run the mean of the batches' objectives is near the objective."""
    runs = begun(table[table["solver"] == DEFAULT])
    runs = runs.assign(off=runs["estimate"] / runs["primal"] - 1.0)
    effects, shares, parts = [], [], []
    for name, part in split(runs, ("data",)):
        near = (part["off"].abs() <= CLOSE).groupby(part["seed"]).mean()
        effects.append(mean(near, f"share of the epochs within 10 % of the objective, {name}"))
        shares.append(f"{100 * effects[-1].estimate:.0f} % of the epochs on {name}")
        by_epoch = 100 * part.groupby("epoch")["off"].mean()
        parts.append(
            f"{by_epoch.iloc[0]:+.0f} % after the first epoch and {by_epoch.iloc[-1]:+.1f} % after "
            f"the last on {name}"
        )
    return conclude(
        (above(effect, 0.5) for effect in effects),
        f"The estimate of {called(DEFAULT)} is within 10 % of the objective after "
        f"{listed(shares)}.",
        effects,
        "the data set",
        f"It differs by {listed(parts)}: it looks at each batch before the update.",
    )

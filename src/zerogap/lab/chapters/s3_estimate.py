"""Chapter S3: the objective as the practical prints it, beside the true one."""

from __future__ import annotations

from typing import Any

from zerogap.lab import Count, Verdict, conclude, listed, mostly, split
from zerogap.lab.chapters.s3_judges import DEFAULT, begun, called

CLOSE = 0.1  # of the objective


def judge_estimate(table: Any) -> Verdict:
    """At the end of most epochs the mean of the batches' objectives is near the objective."""
    runs = begun(table[table["solver"] == DEFAULT])
    runs = runs.assign(off=runs["estimate"] / runs["primal"] - 1.0)
    counts, parts = [], []
    for name, part in split(runs, ("data",)):
        near = part["off"].abs() <= CLOSE
        counts.append(Count(f"within 10 % of the objective, {name}", int(near.sum()), len(near)))
        by_epoch = part.groupby("epoch")["off"].mean()
        first, last = by_epoch.iloc[0], by_epoch.iloc[-1]
        parts.append(
            f"{100 * first:+.0f} % after the first and {100 * last:+.1f} % after the last on {name}"
        )
    told = listed(count.what.rpartition(", ")[2] + f" {count.k} of {count.n}" for count in counts)
    return conclude(
        map(mostly, counts),
        f"The estimate of {called(DEFAULT)} is within 10 % of the objective at these numbers of "
        f"epochs: {told}.",
        counts,
        "the data set",
        f"It differs by {listed(parts)}: batches before an update lag behind.",
    )

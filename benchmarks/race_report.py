"""Tables, means and the performance profile of a race."""

from __future__ import annotations

import math
import platform
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from data import RAW
from race_run import CAP, STUCK

PACKAGES = (
    *("zerogap", "numpy", "scipy", "numba", "scikit-learn"),
    *("liblinear-official", "snapml", "cyanure", "skglm", "rehline", "glum"),
)
LEVEL = 0.95  # of ours: a peer that takes so much of our time is as fast
GOALS = {1e-3: 2.0, 1e-6: 3.0}  # target -> geometric mean of best peer / ours
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#999999")
DASHES = ("-", "--", ":")
REACHED = "reached"
ORDER = {REACHED: 0, CAP: 1}


@dataclass
class Row:
    """One problem and target: seconds of ours and of each peer, and how each ended."""

    data: str
    rows: int
    columns: int
    loss: str
    C: float
    target: float
    ours: float
    gap: float  # that ours proved, relative
    reference_gap: float
    peers: dict[str, tuple[float, str]]

    @property
    def place(self) -> tuple:
        return self.data, self.loss, self.C, self.target

    @property
    def proved(self) -> bool:
        return self.gap <= self.target

    @property
    def judged(self) -> bool:
        """Whether the optimum is known well enough to tell which peer reached the target."""
        return self.reference_gap <= self.target / 2

    @property
    def best(self) -> str:
        """The peer that reached the target first; if none did, the one that was stopped first."""
        return min(self.peers, key=lambda p: (ORDER.get(self.peers[p][1], 2), self.peers[p][0]))

    @property
    def lead(self) -> float:
        """Best peer / ours; who was stopped counts as if done then; 1 at most where unknown."""
        seconds, status = self.peers[self.best]
        ratio = seconds / self.ours if status in ORDER else 1.0
        return ratio if self.judged else min(ratio, 1.0)

    def cell(self, peer: str) -> str:
        seconds, status = self.peers.get(peer, (0.0, ""))
        if status in (REACHED, CAP):
            sign = "> " if status == CAP else ""
            return f"{sign}{seconds / self.ours:.2g}" if self.proved else "0"
        return status if status in ("", STUCK) else "failed"

    @property
    def name(self) -> str:
        return f"{self.data}, {self.loss}, C = {self.C:g}, {self.target:.0e}"

    def __str__(self) -> str:
        gap = "" if self.proved else f"; ours stopped at a gap of {self.gap:.1e}"
        known = "" if self.judged else f"; optimum known to {self.reference_gap:.1e} only"
        return f"{self.name}: {self.cell(self.best)} ({self.best}){gap}{known}"


def mean_lead(rows: Iterable[Row]) -> float:
    return math.exp(statistics.fmean(math.log(row.lead) for row in rows))


def write_report(rows: list[Row], folder: Path, solver: str, left_out: list[str]) -> None:
    """Write RACE.md and the picture it shows."""
    rows = [row for row in rows if row.peers]
    losses = list(dict.fromkeys(row.loss for row in rows))
    parts = [
        head(solver, left_out),
        summary(rows, losses),
        "![performance profile](race.png)",
        misses(rows),
        *(table([row for row in rows if row.loss == loss], loss) for loss in losses),
    ]
    if raw := [row for row in rows if row.data in RAW]:
        parts.append("### Seconds on raw data\n\n" + seconds_table(raw))
    (folder / "RACE.md").write_text("\n\n".join(parts) + "\n")
    draw_profile(rows, folder / "race.png")


def head(solver: str, left_out: list[str]) -> str:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} absent")
    lines = [
        "## The race",
        "",
        "`python benchmarks/race.py`: seconds of a peer over seconds of ours, to the same relative "
        "sub-optimality; above 1 ours is ahead.  Ours is one `fit` with `tol`, certificate "
        "included; a peer is credited with the fastest of its tolerances that reaches the target, "
        "measured against a certified bound of the optimum.  `> k`: the peer was stopped after k "
        "times our time.  `0`: ours ended without its certificate.  liblinear-official, skglm and "
        "glum get the data in their own form, made before the clock starts.  No intercept, "
        "float64, one thread unless the name says otherwise.  Raw data are as they come; they, and "
        "sets whose names say so, are fitted with a free intercept, for which peers that can only "
        "regularise theirs (LIBLINEAR, snapml, cyanure, skglm, ReHLine) get a column of ones: they "
        "are held against the optimum of that problem, which differs from ours by the penalty of "
        "one weight.",
        "",
        f"{processor()}, {platform.system()}, Python {platform.python_version()}; "
        f"{', '.join(found)}; solver {solver!r}.",
    ]
    if left_out:
        lines += ["", "Left out:", "", *(f"* {reason}" for reason in left_out)]
    return "\n".join(lines)


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    names = [line.split(":")[1].strip() for line in text.splitlines() if "model name" in line]
    return f"{len(names)} x {names[0]}" if names else platform.machine()


def summary(rows: list[Row], losses: list[str]) -> str:
    lines = [
        "| target | loss | rows | geometric mean of best peer / ours | least | behind | unproved |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    verdicts = []
    for target in sorted({row.target for row in rows}, reverse=True):
        at = [row for row in rows if row.target == target]
        for loss in [*losses, "all"]:
            some = [row for row in at if loss in (row.loss, "all")]
            if some:
                lines.append(f"| {target:.0e} | {loss} | {counts(some)} |")
        if target in GOALS:
            reached = "reached" if mean_lead(at) >= GOALS[target] else "missed"
            verdicts.append(f"* mean of at least {GOALS[target]:g} at {target:.0e}: {reached}")
    behind = "missed" if any(missed(row) for row in rows) else "reached"
    verdict = f"* never behind the best peer by more than 5 %: {behind}"
    return "\n".join([*lines, "", verdict, *verdicts])


def counts(rows: list[Row]) -> str:
    worst = min(0.0 if not row.proved else row.lead for row in rows)
    behind, unproved = sum(map(missed, rows)), sum(not row.proved for row in rows)
    return f"{len(rows)} | {mean_lead(rows):.2f} | {worst:.2g} | {behind} | {unproved}"


def missed(row: Row) -> bool:
    """Tell whether a peer was, or may have been, ahead; one that was stopped was not."""
    return not (row.proved and row.judged) or (
        row.peers[row.best][1] == REACHED and row.lead < LEVEL
    )


def misses(rows: list[Row]) -> str:
    lines = [f"* {row}" for row in rows if missed(row)]
    return "\n".join(["Rows that miss the goal:", "", *(lines or ["* none"])])


def table(rows: list[Row], loss: str) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.peers))
    lines = [
        f"### {loss}",
        "",
        f"| data | C | target | {' | '.join(names)} |",
        "| --- " * (3 + len(names)) + "|",
    ]
    for row in rows:
        cells = (f"**{row.cell(n)}**" if n == row.best else row.cell(n) for n in names)
        lines.append(f"| {row.data} | {row.C:g} | {row.target:.0e} | {' | '.join(cells)} |")
    return "\n".join(lines)


def seconds_table(rows: list[Row]) -> str:
    """Return our seconds and those of the best peer that reached the target, row by row."""
    lines = [
        "| data | shape | loss | C | target | ours, ms | best peer | its ms | peer / ours |",
        "| --- " * 9 + "|",
    ]
    for row in rows:
        place = f"{row.data} | {row.rows} x {row.columns} | {row.loss} | {row.C:g}"
        ours = f"{1e3 * row.ours:.3g}" if row.proved else f"not proved: gap {row.gap:.0e}"
        seconds, status = row.peers[row.best]
        theirs = f"{1e3 * seconds:.3g}" if status == REACHED else "none reached it"
        duel = f"{ours} | {row.best} | {theirs} | {row.cell(row.best)}"
        lines.append(f"| {place} | {row.target:.0e} | {duel} |")
    return "\n".join(lines)


def draw_profile(rows: list[Row], path: Path) -> None:
    """Draw, for each solver, the share of its rows solved within a factor of the fastest."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    targets = sorted({row.target for row in rows}, reverse=True)
    names = list(dict.fromkeys(name for row in rows for name in row.peers))
    figure, axes = pyplot.subplots(
        1, len(targets), figsize=(5.5 * len(targets), 4.6), sharey=True, squeeze=False
    )
    factors = np.geomspace(1, 100, 400)
    for axis, target in zip(axes[0], targets, strict=True):
        at = [row for row in rows if row.target == target]
        for k, name in enumerate(names):
            style = {"color": COLOURS[k % len(COLOURS)], "ls": DASHES[k // len(COLOURS)]}
            axis.step(factors, profile(at, name, factors), lw=1.2, label=name, **style)
        ours = profile(at, None, factors)
        axis.step(factors, ours, color="#D55E00", lw=3.2, label="zerogap", zorder=9)
        axis.set(xscale="log", xlim=(1, 100), ylim=(0, 1.02), xlabel="time / time of the fastest")
        axis.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
        axis.minorticks_off()
        axis.set_title(f"relative sub-optimality {target:.0e}")
        axis.grid(color="#dddddd", lw=0.6)
    axes[0][0].set_ylabel("share of the problems it takes")
    handles, labels = axes[0][0].get_legend_handles_labels()
    order = [len(names), *range(len(names))]
    figure.legend(
        [handles[k] for k in order],
        [labels[k] for k in order],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
    )
    figure.tight_layout()
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def profile(rows: list[Row], name: str | None, factors: np.ndarray) -> np.ndarray:
    """Return the share of rows in which a peer, or ours, is within each factor of the fastest."""
    ratios = []
    for row in rows:
        done = {peer: seconds for peer, (seconds, how) in row.peers.items() if how == REACHED}
        if row.proved:
            done[None] = row.ours
        if name is None or name in row.peers:
            ratios.append(done.get(name, math.inf) / min(done.values(), default=math.inf))
    shares = np.array(ratios)[:, None] <= factors
    return shares.mean(axis=0) if ratios else np.full(len(factors), np.nan)

"""Seconds to a proved gap, beside every peer: a table of ratios, means and a performance profile.

    ZEROGAP_DATA=... python benchmarks/race.py [--quick] [--data NAME ...] [--losses ...] ...

Ours is one call of `fit` with `tol`, certificate included.  Each peer is swept over its own
tolerance and credited with its fastest run that reaches the same sub-optimality, measured against
a certified optimum.  Same data, same lam, no intercept, float64, one thread unless the name says
otherwise.  Raw data are not scaled.  They, and sets whose names say so, are fitted with an
intercept as users have it; peers that can only regularise theirs get a column of ones and are held
against the optimum of that problem.
Each fit has a process of its own, warmed by a tiny one of the same kind.  Fits of ours and of the
two fastest peers that take less than a second are run again, after one in the same process that is
not counted; below 0.3 seconds three times, in turns, and the median counts.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from data import (
    CLASSIFICATION,
    FLOAT32,
    HUNDRED,
    INTERCEPT,
    RAW,
    RAW_BINARY,
    RAW_MULTICLASS,
    RAW_NUMBER,
    REGRESSION,
    load,
)
from race_peers import MULTICLASS, PEERS, Contender, zerogap
from race_report import REACHED, Row, seconds_table, write_report
from race_run import AGREE, Data, Run, Task, agreement, contest
from single_thread import restart_single_threaded

LOSSES = {
    **dict.fromkeys((*CLASSIFICATION, *RAW_BINARY), ("hinge", "squared-hinge", "logistic")),
    **dict.fromkeys((*REGRESSION, *RAW_NUMBER), ("squared", "absolute")),
    **dict.fromkeys(RAW_MULTICLASS, MULTICLASS),
    **dict.fromkeys((*INTERCEPT, *FLOAT32), ("squared-hinge", "logistic")),
    "elevation-intercept": ("squared", "absolute"),
    HUNDRED: ("softmax",),
}
FEW_C = (1.0, 100.0)  # of raw data and variants: their rows differ more between losses
CHOSEN_C = dict.fromkeys((*RAW, *INTERCEPT, *FLOAT32), FEW_C) | {HUNDRED: (1.0,)}
QUICK_RAW = ["adult-numbers", "breast-cancer", "wine", "diabetes"]
QUICK = {
    "data": ["rcv1", "ijcnn1", "gravier", "elevation", *QUICK_RAW],
    "C": [1.0],
    "minutes": 5.0,
}
FEWER = {"mnist": 20_000, "digit": 20_000}  # rows, for a race that takes less than an hour
PATIENCE = 10  # times ours: for a peer's run, if there is time or ours takes less than LONG
LEAST = 0.2  # seconds: for a peer's run, whatever ours takes
LONG, SHORT = 1.0, 0.3  # seconds: longer fits are not repeated; shorter ones, three times


def race(task: Task, ours: Contender, peers: list[Contender], seconds: float, cap: float) -> list:
    """Return a row per target; the peers together get about so many seconds."""
    own = {target: task.measure(ours, target, 1.5 * cap) for target in ours.ladder}
    longest = max(run.seconds for run in own.values())
    # Whatever the time left, a peer that is faster than ours must be able to show it.
    proved = [run.seconds for target, run in own.items() if run.gap <= target]
    slowest = max(proved, default=LEAST)
    first = max(LEAST, min(3.0 * slowest, max(1.5 * slowest, seconds / 8)))
    most = max(first, min(PATIENCE * longest, math.inf if longest < LONG else seconds / 8))
    swept = contest(task, peers, ours.ladder, first, most)
    return [duel(task, ours, own[target], swept, target) for target in ours.ladder]


def duel(
    task: Task, ours: Contender, own: Run, swept: dict[Contender, list[Run]], target: float
) -> Row:
    """Run ours and the two fastest peers again in turns, and return what counts."""
    reached = {}
    for peer, runs in swept.items():
        enough = [run for run in runs if run.suboptimality <= target]
        if enough:
            reached[peer] = min(enough, key=lambda run: run.seconds)
    front = {ours: own} if own.gap <= target else {}
    front |= {peer: reached[peer] for peer in sorted(reached, key=lambda p: reached[p].seconds)[:2]}
    times: dict[Contender, list[float]] = {contender: [] for contender in front}
    for turn in range(3):
        for contender, run in front.items():
            if run.seconds < (LONG if turn == 0 else SHORT):
                # The first fit in a process may load code: it is not counted.
                timed = task.measure(contender, run.tolerance, 3 * run.seconds + 1, 1)
                times[contender].append(timed.seconds)
    medians = {
        contender: statistics.median(times[contender] or [run.seconds])
        for contender, run in front.items()
    }
    peers = {}
    for peer, runs in swept.items():
        if peer in reached:
            peers[peer.name] = (medians.get(peer, reached[peer].seconds), REACHED)
        else:
            peers[peer.name] = (runs[-1].seconds, runs[-1].failure)
    return Row(
        data=task.data.name,
        rows=task.rows,
        columns=task.data.X.shape[1],
        loss=task.loss,
        C=task.C,
        target=target,
        ours=medians.get(ours, own.seconds),
        gap=own.gap,
        reference_gap=max(task.problem_of(contender).doubt for contender in (ours, *swept)),
        peers=peers,
    )


def usable(peers: list[Contender], ours: Contender) -> tuple[list[Contender], list[str]]:
    """Return the peers that are installed and solve our problem, and why others are left out."""
    reasons = [f"{peer.name}: {reason}" for peer in peers if (reason := peer.missing())]
    present = [peer for peer in peers if not peer.missing()]
    wrong = set()
    for intercept in (False, True):
        able = [peer for peer in present if peer.free_intercept or not intercept]
        for (name, loss), distance in agreement(able, ours, intercept).items():
            if not distance <= AGREE:
                wrong.add(name)
                problem = f"{loss}{' and an intercept' * intercept}"
                reasons.append(f"{name} with {problem}: {distance:.1e} from a small optimum")
    return [peer for peer in present if peer.name not in wrong], reasons


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    everything = [*CLASSIFICATION, *REGRESSION, *RAW, *INTERCEPT, *FLOAT32, HUNDRED]
    losses = sorted({loss for kinds in LOSSES.values() for loss in kinds})
    names = [peer.name for peer in PEERS]
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK['data'])}")
    parser.add_argument("--raw", action="store_true", help="only data that nobody scaled")
    parser.add_argument("--data", nargs="+", choices=everything, default=everything)
    parser.add_argument("--losses", nargs="+", choices=losses, default=losses)
    parser.add_argument("--C", nargs="+", type=float, default=[1.0, 10.0, 100.0])
    parser.add_argument("--targets", nargs="+", type=float, default=[1e-3, 1e-6])
    parser.add_argument("--peers", nargs="+", choices=names, default=names)
    parser.add_argument("--solver", default="auto", help="of ours")
    parser.add_argument("--cap", type=float, default=20.0, help="seconds for a fit of ours")
    parser.add_argument("--minutes", type=float, default=26.0, help="aimed at by stopping peers")
    parser.add_argument("--keep", action="store_true", help="keep the other rows of OUT")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("out"))
    if parser.parse_known_args()[0].quick:
        parser.set_defaults(**QUICK)
    options = parser.parse_args()
    if options.raw:
        options.data = [name for name in options.data if name in RAW]
    return options


def main() -> None:
    options = arguments()
    start = time.perf_counter()
    targets = tuple(sorted(options.targets, reverse=True))
    ours = zerogap(options.solver, targets, options.cap)
    peers, left_out = usable([peer for peer in PEERS if peer.name in options.peers], ours)
    path = options.out / "rows.json"
    rows = [Row(**row) for row in json.loads(path.read_text())] if options.keep else []
    plan = [
        (name, loss, C)
        for name in options.data
        for loss in LOSSES[name]
        if loss in options.losses
        for C in options.C
        if C in CHOSEN_C.get(name, options.C)
    ]
    data: Any = None
    for done, (name, loss, C) in enumerate(plan):
        if data is None or data.name != name:
            parts = (part[: FEWER.get(name)] for part in load(name))
            data = Data(name, *parts, name in RAW + INTERCEPT)
        task = Task(data, loss, C)
        task.load_kernels(zerogap(solver, targets, options.cap) for solver in ("sdca", "newton"))
        able = [peer for peer in peers if loss in peer.losses and peer.takes(data.X, data.y)]
        tasks = {id(known): known for known in map(task.problem_of, (ours, *able))}.values()
        for known in tasks:
            known.find_optimum(options.out / "optima", ours)
        left = 60 * options.minutes - (time.perf_counter() - start)
        new = race(task, ours, able, max(left, 0.0) / (len(plan) - done), options.cap)
        for known in tasks:
            known.keep_optimum()
        places = {row.place for row in new}
        rows = [row for row in rows if row.place not in places] + new
        options.out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([asdict(row) for row in rows], indent=1))
        for row in new:
            print(f"[{done + 1}/{len(plan)}] {row}", flush=True)
    write_report(rows, options.out, options.solver, left_out)
    if raw := [row for row in rows if row.data in RAW and row.peers]:
        print(seconds_table(raw))
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes; see {options.out}/RACE.md")


if __name__ == "__main__":
    restart_single_threaded()
    main()

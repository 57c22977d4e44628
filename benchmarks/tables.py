"""Fit thousands of tables that nobody scaled with default settings; all must be certified.

    python benchmarks/tables.py [--count 10000] [--first 0] [--loss NAME] [--jobs 2] [--peers]
    python benchmarks/tables.py --only 1234 --verbose

A case (table, loss, C, tol, weights, intercept, l1_ratio) follows from its seed, see
tests/raw_cases.py.  Certified means that the fit ended as "converged".  A fit that is refused
counts as a failure unless the table has values from 1e15 on.  Seconds are those of `fit` alone; the
first fit of a kind in a process, which loads compiled code, and fits below four seconds run twice,
and the faster counts.  With `--peers`, scikit-learn's solvers of the same objective fit the same
tables with default settings.  Ends with exit code 1 if anything is not certified.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Any

from progress import Progress
from single_thread import restart_single_threaded

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # raw_cases is shared with them

CASES_AT_A_TIME = 10  # for one process: a capped fit of 30 s holds up few others
LONGEST_FIT = 30.0  # seconds, for one fit of ours
REPEATED_BELOW = 4.0  # seconds: shorter fits are timed twice; loading compiled code takes up to two
SLOWEST = 5  # listed
CERTIFIED = "certified"

Record = dict[str, Any]
_seen: set[tuple] = set()  # kinds of fits whose compiled code this process has loaded


def run_case(seed: int, with_peers: bool) -> Record:
    """Fit the case of a seed and return all that is reported about it."""
    from raw_cases import draw_case, fit_case

    case = draw_case(seed)
    X = case.table.X
    kind = (case.name, type(X).__name__, X.dtype.name, case.l1_ratio > 0, case.fit_intercept)
    outcome = fit_case(case, max_seconds=LONGEST_FIT)
    seconds = outcome.seconds
    if seconds < REPEATED_BELOW or kind not in _seen:
        outcome = fit_case(case, max_seconds=LONGEST_FIT)  # the first may have compiled all along
        seconds = min(seconds, outcome.seconds)
    _seen.add(kind)
    return {
        "seed": seed,
        "case": str(case),
        "loss": case.name,
        "rows": X.shape[0],
        "columns": X.shape[1],
        "C": case.C,
        "tol": case.tol,
        "l1_ratio": case.l1_ratio,
        "verdict": outcome.verdict,
        "why": outcome.why,
        "relative_gap": outcome.relative_gap,
        "primal": outcome.primal,
        "seconds": seconds,
        "peers": run_peers(case) if with_peers else {},
    }


def run_peers(case: Any) -> dict[str, tuple[float, float]]:
    """Return seconds and objective of each peer; short fits are timed twice here, too."""
    from table_peers import fit_peer, peers_of

    found = {}
    for peer in peers_of(case):
        seconds, primal = fit_peer(peer, case)
        if seconds < REPEATED_BELOW:
            seconds = min(seconds, fit_peer(peer, case)[0])
        found[peer.name] = (seconds, primal)
    return found


def run_cases(seeds: list[int], with_peers: bool) -> list[Record]:
    return [run_case(seed, with_peers) for seed in seeds]


def chosen_seeds(options: argparse.Namespace) -> list[int]:
    """Return the seeds that are asked for: all of a range, or those of some losses."""
    from raw_cases import loss_of

    seeds = range(options.first, options.first + options.count)
    return [seed for seed in seeds if not options.loss or loss_of(seed) in options.loss]


def results(options: argparse.Namespace) -> Iterator[list[Record]]:
    """Yield what the processes return, as it comes."""
    seeds, step = chosen_seeds(options), CASES_AT_A_TIME
    chunks = (seeds[k : k + step] for k in range(0, len(seeds), step))
    with ProcessPoolExecutor(options.jobs) as pool:

        def submit(many: int) -> set:
            parts = islice(chunks, many)
            return {pool.submit(run_cases, seeds, options.peers) for seeds in parts}

        running = submit(2 * options.jobs)
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            running |= submit(len(done))
            for future in done:
                yield future.result()


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.2f} %)"


def summary(records: list[Record]) -> list[str]:
    """Return a table of losses, the slowest fits and all failures."""
    lines = [
        "| loss | certified | of | share | median, ms | total, s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for loss in [*sorted({record["loss"] for record in records}), "all"]:
        some = [record for record in records if loss in (record["loss"], "all")]
        good = sum(record["verdict"] == CERTIFIED for record in some)
        times = [record["seconds"] for record in some]
        lines.append(
            f"| {loss} | {good} | {len(some)} | {100 * good / len(some):.2f} % "
            f"| {1e3 * statistics.median(times):.3g} | {sum(times):.1f} |"
        )
    verdicts = Counter(record["verdict"] for record in records)
    lines += ["", ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())]
    slowest = sorted(records, key=lambda record: -record["seconds"])[:SLOWEST]
    lines += ["", "Slowest:", *(f"* {describe(record)}" for record in slowest)]
    return lines


def failures(records: list[Record]) -> list[Record]:
    """Return what is neither certified nor rightly refused."""
    return [record for record in records if record["verdict"] not in (CERTIFIED, "refused")]


def describe(record: Record) -> str:
    return (
        f"{record['case']}: {record['verdict']}, {record['why']}, "
        f"relative gap {record['relative_gap']:.1e}, {record['seconds']:.3f} s"
    )


def peer_summary(records: list[Record]) -> list[str]:
    """Return, for each loss and peer, seconds of both and how often the peer is within tol."""
    lines = [
        "Peers with default settings, on tables that ours has certified:",
        "",
        "| loss | peer | tables | ours, s | peer, s | peer / ours | peer within tol |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    certified = [record for record in records if record["verdict"] == CERTIFIED]
    pairs = sorted({(record["loss"], name) for record in certified for name in record["peers"]})
    for loss, name in pairs:
        some = [r for r in certified if r["loss"] == loss and name in r["peers"]]
        ours = sum(record["seconds"] for record in some)
        theirs = sum(record["peers"][name][0] for record in some)
        within = sum(is_within_tol(record, name) for record in some)
        lines.append(
            f"| {loss} | {name} | {len(some)} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.2f} "
            f"| {share(within, len(some))} |"
        )
    return [*lines, "", fastest_peers(certified)]


def fastest_peers(certified: list[Record]) -> str:
    """Return the seconds of ours and of the fastest peer of each table.

    Once whatever the peer reached, and once on tables where some peer is within tol, of these.
    """
    some = [record for record in certified if record["peers"]]
    ours = sum(record["seconds"] for record in some)
    theirs = sum(min(seconds for seconds, _ in record["peers"].values()) for record in some)
    right = [(record, within_tol(record)) for record in some]
    right = [(record, seconds) for record, seconds in right if seconds]
    ours_then = sum(record["seconds"] for record, _ in right)
    theirs_then = sum(min(seconds) for _, seconds in right)
    return (
        f"{len(some)} tables with a peer: ours {ours:.2f} s, the fastest peer of each, whatever it "
        f"reached, {theirs:.2f} s\n{len(right)} of them where some peer is within tol: ours "
        f"{ours_then:.2f} s, the fastest such peer of each {theirs_then:.2f} s"
    )


def within_tol(record: Record) -> list[float]:
    """Return the seconds of the peers that are within tol."""
    peers = record["peers"].items()
    return [seconds for name, (seconds, _) in peers if is_within_tol(record, name)]


def is_within_tol(record: Record, peer: str) -> bool:
    """Tell whether a peer's objective is at most (1 + tol) times ours, which is certified."""
    return record["peers"][peer][1] <= (1 + record["tol"]) * record["primal"]


def show_one(seed: int, verbose: bool, with_peers: bool) -> None:
    """Run one case alone; `--verbose` prints columns, progress and certificate."""
    from raw_cases import draw_case, fit_case

    case = draw_case(seed)
    if verbose:
        print(f"columns: {', '.join(case.table.columns)}")
        outcome = fit_case(case, max_seconds=LONGEST_FIT, verbose=1)
        proof = getattr(outcome.model, "certificate_", None)
        print(f"{proof}\n{proof.solver}" if proof else outcome.why)
    record = run_case(seed, with_peers)
    print(describe(record))
    for name, (seconds, primal) in record["peers"].items():
        print(f"{name}: objective {primal:.9g}, ours {record['primal']:.9g}, {seconds:.3f} s")
    sys.exit(bool(failures([record])))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    parser.add_argument("--loss", action="append", help="fit cases of this loss; may be repeated")
    parser.add_argument("--only", type=int, metavar="SEED", help="run this case alone")
    parser.add_argument("--verbose", action="store_true", help="with --only")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--peers", action="store_true", help="run scikit-learn's solvers, too")
    out = Path(__file__).with_name("out") / "tables.jsonl"
    parser.add_argument("--out", type=Path, default=out, help="all cases, as JSON lines")
    return parser.parse_args()


def show_progress(progress: Progress, records: list[Record], count: int, start: float) -> None:
    done, seconds = len(records), time.monotonic() - start
    bad = len(failures(records))
    left = (count - done) * seconds / done / 60
    progress.show(f"{done} tables, {bad} not certified, {left:.1f} min left")


def run_all(options: argparse.Namespace, write: Callable[[str], Any]) -> list[Record]:
    records: list[Record] = []
    start, progress = time.monotonic(), Progress()
    count = len(chosen_seeds(options))
    for part in results(options):
        records += part
        write("".join(json.dumps(record) + "\n" for record in part))
        show_progress(progress, records, count, start)
    progress.end()
    print(f"{len(records)} tables in {time.monotonic() - start:.0f} s")
    return sorted(records, key=lambda record: record["seed"])


def main() -> None:
    options = arguments()
    if options.only is not None:
        show_one(options.only, options.verbose, options.peers)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w") as file:
        records = run_all(options, file.write)
    lines = summary(records)
    if options.peers:
        lines += ["", *peer_summary(records)]
    wrong = failures(records)
    if wrong:
        lines += ["", f"Not certified, {len(wrong)}:", *(f"* {describe(r)}" for r in wrong)]
    print("\n".join(lines))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    restart_single_threaded()
    main()

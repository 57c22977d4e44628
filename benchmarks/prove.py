"""Hold certified statements against the exact optimum of many thousand random problems.

    python benchmarks/prove.py [--extreme] [--count 100000] [--seconds S] [--first 0] [--jobs N]

With `--extreme`, extreme problems are held against exact arithmetic instead, those of all
evaluators: in memory, in a store, on Dask's workers and in a GPU's simulator.  The proofs are
those of the tests, tests/proofs*.py: functions called prove_* that take a seed and raise
AssertionError where a statement is wrong.  The problems, by number, are dealt to them in turn; a
run that ends early says from which number to go on.  With `--jobs 1` there is no second process.
Ends with exit code 1 if any statement was wrong, or any optimum was not found to 1e-12.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from functools import cache
from itertools import islice
from pathlib import Path

from progress import Progress

TESTS = Path(__file__).parents[1] / "tests"
MEMORY = Path("/dev/shm")  # where temporary stores are written, if it is there
CHUNK = 20  # problems at a time
SILENT = "without a statement"


@cache
def proofs(extreme: bool) -> list[tuple[str, Callable[[int], object]]]:
    """Return the proofs of extreme problems, or all others, with their names."""
    sys.path.insert(0, str(TESTS))
    files = [path.stem for path in sorted(TESTS.glob("proofs*.py"))]
    wanted = [file for file in files if file.startswith("proofs_extreme") == extreme]
    modules = [importlib.import_module(file) for file in wanted]
    return [
        (name.removeprefix("prove_").replace("_", "-"), function)
        for module in modules
        for name, function in vars(module).items()
        if name.startswith("prove_") and function.__module__ == module.__name__
    ]


def check(numbers: range, end: float, extreme: bool) -> tuple[Counter[str], list[str]]:
    """Return how many problems of each kind agreed, and what was found to be wrong."""
    agreed: Counter[str] = Counter()
    wrong = []
    for number in numbers:
        if time.monotonic() > end:
            break
        kind, prove = proofs(extreme)[number % len(proofs(extreme))]
        seed = number // len(proofs(extreme))
        try:
            agreed[SILENT if prove(seed) is None else kind] += 1
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            what = "--extreme " if extreme else ""
            again = f"python benchmarks/prove.py {what}--first {number} --count 1"
            wrong.append(f"{kind}, seed {seed}: {said}; {again}")
    return agreed, wrong


Found = tuple[Counter[str], list[str]]


def in_this_process(chunks: Iterator[range], end: float, extreme: bool) -> Iterator[Found]:
    """Yield what is found in each chunk of problems."""
    for chunk in chunks:
        yield check(chunk, end, extreme)


def in_processes(jobs: int, chunks: Iterator[range], end: float, extreme: bool) -> Iterator[Found]:
    """Yield the same, in the order in which processes finish."""
    with ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(check, chunk, end, extreme) for chunk in islice(chunks, 2 * jobs)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            if time.monotonic() < end:
                running |= {
                    pool.submit(check, chunk, end, extreme) for chunk in islice(chunks, len(done))
                }
            yield from (future.result() for future in done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--extreme", action="store_true", help="extreme problems")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    # before numpy is loaded: the processes have a core each, and matrices are tiny
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    if options.extreme:
        os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
        if MEMORY.is_dir():
            os.environ.setdefault("TMPDIR", str(MEMORY))
    last = options.first + options.count
    begun = options.first  # of the problems from here on none was begun

    def deal() -> Iterator[range]:
        nonlocal begun
        while begun < last and time.monotonic() < end:
            chunk = range(begun, min(begun + CHUNK, last))
            begun = chunk.stop
            yield chunk

    agreed: Counter[str] = Counter()
    wrong, total, progress = 0, 0, Progress()
    start = time.monotonic()
    end = start + options.seconds
    given = (deal(), end, options.extreme)
    found = in_this_process(*given) if options.jobs == 1 else in_processes(options.jobs, *given)
    try:
        for count, lines in found:
            agreed += count
            wrong += len(lines)
            for line in lines:
                progress.say(f"WRONG {line}")
            total, seconds = agreed.total() + wrong, time.monotonic() - start
            left = min((options.count - total) * seconds / max(1, total), options.seconds - seconds)
            rate = f"{total / seconds:.1f}/s, {max(0.0, left) / 60:.1f} min left"
            progress.show(f"{total} problems, {rate}, {wrong} wrong")
    except KeyboardInterrupt:
        progress.say("interrupted")
    progress.end()
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(agreed.items()))
    verdict = f"{wrong} WRONG" if wrong else "no one disagreed"
    print(f"{total} problems in {time.monotonic() - start:.0f} s: {kinds}; {verdict}")
    if total < options.count:
        parallel = 1 if options.jobs == 1 else 2 * options.jobs
        print(f"go on with --first {max(options.first, begun - parallel * CHUNK)}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

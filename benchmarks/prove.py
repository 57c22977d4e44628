"""Hold certified statements against the exact optimum of many thousand random problems.

    python benchmarks/prove.py [--count 100000] [--first 0] [--jobs N]

The proofs are those of the tests, tests/proofs*.py: functions called prove_* that take a seed and
raise AssertionError where a statement is wrong.  The seeds are dealt to them in turn.  Ends with
exit code 1 if any was.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
CHUNK = 50  # seeds at a time


@cache
def proofs() -> dict[str, Callable[[int], object]]:
    """Return all proofs by name."""
    sys.path.insert(0, str(TESTS))
    modules = [importlib.import_module(path.stem) for path in sorted(TESTS.glob("proofs*.py"))]
    return {
        name: function
        for module in modules
        for name, function in vars(module).items()
        if name.startswith("prove") and function.__module__ == module.__name__
    }


def check(seeds: range) -> tuple[Counter[str], list[str]]:
    """Return how many proofs were run, by name, and what was found to be wrong."""
    known = list(proofs().items())
    count: Counter[str] = Counter()
    wrong = []
    for seed in seeds:
        name, prove = known[seed % len(known)]
        try:
            # an exact optimum is not always found: then nothing was held against anything
            count[name if prove(seed // len(known)) is not None else f"{name}, skipped"] += 1
        except AssertionError as error:
            wrong.append(f"{name}({seed // len(known)}): {' '.join(str(error).split())[:200]}")
    return count, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="seed to start with")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    last = options.first + options.count
    chunks = [range(k, min(k + CHUNK, last)) for k in range(options.first, last, CHUNK)]
    total: Counter[str] = Counter()
    wrong: list[str] = []
    start = time.monotonic()
    with ProcessPoolExecutor(options.jobs) as pool:
        for count, found in pool.map(check, chunks):
            total += count
            wrong += found
            for line in found:
                print(f"WRONG {line}", flush=True)
            done = total.total() + len(wrong)
            rate = done / (time.monotonic() - start)
            left = (options.count - done) / rate / 60
            print(f"\r{done} proofs, {rate:.1f}/s, about {left:.0f} min left ", end="", flush=True)
    print()
    for name, number in sorted(total.items()):
        print(f"{number:8d}  {name}")
    print(f"{len(wrong):8d}  wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

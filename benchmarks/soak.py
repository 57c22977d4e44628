"""Small fits by the million in one process: memory and open files stay as they are.

    python benchmarks/soak.py [--fits N] [--minutes M] [--first I] [--seed S]

Losses, penalties, shapes and kinds of data change from fit to fit.  After a tenth of the fits,
which load all compiled code, the memory in use may grow by 1 %, and no file may stay open.  Ends
with exit code 1 if that is not so, or if a fit does not converge.  Fit number I of a seed is always
the same; a run that is too short to judge memory says so.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

import zerogap as zg

MOST_GROWTH = 0.01  # of the memory in use after the first tenth
FITS_BETWEEN_LOOKS = 1000
CLASSIFIERS = ("hinge", "logistic", "squared-hinge", "softmax", "multiclass-hinge")
REGRESSORS = ("squared", "huber", "absolute", "quantile")


def memory_in_use() -> int:
    """Return the bytes of this process that are in memory, after a collection of garbage."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def fit(rng: np.random.Generator) -> None:
    """Fit one small model of a random kind; AssertionError where it is not proved."""
    n, d = int(rng.integers(10, 40)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, d))
    given = sparse.csr_matrix(X) if rng.random() < 0.3 else X
    l1_ratio = 0.5 if rng.random() < 0.2 else 0.0
    settings = {"lam": 0.1, "l1_ratio": l1_ratio, "random_state": 0}
    kind = int(rng.integers(len(CLASSIFIERS) + len(REGRESSORS)))
    if kind < len(CLASSIFIERS):
        y = rng.integers(0, 3 if kind > 2 else 2, n)
        y[:3] = [0, 1, 2 if kind > 2 else 0]
        model = zg.LinearClassifier(CLASSIFIERS[kind], **settings).fit(given, y)
    else:
        y = X[:, 0] + rng.standard_normal(n)
        model = zg.LinearRegressor(REGRESSORS[kind - len(CLASSIFIERS)], **settings).fit(given, y)
    assert model.certificate_.stop_reason == "converged", str(model.certificate_)
    model.predict(given)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fits", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--first", type=int, default=0, help="number of the first fit")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start, first = time.monotonic(), options.first
    end = start + 60 * options.minutes
    before, files, done, lost = 0, 0, 0, 0
    warm = max(FITS_BETWEEN_LOOKS, options.fits // 10)
    while done < options.fits and time.monotonic() < end:
        for number in range(first + done, first + min(done + FITS_BETWEEN_LOOKS, options.fits)):
            try:
                fit(np.random.default_rng([options.seed, number]))
            except AssertionError as error:
                lost += 1
                print(f"LOST number {number}: {error}", flush=True)
            done += 1
            if time.monotonic() > end:
                break
        files = files or open_files()
        if not before and done >= warm:
            before = memory_in_use()
    now, still = memory_in_use(), open_files()
    growth = now / before - 1.0 if before else 0.0
    judged = f"{100 * growth:+.2f} % since fit {warm}" if before else "too few fits to judge that"
    print(
        f"{done} tried, {done - lost} survived, {lost} lost, {time.monotonic() - start:.0f} s; "
        f"{now / 1e6:.1f} MB in use, {judged}; {still} files open, {files} at first; "
        f"go on with --first {first + done}"
    )
    return 0 if growth <= MOST_GROWTH and still <= files and not lost else 1


if __name__ == "__main__":
    sys.exit(main())

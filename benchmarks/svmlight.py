"""Reading svmlight text, beside scikit-learn's reader.

python benchmarks/svmlight.py [MEGABYTES]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from zerogap.readers import read

REPEATS = 5


def write_text(path: Path, megabytes: float) -> None:
    """Write rows like those of rcv1: 75 of 47236 features, unit length, 16 digits."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        while file.tell() < megabytes * 1e6:
            indices = np.unique(rng.zipf(1.2, 300) % 47236)[:75] + 1
            values = rng.exponential(size=len(indices))
            values /= np.linalg.norm(values)
            pairs = " ".join(f"{j}:{v:.16g}" for j, v in zip(indices, values, strict=True))
            file.write(f"{rng.choice([-1, 1])} {pairs}\n")


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = call()
    return time.perf_counter() - start, answer


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 100.0
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.svm")
        write_text(path, 0.1)
        read(path)  # compile
        write_text(path, megabytes)
        ours, theirs = [], []
        for _ in range(REPEATS):
            seconds, data = timed(lambda: read(path))
            ours.append(seconds)
            seconds, (X, y) = timed(lambda: load_svmlight_file(str(path)))
            theirs.append(seconds)
        assert np.array_equal(data.X.data, X.data)
        assert np.array_equal(data.X.indices, X.indices)
        assert np.array_equal(data.y, y)
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"{megabytes:g} MB, {X.shape[0]} rows, {X.nnz} entries, median of {REPEATS}")
    print("| reader | seconds | MB/s |")
    print("| --- | --- | --- |")
    print(f"| zerogap.readers.read | {a:.3f} | {megabytes / a:.0f} |")
    print(f"| sklearn.datasets.load_svmlight_file | {b:.3f} | {megabytes / b:.0f} |")
    print(f"ratio {b / a:.1f}")


if __name__ == "__main__":
    main()

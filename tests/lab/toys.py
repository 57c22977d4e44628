"""Cells of the tests: functions that other processes can import."""

import os
import signal

import numpy as np

from zerogap.lab import pixels


def noise(cell, data):
    """Numbers that depend on arm and seed alone; some seeds fail, some kill their process."""
    columns = cell.arm.columns
    if cell.seed == columns.get("fails"):
        raise ValueError("this seed is not wanted")
    if cell.seed == columns.get("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    if cell.seed == columns.get("interrupts"):
        raise KeyboardInterrupt
    rng = np.random.default_rng([cell.seed, len(cell.arm.name)])
    shift = columns.get("shift", 0.0)
    return [
        {"T": T, "loss_value": shift + rng.random() / T, "seconds": rng.random()}
        for T in (1, 2, 4, 8)
    ]


def threads(cell, data):
    """What a process was told about threads."""
    return [{"omp": os.environ["OMP_NUM_THREADS"], "numba": os.environ["NUMBA_NUM_THREADS"]}]


def pictures(cell, data):
    """Two images."""
    image = np.arange(100, dtype=np.uint8).reshape(10, 10)
    colour = np.zeros((6, 8, 3), np.uint8)
    colour[..., 0] = 255
    return [{"label": "grey", **pixels(image)}, {"label": "red", **pixels(colour)}]


def largest_weight(problem, data, y_test):
    """A metric."""
    return lambda w, b: float(np.abs(w).max())

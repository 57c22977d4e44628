"""Origins of columns that are far from zero: what a free intercept allows to subtract."""

from __future__ import annotations

from typing import Any

import numpy as np

FAR = 4.0  # standard deviations from zero at which a column's mean begins to cost digits


@np.errstate(over="ignore", invalid="ignore")  # a spread that is not finite leaves columns alone
def find_shift(some: np.ndarray) -> np.ndarray:
    """Return what to subtract from each column of some rows: 0 for those that are near zero.

    It has so few digits that differences are exact if values are not twice as far, nor half.
    """
    some = some.astype(np.float64, copy=False)
    mean = _means(some)
    rest = _means(some - mean)  # what rounding has taken from the mean
    spread = np.sqrt(_means(np.square(some - (mean + rest))))
    return shift_from(mean, spread, some[0])


def shift_from(mean: np.ndarray, spread: np.ndarray, one: np.ndarray) -> np.ndarray:
    """Return what `find_shift` does for columns with this mean, standard deviation and one row.

    That is the mean of a column far from zero, rounded to half a power of two of its spread.
    """
    shift = np.zeros(len(mean))
    far = np.abs(mean) > FAR * spread
    if far.any():
        with np.errstate(all="ignore"):  # a constant has no spread
            step = np.exp2(np.floor(np.log2(spread[far])) - 1.0)
            rounded = np.rint(mean[far] / step) * step
        shift[far] = np.where(np.isfinite(rounded), rounded, one[far])
    return shift


def moved_targets(y: Any, target: float) -> tuple[Any, float]:
    """Return targets less a shift, and the most that rounding has changed one of them.

    Nothing, unless one is far smaller than the shift and has more digits than the difference.
    """
    moved = y - target
    back = moved - y
    lost = (y - (moved - back)) + (-target - back)  # exact (Knuth)
    return moved, float(abs(lost).max()) if len(y) else 0.0


def _means(some: np.ndarray) -> np.ndarray:
    """Return the mean of each column, whose sum might overflow."""
    return (some / len(some)).sum(axis=0)

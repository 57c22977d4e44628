"""Origins of columns that are far from zero: what a free intercept allows to subtract."""

from __future__ import annotations

import numpy as np

from zerogap.kernels.jit import kernel

FAR = 4.0  # standard deviations from zero at which a column's mean begins to cost digits


def find_shift(some: np.ndarray) -> np.ndarray:
    """Return what to subtract from each column of some rows: 0 for those that are near zero.

    It has so few digits that differences are exact if values are not twice as far, nor half.
    """
    some = some.astype(np.float64, copy=False)
    zero, mean, rest, square = np.zeros((4, some.shape[1]))
    _add_means(some, zero, False, mean)
    _add_means(some, mean, False, rest)  # what rounding has taken from the mean
    _add_means(some, mean + rest, True, square)
    return shift_from(mean, np.sqrt(square), some[0])


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


@kernel
def _add_means(some, origin, squared, out):
    """Add to `out` the means of x - origin, or of its square, for each column"""
    n, d = some.shape
    for i in range(n):
        for j in range(d):
            rest = some[i, j] - origin[j]
            out[j] += (rest * rest if squared else rest) / n

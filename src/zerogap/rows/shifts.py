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
    mean, offset, spread = np.zeros((3, some.shape[1]))
    _add_spreads(some, mean, offset, spread)
    return shift_from(mean, spread, some[0])


def shift_from(mean: np.ndarray, spread: np.ndarray, one: np.ndarray) -> np.ndarray:
    """Return what `find_shift` does for columns with this mean, standard deviation and one row."""
    shift = np.zeros(len(mean))
    _set_shifts(mean, spread, one, shift)
    return shift


@kernel
def _set_shifts(mean, spread, one, shift):
    """Round the means of columns that are far from zero to half a power of two of their spreads"""
    for j in range(len(mean)):
        if abs(mean[j]) > FAR * spread[j]:
            step = np.exp2(np.floor(np.log2(spread[j])) - 1.0)
            shift[j] = np.rint(mean[j] / step) * step
            if not np.isfinite(shift[j]):  # a constant, or nearly one
                shift[j] = one[j]


@kernel
def _add_spreads(some, mean, offset, spread):
    """Means and standard deviations of columns: those of what is left without the mean"""
    n, d = some.shape
    for i in range(n):
        for j in range(d):
            mean[j] += some[i, j] / n
    for i in range(n):
        for j in range(d):
            offset[j] += (some[i, j] - mean[j]) / n
    for i in range(n):
        for j in range(d):
            rest = some[i, j] - mean[j] - offset[j]
            spread[j] += rest * rest / n
    for j in range(d):
        spread[j] = np.sqrt(spread[j])

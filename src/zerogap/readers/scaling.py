"""Mean, standard deviation and ends of the columns of a matrix, dense or sparse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

ULPS_OF_NOISE = 16  # a column whose values are so near to each other counts as constant
_ENTRIES_PER_BLOCK = 1 << 20  # of dense rows that are worked on at a time: 8 MB


class Columns(NamedTuple):
    """What is known of each column of a matrix.

    Attributes
    ----------
    low, high : arrays of shape (n_features,)
        The smallest and the largest value; those of sparse columns include their zeros.
    mean, deviation : arrays of shape (n_features,)
        Mean and standard deviation over all rows; the deviation of a constant column is 0.
    """

    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @property
    def without_zero(self) -> np.ndarray:
        """Where all values are on one side of zero.

        Such a column of a sparse matrix is full, so that subtracting its mean fills nothing.  In
        every other column of n rows some value x has |x - mean| >= |mean|, therefore |mean| is at
        most sqrt(n) times the standard deviation: it may stay without harm to the numerics.
        """
        return (self.low > 0) | (self.high < 0)


def describe(X: Any) -> Columns:
    """Return what scaling needs to know of the columns of a matrix.

    Columns are mapped to t = (x - low) / (high - low) first, then the deviation of t is taken
    around its mean in a second pass.  So no digit is lost where all values are far from zero, as
    those of a clock are, and no square overflows.

    Parameters
    ----------
    X : array or CSR matrix without duplicate entries
        One row at least; all numbers finite.

    Examples
    --------
    >>> import numpy as np
    >>> describe(1.7e9 + np.array([[-1.0], [1.0], [-1.0], [1.0]])).deviation
    array([1.])
    """
    low, high = ends(X)
    with np.errstate(over="ignore"):
        width = high - low
    noise = ULPS_OF_NOISE * _precision(X.dtype) * np.maximum(abs(low), abs(high))
    constant = width <= noise
    unit = np.where((width > 0) & np.isfinite(width), width, 1.0)
    centre = _mean_power(X, low, unit, np.zeros_like(low), 1)
    variance = _mean_power(X, low, unit, centre, 2)
    deviation = np.where(constant, 0.0, unit * np.sqrt(variance))
    return Columns(low, high, low + unit * centre, deviation)


def deviation(X: Any) -> np.ndarray:
    """Return the standard deviation of each column, of a matrix with duplicate entries too."""
    if hasattr(X, "has_canonical_format") and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return describe(X).deviation


def ends(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of each column, in double precision."""
    found = (X.min(axis=0), X.max(axis=0))
    low, high = (end.toarray().ravel() if hasattr(end, "toarray") else end for end in found)
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def _precision(dtype: np.dtype) -> float:
    """Return the relative distance of two neighbouring numbers of this type."""
    return float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)


def _mean_power(
    X: Any, low: np.ndarray, unit: np.ndarray, centre: np.ndarray, power: int
) -> np.ndarray:
    """Return the mean over all rows of ((x - low) / unit - centre)^power, column by column."""
    n, d = X.shape
    if hasattr(X, "indices"):
        j = X.indices
        powers = ((X.data - low[j]) / unit[j] - centre[j]) ** power
        zeros = n - np.bincount(j, minlength=d)
        total = np.bincount(j, powers, minlength=d) + zeros * (-low / unit - centre) ** power
        return total / n
    total = np.zeros(d)
    rows = max(1, _ENTRIES_PER_BLOCK // d)
    for start in range(0, n, rows):
        total += (((X[start : start + rows] - low) / unit - centre) ** power).sum(axis=0)
    return total / n

"""What dense and CSR rows share."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Self

import numpy as np

from zerogap.io.memory import free_memory
from zerogap.kernels.instructions import LANES
from zerogap.kernels.jit import Struct
from zerogap.penalties import L2
from zerogap.rows.loops import add_products, add_rows, add_squares, dots, sqnorms

SAMPLED_ROWS = 1000  # to find out: a mean that is off by 3 % of the spread is as good
CLASSES = 3 * LANES  # handled together: enough sums to hide the time that each addition takes
IDENTITY = L2()  # its to_primal(u) is u: the plain dot product
BLOCK = 4_000_000  # stored values read by one kernel call: a few milliseconds, so Ctrl-C works


class Rows(Struct):
    """What both storages share; `shape` and `stored` are theirs."""

    shape: tuple[int, int]

    @property
    def stored(self) -> int:
        """Number of stored values."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """Number of stored values of the longest row."""
        raise NotImplementedError

    def product(self, W: np.ndarray) -> np.ndarray:
        """Return X W' for weights W of shape (k, n_features)."""
        raise NotImplementedError

    def with_own_structure(self) -> Self:
        """Return rows whose structure nobody else can change: kernels follow it unchecked."""
        return self

    def transposed_product(self, A: np.ndarray) -> np.ndarray:
        """Return A' X for coefficients A of shape (n_samples, k)."""
        raise NotImplementedError

    def columns(self, places: np.ndarray) -> Self:
        """Return a copy of some columns."""
        raise NotImplementedError

    def moments(self, h: np.ndarray) -> np.ndarray:
        """Return sum_i h_i x_i x_i' for h_i >= 0."""
        raise NotImplementedError

    def times(self, w: np.ndarray) -> np.ndarray:
        """Return X w."""
        z = np.zeros(self.shape[0])
        if w.any():  # not so at the start of most runs, certified before the data are read
            for block in self.blocks():
                dots(self, w, IDENTITY, z, *block)
        return z

    def transposed_times(self, c: np.ndarray) -> np.ndarray:
        """Return X' c."""
        u = np.zeros(self.shape[1])
        for block in self.blocks():
            add_rows(self, c, u, *block)
        return u

    def weighted_product(
        self, h: np.ndarray, v: np.ndarray, offset: float
    ) -> tuple[np.ndarray, float]:
        """Return sum_i f_i x_i and the sum of f_i = h_i (x_i.v + offset)."""
        out, total = np.zeros(self.shape[1]), 0.0
        for block in self.blocks():
            total += add_products(self, h, v, offset, IDENTITY, out, *block)
        return out, total

    def square_sums(self, h: np.ndarray) -> np.ndarray:
        """Return sum_i h_i x_ij^2 for each feature."""
        out = np.zeros(self.shape[1])
        for block in self.blocks():
            add_squares(self, h, out, *block)
        return out

    def largest_entries(self) -> np.ndarray:
        """Return the largest size of the entries of each column."""
        raise NotImplementedError

    def are_zero(self) -> np.ndarray:
        """Tell which rows have no entries other than zero."""
        raise NotImplementedError

    @functools.cached_property
    def sqnorms(self) -> np.ndarray:
        """|x_i|^2 for all rows, in float64."""
        out = np.empty(self.shape[0])
        for start, stop in self.blocks():
            sqnorms(self, start, stop, out)
        return out

    @property
    def norms_are_finite(self) -> bool:
        """Whether no |x_i|^2 overflows: a proof that all values are finite, without a copy."""
        with np.errstate(over="ignore", invalid="ignore"):
            return math.isfinite(self.sqnorms.sum())

    @functools.cached_property
    def centred(self) -> tuple[Self, np.ndarray]:
        """These rows minus an origin, and that origin; themselves and none if all is near zero.

        Where there is no memory for another copy, dense rows subtract the origin at each reading.
        """
        origin = self._far_columns()
        if not origin.any():
            return self, origin[:0]
        if self._bytes_of_copy(origin) > free_memory():
            return self._minus_in_place(origin)
        return self.minus(origin), origin

    def _minus_in_place(self, origin: np.ndarray) -> tuple[Self, np.ndarray]:
        """Return these rows minus an origin, and that origin, without a copy; or them and none.

        Sparse rows stay as they are: far columns cost steps and digits then.
        """
        return self, origin[:0]

    def _bytes_of_copy(self, origin: np.ndarray) -> float:
        """Return the memory that `minus` takes."""
        return 8.0 * math.prod(self.shape)

    def _far_columns(self) -> np.ndarray:
        """Return what `find_shift` finds in some of the rows."""
        raise NotImplementedError

    def _some(self) -> np.ndarray:
        """Return places of some rows, spread over all of them."""
        n = self.shape[0]
        if n <= SAMPLED_ROWS:
            return np.arange(n)
        return np.unique(np.linspace(0, n - 1, SAMPLED_ROWS).astype(np.intp))

    def minus(self, origin: np.ndarray) -> Self:
        """Return a copy of the rows from which an origin is subtracted."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Memory held by the arrays."""
        return sum(v.nbytes for v in self.__getstate__().values() if isinstance(v, np.ndarray))

    def blocks(self) -> list[tuple[int, int]]:
        """Return ranges of rows that a kernel reads in a few milliseconds."""
        return self._blocks

    @functools.cached_property
    def _blocks(self) -> list[tuple[int, int]]:
        n = self.shape[0]
        size = max(1, int(BLOCK * n / max(1, self.stored + n)))
        return [(start, min(n, start + size)) for start in range(0, n, size)]


def slices(n: int, per_row: float) -> Iterator[slice]:
    """Yield slices of rows that are copied in milliseconds, so that Ctrl-C is seen in between."""
    size = max(1, int(BLOCK / (per_row + 1)))
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))

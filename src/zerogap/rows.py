"""The rows of a data matrix, dense or CSR, behind the operations that linear methods need.

Values may be float32; all arithmetic is in double.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from scipy import sparse

from zerogap._jit import LANES, Struct, add_scaled, in_order, kernel, lanes, prefetch, put_lanes
from zerogap.penalties import L2

FAR = 4.0  # standard deviations from zero at which a column's mean begins to cost digits
SAMPLED_ROWS = 1000  # to find out: a mean that is off by 3 % of the spread is as good
_FLOATS = (np.float32, np.float64)
CLASSES = 3 * LANES  # handled together: enough sums to hide the time that each addition takes
_FILLED = 0.3  # share of non-zeros from which products of dense copies are faster than loops
_IDENTITY = L2()  # its to_primal(u) is u: the plain dot product
FEW_COLUMNS = 24  # up to which loops sum up moments faster than BLAS, which takes scaled copies
_BLOCK_ROWS = 128  # whose few columns stay in the first cache
_BLOCK = 4_000_000  # stored values read by one kernel call: a few milliseconds, so Ctrl-C works


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
                _dots(self, w, _IDENTITY, z, *block)
        return z

    def transposed_times(self, c: np.ndarray) -> np.ndarray:
        """Return X' c."""
        u = np.zeros(self.shape[1])
        if c.any():
            for block in self.blocks():
                _add_rows(self, c, u, *block)
        return u

    def weighted_product(
        self, h: np.ndarray, v: np.ndarray, offset: float
    ) -> tuple[np.ndarray, float]:
        """Return sum_i f_i x_i and the sum of f_i = h_i (x_i.v + offset)."""
        out, total = np.zeros(self.shape[1]), 0.0
        for block in self.blocks():
            total += _add_products(self, h, v, offset, _IDENTITY, out, *block)
        return out, total

    def square_sums(self, h: np.ndarray) -> np.ndarray:
        """Return sum_i h_i x_ij^2 for each feature."""
        out = np.zeros(self.shape[1])
        for block in self.blocks():
            _add_squares(self, h, out, *block)
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
            _sqnorms(self, start, stop, out)
        return out

    @functools.cached_property
    def centred(self) -> tuple[Self, np.ndarray]:
        """These rows minus an origin, and that origin; themselves and none if all is near zero."""
        origin = self._far_columns()
        return (self.minus(origin), origin) if origin.any() else (self, origin[:0])

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
        size = max(1, int(_BLOCK * n / max(1, self.stored + n)))
        return [(start, min(n, start + size)) for start in range(0, n, size)]


@dataclass(frozen=True, eq=False)
class DenseRows(Rows):
    """Rows of a C-contiguous matrix."""

    X: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.X.shape

    @property
    def width(self) -> int:
        return self.X.shape[1]

    @property
    def stored(self) -> int:
        return self.X.size

    def _far_columns(self) -> np.ndarray:
        return find_shift(self.X[self._some()])

    def minus(self, origin: np.ndarray) -> Self:
        out = np.empty(self.shape)
        for part in _slices(*self.shape):
            np.subtract(self.X[part], origin, out=out[part])
        return type(self)(out)

    def largest_entries(self) -> np.ndarray:
        return np.maximum(self.X.max(axis=0), -self.X.min(axis=0))

    def are_zero(self) -> np.ndarray:
        return np.logical_not(self.X.any(axis=1))

    def product(self, W: np.ndarray) -> np.ndarray:
        if self.X.dtype == W.dtype:
            return self.X @ W.T
        # in parts whose copies in double precision stay in cache
        parts = _slices(self.shape[0], 32 * self.shape[1])
        return np.concatenate([self.X[part] @ W.T for part in parts])

    def columns(self, places: np.ndarray) -> Self:
        return type(self)(np.ascontiguousarray(self.X[:, places]))

    def transposed_product(self, A: np.ndarray) -> np.ndarray:
        return A.T @ self.X

    def moments(self, h: np.ndarray) -> np.ndarray:
        """Return sum_i h_i x_i x_i' for h_i >= 0."""
        d = self.shape[1]
        if d > FEW_COLUMNS:
            return self._moments(h, np.float64)
        lower, columns = np.zeros((d, d)), np.empty((d, _BLOCK_ROWS))
        for block in self.blocks():
            _add_few_moments(self, h, lower, columns, *block)
        _mirror(lower)
        return lower

    def rough_moments(self, h: np.ndarray) -> np.ndarray:
        """Return the same in half the time, with products in single precision."""
        return self._moments(h, np.float32)

    def _moments(self, h: np.ndarray, dtype: Any) -> np.ndarray:
        d = self.shape[1]
        total, roots = np.zeros((d, d)), np.sqrt(h).astype(dtype)
        for part in _slices(len(h), 4 * d):
            scaled = self.X[part].astype(dtype)
            scaled *= roots[part, None]
            total += scaled.T @ scaled
        return total

    def span(self, i):
        """Places of the values of row i"""
        return range(self.X.shape[1])

    def entry_column(self, i, k):
        """Column of the k-th value of row i"""
        return k

    def entry_value(self, i, k):
        """The k-th value of row i"""
        return np.float64(self.X[i, k])

    def dot(self, i, u, penalty):
        """x_i . w  with  w = penalty.to_primal(u)"""
        total = 0.0
        for j in range(self.X.shape[1]):
            total += np.float64(self.X[i, j]) * penalty.to_primal(u[j])
        return total

    def add_to(self, u, i, c):
        """u += c x_i"""
        for j in range(self.X.shape[1]):
            u[j] += c * np.float64(self.X[i, j])

    def add_squares(self, u, i, c):
        """u_j += c x_ij^2"""
        for j in range(self.X.shape[1]):
            value = np.float64(self.X[i, j])
            u[j] += c * value * value

    def add_scores(self, z, i, W):
        """z += x_i W for weights W listed feature by feature, len(z) of them for each"""
        for c in range(0, len(z), CLASSES):
            a, b, d = lanes(z, c), lanes(z, c + LANES), lanes(z, c + 2 * LANES)
            for j in range(self.X.shape[1]):
                k, value = j * len(z) + c, np.float64(self.X[i, j])
                a = add_scaled(a, value, lanes(W, k))
                b = add_scaled(b, value, lanes(W, k + LANES))
                d = add_scaled(d, value, lanes(W, k + 2 * LANES))
            put_lanes(z, c, a)
            put_lanes(z, c + LANES, b)
            put_lanes(z, c + 2 * LANES, d)

    def add_outer(self, U, W, i, step, penalty):
        """U += x_i' step and W = penalty.to_primal(U), both listed as in `add_scores`"""
        for c in range(0, len(step), CLASSES):
            a, b, d = lanes(step, c), lanes(step, c + LANES), lanes(step, c + 2 * LANES)
            for j in range(self.X.shape[1]):
                k, value = j * len(step) + c, np.float64(self.X[i, j])
                put_lanes(U, k, add_scaled(lanes(U, k), value, a))
                put_lanes(U, k + LANES, add_scaled(lanes(U, k + LANES), value, b))
                put_lanes(U, k + 2 * LANES, add_scaled(lanes(U, k + 2 * LANES), value, d))
                if penalty.convexity() < 1.0:  # else U and W are one array
                    for m in range(k, k + CLASSES):
                        W[m] = penalty.to_primal(U[m])

    def sqnorm(self, i):
        """|x_i|^2"""
        total = 0.0
        for j in range(self.X.shape[1]):
            value = np.float64(self.X[i, j])
            total += value * value
        return total

    def hint(self, i):
        """Announce that row i will be fetched soon."""

    def fetch(self, i):
        """Announce that row i will be read soon; from its beginning the processor goes on alone."""
        for j in range(0, min(self.X.shape[1], 32), 8):
            prefetch(self.X[i], j)

    def take(self, order: np.ndarray) -> Self:
        """Return a copy of these rows, in this order."""
        X = np.empty((len(order), self.X.shape[1]), dtype=self.X.dtype)
        for part in _slices(len(order), self.X.shape[1]):
            np.take(self.X, order[part], axis=0, out=X[part])
        return type(self)(X)


@dataclass(frozen=True, eq=False)
class CSRRows(Rows):
    """Rows of a CSR matrix.  `indices` is unsigned: Numba then skips its test for negative ones."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return len(self.indptr) - 1, self.n_columns

    @functools.cached_property
    def width(self) -> int:
        return int(np.diff(self.indptr).max(initial=0))

    @property
    def stored(self) -> int:
        return len(self.data)

    def _far_columns(self) -> np.ndarray:
        some = self._matrix()[self._some()]
        origin = np.zeros(self.shape[1])
        # a column with more zeros than that has a mean within FAR standard deviations
        full = np.bincount(some.indices, minlength=self.shape[1]) * (1.0 + FAR**-2) >= some.shape[0]
        columns = np.flatnonzero(full)
        if len(columns):
            origin[columns] = find_shift(some[:, columns].toarray())
        return origin

    def minus(self, origin: np.ndarray) -> Self:
        far = np.flatnonzero(origin).astype(self.indices.dtype)  # their zeros are no longer zero
        most = self.stored + self.shape[0] * len(far)
        wide = most >= 2**31
        indptr = np.empty(len(self.indptr), np.int64 if wide else self.indptr.dtype)
        data, indices = np.empty(most), np.empty(most, self.indices.dtype)
        stored = _subtract(self, origin, far, indptr, data, indices)
        return type(self)(data[:stored], indices[:stored], indptr, self.n_columns)

    def largest_entries(self) -> np.ndarray:
        return abs(self._matrix()).max(axis=0).toarray().ravel()

    def are_zero(self) -> np.ndarray:
        return self._matrix().astype(bool).sum(axis=1).A1 == 0

    def product(self, W: np.ndarray) -> np.ndarray:
        return self._matrix() @ W.T

    def columns(self, places: np.ndarray) -> Self:
        return cast("Self", _csr_rows(self._matrix()[:, places]))

    def transposed_product(self, A: np.ndarray) -> np.ndarray:
        return (self._matrix().T @ A).T

    def moments(self, h: np.ndarray) -> np.ndarray:
        """Return sum_i h_i x_i x_i' for h_i >= 0."""
        n, d = self.shape
        if self.stored > _FILLED * n * d:
            total = np.zeros((d, d))
            for part in _slices(n, d):
                dense = DenseRows(self._matrix()[part].toarray())
                total += dense.moments(h[part])
            return total
        lower = np.zeros((d, d))
        for block in self.blocks():
            _add_moments(self, h, lower, *block)
        _mirror(lower)
        return lower

    def with_own_structure(self) -> Self:
        private = type(self)(self.data, self.indices.copy(), self.indptr.copy(), self.n_columns)
        _check_pointers(private)  # again: it may have changed since
        if not _is_inside(private):
            _refuse_indices(private)
        return private

    def _matrix(self) -> Any:
        signed = self.indices.view(np.int32 if self.indices.itemsize == 4 else np.int64)
        return sparse.csr_matrix((self.data, signed, self.indptr), shape=self.shape)

    def span(self, i):
        """Places of the values of row i: without a sign, which kernels would look for each time"""
        return range(np.uintp(self.indptr[i]), np.uintp(self.indptr[i + 1]))

    def entry_column(self, i, k):
        """Column of the value at place k, which is one of row i"""
        return self.indices[k]

    def entry_value(self, i, k):
        """The value at place k"""
        return np.float64(self.data[k])

    @in_order
    def dot(self, i, u, penalty):
        """x_i . w  with  w = penalty.to_primal(u)"""
        total = 0.0
        for k in self.span(i):
            total += np.float64(self.data[k]) * penalty.to_primal(u[self.indices[k]])
        return total

    def add_to(self, u, i, c):
        """u += c x_i"""
        for k in self.span(i):
            u[self.indices[k]] += c * np.float64(self.data[k])

    def add_squares(self, u, i, c):
        """u_j += c x_ij^2"""
        for k in self.span(i):
            value = np.float64(self.data[k])
            u[self.indices[k]] += c * value * value

    def add_scores(self, z, i, W):
        """z += x_i W for weights W listed feature by feature, len(z) of them for each"""
        for c in range(0, len(z), CLASSES):
            a, b, d = lanes(z, c), lanes(z, c + LANES), lanes(z, c + 2 * LANES)
            for m in self.span(i):
                k, value = np.intp(self.indices[m]) * len(z) + c, np.float64(self.data[m])
                a = add_scaled(a, value, lanes(W, k))
                b = add_scaled(b, value, lanes(W, k + LANES))
                d = add_scaled(d, value, lanes(W, k + 2 * LANES))
            put_lanes(z, c, a)
            put_lanes(z, c + LANES, b)
            put_lanes(z, c + 2 * LANES, d)

    def add_outer(self, U, W, i, step, penalty):
        """U += x_i' step and W = penalty.to_primal(U), both listed as in `add_scores`"""
        for c in range(0, len(step), CLASSES):
            a, b, d = lanes(step, c), lanes(step, c + LANES), lanes(step, c + 2 * LANES)
            for m in self.span(i):
                k, value = np.intp(self.indices[m]) * len(step) + c, np.float64(self.data[m])
                put_lanes(U, k, add_scaled(lanes(U, k), value, a))
                put_lanes(U, k + LANES, add_scaled(lanes(U, k + LANES), value, b))
                put_lanes(U, k + 2 * LANES, add_scaled(lanes(U, k + 2 * LANES), value, d))
                if penalty.convexity() < 1.0:  # else U and W are one array
                    for j in range(k, k + CLASSES):
                        W[j] = penalty.to_primal(U[j])

    def sqnorm(self, i):
        """|x_i|^2"""
        total = 0.0
        for k in self.span(i):
            value = np.float64(self.data[k])
            total += value * value
        return total

    def hint(self, i):
        """Announce that row i will be fetched soon."""
        prefetch(self.indptr, i)

    def fetch(self, i):
        """Announce that row i will be read soon; from its beginning the processor goes on alone."""
        k = self.indptr[i]
        prefetch(self.data, k)
        prefetch(self.data, k + 8)
        prefetch(self.indices, k)

    def take(self, order: np.ndarray) -> Self:
        """Return a copy of these rows, in this order."""
        indptr = np.zeros(len(order) + 1, dtype=self.indptr.dtype)
        np.cumsum(self.indptr[order + 1] - self.indptr[order], out=indptr[1:])
        data = np.empty(indptr[-1], dtype=self.data.dtype)
        indices = np.empty(indptr[-1], dtype=self.indices.dtype)
        for part in _slices(len(order), self.stored / max(1, len(order))):
            ends = indptr[part.start : part.stop + 1]
            _gather(self, order[part], ends, data, indices)
        return type(self)(data, indices, indptr, self.n_columns)


def find_shift(some: np.ndarray) -> np.ndarray:
    """Return what to subtract from each column of some rows: 0 for those that are near zero.

    It has so few digits that differences are exact if values are not twice as far, nor half.
    """
    some = some.astype(np.float64, copy=False)
    mean, spread = np.zeros((2, some.shape[1]))
    _add_spreads(some, mean, spread)
    return shift_from(mean, spread, some[0])


def shift_from(mean: np.ndarray, spread: np.ndarray, one: np.ndarray) -> np.ndarray:
    """Return what `find_shift` does for columns with this mean, standard deviation and one row."""
    far = np.abs(mean) > FAR * spread
    if not far.any():
        return np.zeros(len(mean))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step = np.exp2(np.floor(np.log2(spread)) - 1.0)
        rounded = np.round(mean / step) * step
    rounded = np.where(np.isfinite(rounded), rounded, one)  # a constant, or nearly one
    return np.where(far, rounded, 0.0)


@kernel
def _add_spreads(some, mean, spread):
    """Means and standard deviations of columns: those of what is left without the mean"""
    n, d = some.shape
    for i in range(n):
        for j in range(d):
            mean[j] += some[i, j] / n
    offset = np.zeros(d)
    for i in range(n):
        for j in range(d):
            offset[j] += (some[i, j] - mean[j]) / n
    for i in range(n):
        for j in range(d):
            rest = some[i, j] - mean[j] - offset[j]
            spread[j] += rest * rest / n
    for j in range(d):
        spread[j] = np.sqrt(spread[j])


def compact(rows: DenseRows | CSRRows) -> DenseRows | CSRRows:
    """Return rows without their zeros, as a copy, where that makes every pass over them faster.

    Three zeros in four values: as many as a dense row's regular reads are worth.
    """
    if isinstance(rows, CSRRows):
        return rows
    n, d = rows.shape
    some = rows.X[:: max(1, n // 1000), :: max(1, d // 1000)]
    if np.count_nonzero(some) > 0.25 * some.size or d >= 2**31:
        return rows
    limit = rows.X.size // 4
    indptr = np.zeros(n + 1, dtype=np.int64)
    # what is not written to takes no memory
    data, indices = np.empty(limit + d, rows.X.dtype), np.empty(limit + d, np.uint32)
    for start, stop in rows.blocks():
        _compress(rows, start, stop, indptr, data, indices)
        if indptr[stop] > limit:  # the sample was not like the rest
            return rows
    stored = indptr[-1]
    return CSRRows(data[:stored], indices[:stored], indptr, d)


@kernel
def _compress(rows, start, stop, indptr, data, indices):
    """Append the rows' values that are not zero, until no room for a whole row might be left."""
    k, d = np.uintp(indptr[start]), rows.X.shape[1]
    for i in range(start, stop):
        if k + np.uintp(d) <= np.uintp(len(data)):
            for j in range(d):  # no question that a processor could guess wrong
                data[k], indices[k] = rows.X[i, j], j
                k += np.uintp(rows.X[i, j] != 0.0)
        else:
            k = np.uintp(len(data))
        indptr[i + 1] = k


def _slices(n: int, per_row: float) -> Iterator[slice]:
    """Yield slices of rows that are copied in milliseconds, so that Ctrl-C is seen in between."""
    size = max(1, int(_BLOCK / (per_row + 1)))
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))


@kernel
def _gather(rows, order, indptr, data, indices):
    """Copy row order[i] of a CSR matrix to place i."""
    for i in range(len(order)):
        place = np.uintp(indptr[i])
        for k in rows.span(order[i]):
            data[place], indices[place] = rows.data[k], rows.indices[k]
            place += np.uintp(1)


@kernel
def _subtract(rows, origin, far, indptr, data, indices):
    """Store the rows minus an origin, with all values of its far columns; return how many"""
    place = np.uintp(0)
    for i in range(len(indptr) - 1):
        indptr[i], f = place, 0
        for k in rows.span(i):
            column = rows.indices[k]
            while f < len(far) and far[f] < column:
                data[place], indices[place] = -origin[far[f]], far[f]
                place, f = place + np.uintp(1), f + 1
            f += f < len(far) and far[f] == column
            data[place], indices[place] = np.float64(rows.data[k]) - origin[column], column
            place += np.uintp(1)
        while f < len(far):
            data[place], indices[place] = -origin[far[f]], far[f]
            place, f = place + np.uintp(1), f + 1
    indptr[-1] = place
    return place


@kernel
def _add_moments(rows, h, lower, start, stop):
    """lower += the lower triangle of sum_i h_i x_i x_i'"""
    for i in range(start, stop):
        for k in rows.span(i):
            scaled = h[i] * np.float64(rows.data[k])
            row = lower[rows.indices[k]]
            for m in range(np.uintp(rows.indptr[i]), k + np.uintp(1)):
                row[rows.indices[m]] += scaled * np.float64(rows.data[m])


@kernel
def _add_few_moments(rows, h, lower, columns, start, stop):
    """`_add_moments` in blocks of rows whose columns stay in cache: rows share instructions"""
    length = columns.shape[1]
    scaled = np.empty(length)
    for first in range(start, stop, length):
        count = min(length, stop - first)
        for i in range(count):
            for j in range(columns.shape[0]):
                columns[j, i] = np.float64(rows.X[first + i, j])
        for j in range(columns.shape[0]):
            for i in range(count):
                scaled[i] = h[first + i] * columns[j, i]
            for k in range(j + 1):
                total = 0.0
                for i in range(count):
                    total += scaled[i] * columns[k, i]
                lower[j, k] += total


@kernel
def _mirror(lower):
    """Make a matrix of its lower triangle symmetric"""
    for j in range(len(lower)):
        for k in range(j):
            lower[k, j] = lower[j, k]


@kernel
def _is_canonical(rows):
    """Tell whether the column indices of each row rise, without duplicates."""
    for i in range(len(rows.indptr) - 1):
        for k in range(rows.indptr[i] + 1, rows.indptr[i + 1]):
            if rows.indices[k] <= rows.indices[k - 1]:
                return False
    return True


@kernel
def _is_inside(rows):
    """Tell whether all column indices exist; negative ones look huge without their sign."""
    inside = True
    for k in range(len(rows.indices)):
        inside &= rows.indices[k] < rows.n_columns
    return inside


@kernel
def _dots(rows, w, identity, z, start, stop):
    """z_i = x_i . w"""
    for i in range(start, stop):
        z[i] = rows.dot(i, w, identity)


@kernel
def _add_rows(rows, c, u, start, stop):
    """u += sum_i c_i x_i"""
    for i in range(start, stop):
        if c[i] != 0.0:
            rows.add_to(u, i, c[i])


@kernel
def _add_products(rows, h, v, offset, identity, out, start, stop):
    """out += sum_i h_i (x_i.v + offset) x_i; returns the sum of the factors"""
    total = 0.0
    for i in range(start, stop):
        factor = h[i] * (rows.dot(i, v, identity) + offset)
        rows.add_to(out, i, factor)
        total += factor
    return total


@kernel
def _add_squares(rows, h, out, start, stop):
    """out_j += sum_i h_i x_ij^2"""
    for i in range(start, stop):
        rows.add_squares(out, i, h[i])


@kernel
def _sqnorms(rows, start, stop, out):
    for i in range(start, stop):
        out[i] = rows.sqnorm(i)


def as_rows(X: Any) -> DenseRows | CSRRows:
    """Wrap a matrix, without a copy if its type is supported, after checking all of it.

    Parameters
    ----------
    X : array-like or scipy sparse matrix or array of shape (n_samples, n_features)
        float32 and float64 are used as they are, C-contiguous or CSR with int32 or int64 indices;
        anything else numeric is converted.  The arrays must not change while they are in use.

    Raises
    ------
    ValueError
        If X is not a finite, real, two-dimensional, non-empty matrix with valid structure.
    """
    if isinstance(X, (DenseRows, CSRRows)):
        return X
    if sparse.issparse(X):
        return _csr_rows(X)
    if np.ma.isMaskedArray(X):
        raise ValueError("X is a masked array: fill or drop the masked entries first")
    X = np.asarray(X)
    if X.ndim != 2:
        hint = "; X.reshape(-1, 1) makes one feature of it" if X.ndim == 1 else ""
        raise ValueError(f"X must be two-dimensional, got {X.ndim} dimension(s){hint}")
    _check_size(X.shape)
    X = np.ascontiguousarray(X, dtype=_float_type(X.dtype))
    _check_finite(X)
    return DenseRows(X)


def _csr_rows(X: Any) -> CSRRows:
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got {X.ndim} dimension(s)")
    _check_size(X.shape)
    dtype = _float_type(X.dtype)
    if X.format != "csr":
        _check_coordinates(X)
        X = X.tocsr()
    _check_pointers(X)
    stored = X.indptr[-1]
    rows = _wrap_csr(X.data[:stored], X.indices[:stored], X.indptr, X.shape, dtype)
    if not _is_inside(rows):
        _refuse_indices(X)
    if not _is_canonical(rows):  # the flags of X may be stale
        X = sparse.csr_matrix((X.data[:stored], X.indices[:stored], X.indptr), X.shape, copy=True)
        X.sum_duplicates()
        rows = _wrap_csr(X.data, X.indices, X.indptr, X.shape, dtype)
    data, indices = rows.data, rows.indices
    if not _sums_finite(data) and not (finite := np.isfinite(data)).all():
        k = int(np.argmin(finite))
        i = int(np.searchsorted(rows.indptr, k, side="right")) - 1
        raise ValueError(_not_finite(data[k], i, int(indices[k])))
    return rows


def _wrap_csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int], dtype: type) -> CSRRows:
    """Return rows over the given arrays, converted only where their types are not supported."""

    def native(a: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(a, dtype=np.int32 if a.dtype.itemsize <= 4 else np.int64)

    indices = native(indices)
    unsigned = indices.view(np.uint32 if indices.itemsize == 4 else np.uint64)
    return CSRRows(np.ascontiguousarray(data, dtype), unsigned, native(indptr), int(shape[1]))


def _check_coordinates(X: Any) -> None:
    """Refuse a matrix of another format that scipy would follow out of bounds on its way to CSR."""
    if hasattr(X, "check_format"):
        X.check_format(full_check=True)
    if X.format == "coo" and X.nnz:
        for axis, places in (("row", X.row), ("column", X.col)):
            size = X.shape[axis == "column"]
            if places.min() < 0 or places.max() >= size:
                k = int(np.argmax((places < 0) | (places >= size)))
                raise ValueError(
                    f"X is not a valid COO matrix: entry {k} has {axis} index {places[k]}, "
                    f"but there are {size} {axis}s"
                )


def _check_pointers(X: Any) -> None:
    """Refuse a CSR matrix whose row pointers a kernel would follow out of bounds."""
    n, _ = X.shape
    indptr, indices = np.asarray(X.indptr), np.asarray(X.indices)
    if len(indptr) != n + 1:
        raise ValueError(
            f"X is not a valid CSR matrix: indptr has {len(indptr)} entries for {n} rows"
        )
    if indptr[0] != 0 or indptr[-1] > min(len(indices), len(X.data)):
        raise ValueError(
            f"X is not a valid CSR matrix: indptr runs from {indptr[0]} to {indptr[-1]}, "
            f"but there are {len(indices)} indices and {len(X.data)} values"
        )
    if np.any(falls := indptr[1:] < indptr[:-1]):
        raise ValueError(
            f"X is not a valid CSR matrix: indptr decreases after row {int(np.argmax(falls))}"
        )


def _refuse_indices(X: Any) -> None:
    """Say which column index does not exist."""
    d, indptr = X.shape[1], np.asarray(X.indptr)
    used = np.asarray(X.indices)[: indptr[-1]]
    k = int(np.argmax((used < 0) | (used >= d)))
    i = int(np.searchsorted(indptr, k, side="right")) - 1
    raise ValueError(
        f"X is not a valid CSR matrix: row {i} has column index {used[k]}, "
        f"but there are {d} columns"
    )


def _check_size(shape: tuple[int, ...]) -> None:
    n, d = shape
    if n == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape=({n}, {d})): X has no rows")
    if d == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({n}, {d})) while a minimum of 1 is required."
        )


def _float_type(dtype: np.dtype) -> type:
    if dtype.kind == "c":
        raise ValueError("Complex data not supported: X must be real")
    if dtype.kind not in "buif" or dtype.itemsize > 8:
        raise ValueError(f"X has type {dtype}, which is not a real number of at most 64 bits")
    return dtype.type if dtype.type in _FLOATS else np.float64


def _sums_finite(values: np.ndarray) -> bool:
    """A finite sum proves that all values are, and needs no memory."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum()))


def _check_finite(X: np.ndarray) -> None:
    if _sums_finite(X):
        return
    for i, row in enumerate(X):
        finite = np.isfinite(row)
        if not finite.all():
            j = int(np.argmin(finite))
            raise ValueError(_not_finite(row[j], i, j))


def _not_finite(value: float, i: int, j: int) -> str:
    kind = "NaN" if np.isnan(value) else "infinity"
    advice = (
        "drop the row or impute the value" if kind == "NaN" else "drop the row or clip the value"
    )
    return f"Input X contains {kind} at row {i}, column {j}: {advice}"

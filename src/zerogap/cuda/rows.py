"""Rows on a GPU, dense or CSR, behind the operations that linear methods need.

WIDTH threads share a row, or a piece of it if it is long.  Products with X' use a transposed copy
of sparse data, whose rows are pieces of columns: nothing is added atomically, so that results do
not depend on the order in which threads run.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.cuda.device import (
    arrays,
    check_memory,
    free_memory,
    is_on_device,
    sparse_arrays,
    to_host,
)
from zerogap.cuda.kernels import THREADS, view
from zerogap.cuda.row_kernels import column_sums, no_places, row_products, row_sums
from zerogap.io.tensors import as_array
from zerogap.rows import SAMPLED_ROWS, CSRRows, DenseRows, as_rows, find_shift

_VALUES_PER_PIECE = 2048  # values of a row that WIDTH threads add up; longer rows are cut
_VALUES_PER_CONVERSION = 1 << 26  # values converted to double precision at a time
_BUSY_THREADS = 1 << 18  # threads that keep a large GPU busy


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """What both storages share; `shape`, `stored` and `nbytes` are theirs."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """Number of values of the longest row, or more."""
        return self.shape[1]

    @functools.cached_property
    def sqnorms(self) -> Any:
        """|x_i|^2 for all rows, in float64."""
        return self._dots(arrays().zeros(0), True)

    @functools.cached_property
    def centred(self) -> tuple[Any, np.ndarray]:
        """These rows minus an origin, and that origin; themselves and none if they stay."""
        return self, np.empty(0)

    def times(self, w: Any) -> Any:
        """Return X w."""
        return self._dots(w, False)

    def _dots(self, w: Any, squared: bool) -> Any:
        """Return x_i . w, or |x_i|^2, for all rows."""
        raise NotImplementedError

    def transposed_times(self, c: Any, squared: bool = False) -> Any:
        """Return X' c, or with squares of X."""
        raise NotImplementedError

    def product(self, W: Any) -> Any:
        """Return X W' for weights W of shape (k, n_features)."""
        raise NotImplementedError

    def transposed_product(self, A: Any) -> Any:
        """Return A' X for coefficients A of shape (n_samples, k)."""
        raise NotImplementedError

    def weighted_product(self, h: Any, v: Any, offset: float) -> tuple[Any, float]:
        """Return sum_i f_i x_i and the sum of f_i = h_i (x_i.v + offset)."""
        f = h * (self.times(v) + offset)
        return self.transposed_times(f), float(f.sum())

    def square_sums(self, h: Any) -> Any:
        """Return sum_i h_i x_ij^2 for each feature."""
        return self.transposed_times(h, squared=True)


@dataclass(frozen=True, eq=False)
class DeviceDenseRows(DeviceRows):
    """Rows of a C-contiguous matrix."""

    X: Any

    @functools.cached_property
    def centred(self) -> tuple[Any, np.ndarray]:
        n = self.shape[0]
        some = np.unique(np.linspace(0, n - 1, min(n, SAMPLED_ROWS)).astype(np.intp))
        origin = find_shift(to_host(self.X[arrays().asarray(some)]))
        if not origin.any():
            return self, origin[:0]
        shifted = self.X.astype(np.float64) - arrays().asarray(origin)
        return DeviceDenseRows(arrays().ascontiguousarray(shifted)), origin

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def stored(self) -> int:
        """Number of stored values."""
        return self.X.size

    @property
    def nbytes(self) -> int:
        """Memory held by the arrays."""
        return self.X.nbytes

    @functools.cached_property
    def parts(self) -> tuple[Any, Any, Any, int]:
        """Values, columns, starts and width, as kernels take rows."""
        return view(self.X.ravel()), no_places(), no_places(), self.X.shape[1]

    def _dots(self, w: Any, squared: bool) -> Any:
        return row_sums(self.parts, no_places(), w, squared, self.shape[0])

    def transposed_times(self, c: Any, squared: bool = False) -> Any:
        n, d = self.shape
        stripes = max(1, min(n // 32, _BUSY_THREADS // d))
        out = arrays().empty(stripes * d)
        blocks = -(-len(out) // THREADS)
        column_sums[blocks, THREADS](self.parts[0], d, view(c), squared, view(out))
        return out.reshape(stripes, d).sum(axis=0)

    def product(self, W: Any) -> Any:
        X = self._like(W)
        if X is not None:
            return X @ W.T
        out = arrays().empty((self.shape[0], len(W)))
        for part in self._cuts():
            out[part] = self.X[part].astype(np.float64) @ W.T
        return out

    def transposed_product(self, A: Any) -> Any:
        X = self._like(A)
        if X is not None:
            return A.T @ X
        return sum(A[part].T @ self.X[part].astype(np.float64) for part in self._cuts())

    def _like(self, other: Any) -> Any:
        """Return the matrix in the precision of another one, if there is room for it."""
        return self.X if self.X.dtype == other.dtype else self.in_double

    @functools.cached_property
    def in_double(self) -> Any:
        """The matrix in double precision if there is plenty of memory: products are faster."""
        if self.X.dtype == np.float64:
            return self.X
        return self.X.astype(np.float64) if 16.0 * self.X.size < free_memory() else None

    def moments(self, h: Any) -> Any:
        """Return sum_i h_i x_i x_i' for h_i >= 0."""
        roots = np.sqrt(h)[:, None]
        return sum(_squared(self.X[part] * roots[part]) for part in self._cuts())

    def _cuts(self) -> list[slice]:
        n, d = self.shape
        size = max(1, _VALUES_PER_CONVERSION // d)
        return [slice(start, start + size) for start in range(0, n, size)]

    def take(self, order: Any) -> DeviceDenseRows:
        """Return a copy of these rows, in this order."""
        double = "in_double" in vars(self) and self.in_double is not None
        return DeviceDenseRows((self.in_double if double else self.X)[order])


def _squared(X: Any) -> Any:
    """Return X' X, in parts that are worked on at the same time if X is tall."""
    n, d = X.shape
    parts = min(_BUSY_THREADS // (d * d), n // 256)
    if parts < 2:
        return X.T @ X
    size = n // parts
    tall = X[: parts * size].reshape(parts, size, d)
    rest = X[parts * size :]
    return (tall.transpose(0, 2, 1) @ tall).sum(axis=0) + rest.T @ rest


@dataclass(frozen=True, eq=False)
class DeviceCSRRows(DeviceRows):
    """Rows of a CSR matrix."""

    values: Any
    columns: Any
    starts: Any
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.starts) - 1, self.n_columns

    @property
    def stored(self) -> int:
        """Number of stored values."""
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Memory held by the arrays."""
        return self.values.nbytes + self.columns.nbytes + self.starts.nbytes

    @functools.cached_property
    def parts(self) -> tuple[Any, Any, Any, int]:
        """Values, columns, starts and width, as kernels take rows."""
        return view(self.values), view(self.columns), view(self.starts), 0

    @functools.cached_property
    def pieces(self) -> tuple[Any, Any] | None:
        """Where the pieces of long rows start, and which piece each row starts with, if any."""
        xp = arrays()
        lengths = xp.diff(self.starts)
        if int(lengths.max()) <= 2 * _VALUES_PER_PIECE:
            return None
        counts = xp.maximum(1, -(-lengths // _VALUES_PER_PIECE))
        firsts = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(counts)])
        piece = xp.arange(int(firsts[-1]))
        row = xp.searchsorted(firsts, piece, side="right") - 1
        starts = self.starts[row] + _VALUES_PER_PIECE * (piece - firsts[row])
        return xp.append(starts, self.starts[-1]).astype(self.starts.dtype), firsts

    def _dots(self, w: Any, squared: bool) -> Any:
        if self.pieces is None:
            return row_sums(self.parts, no_places(), w, squared, self.shape[0])
        values, columns, _, width = self.parts
        ends, firsts = self.pieces
        cut = (values, columns, view(ends), width)
        partial = row_sums(cut, no_places(), w, squared, len(ends) - 1)
        whole = (view(partial), no_places(), view(firsts), 0)
        return row_sums(whole, no_places(), w, False, self.shape[0])

    @functools.cached_property
    def transposed(self) -> DeviceCSRRows:
        """The columns as rows."""
        check_memory(3 * self.nbytes, "a transposed copy of the data")
        matrix = self.matrix().T.tocsr()
        return DeviceCSRRows(matrix.data, matrix.indices, matrix.indptr, self.shape[0])

    def transposed_times(self, c: Any, squared: bool = False) -> Any:
        if not squared:
            return self.transposed.times(c)
        columns, squares = self.transposed, self.transposed.values.astype(np.float64) ** 2
        return DeviceCSRRows(squares, columns.columns, columns.starts, columns.n_columns).times(c)

    def product(self, W: Any) -> Any:
        listed = arrays().ascontiguousarray(W.T)
        if self.pieces is None:
            return row_products(self.parts, no_places(), listed, self.shape[0])
        values, columns, _, width = self.parts
        ends, firsts = self.pieces
        cut = (values, columns, view(ends), width)
        partial = row_products(cut, no_places(), listed, len(ends) - 1)
        whole = (no_places(), no_places(), view(firsts), 0)
        return row_products(whole, no_places(), partial, self.shape[0])

    def transposed_product(self, A: Any) -> Any:
        return arrays().ascontiguousarray(self.transposed.product(A.T).T)

    def moments(self, h: Any) -> Any:
        """Return sum_i h_i x_i x_i' for h_i >= 0."""
        (n, d), matrix = self.shape, self.matrix()
        size = max(1, _VALUES_PER_CONVERSION // d)
        total = arrays().zeros((d, d))
        for start in range(0, n, size):
            part = slice(start, min(n, start + size))
            total += DeviceDenseRows(matrix[part].toarray()).moments(h[part])
        return total

    def take(self, order: Any) -> SomeRows:
        """Return some of these rows, in this order, without a copy."""
        return SomeRows(self, order)

    def matrix(self) -> Any:
        """Return these rows as a CSR matrix of CuPy, without a copy."""
        arrays = (self.values, self.columns, self.starts)
        return sparse_arrays().csr_matrix(arrays, shape=self.shape)


@dataclass(frozen=True, eq=False)
class SomeRows(DeviceRows):
    """Some rows of a CSR matrix, without a copy.

    A copy would need a transposed one as well, which takes longer to make than products with the
    one that there is, with zeros for the other rows.
    """

    all_rows: DeviceCSRRows
    places: Any

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.places), self.all_rows.n_columns

    @property
    def stored(self) -> int:
        """Number of stored values, roughly."""
        return self.all_rows.stored * len(self.places) // max(1, self.all_rows.shape[0])

    nbytes = 0

    def _dots(self, w: Any, squared: bool) -> Any:
        return row_sums(self.all_rows.parts, view(self.places), w, squared, len(self.places))

    def transposed_times(self, c: Any, squared: bool = False) -> Any:
        everywhere = arrays().zeros(self.all_rows.shape[0])
        arrays().add.at(everywhere, self.places, c)  # a place may come twice
        return self.all_rows.transposed_times(everywhere, squared)

    def product(self, W: Any) -> Any:
        listed = arrays().ascontiguousarray(W.T)
        return row_products(self.all_rows.parts, view(self.places), listed, len(self.places))

    def transposed_product(self, A: Any) -> Any:
        everywhere = arrays().zeros((self.all_rows.shape[0], A.shape[1]))
        arrays().add.at(everywhere, self.places, A)
        return self.all_rows.transposed_product(everywhere)

    def moments(self, h: Any) -> Any:
        """Return sum_i h_i x_i x_i' for h_i >= 0."""
        matrix = self.all_rows.matrix()[self.places]
        arrays = (matrix.data, matrix.indices, matrix.indptr)
        return DeviceCSRRows(*arrays, self.all_rows.n_columns).moments(h)

    def take(self, order: Any) -> SomeRows:
        """Return some of these rows, in this order."""
        return SomeRows(self.all_rows, self.places[order])


def as_device_rows(X: Any) -> DeviceDenseRows | DeviceCSRRows:
    """Return rows on the GPU: moved there after all checks, or as they are if they are there."""
    if isinstance(X, DeviceRows):
        return X  # type: ignore[return-value]
    if not is_on_device(X):
        return _moved(as_rows(X))
    return _checked(as_array(X))


def _moved(rows: DenseRows | CSRRows) -> DeviceDenseRows | DeviceCSRRows:
    check_memory(1.1 * rows.nbytes + 200.0 * rows.shape[0], f"X of shape {rows.shape}")
    xp = arrays()
    if isinstance(rows, DenseRows):
        return DeviceDenseRows(xp.asarray(rows.values))
    signed = rows.indices.view(np.int32 if rows.indices.itemsize == 4 else np.int64)
    starts = rows.indptr
    if rows.stored < 2**31 and starts.itemsize == 8:  # CuPy wants both of one type
        starts = starts.astype(signed.dtype)
    return DeviceCSRRows(
        xp.asarray(rows.data), xp.asarray(signed), xp.asarray(starts), rows.n_columns
    )


def _checked(X: Any) -> DeviceDenseRows | DeviceCSRRows:
    """Check what is on the GPU already, where it is, and wrap it without a copy if possible."""
    xp, sparse = arrays(), sparse_arrays()
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be two-dimensional with rows and columns, got shape {X.shape}")
    if X.dtype.kind not in "buif":
        raise ValueError(f"X has type {X.dtype}, which is not a real number of at most 64 bits")
    single = X.dtype == np.float32
    dtype = np.float32 if single else np.float64
    rows: DeviceDenseRows | DeviceCSRRows
    if sparse.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        data = X.data.astype(dtype, copy=False)
        rows = DeviceCSRRows(data, X.indices, X.indptr, X.shape[1])
        sound = len(data) == 0 or (int(X.indices.min()) >= 0 and int(X.indices.max()) < X.shape[1])
        if not sound:
            raise ValueError(f"X is not a valid CSR matrix: it has {X.shape[1]} columns, not more")
    else:
        data = xp.ascontiguousarray(X, dtype=dtype)
        rows = DeviceDenseRows(data)
    if not bool(xp.isfinite(data.sum(dtype=np.float64))) and not bool(xp.isfinite(data).all()):
        where = int(xp.argmin(xp.isfinite(data).ravel()))
        if isinstance(rows, DeviceCSRRows):
            i = int((rows.starts <= where).sum()) - 1
            j = int(rows.columns[where])
        else:
            i, j = divmod(where, X.shape[1])
        raise ValueError(f"Input X contains NaN or infinity at row {i}, column {j}: drop the row")
    return rows

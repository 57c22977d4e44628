"""Rows of a CSR matrix, and the checks of its structure."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from scipy import sparse

from zerogap.kernels.instructions import LANES, add_scaled, lanes, prefetch, put_lanes
from zerogap.kernels.jit import in_order
from zerogap.rows.base import CLASSES, Rows, slices
from zerogap.rows.dense import DenseRows
from zerogap.rows.loops import add_moments, gather, is_canonical, is_inside, mirror, subtract
from zerogap.rows.shifts import FAR, find_shift

FLOATS = (np.float32, np.float64)
DENSE_SHARE = 0.3  # share of non-zeros from which products of dense copies are faster than loops


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

    def _bytes_of_copy(self, origin: np.ndarray) -> float:
        most = self.stored + self.shape[0] * np.count_nonzero(origin)
        return float(most) * (8 + self.indices.itemsize)

    def minus(self, origin: np.ndarray) -> Self:
        far = np.flatnonzero(origin).astype(self.indices.dtype)  # their zeros are no longer zero
        most = self.stored + self.shape[0] * len(far)
        wide = most >= 2**31
        indptr = np.empty(len(self.indptr), np.int64 if wide else self.indptr.dtype)
        data, indices = np.empty(most), np.empty(most, self.indices.dtype)
        stored = subtract(self, origin, far, indptr, data, indices)
        return type(self)(data[:stored], indices[:stored], indptr, self.n_columns)

    def largest_entries(self) -> np.ndarray:
        return abs(self._matrix()).max(axis=0).toarray().ravel()

    def are_zero(self) -> np.ndarray:
        return self._matrix().astype(bool).sum(axis=1).A1 == 0

    def product(self, W: np.ndarray) -> np.ndarray:
        return self._matrix() @ W.T

    def columns(self, places: np.ndarray) -> Self:
        return cast("Self", csr_rows(self._matrix()[:, places]))

    def transposed_product(self, A: np.ndarray) -> np.ndarray:
        return (self._matrix().T @ A).T

    def moments(self, h: np.ndarray) -> np.ndarray:
        """Return sum_i h_i x_i x_i' for h_i >= 0."""
        n, d = self.shape
        if self.stored > DENSE_SHARE * n * d:
            total = np.zeros((d, d))
            for part in slices(n, d):
                dense = DenseRows(self._matrix()[part].toarray())
                total += dense.moments(h[part])
            return total
        lower = np.zeros((d, d))
        for block in self.blocks():
            add_moments(self, h, lower, *block)
        mirror(lower)
        return lower

    def with_own_structure(self) -> Self:
        private = type(self)(self.data, self.indices.copy(), self.indptr.copy(), self.n_columns)
        _check_pointers(private)  # again: it may have changed since
        if not is_inside(private):
            _refuse_indices(private)
        vars(private)["sqnorms"] = self.sqnorms
        return private

    def dense(self) -> np.ndarray:
        """Return all values, zeros included, as doubles."""
        return self._matrix().toarray().astype(np.float64)

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
        for part in slices(len(order), self.stored / max(1, len(order))):
            ends = indptr[part.start : part.stop + 1]
            gather(self, order[part], ends, data, indices)
        return type(self)(data, indices, indptr, self.n_columns)


def csr_rows(X: Any) -> CSRRows:
    """Wrap a scipy sparse matrix as CSR rows, after checking its structure and values."""
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got {X.ndim} dimension(s)")
    check_size(X.shape)
    dtype = float_type(X.dtype)
    if X.format != "csr":
        _check_coordinates(X)
        X = X.tocsr()
    _check_pointers(X)
    stored = X.indptr[-1]
    rows = _wrap_csr(X.data[:stored], X.indices[:stored], X.indptr, X.shape, dtype)
    if not is_inside(rows):
        _refuse_indices(X)
    if not is_canonical(rows):  # the flags of X may be stale
        X = sparse.csr_matrix((X.data[:stored], X.indices[:stored], X.indptr), X.shape, copy=True)
        X.sum_duplicates()
        rows = _wrap_csr(X.data, X.indices, X.indptr, X.shape, dtype)
    data, indices = rows.data, rows.indices
    if not rows.norms_are_finite and not (finite := np.isfinite(data)).all():
        k = int(np.argmin(finite))
        i = int(np.searchsorted(rows.indptr, k, side="right")) - 1
        raise NotFiniteError(data[k], i, int(indices[k]))
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


def check_size(shape: tuple[int, ...]) -> None:
    """Refuse matrices without rows or columns."""
    n, d = shape
    if n == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape=({n}, {d})): X has no rows")
    if d == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({n}, {d})) while a minimum of 1 is required."
        )


def float_type(dtype: np.dtype) -> type:
    """Return the floating-point type in which values of a type are kept."""
    if dtype.kind == "c":
        raise ValueError("Complex data not supported: X must be real")
    if dtype.kind not in "buif" or dtype.itemsize > 8:
        raise ValueError(f"X has type {dtype}, which is not a real number of at most 64 bits")
    return dtype.type if dtype.type in FLOATS else np.float64


def check_finite(rows: DenseRows) -> None:
    """Refuse NaN and infinity, and name the cell."""
    if rows.norms_are_finite:
        return
    for i, row in enumerate(rows.X):
        finite = np.isfinite(row)
        if not finite.all():
            j = int(np.argmin(finite))
            raise NotFiniteError(row[j], i, j)


class NotFiniteError(ValueError):
    """NaN or infinity in X.

    Parameters
    ----------
    value : float
        NaN or infinity.
    row, column : int
        Where it is.
    name : str
        Of the column, if it has one.
    """

    def __init__(self, value: float, row: int, column: int, name: str = "") -> None:
        self.value, self.row, self.column = value, row, column
        kind, advice = ("NaN", "impute") if np.isnan(value) else ("infinity", "clip")
        called = f" ({name!r})" if name else ""
        super().__init__(
            f"Input X contains {kind} at row {row}, column {column}{called}: drop the row or "
            f"{advice} the value"
        )

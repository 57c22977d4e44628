"""Rows of a dense matrix, and the same minus an origin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zerogap.kernels.instructions import LANES, add_scaled, lanes, prefetch, put_lanes
from zerogap.rows.base import BLOCK, CLASSES, SAMPLED_ROWS, Rows, slices
from zerogap.rows.loops import add_few_moments, mirror
from zerogap.rows.shifts import find_shift

FEW_COLUMNS = 24  # up to which loops sum up moments faster than BLAS, which takes scaled copies
EVERY = slice(None)
BLOCK_ROWS = 128  # whose few columns stay in the first cache


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

    @property
    def values(self) -> np.ndarray:
        """All values, without a copy if they are stored."""
        return self.X

    def _part(self, rows: slice, columns: slice = EVERY) -> np.ndarray:
        """Return some of the values."""
        return self.X[rows, columns]

    def _minus_in_place(self, origin: np.ndarray) -> tuple[Any, np.ndarray]:
        return ShiftedRows(self.X, origin), origin

    def _far_columns(self) -> np.ndarray:
        return find_shift(self.X if len(self.X) <= SAMPLED_ROWS else self.X[self._some()])

    def minus(self, origin: np.ndarray) -> Self:
        out = np.empty(self.shape)
        for part in slices(*self.shape):
            np.subtract(self.X[part], origin, out=out[part])
        return type(self)(out)

    def largest_entries(self) -> np.ndarray:
        return np.maximum(self.X.max(axis=0), -self.X.min(axis=0))

    def are_zero(self) -> np.ndarray:
        return np.logical_not(self.X.any(axis=1))

    def product(self, W: np.ndarray) -> np.ndarray:
        out = np.empty((self.shape[0], len(W)), np.result_type(self.X, W))
        for part in self._parts(W):
            out[part] = self._part(part) @ W.T
        return out

    def dense(self) -> np.ndarray:
        """Return all values as doubles."""
        return self.X.astype(np.float64)

    def columns(self, places: np.ndarray) -> Self:
        return type(self)(np.ascontiguousarray(self.X[:, places]))

    def transposed_product(self, A: np.ndarray) -> np.ndarray:
        total = np.zeros((A.shape[1], self.shape[1]), np.result_type(self.X, A))
        for part in self._parts(A):
            total += A[part].T @ self._part(part)
        return total

    def _parts(self, other: np.ndarray) -> Iterator[slice]:
        """Yield slices of rows whose copies in double precision, if any, stay in cache."""
        return slices(self.shape[0], (1 if self.X.dtype == other.dtype else 32) * self.shape[1])

    def transposed_times(self, c: np.ndarray) -> np.ndarray:
        n, d = self.shape
        if d > FEW_COLUMNS or self.X.dtype != c.dtype:
            return super().transposed_times(c)
        if self.X.size <= BLOCK:
            return c @ self.values
        return sum((c[part] @ self._part(part) for part in slices(n, d)), np.zeros(d))

    def moments(self, h: np.ndarray) -> np.ndarray:
        """Return sum_i h_i x_i x_i' for h_i >= 0."""
        d = self.shape[1]
        if d > FEW_COLUMNS:
            return self._moments(h, np.float64)
        lower, columns = np.zeros((d, d)), np.empty((d, BLOCK_ROWS))
        for block in self.blocks():
            add_few_moments(self, h, lower, columns, *block)
        mirror(lower)
        return lower

    def rough_moments(self, h: np.ndarray) -> np.ndarray:
        """Return the same in half the time, with products in single precision."""
        return self._moments(h, np.float32)

    def _moments(self, h: np.ndarray, dtype: Any) -> np.ndarray:
        d = self.shape[1]
        total, even = np.zeros((d, d)), bool((h == h[0]).all())  # as with parabolas
        roots = np.sqrt(h).astype(dtype)
        for part in slices(len(h), 4 * d):
            scaled = self._part(part).astype(dtype, copy=not even)
            if not even:
                scaled *= roots[part, None]
            total += scaled.T @ scaled
        return float(h[0]) * total if even else total

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
            total += self.entry_value(i, j) * penalty.to_primal(u[j])
        return total

    def add_to(self, u, i, c):
        """u += c x_i"""
        for j in range(self.X.shape[1]):
            u[j] += c * self.entry_value(i, j)

    def add_squares(self, u, i, c):
        """u_j += c x_ij^2"""
        for j in range(self.X.shape[1]):
            value = self.entry_value(i, j)
            u[j] += c * value * value

    def add_scores(self, z, i, W):
        """z += x_i W for weights W listed feature by feature, len(z) of them for each"""
        for c in range(0, len(z), CLASSES):
            a, b, d = lanes(z, c), lanes(z, c + LANES), lanes(z, c + 2 * LANES)
            for j in range(self.X.shape[1]):
                k, value = j * len(z) + c, self.entry_value(i, j)
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
                k, value = j * len(step) + c, self.entry_value(i, j)
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
            value = self.entry_value(i, j)
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
        for part in slices(len(order), self.X.shape[1]):
            np.take(self.X, order[part], axis=0, out=X[part])
        return type(self)(X)


@dataclass(frozen=True, eq=False)
class ShiftedRows(DenseRows):
    """Dense rows minus an origin, subtracted whenever they are read: no copy of them."""

    origin: np.ndarray

    @property
    def values(self) -> np.ndarray:
        return self.dense()

    def _part(self, rows: slice, columns: slice = EVERY) -> np.ndarray:
        return self.X[rows, columns] - self.origin[columns]

    def _far_columns(self) -> np.ndarray:
        return np.zeros(len(self.origin))

    def minus(self, origin: np.ndarray) -> Self:
        return type(self)(self.X, self.origin + origin)

    def largest_entries(self) -> np.ndarray:
        return np.maximum(self.X.max(axis=0) - self.origin, self.origin - self.X.min(axis=0))

    def are_zero(self) -> np.ndarray:
        return (self.origin == self.X).all(axis=1)

    def dense(self) -> np.ndarray:
        out = np.empty(self.shape)
        for part in slices(*self.shape):
            np.subtract(self.X[part], self.origin, out=out[part])
        return out

    def columns(self, places: np.ndarray) -> DenseRows:  # type: ignore[override]
        return DenseRows(np.ascontiguousarray(self.X[:, places] - self.origin[places]))

    def entry_value(self, i, k):
        """The k-th value of row i"""
        return np.float64(self.X[i, k]) - self.origin[k]

    def take(self, order: np.ndarray) -> Self:
        return type(self)(DenseRows(self.X).take(order).X, self.origin)

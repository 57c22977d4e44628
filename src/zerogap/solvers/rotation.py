"""Problems in other coordinates, with the same optimum: what L2 penalties allow.

The dual depends on inner products of rows only, so rows may be rotated.  Few long rows need as many
coordinates as there are rows.  Columns that are nearly multiples of each other are rotated until
they are orthogonal: then copies become zero, and no equation divides by rounding errors.

Reference: J. Demmel and K. Veselic, "Jacobi's method is more accurate than QR", SIAM Journal on
Matrix Analysis and Applications 13, 1992.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from zerogap.errors import ScaleError
from zerogap.kernels.jit import kernel
from zerogap.kernels.twofold import matrix_product, orthonormalised, transposed, twofold
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.rows import DenseRows
from zerogap.solvers.hessian import DIRECT

FEW_ROWS = 1000  # up to which their inner products are worth computing
MANY_FEATURES = 200  # from which that is worth it
MOST_ROTATED = 400  # features: rotations take O(d^3), a second for so many
MOST_VALUES = 2e7  # of a dense copy
CHEAP_ROTATION = 3e7  # n d^2 up to which a rotation takes some milliseconds
SMALL_PIVOT = 1e-9  # of the features' correlations, below which they are nearly copies
ORTHOGONAL_PIVOT = 0.5  # the smallest pivot from which on columns need no further rotation
# Mean square of a column over lam: half of that is all that its weight gains
NEGLIGIBLE_SQUARE = 1e-20
MORE_ROTATIONS = 2  # at most: the first one leaves copies that differ by less than 1e-14
_MOST_SWEEPS = 40  # over all pairs of columns; ten are usual
_COLUMNS_PER_PIECE = 1 << 16  # of X, converted at a time


class Coordinates(NamedTuple):
    """A problem in other coordinates."""

    problem: Any
    outward: Callable[[np.ndarray], np.ndarray]  # from its weights to those of the given problem
    inward: Callable[[np.ndarray, np.ndarray], np.ndarray]  # back, given dual variables too


def simpler(problem: Problem, raw: bool) -> Coordinates:
    """Return the problem in the coordinates in which it is solved best; often its own.

    `raw` tells that columns are of very different sizes.
    """
    n, d = problem.shape
    if isinstance(problem.penalty, L2) and not problem.on_device and not problem.streamed:
        short = isinstance(problem.rows, DenseRows) or (raw and d > DIRECT)
        if short and n <= FEW_ROWS and d >= max(2 * n, MANY_FEATURES):
            return _condensed(problem)
        if raw and n * d * d <= CHEAP_ROTATION and can_rotate(problem) and _has_copies(problem):
            return rotated(problem)
    return Coordinates(problem, lambda w: w, lambda w, alpha: w)


def can_rotate(problem: Problem) -> bool:
    """Tell whether columns may be rotated, and fit into memory as dense ones."""
    n, d = problem.shape
    small = d <= MOST_ROTATED and n * d <= MOST_VALUES and not problem.streamed
    return small and isinstance(problem.penalty, L2) and not problem.on_device


def _condensed(problem: Problem) -> Coordinates:
    """Return the problem with rows in n coordinates: the dual knows their inner products only."""
    gram = _inner_products(problem.rows)
    diagonal = np.diagonal(gram).copy()
    for ridge in 10.0 ** np.arange(-16, 0):  # the least with which equal rows have a factor
        with contextlib.suppress(linalg.LinAlgError):
            factor = linalg.cholesky(gram, lower=True, check_finite=False)
            return _with_factor(problem, np.ascontiguousarray(factor))
        np.fill_diagonal(gram, diagonal + ridge * diagonal.max())
    raise ScaleError("the rows of X have no finite inner products: standardise the columns of X")


def _inner_products(rows: Any) -> np.ndarray:
    if not isinstance(rows, DenseRows):
        X = rows._matrix().astype(np.float64)
        return (X @ X.T).toarray()
    n, d = rows.shape
    gram = np.zeros((n, n))
    for start in range(0, d, _COLUMNS_PER_PIECE):
        columns = slice(start, start + _COLUMNS_PER_PIECE)
        part = rows._part(slice(n), columns).astype(np.float64, copy=False)
        gram += part @ part.T
    return gram


def _with_factor(problem: Problem, factor: np.ndarray) -> Coordinates:
    def outward(w: np.ndarray) -> np.ndarray:
        shares = linalg.solve_triangular(factor, w.T, lower=True, trans=1, check_finite=False)
        if w.ndim == 1:
            return problem.rows.transposed_times(shares)
        return problem.rows.transposed_product(np.ascontiguousarray(shares))

    condensed = problem._with(rows=DenseRows(factor), origin=np.empty(0))
    return Coordinates(condensed, outward, lambda w, alpha: condensed.weights(alpha))


def _has_copies(problem: Problem) -> bool:
    """Tell whether a feature is nearly a combination of others."""
    return not _smallest_pivot(problem.rows.moments(problem.share)) >= SMALL_PIVOT


def _smallest_pivot(moments: np.ndarray) -> float:
    """Return how much of a unit column the others leave unexplained; zero if that is rounding."""
    sizes = np.sqrt(np.diagonal(moments))
    scale = 1.0 / np.where(sizes > 0.0, sizes, math.inf)
    moments = moments * scale * scale[:, None]
    np.fill_diagonal(moments, 1.0)  # of columns of zeros, too, which are nobody's copies
    factor, failed = linalg.lapack.dpotrf(moments, lower=1)
    return 0.0 if failed else float(np.diagonal(factor).min()) ** 2


def rotated(problem: Problem) -> Coordinates:
    """Return the problem with orthogonal columns, except for those that are rounding alone.

    Rotations are products in twice the precision: what is left of near copies has all its digits.
    """
    rows = problem.rows
    X = rows.values if isinstance(rows, DenseRows) else rows._matrix().toarray()
    given = twofold(X)
    basis = orthonormalised(_principal_axes(problem.share, given[0]))
    columns = matrix_product(given, basis)
    for _ in range(MORE_ROTATIONS):
        if (
            _smallest_pivot(columns[0].T @ (problem.share[:, None] * columns[0]))
            >= ORTHOGONAL_PIVOT
        ):
            break
        basis = matrix_product(basis, orthonormalised(_principal_axes(problem.share, columns[0])))
        columns = matrix_product(given, basis)
    squares, turned = problem.share @ np.square(columns[0]), columns[0]
    turned[:, squares <= NEGLIGIBLE_SQUARE * problem.strength] = 0.0
    rows = DenseRows(np.ascontiguousarray(turned))
    rotated = problem._with(rows=rows, sqnorms=rows.sqnorms, origin=np.empty(0))
    back = transposed(basis)

    def outward(w: np.ndarray) -> np.ndarray:
        return matrix_product(twofold(np.atleast_2d(w)), back)[0].reshape(w.shape)

    return Coordinates(rotated, outward, lambda w, alpha: w @ basis[0])


def _principal_axes(share: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return the rotation that makes columns orthogonal, up to rounding."""
    roots = np.sqrt(share)[:, None]
    order = np.argsort(-np.linalg.norm(roots * X, axis=0), kind="stable")
    (triangle,) = linalg.qr(roots * X[:, order], mode="r", check_finite=False)
    basis = np.zeros((len(order), len(order)))
    basis[order] = _orthogonalised(np.asfortranarray(triangle[: len(order)]))
    return basis


def _orthogonalised(triangle: np.ndarray) -> np.ndarray:
    """Return the rotation after which the columns of a matrix are orthogonal."""
    size = triangle.shape[1]
    work, basis = triangle.copy(order="F"), np.asfortranarray(np.eye(size))
    for _ in range(_MOST_SWEEPS):
        if not _sweep(work, basis):
            break
    return basis


@kernel
def _sweep(columns, basis):
    """Rotate all pairs of columns that are not orthogonal; return how many there were."""
    count = 0
    for j in range(columns.shape[1] - 1):
        for k in range(j + 1, columns.shape[1]):
            a, b, c = 0.0, 0.0, 0.0
            for i in range(columns.shape[0]):
                a += columns[i, j] * columns[i, j]
                b += columns[i, k] * columns[i, k]
                c += columns[i, j] * columns[i, k]
            if abs(c) <= 1e-15 * math.sqrt(a) * math.sqrt(b):
                continue
            count += 1
            zeta = (b - a) / (2.0 * c)
            t = math.copysign(1.0, zeta) / (abs(zeta) + math.hypot(1.0, zeta))
            cosine = 1.0 / math.hypot(1.0, t)
            sine = cosine * t
            for i in range(columns.shape[0]):
                left = columns[i, j]
                columns[i, j] = cosine * left - sine * columns[i, k]
                columns[i, k] = sine * left + cosine * columns[i, k]
            for i in range(basis.shape[0]):
                left = basis[i, j]
                basis[i, j] = cosine * left - sine * basis[i, k]
                basis[i, k] = sine * left + cosine * basis[i, k]
    return count

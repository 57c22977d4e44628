"""Linear algebra in twice the working precision, for tables whose columns nearly cancel.

A number is a pair of doubles, high + low, with |low| at most half a unit in the last place of
high: some 32 digits.  Vectors and matrices of such numbers are arrays whose first axis has length
two.  Sums and products are split as in `zerogap.kernels.precise`.  A Cholesky factor of columns
that are copies of each other but for ten digits has ten digits left.

References: T. J. Dekker, "A floating-point technique for extending the available precision",
Numerische Mathematik 18, 1971; Y. Hida, X. S. Li and D. H. Bailey, "Algorithms for quad-double
precision floating point arithmetic", IEEE Symposium on Computer Arithmetic, 2001.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerogap.kernels.jit import exact_kernel, fused

SMALLEST_PIVOT = 1e-28  # of a matrix with a unit diagonal: what is less is rounding
FEW_DIGITS = 1e-24  # a pivot with eight digits left: then columns are orthogonalised instead
SMALLEST_LENGTH = 1e-29  # of a column of length one, without what it has of others
ORTHONORMAL_TO = 1e-30  # a basis is then as orthogonal as pairs can tell
MOST_CORRECTIONS = 4  # of a basis: each squares what it misses by, and doubles are right to 1e-15


def twofold(x: Any) -> np.ndarray:
    """Return doubles as numbers of twice the precision."""
    x = np.asarray(x, np.float64)
    return np.stack([x, np.zeros_like(x)])


def exact_sum(x: Any, y: Any) -> np.ndarray:
    """Return x + y of doubles without any rounding."""
    total = np.add(x, y)
    back = total - x
    return np.stack([total, (x - (total - back)) + (y - back)])


def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x + y."""
    high, low = exact_sum(x[0], y[0])
    rest, rounded_away = exact_sum(x[1], y[1])
    high, low = _renormalised(high, low + rest)
    return np.stack(_renormalised(high, low + rounded_away))


def times(x: np.ndarray, c: Any) -> np.ndarray:
    """Return x times doubles c."""
    found = np.empty(x.shape)  # in the order of C, whatever that of x
    factors = np.ascontiguousarray(np.broadcast_to(np.asarray(c, np.float64), x[0].shape))
    _scale(x[0].ravel(), x[1].ravel(), factors.ravel(), found[0].ravel(), found[1].ravel())
    return found


def rounded(x: np.ndarray) -> np.ndarray:
    """Return the doubles next to x."""
    return x[0] + x[1]


def products(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the products of all rows of X, doubles, with a vector w."""
    found = np.zeros((2, len(X)))
    _multiply(X, *w, *found)
    return found


def column_sums(X: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return sum_i c_i x_i over the rows of X, doubles."""
    found = np.zeros((2, X.shape[1]))
    _add_rows(X, *c, *found)
    return found


def moments(X: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return sum_i h_i x_i x_i' over the rows of X, for doubles h; the lower triangle is filled."""
    found = np.zeros((2, X.shape[1], X.shape[1]))
    _add_moments(X, h, *found)
    return found


def class_moments(X: np.ndarray, share: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return sum_i share_i J_i (x) x_i x_i', with J_i = diag(h_i) - h_i h_i' / sum(h_i).

    Rows and columns are those of class 0, then of class 1, and so on; the lower triangle is filled.
    Sums over the classes of a row or column are zero to the last digit.
    """
    size = h.shape[1] * X.shape[1]
    found = np.zeros((2, size, size))
    _add_class_moments(X, share / h.sum(axis=1), np.ascontiguousarray(h.T), *found)
    return found


def matrix_product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A B for matrices of twice the precision.

    Examples
    --------
    >>> tiny = matrix_product(twofold([[1e20, 1.0, -1e20]]), twofold([[1.0], [1e-3], [1.0]]))
    >>> float(rounded(tiny)[0, 0])
    0.001
    """
    found = np.zeros((2, A.shape[1], B.shape[2]))
    _add_product(*np.ascontiguousarray(A), *np.ascontiguousarray(B), *found)
    return found


def transposed(A: np.ndarray) -> np.ndarray:
    """Return the transposed matrix."""
    return np.ascontiguousarray(A.transpose(0, 2, 1))


def orthonormalised(basis: np.ndarray) -> np.ndarray:
    """Return the basis of twice the precision that is next to one of doubles.

    Small entries stay small (Newton-Schulz iteration): columns of very different sizes are not
    mixed.
    """
    found, unit = twofold(basis), np.eye(len(basis))
    for _ in range(MOST_CORRECTIONS):
        gram = matrix_product(transposed(found), found)
        lack = 0.5 * ((unit - gram[0]) - gram[1])
        if not np.abs(lack).max(initial=0.0) > ORTHONORMAL_TO:
            break
        found = add(found, matrix_product(found, twofold(lack)))
    return found


class Factor:
    """The Cholesky factor of a symmetric matrix, of which the lower triangle is read.

    The matrix is scaled to a unit diagonal first.  Columns that depend on those before them, but
    for rounding, are left out: `solve` returns zeros there, and `complete` tells whether there
    were none.
    """

    def __init__(self, matrix: np.ndarray, smallest: float = SMALLEST_PIVOT) -> None:
        diagonal = np.diagonal(matrix[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            exponents = np.where(diagonal > 0.0, np.round(-0.5 * np.log2(diagonal)), 0.0)
        self.scale = np.exp2(exponents)  # powers of two round nothing
        self.triangle = matrix * self.scale * self.scale[:, None]
        self.complete = not _factorise(*self.triangle, smallest)

    @classmethod
    def of_columns(cls, columns: np.ndarray) -> Factor:
        """Return the factor of the matrix of inner products of columns, given as rows."""
        factor = cls(twofold(np.diag(np.square(columns[0]).sum(axis=1))))
        factor.orthogonalise(columns)
        return factor

    def columns(self) -> np.ndarray:
        """Return as few columns as there are, given as rows, with the same inner products."""
        triangle = np.where(np.isfinite(self.triangle), self.triangle, 0.0)
        return triangle / self.scale[:, None]

    def orthogonalise(self, columns: np.ndarray) -> None:
        """Factorise the matrix of inner products of columns, given as rows, from these columns.

        That takes four times as long as from the matrix, and leaves twice the digits.
        """
        columns = np.ascontiguousarray(columns * self.scale[:, None])
        self.triangle = np.zeros_like(self.triangle)
        self.complete = not _orthogonalise(*columns, *self.triangle, SMALLEST_LENGTH)

    def solve(self, target: np.ndarray) -> np.ndarray:
        """Return the solution for a right-hand side."""
        found = target * self.scale
        _substitute(*self.triangle, *found)
        return found * self.scale


def factorised(X: np.ndarray, h: np.ndarray, ridge: np.ndarray) -> Factor:
    """Return the factor of sum_i h_i x_i x_i' + diag(ridge), for rows of X and doubles h, ridge."""
    matrix, places = moments(X, h), np.arange(len(ridge))
    matrix[:, places, places] = add(matrix[:, places, places], twofold(ridge))
    factor = Factor(matrix, FEW_DIGITS)
    if not factor.complete:
        of_rows = times(twofold(X.T), np.sqrt(h))
        factor.orthogonalise(np.concatenate([of_rows, twofold(np.diag(np.sqrt(ridge)))], axis=2))
    return factor


def rounded_along(w: np.ndarray, factor: Factor, free: int) -> np.ndarray:
    """Return doubles near w for which e'He is small, H = LL' the factorised matrix, e what is off.

    One number after another is rounded, the last one first, and those before it make up for what
    that costs (Babai's nearest plane).  The first `free` ones are not rounded before all others.

    Reference: L. Babai, "On Lovasz' lattice reduction and the nearest lattice point problem",
    Combinatorica 6, 1986.
    """
    triangle, found = factor.triangle[0], rounded(w)
    off = np.zeros(len(found))  # in the units of the factor
    for j in range(len(found) - 1, -1, -1):
        pivot = triangle[j, j]
        shift = -float(triangle[j + 1 :, j] @ off[j + 1 :]) / pivot * factor.scale[j]
        found[j] = (w[0, j] + shift) + w[1, j] if math.isfinite(shift) else found[j]
        off[j] = (shift if j < free else (found[j] - w[0, j]) - w[1, j]) / factor.scale[j]
    return found


def _renormalised(high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = high + low
    return total, low - (total - high)


@exact_kernel
def _plus(x, x_low, y, y_low):
    total = x + y
    back = total - x
    rest = (x - (total - back)) + (y - back)
    low = x_low + y_low
    back = low - x_low
    rounded_away = (x_low - (low - back)) + (y_low - back)
    rest += low
    high = total + rest
    rest = (rest - (high - total)) + rounded_away
    total = high + rest
    return total, rest - (total - high)


@exact_kernel
def _product(x, x_low, y, y_low):
    high = x * y
    low = fused(x, y, -high) + (x * y_low + x_low * y)
    total = high + low
    return total, low - (total - high)


@exact_kernel
def _quotient(x, x_low, y, y_low):
    first = x / y
    back, back_low = _product(first, 0.0, y, y_low)
    rest, _ = _plus(x, x_low, -back, -back_low)
    second = rest / y
    total = first + second
    return total, second - (total - first)


@exact_kernel
def _root(x, x_low):
    first = np.sqrt(x)
    back = first * first
    rest, _ = _plus(x, x_low, -back, -fused(first, first, -back))
    second = 0.5 * rest / first
    total = first + second
    return total, second - (total - first)


@exact_kernel
def _scale(x, x_low, c, high, low):
    for i in range(len(x)):
        high[i], low[i] = _product(x[i], x_low[i], c[i], 0.0)


@exact_kernel
def _multiply(X, w, w_low, high, low):
    for i in range(X.shape[0]):
        total, rest = 0.0, 0.0
        for j in range(X.shape[1]):
            x = X[i, j]
            product = x * w[j]
            rounded_away = fused(x, w[j], -product) + x * w_low[j]
            new = total + product
            back = new - total
            rest += (total - (new - back)) + (product - back) + rounded_away
            total = new
        high[i] = total + rest
        low[i] = rest - (high[i] - total)


@exact_kernel
def _add_rows(X, c, c_low, high, low):
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            product = c[i] * X[i, j]
            rounded_away = fused(c[i], X[i, j], -product) + c_low[i] * X[i, j]
            total = high[j]
            new = total + product
            back = new - total
            low[j] += (total - (new - back)) + (product - back) + rounded_away
            high[j] = new
    for j in range(X.shape[1]):
        total = high[j] + low[j]
        low[j] -= total - high[j]
        high[j] = total


@exact_kernel
def _add_moments(X, h, high, low):
    for i in range(X.shape[0]):
        if h[i] == 0.0:
            continue
        for j in range(X.shape[1]):
            c = h[i] * X[i, j]
            if c == 0.0:
                continue
            c_low = fused(h[i], X[i, j], -c)
            for k in range(j + 1):
                product = c * X[i, k]
                rounded_away = fused(c, X[i, k], -product) + c_low * X[i, k]
                total = high[j, k]
                new = total + product
                back = new - total
                low[j, k] += (total - (new - back)) + (product - back) + rounded_away
                high[j, k] = new
    for j in range(X.shape[1]):
        for k in range(j + 1):
            total = high[j, k] + low[j, k]
            low[j, k] -= total - high[j, k]
            high[j, k] = total


@exact_kernel
def _add_class_moments(X, of_rows, h, high, low):
    width = X.shape[1]
    block, block_low = np.empty((width, width)), np.empty((width, width))
    for k in range(len(h)):
        for m in range(k):
            block[:], block_low[:] = 0.0, 0.0
            _add_moments(X, of_rows * h[k] * h[m], block, block_low)
            for i in range(width):
                for j in range(width):
                    x, x_low = block[max(i, j), min(i, j)], block_low[max(i, j), min(i, j)]
                    high[k * width + i, m * width + j] = -x
                    low[k * width + i, m * width + j] = -x_low
                    for c in (k, m):
                        a, b = c * width + i, c * width + j
                        if j <= i:
                            high[a, b], low[a, b] = _plus(high[a, b], low[a, b], x, x_low)


@exact_kernel
def _add_product(a, a_low, b, b_low, out, out_low):
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            x, x_low = a[i, k], a_low[i, k]
            if x == 0.0:
                continue
            for j in range(b.shape[1]):
                high = x * b[k, j]
                low = fused(x, b[k, j], -high) + (x * b_low[k, j] + x_low * b[k, j])
                total = out[i, j] + high
                back = total - out[i, j]
                low += (out[i, j] - (total - back)) + (high - back) + out_low[i, j]
                out[i, j] = total + low
                out_low[i, j] = low - (out[i, j] - total)


@exact_kernel
def _factorise(high, low, smallest):
    """Replace the lower triangle by that of the factor; return how many columns are left out.

    Each column is subtracted from all later ones at once: such loops have vector instructions.
    """
    left_out, size = 0, len(high)
    column, column_low = np.empty(size), np.empty(size)
    for k in range(size):
        if not high[k, k] > smallest:
            left_out += 1
            high[k:, k], low[k:, k] = 0.0, 0.0
            high[k, k] = np.inf
            continue
        pivot, pivot_low = _root(high[k, k], low[k, k])
        high[k, k], low[k, k] = pivot, pivot_low
        for i in range(k + 1, size):
            column[i], column_low[i] = _quotient(high[i, k], low[i, k], pivot, pivot_low)
            high[i, k], low[i, k] = column[i], column_low[i]
        for i in range(k + 1, size):
            x, x_low = column[i], column_low[i]
            if x == 0.0:
                continue
            for j in range(k + 1, i + 1):
                part = x * column[j]
                rest = fused(x, column[j], -part) + (x * column_low[j] + x_low * column[j])
                total = high[i, j] - part
                back = total - high[i, j]
                rest = (high[i, j] - (total - back)) - (part + back) + (low[i, j] - rest)
                high[i, j] = total + rest
                low[i, j] = rest - (high[i, j] - total)
    return left_out


@exact_kernel
def _substitute(high, low, x, x_low):
    """Replace a right-hand side by the solution."""
    size = len(high)
    for j in range(size):
        total, rest = x[j], x_low[j]
        for m in range(j):
            y, y_low = _product(high[j, m], low[j, m], x[m], x_low[m])
            total, rest = _plus(total, rest, -y, -y_low)
        x[j], x_low[j] = 0.0, 0.0
        if high[j, j] < np.inf:
            x[j], x_low[j] = _quotient(total, rest, high[j, j], low[j, j])
    for j in range(size - 1, -1, -1):
        total, rest = x[j], x_low[j]
        for m in range(j + 1, size):
            y, y_low = _product(high[m, j], low[m, j], x[m], x_low[m])
            total, rest = _plus(total, rest, -y, -y_low)
        x[j], x_low[j] = 0.0, 0.0
        if high[j, j] < np.inf:
            x[j], x_low[j] = _quotient(total, rest, high[j, j], low[j, j])


@exact_kernel
def _dot(x, x_low, y, y_low, start):
    total, rest = 0.0, 0.0
    for i in range(start, len(x)):
        product = x[i] * y[i]
        rounded_away = fused(x[i], y[i], -product) + (x[i] * y_low[i] + x_low[i] * y[i])
        new = total + product
        back = new - total
        rest += (total - (new - back)) + (product - back) + rounded_away
        total = new
    high = total + rest
    return high, rest - (high - total)


@exact_kernel
def _orthogonalise(columns, columns_low, high, low, smallest):
    """Fill in the transposed triangle of a QR factorisation, by Householder's reflections.

    Returns how many columns are left out; they take no row.
    """
    size, top = len(columns), 0
    for j in range(size):
        v, v_low = columns[j], columns_low[j]
        square, square_low = _dot(v, v_low, v, v_low, top)
        if not square > smallest * smallest:
            high[j, j] = np.inf
            continue
        length, length_low = _root(square, square_low)
        if v[top] > 0.0:
            length, length_low = -length, -length_low
        # |v|^2 / 2 of the vector v - length e_top that is reflected along
        half, half_low = _product(length, length_low, v[top], v_low[top])
        half, half_low = _plus(square, square_low, -half, -half_low)
        v[top], v_low[top] = _plus(v[top], v_low[top], -length, -length_low)
        high[j, j], low[j, j] = length, length_low
        for k in range(j + 1, size):
            x, x_low = columns[k], columns_low[k]
            c, c_low = _dot(v, v_low, x, x_low, top)
            c, c_low = _quotient(c, c_low, half, half_low)
            for i in range(top, len(v)):
                product, rest = _product(c, c_low, v[i], v_low[i])
                x[i], x_low[i] = _plus(x[i], x_low[i], -product, -rest)
            high[k, j], low[k, j] = x[top], x_low[top]
        top += 1
    return size - top

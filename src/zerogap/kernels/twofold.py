"""Linear algebra in twice the working precision, for tables whose columns nearly cancel.

A number is a pair of doubles, high + low, with |low| at most half a unit in the last place of
high: some 32 digits.  Vectors and matrices of such numbers are arrays whose first axis has length
two.  Sums and products are split as in `zerogap.kernels.precise`.  A Cholesky factor of columns
that are copies of each other except for ten digits has ten digits left.

References: T. J. Dekker, "A floating-point technique for extending the available precision",
Numerische Mathematik 18, 1971; Y. Hida, X. S. Li and D. H. Bailey, "Algorithms for quad-double
precision floating point arithmetic", IEEE Symposium on Computer Arithmetic, 2001.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.kernels import pairs

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
    pairs.scale(x[0].ravel(), x[1].ravel(), factors.ravel(), found[0].ravel(), found[1].ravel())
    return found


def rounded(x: np.ndarray) -> np.ndarray:
    """Return the doubles next to x."""
    return x[0] + x[1]


def products(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the products of all rows of X, doubles, with a vector w."""
    found = np.zeros((2, len(X)))
    pairs.multiply(X, *w, *found)
    return found


def column_sums(X: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return sum_i c_i x_i over the rows of X, doubles."""
    found = np.zeros((2, X.shape[1]))
    pairs.add_rows(X, *c, *found)
    return found


def moments(X: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return sum_i h_i x_i x_i' over the rows of X, for doubles h; the lower triangle is filled."""
    found = np.zeros((2, X.shape[1], X.shape[1]))
    pairs.add_moments(X, h, *found)
    return found


def class_moments(X: np.ndarray, share: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return sum_i share_i J_i (x) x_i x_i', with J_i = diag(h_i) - h_i h_i' / sum(h_i).

    Rows and columns are those of class 0, then of class 1, and so on; the lower triangle is filled.
    Sums over the classes of a row or column are zero to the last digit.
    """
    size = h.shape[1] * X.shape[1]
    found = np.zeros((2, size, size))
    pairs.add_class_moments(X, share / h.sum(axis=1), np.ascontiguousarray(h.T), *found)
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
    pairs.add_product(*np.ascontiguousarray(A), *np.ascontiguousarray(B), *found)
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
        self.complete = not pairs.factorise(*self.triangle, smallest)

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
        self.complete = not pairs.orthogonalise(*columns, *self.triangle, SMALLEST_LENGTH)

    def solve(self, target: np.ndarray) -> np.ndarray:
        """Return the solution for a right-hand side."""
        found = target * self.scale
        pairs.substitute(*self.triangle, *found)
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


def _renormalised(high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = high + low
    return total, low - (total - high)

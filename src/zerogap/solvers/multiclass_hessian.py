"""The Hessian of a multiclass model's objective: products with it, and Newton directions.

Weights are matrices with a row for each class and, if there are intercepts, a last column for them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

from zerogap.kernels.jit import rowwise
from zerogap.problem.multiclass import MulticlassProblem
from zerogap.rows import DenseRows
from zerogap.solvers.hessian import (
    _RIDGES,
    DAMPING,
    DIRECT,
    EXACT_RESIDUAL,
    LEAST_CURVATURE,
    MOST_PRODUCTS,
    REFINEMENTS,
    SMALL_PIVOT,
    _factorised,
)

ROUGH_RESIDUAL = 0.01  # of the residual's square: what is to be left of it
ROWS_PER_FEATURE = 16  # rows per feature that make a good preconditioner
FLAT_CURVATURE = 1e-9  # of the largest curvature of a row: treated as zero
LEAST_OF_INTERCEPT = 1e-9  # curvature of an intercept, so that directions are finite
FEW_VALUES = 2_000  # of X: one product of all classes takes less than a call for each pair
_ONE = np.ones(1)
# Of correlations: more than rounding, which might make them indefinite
_RIDGE_OF_CORRELATIONS = 1e-11


@rowwise(sums=0)
def bend(share, h, dz, start, stop):
    """dz_i := share_i J_i dz_i with J_i = diag(h_i) - h_i h_i' / sum(h_i)

    Scores count from that of the class with the largest h, whose own term is minus the others':
    else a class that dominates leaves the others no digits.
    """
    for i in range(start, stop):
        top = 0
        for k in range(1, h.shape[1]):
            if h[i, k] > h[i, top]:
                top = k
        origin, total, mean, rest = dz[i, top], 0.0, 0.0, 0.0
        for k in range(h.shape[1]):
            dz[i, k] -= origin
            total += h[i, k]
            mean += h[i, k] * dz[i, k]
        mean /= total
        for k in range(h.shape[1]):
            dz[i, k] = share[i] * h[i, k] * (dz[i, k] - mean)
            rest += dz[i, k] if k != top else 0.0
        dz[i, top] = -rest


def all_scores(problem: MulticlassProblem, w: np.ndarray) -> np.ndarray:
    """Return the scores of all rows, intercepts included."""
    d = problem.shape[1]
    z = problem.scores(w[:, :d])
    return z + w[:, d] if problem.fit_intercept else z


def all_sums(problem: MulticlassProblem, c: np.ndarray) -> np.ndarray:
    """Return sum_i c_i x_i', with a column for intercepts as if a feature were one in all rows."""
    sums = problem.gathered(c)
    return np.column_stack([sums, c.sum(axis=0)]) if problem.fit_intercept else sums


class MulticlassHessian:
    """lam + sum_i share_i J_i (x) x_i x_i', with J_i the derivative of the votes by the scores.

    J_i = diag(h_i) - h_i h_i' / sum(h_i), where h_i is p_i, over the temperature if there is one.
    Rows that vote for one class have none.

    Parameters
    ----------
    problem : MulticlassProblem
        Its rows, weights of rows and lam.
    h : array of shape (n_samples, n_classes)
        Positive numbers.
    ridge : array of shape (n_classes, n_features), optional
        Stands for lam, and intercepts have no curvature but that of the rows; all rows count.
    """

    def __init__(
        self, problem: MulticlassProblem, h: np.ndarray, ridge: np.ndarray | None = None
    ) -> None:
        curvature = problem.share * h.max(axis=1) * of_others(h).min(axis=1) / h.sum(axis=1)
        curved = curvature >= FLAT_CURVATURE * curvature.max()
        if ridge is None and int(curved.sum()) <= 0.7 * len(h):
            places = np.flatnonzero(curved)
            problem, h = problem.take(places), h[places]  # type: ignore[assignment]
        self.problem, self.h = problem, h
        d, intercept, xp = problem.shape[1], problem.fit_intercept, problem.xp
        if ridge is None:
            self.least = xp.full(d + intercept, problem.strength)
            if intercept:
                self.least[-1] = LEAST_OF_INTERCEPT * (float(curvature.sum()) or 1.0)
        else:
            self.least = np.column_stack([ridge, xp.zeros(len(ridge))]) if intercept else ridge

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        dz = all_scores(self.problem, v)
        self.problem.over_rows(bend, self.problem.share, self.h, dz)
        product = all_sums(self.problem, dz)
        product += self.least * v
        return product

    def solve(
        self, target: np.ndarray, scale: np.ndarray, inverse: np.ndarray, limit: int = MOST_PRODUCTS
    ) -> tuple[np.ndarray, int]:
        """Return the Newton direction and the number of products that it took.

        Conjugate gradients go on until the residual has fallen tenfold, or to the limit.
        """
        xp, rows = self.problem.xp, self.problem.rows
        if inverse.ndim == 3 and hasattr(rows, "X"):
            from zerogap.cuda import directions

            if len(target) <= directions.MOST_CLASSES:
                data = (rows.X, self.problem.share, self.h, self.least, inverse)
                return directions.solve(*data, target, ROUGH_RESIDUAL, MOST_PRODUCTS)
        found = xp.stack([np.zeros_like(target), -target])  # the solution, H solution - target
        eased = preconditioned(found[1], scale, inverse)
        change = xp.stack([-eased, eased])  # of both, for a step of one
        size = _dot(found[1], eased)
        goal, products = ROUGH_RESIDUAL * float(size), 0
        while products < limit and float(size) > goal:
            products += 1
            change[1] = self @ change[0]
            curvature = _dot(change[0], change[1])
            if not float(curvature) > 0.0:  # rounding is all that is left of it
                return found[0], limit
            found += (size / curvature) * change
            eased = preconditioned(found[1], scale, inverse)
            before, size = size, _dot(found[1], eased)
            change[0] *= size / before
            change[0] -= eased
        return found[0], products

    def inverse(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that solves with the whole Hessian, factorised whatever that costs.

        It takes and returns matrices such as the weights.  The cost is that of C (C - 1) / 2 times
        X' diag(h) X, and of a factorisation of a matrix of C (d + 1) rows.

        To add the same s_j to the weights of all classes for feature j changes no vote: it meets
        the ridge R_kj alone, sum_k R_kj s_j.  So s is eliminated, which leaves the matrix of the
        votes plus diag(R_j) - R_j R_j' / sum(R_j).  It is zero along s, where the outer product of
        its diagonal is added: that makes it well-conditioned, and no solution needs it.
        """
        solve, accurate = self.factorised()
        return solve if accurate else lambda target: self._refined(solve, target)

    def factorised(self, damping: float = 0.0) -> tuple[Callable[..., np.ndarray], bool]:
        """Return the function that solves with the factorised Hessian, and if it is accurate.

        A second argument is the target's sum over classes, if more digits of it are known than the
        target shows: none of a gradient's is left where all classes have the same ridge.  Damping
        is added to the diagonal, in units of it.
        """
        xp, C = self.problem.xp, self.problem.n_classes
        ridge = xp.zeros((C, 1)) + self.least
        whole = ridge.sum(axis=0)
        part = ridge / np.where(whole > 0.0, whole, 1.0)
        part[:, whole == 0.0] = 1.0 / C  # nothing says how large s is: let the mean be zero
        eased, accurate = self._inverse_without_shifts(ridge, part, damping)
        known = xp.zeros(ridge.shape[1]) if self.least.ndim == 1 else None

        def solve(target: np.ndarray, common: np.ndarray | None = known) -> np.ndarray:
            of_rows = target.sum(axis=0)
            v = eased(target - part * of_rows)
            v -= (part * v).sum(axis=0)
            shift = of_rows if common is None else common
            return v + np.where(whole > 0.0, shift / np.where(whole > 0.0, whole, 1.0), 0.0)

        return solve, accurate

    def _inverse_without_shifts(
        self, ridge: np.ndarray, part: np.ndarray, damping: float
    ) -> tuple[Callable[[np.ndarray], np.ndarray], bool]:
        """Return the function that solves where shifts of all classes are eliminated.

        And whether it is accurate.
        """
        xp, (C, width) = self.problem.xp, ridge.shape
        matrix = self.rows_part()
        classes, places = xp.arange(C), xp.arange(width)
        same_feature = (classes[:, None, None], places, classes[:, None], places)
        shared = ridge[:, None] * part
        shared[classes, classes] = 0.0
        shared[classes, classes] = -shared.sum(axis=1)
        matrix[same_feature] -= shared
        flat = matrix.reshape(C * width, C * width)
        diagonal = np.maximum(xp.diagonal(flat), 1e-300)
        scale = 1.0 / np.sqrt(diagonal)
        flat *= scale
        flat *= scale[:, None]
        of_shift = np.sqrt(diagonal).reshape(C, width)
        of_shift /= np.sqrt((of_shift * of_shift).sum(axis=0))
        matrix[same_feature] += of_shift[:, None] * of_shift
        inverse, accurate = _equilibrated_inverse(xp, flat, damping)
        return (lambda v: (scale * inverse(scale * v.ravel())).reshape(v.shape)), accurate

    def rows_part(self) -> np.ndarray:
        """Return the sum over the rows: the entry [k, i, l, j] is of w_ki and w_lj."""
        rows = self.problem.rows
        if isinstance(rows, DenseRows) and rows.X.size <= FEW_VALUES:
            matrix = self._products_at_once(rows.values)
        else:
            matrix = self._products()
        classes = self.problem.xp.arange(len(matrix))
        matrix[classes, :, classes] = 0.0
        own = matrix.sum(axis=2)  # of classes with all others: a difference would lose digits
        np.negative(matrix, out=matrix)
        matrix[classes, :, classes] = own
        return matrix

    def _products_at_once(self, X: np.ndarray) -> np.ndarray:
        """Return the sums of h_ik h_im x_i x_i' / sum(h_i), as one product of matrices."""
        h, d, C = self.h, X.shape[1], self.h.shape[1]
        width = d + self.problem.fit_intercept
        roots = np.sqrt(self.problem.share / h.sum(axis=1))
        factors = np.empty((len(X), C, width))
        factors[...] = (roots[:, None] * h)[:, :, None]
        factors[:, :, :d] *= X[:, None]
        flat = factors.reshape(len(X), C * width)
        return (flat.T @ flat).reshape(C, width, C, width)

    def _products(self) -> np.ndarray:
        """Return the same sums, of one pair of classes after the other."""
        problem, h, xp = self.problem, self.h, self.problem.xp
        d, width, C = problem.shape[1], problem.shape[1] + problem.fit_intercept, h.shape[1]
        matrix, block = xp.zeros((C, width, C, width)), xp.empty((width, width))
        of_rows = problem.share / h.sum(axis=1)
        for k in range(C):
            for m in range(k):
                q = of_rows * h[:, k] * h[:, m]
                block[:d, :d] = problem.rows.moments(q)
                if problem.fit_intercept:
                    block[d, :d] = block[:d, d] = problem.rows.transposed_product(q[:, None])[0]
                    block[d, d] = q.sum()
                matrix[k, :, m] = matrix[m, :, k] = block
        return matrix

    def _refined(
        self,
        solve: Callable[[np.ndarray], np.ndarray],
        target: np.ndarray,
    ) -> np.ndarray:
        """Return the solution by conjugate gradients, from an inverse that has few right digits."""
        found, rest = np.zeros_like(target), target.copy()
        along = eased = solve(rest)
        unit = rest.copy()  # what the inverse would have to be applied to for `along`
        size = float(_dot(rest, eased))
        goal = EXACT_RESIDUAL * size
        for _ in range(REFINEMENTS):
            if not size > goal:
                break
            product = self @ along
            curvature = float(_dot(along, product))
            if not curvature > LEAST_CURVATURE * float(_dot(along, unit)):
                break
            found += (size / curvature) * along
            rest -= (size / curvature) * product
            eased = solve(rest)
            before, size = size, float(_dot(rest, eased))
            along = eased + (size / before) * along
            unit = rest + (size / before) * unit
        return found

    def preconditioner(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the scales of weights, 1 / sqrt(diagonal), and the inverse of their correlations.

        The scales are those of each class, the correlations of features those of all together: one
        matrix, of a sample of the rows if there are many, none if there are too many features.
        """
        xp, rows, h = self.problem.xp, self.problem.rows, self.h
        (n, d), C = self.problem.shape, h.shape[1]
        q = self.problem.share[:, None] * h * of_others(h) / h.sum(axis=1, keepdims=True)
        size = max(ROWS_PER_FEATURE * d, 4 * C * n // d)
        if d <= DIRECT and n > 2 * size:  # take rows in proportion to their curvature
            of_rows = q.sum(axis=1)
            ends = np.cumsum(of_rows)
            apart = ends[-1] / size
            places = np.searchsorted(ends, (xp.arange(size) + rng.random()) * apart)
            places = np.minimum(places, n - 1)
            q = q[places] * (apart / np.maximum(of_rows[places], 1e-300))[:, None]
            rows = rows.take(places)
        if d <= DIRECT and self.problem.on_device:  # it takes no longer with a matrix per class
            return _ONE, self._inverses(rows, q)
        diagonal = xp.stack([rows.square_sums(column) for column in xp.ascontiguousarray(q.T)])
        if self.problem.fit_intercept:
            diagonal = np.column_stack([diagonal, q.sum(axis=0)])
        scale = 1.0 / np.sqrt(diagonal + self.least)
        if d > DIRECT:
            return scale, xp.empty((0, 0))
        of_rows = q.mean(axis=1)
        matrix = rows.moments(of_rows)
        if self.problem.fit_intercept:
            sums = rows.transposed_product(of_rows[:, None])
            matrix = np.vstack([matrix, sums])
            matrix = np.column_stack([matrix, np.append(sums, of_rows.sum())])
        return scale, inverse_of_correlations(xp, matrix, self.least)

    def _inverses(self, rows: Any, q: np.ndarray) -> np.ndarray:
        """Return the inverse of each class' own part of the Hessian."""
        from zerogap.cuda.algebra import inverses

        xp, intercept = self.problem.xp, self.problem.fit_intercept
        sums: Any = rows.transposed_product(q) if intercept else None
        matrices = []
        for k, column in enumerate(xp.ascontiguousarray(q.T)):
            matrix = rows.moments(column)
            if intercept:
                matrix = np.vstack([matrix, sums[k : k + 1]])
                matrix = np.column_stack([matrix, np.append(sums[k], column.sum())])
            places = xp.arange(len(matrix))
            largest = matrix[places, places].max()
            matrix[places, places] += self.least + _RIDGE_OF_CORRELATIONS * largest
            matrices.append(matrix)
        return inverses(xp.stack(matrices))


class SummedMulticlassHessian(MulticlassHessian):
    """The Hessian of rows that are elsewhere: their part of the matrix has been added up."""

    def __init__(
        self, problem: MulticlassProblem, matrix: np.ndarray, ridge: np.ndarray | None = None
    ) -> None:
        self.problem, self.matrix = problem, matrix
        d, intercept = problem.shape[1], problem.fit_intercept
        if ridge is None:
            self.least = np.full(d + intercept, problem.strength)
            if intercept:
                self.least[-1] = LEAST_OF_INTERCEPT * (float(np.trace(matrix[:, d, :, d])) or 1.0)
        else:
            self.least = np.column_stack([ridge, np.zeros(len(ridge))]) if intercept else ridge

    def rows_part(self) -> np.ndarray:
        return self.matrix.copy()

    def inverse(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that solves with the Hessian, damped if that is not accurate."""
        solve, accurate = self.factorised()
        return solve if accurate else self.factorised(DAMPING)[0]


def _equilibrated_inverse(
    xp: Any, matrix: Any, damping: float = 0.0
) -> tuple[Callable[[np.ndarray], np.ndarray], bool]:
    """Return the function that solves with a matrix whose diagonal is about one.

    And whether it is accurate: not so if pivots are small, or need a ridge to be positive.
    """
    places = xp.arange(len(matrix))
    diagonal = matrix[places, places].copy()
    for ridge in _RIDGES:
        matrix[places, places] = diagonal + max(ridge, damping)
        with contextlib.suppress(linalg.LinAlgError):
            inverse, smallest = _factorised(matrix)
            return inverse, ridge <= damping and smallest >= SMALL_PIVOT
    return (lambda v: v / diagonal), False


def inverse_of_correlations(xp: Any, matrix: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Return the inverse of the correlations of features with these moments and that ridge."""
    roots = np.sqrt(np.diagonal(matrix) + least)
    matrix = matrix / (roots[:, None] * roots)
    places = xp.arange(len(matrix))
    matrix[places, places] = 1.0 + _RIDGE_OF_CORRELATIONS
    return xp.linalg.inv(matrix)


def of_others(h: np.ndarray) -> np.ndarray:
    """Return the sum of the other entries of each row: no difference, if one of them dominates."""
    others, top = h.copy(), h.max(axis=1, keepdims=True)
    others[h == top] = 0.0
    ties = (h == top).sum(axis=1, keepdims=True) - 1
    sums = h.sum(axis=1, keepdims=True) - h
    return np.where(h == top, others.sum(axis=1, keepdims=True) + ties * top, sums)


def _dot(a: np.ndarray, b: np.ndarray) -> Any:
    return a.ravel() @ b.ravel()


def preconditioned(rest: np.ndarray, scale: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Return the preconditioned residual, without what is common to all classes.

    That changes no vote, and weights that begin without it stay so.
    """
    if inverse.ndim == 3:
        eased = (rest[:, None, :] @ inverse)[:, 0, :]
        eased -= eased.mean(axis=0)
        return eased
    eased = scale * rest
    if len(inverse):
        eased = eased @ inverse
    eased *= scale
    return eased - eased.mean(axis=0)

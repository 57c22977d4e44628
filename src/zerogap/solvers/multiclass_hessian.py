"""The Hessian of a multiclass model's objective: products with it, and Newton directions.

Weights are matrices with a row for each class and, if there are intercepts, a last column for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap._jit import rowwise
from zerogap.multiclass import MulticlassProblem
from zerogap.solvers.hessian import _PRODUCTS, DIRECT

_ENOUGH = 0.01  # of the residual, squared
_SAMPLE = 16  # rows per feature that make a good preconditioner
_STRAIGHT = 1e-7  # part of a row's votes for other classes that bends nothing
_LEAST = 1e-9  # curvature of an intercept that no row bends, so that directions are finite
_ONE = np.ones(1)
_RIDGE = 1e-11  # of correlations: more than rounding, which might make them indefinite


@rowwise(sums=0)
def _bend(share, h, dz, start, stop):
    """dz_i := share_i J_i dz_i with J_i = diag(h_i) - h_i h_i' / sum(h_i)"""
    for i in range(start, stop):
        total, mean = 0.0, 0.0
        for k in range(h.shape[1]):
            total += h[i, k]
            mean += h[i, k] * dz[i, k]
        mean /= total
        for k in range(h.shape[1]):
            dz[i, k] = share[i] * h[i, k] * (dz[i, k] - mean)


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
    """

    def __init__(self, problem: MulticlassProblem, h: np.ndarray) -> None:
        curved = h.max(axis=1) < (1.0 - _STRAIGHT) * h.sum(axis=1)
        curved[0] = True  # so that there is a row
        if int(curved.sum()) <= 0.7 * len(h):
            places = np.flatnonzero(curved)
            problem, h = problem.take(places), h[places]  # type: ignore[assignment]
        self.problem, self.h = problem, h
        self.least = problem.xp.full(problem.shape[1] + problem.fit_intercept, problem.lam)
        if problem.fit_intercept:
            self.least[-1] = _LEAST

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        dz = all_scores(self.problem, v)
        self.problem.over_rows(_bend, self.problem.share, self.h, dz)
        product = all_sums(self.problem, dz)
        product += self.least * v
        return product

    def solve(
        self, target: np.ndarray, scale: np.ndarray, inverse: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Return the Newton direction and the number of products that it took.

        Conjugate gradients go on until the residual has fallen tenfold.
        """
        xp, rows = self.problem.xp, self.problem.rows
        if inverse.ndim == 3 and hasattr(rows, "X"):
            from zerogap.cuda import directions

            if len(target) <= directions.MOST:
                data = (rows.X, self.problem.share, self.h, self.least, inverse)
                return directions.solve(*data, target, _ENOUGH, _PRODUCTS)
        found = xp.stack([np.zeros_like(target), -target])  # the solution, H solution - target
        eased = _eased(found[1], scale, inverse)
        change = xp.stack([-eased, eased])  # of both, for a step of one
        size = _dot(found[1], eased)
        goal, products = _ENOUGH * float(size), 0
        while products < _PRODUCTS and float(size) > goal:
            products += 1
            change[1] = self @ change[0]
            found += (size / _dot(change[0], change[1])) * change
            eased = _eased(found[1], scale, inverse)
            before, size = size, _dot(found[1], eased)
            change[0] *= size / before
            change[0] -= eased
        return found[0], products

    def preconditioner(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the scales of weights, 1 / sqrt(diagonal), and the inverse of their correlations.

        The scales are those of each class, the correlations of features those of all together: one
        matrix, of a sample of the rows if there are many, none if there are too many features.
        """
        xp, rows, h = self.problem.xp, self.problem.rows, self.h
        (n, d), C = self.problem.shape, h.shape[1]
        q = self.problem.share[:, None] * h * (1.0 - h / h.sum(axis=1, keepdims=True))
        size = max(_SAMPLE * d, 4 * C * n // d)
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
        roots = np.sqrt(np.diagonal(matrix) + self.least)
        matrix /= roots[:, None] * roots
        places = xp.arange(len(matrix))
        matrix[places, places] = 1.0 + _RIDGE
        return scale, xp.linalg.inv(matrix)

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
            matrix[places, places] += self.least + _RIDGE * largest
            matrices.append(matrix)
        return inverses(xp.stack(matrices))


def _dot(a: np.ndarray, b: np.ndarray) -> Any:
    return a.ravel() @ b.ravel()


def _eased(rest: np.ndarray, scale: np.ndarray, inverse: np.ndarray) -> np.ndarray:
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

"""Newton directions of elastic nets with more weights than rows: a matrix as wide as the rows.

Every weight has a ridge of its own there, R.  With rows B that bend by L L' and intercepts b, which
E spreads over the rows, the equations for the directions v of the weights are

    R v + B' L q = t,    E' L q = t_b,    q = L' (B v + E b)

and without v

    (1 + L' B R^-1 B' L) q = L' (B R^-1 t + E b)

References: M. A. Woodbury, "Inverting modified matrices", Statistical Research Group Memorandum 42,
Princeton, 1950.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg, sparse

from zerogap.kernels.jit import kernel
from zerogap.solvers.hessian import DAMPING, DIRECT, Hessian
from zerogap.solvers.multiclass_hessian import MulticlassHessian, of_others

Solve = Callable[..., np.ndarray]


def is_wide(problem: Any) -> bool:
    """Tell whether rows, with a number for each class, are far fewer than penalised weights."""
    flat, numbers = math.prod(problem.weight_shape), math.prod(problem.dual_shape)
    return bool(problem.l1_ratio) and 2 * numbers <= flat and not problem.on_device


def factor_width(problem: Any) -> int:
    """Return the width of the matrix that a direct method factorises."""
    return math.prod(problem.dual_shape if is_wide(problem) else problem.weight_shape)


def can_factorise(problem: Any) -> bool:
    """Tell whether that takes a second at most."""
    return factor_width(problem) <= DIRECT


def hessian_of(problem: Any, h: np.ndarray, ridge: np.ndarray) -> Any:
    """Return the Hessian with a ridge for each weight, whose factor is as small as can be."""
    wide = is_wide(problem)
    if ridge.ndim == 2:
        return (WideMulticlassHessian if wide else MulticlassHessian)(problem, h, ridge)
    return (WideHessian if wide else Hessian)(problem, h, damping=0.0, ridge=ridge)


class WideHessian(Hessian):
    """The Hessian of one score."""

    def _inverse(
        self, rows: Any, h: np.ndarray, rough: bool = False, damping: float = 0.0
    ) -> tuple[Solve, bool]:
        """Return what solves with the Hessian: damping is not needed, as no pivot is below one."""
        ridge = np.atleast_2d(self.ridge)
        system = RowSystem(rows, np.sqrt(h)[:, None, None], ridge, self.intercept)
        return (lambda target: system.solve(target[None])[0]), False


class WideMulticlassHessian(MulticlassHessian):
    """The Hessian of many classes."""

    def factorised(self, damping: float = 0.0) -> tuple[Solve, bool]:
        """Return what solves with the Hessian, as the narrow one does."""
        problem, h, C = self.problem, self.h, self.h.shape[1]
        unit = np.sqrt(h / h.sum(axis=1, keepdims=True))
        bends = -unit[:, :, None] * unit[:, None, :]  # and one: what is left without the unit
        bends[:, range(C), range(C)] = of_others(h) / h.sum(axis=1, keepdims=True)
        bends *= np.sqrt(problem.share[:, None] * h)[:, :, None]
        ridge = np.ascontiguousarray(self.least[:, : problem.shape[1]])
        system = RowSystem(problem.rows, bends, ridge, problem.fit_intercept)
        whole = self.least.sum(axis=0)
        part = self.least / np.where(whole > 0.0, whole, 1.0)

        def solve(target: np.ndarray, common: np.ndarray | None = None) -> np.ndarray:
            if common is not None:  # of which more digits are known than the target shows
                target = target + part * (common - target.sum(axis=0))
            return system.solve(target)

        return solve, False


class RowSystem:
    """The equations at the head of this file, factorised.

    Parameters
    ----------
    rows : DenseRows or CSRRows
        n rows with d entries, the same for each of C classes.
    bends : ndarray of shape (n, C, C)
        L of each row.
    ridge : ndarray of shape (C, d)
        R.
    intercept : bool
        Whether targets have a last column.
    """

    def __init__(self, rows: Any, bends: np.ndarray, ridge: np.ndarray, intercept: bool) -> None:
        self.X: Any = rows.values if hasattr(rows, "values") else rows._matrix()
        self.bends, self.ridge, self.intercept = bends, ridge, intercept
        (n, C, _), parts = bends.shape, []
        for of_class in ridge:
            products = (self.X / of_class) @ self.X.T
            parts.append(products.toarray() if sparse.issparse(products) else products)
        matrix = np.eye(n * C)
        _add_products(np.stack(parts), bends, matrix)
        self.within = _equilibrated(matrix)
        self.spread = bends.transpose(0, 2, 1).reshape(n * C, C)  # L' E
        if intercept:
            self.moved = np.stack([self.within(column) for column in self.spread.T], axis=1)
            ends = self.spread.T @ self.moved
            self.ends = np.linalg.pinv(ends, hermitian=True)  # all may rise: that changes nothing

    def solve(self, target: np.ndarray) -> np.ndarray:
        """Return the directions of all weights and, as a last column, of the intercepts."""
        t, shape = target[:, : self.X.shape[1]], self.bends.shape[:2]
        seen = (self.X @ (t / self.ridge).T).T
        q, b = self.within(np.einsum("ika,ki->ia", self.bends, seen).ravel()), np.empty(0)
        if self.intercept:
            b = self.ends @ (target[:, -1] - self.spread.T @ q)
            q = q + self.moved @ b
        bent = np.einsum("ika,ia->ki", self.bends, q.reshape(shape))
        found = (t - (self.X.T @ bent.T).T) / self.ridge
        return np.column_stack([found, b]) if self.intercept else found


@kernel
def _add_products(parts, bends, matrix):
    """matrix += L' P L with the matrices P of all classes."""
    n, C = bends.shape[:2]
    for i in range(n):
        for a in range(C):
            for j in range(n):
                for b in range(C):
                    total = 0.0
                    for k in range(C):
                        total += bends[i, k, a] * parts[k, i, j] * bends[j, k, b]
                    matrix[i * C + a, j * C + b] += total


def _equilibrated(matrix: np.ndarray) -> Solve:
    """Return what solves with a positive definite matrix, whose diagonal is scaled to one."""
    scale = 1.0 / np.sqrt(np.diagonal(matrix))
    matrix *= scale
    matrix *= scale[:, None]
    matrix[np.diag_indices(len(matrix))] = 1.0 + DAMPING
    factor = linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
    solve = functools.partial(linalg.cho_solve, factor, check_finite=False)
    return lambda v: scale * solve(scale * v)

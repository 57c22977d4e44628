"""The equations of one step of an interior point method, solved to the digits that they have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerogap.solvers.hessian import Hessian
from zerogap.solvers.multiclass_hessian import MulticlassHessian, all_scores, all_sums

REFINEMENTS = 4  # of a direction at most
COSTLY = 0.01  # of mu: residuals whose part of the gap is larger are solved for again
PRODUCTS = 100  # with the Hessian for one direction: near copies of columns need up to so many
REDUCTION = 1e-12  # of the residual's square by conjugate gradients; refinement does the rest
# Of the diagonal, added to it: along exact copies of columns refinement would else divide rounding
# by lam.  What rounding does to the scores falls by 1e-16 / DAMPING in each refinement.
DAMPING = 1e-13
ROUNDING = 4.0 * np.finfo(np.float64).eps  # of sums over rows, by the root of their square sums


class System:
    """Weights, the dual variables of all parts, and the equations between them.

        lam (1 - r) w = 1/S sum_i s_i a_i x_i + lam r c,    sum_i s_i a_i = 0 (intercept)

    Residuals are lists: of these equations and, with many classes, of their sum over classes, of
    which the rows' part is zero but for rounding.
    """

    def __init__(self, problem: Any, w: np.ndarray, rows: Any, coordinates: Any) -> None:
        self.problem, self.w, self.rows, self.coordinates = problem, w, rows, coordinates
        self.parts = [rows] if coordinates is None else [rows, coordinates]
        self.products = sum(part.products for part in self.parts)
        self.mu = sum(part.weigh() for part in self.parts) / self.products
        self.d, shape = problem.shape[1], problem.weight_shape
        self.ridge = problem.lam * (1.0 - problem.l1_ratio)
        ridge = problem.xp.full(shape, self.ridge)
        if coordinates is not None:
            # scores of units are such that each has the weight of a row: lam r / factor
            self.factor = problem.lam * problem.l1_ratio / float(coordinates.share[0])
            ridge += self.factor**2 * coordinates.h.reshape(shape)
        self.of_weights = ridge
        self.squares = problem.rows.square_sums(problem.share)
        if len(shape) == 2:
            self.hessian: Any = MulticlassHessian(problem, rows.h, ridge)
            self.inverse, self.accurate = self.hessian.factorised(DAMPING)
        else:
            self.hessian = Hessian(problem, rows.h, damping=0.0, ridge=ridge)
            more = DAMPING * (problem.rows.square_sums(rows.h) + ridge)
            damped = Hessian(problem, rows.h, damping=0.0, ridge=ridge + more)
            self.inverse, self.accurate = damped._inverse(damped.rows, damped.h)

    def objective(self) -> float:
        """Return P."""
        w = np.ascontiguousarray(self.w[..., : self.d])
        return self.problem.value_at(scores(self.problem, self.w), w)

    def turn(self, goal: float, exact: bool = False) -> tuple[np.ndarray, float]:
        """Find the direction towards a mu; return its weights and longest step.

        Scores are rounded, and dual variables follow them the more closely the smaller mu is: so
        where that costs, what is wrong with their sums is solved for again.
        """
        target = self._residual(self.w, [part.aim(goal) for part in self.parts])
        dw = self._solve(target)
        dz = scores(self.problem, dw)
        fastest = self._turn(dw, dz)
        for _ in range(REFINEMENTS if exact else 0):
            rest = self._residual(self.w + dw, [part.landing() for part in self.parts])
            if not self._cost(rest[0]) > COSTLY * goal or self._is_rounding(rest):
                break
            more = self.inverse(*rest)
            dw, dz = dw + more, dz + scores(self.problem, more)
            fastest = self._turn(dw, dz)
        return dw, 1.0 / fastest if fastest > 0.0 else math.inf

    def _turn(self, dw: np.ndarray, dz: np.ndarray) -> float:
        fastest = self.rows.turn(dz)
        if self.coordinates is None:
            return fastest
        return max(fastest, self.coordinates.turn(self.factor * dw[..., : self.d].ravel()))

    def _residual(self, w: np.ndarray, duals: list[np.ndarray]) -> list[np.ndarray]:
        """Return by how much weights and dual variables miss the equations between them.

        And set what rounding alone may leave of that.
        """
        problem, d = self.problem, self.d
        rest, own = _sums(problem, duals[0]), np.zeros_like(w)
        own[..., :d] -= self.ridge * w[..., :d]
        for c in duals[1:]:
            own[..., :d] += problem.lam * problem.l1_ratio * c.reshape(problem.weight_shape)
        size = np.sqrt((problem.share * (duals[0] ** 2).T).sum(axis=-1))
        columns = np.sqrt(self.squares)
        if problem.fit_intercept:
            columns = np.append(columns, 1.0)
        self.noise = ROUNDING * (size[..., None] * columns)
        return [rest + own] if w.ndim == 1 else [rest + own, own.sum(axis=0)]

    def _cost(self, rest: np.ndarray) -> float:
        """Return the part of the gap that a residual costs."""
        square = (rest[..., : self.d] ** 2).sum()
        if self.problem.fit_intercept:  # made feasible, dual variables change the other sums
            square += (rest[..., self.d] ** 2).sum() * self.squares.sum()
        return 0.5 / self.ridge * float(square)

    def _is_rounding(self, rest: list[np.ndarray]) -> bool:
        return bool((np.abs(rest[0]) <= self.noise).all())

    def _solve(self, target: list[np.ndarray]) -> np.ndarray:
        """Solve with the Hessian; where its factors have few digits, by conjugate gradients.

        They end where rounding begins: along near copies of columns it would be divided by lam.
        """
        if self.accurate:
            return self.inverse(*target)
        found, rest = np.zeros_like(target[0]), [part.copy() for part in target]
        along = eased = self.inverse(*rest)
        size = float((rest[0] * eased).sum())
        goal = REDUCTION * size
        for _ in range(PRODUCTS):
            if not size > goal or self._is_rounding(rest):
                break
            product = self._product(along)
            curvature = float((along * product[0]).sum())
            if not curvature > 0.0:  # rounding is all that is left of it
                break
            step = size / curvature
            found += step * along
            for part, change in zip(rest, product, strict=True):
                part -= step * change
            eased = self.inverse(*rest)
            before, size = size, float((rest[0] * eased).sum())
            along = eased + (size / before) * along
        return found

    def _product(self, v: np.ndarray) -> list[np.ndarray]:
        product = self.hessian @ v
        if v.ndim == 1:
            return [product]
        common = np.zeros_like(product[0])
        common[: self.d] = (self.of_weights * v[:, : self.d]).sum(axis=0)
        return [product, common]


def scores(problem: Any, w: np.ndarray) -> np.ndarray:
    """Return the scores of all rows, the intercept included."""
    if w.ndim == 2:
        return all_scores(problem, w)
    d = problem.shape[1]
    z = problem.scores(w[:d])
    return z + w[d] if problem.fit_intercept else z


def _sums(problem: Any, a: np.ndarray) -> np.ndarray:
    """Return 1/S sum_i s_i a_i x_i, and that of the intercept as if a feature were one."""
    if a.ndim == 2:
        return all_sums(problem, problem.share[:, None] * a)
    c = problem.share * a
    sums = problem.rows.transposed_times(c)
    return np.append(sums, c.sum()) if problem.fit_intercept else sums

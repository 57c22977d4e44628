"""The equations of one step of an interior point method, solved to the digits that they have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerogap.solvers.hessian import DAMPING
from zerogap.solvers.line_search import flatter_step
from zerogap.solvers.multiclass_hessian import all_scores, all_sums
from zerogap.solvers.wide_hessian import hessian_of

REFINEMENTS = 8  # refinements of a direction at most, every second one by conjugate gradients
COSTLY_RESIDUAL = 0.01  # a residual that costs more than this share of mu is solved for; not tuned
MOST_PRODUCTS = 100  # products with the Hessian for one direction, at most; not tuned
RESIDUAL_LEFT = 1e-12  # conjugate gradients stop at this share of |residual|^2
ROUNDING = np.finfo(np.float64).eps  # error of a sum over rows, over the root of its square sum


class System:
    """Weights, the dual variables of all parts, and the equations between them.

        lam (1 - r) w = 1/S sum_i s_i a_i x_i + lam r c,    sum_i s_i a_i = 0 (intercept)

    Residuals are lists: of these equations and, with many classes, of their sum over classes, of
    which the rows' part is zero up to rounding.
    """

    hessian: Any
    total_weight = 1.0  # of all rows

    def __init__(self, problem: Any, w: np.ndarray, rows: Any, coordinates: Any) -> None:
        self.problem, self.w, self.rows, self.coordinates = problem, w, rows, coordinates
        self.parts = [rows] if coordinates is None else [rows, coordinates]
        self.products = sum(part.products for part in self.parts)
        self.mu = sum(part.weigh() for part in self.parts) / self.products
        self.d, self.squares = problem.shape[1], problem.rows.square_sums(problem.share)
        self.ridge = problem.lam * (1.0 - problem.l1_ratio)
        if coordinates is not None:
            # scores of units are such that each has the weight of a row: lam r / factor
            self.factor = problem.lam * problem.l1_ratio / float(coordinates.share[0])
        self.z = self._scores(w)
        self._factorise()

    def _way(
        self, target: list[np.ndarray], roughly: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights that solve the equations, and their scores."""
        dw = self.inverse(*target) if roughly else self._solve(target)
        return dw, self._scores(dw)

    def _scores(self, w: np.ndarray) -> np.ndarray:
        return scores(self.problem, w)

    def _sums(self, a: np.ndarray) -> np.ndarray:
        return _sums(self.problem, a)

    def _factorise(self) -> None:
        problem, h = self.problem, self.rows.h
        ridge = problem.xp.full(problem.weight_shape, self.ridge)
        if self.coordinates is not None:
            ridge += self.factor * self.factor * self.coordinates.h.reshape(ridge.shape)
        self.of_weights = ridge
        if ridge.ndim == 2:
            self._factorise_votes(h, ridge)
        else:
            self.hessian = hessian_of(problem, h, ridge)
            self.inverse, self.accurate = self.hessian._inverse(
                self.hessian.rows, self.hessian.h, damping=DAMPING
            )

    def _factorise_votes(self, h: np.ndarray, ridge: np.ndarray) -> None:
        self.hessian = hessian_of(self.problem, h, ridge)
        self.inverse, self.accurate = self.hessian.factorised(DAMPING)

    def objective(self) -> float:
        """Return P."""
        w = self.problem.xp.ascontiguousarray(self.w[..., : self.d])
        return self.problem.value_at(self.z, w)

    def turn(self, goal: float, exact: bool = False) -> tuple[np.ndarray, float]:
        """Find the direction towards a mu; return its weights and longest step.

        Scores are rounded, and dual variables follow them the more closely the smaller mu is: so
        where that costs, what is wrong with their sums is solved for again.
        """
        dw, dz = self._way(self._residual(self.w, self._aim(goal)))
        fastest, least, best = self._turn(dw, dz), math.inf, (dw, dz)
        for trial in range(REFINEMENTS if exact else 0):
            rest = self._residual(self.w + dw, [part.landing() for part in self.parts])
            if (cost := self._cost(rest[0])) < least:
                least, best = cost, (dw, dz)
            if not cost > COSTLY_RESIDUAL * goal or (self.accurate and cost > least):
                break
            more, dz_more = self._way(rest, roughly=not trial % 2)
            dw, dz = dw + more, dz + dz_more
            fastest = self._turn(dw, dz)
        if exact and dw is not best[0]:
            dw = best[0]
            fastest = self._turn(*best)
        return dw, 1.0 / fastest if fastest > 0.0 else math.inf

    def move(self, step: float, dw: np.ndarray) -> None:
        """Make a step."""
        self.w += step * dw
        for part in self.parts:
            part.move(step)

    def _aim(self, goal: float) -> list[np.ndarray]:
        duals = [self.rows.aim(self.z, goal)]
        if self.coordinates is not None:
            w = self.factor * self.w[..., : self.d].ravel()
            duals.append(self.coordinates.aim(w, goal))
        return duals

    def recentre(self, mu: float) -> float:
        """Make a Newton step to the point of the central path with a given mu.

        All parts settle at the scores: the weights alone are free, of a function that is convex,
        smooth and self-concordant.  Return by how much it will fall, over what it may be off.
        """
        problem, shape, self.mu = self.problem, self.problem.weight_shape, mu
        z = self.z
        self._settle(z, self.w)
        for part in self.parts:
            part.weigh()
        self._factorise()
        target = self._residual(self.w, [part.alpha for part in self.parts])
        dw, dz = self._way(target)
        fall = float((target[0] * dw).sum())
        if not fall > 0.0:  # rounding, or nothing that is finite, is all that is left of it
            return fall

        def slope(step: float) -> float:
            """Return the derivative along the step, over that at its beginning."""
            w = self.w + step * dw
            self._settle(z + step * dz, w)
            total = float((problem.share * (self.rows.alpha * dz).T).sum())
            total -= self.ridge * float((w[..., : self.d] * dw[..., : self.d]).sum())
            for part in self.parts[1:]:
                c = part.alpha.reshape(shape)
                total += problem.lam * problem.l1_ratio * float((c * dw[..., : self.d]).sum())
            return total / fall

        step = flatter_step(slope)
        self.w += step * dw
        return fall / (mu * float((problem.share * self.rows.heat).max()))

    def _settle(self, z: np.ndarray, w: np.ndarray) -> None:
        self.rows.settle(z, self.mu)
        for part in self.parts[1:]:
            part.settle(self.factor * w[..., : self.d].ravel(), self.mu)

    def point(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and dual variables."""
        return self.w.copy(), self.rows.alpha.copy()

    def gap_of(self, w: np.ndarray, alpha: np.ndarray) -> float:
        """Return the gap that a point proves."""
        problem = self.problem
        b = w[..., self.d] if problem.fit_intercept else 0.0
        b = b if np.ndim(b) else float(b)
        w = problem.xp.ascontiguousarray(w[..., : self.d])
        return problem.plain_gap(w, b, problem.scores(w), problem.nearly_feasible(alpha))[1]

    def _turn(self, dw: np.ndarray, dz: np.ndarray) -> float:
        fastest = self.rows.turn(dz)
        if self.coordinates is None:
            return fastest
        return max(fastest, self.coordinates.turn(self.factor * dw[..., : self.d].ravel()))

    def _residual(self, w: np.ndarray, duals: list[np.ndarray]) -> list[np.ndarray]:
        """Return the residual of the equations between weights and dual variables.

        Sets the bound of its rounding as well.
        """
        problem, d = self.problem, self.d
        rest, own = self._sums(duals[0]), np.zeros_like(w)
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
        goal = RESIDUAL_LEFT * size
        for _ in range(MOST_PRODUCTS):
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

"""The Hessian of a linear model's objective: products with it, and Newton directions."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from scipy import linalg

from zerogap.losses import Loss
from zerogap.problem import Problem
from zerogap.rows import CSRRows, DenseRows
from zerogap.solvers.conjugate_gradients import NEVER_ENOUGH, Enough, conjugate_gradients
from zerogap.solvers.protocol import Solver

DIRECT = 3000  # features up to which the Hessian is factorised
ROWS_PER_FEATURE = 4  # rows per feature whose Hessian is a good preconditioner
PLENTY_PER_FEATURE = 400  # rows per feature whose Hessian is as good as that of all rows
MOST_PASSES = 4  # passes over the data that the Hessian of a sample may cost
MOST_PRODUCTS = 250  # products with the Hessian for one direction, at most
REFINEMENTS = 20  # the same where the Hessian is factorised: further products gain nothing
# The Hessian is summed up in single precision from so many features and multiplications on: there
# that saves more time than the products cost which correct the direction.  The first number is
# higher for parabolas, whose rows need no scaling.
SINGLE_FEATURES, SINGLE_FEATURES_OF_PARABOLA, SINGLE_WORK = 48, 64, 5e7
MENDING_PRODUCTS = 4  # such products, at least, before the Hessian is summed up in double precision
ROUGH_RESIDUAL, EXACT_RESIDUAL = 0.01, 1e-12  # conjugate gradients stop at this share of |r|^2
# Conjugate gradients stop along directions in which the Hessian has less than this share of the
# factorised matrix' curvature: it is rounding, of columns that are copies of each other, and a step
# along them would have no end.
LEAST_CURVATURE = 1e-2
# Of text, conjugate gradients are preconditioned by this power of the diagonal: what is wanted is a
# short gradient, and the diagonal alone favours rare words.  Products to a gap of 1e-3 at C = 100
# with powers of 0.5, 0.6, 0.75 and 1: rcv1 99, 91, 87, 98; reuters 73, 68, 65, 93; with three rows
# in ten 65, 68, 83, 140.  Where |x|^2 / (lam n) is larger than the second number on average, some
# columns may have other units, and only the diagonal itself makes up for those.
POWER_OF_DIAGONAL, MOST_EVEN = 0.6, 1e4
DAMPING = 1e-13  # share of the diagonal: hundreds of times a copy's curvature by rounding
# Smallest pivot of a matrix with a unit diagonal whose solutions have enough right digits: measured
# on columns that agree to 1e-5 of their values.
SMALL_PIVOT = 1e-9
_RIDGES = (0.0, 1e-14, 1e-13, 1e-12, 1e-10, 1e-8, 1e-6)  # tried until the matrix is definite


def moments_cost(rows: DenseRows | CSRRows) -> float:
    """Return how many products with the Hessian take as long as computing it, roughly."""
    n, d = rows.shape
    if rows.stored < n * d:
        return 0.25 * (rows.stored + 1) / (n + 1)
    return (0.025 if _is_rough(rows) else 0.05) * d


def _is_rough(rows: DenseRows | CSRRows) -> bool:
    """Tell whether to add up Hessians in single precision."""
    d = rows.shape[1]
    return isinstance(rows, DenseRows) and d >= SINGLE_FEATURES and rows.stored * d >= SINGLE_WORK


def _has_room(problem: Problem, h: np.ndarray) -> bool:
    """Tell whether single precision holds the rows' sizes, and still shows lam beside them."""
    trace = float(h @ problem.sqnorms)
    return 1e-30 < trace < 1e12 * problem.lam and 1e-30 < problem.sqnorms.max() < 1e30


def worth_sampling(rows: DenseRows | CSRRows) -> int:
    """Return the number of rows whose Hessian makes a good preconditioner at little cost."""
    n, d = rows.shape
    return max(ROWS_PER_FEATURE * d, int(n * min(1.0, MOST_PASSES / moments_cost(rows))))


def is_parabola(loss: Loss) -> bool:
    """Tell whether the Hessian is the same everywhere."""
    return loss.is_parabola


def needed_memory(problem: Problem) -> float:
    """Return the bytes that second-order methods need beyond the data, at most."""
    d = problem.shape[1]
    matrices = 24.0 * (d + 1) ** 2 if d <= DIRECT else 0.0
    return 1.5 * problem.rows.nbytes + matrices + 150.0 * math.prod(problem.dual_shape)


def check_memory(solver: Solver, problem: Problem) -> None:
    """Refuse a problem that would exceed the memory."""
    needed, free = needed_memory(problem), problem.free_memory()
    solver._require(
        needed < free,
        f"needs about {needed / 1e9:.1f} GB beyond the data, but {free / 1e9:.1f} GB are free: "
        f"use SDCA",
    )


def is_even(problem: Problem) -> bool:
    """Tell whether columns have about the same units, so that short gradients are worth wanting."""
    return problem.mean_sqnorm <= MOST_EVEN * problem.strength * problem.shape[0]


class Hessian:
    """ridge + sum_i h_i x_i x_i' over the rows with h_i > 0, and a last row for the intercept.

    The ridge is that of the penalty, or another number, or one for each feature.
    """

    def __init__(
        self,
        problem: Problem,
        h: np.ndarray,
        damping: float = 1e-14,
        ridge: float | np.ndarray | None = None,
    ) -> None:
        self.problem, self.intercept = problem, problem.fit_intercept
        self.ridge = problem.strength if ridge is None else ridge
        self.rows, self.h = problem.rows, h
        if np.count_nonzero(h) <= 0.7 * len(h):
            active = np.flatnonzero(h)
            self.rows, self.h = problem.rows.take(active), h[active]
        wide = not is_parabola(problem.loss) or problem.shape[1] >= SINGLE_FEATURES_OF_PARABOLA
        self.rough = wide and _is_rough(problem.rows) and _has_room(problem, h)
        self.left = math.inf  # |r|^2 of the last direction's residual r, if known
        self.dual_direction: np.ndarray | None = None  # to a better dual point's weights, if any
        self.dual_gap = math.inf  # of a parabola, with that dual point
        # without rows the intercept has no curvature: a small one keeps the direction finite
        total = float(self.h.sum())
        self.least = damping * total if total > 0.0 else damping

    def solve(
        self,
        target: np.ndarray,
        rng: np.random.Generator,
        factor: int = 1,
        enough: Enough = NEVER_ENOUGH,
    ) -> tuple[np.ndarray, int, int]:
        """Return the Newton direction, the number of products it took, and the next `factor`.

        The Hessian of `factor * worth_sampling(rows)` rows is the preconditioner; of a parabola,
        whose optimum is one step away, the Hessian of all rows.  `enough` says when a direction is.
        """
        n, d = len(self.h), self.problem.shape[1]
        parabola = is_parabola(self.problem.loss)
        if d > DIRECT:
            reduction = EXACT_RESIDUAL**2 if parabola else ROUGH_RESIDUAL
            given = (self._diagonal(enough.smooths), target, reduction, 0.0, enough)
            return *self._conjugate_gradients(*given), factor
        size, plenty = factor * worth_sampling(self.rows), max(PLENTY_PER_FEATURE * d, 4096)
        if n <= 2 * min(size, plenty) or parabola:
            inverse, accurate = self._whole
            if accurate:
                self.left = 0.0  # up to rounding
                return inverse(target), 0, factor
            if parabola and self.rough:
                return *self._mended(inverse, target, enough), factor
            reduction = ROUGH_RESIDUAL if self.rough else EXACT_RESIDUAL
            least = 0.0 if self.rough else LEAST_CURVATURE
            found = self._conjugate_gradients(inverse, target, reduction, least, enough)
            return *found, factor
        chosen = self.problem.place(np.sort(rng.choice(n, min(size, plenty), replace=False)))
        h = self.h[chosen]
        h *= self.h.sum() / max(h.sum(), 1e-300)
        inverse, accurate = self._inverse(self.rows.take(chosen), h, self.rough)
        if size >= plenty and accurate:
            return inverse(target), 0, factor
        direction, products = self._conjugate_gradients(inverse, target, enough=enough)
        # twice as many rows save some 40 % of the products
        double = 0.4 * products * n > size * moments_cost(self.rows)
        return direction, products, 2 * factor if double else factor

    def _mended(
        self,
        inverse: Callable[[np.ndarray], np.ndarray],
        target: np.ndarray,
        enough: Enough,
    ) -> tuple[np.ndarray, int]:
        """Solve with a Hessian in single precision; if that takes too long, with an exact one."""
        most = MENDING_PRODUCTS + int(moments_cost(self.rows))
        found = self._conjugate_gradients(inverse, target, EXACT_RESIDUAL, 0.0, enough, most)
        if found[1] < most:
            return found
        self.rough = False
        vars(self)["_whole"] = inverse, accurate = self._inverse(self.rows, self.h)
        if accurate:
            self.left = 0.0
            return inverse(target), most
        direction, products = self._conjugate_gradients(
            inverse, target, EXACT_RESIDUAL, LEAST_CURVATURE, enough
        )
        return direction, most + products

    @functools.cached_property
    def _whole(self) -> tuple[Callable[[np.ndarray], np.ndarray], bool]:
        """The function that solves with the Hessian of all rows, and whether it is accurate."""
        return self._inverse(self.rows, self.h, self.rough)

    def inverse(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that solves with the Hessian, factorised at any cost."""
        inverse, accurate = self._inverse(self.rows, self.h)
        if accurate:
            return inverse
        more = (EXACT_RESIDUAL, LEAST_CURVATURE)
        return lambda target: self._conjugate_gradients(inverse, target, *more)[0]

    def damped_inverse(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that solves with the Hessian plus DAMPING times its diagonal.

        Applied again to the residual, it gains twelve digits each time, and makes no long steps
        along columns that are copies of each other.
        """
        return self._inverse(self.rows, self.h, damping=DAMPING)[0]

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        d = self.problem.shape[1]
        offset = float(v[d]) if self.intercept else 0.0
        out, total = self.rows.weighted_product(self.h, v[:d], offset)
        out += self.ridge * v[:d]
        return np.append(out, total + self.least * offset) if self.intercept else out

    def _conjugate_gradients(
        self,
        precondition: Callable[[np.ndarray], np.ndarray],
        target: np.ndarray,
        reduction: float = ROUGH_RESIDUAL,
        least: float = 0.0,
        enough: Enough = NEVER_ENOUGH,
        most: int = 0,
    ) -> tuple[np.ndarray, int]:
        """Return the direction that conjugate gradients find, and the products they took."""
        most = most or (REFINEMENTS if least else MOST_PRODUCTS)
        found = conjugate_gradients(
            self.__matmul__, precondition, target, reduction, most, least, enough
        )
        self.left, self.dual_direction, self.dual_gap = found.left, found.smooth, found.gap
        return found.solution, found.products

    def _inverse(
        self, rows: DenseRows | CSRRows, h: np.ndarray, rough: bool = False, damping: float = 0.0
    ) -> tuple[Callable[[np.ndarray], np.ndarray], bool]:
        """Return the function that solves with these rows' Hessian, and whether it is accurate.

        The matrix is factorised with its diagonal scaled to one: units of features do not matter.
        """
        return self._inverse_of(self._rows_part(rows, h, rough), rough, damping)

    def rows_part(self) -> np.ndarray:
        """Return the sum over the rows, without the ridge; sums over parts of the rows add up."""
        return self._rows_part(self.rows, self.h, rough=False)

    def _rows_part(self, rows: DenseRows | CSRRows, h: np.ndarray, rough: bool) -> np.ndarray:
        d = self.problem.shape[1]
        matrix = self.problem.xp.zeros((d + self.intercept, d + self.intercept))
        if len(h):
            single = rough and isinstance(rows, DenseRows)
            matrix[:d, :d] = cast("DenseRows", rows).rough_moments(h) if single else rows.moments(h)
        if self.intercept and len(h):
            matrix[d, :d] = matrix[:d, d] = rows.transposed_times(h)
            matrix[d, d] = h.sum()
        return matrix

    def _inverse_of(
        self, matrix: np.ndarray, rough: bool = False, damping: float = 0.0
    ) -> tuple[Callable[[np.ndarray], np.ndarray], bool]:
        """Return the function that solves with rows' part and ridge, and whether it is accurate."""
        d, xp = self.problem.shape[1], self.problem.xp
        diagonal = xp.diagonal(matrix).copy()
        diagonal[:d] += self.ridge
        if self.intercept:
            diagonal[d] += self.least
        scale = 1.0 / np.sqrt(diagonal)
        matrix *= scale
        matrix *= scale[:, None]
        places = xp.arange(len(diagonal))
        for ridge in _RIDGES:
            matrix[places, places] = 1.0 + max(ridge, damping)
            with contextlib.suppress(linalg.LinAlgError):
                inverse, smallest = _factorised(matrix)
                accurate = not rough and ridge == 0.0 and smallest >= SMALL_PIVOT
                return functools.partial(_scaled, inverse, scale), accurate
        return (lambda v: v / diagonal), False

    def _diagonal(self, wants_short_gradient: bool) -> Callable[[np.ndarray], np.ndarray]:
        diagonal = self.rows.square_sums(self.h) + self.ridge
        if wants_short_gradient:
            diagonal **= POWER_OF_DIAGONAL
        if self.intercept:
            diagonal = np.append(diagonal, self.h.sum() + self.least)
        return lambda v: v / diagonal


class SummedHessian(Hessian):
    """The Hessian of rows that are not here: the sum over them is given as a matrix."""

    def __init__(
        self, problem: Problem, matrix: np.ndarray, ridge: float | np.ndarray | None = None
    ) -> None:
        d = problem.shape[1]
        super().__init__(problem, np.diagonal(matrix)[d:], ridge=ridge)
        self.matrix = matrix

    def inverse(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that solves with the Hessian, damped if that is not accurate."""
        inverse, accurate = self._inverse_of(self.matrix.copy())
        return inverse if accurate else self.damped_inverse()

    def damped_inverse(self) -> Callable[[np.ndarray], np.ndarray]:
        return self._inverse_of(self.matrix.copy(), damping=DAMPING)[0]


def _scaled(
    inverse: Callable[[np.ndarray], np.ndarray], scale: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """Solve in coordinates in which the matrix has a unit diagonal."""
    return scale * inverse(scale * v)


def _factorised(matrix: Any) -> tuple[Callable[[np.ndarray], np.ndarray], float]:
    """Return the function that solves with a positive definite matrix, and its smallest pivot.

    Raises LinAlgError if it is not positive definite.
    """
    if isinstance(matrix, np.ndarray):
        # Call LAPACK directly: scipy's checks take longer than a small factorisation.  The
        # transpose has the same entries, and LAPACK's order.
        factor, failed = linalg.lapack.dpotrf(matrix.T, lower=0, clean=0)
        if failed:
            raise linalg.LinAlgError("the matrix is not positive definite")
        smallest = float(np.diagonal(factor).min()) ** 2
        return (lambda v: linalg.lapack.dpotrs(factor, v, lower=0)[0]), smallest
    from zerogap.cuda.algebra import factorised

    return factorised(matrix)

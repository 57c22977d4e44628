"""The Hessian of a multiclass model in twice the precision: directions along near copies, too.

Rows that are decided, columns that are nearly copies and a tiny lam leave double precision no digit
of a weak direction.  Here the sums over rows and the Cholesky factor have 30 digits, and so have
scores and dual sums before they are rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zerogap.kernels.twofold import Factor, add, class_moments, rounded, twofold
from zerogap.problem.votes import dense_rows, fix_shifts, precise_all_scores, precise_all_sums
from zerogap.solvers.interior_system import System
from zerogap.solvers.multiclass_hessian import MulticlassHessian


class TwofoldHessian(MulticlassHessian):
    """A `MulticlassHessian` whose factor has twice the digits; a ridge must be given."""

    def _inverse_without_shifts(
        self, ridge: np.ndarray, part: np.ndarray, damping: float
    ) -> tuple[Callable[[np.ndarray], np.ndarray], bool]:
        problem, (C, width) = self.problem, ridge.shape
        flat = class_moments(dense_rows(problem), problem.share, self.h)
        matrix = flat.reshape(2, C, width, C, width)
        classes, places = np.arange(C), np.arange(width)
        same_feature = (slice(None), classes[:, None, None], places, classes[:, None], places)
        shared = ridge[:, None] * part
        shared[classes, classes] = 0.0
        shared[classes, classes] = -shared.sum(axis=1)
        matrix[same_feature] = add(matrix[same_feature], twofold(-shared))
        fix_shifts(flat, C)
        factor = Factor(flat)

        def solve(v: np.ndarray) -> np.ndarray:
            self.found = factor.solve(twofold(v.ravel())).reshape(2, *v.shape)
            return rounded(self.found)

        return solve, True

    def direction(
        self, target: np.ndarray, common: np.ndarray, seen_from: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the solution, and the scores that it has before it is rounded.

        As differences from a class of each row, see `precise_all_scores`: rows with a large h show
        every digit of these.
        """
        if not hasattr(self, "solve_rounded"):
            self.solve_rounded, _ = self.factorised()
        v = self.solve_rounded(target, common)
        high, low = (precise_all_scores(self.problem, part, seen_from) for part in self.found)
        return v, high + low


class TwofoldVotes(System):
    """The equations of a step for many classes, solved in twice the precision."""

    def _scores(self, w: np.ndarray) -> np.ndarray:
        return precise_all_scores(self.problem, w, self.rows.h.argmax(axis=1))

    def _sums(self, a: np.ndarray) -> np.ndarray:
        return precise_all_sums(self.problem, a)

    def _factorise_votes(self, h: np.ndarray, ridge: np.ndarray) -> None:
        self.hessian, self.accurate = TwofoldHessian(self.problem, h, ridge), True

    def _way(self, target: list[np.ndarray], roughly: bool = False) -> Any:
        return self.hessian.direction(*target, self.rows.h.argmax(axis=1))

    def gap_of(self, w: np.ndarray, alpha: np.ndarray) -> float:
        problem, d, alpha = self.problem, self.d, self.problem.feasible(alpha)
        u = precise_all_sums(problem, alpha)[:, :d] / problem.lam
        excess = problem.row_terms(precise_all_scores(problem, w), 0.0, alpha).excess
        weights = np.ascontiguousarray(w[:, :d])
        return excess + problem.penalty_terms(weights, np.ascontiguousarray(u))[1]

"""Many classes in twice the precision: the equations of `twofold_system` for votes.

Weights are listed class by class, and then the intercepts.  Votes of a row sum to one in pairs of
doubles: the class with the largest vote takes what the others leave.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from zerogap.kernels.lattice import rounded_along
from zerogap.kernels.twofold import (
    FEW_DIGITS,
    SMALLEST_PIVOT,
    Factor,
    add,
    class_moments,
    column_sums,
    exact_sum,
    products,
    rounded,
    times,
    twofold,
)
from zerogap.problem.votes import dense_rows, fix_shifts, shift_columns
from zerogap.solvers.interior_votes import Votes
from zerogap.solvers.multiclass_hessian import bend
from zerogap.solvers.twofold_system import LARGEST_REFINEMENT, TwofoldSystem

LEAST_PRODUCT, LARGEST_PRODUCT = 0.1, 10.0  # over the goal: near enough (Gondzio, 1996)
MOST_CORRECTIONS = 4  # of one direction
CORRECTION_AIM = 0.3  # by how much a correction is to make the step longer
LEAST_CORRECTION = 0.3  # of that: a correction that gains less is dropped
# n C (d C)^2 up to which columns are made orthogonal as soon as the matrix leaves few digits, which
# takes half a second for a step, and up to which they are where it leaves none
SOON_ORTHOGONALISED, MOST_ORTHOGONALISED = 1e8, 4e8
_SCRATCH: Any = {"saved": False}
_EMPTY = np.empty(0)


class VotesTable(NamedTuple):
    """A problem of many classes, of sums over rows instead of means, with columns of size one."""

    problem: Any
    X: np.ndarray  # dense; the last column is that of the intercepts, if they are free
    scale: np.ndarray  # powers of two: weights of the problem over those of the columns of X
    ridge: np.ndarray

    @classmethod
    def of(cls, problem: Any) -> VotesTable:
        X, (weight, lam) = dense_rows(problem), problem._exact_weights
        sizes = np.sqrt(weight @ np.square(X) / weight.sum())
        columns = np.exp2(-np.round(np.log2(np.where(sizes > 0.0, sizes, 1.0))))
        inner, (C, d) = problem._with(share=weight, lam=lam), problem.weight_shape
        ridge = np.zeros((C, X.shape[1]))
        ridge[:, :d] = inner.strength * np.square(columns[:d])
        scale = np.tile(columns, (C, 1))
        return cls(inner, np.ascontiguousarray(X * columns), listed(scale, d), listed(ridge, d))

    @property
    def n_weights(self) -> int:
        """Number of weights, without intercepts."""
        return math.prod(self.problem.weight_shape)

    @property
    def columns(self) -> int:
        """Number of weights of a class."""
        return self.problem.shape[1]

    def scores(self, w: np.ndarray, seen_from: np.ndarray | None = None) -> np.ndarray:
        """Return scores as differences from one class of each row, by default the largest one."""
        found = np.stack([products(self.X, v) for v in self.by_class(w).swapaxes(0, 1)], axis=2)
        at = found[0].argmax(axis=1) if seen_from is None else seen_from
        own = np.take_along_axis(found, np.broadcast_to(at, (2, len(at)))[:, :, None], axis=2)
        return np.ascontiguousarray(rounded(add(found, -np.broadcast_to(own, found.shape))))

    def sums(self, alpha: np.ndarray) -> np.ndarray:
        """Return the weighted sums of the rows, which are zero if added over classes."""
        alpha = times(alpha, self.problem.share[:, None])
        parts = np.ascontiguousarray(np.moveaxis(alpha, 2, 0))
        sums = np.stack([column_sums(self.X, part) for part in parts], axis=1)
        return listed(apart(sums), self.columns)

    def weights(self, w: np.ndarray) -> np.ndarray:
        """Return the weights of the problem, without intercepts, as doubles."""
        return rounded(w * self.scale)[: self.n_weights].reshape(self.problem.weight_shape)

    def by_class(self, w: np.ndarray) -> np.ndarray:
        """Return what is listed as a matrix, with a row for each class."""
        C, d = self.problem.weight_shape
        of_weights = w[..., : C * d].reshape(*w.shape[:-1], C, d)
        of_intercepts = w[..., C * d :].reshape(*w.shape[:-1], C, -1)
        return np.ascontiguousarray(np.concatenate([of_weights, of_intercepts], axis=-1))


def listed(a: np.ndarray, d: int) -> np.ndarray:
    """Return a matrix of classes as one list: what belongs to weights, then to intercepts."""
    shape = (*a.shape[:-2], -1)
    return np.concatenate([a[..., :d].reshape(shape), a[..., d:].reshape(shape)], axis=-1)


def apart(sums: np.ndarray) -> np.ndarray:
    """Return pairs without their means over classes, the axis before the last one."""
    for _ in range(2):  # one over the number of classes is rounded
        total = functools.reduce(add, np.moveaxis(sums, -2, 0))
        mean = times(total, -1.0 / sums.shape[-2])
        sums = add(sums, np.broadcast_to(mean[:, None], sums.shape))
    return sums


class VotesFactor:
    """The factor of the curvature of votes and a ridge; see `MulticlassHessian.factorised`.

    Shifts of all classes change no vote, and meet the ridge alone: they are eliminated.
    """

    def __init__(self, table: VotesTable, h: np.ndarray, ridge: np.ndarray) -> None:
        self.table, ridge = table, table.by_class(ridge)
        C, width = ridge.shape
        self.whole = ridge.sum(axis=0)
        self.part = np.full(ridge.shape, 1.0 / C)
        np.divide(ridge, self.whole, out=self.part, where=self.whole > 0.0)
        flat = class_moments(table.X, table.problem.share, h)
        matrix = flat.reshape(2, C, width, C, width)
        classes, places = np.arange(C), np.arange(width)
        same_feature = (slice(None), classes[:, None, None], places, classes[:, None], places)
        shared = ridge[:, None] * self.part
        shared[classes, classes] = 0.0
        shared[classes, classes] = -shared.sum(axis=1)
        matrix[same_feature] = add(matrix[same_feature], twofold(-shared))
        fix_shifts(flat, C)

        def columns() -> np.ndarray:
            of_ridge = np.zeros((2, C, width, width, C))
            without_shifts = contrasts(ridge.T, np.ones(width)).transpose(0, 3, 1, 2)
            of_ridge[:, :, places, places, 1:] = without_shifts
            shifts = shift_columns(np.diagonal(flat[0]).reshape(C, width))
            of_ridge[0, :, places, places, 0] = shifts.T
            return np.concatenate(
                [columns_of_rows(table, h), of_ridge.reshape(2, C * width, -1)], axis=2
            )

        self.factor = factor_of(flat, columns, len(h) * C)

    def solve(self, target: np.ndarray) -> np.ndarray:
        """Return the solution for a right-hand side."""
        target = self.table.by_class(target)
        common = functools.reduce(add, np.moveaxis(target, 1, 0))
        target = add(target, times(np.broadcast_to(common[:, None], target.shape), -self.part))
        v = self.factor.solve(target.reshape(2, -1)).reshape(target.shape)
        mean = functools.reduce(add, np.moveaxis(times(v, self.part), 1, 0))
        with np.errstate(divide="ignore"):
            per_ridge = np.where(self.whole > 0.0, 1.0 / self.whole, 0.0)
        shift = add(times(common, per_ridge), -mean)
        found = add(v, np.broadcast_to(shift[:, None], v.shape))
        return listed(found, self.table.columns)


def factor_of(matrix: np.ndarray, columns: Callable[[], np.ndarray], rows: int) -> Factor:
    """Return the factor of a matrix, from its columns if these nearly cancel and are few.

    `columns` returns them, given as rows; each has about so many entries as `rows` says.
    """
    work = rows * matrix.shape[1] ** 2
    factor = Factor(matrix, FEW_DIGITS if work <= SOON_ORTHOGONALISED else SMALLEST_PIVOT)
    if not factor.complete and work <= MOST_ORTHOGONALISED:
        factor.orthogonalise(columns())
    return factor


def columns_of_rows(table: VotesTable, h: np.ndarray) -> np.ndarray:
    """Return columns, given as rows and class by class, with the inner products of the rows."""
    (n, C), width = h.shape, table.X.shape[1]
    found = contrasts(h, table.problem.share).transpose(0, 3, 1, 2)[:, :, None]
    found = np.ascontiguousarray(np.broadcast_to(found, (2, C, width, n, C - 1)))
    return times(found, table.X.T[:, :, None]).reshape(2, C * width, -1)


def contrasts(h: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return vectors v_k with sum_k v_k v_k' = share (diag(h) - h h' / sum(h)), for rows of h.

    They are what elimination leaves of one class after another.  Each sums to zero in pairs, and
    nothing cancels on the way, as small h go first.  The axes are rows, vectors and classes.
    """
    n, C = h.shape
    order = np.argsort(h, axis=1, kind="stable")
    h = np.take_along_axis(h, order, axis=1)
    rest = np.cumsum(h[:, ::-1], axis=1)[:, ::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.sqrt(h[:, :-1] / rest[:, :-1]) / np.sqrt(rest[:, 1:]) * np.sqrt(share)[:, None]
    found = np.zeros((2, n, C - 1, C))
    found[0] = np.where(np.isfinite(size), size, 0.0)[:, :, None] * -h[:, None]
    found[0][:, np.arange(C) <= np.arange(C - 1)[:, None]] = 0.0
    own = -functools.reduce(add, np.moveaxis(found, 3, 0))
    found[:, :, np.arange(C - 1), np.arange(C - 1)] = own
    places = np.argsort(order, axis=1)[None, :, None]
    return np.take_along_axis(found, np.broadcast_to(places, found.shape), axis=3)


@dataclass
class TwofoldVotes(Votes):
    """Votes in pairs; see `interior_votes.Votes`."""

    p_low: np.ndarray = field(default_factory=lambda: _EMPTY)

    @functools.cached_property
    def heat(self) -> np.ndarray:
        """One: where votes are the same for all rows at first, so are their products."""
        return np.ones(len(self.p))

    @property
    def products(self) -> float:
        return self.p.shape[1] * float(self.problem.share.sum())

    def settle(self, z: np.ndarray, mu: float) -> None:
        super().settle(z, mu)
        self._complete(twofold(self.p))

    def _complete(self, votes: np.ndarray) -> None:
        self.p, self.p_low = completed(votes)

    @property
    def _votes(self) -> np.ndarray:
        return np.stack([self.p, self.p_low])

    @property
    def alpha(self) -> np.ndarray:
        return duals(self.problem.y, self._votes)

    def weigh(self) -> float:
        total = super().weigh()
        self.top = self.h.argmax(axis=1)
        return total

    def stand(self) -> None:
        super().stand()
        self.rest = np.zeros_like(self.p)

    def aim(self, z: np.ndarray, goal: float) -> np.ndarray:
        """Return by how much dual variables change towards a goal if scores stay."""
        super().aim(z, goal)
        return rounded(duals(self.problem.y, twofold(self.q)))

    def aim_between(self, z: np.ndarray, goal: float, step: float) -> np.ndarray:
        """Aim again, so that no product of a longer step is far above or below the goal."""
        dp, dr = self.change
        reached = (self.p + step * dp) * (self.r + step * dr)
        lack = np.clip(reached, LEAST_PRODUCT * goal, LARGEST_PRODUCT * goal) - reached
        self.stand()
        return self.aim(z, self.goal + np.maximum(lack, -LARGEST_PRODUCT * goal))

    def turn(self, dz: np.ndarray) -> float:
        self.rest = np.zeros_like(self.p)
        return super().turn(dz)

    def refine(self, dz: np.ndarray) -> None:
        """Add to the direction what scores that change a little more do."""
        self.rest += responses(self.problem, self.h, dz)

    def landing(self) -> np.ndarray:
        return duals(self.problem.y, completed(self._moved(1.0)))

    def _moved(self, step: float) -> np.ndarray:
        return add(self._votes, times(exact_sum(self.change[0], self.rest), step))

    def move(self, step: float) -> None:
        self._complete(self._moved(step))
        self.r += step * self.change[1]

    def is_near(self) -> bool:
        """Tell whether the last refinements have moved votes a little at most."""
        return bool((np.abs(self.rest) <= LARGEST_REFINEMENT * self.p).all())


def responses(problem: Any, h: np.ndarray, dz: np.ndarray) -> np.ndarray:
    """Return how votes answer to a change of the scores; rows without weight stay."""
    moved = dz.copy()
    problem.over_rows(bend, 1.0 * (problem.share > 0.0), h, moved)
    return moved


def completed(votes: np.ndarray) -> np.ndarray:
    """Return votes that sum to one: the largest one of each row is what the others leave."""
    top = votes[0].argmax(axis=1)
    others, places = votes.copy(), np.arange(len(top))
    others[:, places, top] = 0.0
    total = functools.reduce(add, np.moveaxis(others, 2, 0))
    others[:, places, top] = add(twofold(np.ones(len(top))), -total)
    return others


def duals(y: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """Return e_y - votes, whose own class has the sum of the other votes."""
    alpha, places = -votes, np.arange(len(y))
    alpha[:, places, y] = 0.0
    alpha[:, places, y] = -functools.reduce(add, np.moveaxis(alpha, 2, 0))
    return alpha


class VotesSystem(TwofoldSystem):
    """The equations of a step for many classes."""

    table: Any

    def _inverse(self, least: float = 0.0) -> Any:
        ridge = self.ridge
        if least:
            h = self.rows.h * (1.0 - self.rows.h / self.rows.h.sum(axis=1, keepdims=True))
            curvature = (self.table.problem.share[:, None] * h).T @ np.square(self.table.X)
            ridge = np.maximum(ridge, least * (listed(curvature, self.table.columns) + ridge))
        return VotesFactor(self.table, self.rows.h, ridge)

    def turn(self, goal: float, exact: bool = False) -> tuple[np.ndarray, float]:
        """Find the direction towards a mu; return its weights and longest step.

        It is corrected as long as that makes the step much longer.

        Reference: J. Gondzio, "Multiple centrality corrections in a primal-dual method for linear
        programming", Computational Optimization and Applications 6, 1996.
        """
        dw, longest = super().turn(goal, exact)
        for _ in range(MOST_CORRECTIONS if exact else 0):
            if longest >= 1.0:
                break
            before = (dw, longest, self.rows.change, self.rows.rest)
            of_units = None
            if self.coordinates is not None:
                of_units = self.coordinates.change, self.coordinates.rest
            step = min(1.0, longest + CORRECTION_AIM)
            changes = [self.rows.aim_between(self.z, goal, step)]
            if self.coordinates is not None:
                self.coordinates.stand()
                changes.append(self.coordinates.ahead)
            dw, longest = self._direction(changes, goal, exact)
            if longest < before[1] + LEAST_CORRECTION * (step - before[1]):
                dw, longest, self.rows.change, self.rows.rest = before
                if of_units is not None:
                    self.coordinates.change, self.coordinates.rest = of_units
                break
        return dw, longest

    def as_doubles(self, w: np.ndarray) -> np.ndarray:
        """Return doubles near w that are almost as good.

        Those that add the most to scores are rounded first.  Intercepts on shifted columns keep
        twice the precision.
        """
        table, count, w = self.table, self.table.n_weights, w.copy()
        if count < w.shape[1]:  # what intercepts have in common is as large as it was at first
            w[:, count:] = apart(w[:, count:, None])[:, :, 0]
        free = w.shape[1] - count if len(table.problem.origin) else 0
        matrix = self._hessian()
        sizes = np.abs(w[0]) * np.sqrt(np.diagonal(matrix[0]))
        sizes[len(sizes) - free :] = -1.0
        order = np.argsort(sizes, kind="stable")
        order = order[sizes[order] != 0.0]

        def columns() -> np.ndarray:
            places = listed(
                np.arange(len(sizes)).reshape(table.by_class(sizes).shape), table.columns
            )
            of_rows = columns_of_rows(table, self.rows.h)[:, places]
            whole = np.concatenate([of_rows, twofold(np.diag(np.sqrt(self.ridge)))], axis=2)
            return whole[:, order]

        matrix = np.ascontiguousarray(matrix[:, order[:, None], order])
        factor = factor_of(matrix, columns, self.rows.h.size)
        found, plain = np.zeros_like(w), twofold(rounded(w))
        plain[:, len(sizes) - free :] = w[:, len(sizes) - free :]
        found[:, order] = rounded_along(np.ascontiguousarray(w[:, order]), factor, free)
        return found if self.value(found) < self.value(plain) else plain

    def _hessian(self) -> np.ndarray:
        """Return the whole Hessian, in the order in which weights are listed."""
        table, ridge = self.table, self.table.by_class(self.ridge)
        flat, places = (
            class_moments(table.X, table.problem.share, self.rows.h),
            np.arange(ridge.size),
        )
        flat[:, places, places] = add(flat[:, places, places], twofold(ridge.ravel()))
        whole = np.tril(flat) + np.tril(flat, -1).swapaxes(1, 2)
        order = listed(places.reshape(ridge.shape), table.columns)
        return whole[:, order[:, None], order]

    def _gap_parts(self, w: np.ndarray, alpha: np.ndarray) -> tuple[float, float]:
        problem, z, sums = self.table.problem, self.table.scores(w), self._sums(alpha)
        count = self.table.n_weights
        if not problem._votes(rounded(alpha)).min() >= 0.0:
            return math.inf, 0.0
        w = self.table.weights(w)
        u = rounded(sums)[:count] / (self.table.scale[:count] * problem.lam)
        terms = problem.row_terms(z, 0.0, rounded(alpha))
        rest = problem.penalty_terms(w, u)[1]
        if problem.fit_intercept and terms.mass > 0.0:
            rest += 2.0 * float(np.abs(sums[0, count:]).sum()) / terms.mass * terms.value
        return terms.excess, rest

    def _scores(self, w: np.ndarray) -> list[np.ndarray]:
        z = [self.table.scores(w, self.rows.top)]
        return z if self.coordinates is None else [*z, self._units(w)]

    def _sums(self, alpha: np.ndarray) -> np.ndarray:
        return self.table.sums(alpha)


def are_feasible(problem: Any, alpha: np.ndarray, rest: np.ndarray) -> bool:
    """Tell whether alpha + rest are votes, except for their own class, which has what is left."""
    total, rounded_away = exact_sum(alpha, rest)
    votes, places = np.stack([-total, -rounded_away]), np.arange(len(alpha))
    votes[:, places, problem.y] = 0.0
    own = add(twofold(np.ones(len(alpha))), -functools.reduce(add, np.moveaxis(votes, 2, 0)))
    votes[:, places, problem.y] = own
    return bool(((votes[0] > 0.0) | ((votes[0] == 0.0) & (votes[1] >= 0.0))).all())

"""The equations of an interior point step in twice the precision, for one score.

Scores, the weights and the dual sums cancel, so they are pairs of doubles, and so are the dual
variables.  What a single row or weight does to first order needs no more than a double: what is
rounded there shows in the sums, and is solved for again.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from zerogap.kernels.lattice import rounded_along
from zerogap.kernels.twofold import (
    Factor,
    add,
    column_sums,
    exact_sum,
    factorised,
    products,
    rounded,
    times,
    twofold,
)
from zerogap.problem.row_sums import set_domain
from zerogap.solvers.interior_parts import Lines
from zerogap.solvers.line_search import flatter_step
from zerogap.solvers.responses import respond, two_like

REFINEMENTS = 4  # of a direction, at most: each gains some ten digits
NEGLIGIBLE_GAIN = 1e-20  # of mu: a direction that can gain less is refined no further
CLOSING_SOLUTIONS = 2  # one after the other: the second has the digits that the first lacks
# Curvature, of a column's own, that is at least assumed when sums are to belong to weights: along
# copies of columns an inverse of less makes more of rounding than it mends
LEAST_CURVATURES = (1e-40, 1e-36, 1e-32)
LARGEST_REFINEMENT = 0.1  # of a dual variable's distance to an end: larger ones are refused
_SCRATCH: Any = {"saved": False}
_EMPTY = np.empty(0)


class Table(NamedTuple):
    """A problem of sums over rows instead of means, with columns of size one."""

    problem: Any  # scores of residual losses are seen from the targets
    X: np.ndarray  # dense; the last column is that of the intercept, if it is free
    scale: np.ndarray  # powers of two: weights of the problem over those of the columns of X
    aim: np.ndarray  # targets that are subtracted from scores
    ridge: np.ndarray

    @classmethod
    def of(cls, problem: Any) -> Table:
        X = problem.rows.dense()
        if problem.fit_intercept:
            X = np.column_stack([X, np.ones(len(X))])
        weight, lam = problem._exact_weights
        sizes = np.sqrt(weight @ np.square(X) / weight.sum())
        scale = np.exp2(-np.round(np.log2(np.where(sizes > 0.0, sizes, 1.0))))
        residual = problem.loss.task == "regression"
        inner = problem._with(share=weight, lam=lam)
        inner = inner._with(y=np.zeros_like(problem.y)) if residual else inner
        ridge = inner.strength * np.square(scale)
        if problem.fit_intercept:
            ridge[-1] = 0.0
        aim = problem.y if residual else np.zeros(len(X))
        return cls(inner, np.ascontiguousarray(X * scale), scale, aim, ridge)

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Return the scores, seen from the targets."""
        return rounded(add(products(self.X, w), twofold(-self.aim)))

    @property
    def n_weights(self) -> int:
        """Number of weights, without the intercept."""
        return self.problem.shape[1]

    def weights(self, w: np.ndarray) -> np.ndarray:
        """Return the weights of the problem, without the intercept, as doubles."""
        return rounded(w * self.scale)[: self.problem.shape[1]]


@dataclass
class TwofoldLines(Lines):
    """Units of a loss made of lines, whose dual variables have twice the precision."""

    t_low: np.ndarray = field(default_factory=lambda: _EMPTY)
    s_low: np.ndarray = field(default_factory=lambda: _EMPTY)
    ends: tuple[np.ndarray, np.ndarray] | None = field(default=None, metadata=_SCRATCH)

    @classmethod
    def of_rows(cls, problem: Any, z: np.ndarray) -> TwofoldLines:
        lines = cast("TwofoldLines", super().of_rows(problem, z))
        if lines.length.shape[1] == 1:  # low + length may be rounded to what is beyond the domain
            low, high = np.empty((2, len(z)))
            problem.over_rows(set_domain, problem.loss, problem.y, low, high)
            begin, end = cast("tuple[np.ndarray, np.ndarray]", lines.ends)
            lines.ends = begin, np.minimum(end, high[:, None])
        lines._complete()
        return lines

    def settle(self, z: np.ndarray, mu: float) -> None:
        super().settle(z, mu)
        self._complete()

    def _complete(self) -> None:
        """Set low parts: the smaller of t and s has its digits, the other is what it leaves."""
        if self.ends is None:
            begin = self.low[:, None]
            if self.length.shape[1] == 2:  # with zero between them
                begin = np.column_stack([self.low, 0.0 * self.low])
            self.ends = begin, begin + self.length
        length = exact_sum(self.ends[1], -self.ends[0])
        t, s = add(length, -twofold(self.s)), add(length, -twofold(self.t))
        near = self.t < self.s
        self.s, self.s_low = np.where(near, s, twofold(self.s))
        self.t, self.t_low = np.where(near, twofold(self.t), t)

    @property
    def alpha(self) -> np.ndarray:
        low, high = cast("tuple[np.ndarray, np.ndarray]", self.ends)
        t, s = np.stack([self.t, self.t_low]), np.stack([self.s, self.s_low])
        parts = np.where(self.t < self.s, add(twofold(low), t), add(twofold(high), -s))
        return _summed(parts)

    def aim(self, z: np.ndarray, goal: float) -> np.ndarray:
        """Return by how much dual variables change towards a goal if scores stay."""
        self.a = np.zeros(len(z))
        return super().aim(z, goal)

    def turn(self, dz: np.ndarray) -> float:
        self.rest = np.zeros_like(self.t)
        return super().turn(dz)

    def stand(self) -> None:
        super().stand()
        self.rest = np.zeros_like(self.t)

    def is_near(self) -> bool:
        """Tell whether the last refinements have moved dual variables a little at most."""
        return bool((np.abs(self.rest) <= LARGEST_REFINEMENT * np.minimum(self.t, self.s)).all())

    def refine(self, dz: np.ndarray) -> None:
        """Add to the direction what scores that change a little more do."""
        moved = np.where(self.share > 0.0, dz, 0.0)
        self.rest -= self.theta * moved[:, None]

    def landing(self) -> np.ndarray:
        change = exact_sum(self.change[0], self.rest)
        return add(self.alpha, _summed(change))

    def move(self, step: float) -> None:
        change = times(exact_sum(self.change[0], self.rest), step)
        self.t, self.t_low = add(np.stack([self.t, self.t_low]), change)
        self.s, self.s_low = add(np.stack([self.s, self.s_low]), -change)
        self.r += step * self.change[1]
        self.v += step * self.change[2]


@dataclass
class TwofoldCurves:
    """Rows of a smooth loss, whose dual variables follow from their scores."""

    problem: Any = field(metadata=_SCRATCH)
    a: np.ndarray = field(default_factory=lambda: _EMPTY)
    h: np.ndarray = field(default_factory=lambda: _EMPTY)
    products: float = 0.0  # nothing goes to zero
    heat: float = 1.0

    def settle(self, z: np.ndarray, mu: float) -> None:
        """Set the dual variables that belong to scores, and how they answer to them."""
        self.a, self.h = two_like(self.problem, z)
        respond(self.problem, z, z, 0.0, self.a, self.h, self.a, 0.0)

    @property
    def alpha(self) -> np.ndarray:
        return twofold(self.a)

    def weigh(self) -> float:
        return 0.0

    def aim(self, z: np.ndarray, goal: float) -> np.ndarray:
        return np.zeros_like(z)

    def turn(self, dz: np.ndarray) -> float:
        self.change = np.zeros((2, len(dz)))
        self.refine(dz)
        return 0.0

    def refine(self, dz: np.ndarray) -> None:
        share = np.maximum(self.problem.share, 1e-300)
        self.change = add(self.change, twofold(-self.h / share * dz))

    def landing(self) -> np.ndarray:
        return add(self.alpha, self.change)


def _summed(parts: np.ndarray) -> np.ndarray:
    """Return the sums over the segments of each row."""
    return functools.reduce(add, np.moveaxis(parts, 2, 0))


class TwofoldSystem:
    """What `interior_system.System` is, in twice the precision."""

    def __init__(self, table: Table, w: np.ndarray, rows: Any, coordinates: Any) -> None:
        self.table, self.w, self.rows, self.coordinates = table, w, rows, coordinates
        self.parts = [rows] if coordinates is None else [rows, coordinates]
        self.products = sum(part.products for part in self.parts)
        self.mu = sum(part.weigh() for part in self.parts) / max(self.products, 1e-300)
        self.d, self.l1 = table.n_weights, np.zeros(len(table.scale))
        self.total_weight = float(table.problem.share.sum())
        if coordinates is not None:
            # scores of units are such that each has the weight of a row
            self.l1[: self.d] = table.problem.lam * table.problem.l1_ratio * table.scale[: self.d]
            self.factor = self.l1[: self.d] / coordinates.share
        self.z = table.scores(w)
        self._factorise()

    def _factorise(self) -> None:
        self.ridge = self.table.ridge.copy()
        if self.coordinates is not None:
            self.ridge[: self.d] += self.factor * self.factor * self.coordinates.h
        self.inverse = self._inverse()

    def _inverse(self, least: float = 0.0) -> Factor:
        """Return the inverse of the Hessian, with a least curvature of each column."""
        own = self.rows.h @ np.square(self.table.X) + self.ridge
        return factorised(self.table.X, self.rows.h, np.maximum(self.ridge, least * own))

    def objective(self) -> float:
        """Return P, times the sum of the weights."""
        return self.table.problem.value_at(self.z, self.table.weights(self.w))

    def turn(self, goal: float, exact: bool = False) -> tuple[np.ndarray, float]:
        """Find the direction towards a mu; return its weights and longest step."""
        seen = [self.z] if self.coordinates is None else [self.z, self._units(self.w)]
        changes = [part.aim(z, goal) for part, z in zip(self.parts, seen, strict=True)]
        return self._direction(changes, goal, exact)

    def _direction(
        self, changes: list[np.ndarray], goal: float, exact: bool
    ) -> tuple[np.ndarray, float]:
        """Return what dual variables that change so much, if scores stay, lead to."""
        duals = [add(p.alpha, twofold(c)) for p, c in zip(self.parts, changes, strict=True)]
        dw = self.inverse.solve(self._residual(self.w, duals))
        fastest = max(part.turn(z) for part, z in zip(self.parts, self._scores(dw), strict=True))
        left = math.inf
        for _ in range(REFINEMENTS if exact else 0):
            rest = self._residual(add(self.w, dw), [part.landing() for part in self.parts])
            more = self.inverse.solve(rest)
            gain = float(rest[0] @ more[0])
            if not gain < 0.5 * left:
                break
            left, dw = gain, add(dw, more)
            for part, z in zip(self.parts, self._scores(more), strict=True):
                part.refine(z)
            if gain <= NEGLIGIBLE_GAIN * goal:
                break
        return dw, 1.0 / fastest if fastest > 0.0 else math.inf

    def move(self, step: float, dw: np.ndarray) -> None:
        """Make a step."""
        self.w[:] = add(self.w, times(dw, step))
        for part in self.parts:
            part.move(step)

    def point(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and dual variables whose sums belong to them exactly.

        Unless dual variables would have to move more than a little for that.
        """
        found = self._closed(self.inverse)
        rows, rest = self._gap_parts(*found)
        for least in LEAST_CURVATURES:
            if rest <= rows:
                break
            trial = self._closed(self._inverse(least))
            parts = self._gap_parts(*trial)
            if sum(parts) < rows + rest:
                found, (rows, rest) = trial, parts
        return found

    def _closed(self, inverse: Factor) -> tuple[np.ndarray, np.ndarray]:
        w = self.w
        for part in self.parts:
            part.stand()
        for _ in range(CLOSING_SOLUTIONS):
            dw = inverse.solve(self._residual(w, [part.landing() for part in self.parts]))
            w = add(w, dw)
            for part, dz in zip(self.parts, self._scores(dw), strict=True):
                part.refine(dz)
        if all(part.is_near() for part in self.parts):
            return w, self.rows.landing()
        return self.w.copy(), self.rows.alpha

    def recentre(self, mu: float) -> float:
        """Make a Newton step to the point of the central path with a given mu."""
        self.mu = mu
        self._settle(self.w)
        for part in self.parts:
            part.weigh()
        self._factorise()
        target = self._residual(self.w, [part.alpha for part in self.parts])
        dw = self.inverse.solve(target)
        fall = float(target[0] @ dw[0])
        if not fall > 0.0:
            return fall

        def slope(step: float) -> float:
            """Return the derivative along the step, over that at its beginning."""
            w = add(self.w, times(dw, step))
            self._settle(w)
            rest = self._residual(w, [part.alpha for part in self.parts])
            return float(rest[0] @ dw[0]) / fall

        step = flatter_step(slope)
        self.w[:] = add(self.w, times(dw, step))
        return fall / (mu * float((self.table.problem.share * self.rows.heat).max()))

    def as_doubles(self, w: np.ndarray) -> np.ndarray:
        """Return doubles near w that are almost as good.

        Those that add the most to scores are rounded first.  An intercept on shifted columns keeps
        twice the precision: the one of the given columns is rounded instead.
        """
        X, h, problem = self.table.X, self.rows.h, self.table.problem
        sizes = np.abs(w[0]) * np.sqrt(h @ np.square(X) + self.ridge)
        free = int(problem.fit_intercept and len(problem.origin) > 0)
        sizes[len(sizes) - free :] = -1.0
        order = np.argsort(sizes, kind="stable")
        order = order[sizes[order] != 0.0]
        found, plain = np.zeros_like(w), twofold(rounded(w))
        plain[:, len(sizes) - free :] = w[:, len(sizes) - free :]
        factor = factorised(np.ascontiguousarray(X[:, order]), h, self.ridge[order])
        found[:, order] = rounded_along(np.ascontiguousarray(w[:, order]), factor, free)
        return found if self.value(found) < self.value(plain) else plain

    def value(self, w: np.ndarray) -> float:
        """Return what `objective` does for other weights."""
        return self.table.problem.value_at(self.table.scores(w), self.table.weights(w))

    def gap_of(self, w: np.ndarray, alpha: np.ndarray) -> float:
        """Return an estimate of the gap of weights and dual variables."""
        gap = sum(self._gap_parts(w, alpha))
        return gap if math.isfinite(gap) else math.inf

    def _gap_parts(self, w: np.ndarray, alpha: np.ndarray) -> tuple[float, float]:
        """Return what rows add to the gap, and what sums add that do not belong to the weights."""
        problem, z, sums = self.table.problem, self.table.scores(w), self._sums(alpha)
        w = self.table.weights(w)
        u = rounded(sums)[: self.d] / (self.table.scale[: self.d] * problem.lam)
        terms = problem.row_terms(z, 0.0, rounded(alpha))
        rest = problem.penalty_terms(w, u)[1]
        if problem.fit_intercept and terms.mass > 0.0:  # the heavier sign is scaled down
            rest += 2.0 * abs(float(sums[0, -1])) / terms.mass * terms.value
        return terms.excess, rest

    def _settle(self, w: np.ndarray) -> None:
        self.rows.settle(self.table.scores(w), self.mu)
        if self.coordinates is not None:
            self.coordinates.settle(self._units(w), self.mu)

    def _units(self, w: np.ndarray) -> np.ndarray:
        """Return the scores of the units of an L1 penalty."""
        return self.factor * rounded(w)[: self.d]

    def _scores(self, w: np.ndarray) -> list[np.ndarray]:
        z = [rounded(products(self.table.X, w))]
        return z if self.coordinates is None else [*z, self._units(w)]

    def _sums(self, alpha: np.ndarray) -> np.ndarray:
        return column_sums(self.table.X, times(alpha, self.table.problem.share))

    def _residual(self, w: np.ndarray, duals: list[np.ndarray]) -> np.ndarray:
        """Return by how much weights and dual variables miss the equations between them."""
        rest = add(self._sums(duals[0]), -times(w, self.table.ridge))
        for c in duals[1:]:
            part = np.zeros_like(rest)
            part[:, : self.d] = times(c, self.l1[: self.d])
            rest = add(rest, part)
        return rest


def is_feasible(problem: Any, alpha: np.ndarray, rest: np.ndarray) -> bool:
    """Tell whether alpha + rest is within the loss' domain, without any rounding."""
    low, high = np.empty_like(alpha), np.empty_like(alpha)
    problem.over_rows(set_domain, problem.loss, problem.y, low, high)
    total, rounded_away = exact_sum(alpha, rest)
    above = (total > low) | ((total == low) & (rounded_away >= 0.0))
    below = (total < high) | ((total == high) & (rounded_away <= 0.0))
    return bool((above & below).all())

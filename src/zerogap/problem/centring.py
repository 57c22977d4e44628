"""Shift columns and targets that are far from zero; the intercept undoes the shift.

With a free intercept b, shifting column j by m_j changes b alone:
x.w + b = (x - m).w + (b + m.w).  The same holds for the targets of a loss of residuals.  Columns
far from zero cost digits and passes: the years 1990 to 2020 are 70 times as large as they differ.
So solvers and certificates use shifted columns, and the final model gets the intercept of the
given ones.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from zerogap.kernels.lattice import rounded_along
from zerogap.kernels.precise import precise_scores
from zerogap.kernels.twofold import Factor, add, factorised, times
from zerogap.problem.gap import UNIT, gamma, size_of
from zerogap.rows import DenseRows

MOST_UNITS = 10_000  # units in the last place by which a weight moves: rounds b to 1e-4 of its unit
NUDGED_COLUMNS = 8  # columns that are tried: those with the largest terms m_j w_j of b
NUDGES = 3  # weights that are moved, one after another


class Centred(NamedTuple):
    """A problem with columns and targets near zero, and the shift that led to it."""

    problem: Any
    origin: np.ndarray  # what was subtracted from each column; empty if nothing was
    target: float  # what was subtracted from the targets

    def inward(self, w: Any, b: Any) -> Any:
        """Return the intercept that belongs to (w, b) on the shifted data."""
        if not self:
            return b
        host = self.problem.host
        return self.problem.place(host(b) + self.origin @ host(w).T - self.target)

    def outward(self, w: Any, b: Any) -> Any:
        """Return the intercept on the data as given of a model (w, b) of the shifted data."""
        return b - self.origin @ w.T + self.target if self else b

    def doubt(self, w: Any, b: Any) -> float:
        """Return how far the rounded intercept of `outward` may be from the one that was meant."""
        sizes = np.abs(self.origin) @ np.abs(w).T + np.abs(b) + abs(self.target)
        return gamma(len(self.origin) + 4) * math.sqrt(float(np.square(sizes).sum()))

    def nudged(self, w: np.ndarray, b: Any, sizes: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return (w, b) of the shifted data on the data as given, with little rounding of b.

        A few weights are moved by units in their last place, such that b - m.w is almost a double;
        only as far as this moves scores less than rounding b would.  `sizes` are those of the
        shifted columns.
        """
        moved, found = np.atleast_2d(w).copy(), []
        for v, c in zip(moved, np.atleast_1d(b), strict=True):
            for _ in range(NUDGES):
                high, low = _pair(self.origin, -v, float(c), -self.target)
                j, units = _best_nudge(self.origin, v, sizes, math.ulp(high), low)
                if not units:
                    break
                v[j] += units * math.ulp(v[j])
            found.append(_pair(self.origin, -v, float(c), -self.target)[0])
        return moved.reshape(w.shape), np.array(found) if np.ndim(b) else found[0]

    def aligned(self, w: np.ndarray, b: Any, b_low: Any) -> tuple[np.ndarray, Any]:
        """Return what `nudged` does, with all weights of a class at once: scores change less.

        The intercept is b + b_low, of twice the precision.  It is rounded first, and weights move
        with it, see `zerogap.kernels.lattice.rounded_along`.
        """
        problem = self.problem
        X = np.column_stack([problem.rows.dense(), np.ones(problem.shape[0])])
        ridge = np.append(np.full(problem.shape[1], problem.strength), 0.0)
        columns = factorised(np.ascontiguousarray(X), problem.share, ridge).columns()
        intercepts = np.atleast_1d(b)
        low = np.broadcast_to(b_low, intercepts.shape)
        models = zip(np.atleast_2d(w), intercepts, low, strict=True)
        found = [self._aligned(columns, v, float(c), float(rest)) for v, c, rest in models]
        weights, rounded = (np.array(part) for part in zip(*found, strict=True))
        return weights.reshape(w.shape), rounded if np.ndim(b) else float(rounded[0])

    def _aligned(
        self, columns: np.ndarray, w: np.ndarray, b: float, b_low: float
    ) -> tuple[np.ndarray, float]:
        """Return what `aligned` does for one class; `columns` have the inner products of X."""
        d, used = len(w), w != 0.0
        of_intercept = np.broadcast_to(columns[:, -1:], (2, d, d + 1))
        moved = add(columns[:, :d], times(of_intercept, self.origin[:, None]))
        sizes = np.abs(w) * np.sqrt(np.square(moved[0]).sum(axis=1))
        order = np.argsort(sizes, kind="stable")
        order = order[used[order]]
        high, low = _pair(self.origin, -w, b, -self.target)
        meant = np.stack([np.append(w[order], high), np.append(np.zeros(len(order)), low + b_low)])
        factor = Factor.of_columns(np.concatenate([moved[:, order], columns[:, -1:]], axis=1))
        found, v = rounded_along(meant, factor, 0)[0], w.copy()
        v[order] = found[:-1]
        return v, float(found[-1])

    def precisely_inward(self, w: Any, b: Any) -> tuple[Any, float]:
        """Return `inward` rounded once, and how far it may be off."""
        inner, low, off = self.pair_inward(w, b)
        return inner, off + size_of(np.atleast_1d(low))

    def pair_inward(self, w: Any, b: Any) -> tuple[Any, Any, float]:
        """Return `inward` in twice the precision, as two doubles, and how far it may be off."""
        if not self:
            return b, 0.0 * b, 0.0
        models = zip(np.atleast_2d(w), np.atleast_1d(b), strict=True)
        pairs = np.array([_pair(self.origin, v, float(c), self.target) for v, c in models])
        high, low = pairs.T if np.ndim(b) else map(float, pairs[0])
        off = 2.0 * UNIT * size_of(pairs[:, 1]) + gamma(len(self.origin) + 4) * self.doubt(w, b)
        return high, low, off

    def __bool__(self) -> bool:
        return len(self.origin) > 0


def _pair(origin: np.ndarray, w: np.ndarray, b: float, aim: float) -> tuple[float, float]:
    """Return origin.w + b - aim as the sum of two doubles."""
    row, weights = DenseRows(np.append(origin, 1.0)[None, :]), np.append(w, b)
    high = precise_scores(row, weights, 0.0, np.array([aim]))[0]
    return high, precise_scores(row, weights, -high, np.array([aim]))[0]


def _best_nudge(
    origin: np.ndarray, w: np.ndarray, sizes: np.ndarray, grid: float, low: float
) -> tuple[int, float]:
    """Return which weight to move by how many units for an intercept near a multiple of `grid`."""
    every = np.arange(-MOST_UNITS, MOST_UNITS + 1.0)
    best, place = abs(low), (0, 0.0)
    for j in np.argsort(-np.abs(origin * w))[:NUDGED_COLUMNS]:
        unit = math.ulp(w[j])
        most = min(best / max(unit * sizes[j], 1e-300), MOST_UNITS)  # more cost more than they save
        steps = every[MOST_UNITS - int(most) : MOST_UNITS + int(most) + 1]
        rest = low - steps * math.fmod(unit * origin[j], grid)
        rest -= grid * np.round(rest / grid)
        cost = np.abs(rest) + np.abs(steps) * unit * sizes[j]
        k = int(np.argmin(cost))
        if cost[k] < best:
            best, place = float(cost[k]), (int(j), float(steps[k]))
    return place


def centred(problem: Any) -> Centred:
    """Return the problem on shifted data if that is easier and changes b alone, else as it is.

    Parameters
    ----------
    problem : Problem or StreamedProblem
        Rows in a store are shifted when they are read.

    Examples
    --------
    >>> import zerogap as zg
    >>> given = zg.Problem([[2001.0], [2002.0]], [-1, 1], "hinge", fit_intercept=True)
    >>> shifted = centred(given)
    >>> shifted.origin, shifted.problem.rows.X.ravel()
    (array([2001.5]), array([-0.5,  0.5]))
    """
    nothing = Centred(problem, np.empty(0), 0.0)
    if not problem.fit_intercept:
        return nothing
    moved, origin, target = problem.shifted()
    if not len(origin) and not target:
        return nothing
    return Centred(moved, origin, target)

"""Dual variables in twice the precision: the corrections that make them belong to given weights.

A double of about 0.3 is exact to 3e-17.  In a column of values around 1e12 such errors move the
dual sum u(a) by 1e-5 C, and the gap by the square of that.  No double is nearer, but the bound D
holds for all real numbers.  So a small `rest` is computed with u(a + rest) = the u of w and
sum_i s_i (a_i + rest_i) = 0, and the certificate is that of a + rest.

Every dual variable may move in proportion to its distance from the ends of its domain, so that
a + rest is feasible if a is.  The smallest such moves solve a least-squares problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from zerogap.problem.votes import LARGEST_MOVE, ROUNDS, refinement_of_votes

MOST_WORK = 3e8  # multiplications of a least-squares problem: half a second
LEAST_MOVES, MOST_MOVES = 2, 8  # dual variables that may move, per equation
# Weight of the equations for sums that must be zero, over those for w: one-hot columns repeat them,
# and these are only as exact as w is
BALANCE = 1e6
SMALLEST_PIVOT = 1e-13  # pivot below which it is rounding; equations have length one


class Moves(NamedTuple):
    """Moves of dual variables: the vote of a row goes from one class to another."""

    row: np.ndarray
    to: np.ndarray  # class that gains; of no meaning for one score
    out: np.ndarray  # class that loses
    room: np.ndarray  # the most that may move

    def spread(self, count: int) -> Moves:
        """Return `count` moves, small and large ones: the largest may all be in few columns."""
        chosen = np.linspace(0, len(self.row) - 1, min(count, len(self.row))).astype(np.intp)
        order = np.argsort(-self.room, kind="stable")[chosen]
        return Moves(*(part[order] for part in self))

    def add(self, rest: np.ndarray, step: np.ndarray) -> None:
        """Add moves, in units of their room, to dual variables."""
        moved = step * self.room
        if rest.ndim == 1:
            np.add.at(rest, self.row, moved)
        else:
            np.add.at(rest, (self.row, self.to), moved)
            np.add.at(rest, (self.row, self.out), -moved)


@np.errstate(over="ignore", invalid="ignore")
def refinement(problem: Any, w: np.ndarray, alpha: np.ndarray) -> np.ndarray | None:
    """Return what to add to alpha for a dual sum that belongs to w, or None if nothing helps.

    Parameters
    ----------
    problem : Problem
        On the processor.
    w, alpha : ndarray
        Weights, and feasible dual variables near those that belong to them.
    """
    if w.ndim == 2:
        return refinement_of_votes(problem, w, alpha)
    shape = (1, problem.shape[1] + problem.fit_intercept)
    most = int(MOST_WORK / math.prod(shape) ** 2)
    moves = problem.moves(alpha).spread(min(most, MOST_MOVES * math.prod(shape)))
    if most < LEAST_MOVES * math.prod(shape) or not len(moves.row):
        return None
    matrix = _equations(problem, moves)
    scale = np.sqrt(np.square(matrix).sum(axis=0))
    if not np.isfinite(scale).all():
        return None
    scale[scale == 0.0] = math.inf
    if problem.fit_intercept:
        scale.reshape(shape)[:, -1] /= BALANCE
    binding = np.ones(shape, np.bool_)  # equations that must hold: not those of weights of zero,
    binding[:, : problem.shape[1]] = w != 0.0 if problem.l1_ratio else True
    binding = binding.ravel()
    room = problem.room(alpha)
    best, least, rest, solve = None, math.inf, np.zeros_like(alpha), None
    for _ in range(ROUNDS):
        lack = problem.lack(w, alpha, rest) / scale
        size = float(np.abs(lack).max())
        if not size < 0.5 * least:
            break
        if solve is None or lack[~binding].any():  # unless u has left the range of their slopes
            binding |= lack != 0.0
            solve = _least_moves(matrix[:, binding] / scale[binding])
        best, least, rest = rest, size, rest.copy()
        moves.add(rest, solve(-lack[binding]))
        if not bool((np.abs(rest) <= LARGEST_MOVE * room).all()):  # not if it is NaN
            break
    return best


def _least_moves(matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that finds the least moves x with x' matrix = target.

    Where equations depend on each other, those with the largest weights hold.
    """
    basis, triangle, order = linalg.qr(matrix, mode="economic", pivoting=True, check_finite=False)
    pivots = np.abs(np.diagonal(triangle))
    rank = int(np.count_nonzero(pivots > SMALLEST_PIVOT))
    triangle, basis, order = triangle[:rank, :rank], basis[:, :rank], order[:rank]

    def solve(target: np.ndarray) -> np.ndarray:
        part = linalg.solve_triangular(triangle, target[order], trans=1, check_finite=False)
        return basis @ part

    return solve


def _equations(problem: Any, moves: Moves) -> np.ndarray:
    """Return what each move adds to lam S u, and to the sums of the dual variables."""
    rows = problem.rows.take(moves.row)
    X = rows.values if hasattr(rows, "values") else rows._matrix().toarray()
    if problem.fit_intercept:
        X = np.column_stack([X, np.ones(len(X))])
    weight, _ = problem._exact_weights
    X = X * (weight[moves.row] * moves.room)[:, None]
    if len(problem.weight_shape) == 1:
        return X
    classes, wide = problem.n_classes, X.shape[1]
    matrix = np.zeros((len(X), classes, wide))
    places = np.arange(len(X))
    matrix[places, moves.to] += X
    matrix[places, moves.out] -= X
    return matrix.reshape(len(X), classes * wide)

"""Rounding many numbers at once: the point of a lattice that is nearest to a given one.

Doubles near some weights form a lattice: each weight moves by units in its last place.  Rounding
each by itself is a bad choice where columns nearly cancel.  A rounding error e costs e'He, which is
a squared distance in coordinates where H is one.  A reduced basis has short vectors, along
which the nearest point is found one coordinate after another.

References: L. Babai, "On Lovasz' lattice reduction and the nearest lattice point problem",
Combinatorica 6, 1986; A. K. Lenstra, H. W. Lenstra and L. Lovasz, "Factoring polynomials with
rational coefficients", Mathematische Annalen 261, 1982.
"""

from __future__ import annotations

import math

import numpy as np

from zerogap.kernels import pairs
from zerogap.kernels.twofold import Factor, add, matrix_product, rounded, twofold

LOVASZ = 0.9  # how much shorter a swap must make a vector: nearer to 1 is slower and gains little
MOST_REDUCED = 150  # weights: more take seconds
MOST_SWAPS = 100_000  # of vectors: half a second
ROUNDS = 3  # a weight that has moved far has other units in its last place


def rounded_along(w: np.ndarray, factor: Factor, free: int) -> np.ndarray:
    """Return doubles near w with a small e'He: e is the rounding error, H = LL' was factorised.

    The first `free` numbers keep twice the precision: they make up for what the others cost.
    """
    vectors = factor.columns()[:, free:, free:]  # without what the free ones make up for
    aim, found = w[:, free:], _one_by_one(w, factor, free)
    best = _cost(vectors, aim, found[free:])
    for _ in range(ROUNDS if 1 < aim.shape[1] <= MOST_REDUCED else 0):
        trial = _nearest(vectors, aim, found[free:])
        cost = _cost(vectors, aim, trial)
        if not cost < best:
            break
        best, found[free:] = cost, trial
    return _made_up_for(w, factor, free, found)


def _one_by_one(w: np.ndarray, factor: Factor, free: int) -> np.ndarray:
    """Round the numbers one by one from the last; earlier ones make up for later errors."""
    triangle, found = factor.triangle[0], rounded(w)
    off = np.zeros(len(found))  # in the units of the factor
    for j in range(len(found) - 1, -1, -1):
        shift = -float(triangle[j + 1 :, j] @ off[j + 1 :]) / triangle[j, j] * factor.scale[j]
        found[j] = (w[0, j] + shift) + w[1, j] if math.isfinite(shift) else found[j]
        off[j] = (shift if j < free else (found[j] - w[0, j]) - w[1, j]) / factor.scale[j]
    return found


def _made_up_for(w: np.ndarray, factor: Factor, free: int, found: np.ndarray) -> np.ndarray:
    """Return the doubles, preceded by the free numbers that suit them best."""
    off = _off(w, found)[0] / factor.scale
    for j in range(free - 1, -1, -1):
        off[j] = -float(factor.triangle[0, j + 1 :, j] @ off[j + 1 :]) / factor.triangle[0, j, j]
    whole = twofold(found)
    whole[:, :free] = add(w[:, :free], twofold((off * factor.scale)[:free]))
    return whole


def _off(w: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return the doubles that were found minus w."""
    return add(twofold(found), -w)


def _place(vectors: np.ndarray, w: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return the doubles minus w, in the coordinates of the vectors."""
    return matrix_product(_off(w, found)[:, None, :], vectors)


def _cost(vectors: np.ndarray, w: np.ndarray, found: np.ndarray) -> float:
    return float(np.square(_place(vectors, w, found)[0]).sum())


def _nearest(vectors: np.ndarray, w: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return doubles nearer to w than those found: moved along a reduced basis."""
    sizes = np.sqrt(np.square(vectors[0]).sum(axis=1))
    used = (np.diagonal(vectors[0]) != 0.0) & (found != 0.0)
    units = np.spacing(np.abs(found[used]))
    # what the longest vector leaves to a weight may be far more than this weight is now
    longest = math.log2(float((units * sizes[used]).max(initial=1e-300)))
    units = np.maximum(units, np.exp2(np.ceil(longest - np.log2(sizes[used])) - 52.0))
    lines = np.concatenate([vectors[:, used] * units[:, None], _place(vectors, w, found)], axis=1)
    triangle = Factor.of_columns(lines).columns()
    moves = np.concatenate([np.diag(units), np.zeros((1, len(units)))])
    pairs.reduce_basis(*triangle, moves, LOVASZ, MOST_SWAPS)
    moved = found.copy()
    moved[used] += moves[-1]
    return moved

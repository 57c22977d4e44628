"""Products of rows in twice the working precision, for numbers that nearly cancel.

Every product and every sum is split into what the machine returns and what it rounds away, which
is a number of the machine as well (Ogita, Rump and Oishi, "Accurate sum and dot product", SIAM J.
Sci. Comput. 26, 2005).  The error of a sum with k terms is one rounding of the result, plus
(k u)^2 times the sum of the terms' sizes, u = 2^-53.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerogap.kernels.instructions import fused
from zerogap.kernels.jit import exact_kernel


def precise_scores(rows: Any, w: np.ndarray, b: float, aim: Any, b_low: float = 0.0) -> np.ndarray:
    """Return x_i.w + b + b_low - aim_i for all rows, rounded once, for a b_low below b's digits.

    There is an aim for each row.
    """
    z = np.empty(rows.shape[0])
    for block in rows.blocks():
        _scores(rows, w, b, b_low, aim, z, *block)
    return z


def precise_dual_sum(rows: Any, weight: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return sum_i weight_i alpha_i x_i, followed by its rounding error."""
    sums = np.zeros((2, rows.shape[1]))
    for block in rows.blocks():
        _add_rows(rows, weight, alpha, *sums, *block)
    return sums


def precise_sum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return sum_i x_i y_i, followed by its rounding error."""
    return np.array(_dot(x, y))


def total_of(x: np.ndarray) -> float:
    """Return the sum of numbers, rounded once."""
    return float(precise_sum(x, np.ones(len(x))).sum())


def totals_by_class(codes: np.ndarray, x: np.ndarray | None, count: int) -> np.ndarray:
    """Return the sum of the numbers of each of so many classes, rounded once; or how many it has.

    One after the other, a million numbers of 0.1 add up to a sum that is off by 1e-11.
    """
    if x is None:
        return np.bincount(codes, minlength=count).astype(np.float64)
    sums = np.zeros((2, count))
    _add_by_class(codes, x, *sums)
    return sums.sum(axis=0)


def joined(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Add up sums that carry their rounding errors."""
    total = first[0] + second[0]
    back = total - first[0]
    rest = (first[0] - (total - back)) + (second[0] - back)
    return np.stack([total, first[1] + second[1] + rest])


def precise_votes(y: np.ndarray, share: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return the votes of each class for each other one, followed by their rounding errors."""
    flow = np.zeros((2, alpha.shape[1], alpha.shape[1]))
    _add_votes(y, share, alpha, *flow)
    return flow


def imbalance(flow: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the votes of each class minus the votes for it, and a bound of the error of that.

    That is sum_i s_i a_ik for each class k, if each row's own dual variable is minus the sum of
    its others.  The votes are the sum of all matrices of `precise_votes`, of so many rows.
    """
    ways = [(*flow[:, k].ravel(), *-flow[:, :, k].ravel()) for k in range(flow.shape[1])]
    sizes = np.abs(flow).sum(axis=0)
    through = sizes.sum(axis=1) + sizes.sum(axis=0)
    return np.array([math.fsum(way) for way in ways]), (2.0**-53 * (rows + 8)) ** 2 * through


def precise_rest(alpha: np.ndarray) -> np.ndarray:
    """Return what each row lacks to sum to zero."""
    total, low = np.zeros((2, len(alpha)))
    for column in alpha.T:
        new = total + column
        back = new - total
        low += (total - (new - back)) + (column - back)
        total = new
    return -(total + low)


@exact_kernel
def _add_by_class(codes, x, high, low):
    for i in range(len(codes)):
        total = high[codes[i]]
        new = total + x[i]
        back = new - total
        low[codes[i]] += (total - (new - back)) + (x[i] - back)
        high[codes[i]] = new


@exact_kernel
def _add_votes(y, share, alpha, high, low):
    for i in range(len(y)):
        for k in range(alpha.shape[1]):
            if k != y[i]:
                product = -share[i] * alpha[i, k]
                rounded_away = fused(-share[i], alpha[i, k], -product)
                total = high[y[i], k]
                new = total + product
                back = new - total
                low[y[i], k] += (total - (new - back)) + (product - back) + rounded_away
                high[y[i], k] = new


@exact_kernel
def _dot(x, y):
    total, rest = 0.0, 0.0
    for i in range(len(x)):
        product = x[i] * y[i]
        rounded_away = fused(x[i], y[i], -product)
        new = total + product
        back = new - total
        rest += (total - (new - back)) + (product - back) + rounded_away
        total = new
    return total, rest


@exact_kernel
def _scores(rows, w, b, b_low, aim, z, start, stop):
    for i in range(start, stop):
        total, rest = b - aim[i], b_low
        back = total - b
        rest += (b - (total - back)) + (-aim[i] - back)
        for k in rows.span(i):
            x, v = rows.entry_value(i, k), w[rows.entry_column(i, k)]
            product = x * v
            rounded_away = fused(x, v, -product)
            new = total + product
            back = new - total
            rest += (total - (new - back)) + (product - back) + rounded_away
            total = new
        z[i] = total + rest


@exact_kernel
def _add_rows(rows, share, alpha, high, low, start, stop):
    for i in range(start, stop):
        c = share[i] * alpha[i]
        c_rest = fused(share[i], alpha[i], -c)
        for k in rows.span(i):
            x, j = rows.entry_value(i, k), rows.entry_column(i, k)
            product = c * x
            rounded_away = fused(c, x, -product) + c_rest * x
            total = high[j]
            new = total + product
            back = new - total
            low[j] += (total - (new - back)) + (product - back) + rounded_away
            high[j] = new

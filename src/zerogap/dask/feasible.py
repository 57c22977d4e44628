"""Dual variables that sum to zero, as a free intercept asks, when no worker has all the rows."""

from __future__ import annotations

import math

import numpy as np

from zerogap.multiclass import MulticlassProblem, balancing_factors
from zerogap.problem import Problem


def balance(part: Problem, alpha: np.ndarray) -> np.ndarray:
    """Return the sums over some rows that, over all of them, decide what makes alpha feasible."""
    if isinstance(part, MulticlassProblem):  # the votes of each class for each other class
        flow = np.zeros((part.n_classes, part.n_classes))
        np.add.at(flow, part.y, part.share[:, None] * part._votes(alpha))
        np.fill_diagonal(flow, 0.0)
        return flow
    positive, negative = np.maximum(alpha, 0.0), np.maximum(-alpha, 0.0)
    return np.array([part.share @ positive, part.share @ negative])


def balanced(part: Problem, alpha: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return alpha made feasible by the sums over all rows, as `Problem.feasible` does."""
    if isinstance(part, MulticlassProblem):
        own = part.y[:, None] == np.arange(part.n_classes)
        others = np.where(own, 0.0, part._votes(alpha)) * balancing_factors(sums)[part.y]
        return part._votes(np.where(own, 1.0 - others.sum(axis=1, keepdims=True), others))
    up, down = map(float, sums)
    if all(map(math.isinf, part.loss.domain(1.0))):
        return alpha - (up - down)
    heavy = alpha > 0 if up > down else alpha < 0
    return np.where(heavy, alpha * (min(up, down) / max(up, down, 1e-300)), alpha)

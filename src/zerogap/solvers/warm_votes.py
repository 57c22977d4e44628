"""Votes of rows for classes: those of a loss, or smoothed by a temperature around a centre."""

from __future__ import annotations

from math import exp, log

import numpy as np

from zerogap.kernels.jit import rowwise
from zerogap.problem.multiclass import MulticlassProblem

LEAST_VOTE = 1e-9  # votes of a centre: a class without any could never get some


@rowwise(sums=2)
def _vote_exactly(loss, y, share, z, dz, p, start, stop):
    """`vote` with mu = 0: p_i - e_y is the gradient of phi at z_i"""
    value, slope = 0.0, 0.0
    for i in range(start, stop):
        loss.votes(z[i], y[i], p[i])
        value += share[i] * loss.vector_value(z[i], y[i])
        slope -= share[i] * dz[i, y[i]]
        for k in range(z.shape[1]):
            slope += share[i] * p[i, k] * dz[i, k]
    return value, slope


@rowwise(sums=3)
def _vote_warmly(loss, y, share, z, dz, p, centre, mu, start, stop):
    """`vote` at a temperature: p is the softmax of centre + (scores, costs included) / mu"""
    value, slope, excess = 0.0, 0.0, 0.0
    for i in range(start, stop):
        top = centre[i, y[i]] + z[i, y[i]] / mu
        for k in range(z.shape[1]):
            top = max(top, centre[i, k] + (z[i, k] + (k != y[i])) / mu)
        total = 0.0
        for k in range(z.shape[1]):
            p[i, k] = exp(centre[i, k] + (z[i, k] + (k != y[i])) / mu - top)
            total += p[i, k]
        value += share[i] * (mu * (log(total) + top) - z[i, y[i]])
        slope -= share[i] * dz[i, y[i]]
        for k in range(z.shape[1]):
            p[i, k] /= total
            slope += share[i] * p[i, k] * dz[i, k]
        excess += share[i] * max(0.0, loss.vector_excess(p[i], z[i], y[i]))
    return value, slope, excess


def vote(
    problem: MulticlassProblem,
    z: np.ndarray,
    dz: np.ndarray,
    p: np.ndarray,
    centre: np.ndarray,
    mu: float,
) -> tuple[float, float, float]:
    """Set the votes p that answer the scores z; with mu > 0 they pay mu KL(p, exp(centre)).

    Returns the loss so smoothed, its slope along dz, and the part of the gap that smoothing costs.
    """
    data = (problem.loss, problem.y, problem.share, z, dz, p)
    if mu:
        return problem.over_rows(_vote_warmly, *data, centre, mu)
    return (*problem.over_rows(_vote_exactly, *data), 0.0)


def as_centre(p: np.ndarray, doubt: float = 0.0) -> np.ndarray:
    """Return the logarithms of votes after a share `doubt` of them was spread over all classes.

    Far from the optimum, classes without votes must be able to get some soon.  After 30 epochs of
    coordinate ascent Newton's method took 47 steps from the votes as they were, 18 from these.
    """
    votes = np.maximum((1.0 - doubt) * p + doubt / p.shape[1], LEAST_VOTE)
    return np.log(votes / votes.sum(axis=1, keepdims=True))


def apart(direction: np.ndarray) -> np.ndarray:
    """Return the direction without what is common to all classes.

    That changes no vote, and the optimum of an L2 penalty has none of it: it is rounding.
    """
    return direction - direction.mean(axis=0)


def listed(a: np.ndarray, d: int) -> np.ndarray:
    """Return what belongs to weights, one class after another, and then to intercepts."""
    return np.concatenate([a[:, :d].ravel(), a[:, d:].ravel()])

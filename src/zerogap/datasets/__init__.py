"""Data sets: simulated ones, and real ones from files that you have."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zerogap.datasets.mnist import Mnist, load_mnist

__all__ = ["Mnist", "Simulated", "load_mnist", "make_simulated"]


class Simulated(NamedTuple):
    """Data with a known linear model behind them."""

    X: np.ndarray
    y: np.ndarray
    beta: np.ndarray


def make_simulated(
    n_samples: int = 1000, n_features: int = 10, *, noise: float = 1.0, random_state: Any = None
) -> Simulated:
    """Generate two classes separated by a noisy hyperplane.

    X and beta are standard normal and y is the sign of X beta plus gaussian noise: the simulated
    data of Ouillade & Vengathesa Sarma (2017), who compare SDCA and Pegasos.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    noise : float
        Standard deviation of the noise.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    Simulated
        A named tuple (X, y, beta) with y in {-1, +1}.

    Examples
    --------
    >>> X, y, beta = make_simulated(n_samples=50, random_state=0)
    >>> X.shape, sorted({int(label) for label in y})
    ((50, 10), [-1, 1])
    """
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n_samples, n_features))
    beta = rng.standard_normal(n_features)
    score = X @ beta + noise * rng.standard_normal(n_samples)
    return Simulated(X, np.where(score >= 0, 1.0, -1.0), beta)

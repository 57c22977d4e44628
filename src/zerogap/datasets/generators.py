"""Simulated data, always at hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zerogap.datasets.base import Dataset, Info
from zerogap.datasets.files import Folder

__all__ = [
    "Points",
    "Simulated",
    "make_checkerboard",
    "make_ill_conditioned",
    "make_simulated",
    "make_text",
    "make_two_discs",
    "make_two_gaussians",
]


class Simulated(NamedTuple):
    """Data with a known linear model behind them.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Rows.
    y : ndarray of shape (n_samples,)
        Targets.
    beta : ndarray of shape (n_features,)
        Weights of the model behind them.
    """

    X: Any
    y: np.ndarray
    beta: np.ndarray


class Points(NamedTuple):
    """Two classes without a linear model behind them.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Points.
    y : ndarray of shape (n_samples,)
        Classes, -1 and +1.
    """

    X: np.ndarray
    y: np.ndarray


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
    return Simulated(X, _signs(X @ beta, noise, rng), beta)


def make_two_gaussians(
    n_samples: int = 1000, n_features: int = 2, *, distance: float = 2.0, random_state: Any = None
) -> Points:
    """Generate two gaussian clouds of unit variance, one per class.

    The best classifier is linear and errs with probability Phi(-distance / 2).

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    distance : float
        Distance of the two means.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    Points
        A named tuple (X, y) with y in {-1, +1}, half of each.

    Examples
    --------
    >>> X, y = make_two_gaussians(n_samples=100, random_state=0)
    >>> X.shape, int(y.sum())
    ((100, 2), 0)
    """
    rng = np.random.default_rng(random_state)
    y = _halves(n_samples, rng)
    shift = np.full(n_features, 0.5 * distance / np.sqrt(n_features))
    return Points(rng.standard_normal((n_samples, n_features)) + y[:, None] * shift, y)


def make_two_discs(
    n_samples: int = 1000, *, radius: float = 1.0, distance: float = 2.5, random_state: Any = None
) -> Points:
    """Generate points that fill two discs of the plane, one per class.

    A line separates the classes if and only if distance > 2 radius.

    Parameters
    ----------
    n_samples : int
        Number of points.
    radius, distance : float
        Radius of both discs and distance of their centres.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    Points
        A named tuple (X, y) with y in {-1, +1}, half of each.

    Examples
    --------
    >>> X, y = make_two_discs(n_samples=100, random_state=0)
    >>> bool((X[:, 0] * y > 0).all())
    True
    """
    rng = np.random.default_rng(random_state)
    y = _halves(n_samples, rng)
    angle = 2 * np.pi * rng.random(n_samples)
    from_centre = radius * np.sqrt(rng.random(n_samples))  # the root makes the density uniform
    X = from_centre[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    X[:, 0] += 0.5 * distance * y
    return Points(X, y)


def make_checkerboard(n_samples: int = 1000, *, cells: int = 4, random_state: Any = None) -> Points:
    """Generate points of the square [0, 1] x [0, 1], coloured like a board of cells x cells.

    No linear model is better than chance on an even number of cells; features made from distances
    or products can be.

    Parameters
    ----------
    n_samples : int
        Number of points.
    cells : int
        Cells along each side.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    Points
        A named tuple (X, y) with y in {-1, +1}.

    Examples
    --------
    >>> X, y = make_checkerboard(n_samples=100, cells=2, random_state=0)
    >>> bool((y == np.where((X[:, 0] < 0.5) == (X[:, 1] < 0.5), 1, -1)).all())
    True
    """
    X = np.random.default_rng(random_state).random((n_samples, 2))
    dark = np.floor(cells * X).astype(int).sum(axis=1) % 2
    return Points(X, 1.0 - 2.0 * dark)


def make_text(
    n_samples: int = 2000,
    n_features: int = 20_000,
    *,
    words: float = 100.0,
    noise: float = 0.5,
    random_state: Any = None,
) -> Simulated:
    """Generate sparse rows like those of short texts.

    Words follow Zipf's law: the k-th column is drawn in proportion to 1 / k.  Counts are damped and
    weighted as tf-idf does, (1 + log count) (1 + log(n / documents with the word)), and rows have
    norm 1.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    words : float
        Mean number of words of a row.
    noise : float
        Standard deviation of the noise on the scores, which have about unit variance.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    Simulated
        A named tuple (X, y, beta): X in CSR form and y in {-1, +1}.

    Examples
    --------
    >>> X, y, beta = make_text(n_samples=100, n_features=1000, random_state=0)
    >>> X.format, X.shape, bool(abs(X.multiply(X).sum(axis=1) - 1).max() < 1e-12)
    ('csr', (100, 1000), True)
    """
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(random_state)
    lengths = 1 + rng.poisson(words - 1, n_samples)
    shares = np.cumsum(1.0 / np.arange(1, n_features + 1))
    drawn = np.searchsorted(shares, shares[-1] * rng.random(lengths.sum()))
    rows = np.repeat(np.arange(n_samples), lengths)
    X = csr_matrix((np.ones(len(drawn)), (rows, drawn)), shape=(n_samples, n_features))
    X.sum_duplicates()
    documents = np.bincount(X.indices, minlength=n_features)
    X.data = (1 + np.log(X.data)) * (1 + np.log(n_samples / documents[X.indices]))
    norms = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    beta = rng.standard_normal(n_features)
    return Simulated(X, _signs(X @ beta, noise, rng), beta)


def make_ill_conditioned(
    n_samples: int = 1000,
    n_features: int = 50,
    *,
    condition: float = 1e4,
    noise: float = 0.5,
    random_state: Any = None,
) -> Simulated:
    """Generate correlated columns with a given condition number.

    The singular values of X fall from sqrt(n_samples) by a constant factor to
    sqrt(n_samples) / condition, and all directions count the same for y: gradient methods see the
    first ones soon and the last ones late.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X; n_samples >= n_features.
    condition : float
        Largest singular value over smallest.
    noise : float
        Standard deviation of the noise on the scores, which have unit variance.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    Simulated
        A named tuple (X, y, beta) with y in {-1, +1}.

    Examples
    --------
    >>> X, y, beta = make_ill_conditioned(100, 5, condition=1e3, random_state=0)
    >>> round(float(np.linalg.cond(X)), 6)
    1000.0
    """
    if n_samples < n_features:
        raise ValueError(f"n_samples must be >= n_features, got {n_samples} < {n_features}")
    rng = np.random.default_rng(random_state)
    left, _ = np.linalg.qr(rng.standard_normal((n_samples, n_features)))
    right, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
    values = np.sqrt(n_samples) * np.geomspace(1.0, 1.0 / condition, n_features)
    X = (left * values) @ right.T
    direction = rng.standard_normal(n_features)
    direction *= np.sqrt(n_samples) / np.linalg.norm(direction)
    beta = right @ (direction / values)
    return Simulated(X, _signs(X @ beta, noise, rng), beta)


def _signs(score: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    return np.where(score + noise * rng.standard_normal(len(score)) >= 0, 1.0, -1.0)


def _halves(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n labels, half of them -1 and half +1, in random order."""
    return rng.permutation(np.where(np.arange(n) < n // 2, -1.0, 1.0))


def _info(name: str, make: Any, shape: tuple[int, int], description: str) -> Info:
    def read(info: Info, folder: Folder) -> Dataset:
        X, y = make(random_state=0)[:2]
        return Dataset(info, X, y.astype(np.int64), target_names=("-1", "+1"))

    notes = f"The data of {make.__name__}(random_state=0)."
    return Info(name, *shape, description, "none needed: simulated", "none", read, notes=notes)


SETS = (
    _info("simulated", make_simulated, (1000, 10), "A noisy hyperplane, gaussian rows."),
    _info("two-gaussians", make_two_gaussians, (1000, 2), "Two gaussian clouds of the plane."),
    _info("two-discs", make_two_discs, (1000, 2), "Two discs that a line separates."),
    _info("checkerboard", make_checkerboard, (1000, 2), "A board of 4 x 4 cells: not linear."),
    _info("text", make_text, (2000, 20_000), "Sparse rows like texts: Zipf's law, norm 1."),
    _info("ill-conditioned", make_ill_conditioned, (1000, 50), "Columns of condition 10000."),
)
"""The data sets with a name."""

"""Gaussian landmark features: how near a row is to each of a few rows of the training set."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from zerogap.problem.checks import as_seed, is_positive
from zerogap.problem.validation import check_number

_DISTANCES_PER_BLOCK = 1 << 22  # distances worked on at a time


class GaussianLandmarks(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features exp(-|x - c|^2 / h^2), one for each landmark c.

    The landmarks are rows of the training set, drawn at random without replacement.  A linear
    model on these features draws curved boundaries: the gaussian projection of Desforges, Karpe &
    Roux (2018).

    Parameters
    ----------
    share : float in (0, 1]
        Share of the training rows that become landmarks.
    n_landmarks : int, optional
        Number of landmarks, instead of a share.
    h : float
        Bandwidth, > 0.  Useful values are near the distance between rows, which is about
        sqrt(2 n_features) when the features are standardised.
    random_state : None, int, numpy Generator or RandomState
        Seed of the draw.

    Attributes
    ----------
    landmarks_ : ndarray or CSR matrix of shape (n_landmarks, n_features)
        The rows drawn, in the order of the training set.
    n_features_in_ : int
        Number of features before the transform.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap.transforms import GaussianLandmarks
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> GaussianLandmarks(share=1.0, h=2.0).fit_transform(X).round(3)
    array([[1.   , 0.779, 0.105],
           [0.779, 1.   , 0.368],
           [0.105, 0.368, 1.   ]])
    """

    def __init__(
        self,
        share: float = 0.1,
        *,
        n_landmarks: int | None = None,
        h: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.share = share
        self.n_landmarks = n_landmarks
        self.h = h
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the landmarks from the rows of X.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Rows for training.
        y : ignored
            For pipelines.

        Returns
        -------
        GaussianLandmarks
            The transformer itself.
        """
        X = self._rows(X, reset=True)
        if not is_positive(self.h):
            raise ValueError(f"h must be a positive number, got {self.h!r}")
        count = self._count(X.shape[0])
        rng = np.random.default_rng(as_seed(self.random_state))
        self.landmarks_ = X[np.sort(rng.choice(X.shape[0], count, replace=False))]
        self._n_features_out = count
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of each row, dense, of the type of X.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_landmarks)
            Features.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        landmarks = self.landmarks_.astype(X.dtype, copy=False)
        features = np.empty((X.shape[0], self._n_features_out), X.dtype)
        for block in gen_batches(X.shape[0], max(1, _DISTANCES_PER_BLOCK // self._n_features_out)):
            # distances as |x|^2 - 2 x.c + |c|^2 in float64, clipped at 0
            features[block] = rbf_kernel(X[block], landmarks, gamma=1.0 / self.h**2)
        return features

    def _count(self, n: int) -> int:
        if self.n_landmarks is None:
            if not (is_positive(self.share) and self.share <= 1):
                raise ValueError(f"share must be in (0, 1], got {self.share!r}")
            return max(1, round(self.share * n))
        check_number("n_landmarks", self.n_landmarks, Integral, 1)
        if self.n_landmarks > n:
            raise ValueError(f"n_landmarks is {self.n_landmarks}, but X has only {n} rows")
        return int(self.n_landmarks)

    def _rows(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

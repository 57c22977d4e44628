"""Scaling of columns that fills no sparse matrix, for scikit-learn's pipelines."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from zerogap.readers import Encoder


class ColumnScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """The scaling of ``zerogap train --scale``, as a transformer.

    Parameters
    ----------
    kind : {"standard", "max-abs", "none"}
        "standard" divides by the standard deviation, and subtracts the mean where that fills no
        zeros: from dense columns, and from sparse ones that have none.  "max-abs" divides by the
        largest absolute value.
    has_intercept : bool
        Whether the model that follows has an intercept, which makes up for means that were not
        subtracted.  Without one, "standard" refuses sparse matrices.

    Attributes
    ----------
    encoder_ : zerogap.readers.Encoder
        Its `shift` and `scale` turn a feature x into (x - shift) * scale.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from zerogap.transforms import ColumnScaler
    >>> ColumnScaler().fit_transform(csr_matrix([[0.0, 1e9], [4.0, 1e9 + 2.0]])).toarray()
    array([[ 0., -1.],
           [ 2.,  1.]])
    """

    def __init__(self, kind: str = "standard", *, has_intercept: bool = True) -> None:
        self.kind = kind
        self.has_intercept = has_intercept

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn shift and scale of each column of X.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Rows for training.
        y : ignored
            For pipelines.

        Returns
        -------
        ColumnScaler
            The transformer itself.
        """
        X = self._rows(X, reset=True)
        self.encoder_ = Encoder(X.shape[1]).fit_scaling(X, self.kind, self.has_intercept)
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows of X with scaled columns, sparse if X is.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Rows.

        Returns
        -------
        ndarray or CSR matrix
            Scaled rows.
        """
        check_is_fitted(self)
        return self.encoder_.scaled(self._rows(X, reset=False))

    def _rows(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

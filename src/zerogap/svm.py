"""scikit-learn's linear support vector machines under their own names, with certificates.

As in `zerogap.linear_model`.  The intercept is regularised, as LIBLINEAR does it: it is the weight
of a constant feature of the value `intercept_scaling`.

>>> from zerogap.svm import LinearSVC
>>> from sklearn.datasets import load_iris
>>> LinearSVC(C=100.0).fit(*load_iris(return_X_y=True)).certificate_.relative_gap <= 1e-8
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import svm

from zerogap.dropin.fit import DropIn, RegressorDropIn
from zerogap.dropin.refused import liblinear_method

__all__ = ["LinearSVC", "LinearSVR"]


class LinearSVC(DropIn, svm.LinearSVC):
    """scikit-learn's LinearSVC, certified: |w|^2 / 2 + b^2 / 2 + C sum s_i loss_i.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from zerogap.svm import LinearSVC
    >>> model = LinearSVC(C=0.1).fit(*load_iris(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-4
    True
    """

    _keeps_float32 = False

    def _refuse_method(self: Any, X: Any) -> None:
        liblinear_method(self)


class LinearSVR(RegressorDropIn, svm.LinearSVR):
    """scikit-learn's LinearSVR, certified: |w|^2 / 2 + b^2 / 2 + C sum s_i loss_i.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap.svm import LinearSVR
    >>> model = LinearSVR(C=0.1).fit(*load_diabetes(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-4
    True
    """

    _keeps_float32 = False

    def _refuse_method(self: Any, X: Any) -> None:
        liblinear_method(self)

    def _keep(self: Any, coef: np.ndarray, intercept: np.ndarray, dimensions: int) -> None:
        super()._keep(coef, intercept, dimensions)
        self.intercept_ = intercept if self.fit_intercept else 0.0

"""scikit-learn's linear models with a certified fit."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import linear_model
from sklearn.base import is_classifier
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import _check_sample_weight, validate_data

from zerogap.audit.convention import Convention, problems_of, targets_of
from zerogap.audit.parts import bare
from zerogap.dropin.direct import METHODS, shape_of_one_column
from zerogap.dropin.fit import BinarizedDropIn, DropIn, RegressorDropIn
from zerogap.dropin.refused import logistic_method, ridge_method
from zerogap.problem import Problem
from zerogap.problem.certificate import Certificate
from zerogap.solvers import Result
from zerogap.solvers.history import History


class LogisticRegression(DropIn, linear_model.LogisticRegression):
    """scikit-learn's LogisticRegression, certified: C sum s_i log-loss_i + penalty.

    A class of weight zero has no optimal intercept: the objective falls as it goes to minus
    infinity, and that is its value here.  If all weight is on one class, the model is sure of it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from zerogap.linear_model import LogisticRegression
    >>> model = LogisticRegression(C=10.0).fit(*load_iris(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-8
    True
    """

    _known_classes: np.ndarray | None = None  # of all folds, in a cross-validation
    _weighty: np.ndarray | None = None  # the classes that have weight, if not all have

    @property
    def _keeps_float32(self: Any) -> bool:  # type: ignore[override]
        return self._known_classes is None and self.solver != "liblinear"

    def _refuse_method(self: Any, X: Any) -> None:
        logistic_method(self, self.l1_ratio)

    def _find_classes(self: Any, y: np.ndarray) -> None:
        if self._known_classes is not None:
            self.classes_ = self._known_classes
            return
        super()._find_classes(y)
        refuse_many_for_liblinear(self)

    def _fit_certified(self: Any, X: Any, y: Any, sample_weight: Any, **others: Any) -> Any:
        """Fit; if all weight is on one class, the limit of all models is the optimum."""
        self._weighty = None
        try:
            return super()._fit_certified(X, y, sample_weight, **others)
        except _OneClass as only:
            K, one = len(self.classes_), np.arange(len(self.classes_)) == only.code
            b = np.where(one, 0.0, -np.inf) if K > 2 else np.where(one[1:], np.inf, -np.inf)
            self.certificate_ = Certificate(0.0, 0.0, 0.0, stop_reason="converged")
            self._keep(np.zeros((len(b), self.n_features_in_)), b, 1)
            return self

    def _posed(
        self: Any, X: Any, y: np.ndarray, sample_weight: Any, convention: Convention
    ) -> list[Problem]:
        """Leave classes without weight out of a joint model with a free intercept."""
        if not convention.fit_intercept:
            return super()._posed(X, y, sample_weight, convention)
        joint = convention.loss.task == "multiclass"
        there = bare(np.empty(0), classes=np.unique(y)) if joint else self  # folds may lack some
        targets, weights = targets_of(there, y, sample_weight, convention)
        weighty = np.unique(targets[weights > 0])
        if len(weighty) == 1:
            side = weighty[0] if joint else weighty[0] > 0
            raise _OneClass(np.searchsorted(self.classes_, there.classes_[int(side)]))
        if joint and len(weighty) < len(self.classes_):
            self._weighty = np.searchsorted(self.classes_, there.classes_[weighty])
            targets = np.searchsorted(weighty, targets).clip(max=len(weighty) - 1)
        return problems_of(convention, X, targets, weights)

    def _keep(self: Any, coef: np.ndarray, intercept: np.ndarray, dimensions: int) -> None:
        if self._weighty is not None:
            coef, intercept = self._with_all_classes(coef, intercept)
        super()._keep(coef, intercept, dimensions)
        none: Any = 0.0 if self.solver == "liblinear" else np.zeros_like(intercept)
        self.intercept_ = intercept if self.fit_intercept else none
        self.n_iter_ = np.array([self.n_iter_], dtype=np.int32)

    def _with_all_classes(
        self: Any, coef: np.ndarray, intercept: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if len(coef) == 1:  # two classes, their difference: the optimum is symmetric
            coef, intercept = np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2
        W = np.zeros((len(self.classes_), coef.shape[1]), coef.dtype)
        b = np.full(len(W), -np.inf, intercept.dtype)
        W[self._weighty], b[self._weighty] = coef, intercept
        return W, b


class _OneClass(Exception):
    """All weight is on one class: the objective falls as its intercept grows."""

    def __init__(self, code: Any) -> None:
        super().__init__()
        self.code = int(code)


def refuse_many_for_liblinear(model: Any) -> None:
    """Refuse three classes or more with ``solver="liblinear"``, which has no joint model."""
    if model.solver == "liblinear" and len(model.classes_) > 2:
        raise ValueError(
            "The 'liblinear' solver does not support multiclass classification (n_classes >= 3). "
            "Either use another solver or wrap the estimator in a OneVsRestClassifier to keep "
            "applying a one-versus-rest scheme."
        )


class _Ridge(DropIn):
    """What both ridge models do: direct solvers are exact, so a small gap is asked for."""

    _several_targets = True

    def _gap(self: Any, convention: Convention) -> float:
        return 1e-17 if self.solver in ("auto", *METHODS) else super()._gap(convention)

    def _refuse_method(self: Any, X: Any) -> None:
        ridge_method(self, X)

    def _keep(self: Any, coef: np.ndarray, intercept: np.ndarray, dimensions: int) -> None:
        super()._keep(coef, intercept, dimensions)
        if len(coef) == 1 and (dimensions == 2 or is_classifier(self)):  # versions differ here
            self.coef_ = coef.reshape(*shape_of_one_column()[:-1], -1)
        self.solver_ = self.solver
        epochs = [self._epochs_of(part) for part in _each(self.certificate_)]
        self.n_iter_ = np.array(epochs, dtype=np.int32)


class Ridge(_Ridge, RegressorDropIn, linear_model.Ridge):
    """scikit-learn's Ridge, certified: sum s_i (x_i.w + b - y_i)^2 + alpha |w|^2.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap.linear_model import Ridge
    >>> model = Ridge(alpha=2.0).fit(*load_diabetes(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-9
    True
    """


class RidgeClassifier(_Ridge, BinarizedDropIn, linear_model.RidgeClassifier):
    """scikit-learn's RidgeClassifier, certified: ridge regression of signs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from zerogap.linear_model import RidgeClassifier
    >>> model = RidgeClassifier().fit(*load_iris(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-9
    True
    """


class ElasticNet(RegressorDropIn, linear_model.ElasticNet):
    """scikit-learn's ElasticNet, certified.

    1/S sum s_i r_i^2 / 2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap.linear_model import ElasticNet
    >>> model = ElasticNet(alpha=0.1).fit(*load_diabetes(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-4
    True
    """

    _several_targets = True

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Fit as scikit-learn's ElasticNet does; `check_input` is ignored, data are checked."""
        return self._fit_certified(X, y, sample_weight)

    def _keep(self: Any, coef: np.ndarray, intercept: np.ndarray, dimensions: int) -> None:
        parts = _each(self.certificate_)
        epochs = [self._epochs_of(part) for part in parts]
        super()._keep(coef, intercept, dimensions)
        if len(coef) == 1:
            self.coef_ = coef[0]
        gaps = np.array([part.gap for part in parts], dtype=coef.dtype)
        self.dual_gap_ = gaps[0] if len(gaps) == 1 else gaps
        if len(parts) > 1:
            self.n_iter_ = epochs


class _SGD(DropIn):
    """What both SGD models do: the objective without a learning rate, and rows that come later."""

    _scales_weights = True  # so that a weight of 2 is a row that occurs twice
    _seen: Any = None  # rows, targets and weights of `partial_fit`,
    _known_classes: np.ndarray | None = None  # and the classes that were named to it

    def fit(  # type: ignore[override]
        self: Any,
        X: Any,
        y: Any,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        """Fit to the optimum, from initial coefficients if there are any."""
        self._more_validate_params()
        self._seen = self._known_classes = None
        if coef_init is not None or intercept_init is not None:
            self._given = (coef_init, intercept_init)
        try:
            return self._fit_certified(X, y, sample_weight)
        finally:
            self._given = None

    def _fit_further(self: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> Any:
        self._more_validate_params(for_partial_fit=True)
        first = self._seen is None
        if first and hasattr(self, "coef_"):
            warnings.warn(
                "partial_fit after fit begins anew: only rows of partial_fit are kept, so give it "
                "the first rows, too",
                UserWarning,
                stacklevel=3,
            )
        if first and classes is not None:
            self._known_classes = np.unique(classes)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=first
        )
        seen: Any = X, y, _check_sample_weight(sample_weight, X, dtype=np.float64)
        if not first:
            mixed = sparse.issparse(X) or sparse.issparse(self._seen[0])
            stack = partial(sparse.vstack, format="csr") if mixed else np.vstack
            joined = zip((stack, np.concatenate, np.concatenate), self._seen, seen, strict=True)
            seen = tuple(join([old, new]) for join, old, new in joined)
        known = self._known_classes
        if not is_classifier(self) or known is not None or len(np.unique(seen[1])) > 1:
            self._fit_certified(*seen[:2], seen[2])
        self._seen = seen
        return self

    def _keep(self: Any, coef: np.ndarray, intercept: np.ndarray, dimensions: int) -> None:
        super()._keep(coef, intercept, dimensions)
        kept = intercept if self.fit_intercept else np.zeros_like(intercept)
        self.intercept_ = kept.astype(np.float64) if len(kept) == 1 else kept  # as scikit-learn
        self.t_ = 1.0


class SGDClassifier(_SGD, DropIn, linear_model.SGDClassifier):
    """The objective of scikit-learn's SGDClassifier, solved: no learning rate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from zerogap.linear_model import SGDClassifier
    >>> model = SGDClassifier(alpha=0.01).fit(*load_iris(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    _sides: np.ndarray  # of each class against the rest: the only side that has weight, or 0

    def partial_fit(
        self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Any:
        """Fit to all rows that `partial_fit` has been given, these included.

        The result does not depend on how rows were cut into batches.  The model keeps all of them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Further rows.
        y : array-like of shape (n_samples,)
            Their classes.
        classes : array-like, optional
            On the first call, all classes that will come; one of which no row has come yet has an
            intercept of minus infinity.  Without them, the model is not fitted until a second
            class has been seen.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        self
            The model of all rows so far, with a `certificate_`.
        """
        return self._fit_further(X, y, classes, sample_weight)

    def _find_classes(self: Any, y: np.ndarray) -> None:
        if self._known_classes is None:
            super()._find_classes(y)
            self.classes_ = unique_labels(y)  # of text where y holds objects
        else:
            self.classes_ = self._known_classes

    def _posed(
        self: Any, X: Any, y: np.ndarray, sample_weight: Any, convention: Convention
    ) -> list[Problem]:
        """Leave out problems with all weight on one side, if their intercept is free."""
        targets, weights = targets_of(self, y, sample_weight, convention)
        sides = [np.unique(row[weight > 0]) for row, weight in zip(targets, weights, strict=True)]
        alone = [convention.fit_intercept and len(side) == 1 for side in sides]
        self._sides = np.array([s[0] if a else 0.0 for s, a in zip(sides, alone, strict=True)])
        both = self._sides == 0
        return problems_of(convention, X, targets[both], weights[both])

    def _solved(self: Any, problems: list[Problem], convention: Convention) -> list[Result]:
        """Solve; with all weight on one side the loss vanishes as the intercept grows."""
        found = iter(super()._solved(problems, convention) if problems else [])
        proved = Certificate(0.0, 0.0, 0.0, stop_reason="converged")
        none = np.zeros(self.n_features_in_)
        return [
            Result(none, side * np.inf, none[:0], proved, History(), proved.stop_reason)
            if side
            else next(found)
            for side in self._sides
        ]


class SGDRegressor(_SGD, RegressorDropIn, linear_model.SGDRegressor):
    """The objective of scikit-learn's SGDRegressor, solved: no learning rate.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap.linear_model import SGDRegressor
    >>> model = SGDRegressor(alpha=0.01).fit(*load_diabetes(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    def partial_fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to all rows that `partial_fit` has been given, these included.

        The result does not depend on how rows were cut into batches.  The model keeps all of them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Further rows.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.

        Returns
        -------
        self
            The model of all rows so far, with a `certificate_`.
        """
        return self._fit_further(X, y, None, sample_weight)


def _each(certificate: Certificate) -> tuple[Certificate, ...]:
    """Return the certificates of all targets."""
    return certificate.parts or (certificate,)

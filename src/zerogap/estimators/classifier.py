"""The classifier: labels, one problem per class or one for all."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Self, cast

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from zerogap.cuda.device import to_host
from zerogap.estimators.calibration import Calibration, calibrate
from zerogap.estimators.model import LinearModel
from zerogap.estimators.outputs import (
    are_integers,
    joint_model,
    label_targets,
    refuse_several,
    signs_of,
)
from zerogap.estimators.parameters import all_or_nothing, keep, with_shared_parameters
from zerogap.losses import ALL_LOSSES, Logistic, Loss, Softmax
from zerogap.problem import Problem
from zerogap.problem.validation import (
    check_number,
    class_factors,
    find_classes,
    fingerprint,
    sample_weights,
)
from zerogap.regions.certified_predictions import (
    UNSETTLED,
    difference,
    settled_labels,
    until_settled,
)
from zerogap.solvers import Result
from zerogap.store import Store


@with_shared_parameters
class LinearClassifier(ClassifierMixin, LinearModel):
    """Linear classifier trained to a certified duality gap.

    Minimises 1/S sum_i s_i phi(y_i (x_i.w + b)) + lam/2 |w|^2 for the chosen loss, with weights
    s_i of sum S, and proves how close the result is to the optimum.  More than two classes are
    handled jointly by the multiclass losses, and one against the rest by the others.

    Parameters
    ----------
    loss : str or Loss
        "hinge" (support vector machine), "smooth-hinge", "squared-hinge", "logistic",
        "multiclass-hinge" (Crammer and Singer), "softmax", or an object such as
        ``zg.SmoothHinge(gamma=0.1)``.
    SHARED PARAMETERS
    class_weight : dict or "balanced", optional
        Weights of the classes, multiplied with the sample weights.
    n_jobs : int, optional
        Threads for one-against-rest problems.  The result does not depend on it.
    stop : "gap" or "labels"
        When the fit is done: at the gap that `tol` asks for, or when the labels of the rows `X_val`
        are those of the exact optimum, whatever the gap.
    settled : float in (0, 1]
        Share of the labels that must be settled if stop is "labels".

    Attributes
    ----------
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1 or n_classes,)
        Intercepts.
    classes_ : ndarray
        Class labels.
    certificate_ : Certificate
        Primal value, dual value and duality gap; ``parts`` has one certificate per class.
    history_ : History, or list of History with more than two classes
        The certificates along the way.
    dual_coef_ : ndarray of shape (1 or n_classes, n_samples)
        Dual variables; those of a support vector machine are zero except at its support vectors.
    n_iter_ : int
        Epochs run.
    n_features_in_ : int
        Number of features.
    row_ids_ : ndarray of shape (n_samples,)
        Numbers of the training rows, for `forget`: from 0 on, rows that `update` adds after them.
    fingerprint_ : str
        Checksums of the rows, targets and weights of the fit.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> clf = zg.LinearClassifier(loss="logistic", tol=1e-6, random_state=0).fit(X, y)
    >>> clf.certificate_.relative_gap <= 1e-6
    True
    >>> clf.predict(X[:3])
    array([...])
    """

    _task = "classification"
    calibration_: Calibration
    multilabel_ = False  # whether rows have several labels at once

    def __init__(
        self,
        loss: str | Loss = "hinge",
        *,
        lam: float | None = None,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        class_weight: dict | str | None = None,
        solver: Any = "auto",
        tol: float = 1e-3,
        max_epochs: int = 1000,
        max_seconds: float | None = None,
        device: str = "cpu",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable | None = None,
        checkpoint: str | None = None,
        keep_data: bool = False,
        stop: str = "gap",
        settled: float = 0.999,
    ) -> None:
        keep(self, locals())

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, X_val: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or Store, of shape (n_samples, n_features)
            Rows.  float32 and float64 values are used without a copy; do not change X meanwhile.
            The indices of a CSR matrix are copied, so that changing them is no danger.  A Store is
            loaded if it has no `max_memory` and takes less than a quarter of the free memory; else
            it is read block by block, by `zerogap.solvers.BlockSDCA` and `BlockNewton`.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Class labels; those of a Store are its own.  A matrix of 0 and 1 tells which of several
            labels each row has: one model for each of them.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is exactly a row that occurs twice.  A Store has its own.
        X_val : array-like or sparse matrix of shape (n_rows, n_features), optional
            Rows whose labels decide when to stop, if ``stop="labels"``.

        Returns
        -------
        self
            The fitted model.  After Ctrl-C, KeyboardInterrupt is raised and the best certified
            model so far is in the attributes.
        """
        self._check_parameters()
        self._check_stop(X, X_val)
        if isinstance(X, Store):
            return self._fit_store(X, y, sample_weight)
        X, y = self._rows(X, y)
        validation = None if X_val is None else self._rows(X_val)
        weights = sample_weights(to_host(sample_weight), X.shape[0])
        if np.ndim(y) == 2:
            return self._fit_labels(X, y, weights)
        classes, codes = find_classes(y, None if sample_weight is None else weights)
        if len(classes) > len(y) // 2 or not are_integers(classes):
            check_classification_targets(y)
        self._data = (X, y, weights) if self.keep_data else None
        if len(classes) < 2:
            raise ValueError(
                "a classifier needs at least two classes, but y has only one class, "
                f"{classes.tolist()[0]!r}"
                + (" among rows with positive weight" if len(np.unique(y)) > 1 else "")
            )
        self.fingerprint_ = "" if self._moved else fingerprint(X, codes, weights)
        given = None if sample_weight is None else weights
        if self.class_weight is not None:
            given = weights * class_factors(self.class_weight, classes, codes, weights)[codes]
        joint = self._loss().task == "multiclass"
        targets = codes[None, :] if joint else signs_of(codes, len(classes), X.shape)
        return self._conclude(self._solve(X, targets, given, validation), classes)

    def _fit_labels(self, X: Any, y: Any, weights: np.ndarray) -> Self:
        """Fit one model for each label against its absence."""
        if self._loss().task == "multiclass" or self.stop == "labels" or self._moved:
            raise ValueError(
                f"several labels at once need rows in memory, stop='gap' and a loss of one score, "
                f"not {self._loss()}"
            )
        labels, targets, given = label_targets(y, weights, self.class_weight)
        self._data = (X, labels, weights) if self.keep_data else None
        self.fingerprint_ = fingerprint(X, labels.ravel(), weights)
        self._conclude(self._solve(X, targets, given), np.arange(len(targets)))
        self.multilabel_ = True
        return self

    def _check_stop(self, X: Any, X_val: Any) -> None:
        if self.stop not in ("gap", "labels"):
            raise ValueError(f"stop must be 'gap' or 'labels', got {self.stop!r}")
        check_number("settled", self.settled, Real, 0)
        if not 0 < self.settled <= 1:
            raise ValueError(f"settled must be a share in (0, 1], got {self.settled!r}")
        if (self.stop == "labels") != (X_val is not None):
            raise ValueError("stop='labels' and X_val, the rows to be labelled, go together")
        if X_val is not None and isinstance(X, Store):
            raise ValueError("stop='labels' needs rows in memory, not a store")

    def _until(self, problems: int, validation: Any) -> Callable[[Problem], Callable]:
        if problems > 1:
            raise ValueError(
                "stop='labels' needs one model for all classes: use loss='softmax' or "
                "'multiclass-hinge'"
            )
        return lambda problem: until_settled(problem, validation, self.settled, self.callback)

    def _fit_streamed(self, store: Store) -> Self:
        return self._conclude(self._solve_streamed(store), cast("np.ndarray", store.classes))

    def _conclude(self, results: list[Result], classes: np.ndarray) -> Self:
        self.classes_ = classes
        self.multilabel_ = False
        self._publish(results)
        if hasattr(self, "calibration_"):
            del self.calibration_  # of other scores
        if self._loss().task == "multiclass":
            self._unstack()
        return self._finish()

    def _unstack(self) -> None:
        """Give the attributes of one joint model the shapes that several binary models have."""
        self.coef_, self.intercept_ = joint_model(self.coef_[0], self.intercept_[0])
        self.dual_coef_ = self.dual_coef_[0].T[-len(self.coef_) :].copy()

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores x.w + b: one per row, and per class if there are three or more.

        Parameters
        ----------
        X : array, CSR matrix, DataFrame or Store
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The scores.
        """
        return self._returned(self._flat_scores(X), X)

    def _flat_scores(self, X: Any) -> np.ndarray:
        scores = self._scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on rows and labels, or on a Store, its weights not counted.

        Parameters
        ----------
        X : array, CSR matrix, DataFrame or Store
            Rows.
        y : array, optional
            Labels; those of the Store if X is one.
        sample_weight : array, optional
            Weights of the rows.

        Returns
        -------
        float
            Share of right labels.
        """
        if not isinstance(X, Store):
            return super().score(to_host(X), to_host(y), sample_weight)
        classes: Any = X.classes
        right = sum(
            np.sum(self.predict(part.X) == classes[part.y.astype(np.int64)])
            for _, part in X.stream()
        )
        return float(right / X.n_samples)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row of X, which may be a Store.

        Parameters
        ----------
        X : array, CSR matrix, DataFrame or Store
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, of the type of those in `fit`.
        """
        scores = self._flat_scores(X)
        if self.multilabel_:
            return self._returned((scores > 0).astype(np.int64), X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self._returned(self.classes_[to_host(codes)], X)

    def predict_certified(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the class of each row, and whether the exact optimum is proved to agree.

        The optimal weights lie within ``radius`` of `coef_` and the optimal intercept in an
        interval, both of which follow from the certificate (see `zerogap.regions`); so a row's
        optimal score is known up to |x| radius and the interval's length.  A row is certified if
        no score in question changes its class.  A smaller `tol` certifies more rows.

        For a model from a file, radius and interval are what the file says.  A UserWarning tells
        so until `zerogap.model_io.recertify` has found them true on the data of the fit.

        Parameters
        ----------
        X : array, CSR matrix, DataFrame or Store
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            As `predict` returns them.
        certified : ndarray of bool of shape (n_rows,)
            Whether the label is that of the exact optimum.

        Examples
        --------
        >>> import zerogap as zg
        >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
        >>> clf = zg.LinearClassifier(tol=1e-6, random_state=0).fit(X, y)
        >>> labels, certified = clf.predict_certified(X)
        >>> bool(certified.mean() > 0.9)
        True
        """
        refuse_several(self, "predict_certified")
        X = to_host(X)
        regions, labels = self._regions(), self.predict(X)
        joint = self._loss().task == "multiclass"
        if joint and len(self.classes_) == 2:
            regions, joint = [difference(regions[0])], False
        model = np.atleast_2d(to_host(self.coef_)), np.atleast_1d(to_host(self.intercept_))
        settled = settled_labels(self._rows(X), *model, regions, joint)
        return labels, (settled != UNSETTLED) & (self.classes_[settled] == labels)

    def certified_fraction(self, X: Any) -> float:
        """Return the share of rows whose label is proved to be that of the exact optimum.

        Parameters
        ----------
        X : array, CSR matrix, DataFrame or Store
            Rows.

        Returns
        -------
        float
            Between 0 and 1.
        """
        return float(self.predict_certified(X)[1].mean())

    def calibrate(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        scores: str = "auto",
        folds: int = 5,
    ) -> Self:
        """Give a model without probabilities `predict_proba`: sigmoids of its scores.

        They are fitted to scores of the training rows by models that have not seen them, as
        `zerogap.estimators.calibration` tells.

        Parameters
        ----------
        X, y, sample_weight
            The data of the fit.  Not needed with ``keep_data=True`` if it was not a Store.
        scores : "auto", "leave-one-out" or "folds"
            Which scores: exact leave-one-out, for two classes, or those of models without a fold.
            "auto" takes the first for up to 2000 rows.
        folds : int
            Number of folds.

        Returns
        -------
        self
            The model, with a `calibration_` that says what was done; the next `fit` drops it.

        Examples
        --------
        >>> import zerogap as zg
        >>> X, y, beta = zg.datasets.make_simulated(n_samples=200, random_state=0)
        >>> clf = zg.LinearClassifier("hinge", lam=0.1, random_state=0).fit(X, y)
        >>> hasattr(clf, "predict_proba")
        False
        >>> clf.calibrate(X, y).predict_proba(X).shape
        (200, 2)
        """
        check_is_fitted(self, "coef_")
        refuse_several(self, "calibrate")
        if X is None and isinstance(self._data, tuple):
            X, y, sample_weight = self._data
        if X is None or y is None or isinstance(X, Store):
            raise ValueError("calibrate needs the data of the fit: give X and y, or keep_data")
        self.calibration_ = calibrate(self, X, y, sample_weight, scores, folds)
        return self

    def _has_probabilities(self) -> bool:
        own = self.loss in ("logistic", "softmax") or isinstance(self.loss, Logistic | Softmax)
        if own or hasattr(self, "calibration_"):
            return True
        raise AttributeError(
            f"loss={self.loss!r} has no probabilities: call calibrate(X, y) with the data of the "
            f"fit, which fits sigmoids to leave-one-out scores, or use loss='logistic' or 'softmax'"
        )

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class: logistic and softmax losses, and after `calibrate`.

        With more than two classes and one score for each, the one-against-rest probabilities
        divided by their sum.
        """
        return self._returned(self._probabilities(self._scores(to_host(X))), X)

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        calibration = getattr(self, "calibration_", None)
        joint = self._loss().task == "multiclass" and calibration is None
        if scores.shape[1] > 1 and joint:
            return softmax(scores, axis=1)
        likely = expit(scores) if calibration is None else calibration.likely(scores)
        if self.multilabel_:
            return likely
        if likely.shape[1] == 1:
            return np.hstack([1.0 - likely, likely])
        total = likely.sum(axis=1, keepdims=True)
        return np.where(total > 0, likely / np.where(total > 0, total, 1), 1.0 / likely.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        loss = ALL_LOSSES.get(self.loss) if isinstance(self.loss, str) else self.loss
        tags.classifier_tags.multi_label = getattr(loss, "task", "") != "multiclass"
        return tags

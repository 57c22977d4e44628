"""scikit-learn's estimators that choose their own regularisation, with certificates."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.metrics import check_scoring, make_scorer
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metadata_routing import _raise_for_params, _routing_enabled, process_routing
from sklearn.utils.validation import _check_sample_weight

from zerogap.dropin.choice import choose
from zerogap.dropin.continuum import ALL, INTERVAL, over_all_lambdas
from zerogap.dropin.fit import DropIn, NothingProved, OnProcessor, RegressorDropIn
from zerogap.dropin.models import (
    ElasticNet,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    refuse_many_for_liblinear,
)
from zerogap.dropin.refused import logistic_method
from zerogap.problem.validation import class_factors


def _or_all(cls: Any, name: str) -> dict[str, Any]:
    """Return the constraints of a class, with "all" in place of a grid allowed as well."""
    known = cls._parameter_constraints
    return {**known, name: [*known[name], StrOptions({ALL})]}


class _Refitted(OnProcessor):
    """Chosen by scikit-learn's exact formulas, fitted with a certificate."""

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose alpha as scikit-learn does, and fit the model of that alpha with a certificate.

        Without `cv` the choice is by exact leave-one-out errors from one factorisation; with `cv`
        by direct solves on each fold.  Both are exact up to rounding.
        """
        shared = set(self._base().get_params()) & set(self.get_params())
        settings = {name: getattr(self, name) for name in shared}
        if isinstance(self.alphas, str):
            return self._choose_of_all(X, y, sample_weight, self._base(**settings))
        if np.size(self.alphas) == 0:
            raise ValueError("alphas is empty: give at least one strength")
        super().fit(X, y, sample_weight=sample_weight, **params)  # type: ignore[misc]
        model = self._base(**settings, alpha=self.alpha_, random_state=0)
        if not np.all(np.asarray(self.alpha_) > 0):
            self.certificate_ = None
            return self
        coef, intercept = np.atleast_2d(self.coef_), np.ravel(self.intercept_)
        model._given = coef, np.broadcast_to(intercept, len(coef))
        model.fit(X, y, sample_weight=sample_weight)
        self.certificate_ = model.certificate_
        self.coef_ = model.coef_.reshape(np.shape(self.coef_))
        if self.fit_intercept:
            self.intercept_ = np.reshape(model.intercept_, np.shape(self.intercept_))[()]
        return self

    def _choose_of_all(self: Any, X: Any, y: Any, sample_weight: Any, model: Any) -> Any:
        """Choose alpha by the squared error at every number of an interval."""
        self._validate_params()
        rows, targets = model._checked(X, y)
        classes = getattr(model, "classes_", None)
        plain = getattr(self, "class_weight", None) is None and self.scoring is None
        several = targets.ndim > 1 or (classes is not None and len(classes) > 2)
        if several or sample_weight is not None or not plain:
            raise ValueError(
                "alphas='all' is for one target or two classes, scoring=None and no weights: "
                "give a grid"
            )
        if classes is not None:
            targets = np.where(targets == classes[1], 1.0, -1.0)
        folds = list(
            check_cv(self.cv, targets, classifier=classes is not None).split(rows, targets)
        )
        ends = [alpha / len(targets) for alpha in INTERVAL]
        self.choice_ = over_all_lambdas(self, rows, targets, "squared", 0.0, folds, *ends)
        self.alpha_ = self.choice_.best.lam * len(targets)
        model.set_params(alpha=self.alpha_).fit(X, y)
        for name, value in vars(model).items():
            if name.endswith("_") and name != "solver_":
                setattr(self, name, value)
        self.best_score_ = -2.0 * self.choice_.best.error  # the loss is half the square
        self._label_binarizer = getattr(model, "_label_binarizer", None)
        return self


class RidgeCV(_Refitted, linear_model.RidgeCV):
    """scikit-learn's RidgeCV, the chosen model certified.

    ``alphas="all"`` chooses between all numbers from 1e-4 to 1e4, by the squared error of `cv`
    folds: see `zerogap.path_cv`, whose curve is then `choice_`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap.linear_model import RidgeCV
    >>> model = RidgeCV().fit(*load_diabetes(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-9
    True
    """

    _base = Ridge
    _parameter_constraints = _or_all(linear_model.RidgeCV, "alphas")


class RidgeClassifierCV(_Refitted, linear_model.RidgeClassifierCV):
    """scikit-learn's RidgeClassifierCV, the chosen model certified; ``alphas="all"`` as RidgeCV.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from zerogap.linear_model import RidgeClassifierCV
    >>> model = RidgeClassifierCV().fit(*load_iris(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-9
    True
    """

    _base = RidgeClassifier
    _parameter_constraints = _or_all(linear_model.RidgeClassifierCV, "alphas")


class _Searched:
    """What the other two do: routing of metadata, folds, weights."""

    def _data(
        self: Any, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[tuple[Any, np.ndarray, Any], list[Any], dict[str, Any]]:
        """Return rows, targets and weights, folds, and further arguments of the score."""
        _raise_for_params(params, self, "fit")
        self._validate_params()
        rows, targets = self._checked(X, y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        split: dict[str, Any] = {}
        scored = {} if sample_weight is None else {"sample_weight": sample_weight}
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            split = routed.splitter.split
            scored = routed.scorer.score if "scorer" in routed else scored
        splitter = check_cv(self.cv, targets, classifier=hasattr(self, "classes_"))
        folds = list(splitter.split(rows, targets, **split))
        return (rows, targets, sample_weight), folds, scored


class LogisticRegressionCV(_Searched, DropIn, linear_model.LogisticRegressionCV):
    """scikit-learn's LogisticRegressionCV: every fit of every fold certified, folds in threads.

    `choice_` says what is known of the choice: all scores, and a proved gap for each of them.
    ``Cs="all"`` chooses between all numbers from 1e-4 to 1e4, for two classes and the accuracy:
    see `zerogap.path_cv`, whose curve is then `choice_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from zerogap.linear_model import LogisticRegressionCV
    >>> model = LogisticRegressionCV(Cs=3, cv=3, l1_ratios=(0,), use_legacy_attributes=False)
    >>> model = model.fit(*load_iris(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-8
    True
    """

    _parameter_constraints = _or_all(linear_model.LogisticRegressionCV, "Cs")

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose C and l1_ratio by cross-validation, and fit to all rows."""
        ratios = self._ratios()
        logistic_method(self, ratios)
        data, folds, scored = self._data(X, y, sample_weight, params)
        rows, labels, weights = data
        base = self._model(labels, weights)
        if isinstance(self.Cs, str):
            return self._choose_of_all(base, data, folds, float(ratios[0]))
        self.Cs_ = np.logspace(-4, 4, self.Cs) if np.ndim(self.Cs) == 0 else np.asarray(self.Cs)
        order = [(float(r), float(C)) for r in ratios for C in self.Cs_]
        settings = [{"C": C, "l1_ratio": r} for r, C in order]

        def make() -> LogisticRegression:
            return self._model(labels, weights).set_params(warm_start=True)

        score = self._score_of_folds(base)
        choice, models = choose(make, settings, data, folds, score, scored, self.n_jobs)
        shape = (len(folds), len(ratios), len(self.Cs_))
        self.choice_ = choice.first_of(shape)  # scikit-learn's order among equals
        self._keep_paths(models, shape)
        if self.refit:
            best = base.set_params(**self.choice_.parameters)
            best.fit(rows, labels, sample_weight=weights)
            self.coef_, self.intercept_ = best.coef_, best.intercept_
            self.certificate_ = best.certificate_
            chosen = self.choice_.parameters
        else:
            chosen = self._mean_of_folds(models)
        self._keep_chosen(chosen["C"], chosen["l1_ratio"])
        return self

    def _find_classes(self: Any, y: np.ndarray) -> None:
        super()._find_classes(y)
        refuse_many_for_liblinear(self)

    def _ratios(self: Any) -> np.ndarray:
        """Set `l1_ratios_` as scikit-learn does, and return the shares of L1 to choose from."""
        given = not (self.l1_ratios is None or isinstance(self.l1_ratios, str))
        named = getattr(self, "penalty", "deprecated")
        if named == "elasticnet" and not given:
            raise ValueError("penalty='elasticnet' needs l1_ratios, a list of numbers in [0, 1]")
        self.l1_ratios_ = np.asarray(self.l1_ratios if given else [None])
        fixed = {"l1": 1.0, "l2": 0.0}.get(named)
        if given and fixed is None:
            return self.l1_ratios_.astype(np.float64)
        return np.full(len(self.l1_ratios_), fixed or 0.0)

    def _model(self: Any, labels: np.ndarray, weights: Any) -> LogisticRegression:
        model = LogisticRegression(
            fit_intercept=self.fit_intercept,
            dual=False,
            tol=self.tol,
            max_iter=self.max_iter,
            class_weight=self._weights_of_classes(labels, weights),
            solver=self.solver,
            intercept_scaling=self.intercept_scaling,
            random_state=self.random_state,
        )
        if hasattr(self, "penalty"):  # scikit-learn 1.10 removes it
            model.penalty = self.penalty
        model._known_classes = self.classes_
        return model

    def _weights_of_classes(self: Any, y: np.ndarray, weights: Any) -> Any:
        """Return weights that are the same in all folds: "balanced" is that of all rows."""
        if self.class_weight != "balanced":
            return self.class_weight
        counted = np.ones(len(y)) if weights is None else weights
        codes = np.searchsorted(self.classes_, y)
        factors = class_factors("balanced", self.classes_, codes, counted)
        return dict(zip(self.classes_.tolist(), factors.tolist(), strict=True))

    def _score_of_folds(self: Any, base: Any) -> Any:
        """Return the score; if it takes labels, it is told all of them: folds may lack some."""
        score = check_scoring(base, scoring=None if self.scoring == "warn" else self.scoring)
        function = getattr(score, "_score_func", None)
        names = {} if function is None else inspect.signature(function).parameters
        if "labels" not in names:
            return score
        positive = {"pos_label": self.classes_[-1]} if "pos_label" in names else {}
        told = make_scorer(
            function,
            greater_is_better=score._sign == 1,
            response_method=score._response_method,
            labels=self.classes_,
            **(positive if len(self.classes_) == 2 else {}),
            **score._kwargs,
        )
        return lambda model, X, y, **more: told(model, X, y, **more)

    def _choose_of_all(self: Any, base: Any, data: Any, folds: Any, ratio: float) -> Any:
        """Choose C by the accuracy at every number of an interval."""
        rows, labels, weights = data
        plain = self.class_weight is None and self.scoring in (None, "accuracy", "warn")
        if len(self.classes_) > 2 or weights is not None or not plain or not self.refit:
            raise ValueError(
                "Cs='all' is for two classes, scoring=None, refit=True and no weights: give a grid"
            )
        n = len(labels)
        signs = np.where(labels == self.classes_[1], 1.0, -1.0)
        ends = sorted(1.0 / (C * n) for C in INTERVAL)
        self.choice_ = over_all_lambdas(self, rows, signs, "logistic", ratio, folds, *ends)
        C = 1.0 / (self.choice_.best.lam * n)
        best = base.set_params(C=C, l1_ratio=ratio).fit(rows, labels)
        self.coef_, self.intercept_ = best.coef_, best.intercept_
        self.certificate_, self.n_iter_ = best.certificate_, best.n_iter_
        self.Cs_ = np.array(INTERVAL)
        self._keep_chosen(C, ratio)
        return self

    def _mean_of_folds(self: Any, models: list[list[Any]]) -> dict[str, float]:
        """Keep the mean of each fold's best coefficients, as scikit-learn does."""
        warnings.warn(
            "refit=False keeps means of the models of folds, which are the optimum of nothing",
            NothingProved,
            stacklevel=3,
        )
        best = self.choice_.best_of_folds
        found = [row[k] for row, k in zip(models, best, strict=True)]
        self.coef_ = np.mean([model.coef_ for model in found], axis=0)
        self.intercept_ = np.mean([model.intercept_ for model in found], axis=0)
        self.certificate_ = None
        chosen = [self.choice_.settings[k] for k in best]
        return {name: float(np.mean([c[name] for c in chosen])) for name in chosen[0]}

    def _keep_paths(self: Any, models: list[list[Any]], shape: tuple[int, ...]) -> None:
        """Set what is known of every fit, in the shapes of `use_legacy_attributes`."""
        scores = self.choice_.scores.reshape(shape)
        epochs = np.array([[m.n_iter_[0] for m in row] for row in models]).reshape(shape)
        paths = np.array(
            [
                [np.column_stack([m.coef_, m.intercept_][: 1 + m.fit_intercept]) for m in row]
                for row in models
            ]
        )
        paths = paths.reshape(*shape, *paths.shape[2:])  # folds, ratios, Cs, classes, features
        if getattr(self, "use_legacy_attributes", True) is False:
            self.scores_, self.n_iter_, self.coefs_paths_ = scores, epochs, paths
            return
        names = self.classes_ if len(self.classes_) > 2 else self.classes_[1:]
        one = self.l1_ratios is None or isinstance(self.l1_ratios, str)
        self.scores_ = {k: scores[:, 0] if one else np.swapaxes(scores, 1, 2) for k in names}
        self.n_iter_ = (epochs[:, 0] if one else np.swapaxes(epochs, 1, 2))[None]
        by_class = np.moveaxis(paths, 3, 0)
        self.coefs_paths_ = {
            name: path[:, 0] if one else np.swapaxes(path, 1, 2)
            for name, path in zip(names, by_class, strict=True)
        }

    def _keep_chosen(self: Any, C: float, l1_ratio: float) -> None:
        if getattr(self, "use_legacy_attributes", True) is False:
            self.C_, self.l1_ratio_ = C, l1_ratio
            return
        count = len(self.classes_) if len(self.classes_) > 2 else 1
        known = None if self.l1_ratios_[0] is None else l1_ratio
        self.C_, self.l1_ratio_ = np.full(count, C), np.full(count, known)


class ElasticNetCV(_Searched, RegressorDropIn, linear_model.ElasticNetCV):
    """scikit-learn's ElasticNetCV: every fit of every fold certified, folds in threads.

    `choice_` says what is known of the choice: all scores, and a proved gap for each of them.
    ``alphas="all"`` chooses between all numbers from the largest useful one down to `eps` of it:
    see `zerogap.path_cv`, whose curve is then `choice_`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap.linear_model import ElasticNetCV
    >>> model = ElasticNetCV(alphas=5, cv=3).fit(*load_diabetes(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-4
    True
    """

    _parameter_constraints = _or_all(linear_model.ElasticNetCV, "alphas")

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose alpha and l1_ratio by the mean squared error of cross-validation."""
        data, folds, scored = self._data(X, y, sample_weight, params)
        rows, targets, weights = data
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=float))
        grids = [self._grid(rows, targets, weights, ratio) for ratio in ratios]
        several = np.ndim(self.alphas) == 0 and len(ratios) > 1
        self.alphas_ = np.array(grids) if several else grids[0]
        names = ("fit_intercept", "tol", "max_iter", "positive", "random_state")
        base = ElasticNet(**{name: getattr(self, name) for name in names})
        if isinstance(self.alphas, str):
            return self._choose_of_all(base, data, folds, ratios)
        settings = [
            {"alpha": float(alpha), "l1_ratio": float(ratio)}
            for ratio, grid in zip(ratios, grids, strict=True)
            for alpha in grid
        ]
        score = check_scoring(base, scoring="neg_mean_squared_error")

        def make() -> ElasticNet:
            return ElasticNet(**base.get_params()).set_params(warm_start=True)

        self.choice_, _ = choose(make, settings, data, folds, score, scored, self.n_jobs)
        errors = -self.choice_.scores.T.reshape(len(ratios), -1, len(folds))
        self.mse_path_ = np.squeeze(errors)
        return self._keep_best(base.set_params(**self.choice_.parameters), data)

    def _choose_of_all(self: Any, base: Any, data: Any, folds: Any, ratios: np.ndarray) -> Any:
        """Choose alpha by the error at every number of an interval, for each l1_ratio."""
        rows, targets, weights = data
        if weights is not None or self.positive:
            raise ValueError("alphas='all' takes no sample weights and not positive=True")
        ends = np.atleast_2d(self.alphas_)
        curves = [
            over_all_lambdas(self, rows, targets, "squared", ratio, folds, low, high)
            for ratio, (high, low) in zip(ratios, ends, strict=True)
        ]
        best = min(range(len(curves)), key=lambda k: curves[k].best.error)
        self.choice_ = curves[best]
        chosen = {"alpha": self.choice_.best.lam, "l1_ratio": float(ratios[best])}
        return self._keep_best(base.set_params(**chosen), data)

    def _keep_best(self: Any, best: Any, data: Any) -> Any:
        best.fit(data[0], data[1], sample_weight=data[2])
        self.certificate_, self.dual_gap_ = best.certificate_, best.dual_gap_
        self.coef_, self.intercept_, self.n_iter_ = best.coef_, best.intercept_, best.n_iter_
        self.alpha_, self.l1_ratio_ = np.float64(best.alpha), np.float64(best.l1_ratio)
        return self

    def _grid(self: Any, X: Any, y: np.ndarray, weights: Any, l1_ratio: float) -> np.ndarray:
        """Return strengths from the least that makes w = 0 optimal, down to `eps` of it."""
        given = self.alphas
        if np.ndim(given) == 1:
            return np.sort(np.asarray(given, dtype=float))[::-1]
        number = getattr(self, "n_alphas", "deprecated")
        count = number if isinstance(number, int) else 100 if given in (None, "warn") else given
        if l1_ratio == 0:
            raise ValueError(
                "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a "
                "grid by providing your estimator with the appropriate `alphas=` argument."
            )
        share = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
        residual = share * (y - share @ y if self.fit_intercept else y)
        if self.fit_intercept:  # the columns' means change nothing, as the residual sums to zero
            residual = residual - share * residual.sum()
        slopes = X.T @ residual
        largest = (max(0.0, slopes.max()) if self.positive else np.abs(slopes).max()) / l1_ratio
        smallest = float(np.finfo(float).resolution)
        if largest <= smallest:
            return np.full(2 if count == ALL else count, smallest)
        return np.geomspace(largest, largest * self.eps, 2 if count == ALL else count)

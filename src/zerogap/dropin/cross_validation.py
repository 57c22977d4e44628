"""scikit-learn's estimators that choose their own regularisation, with certificates."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_sample_weight

from zerogap.dropin.choice import choose
from zerogap.dropin.fit import DropIn, RegressorDropIn
from zerogap.dropin.models import ElasticNet, LogisticRegression, Ridge, RidgeClassifier
from zerogap.problem.validation import class_factors


class _Refitted:
    """Chosen by scikit-learn's exact formulas, fitted with a certificate."""

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose alpha as scikit-learn does, and fit the model of that alpha with a certificate.

        Without `cv` the choice is by exact leave-one-out errors from one factorisation; with `cv`
        by direct solves on each fold.  Both are exact up to rounding.
        """
        super().fit(X, y, sample_weight=sample_weight, **params)  # type: ignore[misc]
        shared = set(self._base().get_params()) & set(self.get_params())
        settings = {name: getattr(self, name) for name in shared}
        model = self._base(**settings, alpha=self.alpha_, random_state=0)
        if not np.all(np.asarray(self.alpha_) > 0):
            self.certificate_ = None
            return self
        model.fit(X, y, sample_weight=sample_weight)
        self.certificate_ = model.certificate_
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        return self


class RidgeCV(_Refitted, linear_model.RidgeCV):
    """scikit-learn's RidgeCV, the chosen model certified."""

    _base = Ridge


class RidgeClassifierCV(_Refitted, linear_model.RidgeClassifierCV):
    """scikit-learn's RidgeClassifierCV, the chosen model certified."""

    _base = RidgeClassifier


class LogisticRegressionCV(DropIn, linear_model.LogisticRegressionCV):
    """scikit-learn's LogisticRegressionCV: every fit of every fold certified, folds in threads.

    `choice_` says what is known of the choice: all scores, and a proved gap for each of them.
    """

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose C and l1_ratio by cross-validation, and fit to all rows.

        `refit=False`, means of the coefficients of the folds, is refused: they are the optimum of
        nothing.
        """
        self._validate_params()
        if params:
            raise TypeError(f"fit takes no {', '.join(params)}: metadata are not routed here")
        if not self.refit:
            raise ValueError("refit=False averages models, which are the optimum of nothing")
        rows, labels = self._checked(X, y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        self.Cs_ = np.logspace(-4, 4, self.Cs) if np.ndim(self.Cs) == 0 else np.asarray(self.Cs)
        ratios = self.l1_ratios
        given = not (ratios is None or isinstance(ratios, str))
        self.l1_ratios_ = np.asarray(ratios, dtype=float) if given else np.zeros(1)
        base = LogisticRegression(
            fit_intercept=self.fit_intercept,
            dual=False,
            tol=self.tol,
            max_iter=self.max_iter,
            class_weight=self._weights_of_classes(labels, sample_weight),
            solver=self.solver,
            intercept_scaling=self.intercept_scaling,
            random_state=self.random_state,
            warm_start=True,
        )
        order = [(float(r), float(C)) for r in self.l1_ratios_ for C in self.Cs_]
        settings = [{"C": C, "l1_ratio": r} for r, C in order]
        folds = list(check_cv(self.cv, labels, classifier=True).split(rows, labels))
        scoring = None if self.scoring == "warn" else self.scoring
        score = check_scoring(base, scoring=scoring)
        data = (rows, labels, sample_weight)
        self.choice_, models = choose(base, settings, data, folds, score, self.n_jobs)
        best = base.set_params(**self.choice_.parameters, warm_start=False)
        best.fit(rows, labels, sample_weight=sample_weight)
        self._keep_choice(best, models)
        return self

    def _weights_of_classes(self: Any, y: np.ndarray, weights: Any) -> Any:
        """Return weights that are the same in all folds: "balanced" is that of all rows."""
        if self.class_weight != "balanced":
            return self.class_weight
        counted = np.ones(len(y)) if weights is None else weights
        codes = np.searchsorted(self.classes_, y)
        factors = class_factors("balanced", self.classes_, codes, counted)
        return dict(zip(self.classes_.tolist(), factors.tolist(), strict=True))

    def _keep_choice(self: Any, best: Any, models: list[list[Any]]) -> None:
        """Set the attributes, in the shapes of `use_legacy_attributes`."""
        self.certificate_ = best.certificate_
        self.coef_, self.intercept_ = best.coef_, best.intercept_
        chosen, n_ratios, n_Cs = self.choice_.parameters, len(self.l1_ratios_), len(self.Cs_)
        shape = (len(models), n_ratios, n_Cs)
        scores = self.choice_.scores.reshape(shape)
        epochs = np.array([[int(m.n_iter_[0]) for m in row] for row in models]).reshape(shape)
        paths = np.array(
            [
                [np.column_stack([m.coef_, m.intercept_][: 1 + m.fit_intercept]) for m in row]
                for row in models
            ]
        )
        paths = paths.reshape(*shape, *paths.shape[2:])  # folds, ratios, Cs, classes, features
        if getattr(self, "use_legacy_attributes", True) is False:
            self.C_, self.l1_ratio_ = chosen["C"], chosen["l1_ratio"]
            self.scores_, self.n_iter_, self.coefs_paths_ = scores, epochs, paths
            return
        names = self.classes_ if len(self.classes_) > 2 else self.classes_[1:]
        self.C_ = np.full(len(names), chosen["C"])
        self.l1_ratio_ = np.full(len(names), chosen["l1_ratio"])
        one = self.l1_ratios is None or isinstance(self.l1_ratios, str)
        self.scores_ = {k: scores[:, 0] if one else np.swapaxes(scores, 1, 2) for k in names}
        self.n_iter_ = (epochs[:, 0] if one else np.swapaxes(epochs, 1, 2))[None]
        by_class = np.moveaxis(paths, 3, 0)
        self.coefs_paths_ = {
            name: path[:, 0] if one else np.swapaxes(path, 1, 2)
            for name, path in zip(names, by_class, strict=True)
        }


class ElasticNetCV(RegressorDropIn, linear_model.ElasticNetCV):
    """scikit-learn's ElasticNetCV: every fit of every fold certified, folds in threads.

    `choice_` says what is known of the choice: all scores, and a proved gap for each of them.
    """

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Choose alpha and l1_ratio by the mean squared error of cross-validation."""
        self._validate_params()
        if params:
            raise TypeError(f"fit takes no {', '.join(params)}: metadata are not routed here")
        rows, targets = self._checked(X, y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        folds = list(check_cv(self.cv, targets).split(rows, targets))
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=float))
        grids = [self._grid(rows, targets, sample_weight, ratio) for ratio in ratios]
        self.alphas_ = grids[0] if np.ndim(self.l1_ratio) == 0 else np.array(grids)
        settings = [
            {"alpha": float(alpha), "l1_ratio": float(ratio)}
            for ratio, grid in zip(ratios, grids, strict=True)
            for alpha in grid
        ]
        names = ("fit_intercept", "tol", "max_iter", "positive", "random_state")
        base = ElasticNet(**{name: getattr(self, name) for name in names}, warm_start=True)
        score = check_scoring(base, scoring="neg_mean_squared_error")
        data = (rows, targets, sample_weight)
        self.choice_, _ = choose(base, settings, data, folds, score, self.n_jobs)
        best = base.set_params(**self.choice_.parameters, warm_start=False)
        best.fit(rows, targets, sample_weight=sample_weight)
        self.certificate_, self.dual_gap_ = best.certificate_, best.dual_gap_
        self.coef_, self.intercept_, self.n_iter_ = best.coef_, best.intercept_, best.n_iter_
        self.alpha_, self.l1_ratio_ = best.alpha, best.l1_ratio
        errors = -self.choice_.scores.T.reshape(len(ratios), -1, len(folds))
        self.mse_path_ = errors[0] if len(ratios) == 1 else errors
        return self

    def _grid(self: Any, X: Any, y: np.ndarray, weights: Any, l1_ratio: float) -> np.ndarray:
        """Return strengths from the least that makes w = 0 optimal, down to `eps` of it."""
        given = self.alphas
        if np.ndim(given) == 1:
            return np.sort(np.asarray(given, dtype=float))[::-1]
        number = getattr(self, "n_alphas", "deprecated")
        count = number if isinstance(number, int) else 100 if given in (None, "warn") else given
        share = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
        residual = share * (y - share @ y if self.fit_intercept else y)
        if self.fit_intercept:  # the columns' means change nothing, as the residual sums to zero
            residual = residual - share * residual.sum()
        largest = np.abs(X.T @ residual).max() / l1_ratio
        largest = max(largest, float(np.finfo(float).resolution))
        return np.geomspace(largest, largest * self.eps, count)

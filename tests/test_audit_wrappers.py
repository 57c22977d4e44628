"""Audits of scikit-learn's further models, and of models around models."""

import warnings

import numpy as np
import pytest
from sklearn import linear_model as lm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR

import zerogap as zg
from zerogap.audit import UnknownObjective
from zerogap.testing import assert_near_optimal

TWO = make_classification(150, 5, n_informative=3, n_redundant=0, flip_y=0.2, random_state=0)
THREE = make_classification(
    180, 6, n_informative=4, n_classes=3, n_redundant=0, flip_y=0.2, random_state=1
)
LINE = make_regression(150, 5, noise=20.0, random_state=2)
LINE = LINE[0] + 0.5, LINE[1] / LINE[1].std() + 1.0
PLANE = LINE[0], np.c_[LINE[1], LINE[1] ** 2]
LABELS = THREE[0], np.c_[THREE[1] == 0, THREE[1] > 1].astype(int)
LOGISTIC = lm.LogisticRegression(C=0.3, tol=1e-9, max_iter=1000)
CV = {"cv": 3, "tol": 1e-9}


def short(value):
    return repr(value)[:60] if hasattr(value, "fit") else ""


OPTIMAL = [
    (lm.LogisticRegressionCV(Cs=4, max_iter=1000, **CV), TWO),
    (lm.LogisticRegressionCV(Cs=4, max_iter=1000, **CV), THREE),
    (lm.RidgeCV(), PLANE),
    (lm.RidgeCV(alpha_per_target=True), PLANE),
    (lm.RidgeClassifierCV(class_weight="balanced"), THREE),
    (lm.RidgeClassifier(), LABELS),
    (lm.BayesianRidge(), LINE),
    (KernelRidge(alpha=2.0), PLANE),
    (lm.ElasticNet(0.1, tol=1e-12), PLANE),
    (lm.ElasticNetCV(l1_ratio=[0.3, 0.7], cv=3, tol=1e-10), LINE),
    (lm.HuberRegressor(alpha=0.1, tol=1e-9, max_iter=10_000), LINE),
    (lm.QuantileRegressor(quantile=0.3, alpha=0.1), LINE),
    (lm.QuantileRegressor(alpha=0.01, fit_intercept=False), LINE),
    (GridSearchCV(lm.QuantileRegressor(), {"alpha": [0.01, 0.1]}, cv=3), LINE),
    (SVC(kernel="linear", C=0.3, tol=1e-6, class_weight={1: 2.0}), TWO),
    (SVC(kernel="linear", C=0.3, tol=1e-6), THREE),
    (SVC(kernel="linear", C=0.3, tol=1e-6, class_weight="balanced"), THREE),
    (SVR(kernel="linear", C=0.3, tol=1e-6), LINE),
    (NuSVC(kernel="linear", nu=0.9, tol=1e-6), TWO),
    (NuSVC(kernel="linear", nu=0.9, tol=1e-6), THREE),
    (NuSVR(kernel="linear", C=0.3, tol=1e-6), LINE),
    (make_pipeline(StandardScaler(), LOGISTIC), TWO),
    (GridSearchCV(LOGISTIC, {"C": [0.1, 1.0]}, cv=3), THREE),
    (RandomizedSearchCV(LOGISTIC, {"C": [0.1, 1.0]}, n_iter=2, cv=3), TWO),
    (GridSearchCV(make_pipeline(StandardScaler(), LOGISTIC), {}, cv=3), TWO),
    (OneVsRestClassifier(LOGISTIC), THREE),
    (OneVsRestClassifier(LOGISTIC), LABELS),
    (OneVsOneClassifier(LOGISTIC), THREE),
    (OutputCodeClassifier(LOGISTIC, random_state=0), THREE),  # one of its columns is constant
    (ClassifierChain(LOGISTIC, order=[1, 0]), LABELS),
    (RegressorChain(lm.Ridge()), PLANE),
    (lm.RANSACRegressor(lm.Ridge(), min_samples=20, random_state=0), LINE),
    (MultiOutputRegressor(lm.Ridge()), PLANE),
    (MultiOutputClassifier(LOGISTIC), LABELS),
    (TransformedTargetRegressor(lm.Ridge(), transformer=StandardScaler()), LINE),
    (CalibratedClassifierCV(LOGISTIC, cv=3), THREE),
    (CalibratedClassifierCV(LOGISTIC, cv=3, ensemble=False), TWO),
    (BaggingClassifier(LOGISTIC, 3, max_features=0.6, random_state=0), TWO),
    (VotingClassifier([("a", LOGISTIC), ("b", lm.RidgeClassifier())]), THREE),
    (RFE(LOGISTIC, n_features_to_select=2), TWO),
]


@pytest.mark.parametrize(("model", "data"), OPTIMAL, ids=short)
def test_optimal_models_are_found_optimal(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*data)
    libsvm = hasattr(model, "kernel") and hasattr(model, "shrinking")  # never ends at 1e-9
    assert_near_optimal(model, *data, tol=1e-4 if libsvm else 1e-6)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (GridSearchCV(lm.SGDClassifier(random_state=0), {"alpha": [1e-3]}, cv=3), TWO),
        (OneVsRestClassifier(lm.SGDClassifier(random_state=0)), THREE),
        (CalibratedClassifierCV(lm.SGDClassifier(random_state=0), cv=3), TWO),
    ],
    ids=["search", "rest", "calibrated"],
)
def test_models_that_are_far_fail_the_assertion(model, data):
    model.fit(*data)
    with pytest.raises(AssertionError, match="is not near its optimum: between"):
        assert_near_optimal(model, *data, tol=1e-6)


def test_the_primal_of_huber_is_scikit_learn_s():
    """n scale + (2 / scale) n P is what it minimises."""
    from sklearn.linear_model._huber import _huber_loss_and_gradient

    X, y = LINE
    with pytest.warns(ConvergenceWarning):
        model = lm.HuberRegressor(alpha=0.1, max_iter=3).fit(X, y)
    point = np.r_[model.coef_, model.intercept_, model.scale_]
    theirs, _ = _huber_loss_and_gradient(point, X, y, model.epsilon, 0.1, np.ones(len(y)))
    primal = zg.certify(model, X, y).primal
    scale = model.scale_
    assert len(y) * (scale + 2 / scale * primal) == pytest.approx(theirs, rel=1e-10)


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (lm.Lasso(0.1, positive=True), LINE, "Lasso with positive=True cannot be certified"),
        (lm.QuantileRegressor(alpha=0), LINE, "QuantileRegressor with alpha=0 cannot be"),
        (lm.PoissonRegressor(), (LINE[0], abs(LINE[1])), "PoissonRegressor cannot be certified"),
        (lm.LinearRegression(), LINE, "it has no penalty"),
        (lm.Perceptron(), TWO, "optimum is w = 0"),
        (lm.LogisticRegressionCV(Cs=2, cv=3, refit=False), TWO, "means of those of the folds"),
        (SVC(), TWO, "kernel='rbf' cannot be certified"),
        (NuSVC(kernel="rbf"), TWO, "kernel='rbf' cannot be certified"),
        (
            CalibratedClassifierCV(FrozenEstimator(LOGISTIC)),
            TWO,
            "holds a frozen model: certify that one",
        ),
        (GridSearchCV(LOGISTIC, {"C": [1.0]}, refit=False), TWO, "needs refit=True"),
        (NuSVC(kernel="linear", class_weight={1: 2.0}), TWO, "NuSVC with class weights"),
        (ClassifierChain(LOGISTIC, cv=3), LABELS, "cv, whose predictions are not kept"),
        (StackingClassifier([("a", LOGISTIC)]), TWO, "on predictions that it does not keep"),
        (AdaBoostClassifier(LOGISTIC, n_estimators=2), TWO, "keeps no weights of the rows"),
        (AdaBoostClassifier(n_estimators=2), TWO, "AdaBoostClassifier cannot be certified"),
        (BaggingClassifier(n_estimators=2), TWO, "DecisionTreeClassifier cannot be certified"),
        (lm.MultiTaskElasticNet(), PLANE, "an L1 penalty of the weights of all targets"),
        (lm.LarsCV(cv=3), LINE, "LarsCV cannot be certified: it adds feature after feature"),
        (lm.TheilSenRegressor(), LINE, "it is a median of fits"),
    ],
    ids=lambda v: repr(v)[:40].strip("([") if hasattr(v, "fit") else "",
)
def test_unknown_objectives_are_refused_by_name(model, data, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LOGISTIC.fit(*TWO)
        model.fit(*data)
    with pytest.raises(UnknownObjective, match=message):
        zg.certify(model, *data)


def test_folds_that_cannot_be_drawn_again_are_refused():
    from sklearn.model_selection import StratifiedKFold

    model = CalibratedClassifierCV(LinearSVC(), cv=StratifiedKFold(3, shuffle=True)).fit(*TWO)
    with pytest.raises(UnknownObjective, match="folds that cannot be drawn again"):
        zg.certify(model, *TWO)


@pytest.mark.parametrize("data", [TWO, THREE], ids=["two", "three"])
def test_weights_of_rows_multiply_those_of_classes(data):
    X, y = data
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = SVC(kernel="linear", C=0.3, tol=1e-6, class_weight={1: 3.0})
    model.fit(X, y, sample_weight=weights)
    assert_near_optimal(model, X, y, tol=1e-4, sample_weight=weights)


@pytest.mark.parametrize(
    "model",
    [
        LOGISTIC,
        SVC(kernel="linear"),
        CalibratedClassifierCV(LOGISTIC),
        OneVsRestClassifier(LOGISTIC),
    ],
    ids=short,
)
def test_what_is_not_fitted_is_refused(model):
    with pytest.raises(ValueError, match="is not fitted: call its fit first"):
        zg.certify(clone(model), *TWO)


def test_misused_data_are_refused():
    model = lm.Ridge().fit(*LINE)
    with pytest.raises(ValueError, match="LogisticRegression is a class: give a fitted model"):
        zg.certify(lm.LogisticRegression, *TWO)
    with pytest.raises(ValueError, match=r"two dimensions, rows and features, got shape \(5,\)"):
        zg.certify(model, LINE[0][0], LINE[1])
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\), y has 150 rows"):
        zg.certify(model, *LINE, sample_weight=np.ones(3))

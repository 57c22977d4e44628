"""Attributes of the classes with scikit-learn's names: the same names, types, dtypes and shapes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import linear_model as theirs
from sklearn import svm as their_svm
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning

from zerogap import linear_model, svm

CLASSES = make_classification(120, 6, n_informative=4, random_state=3)
MANY = make_classification(150, 7, n_informative=5, n_classes=3, random_state=4)
NUMBERS = make_regression(100, 5, noise=5, random_state=5)
SEVERAL = make_regression(90, 5, n_targets=3, noise=5, random_state=6)
OF_THE_METHOD = {"solver_", "certificate_", "choice_"}
CLASSIFIERS = {
    "LogisticRegression": {},
    "LogisticRegressionCV": {"Cs": 2, "cv": 2},
    "LinearSVC": {},
    "RidgeClassifier": {},
    "RidgeClassifierCV": {},
    "SGDClassifier": {"random_state": 0},
}
REGRESSORS = {
    "ElasticNet": {},
    "ElasticNetCV": {"alphas": 3, "cv": 2},
    "HuberRegressor": {},
    "LinearSVR": {},
    "QuantileRegressor": {},
    "Ridge": {},
    "RidgeCV": {},
    "SGDRegressor": {"random_state": 0},
}
KINDS = {
    "plain": lambda X, y: (X, y),
    "float32": lambda X, y: (X.astype(np.float32), y),
    "sparse": lambda X, y: (sparse.csr_array(X), y),
    "column": lambda X, y: (X, y[:, None]),
    "nullable": lambda X, y: (pd.DataFrame(X).add_prefix("x").convert_dtypes(), pd.Series(y)),
}


def both(name, parameters):
    mine = getattr(svm if hasattr(svm, name) else linear_model, name)
    other = getattr(their_svm if hasattr(svm, name) else theirs, name)
    return mine(**parameters), other(**parameters)


def facts(value):
    """Return what a script may rely on: type, dtype and shape, also inside of a dict."""
    if isinstance(value, dict):
        return {key: facts(item) for key, item in value.items()}
    return type(value), np.asarray(value).dtype, np.shape(value)


def attributes(model):
    return {
        name: facts(v) for name, v in vars(model).items() if name.endswith("_") and name[0] != "_"
    }


def compare(name, parameters, X, y):
    mine, other = both(name, parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine.fit(X, y)
        other.fit(X, y)
    found = attributes(mine)
    for attribute, expected in attributes(other).items():
        uncounted = attribute == "n_iter_" and expected[0] is type(None)  # of a direct method
        if attribute not in OF_THE_METHOD and not uncounted:
            assert found[attribute] == expected, attribute
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(other, method):
            assert facts(getattr(mine, method)(X)) == facts(getattr(other, method)(X)), method


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_look_alike(name, kind, intercept):
    parameters = {**CLASSIFIERS[name], "fit_intercept": intercept}
    compare(name, parameters, *KINDS[kind](*CLASSES))
    compare(name, parameters, *KINDS[kind](MANY[0], np.array(["a", "bb", "c"])[MANY[1]]))


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_look_alike(name, kind, intercept):
    parameters = {**REGRESSORS[name], "fit_intercept": intercept}
    compare(name, parameters, *KINDS[kind](*NUMBERS))
    if name in ("ElasticNet", "Ridge", "RidgeCV") and kind != "column":
        X, _ = KINDS[kind](SEVERAL[0], SEVERAL[1][:, 0])
        compare(name, parameters, X, SEVERAL[1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_a_search_has_the_penalty_that_is_named(penalty):
    """liblinear solves both, and regularises the intercept."""
    if not hasattr(theirs.LogisticRegressionCV(), "penalty"):
        pytest.skip("scikit-learn has removed the parameter")
    settings = {"Cs": [0.02, 0.1], "cv": 3, "solver": "liblinear", "tol": 1e-10}
    mine, other = both("LogisticRegressionCV", {**settings, "penalty": penalty, "max_iter": 10**5})
    mine.fit(*CLASSES)
    other.fit(*CLASSES)
    np.testing.assert_allclose(mine.coef_, other.coef_, atol=1e-6)
    assert mine.C_ == other.C_


@pytest.mark.parametrize("name", ["Ridge", "RidgeClassifier"])
def test_iterative_ridge_counts_the_epochs_of_each_target(name):
    y = SEVERAL[1] if name == "Ridge" else (SEVERAL[1] > 0).astype(int)
    compare(name, {"solver": "saga"}, SEVERAL[0], y)


@pytest.mark.parametrize("name", ["ElasticNet", "HuberRegressor", "LogisticRegression"])
def test_a_warm_start_at_the_optimum_takes_no_epoch(name):
    X, y = CLASSES if name == "LogisticRegression" else NUMBERS
    model = getattr(linear_model, name)(warm_start=True, tol=1e-5).fit(X, y)
    assert np.ravel(model.n_iter_)[0] > 0
    model.set_params(tol=1e-2).fit(X, y)
    assert np.ravel(model.n_iter_)[0] == 0
    assert model.certificate_.relative_gap <= 1e-4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [linear_model.SGDClassifier(max_iter=3), linear_model.SGDRegressor("huber", max_iter=3)],
    ids=repr,
)
def test_given_coefficients_are_a_start_as_those_of_the_previous_fit(model):
    X, y = CLASSES if hasattr(model, "class_weight") else NUMBERS
    first = clone(model).set_params(alpha=0.01, warm_start=True).fit(X, y)
    start = {"coef_init": first.coef_.copy(), "intercept_init": first.intercept_.copy()}
    given = clone(model).set_params(alpha=0.001).fit(X, y, **start)
    np.testing.assert_array_equal(given.coef_, first.set_params(alpha=0.001).fit(X, y).coef_)


def test_a_wide_elastic_net_ends_where_it_started_next_to_the_optimum():
    """Interior points take no start: what the start proves counts before their first step."""
    X, y = make_regression(50, 200, n_informative=10, noise=1.0, random_state=0)
    tight = theirs.ElasticNet(alpha=0.1, tol=1e-12, max_iter=10**6).fit(X, y)
    model = linear_model.ElasticNet(alpha=0.1, warm_start=True, max_iter=5)
    assert model.fit(X, y).certificate_.relative_gap <= model.tol**2
    assert model.fit(X, y).n_iter_ == 0
    np.testing.assert_allclose(model.coef_, tight.coef_, atol=1e-6 * abs(tight.coef_).max())


@pytest.mark.parametrize("epochs", [1, 2, 7])
def test_huber_keeps_to_its_limit_of_epochs(epochs):
    with pytest.warns(ConvergenceWarning):
        model = linear_model.HuberRegressor(max_iter=epochs, tol=1e-8).fit(*NUMBERS)
    assert model.n_iter_ == epochs


@pytest.mark.parametrize("name", ["LogisticRegression", "LogisticRegressionCV"])
def test_an_elastic_net_without_a_share_of_l1_is_refused(name):
    share = "l1_ratios" if name.endswith("CV") else "l1_ratio"
    model = getattr(linear_model, name)(solver="saga", **{share: None})
    if not hasattr(model, "penalty"):
        pytest.skip("scikit-learn has removed the parameter")
    with pytest.raises(ValueError, match="l1_ratio"):
        model.set_params(penalty="elasticnet").fit(*CLASSES)


def test_batches_may_be_dense_or_sparse_and_weights_come_third_in_regression():
    X, y = NUMBERS
    weights = np.linspace(0.5, 2.0, len(y))
    model = linear_model.SGDRegressor(alpha=0.1, tol=1e-8).partial_fit(X[:50], y[:50], weights[:50])
    model.partial_fit(sparse.csr_array(X[50:]), y[50:], weights[50:])
    whole = linear_model.SGDRegressor(alpha=0.1, tol=1e-8).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-6)
    with pytest.warns(UserWarning, match="begins anew"):
        whole.partial_fit(X, y)
    with pytest.raises(ValueError, match="early_stopping should be False"):
        whole.set_params(early_stopping=True).partial_fit(X, y)


def test_partial_fit_knows_the_classes_that_are_to_come():
    X, y = MANY
    model = linear_model.SGDClassifier(loss="log_loss", alpha=0.1, tol=1e-6)
    model.partial_fit(X[y == 0], y[y == 0], classes=[0, 1, 2])
    assert model.coef_.shape == (3, X.shape[1])
    assert (model.predict(X) == 0).all()
    np.testing.assert_array_equal(model.predict_proba(X), np.tile([1.0, 0.0, 0.0], (len(X), 1)))
    model.partial_fit(X[y == 1], y[y == 1])
    assert model.intercept_[2] == -np.inf
    pair = linear_model.SGDClassifier(loss="log_loss", alpha=0.1, tol=1e-6).fit(X[y < 2], y[y < 2])
    np.testing.assert_allclose(
        model.decision_function(X)[:, 1], pair.decision_function(X), atol=1e-5
    )
    model.partial_fit(X[y == 2], y[y == 2])
    whole = linear_model.SGDClassifier(loss="log_loss", alpha=0.1, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-5)
    with pytest.raises(ValueError, match="labels that the model was not trained on, such as 7"):
        model.partial_fit(X[:2], [7, 7])

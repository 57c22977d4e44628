"""Drop-ins refuse what scikit-learn refuses, in its words, and take what it takes at the edges."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model as theirs
from sklearn import svm as their_svm
from sklearn.exceptions import ConvergenceWarning

from zerogap import linear_model, svm

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 4))
NUMBERS = X @ [1.0, -2.0, 0.5, 0.0] + RNG.standard_normal(60)
TWO = np.where(NUMBERS > 0.3, "yes", "no")
THREE = np.digitize(NUMBERS, [-1.0, 1.0])
PAIR = np.column_stack([NUMBERS, -NUMBERS])

REFUSED = [  # model, parameters, rows, targets
    *[
        ("LogisticRegression", {"solver": solver, **more}, X, y)
        for solver in ("lbfgs", "newton-cg", "newton-cholesky", "sag", "liblinear")
        for more in ({"l1_ratio": 0.4, "C": 2.0}, {"penalty": "elasticnet", "l1_ratio": 0.4})
        for y in (TWO, THREE)
    ],
    ("LogisticRegression", {"dual": True}, X, TWO),
    ("LogisticRegression", {"solver": "saga", "dual": True}, X, TWO),
    ("LogisticRegression", {"solver": "liblinear", "C": np.inf}, X, TWO),
    ("LogisticRegression", {"solver": "liblinear"}, X, THREE),
    ("LogisticRegressionCV", {"l1_ratios": (0.5,), "Cs": 2}, X, TWO),
    ("LogisticRegressionCV", {"dual": True, "Cs": 2}, X, TWO),
    ("LinearSVC", {"loss": "hinge", "dual": False}, X, THREE),
    ("LinearSVC", {"penalty": "l1", "loss": "hinge"}, X, THREE),
    ("LinearSVC", {"penalty": "l1", "dual": True}, X, THREE),
    ("LinearSVR", {"dual": False}, X, NUMBERS),
    *[("Ridge", {"solver": s}, sparse.csr_array(X), PAIR) for s in ("svd", "cholesky", "saga")],
    ("RidgeClassifier", {"solver": "saga"}, sparse.csr_array(X), THREE),
    ("Ridge", {"solver": "lbfgs"}, X, NUMBERS),
    ("Ridge", {"solver": "svd", "positive": True}, X, NUMBERS),
    ("Ridge", {"alpha": [1.0, 2.0, 3.0]}, X, PAIR),
    ("Ridge", {"alpha": [1.0, 2.0]}, X, NUMBERS),
    ("RidgeClassifier", {"alpha": [1.0, 2.0]}, X, THREE),
    ("QuantileRegressor", {"solver": "interior-point"}, X, NUMBERS),
    ("QuantileRegressor", {"solver": "simplex"}, sparse.csr_array(X), NUMBERS),
]


def pair(name, parameters):
    ours = getattr(linear_model, name, None) or getattr(svm, name)
    known = getattr(theirs, name, None) or getattr(their_svm, name)
    return ours(**parameters), known(**parameters)


def refusal(model, A, b):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(A, b)
        except ValueError as error:
            return str(error)
    raise AssertionError(f"{model} was fitted")


@pytest.mark.parametrize(("name", "parameters", "A", "b"), REFUSED, ids=lambda x: str(x)[:40])
def test_parameters_that_do_not_go_together_are_refused_alike(name, parameters, A, b):
    ours, known = pair(name, parameters)
    assert refusal(ours, A, b) == refusal(known, A, b)


def test_one_penalty_in_a_list_is_that_of_all_targets():
    ours, known = pair("Ridge", {"alpha": [2.0]})
    np.testing.assert_allclose(ours.fit(X, PAIR).coef_, known.fit(X, PAIR).coef_, rtol=1e-9)


@pytest.mark.parametrize("weights", [-NUMBERS, np.where(NUMBERS > 1, np.inf, 1.0)])
def test_quantiles_take_no_weights_below_zero_or_without_end(weights):
    model = linear_model.QuantileRegressor(alpha=0.1)
    with pytest.raises(ValueError, match=r"sample_weight|Input"):
        model.fit(X, NUMBERS, sample_weight=weights)


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear"])
@pytest.mark.parametrize("only", ["yes", "no"])
def test_two_classes_of_which_one_has_weight(only, solver):
    weight = {"yes": float(only == "yes"), "no": float(only == "no")}
    model = linear_model.LogisticRegression(class_weight=weight, solver=solver, tol=1e-8)
    by_class = model.fit(X, TWO).predict_proba(X)
    by_row = model.set_params(class_weight=None)
    by_row.fit(X, TWO, sample_weight=(only == TWO).astype(float))
    np.testing.assert_array_equal(by_class, by_row.predict_proba(X))
    assert model.certificate_.relative_gap <= 1e-8
    if solver == "lbfgs":  # the intercept is free, and has no best value: the limit is kept
        assert (model.predict(X) == only).all()
        np.testing.assert_array_equal(by_class[:, int(only == "yes")], np.ones(len(X)))
        assert model.coef_.shape == (1, 4)
        assert not model.coef_.any()


@pytest.mark.parametrize("only", [0, 1, 2])
def test_three_classes_of_which_one_has_weight(only):
    model = linear_model.LogisticRegression(fit_intercept=True)
    model.fit(X, THREE, sample_weight=(only == THREE).astype(float))
    np.testing.assert_array_equal(model.predict_proba(X), np.tile(np.eye(3)[only], (len(X), 1)))


@pytest.mark.parametrize("name", ["LogisticRegression", "LinearSVC", "LinearSVR"])
def test_no_iteration_leaves_the_weights_at_zero_and_says_so(name):
    model, _ = pair(name, {"max_iter": 0})
    with pytest.warns(ConvergenceWarning, match="raise max_iter or lower C"):
        model.fit(X, NUMBERS if name == "LinearSVR" else THREE)
    assert not model.coef_.any()
    assert np.max(model.n_iter_) == 0
    assert model.certificate_.stop_reason == "max_epochs"
    assert model.certificate_.relative_gap > 0.9


def test_advice_names_the_parameters_of_the_class():
    model = linear_model.HuberRegressor(max_iter=1)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or alpha"):
        model.fit(X, NUMBERS)


@pytest.mark.parametrize("name", ["LogisticRegressionCV", "RidgeCV", "ElasticNetCV"])
def test_an_empty_grid_is_refused(name):
    model, _ = pair(name, {"Cs" if name.startswith("Log") else "alphas": []})
    assert "give at least one strength" in refusal(model, X, TWO if "Log" in name else NUMBERS)

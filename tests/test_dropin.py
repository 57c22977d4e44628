"""scikit-learn's names, parameters and objectives, with certificates."""

import warnings
from itertools import pairwise

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model as theirs
from sklearn import svm as their_svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model._huber import _huber_loss_and_gradient as huber_objective
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

import zerogap as zg
from zerogap import linear_model, svm
from zerogap.dropin.descent import descended

CHECKED = [
    linear_model.ElasticNet(),
    linear_model.ElasticNetCV(alphas=3, cv=3),
    linear_model.HuberRegressor(),
    linear_model.LogisticRegression(tol=1e-9),
    linear_model.LogisticRegressionCV(Cs=2, cv=2, tol=1e-9),
    linear_model.QuantileRegressor(alpha=0.01),
    linear_model.Ridge(),
    linear_model.RidgeCV(),
    linear_model.RidgeClassifier(),
    linear_model.RidgeClassifierCV(),
    linear_model.SGDClassifier(tol=1e-12),
    linear_model.SGDRegressor(tol=1e-9),
    svm.LinearSVC(tol=1e-9),
    svm.LinearSVR(tol=1e-12),
]
CANCER = load_breast_cancer(return_X_y=True)
CANCER = scale(CANCER[0]), CANCER[1]
WINE = load_wine(return_X_y=True)
WINE = scale(WINE[0]), np.array(["a", "b", "c"])[WINE[1]]
DIABETES = load_diabetes(return_X_y=True)
TWO = DIABETES[0], np.c_[DIABETES[1], -(DIABETES[1] ** 1.5)]


def short(value):
    return "" if isinstance(value, tuple) else str(value)[:60]


# class, parameters, data: where scikit-learn solves the same problem tightly
SAME = [
    ("LogisticRegression", {"tol": 1e-9, "max_iter": 10_000}, CANCER),
    ("LogisticRegression", {"tol": 1e-9, "max_iter": 10_000, "fit_intercept": False}, WINE),
    ("LogisticRegression", {"tol": 1e-9, "max_iter": 10_000, "class_weight": "balanced"}, WINE),
    ("LogisticRegression", {"tol": 1e-8, "C": 0.1, "class_weight": {"a": 5.0}}, WINE),
    ("LogisticRegression", {"tol": 1e-9, "max_iter": 10_000, "solver": "liblinear"}, CANCER),
    (
        "LogisticRegression",
        {"tol": 1e-9, "l1_ratio": 0.5, "solver": "saga", "C": 0.01, "max_iter": 10**5},
        CANCER,
    ),
    ("Ridge", {"alpha": 0.1, "tol": 1e-12}, DIABETES),
    ("Ridge", {"alpha": [0.1, 3.0], "tol": 1e-12}, TWO),
    ("Ridge", {"alpha": 2.0, "fit_intercept": False, "solver": "lsqr", "tol": 1e-12}, TWO),
    ("RidgeClassifier", {"class_weight": {"b": 4.0}, "tol": 1e-12}, WINE),
    ("QuantileRegressor", {"alpha": 0.01, "quantile": 0.3}, DIABETES),
    ("ElasticNet", {"alpha": 0.01, "tol": 1e-12, "max_iter": 10**5}, DIABETES),
    ("ElasticNet", {"alpha": 0.01, "tol": 1e-12, "max_iter": 10**5, "l1_ratio": 0.9}, TWO),
    ("LinearSVC", {"tol": 1e-9, "max_iter": 10**6, "intercept_scaling": 3.0}, CANCER),
    ("LinearSVC", {"tol": 1e-11, "max_iter": 10**6, "loss": "hinge", "C": 0.1}, WINE),
    ("LinearSVC", {"tol": 1e-9, "max_iter": 10**6, "multi_class": "crammer_singer"}, WINE),
    ("LinearSVC", {"tol": 1e-9, "max_iter": 10**6, "class_weight": {"a": 9.0, "c": 0.1}}, WINE),
    ("LinearSVR", {"tol": 1e-10, "max_iter": 10**6, "C": 5.0, "epsilon": 0.5}, DIABETES),
    (
        "LinearSVR",
        {"tol": 1e-9, "max_iter": 10**6, "loss": "squared_epsilon_insensitive", "epsilon": 20.0},
        DIABETES,
    ),
]


def both(name, parameters):
    mine = getattr(svm if hasattr(svm, name) else linear_model, name)
    other = getattr(their_svm if hasattr(svm, name) else theirs, name)
    return mine(**parameters), other(**parameters)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*array API.*")
@pytest.mark.filterwarnings("ignore:The least populated class")  # a check cuts three folds of it
@parametrize_with_checks(CHECKED)
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)


def test_every_class_is_checked():
    names = {*linear_model.__all__, *svm.__all__} - {"NothingProved"}
    assert {type(estimator).__name__ for estimator in CHECKED} == names


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("name", "parameters", "data"), SAME, ids=short)
def test_coefficients_are_scikit_learn_s(name, parameters, data, kind, weighted):
    """At a tight tolerance, scores agree to 1e-6 of their size, in the same shapes."""
    X, y = kind(data[0]), data[1]
    weights = np.random.default_rng(0).integers(1, 4, len(y)) * 1.0 if weighted else None
    mine, other = both(name, parameters)
    mine.fit(X, y, sample_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.fit(X, y, sample_weight=weights)
    assert mine.coef_.shape == other.coef_.shape
    assert np.shape(mine.intercept_) == np.shape(other.intercept_)
    scores = [
        getattr(m, "decision_function", m.predict)(X.toarray() if sparse.issparse(X) else X)
        for m in (mine, other)
    ]
    size = np.abs(scores[1]).max()
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-6 * size)
    assert zg.certify(mine, X, y, sample_weight=weights).relative_gap <= 1e-9
    assert mine.certificate_.stop_reason in ("converged", "rounding")


@pytest.mark.parametrize("epsilon", [1.1, 1.35, 3.0])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "raw"])
def test_huber_is_the_joint_optimum_of_coefficients_and_scale(epsilon, weighted, scaled):
    """Certified, and not above what scikit-learn finds in many iterations."""
    X, y = load_diabetes(return_X_y=True, scaled=scaled)
    y = np.where(np.arange(len(y)) % 40 == 0, 20 * y, y)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    mine, other = both("HuberRegressor", {"epsilon": epsilon, "alpha": 0.01, "max_iter": 3000})
    mine.fit(X, y, sample_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.fit(X, y, sample_weight=weights)
    values = [
        huber_objective(np.r_[m.coef_, m.intercept_, m.scale_], X, y, epsilon, 0.01, weights)[0]
        / weights.sum()
        for m in (mine, other)
    ]
    certificate = mine.certificate_
    assert certificate.primal == pytest.approx(values[0], rel=1e-10)
    assert certificate.relative_gap <= 1e-10
    assert certificate.dual <= values[1] * (1 + 1e-12)
    assert zg.certify(mine, X, y, sample_weight=weights).relative_gap <= 1e-9
    np.testing.assert_array_equal(
        mine.outliers_, np.abs(y - mine.predict(X)) > mine.scale_ * epsilon
    )


def test_quantiles_of_raw_columns_are_proved():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    for alpha, quantile in ((0.1, 0.5), (0.01, 0.9)):
        model = linear_model.QuantileRegressor(alpha=alpha, quantile=quantile).fit(X + 2000.0, y)
        assert model.certificate_.relative_gap <= 1e-8
        assert abs(np.mean(y <= model.predict(X + 2000.0)) - quantile) < 0.05
    constant = np.column_stack([X, np.zeros(len(y)), np.full(len(y), 3.0)])
    for free in (True, False):
        model = linear_model.QuantileRegressor(alpha=0.1, fit_intercept=free).fit(constant, y)
        assert model.certificate_.relative_gap <= 1e-8
        assert model.coef_[10] == 0.0


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_quantiles_far_from_zero_are_proved(offset, noise):
    """What is proved is a share of the deviations, not of the targets; none are left by one row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + 1e4
    y = offset + noise * rng.normal(size=60)
    model = linear_model.QuantileRegressor(alpha=0.1).fit(X, y)
    assert model.certificate_.gap <= 1e-6 * model.certificate_.primal
    assert zg.certify(model, X, y).gap <= 1e-6 * model.certificate_.primal
    alone = linear_model.QuantileRegressor().fit(X[:1], y[:1])
    assert alone.certificate_.gap == 0.0
    assert alone.predict(X[:1]) == y[0]


def test_a_class_without_weight_is_never_predicted():
    model = linear_model.LogisticRegression(class_weight={"b": 0.0}).fit(*WINE)
    assert set(model.predict(WINE[0])) == {"a", "c"}
    assert model.certificate_.relative_gap <= 1e-8
    assert model.predict_proba(WINE[0])[:, 1].max() == 0.0


@pytest.mark.parametrize(
    ("name", "parameters", "data"),
    [
        ("LogisticRegressionCV", {"Cs": "all", "cv": 3, "l1_ratios": (0,)}, CANCER),
        ("RidgeCV", {"alphas": "all", "cv": 3}, DIABETES),
        ("RidgeClassifierCV", {"alphas": "all", "cv": 3}, CANCER),
        ("ElasticNetCV", {"alphas": "all", "cv": 3}, DIABETES),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_all_strengths_of_an_interval_are_tried(name, parameters, data):
    """The curve covers the interval without holes, and the model is that of its best step."""
    model = getattr(linear_model, name)(**parameters).fit(*data)
    steps = model.choice_.steps
    assert all(a.stop == b.start for a, b in pairwise(steps))
    best = model.choice_.best
    n = len(data[1])
    found = {
        "LogisticRegressionCV": lambda: 1 / (model.C_[0] * n),
        "ElasticNetCV": lambda: model.alpha_,
    }
    lam = found.get(name, lambda: model.alpha_ / n)()
    assert best.start <= lam <= best.stop
    assert zg.certify(model, *data).relative_gap <= 1e-6
    with pytest.raises(ValueError, match=r"give a grid|takes no sample weights"):
        getattr(linear_model, name)(**parameters).fit(*data, sample_weight=np.ones(n))


LONG = {"tol": 1e-8, "max_iter": 10_000}
CHOSEN = [
    ("RidgeCV", {}, TWO),
    ("RidgeClassifierCV", {}, WINE),
    ("ElasticNetCV", {"cv": 3, "l1_ratio": [0.5, 0.9], "alphas": 5, "tol": 1e-8}, DIABETES),
    ("LogisticRegressionCV", {"Cs": 3, "cv": 3, "l1_ratios": (0,), **LONG}, WINE),
]


@pytest.mark.parametrize(
    ("name", "parameters", "data"), CHOSEN, ids=lambda v: v if isinstance(v, str) else ""
)
def test_cross_validation_chooses_what_scikit_learn_chooses(name, parameters, data):
    mine, other = both(name, parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine.fit(*data)
        other.fit(*data)
    for attribute in ("alpha_", "l1_ratio_", "C_"):
        if hasattr(other, attribute):
            np.testing.assert_allclose(getattr(mine, attribute), getattr(other, attribute))
    size = np.abs(other.coef_).max()
    np.testing.assert_allclose(mine.coef_, other.coef_, atol=1e-4 * size)
    assert zg.certify(mine, *data).relative_gap <= 1e-9
    if hasattr(mine, "choice_"):
        assert mine.choice_.gaps.max() <= 1e-8
        assert "every fit is proved within" in str(mine.choice_)


@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize("loss", ["hinge", "log_loss", "modified_huber", "squared_error"])
def test_sgd_reaches_the_optimum_that_scikit_learn_walks_around(loss, penalty):
    model = linear_model.SGDClassifier(loss, penalty=penalty, alpha=0.01, random_state=0)
    noisy = theirs.SGDClassifier(loss, penalty=penalty, alpha=0.01, random_state=0)
    model.fit(*CANCER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the squared error walks far
        noisy.fit(*CANCER)
    audit = zg.certify(noisy, *CANCER)
    assert model.certificate_.relative_gap <= 1e-3
    assert model.certificate_.primal < audit.primal
    assert model.certificate_.primal >= audit.primal - audit.gap


def test_partial_fit_is_the_fit_of_all_rows():
    X, y = CANCER
    whole = linear_model.SGDClassifier("log_loss", alpha=0.01, tol=1e-8).fit(X, y)
    parts = clone(whole)
    for rows in np.array_split(np.arange(len(y)), 3):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1])
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)
    late = clone(whole).partial_fit(X[y == 0], y[y == 0])  # nothing to fit yet
    assert not hasattr(late, "coef_")
    late.partial_fit(X[y == 1], y[y == 1])
    np.testing.assert_allclose(late.coef_, whole.coef_, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        linear_model.LogisticRegression(C=np.inf),
        linear_model.LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=0),
        linear_model.SGDClassifier(penalty="l1", random_state=0),
        linear_model.RidgeClassifier(positive=True),
        linear_model.ElasticNet(l1_ratio=1.0),
        svm.LinearSVC(penalty="l1", dual=False, random_state=0),
    ],
    ids=repr,
)
def test_what_cannot_be_proved_is_fitted_by_scikit_learn_and_said(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.warns(linear_model.NothingProved, match="nothing is proved of it"):
            model.fit(*CANCER)
        name = type(model).__name__
        reference = both(name, model.get_params())[1].fit(*CANCER)
    assert model.certificate_ is None
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-6, atol=1e-9)


class Renamed(linear_model.LogisticRegression):
    """As people do it to add a method."""


class Own(zg.LinearClassifier):
    """Likewise."""


@pytest.mark.parametrize("model", [Renamed(), Own("logistic", tol=1e-6)], ids=repr)
def test_subclasses_minimise_what_their_parents_do(model):
    model.fit(*CANCER)
    assert model.certificate_.relative_gap <= 1e-6
    assert zg.certify(model, *CANCER).relative_gap <= 1e-6


def test_a_short_run_says_how_far_it_is():
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        linear_model.LogisticRegression(max_iter=1, tol=1e-8).fit(*CANCER)


def test_joblib_and_clones(tmp_path):
    model = svm.LinearSVC(C=0.1).fit(*WINE)
    joblib.dump(model, tmp_path / "model")
    again = joblib.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(WINE[0]), model.predict(WINE[0]))
    assert again.certificate_ == model.certificate_
    assert not hasattr(clone(model), "certificate_")


def test_the_package_does_not_import_scikit_learn_before_it_is_used():
    import subprocess
    import sys

    code = "import sys, zerogap; print('sklearn' in sys.modules, 'numba' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", [False, True], ids=["none", "intercept"])
def test_small_elastic_nets_start_next_to_the_optimum(intercept, weighted):
    """In units of their own, with offsets; the solver has nothing left to do but to prove it."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y)) if weighted else None
    lam = 0.1
    problem = zg.Problem(
        X, y, "squared", lam=lam, l1_ratio=0.5, sample_weight=weights, fit_intercept=intercept
    )
    w, b, _ = descended(problem, None)
    assert problem.certificate(w, b=b).relative_gap <= 1e-10
    assert descended(zg.Problem(X, y, "absolute", lam=lam, l1_ratio=0.5), None) is None

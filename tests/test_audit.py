"""Audits tell the truth about other people's models."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LassoCV,
    LassoLars,
    LassoLarsIC,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR

import zerogap as zg
from problems import make_data

rng = np.random.default_rng(0)
X, y = make_data("hinge", n=300, d=8)
XR, YR = make_data("squared", n=300, d=8)
XM = rng.standard_normal((240, 6))
YM = np.argmax(XM[:, :3] + 0.7 * rng.standard_normal((240, 3)), axis=1)
NAMES = np.array(["c", "a", "b"])[YM]
WEIGHTS = rng.integers(1, 4, 300).astype(float)


def softmax(**params):
    return LogisticRegression(**({"C": 0.3, "tol": 1e-10, "max_iter": 10**5} | params))


def crammer_singer(**params):
    params = {"C": 0.3, "tol": 1e-10, "max_iter": 10**6, "random_state": 0} | params
    return LinearSVC(multi_class="crammer_singer", **params)


def own(loss, **params):
    params = {"tol": 1e-11, "max_epochs": 10**5, "random_state": 0} | params
    return zg.LinearClassifier(loss, **params)


# Models trained to the optimum: the audit finds nothing only if it has the right convention.
OPTIMAL = [
    (LinearSVC(loss="hinge", C=0.7, tol=1e-11, max_iter=10**7), X, y),
    (LinearSVC(C=0.7, tol=1e-11, max_iter=10**7, intercept_scaling=3.0), X, y),
    (LinearSVC(C=0.7, tol=1e-11, max_iter=10**7, class_weight="balanced"), XM, YM),
    (LogisticRegression(C=0.5, tol=1e-11, max_iter=10**6, solver="liblinear"), X, y),
    (LinearSVC(C=2.0, tol=1e-11, max_iter=10**7, fit_intercept=False), sparse.csr_matrix(X), y),
    (LogisticRegression(C=0.3, tol=1e-11, max_iter=10**6), X, y),
    (LogisticRegression(C=0.3, tol=1e-11, max_iter=10**6, class_weight={-1: 3, 1: 1}), X, y),
    (LogisticRegression(C=0.3, tol=1e-11, max_iter=10**6, solver="liblinear"), X, y),
    (LogisticRegression(C=0.3, tol=1e-11, max_iter=10**6, solver="saga", l1_ratio=0.4), X, y),
    (Ridge(alpha=2.5), XR, YR),
    (Ridge(alpha=2.5, fit_intercept=False), sparse.csr_matrix(XR), YR),
    (RidgeClassifier(alpha=0.5), XM, YM),
    (LinearSVR(C=0.8, epsilon=0.15, tol=1e-11, max_iter=10**7), XR, YR),
    (
        zg.LinearClassifier("smooth-hinge", lam=0.02, tol=1e-11, max_epochs=10**5, random_state=0),
        X,
        y,
    ),
    (
        zg.LinearClassifier(
            "logistic", class_weight="balanced", l1_ratio=0.3, tol=1e-11, random_state=0
        ),
        XM,
        YM,
    ),
    (zg.LinearRegressor("huber", tol=1e-11, random_state=0), XR, YR),
    (softmax(), XM, NAMES),
    (softmax(solver="newton-cg", class_weight={"a": 3.0}), XM, NAMES),
    (softmax(solver="newton-cholesky", class_weight="balanced"), XM, NAMES),
    (softmax(solver="sag", fit_intercept=False), sparse.csr_matrix(XM), NAMES),
    (softmax(solver="saga", l1_ratio=0.4), XM, NAMES),
    (crammer_singer(class_weight={"a": 3.0, "b": 0.5}), XM, NAMES),
    (crammer_singer(intercept_scaling=3.0, class_weight="balanced"), XM, NAMES),
    (crammer_singer(fit_intercept=False), sparse.csr_matrix(XM), NAMES),
    (crammer_singer(penalty="l1", loss="hinge", dual=False), X, y),  # which it ignores
    (own("softmax", l1_ratio=0.3, class_weight="balanced"), XM, NAMES),
    (own("multiclass-hinge", lam=0.02), XM, NAMES),
    (own("softmax", lam=0.02), X, y),
    (own("multiclass-hinge", lam=0.02, class_weight="balanced"), X, y),
]


@pytest.mark.parametrize(
    ("model", "A", "b"), OPTIMAL, ids=lambda v: repr(v)[:60] if hasattr(v, "fit") else ""
)
def test_optimal_models_are_found_optimal(model, A, b):
    audit = zg.certify(model.fit(A, b), A, b, effort=20_000)
    assert audit.relative_gap <= 1e-6
    assert audit.at_least <= audit.gap


SAGA = {"solver": "saga", "l1_ratio": 1.0, "tol": 1e-11, "max_iter": 10**5}
LIBLINEAR = {"solver": "liblinear", "l1_ratio": 1.0, "tol": 1e-10, "max_iter": 10**5}
PURE_L1 = [  # the same, for penalties that have no L2 part
    (Lasso(alpha=0.05, tol=1e-13), XR, YR),
    (Lasso(alpha=0.05, tol=1e-13, fit_intercept=False), sparse.csr_matrix(XR), YR),
    (Lasso(alpha=0.05, tol=1e-13), XR, np.c_[YR, 1e4 * YR + 3]),
    (ElasticNet(alpha=0.05, l1_ratio=1.0, tol=1e-13), XR, YR),
    (LassoCV(cv=3, tol=1e-12), XR, YR),
    (LassoLars(alpha=0.05), XR, YR),
    (LassoLarsIC(), XM, XM[:, 0] + np.sin(50.0 * XM[:, 1])),
    (LogisticRegression(C=0.1, class_weight="balanced", **SAGA), X, y),
    (LogisticRegression(C=0.3, **SAGA), XM, NAMES),
    (LogisticRegression(C=0.1, intercept_scaling=3.0, random_state=0, **LIBLINEAR), X, y),
    (LinearSVC(penalty="l1", dual=False, C=0.1, tol=1e-11, max_iter=10**7), X, y),
    (LinearSVC(penalty="l1", dual=False, C=0.1, tol=1e-9, max_iter=10**6), XM, YM),
]


@pytest.mark.parametrize(
    ("model", "A", "b"), PURE_L1, ids=lambda v: repr(v)[:60] if hasattr(v, "fit") else ""
)
def test_optimal_models_without_l2_are_found_optimal(model, A, b):
    audit = zg.certify(model.fit(A, b), A, b)
    assert audit.relative_gap <= 1e-8
    assert audit.at_least <= audit.gap


@pytest.mark.parametrize("size", [0.0, 1e-6, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e5], ids=lambda u: f"y times {u:g}")
def test_the_distance_of_a_lasso_is_between_its_bounds(unit, size):
    """The optimum is known to a relative 1e-13 from the tight fit, whatever the units."""
    lam, target = 0.05 * unit, unit * YR
    best = Lasso(alpha=lam, tol=1e-14).fit(XR, target)
    noise = size * unit * np.random.default_rng(1).standard_normal(XR.shape[1])
    given = {"loss": "squared", "lam": lam, "l1_ratio": 1.0, "fit_intercept": True}

    def value(w):
        return 0.5 * np.mean((XR @ w + best.intercept_ - target) ** 2) + lam * np.abs(w).sum()

    audit = zg.certify_weights(best.coef_ + noise, best.intercept_, XR, target, **given)
    assert audit.primal == pytest.approx(value(best.coef_ + noise), rel=1e-9)
    least = value(best.coef_ + noise) - value(best.coef_)  # of the distance: b may be better
    blur = 1e-12 * audit.primal
    assert least <= audit.gap + blur
    assert audit.dual <= value(best.coef_) + blur
    assert audit.gap <= 1.2 * audit.at_least + 1e-8 * value(best.coef_)


@pytest.mark.parametrize("loss", ["hinge", "log_loss", "modified_huber", "squared_hinge"])
def test_descents_with_an_l1_penalty_are_known_to_a_tenth(loss):
    model = SGDClassifier(loss, penalty="l1", alpha=0.01, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one of them ends at 1e21
        model.fit(X, y)
    audit = zg.certify(model, X, y)
    assert 0 < audit.at_least <= audit.gap <= 1.2 * audit.at_least


def test_a_chosen_l1_penalty_is_audited_at_its_choice():
    tight = {"solver": "saga", "tol": 1e-10, "max_iter": 10**5}
    model = LogisticRegressionCV(Cs=2, cv=2, l1_ratios=(1.0,), **tight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model.fit(X, y)
    assert zg.certify(model, X, y).relative_gap <= 1e-8


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(C=0.7, tol=1e-11, max_iter=10**7),
        Ridge(),
        RidgeClassifier(),
        LogisticRegression(tol=1e-11, max_iter=10**6),
    ],
    ids=repr,
)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_sample_weights_belong_to_the_problem(model, class_weight):
    if hasattr(model, "class_weight"):
        model = clone(model).set_params(class_weight=class_weight)
    model.fit(X, y, WEIGHTS)
    assert zg.certify(model, X, y, sample_weight=WEIGHTS, effort=20_000).relative_gap <= 1e-6
    assert zg.certify(model, X, y, effort=20_000).at_least > 1e-8


@pytest.mark.parametrize("make", [softmax, crammer_singer, lambda **kw: own("softmax", **kw)])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 3.0, "b": 0.5}])
def test_weights_of_a_joint_model_are_repetitions(make, class_weight):
    weights = WEIGHTS[: len(XM)]
    model = make(class_weight=class_weight).fit(XM, NAMES, weights)
    weighted = zg.certify(model, XM, NAMES, sample_weight=weights, effort=20_000)
    twice = np.repeat(np.arange(len(XM)), weights.astype(int))
    repeated = zg.certify(model, XM[twice], NAMES[twice], effort=20_000)
    assert weighted.relative_gap <= 1e-8
    assert repeated.relative_gap <= 1e-8
    assert repeated.primal == pytest.approx(weighted.primal, rel=1e-12)
    assert zg.certify(model, XM, NAMES, effort=20_000).at_least > 1e-5


@pytest.mark.parametrize("make", [softmax, crammer_singer, lambda **kw: own("softmax", **kw)])
def test_class_weights_of_a_joint_model_are_weights_of_its_rows(make):
    model = make(class_weight={"a": 3.0, "b": 0.5}).fit(XM, NAMES)
    by_class = zg.certify(model, XM, NAMES, effort=20_000)
    rows = np.select([NAMES == "a", NAMES == "b"], [3.0, 0.5], 1.0)
    by_row = zg.certify(
        model.set_params(class_weight=None), XM, NAMES, sample_weight=rows, effort=20_000
    )
    assert by_row.primal == by_class.primal
    assert max(by_row.relative_gap, by_class.relative_gap) <= 1e-8


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log_loss"])
@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
def test_sgd_classifier(loss, penalty):
    model = SGDClassifier(
        loss, penalty=penalty, alpha=0.01, random_state=0, max_iter=20, tol=None
    ).fit(X, y)
    audit = zg.certify(model, X, y, effort=5000)
    assert 0 < audit.at_least <= audit.gap <= 1.11 * audit.at_least
    manual = zg.Problem(
        X,
        y,
        {"log_loss": "logistic"}.get(loss, loss.replace("_", "-")),
        0.01,
        None,
        True,
        0.15 if penalty == "elasticnet" else 0.0,
    )
    assert audit.primal == pytest.approx(manual.primal(model.coef_[0], model.intercept_[0]))


@pytest.mark.parametrize("weights", [None, WEIGHTS[: len(XM)]], ids=["plain", "weighted"])
@pytest.mark.parametrize("class_weight", [{0: 8.0, 1: 0.2}, "balanced"], ids=str)
def test_M3_sgd_against_the_rest_weights_the_one_class_only(class_weight, weights):
    """A converged model is found near its optimum; the primal is scikit-learn's, summed here."""
    model = SGDClassifier(
        "log_loss",
        alpha=0.05,
        class_weight=class_weight,
        average=True,
        max_iter=2000,
        tol=None,
        random_state=0,
    ).fit(XM, YM, sample_weight=weights)
    audit = zg.certify(model, XM, YM, sample_weight=weights)
    rows = np.ones(len(XM)) if weights is None else weights
    factors = np.array([8.0, 0.2, 1.0])
    if class_weight == "balanced":  # scikit-learn counts rows, not their weights
        factors = len(YM) / (3 * np.bincount(YM))
    total = 0.0
    for k in range(3):
        own = k == YM
        sign, s = np.where(own, 1.0, -1.0), rows * np.where(own, factors[k], 1.0)
        margins = sign * (XM @ model.coef_[k] + model.intercept_[k])
        penalty = 0.05 * len(XM) / s.sum() * model.coef_[k] @ model.coef_[k] / 2
        total += s @ np.log1p(np.exp(-margins)) / s.sum() + penalty
    assert audit.primal == pytest.approx(total, rel=1e-12)
    assert audit.relative_gap <= 1e-3


@pytest.mark.parametrize(
    ("loss", "ours"),
    [
        ("squared_error", zg.Squared()),
        ("huber", zg.Huber(0.1)),
        ("epsilon_insensitive", zg.EpsilonInsensitive(0.1)),
    ],
)
def test_sgd_regressor(loss, ours):
    model = SGDRegressor(loss, alpha=0.01, random_state=0).fit(XR, YR, sample_weight=WEIGHTS)
    audit = zg.certify(model, XR, YR, sample_weight=WEIGHTS, effort=5000)
    manual = zg.Problem(XR, YR, ours, 0.01 * 300 / WEIGHTS.sum(), WEIGHTS, True)
    assert audit.primal == pytest.approx(manual.primal(model.coef_, model.intercept_[0]))
    assert audit.gap <= 1.11 * audit.at_least


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_true_distance_of_a_svm_that_did_not_converge(loss):
    """The audit's distance is within 10 % of the true one, found by a far tighter solve."""
    hard = X * np.logspace(0, 1, 8)
    model = LinearSVC(loss=loss, C=1.0, max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(hard, y)
    audit = zg.certify(model, hard, y, effort=20_000)
    augmented = np.hstack([hard, np.ones((300, 1))])
    problem = zg.Problem(augmented, y, loss.replace("_", "-"), 1 / 300)
    truth = zg.solve(problem, zg.SDCA(), tol=1e-5, max_epochs=200_000, random_state=1)
    primal = problem.primal(np.append(model.coef_, model.intercept_))
    low, high = primal - truth.certificate.primal, primal - truth.certificate.dual
    assert audit.primal == pytest.approx(primal)
    assert low <= audit.gap <= 1.1 * high
    assert audit.at_least <= high
    assert audit.stop_reason == "bound is tight"


@pytest.mark.parametrize("disturbance", [0.0, 0.05])
@pytest.mark.parametrize(
    ("model", "loss", "constant"),
    [
        (softmax(tol=1e-2), "softmax", 0.0),
        (crammer_singer(tol=0.5, intercept_scaling=2.0), "multiclass-hinge", 2.0),
    ],
    ids=["softmax", "crammer_singer"],
)
def test_true_distance_of_a_joint_model(model, loss, constant, disturbance):
    """Loosely trained, or disturbed afterwards: found, and within 10 % of the true distance."""
    model.fit(XM, YM)
    model.coef_ = model.coef_ + disturbance * np.random.default_rng(1).standard_normal((3, 6))
    audit = zg.certify(model, XM, YM, effort=20_000)
    A, W, b = XM, model.coef_, model.intercept_
    if constant:
        A, W, b = np.c_[XM, np.full(240, constant)], np.c_[W, b / constant], 0.0
    problem = zg.Problem(A, YM, loss, 1 / (0.3 * 240), fit_intercept=not constant)
    truth = zg.solve(problem, zg.SDCA(), tol=1e-10, max_epochs=200_000, random_state=1)
    assert truth.stop_reason == "converged"
    primal = problem.primal(W, b)
    low, high = primal - truth.certificate.primal, primal - truth.certificate.dual
    assert audit.primal == pytest.approx(primal, rel=1e-12)
    assert 1e-6 < audit.at_least <= high
    assert low <= audit.gap <= 1.1 * high


def test_two_classes_are_one_binary_model():
    """With W = (-w, w) / 2 the softmax is the logistic loss of w, and |W|^2 = |w|^2 / 2."""
    model = softmax(max_iter=10**5).fit(X, y)
    binary = zg.certify(model, X, y)
    joint = zg.certify(model, X, y, loss="softmax", lam=2 / (0.3 * 300))
    assert joint.primal == pytest.approx(binary.primal, rel=1e-12)
    assert joint.relative_gap <= 1e-9


def test_effort_only_tightens():
    model = SGDClassifier(random_state=0, max_iter=5, tol=None).fit(X, y)
    gaps = [zg.certify(model, X, y, effort=effort).gap for effort in (0, 3, 30, 3000)]
    assert all(a >= b for a, b in pairwise(gaps))


@pytest.mark.parametrize("loss", ["logistic", "softmax", "multiclass-hinge"])
@pytest.mark.parametrize(("A", "b"), [(XM, NAMES), (X, y)], ids=["three classes", "two"])
def test_own_models_bring_their_dual(loss, A, b):
    clf = own(loss, tol=1e-5).fit(A, b)
    audit = zg.certify(clf, A, b, effort=0)
    assert 0 < clf.certificate_.relative_gap <= 1e-5
    assert audit.gap == pytest.approx(clf.certificate_.gap, rel=1e-3)


def test_pipelines_and_unknown_models():
    pipeline = make_pipeline(StandardScaler(), Ridge()).fit(XR, YR)
    assert zg.certify(pipeline, XR, YR).relative_gap < 1e-9
    line = LinearRegression().fit(XR, YR)
    with pytest.raises(ValueError, match="LinearRegression cannot be certified: it has no penalty"):
        zg.certify(line, XR, YR)
    assert zg.certify(line, XR, YR, loss="squared", lam=0.1).at_least > 0


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SGDClassifier("perceptron"), "perceptron"),
        (SGDClassifier(penalty=None), "penalty=None cannot be certified"),
        (Ridge(alpha=0.0), "alpha=0.0"),
        (Ridge(positive=True), "positive=True"),
        (LogisticRegression(C=np.inf), "no penalty"),
    ],
    ids=repr,
)
def test_what_cannot_be_certified_is_refused(model, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    with pytest.raises(ValueError, match=message):
        zg.certify(model, X, y)


def test_misuse_is_refused():
    with pytest.raises(ValueError, match="Ridge is not fitted: call its fit first"):
        zg.certify(Ridge(), X, y)
    joint = LogisticRegression().fit(XM, NAMES)
    with pytest.raises(ValueError, match="no row of class c: give the data of the fit"):
        zg.certify(joint, XM[NAMES != "c"], NAMES[NAMES != "c"])
    with pytest.raises(ValueError, match="the model has 6 features, X has 5"):
        zg.certify(crammer_singer(C=1e-3).fit(XM, YM), XM[:, :5], YM)
    joint.multi_class = "ovr"  # a parameter until scikit-learn 1.7
    with pytest.raises(ValueError, match="multi_class='ovr' cannot be certified"):
        zg.certify(joint, XM, NAMES)
    two = Ridge().fit(XR, np.c_[YR, YR])
    with pytest.raises(ValueError, match="predicts 2 targets at once, y has 1"):
        zg.certify(two, XR, YR)
    with pytest.raises(ValueError, match="labels that the model was not trained on"):
        zg.certify(LinearSVC().fit(X, y), X, y + 5)
    with pytest.raises(ValueError, match="effort must be"):
        zg.certify(Ridge().fit(X, y), X, y, effort=-1)
    with pytest.raises(ValueError, match="SVC with kernel='rbf' cannot be certified"):
        zg.certify(SVC().fit(X, y), X, y)
    for l1_ratio in (0.5, 1.0):
        with pytest.raises(ValueError, match="lam must be a positive, finite number"):
            zg.certify_weights(two.coef_[0], 0, XR, YR, loss="squared", lam=0.0, l1_ratio=l1_ratio)


@pytest.mark.parametrize("attribute", ["coef_", "intercept_"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e160, -1e300])
@pytest.mark.parametrize(
    ("make", "A", "b"),
    [
        (Ridge, XR, YR),
        (LinearSVC, X, y),
        (LogisticRegression, XM, NAMES),
        (lambda: zg.LinearClassifier("squared-hinge", random_state=0), X, y),
    ],
    ids=["ridge", "svc", "softmax", "own"],
)
def test_P5_values_that_are_no_numbers_are_refused(make, A, b, value, attribute):
    model = make().fit(A, b)
    array = np.array(getattr(model, attribute), dtype=float)
    array.flat[0] = value
    setattr(model, attribute, array)
    if attribute == "intercept_" and make is LogisticRegression and np.isfinite(value):
        audit = zg.certify(model, A, b)  # the loss is linear far away: finite, and far
        assert audit.at_least >= 1e-3 * abs(value)
        assert audit.gap >= audit.at_least
        return
    with pytest.raises(ValueError, match="nothing can be certified"):
        zg.certify(model, A, b)


@pytest.mark.parametrize("rate", ["pa1", "pa2"])
@pytest.mark.parametrize("make", [SGDClassifier, SGDRegressor])
def test_P5_passive_aggressive_steps_are_refused_by_name(make, rate):
    model = make().fit(X, y).set_params(learning_rate=rate)  # older versions cannot fit them
    with pytest.raises(ValueError, match=f"learning_rate='{rate}' cannot be certified"):
        zg.certify(model, X, y)


@pytest.mark.parametrize("given", [{"loss": "hinge"}, {"lam": 0.1}, {"l1_ratio": 0.5}], ids=str)
def test_P5_half_a_convention_is_refused(given):
    with pytest.raises(ValueError, match="give loss and lam, or none of them"):
        zg.certify(LinearSVC().fit(X, y), X, y, **given)


def test_P5_a_given_convention_counts_for_known_models_too():
    model = LinearSVC(fit_intercept=False).fit(X, y)
    audit = zg.certify(model, X, y, loss="hinge", lam=0.1)
    assert audit.primal == pytest.approx(zg.Problem(X, y, "hinge", 0.1).primal(model.coef_[0]))


def test_audit_reads_well():
    audit = zg.certify(SGDClassifier(random_state=0).fit(X, y), X, y)
    assert "above the optimum" in str(audit)


def test_sizes_of_the_least_integer_of_a_type_are_those_of_the_same_doubles():
    rng = np.random.default_rng(0)
    X = rng.integers(-128, 128, (30, 2)).astype(np.int8)
    X[:5] = -128  # of which abs() is -128
    y = X @ [1.0, -2.0] + rng.standard_normal(30)
    model = QuantileRegressor(alpha=0.01).fit(X.astype(float), y)
    short, long = (zg.certify(model, sparse.csr_matrix(part), y) for part in (X, X.astype(float)))
    assert (short.rounding, short.dual) == (long.rounding, long.dual)

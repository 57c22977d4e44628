"""Estimators: scikit-learn's rules, agreement with scikit-learn's models, honest attributes."""

import os
import pickle
import signal
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, QuantileRegressor, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

import zerogap as zg
from problems import make_data

TIGHT = {"random_state": 0, "max_epochs": 100_000}
CHECKED = [
    zg.LinearClassifier(tol=1e-12, max_epochs=10_000),
    zg.LinearClassifier("logistic", tol=1e-20, max_epochs=10_000),
    zg.LinearClassifier("squared-hinge", tol=1e-19, max_epochs=3_000),
    zg.LinearClassifier(zg.SmoothHinge(0.5), tol=1e-17, max_epochs=10_000, l1_ratio=0.01),
    zg.LinearRegressor(tol=1e-17, max_epochs=10_000),
    zg.LinearRegressor("absolute", tol=1e-12, max_epochs=10_000),
    zg.LinearRegressor(zg.Huber(0.8), tol=1e-17, max_epochs=10_000),
]
IRIS = load_iris(return_X_y=True)
IRIS = StandardScaler().fit_transform(IRIS[0]), IRIS[1]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*array API.*")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)


def test_hinge_equals_svc():
    X, y = make_data("hinge", n=120)
    ours = zg.LinearClassifier(lam=1 / (2.0 * 120), tol=1e-11, **TIGHT).fit(X, y)
    svc = SVC(kernel="linear", C=2.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, svc.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, svc.intercept_, atol=1e-5)


def test_logistic_equals_logistic_regression():
    X, y = make_data("logistic", n=120)
    ours = zg.LinearClassifier("logistic", lam=1 / 120, tol=1e-14, **TIGHT).fit(X, y)
    other = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X), atol=1e-6)


def test_squared_equals_ridge():
    X, y = make_data("squared", n=120)
    weights = np.random.default_rng(0).random(120)
    ours = zg.LinearRegressor(lam=3.0 / weights.sum(), tol=1e-16, **TIGHT).fit(X, y, weights)
    other = Ridge(alpha=3.0).fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-7)
    assert ours.intercept_ == pytest.approx(other.intercept_, abs=1e-7)


def test_epsilon_insensitive_equals_svr():
    X, y = make_data("absolute", n=80)
    ours = zg.LinearRegressor(zg.EpsilonInsensitive(0.2), lam=1 / 80, tol=1e-11, **TIGHT).fit(X, y)
    svr = SVR(kernel="linear", C=1.0, epsilon=0.2, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), svr.predict(X), atol=1e-4)


def test_quantile_tends_to_the_unregularised_one():
    X, y = make_data("quantile", n=101)
    ours = zg.LinearRegressor(zg.Quantile(0.8), lam=1e-4, tol=1e-4, **TIGHT).fit(X, y)
    other = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), other.predict(X), atol=0.05)
    assert np.mean(y <= ours.predict(X)) == pytest.approx(0.8, abs=0.05)


def test_one_against_rest_is_one_problem_per_class():
    X, y = IRIS
    clf = zg.LinearClassifier("logistic", tol=1e-6, random_state=0).fit(X, y)
    assert clf.coef_.shape == (3, 4)
    assert clf.dual_coef_.shape == (3, 150)
    assert len(clf.history_) == 3
    parts = clf.certificate_.parts
    assert [part.relative_gap <= 1e-6 for part in parts] == [True] * 3
    assert clf.certificate_.gap == pytest.approx(sum(part.gap for part in parts))
    for k in range(3):
        problem = zg.Problem(X, np.where(y == k, 1.0, -1.0), "logistic", fit_intercept=True)
        again = problem.certificate(clf.coef_[k], clf.intercept_[k], clf.dual_coef_[k])
        assert again.gap == pytest.approx(parts[k].gap, rel=1e-3, abs=1e-9)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)
    assert clf.score(X, y) > 0.9


def test_threads_change_nothing():
    X, y = IRIS
    one, two = (zg.LinearClassifier(n_jobs=jobs, random_state=0).fit(X, y) for jobs in (None, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_probabilities_only_where_the_loss_has_them():
    X, y = make_data("hinge")
    assert not hasattr(zg.LinearClassifier("hinge").fit(X, y), "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        zg.LinearClassifier("hinge").fit(X, y).predict_proba(X)


def test_class_weights_are_sample_weights():
    X, y = make_data("hinge", n=90)
    counts = {label: np.sum(y == label) for label in (-1, 1)}
    weights = np.array([90 / (2 * counts[label]) for label in y])
    options = {"tol": 1e-11, **TIGHT}
    balanced = zg.LinearClassifier(class_weight="balanced", **options).fit(X, y)
    explicit = zg.LinearClassifier(**options).fit(X, y, weights)
    np.testing.assert_allclose(balanced.coef_, explicit.coef_, atol=1e-5)
    s = np.random.default_rng(1).integers(1, 4, 90)
    weighted = zg.LinearClassifier(class_weight="balanced", **options).fit(X, y, s)
    repeated = zg.LinearClassifier(class_weight="balanced", **options)
    repeated.fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)
    by_name = zg.LinearClassifier(class_weight={-1: 2.0, 1: 0.5}, **options).fit(X, y)
    by_row = zg.LinearClassifier(**options).fit(X, y, np.where(y < 0, 2.0, 0.5))
    np.testing.assert_allclose(by_name.coef_, by_row.coef_, atol=1e-5)


def test_default_lam_is_c_equal_one():
    X, y = make_data("hinge")
    options = {"random_state": 0, "tol": 1e-6}
    default = zg.LinearClassifier(**options).fit(X, y)
    explicit = zg.LinearClassifier(lam=1 / 40, **options).fit(X, y)
    np.testing.assert_array_equal(default.coef_, explicit.coef_)


def test_warm_start_continues_from_the_dual():
    X, y = make_data("hinge", n=200, d=10)
    clf = zg.LinearClassifier(tol=1e-5, warm_start=True, **TIGHT).fit(X, y)
    cold = clf.n_iter_
    clf.set_params(lam=0.999 / 200).fit(X, y)
    assert clf.certificate_.epochs < cold
    assert clf.fit(X, y).certificate_.epochs == 0
    clf.fit(X[:150], y[:150])  # other rows: the weights are kept, the dual variables are not
    assert clf.dual_coef_.shape == (1, 150)
    assert clf.certificate_.relative_gap <= 1e-5


def test_grid_search_over_nested_parameters():
    X, y = make_data("hinge", n=60)
    grid = {
        "clf__loss__gamma": [0.1, 1.0],
        "clf__solver__sampling": ["permutation", "cyclic"],
        "clf__lam": [0.01, 0.1],
    }
    pipeline = make_pipeline(
        StandardScaler(), zg.LinearClassifier(zg.SmoothHinge(), solver=zg.SDCA(), random_state=0)
    )
    pipeline.steps[-1] = ("clf", pipeline.steps[-1][1])
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_estimator_[-1].loss.gamma == search.best_params_["clf__loss__gamma"]
    assert zg.SmoothHinge().gamma == 1.0


def test_clone_and_pickle():
    X, y = make_data("hinge")
    clf = zg.LinearClassifier(zg.SmoothHinge(0.3), solver=zg.SDCA("cyclic"), random_state=0).fit(
        X, y
    )
    fresh = clone(clf)
    assert fresh.loss == clf.loss
    assert fresh.loss is not clf.loss
    assert not hasattr(fresh, "coef_")
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.predict(X), clf.predict(X))
    assert copy.certificate_ == clf.certificate_


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(frame):
    X, y = make_data("hinge")
    names = [f"x{j}" for j in range(5)]
    table = frame(dict(zip(names, X.T, strict=True)))
    clf = zg.LinearClassifier(random_state=0).fit(table, pd.Series(y))
    assert list(clf.feature_names_in_) == names
    plain = zg.LinearClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, plain.coef_)
    np.testing.assert_array_equal(clf.predict(table), plain.predict(X))


def test_sample_weights_are_routed():
    X, y = make_data("hinge")
    weights = np.arange(40.0)
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        clf = zg.LinearClassifier(random_state=0)
        clf = clf.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_validate(clf, X, y, params={"sample_weight": weights}, cv=2)
    assert len(scores["test_score"]) == 2


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_certificate_is_what_the_model_says(storage, dtype):
    X, y = make_data("hinge", storage=storage, dtype=dtype)
    clf = zg.LinearClassifier(tol=1e-6, random_state=0).fit(X, y)
    problem = zg.Problem(X, y, "hinge", fit_intercept=True)
    again = problem.certificate(clf.coef_[0], clf.intercept_[0], clf.dual_coef_[0])
    assert again.primal == pytest.approx(clf.certificate_.primal, rel=1e-12)
    assert again.gap == pytest.approx(clf.certificate_.gap, rel=1e-3, abs=1e-12)
    assert "chosen automatically" in clf.certificate_.solver
    assert clf.history_["gap"][-1] == clf.certificate_.gap


def test_not_converged_says_how_far():
    X, y = make_data("hinge", n=200, d=20)
    with pytest.warns(
        ConvergenceWarning, match=r"relative duality gap of .* asked for 1e-09.*max_epochs or lam"
    ):
        zg.LinearClassifier(tol=1e-9, max_epochs=3, random_state=0).fit(X, y)


def test_seconds_are_shared_by_the_classes():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 20)), rng.integers(0, 5, 500)
    clf = zg.LinearClassifier(tol=0.0, max_epochs=10**7, max_seconds=0.5, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"stopped \(max_seconds\).* of class number"):
        clf.fit(X, y)
    assert {part.stop_reason for part in clf.certificate_.parts} == {"max_seconds"}
    assert clf.certificate_.seconds < 1.5, "not half a second each"


@pytest.mark.posix
def test_ctrl_c_keeps_the_best_certified_model():
    X, y = make_data("hinge", n=3000, d=50)
    clf = zg.LinearClassifier(tol=0.0, max_epochs=10**6, random_state=0)
    zg.LinearClassifier(random_state=0).fit(X, y)  # kernels are loaded before the timer starts
    timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    timer.join()
    assert clf.certificate_.stop_reason == "interrupted"
    assert (
        clf.certificate_.gap
        == zg.Problem(X, y, "hinge", fit_intercept=True)
        .certificate(clf.coef_[0], clf.intercept_[0], clf.dual_coef_[0])
        .gap
        or clf.certificate_.relative_gap < 1e-3
    )
    assert clf.score(X, y) > 0.8


@pytest.mark.posix
@pytest.mark.parametrize("jobs", [None, 2])
def test_ctrl_c_during_one_against_rest_keeps_all_classes(jobs):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 40)), rng.integers(0, 4, 3000)
    clf = zg.LinearClassifier(tol=0.0, max_epochs=10**6, random_state=0, n_jobs=jobs)
    timer = threading.Timer(0.8, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    timer.join()
    assert clf.coef_.shape == (4, 40)
    assert all(np.isfinite(part.gap) for part in clf.certificate_.parts)
    assert set(clf.predict(X)) <= {0, 1, 2, 3}


def test_sparse_and_dense_agree():
    X, y = make_data("logistic")
    dense = zg.LinearClassifier("logistic", random_state=0).fit(X, y)
    csr = zg.LinearClassifier("logistic", random_state=0).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(dense.coef_, csr.coef_, rtol=1e-10)
    np.testing.assert_allclose(
        dense.predict_proba(X), csr.predict_proba(sparse.csc_matrix(X)), rtol=1e-10
    )


def test_callback_and_verbose(capsys):
    X, y = make_data("hinge")
    seen = []
    zg.LinearClassifier(
        callback=lambda record: seen.append(record.gap), verbose=1, random_state=0
    ).fit(X, y)
    assert len(seen) >= 2
    assert "primal" in capsys.readouterr().err


@pytest.mark.parametrize("indices", [np.int32, np.int64])
def test_case_37_structure_changed_during_the_fit(indices):
    """The caller ruins the structure of X after the first certificate; the fit does not notice."""
    X, y = make_data("hinge", n=200, storage="csr")
    X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indices)
    expected = zg.LinearClassifier(tol=1e-6, random_state=0).fit(X.copy(), y)

    def ruin(record):
        X.indices[:] = 2**30
        X.indptr[:] = 2**30

    clf = zg.LinearClassifier(tol=1e-6, random_state=0, callback=ruin).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, expected.coef_)

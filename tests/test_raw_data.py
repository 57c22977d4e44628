"""Raw data as users have it: units, offsets and shapes on which the default once failed.

The names r1 to r8 are those of the findings that each test keeps from coming back.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge

import zerogap as zg
from problems import make_data
from zerogap.losses import ResidualLoss
from zerogap.problem.centring import centred
from zerogap.problem.certificate import Certificate
from zerogap.problem.validation import describe_columns, describe_targets, warn_if_short
from zerogap.rows import DenseRows
from zerogap.rows import base as rows_base
from zerogap.rows.dense import ShiftedRows
from zerogap.solvers.rotation import rotated, simpler

MARGINS = ("hinge", "smooth-hinge", "squared-hinge", "logistic")
RESIDUALS = ("squared", "absolute", "epsilon-insensitive", "huber", "quantile")


def load(name):
    try:
        return zg.datasets.load(name)
    except FileNotFoundError as error:
        pytest.skip(str(error))


def estimator(loss, **options):
    kind = zg.LinearRegressor if loss in RESIDUALS else zg.LinearClassifier
    return kind(loss, random_state=0, **options)


def proved(model):
    certificate = model.certificate_
    assert certificate.stop_reason == "converged", str(certificate)
    assert certificate.relative_gap <= model.tol
    return certificate


def test_r1_raw_adult_is_proved_in_a_few_steps():
    adult = load("adult")
    clf = zg.LinearClassifier("logistic", random_state=0).fit(adult.X, adult.y)
    assert proved(clf).epochs <= 20
    assert clf.score(adult.X_test, adult.y_test) > 0.85


@pytest.mark.parametrize("loss", [*MARGINS, *RESIDUALS])
@pytest.mark.parametrize("scale", [1e-9, 1e5, 1e6, 1e9])
def test_r2_r3_a_unit_of_measurement_changes_the_penalty_only(loss, scale):
    X, y = make_data(loss, n=400, d=5)
    X[:, 0] *= scale
    certificate = proved(estimator(loss, tol=1e-6).fit(X, y))
    assert certificate.epochs <= 100


@pytest.mark.parametrize("loss", ["softmax", "multiclass-hinge"])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_r4_many_classes_on_raw_tables(loss, l1_ratio):
    wine = load_wine()
    clf = zg.LinearClassifier(loss, l1_ratio=l1_ratio, tol=1e-6, random_state=0)
    assert proved(clf.fit(wine.data, wine.target)).epochs <= 100
    assert clf.score(wine.data, wine.target) > 0.95


@pytest.mark.parametrize("loss", [*MARGINS, *RESIDUALS, "softmax", "multiclass-hinge"])
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_r3_thousands_of_categories_beside_money(loss, C):
    """Kinked losses had coordinate ascent alone from 3 000 sparse columns on: gaps of 100 %."""
    rng = np.random.default_rng(0)
    n, levels = 600, 3100
    drawn = rng.zipf(1.2, n) % levels
    categories = sparse.csr_matrix((np.ones(n), (np.arange(n), drawn)), (n, levels))
    money = np.round(rng.lognormal(8.0, 1.5, n), 2)
    X = sparse.hstack([categories, money[:, None], rng.integers(1950, 2025, (n, 1))]).tocsr()
    score = rng.standard_normal(levels)[drawn] + np.log(money) - 8.0 + rng.standard_normal(n)
    classes = np.digitize(score, [-1.0, 1.0]) if loss in zg.losses.MULTICLASS_LOSSES else score > 0
    y = score if loss in RESIDUALS else classes.astype(int)
    proved(estimator(loss, lam=1.0 / (C * n)).fit(X, y))


@pytest.mark.parametrize("loss", [*MARGINS, *RESIDUALS, "softmax", "multiclass-hinge"])
def test_r3_few_sparse_rows_of_thousands_of_raw_columns(loss):
    """There was coordinate ascent alone for kinked losses: gaps of 100 % after 1000 epochs."""
    rng = np.random.default_rng(0)
    X = sparse.random(60, 5000, 0.02, format="csr", random_state=0)
    X.data = rng.lognormal(2.0, 3.0, X.nnz)
    score = rng.standard_normal(60)
    classes = np.digitize(score, [-1.0, 1.0]) if loss in zg.losses.MULTICLASS_LOSSES else score > 0
    y = score if loss in RESIDUALS else classes.astype(int)
    proved(estimator(loss, lam=1e-2 / 60, tol=1e-6).fit(X, y))


def test_r4_softmax_survives_huge_values_and_nine_classes():
    rng = np.random.default_rng(0)
    X = rng.lognormal(3.0, 4.0, (90, 25)).clip(max=8e6)
    y = np.arange(90) % 9
    problem = zg.Problem(X, y, "softmax", fit_intercept=True)
    assert zg.solve(problem, zg.Newton(), tol=1e-3, random_state=0).stop_reason == "converged"


@pytest.mark.parametrize(
    ("n", "d", "l1_ratio"), [(100, 500, 0.95), (50, 2000, 0.99), (300, 8, 0.9)]
)
def test_r5_elastic_nets_have_a_second_method(n, d, l1_ratio):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = X[:, :5] @ rng.standard_normal(5) + rng.standard_normal(n)
    lam = 1.0 / n
    model = zg.LinearRegressor("squared", lam=lam, l1_ratio=l1_ratio, tol=1e-6, random_state=0)
    certificate = proved(model.fit(X, y))
    peer = ElasticNet(alpha=lam, l1_ratio=l1_ratio, tol=1e-10, max_iter=100_000).fit(X, y)
    problem = zg.Problem(X, y, "squared", lam, fit_intercept=True, l1_ratio=l1_ratio)
    theirs = problem.primal(peer.coef_, peer.intercept_)
    assert certificate.dual <= theirs * (1 + 1e-9)
    assert certificate.primal <= theirs * (1 + 1e-6)
    assert np.count_nonzero(model.coef_) < d or d < n


@pytest.mark.parametrize("loss", ["softmax", "multiclass-hinge", "smooth-hinge", "hinge"])
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_r5_elastic_nets_of_wide_tables(loss, raw, C):
    """Thousands of weights and few rows: for classes there was only coordinate ascent."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 1200))
    X = np.exp(2.0 * X) if raw else X
    y = np.arange(12) % (3 if loss in zg.losses.MULTICLASS_LOSSES else 2)
    model = zg.LinearClassifier(loss, lam=1.0 / (C * 12), l1_ratio=0.8, tol=1e-6, random_state=0)
    assert proved(model.fit(X, y)).epochs <= 300


def test_r5_paths_of_elastic_nets_have_no_holes():
    X, y = make_data("squared", n=300, d=8)
    path = zg.path(X, y, lam_min=1e-3, lam_max=1.0, loss="squared", l1_ratio=0.9, random_state=0)
    assert path.at(0.0123).certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9, 1.7e9, 1e12])
@pytest.mark.parametrize("loss", [*MARGINS, *RESIDUALS, "softmax"])
def test_r6_offsets_of_columns_and_targets_cost_nothing(loss, offset):
    X, y = make_data("hinge" if loss == "softmax" else loss, n=200, d=4)
    far = y + 1e9 if loss in RESIDUALS else y
    near, moved = (estimator(loss, tol=1e-6).fit(X + shift, far) for shift in (0.0, offset))
    assert proved(moved).epochs <= 1.5 * proved(near).epochs + 10
    digits = 1e-15 * offset  # of each value, that the offset has taken away
    assert moved.certificate_.primal == pytest.approx(near.certificate_.primal, rel=3e-6 + digits)


def test_r6_ridge_with_offsets_predicts_as_scikit_learn_s():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)) + 1e6
    y = X @ rng.standard_normal(5) + 0.1 * rng.standard_normal(300) + 1e9
    ours, theirs = zg.LinearRegressor(lam=1.0 / 300).fit(X, y), Ridge(alpha=1.0).fit(X, y)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-4)


@pytest.mark.parametrize("name", ["adult", "skin", "covtype"])
def test_r7_certify_bounds_the_distance_on_raw_data(name):
    data = load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(max_iter=5).fit(data.X, data.y)
    audit = zg.certify(model, data.X, data.y)
    assert audit.at_least > 0.1
    assert audit.gap <= 1.1 * audit.at_least
    assert audit.epochs <= 30


def test_r7_twice_the_precision_is_for_models_near_the_optimum(monkeypatch):
    """It took longer than a fit, where the model's own dual point was of no use anyway."""
    asked = []

    def refined(problem, *point):
        asked.append(point)
        return problem.proof_of(*point)

    monkeypatch.setattr(zg.Problem, "refined_proof_of", refined)
    cancer = load_breast_cancer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        far, near = (LogisticRegression(max_iter=many) for many in (5, 100_000))
        far.fit(cancer.data, cancer.target)
        near.set_params(solver="newton-cholesky", tol=1e-12).fit(cancer.data, cancer.target)
    assert zg.certify(far, cancer.data, cancer.target).relative_gap > 0.1
    assert not asked
    assert zg.certify(near, cancer.data, cancer.target).relative_gap < 1e-6
    assert asked


def test_r8_raw_pixels_at_a_large_C():
    skin = load("skin")
    some = slice(None, None, 20)
    X, y = skin.X[some], skin.y[some]
    for loss in MARGINS:
        clf = zg.LinearClassifier(loss, lam=1.0 / (100 * len(y)), random_state=0).fit(X, y)
        assert proved(clf).epochs <= 100


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_centring_changes_nothing_but_the_intercept(form):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [1e6 + rng.standard_normal(50), rng.standard_normal(50), rng.random(50) < 0.1]
    )
    X[3, 0] = 0.0  # a zero in a column that is far from it
    y = np.where(np.arange(50) % 2, 1.0, -1.0)
    problem = zg.Problem(form(X), y, "logistic", 0.1, fit_intercept=True)
    shifted = centred(problem)
    w, b = rng.standard_normal(3), 0.7
    inner = shifted.problem
    assert abs(inner.rows.transposed_times(problem.share)[0]) < 1e5
    np.testing.assert_array_equal(shifted.origin[1:], 0.0)
    assert inner.primal(w, shifted.inward(w, b)) == pytest.approx(problem.primal(w, b), rel=1e-9)
    assert shifted.outward(w, shifted.inward(w, b)) == pytest.approx(b, abs=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_without_memory_for_a_shifted_copy_sparse_columns_stay_as_given(loss, monkeypatch):
    monkeypatch.setattr(rows_base, "free_memory", lambda: 1e3)
    X, y = make_data(loss, n=200, d=4)
    X[:, 0] = np.round(2000 + 10 * X[:, 0])  # a year
    problem = zg.Problem(sparse.csr_matrix(X), y, loss, 0.01, fit_intercept=True)
    assert centred(problem).problem is problem
    proved(estimator(loss, lam=0.01).fit(sparse.csr_matrix(X), y))


@pytest.mark.parametrize(
    ("loss", "dtype"),
    [
        ("logistic", np.float64),
        ("hinge", np.float64),
        ("squared", np.float32),
        ("softmax", np.float64),
        ("multiclass-hinge", np.float64),
    ],
)
def test_r6_without_memory_for_a_copy_shifts_are_subtracted_at_each_reading(
    loss, dtype, monkeypatch
):
    """Seconds since 1970: as given, they would cost all digits that tell rows apart."""
    many = loss in zg.losses.MULTICLASS_LOSSES
    X, y = make_data("squared" if many else loss, n=200, d=4)
    y = np.digitize(y, [-1.0, 1.0]) if many else y
    X[:, 0] = 1.7e9 + 256 * np.round(100 * X[:, 0])  # in single precision, too
    X = X.astype(dtype)
    usual = estimator(loss, tol=1e-6).fit(X, y)
    monkeypatch.setattr(rows_base, "free_memory", lambda: 1e3)
    shifted = centred(zg.Problem(X, y, loss, 0.01, fit_intercept=True)).problem.rows
    assert isinstance(shifted, ShiftedRows)
    assert shifted.X is X
    certificate = proved(model := estimator(loss, tol=1e-6).fit(X, y))
    assert certificate.primal == pytest.approx(proved(usual).primal, rel=1e-5)
    np.testing.assert_allclose(model.predict(X), usual.predict(X), atol=0.1 * np.std(y))


def test_inner_products_of_shifted_rows_have_no_origin():
    """A wide table far from zero ended in a ValueError where rounding was looked at."""
    X, y = make_data("absolute", n=20, d=1200)
    problem = centred(zg.Problem(X + 1e6, y, "absolute", 1e-3, fit_intercept=True)).problem
    assert len(problem.origin) == 1200
    inner = simpler(problem, raw=True).problem
    assert inner.shape == (20, 20)
    assert not inner._rounded_columns.any()


def test_rotation_keeps_inner_products_and_makes_columns_orthogonal():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6)) * [1e-6, 1.0, 1e3, 1e9, 1.0, 1.0]
    X[:, 4], X[:, 5] = X[:, 3] * (1 + 1e-9 * rng.standard_normal(60)), 1e3 * X[:, 2]
    y = np.where(np.arange(60) % 2, 1.0, -1.0)
    problem = zg.Problem(X, y, "hinge", 0.1)
    turned, outward, inward = rotated(problem)
    A = turned.rows.X
    np.testing.assert_allclose(A @ A.T, X @ X.T, rtol=1e-12, atol=1e-9 * np.abs(X @ X.T).max())
    norms = np.linalg.norm(A, axis=0)
    kept = norms > 0
    assert kept.sum() == 5, "an exact copy in another unit is no column of its own"
    correlations = (A[:, kept] / norms[kept]).T @ (A[:, kept] / norms[kept])
    assert np.abs(correlations - np.eye(5)).max() < 1e-6
    w = rng.standard_normal(6) / np.where(kept, norms, 1.0)
    np.testing.assert_allclose(X @ outward(w), A @ w, atol=1e-5)
    np.testing.assert_allclose(inward(outward(w), np.zeros(60)), w, rtol=1e-9, atol=1e-12)


def test_the_answer_is_never_worse_than_the_best_constant_model():
    cancer = load_breast_cancer()
    y = np.where(cancer.target == 1, 1.0, -1.0)
    for loss in MARGINS:
        problem = zg.Problem(1e6 * cancer.data, y, loss, lam=1e-9, fit_intercept=True)
        constant = problem.primal(np.zeros(30), problem.constant())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = zg.solve(problem, zg.Auto(), tol=1e-9, max_epochs=1, random_state=0)
        assert run.certificate.primal <= constant


@dataclass(frozen=True)
class Unbounded(ResidualLoss):
    """Half the squared residual, of which neither slopes nor curvature are known."""

    def domain(self, y):
        return (-math.inf, math.inf)

    def value(self, z, y):
        return 0.5 * (z - y) ** 2

    def derivative(self, z, y):
        return z - y

    def conjugate(self, a, y):
        return 0.5 * a * a - a * y

    def dual_step(self, a, y, z, q):
        return (y - z - a) / (1.0 + q)


def test_a_model_without_a_bound_is_the_best_one_found():
    """Gaps are infinite there, and the model without weights was returned after 1000 epochs."""
    X, y = make_data("squared", n=60, d=3)
    run = zg.solve(zg.Problem(X, y, Unbounded(), 0.1), zg.Auto(), max_epochs=50, random_state=0)
    best = zg.solve(zg.Problem(X, y, "squared", 0.1), zg.Auto(), tol=1e-9, random_state=0)
    assert run.certificate.primal == pytest.approx(best.certificate.primal, rel=1e-6)


def test_a_run_without_progress_says_which_columns_are_why():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) * [1e-9, 1e14, 1.0]
    X = np.column_stack([X, X[:, 1] * (1 + 1e-12 * rng.standard_normal(60))])
    y = np.where(rng.random(60) < 0.5, 1, -1)
    clf = zg.LinearClassifier("logistic", lam=1e-8, tol=1e-12, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"column \d has values of about 8e\+13, column 0"):
        clf.fit(X, y)
    assert clf.certificate_.stop_reason == "stalled"


def test_a_run_that_cannot_tell_columns_apart_names_them():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    X[:, 4] = X[:, 1] - 2.0 * X[:, 2]
    said = describe_columns(DenseRows(X))
    assert said.startswith("column 1, column 2 and column 4 nearly cancel")
    assert "column 4 (six)" in describe_columns(DenseRows(X), ["a", "b", "c", "d", "six", "e"])
    X[:, 4] = rng.standard_normal(60)
    assert "column" not in describe_columns(DenseRows(X)).replace("columns", "")
    X[:, 3] *= 1e8
    rows_of_matrix = zg.Problem(sparse.csr_matrix(X), rng.standard_normal(60), "squared", 1.0).rows
    assert describe_columns(rows_of_matrix).startswith("column 3 has values of")


def test_a_run_that_cannot_tell_targets_apart_says_so():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((100, 5)) * [1.0, 100.0, 1e4, 1e-4, 1.0]
    y = 1e9 + 1e-6 * (X @ (rng.standard_normal(5) / X.std(axis=0)))
    assert "the targets are about 1e+09" in describe_targets(y)
    assert not describe_targets(y - 1e9)
    assert not describe_targets(np.full(9, 1e9))
    near = 1e9 + 1e-3 * rng.standard_normal(100)  # enough digits for 1e-3 of that, not for 1e-8
    assert describe_targets(near, tol=1e-8)
    assert not describe_targets(near, tol=1e-3)
    with pytest.warns(ConvergenceWarning, match="the targets are about 1e.09 and differ by about"):
        zg.LinearRegressor("squared", tol=1e-9, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("reason", "option"),
    [("max_epochs", "max_epochs"), ("max_seconds", "max_seconds"), ("rounding", "tol")],
)
def test_a_run_that_ends_early_advises_the_option_that_ended_it(reason, option):
    proof = Certificate(primal=0.5, dual=0.4, gap=0.1, stop_reason=reason)
    with pytest.warns(ConvergenceWarning, match=rf"raise .*{option}\b"):
        warn_if_short(proof, 1e-3, "columns 0 and 1 nearly cancel")


def test_rounding_beyond_all_use_is_no_warning():
    proof = Certificate(primal=0.5, dual=0.5, gap=1e-13, stop_reason="rounding")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_short(proof, 1e-16, "columns 0 and 1 nearly cancel")

"""Several targets, labels that occur together, rows that come in parts, and calibrated scores."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    make_multilabel_classification,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale

import zerogap as zg

DIABETES = load_diabetes(return_X_y=True)
TARGETS = np.c_[DIABETES[1], -(DIABETES[1] ** 1.5), np.sqrt(DIABETES[1])]
IRIS = load_iris(return_X_y=True)
LABELS = make_multilabel_classification(150, 6, n_classes=3, random_state=0)
RAW = load_breast_cancer(return_X_y=True)
CANCER = scale(RAW[0]), RAW[1]


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_several_targets_are_one_model_each(loss):
    X, _ = DIABETES
    model = zg.LinearRegressor(loss, tol=1e-9, random_state=0).fit(X, TARGETS)
    assert model.coef_.shape == (3, 10)
    assert len(model.certificate_.parts) == 3
    for k, y in enumerate(TARGETS.T):
        alone = zg.LinearRegressor(loss, tol=1e-9, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict(X)[:, k], alone.predict(X), rtol=1e-3)
    assert zg.certify(model, X, TARGETS).relative_gap <= 1e-9
    assert model.fit(X, TARGETS[:, 0]).coef_.shape == (10,)


@pytest.mark.parametrize("class_weight", [None, "balanced", [{0: 1, 1: 3}, {0: 1}, {1: 2}]])
def test_labels_that_occur_together(class_weight):
    X, Y = LABELS
    options = {"class_weight": class_weight, "tol": 1e-9, "random_state": 0}
    model = zg.LinearClassifier("logistic", **options).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.score(X, Y) == np.mean((model.predict(X) == Y).all(axis=1))
    assert zg.certify(model, X, Y).relative_gap <= 1e-9
    same = zg.LinearClassifier("logistic", **options).fit(X, sparse.csr_array(Y))
    np.testing.assert_array_equal(same.coef_, model.coef_)
    if class_weight is None:
        rest = OneVsRestClassifier(zg.LinearClassifier("logistic", tol=1e-9)).fit(X, Y)
        np.testing.assert_allclose(model.predict_proba(X), rest.predict_proba(X), atol=1e-3)
    model.fit(*IRIS if class_weight is None else (X, Y[:, 0] if class_weight == "balanced" else Y))


def test_what_several_targets_cannot_do_is_refused(tmp_path):
    X, Y = LABELS
    model = zg.LinearClassifier("hinge").fit(X, Y)
    with pytest.raises(ValueError, match="needs a model of one target"):
        model.predict_certified(X)
    with pytest.raises(ValueError, match="needs a model of one target"):
        model.calibrate(X, Y)
    several = zg.LinearRegressor().fit(DIABETES[0], TARGETS)
    for call in (
        lambda: several.leave_one_out(DIABETES[0], TARGETS),
        lambda: several.update(DIABETES[0], TARGETS),
        lambda: several.forget([0], data=(DIABETES[0], TARGETS)),
        lambda: several.predict_certified(DIABETES[0]),
        lambda: zg.save(several, tmp_path / "model.zg"),
    ):
        with pytest.raises(ValueError, match="needs a model of one target"):
            call()
    with pytest.raises(ValueError, match="by 0 and 1: give classes as one column"):
        zg.LinearClassifier().fit(X, Y + np.arange(3))
    with pytest.raises(ValueError, match="label 1 is 0 in all rows"):
        zg.LinearClassifier().fit(X, Y * [1, 0, 1])
    with pytest.raises(ValueError, match="a loss of one score"):
        zg.LinearClassifier("softmax").fit(X, Y)


@pytest.mark.parametrize(
    ("loss", "kind"), [("hinge", np.asarray), ("hinge", sparse.csr_array), ("softmax", np.asarray)]
)
def test_parts_of_the_rows_lead_to_the_model_of_all(loss, kind):
    """Classes come one after the other; weights count."""
    X, y = kind(scale(IRIS[0])), IRIS[1]
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    whole = zg.LinearClassifier(loss, lam=0.1, tol=1e-9, random_state=0).fit(X, y, weights)
    model = zg.LinearClassifier(loss, lam=0.1, tol=1e-9, random_state=0)
    for rows in np.array_split(np.arange(150), 5):
        model.partial_fit(X[rows], y[rows], classes=[0, 1, 2], sample_weight=weights[rows])
        assert hasattr(model, "coef_") == (rows[-1] >= 50)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-3)
    assert zg.certify(model, X, y, sample_weight=weights).relative_gap <= 1e-9
    model.fit(X, y, weights)
    assert model.partial_fit(X[:10], y[:10]).dual_coef_.shape[-1] in (10, 160)


def test_parts_of_a_regression():
    X, y = DIABETES
    whole = zg.LinearRegressor("huber", tol=1e-9, random_state=0).fit(X, y)
    model = zg.LinearRegressor("huber", tol=1e-9, random_state=0)
    for rows in np.array_split(np.arange(len(y)), 3):
        model.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-3)


@pytest.mark.parametrize("data", [CANCER, RAW], ids=["scaled", "raw"])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_calibrated_scores_tell_probabilities(loss, data, tmp_path):
    """Nearly as well as logistic regression, on rows that were not seen."""
    seen, unseen, y, y_unseen = train_test_split(*data, random_state=0)
    model = zg.LinearClassifier(loss, lam=0.01, tol=1e-6, random_state=0).fit(seen, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(unseen)
    assert "call calibrate(X, y) with the data of the fit" in str(caught.value.__cause__)
    logistic = zg.LinearClassifier("logistic", lam=0.01, random_state=0).fit(seen, y)
    limit = log_loss(y_unseen, logistic.predict_proba(unseen)) + 0.08
    for scores in ("leave-one-out", "folds"):
        likely = model.calibrate(seen, y, scores=scores).predict_proba(unseen)
        assert log_loss(y_unseen, likely) <= limit
    np.testing.assert_allclose(likely.sum(axis=1), 1.0)
    zg.save(model, tmp_path / "model.zg")
    np.testing.assert_array_equal(zg.load(tmp_path / "model.zg").predict_proba(unseen), likely)
    assert not hasattr(model.fit(seen, y), "predict_proba")


def test_few_rows_are_refitted_for_leave_one_out_scores():
    """Rows whose dual variable is zero change nothing when they leave."""
    model = zg.LinearClassifier("hinge", lam=0.01, tol=1e-6, random_state=0).fit(*CANCER)
    found = model.calibrate(*CANCER).calibration_
    assert found.scores == "leave-one-out"
    assert found.refitted <= len(model.support_) < 150
    assert found.certificate.relative_gap <= 1e-8


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_many_classes_are_calibrated_by_folds(loss):
    X, y = IRIS
    model = zg.LinearClassifier(loss, lam=0.01, random_state=0).fit(X, y).calibrate(X, y)
    likely = model.predict_proba(X)
    np.testing.assert_allclose(likely.sum(axis=1), 1.0)
    assert log_loss(y, likely) < 0.4
    with pytest.raises(ValueError, match="scores must be"):
        model.calibrate(X, y, scores="own")


def test_calibrated_models_in_onnx(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, y = CANCER
    model = zg.LinearClassifier("hinge", lam=0.01, random_state=0).fit(X, y).calibrate(X, y)
    path = tmp_path / "model.onnx"
    zg.model_io.to_onnx(model, path)
    found = runtime.InferenceSession(path).run(["probabilities"], {"X": X.astype(np.float32)})[0]
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-4)

"""Estimators on a device find the models of the processor."""

import math

import numpy as np
import pytest
from scipy import sparse

import zerogap as zg
from cuda_cases.common import break_down
from problems import make_data
from zerogap.cuda import DeviceError

LAM = 0.1


def labelled(classes, n=18):
    X, y = make_data("squared", n, 3)
    codes = np.digitize(y, np.quantile(y, np.arange(1, len(classes)) / len(classes)))
    return X, np.array(classes)[codes]


def fitted(X, y, loss, **options):
    cls = zg.LinearRegressor if y.dtype.kind == "f" else zg.LinearClassifier
    options = {"lam": LAM, "tol": 1e-7, "random_state": 0, **options}
    return [cls(loss, device=where, **options).fit(X, y) for where in ("cpu", "cuda")]


def check_distance(one, other):
    """Two models are as near to each other as their certificates say: |w - w*|^2 <= 2 gap / lam."""
    limit = sum(math.sqrt(2.0 * model.certificate_.gap / LAM) for model in (one, other))
    assert np.linalg.norm(one.coef_ - other.coef_) <= limit < 0.1


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize(
    ("loss", "classes", "tol"),
    [
        ("hinge", ["no", "yes"], 1e-7),
        ("logistic", [3, 7], 1e-7),
        ("squared-hinge", ["a", "b", "c"], 1e-7),
        ("softmax", ["a", "b", "c"], 1e-7),
        ("softmax", [0, 1], 1e-7),
        ("multiclass-hinge", [2, 4, 6], 1e-4),
    ],
)
def test_estimator_classifies_as_on_the_processor(loss, classes, tol, storage):
    X, y = labelled(classes)
    given = sparse.csr_matrix(X) if storage == "csr" else X
    here, there = fitted(given, y, loss, tol=tol)
    check_distance(here, there)
    assert there.certificate_.relative_gap <= tol
    for name in ("coef_", "intercept_", "dual_coef_"):
        found = getattr(there, name)
        assert isinstance(found, np.ndarray)
        assert found.shape == getattr(here, name).shape
    assert there.fingerprint_ == here.fingerprint_
    labels, certified = there.predict_certified(given)
    np.testing.assert_array_equal(labels, there.predict(given))
    np.testing.assert_array_equal(labels[certified], here.predict(given)[certified])
    assert certified.mean() > 0.5
    assert set(labels) <= set(classes)


@pytest.mark.parametrize("loss", ["huber", "epsilon-insensitive"])
def test_estimator_regresses_as_on_the_processor(loss):
    X, y = make_data(loss, 18, 3)
    here, there = fitted(X, y, loss)
    check_distance(here, there)
    predicted, low, high = there.predict_certified(X)
    assert np.all((low <= predicted) & (predicted <= high))
    assert np.all((low <= here.predict(X) + 0.02) & (here.predict(X) - 0.02 <= high))


def test_estimator_goes_on_from_its_last_fit():
    X, y = labelled(["no", "yes"])
    options = {"lam": LAM, "tol": 1e-4, "solver": "sdca", "device": "cuda", "random_state": 0}
    model = zg.LinearClassifier("logistic", warm_start=True, **options).fit(X, y)
    assert model.certificate_.epochs > 0
    first = model.coef_
    assert model.fit(X, y).certificate_.epochs == 0
    np.testing.assert_allclose(model.coef_, first)


def test_estimator_counts_weights_and_classes():
    X, y = labelled(["no", "yes"])
    times = np.arange(18) % 3
    weighted, repeated = (
        zg.LinearClassifier("logistic", lam=LAM, tol=1e-8, device="cuda", random_state=0)
        for _ in range(2)
    )
    weighted.fit(X, y, times)
    repeated.fit(X[np.repeat(np.arange(18), times)], np.repeat(y, times))
    check_distance(weighted, repeated)
    here, there = fitted(X, y, "hinge", class_weight="balanced")
    check_distance(here, there)


def test_estimator_refuses_what_there_is_on_the_processor_only(tmp_path):
    X, y = labelled(["a", "b", "c"])
    model = zg.LinearClassifier("softmax", device="cuda", stop="labels")
    with pytest.raises(ValueError, match="stop='labels' needs device='cpu'"):
        model.fit(X, y, X_val=X)
    model = zg.LinearClassifier(device="cuda", checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="checkpoints are not written from a GPU"):
        model.fit(X, y)
    assert not list(tmp_path.iterdir())


def test_estimator_keeps_its_best_model_when_the_device_fails(monkeypatch):
    X, y = labelled(["no", "yes"])
    options = {"lam": LAM, "tol": 0.0, "solver": "sdca", "device": "cuda", "random_state": 0}
    model = zg.LinearClassifier("logistic", **options)
    with monkeypatch.context() as patched:
        break_down(patched, 20)
        with pytest.raises(DeviceError, match="the GPU has failed"):
            model.fit(X, y)
    assert model.certificate_.stop_reason == "device failed"
    assert 0 < model.certificate_.gap < 0.1
    assert model.coef_.shape == (1, 3)
    kept = zg.Problem(X, np.where(y == "yes", 1.0, -1.0), "logistic", LAM, fit_intercept=True)
    again = kept.certificate(model.coef_[0], float(model.intercept_[0]), model.dual_coef_[0])
    assert again.gap == pytest.approx(model.certificate_.gap, rel=1e-6)
    assert set(model.predict(X)) == {"no", "yes"}
    model.set_params(tol=1e-3).fit(X, y)
    assert model.certificate_.stop_reason == "converged"


def test_estimator_keeps_its_best_model_after_ctrl_c():
    def callback(record):
        if record.epoch >= 8:
            raise KeyboardInterrupt

    X, y = labelled(["no", "yes"])
    model = zg.LinearClassifier(
        "logistic", lam=LAM, tol=0.0, solver="sdca", device="cuda", callback=callback
    )
    with pytest.raises(KeyboardInterrupt, match="the best certified model so far is kept"):
        model.fit(X, y)
    assert model.certificate_.stop_reason == "interrupted"
    assert 0 < model.certificate_.gap < 0.1
    assert model.coef_.shape == (1, 3)

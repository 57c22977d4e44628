"""Certified labels and intervals are those of the exact optimum."""

import math

import numpy as np
import pytest

import zerogap as zg
from proofs import prove_intervals, prove_labels
from zerogap.estimators import classifier, regressor
from zerogap.regions.certified_predictions import score_bounds


@pytest.mark.parametrize("start", range(0, 160, 40))
def test_no_certified_label_is_wrong(start):
    shares = [prove_labels(seed) for seed in range(start, start + 40)]
    assert np.mean(shares) > 0.3  # something was certified


@pytest.mark.parametrize("start", range(0, 100, 50))
def test_no_optimal_prediction_is_outside_its_interval(start):
    widths = [prove_intervals(seed) for seed in range(start, start + 50)]
    assert np.isfinite(widths).all()


def test_wrong_labels_and_intervals_would_be_found(monkeypatch):
    def settle_all(rows, coef, b, *_):
        scores = rows.product(coef) + b
        return scores.argmax(axis=1) if len(b) > 1 else 1 * (scores[:, 0] > 0)

    monkeypatch.setattr(classifier, "settled_labels", settle_all)
    with pytest.raises(AssertionError):
        [prove_labels(seed) for seed in range(40)]

    def tenth(*given):
        low, high = score_bounds(*given)
        return 0.55 * low + 0.45 * high, 0.45 * low + 0.55 * high

    monkeypatch.setattr(regressor, "score_bounds", tenth)
    with pytest.raises(AssertionError):
        [prove_intervals(seed) for seed in range(50)]


def test_a_radius_too_small_by_half_would_be_found():
    """The proofs above are sharp enough to notice a wrong theorem."""
    X, y = np.array([[1.0], [-1.0]]), np.array([1, 0])
    settings = {"loss": "squared-hinge", "lam": 0.5, "fit_intercept": False, "random_state": 0}
    exact = zg.LinearClassifier(tol=1e-14, **settings).fit(X, y).coef_[0, 0]
    ratios = []
    for epochs in (1, 2, 3):
        with pytest.warns(UserWarning, match="stopped"):
            rough = zg.LinearClassifier(
                solver=zg.GD(step=0.3), tol=0, max_epochs=epochs, **settings
            ).fit(X, y)
        ratios.append(abs(rough.coef_[0, 0] - exact) / rough._regions()[0].radius)
    assert 0.5 < max(ratios) <= 1.0


@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax", "multiclass-hinge"])
def test_smaller_gaps_certify_more(loss):
    X, y, _ = zg.datasets.make_simulated(n_samples=300, random_state=0)
    shares = [
        zg.LinearClassifier(loss=loss, tol=tol, random_state=0).fit(X, y).certified_fraction(X)
        for tol in (1e-2, 1e-4, 1e-8)
    ]
    assert shares[0] <= shares[1] <= shares[2]
    assert shares[2] > 0.99


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_stop_when_labels_are_settled(loss):
    X, y, _ = zg.datasets.make_simulated(n_samples=300, random_state=0)
    clf = zg.LinearClassifier(loss=loss, stop="labels", settled=0.95, random_state=0)
    clf.fit(X[:200], y[:200], X_val=X[200:])
    assert clf.certificate_.stop_reason == "labels settled"
    assert clf.certified_fraction(X[200:]) >= 0.95
    exact = zg.LinearClassifier(loss=loss, tol=1e-10, max_epochs=10_000, random_state=0)
    exact.fit(X[:200], y[:200])
    labels, certified = clf.predict_certified(X[200:])
    np.testing.assert_array_equal(labels[certified], exact.predict(X[200:])[certified])


def test_bad_requests_are_refused():
    X, y, _ = zg.datasets.make_simulated(n_samples=60, random_state=0)
    three = np.arange(60) % 3
    with pytest.raises(ValueError, match="go together"):
        zg.LinearClassifier(stop="labels").fit(X, y)
    with pytest.raises(ValueError, match="go together"):
        zg.LinearClassifier().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="one model for all classes"):
        zg.LinearClassifier(stop="labels").fit(X, three, X_val=X)
    with pytest.raises(ValueError, match="settled must be"):
        zg.LinearClassifier(stop="labels", settled=1.5).fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="stop must be"):
        zg.LinearClassifier(stop="soon").fit(X, y)
    with pytest.raises(ValueError, match="features"):
        zg.LinearClassifier(stop="labels").fit(X, y, X_val=X[:, :3])


def test_a_model_that_diverged_certifies_nothing():
    X, y, _ = zg.datasets.make_simulated(n_samples=60, random_state=0)
    with pytest.warns(UserWarning, match="stopped"):
        clf = zg.LinearClassifier(
            "squared-hinge", solver=zg.GD(step=59.0), tol=1e-9, max_epochs=2, random_state=0
        ).fit(1e3 * X, y)
    assert not math.isnan(clf.certified_fraction(X))


@pytest.mark.parametrize(
    ("loss", "classes"), [("hinge", 2), ("hinge", 3), ("softmax", 2), ("softmax", 3)]
)
def test_a_saved_model_certifies_the_same(loss, classes, tmp_path):
    X, _, _ = zg.datasets.make_simulated(n_samples=120, random_state=0)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [0.0] if classes == 2 else [-0.5, 0.5])
    clf = zg.LinearClassifier(loss, lam=0.01, tol=1e-6, random_state=0).fit(X, y)
    zg.save(clf, tmp_path / "model.zg", keep_dual=False)
    certified = clf.predict_certified(X)[1]
    assert certified.mean() > 0.5
    with pytest.warns(UserWarning, match="the word of a model file"):
        loaded = zg.load(tmp_path / "model.zg").predict_certified(X)[1]
    np.testing.assert_array_equal(loaded, certified)

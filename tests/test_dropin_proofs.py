"""Certificates of scikit-learn's names are those of the coefficients that are kept."""

import numpy as np
import pytest

from proofs_extreme_ways import hold, lowest, parts_of, sharpest
from zerogap import linear_model, svm

SHARP = {"tol": 1e-12, "alpha": 0.01}
MODELS = [  # and how many classes they separate
    (linear_model.Ridge(alpha=0.1), 0),
    (linear_model.ElasticNet(**SHARP), 0),
    (linear_model.SGDRegressor(**SHARP), 0),
    (linear_model.RidgeClassifier(alpha=0.1), 3),
    (linear_model.LogisticRegression(tol=1e-9), 2),
    (linear_model.LogisticRegression(tol=1e-9), 3),
    (linear_model.LogisticRegression(tol=1e-9, solver="liblinear", intercept_scaling=3.7), 2),
    (linear_model.SGDClassifier(**SHARP), 3),
    (svm.LinearSVC(tol=1e-12, intercept_scaling=1e-3, loss="hinge"), 2),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("model", "classes"), MODELS, ids=repr)
def test_certificates_are_those_of_rounded_coefficients(model, classes, kind):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((24, 3)) * [1.0, 30.0, 1e3] + [0.0, 1e3, 1e6]).astype(kind)
    y = X.astype(float) @ [1.0, 0.1, -1e-3] + 0.3 * rng.standard_normal(24)
    y = np.argsort(np.argsort(y)) * classes // len(y) if classes else y
    model.fit(X, y)
    for data, w, b, certificate in parts_of(model, X, y, None):
        if data[0].shape[1] < len(np.atleast_2d(w)[0]):  # the intercept is the weight of a column
            constant = np.full((len(X), 1), model.intercept_scaling)
            data = (np.hstack([X, constant]), *data[1:])
        hold(data, w, b, certificate, lowest(data, sharpest(data)), (model, classes, kind))

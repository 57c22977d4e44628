"""Typical uses of scikit-learn's linear models: another import changes nothing but warnings."""

import io
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import zerogap.linear_model
import zerogap.svm

TIGHT = {"tol": 1e-10, "max_iter": 100_000}
CANCER = load_breast_cancer(return_X_y=True)
WINE = load_wine(return_X_y=True)
ARTICLES = ["the", "a", "this", "that", "one"]
THINGS = ["model", "gap", "proof", "bound", "kernel", "loss", "weight", "row"]
VERBS = ["bounds", "fits", "proves", "shrinks", "learns", "stops"]


def grid_search(lm, svm):
    X, y = scale(WINE[0]), WINE[1]
    search = GridSearchCV(lm.LogisticRegression(**TIGHT), {"C": [0.01, 0.1, 1.0]}, cv=3)
    search.fit(X, y)
    return search.cv_results_["mean_test_score"], search.best_params_["C"], search.predict_proba(X)


def pipeline(lm, svm):
    """Rows as they are in the file, scaled inside."""
    model = make_pipeline(StandardScaler(), svm.LinearSVC(C=0.1, **TIGHT)).fit(*CANCER)
    return model.decision_function(CANCER[0]), model.score(*CANCER)


def calibrated(lm, svm):
    X, y = scale(CANCER[0]), CANCER[1]
    model = CalibratedClassifierCV(svm.LinearSVC(C=0.1, **TIGHT), cv=3).fit(X, y)
    return model.predict_proba(X)


def one_versus_rest(lm, svm):
    X, y = load_iris(return_X_y=True)
    model = OneVsRestClassifier(lm.LogisticRegression(C=10.0, **TIGHT)).fit(X, y)
    return model.decision_function(X)


def text(lm, svm):
    rng = np.random.default_rng(0)
    documents = [
        " ".join(w for _ in range(4) for w in (rng.choice(ARTICLES), rng.choice(THINGS), verb))
        for verb in rng.choice(VERBS, 200)
    ]
    topics = np.array(["gap" in d or "proof" in d for d in documents])
    model = make_pipeline(TfidfVectorizer(), lm.LogisticRegression(C=5.0, **TIGHT))
    model.fit(documents, topics)
    return model.predict_proba(documents), model[-1].coef_


def sample_weights(lm, svm):
    X, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    ridge = lm.Ridge(alpha=0.5).fit(X, y, sample_weight=weights)
    net = lm.ElasticNet(alpha=0.01, tol=1e-12, max_iter=10**5).fit(X, y, sample_weight=weights)
    return ridge.predict(X), ridge.score(X, y, weights), net.predict(X)


def many_classes(lm, svm):
    X, y = scale(WINE[0]), np.array(["red", "rose", "white"])[WINE[1]]
    model = lm.LogisticRegression(class_weight={"red": 3.0, "white": 0.5}, **TIGHT).fit(X, y)
    votes = svm.LinearSVC(C=0.1, class_weight="balanced", **TIGHT).fit(X, y)
    assert model.predict(X)[0] in ("red", "rose", "white")
    return model.predict_proba(X), votes.decision_function(X)


def sparse_rows(lm, svm):
    X = sparse.random_array((300, 80), density=0.1, rng=np.random.default_rng(0), format="csr")
    y = X @ np.arange(80.0) / 80 + np.sin(np.arange(300))
    ridge = lm.Ridge(alpha=0.3, solver="sparse_cg", tol=1e-12).fit(X, y)
    tube = svm.LinearSVR(C=0.5, epsilon=0.1, **TIGHT).fit(X, y)
    votes = svm.LinearSVC(C=0.5, **TIGHT).fit(X, y > np.median(y))
    return ridge.predict(X), tube.predict(X), votes.decision_function(X)


def data_frames(lm, svm):
    """Raw columns of a table, by name; some are scaled, none is renamed."""
    table, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    columns = make_column_transformer((StandardScaler(), ["bp", "s1"]), remainder="passthrough")
    model = make_pipeline(columns.set_output(transform="pandas"), lm.Ridge(alpha=2.0))
    model.fit(table, y)
    plain = lm.RidgeCV().fit(table, y)
    assert list(plain.feature_names_in_) == list(table.columns)
    assert isinstance(pd.Series(model.predict(table), table.index), pd.Series)
    return model.predict(table), plain.predict(table), plain.alpha_


def with_joblib(lm, svm):
    X, y = load_diabetes(return_X_y=True)
    file = io.BytesIO()
    joblib.dump(svm.LinearSVR(C=2.0, **TIGHT).fit(X, y), file)
    file.seek(0)
    model = lm.ElasticNet(alpha=0.01, tol=1e-12, max_iter=10**5)
    scores = cross_val_score(model, X, y, cv=4, n_jobs=2)
    return joblib.load(file).predict(X), scores


USES = [
    grid_search,
    pipeline,
    calibrated,
    one_versus_rest,
    text,
    sample_weights,
    many_classes,
    sparse_rows,
    data_frames,
    with_joblib,
]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_another_import_changes_nothing_but_warnings(use):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = use(linear_model, svm)
        ours = use(zerogap.linear_model, zerogap.svm)
    for found, wanted in zip(ours, theirs, strict=True):
        size = np.abs(np.asarray(wanted, dtype=float)).max()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * size)

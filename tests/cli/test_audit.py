"""`zerogap audit`: models of others, in files that are safe to read."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso, Ridge

import zerogap as zg

LAM = 3.0 / 442


@pytest.fixture
def table(tmp_path):
    """Raw columns, and coefficients that another program has found for them, in another order."""
    features, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    data, path = tmp_path / "data.csv", tmp_path / "coefficients.csv"
    features.assign(target=y).to_csv(data, index=False)
    model = Ridge(alpha=3.0).fit(features, y)
    names = ["(Intercept)", *features.columns]
    pd.Series(np.r_[model.intercept_, model.coef_], names)[::-1].to_csv(path, header=["s0"])
    return data, path


def test_a_table_of_coefficients(zerogap, table):
    data, path = table
    right = ["--loss", "squared", "--lam", LAM, "--tol", 1e-9]
    outcome = zerogap("audit", path, data, *right)
    assert outcome.exit_code == 0
    assert "above it by" in outcome.stdout
    report = json.loads(zerogap("audit", path, data, *right, "--json").stdout)
    assert report["near"] is True
    assert report["kind"] == "table"
    wrong = zerogap("audit", path, data, "--loss", "squared", "--lam", 0.1, "--tol", 1e-6)
    assert wrong.exit_code == 3
    assert "is not near its optimum" in wrong.stderr


@pytest.mark.parametrize("first", ["", ",0\n", '"",0\n', "\t1\n", "name,weight\n", '"","s0"\n'])
def test_the_heading_of_a_table_of_coefficients_is_no_coefficient(tmp_path, first):
    """That of a Series of pandas is a number, below no name."""
    path = tmp_path / "coefficients.csv"
    parts = "\t" if "\t" in first else ","
    path.write_text(first + f"(Intercept){parts}5.5\nage{parts}0.25\n0{parts}-1\n")
    model = zg.audit.read_coefficients(path)
    assert model.names == ["age", "0"]
    assert model.coef_.tolist() == [[0.25, -1.0]]
    assert float(np.ravel(model.intercept_)[0]) == 5.5


def test_a_lasso_on_the_command_line(zerogap, table):
    data, path = table
    frame = pd.read_csv(data)
    model = Lasso(alpha=0.5, tol=1e-12, max_iter=10**6).fit(frame.iloc[:, :-1], frame["target"])
    names = ["(Intercept)", *frame.columns[:-1]]
    pd.Series(np.r_[model.intercept_, model.coef_], names).to_csv(path)
    right = ["--loss", "squared", "--l1-ratio", 1, "--tol", 1e-8]
    assert zerogap("audit", path, data, *right, "--lam", 0.5).exit_code == 0
    assert zerogap("audit", path, data, *right, "--lam", 0.4).exit_code == 3


def test_files_of_liblinear_and_of_ours(zerogap, tmp_path):
    X, y = np.array([[1.0], [2.0]]), np.array([-1, 1])
    data, path = tmp_path / "data.npz", tmp_path / "its.model"
    np.savez(data, X=X, y=y)
    path.write_text(
        "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 1\nbias -1\nw\n0.5 \n"
    )
    report = json.loads(zerogap("audit", path, data, "--C", 1.0, "--json").stdout)
    assert report["kind"] == "liblinear"
    assert report["primal"] == zg.Problem(X, y, "hinge", 0.5).primal([0.5])
    own = tmp_path / "own.zg"
    zg.save(zg.LinearClassifier("hinge", tol=1e-9).fit(X, y), own)
    report = json.loads(zerogap("audit", own, data, "--json").stdout)
    assert report["kind"] == "zerogap"
    assert report["relative_gap"] <= 1e-9


def test_glmnet_scales_columns_and_targets(zerogap, table):
    """Its optimum, from its own objective: columns and y divided by their deviations."""
    data, path = table
    frame = pd.read_csv(data)
    X, y = frame.iloc[:, :-1].to_numpy(), frame["target"].to_numpy()
    lam, deviations = 2.0, X.std(axis=0)
    l2 = lam / y.std()
    Z = (X - X.mean(axis=0)) / deviations
    v = np.linalg.solve(Z.T @ Z / len(y) + l2 * np.eye(10), Z.T @ (y - y.mean()) / len(y))
    w = v / deviations
    names = ["(Intercept)", *frame.columns[:-1]]
    pd.Series(np.r_[y.mean() - X.mean(axis=0) @ w, w], names).to_csv(path, header=["s0"])
    outcome = zerogap("audit", path, data, "--kind", "glmnet", "--lam", lam, "--tol", 1e-9)
    assert outcome.exit_code == 0


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (pickle.dumps([1]), (), "is or holds a pickle, which can run any code"),
        (b"PK\x03\x04", (), "is or holds a pickle"),
        (b"age,1.0\n", (), "does not say what it minimises: give --loss and --lam"),
        (b"age,x\nsex,y\n", ("--loss", "squared", "--lam", 1), "line 2 has no number"),
        (b"a,b\n", ("--loss", "squared", "--lam", 1), "has no coefficients"),
        (b"age,inf\n", ("--loss", "squared", "--lam", 1), "which is no weight"),
        (b"age,1\n", ("--loss", "squared", "--lam", 1), "use the same names"),
        (b"\xff\xfe", ("--loss", "squared", "--lam", 1), "is no table of coefficients"),
        (
            b"solver_type ONECLASS_SVM\nnr_feature 1\nbias 1\nw\n1\n1\n",
            (),
            "type ONECLASS_SVM cannot",
        ),
    ],
    ids=["pickle", "archive", "objective", "words", "empty", "infinite", "names", "bytes", "type"],
)
def test_what_is_refused(zerogap, table, tmp_path, content, options, message):
    path = tmp_path / "model"
    path.write_bytes(content)
    outcome = zerogap("audit", path, table[0], *options)
    assert outcome.exit_code == 1
    assert message in outcome.stderr


def test_the_class_of_scores_above_zero_is_said_and_chosen(zerogap, tmp_path):
    data, path = tmp_path / "data.csv", tmp_path / "coefficients.csv"
    x = np.array([-2.0, -1.0, 0.5, 1.0, 3.0, -0.2])
    benign = np.array([0, 1, 0, 1, 1, 0])
    pd.DataFrame({"x": x, "kind": np.where(benign, "benign", "malignant")}).to_csv(
        data, index=False
    )
    model = zg.LinearClassifier("logistic", lam=0.1, tol=1e-10).fit(x[:, None], benign)
    path.write_text(f"x,{model.coef_[0, 0]:.17g}\n(Intercept),{model.intercept_[0]:.17g}\n")
    options = ["--target", "kind", "--loss", "logistic", "--lam", 0.1, "--json"]
    other = json.loads(zerogap("audit", path, data, *options).stdout)
    assert other["positive"] == "malignant"
    assert other["relative_gap"] > 0.1
    report = json.loads(zerogap("audit", path, data, *options, "--positive", "benign").stdout)
    assert report["positive"] == "benign"
    assert report["relative_gap"] <= 1e-9
    outcome = zerogap("audit", path, data, *options, "--positive", "neither")
    assert "not one of two classes: the data have benign, malignant" in outcome.stderr

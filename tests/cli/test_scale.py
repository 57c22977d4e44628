"""`--scale`: the same option in every command that trains, on dense and on sparse data."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

import zerogap as zg
from zerogap.model_io import load, read, save
from zerogap.readers import Encoder
from zerogap.readers import read as read_data
from zerogap.sweeps import path_cv, sweep
from zerogap.transforms import ColumnScaler

COMMANDS = ("train", "path", "sweep", "compare", "forget")


@pytest.fixture
def files(tmp_path):
    """Rows of a clock, a large and two small columns and 24 categories, sparse and dense."""
    rng = np.random.default_rng(0)
    n = 240
    numbers = rng.standard_normal((n, 4)) * [1.0, 1e4, 1.0, 1e-2] + [1.7e9, 0.0, 0.0, 0.0]
    X = np.column_stack([numbers, np.eye(24)[rng.integers(0, 24, n)]])
    score = (X - X.mean(axis=0)) @ np.r_[1.0, -1e-4, 1.0, 50.0, rng.standard_normal(24)]
    y = np.where(score + rng.standard_normal(n) > 0, 1, -1)
    S = sparse.csr_matrix(X)
    paths = {"sparse": tmp_path / "sparse.svm", "dense": tmp_path / "dense.npz"}
    lines = []
    for label, row in zip(y, S, strict=True):
        entries = zip(row.indices + 1, row.data.tolist(), strict=True)
        lines.append(" ".join([str(label), *(f"{j}:{value!r}" for j, value in entries)]))
    paths["sparse"].write_text("\n".join(lines) + "\n")
    np.savez(paths["dense"], X=X, y=y)
    return paths


def test_r9_every_command_that_trains_can_scale(zerogap):
    """R9: path and compare advised to scale the features, and had no option for it."""
    for command in COMMANDS:
        outcome = zerogap(command, "--help")
        assert "--scale" in outcome.stdout
        assert "none|standard|max-abs" in outcome.stdout
    texts = [" ".join(zerogap(c, "--help").stdout.split()) for c in COMMANDS[:-1]]
    assert all("standard to standard deviation 1" in text for text in texts)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_r9_train_scales_sparse_data(kind, files, zerogap, tmp_path):
    """R9: sparse data were refused; now they have the optimum of the dense ones."""
    model = tmp_path / "model.zg"
    line = ("--loss", "logistic", "--lam", 0.01, "--tol", 1e-11, "--scale", "standard")
    outcome = zerogap("train", files[kind], *line, "--out", model, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    found, data = json.loads(outcome.stdout), read_data(files["dense"])
    X = StandardScaler().fit_transform(data.X)
    exact = zg.LinearClassifier("logistic", lam=0.01, tol=1e-11, random_state=0).fit(X, data.y)
    assert found["certificate"]["primal"] == pytest.approx(exact.certificate_.primal, rel=1e-9)
    assert load(model).coef_ == pytest.approx(exact.coef_, abs=1e-4)
    assert zerogap("certify", model, files[kind]).exit_code == 0
    for other in files.values():  # either form, whatever the training had
        outcome = zerogap("predict", model, other, "--scores")
        scores = np.array(outcome.stdout.split(), dtype=float)
        assert scores == pytest.approx(exact.decision_function(X), abs=1e-3)


def test_without_an_intercept_sparse_data_are_refused_and_dense_ones_centred(files, zerogap):
    line = ("--scale", "standard", "--no-intercept")
    for command in ("train", "path", "sweep", "compare"):
        outcome = zerogap(command, files["sparse"], *line)
        assert outcome.exit_code == 1
        assert "--scale max-abs" in outcome.stderr
    outcome = zerogap("train", files["dense"], *line, "--loss", "squared", "--tol", 1e-9, "--json")
    data = read_data(files["dense"])
    X = StandardScaler().fit_transform(data.X)
    exact = zg.LinearRegressor(fit_intercept=False, tol=1e-9, random_state=0).fit(X, data.y)
    primal = json.loads(outcome.stdout)["certificate"]["primal"]
    assert primal == pytest.approx(exact.certificate_.primal, rel=1e-8)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_path_scales_each_fold_by_its_own_training_rows(kind, files, zerogap):
    line = ("--lam-min", 0.1, "--lam-max", 1, "--tol", 0.01, "--folds", 2, "--loss", "logistic")
    outcome = zerogap("path", files[kind], *line, "--scale", "standard", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    data = read_data(files[kind])
    curve = path_cv(
        data.X,
        data.y,
        0.1,
        1.0,
        loss="logistic",
        transform=ColumnScaler(),
        tol=0.01,
        folds=2,
        random_state=0,
    )
    assert json.loads(outcome.stdout)["steps"] == [step._asdict() for step in curve.steps]


def test_sweep_scales_each_fold_by_its_own_training_rows(files, zerogap):
    line = ("--lam", "0.01,0.1", "--folds", 3, "--loss", "logistic", "--tol", 1e-10, "--json")
    data = read_data(files["dense"])
    expected = sweep(
        data.X,
        data.y,
        {"lam": [0.01, 0.1]},
        loss="logistic",
        transform=StandardScaler(),
        folds=3,
        tol=1e-10,
        random_state=0,
    )
    for path in files.values():
        outcome = zerogap("sweep", path, *line, "--scale", "standard")
        assert outcome.exit_code == 0, outcome.stderr
        errors = [cell["error"] for cell in json.loads(outcome.stdout)["cells"]]
        assert errors == pytest.approx([cell.error for cell in expected.cells], abs=1e-12)


def test_compare_scales_training_and_test_rows_alike(files, zerogap, tmp_path):
    pytest.importorskip("plotly")
    pytest.importorskip("matplotlib")
    line = ("--solvers", "sdca", "--repeats", 1, "--epochs", 1000, "--loss", "logistic", "--json")
    found = []
    for kind, other in (("sparse", "dense"), ("dense", "sparse")):
        more = ("--scale", "standard", "--test", files[other], "--out", tmp_path / kind)
        outcome = zerogap("compare", files[kind], *line, *more)
        assert outcome.exit_code == 0, outcome.stderr
        found.append(json.loads(outcome.stdout))
    assert found[0]["optimum"] == pytest.approx(found[1]["optimum"], rel=1e-4)
    errors = [report["solvers"][0]["test_error"] for report in found]
    assert errors[0] == pytest.approx(errors[1], abs=0.01)
    assert errors[0] < 0.3


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_forget_keeps_the_scaling_of_the_model(kind, files, zerogap, tmp_path):
    model, out, rows = (tmp_path / name for name in ("model.zg", "out.zg", "rows"))
    rows.write_text("3\n5\n")
    zerogap("train", files[kind], "--scale", "standard", "--out", model)
    line = ("forget", model, "--rows", rows, "--data", files[kind], "--out", out, "--force")
    for more in ((), ("--scale", "standard")):
        outcome = zerogap(*line, *more)
        assert outcome.exit_code == 0, outcome.stderr
        assert read(out).encoder.to_json() == read(model).encoder.to_json()
    for other in ("none", "max-abs"):
        outcome = zerogap(*line, "--scale", other)
        assert outcome.exit_code == 1
        assert "was trained with --scale standard" in outcome.stderr
    save(load(model), model, keep_dual=True)  # as Python saves it, without an encoder
    assert "--scale none" in zerogap(*line, "--scale", "standard").stderr


@pytest.mark.parametrize(
    "line",
    [
        ("train", "--max-epochs", 1, "--tol", 1e-12, "--solver", "sdca"),
        ("path", "--max-epochs", 1, "--lam-max", 1, "--tol", 1e-6, "--solver", "sdca"),
        ("sweep", "--max-epochs", 1, "--lam", 1e-3, "--tol", 1e-12, "--solver", "sdca"),
        ("compare", "--epochs", 1, "--tol", 1e-12, "--repeats", 1, "--solvers", "sdca"),
    ],
    ids=lambda line: line[0],
)
def test_r9_advice_to_scale_names_the_option(line, files, zerogap, tmp_path, monkeypatch):
    """R9: the advice can be followed; it is not given to those who have followed it."""
    monkeypatch.chdir(tmp_path)
    command, *options = line
    outcome = zerogap(command, files["dense"], *options)
    assert outcome.exit_code == 3
    assert outcome.stderr.rstrip().endswith(", or --scale standard")
    outcome = zerogap(command, files["dense"], *options, "--scale", "standard")
    assert outcome.exit_code == 3
    assert "--scale" not in outcome.stderr


@pytest.mark.parametrize("command", ["train", "path", "sweep", "compare"])
def test_r9_rows_that_overflow_are_scaled(command, zerogap, tmp_path, monkeypatch):
    """R9: where squares overflow, the message names the option that helps."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    np.savez("large.npz", X=X * [1.0, 1e200], y=np.where(X[:, 1] > 0, 1, -1))
    outcome = zerogap(command, "large.npz")
    assert outcome.exit_code == 1
    assert "|x|^2 overflows" in outcome.stderr
    assert outcome.stderr.rstrip().endswith("(--scale standard)")
    if command == "train":
        assert zerogap(command, "large.npz", "--scale", "standard").exit_code == 0


def test_model_files_of_dense_scaling_predict_as_ever(files, zerogap, tmp_path):
    """A file with a shift and a scale for each feature, as earlier versions wrote them."""
    data, path = read_data(files["dense"]), tmp_path / "old.zg"
    shift, scale = data.X.mean(axis=0), 1.0 / data.X.std(axis=0)
    clf = zg.LinearClassifier("logistic", random_state=0).fit((data.X - shift) * scale, data.y)
    save(clf, path, encoder=Encoder(28, shift=shift, scale=scale))
    outcome = zerogap("predict", path, files["dense"], "--scores")
    scores = list(map(float, outcome.stdout.split()))
    assert scores == clf.decision_function((data.X - shift) * scale).tolist()
    assert zerogap("certify", path, files["dense"]).exit_code == 0

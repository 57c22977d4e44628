"""From a file to a model file, to predictions and a certificate, as the library has them."""

import bz2
import gzip
import io
import json
import lzma
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import zerogap as zg
from zerogap.model_io import read as read_model
from zerogap.readers import Encoder, read

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

PACKINGS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def frame(n, seed):
    """Numbers and text, and a label that depends on both."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.standard_normal((n, 3)), columns=["a", "b", "c"])
    table["colour"] = rng.choice(["red", "green", "blue, light"], n)
    score = table.a - 2 * table.b + 3 * (table.colour == "red") + rng.standard_normal(n)
    table["label"] = np.where(score > 1, "yes", "no")
    return table


def matrix(n, seed):
    """Sparse rows, three classes."""
    rng = np.random.default_rng(seed)
    X = sparse.random(n, 30, 0.3, "csr", rng=rng)
    scores = X @ np.random.default_rng(7).standard_normal((30, 3))
    return X, scores.argmax(axis=1) + 1.0


def content(kind, n, seed):
    """The bytes of a file of that kind."""
    buffer = io.BytesIO()
    if kind == "svmlight":
        dump_svmlight_file(*matrix(n, seed), buffer, zero_based=False)
    elif kind == "npz":
        X, y = matrix(n, seed)
        np.savez(buffer, X=X.toarray(), y=y)
    elif kind == "parquet":
        frame(n, seed).to_parquet(buffer)
    else:
        frame(n, seed).to_csv(buffer, index=False, sep="\t" if kind == "tsv" else ",")
    return buffer.getvalue()


def fitted(path, **options):
    """The library's own reading and fit."""
    data = read(path)
    encoder = data.encoder or Encoder(data.X.shape[1])
    return zg.LinearClassifier("logistic", random_state=3, **options).fit(data.X, data.y), encoder


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("kind", ["svmlight", "csv", "tsv", "parquet", "npz"])
def test_files(kind, packing, zerogap, tmp_path):
    paths = [tmp_path / f"{part}.{kind}{packing}" for part in ("train", "test")]
    for path, n, seed in zip(paths, (300, 80), (0, 1), strict=True):
        path.write_bytes(PACKINGS[packing](content(kind, n, seed)))
    train, test = paths
    model = tmp_path / "model.zg"
    options = ("--loss", "logistic", "--tol", 1e-5, "--seed", 3, "--json")
    outcome = zerogap("train", train, "--test", test, "--out", model, *options)
    assert outcome.exit_code == 0, outcome.stderr
    report = json.loads(outcome.stdout)
    clf, encoder = fitted(train, tol=1e-5)
    data = read(test, encoder=encoder)
    assert report["certificate"]["primal"] == clf.certificate_.primal
    assert report["certificate"]["relative_gap"] <= 1e-5
    assert report["test_score"] == clf.score(data.X, data.y)
    assert report["test_score"] > 0.7
    assert np.array_equal(read_model(model).model.coef_, clf.coef_)

    outcome = zerogap("predict", model, test)
    assert outcome.exit_code == 0
    labels = clf.predict(data.X)
    assert outcome.stdout.split() == [str(label).removesuffix(".0") for label in labels]
    assert outcome.stderr == (
        f"zerogap predict: accuracy {100 * report['test_score']:.2f} % on 80 rows\n"
    )
    for option, values in (
        ("--scores", clf.decision_function(data.X)),
        ("--proba", clf.predict_proba(data.X)),
    ):
        lines = zerogap("predict", model, test, option).stdout.splitlines()
        if values.ndim == 2:
            assert lines.pop(0) == ",".join(str(c).removesuffix(".0") for c in clf.classes_)
        printed = np.array([line.split(",") for line in lines], dtype=float)
        assert np.array_equal(printed, values.reshape(len(values), -1))

    outcome = zerogap("certify", model, train)
    assert outcome.exit_code == 0, outcome.stderr
    assert "those of the training" in outcome.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([train.name, test.name, model.name])


@pytest.mark.parametrize("packing", ["", ".gz"])
@pytest.mark.parametrize("kind", ["svmlight", "csv", "tsv", "parquet", "npz"])
def test_standard_input(kind, packing, zerogap, tmp_path):
    text, model = PACKINGS[packing](content(kind, 200, 0)), tmp_path / "model.zg"
    told = ("--format", kind)
    outcome = zerogap(
        "train", "-", *told, "--loss", "logistic", "--seed", 3, "--out", model, input=text
    )
    assert outcome.exit_code == 0, outcome.stderr
    path = tmp_path / f"same.{kind}"
    path.write_bytes(text)
    clf, encoder = fitted(path)
    assert np.array_equal(read_model(model).model.coef_, clf.coef_)
    outcome = zerogap("predict", model, "-", *told, "--scores", "--json", input=text)
    scores = clf.decision_function(read(path, encoder=encoder).X)
    assert json.loads(outcome.stdout)["scores"] == scores.tolist()
    assert zerogap("certify", model, "-", *told, input=text).exit_code == 0


@pytest.mark.parametrize("scale", ["standard", "max-abs"])
def test_scaling_is_part_of_the_model(scale, zerogap, tmp_path):
    table = frame(200, 0)
    table.a = 1000 * table.a + 7
    path, model = tmp_path / "train.csv", tmp_path / "model.zg"
    table.to_csv(path, index=False)
    line = ("--loss", "logistic", "--seed", 3, "--scale", scale)
    assert zerogap("train", path, *line, "--out", model).exit_code == 0
    data = read(path)
    encoder = data.encoder.fit_scaling(data.X, scale)
    X = encoder.scaled(data.X)
    clf = zg.LinearClassifier("logistic", random_state=3).fit(X, data.y)
    outcome = zerogap("predict", model, path, "--scores")
    assert list(map(float, outcome.stdout.split())) == clf.decision_function(X).tolist()
    assert zerogap("certify", model, path).exit_code == 0


@pytest.mark.parametrize("scale", ["none", "standard", "max-abs"])
def test_scaling_of_short_floats(scale, zerogap, tmp_path, monkeypatch):
    X = np.random.default_rng(0).lognormal(size=(200, 5)).astype(np.float32)
    y = np.where(X[:, 0] > X[:, 1], 1, -1)
    names = ("a", "b", "c", "d", "e")
    parts = {"X_test": X[100:], "y_test": y[100:], "groups": None, "feature_names": names}
    data = SimpleNamespace(X=X[:100], y=y[:100], **parts)
    monkeypatch.setattr(zg.datasets, "load", lambda name: data)
    model = tmp_path / "model.zg"
    line = ("train", "mnist", "--scale", scale, "--lam", 1e-4, "--out", model, "--json")
    report = json.loads(zerogap(*line).stdout)
    assert report["test_score"] > 0.8
    assert "those of the training" in zerogap("certify", model, "mnist").stdout
    outcome = zerogap("predict", model, "mnist", "--json")  # of the test part
    assert json.loads(outcome.stdout)["accuracy"] == report["test_score"]
    shown = json.loads(zerogap("show", model, "--json").stdout)["coefficients"]
    assert sorted(c["feature"] for c in shown) == list(names)


def test_targets_need_not_be_there(zerogap, tmp_path):
    table, path, model = frame(100, 0), tmp_path / "train.csv", tmp_path / "model.zg"
    table.to_csv(path, index=False)
    zerogap("train", path, "--out", model)
    with_targets = zerogap("predict", model, path)
    table.drop(columns="label").iloc[:, ::-1].to_csv(path, index=False)
    without = zerogap("predict", model, path)
    assert without.stdout == with_targets.stdout
    assert without.stderr == ""

    text, model = content("svmlight", 100, 0).decode(), tmp_path / "matrix.zg"
    zerogap("train", "-", "--out", model, input=text)
    rows = [line.partition(" ")[2] for line in text.splitlines()]
    bare = zerogap("predict", model, "-", input="\n".join(rows))
    placeholders = zerogap("predict", model, "-", input="\n".join(f"0 {row}" for row in rows))
    assert bare.stdout == placeholders.stdout == zerogap("predict", model, "-", input=text).stdout
    assert bare.stderr == placeholders.stderr == ""


def test_a_target_column_by_name(zerogap, tmp_path):
    table, path, model = frame(100, 0), tmp_path / "train.csv", tmp_path / "model.zg"
    table[["label", "a", "b"]].rename(columns={"label": "answer"}).to_csv(path, index=False)
    assert zerogap("train", path, "--out", model).exit_code == 1
    assert zerogap("train", path, "--target", "answer", "--out", model).exit_code == 0
    assert "accuracy" in zerogap("predict", model, path).stderr


def test_unknown_categories_are_told(zerogap, tmp_path):
    table, path, model = frame(100, 0), tmp_path / "train.csv", tmp_path / "model.zg"
    table.to_csv(path, index=False)
    zerogap("train", path, "--out", model)
    table.loc[3, "colour"] = "violet"
    table.to_csv(path, index=False)
    outcome = zerogap("predict", model, path)
    assert "zerogap predict: " in outcome.stderr
    assert "'colour' has categories not seen in training in 1 of 100 rows" in outcome.stderr


def test_data_sets_by_name(zerogap, tmp_path):
    model = tmp_path / "model.zg"
    report = json.loads(zerogap("train", "simulated", "--out", model, "--json").stdout)
    data = zg.datasets.load("simulated")
    clf = zg.LinearClassifier(random_state=0).fit(data.X, data.y)
    assert report["certificate"]["dual"] == clf.certificate_.dual
    assert zerogap("certify", model, "simulated").exit_code == 0
    assert len(zerogap("predict", model, "simulated").stdout.split()) == len(data.y)

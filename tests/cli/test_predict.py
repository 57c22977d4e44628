"""`zerogap predict` and `zerogap certify`: options, refusals, true and false claims."""

import csv
import dataclasses
import json

import numpy as np
import pytest

import zerogap as zg
from zerogap.model_io import load, save
from zerogap.regions import KnownRegion, Region


@pytest.fixture
def model(zerogap, npz, tmp_path):
    path = tmp_path / "model.zg"
    assert zerogap("train", npz, "--out", path).exit_code == 0
    return path


def test_predictions_go_to_a_file(zerogap, npz, model, tmp_path):
    out = tmp_path / "predictions.txt"
    outcome = zerogap("predict", model, npz, "--out", out)
    assert (outcome.exit_code, outcome.stdout) == (0, "")
    assert out.read_text() == zerogap("predict", model, npz).stdout
    zerogap("predict", model, npz, "--json", "--out", out)
    report = json.loads(out.read_text())
    assert set(report) == {"predictions", "classes", "accuracy"}
    assert report["classes"] == ["no", "yes"]
    assert set(report["predictions"]) == {"no", "yes"}


def test_classes_with_commas_are_quoted(zerogap, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.choice(["a, b", 'say "c"', "d"], 60)
    data, model = tmp_path / "data.npz", tmp_path / "model.zg"
    np.savez(data, X=X, y=y)
    clf = zg.LinearClassifier("softmax", random_state=0).fit(X, y)
    save(clf, model)
    rows = list(csv.reader(zerogap("predict", model, data, "--proba").stdout.splitlines()))
    assert rows[0] == clf.classes_.tolist()
    assert np.array_equal(np.array(rows[1:], dtype=float), clf.predict_proba(X))


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("predict MODEL DATA --proba --scores", 2, "give one of --proba, --scores and --cert"),
        ("predict MODEL DATA --proba", 1, "hinge loss has no probabilities: use --scores, or "),
        ("predict MODEL NUMBERS", 1, "has 3 features, the model has 4"),
        ("predict DATA DATA", 1, "data.npz is not a readable model"),
        ("predict nothing DATA", 1, "nothing: No such file or directory"),
        ("predict MODEL nothing", 1, "nothing: neither a file nor a data set"),
        ("predict MODEL DATA --out MODEL", 1, "is what is read, choose another name"),
        ("certify MODEL NUMBERS", 1, "has 3 features, the model has 4"),
        ("certify DATA DATA", 1, "data.npz is not a readable model"),
        ("certify MODEL nothing", 1, "nothing: neither a file nor a data set"),
    ],
)
def test_refusals_are_one_line(line, code, text, zerogap, npz, numbers, model):
    places = {"MODEL": model, "DATA": npz, "NUMBERS": numbers}
    before = model.read_bytes()
    outcome = zerogap(*(places.get(word, word) for word in line.split()))
    assert (outcome.exit_code, outcome.stdout) == (code, "")
    assert outcome.stderr.startswith(f"zerogap {line.split()[0]}: ")
    assert outcome.stderr.count("\n") == 1
    assert text in outcome.stderr
    assert model.read_bytes() == before


@pytest.mark.parametrize("option", ["--proba", "--scores"])
def test_numbers_have_no_classes(option, zerogap, numbers, tmp_path):
    model = tmp_path / "model.zg"
    zerogap("train", numbers, "--loss", "squared", "--out", model)
    outcome = zerogap("predict", model, numbers, option)
    assert outcome.exit_code == 1
    assert "leave --proba and --scores out" in outcome.stderr


def test_a_true_certificate(zerogap, npz, model):
    outcome = zerogap("certify", model, npz)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert outcome.stdout.splitlines()[-1].split() == ["certificate", "true"]
    report = json.loads(zerogap("certify", model, npz, "--json").stdout)
    assert report["true"]
    assert report["same_data"]
    assert report["found"]["primal"] == pytest.approx(report["stored"]["primal"], rel=1e-12)
    assert report["found"]["gap"] <= report["stored"]["gap"] * (1 + 1e-6)


def test_a_false_certificate(zerogap, npz, model, tmp_path):
    zerogap("train", npz, "--tol", 1e-9, "--max-epochs", 1, "--out", model)
    clf = load(model)
    stored = clf.certificate_
    clf.certificate_ = dataclasses.replace(stored, gap=1e-9, dual=stored.primal - 1e-9)
    save(clf, model)
    outcome = zerogap("certify", model, npz, "--json")
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith("zerogap certify: the certificate is false: ")
    report = json.loads(outcome.stdout)
    assert (report["true"], report["claim"], report["same_data"]) == (False, "false", True)


def test_other_data_prove_nothing(zerogap, npz, model, tmp_path):
    with np.load(npz) as file:
        X, y = file["X"], file["y"]
    other = tmp_path / "other.npz"
    np.savez(other, X=X, y=y[::-1])
    outcome = zerogap("certify", model, other)
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith("zerogap certify: these are not the data of the fit: ")


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_certified_labels(loss, zerogap, npz, tmp_path):
    model = tmp_path / "model.zg"
    zerogap("train", npz, "--loss", loss, "--tol", "1e-7", "--out", model)
    done = zerogap("predict", model, npz, "--certified")
    rows = list(csv.reader(done.stdout.splitlines()))
    assert rows[0] == ["prediction", "certified"]
    with np.load(npz) as data:
        X = data["X"]
    with pytest.warns(UserWarning, match="the word of a model file"):
        labels, certified = load(model).predict_certified(X)
    assert [row[0] for row in rows[1:]] == labels.tolist()
    assert [row[1] for row in rows[1:]] == [str(sure) for sure in certified]
    assert certified.mean() > 0.9
    assert "% of the labels are proved to be the exact optimum's" in done.stderr
    report = json.loads(zerogap("predict", model, npz, "--certified", "--json").stdout)
    assert report["certified"] == certified.tolist()


def test_P4_certified_is_the_word_of_the_file(zerogap, npz, numbers, tmp_path):
    for data, loss in ((npz, "hinge"), (numbers, "squared")):
        model = tmp_path / f"{loss}.zg"
        zerogap("train", data, "--loss", loss, "--out", model)
        done = zerogap("predict", model, data, "--certified")
        told = f"zerogap predict: by the word of {model}: zerogap certify {model} DATA checks it"
        assert done.stderr.splitlines()[-1] == told
        report = json.loads(zerogap("predict", model, data, "--certified", "--json").stdout)
        assert report["word_of"] == str(model)
        assert "word" not in zerogap("predict", model, data).stderr


def test_P4_a_forged_region_is_found_false(zerogap, npz, tmp_path):
    model = tmp_path / "model.zg"
    zerogap("train", npz, "--tol", 1e-2, "--out", model)
    assert "proved to be where the file says" in zerogap("certify", model, npz).stdout
    clf = load(model)
    region = clf._region_sources[0].region
    clf._region_sources = [KnownRegion(Region(0.0, region.low, region.high), proved=False)]
    save(clf, model)
    outcome = zerogap("certify", model, npz, "--json")
    assert outcome.exit_code == 1
    assert "but the optimum is not where the file says" in outcome.stderr
    assert json.loads(outcome.stdout)["region"] == "false"


def test_certified_numbers(zerogap, numbers, tmp_path):
    model = tmp_path / "model.zg"
    zerogap("train", numbers, "--loss", "squared", "--tol", "1e-8", "--out", model)
    rows = list(csv.reader(zerogap("predict", model, numbers, "--certified").stdout.splitlines()))
    assert rows[0] == ["prediction", "low", "high"]
    values = np.array(rows[1:], dtype=float)
    assert np.all(values[:, 1] <= values[:, 0])
    assert np.all(values[:, 0] <= values[:, 2])
    assert np.all(values[:, 2] - values[:, 1] < 0.1)

"""`zerogap train`, `predict` and `certify` on a store: the round trip, and refusals."""

import json
import re

import numpy as np
import pytest

from zerogap.model_io import load, save
from zerogap.store import write_store

REFUSED = {  # what comes after train: exit code, what the message says
    "STORE --max-memory 1MB": (1, "max_memory=1 MB is not enough for "),
    "STORE --max-memory much": (1, "max_memory must be a number of bytes or text like '2GB'"),
    "FILE --max-memory 1GB": (1, "--max-memory is for stores"),
    "STORE --scale standard": (1, "--scale is for files"),
    "STORE --target y": (1, "--target is for files"),
    "STORE --format csv": (1, "--format is for files"),
    "STORE --loss squared": (1, "holds classes as targets"),
    "STORE --max-memory 4GB --solver newton": (1, "cannot read its rows from a store"),
    "STORE --test NUMBERS": (1, "has 3 features"),
    "FOLDER": (1, "Is a directory"),
}


@pytest.fixture
def places(npz, numbers, tmp_path):
    """The file of `npz`, a store of its rows, another file, and a folder of neither."""
    with np.load(npz) as file:
        store = write_store(tmp_path / "store", [(file["X"], file["y"])]).path
    return {"STORE": store, "FILE": npz, "NUMBERS": numbers, "FOLDER": tmp_path}


@pytest.mark.parametrize("line", REFUSED)
def test_refusals_are_one_line(line, zerogap, places):
    words = [re.sub("[A-Z]{4,}", lambda m: str(places[m[0]]), word) for word in line.split()]
    outcome = zerogap("train", *words)
    code, text = REFUSED[line]
    assert (outcome.exit_code, outcome.stdout) == (code, "")
    assert outcome.stderr.startswith("zerogap train: ")
    assert outcome.stderr.count("\n") == 1
    assert text in outcome.stderr


@pytest.mark.parametrize("memory", [(), ("--max-memory", "4GB")], ids=["loaded", "streamed"])
def test_round_trip(memory, zerogap, places, tmp_path):
    store, model = places["STORE"], tmp_path / "model.zg"
    line = ("train", store, "--tol", "1e-4", "--out", model, "--test", places["FILE"], *memory)
    report = json.loads(zerogap(*line, "--json").stdout)
    assert report["rows"] == 200
    assert report["classes"] == 2
    assert report["lam"] == 1 / 200
    assert ("BlockSDCA" in report["certificate"]["solver"]) == bool(memory)
    assert report["train_score"] == report["test_score"] > 0.8
    outcome = zerogap("certify", model, store, *memory)
    assert outcome.exit_code == 0
    assert "those of the training" in outcome.stdout
    outcome = zerogap("predict", model, store)
    assert outcome.stdout.split()[0] in ("no", "yes")
    assert len(outcome.stdout.split()) == 200
    assert f"accuracy {100 * report['train_score']:.2f} % on 200 rows" in outcome.stderr


def test_certify_needs_no_dual_variables_and_finds_a_lie(zerogap, places, tmp_path):
    store, path = places["STORE"], tmp_path / "model.zg"
    assert zerogap("train", store, "--max-memory", "4GB", "--out", path).exit_code == 0
    model = load(path)
    save(model, path, keep_dual=False)
    assert zerogap("certify", path, store).exit_code == 0
    assert zerogap("certify", path, store, "--effort", "0").exit_code == 1
    model.coef_ *= 1.5
    save(model, path)
    outcome = zerogap("certify", path, store)
    assert outcome.exit_code == 1
    assert "the certificate is false" in outcome.stderr


def test_a_model_of_other_features_is_refused(zerogap, places, tmp_path):
    scaled, other = tmp_path / "scaled.zg", tmp_path / "other.zg"
    zerogap("train", places["FILE"], "--scale", "standard", "--out", scaled)
    zerogap("train", places["NUMBERS"], "--loss", "squared", "--out", other)
    for path, text in ((scaled, "scales its features"), (other, "4 features, the model has 3")):
        outcome = zerogap("predict", path, places["STORE"])
        assert outcome.exit_code == 1
        assert text in outcome.stderr


def test_a_run_is_resumed_from_its_checkpoint(zerogap, places, tmp_path):
    line = ("train", places["STORE"], "--max-memory", "4GB", "--tol", "1e-3", "--lam", "0.001")
    file = ("--checkpoint", tmp_path / "run.zg", "--json")
    first = zerogap(*line, *file, "--max-epochs", "1")
    assert first.exit_code == 3
    second = json.loads(zerogap(*line, *file).stdout)
    assert second["converged"]
    again = json.loads(zerogap(*line, *file).stdout)
    assert again["certificate"]["epochs"] == second["certificate"]["epochs"]
    assert zerogap(*line, *file, "--seed", "1").exit_code == 1

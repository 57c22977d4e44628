"""Proofs on the command line: written, checked, and refused where data or proof are others."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zerogap as zg
from zerogap import verify
from zerogap.model_io import save

TABLE = "colour,size,label\n" + "\n".join(
    f"{'red' if k % 3 else 'blue'},{k % 7},{'yes' if k % 3 and k % 5 else 'no'}" for k in range(60)
)


def proved(zerogap, data, folder, *options):
    """Train, and prove what was trained."""
    model, proof = folder / "model.zg", folder / "model.proof"
    assert zerogap("train", data, "--out", model, *options).exit_code == 0
    outcome = zerogap("prove", model, data, "--out", proof)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    return proof, outcome.stdout


@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax", "multiclass-hinge"])
def test_classes(loss, zerogap, npz, tmp_path):
    proof, shown = proved(zerogap, npz, tmp_path, "--loss", loss)
    outcome = zerogap("verify", proof, npz)
    assert outcome.exit_code == 0
    assert "answer     true" in outcome.stdout
    assert "200 rows, 4 features" in outcome.stdout
    assert outcome.stdout.splitlines()[:3] == shown.splitlines()[:3]
    report = json.loads(zerogap("verify", proof, npz, "--json").stdout)
    assert report["answer"] == "true"
    [claim], [found] = report["claims"], report["bounds"]
    assert claim["dual"] <= found["dual"][0] <= found["primal"][1] <= claim["primal"]


@pytest.mark.parametrize("loss", ["squared", "quantile", "huber"])
def test_numbers(loss, zerogap, numbers, tmp_path):
    proof, _ = proved(zerogap, numbers, tmp_path, "--loss", loss)
    assert zerogap("verify", proof, numbers).exit_code == 0


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_tables_are_read_as_the_model_read_them(scale, zerogap, tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(TABLE)
    proof, _ = proved(zerogap, path, tmp_path, "--loss", "logistic", "--scale", scale)
    assert zerogap("verify", proof, path).exit_code == 0
    path.write_text(TABLE.replace("red,4,", "red,3,", 1))
    outcome = zerogap("verify", proof, path)
    assert outcome.exit_code == 1
    assert outcome.stderr == "zerogap verify: false: these are not the data of the proof\n"
    path.write_text(TABLE.replace(",yes", ",perhaps"))
    assert zerogap("verify", proof, path).exit_code == 1


def test_stores(zerogap, npz, tmp_path):
    store = tmp_path / "store"
    assert zerogap("data", "convert", npz, store).exit_code == 0
    proof, _ = proved(zerogap, store, tmp_path)
    assert zerogap("verify", proof, store).exit_code == 0


def test_weights_beside_the_data(zerogap, npz, tmp_path):
    with np.load(npz) as arrays:
        X, y = arrays["X"], arrays["y"]
    weights = np.random.default_rng(0).random(len(y))
    data, model, proof = (tmp_path / name for name in ("weighted.npz", "model.zg", "model.proof"))
    np.savez(data, X=X, y=y, sample_weight=weights)
    save(zg.LinearClassifier("hinge", random_state=0).fit(X, y, weights), model)
    outcome = zerogap("prove", model, data, "--out", proof)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert zerogap("verify", proof, data).exit_code == 0
    assert zerogap("verify", proof, npz).exit_code == 1  # the same rows without the weights
    outcome = zerogap("prove", model, npz, "--out", proof)  # true, but of another problem
    assert "not the data of the training" in outcome.stderr
    assert zerogap("verify", proof, npz).exit_code == 0


def test_false_claims(zerogap, npz, tmp_path):
    proof, _ = proved(zerogap, npz, tmp_path, "--loss", "logistic")
    arrays = verify.load(proof)
    header = json.loads(arrays["header"].tobytes())
    text = proof.read_bytes()
    claim = {"primal": [header["primal"][0] * (1 - 1e-12)]}
    huge = {"lam": 1e-300, "primal": [1e300], "dual": [-1e305]}  # true: nothing overflows
    for change, code in ((claim, 1), (huge, 0), ({"primal": [float("nan")]}, 1)):
        changed = json.dumps({**header, **change}).encode()
        np.savez(proof, **{**arrays, "header": np.frombuffer(changed, np.uint8)})
        saved = proof.with_name("model.proof.npz")
        outcome = zerogap("verify", saved, npz)
        assert outcome.exit_code == code, change
        assert outcome.stderr.startswith("zerogap verify: " if code else "")
    for spoilt in (b"", text[:100], text[:-30], b"PK\x03\x04" + text[50:]):
        proof.write_bytes(spoilt)
        outcome = zerogap("verify", proof, npz)
        assert outcome.exit_code == 1
        assert outcome.stderr.count("\n") == 1


def test_undecided(zerogap, npz, tmp_path, monkeypatch):
    proof, _ = proved(zerogap, npz, tmp_path, "--loss", "logistic")
    monkeypatch.setattr(verify, "LOG_ERROR", verify.LOG_ERROR * 10**30)
    outcome = zerogap("verify", proof, npz)
    assert outcome.exit_code == 3
    assert outcome.stderr.startswith("zerogap verify: undecided: ")


def test_the_file_alone_agrees(zerogap, npz, tmp_path):
    proof, _ = proved(zerogap, npz, tmp_path)
    line = [sys.executable, "-I", Path(verify.__file__), proof, npz]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("true: ")

"""`zerogap forget`: the record it prints, the model it leaves, and what it refuses."""

import json

import numpy as np
import pytest

import zerogap as zg
from zerogap.model_io import load, read, save


@pytest.fixture
def model(zerogap, npz, tmp_path):
    path = tmp_path / "model.zg"
    assert zerogap("train", npz, "--tol", 1e-8, "--out", path).exit_code == 0
    return path


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("3\n14\n\n 159 \n")
    return path


def test_the_model_is_that_of_the_rows_left(zerogap, npz, model, rows, tmp_path):
    before, out = model.read_bytes(), tmp_path / "after.zg"
    outcome = zerogap("forget", model, "--rows", rows, "--data", npz, "--out", out, "--json")
    assert outcome.exit_code == 0
    assert model.read_bytes() == before
    record = json.loads(outcome.stdout)
    with np.load(npz) as file:
        X, y = (np.delete(file[name], [3, 14, 159], axis=0) for name in ("X", "y"))
    scratch = zg.LinearClassifier(tol=1e-8, random_state=0).fit(X, y)
    assert record["removed"] == 3
    assert record["fingerprint_before"] == read(model).fingerprint
    assert record["fingerprint_after"] == scratch.fingerprint_
    assert record["certificate"]["relative_gap"] <= 1e-8
    assert load(out).coef_ == pytest.approx(scratch.coef_, abs=1e-3)
    rest = tmp_path / "rest.npz"
    np.savez(rest, X=X, y=y)
    assert zerogap("certify", out, rest).exit_code == 0


def test_the_model_is_replaced_and_forgets_again(zerogap, npz, model, rows):
    outcome = zerogap("forget", model, "--rows", rows, "--data", npz, "--force")
    assert outcome.exit_code == 0
    assert outcome.stdout.startswith("forgotten     3 rows, digest ")
    assert len(load(model).row_ids_) == 197
    again = zerogap("forget", model, "--rows", rows, "--data", npz, "--force")
    assert again.exit_code == 1
    assert "row 3 is not one of the 197 rows" in again.stderr
    rows.write_text("199\n")  # the same data file, in which rows keep their numbers
    assert zerogap("forget", model, "--rows", rows, "--data", npz, "--force").exit_code == 0
    assert load(model).row_ids_[-1] == 198


def test_the_digest_tells_rows_apart(zerogap, npz, model, tmp_path):
    digests = []
    for numbers in ("7", "8", "7"):
        rows, out = tmp_path / "rows", tmp_path / "out.zg"
        rows.write_text(numbers)
        line = ("forget", model, "--rows", rows, "--data", npz, "--out", out, "--json", "--force")
        digests.append(json.loads(zerogap(*line).stdout)["digest"])
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ("", "has no row numbers"),
        ("1\nten\n", "line 2: 'ten' is no row number"),
        ("-1", "line 1: '-1' is no row number"),
        ("200", "row 200 is not one of the 200 rows"),
        ("5\n5", "row 5 is named more than once"),
        ("\n".join(map(str, range(200))), "these are all rows"),
    ],
)
def test_wrong_numbers_are_refused(numbers, text, zerogap, npz, model, rows):
    rows.write_text(numbers)
    before = model.read_bytes()
    outcome = zerogap("forget", model, "--rows", rows, "--data", npz, "--force")
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("zerogap forget: ")
    assert text in outcome.stderr
    assert model.read_bytes() == before


def test_other_data_are_refused(zerogap, npz, numbers, model, rows, tmp_path):
    other = tmp_path / "other.npz"
    with np.load(npz) as file:
        np.savez(other, X=file["X"] * 2.0, y=file["y"])
    for data, text in ((other, "not the data that the model was trained on"), (numbers, "3 feat")):
        outcome = zerogap("forget", model, "--rows", rows, "--data", data, "--force")
        assert outcome.exit_code == 1
        assert text in outcome.stderr


def test_a_model_without_its_dual_is_refused(zerogap, npz, model, rows):
    save(load(model), model, keep_dual=False)
    outcome = zerogap("forget", model, "--rows", rows, "--data", npz, "--force")
    assert outcome.exit_code == 1
    assert "saved without them (keep_dual=True keeps them)" in outcome.stderr


def test_a_run_that_ends_early_says_so(zerogap, npz, rows, tmp_path):
    model = tmp_path / "model.zg"
    zerogap("train", npz, "--solver", "pegasos", "--max-epochs", 1, "--out", model)
    outcome = zerogap("forget", model, "--rows", rows, "--data", npz, "--force")
    assert outcome.exit_code == 3
    assert "stopped (max_epochs) at a relative gap of" in outcome.stderr
    assert len(load(model).row_ids_) == 197


def test_the_dual_is_kept_on_request(zerogap, npz, tmp_path, monkeypatch):
    monkeypatch.setattr("zerogap.model_io.files._BYTES_KEPT_UNASKED", 0)
    model = tmp_path / "model.zg"
    for more, kept in (((), False), (("--keep-dual",), True)):
        zerogap("train", npz, "--out", model, *more)
        assert read(model).has_dual is kept


def test_nothing_is_replaced_unasked(zerogap, npz, model, rows, tmp_path):
    before = model.read_bytes()
    outcome = zerogap("forget", model, "--rows", rows, "--data", npz)
    assert outcome.exit_code == 1
    assert "give --out MODEL, or --force to replace the old model" in outcome.stderr
    other = tmp_path / "other.zg"
    other.write_text("precious")
    outcome = zerogap("forget", model, "--rows", rows, "--data", npz, "--out", other)
    assert outcome.exit_code == 1
    assert "is there already; --force replaces it" in outcome.stderr
    assert (model.read_bytes(), other.read_text()) == (before, "precious")


CSV = "name;x;colour;y\n" + "".join(
    f"n{k};{k % 7},5;{'red' if k % 3 else 'blue'};{'a' if (k * 7) % 11 > 4 else 'b'}\n"
    for k in range(60)
)


def test_u4_the_reduced_file_certifies_the_new_model(zerogap, tmp_path):
    """U4: forget, then certify: "other data", and nothing wrote the reduced file."""
    data, model, new, left = (tmp_path / n for n in ("a.csv", "m.zg", "new.zg", "left.csv"))
    rows = tmp_path / "rows"
    data.write_text(CSV)
    rows.write_text("0\n59\n7\n")
    line = ("train", data, "--target", "y", "--id", "name", "--loss", "logistic", "--out", model)
    assert zerogap(*line).exit_code == 0
    line = ("forget", model, "--rows", rows, "--data", data, "--out", new, "--left", left)
    outcome = zerogap(*line)
    assert outcome.exit_code == 0, outcome.stderr
    assert f"zerogap certify {new} {left}" in outcome.stdout
    expected = [line for k, line in enumerate(CSV.splitlines()) if k - 1 not in (0, 59, 7)]
    assert left.read_text().splitlines() == expected
    assert zerogap("certify", new, left).exit_code == 0
    rows.write_text("5\n")  # rows keep their numbers, also with the reduced file
    assert zerogap("forget", new, "--rows", rows, "--data", left, "--force").exit_code == 0
    assert zerogap("certify", new, data).exit_code == 1

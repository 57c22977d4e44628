"""From a messy file to a report and predictions, which are the same wherever they are made."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import zerogap as zg
from cli import worked

LOAD = """
import sys
import numpy as np
import pandas as pd
import zerogap as zg

model = zg.load(sys.argv[1])
frame = pd.read_pickle(sys.argv[2])
scores = model.predict(frame) if len(sys.argv) > 4 else model.decision_function(frame)
np.save(sys.argv[3], scores)
"""


def frame_of(path):
    """Return the table as somebody reads it with pandas."""
    if path.suffix == ".xlsx":
        return pd.read_excel(path)
    if path.name == "flats.csv":
        return pd.read_csv(path, sep=";", decimal=",", thousands=".", encoding="latin-1")
    if path.suffix == ".data":
        names = worked.TRAIN[path.name][1].split(",")
        return pd.read_csv(path, names=names, skipinitialspace=True, na_values="?")
    return pd.read_csv(path)


def onnx_inputs(frame, encoder):
    """Return what the graph takes, from the table."""
    inputs = {}
    for column in encoder.columns:
        cells = frame[column.name]
        if column.kind in ("category", "text", "hashed text"):
            values = np.array(["" if pd.isna(v) else str(v) for v in cells], dtype=object)
        elif column.kind == "date":
            days = (cells - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
            values = days.to_numpy(dtype=np.float64)
        elif not (pd.api.types.is_numeric_dtype(cells) or cells.dtype == bool):
            values = (cells == column.true).to_numpy(dtype=np.float64)
        else:
            values = cells.to_numpy(dtype=np.float64)
        inputs[column.name] = values[:, None]
    return inputs


@pytest.mark.parametrize("name", worked.TRAIN)
def test_command_python_and_onnx_agree(zerogap, tmp_path, name):
    runtime = pytest.importorskip("onnxruntime")
    path, model, page = worked.write(tmp_path, name), tmp_path / "m.zg", tmp_path / "report.html"
    regression = "squared" in worked.TRAIN[name]
    options = worked.TRAIN[name] if regression else (*worked.TRAIN[name], "--loss", "logistic")
    line = ("train", path, *options, "--scale", "standard", "--tol", "1e-6")
    outcome = zerogap(*line, "--out", model, "--report", page)
    assert outcome.exit_code == 0, outcome.stderr
    assert zerogap("certify", model, path).exit_code == 0
    text = page.read_text()
    assert "No model whatsoever" in text
    assert "src=" not in text  # one file

    outcome = zerogap("predict", model, path, *(() if regression else ("--scores",)), "--json")
    assert outcome.exit_code == 0, outcome.stderr
    ours = json.loads(outcome.stdout)["predictions" if regression else "scores"]

    frame = frame_of(path)
    frame.to_pickle(tmp_path / "frame.pkl")
    code = [sys.executable, "-c", LOAD, model, tmp_path / "frame.pkl", tmp_path / "s.npy"]
    subprocess.run([*code, "numbers"] if regression else code, check=True, timeout=120)
    scale = 1.0 + np.abs(ours).max()
    assert np.load(tmp_path / "s.npy") == pytest.approx(ours, abs=1e-6 * scale)

    assert zerogap("export", model, tmp_path / "m.onnx").exit_code == 0
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    inputs = onnx_inputs(frame, zg.load(model).encoder_)
    found = session.run(["prediction" if regression else "scores"], inputs)[0]
    assert found == pytest.approx(ours, abs=1e-6 * scale)


def test_u5_a_loaded_model_takes_the_table_it_was_trained_on(zerogap, tmp_path):
    """U5: zg.load of a command-line model lost the encoder, and predict(df) refused text."""
    pl = pytest.importorskip("polars")
    path, out = worked.write(tmp_path, "reviews.csv"), tmp_path / "m.zg"
    line = ("train", path, "--text", "review", "--loss", "logistic", "--out", out)
    assert zerogap(*line).exit_code == 0
    model, frame = zg.load(out), pd.read_csv(path)
    assert model.feature_names_in_[0].startswith("review: ")
    assert len(model.feature_names_in_) == model.n_features_in_
    expected = model.predict(frame)
    assert model.score(frame, frame["label"]) > 0.8
    for other in (pl.read_csv(path), frame[frame.columns[::-1]], path, str(path)):
        assert (model.predict(other) == expected).all()
    with pytest.raises(ValueError, match="the table lacks column 'review', which the model was"):
        model.predict(frame[["stars"]])
    X = model.encoder_.features_of(frame)
    assert (model.predict(X) == expected).all()  # features are taken as they are
    again = model.fit(np.eye(4), ["a", "b", "a", "b"])
    assert again.encoder_ is None


def test_show_has_all_forms(zerogap, tmp_path):
    path, out = worked.write(tmp_path, "orders.xlsx"), tmp_path / "m.zg"
    line = ("train", path, *worked.TRAIN["orders.xlsx"], "--loss", "logistic", "--out", out)
    assert zerogap(*line).exit_code == 0
    text = zerogap("show", out, "--top", 3).stdout
    assert re.search("data +orders.xlsx, sha256 [0-9a-f]{64}", text)
    assert "amount    number, missing ones become" in text
    assert "yes where the score is above 0 (probability above 0.5), else no" in text
    report = json.loads(zerogap("show", out, "--json").stdout)
    effects = [abs(c["effect"]) for c in report["coefficients"]]
    assert effects == sorted(effects, reverse=True)
    model = zg.load(out)
    X = model.encoder_.features_of(path)
    X = X.toarray() if hasattr(X, "toarray") else X
    by_name = dict(zip(model.feature_names_in_, model.coef_[0] * X.std(axis=0), strict=True))
    assert {c["feature"]: pytest.approx(c["effect"]) for c in report["coefficients"]} == by_name
    table = zerogap("show", out, "--csv").stdout.splitlines()
    assert table[0] == "feature,class,coef,per_unit,effect"
    assert len(table) == 1 + len(by_name)
    picture = tmp_path / "p.svg"
    assert zerogap("show", out, "--picture", picture).exit_code == 0
    assert picture.read_text().startswith("<svg")

"""`zerogap path`: the validation error at every lambda, as a table, a picture and JSON."""

import json

import pytest

import zerogap as zg
from zerogap.readers import read
from zerogap.sweeps import path_cv

LINE = ("--lam-min", 0.1, "--lam-max", 10, "--tol", 0.01)


def test_the_report_is_the_curve(zerogap, npz):
    outcome = zerogap("path", npz, *LINE, "--folds", 3, "--jobs", 2, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    found, data = json.loads(outcome.stdout), read(npz)
    curve = path_cv(data.X, data.y, 0.1, 10.0, tol=0.01, folds=3, random_state=0)
    assert found["steps"] == [step._asdict() for step in curve.steps]
    assert found["best"]["lam"] == curve.best.lam
    assert found["within_one_standard_error"]["error"] == curve.simplest.error
    assert (found["rows"], found["features"], found["folds"]) == (200, 4, 3)
    assert (found["models"], found["epochs"]) == (curve.models, curve.epochs)


def test_table_and_picture(zerogap, npz, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "path.png"
    outcome = zerogap("path", npz, *LINE, "--out", picture)
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stderr == ""
    assert "at no lambda from 0.1 to 10 is a gap above 0.01 of the objective" in outcome.stdout
    lines = outcome.stdout.splitlines()
    assert sum(line.endswith("lowest") for line in lines) == 1
    assert sum(" and " in line for line in lines) in (14, 15)
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_regression_up_to_where_no_feature_is_needed(zerogap, numbers):
    line = ("--loss", "quantile:q=0.3", "--lam-min", 0.01, "--tol", 0.1, "--l1-ratio", 0.5)
    outcome = zerogap("path", numbers, *line, "--no-intercept", "--folds", 2, "--json")
    found, data = json.loads(outcome.stdout), read(numbers)
    assert found["measure"] == "mean loss, Quantile(q=0.3)"
    end = found["steps"][-1]["stop"]
    problem = zg.Problem(data.X, data.y, zg.Quantile(0.3), end, l1_ratio=0.5)
    assert problem.certificate([0.0, 0.0, 0.0]).relative_gap <= 0.1001


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("--lam-min 0", 1, "lam must be a positive, finite number, got 0.0"),
        ("--lam-min 1 --lam-max 0.1", 1, "lam_min=1 must be below lam_max=0.1"),
        ("--tol 0", 1, "tol must be a number in (0, 1), got 0.0"),
        ("--loss nonsense", 2, "nonsense"),
        ("--loss softmax", 2, "softmax"),
        ("--out nowhere/picture.png", 1, "the folder nowhere does not exist"),
        ("--solver sdca --max-epochs 1 --tol 1e-9", 3, "stopped (max_epochs) at a relative gap"),
    ],
)
def test_refusals_are_one_line(line, code, text, zerogap, npz):
    outcome = zerogap("path", npz, *line.split())
    assert (outcome.exit_code, outcome.stdout) == (code, "")
    assert outcome.stderr.startswith("zerogap path: ")
    assert outcome.stderr.count("\n") == 1
    assert text in outcome.stderr

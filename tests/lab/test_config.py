"""Experiments from TOML files, and the commands that run experiments."""

import json
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import zerogap  # noqa: F401  the fixture
from zerogap.lab.chapters import select
from zerogap.lab.config import read_config

EXAMPLE = Path(__file__).parents[2] / "examples" / "compare.toml"
SMALL = """
lams = [0.01]
seeds = [3, 4]
epochs = 3
timed = false
[[data]]
name = "mine.npz"
test = 0.25
{data}
[[solvers]]
name = "by turns"
solver = "sdca:sampling=cyclic"
[[solvers]]
solver = "sdca"
{more}
"""


@pytest.fixture
def config(tmp_path):
    """Write a file with further lines; its data lie beside it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    np.savez(tmp_path / "mine.npz", X=X, y=np.where(X[:, 0] > 0, "yes", "no"))

    def write(data="", more=""):
        path = tmp_path / "mine.toml"
        path.write_text(SMALL.format(data=data, more=more))
        return path

    return write


def test_the_example_is_valid():
    chapter = read_config(EXAMPLE)
    experiment = chapter.experiments[0]
    assert len(experiment.cells()) == 2 * 2 * 3 * 5 + 2 * 2
    assert [arm.name for arm in experiment.arms] == ["permutation", "random", "cyclic"]
    assert len(experiment.claims) == 1


def test_own_data_from_the_command_line(zerogap, config, tmp_path, monkeypatch):  # noqa: F811
    more = '[[claims]]\ncolumn = "gap"\nlower = "sdca"\nthan = "by turns"'
    monkeypatch.setenv("ZEROGAP_DATA", str(tmp_path))
    line = ("compare", "--config", config('label = "my rows"', more), "--out", tmp_path / "out")
    outcome = zerogap(*line, "--json")
    assert outcome.exit_code == 0, outcome.output
    content = json.loads(outcome.stdout)
    claim = content["verdicts"][0]
    assert claim["statement"] == "sdca ends with a lower gap than by turns"
    assert claim["verdict"] in ("holds", "does not hold", "undecided")
    assert "2 runs" in claim["evidence"][0]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "my rows" in page
    assert 'id="errata"' not in page  # those of the reports are not of interest here
    again = zerogap(*line)
    assert "0 runs to do, 5 kept" in again.stderr


@pytest.mark.parametrize(
    ("data", "more", "message"),
    [
        ("colour = 1", "", "has no key 'colour'"),
        ("", '[[solvers]]\nsolver = "sdcb"', "'sdcb' is unknown"),
        ("", '[[data]]\nname = "sikn"', "did you mean 'skin'"),
        ("", "[[claims]]\nlower = 'sdca'\nthan = 'gd'\ncolumn = 'gap'", "no solver 'gd'"),
        ("", "[[claims]]\nlower = 'sdca'\nthan = 'sdca'", "has no column"),
        ("[[", "", "mine.toml"),
    ],
)
def test_mistakes_are_named(zerogap, config, data, more, message):  # noqa: F811
    outcome = zerogap("compare", "--config", config(data, more))
    assert outcome.exit_code == 1
    assert message in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_config_and_data_exclude_each_other(zerogap, config):  # noqa: F811
    outcome = zerogap("compare", "simulated", "--config", config())
    assert outcome.exit_code == 2
    assert "name the data in the file" in outcome.stderr


@pytest.mark.parametrize(
    ("seeds", "message"), [("0", "number of runs"), ("'all'", "number of runs"), ("[]", "list")]
)
def test_seeds_are_numbers(config, seeds, message):
    path = config()
    path.write_text(path.read_text().replace("[3, 4]", seeds))
    with pytest.raises(ValueError, match=message):
        read_config(path)


def test_experiments_are_selected_by_many_names():
    def ids(*names):
        return [e.id for chapter in select(names) for e in chapter.experiments]

    assert ids("s4") == ["S4-fixT", "S4-fixkT", "S4-lemmas", "S4-regret", "S4-theorems"]
    assert ids("S4-fixkT-bounds", "s4-06") == ["S4-fixkT", "S4-lemmas"]
    with pytest.raises(ValueError, match="did you mean s4-fixkt"):
        select(["S4-fixkk"])


def test_unknown_names_and_folders_are_wrong_usage(zerogap, tmp_path):  # noqa: F811
    outcome = zerogap("reproduce", "S4-fig99", "--out", tmp_path)
    assert outcome.exit_code == 2
    assert "nothing is called 's4-fig99'" in outcome.stderr
    outcome = zerogap("reproduce", "S4-lemmas", "--data", tmp_path / "nowhere")
    assert outcome.exit_code == 2
    assert "is not a folder" in outcome.stderr


def test_missing_data_are_told_and_the_rest_goes_on(zerogap, tmp_path, monkeypatch):  # noqa: F811
    from zerogap.lab import data

    def refuse(file, folder):
        raise FileNotFoundError("put it here")

    monkeypatch.setattr(data.files, "read", refuse)
    out = tmp_path / "out"
    line = ("--quick", "--jobs", "1", "--data", tmp_path, "--out", out)
    outcome = zerogap("reproduce", "S4-regret", *line)
    assert outcome.exit_code == 0, outcome.output  # the simulated data are left
    assert outcome.stderr.count("ijcnn1") == 1
    assert "without data set ijcnn1: put it here" in outcome.stderr
    assert "S4-10     holds" in outcome.stdout
    assert (out / "tables" / "S4-regret.csv").exists()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "data: simulated, without ijcnn1." in page
    assert "runs are missing" not in page
    outcome = zerogap("reproduce", "S4-regret", "S4-fixT", *line)
    assert outcome.exit_code == 3  # Reuters has a public source
    assert outcome.stderr.count("without data set") == 2
    assert "not run, data missing: S4-fixT" in outcome.stderr


def test_data_without_a_public_source_do_not_fail_the_run(zerogap, tmp_path, monkeypatch):  # noqa: F811
    from zerogap.lab import data

    monkeypatch.setattr(data.files, "find", lambda file, folder: None)
    line = ("--quick", "--jobs", "1", "--data", tmp_path, "--out", tmp_path / "out")
    outcome = zerogap("reproduce", "S4-lemmas", "S1-crops", *line)
    assert outcome.exit_code == 0, outcome.output
    assert "without data set bloodcells-images" in outcome.stderr
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<b>bloodcells-images</b>" in page

"""zerogap data convert, and zerogap data info of a store."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from zerogap.store import Store

SVMLIGHT = "1 1:0.5 3:2\n-1 2:1\n1 3:0.1\n"


@pytest.fixture
def svmlight(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(SVMLIGHT)
    return path


def test_a_file_becomes_a_store(zerogap, tmp_path, svmlight):
    path = tmp_path / "s"
    outcome = zerogap("data", "convert", svmlight, path)
    assert outcome.exit_code == 0
    assert outcome.stderr == ""
    lines = dict(line.split(maxsplit=1) for line in outcome.stdout.splitlines())
    assert lines == {
        "store": str(path),
        "rows": "3",
        "features": "3",
        "targets": "2 classes: -1.0, 1.0",
        "values": "4, sparse, float64",
        "blocks": "1 of up to 256 B, 256 B in all",
        "source": str(svmlight),
        "fingerprint": Store(path).fingerprint[:16],
    }
    again = zerogap("data", "info", path)
    assert again.exit_code == 0
    assert again.stdout == outcome.stdout


def test_options_reach_the_store(zerogap, tmp_path, npz, numbers):
    about = zerogap("data", "convert", numbers, tmp_path / "a", "--task", "regression", "--json")
    about = json.loads(about.stdout)
    store = Store(tmp_path / "a")
    assert about["n_samples"] == store.n_samples == 150
    assert about["classes"] is store.classes is None
    assert about["fingerprint"] == store.fingerprint
    assert about["source"]["path"] == str(numbers)
    options = ("--dtype", "float32", "--seed", 3, "--max-memory", "2GB", "--format", "npz")
    assert zerogap("data", "convert", npz, tmp_path / "b", *options).exit_code == 0
    assert Store(tmp_path / "b").dtype == np.float32
    told = json.loads(zerogap("data", "info", tmp_path / "b", "--json").stdout)
    assert told["classes"] == ["no", "yes"]
    assert told["dtype"] == "float32"


def test_svmlight_options_and_standard_input(zerogap, tmp_path):
    path = tmp_path / "s"
    line = ("data", "convert", "-", path, "--zero-based", "--n-features", 9)
    assert zerogap(*line, input="1 0:1\n-1 3:1\n").exit_code == 0
    assert Store(path).n_features == 9


def test_tables_have_a_target(zerogap, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("label,x,colour\n1,0.5,red\n0,2,blue\n")
    outcome = zerogap("data", "convert", table, tmp_path / "s", "--target", "label")
    assert outcome.exit_code == 0
    assert Store(tmp_path / "s").feature_names == ("x", "colour=blue", "colour=red")


def test_a_data_set_by_name(zerogap, tmp_path):
    outcome = zerogap("data", "convert", "two-gaussians", tmp_path / "s")
    assert outcome.exit_code == 0
    assert "source       not a file" in outcome.stdout


def test_stores_are_replaced_by_force_only(zerogap, tmp_path, svmlight):
    path = tmp_path / "s"
    zerogap("data", "convert", svmlight, path)
    before = Store(path).fingerprint
    outcome = zerogap("data", "convert", svmlight, path, "--seed", 1)
    assert outcome.exit_code == 1
    assert outcome.stdout == ""
    assert outcome.stderr.splitlines() == [
        f"zerogap data convert: {path}: holds a store already, which only force replaces"
    ]
    assert Store(path).fingerprint == before
    assert zerogap("data", "convert", svmlight, path, "--seed", 1, "--force").exit_code == 0
    assert Store(path).fingerprint != before


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("1 1:x\n", 1, "a.svm: line 1, column 5: expected a finite decimal number"),
        ("0.5 1:1\n", 1, "a.svm: rows 1 to 1: y holds 0.5 at position 0, which is no class"),
        (None, 1, "neither a file nor a data set"),
    ],
)
def test_failures_are_one_line(zerogap, tmp_path, source, code, message):
    path = tmp_path / "a.svm"
    if source is not None:
        path.write_text(source)
    outcome = zerogap("data", "convert", path, tmp_path / "s")
    assert outcome.exit_code == code
    assert message in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert not (tmp_path / "s").exists()


def test_wrong_usage(zerogap, tmp_path, svmlight):
    outcome = zerogap("data", "convert", svmlight, tmp_path / "s", "--max-memory", "lots")
    assert outcome.exit_code == 1
    assert "max_memory must be a number of bytes or text like '2GB', got 'lots'" in outcome.stderr
    assert zerogap("data", "convert", svmlight, tmp_path / "s", "--task", "x").exit_code == 2
    assert zerogap("data", "convert", svmlight).exit_code == 2


def test_info_of_a_folder_that_is_no_store(zerogap, tmp_path):
    outcome = zerogap("data", "info", tmp_path)
    assert outcome.exit_code == 1
    assert "has no manifest.json" in outcome.stderr


INTERRUPTED = """
import os, signal, sys
import zerogap.cli.convert as convert
import zerogap.store.writer
from zerogap.readers.files import Stream

zerogap.store.writer._LARGEST_RUN = 30_000
Stream.read.__defaults__ = (10_000,)
convert._SECONDS_BETWEEN_LINES = 0
if sys.argv.pop(1) == "interrupted":
    show = convert.ConversionProgress.show

    def and_interrupt(shown, progress):
        show(shown, progress)
        if progress.rows > 5000:
            os.kill(os.getpid(), signal.SIGINT)

    convert.ConversionProgress.show = and_interrupt
from zerogap.cli import main
main()
"""


@pytest.mark.posix
def test_ctrl_c_and_the_same_command_again(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(SVMLIGHT * 3000)

    def run(how):
        line = [sys.executable, "-c", INTERRUPTED, how, "data", "convert", path, tmp_path / "s"]
        return subprocess.run(
            [str(a) for a in line], capture_output=True, text=True, timeout=120, env=os.environ
        )

    first = run("interrupted")
    assert first.returncode == 130
    *lines, last = first.stderr.splitlines()
    assert last == "zerogap data convert: interrupted; the same command goes on where it was"
    assert any("rows/s" in line and "left" in line for line in lines)
    second = run("plain")
    assert second.returncode == 0, second.stderr
    assert "zerogap data convert: going on after " in second.stderr
    assert Store(tmp_path / "s").n_samples == 9000

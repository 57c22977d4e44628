"""Commands that are disturbed: what they say, and a short run of the benchmark that does it."""

import locale
import re
import subprocess
import sys
from pathlib import Path

import pytest

from zerogap.model_io import load

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"


@pytest.mark.posix
@pytest.mark.timeout(1200)  # half a minute, but not on a busy machine
def test_F7_disturbed_commands_lose_nothing():
    command = [sys.executable, str(SCRIPT), "--count", "42", "--jobs", "1", "--seed", "7"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^42 tried, 42 survived, 0 lost; ", run.stdout, re.MULTILINE)


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from zerogap.cli import main
sys.argv = ["zerogap", *sys.argv[1:]]
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
main()
"""


@pytest.mark.posix
@pytest.mark.parametrize("command", ["train DATA --out OUT", "predict MODEL DATA --out OUT",
                                     "prove MODEL DATA --out OUT"])  # fmt: skip
def test_F6_a_full_disk_is_said_with_the_user_s_path(zerogap, npz, tmp_path, command):
    model, out = tmp_path / "model.zg", tmp_path / "out"
    assert zerogap("train", npz, "--out", model).exit_code == 0
    out.write_text("old")
    named = {"DATA": npz, "MODEL": model, "OUT": out}
    arguments = [str(named.get(word, word)) for word in command.split()]
    line = [sys.executable, "-c", LIMITED, *arguments]
    run = subprocess.run(line, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith(f"zerogap {arguments[0]}: {out}: File too large")
    assert "Traceback" not in run.stderr
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npz", "model.zg", "out"]


def test_F7_a_comma_in_the_locale_changes_nothing(zerogap, npz, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b,y\n" + "".join(f"{k / 8},{k % 3}.5,{k % 2}\n" for k in range(40)))
    before = locale.setlocale(locale.LC_ALL)
    models = []
    for name in ("C", "de_DE.UTF-8"):
        try:
            locale.setlocale(locale.LC_ALL, name)
        except locale.Error:
            pytest.skip(f"the locale {name} is not installed")
        try:
            out = tmp_path / f"{name}.zg"
            assert zerogap("train", table, "--target", "y", "--out", out).exit_code == 0
            models.append(load(out).coef_.tobytes())
            shown = zerogap("show", out).output
        finally:
            locale.setlocale(locale.LC_ALL, before)
    assert models[0] == models[1]
    assert "," not in shown.split("primal", 1)[1].splitlines()[0]


@pytest.mark.parametrize("second", ["--report", "--checkpoint"])
def test_two_outputs_of_one_name_are_refused(zerogap, npz, tmp_path, second):
    (tmp_path / "link").symlink_to("model.zg")
    for name in ("model.zg", "link"):
        result = zerogap("train", npz, "--out", tmp_path / "model.zg", second, tmp_path / name)
        assert result.exit_code == 1
        assert "would be written twice, choose another name" in result.output
    assert not (tmp_path / "model.zg").exists()


@pytest.mark.parametrize("name", ["rot13", "base64", "zip", "../x"])
def test_encodings_of_no_text_are_refused(zerogap, tmp_path, name):
    table = tmp_path / "table.csv"
    table.write_text("a,y\n1,0\n2,1\n")
    result = zerogap("train", table, "--target", "y", "--encoding", name)
    assert result.exit_code == 2
    assert f"--encoding must be one that Python knows, as latin-1, got '{name}'" in result.output

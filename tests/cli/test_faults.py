"""Commands that are disturbed: what they say, and a short run of the benchmark that does it."""

import errno
import json
import locale
import os
import re
import stat
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from zerogap.cli.output import print_data
from zerogap.io.atomic import _beside, write_file
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


CLOSED = """
import os, sys
for number in range(3):
    os.close(number)
os.execv(sys.executable, [sys.executable, "-m", "zerogap", *sys.argv[1:]])
"""


@pytest.mark.posix
def test_closed_outputs_end_no_command_and_no_line_gets_into_a_file(zerogap, npz, tmp_path):
    out = tmp_path / "model.zg"
    command = [sys.executable, "-c", CLOSED, "train", str(npz), "--out", str(out)]
    assert subprocess.run(command, check=False).returncode == 0
    assert zerogap("show", out).exit_code == 0


def test_names_of_others_do_not_command_the_terminal(zerogap, tmp_path, monkeypatch):
    hostile = tmp_path / "t\x1b[31m\n.csv"
    rows = [f"{k},{k % 7},{'a' if k % 3 else 'b'}\x1b]0;title\x07\n" for k in range(60)]
    hostile.write_text("".join(["x\x1b[2J,z\x9b31m\u202e,y\n", *rows]))
    out = tmp_path / "model.zg"
    commands = (
        ("train", hostile, "--target", "y", "--out", out),
        ("train", hostile, "--target", "none"),
        ("show", out),
        ("show", out, "--json"),
    )
    for command in commands:
        shown = zerogap(*command).output
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown), command
    assert r"x\x1b[2J" in zerogap("show", out).output
    assert json.loads(zerogap("show", out, "--json").output)["columns"]["x\x1b[2J"] == "number"
    monkeypatch.setattr("sys.stdout", StringIO())
    print_data("a\x1bb\n")
    sys.stdout.isatty = lambda: True
    print_data("a\x1bb\n")
    assert sys.stdout.getvalue() == "a\x1bb\na\\x1bb\n"


def test_bytes_of_a_name_that_are_no_text_are_written_out(zerogap, npz, tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff.npz"))
    try:
        path.write_bytes(npz.read_bytes())
    except (OSError, UnicodeError):
        pytest.skip("this system's names are text")
    assert r"d\udcff.npz: 200 rows" in zerogap("train", path).output
    assert json.loads(zerogap("train", path, "--json").output)["data"].endswith("d\udcff.npz")


@pytest.mark.posix
def test_a_file_that_is_replaced_keeps_who_may_read_it(tmp_path):
    path = tmp_path / "model.zg"
    path.write_bytes(b"old")
    path.chmod(0o640)
    seen = []

    def write(file):
        seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        file.write(b"new")

    write_file(path, write)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert seen == [0o600]  # nobody else reads it before


@pytest.mark.posix
@pytest.mark.parametrize("length", [239, 240, 241, 255])
def test_the_longest_names_can_be_written(tmp_path, length):
    path = tmp_path / ("n" * length)
    for content in (b"one", b"two"):
        (tmp_path / f"{_beside(path)}.part-0").touch()  # of a killed process
        write_file(path, lambda file, content=content: file.write(content))
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"two"


@pytest.mark.posix
@pytest.mark.parametrize("call", ["open", "fsync"])
def test_folders_that_cannot_be_listed_or_saved_may_hold_files(tmp_path, call, monkeypatch):
    usual = getattr(os, call)

    def refuse(what, *arguments, **more):
        if call == "open" and what == tmp_path:
            raise PermissionError(errno.EACCES, "")
        if call == "fsync" and stat.S_ISDIR(os.fstat(what).st_mode):
            raise OSError(errno.EINVAL, "")
        return usual(what, *arguments, **more)

    monkeypatch.setattr(os, call, refuse)
    write_file(tmp_path / "model.zg", lambda file: file.write(b"new"))
    assert (tmp_path / "model.zg").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["rot13", "base64", "zip", "../x"])
def test_encodings_of_no_text_are_refused(zerogap, tmp_path, name):
    table = tmp_path / "table.csv"
    table.write_text("a,y\n1,0\n2,1\n")
    result = zerogap("train", table, "--target", "y", "--encoding", name)
    assert result.exit_code == 2
    assert f"--encoding must be one that Python knows, as latin-1, got '{name}'" in result.output

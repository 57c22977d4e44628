"""The command itself: help, usage errors, one line per failure, pipes that close."""

import json
import re
import subprocess
import sys

import pytest

import zerogap as zg
from zerogap import cli
from zerogap.cli.output import as_json, one_line

COMMANDS = [
    "train",
    "show",
    "predict",
    "certify",
    "audit",
    "prove",
    "verify",
    "export",
    "forget",
    "compare",
    "sweep",
    "path",
    "bounds",
    "reproduce",
    "data",
    "practical",
    "warmup",
]
HEAVY = "{'numpy', 'scipy', 'numba', 'sklearn', 'pyarrow', 'pandas', 'matplotlib', 'plotly'}"


@pytest.fixture
def main(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["zerogap", *arguments])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        return exit_.value.code or 0, *capsys.readouterr()

    return call


def python(code, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stderr=subprocess.PIPE, **options
    )


def test_help(main):
    code, out, err = main("--help")
    assert (code, err) == (0, "")
    assert re.findall("^  ([a-z]+)  ", out.partition("Commands:")[2], re.MULTILINE) == [
        *COMMANDS[:-3],
        "practical",
        "warmup",
        "data",
    ]
    assert main() == (0, out, "")
    assert main("--version") == (0, f"zerogap {zg.__version__}\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_commands(command, main):
    code, out, err = main(command, "--help")
    assert (code, err) == (0, "")
    assert f"zerogap {command}" in out
    for option, text in re.findall(r"^  (--[\w-]+)(.*(?:\n {10,}.*)*)", out, re.MULTILINE):
        assert re.search("[A-Z][a-z]+|[a-z]+, ", text), f"{option} has no help"


def test_help_is_light():
    code = f"""if True:
        import sys
        sys.argv = ["zerogap", "train", "--help"]
        from zerogap.cli import main
        try:
            main()
        finally:
            print("heavy:", sorted({HEAVY} & set(sys.modules)))
    """
    with python(code, stdout=subprocess.PIPE) as process:
        out, _ = process.communicate()
    assert out.decode().splitlines()[-1] == "heavy: []"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("nothing", "zerogap"),
        ("train", "zerogap train"),
        ("train a --tol x", "zerogap train"),
        ("train a --tol -1", "zerogap train"),
        ("train a --unknown", "zerogap train"),
        ("predict a", "zerogap predict"),
        ("bounds --loss hing", "zerogap bounds"),
        ("practical --opt adam", "zerogap practical"),
    ],
)
def test_wrong_usage_is_one_line(line, command, main):
    code, out, err = main(*line.split())
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"{command}: .*; see {command} --help\n", err)


def test_a_closed_pipe_is_no_error(npz):
    code = "from zerogap.cli import main; main()"
    with python(code, "bounds", "--n", "10", stdout=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.filterwarnings("always")
def test_warnings_are_one_line(main, tmp_path):
    import numpy as np

    path = tmp_path / "data.npz"
    np.savez(path, X=np.eye(1), y=np.ones(1))
    code, _, err = main("train", str(path), "--loss", "squared", "--lam", "1")
    assert code == 0
    assert err == "zerogap: R^2 score is not well-defined with less than two samples.\n"


def test_a_class_for_each_row_is_told_in_one_line(main, tmp_path):
    import numpy as np

    path = tmp_path / "data.npz"
    np.savez(path, X=np.eye(30), y=np.arange(30))
    code, _, err = main("train", str(path), "--loss", "softmax", "--lam", "1")
    assert code == 0
    assert err == (
        "zerogap train: the target has 30 classes in 30 rows: --target NAME chooses another "
        "column, or --loss squared takes it for a number\n"
    )


def test_json_has_no_other_numbers():
    import numpy as np

    text = as_json({"a": float("nan"), "b": [np.inf, np.float32(0.5)], "c": np.arange(2), 3: "ü"})
    assert json.loads(text) == {"a": None, "b": [None, 0.5], "c": [0, 1], "3": "ü"}
    assert "ü" in text


def test_one_line():
    assert one_line(MemoryError()) == "not enough memory"
    assert one_line(ValueError("a\n  b")) == "a b"
    assert one_line(FileNotFoundError(2, "No such file", "x")) == "x: No such file"
    assert one_line(ValueError()) == "ValueError"

"""The command line, in this process."""

import numpy as np
import pytest

from zerogap import cli

testing = pytest.importorskip("typer.testing")


@pytest.fixture
def zerogap():
    """Run a command; what it raises, other than exit codes, is an error of the test."""

    def call(*arguments, input=None):
        line = [str(argument) for argument in arguments]
        outcome = testing.CliRunner().invoke(cli.make_app(), line, input=input)
        if outcome.exception and not isinstance(outcome.exception, SystemExit):
            raise outcome.exception
        assert "\x1b" not in outcome.output  # no colours, where nobody looks
        return outcome

    return call


@pytest.fixture
def npz(tmp_path):
    """A file of two classes, "no" and "yes", that a line separates, but not quite."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    score = X @ [1.0, -2.0, 0.5, 0.0] + 0.5 * rng.standard_normal(200)
    path = tmp_path / "data.npz"
    np.savez(path, X=X, y=np.where(score > 0.2, "yes", "no"))
    return path


@pytest.fixture
def numbers(tmp_path):
    """A file of numbers that depend on the rows, with noise."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 3))
    path = tmp_path / "numbers.npz"
    np.savez(path, X=X, y=X @ [1.0, 2.0, -1.0] + 3.0 + 0.1 * rng.standard_normal(150))
    return path

"""`zerogap bounds`: the library's bounds, for numbers that are given or taken from data."""

import json

import numpy as np
import pytest

from zerogap import bounds


def report(zerogap, *line):
    outcome = zerogap("bounds", *line, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    return found, {row["method"]: row["updates"] for row in found["bounds"]}


def test_given_numbers(zerogap):
    line = ("--n", 452, "--lam", 0.1, "--eps", 1e-3, "--radius", 2, "--delta", 0.05)
    found, updates = report(zerogap, *line)
    options = {"lam": 0.1, "eps": 1e-3, "radius": 2.0}
    assert updates == {
        "SDCA, average after T_0": bounds.sdca(452, **options).iterations,
        "the same, sharper constants": bounds.sdca(452, **options, sharp=True).iterations,
        "Pegasos, average": bounds.pegasos(**options).iterations,
        "the same, probability 0.95": bounds.pegasos(**options, delta=0.05).iterations,
    }
    assert found["bounds"][0]["epochs"] == updates["SDCA, average after T_0"] / 452
    shown = zerogap("bounds", *line).stdout
    assert all(f"{count:,}" in shown for count in updates.values())
    assert all(row["assumptions"] in shown for row in found["bounds"])


def test_smooth_losses_have_a_last_iterate(zerogap):
    _, updates = report(zerogap, "--n", 100, "--loss", "logistic")
    last = bounds.sdca(100, lam=0.01, eps=1e-3, loss="logistic", output="last")
    assert updates["SDCA, last iterate"] == last.iterations
    assert "Pegasos, average" not in updates
    _, updates = report(zerogap, "--n", 100, "--gamma", 0.5)
    last = bounds.sdca(100, lam=0.01, eps=1e-3, gamma=0.5, output="last")
    assert updates["SDCA, last iterate"] == last.iterations


def test_numbers_from_data(zerogap, npz, numbers):
    found, _ = report(zerogap, npz)
    with np.load(npz) as file:
        norms = np.linalg.norm(file["X"], axis=1)
    assert (found["n"], found["lam"], found["initial"]) == (200, 1 / 200, 1.0)
    assert found["radius"] == pytest.approx(norms.max())
    found, _ = report(zerogap, numbers, "--loss", "squared", "--radius", 9)
    with np.load(numbers) as file:
        assert found["initial"] == pytest.approx(np.mean(file["y"] ** 2) / 2)
    assert found["radius"] == 9


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("", 2, "give the number of rows by --n, or the data"),
        ("--n 10 --loss softmax", 2, "no bound is known for softmax"),
        ("--n 10 --lam 0", 1, "lam must be a positive number"),
        ("--n 10 --radius 0", 1, "radius must be a positive number"),
        ("--n 10 --lam 1e-300", 1, "exceeds 10^15 updates"),
        ("nothing", 1, "nothing: neither a file nor a data set"),
    ],
)
def test_refusals_are_one_line(line, code, text, zerogap):
    outcome = zerogap("bounds", *line.split())
    assert (outcome.exit_code, outcome.stdout) == (code, "")
    assert outcome.stderr.startswith("zerogap bounds: ")
    assert outcome.stderr.count("\n") == 1
    assert text in outcome.stderr

"""Further files as people send them: blanks, quotes, comments, covers, gaps, money to predict."""

import json
import shlex

import numpy as np
import pytest

import zerogap as zg
from cli.test_nasty import N, X, Y, sheet, some, table, write, zipped

P = [1000 + 3 * int(x) for x in X]
EUROS = [f"{p:,}.50".translate(str.maketrans(",.", ".,")) + " €" for p in P]
BLANKS = "".join(f"{x:>8}{k % 7:>4}  {y}\n" for k, (x, y) in enumerate(zip(X, Y, strict=True)))
TRAINS = {  # name: content, options, and what is guessed or noted
    "blanks.txt": ("x z y\n" + BLANKS, "", "separator blanks"),
    "wide.txt": ("       x   z  y\n" + BLANKS, "", "separator blanks"),
    "tabs.txt": ("x  z\ty\n" + BLANKS, "--sep blanks", ""),
    "named.data": (BLANKS, "--names x,z,y", "separator blanks"),
    "single.csv": (
        "'x','z','y'\n" + "".join(f"'a, {x % 3}',1,'{y}'\n" for x, y in zip(X, Y, strict=True)),
        "",
        "quotes '",
    ),
    "after-blanks.csv": (table([f' "{x % 3}, ""b"""' for x in X]), "", ""),
    "csv.xlsx": (table(X), "", ""),
    "csv.parquet": (table(X, ";"), "", "separator semicolon"),
    "mac.zip": (zipped(a=table(X), **{"__MACOSX/._a": "x", ".DS_Store": "x"}), "", ""),
    "marked.csv": (("\ufeff" + table(X)).encode("utf-16-be"), "--encoding utf-16-be", ""),
    "versions.csv": (table([f"1.{x % 4}.{x % 3}" for x in X]), "", ""),
    "dots.csv": (table(some(X, (3, 9), "-")), "--drop-missing", "left out 2 of 40 rows"),
    "dots-target.csv": (
        table(X).replace("yes\n", "1.5\n").replace("no\n", "2.5\n").replace("2.5", "-", 1),
        "--drop-missing --loss squared",
        "left out 1 of 40 rows",
    ),
    "empty-and-gaps.csv": (
        table(some(X, 3, "")).replace("\n", ",\n"),
        "--target y --drop-missing",
        "left out 1 of 40 rows",
    ),
}
REFUSED = {  # name: content, what the message says, and the option in it with which it trains
    "statement.csv": (
        "Konto;DE12\nJahr;2021\n\na;b;c;y\n"
        + "".join(f"{x};1;2;{y}\n" for x, y in zip(X, Y, strict=True)),
        "line 1: 2 cells where most lines have 4",
        "--skip-lines 3",
    ),
    "comment.csv": (
        table(X).replace("\n", "\n# in kg\n", 1),
        "line 2: expected 3 columns",
        "--comment '#'",
    ),
    "capitals.csv": (table(X, target="Paid"), "did you mean --target Paid?", "--target Paid"),
    "cover.xlsx": (
        lambda: sheet([int(x) for x in X], sheet="Data"),
        "this is sheet 'Sheet'",
        "--sheet Data",
    ),
    "cut.jsonl": (
        "".join(json.dumps({"x": int(x), "y": y}) + "\n" for x, y in zip(X, Y, strict=True))
        + '{"x": 1,\n',
        "line 41: is no JSON",
        "--skip-bad-lines",
    ),
}
ASKED = {"capitals.csv": "--target paid", "cover.xlsx": "--target y"}


@pytest.mark.parametrize("name", TRAINS)
def test_trains(zerogap, tmp_path, name):
    content, options, note = TRAINS[name]
    path, out = write(tmp_path, name, content), tmp_path / "m.zg"
    outcome = zerogap("train", path, *shlex.split(options), "--scale", "standard", "--out", out)
    assert outcome.exit_code == 0, outcome.stderr
    assert note in outcome.stderr
    assert "rows" in outcome.stdout
    assert zerogap("certify", out, path).exit_code == 0
    rows = N if "left out" not in note else N - int(note.split()[2])
    missing = ("--drop-missing",) if "--drop-missing" in options else ()
    predicted = zerogap("predict", out, path, *missing)
    assert predicted.exit_code == 0, predicted.stderr
    assert len(predicted.stdout.splitlines()) in (rows, N)
    if missing and "target" not in name:
        assert zerogap("predict", out, path).exit_code == 1
        assert len(predicted.stdout.splitlines()) == rows


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_option_that_helps(zerogap, tmp_path, name):
    content, message, option = REFUSED[name]
    path, asked = write(tmp_path, name, content), shlex.split(ASKED.get(name, ""))
    outcome = zerogap("train", path, *asked)
    assert outcome.exit_code == 1
    assert message in outcome.stderr
    assert option.split()[0] in outcome.stderr
    assert option.split()[1:] == [] or option.split()[1] in outcome.stderr
    outcome = zerogap("train", path, *asked, *shlex.split(option), "--scale", "standard")
    assert outcome.exit_code == 0, outcome.stderr


@pytest.mark.parametrize("cells", [EUROS, [f"{p}円" for p in P], [f"{p} kg" for p in P]])
def test_money_and_quantities_are_predicted(zerogap, tmp_path, cells):
    lines = ["a;b;price", *(f"{x};{x}.5;{c}" for x, c in zip(X, cells, strict=True))]
    path, out = write(tmp_path, "a.csv", "\n".join(lines) + "\n"), tmp_path / "m.zg"
    line = ("train", path, "--target", "price", "--loss", "squared", "--tol", "1e-9", "--out", out)
    assert zerogap(*line, "--scale", "standard", "--lam", "1e-9").exit_code == 0
    found = zg.load(out).predict(path)
    assert found == pytest.approx(np.array(P) + 0.5 * (cells is EUROS), rel=1e-3)
    assert "R2 0.99" in (text := zerogap("predict", out, path).stderr) or "R2 1" in text
    assert zerogap("certify", out, path).exit_code == 0
    store, model = tmp_path / "s", tmp_path / "s.zg"
    line = ("data", "convert", path, store, "--target", "price", "--task", "regression")
    assert zerogap(*line).exit_code == 0
    assert zerogap("train", store, "--loss", "squared", "--out", model).exit_code == 0


def test_rows_to_forget_are_those_of_the_file(zerogap, tmp_path):
    path = write(tmp_path, "a.csv", table(some(X, (3, 9), "-")))
    out, new, left, rows = (tmp_path / name for name in ("a.zg", "b.zg", "b.csv", "rows"))
    assert (
        zerogap("train", path, "--drop-missing", "--scale", "standard", "--out", out).exit_code == 0
    )
    rows.write_text("5\n12\n")
    line = ("--rows", rows, "--data", path, "--out", new, "--left", left)
    assert zerogap("forget", out, *line).exit_code == 0
    lines = path.read_text().splitlines()
    assert left.read_text().splitlines() == [v for k, v in enumerate(lines) if k not in (6, 13)]
    assert zerogap("certify", new, left).exit_code == 0
    rows.write_text("3\n")
    outcome = zerogap("forget", new, *line, "--force")
    assert "row 3 is not one of the 36 rows" in outcome.stderr


def test_reduced_files_keep_comments_and_blanks(zerogap, tmp_path):
    path = write(tmp_path, "a.txt", "x z y\n" + BLANKS.replace("\n", "\n; a remark\n", 1))
    out, new, left, rows = (tmp_path / name for name in ("a.zg", "b.zg", "b.txt", "rows"))
    rows.write_text("1")
    assert zerogap("train", path, "--comment", ";", "--sep", " ", "--out", out).exit_code == 0
    line = ("--rows", rows, "--data", path, "--out", new, "--left", left)
    assert zerogap("forget", out, *line).exit_code == 0
    lines = path.read_text().splitlines()
    assert left.read_text().splitlines() == lines[:3] + lines[4:]


def test_thresholds_and_weights_that_mean_nothing(zerogap, tmp_path):
    path, out = write(tmp_path, "a.csv", table(X)), tmp_path / "m.zg"
    assert zerogap("train", path, "--loss", "logistic", "--out", out).exit_code == 0
    refused = zerogap("predict", out, path, "--threshold", "1.5")
    assert "--threshold is a probability, from 0 to 1, got 1.5" in refused.stderr
    assert "'a=1' names no class" in zerogap("train", path, "--class-weight", "a=1").stderr
    path = write(tmp_path, "w.csv", table([0] * N))
    assert "column 'x': all weights are 0" in zerogap("train", path, "--weight", "x").stderr

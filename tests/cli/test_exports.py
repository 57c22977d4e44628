"""Tables as other programs export them: SAP, banks, databases, R, analytics, sensors, scripts."""

import bz2
import lzma
import shlex

import numpy as np
import pytest

from cli.test_nasty import write

N = 60
RNG = np.random.default_rng(3)
V = RNG.normal(size=N)
C = RNG.integers(0, 3, N)
Y = np.where(V + C - 1 + RNG.normal(size=N) > 0, "yes", "no")


def rows(form, head="v,g,label\n", tail=""):
    """Return lines with v, g and y of each row in them; {comma} is v with a decimal comma."""
    lines = (
        form.format(k=k, v=f"{v:.2f}", comma=f"{v:.2f}".replace(".", ","), g=g, y=y, m=k % 12 + 1)
        for k, (v, g, y) in enumerate(zip(V, C, Y, strict=True))
    )
    return f"{head}{''.join(lines)}{tail}"


RULE = "+----+-------+-------+\n"
SAP = "Tabelle:  MARA\nAngezeigte Felder: 3\n\n---------\n| v | g | label |\n---------\n"
TRAINS = {  # name: content, options, and what is guessed or noted
    "bank.csv": (
        rows('"{m:02d}.{m:02d}.2024";"{comma}";"EUR";"{y}"\n', '"Tag";"Betrag";"W";"label"\n'),
        "",
        "'Tag' holds dates",
    ),
    "sensor.csv": (rows("1700000{k:03d},{v},OK,{y}\n", "time,temp_C,status,label\n"), "", ""),
    "r.csv": (rows('"{k}",{v},"g{g}","{y}"\n', '"","v","g","label"\n'), "", "numbers the rows"),
    "r-table.txt": (
        rows('"{k}" {v} "g{g}" "{y}"\n', '"v" "g" "label"\n'),
        "",
        "separator blanks",
    ),
    "quotes-in-quotes.csv": (rows('{comma};"a ""{g}"";\nb";{y}\n', "v;t;label\n"), "", ""),
    "saved-twice.csv": (
        rows('"{v};""g{g}"";{y}"\n', '"v;g;label"\n'),
        "",
        "quotes around whole lines",
    ),
    "mixed-ends.csv": (rows("{v},g{g},{y}\r\n").replace("yes\r\n", "yes\n"), "", ""),
    "european-times.csv": (
        rows("{m:02d}.{m:02d}.2023 12:{m:02d};{comma};{y}\n", "zeit;v;label\n"),
        "--dates",
        "decimal sign comma",
    ),
    "us-times.csv": (rows("{m}/13/2024 {m}:05:00 AM,{v},{y}\n", "t,v,label\n"), "--dates", ""),
    "zulu.csv": (rows("2024-01-01T{m:02d}:00:00.000Z,{v},{y}\n", "t,v,label\n"), "--dates", ""),
    "huge-numbers.csv": (
        rows("1{k:025d},{v},{y}\n", "id,v,label\n"),
        "",
        "'id' counts as a number",
    ),
    "exponents.csv": (rows("{comma}E+02;{g};{y}\n", "v;g;label\n"), "", "separator semicolon"),
    "analytics.csv": (
        rows(
            '/p{g},"1,0{m:02d}",{m}.5%,{y}\n',
            "# -----\n# All pages\n# 20240101\n# -----\n\nPage,Views,Bounce,label\n",
        ),
        "",
        "comments in 4 lines",
    ),
    "percent.csv": (rows("{m},5 %;{y}\n", "v;label\n"), "", "decimal sign comma"),
    "tabs-and-quotes.tsv": (
        rows('"{v}"\t"g {g}"\t"{y}"\n', '"v"\t"g"\t"label"\n'),
        "",
        "target label",
    ),
    "excel-unicode.txt": (
        rows("{v}\tg{g}\t{y}\r\n", "v\tg\tlabel\r\n").encode("utf-16"),
        "",
        "encoding utf-16",
    ),
    "packed.csv.bz2": (bz2.compress(rows("{v},{g},{y}\n").encode()), "", ""),
    "packed.csv.xz": (lzma.compress(rows("{v},{g},{y}\n").encode()), "", ""),
    "fixed-width.txt": (rows("{v:<8}g{g}   {y}\n", "v       g    label\n"), "", "blanks"),
    "json-cells.csv": (rows('{v},"{{""a"": {g}}}",{y}\n'), "", ""),
    "two-pipes.csv": (rows("{v}||{g}||{y}\n", "v||g||label\n"), "", "separator pipe"),
    "plus.csv": (rows("+{m},{g},{y}\n"), "", ""),
    "two-rows.csv": ("v,label\n1,yes\n2,no\n", "", ""),
    "colons.csv": (rows("{v}:{g}:{y}\n", "v:g:label\n"), "--sep :", ""),
    "hive.txt": (rows("{v}\x01{g}\x01{y}\n", "v\x01g\x01label\n"), "--sep \x01", ""),
}
REFUSED = {  # name: content, what the message says, and the options with which it trains
    "sap.txt": (
        rows("|{comma}|{g}|{y}|\n", SAP, "---------\n"),
        "--sep SIGN",
        "--sep '|' --skip-lines 4 --skip-bad-lines",
    ),
    "psql.txt": (
        rows(" {k} | {v} | {y}\n", " id | v | label\n----+---+---\n", "(60 rows)\n"),
        "--skip-bad-lines",
        "--skip-bad-lines",
    ),
    "mysql.txt": (
        rows("| {k} | {v} | {y} |\n", f"{RULE}| id | v | label |\n{RULE}", RULE),
        "--sep SIGN",
        "--sep '|' --skip-lines 1 --skip-bad-lines",
    ),
    "units.csv": (
        rows("{v},{g},{y}\n", "v,g,label\n[kg],,\n"),
        "line 2, column 'v': '[kg]' among numbers; --missing '[kg]'",
        "--missing '[kg]' --drop-missing",
    ),
    "detection-limit.csv": (
        rows("{v},{g},{y}\n") + "<0.05,1,no\n",
        "--missing '<0.05'",
        "--missing '<0.05' --impute mean",
    ),
    "footer.csv": (
        rows("{v},{g},{y}\n", tail="\nExported by admin\n"),
        "line 63: expected 3 columns",
        "--skip-bad-lines",
    ),
    "end-of-file.csv": (rows("{v},{g},{y}\r\n", tail="\x1a"), "line 62", "--skip-bad-lines"),
    "two-headers.csv": (
        rows("{k},{v},{g},{y}\n", ",2023,2023,\n,v,g,label\n"),
        "--skip-lines 1 if the next line does",
        "--skip-lines 1",
    ),
    "errors.csv": (rows("{v},{g},{y}\n") + "#DIV/0!,1,no\n", "--drop-missing", "--drop-missing"),
    "first.csv": (rows("{y},{v},{g}\n", "label,v,g\n"), "(--target)", "--target label"),
}


def trains(zerogap, path, options):
    outcome = zerogap("train", path, *shlex.split(options), "--scale", "standard")
    assert outcome.exit_code == 0, outcome.stderr
    return outcome


@pytest.mark.parametrize("name", TRAINS)
def test_trains(zerogap, tmp_path, name):
    content, options, note = TRAINS[name]
    assert note in trains(zerogap, write(tmp_path, name, content), options).stderr


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_option_that_helps(zerogap, tmp_path, name):
    content, message, options = REFUSED[name]
    path = write(tmp_path, name, content)
    outcome = zerogap("train", path)
    assert outcome.exit_code == 1
    assert message in outcome.stderr
    trains(zerogap, path, options)


@pytest.mark.parametrize("first", ["INSERT INTO t VALUES (1);\n", "-- MySQL dump 10.13\n"])
def test_scripts_of_sql_are_called_by_their_name(zerogap, tmp_path, first):
    outcome = zerogap("train", write(tmp_path, "dump.sql", first))
    assert "is a script of SQL: save the table as CSV" in outcome.stderr


def test_lines_in_quotes_have_the_cells_inside(tmp_path):
    from zerogap.readers import read

    path = write(tmp_path, "a.csv", '"a;b;y"\n"1;""x,1"";0"\n"2;z;1"\n')
    data = read(path, target="y")
    assert data.feature_names == ("a", "b=x,1", "b=z")
    assert data.X.tolist() == [[1, 1, 0], [2, 0, 1]]

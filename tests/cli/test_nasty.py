"""Nasty files: each trains, or is refused with a message that names the option that helps."""

import datetime
import gzip
import io
import json
import shlex
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

N = 40
RNG = np.random.default_rng(0)
X = RNG.integers(10, 999, N)
Y = ["yes" if x + 200 * RNG.standard_normal() > 500 else "no" for x in X]
DAYS = [f"{1 + k % 28:02d}/{1 + k % 12:02d}/{2020 + k % 3}" for k in range(N)]


def table(cells, sep=",", head="x", target="y", before="", rows=None):
    """Return a table of one column of these cells, a plain one and the target."""
    lines = [sep.join((head, "z", target))]
    lines += [
        sep.join((str(c), str(k % 7), y)) for k, (c, y) in enumerate(zip(cells, Y, strict=True))
    ]
    return before + "\n".join(lines) + "\n"


def sheet(cells, **more):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    if "sheet" in more:
        book.active.append(["a cover"])
        book.create_sheet(more["sheet"])
    page = book[more["sheet"]] if "sheet" in more else book.active
    if "title" in more:
        page.append([more["title"]])
    page.append(["x", "z", "y"])
    for k, (cell, y) in enumerate(zip(cells, Y, strict=True)):
        page.append([cell, k % 7, y])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def arrow():
    return pa.csv.read_csv(io.BytesIO(table(X).encode()))


def parquet():
    file = io.BytesIO()
    pq.write_table(arrow(), file)
    return file.getvalue()


def feather():
    file = io.BytesIO()
    pa.feather.write_feather(arrow(), file, compression="uncompressed")
    return file.getvalue()


def stream_of_arrow():
    file = io.BytesIO()
    with pa.ipc.new_stream(file, arrow().schema) as writer:
        writer.write_table(arrow())
    return file.getvalue()


def lines_of_json():
    rows = ({"x": int(x), "y": y} for x, y in zip(X, Y, strict=True))
    return "".join(json.dumps(row) + "\n" for row in rows)


def some(cells, k, value):
    """Return cells with some of them replaced."""
    return [value if j in np.atleast_1d(k) else c for j, c in enumerate(cells)]


def zipped(**files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.csv", content)
    return file.getvalue()


def array_of_json():
    return "[" + ",\n".join(lines_of_json().splitlines()) + "]"


MONTHS = ["Jan", "Feb", "March", "Apr"]
COMMA = [f"{x / 10:.1f}".replace(".", ",") for x in X]
GROUPED = [f"1,{x:03d}" for x in X]
TRAINS = {  # name: content, and what is guessed or noted
    "plain.csv": (table(X), "guessed target y"),
    "semicolon.csv": (table(X, ";"), "separator semicolon"),
    "tab.csv": (table(X, "\t"), "separator tab"),
    "pipe.csv": (table(X, "|"), "separator pipe"),
    "comma.tsv": (table(X), "separator comma"),
    "decimal.csv": (table(COMMA, ";"), "decimal sign comma"),
    "quoted-decimal.csv": (table([f'"{c}"' for c in COMMA]), "decimal sign comma"),
    "german.csv": (table([f"1.{x:03d},50" for x in X], ";"), "decimal sign comma"),
    "latin.csv": (table(some(X, (), 0), head="Größe").encode("latin-1"), "encoding cp1252"),
    "late-latin.csv": (
        (table(X) + "5,1,yes\n" * 90_000 + '5,1,"süß"\n').encode("latin-1"),
        "encoding cp1252",
    ),
    "utf16.csv": (table(X).encode("utf-16"), "encoding utf-16"),
    "bom.csv": (("\ufeff" + table(X)).encode(), ""),
    "crlf.csv": (table(X).replace("\n", "\r\n"), ""),
    "excel.csv": (table(X, ";", before="sep=;\n"), ""),
    "blank-lines.csv": ("\n\n" + table(X).replace("\n", "\n\n"), ""),
    "thousands.csv": (table([f'"{c}"' for c in GROUPED]), ""),
    "percent.csv": (table([f"{x / 10}%" for x in X]), ""),
    "dollars.csv": (table([f"${x}.00" for x in X]), ""),
    "euros.csv": (table([f"{x},50 €" for x in X], ";"), ""),
    "negative.csv": (table([f"({x})" for x in X]), ""),
    "swiss.csv": (table([f"1'{x:03d}" for x in X]), ""),
    "thin.csv": (table([f"1\u202f{x:03d}" for x in X]), ""),
    "spaces.csv": (table([f"  {x} " for x in X]), ""),
    "iso.csv": (table([f"2020-01-{1 + k % 28:02d}" for k in range(N)]), "'x' holds dates"),
    "dmy.csv": (table(DAYS), "'x' holds dates: --dates"),
    "flags.csv": (table(["Ja" if x % 2 else "Nein" for x in X]), ""),
    "missing-text.csv": (table(some(["a", "b"] * (N // 2), (1, 5), "?")), ""),
    "empty-column.csv": (table([""] * N), "'x' is empty"),
    "same-names.csv": (table(X, head="z"), "two columns named 'z'"),
    "index.csv": (table(range(N), head=""), "numbers the rows"),
    "trailing.csv": (table(X).replace("\n", ",\n"), "is empty"),
    "r-names.csv": ("x,y\n" + "".join(f"r{k},{X[k]},{Y[k]}\n" for k in range(N)), ""),
    "ids.csv": (table([f"u{k}" for k in range(N)]), "becomes 40 categories in 40 rows: --min"),
    "quoted-lines.csv": (table([f'"a\n{x % 3}"' for x in X]), ""),
    "packed.csv.gz": (gzip.compress(table(X).encode()), ""),
    "no-suffix": (table(X), ""),
    "book.xlsx": (lambda: sheet([int(x) for x in X]), ""),
    "zipped.zip": (zipped(a=table(X)), ""),
    "utf16-unmarked.csv": (table(X).encode("utf-16-le"), "encoding utf-16-le"),
    "utf32.csv": (table(X).encode("utf-32"), "encoding utf-32"),
    "carriage-returns.csv": (table(X).replace("\n", "\r"), ""),
    "comments.csv": (table(X, before="# from the office\n# 2024\n"), "comments in 2 lines"),
    "scientific.csv": (table([f"{x:.2E}" for x in X]), ""),
    "huge.csv": (table([f"{x}e300" for x in X]), ""),
    "minus.csv": (table([f"\u2212{x}" for x in X]), ""),
    "blank-names.csv": (table(X, head=" x "), ""),
    "unicode.csv": (table(X, head="größe 高", target="y").replace("yes", "да"), ""),
    "pandas-index.csv": (table(range(N), head="Unnamed: 0"), "numbers the rows"),
    "codes.csv": (table([f"{x:06d}" for x in X], head="zip"), "leading zeros, and counts as a"),
    "keys.csv": (table([9007199254740993 + x for x in X], head="id"), "--id id or --drop id"),
    "zones.csv": (table([f"2021-03-01T{k % 24:02d}:00+02:00" for k in range(N)]), "holds dates"),
    "months.csv": (table([f"{1 + k % 28} {MONTHS[k % 4]} 2021" for k in range(N)]), "holds dates"),
    "afternoons.csv": (table([f"{d} {1 + k % 12}:30 PM" for k, d in enumerate(DAYS)]), "dates"),
    "capitals.csv": (table(X).replace("yes", "Yes", 3), "differ in capitals only: Yes, yes"),
    "quoted-sep.csv": (table([f'"a;{x % 3},b"' for x in X]), ""),
    "t.json": (array_of_json, ""),
    "lines.json": (lines_of_json, ""),
    "t.parquet": (parquet, ""),
    "t.feather": (feather, ""),
    "t.jsonl": (lines_of_json, ""),
    "units.csv": (table([f"{x / 10:.1f} kg" for x in X]), ""),
    "degrees.csv": (table([f"{x},5°C" for x in X], ";"), "decimal sign comma"),
    "two-units.csv": (table([f"{x} {'g' if x % 2 else 'kg'}" for x in X]), "(numbers in g, kg: wr"),
    "kroner.csv": (table([f"{x},50 kr." for x in X], ";"), ""),
    "rupees.csv": (table([f'"Rs. {x % 9 + 1},23,{x:03d}"' for x in X]), ""),
    "swiss-francs.csv": (table([f"CHF {x}.-" for x in X]), ""),
    "minus-behind.csv": (table([f"{x}-" for x in X]), ""),
    "hours.csv": (table([f"{k % 24}:{k + 10}" for k in range(N)]), ""),
    "hours-pm.csv": (table([f"{1 + k % 12}:30 PM" for k in range(N)]), ""),
    "hex.csv": (table([hex(x) for x in X]), ""),
    "weeks.csv": (table([f"2023-W{1 + k:02d}" for k in range(N)]), "'x' holds dates"),
    "quarters.csv": (table([f"Q{1 + k % 4} 2023" for k in range(N)]), "'x' holds dates"),
    "year-months.csv": (table([f"2023-{1 + k % 12:02d}" for k in range(N)]), "'x' holds dates"),
    "german-months.csv": (table([f"{1 + k % 28}. März 2021" for k in range(N)]), "holds dates"),
    "mails.csv": (table([f'"Wed, {k % 28 + 1} Mar 2023 09:00:00 GMT"' for k in range(N)]), "dates"),
    "zone-names.csv": (table([f"2021-03-01 {k % 24:02d}:00 CEST" for k in range(N)]), "dates"),
    "date-gaps.csv": (table(some(DAYS, 3, "unknown")), "'x' holds dates"),
    "truths.csv": (table([["yes", "TRUE", "n", "0", "False"][k % 5] for k in range(N)]), ""),
    "unnamed.csv": (table(X, head="").replace(",z,", ",,"), ""),
    "one-of-a-class.csv": (
        table(X) + table(X).split("\n", 1)[1] + "5,1,sum\n",
        "'sum' in one row only",
    ),
    "mixed.jsonl": (lambda: lines_of_json().replace(f": {X[3]}", f': "{X[3]}"'), ""),
    "columns.json": (lambda: json.dumps({"x": X.tolist(), "y": Y}), ""),
    "split.json": (
        lambda: json.dumps({"columns": ["x", "y"], "data": list(zip(X.tolist(), Y, strict=True))}),
        "",
    ),
    "rows.json": (lambda: f'{{"data": {array_of_json()}, "count": {N}}}', ""),
    "stream.arrows": (stream_of_arrow, ""),
    "durations.xlsx": (lambda: sheet([datetime.timedelta(hours=int(x)) for x in X]), ""),
}
REFUSED = {  # name: content, what the message says, and the option in it with which it trains
    "missing.csv": (table(some(X, (3, 9), "")), "2 of 40 rows, first in line 5", "--impute median"),
    "missing-drop.csv": (table(some(X, 3, "NA")), "1 of 40 rows", "--drop-missing"),
    "missing-dash.csv": (table(some(X, 3, "-")), "first in line 5", "--impute median"),
    "missing-column.csv": (table(some(X, 3, "")), "first in line 5", "--drop x"),
    "stray.csv": (table(some(X, 7, "oops")), "line 9, column 'x': 'oops'", "--category x"),
    "no-target.csv": (table(X, target="w"), "target column (--target)", "--target w"),
    "headless.csv": (table(X).split("\n", 1)[1], "line 1: holds the number", "--no-header"),
    "short-line.csv": (table(X) + "5,1\n", "line 42: expected 3 columns", "--skip-bad-lines"),
    "unclear.csv": (table(GROUPED, ";"), "may be 1", "--decimal ,"),
    "infinite.csv": (table(some(X, 3, "inf")), "line 5, column 'x': infinity", "--missing=inf"),
    "target-gap.csv": (table(X) + "5,1,\n", "line 42, column 'y': no target", "--drop-missing"),
    "only-dates.csv": (
        "d,y\n" + "".join(f"{d},{y}\n" for d, y in zip(DAYS, Y, strict=True)),
        "no column besides the target: column 'd' holds dates",
        "--dates",
    ),
    "two-moneys.csv": (table(some([f"${x}" for x in X], 3, "€5")), "$ and €", "--drop x"),
    "missing-words.csv": (
        table(some(X, (1, 2, 3, 4, 5, 6), "unknown")),
        "6 of 40 rows",
        "--impute mean",
    ),
    "missing-null.csv": (table(some(X, 3, "\\N")), "1 of 40 rows", "--drop-missing"),
    "infinity.csv": (table(some(X, 3, "-Infinity")), "line 5, column 'x'", "--missing=inf"),
    "title.csv": (
        table(X, before="Sales of March,,\n\n"),
        "line 1: one cell, 'Sales of March', where most lines have 3",
        "--skip-lines 1",
    ),
    "total.csv": (
        table(X) + "Total,40,\n",
        "line 42, column 'x': 'Total' among numbers",
        "--missing Total",
    ),
    "footer.csv": (table(X) + "40 rows\n", "line 42: expected 3 columns", "--skip-bad-lines"),
    "header-twice.csv": (table(X) + table(X), "line 42, column 'x': 'x' among", "--missing x"),
    "commas.csv": (
        table(COMMA),
        "3 names and 4 cells in each line",
        "--names a,b,z,y --skip-lines 1",
    ),
    "less-than.csv": (table(some(X, (3, 4), "<5")), "'<5' among numbers", "--missing '<5'"),
    "title.xlsx": (
        lambda: sheet(list(map(int, X)), title="Sales of March"),
        "row 1: one cell, 'Sales of March', where most rows have 3",
        "--skip-lines 1",
    ),
    "gap.xlsx": (
        lambda: sheet(some(list(map(int, X)), 3, None)),
        "first in row 5",
        "--impute median",
    ),
}
ALSO = {  # what the refused ones need besides the option
    "headless.csv": "--target column3",
    "infinite.csv": "--impute mean",
    "infinity.csv": "--impute mean",
    "total.csv": "--drop-missing",
    "header-twice.csv": "--drop-missing",
    "less-than.csv": "--drop-missing",
}


def write(tmp_path, name, content):
    content = content() if callable(content) else content
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", TRAINS)
def test_trains(zerogap, tmp_path, name):
    content, note = TRAINS[name]
    path, out = write(tmp_path, name, content), tmp_path / "m.zg"
    outcome = zerogap("train", path, "--scale", "standard", "--out", out)
    assert outcome.exit_code == 0, outcome.stderr
    assert note in outcome.stderr
    assert zerogap("certify", out, path).exit_code == 0
    predicted = zerogap("predict", out, path)
    assert predicted.exit_code == 0, predicted.stderr
    assert "accuracy" in predicted.stderr


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_option_that_helps(zerogap, tmp_path, name):
    content, message, option = REFUSED[name]
    path, out = write(tmp_path, name, content), tmp_path / "m.zg"
    outcome = zerogap("train", path)
    assert outcome.exit_code == 1
    assert message in outcome.stderr
    assert option in outcome.stderr or option.split()[0] in outcome.stderr
    line = shlex.split(f"{option} {ALSO.get(name, '')}")
    outcome = zerogap("train", path, *line, "--scale", "standard", "--out", out)
    assert outcome.exit_code == 0, outcome.stderr
    assert zerogap("certify", out, path).exit_code == 0


def test_a_copy_of_the_target_is_no_feature_by_accident(zerogap, tmp_path):
    path = write(tmp_path, "a.csv", table(X % 2, head="y"))
    outcome = zerogap("train", path, "--target", "y")
    assert outcome.exit_code == 1
    assert "two columns named 'y', the target: --drop 'y (2)'" in outcome.stderr
    assert zerogap("train", path, "--target", "y", "--drop", "y (2)").exit_code == 0


def test_a_date_among_others_that_is_none(zerogap, tmp_path):
    path = write(tmp_path, "a.csv", table(some(DAYS, 3, "soon")))
    outcome = zerogap("train", path, "--dates")
    assert "line 5, column 'x': 'soon' among dates; --missing soon takes it" in outcome.stderr
    assert zerogap("train", path, "--dates", "--missing", "soon", "--drop-missing").exit_code == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("two.zip", zipped(a=table(X), b=table(X)), "a zip of 2 files (a.csv, b.csv): unpack"),
        ("zeros.csv", table(X).encode().replace(b"7", b"\0"), "holds zero bytes"),
        (
            "old.xls",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99),
            "old spreadsheet (.xls): save",
        ),
        ("page.csv", "<html><table><tr><td>1", "is a web page"),
        ("scan.csv", b"%PDF-1.4\n%\xe2\xe3", "is a PDF"),
        ("t.csv.zst", b"\x28\xb5\x2f\xfd" + bytes(40), "is damaged or cut short"),
        ("t.arff", "@RELATION a\n@attribute x numeric\n", "is an ARFF file: save"),
        ("t.dta", b"<stata_dta><header>" + bytes(40), "is a file of Stata: save"),
        ("nested.json", '[{"x": {"a": 1}, "y": 1}, {"x": {"a": 2}, "y": 0}]', "(--drop x)"),
        ("empty.csv", "", "is empty"),
        ("blank.csv", "\n \n\n", "is empty"),
        ("header.csv", "x,y\n", "has no rows"),
        ("one-row.csv", "x,y\n1,yes\n", "the target 'y' is 'yes' in the only row"),
        ("one-class.csv", "x,y\n1,yes\n2,yes\n", "needs two classes: choose another column"),
        ("one-column.csv", "y\nno\nyes\n", "no column besides the target"),
        ("words.txt", "to be or not to be\n", "neither svmlight nor a table"),
    ],
)
def test_what_is_no_table_is_called_by_its_name(zerogap, tmp_path, name, content, message):
    outcome = zerogap("train", write(tmp_path, name, content))
    assert outcome.exit_code == 1
    assert message in outcome.stderr
    assert "np." not in outcome.stderr


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1,037", "2,000,000", "-3"], [1037, 2_000_000, -3]),
        (["5%", "12.5 %", "0.5"], [0.05, 0.125, 0.5]),
        (["$3.00", "($4.50)", "-$1"], [3, -4.5, -1]),
        (["1e3", "+.5", "7."], [1000, 0.5, 7]),
    ],
)
def test_numbers_are_what_people_mean(cells, values):
    from zerogap.readers.cells import numbers

    found = numbers(pa.array(cells), ".")
    assert found.values == pytest.approx(values)
    assert not found.bad.any()


@pytest.mark.parametrize(
    ("cells", "order", "expected"),
    [
        (["31/12/2020", "01/02/2021"], "dmy", ["2020-12-31", "2021-02-01"]),
        (["12/31/2020", "01/02/2021"], "mdy", ["2020-12-31", "2021-01-02"]),
        (["2020-02-29", "1969-12-31"], "ymd", ["2020-02-29", "1969-12-31"]),
        (["29.2.2020", "1.1.70"], "dmy", ["2020-02-29", "1970-01-01"]),
        (
            ["29 Feb 2020", "3rd September 1999", "31-DEC-69"],
            "ymd",
            "2020-02-29 1999-09-03 2069-12-31",
        ),
        (["Feb 29, 2020", "May 3 1999"], "ymd", "2020-02-29 1999-05-03"),
    ],
)
def test_dates_are_days(cells, order, expected):
    from zerogap.readers.dates import dates

    found = dates(pa.array(cells), order)
    days = found.days
    assert not found.bad.any()
    expected = expected.split() if isinstance(expected, str) else expected
    assert days.tolist() == np.array(expected, dtype="datetime64[D]").astype(int).tolist()
    assert dates(pa.array(["30/02/2020", "2021-02-29"]), order).bad.all()


def test_clocks_with_zones_and_halves_of_the_day():
    from zerogap.readers.dates import dates

    cells = ["2021-03-01 01:30+02:00", "2021-02-28T23:30Z", "2021-02-28 11:30 pm"]
    assert np.ptp(dates(pa.array(cells), "ymd").days) == 0.0
    midnight = dates(pa.array(["2021-03-01 12:15 a.m.", "2021-03-01 13:15 AM"]), "ymd")
    assert midnight.days[0] % 1 == pytest.approx(1 / 96)
    assert midnight.bad.tolist() == [False, True]


def test_tables_by_pieces_are_those_in_memory(zerogap, tmp_path, monkeypatch):
    """A store, and predictions some rows after others, see the same features."""
    from zerogap.readers import read
    from zerogap.readers.conversion import convert
    from zerogap.readers.options import TableOptions

    rng = np.random.default_rng(5)
    lines = ["when;price;colour;note;y"]
    for k in range(3000):
        price = (
            ""
            if rng.random() < 0.05
            else f"{rng.gamma(2, 900):,.2f}".translate(str.maketrans(",.", ".,"))
        )
        text = " ".join(rng.choice(["good", "bad", "blue", "box"], 3))
        lines.append(
            f"{DAYS[k % N]};{price};{rng.choice(['a', 'b', 'rare' if k < 9 else 'c'])};"
            f"{text};{k % 2}"
        )
    path = write(tmp_path, "a.csv", "\n".join(lines) + "\n")
    options = TableOptions(dates=True, impute="mean", min_count=10, text=("note",))
    whole = read(path, options=options)
    monkeypatch.setattr("zerogap.readers.tables.PIECE", 20_000)
    store = convert(path, tmp_path / "s", options=options, dtype="float64")
    assert store.feature_names == whole.feature_names
    assert store.encoder["columns"] == [c.to_json() for c in whole.encoder.columns]
    assert store.n_samples == 3000
    rows = np.vstack([part.X.toarray() for _, part in store.stream()])
    order = [np.lexsort(M.T) for M in (rows, whole.X.toarray())]
    assert rows[order[0]] == pytest.approx(whole.X.toarray()[order[1]], rel=1e-12)

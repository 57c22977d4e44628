"""Tables of banks, surveys, spreadsheets and other programs: what they do to cells and lines."""

import datetime
import gzip
import io
import json
import lzma
import shlex
import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zerogap as zg
from cli.test_exports import C, N, V, Y, rows
from cli.test_nasty import write

DAYS = [datetime.date(2023, 1, 1) + datetime.timedelta(days=11 * k) for k in range(N)]
SURVEY = "start,age,colour,label\n"
ING = "Umsätze;Datei vom 01.02.2024\n\nIBAN;DE12\nSaldo;1.234,56;EUR\n\nTag;Betrag;W;Name;label\n"
QUALTRICS = SURVEY + '"Start","How old?","Colour?",""\n"{""id"":""a""}","{""id"":""b""}","",""\n'


def dated(form, head="d,v,label\n"):
    """Return lines with a date of each row, written like this."""
    cells = (form(day) for day in DAYS)
    return head + "".join(f"{c},{v:.2f},{y}\n" for c, v, y in zip(cells, V, Y, strict=True))


def book(fill):
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.Workbook()
    fill(made.active)
    file = io.BytesIO()
    made.save(file)
    return file.getvalue()


def merged(page):
    page.append(["group", "v", "label"])
    for k in range(N):
        page.append(["north" if k == 0 else "south" if k == 30 else None, V[k], Y[k]])
    page.merge_cells("A2:A31")
    page.merge_cells("A32:A61")


def formulas(page):
    page.append(["v", "twice", "label"])
    for k in range(N):
        page.append([V[k], f"=2*A{k + 2}", Y[k]])


def units(page):
    page.append(["v", "g", "label"])
    page.append(["[kg]", "[1]", None])
    for k in range(N):
        page.append([V[k], int(C[k]), Y[k]])


def two_rows(page):
    page.append(["person", None, "result"])
    page.append(["v", "g", "label"])
    for k in range(N):
        page.append([V[k], f"g{C[k]}", Y[k]])


def parquet(**columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns | {"label": Y}), file)
    return file.getvalue()


def archive():
    file, content = io.BytesIO(), rows("{v},{g},{y}\n").encode()
    with tarfile.open(fileobj=file, mode="w:gz") as made:
        part = tarfile.TarInfo("t.csv")
        part.size = len(content)
        made.addfile(part, io.BytesIO(content))
    return file.getvalue()


def document(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name in names:
            made.writestr(name, "<a/>")
    return file.getvalue()


def wide(text):
    return text.translate({ord("0") + k: chr(0xFF10 + k) for k in range(10)})


PLAIN = rows("{v},{g},{y}\n")
JSON = [json.dumps({"v": v, "label": y}) for v, y in zip(V, Y, strict=True)]
CODED = np.where(np.arange(N) % 8 == 0, -999.0, V)
TRAINS = {  # name: content, options, and what is guessed or noted
    "zst.csv.zst": (pa.compress(PLAIN.encode(), "zstd", asbytes=True), "", ""),
    "lz4.csv.lz4": (pa.compress(PLAIN.encode(), "lz4", asbytes=True), "", ""),
    "old.csv.lzma": (lzma.compress(PLAIN.encode(), lzma.FORMAT_ALONE), "", ""),
    "a-sheet-called.csv": (lambda: book(units), "--skip-below 1", ""),
    "merged.xlsx": (lambda: book(merged), "", ""),
    "formulas.xlsx": (lambda: book(formulas), "", "60 formulas have no values in the file"),
    "escaped.csv": (rows(r'{v},"the \"{g}\", say",{y}' "\n"), "", "in cells after backslashes"),
    "commas.jsonl": (",\n".join(JSON) + ",\n", "", ""),
    "bytes.parquet": (parquet(v=V, g=pa.array([b"a", b"b"] * 30)), "", ""),
    "forms.csv": (dated(lambda d: f"{d:%Y/%m/%d} 2:05:06 PM GMT+1"), "--dates", ""),
    "scripts.csv": (
        dated(lambda d: f"{d:%a %b %d %Y} 14:05:06 GMT+0530 (IST)"),
        "--dates",
        "",
    ),
    "uhr.csv": (dated(lambda d: f'"{d:%d.%m.%Y}, 14:05 Uhr"'), "--dates", ""),
    "japanese-dates.csv": (dated(lambda d: f"{d.year}年{d.month}月{d.day}日"), "--dates", ""),
    "two-signs.csv": (
        rows("{v};{g};{y}\n", "v;g;label\n").replace(".", ",", 25),
        "",
        "(numbers with decimal points and with commas: write them with one sign)",
    ),
    "stopwatch.csv": (rows("00:{m:02d}:07.25,{g},{y}\n"), "", ""),
    "wide-digits.csv": (dated(lambda d: wide(f"{d:%Y-%m-%d}")), "--dates", ""),
    "two-orders.csv": (
        dated(lambda d: f"{d:%d/%m/%Y}" if d.day % 2 else f"{d:%m/%d/%Y}"),
        "",
        "(dates in several orders: write them as 2021-03-31)",
    ),
    "compact.csv": (dated(lambda d: f"{d:%Y%m%d}"), "", "'d' holds dates such as 20230101"),
    "coded.csv": (
        "v,label\n" + "".join(f"{v},{y}\n" for v, y in zip(CODED, Y, strict=True)),
        "",
        "'v' is -999 in 8 rows, which may mean that there is no value: --missing=-999",
    ),
    "unknown.csv": (
        PLAIN.replace("yes", "unknown", 3),
        "",
        "is 'unknown' in 3 rows, a class like others: --missing unknown with --drop-missing",
    ),
    "many.csv": (rows("{v},{g},{k}\n"), "", "has 60 classes in 60 rows: --target NAME chooses"),
}
REFUSED = {  # name: content, what the message says, and the options with which it trains
    "ing.csv": (
        (ING + "".join(f"0{k % 9 + 1}.02.24;{k},5;EUR;A;{y}\n" for k, y in enumerate(Y))).encode(
            "cp1252"
        ),
        "--skip-lines 5 passes over it",
        "--skip-lines 5",
    ),
    "qualtrics.csv": (
        rows("2023-01-{m:02d} 10:11:12,{m},c{g},{y}\n", QUALTRICS),
        "line 2, column 'age': 'How old?' among numbers, as are '{\"id\":\"b\"}'; --missing",
        "--skip-below 2",
    ),
    "units.xlsx": (lambda: book(units), "--skip-below 1 passes over it", "--skip-below 1"),
    "monkey.csv": (
        rows("{k},{m},,{y}\n", "id,How old?,,label\n,Open-Ended Response,red,\n"),
        "--skip-below 1",
        "--skip-below 1",
    ),
    "quoted-lines.csv": (
        rows("c{g},{v},{y}\n", "g,v,label\n", '"a ,1,no\nc1,2,yes\nc1,3,no\nb",1,yes\n'),
        "line 62, column 'g': a quote is opened there, and 4 lines are one cell: --quote none",
        "--quote none",
    ),
    "never-closed.csv": (
        rows("c{g},{v},{y}\n", "g,v,label\n", '"a,1,no\nc1,2,yes\nc1,3,no\n'),
        "line 62: expected 3 columns",
        "--quote none",
    ),
    "zeros.csv": (
        PLAIN.replace("\n", "\0\n", 3).replace("label\0", "label"),
        "line 2: holds zero bytes: the file is damaged (--skip-bad-lines leaves such lines out)",
        "--skip-bad-lines",
    ),
    "zeros-behind.csv": (PLAIN + "\0" * 99, "line 62: holds zero bytes", "--skip-bad-lines"),
    "cyrillic.csv": (
        rows("{v},{g},{y}\n", "рост,цвет красный,label\n").encode("cp1251"),
        "line 1: is text in an encoding that cannot be guessed: give --encoding, as cp1251",
        "--encoding cp1251",
    ),
    "japanese.csv": (
        rows("{v},赤色{g},{y}\n", "身長,色,label\n").encode("shift_jis"),
        "--encoding",
        "--encoding shift_jis",
    ),
    "mac.csv": (rows("{v},{g},{y}\n", "Größe,g,label\n").encode("mac-roman"), "mac-roman", ""),
    "infinite.parquet": (
        parquet(v=np.where(np.arange(N) % 9 == 0, np.inf, V)),
        "row 1, column 'v': infinity",
        "--missing=inf --impute median",
    ),
    "target-text.csv": (
        rows("{g},{v}\n", "g,price\n").replace(f"{V[8]:.2f}\n", "high\n"),
        "line 10, column 'price': 'high' among numbers; --missing high takes",
        "--missing high --drop-missing",
    ),
    "strays.csv": (
        rows("{v},{g},{y}\n", tail="low,1,no\nhigh,1,no\n"),
        "'low' among numbers, as are 'high'; --missing low --missing high take them for missing",
        "--missing low --missing high --drop-missing",
    ),
    "label-first.jsonl": (
        "\n".join(json.dumps({"label": y, "v": v}) for v, y in zip(V, Y, strict=True)),
        "its columns are label, v; --target label takes that one",
        "--target label",
    ),
    "two-rows-of-names.xlsx": (
        lambda: book(two_rows),
        "--skip-lines 1 that they follow",
        "--skip-lines 1",
    ),
    "lab.txt": (rows("{v};{g};{y}\n", "% lab\n%\nv;g;label\n"), "--comment SIGN", "--comment %"),
    "empty-rows.csv": (PLAIN + ",,\n" * 9, "no value in 9 of 69", "--impute mean --drop-missing"),
    "short-names.csv": (
        rows("{m},{v},{y}\n", "v,label\n"),
        "--names A,B,... --skip-lines 1 names all columns",
        "--names a,b,label --skip-lines 1",
    ),
}
ALSO = {"target-text.csv": "--target price --loss squared", "mac.csv": "--encoding mac-roman"}


@pytest.mark.parametrize("name", TRAINS)
def test_trains(zerogap, tmp_path, name):
    content, options, note = TRAINS[name]
    path, out = write(tmp_path, name, content), tmp_path / "m.zg"
    line = (*shlex.split(options), "--scale", "standard", "--out", out)
    outcome = zerogap("train", path, *line)
    assert outcome.exit_code == 0, outcome.stderr
    assert note in outcome.stderr
    assert "Warning" not in outcome.stderr
    assert zerogap("certify", out, path).exit_code == 0
    assert len(zerogap("predict", out, path).stdout.splitlines()) == N


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_option_that_helps(zerogap, tmp_path, name):
    content, message, options = REFUSED[name]
    path, out = write(tmp_path, name, content), tmp_path / "m.zg"
    also = shlex.split(ALSO.get(name, ""))
    outcome = zerogap("train", path, *(also if "--target" in also else ()))
    assert outcome.exit_code == 1
    assert message in outcome.stderr
    line = (*shlex.split(options), *also, "--scale", "standard", "--out", out)
    outcome = zerogap("train", path, *line)
    assert outcome.exit_code == 0, outcome.stderr
    assert zerogap("certify", out, path).exit_code == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.csv.zst", pa.compress(PLAIN.encode(), "zstd", asbytes=True)[:-9], "cut short"),
        ("twice.csv.gz", gzip.compress(gzip.compress(b"a,b\n")), "is packed twice: unpack it once"),
        ("t.tar.gz", archive(), "is a tar archive: unpack"),
        (
            "t.ods",
            document("mimetype", "content.xml"),
            "is an OpenDocument file: save its sheet as",
        ),
        (
            "t.docx",
            document("[Content_Types].xml", "word/document.xml"),
            "is a Word document: save",
        ),
        ("empty.zip", b"PK\x05\x06" + bytes(18), "is an empty zip"),
        ("array.csv", b"\x93NUMPY\x01\0", "is one array of NumPy"),
    ],
)
def test_what_is_no_table_is_called_by_its_name(zerogap, tmp_path, name, content, message):
    outcome = zerogap("train", write(tmp_path, name, content))
    assert outcome.exit_code == 1
    assert message in outcome.stderr


def test_merged_cells_have_one_value_and_rows_their_numbers(tmp_path):
    from zerogap.readers import DataError, TableOptions, read

    def gap(page):
        units(page)
        page.delete_rows(2)
        page["A40"] = None
        page.insert_rows(5)  # an empty row, which counts

    data = read(write(tmp_path, "a.xlsx", book(merged)))
    assert data.feature_names == ("group=north", "group=south", "v")
    assert data.X[:, 0].tolist() == [1.0] * 30 + [0.0] * 30
    with pytest.raises(DataError, match="in 1 of 60 rows, first in row 41:"):
        read(write(tmp_path, "b.xlsx", book(gap)))
    data = read(write(tmp_path, "c.xlsx", book(units)), options=TableOptions(skip_below=1))
    assert data.X[:, 0] == pytest.approx(V, rel=1e-14)


def test_minus_999_is_missing_wherever_numbers_are_numbers(zerogap, tmp_path):
    path, out = write(tmp_path, "a.parquet", parquet(v=CODED, g=C)), tmp_path / "m.zg"
    line = ("train", path, "--missing=-999", "--out", out)
    assert "no value in 8 of 60 rows, first in row 1:" in zerogap(*line).stderr
    assert "left out 8 of 60 rows" in zerogap(*line, "--drop-missing").stderr
    assert zerogap(*line, "--impute", "median").exit_code == 0
    model = zg.load(out)
    assert model.feature_names_in_.tolist() == ["v", "v missing", "g"]
    X = model.encoder_.features_of(path)
    assert X[:, 1].tolist() == [float(k % 8 == 0) for k in range(N)]


def test_lines_below_the_names_stay_where_rows_are_taken_out(zerogap, tmp_path):
    content = rows("2023-01-{m:02d} 10:11:12,{m},c{g},{y}\n", QUALTRICS)
    path, out = write(tmp_path, "a.csv", content), tmp_path / "m.zg"
    assert zerogap("train", path, "--skip-below", 2, "--out", out).exit_code == 0
    (tmp_path / "rows.txt").write_text("1\n3\n")
    new, left = tmp_path / "n.zg", tmp_path / "left.csv"
    line = ("--rows", tmp_path / "rows.txt", "--data", path, "--out", new, "--left", left)
    outcome = zerogap("forget", out, *line)
    assert outcome.exit_code == 0, outcome.stderr
    assert left.read_text().startswith(QUALTRICS)
    assert len(left.read_text().splitlines()) == len(content.splitlines()) - 2
    assert zerogap("certify", new, left).exit_code == 0


def test_a_parquet_file_without_rows_has_no_traceback(zerogap, tmp_path):
    none = pa.table({"v": pa.array([], pa.float64()), "label": pa.array([], pa.string())})
    pq.write_table(none, tmp_path / "a.parquet")
    for command in (("train",), ("data", "convert")):
        more = (tmp_path / "store",) if command[0] == "data" else ()
        outcome = zerogap(*command, tmp_path / "a.parquet", *more)
        assert outcome.exit_code == 1
        assert outcome.stderr.endswith("a.parquet: has no rows\n")


def test_one_class_in_a_store_is_called_by_its_name(zerogap, tmp_path):
    path, store = tmp_path / "a.csv", tmp_path / "store"
    path.write_text("v,label\n1,yes\n2,yes\n")
    assert zerogap("data", "convert", path, store).exit_code == 0
    assert zerogap("train", store).stderr.endswith("has only one class, 'yes'\n")


def test_impute_and_drop_missing_fill_features_in_and_leave_rows_without_target_out(
    zerogap, tmp_path
):
    lines = [f"{'' if k % 7 == 0 else v},{'' if k % 5 == 0 else y}\n" for k, (v, y) in
             enumerate(zip(V, Y, strict=True))]  # fmt: skip
    path, out = write(tmp_path, "a.csv", "v,label\n" + "".join(lines)), tmp_path / "m.zg"
    assert "no target" in zerogap("train", path, "--impute", "median").stderr
    line = ("train", path, "--impute", "median", "--drop-missing", "--out", out)
    outcome = zerogap(*line)
    assert "left out 12 of 60 rows with missing values" in outcome.stderr
    assert zg.load(out).feature_names_in_.tolist() == ["v", "v missing"]
    assert "those of the training" in zerogap("certify", out, path).stdout
    assert len(zerogap("predict", out, path).stdout.splitlines()) == N
    store = tmp_path / "store"
    options = ("--impute", "median", "--drop-missing")
    assert zerogap("data", "convert", path, store, *options).exit_code == 0
    assert zg.Store(store).n_samples == 48


@pytest.mark.parametrize("orient", ["columns", "index", "records", "split", "table"])
def test_json_of_pandas_in_any_form(tmp_path, orient):
    pd = pytest.importorskip("pandas")
    from zerogap.readers import TableOptions, read

    frame = pd.DataFrame({"v": V, "g": C, "label": Y})
    path = tmp_path / "a.json"
    frame.to_json(path, orient=orient, double_precision=15)
    data = read(path, options=TableOptions(only=("v", "g")))
    assert data.feature_names == ("v", "g")
    assert np.allclose(data.X, frame[["v", "g"]], rtol=1e-12)
    assert data.y.tolist() == list(Y)

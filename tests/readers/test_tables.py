"""CSV, TSV and Parquet: training data, new data, and refusals."""

import csv
import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from zerogap.readers import DataError, Encoder, dialect, read
from zerogap.readers.dialect import told_apart

TRAIN = 'age,city,member,label\n30,"Rome, IT",true,yes\n41.5,Bonn,false,no\n29,,true,yes\n'
FEATURES = ("age", "city=", "city=Bonn", "city=Rome, IT", "member")
ROWS = [[30, 0, 0, 1, 1], [41.5, 0, 1, 0, 0], [29, 1, 0, 0, 1]]


def write(folder, text, name="a.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def as_parquet(text):
    file = io.BytesIO()
    pq.write_table(pa.csv.read_csv(io.BytesIO(text.encode())), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", TRAIN),
        ("a.CSV", TRAIN.replace("\n", "\r\n")),
        ("a.csv", "\ufeff" + TRAIN),
        ("a.csv", TRAIN.rstrip()),
        ("a.csv.gz", gzip.compress(TRAIN.encode(), mtime=0)),
        ("a.tsv", TRAIN.replace(",", "\t").replace("Rome\t IT", "Rome, IT")),
        ("a.parquet", as_parquet(TRAIN)),
        ("a.parquet.gz", gzip.compress(as_parquet(TRAIN), mtime=0)),
        ("parquet.csv", as_parquet(TRAIN)),  # the bytes know better than the name
    ],
)
def test_training_data(tmp_path, name, content):
    data = read(write(tmp_path, content, name))
    assert np.array_equal(data.X, ROWS)
    assert data.X.dtype == np.float64
    assert data.y.tolist() == ["yes", "no", "yes"]
    assert data.feature_names == FEATURES
    assert data.target_name == "label"
    assert data.notes == ()


def test_target_may_be_any_column(tmp_path):
    path = write(tmp_path, TRAIN)
    data = read(path, target="age")
    assert data.y.tolist() == [30, 41.5, 29]
    assert data.feature_names[-2:] == ("member", "label")  # no and yes are 0 and 1


@pytest.mark.parametrize(
    ("column", "kind", "values"),
    [("3\n4", "i", [3, 4]), ("3.5\n4", "f", [3.5, 4]), ("true\nfalse", "b", [1, 0])],
)
def test_targets_keep_their_type(tmp_path, column, kind, values):
    rows = "".join(f"{k},{v}\n" for k, v in enumerate(column.split("\n")))
    data = read(write(tmp_path, "x,y\n" + rows))
    assert data.y.dtype.kind == kind
    assert data.y.tolist() == values


def test_columns_of_many_categories_become_sparse(tmp_path):
    rows = "".join(f"c{k % 7},{k % 5},{k}\n" for k in range(1, 50))
    data = read(write(tmp_path, "a,b,y\n" + rows))
    assert sparse.issparse(data.X)
    assert data.X.has_canonical_format
    expected = [[*(float(k % 7 == j) for j in range(7)), k % 5] for k in range(1, 50)]
    assert np.array_equal(data.X.toarray(), expected)


def test_types_are_found_over_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr("zerogap.readers.tables._BLOCK", 1000)
    text = "x,y\n" + "1,0\n" * 5000 + "0.5,1\n"
    data = read(write(tmp_path, text))
    assert data.X.shape == (5001, 1)
    assert data.X[-1, 0] == 0.5


# New data


def test_new_data_get_the_features_of_the_training_data(tmp_path):
    encoder = read(write(tmp_path, TRAIN)).encoder
    encoder = Encoder.from_json(json.loads(json.dumps(encoder.to_json())))
    text = "extra,label,member,city,age\n7,no,false,Bonn,1\n8,no,true,Oslo,2\n"
    for name, content in (("b.csv", text), ("b.parquet", as_parquet(text))):
        data = read(write(tmp_path, content, name), encoder=encoder)
        assert data.X.tolist() == [[1, 0, 1, 0, 0], [2, 0, 0, 0, 1]]
        assert data.y.tolist() == ["no", "no"]
        assert data.feature_names == FEATURES
        assert len(data.notes) == 2
        assert "'extra'" in data.notes[0]
        assert "column 'city' has categories not seen in training in 1 of 2 rows" in data.notes[1]


def test_new_data_need_no_target(tmp_path):
    encoder = read(write(tmp_path, TRAIN)).encoder
    path = write(tmp_path, "age,city,member\n1,Bonn,true\n")
    data = read(path, encoder=encoder, labelled=False)
    assert data.y is None
    assert data.X.tolist() == [[1, 0, 1, 0, 1]]
    with pytest.raises(DataError, match="has no column 'label'; its columns are age, city, member"):
        read(path, encoder=encoder)


def test_text_that_looks_like_numbers_stays_text(tmp_path):
    encoder = read(write(tmp_path, "code,y\n07,1\nA1,2\n7,x\n")).encoder
    data = read(write(tmp_path, "code,y\n07,1\n7,2\n", "b.csv"), encoder=encoder)
    assert data.X.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert data.y.tolist() == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("age,member\n1,true\n", "lacks column 'city', which the model was trained on"),
        ("label\nyes\n", "lacks 3 columns: 'age', 'city', 'member'"),
        ("age,city,member\nold,Bonn,true\n", "line 2, column 'age': 'old' where the model needs"),
        ("age,city,member\n1,Bonn,true\n,Bonn,true\n", "line 3, column 'age': no value"),
    ],
)
def test_new_data_that_do_not_fit_are_refused(tmp_path, text, what):
    encoder = read(write(tmp_path, TRAIN)).encoder
    with pytest.raises(DataError, match=what):
        read(write(tmp_path, text, "b.csv"), encoder=encoder, labelled=False)


def test_tables_and_matrices_do_not_mix(tmp_path):
    table, matrix = write(tmp_path, TRAIN), write(tmp_path, "1 1:2\n", "a.svm")
    with pytest.raises(DataError, match=r"a\.svm: is a matrix \(svmlight\), but the model was"):
        read(matrix, encoder=read(table).encoder)
    with pytest.raises(DataError, match=r"a\.csv: is a table, but the model was"):
        read(table, encoder=Encoder(5))


# Refusals


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        ("a,y\n", "has no rows"),
        ("a,b\n1,2\n", "needs the name of its target column (--target); its columns are a, b"),
        ("1,2,3\n4,5,6\n", "line 1: only numbers; the first line must name the columns"),
        ('"a\nb",c\n1,2\n', "its columns are a b, c"),
        ("y\n1\n", "no column besides the target"),
        ("a,y\n1,2\n3\n", "line 3: expected 2 columns, got 1: 3"),
        ("a,y\n1,2\n3,4,5\n", "line 3: expected 2 columns, got 3: 3,4,5"),
        ('a,b,y\n1,"2,3\n', "line 2: expected 3 columns"),
        ("a,y\n1,2\n,2\n", "column 'a' has no value in 1 of 2 rows, first in line 3: --impute"),
        ("a,y\n1,2\nNaN,2\n", "no value in 1 of 2 rows, first in line 3: --impute median"),
        ("a,y\n1,2\n2,\n", "line 3, column 'y': no value, in the target; --drop-missing"),
        ("a,y\n1,x\n2,\n", "line 3, column 'y': no target; --drop-missing"),
        ("a,y\n1,2\n-inf,2\n", "line 3, column 'a': infinity"),
        ("a,y\n1e999,2\n", "line 2, column 'a': infinity"),
        ("a,y\n,2\n", "no column besides the target: column 'a' is empty"),
        ("a,y\n" + "1,2\n" * 20 + "x,2\n", "line 22, column 'a': 'x' among numbers; --missing x"),
        ("a,y\n2020-01-01,2\n", "column 'a' holds dates: --dates makes"),
        (gzip.compress(TRAIN.encode(), mtime=0)[:-5], "is damaged or cut short"),
        (b"PAR1" + b"\0" * 40, "Parquet magic bytes not found"),
        (as_parquet(TRAIN)[:-30], "Parquet magic bytes not found"),
    ],
)
def test_refused_in_one_line_with_the_name(tmp_path, text, what):
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert what in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["a.csv.gz", "a.parquet"])
def test_unpacked_size_is_limited(tmp_path, name):
    text = "a,y\n" + "1,2\n" * 1_000_000
    content = gzip.compress(text.encode()) if name.endswith("gz") else as_parquet(text)
    assert len(content) < 100_000
    with pytest.raises(DataError, match="max_bytes=1000000"):
        read(write(tmp_path, content, name), max_bytes=1_000_000)


def test_features_count_as_bytes(tmp_path):
    rows = "".join(f"{k},{k},c{k},d{k}\n" for k in range(2000))
    path = write(tmp_path, "a,y,b,c\n" + rows)
    with pytest.raises(DataError, match="becomes 4001 features of 2000 rows"):
        read(path, target="y", max_bytes=80_000)
    assert read(path, target="y", max_bytes=200_000).X.shape == (2000, 4001)


def test_damaged_parquet_is_refused(tmp_path):
    content = as_parquet(TRAIN)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        damaged = bytearray(content)
        for k in rng.integers(4, len(content) - 8, 4):
            damaged[k] = rng.integers(256)
        try:
            read(write(tmp_path, bytes(damaged), "a.parquet"), max_bytes=1 << 24)
        except DataError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize(
    ("late", "sep"),
    [
        ("", ","),
        ("7,0.1,1\n", ","),
        ("1.5,2,1\n", ","),
        ("1,2,0.5\n", ","),
        ("1e400,2,1\n", ","),
        ("NA,2,1\n", ","),
        ("1,2,\n", ","),
        ("5%,2,1\n", ","),
        ("word,2,1\n", ","),
        ("1,2,word\n", ","),
        ('"3",2,"1"\n', ","),
        ('"3\n",2,1\n', ","),
        ("1,2\n", ","),
        ("\n\n1,2,0\n\n", ","),
        ("1,500;2;0\n", ";"),
        ("n.a.;2;0\n1,500;2;0\n", ";"),
    ],
)
def test_long_texts_of_numbers_are_read_as_others(tmp_path, monkeypatch, late, sep):
    """The quick way gives the same bits, notes and errors as the one that looks at all rows."""
    rng = np.random.default_rng(3)
    point = "," if sep == ";" else "."
    cells = (
        f"{v:.{k % 17}f}{sep}{v * 1e9:.6g}{sep}{k % 2}" for k, v in enumerate(rng.normal(size=900))
    )
    text = "\n".join(["id", "b", "y"]).replace("\n", sep) + "\n"
    text += "\n".join(cells).replace(".", point) + "\n" + late
    path = write(tmp_path, text)
    monkeypatch.setattr("zerogap.readers.dialect.SAMPLE", 5000)
    monkeypatch.setattr("zerogap.readers.tables.PIECE", 4000)

    def outcome():
        try:
            found = read(path)
        except DataError as error:
            return str(error)
        about = (found.X.tobytes(), found.X.shape, found.y.tolist(), found.y.dtype)
        return *about, found.encoder.to_json(), found.notes, found.guesses

    quick = outcome()
    if not late:  # it is taken at all
        with monkeypatch.context() as patch:
            patch.setattr("zerogap.readers.passes.learn_whole", None)
            assert outcome() == quick
    monkeypatch.setattr("zerogap.readers.passes.read_plain", lambda *given: None)
    assert quick == outcome()


def test_columns_of_the_same_name_are_told_apart_in_linear_time():
    notes = []
    assert told_apart(("a", "a", "a (2)", "", "a", "column4"), notes) == (
        "a", "a (3)", "a (2)", "column4 (2)", "a (4)", "column4",
    )  # fmt: skip
    assert len(notes) == 2
    assert len(set(told_apart(("x",) * 20_000, []))) == 20_000  # not in pairs


def test_records_without_columns_are_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("{}\n{}\n")
    with pytest.raises(DataError, match="has no columns"):
        read(path)


def test_a_first_line_longer_than_the_sample_or_a_cell_is_read_whole(tmp_path, monkeypatch):
    names = [f"column{j}" for j in range(100)]
    numbers = np.arange(300).reshape(3, 100)
    lines = [",".join(names), *(",".join(map(str, row)) for row in numbers)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(dialect, "SAMPLE", 64)
    limit = csv.field_size_limit(128)  # for cells: of another separator, a whole line is one
    try:
        data = read(path, target=names[0])
    finally:
        csv.field_size_limit(limit)
    assert data.y.tolist() == [0, 100, 200]
    assert np.array_equal(data.X, numbers[:, 1:])

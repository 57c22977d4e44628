"""Files become stores that hold what `read` reads, also when the work is interrupted."""

import bz2
import gzip
import io
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from zerogap.readers import DataError, Encoder, read
from zerogap.readers.conversion import convert
from zerogap.store import Store, StoreError

N = 2500


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr("zerogap.store.writer._LARGEST_RUN", 30_000)
    monkeypatch.setattr("zerogap.readers.tables.PIECE", 10_000)
    monkeypatch.setattr("zerogap.readers.files.Stream.read.__defaults__", (10_000,))
    monkeypatch.setattr("zerogap.readers.conversion._ROWS", 300)


@pytest.fixture
def svmlight(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.random(N, 50, 0.2, format="csr", random_state=0)
    path = tmp_path / "a.svm"
    dump_svmlight_file(X, rng.integers(3, size=N), str(path), zero_based=False)
    return path


def table_text():
    rng = np.random.default_rng(0)
    rows = zip(
        rng.integers(9, size=N),
        rng.random(N),
        rng.integers(40, size=N),
        rng.random(N) < 0.5,
        strict=True,
    )
    return "k,x,city,member,label\n" + "".join(
        f'{k},{x:.3f},"town, {c:03d}",{str(m).lower()},{"yes" if k > 4 else "no"}\n'
        for k, x, c, m in rows
    )


def as_parquet(text):
    file = io.BytesIO()
    pq.write_table(pa.csv.read_csv(io.BytesIO(text.encode())), file, row_group_size=700)
    return file.getvalue()


def save(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def sorted_rows(X, y):
    """Return the rows as a list in order, each with its target."""
    X = X.toarray() if sparse.issparse(X) else X
    return sorted((*row, target) for row, target in zip(X.tolist(), y, strict=True))


def stored_rows(store):
    rows = []
    for k in range(len(store.blocks)):
        part = store.read(k)
        y = part.y if store.classes is None else store.classes[part.y.astype(int)]
        rows += sorted_rows(part.X, y)
    return sorted(rows)


def same(store, data):
    return stored_rows(store) == sorted_rows(data.X, data.y)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_svmlight(tmp_path, svmlight, pack):
    path = save(tmp_path / "packed", pack(svmlight.read_bytes()))
    store, data = convert(path, tmp_path / "s"), read(svmlight)
    assert (store.n_samples, store.n_features) == data.X.shape
    assert same(store, data)
    assert store.classes.tolist() == [0.0, 1.0, 2.0]
    assert store.feature_names is store.encoder is None
    assert store.source["bytes"] == path.stat().st_size


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.csv", str.encode),
        ("a.csv.gz", lambda text: gzip.compress(text.encode())),
        ("a.tsv", lambda text: text.replace(",", "\t").replace("town\t", "town,").encode()),
        ("a.parquet", as_parquet),
    ],
)
def test_tables(tmp_path, name, make):
    path = save(tmp_path / name, make(table_text()))
    store, data = convert(path, tmp_path / "s"), read(path)
    assert same(store, data)
    assert store.sparse == sparse.issparse(data.X)
    assert store.feature_names == data.feature_names
    assert store.classes.tolist() == ["no", "yes"]
    encoder = Encoder.from_json(Store(store.path).encoder)
    assert encoder.to_json() == data.encoder.to_json()
    other = save(tmp_path / "new.csv", "x,k,city,member\n0.5,1,nowhere,true\n")
    assert read(other, encoder=encoder, labelled=False).X.shape == (1, store.n_features)


def test_tables_of_numbers_are_read_once(tmp_path, monkeypatch):
    text = "a,b,y\n" + "".join(f"{k},{k / 2},{k % 2}\n" for k in range(N))
    path = save(tmp_path / "a.csv", text)
    seen = []
    store = convert(path, tmp_path / "s", progress=seen.append)
    assert {p.stage for p in seen} == {"reading", "writing"}
    assert store.classes.tolist() == [0, 1]
    assert store.classes.dtype.kind == "i"
    assert same(store, read(path))


def test_numbers_to_predict(tmp_path):
    text = "a,b,y\n" + "1,2,3\n" * 2000 + "1,0.5,2.5\n"  # the point comes late
    path = save(tmp_path / "a.csv", text)
    store = convert(path, tmp_path / "s", task="regression")
    assert store.classes is None
    assert same(store, read(path))
    assert same(
        convert(path, tmp_path / "t", task="regression", target="a"), read(path, target="a")
    )


def test_arrays(tmp_path):
    X = np.arange(1.0, 2001).reshape(1000, 2)
    np.savez(tmp_path / "a.npz", X=X, y=np.where(X[:, 0] > 500, "big", "small"))
    assert same(convert(tmp_path / "a.npz", tmp_path / "s"), read(tmp_path / "a.npz"))


def test_svmlight_options(tmp_path):
    path = save(tmp_path / "a", "1 0:1\n-1 3:1\n")
    store = convert(path, tmp_path / "s", zero_based=True, n_features=7)
    assert store.n_features == 7
    assert same(store, read(path, zero_based=True, n_features=7))
    with pytest.raises(DataError, match="line 1, column 3: index 0"):
        convert(path, tmp_path / "t")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.svm",
            "1 1:1\n" * 3000 + "1 1:x\n",
            "a.svm: line 3001, column 5: expected a finite decimal",
        ),
        ("a.svm", "", "a.svm: has no rows"),
        ("a.svm", "# nothing\n", "a.svm: has no rows"),
        ("a.svm", "1 1:1\n1 2000000000:1\n", "a.svm: line 2, column 3: index 2000000000 is too"),
        ("a.svm", "1\n2\n", "a.svm: has rows without entries only"),
        ("a.svm", "1 1:1\n" * 3000 + "0.5 1:1\n", r"a.svm: rows \d+ to 3001: y holds 0.5"),
        ("a.csv", "x,y\n" + "1,2\n" * 5000 + "a,2\n", "a.csv: line 5002, column 'x': 'a' among"),
        (
            "a.csv",
            "x,y\n" + "1,2\n" * 5000 + "1,2.5\n",
            "a.csv: line 5002, column 'y': 2.5 is no class",
        ),
        (
            "a.csv",
            "x,y\n" + "1,2\n" * 5000 + ",2\n",
            "'x' has no value in 1 of 5,001 rows, first in",
        ),
        ("a.csv", "x,y\n" + "1,a\n" * 5000 + "1,\n", "a.csv: line 5002, column 'y': no target"),
        ("a.csv", "x,y\n", "a.csv: has no rows"),
        ("a.csv", "1,2\n3,4\n", "a.csv: line 1: only numbers"),
        ("a.csv", "y\n1\n", "a.csv: has no column besides the target"),
        ("a.csv", "x,z\n1,2\n", "a.csv: needs the name of its target column"),
        ("a.csv", "x,y\n" + "9" * 30_000 + ",1\n", "a.csv: has a line that is too long"),
        ("a.csv", "x,y\n" + "1,2\n" * 5000 + "1\n", "a.csv: line 5002: expected 2 columns"),
        ("a.parquet", b"PAR1" + bytes(100), "a.parquet: Parquet magic bytes not found"),
        ("a.parquet", gzip.compress(as_parquet(table_text())), "unpack it first"),
        ("a.svm", "1 1:1\n".encode("utf-16"), "is text in UTF-16"),
    ],
)
def test_malformed_files_are_refused_and_leave_nothing(tmp_path, name, content, message):
    path = save(tmp_path / name, content)
    with pytest.raises(ValueError, match=message) as caught:
        convert(path, tmp_path / "s")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "s").exists()


def test_a_column_with_too_many_categories_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("zerogap.readers.learning.MOST_CATEGORIES", 39)
    path = save(tmp_path / "a.csv", table_text())
    with pytest.raises(DataError, match="column 'city' has more than 39 categories"):
        convert(path, tmp_path / "s")


def test_stray_text_among_numbers_is_found(tmp_path):
    path = save(tmp_path / "a.csv", "x,y\n" + "1,2\n" * 100 + "oops,2\n" + "1,2\n" * 3000)
    with pytest.raises(DataError, match="line 102, column 'x': 'oops' among numbers"):
        convert(path, tmp_path / "s")


def test_tables_cannot_come_from_standard_input(tmp_path):
    with pytest.raises(DataError, match="csv cannot be converted from standard input"):
        convert("-", tmp_path / "s", format="csv")


def test_tables_need_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = save(tmp_path / "a.csv", table_text())
    with pytest.raises(
        ImportError, match=r"reading csv needs pyarrow: pip install 'zerogap\[cli\]'"
    ):
        convert(path, tmp_path / "s")


class Stop(BaseException):
    """An interruption, such as Ctrl-C."""


def stopper(after):
    """Return a progress function that stops the work at its so-many-th call."""
    left = after

    def progress(_):
        nonlocal left
        left -= 1
        if left < 0:
            raise Stop

    return progress


@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz", "a.csv", "a.parquet", "a.npz"])
def test_an_interrupted_conversion_goes_on(tmp_path, svmlight, name, monkeypatch):
    """Stop at each of many places, again and again: the store is the same, byte for byte."""
    path = tmp_path / name
    match name:
        case "a.svm.gz":
            save(path, gzip.compress(svmlight.read_bytes()))
        case "a.csv":
            monkeypatch.setattr("zerogap.readers.tables.PIECE", 2_500)  # more progress to stop at
            save(path, table_text())
        case "a.parquet":
            save(path, as_parquet(table_text()))
        case "a.npz":
            X = np.random.default_rng(0).standard_normal((N, 10))
            np.savez(path, X=X, y=X[:, 0] > 0)
    expected = convert(path, tmp_path / "expected")
    stops, target = 0, tmp_path / "s"
    rows = [0]
    store = None
    while store is None:
        begun = []
        stop = stopper(9)

        def progress(step, begun=begun, stop=stop):
            begun.append(step)
            if step.stage == "reading":
                stop(step)

        try:
            store = convert(path, target, progress=progress)
        except Stop:
            stops += 1
            rows.append(next(p.rows for p in begun if p.stage == "reading"))
            with pytest.raises(StoreError, match="an unfinished one"):
                Store(target)
            assert stops < 100
    assert stops >= 1
    assert rows == sorted(rows)
    assert next(p.rows for p in begun if p.stage == "reading") > 0  # it did go on
    assert store.fingerprint == expected.fingerprint
    for file in ("blocks-0.bin", "manifest.json"):
        assert (target / file).read_bytes() == (expected.path / file).read_bytes()
    assert sorted(p.name for p in target.iterdir()) == ["blocks-0.bin", "manifest.json"]


def test_interrupted_while_blocks_are_written(tmp_path, svmlight):
    expected = convert(svmlight, tmp_path / "expected")

    def progress(step):
        if step.stage == "writing" and step.rows > N // 2:
            raise Stop

    with pytest.raises(Stop):
        convert(svmlight, tmp_path / "s", progress=progress)
    steps = []
    store = convert(svmlight, tmp_path / "s", progress=steps.append)
    assert steps[0].rows == N
    assert store.fingerprint == expected.fingerprint


def test_a_replacement_goes_on_beside_the_old_store(tmp_path, svmlight):
    old = convert(svmlight, tmp_path / "s", random_state=1)
    with pytest.raises(Stop):
        convert(svmlight, tmp_path / "s", force=True, progress=stopper(20))
    assert Store(old.path).fingerprint == old.fingerprint
    steps = []
    new = convert(svmlight, tmp_path / "s", force=True, progress=steps.append)
    assert steps[0].rows > 0
    assert new.fingerprint == convert(svmlight, tmp_path / "t").fingerprint != old.fingerprint


def test_a_source_that_changed_is_refused(tmp_path, svmlight):
    with pytest.raises(Stop):
        convert(svmlight, tmp_path / "s", progress=stopper(20))
    status = svmlight.stat()
    os.utime(svmlight, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    with pytest.raises(StoreError, match="the source has changed since, or the options differ"):
        convert(svmlight, tmp_path / "s")
    steps = []
    convert(svmlight, tmp_path / "s", force=True, progress=steps.append)
    assert steps[0].rows == 0


def test_other_options_are_refused(tmp_path, svmlight):
    with pytest.raises(Stop):
        convert(svmlight, tmp_path / "s", progress=stopper(20))
    with pytest.raises(StoreError, match="or the options differ"):
        convert(svmlight, tmp_path / "s", random_state=1)
    assert convert(svmlight, tmp_path / "s").n_samples == N


@pytest.mark.parametrize("damage", ["cut", "junk", "missing", "short"])
def test_damaged_leftovers_are_not_trusted(tmp_path, svmlight, damage):
    expected = convert(svmlight, tmp_path / "expected")
    with pytest.raises(Stop):
        convert(svmlight, tmp_path / "s", progress=stopper(20))
    journal, rows = (tmp_path / "s" / "unfinished" / name for name in ("journal", "rows.bin"))
    match damage:
        case "cut":  # as a power failure may leave it
            journal.write_bytes(journal.read_bytes()[:-7])
            rows.write_bytes(rows.read_bytes() + b"half a run")
        case "junk":
            journal.write_bytes(b"[]\n{}\n")
        case "missing":
            journal.unlink()
        case "short":
            os.truncate(rows, 1000)
    assert convert(svmlight, tmp_path / "s").fingerprint == expected.fingerprint


KILLED = """
import os, signal, sys
import zerogap.store.writer
from zerogap.readers.conversion import convert
from zerogap.readers.files import Stream

zerogap.store.writer._LARGEST_RUN = 30_000
Stream.read.__defaults__ = (10_000,)
stage, rows = sys.argv[3], int(sys.argv[4])

def progress(step):
    print(step.stage, step.rows, flush=True)
    if step.stage == stage and step.rows >= rows:
        os.kill(os.getpid(), signal.SIGKILL)

convert(sys.argv[1], sys.argv[2], progress=progress)
"""


@pytest.mark.posix
def test_kill_9_loses_little(tmp_path, svmlight):
    """A process that is killed, and killed again while it writes blocks."""
    expected = convert(svmlight, tmp_path / "expected")
    begun = []
    for stage, rows in (("reading", N // 2), ("reading", N - 100), ("writing", N // 2)):
        line = [sys.executable, "-c", KILLED, svmlight, tmp_path / "s", stage, rows]
        done = subprocess.run([str(a) for a in line], capture_output=True, text=True, timeout=120)
        assert done.returncode == -signal.SIGKILL, done.stderr
        begun.append(int(done.stdout.split()[1]))
        assert not (tmp_path / "s" / "manifest.json").exists()
    assert begun[0] == 0
    assert N // 4 < begun[1] < begun[2]
    steps = []
    store = convert(svmlight, tmp_path / "s", progress=steps.append)
    assert steps[0].rows == N
    for file in ("blocks-0.bin", "manifest.json"):
        assert (store.path / file).read_bytes() == (expected.path / file).read_bytes()

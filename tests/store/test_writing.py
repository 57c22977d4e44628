"""Writing a store: bad parts, full disks, other writers, and the promise about memory."""

import errno
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from zerogap.io.atomic import locked
from zerogap.store import Progress, Store, StoreError, write_store

X, Y = np.arange(1.0, 9).reshape(4, 2), np.array([0, 1, 1, 0])


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "there are no rows to write"),
        ([(X, Y, np.zeros(4))], "there are no rows to write"),
        ([X], r"a part must be \(X, y\) or \(X, y, sample_weight\)"),
        ([(X, Y), (X[:2], Y)], "rows 5 to 8: y must have one entry for each of 2 rows"),
        ([(X, Y[:, None])], r"got shape \(4, 1\)"),
        ([(X, np.ma.array(Y))], "y is a masked array"),
        ([(X, Y), (X[:, :1], Y)], "rows 5 to 8: X has 1 columns, expected 2"),
        ([(X, Y), (sparse.csr_matrix(X), Y)], "rows 5 to 8: all parts must be dense or all"),
        ([(X, Y), (X, Y, Y)], "rows 5 to 8: all parts must be dense or all sparse"),
        ([(X, Y), (X, ["a"] * 4)], "rows 5 to 8: y holds the label 'a', and labels of another"),
        ([(X, [True, False] * 2), (X, Y)], "y holds the label 0, and labels of another type"),
        ([(X, Y + 0.5)], 'y holds 0.5 at position 0, which is no class: .* "regression"'),
        ([(X, [0, 1, np.nan, 0])], "y holds nan at position 2"),
        ([(X, [None, 1, 2, 3])], "y holds object labels: use numbers or text"),
        ([(X, Y, [1, 1, -1, 1])], "sample_weight must be finite and not negative, got -1"),
        ([(X, Y, [1, 1, np.nan, 1])], "sample_weight must be finite"),
        ([(X, Y, [1, 1])], r"sample_weight must have shape \(4,\)"),
        ([(X * np.nan, Y)], "NaN"),
        ([(1e200 * X, Y)], r"\|x\|\^2 overflows at row 0"),
        ([(sparse.csr_array((4, 2**31)), Y)], "X has 2147483648 columns, expected 2147483647"),
        ([(X.astype(complex), Y)], "Complex data not supported"),
    ],
)
def test_bad_parts_are_refused_and_leave_nothing(tmp_path, parts, message):
    with pytest.raises(ValueError, match=message):
        write_store(tmp_path / "s", iter(parts))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([1, np.inf, 2, 3], "y contains infinity at position 1"),
        (["a"] * 4, "y must hold numbers"),
        ([1e200, 0, 0, 0], r"y\^2 overflows"),
    ],
)
def test_bad_numbers_to_predict_are_refused(tmp_path, targets, message):
    with pytest.raises(ValueError, match=message):
        write_store(tmp_path / "s", [(X, targets)], task="regression")


@pytest.mark.parametrize(
    "options",
    [
        {"task": "ranking"},
        {"dtype": "float16"},
        {"n_features": 0},
        {"n_features": 2**31},
        {"random_state": -1},
        {"max_memory": "much"},
    ],
)
def test_bad_options_are_refused(tmp_path, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        write_store(tmp_path / "s", [(X, Y)], **options)
    assert list(tmp_path.iterdir()) == []


def test_sparse_parts_may_be_narrower_if_the_width_is_given(tmp_path):
    narrow = sparse.csr_matrix(X[:, :1])
    store = write_store(tmp_path / "s", [(narrow, Y), (sparse.csr_matrix(X), Y)], n_features=5)
    assert store.n_features == 5
    assert store.read(0).X.shape == (8, 5)
    with pytest.raises(ValueError, match="X has 2 columns, expected 1"):
        write_store(tmp_path / "t", [(sparse.csr_matrix(X), Y)], n_features=1)


def test_long_rows_need_more_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("zerogap.store.writer._LARGEST_BLOCK", 1000)
    with pytest.raises(ValueError, match="a row has 100 values, too many for blocks of 1 kB"):
        write_store(tmp_path / "s", [(np.ones((4, 100)), Y)])


def test_stores_and_other_folders_are_not_overwritten(tmp_path):
    path = tmp_path / "s"
    store = write_store(path, [(X, Y)])
    before = contents(path)
    with pytest.raises(FileExistsError, match="holds a store already"):
        write_store(path, [(X + 1, Y)])
    assert contents(path) == before
    new = write_store(path, [(X + 1, Y)], force=True)
    assert new.fingerprint != store.fingerprint
    assert sorted(contents(path)) == ["blocks-1.bin", "manifest.json"]
    assert write_store(path, [(X, Y)], force=True).fingerprint == store.fingerprint
    assert sorted(contents(path)) == ["blocks-0.bin", "manifest.json"]
    (path / "thesis.tex").touch()
    with pytest.raises(StoreError, match=r"holds thesis\.tex: choose an empty folder"):
        write_store(path, [(X, Y)], force=True)
    with pytest.raises(NotADirectoryError, match="a store is a folder"):
        write_store(path / "thesis.tex", [(X, Y)])


def test_a_damaged_store_can_be_replaced(tmp_path):
    path = tmp_path / "s"
    write_store(path, [(X, Y)])
    (path / "manifest.json").write_text("{}")
    assert write_store(path, [(X, Y)], force=True).n_samples == 4


@pytest.mark.parametrize("force", [False, True])
def test_an_error_of_the_source_leaves_the_old_store(tmp_path, force):
    path = tmp_path / "s"
    if force:
        write_store(path, [(X, Y)])
    before = contents(path) if force else None

    def parts():
        yield X, Y
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError, match="the source is gone"):
        write_store(path, parts(), force=force)
    assert contents(path) == before if force else not path.exists()


@pytest.mark.parametrize("full", range(0, 30_000, 2500))
def test_a_full_disk_leaves_the_old_store(tmp_path, monkeypatch, full):
    """Files stop growing at every stage: runs, journal, blocks, manifest."""
    path = tmp_path / "s"
    write_store(path, [(X, Y)])
    before = contents(path)
    room = full

    class File:
        """A file on a disk that has room for so many bytes."""

        def __init__(self, *args):
            self.file = open(*args)  # noqa: SIM115

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def write(self, data):
            nonlocal room
            room -= len(data)
            if room < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.file.write(data)

    for module in ("store.writer", "store.runs", "io.atomic"):
        monkeypatch.setattr(f"zerogap.{module}.open", File, raising=False)
    big = np.arange(1.0, 2001).reshape(1000, 2) + 0.1
    with pytest.raises(OSError, match="No space left"):
        write_store(path, [(big, np.arange(1000) % 2)], force=True)
    assert contents(path) == before
    assert Store(path).n_samples == 4


FULL = """
import resource, sys
import numpy as np
from zerogap.store import write_store
X = np.random.default_rng(0).standard_normal((20000, 10))
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    write_store(sys.argv[1], [(X, X[:, 0] > 0)], force=True)
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.posix
def test_a_limit_on_files_leaves_the_old_store(tmp_path):
    path = tmp_path / "s"
    write_store(path, [(X, Y)])
    before = contents(path)
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True)
    assert done.stdout == "File too large\n", done.stderr
    assert contents(path) == before


def test_one_writer_at_a_time(tmp_path):
    with locked(tmp_path / "s"), pytest.raises(StoreError, match="another process is writing"):
        write_store(tmp_path / "s", [(X, Y)])
    assert write_store(tmp_path / "s", [(X, Y)]).n_samples == 4


def test_parts_may_lie_in_the_same_memory(tmp_path):
    def parts():
        memory = np.empty((4, 2))
        for k in range(5):
            memory[:] = X + 10 * k
            yield memory, Y

    store = write_store(tmp_path / "s", parts())
    expected = np.concatenate([X + 10 * k for k in range(5)])
    assert sorted(store.read(0).X.tolist()) == expected.tolist()


def test_progress_tells_how_far_it_is(tmp_path, monkeypatch):
    seen = []
    write_store(tmp_path / "s", [(X, Y)] * 100, progress=seen.append)
    reading = [p for p in seen if p.stage == "reading"]
    assert [p.rows for p in reading] == [4 * k for k in range(101)]
    assert all(p.total is None for p in reading)
    assert [p.stage for p in seen[len(reading) :]] == ["writing"] * 4
    last = seen[-1]
    assert isinstance(last, Progress)
    assert last.rows == 400
    assert last.done == pytest.approx(last.total, rel=0.1)


def test_too_little_memory_is_refused_with_numbers(tmp_path):
    with pytest.raises(
        ValueError,
        match=r"1 MB is too little: the process takes [0-9.]+ [MG]B already, give at least",
    ):
        write_store(tmp_path / "s", [(X, Y)], max_memory="1MB")
    assert not (tmp_path / "s").exists()


PROMISE = """
import sys
import numpy as np
from zerogap.store import write_store
from zerogap.io.system import resident_memory

def parts():
    rng = np.random.default_rng(0)
    for _ in range(45):
        X = rng.standard_normal((5000, 100))  # 4 MB
        yield X, X[:, 0] > 0

warm = write_store(sys.argv[1] + "/warm", [next(parts())])
limit = resident_memory() + 110_000_000
store = write_store(sys.argv[1] + "/s", parts(), max_memory=limit)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
print(store.nbytes, limit, 1024 * peak)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_memory_stays_within_the_promise(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROMISE, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    size, limit, peak = map(int, done.stdout.split())
    assert size > 180_000_000  # with 110 MB for the work
    assert peak < limit

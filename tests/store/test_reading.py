"""A store gives back the rows that went into it, whole blocks at a time."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from zerogap.io.system import read_at
from zerogap.store import Store, StoreError, write_store


def make_rows(n=3000, d=20, seed=0):
    """Return sparse rows of which no two are alike."""
    numbers = sparse.csr_matrix(np.arange(1.0, n + 1)[:, None])
    return sparse.hstack([numbers, sparse.random(n, d - 1, 0.3, random_state=seed)], format="csr")


def pieces(*arrays, size=700):
    return [tuple(a[k : k + size] for a in arrays) for k in range(0, arrays[0].shape[0], size)]


def whole(store):
    """Return X, y and weights of all rows, in the order of their first feature."""
    parts = [store.read(k) for k in range(len(store.blocks))]
    dense = [p.X.toarray() if store.sparse else p.X for p in parts]
    X, y = np.concatenate(dense), np.concatenate([p.y for p in parts])
    order = np.argsort(X[:, 0])
    weights = np.concatenate([p.sample_weight for p in parts])[order] if store.weighted else None
    return X[order], y[order], weights


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [True, False])
def test_rows_come_back_exactly(tmp_path, is_sparse, dtype, weighted):
    X = make_rows().astype(dtype)
    X = X if is_sparse else X.toarray()
    n = X.shape[0]
    y, weight = np.arange(n) * 0.1, 1.0 + np.arange(n) % 7
    arrays = (X, y, weight) if weighted else (X, y)
    store = write_store(tmp_path / "s", pieces(*arrays), task="regression")
    found, targets, weights = whole(store)
    assert np.array_equal(found, X.toarray() if is_sparse else X)
    assert np.array_equal(targets, y)
    assert weights is None if not weighted else np.array_equal(weights, weight)
    assert store.total_weight == (weight.sum() if weighted else n)
    assert (store.n_samples, store.n_features) == X.shape
    assert store.stored == (X.nnz if is_sparse else X.size)
    assert (store.sparse, store.dtype, store.weighted) == (is_sparse, dtype, weighted)
    assert store.classes is store.class_weights is None
    dense = np.asarray(X.todense() if is_sparse else X, dtype=np.float64)
    assert store.largest_sqnorm == pytest.approx((dense**2).sum(axis=1).max())


@pytest.mark.parametrize(
    "labels", [["no", "yes"], [3, -1, 7], [-1.0, 1.0], [False, True], ["é", "", "a b"]]
)
def test_labels_become_codes_of_sorted_classes(tmp_path, labels):
    X = make_rows()
    y = np.array(labels)[np.arange(X.shape[0])[::-1] ** 2 % len(labels)]
    store = write_store(tmp_path / "s", pieces(X, y))
    classes, counts = np.unique(y, return_counts=True)
    assert np.array_equal(store.classes, classes)
    assert store.classes.dtype.kind == classes.dtype.kind
    assert np.array_equal(store.class_weights, counts)
    assert np.array_equal(store.classes[whole(store)[1].astype(int)], y)
    assert np.array_equal(Store(store.path).classes, classes)


def test_whole_and_broken_numbers_are_labels_of_one_kind(tmp_path):
    parts = [(np.ones((2, 1)), np.array([1, 2])), (np.ones((2, 1)), np.array([2.0, 3.0]))]
    assert write_store(tmp_path / "s", parts).classes.tolist() == [1.0, 2.0, 3.0]


def test_rows_without_weight_are_left_out(tmp_path):
    X, y = make_rows(), np.arange(3000) % 3
    weight = np.where(y == 1, 0.0, 2.0)
    weight[:700] = 0  # a whole part of them
    store = write_store(tmp_path / "s", pieces(X, y, weight))
    found, codes, weights = whole(store)
    kept = weight > 0
    assert np.array_equal(found, X.toarray()[kept])
    assert np.array_equal(store.classes[codes.astype(int)], y[kept])
    assert set(weights) == {2.0}
    assert store.classes.tolist() == [0, 2]  # no row of class 1 is left
    assert store.class_weights.sum() == store.total_weight == 2.0 * kept.sum()


def test_blocks_are_many_and_aligned_and_in_random_order(tmp_path):
    n = 20_000
    X, y = np.arange(1.0, n + 1)[:, None], np.repeat([0, 1], n // 2)  # sorted by label
    store = write_store(tmp_path / "s", [(X, y)])
    assert len(store.blocks) == 100
    assert sum(b.rows for b in store.blocks) == n
    assert [b.start for b in store.blocks] == np.cumsum([0, *(b.rows for b in store.blocks)])[
        :-1
    ].tolist()
    assert all(b.offset % 64 == 0 for b in store.blocks)
    numbers = np.concatenate([store.read(k).X[:, 0] for k in range(100)])
    assert abs(np.corrcoef(numbers, np.arange(n))[0, 1]) < 0.03
    for k in range(100):  # 5 standard deviations of a fair coin
        part = store.read(k)
        assert abs(part.y.mean() - 0.5) < 2.5 / np.sqrt(len(part.y))
        assert (np.diff(part.X[:, 0]) < 0).any()


def test_few_rows_make_few_blocks(tmp_path):
    X = np.arange(1.0, 451)[:, None]
    assert len(write_store(tmp_path / "a", [(X, X[:, 0] % 2)]).blocks) == 4
    assert len(write_store(tmp_path / "b", [(X[:3], X[:3, 0] % 2)]).blocks) == 1


def test_order_depends_on_the_seed_alone(tmp_path, monkeypatch):
    X, y = make_rows(), np.arange(3000) % 2
    first = write_store(tmp_path / "a", pieces(X, y))
    monkeypatch.setattr("zerogap.store.writer._LARGEST_RUN", 20_000)  # many runs
    second = write_store(tmp_path / "b", pieces(X, y, size=113))
    other = write_store(tmp_path / "c", pieces(X, y), random_state=1)
    data = [(tmp_path / name / "blocks-0.bin").read_bytes() for name in "abc"]
    assert data[0] == data[1] != data[2]
    assert first.fingerprint == second.fingerprint != other.fingerprint
    assert np.array_equal(whole(first)[0], whole(other)[0])


def test_blocks_have_a_largest_size(tmp_path, monkeypatch):
    monkeypatch.setattr("zerogap.store.writer._LARGEST_BLOCK", 10_000)
    rows = sparse.vstack([make_rows(500, 20), sparse.csr_matrix(np.ones((50, 20)))]).tocsr()
    store = write_store(tmp_path / "s", [(rows, np.arange(550) % 2)])
    assert max(b.nbytes for b in store.blocks) <= 10_000
    assert min(b.nbytes for b in store.blocks) > 1000
    assert sum(b.rows for b in store.blocks) == 550


def test_float32_is_used_where_exact(tmp_path):
    y = [0, 1]
    exact, inexact = np.array([[0.5], [3.0]]), np.array([[0.1], [3.0]])
    assert write_store(tmp_path / "a", [(exact, y), (exact, y)]).dtype == np.float32
    mixed = write_store(tmp_path / "b", [(exact, y), (inexact, y)])
    assert mixed.dtype == np.float64
    assert sorted(mixed.read(0).X.ravel()) == [0.1, 0.5, 3.0, 3.0]
    asked = write_store(tmp_path / "c", [(inexact, y)], dtype="float32")
    assert sorted(asked.read(0).X.ravel()) == [np.float32(0.1), 3.0]
    assert write_store(tmp_path / "d", [(exact, y)], dtype="float64").dtype == np.float64
    with pytest.raises(ValueError, match="too large for float32"):
        write_store(tmp_path / "e", [(np.array([[1.0], [1e60]]), y)], dtype="float32")


@pytest.mark.parametrize("is_sparse", [True, False])
def test_arrays_lie_in_the_buffer_given(tmp_path, is_sparse):
    X = make_rows() if is_sparse else make_rows().toarray()
    store = write_store(tmp_path / "s", [(X, np.arange(3000) % 2, np.ones(3000))])
    buffer = store.buffer()
    for k in (3, 5):
        part, own = store.read(k, buffer), store.read(k)
        arrays = [part.X.data, part.X.indices, part.X.indptr] if is_sparse else [part.X]
        for array in (*arrays, part.y, part.sample_weight):
            assert np.shares_memory(array, buffer)
            assert array.ctypes.data % 64 == 0
        assert abs(part.X - own.X).sum() == 0
        assert np.array_equal(part.y, own.y)


def test_stream_reads_ahead_in_any_order(tmp_path):
    store = write_store(tmp_path / "s", [(make_rows(), np.arange(3000) % 2)])
    order = np.random.default_rng(0).permutation(len(store.blocks))
    seen = []
    for k, part in store.stream(order):
        own = store.read(k)
        assert abs(part.X - own.X).sum() == 0
        assert np.array_equal(part.y, own.y)
        seen.append(k)
    assert seen == order.tolist()
    assert [k for k, _ in store.stream()] == list(range(len(store.blocks)))
    assert list(store.stream([])) == []
    stream = store.stream()
    next(stream)
    stream.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("zerogap-store")]


def test_stream_passes_errors_on(tmp_path):
    store = write_store(tmp_path / "s", [(make_rows(), np.arange(3000) % 2)])
    damage(store, 4)
    with pytest.raises(StoreError, match="block 4 is damaged: its checksum differs"):
        list(Store(store.path).stream())


def damage(store, k):
    with open(store.path / "blocks-0.bin", "r+b") as file:
        file.seek(store.blocks[k].offset + 5)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))


def test_store_travels_by_its_path(tmp_path):
    store = write_store(tmp_path / "s", [(make_rows(), np.arange(3000) % 2)])
    store = Store(store.path, max_memory="2 GiB")
    assert store.max_memory == 2 << 30
    sent = pickle.dumps(store)
    assert len(sent) < 1000
    other = pickle.loads(sent)
    assert other.max_memory == store.max_memory
    assert abs(other.read(2).X - store.read(2).X).sum() == 0
    write_store(store.path, [(make_rows(seed=1), np.arange(3000) % 2)], force=True)
    store.read(3)  # still there for those who have it open
    with pytest.raises(StoreError, match="has been replaced"):
        pickle.loads(sent)


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_threads_read_places_of_one_file(platform, tmp_path, monkeypatch):
    monkeypatch.setattr("zerogap.io.system.sys", SimpleNamespace(platform=platform))
    monkeypatch.setattr("zerogap.io.system.MOST_BYTES_PER_READ", 100)
    content = np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8)
    (tmp_path / "file").write_bytes(content)
    with open(tmp_path / "file", "rb", buffering=0) as file:
        file.seek(17)

        def part(start):
            buffer = np.zeros((10, 70), dtype=np.uint8)
            assert read_at(file.fileno(), buffer, start) == min(700, 5000 - start)
            return buffer.ravel()

        starts = range(0, 5000, 123)
        with ThreadPoolExecutor(4) as pool:
            for start, found in zip(starts, pool.map(part, starts), strict=True):
                expected = content[start : start + 700]
                np.testing.assert_array_equal(found[: len(expected)], expected)
        assert file.tell() == 17


def test_large_stores_leave_the_page_cache_alone(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s", [(make_rows(), np.arange(3000) % 2)])
    dropped = []
    name = "zerogap.store.reader.drop_from_page_cache"
    monkeypatch.setattr(name, lambda *args: dropped.append(args))
    Store(store.path).read(0)
    Store(store.path, max_memory=store.nbytes).read(0)
    assert dropped == []
    Store(store.path, max_memory=store.nbytes - 1).read(1)
    assert [args[1:3] for args in dropped] == [(store.blocks[1].offset, store.blocks[1].nbytes)]


@pytest.mark.parametrize("size", ["2 apples", "", -5, 0, 1.5, True, "-1GB"])
def test_amounts_of_memory_are_checked(tmp_path, size):
    with pytest.raises(ValueError, match="max_memory must be a number of bytes or text like '2GB'"):
        Store(tmp_path, max_memory=size)

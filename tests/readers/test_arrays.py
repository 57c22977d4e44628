"""Arrays in npz files, honest and not."""

import io
import zipfile

import numpy as np
import pytest
from scipy import sparse

from zerogap.readers import DataError, Encoder, read

X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
CSR = {"data": [1.0, 2, 3], "indices": [0, 2, 2], "indptr": [0, 2, 3], "shape": [2, 3]}


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def write_zip(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)


def as_dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense(tmp_path, save, kind, order):
    save(tmp_path / "a.npz", X=X.astype(kind, order=order), y=[1, 0], other=[3])
    data = read(tmp_path / "a.npz")
    assert np.array_equal(data.X, X)
    assert data.X.dtype == np.float64
    assert data.y.tolist() == [1, 0]
    assert data.encoder is None


def test_csr_as_scipy_writes_it_and_in_parts(tmp_path):
    path = tmp_path / "a.npz"
    sparse.save_npz(path, sparse.csr_matrix(X))
    data = read(path, labelled=False)
    assert sparse.issparse(data.X)
    assert np.array_equal(as_dense(data.X), X)
    assert data.y is None
    np.savez(path, y=["no", "yes"], **CSR)
    data = read(path)
    assert np.array_equal(as_dense(data.X), X)
    assert data.y.tolist() == ["no", "yes"]


def test_unsorted_entries_are_sorted_and_twins_added(tmp_path):
    parts = CSR | {"data": [2.0, 1, 1, 2], "indices": [2, 0, 2, 2], "indptr": [0, 2, 4]}
    np.savez(tmp_path / "a.npz", y=[1, 0], **parts)
    data = read(tmp_path / "a.npz")
    assert data.X.has_canonical_format
    assert np.array_equal(as_dense(data.X), X)


def test_encoder_scales(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=[1, 0])
    encoder = Encoder(3).fit_scaling(X, "max-abs")
    assert np.array_equal(read(tmp_path / "a.npz", encoder=encoder).X, X / [1, 1, 3])
    with pytest.raises(DataError, match="has 3 features, the model has 2"):
        read(tmp_path / "a.npz", encoder=Encoder(2))


@pytest.mark.parametrize(
    ("arrays", "what"),
    [
        ({"X": X}, "no array y"),
        ({"y": [1, 0]}, "needs an array X, or data, indices, indptr, shape"),
        ({"X": X, "y": [1, 0, 1]}, "one entry for each of 2 rows"),
        ({"X": X, "y": [[1, 0]]}, "one entry for each of 2 rows"),
        ({"X": X[0], "y": [1]}, "rows and columns"),
        ({"X": X[:0], "y": []}, "is empty"),
        ({"X": X[:, :0], "y": [1, 0]}, "is empty"),
        ({"X": np.where(X == 3, -np.inf, X), "y": [1, 0]}, "X holds -inf at"),
        ({"X": np.where(X == 3, np.nan, X), "y": [1, 0]}, r"X holds nan at \[1, 2\]"),
        ({"X": X, "y": [np.nan, 1]}, r"y holds nan at \[0\]"),
        ({"X": X.astype(complex), "y": [1, 0]}, "neither numbers nor text"),
        ({"X": X.astype(str), "y": [1, 0]}, "not numbers"),
        ({"X": X.astype("M8[s]"), "y": [1, 0]}, "neither numbers nor text"),
        ({"y": [1, 0]} | CSR | {"indices": [0, 2, 3]}, "is no CSR matrix"),
        ({"y": [1, 0]} | CSR | {"indices": [0, 2, -1]}, "is no CSR matrix"),
        ({"y": [1, 0]} | CSR | {"indices": [0.0, 2, 1]}, "whole numbers"),
        ({"y": [1, 0]} | CSR | {"indptr": [0, 4, 3]}, "is no CSR matrix"),
        ({"y": [1, 0]} | CSR | {"indptr": [0, 3]}, "is no CSR matrix"),
        ({"y": [1, 0]} | CSR | {"indptr": [0, 2, 9]}, "is no CSR matrix"),
        ({"y": [1, 0]} | CSR | {"shape": [-2, -3]}, "is no CSR matrix"),
        ({"y": [1, 0]} | CSR | {"shape": [2, 3, 1]}, "whole numbers"),
        ({"y": [1, 0]} | CSR | {"data": [1, np.inf, 1]}, "data holds inf"),
        ({"y": [1, 0]} | CSR | {"format": b"csc"}, "holds a b'csc' matrix"),
    ],
)
def test_refused(tmp_path, arrays, what):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=what):
        read(tmp_path / "a.npz")


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([[print]], dtype=object), y=[1])
    with pytest.raises(DataError, match="neither numbers nor text"):
        read(tmp_path / "a.npz")


def test_sizes_are_checked_before_memory_is_taken(tmp_path):
    path = tmp_path / "a.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)}
    )
    write_zip(path, [("X.npy", header.getvalue() + b"\0" * 80), ("y.npy", npy([1]))])
    with pytest.raises(DataError, match=r"X\.npy has not the size that its header says"):
        read(path)
    write_zip(path, [("X.npy", npy(np.zeros((1000, 1000))))], zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 20_000
    with pytest.raises(DataError, match="when unpacked, more than max_bytes=1000000"):
        read(path, max_bytes=1_000_000)


def test_F5_columns_beyond_all_memory_are_refused(tmp_path):
    parts = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2])}
    path = tmp_path / "wide.npz"
    np.savez(path, **parts, shape=np.array([2, 2**62]), y=np.array([0, 1]))
    with pytest.raises(DataError, match=f"says that X has {2**62} columns"):
        read(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path):
    write_zip(tmp_path / "a.npz", [("X.npy", npy(X)), ("X.npy", npy(X)), ("y.npy", npy([1, 0]))])
    with pytest.raises(DataError, match="two members of one name"):
        read(tmp_path / "a.npz")


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, X=np.arange(600.0).reshape(2, 300), y=[1, 0])
    content = path.read_bytes()
    read(path)
    outcomes = set()
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(content)
        for k in rng.integers(4, len(content), 3):
            damaged[k] = rng.integers(256)
        path.write_bytes(damaged[: rng.integers(4, len(content) + 1)])
        try:
            read(path)
            outcomes.add("read")
        except DataError:
            outcomes.add("refused")
    assert "refused" in outcomes
    path.write_bytes(b"no zip at all")
    with pytest.raises(DataError, match="is damaged"):
        read(path, format="npz")

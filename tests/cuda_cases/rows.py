"""Rows on a device multiply as matrices of numpy do."""

import numpy as np
import pytest
from scipy import sparse

from problems import make_data
from zerogap.cuda import rows as device_rows
from zerogap.cuda.algebra import inverses
from zerogap.cuda.device import arrays, sparse_arrays, to_host
from zerogap.cuda.rows import _checked, as_device_rows


def storages(X, dtype=np.float64):
    X = X.astype(dtype)
    return {"dense": as_device_rows(X), "csr": as_device_rows(sparse.csr_matrix(X))}


def check_products(rows, X):
    """Compare all products of rows with those of the matrix that they are."""
    rng, place = np.random.default_rng(1), arrays().asarray
    (n, d), X = X.shape, X.astype(np.float64)
    assert rows.shape == (n, d)
    w, W, c, A, h = (rng.standard_normal(s) for s in (d, (2, d), n, (n, 2), n))
    h = h * h
    f = h * (X @ w + 0.7)
    sums, total = rows.weighted_product(place(h), place(w), 0.7)
    pairs = {
        "times": (rows.times(place(w)), X @ w),
        "transposed_times": (rows.transposed_times(place(c)), X.T @ c),
        "product": (rows.product(place(W)), X @ W.T),
        "transposed_product": (rows.transposed_product(place(A)), A.T @ X),
        "weighted_product": (sums, X.T @ f),
        "its sum": (total, f.sum()),
        "square_sums": (rows.square_sums(place(h)), (X * X).T @ h),
        "moments": (rows.moments(place(h)), (X.T * h) @ X),
        "sqnorms": (rows.sqnorms, (X * X).sum(axis=1)),
    }
    for name, (found, expected) in pairs.items():
        np.testing.assert_allclose(
            to_host(found),
            expected,
            rtol=1e-11,
            atol=1e-11,
            err_msg=f"{name} of {type(rows).__name__}",
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_multiply_as_their_matrix_does(dtype):
    X, _ = make_data("squared", 70, 3, dtype=dtype)  # enough for two stripes of dense rows
    for rows in storages(X, dtype).values():
        check_products(rows, X)


def test_rows_are_taken_from_rows_that_were_taken():
    X, _ = make_data("squared", 20, 3)
    first, second = np.array([7, 3, 0, 12, 19, 4]), np.array([5, 1, 2])
    for rows in storages(X).values():
        some = rows.take(arrays().asarray(first))
        check_products(some, X[first])
        check_products(some.take(arrays().asarray(second)), X[first][second])


def test_rows_that_are_long_are_cut(monkeypatch):
    monkeypatch.setattr(device_rows, "_VALUES_PER_PIECE", 2)
    X, _ = make_data("squared", 9, 7)
    rows = storages(X)["csr"]
    assert len(rows.pieces[0]) > 9 + 1
    assert rows.transposed.pieces is not None
    check_products(rows, X)
    check_products(rows.take(arrays().asarray(np.array([8, 0, 5]))), X[[8, 0, 5]])


@pytest.mark.parametrize("chunk", [1 << 26, 300])
def test_rows_that_are_many_are_squared_in_parts(chunk, monkeypatch):
    monkeypatch.setattr(device_rows, "_VALUES_PER_CONVERSION", chunk)
    monkeypatch.setattr(device_rows, "free_memory", lambda: 0.0)  # for no copy in double precision
    X, _ = make_data("squared", 601, 3, dtype=np.float32)
    h, W = np.linspace(0.0, 2.0, 601), np.array([[1.0, -2.0, 0.5]])
    for rows in storages(X, np.float32).values():
        found = to_host(rows.moments(arrays().asarray(h)))
        np.testing.assert_allclose(found, (X.T.astype(float) * h) @ X, rtol=1e-11)
    dense = storages(X, np.float32)["dense"]
    assert dense.in_double is None
    np.testing.assert_allclose(to_host(dense.product(arrays().asarray(W))), X @ W.T, rtol=1e-11)
    found = dense.transposed_product(arrays().asarray(h[:, None]))
    np.testing.assert_allclose(to_host(found), h[None] @ X, rtol=1e-11)


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_rows_on_the_device_are_checked_there(storage):
    def on_device(X):
        X = arrays().asarray(X)
        return sparse_arrays().csr_matrix(X) if storage == "csr" else X

    X, _ = make_data("squared", 9, 3)
    check_products(_checked(on_device(X)), X)
    check_products(_checked(on_device(X.round().astype(np.int32).astype(np.float32))), X.round())
    for wrong in (np.nan, np.inf, -np.inf):
        bad = X.copy()
        bad[4, 2] = wrong
        with pytest.raises(ValueError, match="NaN or infinity at row 4, column 2: drop the row"):
            _checked(on_device(bad))
    with pytest.raises(ValueError, match="complex128, which is not a real number"):
        _checked(on_device(X + 1j))
    with pytest.raises(ValueError, match=r"rows and columns, got shape \(0, 3\)"):
        _checked(arrays().zeros((0, 3)))


@pytest.mark.parametrize("d", [1, 64, 65, 200])
def test_rows_of_many_matrices_are_inverted_together(d):
    """From blocks of 64 rows and fewer, which need not fill the matrix."""
    factors = np.random.default_rng(d).standard_normal((3, d, 2 * d))
    matrices = factors @ factors.transpose(0, 2, 1) + np.eye(d)
    found = to_host(inverses(arrays().asarray(matrices)))
    np.testing.assert_allclose(found @ matrices, np.broadcast_to(np.eye(d), found.shape), atol=1e-9)

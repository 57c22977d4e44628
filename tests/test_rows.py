"""Rows of every supported type equal NumPy's arithmetic, and unsafe structure never gets in."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from zerogap.kernels.jit import kernel
from zerogap.penalties import L2, ElasticNet
from zerogap.rows import CSRRows, DenseRows, as_rows, compact
from zerogap.rows.dense import ShiftedRows
from zerogap.rows.loops import is_canonical

rng = np.random.default_rng(0)
DENSE = (rng.standard_normal((30, 7)) * (rng.random((30, 7)) < 0.5)).astype(np.float32)
DENSE[3] = 0


def int64_indices(X):
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def read_only(X):
    X = sparse.csr_matrix(X)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


def unsorted(X):
    X = sparse.csr_matrix(X)
    for i in range(X.shape[0]):
        span = slice(X.indptr[i], X.indptr[i + 1])
        X.indices[span], X.data[span] = X.indices[span][::-1].copy(), X.data[span][::-1].copy()
    X.has_sorted_indices = False
    return X


def duplicated(X):
    X = sparse.coo_matrix(X)
    half = (X.data / 2, (X.row, X.col))
    doubled = (np.tile(half[0], 2), (np.tile(X.row, 2), np.tile(X.col, 2)))
    order = np.argsort(doubled[1][0], kind="stable")
    indptr = np.searchsorted(doubled[1][0][order], np.arange(X.shape[0] + 1))
    return sparse.csr_matrix((doubled[0][order], doubled[1][1][order], indptr), shape=X.shape)


FORMS = {
    "float32": lambda X: X,
    "float64": lambda X: X.astype(np.float64),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "byte-swapped": lambda X: X.astype(">f8"),
    "csr": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
    "int64 indices": int64_indices,
    "read-only": read_only,
    "unsorted": unsorted,
    "duplicated": duplicated,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_equals_numpy(form):
    X = FORMS[form](DENSE)
    before = X.copy()
    rows = as_rows(X)
    exact = DENSE.astype(np.float64)
    u, W = rng.standard_normal(7), rng.standard_normal((7, 12))
    net = ElasticNet(0.3)
    thresholded = np.sign(u) * np.maximum(np.abs(u) - 0.3, 0) / 0.7
    assert rows.shape == (30, 7)
    np.testing.assert_allclose(rows.sqnorms, (exact**2).sum(1), rtol=1e-13)
    np.testing.assert_allclose(rows.product(u[None, :]).ravel(), exact @ u, rtol=1e-5, atol=1e-6)
    for i in range(30):
        assert rows.dot(i, u, L2()) == pytest.approx(exact[i] @ u, abs=1e-12)
        assert rows.dot(i, u, net) == pytest.approx(exact[i] @ thresholded, abs=1e-12)
        v = u.copy()
        rows.add_to(v, i, 2.5)
        np.testing.assert_allclose(v, u + 2.5 * exact[i], atol=1e-12)
        scores = np.ones(12)
        rows.add_scores(scores, i, W.ravel())
        np.testing.assert_allclose(scores, 1 + exact[i] @ W, atol=1e-12)
    order = rng.permutation(30)
    np.testing.assert_array_equal(rows.take(order).sqnorms, rows.sqnorms[order])
    assert (before != X).sum() == 0, "the input must not change"


@kernel
def compiled(rows, i, W, U, scores, step, penalty):
    rows.add_scores(scores, i, W)
    rows.add_outer(U, W, i, step, penalty)


@pytest.mark.parametrize("form", ["float32", "float64", "csr", "int64 indices"])
@pytest.mark.parametrize("penalty", [L2(), ElasticNet(0.3)])
def test_all_classes_together_in_kernels_and_in_python(form, penalty):
    rows, exact = as_rows(FORMS[form](DENSE)), DENSE.astype(np.float64)
    U, step = rng.standard_normal((7, 12)), rng.standard_normal(12)
    W = np.vectorize(penalty.to_primal)(U)
    updated = U + np.outer(exact[5], step)
    for function in (compiled, compiled.py_func):
        u, scores = U.copy().ravel(), np.zeros(12)
        w = u if isinstance(penalty, L2) else W.copy().ravel()
        function(rows, 5, w, u, scores, step, penalty)
        np.testing.assert_allclose(scores, exact[5] @ W, atol=1e-12)
        np.testing.assert_allclose(u.reshape(7, 12), updated, atol=1e-12)
        np.testing.assert_allclose(w, [penalty.to_primal(v) for v in updated.ravel()], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_mostly_zeros_are_compacted(dtype):
    X = (rng.standard_normal((3000, 40)) * (rng.random((3000, 40)) < 0.2)).astype(dtype)
    X[7] = 0
    rows, same = compact(as_rows(X)), sparse.csr_matrix(X)
    assert rows.data.dtype == dtype
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(same, name))
    assert isinstance(compact(as_rows(DENSE)), DenseRows)
    X[:] = 1
    X[:: len(X) // 1000] = 0  # the rows that are looked at first
    assert isinstance(compact(as_rows(X)), DenseRows)
    assert compact(rows) is rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_supported_input_is_not_copied(dtype):
    X = np.ascontiguousarray(DENSE, dtype=dtype)
    assert np.shares_memory(as_rows(X).X, X)
    for S in (sparse.csr_matrix(X), int64_indices(X)):
        rows = as_rows(S)
        assert np.shares_memory(rows.data, S.data)
        assert np.shares_memory(rows.indices, S.indices)
        assert np.shares_memory(rows.indptr, S.indptr)
        assert rows.data.dtype == dtype


def test_rows_pass_through():
    rows = as_rows(DENSE)
    assert as_rows(rows) is rows


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float16])
def test_other_numbers_are_converted(kind):
    X = (DENSE > 0).astype(kind)
    assert as_rows(X).X.dtype == np.float64
    if kind is not np.float16:  # which scipy's sparse matrices cannot hold
        assert as_rows(sparse.csr_matrix(X)).data.dtype == np.float64


def broken(**changes):
    X = sparse.csr_matrix(DENSE)
    for name, (place, value) in changes.items():
        getattr(X, name)[place] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (broken(indices=(4, 99)), r"row \d+ has column index 99, but there are 7 columns"),
        (broken(indices=(0, -1)), "row 0 has column index -1"),
        (broken(indptr=(5, 10**6)), "indptr decreases after row 5"),
        (broken(indptr=(0, 1)), "indptr runs from 1"),
        (broken(indptr=(-1, 10**6)), r"indptr runs from 0 to 1000000"),
    ],
)
def test_broken_structure_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        as_rows(X)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_not_finite_is_refused_with_its_place(storage, value, name):
    X = np.zeros((4, 3))
    X[2, 1] = value
    with pytest.raises(ValueError, match=f"{name} at row 2, column 1"):
        as_rows(storage(X))


def test_large_finite_values_are_not_called_infinite():
    X = np.full((10, 4), 3e38, dtype=np.float32)  # their float32 sum overflows
    assert isinstance(as_rows(X), DenseRows)
    assert isinstance(as_rows(sparse.csr_matrix(X)), CSRRows)


def test_blocks_cover_all_rows_once():
    rows = as_rows(np.ones((100_000, 90), np.float32))
    blocks = list(rows.blocks())
    assert len(blocks) > 1
    assert blocks[0][0] == 0
    assert blocks[-1][1] == 100_000
    assert all(end == start for (_, end), (start, _) in pairwise(blocks))


def test_canonical_structure_is_told_from_any_other():
    random = np.random.default_rng(7)
    for _ in range(300):
        n, d = random.integers(1, 6, 2)
        counts = random.integers(0, 4, n)
        indptr = np.append(0, counts.cumsum()).astype(np.int32)
        indices = random.integers(0, d, indptr[-1]).astype(np.int32)
        spans = [indices[start:stop] for start, stop in pairwise(indptr)]
        for span in spans:
            if random.random() < 0.7:
                span.sort()
        rising = all((np.diff(span) > 0).all() for span in spans)
        rows = CSRRows(np.ones(len(indices)), indices.view(np.uint32), indptr, int(d))
        assert is_canonical(rows) == rising


@pytest.mark.parametrize("d", [7, 30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shifted_rows_equal_a_shifted_copy(dtype, d):
    X = (1000 + rng.standard_normal((50, d))).astype(dtype)
    X[3], origin = X[0], X[0].astype(np.float64)
    shifted, copy = ShiftedRows(X, origin), DenseRows(X).minus(origin)
    w, W, h = rng.standard_normal(d), rng.standard_normal((3, d)), rng.random(50)
    order = np.array([4, 3, 9])
    for ours, others in [
        (shifted.values, copy.X),
        (shifted.sqnorms, copy.sqnorms),
        (shifted.times(w), copy.times(w)),
        (shifted.transposed_times(h), copy.transposed_times(h)),
        (shifted.product(W), copy.product(W)),
        (shifted.transposed_product(h[:, None]), copy.transposed_product(h[:, None])),
        (shifted.moments(h), copy.moments(h)),
        (shifted.rough_moments(h), copy.rough_moments(h)),
        (shifted.square_sums(h), copy.square_sums(h)),
        (shifted.largest_entries(), copy.largest_entries()),
        (shifted.are_zero(), copy.are_zero()),
        (shifted.take(order).values, copy.X[order]),
        (shifted.columns(order[:2]).X, copy.X[:, order[:2]]),
        (shifted.minus(w).values, copy.minus(w).X),
    ]:
        np.testing.assert_allclose(ours, others, rtol=1e-12, atol=1e-12)
    assert shifted.centred == (shifted, pytest.approx([]))
    assert all(shifted.are_zero()[[0, 3]])

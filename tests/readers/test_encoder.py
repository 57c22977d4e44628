"""Encoders: scaling learnt once, and descriptions that are trusted only after a look."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

import zerogap as zg
from zerogap.readers import Category, DataError, Encoder, Number
from zerogap.readers.column_json import column_from_json

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 4)) * [1, 100, 1e-3, 0] + [0, 5, 1, 7]
TABLE = Encoder(4, (Number("a"), Category("b", ("", "p", "q"))), "y", True)


def test_standard_scaling_gives_mean_0_and_deviation_1():
    encoder = Encoder(4).fit_scaling(X, "standard")
    Z = encoder.scaled(X)
    assert np.allclose(Z.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(Z.std(axis=0), [1, 1, 1, 0])  # a constant feature becomes zero
    new = RNG.standard_normal((3, 4))
    assert np.allclose(encoder.scaled(new)[:, :3], (new - X.mean(0))[:, :3] / X.std(0)[:3])


@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_matrix])
def test_largest_absolute_values_become_1_and_zeros_stay(matrix):
    data = np.where(np.abs(X) > 2, X, 0.0)
    encoder = Encoder(4).fit_scaling(matrix(data), "max-abs")
    Z = encoder.scaled(matrix(data))
    assert sparse.issparse(Z) == sparse.issparse(matrix(data))
    Z = Z.toarray() if sparse.issparse(Z) else Z
    largest = np.abs(data).max(axis=0)
    assert (largest == 0).any()
    assert np.allclose(Z, data / np.where(largest > 0, largest, 1))
    assert np.array_equal(Z == 0, data == 0)


def test_scaling_leaves_its_input_alone():
    before = X.copy()
    Encoder(4).fit_scaling(X, "standard").scaled(X)
    assert np.array_equal(X, before)
    assert Encoder(4).scaled(X) is X


def test_scaling_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="choose max-abs"):
        Encoder(4).fit_scaling(sparse.csr_matrix(X), "standard", has_intercept=False)
    with pytest.raises(ValueError, match="'none', 'standard' or 'max-abs', got 'robust'"):
        Encoder(4).fit_scaling(X, "robust")
    with pytest.raises(DataError, match="has 3 features, the model has 4"):
        Encoder(4).scaled(X[:, :3])


def test_r9_standard_scaling_fills_no_sparse_matrix():
    """R9: standard scaling refused sparse data, though with an intercept no mean is needed."""
    data = sparse.random(400, 30, 0.1, "csr", random_state=0)
    encoder = Encoder(30).fit_scaling(data, "standard")
    Z = encoder.scaled(data)
    assert np.array_equal(Z.indices, data.indices)
    assert np.array_equal(Z.indptr, data.indptr)
    assert 1.0 / encoder.scale == pytest.approx(
        StandardScaler(with_mean=False).fit(data).scale_, rel=1e-13
    )
    assert np.allclose(Z.toarray().std(axis=0), 1.0, rtol=1e-13)
    dense = Encoder(30).fit_scaling(data.toarray(), "standard")
    assert encoder.scale == pytest.approx(dense.scale, rel=1e-13)
    assert (encoder.scaling, dense.scaling, Encoder(30).scaling) == ("standard", "standard", "none")
    assert Encoder(30).fit_scaling(data, "max-abs").scaling == "max-abs"


@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("offset", [0.0, 1.7e9, -1.7e9, 1e15])
def test_r9_offsets_take_nothing_from_the_deviation(offset, matrix):
    """R9: seconds since 1970, with a spread of 1, have the deviation of the same without 1970."""
    steps = np.random.default_rng(1).integers(-3, 4, 1000).astype(float)
    encoder = Encoder(1).fit_scaling(matrix((offset + steps)[:, None]), "standard")
    assert 1.0 / encoder.scale[0] == pytest.approx(steps.std(), rel=1e-12)
    Z = encoder.scaled(matrix((offset + steps)[:, None]))
    Z = Z.toarray() if sparse.issparse(Z) else Z
    mean = steps.mean() if encoder.shift[0] else 0.0  # a sparse column with zeros stays in place
    assert Z[:, 0] == pytest.approx((steps - mean) / steps.std(), abs=1e-6 if offset < 1e10 else 1)


def test_deviations_neither_overflow_nor_vanish():
    values = np.random.default_rng(2).standard_normal((100, 1)) * [1e200, 1e-200, 1.0]
    encoder = Encoder(3).fit_scaling(values, "standard")
    assert encoder.scale * [1e200, 1e-200, 1.0] == pytest.approx([encoder.scale[2]] * 3, rel=1e-12)


@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_matrix])
def test_constant_columns_are_divided_by_1(matrix):
    noise = np.where(np.arange(300) % 2, 0.1 + 0.2, 0.3)  # one number, but for rounding
    data = matrix(np.column_stack([np.full(300, 0.1), noise, np.zeros(300), np.full(300, -1e9)]))
    encoder = Encoder(4).fit_scaling(data, "standard")
    assert encoder.scale.tolist() == [1.0] * 4
    assert abs(encoder.scaled(data)).max() < 1e-15
    short = matrix(np.full((10_000, 1), 0.1, dtype=np.float32))
    assert Encoder(1).fit_scaling(short, "standard").scale == [1.0]


def test_zeros_of_new_data_are_shifted_like_other_values():
    """A column without zeros is centred; a new row may have a zero there, stored or not."""
    rng = np.random.default_rng(3)
    data = np.column_stack([5 + rng.random(50), rng.random(50) > 0.5, -9 - rng.random(50)])
    encoder = Encoder(3).fit_scaling(sparse.csr_matrix(data), "standard")
    assert [bool(shift) for shift in encoder.shift] == [True, False, True]
    new = sparse.csr_matrix(np.array([[0, 1, -9.0], [5, 0, 0.0], [0, 0, 0.0], [6, 1, -8.0]]))
    new.data[0] = 0.0  # an explicit zero
    expected = (new.toarray() - encoder.shift) * encoder.scale
    assert np.array_equal(encoder.scaled(new).toarray(), expected)
    twice = sparse.csr_matrix(([2.0, 3.0, 1.0], [0, 0, 2], [0, 3]), (1, 3))  # 2 + 3 in one place
    assert np.array_equal(
        encoder.scaled(twice).toarray(), ([[5.0, 0.0, 1.0]] - encoder.shift) * encoder.scale
    )


def test_sparse_data_for_a_model_of_dense_data(monkeypatch):
    encoder = Encoder(4).fit_scaling(X, "standard")
    data = np.where(abs(X) > 2, X, 0.0)
    assert np.array_equal(encoder.scaled(sparse.csr_matrix(data)).toarray(), encoder.scaled(data))
    monkeypatch.setattr("zerogap.readers.encoder._MOST_FILLED", 10)
    with pytest.raises(DataError, match="is sparse, but the model subtracts means"):
        encoder.scaled(sparse.csr_matrix(data))


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_r9_scaled_sparse_and_dense_data_have_one_optimum(l1_ratio):
    """R9: with an intercept the shift changes nothing but b."""
    rng = np.random.default_rng(4)
    dense = np.where(rng.random((200, 6)) < 0.3, rng.standard_normal((200, 6)), 0.0)
    dense = np.column_stack([100 * dense, 1.7e9 + rng.standard_normal(200)])
    y = np.sign(dense[:, 0] + dense[:, 1] - 20 + rng.standard_normal(200))
    found = []
    for data in (dense, sparse.csr_matrix(dense)):
        encoder = Encoder(7).fit_scaling(data, "standard")
        Z = encoder.scaled(data)
        problem = zg.Problem(Z, y, "logistic", 1e-2, fit_intercept=True, l1_ratio=l1_ratio)
        result = zg.solve(problem, zg.Auto(), tol=1e-12, max_epochs=10_000, random_state=0)
        found.append((result.certificate.primal, result.w, Z @ result.w + result.b))
    (primal, w, scores), (other_primal, other_w, other_scores) = found
    assert primal == pytest.approx(other_primal, rel=1e-9)
    assert w == pytest.approx(other_w, abs=1e-5)
    assert scores == pytest.approx(other_scores, abs=1e-4)


def test_a_description_without_sparse_shifts_is_read_as_ever():
    """Files of earlier versions: shift and scale of standard scaling, scale alone of max-abs."""
    old = Encoder.from_json(Encoder(2).to_json() | {"shift": [1.0, 0.0], "scale": [2.0, 0.5]})
    assert old.scaling == "standard"
    assert np.array_equal(old.scaled(np.array([[3.0, 4.0]])), [[4.0, 2.0]])
    old = Encoder.from_json(Encoder(2).to_json() | {"scale": [2.0, 0.5]})
    assert old.scaling == "max-abs"
    assert np.array_equal(old.scaled(sparse.csr_matrix([[3.0, 0.0]])).toarray(), [[6.0, 0.0]])


@pytest.mark.parametrize(
    "encoder",
    [Encoder(4), TABLE, TABLE.fit_scaling(X, "standard"), Encoder(4).fit_scaling(X, "max-abs")],
)
def test_descriptions_come_back_bit_for_bit(encoder):
    copy = Encoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert copy.to_json() == encoder.to_json()
    assert copy.columns == encoder.columns
    assert copy.feature_names == encoder.feature_names
    assert np.array_equal(copy.scaled(X), encoder.scaled(X))


GOOD = TABLE.fit_scaling(X, "standard").to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"n_features": 5},
        {"n_features": 0},
        {"n_features": -4},
        {"n_features": 4.0},
        {"n_features": True},
        {"n_features": 10**30},
        {"columns": None},
        {"columns": [{"name": "a"}]},
        {"columns": ["a", "b"]},
        {"columns": [{"name": 3, "categories": None}]},
        {"columns": [{"name": "a", "categories": None}] * 4},
        {"columns": [{"name": "b", "categories": []}]},
        {"columns": [{"name": "b", "categories": ["p", "p", "q", "r"]}]},
        {"columns": [{"name": "b", "categories": ["p", "q", "r", None]}]},
        {"columns": [{"name": "b", "categories": "pqrs"}]},
        {"target": 3},
        {"target": "a"},
        {"text_target": None},
        {"text_target": 1},
        {"scale": [1.0, 1.0, 1.0]},
        {"scale": [1.0, 1.0, 1.0, 0.0]},
        {"scale": [1.0, 1.0, 1.0, -1.0]},
        {"scale": [1.0, 1.0, 1.0, float("nan")]},
        {"scale": [1.0, 1.0, 1.0, float("inf")]},
        {"scale": [1.0, 1.0, 1.0, 10**400]},
        {"scale": [1.0, 1.0, 1.0, "1"]},
        {"scale": [1.0, 1.0, 1.0, True]},
        {"scale": None},
        {"shift": {"0": 1.0}},
        {"names": ["a", "b", "c", "d"]},  # columns have names of their own
        {"columns": [], "names": ["a", "b", "c"]},
        {"columns": [], "names": ["a", "b", "c", 4]},
        {"more": 1},
    ],
)
def test_other_descriptions_are_refused(change):
    Encoder.from_json(GOOD)
    with pytest.raises(DataError, match="is no encoder"):
        Encoder.from_json(GOOD | change)


@pytest.mark.parametrize("value", [None, 3, [], "x", {}, {"n_features": 3}])
def test_what_is_no_description_is_refused(value):
    with pytest.raises(DataError, match="is no encoder"):
        Encoder.from_json(value)


def test_hashed_words_are_those_of_scikit_learn():
    import pyarrow as pa
    from sklearn.feature_extraction.text import HashingVectorizer

    from zerogap.readers import HashedText

    texts = ["Good box, good day", "", "größe 高 42", None]
    column = HashedText("note", 64)
    found = column.entries(pa.chunked_array([texts[:1], texts[1:]]), 0, ()).toarray()
    theirs = HashingVectorizer(n_features=64, alternate_sign=False, token_pattern=r"\w+")
    assert found == pytest.approx(theirs.transform([t or "" for t in texts]).toarray())
    assert column_from_json(column.to_json()) == column
    for buckets in (0, -1, 1 << 25, 2.0, True):
        with pytest.raises(DataError, match="buckets"):
            column_from_json(column.to_json() | {"buckets": buckets})

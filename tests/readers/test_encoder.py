"""Encoders: scaling learnt once, and descriptions that are trusted only after a look."""

import json

import numpy as np
import pytest
from scipy import sparse

from zerogap.readers import Column, DataError, Encoder

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 4)) * [1, 100, 1e-3, 0] + [0, 5, 1, 7]
TABLE = Encoder(4, (Column("a"), Column("b", ("", "p", "q"))), "y", True)


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
        Encoder(4).fit_scaling(sparse.csr_matrix(X), "standard")
    with pytest.raises(ValueError, match="'standard' or 'max-abs', got 'robust'"):
        Encoder(4).fit_scaling(X, "robust")
    with pytest.raises(DataError, match="is sparse"):
        Encoder(4).fit_scaling(X, "standard").scaled(sparse.csr_matrix(X))
    with pytest.raises(DataError, match="has 3 features, the model has 4"):
        Encoder(4).scaled(X[:, :3])


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

"""Tensors of other libraries are taken by DLPack: the same numbers, and the same models."""

import numpy as np
import pytest
from sklearn import config_context

import zerogap as zg
from problems import make_data
from zerogap.io.tensors import as_array, as_tensor, is_tensor, library_of


class Tensor:
    """An array of a library that has DLPack and nothing else of numpy's."""

    def __init__(self, values, dtype=None, device=(1, 0)):
        self.values, self.device = np.asarray(values), device
        self.dtype = dtype or f"library.{self.values.dtype}"
        self.detached = False

    def __dlpack__(self, **named):
        assert self.dtype != "library.bfloat16", "DLPack of numpy knows no such type"
        return self.values.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.device

    def float(self):
        return Tensor(self.values.astype(np.float32))


def of_torch(values, dtype):
    torch = pytest.importorskip("torch")
    return torch.tensor(values).to(getattr(torch, dtype))


def of_jax(values, dtype):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        return jax.numpy.asarray(values).astype(dtype)


def of_our_own(values, dtype):
    return Tensor(values if dtype == "bfloat16" else values.astype(dtype), f"library.{dtype}")


def test_what_is_a_tensor():
    assert is_tensor(Tensor([1.0]))
    assert not any(map(is_tensor, ([1.0], np.ones(1), 1.0, None, "text")))
    assert as_array("text") == "text"


@pytest.mark.parametrize("make", [of_our_own, of_torch, of_jax])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tensors_are_not_copied(make, dtype):
    given = make(np.arange(6.0).reshape(3, 2), dtype)
    seen, again = as_array(given), as_array(given)
    assert seen.dtype == dtype
    assert np.shares_memory(seen, again)


@pytest.mark.parametrize("make", [of_our_own, of_torch, of_jax])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_tensors_give_the_model_of_their_numbers(make, dtype):
    X, y = make_data("hinge", 60)
    X = np.round(8.0 * X) / 8.0  # of which three digits are exact in every type
    X = np.clip(X, -15.0, 15.0)
    model = zg.LinearClassifier("logistic", tol=1e-6, random_state=0).fit(make(X, dtype), y)
    exact = X.astype(np.float64 if dtype == "float64" else np.float32)
    other = zg.LinearClassifier("logistic", tol=1e-6, random_state=0).fit(exact, y)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.predict(make(X, dtype)), other.predict(X))
    assert model.score(make(X, dtype), make(y, "float64")) == other.score(X, y)


@pytest.mark.parametrize("make", [of_our_own, of_torch, of_jax])
def test_problems_take_tensors(make):
    X, y = make_data("hinge", 30)
    given = zg.Problem(make(X, "float64"), y, "hinge").certificate(np.ones(X.shape[1]))
    assert given == zg.Problem(X, y, "hinge").certificate(np.ones(X.shape[1]))


@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared"])
def test_results_are_tensors_where_scikit_learn_dispatches(loss):
    torch = pytest.importorskip("torch")
    X, y = (torch.tensor(a) for a in make_data("hinge", 60))
    make = zg.LinearRegressor if loss == "squared" else zg.LinearClassifier
    plain = make(loss, warm_start=True, random_state=0).fit(X, y)
    assert isinstance(plain.coef_, np.ndarray)
    assert isinstance(plain.predict(X), np.ndarray)
    with config_context(array_api_dispatch=True):
        model = make(loss, warm_start=True, random_state=0).fit(X, y)
        results = [model.coef_, model.intercept_, model.dual_coef_, model.predict(X)]
        if loss != "squared":
            results += [model.predict_proba(X), model.decision_function(X)]
        assert all(isinstance(result, torch.Tensor) for result in results)
        np.testing.assert_array_equal(model.coef_.numpy(), plain.coef_)
        np.testing.assert_array_equal(model.predict(X).numpy(), plain.predict(X.numpy()))
        assert isinstance(model.predict(X.numpy()), np.ndarray)  # results follow the rows
        assert model.fit(X, y).certificate_.epochs == 0
        np.testing.assert_array_equal(model.support_, plain.support_)


def test_text_stays_text():
    torch = pytest.importorskip("torch")
    X, y = make_data("hinge", 60)
    with config_context(array_api_dispatch=True):
        model = zg.LinearClassifier(random_state=0).fit(torch.tensor(X), np.where(y > 0, "a", "b"))
        assert set(model.predict(torch.tensor(X))) == {"a", "b"}


def test_models_of_tensors_are_saved(tmp_path):
    torch = pytest.importorskip("torch")
    X, y = (torch.tensor(a) for a in make_data("hinge", 60))
    with config_context(array_api_dispatch=True):
        model = zg.LinearClassifier(random_state=0).fit(X, y)
    zg.save(model, tmp_path / "model.zg")
    loaded = zg.load(tmp_path / "model.zg")
    np.testing.assert_array_equal(loaded.predict(X.numpy()), model.predict(X))


def test_results_of_arrays_need_no_library():
    assert library_of(np.ones(3)) == library_of(Tensor([1.0])) == ""
    ones = np.ones(3)
    assert as_tensor(ones, "") is ones


def test_what_dlpack_cannot_hand_over_is_refused():
    torch = pytest.importorskip("torch")
    X, y = make_data("hinge", 30)
    with pytest.raises(ValueError, match=r"tensor of torch .* cannot be read.*dense tensor"):
        zg.LinearClassifier().fit(torch.tensor(X).to_sparse(), y)

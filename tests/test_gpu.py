"""Training on a real GPU: the cases of the simulator, arrays of CuPy, and data that keep it busy.

Run by ``make test-gpu``.
"""

import gc
import re

import numpy as np
import pytest
from scipy import sparse

import zerogap as zg
from problems import make_data
from zerogap.cuda import DeviceError
from zerogap.cuda.device import arrays, to_host
from zerogap.problem.gap import CLEAR

try:
    cp = arrays()
except DeviceError as error:
    pytest.skip(str(error), allow_module_level=True)

pytest.register_assert_rewrite("cuda_cases")

from cuda_cases.estimators import *  # noqa: E402, F403
from cuda_cases.problem import *  # noqa: E402, F403
from cuda_cases.rows import *  # noqa: E402, F403
from cuda_cases.runs import *  # noqa: E402, F403
from cuda_cases.solvers import *  # noqa: E402, F403
from cuda_cases.together import *  # noqa: E402, F403
from zerogap.cuda import to_device  # noqa: E402
from zerogap.cuda.rows import as_device_rows  # noqa: E402
from zerogap.cuda.solvers import sdca as device_sdca  # noqa: E402

pytestmark = pytest.mark.gpu

STORAGES = ["dense", "csr"]


def on_gpu(X, storage="dense"):
    if storage == "dense":
        return cp.asarray(X)
    from cupyx.scipy import sparse as device_sparse

    return device_sparse.csr_matrix(sparse.csr_matrix(X))


def buffers(rows):
    """Where the values of rows are."""
    values = rows.X if hasattr(rows, "X") else rows.values
    return values.data.ptr


# Arrays of CuPy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", STORAGES)
def test_cupy_rows_are_not_copied(storage, dtype):
    X = on_gpu(make_data("hinge", dtype=dtype)[0], storage)
    rows = as_device_rows(X)
    assert buffers(rows) == (X.data.ptr if storage == "dense" else X.data.data.ptr)
    assert zg.Problem(rows, make_data("hinge")[1], "hinge").rows is rows


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax"])
def test_models_of_cupy_rows_are_cupy(storage, loss):
    host, y = make_data("hinge", 200)
    X = on_gpu(host, storage)
    options = {"lam": 0.01, "tol": 1e-8, "device": "cuda", "random_state": 0}
    model = zg.LinearClassifier(loss, **options).fit(X, cp.asarray(y))
    other = zg.LinearClassifier(loss, **options).fit(host, y)
    for name in ("coef_", "intercept_", "dual_coef_"):
        assert isinstance(getattr(model, name), cp.ndarray)
        assert isinstance(getattr(other, name), np.ndarray)
    np.testing.assert_allclose(model.coef_.get(), other.coef_, atol=1e-2)
    predicted = model.predict(X)
    assert isinstance(predicted, cp.ndarray)
    assert isinstance(model.decision_function(X), cp.ndarray)
    np.testing.assert_array_equal(predicted.get(), other.predict(host))
    for given in (model, other):  # the model follows the rows
        assert isinstance(given.predict(host), np.ndarray)
        np.testing.assert_array_equal(given.predict(host), given.predict(X).get())


def test_labels_that_are_text_stay_on_the_processor():
    X, y = make_data("hinge", 200)
    names = np.where(y > 0, "yes", "no")
    model = zg.LinearClassifier(device="cuda", random_state=0).fit(cp.asarray(X), names)
    predicted = model.predict(cp.asarray(X))
    assert isinstance(predicted, np.ndarray)
    assert set(predicted) == {"yes", "no"}


def test_regression_of_cupy_rows():
    X, y = make_data("huber", 200)
    weights = np.arange(200) % 3
    options = {"lam": 0.01, "tol": 1e-8, "device": "cuda", "random_state": 0}
    given = map(cp.asarray, (X, y, weights))
    model = zg.LinearRegressor("huber", **options).fit(*given)
    other = zg.LinearRegressor("huber", **options).fit(X, y, weights)
    assert isinstance(model.predict(cp.asarray(X)), cp.ndarray)
    np.testing.assert_allclose(model.predict(cp.asarray(X)).get(), other.predict(X), atol=1e-2)


def of_torch(X, dtype):
    torch = pytest.importorskip("torch")
    return torch.tensor(X, device="cuda").to(getattr(torch, dtype))


def of_jax(X, dtype):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        return jax.device_put(X, jax.devices("gpu")[0]).astype(dtype)


@pytest.mark.parametrize("make", [of_torch, of_jax])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_tensors_on_the_gpu_stay_there(make, dtype, loss):
    host, y = make_data("hinge", 200)
    host = np.clip(np.round(8.0 * host) / 8.0, -15.0, 15.0)  # exact in every type
    X = make(host, dtype)
    options = {"lam": 0.01, "tol": 1e-8, "device": "cuda", "random_state": 0}
    model = zg.LinearClassifier(loss, **options).fit(X, make(y, "float32"))
    assert model.certificate_.relative_gap <= 1e-8
    other = zg.LinearClassifier(loss, **options).fit(host, y)
    results = [model.coef_, model.intercept_, model.dual_coef_, model.predict(X)]
    results += [model.decision_function(X), model.predict_proba(X)]
    assert {type(result) for result in results} == {type(X)}
    assert all(result.__dlpack_device__()[0] == 2 for result in results)
    np.testing.assert_allclose(to_host(model.coef_), other.coef_, atol=1e-2)
    np.testing.assert_array_equal(to_host(model.predict(X)), other.predict(host))
    np.testing.assert_array_equal(model.predict(host), other.predict(host))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tensors_on_the_gpu_are_not_copied(dtype):
    X = of_torch(make_data("hinge")[0], dtype)
    assert buffers(as_device_rows(X)) == X.data_ptr()


def test_warm_start_of_cupy_rows():
    X, y = make_data("hinge", 200)
    X = cp.asarray(X)
    model = zg.LinearClassifier("logistic", device="cuda", warm_start=True, random_state=0)
    assert model.fit(X, y).certificate_.epochs > 0
    assert model.fit(X, y).certificate_.epochs == 0


@pytest.mark.parametrize("storage", STORAGES)
def test_bad_cupy_rows_are_refused_with_their_place(storage):
    X, y = make_data("hinge")
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity at row 3, column 1"):
        zg.LinearClassifier(device="cuda").fit(on_gpu(X, storage), y)


def test_cupy_rows_are_refused_where_they_cannot_be_used():
    X, y = make_data("hinge")
    with pytest.raises(ValueError, match=r"X is on a GPU: use device='cuda', or X\.get\(\)"):
        zg.LinearClassifier().fit(cp.asarray(X), y)
    with pytest.raises(ValueError, match="keep_data needs rows on the processor"):
        zg.LinearClassifier(device="cuda", keep_data=True).fit(cp.asarray(X), y)
    model = zg.LinearClassifier(device="cuda").fit(cp.asarray(X), y)
    with pytest.raises(ValueError, match="X has 4 features, but LinearClassifier is expecting 5"):
        model.predict(cp.asarray(X[:, :4]))


# Data that keep a GPU busy


def text_like(n=20_000, d=500, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.csr_matrix(rng.random((n, d), np.float32) * (rng.random((n, d)) < 0.02))
    score = X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n)
    return X, np.where(score > 0.1, 1.0, -1.0)


def rows_at_a_time(certificate):
    return int(re.match(r"SDCA of (\d+) rows at a time", certificate.solver)[1])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_many_rows_at_a_time_reach_the_gap(loss, intercept):
    problem = zg.Problem(*text_like(), loss, fit_intercept=intercept)
    run = zg.solve(problem, zg.SDCA(), tol=1e-3, random_state=0, device="cuda")
    assert run.stop_reason == "converged"
    assert rows_at_a_time(run.certificate) > 8
    best = zg.solve(problem, zg.SDCA(), tol=1e-6, random_state=0).certificate
    assert best.dual <= run.certificate.primal <= best.primal + run.certificate.gap
    here = problem.certificate(run.w, run.b, run.alpha)
    there = to_device(problem).certificate(run.w, run.b, run.alpha)
    assert there.primal == pytest.approx(here.primal, rel=1e-12)
    # bounds of rounding differ, and what is not known of P is taken from the dual value
    doubt = 10.0 * max(there.rounding, here.rounding) + CLEAR * here.primal
    assert there.dual == pytest.approx(here.dual, rel=1e-12, abs=doubt)
    computed = [found.gap - found.rounding for found in (there, here)]
    assert computed[0] == pytest.approx(computed[1], abs=1e-12 * here.primal)


@pytest.mark.parametrize("intercept", [False, True])
def test_too_many_rows_at_a_time_step_back(intercept, monkeypatch):
    """All rows are nearly equal: each step of thousands that do not see each other goes too far."""
    monkeypatch.setattr(device_sdca, "ROWS_APART", 1)
    monkeypatch.setattr(device_sdca, "ROWS_APART_AT_LAST", 1)
    monkeypatch.setattr(device_sdca, "_concurrent_warps", lambda: 4096)
    rng = np.random.default_rng(0)
    X = 1.0 + 0.1 * rng.standard_normal((20_000, 50))
    y = np.where(X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(20_000) > 0, 1.0, -1.0)
    problem = zg.Problem(X, y, "hinge", lam=1e-2, fit_intercept=intercept)
    options = {"tol": 1e-2, "max_epochs": 5000, "random_state": 0}
    run = zg.solve(problem, zg.SDCA(), device="cuda", **options)
    assert run.stop_reason == "converged"
    # with an intercept the rows are centred, and no longer alike
    assert intercept or "slowed down" in run.certificate.solver
    best = zg.solve(problem, zg.SDCA(), **options).certificate
    assert best.dual <= run.certificate.primal <= best.primal + run.certificate.gap


@pytest.mark.parametrize("solver", ["sdca", "newton", "auto"])
def test_deterministic_runs_repeat_their_bits(solver):
    X, y = text_like(2000, 50)
    options = {"solver": solver, "device": "cuda-deterministic", "random_state": 0}
    first, second = (zg.LinearClassifier("logistic", **options).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)


@pytest.fixture
def small_pool():
    """Let CuPy have a megabyte more than it holds."""
    pool = cp.get_default_memory_pool()

    def limit():
        gc.collect()  # garbage of earlier tests would be memory that comes back during the next
        pool.free_all_blocks()
        pool.set_limit(size=pool.total_bytes() + 2**20)

    yield limit
    pool.set_limit(size=0)


def test_too_little_memory_is_named(small_pool):
    X, y = np.ones((200_000, 10)), np.tile([-1.0, 1.0], 100_000)
    moved = cp.asarray(X)
    small_pool()
    message = r"ran out of memory, \d+\.\d\d GB are free: .*[\d,]+ bytes"
    with pytest.raises(DeviceError, match=message):
        zg.LinearClassifier(device="cuda").fit(X, y)
    with pytest.raises(DeviceError, match=message):
        zg.LinearClassifier(device="cuda").fit(moved, y)
    with pytest.raises(DeviceError, match=message):
        zg.solve(zg.Problem(X, y, "hinge"), zg.SDCA(), device="cuda")

"""What a run on a device refuses, and what it leaves behind when it fails."""

import threading

import numpy as np
import pytest

import zerogap as zg
from cuda_cases.common import BOTH, PLAIN, break_down, make, solve
from problems import make_data
from zerogap.cuda import DeviceError, device, to_device
from zerogap.cuda.device import watched
from zerogap.cuda.solvers.sdca import DeviceSDCA
from zerogap.losses import MULTICLASS_LOSSES
from zerogap.solvers import BlockSDCA
from zerogap.store import write_store
from zerogap.streamed import StreamedProblem


def test_run_refuses_what_there_is_on_the_processor_only(tmp_path):
    problem = make("hinge", *PLAIN)
    with pytest.raises(ValueError, match=r"options that SDCA does not have on a GPU: use SDCA\("):
        solve(problem, zg.SDCA(sampling="cyclic"))
    assert solve(problem, zg.SDCA(shrink=False, layout="given"), 0.1).stop_reason == "converged"
    for solver in (zg.BCFW(), BlockSDCA()):
        with pytest.raises(ValueError, match=r"\w+ does not work on a GPU: use device='cpu'"):
            solve(problem, solver)
    with pytest.raises(ValueError, match="checkpoints are not written from a GPU"):
        solve(problem, zg.SDCA(), checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="checkpoints are not written from a GPU"):
        _ = to_device(problem).fingerprint
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="arrays of this problem are on a GPU: use device='cuda'"):
        solve(to_device(problem), zg.SDCA(), where="cpu")
    for loss in MULTICLASS_LOSSES:
        net = make(loss, "dense", np.float64, False, False, 0.3)
        with pytest.raises(ValueError, match=r"an elastic net with .* weights, .* on the CPU"):
            solve(net, zg.Auto())


def test_run_refuses_rows_in_a_store(tmp_path):
    X, y = make_data("hinge", 150)
    store = write_store(tmp_path / "store", [(X, y)], task="classification")
    with pytest.raises(ValueError, match="rows in a store are read by the processor"):
        solve(StreamedProblem(store, "hinge", 0.1), BlockSDCA())


def test_run_works_where_the_arrays_are():
    run = solve(to_device(make("hinge", *PLAIN)), zg.SDCA(), 0.1, where=None)
    assert run.certificate.solver == "SDCA of 1 rows at a time"


def test_run_needs_memory_and_says_how_much(monkeypatch):
    X, y = np.ones((200_000, 3)), np.tile([-1.0, 1.0], 100_000)
    problem = zg.Problem(X, y, "hinge", 0.1)
    monkeypatch.setattr(device, "free_memory", lambda: 1e7)
    match = r"training on \(200000, 3\) needs about 0\.02 GB on the GPU, 0\.01 GB are free"
    with pytest.raises(DeviceError, match=match):
        solve(problem, zg.SDCA())
    match = r"X of shape \(200000, 3\) needs about 0\.05 GB on the GPU, 0\.01 GB are free"
    with pytest.raises(DeviceError, match=match):
        zg.LinearClassifier(device="cuda").fit(X, y)


@pytest.mark.parametrize(
    ("name", "module", "message"),
    [
        ("OutOfMemoryError", "cupy.cuda.memory", r"ran out of memory, \d+\.\d\d GB are free: 99"),
        ("CudaAPIError", "numba.cuda.cudadrv.driver", r"failed \(99\): .* start a new one"),
        ("CUDARuntimeError", "cupy_backends.cuda.api.runtime", r"failed \(99\): .* a new one"),
    ],
)
def test_run_names_errors_of_the_libraries(name, module, message):
    error = type(name, (RuntimeError,), {"__module__": module})
    with pytest.raises(DeviceError, match=message) as caught, watched():
        raise error("99")
    assert isinstance(caught.value.__cause__, error)
    other = type("TypingError", (RuntimeError,), {"__module__": "numba.core.errors"})
    for mistake in (other("98"), ValueError("98")):
        with pytest.raises(type(mistake), match="98"), watched():
            raise mistake


@pytest.mark.parametrize(
    ("name", "module", "message"),
    [
        ("CUDARuntimeError", "cupy_backends.cuda.api.runtime", "cudaErrorMemoryAllocation: 97"),
        ("CUBLASError", "cupy_backends.cuda.libs.cublas", "CUBLAS_STATUS_ALLOC_FAILED"),
        ("CudaAPIError", "numba.cuda.cudadrv.driver", "[2] CUDA_ERROR_OUT_OF_MEMORY"),
    ],
)
def test_run_names_the_memory_that_is_missing(name, module, message):
    error = type(name, (RuntimeError,), {"__module__": module})
    with pytest.raises(DeviceError, match="the GPU ran out of memory"), watched():
        raise error(message)


def no_memory(*_, **__):
    error = type("OutOfMemoryError", (MemoryError,), {"__module__": "cupy.cuda.memory"})
    raise error("Out of memory allocating 16,000,000 bytes")


@pytest.mark.parametrize(
    "place",
    [
        "cuda.rows.as_device_rows",
        "cuda.problem.DeviceProblem._set",
        "solvers.run.Run.__init__",
        "solvers.run.Run.result",
        "problem.examining.Examining.examine",
    ],
)
def test_fits_and_paths_name_missing_memory_wherever_it_is_missing(monkeypatch, place):
    X, y = make_data("hinge", 14, 3)
    monkeypatch.setattr(f"zerogap.{place}", no_memory)
    for run in (
        lambda: zg.LinearClassifier(device="cuda").fit(X, y),
        lambda: zg.path(X, y, [0.1, 0.2], device="cuda"),
    ):
        with pytest.raises(DeviceError, match="the GPU ran out of memory"):
            run()


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_problems_name_missing_memory_in_all_that_users_call(monkeypatch, loss):
    problem = to_device(make(loss, *PLAIN))
    w, alpha = np.zeros(problem.weight_shape), np.zeros(problem.dual_shape)
    monkeypatch.setattr(type(problem), "_on_device", no_memory)
    calls = [(problem.primal, w), (problem.gradient, w), (problem.certificate, w)]
    for call, point in [*calls, (problem.dual, alpha), (problem.weights, alpha)]:
        with pytest.raises(DeviceError, match="the GPU ran out of memory"):
            call(point)


def test_run_that_fails_has_its_best_certificate(monkeypatch):
    break_down(monkeypatch, 2)
    problem = make("hinge", *BOTH["csr"])
    with pytest.raises(DeviceError, match="the GPU has failed") as caught:
        solve(problem, zg.SDCA(), 0.0, record="epoch")
    result = caught.value.result
    assert result.certificate.stop_reason == result.stop_reason == "device failed"
    assert list(result.history["epoch"]) == [0, 1, 2]
    again = problem.certificate(result.w, result.b, result.alpha)
    assert again.gap == pytest.approx(result.certificate.gap, rel=1e-9)
    assert result.certificate.gap == result.history["gap"].min()


def test_run_that_fails_at_once_has_none(monkeypatch):
    def begin(*arguments):
        raise DeviceError("the GPU has failed")

    monkeypatch.setattr(DeviceSDCA, "begin", begin)
    with pytest.raises(DeviceError, match="the GPU has failed") as caught:
        solve(make("hinge", *PLAIN), zg.SDCA())
    assert caught.value.result is None


def test_run_that_is_interrupted_has_its_best_certificate():
    problem, stop = make("hinge", *BOTH["csr"]), threading.Event()

    def callback(record):
        if record.epoch >= 3:
            stop.set()

    options = {"record": "epoch", "callback": callback, "interrupt": stop}
    run = solve(problem, zg.SDCA(), 0.0, max_epochs=10**6, **options)
    assert run.stop_reason == "interrupted"
    assert run.history["epoch"][-1] == 3
    assert run.certificate.gap == run.history["gap"].min()
    again = problem.certificate(run.w, run.b, run.alpha)
    assert again.gap == pytest.approx(run.certificate.gap, rel=1e-9)

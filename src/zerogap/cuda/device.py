"""Find the GPU and its libraries; errors say what is missing or went wrong."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from zerogap.errors import DeviceError
from zerogap.io.memory import free_memory as of_host
from zerogap.io.tensors import as_array, is_on_gpu

_NO_MEMORY = (  # in what the GPU's libraries call an allocation that failed
    "OutOfMemory",
    "OUT_OF_MEMORY",
    "MemoryAllocation",
    "ALLOC_FAILED",
    "ALLOCATION_FAILED",
)
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"


def is_on_device(X: Any) -> bool:
    """Tell whether an array, tensor or sparse matrix is on a GPU."""
    return type(X).__module__.partition(".")[0] in ("cupy", "cupyx") or is_on_gpu(X)


def to_host(a: Any) -> Any:
    """Return an array or tensor as numpy's, wherever it is."""
    a = as_array(a)
    if not is_on_device(a):
        return a
    with watched():
        return a.get()


@functools.cache
def arrays() -> ModuleType:
    """Return CuPy, or numpy in the simulator; raise DeviceError where no GPU can be used."""
    found = []
    modules = {}
    names = (
        {"numba-cuda": "numba_cuda"} if SIMULATED else {"numba-cuda": "numba_cuda", "CuPy": "cupy"}
    )
    for name, module in names.items():
        try:
            modules[name] = importlib.import_module(module)
            found.append(f"{name} {modules[name].__version__}")
        except ImportError as error:
            found.append(f"no {name} ({error})")
    if len(modules) < len(names):
        _refuse(found)
    if SIMULATED:
        return importlib.import_module("numpy")
    cupy = modules["CuPy"]
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        _refuse([*found, f"no usable GPU ({error})"])
    if not count:
        _refuse([*found, "no GPU"])
    return cupy


def _refuse(found: list[str]) -> None:
    raise DeviceError(
        f"device='cuda' needs an NVIDIA GPU with its driver, numba-cuda and CuPy "
        f"(pip install 'zerogap[gpu]'); found: {', '.join(found)}.  Use device='cpu'"
    )


def sparse_arrays() -> ModuleType:
    """Return CuPy's sparse matrices, or scipy's in the simulator."""
    arrays()
    return importlib.import_module("scipy.sparse" if SIMULATED else "cupyx.scipy.sparse")


def free_memory() -> float:
    """Return the bytes that are free on the GPU, those that CuPy keeps for itself included."""
    if SIMULATED:
        return of_host()
    cupy = arrays()
    pool = cupy.get_default_memory_pool()
    return float(cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes())


def check_memory(needed: float, what: str) -> None:
    """Refuse what would exceed the memory of the GPU."""
    free = free_memory()
    if needed > free:
        raise DeviceError(
            f"{what} needs about {needed / 1e9:.2f} GB on the GPU, {free / 1e9:.2f} GB are free: "
            f"use device='cpu', float32 data or fewer rows"
        )


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Turn errors of the GPU's libraries into DeviceErrors that say what happened.

    Around all that users call: nearly every operation on a GPU's arrays allocates memory.
    """
    try:
        yield
    except Exception as error:
        module = type(error).__module__.partition(".")[0]
        if module not in ("cupy", "cupyx", "cupy_backends", "numba", "numba_cuda", "cuda"):
            raise
        said = f"{type(error).__name__} {error}"
        if any(words in said for words in _NO_MEMORY):
            raise DeviceError(
                f"the GPU ran out of memory, {free_memory() / 1e9:.2f} GB are free: {error}"
            ) from error
        if type(error).__name__.startswith(("CUDA", "Cuda", "CUBLAS", "CUSOLVER", "CUSPARSE")):
            raise DeviceError(
                f"the GPU has failed ({error}): it may be lost to this process, start a new one"
            ) from error
        raise

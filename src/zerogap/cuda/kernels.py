"""Compile for a GPU what `zerogap.kernels.jit` compiles for the processor.

A `Struct` such as a loss becomes a module whose numbers are constants and whose functions are its
methods: numba-cuda knows modules, so that methods are compiled as they are written.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import math
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from zerogap.cuda.device import SIMULATED, arrays, to_host
from zerogap.kernels import exp_log
from zerogap.kernels.jit import Struct

arrays()
if not hasattr(np, "row_stack"):  # numpy from 2.5 on; numba-cuda up to 0.30 asks for it
    np.row_stack = np.vstack  # noqa: NPY201

from numba import cuda as _cuda  # noqa: E402

cuda: Any = _cuda
# small launches are meant to be small: no warning
importlib.import_module("numba.cuda.core.config").CUDA_LOW_OCCUPANCY_WARNINGS = 0  # type: ignore[attr-defined]

WIDTH = 1 if SIMULATED else 32  # threads that share a row: the simulator has no warps
THREADS = 4 if SIMULATED else 256  # of a block


def view(a: Any) -> Any:
    """Return an array as a kernel takes it, in a fraction of the time that the kernel would need.

    A view is an address, a shape and a type.  It does not keep the array alive, so that it serves
    all arrays that are ever at that place.
    """
    if SIMULATED or not hasattr(a, "__cuda_array_interface__"):
        return a
    return _view(a.data.ptr, a.shape, a.dtype.str) if a.flags.c_contiguous else _strided(a)


@functools.lru_cache(maxsize=4096)
def _view(address: int, shape: tuple[int, ...], kind: str) -> Any:
    # one stream: what was asked for first is done first
    place = {"shape": shape, "typestr": kind, "data": (address, False), "version": 3}
    return cuda.from_cuda_array_interface(place, sync=False)


def _strided(a: Any) -> Any:
    return cuda.as_cuda_array(a, sync=False)


@functools.cache
def module_of(struct: Struct) -> ModuleType:
    """Return a module with the numbers and methods of a struct, for kernels."""
    module = ModuleType(type(struct).__name__)
    for field in dataclasses.fields(struct):  # type: ignore[arg-type]
        setattr(module, field.name, getattr(struct, field.name))
    for name, method in inspect.getmembers(type(struct), inspect.isfunction):
        if not name.startswith("_"):
            own, *others = inspect.signature(method).parameters
            scope = {"method": on_device(method), own: module}
            call = f"lambda {', '.join(others)}: method({', '.join([own, *others])})"
            setattr(module, name, cuda.jit(device=True)(eval(call, scope)))
    return module


@functools.cache
def on_device(function: FunctionType) -> Any:
    """Compile a function for the GPU, with all that it calls."""
    scope = dict(function.__globals__)
    for name in function.__code__.co_names:
        value: Any = scope.get(name)
        if value is exp_log:  # made for processors
            scope[name] = math
        elif hasattr(value, "py_func"):
            scope[name] = on_device(value.py_func)
    code = (function.__code__, scope, function.__name__)
    return cuda.jit(device=True)(FunctionType(*code, function.__defaults__, function.__closure__))


def launch(loop: Any, count: int, *args: Any, columns: int = 0) -> Any:
    """Run a row-wise kernel with a thread for each of `count` rows; return its sums.

    If rows are the entries of a matrix with so many columns: those of each column, as an array.
    """
    structs = tuple(a if isinstance(a, Struct) else None for a in args)
    kernel = _rowwise(loop.py_func, loop.sums, structs)
    sums = arrays().empty((max(loop.sums, 1), count if loop.sums else 0))
    given = [view(a) for a in args if not isinstance(a, Struct)]
    kernel[max(1, -(-count // THREADS)), THREADS](view(sums), count, *given)
    if not loop.sums:
        return None
    if columns:
        return to_host(sums.reshape(loop.sums, -1, columns).sum(axis=1))
    totals = sums.sum(axis=1).tolist()
    return totals[0] if loop.sums == 1 else tuple(totals)


@functools.cache
def _rowwise(function: FunctionType, sums: int, structs: tuple[Struct | None, ...]) -> Any:
    """Return the kernel whose thread i runs the loop over row i alone."""
    names = [f"a{k}" for k in range(len(structs))]
    given = [name for name, struct in zip(names, structs, strict=True) if struct is None]
    scope: dict[str, Any] = {"cuda": cuda, "loop": on_device(function)}
    for name, struct in zip(names, structs, strict=True):
        if struct is not None:
            scope[name] = module_of(struct)
    into = ", ".join(f"sums[{k}, i]" for k in range(sums))
    exec(
        f"def kernel(sums, count, {', '.join(given)}):\n"
        f"    i = cuda.grid(1)\n"
        f"    if i < count:\n"
        f"        {into + ' = ' if sums else ''}loop({', '.join(names)}, i, i + 1)\n",
        scope,
    )
    return cuda.jit(scope["kernel"])


@cuda.jit(device=True)
def sum_of_lanes(x):
    """Return the sum of x over the threads that share a row, to each of them."""
    if WIDTH > 1:
        x += cuda.shfl_xor_sync(0xFFFFFFFF, x, 16)
        x += cuda.shfl_xor_sync(0xFFFFFFFF, x, 8)
        x += cuda.shfl_xor_sync(0xFFFFFFFF, x, 4)
        x += cuda.shfl_xor_sync(0xFFFFFFFF, x, 2)
        x += cuda.shfl_xor_sync(0xFFFFFFFF, x, 1)
    return x


@cuda.jit(device=True)
def sum_of_parts(x, across):
    """Return the sum of x over each `across`-th of these threads, to each of them."""
    if WIDTH > 1:
        apart = across
        while apart < WIDTH:
            x += cuda.shfl_xor_sync(0xFFFFFFFF, x, apart)
            apart *= 2
    return x


def threads_across(columns: int) -> int:
    """Return how many threads of those that share a row take a column each: a power of two."""
    across = 1
    while across < min(WIDTH, columns):
        across *= 2
    return across

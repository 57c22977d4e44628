"""Let plain Python objects enter Numba kernels.  `machine_code.py` keeps them on disk.

A kernel calls only methods of its arguments and functions of its own file: Numba's disk cache
notices no other edit, except those that `Struct` makes visible by putting them into its type.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, typeof, types
from numba.core import cgutils
from numba.extending import (
    NativeValue,
    make_attribute_wrapper,
    models,
    overload_method,
    register_jitable,
    register_model,
    unbox,
)

from zerogap.kernels.machine_code import compiled, digest_of_helpers, inlined_functions

# Reordering sums is what lets LLVM vectorise a dot product; NaN and inf keep their meaning.
_OPTIONS: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # kernels are not called from C: saves a fifth of compiling
}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first call, keep the machine code on disk, run without the GIL."""
    return compiled(function, nogil=True, **_OPTIONS)


def exact_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel whose every operation is rounded as written: nothing is reordered or fused.

    What makes rounding errors visible, a - (a + b - b), is zero to a compiler that may reorder.
    """
    return compiled(function, nogil=True, error_model="numpy", no_cfunc_wrapper=True)


def rowwise(sums: int) -> Callable[[Callable[..., Any]], Any]:
    """Compile a loop over the rows from `start` to `stop`, its last two parameters.

    It returns as many sums over rows as told.  A processor runs it block by block; on a GPU each
    thread has one row (`zerogap.cuda.kernels.launch`), so rows must not depend on each other.
    """

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        loop = kernel(function)
        loop.sums = sums  # type: ignore[attr-defined]
        return loop

    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let kernels call a function; its sums are taken in order, as it is written."""
    options = {**_OPTIONS, "fastmath": {"contract"}, "forceinline": True}
    inlined_functions.add(function)
    return register_jitable(**options)(function)


def in_order(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of a `Struct` whose sums are to be taken one by one.

    Free to reorder, LLVM reads scattered values with gather instructions, which were measured to
    be three times slower than single reads.
    """
    method.in_order = True  # type: ignore[attr-defined]
    return method


class Struct:
    """Base of the frozen dataclasses whose fields and methods also work inside kernels."""

    @functools.cached_property
    def _numba_type_(self) -> StructType:
        names = _field_names(type(self))  # type: ignore[arg-type]
        values = [getattr(self, name) for name in names]
        kind = (type(self), *map(_kind, values))
        with _lock:  # threads may meet a class for the first time together
            if kind not in _kinds:
                fields = tuple(zip(names, map(_field_type, values), strict=True))
                _kinds[kind] = _struct_type(type(self), fields)  # type: ignore[arg-type]
            return _kinds[kind]

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _field_names(type(self))}  # type: ignore[arg-type]


class StructType(types.Type):
    """Numba type of a `Struct`: its class, the types of its fields, a digest of its source."""

    def __init__(self, cls: type, fields: tuple[tuple[str, Any], ...]):
        self.cls, self.fields = cls, fields
        super().__init__(f"{cls.__module__}.{cls.__qualname__}#{_register(cls)}{fields}")

    def __reduce__(self):
        return _find_type, (self.name, self.fields)


_types: dict[str, StructType] = {}
_kinds: dict[tuple[Any, ...], StructType] = {}  # by class and kinds of fields: quickly found
_lock = threading.RLock()


@functools.cache
def _struct_type(cls: type, fields: tuple[tuple[str, Any], ...]) -> StructType:
    """Return the one type of the structs with these fields."""
    struct_type = StructType(cls, fields)
    return _types.setdefault(struct_type.name, struct_type)


def _find_type(name: str, fields: tuple[tuple[str, Any], ...]) -> StructType:
    """Return the type of that name when Numba reads its cache.

    The index of a cached kernel names all structs it was ever compiled for.  A class that this
    process does not know, such as another script's own loss, becomes a mere name: importing it
    would fail.
    """
    if name in _types:
        return _types[name]
    stranger = object.__new__(StructType)
    stranger.name, stranger.fields = name, fields
    vars(stranger)["_code"] = vars(types.Opaque(name))["_code"]  # a number that no other type has
    return stranger


@functools.cache
def _field_names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


def _kind(value: Any) -> Any:
    """Return a quick key for the type of a field: `typeof` itself may take longer than a kernel."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num
    if isinstance(value, Struct):
        return value._numba_type_
    return type(value) if type(value) in (bool, int, float) else typeof(value)


def _field_type(value: Any) -> Any:
    """Fields are read-only in kernels: memory-mapped and ordinary arrays share one compilation."""
    if isinstance(value, np.ndarray):
        return typeof(value).copy(readonly=True)
    return value._numba_type_ if isinstance(value, Struct) else typeof(value)


@register_model(StructType)
class _StructModel(models.StructModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, list(fe_type.fields))


@unbox(StructType)
def _unbox(typ, obj, c):
    native = cgutils.create_struct_proxy(typ)(c.context, c.builder)
    for name, field_type in typ.fields:
        attribute = c.pyapi.object_getattr_string(obj, name)
        setattr(native, name, c.unbox(field_type, attribute).value)
        c.pyapi.decref(attribute)
    failed = cgutils.is_not_null(c.builder, c.pyapi.err_occurred())
    return NativeValue(native._getvalue(), is_error=failed)


_known: dict[str, str] = {}  # Numba sees one type for all structs: a name has one meaning in all


@functools.cache
def _register(cls: type) -> str:
    """Teach Numba the fields and methods of `cls`; return a digest of the code they come from.

    Numba invalidates a cached kernel only when the kernel's own file changes.  With the digest in
    the type, an edited loss is a different type, hence a different entry of the cache.
    """
    for field in dataclasses.fields(cls):
        if _is_new(cls, field.name, "field"):
            make_attribute_wrapper(StructType, field.name, field.name)
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        signature = inspect.signature(method)
        parameters = ", ".join(signature.parameters)
        if not name.startswith("_") and _is_new(cls, name, f"method ({parameters})"):
            _overload(name, signature)
    code = []
    for base in cls.__mro__[:-1]:
        names = vars(sys.modules.get(base.__module__, object))
        code += [_source(base), digest_of_helpers(names)]
    return hashlib.sha256(b"".join(code)).hexdigest()[:12]


def _is_new(cls: type, name: str, meaning: str) -> bool:
    new = name not in _known
    if _known.setdefault(name, meaning) != meaning:
        raise TypeError(
            f"{cls.__name__}.{name} is a {meaning}, but elsewhere `{name}` is a {_known[name]}: "
            f"inside kernels a name has one meaning, rename this one"
        )
    return new


@functools.cache
def _compiled_in_order(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `method`, compiled without leave to reorder sums."""
    options = {**_OPTIONS, "fastmath": _OPTIONS["fastmath"] - {"reassoc"}, "forceinline": True}
    parameters = ", ".join(inspect.signature(method).parameters)
    call = f"lambda {parameters}: compiled({parameters})"  # Numba compares parameter names
    return eval(call, {"compiled": njit(**options)(method), "__name__": __name__})


def _source(cls: type) -> bytes:
    """Return the file of `cls` and its bytecode, for classes that have no file of their own."""
    methods = [f.__code__ for f in vars(cls).values() if inspect.isfunction(f)]
    bytecode = repr(
        [
            (c.co_code, c.co_names, [k for k in c.co_consts if not inspect.iscode(k)])
            for c in methods
        ]
    )
    try:
        return Path(inspect.getfile(cls)).read_bytes() + bytecode.encode()
    except (OSError, TypeError):  # a notebook, the prompt, a class sent to a worker
        return bytecode.encode()


def _overload(name: str, signature: inspect.Signature) -> None:
    """Make `obj.name(...)` compile the method of obj's own class."""

    def select(self, *args):
        method = getattr(self.cls, name, None)
        return _compiled_in_order(method) if hasattr(method, "in_order") else method

    select.__signature__ = signature  # type: ignore[attr-defined]
    options = {**_OPTIONS, "forceinline": True}
    overload_method(StructType, name, jit_options=options)(select)  # type: ignore[call-arg]

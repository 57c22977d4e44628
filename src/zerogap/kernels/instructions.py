"""Instructions that Numba does not offer: fused multiply-add, prefetching, vector lanes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model


def fused(a: float, b: float, c: float) -> float:
    """Return a b + c, rounded once."""
    return float(Fraction(a) * Fraction(b) + Fraction(c))


@overload(fused, inline="always")
def _fused(a, b, c):
    return lambda a, b, c: _multiply_add(a, b, c)  # type: ignore[call-arg]


@intrinsic
def _multiply_add(context, a, b, c):
    def generate(context, builder, signature, args):
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), generate


def prefetch(array: np.ndarray, i: int) -> None:
    """Ask the processor for the cache line of array[i] (inside kernels; in Python, do nothing)."""


@overload(prefetch, inline="always")
def _prefetch(array, i):
    return lambda array, i: _prefetch_line(array, i)  # type: ignore[call-arg]


@intrinsic
def _prefetch_line(context, array, i):
    def generate(context, builder, signature, args):
        view = context.make_array(signature.args[0])(context, builder, args[0])
        item = cgutils.get_item_pointer(
            context, builder, signature.args[0], view, [args[1]], wraparound=False
        )
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
        # to read, keep in all caches, data
        builder.call(function, [builder.bitcast(item, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


LANES = 4  # doubles in a vector register of 256 bits


def lanes(array: np.ndarray, k: Any) -> Any:
    """Return the LANES numbers from array[k] on, to be worked on together.

    Lanes are one value to the compiler, which keeps them in a vector register.  Left alone it does
    not see that the classes of a row could share instructions, and takes more than twice the time
    for their scores.
    """
    return array[k : k + LANES]


def add_scaled(x: Any, c: float, y: Any) -> Any:
    """Return x + c y for lanes x and y."""
    return x + c * y


def put_lanes(array: np.ndarray, k: Any, x: Any) -> None:
    """Store lanes from array[k] on."""
    array[k : k + LANES] = x


class _Lanes(types.Type):
    def __init__(self):
        super().__init__("lanes")


_lanes_type, _vector = _Lanes(), ir.VectorType(ir.DoubleType(), LANES)


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _vector)


def _lanes_pointer(context, builder, array_type, array, k):
    view = context.make_array(array_type)(context, builder, array)
    return builder.bitcast(builder.gep(view.data, [k]), _vector.as_pointer())


@intrinsic
def _load_lanes(context, array, k):
    def generate(context, builder, signature, args):
        return builder.load(_lanes_pointer(context, builder, array, *args), align=8)

    return _lanes_type(array, types.intp), generate


@intrinsic
def _store_lanes(context, array, k, x):
    def generate(context, builder, signature, args):
        place = _lanes_pointer(context, builder, array, *args[:2])
        builder.store(args[2], place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, x), generate


@intrinsic
def _multiply_add_lanes(context, x, c, y):
    def generate(context, builder, signature, args):
        undefined, number = ir.Constant(_vector, ir.Undefined), ir.IntType(32)
        one = builder.insert_element(undefined, args[1], number(0))
        all_equal = ir.Constant(ir.VectorType(number, LANES), [0] * LANES)
        factor = builder.shuffle_vector(one, undefined, all_equal)
        product = builder.fmul(factor, args[2], flags=["contract"])
        return builder.fadd(args[0], product, flags=["contract"])

    return x(x, types.float64, y), generate


@overload(lanes, inline="always")
def _lanes(array, k):
    return lambda array, k: _load_lanes(array, k)  # type: ignore[call-arg]


@overload(put_lanes, inline="always")
def _put_lanes(array, k, x):
    return lambda array, k, x: _store_lanes(array, k, x)  # type: ignore[call-arg]


@overload(add_scaled, inline="always")
def _add_scaled(x, c, y):
    return lambda x, c, y: _multiply_add_lanes(x, c, y)  # type: ignore[call-arg]

"""Instructions that Numba does not offer: fused multiply-add, prefetching, vector lanes.

They are lowered at once.  As overloads of Python functions each would be compiled first, and then
inlined wherever it is called: a fifth of the time of a first fit of many classes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, models, register_model, type_callable


def fused(a: float, b: float, c: float) -> float:
    """Return a b + c, rounded once."""
    return float(Fraction(a) * Fraction(b) + Fraction(c))


@type_callable(fused)
def _type_fused(context):
    return lambda a, b, c: types.float64


@lower_builtin(fused, types.float64, types.float64, types.float64)
def _multiply_add(context, builder, signature, args):
    return builder.fma(*args)


def prefetch(array: np.ndarray, i: int) -> None:
    """Ask the processor for the cache line of array[i] (inside kernels; in Python, do nothing)."""


@type_callable(prefetch)
def _type_prefetch(context):
    return lambda array, i: types.void


@lower_builtin(prefetch, types.Array, types.Integer)
def _lower_prefetch(context, builder, signature, args):
    array_type, index_type = signature.args
    view = context.make_array(array_type)(context, builder, args[0])
    place = context.cast(builder, args[1], index_type, types.intp)
    item = cgutils.get_item_pointer(context, builder, array_type, view, [place], wraparound=False)
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    function = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
    # to read, keep in all caches, data
    builder.call(function, [builder.bitcast(item, byte), number(0), number(3), number(1)])
    return context.get_dummy_value()


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


def _lanes_pointer(context, builder, signature, args):
    view = context.make_array(signature.args[0])(context, builder, args[0])
    place = context.cast(builder, args[1], signature.args[1], types.intp)
    return builder.bitcast(builder.gep(view.data, [place]), _vector.as_pointer())


@type_callable(lanes)
def _type_lanes(context):
    return lambda array, k: _lanes_type


@lower_builtin(lanes, types.Array, types.Integer)
def _load_lanes(context, builder, signature, args):
    return builder.load(_lanes_pointer(context, builder, signature, args), align=8)


@type_callable(put_lanes)
def _type_put_lanes(context):
    return lambda array, k, x: types.void


@lower_builtin(put_lanes, types.Array, types.Integer, _Lanes)
def _store_lanes(context, builder, signature, args):
    builder.store(args[2], _lanes_pointer(context, builder, signature, args), align=8)
    return context.get_dummy_value()


@type_callable(add_scaled)
def _type_add_scaled(context):
    return lambda x, c, y: _lanes_type


@lower_builtin(add_scaled, _Lanes, types.float64, _Lanes)
def _multiply_add_lanes(context, builder, signature, args):
    undefined, number = ir.Constant(_vector, ir.Undefined), ir.IntType(32)
    one = builder.insert_element(undefined, args[1], number(0))
    all_equal = ir.Constant(ir.VectorType(number, LANES), [0] * LANES)
    factor = builder.shuffle_vector(one, undefined, all_equal)
    product = builder.fmul(factor, args[2], flags=["contract"])
    return builder.fadd(args[0], product, flags=["contract"])

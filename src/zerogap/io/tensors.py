"""Tensors of other libraries, such as torch and JAX, handed over by DLPack without a copy.

float16 and bfloat16 become float32, where they are: that is exact, and takes twice their memory.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from sklearn import get_config

_ARRAYS = ("cupy", "cupyx", "numpy", "pyarrow")  # these have DLPack, and need none of this
_ON_GPU = (2, 13)  # DLPack's numbers of CUDA's memory, plain and managed
_SHORT_TYPES = ("bfloat16", "float16")


def is_tensor(a: Any) -> bool:
    """Tell whether this is an array of a library that hands its arrays over by DLPack."""
    kind = type(a)
    return hasattr(kind, "__dlpack__") and kind.__module__.partition(".")[0] not in _ARRAYS


def is_on_gpu(a: Any) -> bool:
    """Tell whether this is a tensor in the memory of an NVIDIA GPU."""
    return is_tensor(a) and a.__dlpack_device__()[0] in _ON_GPU


def as_array(a: Any) -> Any:
    """Return a tensor as an array of numpy or CuPy in the same memory, and all else as it is.

    Raises
    ------
    ValueError
        If its library does not hand it over: if it is sparse, for example.
    """
    if not is_tensor(a):
        return a
    if hasattr(a, "detach"):
        a = a.detach()  # torch: gradients are not asked for
    if str(a.dtype).rpartition(".")[2] in _SHORT_TYPES:
        a = a.float() if hasattr(a, "float") else a.astype("float32")
    library = importlib.import_module("cupy") if is_on_gpu(a) else np
    try:
        return library.from_dlpack(a)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"a tensor of {type(a).__module__.partition('.')[0]} with type {a.dtype} cannot be "
            f"read: {error}.  Give a dense tensor of numbers, or an array"
        ) from error


def library_of(given: Any) -> str:
    """Return the module whose `from_dlpack` makes results for these rows, or "" if none has to.

    Rows on a GPU have their results there.  Those in main memory have them in numpy's arrays,
    unless scikit-learn's option ``array_api_dispatch`` is set.
    """
    if not is_on_gpu(given) and not (is_tensor(given) and get_config()["array_api_dispatch"]):
        return ""
    if hasattr(given, "__array_namespace__"):
        return given.__array_namespace__().__name__
    return type(given).__module__.partition(".")[0]


def as_tensor(result: Any, library: str) -> Any:
    """Return an array of numpy or CuPy as a tensor of a library; text stays as it is."""
    if not library or np.dtype(result.dtype).kind not in "biuf":
        return result
    if isinstance(result, np.ndarray):
        result = np.ascontiguousarray(result).copy()  # torch takes none that is read-only
    return importlib.import_module(library).from_dlpack(result)

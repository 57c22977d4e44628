"""Problems on an NVIDIA GPU: the same losses, the same certificates, arrays of CuPy.

Kernels are compiled by numba-cuda from the same Python that the processor's kernels are made of.
With ``NUMBA_ENABLE_CUDASIM=1`` they run in numba-cuda's simulator, with numpy in place of CuPy: for
tests of the logic on tiny data.
"""

from __future__ import annotations

from typing import Any

from zerogap.cuda.device import is_on_device
from zerogap.errors import DeviceError

__all__ = ["DeviceError", "DeviceMulticlassProblem", "DeviceProblem", "is_on_device", "to_device"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from zerogap.cuda import problem  # needs a GPU

    return getattr(problem, name)

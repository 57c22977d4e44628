"""Move the input of estimators to the GPU; importing this module needs no GPU."""

from __future__ import annotations

from typing import Any

from zerogap.cuda.device import arrays, watched
from zerogap.io.tensors import as_array


def on_device(X: Any) -> Any:
    """Return checked rows on the GPU."""
    arrays()  # says what is missing, if something is
    with watched():
        from zerogap.cuda.rows import as_device_rows

        return as_device_rows(X)


def on_device_array(a: Any) -> Any:
    """Return an array on the GPU."""
    xp = arrays()
    with watched():
        return xp.asarray(as_array(a))

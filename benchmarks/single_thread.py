"""One thread for every library: they look at the environment when they are loaded."""

from __future__ import annotations

import os
import sys

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def restart_single_threaded() -> None:
    """Start the running script again with one thread per library, unless it has that already."""
    if not ONE_THREAD.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_THREAD)

"""How much memory there is."""

from __future__ import annotations

import contextlib
import math
import os
import sys


def free_memory() -> float:
    """Return the bytes of memory that are free now, or infinity where nobody tells."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError, ValueError):
            return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return math.inf

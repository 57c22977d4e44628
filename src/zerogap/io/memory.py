"""How much memory there is."""

from __future__ import annotations

import math
import os


def free_memory() -> float:
    """Return the bytes of memory that are free now, or infinity where nobody tells."""
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return math.inf

"""How much memory there is."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import sys


def free_memory() -> float:
    """Return the bytes of memory that are free now, or infinity if the system does not say."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError, ValueError):
            return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return math.inf


def check_room(needed: int, what: str) -> None:
    """Raise MemoryError if so many bytes cannot be had now; none of them is kept.

    For libraries whose threads wait forever, or end the process, where they get no memory.
    """
    if sys.platform != "win32":
        try:
            mmap.mmap(-1, needed, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
        except (OSError, ValueError) as error:
            raise MemoryError(f"{what} needs {needed / 1e6:.0f} MB of memory") from error

"""How much memory there is."""

from __future__ import annotations

import contextlib
import functools
import math
import mmap
import os
import sys
from pathlib import Path

PLENTY = 4 << 30  # bytes: where more is unused, what the system could clear is not asked for


def free_memory() -> float:
    """Return the bytes of memory that can be had now, or infinity if the system does not say.

    That is less than the machine's in a container with a limit, and more than what nobody uses:
    files that the system keeps in memory, most of it after some days, make room.
    """
    if sys.platform != "win32":
        with contextlib.suppress(OSError, ValueError):
            unused = float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
            return min(unused if unused > PLENTY else max(unused, _available()), _left_in_group())
    return math.inf


def _available() -> float:
    """Return what Linux says can be had without swapping, or 0."""
    with contextlib.suppress(OSError, ValueError, StopIteration, IndexError):
        with open("/proc/meminfo", "rb") as file:
            line = next(line for line in file if line.startswith(b"MemAvailable:"))
        return 1024.0 * float(line.split()[1])
    return 0.0


def _left_in_group() -> float:
    """Return what a container's limit leaves, or infinity without one."""
    folder = _limited_group()
    if folder is None:
        return math.inf
    with contextlib.suppress(OSError, ValueError, StopIteration, IndexError):
        limit, taken = (float((folder / name).read_text()) for name in _FILES)
        with (folder / "memory.stat").open() as file:
            files = next(line for line in file if line.startswith("inactive_file "))
        return max(0.0, limit - taken + float(files.split()[1]))
    return math.inf


_FILES = "memory.max", "memory.current"  # of a control group


@functools.cache
def _limited_group() -> Path | None:
    """Return the folder of this process' control group if that has a limit of memory."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        with open("/proc/self/cgroup") as file:
            own = next(line for line in file if line.startswith("0::"))
        name = own.strip().removeprefix("0::").lstrip("/")
        folder = Path("/sys/fs/cgroup") / name
        return folder if (folder / _FILES[0]).read_text().strip() != "max" else None
    return None


def check_room(needed: int, what: str) -> None:
    """Raise MemoryError if so many bytes cannot be had now; none of them is kept.

    For libraries whose threads wait forever, or end the process, where they get no memory.
    """
    if sys.platform != "win32":
        try:
            mmap.mmap(-1, needed, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
        except (OSError, ValueError) as error:
            raise MemoryError(f"{what} needs {needed / 1e6:.0f} MB of memory") from error

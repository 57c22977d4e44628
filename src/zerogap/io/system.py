"""What files larger than memory ask of the operating system, on Linux, macOS and Windows."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

MOST_BYTES_PER_READ = 1 << 30  # no system returns more than 2 GiB from one call
READ_ONLY = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)  # a link is refused
    | getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer does not make us wait
    | getattr(os, "O_BINARY", 0)  # Windows would change line ends
)
_position = threading.Lock()  # of files that have to be moved to the place that is read


def read_at(file: int, buffer: Any, offset: int) -> int:
    """Fill a buffer from a place of an open file; return the bytes read, fewer at its end.

    The position of the file stays where it is, so that threads may read at the same time.
    """
    view, done = memoryview(buffer).cast("B"), 0
    while done < len(view):
        count = _read(file, view[done : done + MOST_BYTES_PER_READ], offset + done)
        if count == 0:
            break
        done += count
    return done


def _read(file: int, view: memoryview, offset: int) -> int:
    if sys.platform != "win32":
        return os.preadv(file, [view], offset)
    else:
        with _position:
            before = os.lseek(file, 0, os.SEEK_CUR)
            os.lseek(file, offset, os.SEEK_SET)
            content = os.read(file, len(view))
            os.lseek(file, before, os.SEEK_SET)
        view[: len(content)] = content
        return len(content)


def drop_from_page_cache(file: int, offset: int, size: int) -> None:
    """Tell the system that a part of a file will not be read again soon, where it listens."""
    if sys.platform == "linux":
        os.posix_fadvise(file, offset, size, os.POSIX_FADV_DONTNEED)


def free_disk(file: Any) -> int:
    """Return the bytes that are free on the disk of an open file."""
    place = os.path.dirname(file.name) if sys.platform == "win32" else file.fileno()
    return shutil.disk_usage(place).free


def resident_memory() -> int:
    """Return the bytes of memory that this process takes now, or 0 if the system does not say."""
    if sys.platform == "linux":
        try:
            statm = Path("/proc/self/statm").read_text(encoding="ascii")
            return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            pass
    return 0

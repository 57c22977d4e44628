"""Files that are always the old one or the new one, and that one process writes at a time."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO


def write_file(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file as `replace_file` does, after other processes that are about to do so."""
    with locked(path, wait=True):
        replace_file(path, write)


def replace_file(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file so that at any instant there is the old one or the new one.

    Temporary file in the same folder, flush to disk, rename.  The caller holds the lock.
    """
    path = Path(os.path.realpath(path))  # of a link, replace what it points to
    if path.exists():
        require_regular(path)
    for stale in path.parent.glob(f".{glob.escape(path.name)}.part-*"):
        stale.unlink(missing_ok=True)  # what killed processes left
    temporary = path.with_name(f".{path.name}.part-{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno:  # name the file that the caller knows
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    _sync_folder(path.parent)


@contextlib.contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[bool]:
    """Keep other processes from writing a file; False if another one does so just now.

    The lock is a file beside it, held by the operating system: it ends with its process, however
    that ends.  Where the folder or the system has no locks, nothing is locked.
    """
    path = Path(os.path.realpath(path))
    lock = path.with_name(f".{path.name}.lock")
    handle, free = None, True
    try:
        handle = _acquire(lock, wait)
    except BlockingIOError:
        free = False
    except (ImportError, OSError):
        pass
    try:
        yield free
    finally:
        if handle is not None:
            lock.unlink(missing_ok=True)
            os.close(handle)


def _acquire(lock: Path, wait: bool) -> int:
    """Return a handle of the locked file."""
    import fcntl  # not on Windows

    while True:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            with contextlib.suppress(FileNotFoundError):  # its last holder removed it
                if os.path.samestat(os.fstat(handle), os.stat(lock)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def require_regular(path: Path) -> None:
    """Refuse folders, pipes and devices: an OSError that names the path."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        number = errno.EISDIR if path.is_dir() else errno.EINVAL
        raise OSError(number, "not a regular file", str(path))


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

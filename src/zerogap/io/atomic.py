"""Files that are always the old one or the new one, and that one process writes at a time."""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

SECONDS_BETWEEN_TRIES = 0.05  # Windows has no call that waits for a lock without a limit
_NO_SUCH_CALL = (errno.EINVAL, errno.ENOTSUP)  # as some network disks answer
_LONGEST_NAME = 240  # bytes of a name, which with ".", ".part-" and eight digits are 255
REPLACE_TRIES = 20  # one second: virus scanners and readers keep a file of Windows open that long


def write_file(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file as `replace_file` does, after other processes that are about to do so."""
    with locked(path, wait=True):
        replace_file(path, write)


def replace_file(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file so that at any instant there is the old one or the new one.

    Temporary file in the same folder, flush to disk, rename.  The caller holds the lock.
    """
    known = str(path)
    path = Path(os.path.realpath(path))  # of a link, replace what it points to
    old = None
    if path.exists():
        require_regular(path)
        old = path.stat()
    beside = _beside(path)
    for stale in path.parent.glob(f"{glob.escape(beside)}.part-*"):
        stale.unlink(missing_ok=True)  # what killed processes left
    temporary = path.with_name(f"{beside}.part-{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb", opener=None if old is None else _private) as file:
            write(file)
            if old is not None:
                _share_as(old, file.fileno())
            file.flush()
            os.fsync(file.fileno())
        _replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno:  # name the file that the caller knows
            raise OSError(error.errno, error.strerror, known) from error
        raise
    _sync_folder(path.parent)


def _beside(path: Path) -> str:
    """Return what the names of files beside one begin with: its own, or a digest if that is long.

    With its end, a name may have as many bytes as systems allow.
    """
    if len(name := os.fsencode(path.name)) <= _LONGEST_NAME:
        return f".{path.name}"
    return f".{hashlib.blake2b(name, digest_size=16).hexdigest()}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _share_as(old: os.stat_result, handle: int) -> None:
    """Let those read and write a file who could read and write the one that it replaces."""
    if sys.platform != "win32":
        for owner in (-1, old.st_uid):  # not everybody may give files away
            with contextlib.suppress(OSError):
                os.fchown(handle, owner, old.st_gid)
        with contextlib.suppress(OSError):  # folders from other systems have no such rights
            os.fchmod(handle, stat.S_IMODE(old.st_mode))


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the system that name no file name this one."""
    try:
        yield
    except OSError as error:
        if error.errno and error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextlib.contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[bool]:
    """Keep other processes from writing a file; False if another one does so just now.

    The lock is a file beside it, held by the operating system: it ends with its process, however
    that ends.  Where the folder has no locks, nothing is locked.
    """
    path = Path(os.path.realpath(path))
    lock = path.with_name(f"{_beside(path)}.lock")
    handle, free = None, True
    try:
        handle = _acquire(lock, wait)
    except BlockingIOError:
        free = False
    except OSError:
        pass
    try:
        yield free
    finally:
        if handle is not None:
            _release(handle, lock)


def _acquire(lock: Path, wait: bool) -> int:
    """Return a handle of the locked file."""
    while True:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            _lock(handle, wait)
            with contextlib.suppress(FileNotFoundError):  # its last holder removed it
                if os.path.samestat(os.fstat(handle), os.stat(lock)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int, wait: bool) -> None:
    """Lock an open file, or raise BlockingIOError if another process has it and `wait` is False."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    else:
        import msvcrt

        while True:
            try:
                return msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except PermissionError as error:
                if not wait:
                    raise BlockingIOError(*error.args) from error
            time.sleep(SECONDS_BETWEEN_TRIES)


def _release(handle: int, lock: Path) -> None:
    """Give the lock back and remove its file."""
    if sys.platform != "win32":
        lock.unlink(missing_ok=True)  # while it is locked, so that nobody locks a removed file
        os.close(handle)
    else:
        os.close(handle)
        with contextlib.suppress(OSError):  # the next holder has it open, and will remove it
            lock.unlink()


def _replace(temporary: Path, path: Path) -> None:
    """Rename a file over another; on Windows, wait until nobody has the other one open."""
    for _ in range(REPLACE_TRIES if sys.platform == "win32" else 0):
        with contextlib.suppress(PermissionError):
            return os.replace(temporary, path)
        time.sleep(SECONDS_BETWEEN_TRIES)
    os.replace(temporary, path)


def require_regular(path: Path) -> None:
    """Refuse folders, pipes and devices: an OSError that names the path."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        number = errno.EISDIR if path.is_dir() else errno.EINVAL
        raise OSError(number, "not a regular file", str(path))


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        with contextlib.suppress(PermissionError):  # a folder to write into, but not to list
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            except OSError as error:
                if error.errno not in _NO_SUCH_CALL:
                    raise
            finally:
                os.close(handle)

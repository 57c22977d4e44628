"""Bytes of a file or of standard input: unpacked, counted, and the same from first to last."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import io
import lzma
import os
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any


def _by_pyarrow(raw: Any, codec: str) -> Any:
    """Unpack what pyarrow can, and Python's own library cannot."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(f"unpacking {codec} needs pyarrow: pip install 'zerogap[cli]'") from error
    return io.BufferedReader(_Unpacked(pa.CompressedInputStream(raw, codec)))


_PACKED: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
    b"]\0\0": lzma.open,  # the format before xz
    b"\x28\xb5\x2f\xfd": partial(_by_pyarrow, codec="zstd"),
    b"\x04\x22\x4d\x18": partial(_by_pyarrow, codec="lz4"),
}
_SUFFIXES = (".gz", ".bz2", ".xz", ".lzma", ".zst", ".lz4")
_ZIP = b"PK\x03\x04"
_DOCUMENTS = {  # a file in zips that are documents, and what these are
    "content.xml": "an OpenDocument file: save its sheet as .xlsx or as CSV",
    "word/document.xml": "a Word document: save its table as CSV",
    "xl/workbook.bin": "a binary spreadsheet (.xlsb): save it as .xlsx or as CSV",
}
_DAMAGES = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
_CHUNK = 1 << 20  # bytes read at a time


class DataError(ValueError):
    """The content of a file is not what it should be: what is wrong, and where, in one line."""


def default_limit() -> int:
    """Return three quarters of the machine's memory, in bytes."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError, ValueError):
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4
    return 1 << 33  # a system that does not tell


class Stream:
    """The unpacked bytes of a source, never more than `max_bytes` of them.

    `name` is what messages call it, `suffix` the extension under that of the compression, and
    `packed` tells whether there is one.  `zipped` is the format of what is a zip by itself, xlsx or
    npz.  `quoted` tells whether a double quote was among the bytes
    so far.
    """

    closed = False  # pyarrow asks

    def __init__(self, raw: Any, name: str, max_bytes: int):
        self.name, self.max_bytes = name, max_bytes
        self._plain = raw
        self.quoted = False
        start = raw.peek(8)
        unpack = next((u for magic, u in _PACKED.items() if start.startswith(magic)), None)
        self.zipped, inside = "", None
        if start.startswith(_ZIP) and raw.seekable():
            self.zipped, inside = _zipped(raw)
        self.packed = unpack is not None or inside is not None
        self._body: Any = inside or (unpack(raw) if unpack else raw)
        self._count = 0
        known = getattr(inside, "name", name)
        suffixes = [s.lower() for s in Path(known).suffixes]
        if suffixes and suffixes[-1] in _SUFFIXES:
            suffixes.pop()
        self.suffix = suffixes[-1] if suffixes else ""

    def start(self) -> bytes:
        """Return some of the first bytes without consuming them."""
        return self._guarded(self._body.peek, 8)

    def read(self, size: int = _CHUNK) -> bytes:
        """Return up to `size` bytes, none at the end."""
        piece = self._guarded(self._body.read, size)
        self._count += len(piece)
        self.quoted = self.quoted or b'"' in piece
        if self._count > self.max_bytes:
            raise DataError(
                f"holds more than max_bytes={self.max_bytes} bytes"
                f"{' when unpacked' if self.packed else ''}: raise max_bytes if that is right"
            )
        return piece

    def skip(self, size: int) -> None:
        """Pass over bytes that have been read before: quickly, unless they are packed."""
        if not self.packed and self._plain.seekable():
            self._plain.seek(size, os.SEEK_CUR)
            return
        while size > 0 and (piece := self._guarded(self._body.read, min(size, _CHUNK))):
            size -= len(piece)

    def place(self) -> int:
        """Return how much of the file has been read, in bytes as they lie there."""
        return self._plain.tell()

    def size(self) -> int:
        """Return the size of the file, in bytes as they lie there."""
        return os.fstat(self._plain.fileno()).st_size

    def seekable_file(self) -> IO[bytes]:
        """Return the bytes as a file with random access: itself where possible, or in memory."""
        if not self.packed and self._plain.seekable():
            return self._plain
        pieces = iter(self.read, b"")
        return io.BytesIO(b"".join(pieces))

    def _guarded(self, call: Any, size: int) -> bytes:
        if not self.packed:
            return call(size)
        try:
            return call(size)
        except _DAMAGES as error:
            raise DataError(f"is damaged or cut short: {error}") from error


class _Unpacked(io.RawIOBase):
    """What pyarrow unpacks, as a raw file of Python."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._stream.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _zipped(raw: Any) -> tuple[str, Any]:
    """Open the file in a zip of one file; tell spreadsheets and npz, which are zips too."""
    try:
        archive = zipfile.ZipFile(raw)
        names = [n for n in archive.namelist() if not n.endswith("/")]  # a folder
        names = [n for n in names if not n.startswith("__MACOSX/")]
        names = [n for n in names if Path(n).name and not Path(n).name.startswith(".")]
        what = next((what for name, what in _DOCUMENTS.items() if name in names), None)
        if any(name.endswith(".npy") for name in names):
            return "npz", None
        if "[Content_Types].xml" in names and what is None:
            return "xlsx", None
        if len(names) == 1 and what is None:
            return "", archive.open(names[0])
    except (*_DAMAGES, RuntimeError, UnicodeError) as error:
        raise DataError(f"is a zip that cannot be unpacked: {error}") from error
    finally:
        raw.seek(0)
    if what is not None:
        raise DataError(f"is {what}")
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    raise DataError(f"is a zip of {len(names)} files ({shown}): unpack the one to read")


@contextlib.contextmanager
def open_source(source: str | os.PathLike[str], max_bytes: int) -> Iterator[Stream]:
    """Open a file, or standard input for "-"; leaving, see that the file has not changed."""
    if source == "-":
        raw = io.BufferedReader(sys.stdin.buffer)  # type: ignore[type-var]
        try:
            yield Stream(raw, "<stdin>", max_bytes)
        finally:
            raw.detach()
        return
    with _open_file(source) as raw:
        before = _version(raw)
        yield Stream(raw, os.fspath(source), max_bytes)
        if _version(raw) != before:
            raise DataError("changed while it was read: read it again when it is complete")


def _open_file(path: str | os.PathLike[str]) -> Any:
    """Open a regular file; never wait for a writer at the other end of a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(
        errno.EINVAL, 'not a regular file; pipe the data into "-" instead', os.fspath(path)
    )


def _version(file: Any) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns

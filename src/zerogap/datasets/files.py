"""Files of data sets: found, checked, or downloaded.

A file is looked for in the folder that the environment variable ZEROGAP_DATA names, then in the
user's cache; else it is downloaded into the cache.  Its sha256 is taken of the unpacked content,
because the same data come in different gzip wrappings.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import io
import os
import sys
import time
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from zerogap.io.atomic import write_file

__all__ = ["Bar", "DataFile", "cache_folder", "find", "make_folder", "read"]

DOWNLOAD_ATTEMPTS = 3  # of each file, before its server is given up
SECONDS_BEFORE_SECOND_ATTEMPT = 0.5  # twice as long before the third
SECONDS_WITHOUT_ANSWER = 20  # of a server that is then given up
_UNPACK = {b"\x1f\x8b": gzip.decompress, b"BZ": bz2.decompress}  # by how a file begins

Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    Attributes
    ----------
    path : str
        Where it lies in a data folder, as ``adult/adult.data.gz``; also without the ``.gz``.
    sha256 : str
        Digest of the content, unpacked if it is a gzip or bzip2 file; empty if not known.
    size : int
        Bytes, packed.
    url : str
        Public source: the file, or a zip archive that holds it; empty if there is none.
    """

    path: str
    sha256: str
    size: int
    url: str = ""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return Path(self.path).name

    @property
    def packed(self) -> bool:
        """Whether the file is usually packed, and its digest that of the unpacked content."""
        return self.path.endswith((".gz", ".bz2"))


def cache_folder() -> Path:
    """Return the user's cache folder of zerogap, which may not exist yet."""
    given = os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given) / "zerogap"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or _home()) / "zerogap" / "Cache"
    else:
        folder = "Library/Caches" if sys.platform == "darwin" else ".cache"
        return _home() / folder / "zerogap"


def _home() -> Path:
    """Return the user's folder; a place where there is nothing for users without one."""
    try:
        return Path.home()
    except RuntimeError:  # a number without a name, as services and containers have
        return Path(os.devnull)


def find(file: DataFile, folder: Folder = None) -> Path | None:
    """Return where a file is, unchecked, or None."""
    names = [Path(file.path), Path(file.name)]
    if file.packed:
        names += [name.with_suffix("") for name in names]
    places = (root / name for root in _roots(folder) for name in names)
    return next((place for place in places if place.is_file()), None)


def read(file: DataFile, folder: Folder = None) -> bytes:
    """Return the checked content of a file, unpacked; download the file if it is not here.

    Raises
    ------
    FileNotFoundError
        If it is nowhere and cannot be downloaded; says where to put it.
    ValueError
        If the digest is not the right one.
    """
    path = find(file, folder)
    if path is None:
        return _download(file, folder)
    return _checked(file, path.read_bytes(), f"{path} is damaged or another file", "replace it")


def make_folder(path: Path) -> Path:
    """Create the folder of a file in the cache, if need be, and return the path of the file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise OSError(
            f"cannot write into {path.parent} ({error.strerror}): choose another folder "
            "(XDG_CACHE_HOME sets that of the cache)"
        ) from None
    return path


def _roots(folder: Folder) -> list[Path]:
    if folder is not None:
        return [Path(folder)]
    data = os.environ.get("ZEROGAP_DATA")
    return [Path(data), cache_folder()] if data else [cache_folder()]


def _checked(file: DataFile, raw: bytes, problem: str, remedy: str) -> bytes:
    """Return the content of a file, or raise ValueError if it is not what it should be."""
    try:
        content = _UNPACK[raw[:2]](raw) if file.packed and raw[:2] in _UNPACK else raw
    except (OSError, EOFError, ValueError, zlib.error):
        content = raw  # a broken archive: the digest of what is there
    found = hashlib.sha256(content).hexdigest()
    if file.sha256 and found != file.sha256:
        raise ValueError(f"{problem}: its sha256 is {found}, not {file.sha256}; {remedy}")
    return content


def _download(file: DataFile, folder: Folder) -> bytes:
    """Fetch a file from its public source into the folder or the cache; return its content."""
    if not file.url:
        raise _missing(file, folder, "it has no public source")
    try:
        from pooch import HTTPDownloader
    except ModuleNotFoundError:
        why = "downloads need pooch: pip install 'zerogap[lab]'"
        raise _missing(file, folder, why) from None
    target = make_folder(_roots(folder)[-1] / file.path)
    bar = Bar(f"downloading {file.name}")
    fetch = HTTPDownloader(progressbar=bar, chunk_size=1 << 16, timeout=SECONDS_WITHOUT_ANSWER)
    for attempt in range(1, DOWNLOAD_ATTEMPTS + 1):
        answer = io.BytesIO()
        try:
            fetch(file.url, answer, None)
            break
        except OSError as error:  # the base of all errors of requests
            why, refused = _reason(error, file.url)
            if refused or attempt == DOWNLOAD_ATTEMPTS:
                raise _missing(file, folder, why) from None
            time.sleep(attempt * SECONDS_BEFORE_SECOND_ATTEMPT)
        finally:
            bar.close()
    raw = _member(file, answer.getvalue())
    content = _checked(file, raw, f"{file.url} serves another file", "nothing was kept")
    if file.packed and raw is content:
        target = target.with_suffix("")
    write_file(target, lambda stream: stream.write(raw))
    return content


def _member(file: DataFile, raw: bytes) -> bytes:
    """Return the file out of a zip archive, and anything else as it is."""
    if not zipfile.is_zipfile(io.BytesIO(raw)) or file.path.endswith(".npz"):
        return raw
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        name = file.name.removesuffix(".gz")
        return archive.read(name) if name in archive.namelist() else raw


def _reason(error: OSError, url: str) -> tuple[str, bool]:
    """Return why a download failed, and whether the server has said no."""
    host = urlsplit(url).netloc
    response = getattr(error, "response", None)
    if response is None:
        return f"no connection to {host} ({type(error).__name__})", False
    return f"{host} answered {response.status_code} {response.reason}", response.status_code < 500


def _missing(file: DataFile, folder: Folder, why: str) -> FileNotFoundError:
    place = _roots(folder)[0] / Path(file.path).parent
    other = ""
    if folder is None and not os.environ.get("ZEROGAP_DATA"):
        other = f", or set ZEROGAP_DATA to a folder with {file.path}"
    digest = f"sha256 {'of its content, unpacked: ' if file.packed else ''}{file.sha256}"
    return FileNotFoundError(
        f"{file.name} is missing and was not downloaded ({why}): put it into {place}{other}"
        + (f" ({digest})" if file.sha256 else "")
    )


class Bar:
    """A live line on a terminal, nothing elsewhere."""

    def __init__(self, label: str, total: int = 0) -> None:
        self.label = label
        self.live = sys.stderr.isatty()
        self.total = total
        self.done = self.shown = 0

    def update(self, n: int) -> None:
        self.done += n
        percent = min(100, 100 * self.done // self.total) if self.total else 0
        if self.live and percent > self.shown:
            self.shown = percent
            sys.stderr.write(f"\r{self.label} {percent:3d} %")
            sys.stderr.flush()

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        if self.shown:
            sys.stderr.write("\n")
        self.shown = 0

"""Arrays in npz files, without trust in what the file says of its sizes."""

from __future__ import annotations

import errno
import math
import zipfile
import zlib
from typing import Any

import numpy as np

from zerogap.readers.files import DataError, Stream

_CSR = ("data", "indices", "indptr", "shape")
_DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


def read_arrays(stream: Stream, labelled: bool) -> tuple[Any, np.ndarray | None]:
    """Return X, an array of that name or the parts of a CSR matrix, and the array y."""
    try:
        with zipfile.ZipFile(stream.seekable_file()) as archive:
            arrays = _load_all(archive, labelled, stream.max_bytes)
    except DataError:
        raise
    except _DAMAGES as error:
        raise DataError(f"is damaged: {error}") from error
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # of a packed part, and of one before the file
            raise
        raise DataError(f"is damaged: {error}") from error
    X: Any = _numbers("X", arrays["X"]) if "X" in arrays else _csr_matrix(**arrays)
    _check_size(X.shape, stream.max_bytes)
    if (y := arrays.get("y")) is None:
        return X, None
    _check_targets(y.shape, X.shape)
    return X, y if y.dtype.kind in "biuU" else _numbers("y", y)


def _load_all(archive: zipfile.ZipFile, labelled: bool, max_bytes: int) -> dict[str, np.ndarray]:
    """Load the members with names that are known here, once their sizes are."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise DataError("has two members of one name")
    known = {f"{name}.npy": name for name in ("X", "y", "format", *_CSR)}
    members = [member for member in members if member.filename in known]
    size = sum(member.file_size for member in members)
    if size > max_bytes:
        raise DataError(f"holds {size} bytes when unpacked, more than max_bytes={max_bytes}")
    found = {known[member.filename]: (member, _shape(archive, member)) for member in members}
    _check_shapes({name: shape for name, (_, shape) in found.items()}, labelled, max_bytes)
    return {name: _load(archive, member) for name, (member, _) in found.items()}


def _check_shapes(shapes: dict[str, tuple[int, ...]], labelled: bool, max_bytes: int) -> None:
    """Refuse arrays that do not make rows and targets."""
    if "X" in shapes:
        if len(X := shapes["X"]) != 2:
            raise DataError(f"X must have rows and columns, its shape is {X}")
        _check_size(X, max_bytes)
    elif not set(_CSR) <= set(shapes):
        raise DataError(f"needs an array X, or {', '.join(_CSR)} of a CSR matrix")
    if "y" not in shapes and labelled:
        raise DataError("has no array y of targets")
    if {"X", "y"} <= set(shapes):
        _check_targets(shapes["y"], shapes["X"])


def _check_targets(y: tuple[int, ...], X: tuple[int, ...]) -> None:
    if y != X[:1]:
        raise DataError(f"y must have one entry for each of {X[0]} rows, has shape {y}")


def _check_size(shape: tuple[int, ...], max_bytes: int) -> None:
    """Refuse X without entries, and columns for which there is no memory."""
    if 0 in shape:
        raise DataError(f"is empty: the shape of X is {shape}")
    if shape[1] * np.dtype(float).itemsize > max_bytes:
        raise DataError(
            f"says that X has {shape[1]} columns: their weights alone would need more than "
            f"max_bytes={max_bytes} bytes"
        )


def _shape(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[int, ...]:
    """Return the shape of an array after seeing that its header and its size agree."""
    npy = np.lib.format
    with archive.open(member) as file:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise DataError(f"{member.filename} has the unknown version {version}")
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        try:
            shape, _, dtype = read_header(file)
        except Exception as error:  # NumPy parses it as Python, which can fail in many ways
            raise DataError(f"{member.filename} has a damaged header") from error
        if dtype.kind not in "biufUS":
            raise DataError(f"{member.filename} holds {dtype}, neither numbers nor text")
        expected = file.tell() + math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or expected != member.file_size:
            raise DataError(f"{member.filename} has not the size that its header says")
    return tuple(shape)


def _load(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _csr_matrix(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    shape: np.ndarray,
    format: np.ndarray | None = None,
    y: np.ndarray | None = None,
) -> Any:
    from scipy import sparse

    if format is not None and format.tolist() not in (b"csr", "csr"):
        raise DataError(f"holds a {format} matrix: save X.tocsr() instead")
    if any(part.dtype.kind not in "iu" for part in (indices, indptr, shape)) or shape.shape != (2,):
        raise DataError("is no CSR matrix: indices, indptr and shape must be whole numbers")
    if indptr.ndim != 1 or np.any(indptr[1:] < indptr[:-1]):  # differences might overflow
        raise DataError("is no CSR matrix: indptr must not decrease")
    try:
        X = sparse.csr_matrix((_numbers("data", data), indices, indptr), shape=shape.tolist())
        X.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"is no CSR matrix: {error}") from error
    X.sum_duplicates()
    return X


def _numbers(name: str, values: np.ndarray) -> np.ndarray:
    """Return values as finite float64."""
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name} holds {values.dtype}, not numbers")
    values = np.ascontiguousarray(values, dtype=np.float64)
    if not (finite := np.isfinite(values)).all():
        where = [int(k) for k in np.argwhere(~finite)[0]]
        raise DataError(f"{name} holds {values[tuple(where)]} at {where}: only finite numbers fit")
    return values

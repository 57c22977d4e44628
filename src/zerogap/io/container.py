r"""Files of JSON and arrays: models and checkpoints.  Reading one runs no code.

Layout, all numbers little-endian::

    8 bytes    \x89ZGP\r\n\x1a\n
    2 + 2      format version: major, minor
    4          length of the header
    header     JSON object in UTF-8; its "arrays" is a list of [name, dtype, shape]
    arrays     raw values, C order, one array after the other, nothing between them
    4          CRC-32 of all before

The sizes of the parts must add up to the size of the file before anything is allocated for them.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from zerogap.io.atomic import require_regular
from zerogap.io.nesting import depth

MAJOR, MINOR = 1, 0
_MAGIC = b"\x89ZGP\r\n\x1a\n"
_START = struct.Struct("<8sHHI")
_CRC = struct.Struct("<I")
_DTYPE = re.compile(r"\|[bui]1|<[ui][248]|<f[248]|<U[1-9][0-9]{0,5}")
_DEEPEST = 16  # lists and objects inside others
_LONGEST_HEADER = 1 << 26  # bytes, besides those of names and scales, one for each feature
_PER_BYTE = 8  # of arrays, that the header may have more: a feature has 8 bytes and a name
_LARGE = 1 << 28  # bytes of a file, whose sizes are added up before all of it is read
_MOST_ARRAYS = 1000  # of a file; ours have 12 at most: each declaration costs time and memory
_MOST_DIGITS = 60  # of an integer; the state of a random generator has 39
_LARGE_INT = re.compile(rb"[0-9]{%d}" % (_MOST_DIGITS + 1))  # not there: nothing to look at
_LARGE_FLOAT = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{300}")  # one that may be infinite
_STRANGER = "it is not a zerogap file, or its beginning is damaged"
_INFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class FileError(ValueError):
    """The file is not what it should be: one line that says what and where."""


def write(file: BinaryIO, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write the content of a file, without a copy of the arrays."""
    little = {name: _little_endian(array) for name, array in arrays.items()}
    declared = [[name, a.dtype.str, list(a.shape)] for name, a in little.items()]
    text = json.dumps(_tag_infinities({**header, "arrays": declared}), allow_nan=False).encode()
    start = _START.pack(_MAGIC, MAJOR, MINOR, len(text))
    parts: list[Any] = [start, text, *(a.reshape(-1).view(np.uint8) for a in little.values())]
    checksum = 0
    for part in parts:
        file.write(part)
        checksum = zlib.crc32(part, checksum)
    file.write(_CRC.pack(checksum))


def unpack(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and arrays of a file, after checking every byte of it."""
    text, start = _header_text(content)
    if zlib.crc32(memoryview(content)[: -_CRC.size]) != _CRC.unpack(content[-_CRC.size :])[0]:
        raise FileError("it is damaged: the checksum at its end differs")
    header = _parse(text)
    declared, sizes = _declared(header, len(content) - start - _CRC.size)
    arrays: dict[str, np.ndarray] = {}
    for (name, dtype, shape), size in zip(declared, sizes, strict=True):
        if name in arrays:
            raise FileError(f"array {name!r} occurs twice")
        flat = (
            np.frombuffer(content, dtype, math.prod(shape), start) if size else np.empty(0, dtype)
        )
        arrays[name] = _checked(name, flat.reshape(shape).astype(dtype.newbyteorder("=")))
        start += size
    return header, arrays


def _header_text(content: bytes) -> tuple[bytes, int]:
    """Return the header and where it ends."""
    if content[:8] != _MAGIC:
        raise FileError(_STRANGER)
    if len(content) < _START.size + _CRC.size:
        raise FileError(f"it ends after {len(content)} bytes")
    _, major, minor, length = _START.unpack_from(content)
    if major > MAJOR:
        raise FileError(
            f"it has format {major}.{minor}, this version of zerogap reads {MAJOR}.x: "
            f"upgrade with pip install -U zerogap"
        )
    if major < 1:
        raise FileError(f"there is no format {major}.{minor}")
    end = _START.size + length
    if (room := len(content) - _CRC.size - end) < 0:
        raise FileError(f"its header of {length} bytes is longer than the file")
    if length > _LONGEST_HEADER + _PER_BYTE * room:
        raise FileError(f"its header of {length} bytes is too long for arrays of {room} bytes")
    return content[_START.size : end], end


def _declared(
    header: Any, room: int
) -> tuple[list[tuple[str, np.dtype, tuple[int, ...]]], list[int]]:
    """Take the arrays out of a header; return them and their bytes, which must fill the room."""
    if not isinstance(header, dict):
        raise FileError("the header is not a JSON object")
    if not isinstance(entries := header.pop("arrays", None), list):
        raise FileError("the header does not declare its arrays")
    if len(entries) > _MOST_ARRAYS:
        raise FileError(f"the header declares {len(entries)} arrays, {_MOST_ARRAYS} at most")
    declared = [_declaration(entry) for entry in entries]
    sizes = [dtype.itemsize * math.prod(shape) for _, dtype, shape in declared]
    if sum(sizes) != room:
        raise FileError(f"its arrays take {sum(sizes)} bytes, but {room} follow the header")
    return declared, sizes


def _declaration(entry: Any) -> tuple[str, np.dtype, tuple[int, ...]]:
    """Return name, type and shape of an array that the header declares."""
    match entry:
        case [str(name), str(dtype), list(shape)] if _DTYPE.fullmatch(dtype) and len(shape) <= 2:
            if all(type(size) is int and 0 <= size < 2**40 for size in shape):
                return name, np.dtype(dtype), tuple(shape)
    raise FileError(f"the header declares an impossible array: {short(entry)}")


def _checked(name: str, array: np.ndarray) -> np.ndarray:
    """Refuse bytes that are no truth value or no character: NumPy would stumble over them later."""
    kind, limit = {"b": (np.uint8, 1), "U": (np.uint32, 0x10FFFF)}.get(array.dtype.kind, (None, 0))
    if kind is not None and array.size and array.reshape(-1).view(kind).max() > limit:
        raise FileError(f"array {name!r} holds impossible values")
    return array


def _parse(text: bytes) -> Any:
    """Parse strict JSON: no duplicate keys, no NaN, nothing nested or large beyond reason."""
    try:
        if depth(text) > _DEEPEST:
            raise FileError(f"the header is nested more than {_DEEPEST} deep")
        return json.loads(
            text.decode(),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_float if _LARGE_FLOAT.search(text) else None,
            parse_int=_int if _LARGE_INT.search(text) else None,
        )
    except UnicodeDecodeError as error:
        raise FileError(f"the header is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise FileError(f"the header is not JSON: {error.msg} at {error.pos}") from None


def _object(pairs: list[tuple[str, Any]]) -> Any:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise FileError("a key occurs twice in one object of the header")
    match value:
        case {"float": str(name), **rest} if not rest and name in _INFINITE:
            return _INFINITE[name]
    return value


def _refuse_constant(text: str) -> Any:
    raise FileError(f"the header holds {text}, which is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise FileError(f"the number {short(text)} in the header is too large")
    return value


def _int(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise FileError(f"an integer in the header has {len(text)} digits")
    return int(text)


def _tag_infinities(value: Any) -> Any:
    """Write numbers that JSON does not have as objects: {"float": "inf"}."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(float(value))}
    if isinstance(value, dict):
        return {key: _tag_infinities(item) for key, item in value.items()}
    return [_tag_infinities(item) for item in value] if isinstance(value, list | tuple) else value


def _little_endian(array: np.ndarray) -> np.ndarray:
    array = np.ascontiguousarray(array).reshape(np.shape(array))  # which makes scalars vectors
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if not _DTYPE.fullmatch(array.dtype.str):
        raise ValueError(f"arrays of type {array.dtype} cannot be saved")
    return array


def short(value: Any) -> str:
    """Return a value from a file as text for one line of a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_bytes(path: Path) -> bytes:
    """Return the content of a file that begins like one of ours; never waits for a pipe."""
    require_regular(path)
    with open(path, "rb") as file:
        if (start := file.read(_START.size))[: len(_MAGIC)] != _MAGIC:
            raise FileError(_STRANGER)
        size = os.fstat(file.fileno()).st_size
        if size > _LARGE:  # disks hold zeros without end in no room at all
            length = _START.unpack(start)[3]
            _declared(_parse(file.read(length)), size - len(start) - length - _CRC.size)
            file.seek(len(start))
        return start + file.read()

"""manifest.json: what a store holds, believed only after every number in it has been checked."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zerogap.io.atomic import replace_file
from zerogap.io.nesting import depth
from zerogap.io.system import READ_ONLY
from zerogap.store.layout import ALIGNMENT, Block, Layout

NAME = "manifest.json"
DATA_NAMES = ("blocks-0.bin", "blocks-1.bin")
MOST_FEATURES = 2**31 - 1  # indices are kept in 32 bits
_FORMAT = "zerogap store"
_MAJOR, _MINOR = 1, 0
_LARGEST_MANIFEST = 1 << 28  # bytes of a manifest
_DEEPEST = 16  # lists and objects in others
_TYPES: dict[str, Any] = {"bool": bool, "int": int, "float": float, "str": str}
_UNSIGNED = ("fingerprint", "data", "source")


class StoreError(ValueError):
    """The folder is no store, or a damaged one: what is wrong, in one line."""


@dataclass(frozen=True)
class Manifest:
    """What a store holds.

    `data` is the number of the file with the blocks; `classes` None for regression.
    """

    n_samples: int
    n_features: int
    stored: int
    sparse: bool
    dtype: str
    weighted: bool
    total_weight: float
    largest_sqnorm: float
    classes: np.ndarray | None
    class_weights: np.ndarray | None
    blocks: tuple[Block, ...]
    feature_names: list[str] | None = None
    encoder: dict[str, Any] | None = None
    source: dict[str, Any] | None = None
    data: int = 0

    @property
    def layout(self) -> Layout:
        return Layout(self.sparse, np.dtype(self.dtype), self.weighted)

    @property
    def fingerprint(self) -> str:
        """Digest of the content, wherever it came from and wherever it lies."""
        return _digest(self._json())

    def write(self, folder: Path) -> None:
        """Write the manifest, which makes the store what it says."""
        content = self._json()
        content["fingerprint"] = _digest(content)
        text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False).encode()
        replace_file(folder / NAME, lambda file: file.write(text))

    def _json(self) -> dict[str, Any]:
        content = {"format": _FORMAT, "version": [_MAJOR, _MINOR], **asdict(self)}
        if self.classes is not None and self.class_weights is not None:
            kind = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str"}
            labels = {"type": kind[self.classes.dtype.kind], "labels": self.classes.tolist()}
            content |= {"classes": labels, "class_weights": self.class_weights.tolist()}
        content["blocks"] = [[b.rows, b.stored, b.offset, b.nbytes, b.crc32] for b in self.blocks]
        return content


def _digest(content: dict[str, Any]) -> str:
    signed = {key: value for key, value in content.items() if key not in _UNSIGNED}
    return hashlib.sha256(json.dumps(signed, sort_keys=True).encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a store after checking all of it; StoreError says what is wrong."""
    try:
        content = _load(folder)
        return _manifest(content)
    except StoreError as error:
        raise StoreError(f"{folder}: {error}") from error.__cause__


def _load(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        if not folder.exists():
            raise FileNotFoundError(2, "no such store", str(folder))
        raise StoreError("is a file, not a store; zerogap data convert makes one of it")
    try:
        handle = open_regular(folder / NAME)
    except FileNotFoundError:
        raise StoreError("has no manifest.json: it is no store, or an unfinished one") from None
    with os.fdopen(handle, "rb") as file:
        size = os.fstat(handle).st_size
        text = file.read(min(size, _LARGEST_MANIFEST) + 1)
    _check(depth(text) <= _DEEPEST, f"it is nested more than {_DEEPEST} deep")
    try:
        content = json.loads(text.decode()) if len(text) <= _LARGEST_MANIFEST else None
    except ValueError as error:
        raise StoreError("manifest.json is damaged: it is not JSON in UTF-8") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise StoreError("manifest.json is not that of a zerogap store")
    version: Any = content.get("version")
    _check(_whole_numbers(version) and len(version) == 2, "its version is no version")
    if version[0] != _MAJOR:
        raise StoreError(
            f"has format {version[0]}.{version[1]}, this version of zerogap reads {_MAJOR}.x: "
            f"upgrade zerogap, or convert the source again"
        )
    return content


def open_regular(path: Path) -> int:
    """Open a regular file for reading: no link, and nothing that would make us wait."""
    try:
        handle = os.open(path, READ_ONLY)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path.name} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise StoreError(f"{path.name} is not a regular file")
    return handle


def _manifest(content: dict[str, Any]) -> Manifest:
    """Turn JSON into a manifest, trusting nothing."""
    fields = ("format", "version", "fingerprint", *Manifest.__dataclass_fields__)
    missing = [name for name in fields if name not in content]
    _check(not missing, f"it lacks {', '.join(missing)}")
    n, d, stored = (content[name] for name in ("n_samples", "n_features", "stored"))
    _check(_whole_numbers([n, d, stored]) and n > 0, "its sizes are no sizes")
    _check(0 < d <= MOST_FEATURES, f"n_features is {d}")
    _check(content["dtype"] in ("float32", "float64"), "its dtype is neither float32 nor float64")
    _check(all(type(content[k]) is bool for k in ("sparse", "weighted")), "sparse or weighted")
    _check(content["data"] in (0, 1) and type(content["data"]) is int, "data is not 0 or 1")
    for name in ("total_weight", "largest_sqnorm"):
        value = content[name]
        _check(type(value) is float and 0 <= value < math.inf, f"{name} is no such number")
    layout = Layout(content["sparse"], np.dtype(content["dtype"]), content["weighted"])
    blocks = _blocks(content["blocks"], layout, d)
    _check(sum(b.rows for b in blocks) == n, "the rows of its blocks do not add up")
    _check(sum(b.stored for b in blocks) == stored, "the values of its blocks do not add up")
    classes, weights = _classes(content["classes"], content["class_weights"])
    names, encoder, source = (content[k] for k in ("feature_names", "encoder", "source"))
    _check(names is None or _strings(names, d), "feature_names are not one name for each feature")
    _check(all(v is None or isinstance(v, dict) for v in (encoder, source)), "encoder or source")
    _check(content["fingerprint"] == _digest(content), "its fingerprint differs")
    known = {name: content[name] for name in Manifest.__dataclass_fields__}
    return Manifest(**known | {"blocks": blocks, "classes": classes, "class_weights": weights})


def _blocks(table: Any, layout: Layout, d: int) -> tuple[Block, ...]:
    _check(isinstance(table, list) and len(table) > 0, "it has no blocks")
    blocks: list[Block] = []
    start = end = 0
    for k, entry in enumerate(table):
        _check(_whole_numbers(entry) and len(entry) == 5, f"block {k} is no list of five sizes")
        rows, stored, offset, nbytes, crc = entry
        _check(rows > 0 and max(entry) < 2**62, f"the sizes of block {k} are impossible")
        _check(layout.sparse or stored == rows * d, f"block {k} has not {d} values for each row")
        _check(nbytes == layout.nbytes(rows, stored), f"block {k} has not the size of its arrays")
        _check(offset >= end, f"block {k} overlaps the one before it")
        _check(offset % ALIGNMENT == 0, f"block {k} is not aligned")
        blocks.append(Block(rows, stored, start, nbytes, offset, crc))
        start, end = start + rows, offset + nbytes
    return tuple(blocks)


def _classes(value: Any, weights: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    if value is None:
        return None, None
    _check(isinstance(value, dict) and set(value) == {"type", "labels"}, "classes are no classes")
    kind, labels = _TYPES.get(str(value["type"])), value["labels"]
    _check(kind is not None and isinstance(labels, list) and len(labels) > 0, "no classes")
    _check(all(type(label) is kind for label in labels), f"a class is no {value['type']}")
    classes = np.array(labels)
    _check(classes.dtype.kind in "bifU" and len(np.unique(classes)) == len(labels), "its classes")
    valid = isinstance(weights, list) and len(weights) == len(labels)
    _check(
        valid and all(type(w) is float and 0 < w < math.inf for w in weights),
        "class_weights are not one positive number for each class",
    )
    return classes, np.array(weights)


def _whole_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(v) is int and v >= 0 for v in value)


def _strings(value: Any, size: int) -> bool:
    return isinstance(value, list) and len(value) == size and all(type(v) is str for v in value)


def _check(valid: bool, what: str) -> None:
    if not valid:
        raise StoreError(f"manifest.json is damaged: {what}")

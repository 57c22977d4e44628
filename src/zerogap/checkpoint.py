"""Checkpoints of a run: JSON and arrays in one file that is always the old one or the new one."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

_FORMAT = 1
_HEADER = "header"


class CheckpointError(ValueError):
    """The file is not a checkpoint of this run."""


def save(path: Path, run: str, parts: dict[str, Any], history: list[dict[str, float]]) -> None:
    """Write a checkpoint atomically: temporary file, flush to disk, rename.

    `parts` maps names to dataclasses of arrays, numbers and generators; `run` identifies problem,
    solver and seed.
    """
    arrays: dict[str, np.ndarray] = {}
    header: dict[str, Any] = {"format": _FORMAT, "run": run, "history": history, "parts": {}}
    for part, value in parts.items():
        scalars = header["parts"][part] = {}
        for name, item in _items(value).items():
            if isinstance(item, np.ndarray):
                arrays[f"{part}.{name}"] = item
            elif isinstance(item, np.random.Generator):
                scalars[name] = {"generator": item.bit_generator.state}
            else:
                scalars[name] = item
    arrays[_HEADER] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    _remove_stale(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path))
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def load(path: Path, run: str, parts: dict[str, Any]) -> list[dict[str, float]]:
    """Fill the dataclasses of `parts` from a checkpoint of the same run; return its history."""
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {Path(i.filename).stem: i.file_size for i in archive.infolist()}
        if sum(sizes.values()) > path.stat().st_size:  # stored, never compressed
            raise CheckpointError(f"{path} is damaged: its parts are larger than the file")
        with np.load(path, allow_pickle=False) as arrays:
            header = json.loads(arrays[_HEADER].tobytes())
            if header["format"] != _FORMAT:
                raise CheckpointError(f"{path} has format {header['format']}, this is {_FORMAT}")
            if header["run"] != run:
                raise CheckpointError(
                    f"{path} belongs to another run: data, targets, weights, loss, lam, solver or "
                    f"seed differ.  Delete it to start anew, or choose another path"
                )
            for part, value in parts.items():
                _restore(value, header["parts"][part], arrays, part)
            return header["history"]
    except CheckpointError:
        raise
    except (OSError, EOFError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path} is not a readable checkpoint: {error}") from error


def _restore(value: Any, scalars: dict[str, Any], arrays: Any, part: str) -> None:
    for name in _items(value):
        if f"{part}.{name}" in arrays:
            setattr(value, name, arrays[f"{part}.{name}"])
        elif isinstance(scalars[name], dict):
            getattr(value, name).bit_generator.state = scalars[name]["generator"]
        else:
            setattr(value, name, scalars[name])


def _items(value: Any) -> dict[str, Any]:
    saved = [f for f in dataclasses.fields(value) if f.metadata.get("saved", True)]
    return {f.name: getattr(value, f.name) for f in saved}


def _prefix(path: Path) -> str:
    return f".{path.name}.part-"


def _remove_stale(path: Path) -> None:
    """Remove what earlier, killed processes left of their writing."""
    for stale in path.parent.glob(f"{_prefix(path)}*"):
        stale.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

"""Checkpoints of a run: its whole state in one file that is always the old one or the new one."""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import re
import secrets
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from zerogap.io.atomic import locked, replace_file
from zerogap.io.container import FileError, read_bytes, short, unpack, write

_LARGEST = 2**63 - 1  # of whole numbers: kernels take 64 bits
_DUAL = {"alpha", "best_alpha", "sum_alpha", "drawn_alpha"}  # where they begin empty
_WEIGHTS = {"w", "sum_w", "drawn_w"}
_NEEDED = {"seconds", "cpu_seconds", "updates", "gap"}  # of every row of the history


class CheckpointError(ValueError):
    """The file is not a checkpoint of this run."""


@contextlib.contextmanager
def reserved(path: Path | None) -> Iterator[None]:
    """Keep a checkpoint for one run: a second one, in whatever process, is refused."""
    if path is None:
        yield
        return
    with locked(path) as free:
        if not free:
            raise CheckpointError(f"another run is writing {path}: choose another path")
        yield


def save(path: Path, run: str, parts: dict[str, Any], history: list[dict[str, float]]) -> None:
    """Write a checkpoint atomically.

    `parts` maps names to dataclasses of arrays, numbers and generators; `run` identifies problem,
    solver and seed.
    """
    arrays: dict[str, np.ndarray] = {}
    header: dict[str, Any] = {"kind": "checkpoint", "run": run, "history": history, "parts": {}}
    for part, value in parts.items():
        scalars: dict[str, Any] = header["parts"].setdefault(part, {})
        for owner, name, key in _places(value):
            item = getattr(owner, name)
            if isinstance(item, np.ndarray):
                arrays[f"{part}.{key}"] = item
            elif hasattr(item, "pieces"):
                scalars[key] = {"column": _save_column(path, item)}
            elif isinstance(item, np.random.Generator):
                scalars[key] = {"generator": item.bit_generator.state}
            else:
                scalars[key] = item
    replace_file(path, lambda file: write(file, header, arrays))
    kept = {value["column"][0] for value in _columns(header)}
    for other in path.parent.glob(f"{glob.escape(path.name)}.column-*"):
        if other.name not in kept:
            other.unlink(missing_ok=True)


def _save_column(path: Path, column: Any) -> tuple[str, int]:
    """Write what a run keeps on disk into a file beside the checkpoint: return name, checksum."""
    target, checksum = path.with_name(f"{path.name}.column-{secrets.token_hex(4)}"), 0

    def put(file: BinaryIO) -> None:
        nonlocal checksum
        for piece in column.pieces():
            content = piece.astype("<f8").tobytes()
            checksum = zlib.crc32(content, checksum)
            file.write(content)

    replace_file(target, put)
    return target.name, checksum


def _columns(header: dict[str, Any]) -> list[dict[str, Any]]:
    values = (value for part in header["parts"].values() for value in part.values())
    return [value for value in values if isinstance(value, dict) and "column" in value]


def _load_column(path: Path, saved: dict[str, Any], problem: Any) -> Any:
    """Return a column filled from the file that a checkpoint names."""
    name, checksum = saved["column"]
    if not re.fullmatch(re.escape(path.name) + r"\.column-[0-9a-f]{8}", name):
        raise FileError(f"it names {short(name)}, which is no file of its own")
    column = problem.column()
    with open(path.with_name(name), "rb") as file:
        if column.fill(file) != checksum or file.read(1):
            raise FileError(f"{name} is damaged")
    return column


def load(
    path: Path,
    run: str,
    parts: dict[str, Any],
    problem: Any,
    reshape: Callable[[dict[str, Any]], None] = lambda saved: None,
) -> list[dict[str, float]]:
    """Fill the dataclasses of `parts` from a checkpoint of the same run; return its history.

    `reshape` is called with the numbers of the state before, to give it the parts that they need.
    """
    try:
        header, arrays = unpack(read_bytes(path))
        if header.get("kind") != "checkpoint":
            raise FileError(f"it is a {short(header.get('kind'))}")
        if header.get("run") != run:
            raise CheckpointError(
                f"{path} belongs to another run: data, targets, weights, loss, lam, solver or "
                f"seed differ.  Delete it to start anew, or choose another path"
            )
        reshape(header["parts"]["state"])
        for part, value in parts.items():
            _restore(value, header["parts"][part], arrays, part, problem, path)
            _check_together(value)
        history = header["history"]
        if not history or not all(row.keys() >= _NEEDED for row in history):
            raise FileError("its history is not complete")
        if not all(type(value) in (int, float) for row in history for value in row.values()):
            raise FileError("its history holds something else than numbers")
        return history
    except CheckpointError:
        raise
    except (OSError, AttributeError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise CheckpointError(f"{path} is not a readable checkpoint: {error}") from error


def _restore(
    value: Any,
    scalars: dict[str, Any],
    arrays: dict[str, np.ndarray],
    part: str,
    problem: Any,
    path: Path,
) -> None:
    for owner, name, key in _places(value):
        fresh = getattr(owner, name)
        if (array := arrays.get(f"{part}.{key}")) is not None:
            _check_array(key, array, fresh, problem)
            setattr(owner, name, array)
        elif isinstance(saved := scalars.get(key), dict) and "column" in saved:
            setattr(owner, name, _load_column(path, saved, problem))
        elif isinstance(fresh, np.random.Generator):
            fresh.bit_generator.state = scalars[key]["generator"]
        else:
            _check_scalar(key, scalars[key], fresh)
            kind = type(fresh) if isinstance(fresh, float) else lambda value: value
            setattr(owner, name, kind(scalars[key]))  # a whole number is another type to kernels


def _check_scalar(name: str, saved: Any, fresh: Any) -> None:
    """Refuse numbers and texts of another type than the run's own."""
    like = {float: (int, float), int: (int,), bool: (bool,), str: (str,)}
    kinds = like.get(type(fresh), (type(None),))
    least = min(0, fresh) if isinstance(fresh, int) else 0  # no count falls below its first value
    beyond = isinstance(saved, int) and not least <= saved <= _LARGEST
    beyond |= saved != saved and fresh == fresh  # NaN, where a run begins with a number
    if beyond or not isinstance(saved, kinds) or (isinstance(saved, bool) and bool not in kinds):
        raise FileError(f"its {name!r} is {short(saved)}")


def _check_together(value: Any) -> None:
    """Refuse states, those inside others included, whose fields do not fit one another."""
    if hasattr(value, "misfit") and (name := value.misfit()):
        raise FileError(f"its {name!r} does not fit the rest of it")
    for item in dataclasses.fields(value):
        if dataclasses.is_dataclass(inner := getattr(value, item.name)):
            _check_together(inner)


def _check_array(name: str, array: np.ndarray, fresh: Any, problem: Any) -> None:
    """Refuse arrays of another type or shape than the run's own, NaN, and rows that do not exist.

    Arrays that begin empty have any length, or are dual variables or weights of the problem;
    intercepts begin as a number.
    """
    fits = array.dtype == np.asarray(fresh).dtype
    if not np.ndim(fresh):
        fits &= array.shape in ((), problem.weight_shape[:-1])
    elif array.shape != np.shape(fresh):
        known = problem.dual_shape if name in _DUAL else problem.weight_shape
        fits &= not np.size(fresh) and (name not in {*_DUAL, *_WEIGHTS} or array.shape == known)
        fits &= array.ndim == 1 or array.dtype.kind == "f"
    if array.dtype.kind == "i":
        fits &= not array.size or bool(array.min() >= 0 and array.max() < problem.shape[0])
    if not fits or not np.isfinite(array).all():
        raise FileError(f"its array {name!r} does not fit the problem")


def _places(value: Any, prefix: str = "") -> Iterator[tuple[Any, str, str]]:
    """Yield where the saved fields of a dataclass are, those of dataclasses in it included."""
    for field in dataclasses.fields(value):
        if dataclasses.is_dataclass(item := getattr(value, field.name)):
            yield from _places(item, f"{prefix}{field.name}.")
        elif field.metadata.get("saved", True):
            yield value, field.name, f"{prefix}{field.name}"

"""Checkpoints of a distributed fit: one file per problem, always the old one or the new one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from zerogap.io.atomic import write_file
from zerogap.io.container import FileError, read_bytes, unpack, write
from zerogap.solvers.checkpoint import CheckpointError


@dataclass(frozen=True)
class Saved:
    """A place to go on from: the weights, and the dual variables of the chunks if they matter."""

    identity: str  # of data, loss, lam and so on
    w: np.ndarray
    b: np.ndarray
    alphas: dict[int, np.ndarray]


def save(path: Path, saved: Saved) -> None:
    """Write a checkpoint; a full disk costs the checkpoint, not the fit."""
    header = {"kind": "distributed checkpoint", "run": saved.identity}
    arrays = {"w": saved.w, "b": saved.b}
    arrays |= {f"alpha-{k}": alpha for k, alpha in saved.alphas.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, lambda file: write(file, header, arrays))
    except OSError as error:
        warnings.warn(f"could not write checkpoint {path}: {error}; going on", stacklevel=2)


def load(path: Path, identity: str) -> Saved | None:
    """Return the checkpoint of the same fit, None if there is none; refuse that of another."""
    if not path.exists():
        return None
    try:
        header, arrays = unpack(read_bytes(path))
        if header.get("kind") != "distributed checkpoint":
            raise FileError("it is not a checkpoint of zerogap.dask")
        alphas = {int(name[6:]): a for name, a in arrays.items() if name.startswith("alpha-")}
        saved = Saved(str(header.get("run")), arrays["w"], arrays["b"], alphas)
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise FileError("it holds numbers that are not finite")
    except (OSError, KeyError, ValueError) as error:
        raise CheckpointError(f"{path} is not a readable checkpoint: {error}") from error
    if saved.identity != identity:
        raise CheckpointError(
            f"{path} belongs to another fit: data, loss, lam, weights or groups differ.  Delete "
            f"it to start anew, or choose another checkpoint_dir"
        )
    return saved

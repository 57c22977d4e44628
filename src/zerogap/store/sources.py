"""What a store is made from, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from zerogap.store.manifest import MOST_FEATURES

_TASKS = ("classification", "regression")


class Piece(NamedTuple):
    """Rows of a source, where it goes on after them, and how many of its bytes have been read."""

    X: Any
    y: Any
    sample_weight: Any = None
    position: Any = None
    done: int = 0


class Source:
    """Where rows come from.

    Attributes
    ----------
    identity : dict or None
        What tells it from another source, as JSON; None if it cannot be read a second time.
    name : str or None
        For messages.
    total : int or None
        Its size in bytes.
    grows : bool
        Whether the number of columns is known only at the end.
    feature_names, encoder
        For the store.
    """

    identity: dict[str, Any] | None = None
    name: str | None = None
    total: int | None = None
    grows = False
    feature_names: list[str] | None = None
    encoder: dict[str, Any] | None = None

    def pieces(self, position: Any) -> Iterator[Piece]:
        """Yield the rows after a position that an earlier piece gave; None means from the start."""
        raise NotImplementedError


class Parts(Source):
    """Rows from an iterator of (X, y) or (X, y, sample_weight)."""

    def __init__(self, parts: Iterable[Any]) -> None:
        self.parts = parts

    def pieces(self, position: Any) -> Iterator[Piece]:
        for part in self.parts:
            if not isinstance(part, tuple | list) or len(part) not in (2, 3):
                raise ValueError("a part must be (X, y) or (X, y, sample_weight)")
            yield Piece(*part)


@dataclass(frozen=True)
class Options:
    """How a store is written; see `write_store`."""

    task: str = "classification"
    n_features: int | None = None
    dtype: str | None = None
    max_memory: int | str | None = None
    seed: int = 0
    force: bool = False

    def __post_init__(self) -> None:
        if self.task not in _TASKS:
            raise ValueError(f"task must be one of {', '.join(_TASKS)}, got {self.task!r}")
        if self.dtype not in (None, "float32", "float64"):
            raise ValueError(f"dtype must be float32, float64 or None, got {self.dtype!r}")
        n = self.n_features
        if n is not None and not (isinstance(n, int) and 0 < n <= MOST_FEATURES):
            raise ValueError(f"n_features must be from 1 to {MOST_FEATURES}, got {n!r}")

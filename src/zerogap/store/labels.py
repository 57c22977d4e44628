"""Class labels of a stream, numbered as they come and sorted when all have been seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

_MOST_CLASSES = 100_000  # more are numbers to predict, or names of rows
_REGRESSION = 'if y holds numbers to predict, the task is "regression"'


class Labels:
    """Labels so far; `known` maps each to the number of those that came before it."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.is_float = False

    def add(self, labels: Iterable[Any], is_float: bool) -> None:
        """Number labels that have not been seen before."""
        kind = _kind(next(iter(self.known), None))
        for label in labels:
            if self.known and _kind(label) is not kind:
                raise ValueError(f"y holds the label {label!r}, and labels of another type before")
            kind = _kind(label)
            self.known.setdefault(label, len(self.known))
        self.is_float |= is_float
        if len(self.known) > _MOST_CLASSES:
            raise ValueError(f"y holds more than {_MOST_CLASSES} classes: {_REGRESSION}")

    def codes(self, y: np.ndarray) -> np.ndarray:
        """Return the numbers of labels."""
        if y.dtype.kind == "O" and all(isinstance(label, str) for label in y):
            y = y.astype(str)
        if y.dtype.kind not in "biufU":
            raise ValueError(f"y holds {y.dtype} labels: use numbers or text")
        if y.dtype.kind == "f" and not (whole := y == np.floor(y)).all():
            i = int(np.argmin(whole))
            raise ValueError(f"y holds {y[i]} at position {i}, which is no class: {_REGRESSION}")
        labels, positions = np.unique(y, return_inverse=True)
        self.add(labels.tolist(), y.dtype.kind == "f")
        return np.array([self.known[label] for label in labels.tolist()], dtype=float)[positions]

    def sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the classes in order, and the place in it of each label by its number."""
        labels = np.array(list(self.known))
        return np.unique(labels.astype(float) if self.is_float else labels, return_inverse=True)


def _kind(label: Any) -> type:
    return type(label) if isinstance(label, bool | str) else float

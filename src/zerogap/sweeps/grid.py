"""The settings of a grid: which part of a model has each parameter, and in which order to fit."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zerogap.solvers import SOLVERS


@dataclass(frozen=True)
class Setting:
    """One combination of values, sorted by what they belong to."""

    values: dict[str, Any]  # by the names of the grid
    transform: dict[str, Any]
    model: dict[str, Any]  # but lam
    lam: dict[str, Any]


def settings(grid: Mapping[str, Sequence[Any]], model: Any, transform: Any) -> list[Setting]:
    """Return all combinations, the last parameter of the grid changing fastest."""
    if not isinstance(grid, Mapping) or not grid:
        raise ValueError(f"grid must be a dict such as {{'lam': [1e-3, 1e-2]}}, got {grid!r}")
    columns = {name: _column(name, values) for name, values in grid.items()}
    owners = {name: _owner(name, model, transform) for name in columns}
    found = []
    for combination in itertools.product(*columns.values()):
        parts: dict[str, dict[str, Any]] = {"transform": {}, "model": {}, "lam": {}}
        values = dict(zip(columns, combination, strict=True))
        for name, value in values.items():
            part, key = owners[name]
            parts[part][key] = value
        found.append(Setting(values, **parts))
    return found


def in_order(found: Sequence[Setting]) -> list[Setting]:
    """Return the settings by transform, then by model, then from the largest lambda down."""
    return sorted(
        found,
        key=lambda setting: (
            repr(setting.transform),
            repr(setting.model),
            -(setting.lam.get("lam") or 0.0),
        ),
    )


def _column(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ValueError(f"grid[{name!r}] must be a list of values, got {values!r}")
    column = [value.item() if hasattr(value, "item") else value for value in values]
    if not column:
        raise ValueError(f"grid[{name!r}] has no values")
    if len({repr(value) for value in column}) < len(column):
        raise ValueError(f"grid[{name!r}] has a value twice: {column}")
    return column


def _owner(name: str, model: Any, transform: Any) -> tuple[str, str]:
    """Return what a parameter belongs to, and its full name there."""
    places = {"model": model.get_params()}
    if transform is not None:
        places["transform"] = transform.get_params()
    keys = [(part, key) for part, known in places.items() for key in known]
    found = [(part, key) for part, key in keys if key == name] or [
        (part, key) for part, key in keys if key.endswith(f"__{name}")
    ]
    if len(found) == 1:
        part, key = found[0]
        return ("lam" if (part, key) == ("model", "lam") else part), key
    if found:
        choices = " or ".join(repr(key) for _, key in found)
        raise ValueError(f"there are several parameters {name!r} to sweep: write {choices}")
    solvers = [text for text, cls in SOLVERS.items() if name in _fields(cls)]
    hint = f"; it is a parameter of solver {' or '.join(map(repr, solvers))}" if solvers else ""
    parts = f"{type(model).__name__}, loss {model.loss!r} and solver {model.solver!r}"
    raise ValueError(f"there is no parameter {name!r} to sweep in {parts}{hint}")


def _fields(cls: type) -> set[str]:
    return {field.name for field in dataclasses.fields(cls)}

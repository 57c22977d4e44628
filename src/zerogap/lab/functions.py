"""Functions by name, so that other processes find them, and digests of the code behind results."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zerogap


def name_of(function: str | Callable[..., Any]) -> str:
    """Return the name by which another process finds a function: module and name."""
    if isinstance(function, str):
        return function
    if "." in function.__qualname__:
        raise ValueError(
            f"{function.__qualname__} must be a function of a module, not inside another"
        )
    return f"{function.__module__}:{function.__qualname__}"


def find(name: str) -> Callable[..., Any]:
    """Return the function of that name."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


@functools.cache
def function_digest(name: str) -> str:
    """Return a digest of the file that holds a function."""
    source = inspect.getsourcefile(importlib.import_module(name.partition(":")[0]))
    return hashlib.sha256(Path(source).read_bytes()).hexdigest() if source else ""


@functools.cache
def library_digest() -> str:
    """Return the version, and a digest of the code that computes: an old result is never taken."""
    root = Path(zerogap.__file__).parent
    others = {"cli", "lab", "model_io"}
    files = sorted(p for p in root.rglob("*.py") if p.relative_to(root).parts[0] not in others)
    files += [root / "lab" / "data.py", root / "lab" / "cells.py"]
    content = b"\0".join(path.read_bytes() for path in files)
    return f"{zerogap.__version__} {hashlib.sha256(content).hexdigest()}"

"""What ends a run before, or instead of, the gap that was asked for."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from zerogap.solvers.history import Record

Callback = Callable[[Record], bool | str | None]


@dataclass(frozen=True)
class Limits:
    """The gap that ends a run, its budgets, and who else may stop it; see `solve`."""

    tol: float
    epochs: float
    examples: int | None = None
    seconds: float | None = None
    callback: Callback | None = None
    interrupt: threading.Event = field(default_factory=threading.Event)
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not 0 <= self.tol < math.inf:
            raise ValueError(f"tol must be a number >= 0, got {self.tol!r}")
        for name in ("epochs", "examples", "seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"max_{name} must be positive, got {value!r}")

    def out_of_time(self) -> bool:
        """Tell whether the seconds are spent."""
        return self.seconds is not None and time.monotonic() - self.began >= self.seconds

    def last_update(self, rows: int, epoch_length: int) -> int:
        """Return the number of updates after which epochs or examples are spent."""
        last = math.ceil(min(self.epochs * epoch_length, sys.maxsize // 2))
        if self.examples is not None:
            per_update = rows / epoch_length
            last = min(last, math.ceil(self.examples / per_update))
        return last

    def reached(self, examples: int, updates: int, last_update: int) -> str:
        """Return which limit a run that has made so many updates has reached, or nothing."""
        if self.interrupt.is_set():
            return "interrupted"
        if self.out_of_time():
            return "max_seconds"
        if self.examples is not None and examples >= self.examples:
            return "max_examples"
        return "max_epochs" if updates >= last_update else ""

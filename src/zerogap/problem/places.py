"""Where the arrays of a problem are."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from zerogap.io.memory import free_memory


class OnProcessor:
    """A problem whose arrays are numpy's; those on a GPU have a class of their own."""

    on_device: ClassVar[bool] = False
    streamed: ClassVar[bool] = False  # whether rows are read when they are needed
    xp: ClassVar[Any] = np  # makes arrays
    pace: ClassVar[float] = 1.0  # values read in the time that a processor takes for one, roughly

    @property
    def by_matrices(self) -> bool:
        """Whether products of matrices are faster than loops over the rows."""
        return False

    def host(self, a: Any) -> Any:
        """Return an array of this problem as numpy's."""
        return a

    def place(self, a: Any) -> Any:
        """Return an array of numpy's as one of this problem."""
        return a

    def finish(self) -> None:
        """Wait until all work that was asked for is done."""

    def free_memory(self) -> float:
        """Return the bytes that are free where the arrays are."""
        return free_memory()

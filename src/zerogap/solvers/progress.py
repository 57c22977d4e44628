"""One live line on a terminal, plain lines when the output goes to a file."""

from __future__ import annotations

import math
import sys
import time
from typing import TextIO

from zerogap.problem.certificate import Certificate
from zerogap.solvers.history import Record


class Progress:
    """Show where a run stands: epoch, gap, target, time spent and time left."""

    def __init__(self, tol: float, stream: TextIO | None = None) -> None:
        self.tol = tol
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty() or _is_notebook(self.stream)
        self.began = time.monotonic()
        self.shown = -math.inf
        self.first: tuple[float, float] | None = None
        self.width = 0

    def show(self, record: Record) -> None:
        """Show a record: at most ten lines a second, all of them only where that is slower."""
        now = time.monotonic() - self.began
        gap = record.certificate.relative_gap
        left = self._seconds_left(now, gap)
        if now - self.shown < 0.1:
            return
        self.shown = now
        text = f"epoch {record.epoch:g}  gap {gap:.2e}  target {self.tol:.0e}  {now:.1f} s"
        self._write(text + (f"  about {left:.1f} s left" if left is not None else ""))

    def close(self, certificate: Certificate) -> None:
        """Leave the final certificate on the screen."""
        self._write(str(certificate))
        if self.live:
            self.stream.write("\n")
        self.stream.flush()

    def _seconds_left(self, now: float, gap: float) -> float | None:
        """Extrapolate the gap, which falls by a constant factor per second on most problems."""
        if not 0 < self.tol < gap < math.inf:
            return None
        if self.first is None:
            self.first = now, gap
            return None
        then, before = self.first
        if gap >= before or now <= then:
            return None
        return (now - then) * math.log(gap / self.tol) / math.log(before / gap)

    def _write(self, text: str) -> None:
        end = "" if self.live else "\n"
        start = "\r" if self.live else ""
        self.stream.write(start + text.ljust(self.width if self.live else 0) + end)
        self.stream.flush()
        self.width = len(text)


def _is_notebook(stream: TextIO) -> bool:
    """Tell whether this is a cell of a notebook: no terminal, but lines can be written again."""
    return type(stream).__module__.startswith("ipykernel.")

"""One line that says how far a campaign is: in place on a terminal, now and then in a log."""

from __future__ import annotations

import sys
import time

BETWEEN_LINES = 10.0  # seconds, in a log


class Progress:
    """The line of a campaign that says how far it is."""

    def __init__(self) -> None:
        self.in_place = sys.stdout.isatty()
        self.next_line = time.monotonic() + BETWEEN_LINES

    def show(self, text: str) -> None:
        """Say how far the campaign is; in a log only if the last line is old enough."""
        if self.in_place:
            print(f"\r{text} ", end="", flush=True)
        elif time.monotonic() >= self.next_line:
            self.next_line = time.monotonic() + BETWEEN_LINES
            print(text, flush=True)

    def say(self, text: str) -> None:
        """Print a line that stays."""
        print(f"\r{text}" if self.in_place else text, flush=True)

    def end(self) -> None:
        """Leave the line."""
        if self.in_place:
            print()

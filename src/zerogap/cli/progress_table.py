"""Progress of the lab: a live bar on a terminal, a line now and then elsewhere."""

import sys
import time
from typing import Any, Self

from zerogap.cli.output import start_bar

_SECONDS_BETWEEN_LINES = 10.0  # where there is no terminal


class ProgressTable:
    """Follow the lab's runs on standard error."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.task: Any = None
        self.began = time.monotonic()
        self.shown = -_SECONDS_BETWEEN_LINES

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            # nothing happens in the background while a run is timed
            self.bar, self.task = start_bar(auto_refresh=False)
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def show(self, tally: Any) -> None:
        """Show how far the work is."""
        now = time.monotonic() - self.began
        text = self._text(tally, now)
        if self.bar is not None:
            self.bar.update(self.task, completed=tally.done, total=tally.total, description=text)
            self.bar.refresh()
        elif now - self.shown >= _SECONDS_BETWEEN_LINES or tally.done in (0, tally.total):
            self.shown = now
            print(text, file=sys.stderr, flush=True)

    def _text(self, tally: Any, now: float) -> str:
        if not tally.done:
            kept = f", {tally.kept} kept from before" if tally.kept else ""
            return f"{tally.total} runs to do{kept}"
        left = f"about {_time(tally.left)} left" if tally.done < tally.total else _time(now)
        rate = f"{tally.done / now:.3g}/s" if now > 0 else ""
        return f"run {tally.done} of {tally.total}  {tally.experiment}  {rate}  {left}"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"

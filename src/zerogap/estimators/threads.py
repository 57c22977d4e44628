"""Several problems side by side, within one budget of seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from zerogap.solvers import Result


class Budget:
    """Seconds for several problems: the time left is shared among those that have not begun."""

    def __init__(self, seconds: float | None, count: int, jobs: int) -> None:
        self.seconds, self.count, self.jobs = seconds, count, jobs
        self.began = time.monotonic()

    def share(self, k: int) -> float | None:
        if self.seconds is None:
            return None
        left = self.seconds - (time.monotonic() - self.began)
        return max(1e-3, left * min(1.0, self.jobs / (self.count - k)))


def run_all(
    run: Callable[[int], Result], count: int, jobs: int, stop: threading.Event
) -> list[Result]:
    """Run all problems; after Ctrl-C those not yet finished return what they have certified."""
    with ThreadPoolExecutor(min(jobs, count)) as pool:
        futures = [pool.submit(run, k) for k in range(count)]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            stop.set()
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            raise

"""Ctrl-C that leaves whole states behind."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def interruptible(
    event: threading.Event,
) -> Iterator[Callable[[], contextlib.AbstractContextManager]]:
    """Hold Ctrl-C back while a state is being changed: it sets `event`, the updates end early.

    Yields a context manager for those moments.  Elsewhere, and at the second Ctrl-C,
    KeyboardInterrupt comes at once; handlers that are not Python's own stay in charge.
    """
    holding = False

    @contextlib.contextmanager
    def hold() -> Iterator[None]:
        nonlocal holding
        holding = True
        try:
            yield
        finally:
            holding = False
        if event.is_set():
            raise KeyboardInterrupt

    def handle(number: int, frame: Any) -> None:
        if not holding or event.is_set():
            raise KeyboardInterrupt
        event.set()

    main = threading.current_thread() is threading.main_thread()
    ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, handle)
    try:
        yield hold
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

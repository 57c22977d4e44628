"""Signals that wait while LLVM works: an exception in one of its callbacks ends the process."""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

_POSTPONED = (signal.SIGINT, signal.SIGTERM)
_active: list[bool] = []  # one entry while signals wait: kernels are compiled inside each other


def undisturbed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function; Ctrl-C and SIGTERM that come during a call are delivered after it."""

    @functools.wraps(function)
    def wrapped(*args: Any, **named: Any) -> Any:
        with _postponed():
            return function(*args, **named)

    return wrapped


@contextlib.contextmanager
def _postponed() -> Iterator[None]:
    """Deliver signals after the block; their handlers run in the main thread, as always."""
    if _active or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _POSTPONED}
    ours = [number for number, handler in handlers.items() if callable(handler)]
    _active.append(True)
    try:
        for number in ours:
            signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for number in ours:
            signal.signal(number, handlers[number])
        _active.clear()
        if came:
            signal.raise_signal(came[0])

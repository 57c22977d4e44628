"""Machine code: kept on disk, compiled again if damaged, and never in silence if that takes long.

This file and `jit.py` alone know Numba.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import inspect
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import event
from numba.core.caching import IndexDataCacheFile

from zerogap.kernels.signals import undisturbed

WANTED = os.environ.get("ZEROGAP_NUMBA_CACHE", "1") != "0"
SECONDS_NOTICED = 0.5  # seconds of compiling after which somebody who waits is told why

inlined_functions: set[Callable[..., Any]] = set()  # compiled into kernels of other files
_homeless: list[str] = []  # kernels that there is no folder for
_unkept: list[str] = []  # the first file that could not be written
_rebuilt: list[str] = []  # the first file that was of no use
_met: set[tuple[Any, ...]] = set()


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return what Numba will compile on its first call, with machine code kept on disk."""
    try:
        dispatcher = njit(cache=WANTED, **options)(function)
    except RuntimeError:  # no folder to keep machine code in: compile in every process
        _homeless.append(function.__name__)
        dispatcher = njit(**options)(function)
    file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if type(file) is IndexDataCacheFile:
        file.__class__ = _CacheFile
        file._source_stamp = file._source_stamp, digest_of_helpers(function.__globals__)
    if hasattr(dispatcher, "compile"):  # not in pure Python
        dispatcher.compile = undisturbed(dispatcher.compile)  # which also loads from disk
    return dispatcher


def digest_of_helpers(names: Mapping[str, Any]) -> bytes:
    """Return a digest of the files whose inlined functions are among the names of a module.

    It depends on what the module imports, not on what the process has imported before: else
    processes that begin differently would compile the same kernels again.
    """
    modules = {function.__module__ for function in inlined_functions}
    found, waiting = {}, [names]
    while waiting:
        for value in waiting.pop().values():
            inlined = inspect.isfunction(value) and value in inlined_functions
            name = value.__module__ if inlined else getattr(value, "__name__", "")
            if (inlined or inspect.ismodule(value)) and name in modules and name not in found:
                found[name] = Path(inspect.getfile(value)).read_bytes()
                waiting.append(vars(sys.modules[name]))
    return hashlib.sha256(b"".join(found[name] for name in sorted(found))).digest()


class _CacheFile(IndexDataCacheFile):
    """Machine code on disk.  What is damaged, or from another version, is compiled again."""

    def _load_index(self) -> dict[Any, str]:
        try:
            return super()._load_index()
        except OSError:
            raise
        except Exception as error:  # a truncated pickle, or a class that has moved
            _say_rebuilt(self._index_path, error)
            return {}

    def save(self, key: Any, data: Any) -> None:
        try:
            super().save(key, data)
        except OSError as error:  # a full disk, a limit of its files: it works without, more slowly
            _say_unkept(self._index_path, error)

    def load(self, key: Any) -> Any:
        try:
            return super().load(key)
        except Exception as error:
            _say_rebuilt(self._index_path, error)
            return None


def _say_rebuilt(path: str, error: Exception) -> None:
    """Warn once in a process that machine code on disk is of no use."""
    _say_once(
        _rebuilt,
        path,
        f"is damaged or from another version of zerogap ({type(error).__name__}): compiling it "
        f"again",
    )


def _say_unkept(path: str, error: OSError) -> None:
    """Warn once in a process that machine code cannot be kept."""
    _say_once(_unkept, path, f"cannot be kept ({error.strerror}): every process compiles anew")


def _say_once(told: list[str], path: str, what: str) -> None:
    if not told:
        told.append(path)
        folder = os.path.dirname(path)
        warnings.warn(f"compiled code in {folder} {what}", RuntimeWarning, stacklevel=4)


def first_time(*what: Any) -> bool:
    """Tell whether this process asks for the first time: then something is to be compiled."""
    new = what not in _met
    _met.add(what)
    return new


class _Watch(event.Listener):
    """Adds up the seconds in which kernels are compiled; those inside others count once.

    The garbage collector waits meanwhile: it would look through the compiler's objects, which
    live on, again and again, and takes an eighth of the time.
    """

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self.seconds, self.depth, self.began = 0.0, 0, 0.0
        self.collects, self.tell = False, tell

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth > 1:
            return
        self.began, self.collects = time.perf_counter(), gc.isenabled()
        gc.disable()
        if self.tell is not None and self.seconds > SECONDS_NOTICED:
            self.tell("compiling for this kind of data, once; `zerogap warmup` does it in advance")
            self.tell = None

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began
            if self.collects:
                gc.enable()


@contextlib.contextmanager
def compile_timer(tell: Callable[[str], None] | None = None) -> Iterator[Callable[[], float]]:
    """Yield a function that tells for how many seconds kernels have been compiled since.

    `tell` is called once, with a line to show, if that takes long.
    """
    timer = _Watch(tell)
    with event.install_listener("numba:compile", timer):
        yield lambda: timer.seconds


class _Session(_Watch):
    """Watches the kernels of this package in all of a process, from its first one on."""

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__ or ""  # code made by Numba has none
        if self.depth or module.startswith("zerogap."):
            if _homeless:
                self._say_homeless()
            super().on_start(event)

    def on_end(self, event: Any) -> None:
        if self.depth:
            super().on_end(event)

    def _say_homeless(self) -> None:
        """Warn once that every process compiles anew."""
        _homeless.clear()
        warnings.warn(
            "no folder can be written to keep compiled code in, so that every process compiles for "
            "some seconds: let NUMBA_CACHE_DIR name a folder that can be written",
            RuntimeWarning,
            stacklevel=2,
        )


def _say(line: str) -> None:
    """Tell somebody who sits at a prompt or a notebook; scripts are not disturbed."""
    if hasattr(sys, "ps1"):
        print(f"zerogap: {line}", file=sys.stderr, flush=True)


_session = _Session(_say)
event.register("numba:compile", _session)


def clock() -> float:
    """Return seconds for differences, in which compiling does not count."""
    return time.perf_counter() - _session.seconds

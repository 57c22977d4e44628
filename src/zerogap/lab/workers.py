"""Processes that run cells, one thread each; one that dies costs its cell and nothing else."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import numpy as np

from zerogap.lab.data import load
from zerogap.lab.experiment import Cell
from zerogap.lab.functions import find

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Done(NamedTuple):
    """A cell that has run: its rows, or why there are none, and how long it took."""

    cell: Cell
    rows: list[dict[str, Any]] | None
    error: str
    seconds: float


def run_cell(cell: Cell, folder: str | None = None) -> Done:
    """Run a cell in this process; errors are told, not raised, all but Ctrl-C."""
    began = time.monotonic()
    rows, error = None, ""
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")  # a run may diverge or not converge: its rows say so
        try:
            rows = list(find(cell.function)(cell, load(cell.data, cell.seed, folder)))
        except Exception as found:
            error = f"{type(found).__name__}: {' '.join(str(found).split())}"
    return Done(cell, rows, error, time.monotonic() - began)


def work(cells: Iterable[Cell], jobs: int, folder: str | None = None) -> Iterator[Done]:
    """Yield the cells as they get done by so many processes; 0 means in this process."""
    if jobs == 0:
        yield from (run_cell(cell, folder) for cell in cells)
        return
    waiting = list(cells)[::-1]
    workers: list[_Worker] = []
    try:
        while waiting or any(worker.cell for worker in workers):
            while waiting and len(workers) < jobs:
                workers.append(_Worker(folder))
            for worker in workers:
                if waiting and worker.cell is None:
                    worker.give(waiting.pop())
            busy = {worker.pipe: worker for worker in workers if worker.cell}
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                done = worker.take()
                if not worker.alive:
                    workers.remove(worker)
                yield done
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process and the cell that it runs."""

    def __init__(self, folder: str | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.cell: Cell | None = None
        self.began = 0.0
        self.alive = True
        with _one_thread(), _deaf():
            self.process = context.Process(target=_serve, args=(other, folder), daemon=True)
            self.process.start()
        other.close()

    def give(self, cell: Cell) -> None:
        self.cell, self.began = cell, time.monotonic()
        with contextlib.suppress(OSError):  # it has died: `take` will tell
            self.pipe.send(cell)

    def take(self) -> Done:
        """Return what became of the cell."""
        cell, self.cell = self.cell, None
        assert cell is not None
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.alive = False
            self.process.join()
            code = self.process.exitcode
            hint = ", perhaps because memory ran out" if code == -9 else ""
            error = f"its process died with exit code {code}{hint}"
            return Done(cell, None, error, time.monotonic() - self.began)

    def end(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _serve(pipe: Connection, folder: str | None) -> None:
    """Run cells until the other end is closed; Ctrl-C is for the parent, which ends this."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(run_cell(pipe.recv(), folder))


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Let a process that starts now ignore Ctrl-C, from its first instant on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let a process that starts now use one thread."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

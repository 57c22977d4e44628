"""The simulator without its waiting: it runs the same kernels, a GPU's threads one by one.

numba-cuda's own starts a thread of Python for each of a GPU's, asks all of them again and again
whether they have ended, and wraps every number that a kernel reads; that is most of its time.
"""

import os
import threading

import numpy as np

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
if SIMULATED:
    from numba.cuda.errors import normalize_kernel_dimensions
    from numba.cuda.simulator.kernel import FakeCUDAKernel
    from numba.cuda.simulator.kernelapi import Dim3, FakeCUDAModule

_WAITING = {"sync", "syncthreads", "shared"}  # names in kernels whose threads meet
_module = None  # what `cuda` is in kernels while one is running
_swapped = []  # variables of modules that are that for now


def call(self, *args):
    """Run a function of the device, or a kernel on its grid."""
    global _module
    if _module is not None:
        _swap(self.fn.__globals__)
        return self.fn(*args)
    grid, block = normalize_kernel_dimensions(self.grid_dim, self.block_dim)
    _module = FakeCUDAModule(grid, block, self.dynshared_size)
    _swap(self.fn.__globals__)
    meet = block[0] > 1 and _WAITING & set(self.fn.__code__.co_names)
    try:
        with np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
            for number in range(grid[0]):
                (_together if meet else _in_turn)(self.fn, args, number, block[0])
    finally:
        for scope, name, value in _swapped:
            scope[name] = value
        _swapped.clear()
        _module = None


def _swap(scope):
    """Let the `cuda` of a function's module be the one of this launch."""
    value = scope.get("cuda")
    if value is not None and value is not _module:
        _swapped.append((scope, "cuda", value))
        scope["cuda"] = _module


def _in_turn(function, args, block, threads):
    for k in range(threads):
        _become(block, k, _refuse if threads > 1 else _go_on)
        function(*args)


def _go_on():
    """Do nothing: a thread that is alone need not wait."""


def _refuse():
    raise RuntimeError(f"a kernel whose threads meet must use one of {sorted(_WAITING)} itself")


def _become(block, k, meet):
    """Make this thread of Python one of the device's."""
    thread = threading.current_thread()
    thread.blockIdx, thread.threadIdx, thread.thread_id = Dim3(block, 0, 0), Dim3(k, 0, 0), k
    thread.syncthreads = meet


def _together(function, args, block, threads):
    meeting, errors = _Meeting(threads), []

    def run(k):
        _become(block, k, meeting.wait)
        try:
            function(*args)
        except BaseException as error:
            errors.append(error)
        finally:
            meeting.leave()

    running = [threading.Thread(target=run, args=(k,)) for k in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


class _Meeting:
    """Where threads wait until all that still run have come."""

    def __init__(self, threads):
        self.running, self.waiting, self.count = threads, 0, 0
        self.changed = threading.Condition()

    def wait(self):
        with self.changed:
            count = self.count
            self.waiting += 1
            self._let_go()
            self.changed.wait_for(lambda: self.count > count)

    def leave(self):
        with self.changed:
            self.running -= 1
            self._let_go()

    def _let_go(self):
        if self.waiting == self.running:
            self.waiting, self.count = 0, self.count + 1
            self.changed.notify_all()


if SIMULATED:
    FakeCUDAKernel.__call__ = call

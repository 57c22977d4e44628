"""A simulator of a GPU that runs the kernels as they are written, one of its threads after another.

numba-cuda's own starts a thread of Python for each of a GPU's, asks all of them again and again
whether they have ended, and wraps every number that a kernel reads; that is most of its time.
Here threads that wait for each other are greenlets, which change places in a microsecond.
"""

import functools
import os
import sys
from types import SimpleNamespace

import greenlet
import numpy as np

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
_MEETINGS = {"sync", "syncthreads", "shared"}  # names in kernels whose threads wait for each other
_shared = {}  # arrays that the threads of a block share, by the line that asks for them

# What kernels see as `cuda`: sizes and places of the launch that is running.
gridDim, blockDim = SimpleNamespace(x=1), SimpleNamespace(x=1)
blockIdx, threadIdx = SimpleNamespace(x=0), SimpleNamespace(x=0)


def grid(dimensions):
    assert dimensions == 1
    return blockIdx.x * blockDim.x + threadIdx.x


def gridsize(dimensions):
    assert dimensions == 1
    return gridDim.x * blockDim.x


def syncthreads():
    """Wait until all threads of the block are here, or have ended."""
    others = greenlet.getcurrent().parent
    if others is not None:
        others.switch()
    elif blockDim.x > 1:
        raise RuntimeError(f"a kernel whose threads meet must use one of {_MEETINGS} itself")


def shared_array(shape, dtype):
    caller = sys._getframe(1)
    return _shared.setdefault((caller.f_code, caller.f_lineno), np.empty(shape, dtype))


def jit(function=None, *, device=False, **options):
    """Return a function of the device as it is, a kernel as something to be launched."""
    if function is None:
        return functools.partial(jit, device=device)
    return function if device else Kernel(function)


class Kernel:
    """A kernel: `kernel[blocks, threads](*arguments)` launches it."""

    def __init__(self, function):
        self.function = function
        self.meets = bool(_MEETINGS & set(function.__code__.co_names))

    def __getitem__(self, sizes):
        return functools.partial(self.launch, *sizes)

    def launch(self, blocks, threads, *args):
        gridDim.x, blockDim.x = blocks, threads
        with np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
            for block in range(blocks):
                blockIdx.x = block
                _shared.clear()
                if self.meets and threads > 1:
                    self.run_together(threads, args)
                    continue
                for k in range(threads):
                    threadIdx.x = k
                    self.function(*args)

    def run_together(self, threads, args):
        """Let each thread go on to where it waits, in turns, until all have ended."""
        running = [(k, greenlet.greenlet(self.function)) for k in range(threads)]
        given = args  # at their start
        while running:
            for k, thread in running:
                threadIdx.x = k
                thread.switch(*given)
            running = [(k, thread) for k, thread in running if not thread.dead]
            given = ()


def add(array, index, value):
    """Add to an entry, and return what it was."""
    old = array[index]
    array[index] += value
    return old


if SIMULATED:
    from numba import cuda

    cuda.jit, cuda.grid, cuda.gridsize, cuda.syncthreads = jit, grid, gridsize, syncthreads
    cuda.gridDim, cuda.blockDim = gridDim, blockDim
    cuda.blockIdx, cuda.threadIdx = blockIdx, threadIdx
    cuda.shared = SimpleNamespace(array=shared_array)
    cuda.local = SimpleNamespace(array=np.empty)
    cuda.atomic = SimpleNamespace(add=add)
    cuda.cg = SimpleNamespace(this_grid=lambda: SimpleNamespace(sync=syncthreads))

"""Newton directions of a model of many classes, by conjugate gradients in a single launch.

A product with the Hessian of some ten thousand rows takes a GPU less time than a processor needs to
ask for it.  So the whole solution is one cooperative kernel, whose blocks wait for each other
between the parts of a step: scores, sums over rows, and what conjugate gradients do with vectors.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from zerogap.cuda.device import SIMULATED, arrays
from zerogap.cuda.kernels import THREADS, WIDTH, cuda, sum_of_lanes, view

MOST_CLASSES = 16  # classes: a thread keeps a few sums for each
_ROWS_TOGETHER = 2  # whose scores are found together, so that weights are read once for all
_COLUMNS_PER_THREAD = 4  # whose sums a thread keeps
_ROWS_PER_TILE = 32  # rows whose factors are shared by the threads of a block
# Registers of a thread, at most: with more of them there were too few threads to hide latency
_COMPILE = {} if SIMULATED else {"max_registers": 128}
_WARPS = THREADS // WIDTH

# vectors of the method: solution, residual, way, Hessian times way, preconditioned residual
FOUND, REST, WAY, PRODUCT, EASED = range(5)


@functools.cache
def _set_factors(C: int) -> Any:
    """Return the function that finds the scores of C classes, and factors of rows from them."""

    @cuda.jit(device=True)
    def set_factors(X, share, h, way, factors):
        """factors_i = share_i J_i z_i for the scores z_i of all rows"""
        n, d = X.shape
        lane = cuda.grid(1) % WIDTH
        z = cuda.local.array((_ROWS_TOGETHER, C), np.float64)
        start, step = cuda.grid(1) // WIDTH, cuda.gridsize(1) // WIDTH
        for first in range(start * _ROWS_TOGETHER, n, step * _ROWS_TOGETHER):
            for r in range(_ROWS_TOGETHER):
                for c in range(C):
                    z[r, c] = way[c, d] if way.shape[1] > d and lane == 0 else 0.0
            for j in range(lane, d, WIDTH):
                for c in range(C):
                    weight = way[c, j]
                    for r in range(_ROWS_TOGETHER):
                        z[r, c] += np.float64(X[min(first + r, n - 1), j]) * weight
            for r in range(_ROWS_TOGETHER):
                total, mean = 0.0, 0.0
                i = min(first + r, n - 1)
                for c in range(C):
                    z[r, c] = sum_of_lanes(z[r, c])
                    total += h[i, c]
                    mean += h[i, c] * z[r, c]
                mean /= total
                for c in range(C):
                    if lane == c % WIDTH and first + r < n:
                        factors[i, c] = share[i] * h[i, c] * (z[r, c] - mean)

    return set_factors


@functools.cache
def _add_rows(C: int) -> Any:
    """Return the function that adds up rows times factors of C classes."""

    @cuda.jit(device=True)
    def add_rows(X, factors, sums):
        """sums_sc = sum_i factors_ic x_i over the s-th stripe of rows, and a one for intercepts"""
        n, d = X.shape
        D, t = sums.shape[2], cuda.threadIdx.x
        tile = cuda.shared.array((_ROWS_PER_TILE, C), np.float64)
        total = cuda.local.array((_COLUMNS_PER_THREAD, C), np.float64)
        chunks = (D + _COLUMNS_PER_THREAD * THREADS - 1) // (_COLUMNS_PER_THREAD * THREADS)
        size = (n + sums.shape[0] - 1) // sums.shape[0]
        for work in range(cuda.blockIdx.x, sums.shape[0] * chunks, cuda.gridDim.x):
            stripe, left = work // chunks, work % chunks * _COLUMNS_PER_THREAD * THREADS
            for q in range(_COLUMNS_PER_THREAD):
                for c in range(C):
                    total[q, c] = 0.0
            for first in range(stripe * size, min(n, (stripe + 1) * size), _ROWS_PER_TILE):
                count = min(_ROWS_PER_TILE, min(n, (stripe + 1) * size) - first)
                cuda.syncthreads()
                for k in range(t, count * C, THREADS):
                    tile[k // C, k % C] = factors[first + k // C, k % C]
                cuda.syncthreads()
                for r in range(count):
                    for q in range(_COLUMNS_PER_THREAD):
                        j = left + q * THREADS + t
                        value = X[first + r, min(j, d - 1)]  # by all threads: no branch
                        x = np.float64(value) if j < d else 1.0
                        for c in range(C):
                            total[q, c] += x * tile[r, c]
            for q in range(_COLUMNS_PER_THREAD):
                j = left + q * THREADS + t
                if j < D:
                    for c in range(C):
                        sums[stripe, c, j] = total[q, c]

    return add_rows


@functools.cache
def _ease(C: int) -> Any:
    """Return the function that applies the preconditioner of C classes."""

    @cuda.jit(device=True)
    def ease(inverse, rest, eased):
        """eased_c = inverse_c rest_c, of symmetric matrices"""
        D, lane = rest.shape[1], cuda.grid(1) % WIDTH
        for k in range(cuda.grid(1) // WIDTH, C * D, cuda.gridsize(1) // WIDTH):
            c, j, total = k // D, k % D, 0.0
            for m in range(lane, D, WIDTH):
                total += inverse[c, j, m] * rest[c, m]
            total = sum_of_lanes(total)
            if lane == 0:
                eased[c, j] = total

    return ease


@cuda.jit(device=True)
def _share_total(value, parts):
    """Put the sum of a value over the block's threads into the block's place"""
    t = cuda.threadIdx.x
    warps = cuda.shared.array(_WARPS, np.float64)
    value = sum_of_lanes(value)
    cuda.syncthreads()
    if t % WIDTH == 0:
        warps[t // WIDTH] = value
    cuda.syncthreads()
    if t == 0:
        total = 0.0
        for k in range(_WARPS):
            total += warps[k]
        parts[cuda.blockIdx.x] = total


@cuda.jit(device=True)
def _total_of(parts):
    """The sum over all blocks, with the same bits for all threads"""
    total = 0.0
    for k in range(cuda.threadIdx.x % WIDTH, cuda.gridDim.x, WIDTH):
        total += parts[k]
    return sum_of_lanes(total)


@functools.cache
def _kernel(C: int, kind: str) -> Any:
    """Return the kernel for so many classes, a number that compiled loops can unroll, and data."""
    set_factors, add_rows, ease = _set_factors(C), _add_rows(C), _ease(C)

    @cuda.jit(**_COMPILE)
    def kernel(X, share, h, least, inverse, factors, sums, vectors, parts, enough, limit, made):
        grid = cuda.cg.this_grid()
        D, products, size, goal = vectors.shape[2], 0, 0.0, 0.0
        while True:
            ease(inverse, vectors[REST], vectors[EASED])
            grid.sync()
            own = 0.0
            for j in range(cuda.grid(1), D, cuda.gridsize(1)):
                mean = 0.0
                for c in range(C):
                    mean += vectors[EASED, c, j] / C
                for c in range(C):  # what is common to all classes changes no vote
                    vectors[EASED, c, j] -= mean
                    own += vectors[EASED, c, j] * vectors[REST, c, j]
            _share_total(own, parts[0])
            grid.sync()
            before, size = size, _total_of(parts[0])
            if products == 0:
                goal = enough * size
            if not size > goal or products == limit:
                break
            for j in range(cuda.grid(1), D, cuda.gridsize(1)):
                for c in range(C):
                    kept = vectors[WAY, c, j] * (size / before) if products else 0.0
                    vectors[WAY, c, j] = kept - vectors[EASED, c, j]
            grid.sync()
            products += 1
            set_factors(X, share, h, vectors[WAY], factors)
            grid.sync()
            add_rows(X, factors, sums)
            grid.sync()
            own = 0.0
            for k in range(cuda.grid(1), C * D, cuda.gridsize(1)):
                c, j = k // D, k % D
                total = least[j] * vectors[WAY, c, j]
                for s in range(sums.shape[0]):
                    total += sums[s, c, j]
                vectors[PRODUCT, c, j] = total
                own += total * vectors[WAY, c, j]
            _share_total(own, parts[1])
            grid.sync()
            step = size / _total_of(parts[1])
            for k in range(cuda.grid(1), C * D, cuda.gridsize(1)):
                c, j = k // D, k % D
                vectors[FOUND, c, j] += step * vectors[WAY, c, j]
                vectors[REST, c, j] += step * vectors[PRODUCT, c, j]
            grid.sync()
        if cuda.grid(1) == 0:
            made[0] = products

    return kernel


@functools.cache
def _blocks(kernel: Any) -> int:
    """Return the number of blocks that a GPU runs at the same time, once it has run one."""
    if SIMULATED:
        return 1
    (compiled,) = kernel.overloads.values()
    return int(compiled.max_cooperative_grid_blocks(THREADS))


def solve(
    X: Any, share: Any, h: Any, least: Any, inverse: Any, target: Any, enough: float, limit: int
) -> tuple[Any, int]:
    """Return the Newton direction and the number of products that it took.

    Conjugate gradients go on until the square of the residual, as the preconditioner measures it,
    is at most `enough` of what it was.
    """
    xp, (C, D) = arrays(), target.shape
    kernel, vectors, made = _kernel(C, X.dtype.str), xp.zeros((5, C, D)), xp.zeros(1, np.int64)
    vectors[REST] = -target

    def run(blocks: int, limit: int) -> None:
        chunks = -(-D // (_COLUMNS_PER_THREAD * THREADS))
        stripes = max(1, min(blocks // chunks, len(X) // _ROWS_PER_TILE))
        work = (xp.empty((len(X), C)), xp.empty((stripes, C, D)), vectors, xp.empty((2, blocks)))
        given = map(view, (X, share, h, least, inverse, *work))
        kernel[blocks, THREADS](*given, enough, limit, view(made))

    if not SIMULATED and not kernel.overloads:
        run(1, 0)  # compiles
    run(_blocks(kernel), limit)
    return vectors[FOUND], int(made[0])

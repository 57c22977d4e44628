"""Loops over rows on a GPU, WIDTH threads to a row."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from zerogap.cuda.device import arrays
from zerogap.cuda.kernels import (
    THREADS,
    WIDTH,
    cuda,
    sum_of_lanes,
    sum_of_parts,
    threads_across,
    view,
)


@cuda.jit
def _dots(values, columns, starts, width, places, w, squared, out):
    """out_k = x_i . w, or |x_i|^2, for all rows i = k, or those in places

    Without columns, values are summed as they are.
    """
    lane = cuda.grid(1) % WIDTH
    for k in range(cuda.grid(1) // WIDTH, out.shape[0], cuda.gridsize(1) // WIDTH):
        i = places[k] if places.shape[0] > 0 else k
        first, end = i * width, (i + 1) * width
        if width == 0:
            first, end = np.int64(starts[i]), np.int64(starts[i + 1])
        total = 0.0
        for m in range(first + lane, end, WIDTH):
            value = np.float64(values[m])
            if squared:
                total += value * value
            elif width > 0:
                total += value * w[m - first]
            elif columns.shape[0] > 0:
                total += value * w[columns[m]]
            else:
                total += value
        total = sum_of_lanes(total)
        if lane == 0:
            out[k] = total


@cuda.jit
def _products(values, columns, starts, places, W, across, out):
    """out_kc = x_i . W_c for rows i = k, or those in places, and columns c of W, listed by feature

    Without columns of their own, rows of W are summed as they are.
    """
    K = out.shape[1]
    lane = cuda.grid(1) % WIDTH
    part, parts = lane // across, WIDTH // across
    for k in range(cuda.grid(1) // WIDTH, out.shape[0], cuda.gridsize(1) // WIDTH):
        i = places[k] if places.shape[0] > 0 else k
        first, end = np.int64(starts[i]), np.int64(starts[i + 1])
        for some in range(0, K, across):
            c, total = some + lane % across, 0.0
            if c < K:
                for m in range(first + part, end, parts):
                    if columns.shape[0] > 0:
                        total += np.float64(values[m]) * W[columns[m], c]
                    else:
                        total += W[m, c]
            total = sum_of_parts(total, across)
            if c < K and part == 0:
                out[k, c] = total


@cuda.jit
def column_sums(values, d, c, squared, out):
    """out_sj = sum_i c_i x_ij over each S-th row from row s on, or with squares of x_ij

    Thread number s d + j has the values with that number, and each S d-th after it: threads side by
    side read values side by side.
    """
    t = cuda.grid(1)
    if t < out.shape[0]:
        total, i = 0.0, t // d
        for k in range(t, values.shape[0], out.shape[0]):
            value = np.float64(values[k])
            total += c[i] * (value * value if squared else value)
            i += out.shape[0] // d
        out[t] = total


def _blocks(rows: int) -> int:
    return max(1, min(-(-rows * WIDTH // THREADS), 1 << 16))


def row_sums(parts: tuple[Any, ...], places: Any, w: Any, squared: bool, rows: int) -> Any:
    """Return x_i . w, or |x_i|^2, for these rows."""
    out = arrays().empty(rows)
    _dots[_blocks(rows), THREADS](*parts, places, view(w), squared, view(out))
    return out


def row_products(parts: tuple[Any, ...], places: Any, W: Any, rows: int) -> Any:
    """Return x_i . w for these rows and each column w of W."""
    out, across = arrays().empty((rows, W.shape[1])), threads_across(W.shape[1])
    values, columns, starts, _ = parts
    given = (values, columns, starts, places, view(W), across, view(out))
    _products[_blocks(rows), THREADS](*given)
    return out


@functools.cache
def no_places() -> Any:
    """Return an empty array of numbers of rows: all of them are meant."""
    return view(arrays().zeros(0, np.int64))

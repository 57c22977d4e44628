"""Linear equations on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zerogap.cuda.device import arrays

_ROWS_INVERTED_WHOLE = 64  # larger matrices are inverted block by block


def factorised(matrix: Any) -> tuple[Callable[[Any], Any], float]:
    """Return the function that solves with a positive definite matrix, and its smallest pivot.

    Raises LinAlgError if it is not positive definite.
    """
    from cupyx.scipy.linalg import solve_triangular

    lower = arrays().linalg.cholesky(matrix)
    if not bool(np.isfinite(lower.sum())):
        raise np.linalg.LinAlgError("the matrix is not positive definite")

    def solve(v: Any) -> Any:
        half = solve_triangular(lower, v, lower=True, check_finite=False)
        return solve_triangular(lower, half, lower=True, trans=1, check_finite=False)

    return solve, float(lower.diagonal().min()) ** 2


def inverses(matrices: Any) -> Any:
    """Return the inverses of a stack of positive definite matrices, found at the same time.

    That of a Cholesky factor grows from its diagonal blocks: the inverse of [A 0; B C] is
    [A^-1 0; -C^-1 B A^-1 C^-1].
    """
    xp = arrays()
    number, d, _ = matrices.shape
    blocks = 1
    while d > _ROWS_INVERTED_WHOLE * blocks:
        blocks *= 2
    size = -(-d // blocks)
    lower = xp.tile(xp.eye(blocks * size), (number, 1, 1))
    lower[:, :d, :d] = xp.linalg.cholesky(matrices)
    parts = lower.reshape(number, blocks, size, blocks, size)
    places = xp.arange(blocks)
    found = xp.linalg.inv(parts[:, places, :, places, :].reshape(-1, size, size))
    found = found.reshape(blocks, number, size, size)
    while blocks > 1:
        upper_left, lower_right = found[::2], found[1::2]
        parts = lower.reshape(number, blocks, size, blocks, size)
        even = xp.arange(0, blocks, 2)
        between = parts[:, even + 1, :, even, :]
        found = xp.zeros((blocks // 2, number, 2 * size, 2 * size))
        found[..., :size, :size] = upper_left
        found[..., size:, size:] = lower_right
        found[..., size:, :size] = -lower_right @ between @ upper_left
        blocks, size = blocks // 2, 2 * size
    half = found[0, :, :d, :d]
    return half.transpose(0, 2, 1) @ half

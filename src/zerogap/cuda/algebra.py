"""Linear equations on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zerogap.cuda.device import SIMULATED, arrays


def factorised(matrix: Any) -> Callable[[Any], Any]:
    """Return the function that solves with a positive definite matrix; else raise LinAlgError."""
    from cupyx.scipy.linalg import solve_triangular

    lower = arrays().linalg.cholesky(matrix)
    if not bool(np.isfinite(lower.sum())):
        raise np.linalg.LinAlgError("the matrix is not positive definite")

    def solve(v: Any) -> Any:
        half = solve_triangular(lower, v, lower=True, check_finite=False)
        return solve_triangular(lower, half, lower=True, trans=1, check_finite=False)

    return solve


def inverse(matrix: Any) -> Any:
    """Return the inverse of a positive definite matrix."""
    if SIMULATED:
        return np.linalg.inv(matrix)
    from cupyx.scipy.linalg import solve_triangular

    lower = arrays().linalg.cholesky(matrix)
    half = solve_triangular(lower, arrays().eye(len(matrix)), lower=True, check_finite=False)
    return half.T @ half

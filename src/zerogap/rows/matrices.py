"""From the matrices that users have to rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from zerogap.io.tensors import as_array
from zerogap.rows.csr import CSRRows, check_finite, check_size, csr_rows, float_type
from zerogap.rows.dense import DenseRows
from zerogap.rows.loops import compress

SAMPLED_LINES = 250  # rows and columns that tell the share of zeros: a hundredth of a millisecond


def compact(rows: DenseRows | CSRRows) -> DenseRows | CSRRows:
    """Return rows without their zeros, as a copy, where that makes every pass over them faster.

    That is from three zeros in four values on: fewer cost less than the indices of sparse rows.
    """
    if isinstance(rows, CSRRows):
        return rows
    n, d = rows.shape
    some = rows.X[:: max(1, n // SAMPLED_LINES), :: max(1, d // SAMPLED_LINES)]
    if np.count_nonzero(some) > 0.25 * some.size or d >= 2**31:
        return rows
    limit = rows.X.size // 4
    # of the type that scipy gives them: kernels for it serve both
    indptr = np.zeros(n + 1, np.int32 if limit + d < 2**31 else np.int64)
    # what is not written to takes no memory
    data, indices = np.empty(limit + d, rows.X.dtype), np.empty(limit + d, np.uint32)
    for start, stop in rows.blocks():
        compress(rows, start, stop, indptr, data, indices)
        if indptr[stop] > limit:  # the sample was not like the rest
            return rows
    stored = indptr[-1]
    found = CSRRows(data[:stored], indices[:stored], indptr, d)
    vars(found)["sqnorms"] = rows.sqnorms
    return found


def as_rows(X: Any) -> DenseRows | CSRRows:
    """Wrap a matrix, without a copy if its type is supported, after checking all of it.

    Parameters
    ----------
    X : array-like, tensor or scipy sparse matrix or array of shape (n_samples, n_features)
        float32 and float64 are used as they are, C-contiguous or CSR with int32 or int64 indices;
        anything else numeric is converted.  The arrays must not change while they are in use.

    Raises
    ------
    ValueError
        If X is not a finite, real, two-dimensional, non-empty matrix with valid structure.
    """
    if isinstance(X, (DenseRows, CSRRows)):
        return X
    if sparse.issparse(X):
        return csr_rows(X)
    if np.ma.isMaskedArray(X):
        raise ValueError("X is a masked array: fill or drop the masked entries first")
    X = np.asarray(as_array(X))
    if X.ndim != 2:
        hint = "; X.reshape(-1, 1) makes one feature of it" if X.ndim == 1 else ""
        raise ValueError(f"X must be two-dimensional, got {X.ndim} dimension(s){hint}")
    check_size(X.shape)
    rows = DenseRows(np.ascontiguousarray(X, dtype=float_type(X.dtype)))
    check_finite(rows)
    return rows

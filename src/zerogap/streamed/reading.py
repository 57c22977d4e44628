"""Blocks of a store as rows for kernels."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from zerogap.rows import CSRRows, DenseRows
from zerogap.store import Part, Store


def block_rows(part: Part) -> DenseRows | CSRRows:
    """Wrap the rows of a block, which the store has checked."""
    if isinstance(part.X, np.ndarray):
        return DenseRows(part.X)
    X = part.X
    return CSRRows(X.data, X.indices.view(f"u{X.indices.itemsize}"), X.indptr, X.shape[1])


def load(store: Store) -> Part:
    """Return all rows of a store, their labels or numbers, and their weights."""
    parts = [store.read(k) for k in range(len(store.blocks))]
    X = sparse.vstack if store.sparse else np.concatenate
    y = np.concatenate([part.y for part in parts])
    weight = np.concatenate([part.sample_weight for part in parts]) if store.weighted else None
    labels = y if store.classes is None else store.classes[y.astype(np.int64)]
    return Part(X([part.X for part in parts]), labels, weight)

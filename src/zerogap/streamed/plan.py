"""How much memory a run takes, and whether that may be."""

from __future__ import annotations

from zerogap.memory import free_memory
from zerogap.store import Store
from zerogap.store.sizes import format_size, resident_memory

_CODE = 110e6  # bytes that Numba takes to load or compile the kernels
_POINTS = 6  # numbers per row and class: the dual points of a run and its records, scores
_VECTORS = 10  # numbers per feature and class: iterate, dual sum, those of records, room to work
_WORK = 64  # bytes per row and class of a block: targets, shares, norms, order, dual variables
_WINDOW = 10  # blocks


def worth_loading(store: Store) -> bool:
    """Tell whether to load a store: its memory has no limit and has room for it four times."""
    return store.max_memory is None and 4.0 * store.nbytes < free_memory()


def window(store: Store) -> int:
    """Return how many blocks to have in memory together.

    The rows of a block are always visited near one another, which costs epochs unless rows of
    other blocks, ever different ones, come in between.  Measured on 100 blocks: ten at a time need
    as many epochs as a random order of all rows, one at a time 3 to 12 times as many.
    """
    most = min(_WINDOW, len(store.blocks))
    if store.max_memory is None:
        return most
    return min(most, max(1, int(0.25 * store.max_memory / _largest(store)) - 1))


def _largest(store: Store) -> int:
    return max(block.nbytes for block in store.blocks)


def fits(store: Store, n_classes: int = 1) -> bool:
    """Tell whether the numbers of each row have room in memory; refuse what has none at all.

    The peak is what the process takes now, compiled kernels, the blocks of a window and the one
    that is being read, with what is computed of their rows, and some vectors of weights; then come
    the numbers of each row.
    """
    now, count = resident_memory(), window(store) + 1
    blocks = count * (_largest(store) + _WORK * n_classes * max(b.rows for b in store.blocks))
    weights = 8.0 * _VECTORS * n_classes * store.n_features
    least = now + _CODE + blocks + weights
    columns = 8.0 * store.n_samples * (_POINTS * n_classes + 1 + store.weighted)
    if store.max_memory is None:
        return columns < 0.5 * free_memory()
    if least > store.max_memory:
        raise ValueError(
            f"max_memory={format_size(store.max_memory)} is not enough for {store.path}: the "
            f"process takes {format_size(now)} now, compiled code {format_size(_CODE)}, {count} "
            f"blocks {format_size(blocks)}, {store.n_features} features {format_size(weights)}: "
            f"give at least {format_size(1.01 * least)}, or convert the data into smaller blocks"
        )
    return least + columns <= store.max_memory

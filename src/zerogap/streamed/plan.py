"""How much memory a run over a store takes, and whether the limit allows it."""

from __future__ import annotations

from zerogap.io.memory import free_memory
from zerogap.io.system import resident_memory
from zerogap.store import Store
from zerogap.store.sizes import format_size

CODE_BYTES = 110e6  # bytes that Numba takes to load or compile the kernels; measured
# Numbers in memory, per class: dual points of the run and its records, and scores; weights, dual
# sums, those of records, and work space; targets, shares, norms, order, dual variables
NUMBERS_PER_ROW = 6
NUMBERS_PER_FEATURE = 10
BLOCK_BYTES_PER_ROW = 64
BLOCKS_IN_WINDOW = 8  # blocks that are visited in turns, see `window`
FLAG_BYTES_PER_ROW = 2  # two flags: visited in this pass, moved in this pass
SHARE_FOR_MATRICES = 0.1  # share of the memory limit for matrices of second-order methods
BLOCKS_ASIDE = 3  # blocks beside the window: one being read, two of rows to be copied


def worth_loading(store: Store) -> bool:
    """Tell whether to load a store: no limit is set, and a quarter of the free memory holds it."""
    return store.max_memory is None and 4.0 * store.nbytes < free_memory()


def window(store: Store, moved: bool = False) -> int:
    """Return how many blocks to keep in memory together; `moved` if their columns are shifted.

    Rows of one block are visited close to each other.  That costs epochs unless rows of other
    blocks come in between.  Measured on 100 blocks, against a random order of all rows: eight
    blocks at a time need a fifth more epochs, two twice as many, one 3 to 12 times as many.
    Passes over copies of undecided rows need hardly more: their blocks mix rows of many blocks.
    """
    most = min(BLOCKS_IN_WINDOW, len(store.blocks))
    if store.max_memory is None:
        return most
    return min(most, max(1, int(0.25 * store.max_memory / _largest(store, moved)) - 1))


def _largest(store: Store, moved: bool) -> float:
    """Return the bytes of the largest block; moved values are in double precision."""
    growth = 8.0 / store.dtype.itemsize if moved else 1.0
    return growth * max(block.nbytes for block in store.blocks)


def fits(store: Store, n_classes: int = 1, moved: bool = False) -> bool:
    """Tell whether the numbers of each row have room in memory; refuse what has none at all.

    The peak is what the process takes now, compiled kernels, the blocks of a window and those that
    are read and copied, with what is computed of their rows, some vectors of weights, and flags of
    each row; then come the numbers of each row.
    """
    now, count = resident_memory(), window(store, moved) + BLOCKS_ASIDE
    work = BLOCK_BYTES_PER_ROW * n_classes * max(b.rows for b in store.blocks)
    blocks = count * (_largest(store, moved) + work)
    weights = 8.0 * NUMBERS_PER_FEATURE * n_classes * store.n_features
    flags = float(FLAG_BYTES_PER_ROW * store.n_samples)
    least = now + CODE_BYTES + blocks + weights + flags
    columns = 8.0 * store.n_samples * (NUMBERS_PER_ROW * n_classes + 1 + store.weighted)
    if store.max_memory is None:
        return columns < 0.5 * free_memory()
    if least > store.max_memory:
        raise ValueError(
            f"max_memory={format_size(store.max_memory)} is not enough for {store.path}: the "
            f"process takes {format_size(now)} now, compiled code {format_size(CODE_BYTES)}, "
            f"{count} blocks {format_size(blocks)}, {store.n_features} features "
            f"{format_size(weights)}, {store.n_samples} rows {format_size(flags)}: "
            f"give at least {format_size(1.01 * least)}, or convert the data into smaller blocks"
        )
    return least + columns <= store.max_memory

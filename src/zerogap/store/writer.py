"""Writing a store: an external sort by random keys.

Rows come in any order and wait in memory until there are enough for a run, which is sorted by the
keys of its rows, random numbers, and written to disk.  Block k of the store is then the rows whose
keys lie in the k-th of equal ranges, collected from all runs and sorted.  So the order is uniformly
random and depends on the seed alone, not on the memory that there is or on interruptions.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from zerogap.io.atomic import locked
from zerogap.io.memory import free_memory
from zerogap.io.system import resident_memory
from zerogap.problem.checks import as_seed
from zerogap.rows import as_rows
from zerogap.store.blocks import Progress, write_blocks
from zerogap.store.intake import Intake
from zerogap.store.manifest import DATA_NAMES, NAME, StoreError, read_manifest
from zerogap.store.reader import Store
from zerogap.store.runs import Runs
from zerogap.store.sizes import format_size, parse_size
from zerogap.store.sources import Options, Parts, Source

_LARGEST_BLOCK = 4_000_000  # bytes; several are in memory at a time
_LARGEST_RUN = 1 << 30  # bytes of memory for rows that wait, however much there is
_LARGEST_PIECE = 64_000_000  # bytes that readers of files take for a piece
_LEAST_MEMORY, _MOST_MEMORY = 96_000_000, 1 << 34  # on top of what the process has taken before
_UNFINISHED = "unfinished"


def write_store(
    path: str | os.PathLike[str],
    parts: Iterable[Any],
    *,
    task: str = "classification",
    n_features: int | None = None,
    dtype: str | None = None,
    max_memory: int | str | None = None,
    random_state: Any = 0,
    force: bool = False,
    progress: Callable[[Progress], Any] | None = None,
) -> Store:
    """Write rows into a store, in random order and in bounded memory.

    At any instant there is the old store, the new one or none, never half of one.

    Parameters
    ----------
    path : path
        The store: a folder, which is made unless it is there and empty.
    parts : iterable of (X, y) or (X, y, sample_weight)
        Some rows after others, dense or sparse.  Rows of weight 0 are left out.
    task : {"classification", "regression"}
        Whether y holds class labels, which are numbers or text, or numbers to predict.
    n_features : int, optional
        Number of columns, of which sparse parts may then have fewer.
    dtype : {"float32", "float64"}, optional
        Type of the values; by default float32 if that is exact for all of them.
    max_memory : int or str, optional
        What the process may take, besides the parts themselves: bytes, or text like "2GB".  By
        default a quarter of the free memory.  Blocks take at most a 32nd of it, and 4 MB.
    random_state : int
        Seed of the order.
    force : bool
        Whether to replace a store that is there.
    progress : callable, optional
        Called with a `Progress` now and then.

    Returns
    -------
    Store

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> def parts():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(5):
    ...         X = rng.standard_normal((3000, 4))
    ...         yield X, X[:, 0] > 0
    >>> with TemporaryDirectory() as folder:
    ...     store = write_store(f"{folder}/store", parts())
    >>> store.n_samples, len(store.blocks), store.classes
    (15000, 100, array([False,  True]))
    """
    options = Options(task, n_features, dtype, max_memory, as_seed(random_state), force)
    return write(Path(path), Parts(parts), options, progress or (lambda progress: None))


def write(
    path: Path,
    source: Source,
    options: Options,
    progress: Callable[[Progress], Any],
) -> Store:
    """Write a store from a source; go on with what an interrupted process has left of it."""
    with locked(path) as free:
        if not free:
            raise StoreError(f"{path}: another process is writing this store")
        number, runs = free_number(path, options.force), Runs(path / _UNFINISHED)
        sizes, begun = _plan(runs, source, options)
        data = path / DATA_NAMES[number]
        try:
            if begun is not None:
                runs.begin(begun)
            intake = _read(runs, source, options, sizes, progress)
            with open(data, "wb") as file:
                manifest = write_blocks(file, runs, intake, sizes.block, progress)
                file.flush()
                os.fsync(file.fileno())
            about = {name: getattr(source, name) for name in ("feature_names", "encoder")}
            replace(manifest, data=number, source=source.identity, **about).write(path)
        except BaseException as error:
            if not _is_written(path, number):
                data.unlink(missing_ok=True)
            if source.identity is None or isinstance(error, Exception):
                runs.remove()
                if not any(path.iterdir()):
                    path.rmdir()
            raise
        runs.remove()
        with contextlib.suppress(PermissionError):  # on Windows, while others have it open
            (path / DATA_NAMES[1 - number]).unlink(missing_ok=True)
    return Store(path)


def free_number(path: Path, force: bool) -> int:
    """Return the number of the file to write; refuse a folder that holds anything to keep."""
    if not path.exists():
        return 0
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "is a file, a store is a folder", str(path))
    ours = {NAME, _UNFINISHED, *DATA_NAMES}
    for name in sorted(p.name for p in path.iterdir()):
        if name not in ours and not name.startswith(f".{NAME}.part-"):
            raise StoreError(f"{path}: holds {name}: choose an empty folder, or a new one")
    if not (path / NAME).exists():
        return 0
    if not force:
        raise FileExistsError(
            errno.EEXIST, "holds a store already, which only force replaces", str(path)
        )
    return int(_is_written(path, 0))


def _is_written(path: Path, number: int) -> bool:
    """Tell whether the store is that of the file with this number by now."""
    try:
        return read_manifest(path).data == number
    except StoreError:
        return False


class _Sizes(NamedTuple):
    """Bytes of a block, and of a run, at most."""

    block: int
    run: int


def _plan(runs: Runs, source: Source, options: Options) -> tuple[_Sizes, dict[str, Any] | None]:
    """See how much memory there is, and return what to begin, None to go on with the runs."""
    _ = as_rows(sparse.eye(1)).sqnorms  # loads Numba, so that it counts
    taken = resident_memory()
    if options.max_memory is None:
        limit = taken + int(min(free_memory() / 4, _MOST_MEMORY))
    else:
        limit = parse_size(options.max_memory)
    if limit - taken < _LEAST_MEMORY:
        raise ValueError(
            f"max_memory={format_size(limit)} is too little: the process takes "
            f"{format_size(taken)} already, give at least {format_size(taken + _LEAST_MEMORY)}"
        )
    run_size = min(_LARGEST_RUN, (limit - taken - _LARGEST_PIECE) // 8)
    sizes = _Sizes(min(_LARGEST_BLOCK, limit // 32), run_size)
    asked = {
        "source": source.identity,
        "task": options.task,
        "n_features": options.n_features,
        "dtype": options.dtype,
        "max_memory": options.max_memory,
        "seed": options.seed,
    }
    if runs.begun is not None and source.identity is not None:
        if asked == {name: runs.begun.get(name) for name in asked}:
            return sizes._replace(block=runs.begun["block"]), None
        if not options.force:
            raise StoreError(
                f"{runs.folder.parent}: an unfinished store lies there, and the source has "
                f"changed since, or the options differ: delete it, or force a new beginning"
            )
    return sizes, asked | {"block": sizes.block}


def _read(
    runs: Runs,
    source: Source,
    options: Options,
    sizes: _Sizes,
    progress: Callable[[Progress], Any],
) -> Intake:
    """Turn what remains of a source into runs."""
    intake = Intake(runs, options, source.grows, sizes.run, row_size=sizes.block)
    position, first = runs.list[-1].position if runs.list else None, intake.rows + 1
    progress(Progress("reading", intake.rows, 0, source.total))
    for piece in source.pieces(position):
        last = first + np.size(piece.y) - 1
        try:
            intake.add(piece)
        except ValueError as error:
            where = f"rows {first} to {last}: {error}"
            raise ValueError(f"{source.name}: {where}" if source.name else where) from error
        position, first = piece.position, last + 1
        progress(Progress("reading", intake.rows, piece.done, source.total))
    intake.flush(position)
    if not runs.list:
        raise ValueError("there are no rows to write")
    return intake

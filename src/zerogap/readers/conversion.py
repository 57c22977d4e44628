"""From files to stores: svmlight, CSV, TSV, Parquet and npz."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from zerogap.problem.checks import as_seed
from zerogap.readers import Data, DataError, TableOptions, passes, read, recipes
from zerogap.readers.files import open_source
from zerogap.readers.formats import TABLES, named, open_as
from zerogap.readers.svmlight import svmlight_pieces
from zerogap.readers.tables import TableFile
from zerogap.store import Progress, Store
from zerogap.store.sources import Options, Piece, Source
from zerogap.store.writer import free_number, write

_UNLIMITED = 1 << 62  # rows: more than any file has
_ROWS = 4096  # of arrays in memory that are taken at a time

Report = Callable[[Progress], Any]


def convert(
    source: str | os.PathLike[str],
    store: str | os.PathLike[str],
    *,
    format: str | None = None,
    target: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    task: str = "classification",
    dtype: str | None = None,
    max_memory: int | str | None = None,
    random_state: int = 0,
    force: bool = False,
    progress: Report | None = None,
    options: TableOptions | None = None,
) -> Store:
    r"""Turn a file into a store, in bounded memory.

    When it has been interrupted, the same call goes on where it was: at that place of a plain
    svmlight file, after reading what lies before it of all others.  A source that has changed
    meanwhile is refused.  However often that happens, the store is the same.

    Columns of tables become features as in `zerogap.readers.read`.  Tables are read twice, the
    first time to learn what their columns are.  Lines of CSV and TSV longer than 1 MB are refused.

    Parameters
    ----------
    source : path, or "-" for svmlight from standard input
        svmlight, a table or npz.  CSV, TSV, plain Parquet and Arrow are read by pieces; other
        formats must fit into memory.
    store : path
        The folder to make.
    format, target, n_features, zero_based
        As for `zerogap.readers.read`.
    task, dtype, max_memory, random_state, force
        As for `write_store`.
    progress : callable, optional
        Called with a `Progress` now and then.
    options : TableOptions, optional
        What else is known of a table, and what to do with its columns.

    Returns
    -------
    Store

    Raises
    ------
    DataError
        The content of the source is malformed: file, line and column, and what is wrong.
    StoreError, OSError
        The store cannot be written there.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.svm")
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    ...     store = convert(path, Path(folder, "train.store"))
    >>> store.n_samples, store.n_features, store.classes
    (2, 3, array([-1.,  1.]))
    """
    report: Report = progress or (lambda progress: None)
    how = Options(task, n_features, dtype, max_memory, as_seed(random_state), force)
    free_number(Path(store), force)  # before a table is searched for categories
    kind, said = format or "svmlight", options or TableOptions()
    if source != "-":
        with open_as(source, format, _UNLIMITED, said.sep is not None) as (_, kind):
            pass
    if kind in TABLES:
        rows: Source = _TableFile(source, kind, target, task == "regression", report, said)
    elif kind == "npz":
        rows = _Arrays(source, read(source, format=kind))
    else:
        rows = _SvmlightFile(source, n_features, zero_based)
    return write(Path(store), rows, how, report)


class _File(Source):
    """A file, which can be read again if it is not standard input."""

    def __init__(self, path: str | os.PathLike[str], **how: Any) -> None:
        self.path = path
        if path != "-":
            status = os.stat(path)
            self.name = os.fspath(path)
            self.total = status.st_size
            self.identity = {
                "path": os.path.realpath(path),
                "bytes": status.st_size,
                "mtime_ns": status.st_mtime_ns,
                **how,
            }


class _SvmlightFile(_File):
    grows = True

    def __init__(
        self, path: str | os.PathLike[str], n_features: int | None, zero_based: bool
    ) -> None:
        super().__init__(path, format="svmlight", zero_based=zero_based)
        self.n_features, self.zero_based = n_features, zero_based

    def pieces(self, position: Any) -> Iterator[Piece]:
        with open_as(self.path, "svmlight", _UNLIMITED) as (stream, _):
            found = svmlight_pieces(stream, self.n_features, self.zero_based, position)
            for X, y, after in found:
                yield Piece(X, y, None, after, stream.place())


class _TableFile(_File):
    def __init__(
        self,
        path: str | os.PathLike[str],
        kind: str,
        target: str | None,
        numeric_target: bool,
        report: Report,
        options: TableOptions,
    ) -> None:
        if path == "-":
            raise DataError(f"{kind} cannot be converted from standard input: give a file")
        said = repr(options) if options != TableOptions() else None
        super().__init__(path, format=kind, target=target, **({"options": said} if said else {}))
        self.task = "regression" if numeric_target else "classification"
        self.notes: list[str] = []

        def seen(rows: int) -> None:
            report(Progress("scanning", rows, self.table.place, self.total))

        with named(path):
            with self._open() as stream:
                if kind == "parquet" and stream.packed:
                    raise DataError("is a packed Parquet file: unpack it first, it packs by itself")
            self.table = TableFile(self._open, kind, options)
            self.notes = self.table.notes
            how = (target, options, numeric_target, seen)
            self.recipe = passes.learn_pieces(self.table, *how)
        self.how = how
        self.feature_names = list(self.recipe.feature_names or ())
        self.encoder = self.recipe.to_json()

    def _open(self) -> Any:
        return open_source(self.path, _UNLIMITED)

    def pieces(self, position: Any) -> Iterator[Piece]:
        how = (True, position or 0, self.task)
        with named(self.path):
            try:
                for part in recipes.read_pieces(self.table, self.recipe, *how):
                    yield Piece(part.X, part.y, part.weight, part.rows, self.table.place)
            except DataError:  # a look at all rows tells better what is wrong, and what to do
                passes.learn_all(self.table, *self.how, self.table.first_types())
                raise


class _Arrays(_File):
    """Arrays that have been read into memory."""

    def __init__(self, path: str | os.PathLike[str], data: Data) -> None:
        super().__init__(path, format="npz")
        self.data = data

    def pieces(self, position: Any) -> Iterator[Piece]:
        X, y = self.data.X, np.asarray(self.data.y)
        n = X.shape[0]
        for start in range(position or 0, n, _ROWS):
            stop = min(n, start + _ROWS)
            yield Piece(X[start:stop], y[start:stop], None, stop, (self.total or 0) * stop // n)

"""From the pieces of a source to runs on disk, every value checked on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from zerogap.losses import Squared
from zerogap.problem.checks import check_scale, check_targets, check_weights
from zerogap.rows import CSRRows, as_rows
from zerogap.store.labels import Labels
from zerogap.store.manifest import MOST_FEATURES
from zerogap.store.runs import Batch, Runs
from zerogap.store.sizes import format_size
from zerogap.store.sources import Options, Piece


class Intake:
    """Rows that wait in memory until there are enough for a run.

    Parameters
    ----------
    runs : Runs
        Where they go; the runs that it has count as seen.
    options : Options
    grows : bool
        Whether a piece may have more columns than those before it.
    run_size, row_size : int
        Bytes that make a run, and bytes that a row may take.
    """

    def __init__(
        self, runs: Runs, options: Options, grows: bool, run_size: int, row_size: int
    ) -> None:
        self.runs, self.options, self.grows = runs, options, grows
        self.run_size, self.row_size = run_size, row_size
        self.rows = sum(run.rows for run in runs.list)
        self.columns = 0
        self.kind: tuple[bool, bool] | None = None  # sparse, weighted
        self.labels = None if options.task == "regression" else Labels()
        for run in runs.list:
            self.columns, self.kind = run.columns, (run.sparse, run.weighted)
            if self.labels is not None:
                self.labels.add(run.labels, run.float_labels)
        self._forget()

    def _forget(self) -> None:
        self.waiting: list[Batch] = []
        self.size, self.largest = 0, 0.0
        self.noted = 0 if self.labels is None else len(self.labels.known)

    def add(self, piece: Piece) -> None:
        """Take the rows of a piece, and write a run when there are enough of them."""
        rows = as_rows(piece.X)
        n, columns = rows.shape
        y, weight = _labels(piece.y, n), _weights(piece.sample_weight, n)
        self._check_kind(isinstance(rows, CSRRows), weight is not None)
        self._check_columns(columns)
        check_scale(rows.sqnorms, 1.0, n)
        self.largest = max(self.largest, float(rows.sqnorms.max()))
        X = _matrix(rows)
        if weight is not None and not (kept := weight > 0).all():
            X, y, weight = X[kept], y[kept], weight[kept]
            if not kept.any():
                return
        labels = self.labels
        y = check_targets(y, len(y), Squared()) if labels is None else labels.codes(y)
        # where a source goes on only after whole pieces, these are not divided
        step = n if piece.position is not None else 1 + n * self.run_size // (rows.nbytes + 1)
        for start in range(0, len(y), step):
            part = slice(start, start + step)
            self._wait(X[part], y[part], None if weight is None else weight[part])
            if self.size >= self.run_size:
                self.flush(piece.position)

    def _wait(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Let rows wait: copies of them, as the caller may use its memory for the next ones."""
        generator = np.random.PCG64(self.options.seed)
        generator.advance(self.rows)  # the key of a row depends on nothing but its number
        keys = generator.random_raw(len(y))
        self.waiting.append(
            Batch(X.copy(), y.copy(), None if weight is None else weight.copy(), keys)
        )
        self.rows += len(y)
        self.size += self.waiting[-1].nbytes

    def flush(self, position: Any) -> None:
        """Write the rows that wait as a run; the source goes on at `position` then."""
        if not self.waiting:
            return
        batch = Batch.joined(self.waiting)
        self.waiting = []
        self._check_lengths(batch)
        self.runs.append(
            batch,
            self._smallest_type(batch.values),
            columns=self.columns,
            largest_sqnorm=self.largest,
            position=position,
            labels=[] if self.labels is None else list(self.labels.known)[self.noted :],
            float_labels=self.labels is not None and self.labels.is_float,
        )
        self._forget()

    def _check_kind(self, is_sparse: bool, weighted: bool) -> None:
        self.kind = self.kind or (is_sparse, weighted)
        if self.kind != (is_sparse, weighted):
            raise ValueError(
                "all parts must be dense or all sparse, and all with sample_weight or all "
                "without: this one differs from those before it"
            )

    def _check_columns(self, columns: int) -> None:
        given = self.options.n_features
        expected = given or (0 if self.grows else self.columns) or min(columns, MOST_FEATURES)
        padded = given is not None and self.kind is not None and self.kind[0]
        if columns > expected or (columns < expected and not padded):
            raise ValueError(f"X has {columns} columns, expected {expected}")
        self.columns = max(self.columns, expected)

    def _check_lengths(self, batch: Batch) -> None:
        longest = np.diff(batch.X.indptr).max() if sparse.issparse(batch.X) else self.columns
        if 12 * longest > self.row_size:
            raise ValueError(
                f"a row has {longest} values, too many for blocks of "
                f"{format_size(self.row_size)}: raise max_memory"
            )

    def _smallest_type(self, values: np.ndarray) -> np.dtype:
        """Return the type that holds the values as asked."""
        asked = self.options.dtype
        if asked == "float64" or not values.size:
            return np.dtype(asked or np.float32)
        with np.errstate(over="ignore", under="ignore"):
            rounded = values.astype(np.float32)
        if asked == "float32":
            if not np.isfinite(rounded).all():
                raise ValueError("X holds values too large for float32: choose float64")
            return rounded.dtype
        return rounded.dtype if np.array_equal(rounded, values) else np.dtype(np.float64)


def _labels(y: Any, n: int) -> np.ndarray:
    if np.ma.isMaskedArray(y):
        raise ValueError("y is a masked array: fill or drop the masked entries first")
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must have one entry for each of {n} rows, got shape {y.shape}")
    return y


def _weights(sample_weight: Any, n: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,) or weight.any():
        check_weights(sample_weight, n)
    return weight


def _matrix(rows: Any) -> Any:
    """Return rows as a matrix to which others can be added, whatever its number of columns."""
    if not isinstance(rows, CSRRows):
        return rows.X
    indices = rows.indices.view(np.int32 if rows.indices.itemsize == 4 else np.int64)
    shape = rows.shape[0], MOST_FEATURES
    return sparse.csr_matrix((rows.data, indices, rows.indptr), shape=shape)

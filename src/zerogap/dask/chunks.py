"""The rows of one chunk in a worker's memory, checked, and what the client must know about them."""

from __future__ import annotations

import functools
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

import zerogap
from zerogap.kernels.precise import total_of, totals_by_class
from zerogap.problem.validation import fingerprint, refuse_targets, refuse_type, sample_weights
from zerogap.rows import CSRRows, DenseRows, as_rows, shift_from
from zerogap.store import Store


@dataclass(frozen=True)
class StoreBlock:
    """A block of a store, which every worker can read for itself."""

    store: Store
    number: int

    def read(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return X, the labels or numbers, and the weights."""
        X, y, weights = self.store.read(self.number)
        if self.store.classes is not None:
            y = self.store.classes[y.astype(np.int64)]
        return X, y, weights


@dataclass(frozen=True)
class Far:
    """Columns of a chunk that are far from zero for their spread; the targets are the last one."""

    places: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    one: np.ndarray  # of the values


@dataclass(frozen=True)
class Summary:
    """What the client must know about a chunk to state the problem, and to know it again."""

    number: int
    rows: int
    features: int
    weight: float
    sqnorms: float  # sum of weight_i |x_i|^2
    largest: float  # |x_i|^2
    moment: float  # sum of weight_i y_i, in regression
    labels: np.ndarray  # in order; none in regression
    label_weights: np.ndarray
    fingerprint: str
    version: str  # of the library on the worker
    far: Far | None = None  # None if the chunk is empty


@dataclass(frozen=True, eq=False)
class Data:
    """Rows, targets (positions of the labels in classification) and weights."""

    rows: DenseRows | CSRRows | None  # None if the chunk is empty
    y: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    summary: Summary


def read(number: int, item: Any, classify: bool) -> Data:
    """Check the rows of a chunk; errors name it."""
    try:
        X, y, *rest = item.read() if isinstance(item, StoreBlock) else item
    except (TypeError, ValueError) as error:
        raise ValueError(f"chunk {number} is not a pair (X, y): {error}") from error
    weights = rest[0] if rest else None
    try:
        return _checked(number, X, y, weights, classify)
    except ValueError as error:
        raise ValueError(f"chunk {number}: {error}") from error


def _checked(number: int, X: Any, y: Any, weights: Any, classify: bool) -> Data:
    refuse_type(X)
    X = X if hasattr(X, "indptr") else np.asarray(X)
    y = np.asarray(y)
    if y.ndim != 1 or len(y) != X.shape[0]:
        raise ValueError(f"X has shape {X.shape}, y has shape {y.shape}")
    labels, targets = np.empty(0), y
    if classify:
        refuse_targets(y)
        if len(y):
            check_classification_targets(y)
        labels, targets = np.unique(
            y.astype(str) if y.dtype.kind == "O" else y, return_inverse=True
        )
    else:
        targets = y.astype(np.float64)
        refuse_targets(targets)
    if not len(y):
        nothing = Summary(number, 0, X.shape[1], 0.0, 0.0, 0.0, 0.0, labels, labels, "0", "")
        return Data(None, targets, np.empty(0), labels, nothing)
    s = sample_weights(weights, len(y)) if np.any(weights is None or weights) else np.zeros(len(y))
    rows = as_rows(X)
    print_ = fingerprint(rows, targets, s)
    if classify:
        print_ += f"-{zlib.crc32(repr(labels.tolist()).encode()):08x}"
    summary = Summary(
        number,
        *rows.shape,
        weight=total_of(s),
        sqnorms=float(s @ rows.sqnorms),
        largest=float(rows.sqnorms.max()),
        moment=0.0 if classify else float(s @ targets),
        labels=labels,
        label_weights=totals_by_class(targets, s, len(labels)) if classify else labels,
        fingerprint=print_,
        version=zerogap.__version__,
        far=_find_far(rows, targets),
    )
    return Data(rows, targets, s, labels, summary)


def _find_far(rows: DenseRows | CSRRows, y: np.ndarray) -> Far:
    """Return the columns that are far from zero in some rows."""
    places, some = np.flatnonzero(rows._far_columns()), rows.take(rows._some())
    columns = some.columns(places).product(np.eye(len(places))) if len(places) else np.empty((1, 0))
    values = np.column_stack([columns, np.resize(y[rows._some()], len(columns))])
    mean = values.mean(axis=0)
    return Far(places, mean, (values - mean).std(axis=0), values[0])


def joint_shifts(chunks: list[Far], n_features: int) -> tuple[np.ndarray, float]:
    """Return what to subtract from columns and targets so that they are near zero, if anything.

    Only a column that is far from zero in every chunk is so in all of them together.
    """
    places = functools.reduce(np.intersect1d, [far.places for far in chunks])
    inside = [np.append(np.isin(far.places, places), True) for far in chunks]
    pairs = list(zip(chunks, inside, strict=True))
    means = np.array([far.mean[chosen] for far, chosen in pairs])
    spreads = np.array([far.spread[chosen] for far, chosen in pairs])
    mean = means.mean(axis=0)
    spread = np.sqrt(np.square(spreads).mean(axis=0) + np.square(means - mean).mean(axis=0))
    shifts = shift_from(mean, spread, chunks[0].one[inside[0]])
    origin = np.zeros(n_features)
    origin[places] = shifts[:-1]
    return origin, float(shifts[-1])

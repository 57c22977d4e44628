"""From the columns of a table to the features of a model, the same way every time."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zerogap.readers import columns, scaling
from zerogap.readers.files import DataError

_MOST_FEATURES = 2**31 - 1
_MOST_FILLED = 1 << 25  # zeros of new, sparse data that a shift may fill: 400 MB


@dataclass(frozen=True)
class Column:
    """A column of a table: numbers, or text of these categories."""

    name: str
    categories: tuple[str, ...] | None = None

    @property
    def width(self) -> int:
        """How many features the column becomes."""
        return 1 if self.categories is None else len(self.categories)


@dataclass(frozen=True, eq=False)
class Encoder:
    """What turns new data into the features that a model was trained on.

    A column of numbers is one feature; a number that is missing or infinite is refused.  A column
    of text is one feature for each of its categories, 1 for the row's own and 0 for the others;
    missing text is the category "".  A category not seen in training becomes zeros.  Then the
    features are scaled, where `fit_scaling` has learnt how.

    Parameters
    ----------
    n_features : int
    columns : tuple of Column
        The columns of a table; empty for matrices (svmlight, npz), which are only scaled.
    target : str, optional
        Name of the column that is predicted.
    text_target : bool
        Whether that column is text, even where it looks like numbers.
    shift, scale : arrays of n_features, optional
        A feature x becomes (x - shift) * scale.  Shifts, all zero where nothing was to be shifted,
        come from standard scaling; there are none in max-abs scaling.

    Examples
    --------
    >>> import numpy as np
    >>> encoder = Encoder(2).fit_scaling(np.array([[0.0, 2.0], [4.0, 6.0]]), "standard")
    >>> encoder.scaled(np.array([[2.0, 8.0]]))
    array([[0., 2.]])
    """

    n_features: int
    columns: tuple[Column, ...] = ()
    target: str | None = None
    text_target: bool = False
    shift: np.ndarray | None = None
    scale: np.ndarray | None = None

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Name of each feature, column or column=category; None for matrices."""
        if not self.columns:
            return None
        return tuple(
            name
            for c in self.columns
            for name in (
                [c.name] if c.categories is None else [f"{c.name}={v}" for v in c.categories]
            )
        )

    @property
    def is_dense(self) -> bool:
        """Whether tables become dense matrices: unless two thirds of the entries would be zero."""
        return 3 * len(self.columns) >= self.n_features

    @classmethod
    def fit(cls, table: Any, target: str | None) -> Encoder:
        """Learn the columns of a pyarrow Table and their categories."""
        learnt = (
            Column(name, columns.categories(name, table[name]))
            for name in table.column_names
            if name != target
        )
        text = target is not None and columns.is_text(table[target].type)
        return cls.of_columns(tuple(learnt), target, text)

    @classmethod
    def of_columns(
        cls, learnt: tuple[Column, ...], target: str | None, text_target: bool
    ) -> Encoder:
        """Return the encoder of these columns, in the order of the table."""
        if not learnt:
            raise DataError("has no column besides the target")
        return cls(sum(c.width for c in learnt), learnt, target, text_target)

    def transform(self, table: Any, before: int = 0) -> tuple[Any, tuple[str, ...]]:
        """Return features of a pyarrow Table, dense or CSR, and notes on what was ignored.

        Messages count the rows before it.
        """
        missing = [c.name for c in self.columns if c.name not in table.column_names]
        if missing:
            raise DataError(f"lacks {_listed('column', missing)}, which the model was trained on")
        known = {self.target, *(c.name for c in self.columns)}
        extra = [name for name in table.column_names if name not in known]
        notes = [f"ignored {_listed('column', extra)}, unknown to the model"] if extra else []
        shape = (table.num_rows, len(self.columns))
        values, features = np.empty(shape), np.empty(shape, dtype=np.int32)
        first = 0
        for k, column in enumerate(self.columns):
            cells = table[column.name]
            if column.categories is None:
                values[:, k] = columns.numbers(column.name, cells, before)
                features[:, k] = first
            else:
                code = columns.codes(column.categories, cells)
                values[:, k], features[:, k] = code >= 0, first + np.maximum(code, 0)
                if unseen := int((code < 0).sum()):
                    notes.append(
                        f"column {column.name!r} has categories not seen in training in {unseen} "
                        f"of {len(code)} rows: they count as none"
                    )
            first += column.width
        return self.scaled(self._spread(values, features)), tuple(notes)

    def _spread(self, values: np.ndarray, features: np.ndarray) -> Any:
        """Put values[i, k] at column features[i, k] of row i."""
        n, k = values.shape
        if self.is_dense:
            if k == self.n_features:
                return values
            X, rows = np.zeros((n, self.n_features)), np.arange(n)
            for j in range(k):
                X[rows, features[:, j]] = values[:, j]
            return X
        from scipy import sparse

        X = sparse.csr_matrix(
            (values.ravel(), features.ravel(), np.arange(0, n * k + 1, k)),
            shape=(n, self.n_features),
        )
        X.eliminate_zeros()
        return X

    @property
    def scaling(self) -> str:
        """How features are scaled: "none", "standard" or "max-abs"."""
        if self.scale is None:
            return "none"
        return "max-abs" if self.shift is None else "standard"

    def fit_scaling(self, X: Any, kind: str, has_intercept: bool = True) -> Encoder:
        """Return this encoder with the scaling learnt from unscaled training features.

        Parameters
        ----------
        X : array or CSR matrix
        kind : {"none", "standard", "max-abs"}
            "standard" divides by the standard deviation.  Dense features are also shifted to mean
            0; sparse ones only where that fills nothing, in columns without zeros.  With an
            intercept the shift changes nothing else in the optimum, so both are the same model.
            "max-abs" divides by the largest absolute value, which leaves zeros zero.  Constant
            features keep their scale.
        has_intercept : bool
            Whether the model has an intercept that is not regularised.  Without one, "standard"
            has to shift all features and refuses sparse matrices.

        Returns
        -------
        Encoder
        """
        if kind == "none":
            return replace(self, shift=None, scale=None)
        if kind not in ("standard", "max-abs"):
            raise ValueError(f"scaling must be 'none', 'standard' or 'max-abs', got {kind!r}")
        from scipy import sparse

        is_sparse = sparse.issparse(X)
        if kind == "max-abs":
            low, high = scaling.ends(X)
            shift, spread = None, np.maximum(abs(low), abs(high))
        elif is_sparse and not has_intercept:
            raise ValueError(
                "without an intercept, standard scaling has to subtract means, which would fill a "
                "sparse matrix: choose max-abs (--scale max-abs), or fit an intercept"
            )
        else:
            found = scaling.describe(_canonical(X) if is_sparse else X)
            shift, spread = found.mean, found.deviation
            shift = np.where(found.without_zero, shift, 0.0) if is_sparse else shift
        with np.errstate(divide="ignore", over="ignore"):
            scale = 1.0 / spread  # as a model file keeps it
        usable = np.isfinite(scale) & (scale > 0)
        return replace(self, shift=shift, scale=np.where(usable, scale, 1.0))

    def scaled(self, X: Any) -> Any:
        """Return features scaled as those of the training data were; X itself without scaling."""
        if X.shape[1] != self.n_features:
            raise DataError(f"has {X.shape[1]} features, the model has {self.n_features}")
        if self.scale is None:
            return X
        from scipy import sparse

        if not sparse.issparse(X):
            return (X if self.shift is None else X - self.shift) * self.scale
        if self.shift is None or not self.shift.any():
            return sparse.csr_matrix((X.data * self.scale[X.indices], X.indices, X.indptr), X.shape)
        return _shifted(_canonical(X), self.shift, self.scale)

    def to_json(self) -> dict[str, Any]:
        """Return the encoder as plain lists, numbers and strings."""
        return {
            "n_features": self.n_features,
            "columns": [
                {"name": c.name, "categories": c.categories and list(c.categories)}
                for c in self.columns
            ],
            "target": self.target,
            "text_target": self.text_target,
            "shift": None if self.shift is None else self.shift.tolist(),
            "scale": None if self.scale is None else self.scale.tolist(),
        }

    @classmethod
    def from_json(cls, value: Any) -> Encoder:
        """Return the encoder that `to_json` described; DataError for anything else."""
        fields = ("n_features", "columns", "target", "text_target", "shift", "scale")
        _check(isinstance(value, dict) and set(value) == set(fields), f"needs the keys {fields}")
        n, listed, target, text_target, shift, scale = (value[name] for name in fields)
        _check(type(n) is int and 0 < n <= _MOST_FEATURES, "n_features is no number of features")
        _check(isinstance(listed, list), "columns is no list")
        learnt = tuple(_column_from_json(c) for c in listed)
        names = [c.name for c in learnt]
        _check(len(set(names)) == len(names), "two columns have one name")
        _check(not learnt or sum(c.width for c in learnt) == n, "n_features is not their number")
        _check(target is None or (type(target) is str and target not in names), "bad target")
        _check(type(text_target) is bool, "text_target is neither true nor false")
        shift, scale = _vector_from_json(shift, n, "shift"), _vector_from_json(scale, n, "scale")
        _check(scale is None or bool((scale > 0).all()), "scale is not positive")
        _check(shift is None or scale is not None, "shift without scale")
        return cls(n, learnt, target, text_target, shift, scale)


def _canonical(X: Any) -> Any:
    """Return a CSR matrix whose entries are sorted and each stored once."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _shifted(X: Any, shift: np.ndarray, scale: np.ndarray) -> Any:
    """Return (x - shift) * scale of a CSR matrix; zeros of shifted columns become entries."""
    from scipy import sparse

    n, j = X.shape[0], X.indices
    Z = sparse.csr_matrix(((X.data - shift[j]) * scale[j], j, X.indptr), X.shape)
    stored = np.bincount(j, minlength=len(shift))
    short = np.flatnonzero((shift != 0) & (stored < n))
    if not len(short):
        return Z
    filled = int((n - stored[short]).sum())
    if filled > _MOST_FILLED:
        raise DataError(
            f"is sparse, but the model subtracts means that would fill {filled:,} zeros: give "
            f"fewer rows at a time, or dense ones"
        )
    place = np.full(len(shift), -1)
    place[short] = np.arange(len(short))
    inside = place[j] >= 0
    absent = np.ones((n, len(short)), dtype=bool)
    absent[np.repeat(np.arange(n), np.diff(X.indptr))[inside], place[j[inside]]] = False
    row, k = np.nonzero(absent)
    column = short[k]
    return Z + sparse.csr_matrix((-shift[column] * scale[column], (row, column)), X.shape)


def _listed(noun: str, names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    return f"{noun} {shown}" if len(names) == 1 else f"{len(names)} {noun}s: {shown}"


def _check(valid: bool, what: str) -> None:
    if not valid:
        raise DataError(f"is no encoder: {what}")


def _column_from_json(value: Any) -> Column:
    _check(isinstance(value, dict) and set(value) == {"name", "categories"}, "bad column")
    name, categories = value["name"], value["categories"]
    _check(type(name) is str, "a column's name is no text")
    if categories is None:
        return Column(name)
    _check(isinstance(categories, list) and len(categories) > 0, "categories is no list")
    _check(all(type(c) is str for c in categories), "a category is no text")
    _check(len(set(categories)) == len(categories), "a category is there twice")
    return Column(name, tuple(categories))


def _vector_from_json(value: Any, size: int, name: str) -> np.ndarray | None:
    if value is None:
        return None
    _check(isinstance(value, list) and len(value) == size, f"{name} needs {size} numbers")
    valid = all(type(v) in (int, float) and abs(v) <= sys.float_info.max for v in value)
    _check(valid, f"{name} holds something that is no finite number")
    return np.array(value, dtype=np.float64)

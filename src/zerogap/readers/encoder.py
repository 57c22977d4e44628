"""From the columns of a table to the features of a model, the same way every time."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from zerogap.readers import scaling
from zerogap.readers.column_json import check, column_from_json
from zerogap.readers.columns import Column, Number, Words
from zerogap.readers.files import DataError
from zerogap.readers.frames import features_of
from zerogap.readers.options import TableOptions

_MOST_FEATURES = 2**31 - 1
_FIELDS = ("n_features", "columns", "target", "text_target", "shift", "scale")
_LATER: dict[str, Any] = {  # not in the files of earlier versions
    "weight": None,
    "id": None,
    "drop_missing": False,
    "left_out": [],
    "reading": {},
    "names": [],
}
_MOST_FILLED = 1 << 25  # zeros of new, sparse data that a shift may fill: 400 MB


@dataclass(frozen=True, eq=False)
class Encoder:
    """What turns new data into the features that a model was trained on.

    Each column of a table becomes the features that `zerogap.readers.columns` describes: numbers,
    truth values, categories, dates and words.  All that was learnt for that comes from the
    training rows.  Then the features are scaled, where `fit_scaling` has learnt how.

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
    weight, id : str, optional
        Columns with the weights and with the names of rows.
    drop_missing : bool
        Whether training rows in which something is missing were left out.
    left_out : tuple of (str, str)
        Other columns, and why each of them is no feature.
    reading : dict, optional
        How the file of the training was written, for new files that do not tell.
    names : tuple of str
        Names of the features of a matrix, where they are known.

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

    weight: str | None = None
    id: str | None = None
    drop_missing: bool = False
    left_out: tuple[tuple[str, str], ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Name of each feature, such as column or column=category; None where not known."""
        if not self.columns:
            return self.names or None
        return tuple(name for column in self.columns for name in column.features)

    @property
    def is_dense(self) -> bool:
        """Whether tables become dense matrices: unless two thirds of the entries would be zero."""
        if any(isinstance(column, Words) for column in self.columns):
            return False
        return 3 * sum(column.per_row for column in self.columns) >= self.n_features

    @property
    def missing(self) -> tuple[str, ...]:
        """Texts that mean that there is no value, besides the usual ones."""
        return tuple(self.reading.get("missing", ()))

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns that a training row needs."""
        more = (self.target, self.weight)
        return (*(c.name for c in self.columns), *(name for name in more if name is not None))

    @classmethod
    def of_columns(
        cls, learnt: tuple[Column, ...], target: str | None, text_target: bool, **more: Any
    ) -> Encoder:
        """Return the encoder of these columns, in the order of the table."""
        if not learnt:
            raise DataError("has no column besides the target")
        return cls(sum(c.width for c in learnt), learnt, target, text_target, **more)

    def transform(self, table: Any, before: int = 0) -> tuple[Any, tuple[str, ...]]:
        """Return features of a pyarrow Table, dense or CSR, and notes on what was ignored.

        Messages count the rows before it.

        Parameters
        ----------
        table : pyarrow.Table
            Columns, by name.
        before : int
            Rows that came before, for messages.

        Returns
        -------
        X : ndarray or CSR matrix
            Features.
        notes : tuple of str
            What was ignored.
        """
        notes = self.check_names(table.column_names)
        numbers = [c for c in self.columns if isinstance(c, Number) and not c.indicator]
        if len(numbers) == len(self.columns):
            X = _as_they_are(table, self.columns)
            if X is None:
                X = np.empty((table.num_rows, self.n_features))
                for j, number in enumerate(numbers):
                    X[:, j] = number.values(table[number.name], before, self.missing)[0]
            return self.scaled(X), tuple(notes)
        values, features, texts, first = [], [], [], 0
        for column in self.columns:
            found = column.entries(table[column.name], before, self.missing)
            if isinstance(column, Words):
                texts.append((first, found))
            else:
                values.append(found.values)
                features.append(found.features + first)
                if found.unseen:
                    notes.append(
                        f"column {column.name!r} has categories not seen in training in "
                        f"{found.unseen} of {table.num_rows} rows: they count as none"
                    )
            first += column.width
        shape = table.num_rows, 0
        X = self._spread(
            np.hstack(values) if values else np.empty(shape),
            np.hstack(features) if features else np.empty(shape, dtype=np.int32),
        )
        for first, words in texts:
            X = X + _widened(words, first, self.n_features)
        return self.scaled(X), tuple(notes)

    def features_of(self, X: Any) -> Any:
        """Return the features of a DataFrame, pyarrow table or file; an array is taken as such.

        Parameters
        ----------
        X : DataFrame, pyarrow.Table, path or array
            Rows.

        Returns
        -------
        ndarray or CSR matrix
            Features.
        """
        return features_of(self, X)

    def check_names(self, names: list[str]) -> list[str]:
        """Refuse a table that lacks columns; return a note on those that are not known.

        Parameters
        ----------
        names : list of str
            Columns of a table.

        Returns
        -------
        list of str
            Notes for the user.
        """
        given = set(names)
        missing = [c.name for c in self.columns if c.name not in given]
        if missing:
            raise DataError(f"lacks {_listed('column', missing)}, which the model was trained on")
        known = {self.target, self.weight, self.id, *(c.name for c in self.columns)}
        known.update(name for name, _ in self.left_out)
        extra = [name for name in names if name not in known]
        return [f"ignored {_listed('column', extra)}, unknown to the model"] if extra else []

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
            (values.ravel(), features.ravel(), k * np.arange(n + 1)),
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
        """Return features scaled as those of the training data were; X itself without scaling.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Features.

        Returns
        -------
        ndarray or CSR matrix
            Scaled features.
        """
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
        """Return the encoder as plain lists, numbers and strings.

        Returns
        -------
        dict
            What `from_json` takes.
        """
        return {
            "n_features": self.n_features,
            "columns": [column.to_json() for column in self.columns],
            "target": self.target,
            "text_target": self.text_target,
            "shift": None if self.shift is None else self.shift.tolist(),
            "scale": None if self.scale is None else self.scale.tolist(),
            "weight": self.weight,
            "id": self.id,
            "drop_missing": self.drop_missing,
            "left_out": [list(pair) for pair in self.left_out],
            "reading": self.reading,
            "names": list(self.names),
        }

    @classmethod
    def from_json(cls, value: Any) -> Encoder:
        """Return the encoder that `to_json` described; DataError for anything else."""
        check(isinstance(value, dict), f"needs the keys {_FIELDS}")
        value = {**_LATER, **value} if set(value) >= set(_FIELDS) else value
        check(set(value) == {*_FIELDS, *_LATER}, f"needs the keys {_FIELDS}")
        n, listed, target, text_target, shift, scale = (value[name] for name in _FIELDS)
        weight, id, drop_missing, left_out, reading, labels = (value[name] for name in _LATER)
        check(type(n) is int and 0 < n <= _MOST_FEATURES, "n_features is no number of features")
        check(isinstance(listed, list), "columns is no list")
        learnt = tuple(column_from_json(c) for c in listed)
        names = [c.name for c in learnt]
        check(len(set(names)) == len(names), "two columns have one name")
        check(not learnt or sum(c.width for c in learnt) == n, "n_features is not their number")
        for name in (target, weight, id):
            sound = name is None or (type(name) is str and name not in names)
            check(sound, "bad target, weight or id")
        check(type(text_target) is bool, "text_target is neither true nor false")
        check(type(drop_missing) is bool, "drop_missing is neither true nor false")
        check(isinstance(left_out, list), "left_out is no list")
        sound = all(isinstance(p, list) and [type(t) for t in p] == [str, str] for p in left_out)
        check(sound, "left_out holds something else than pairs of texts")
        TableOptions.check_stored(reading)
        check(isinstance(labels, list) and set(map(type, labels)) <= {str}, "names are no texts")
        check(len(labels) in (0, n) and not (labels and learnt), "names are not those of features")
        shift, scale = _vector_from_json(shift, n, "shift"), _vector_from_json(scale, n, "scale")
        check(scale is None or bool((scale > 0).all()), "scale is not positive")
        check(shift is None or scale is not None, "shift without scale")
        pairs = tuple((name, why) for name, why in left_out)
        more = (weight, id, drop_missing, pairs, reading, tuple(labels))
        return cls(n, learnt, target, text_target, shift, scale, *more)


def _as_they_are(table: Any, columns: tuple[Column, ...]) -> np.ndarray | None:
    """Return columns of finite float64, None if some are not: one look for all, not for each."""
    import pyarrow as pa

    X = np.empty((table.num_rows, len(columns)))
    for j, column in enumerate(columns):
        cells = table[column.name]
        if type(column) is not Number or cells.type != pa.float64() or cells.null_count:
            return None
        X[:, j] = cells.to_numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        return X if np.isfinite(X.sum()) else None


def _widened(words: Any, first: int, n_features: int) -> Any:
    """Return a CSR matrix with columns before and after its own."""
    from scipy import sparse

    shape = words.shape[0], n_features
    return sparse.csr_matrix((words.data, words.indices + first, words.indptr), shape)


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


def _vector_from_json(value: Any, size: int, name: str) -> np.ndarray | None:
    if value is None:
        return None
    check(isinstance(value, list) and len(value) == size, f"{name} needs {size} numbers")
    valid = all(type(v) in (int, float) and abs(v) <= sys.float_info.max for v in value)
    check(valid, f"{name} holds something that is no finite number")
    return np.array(value, dtype=np.float64)

"""Checks of what users hand to estimators, beyond scikit-learn's own."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight

from zerogap.kernels.jit import kernel
from zerogap.problem.certificate import Certificate
from zerogap.problem.checks import check_weights
from zerogap.rows import Rows

_BLOCK = 1 << 24  # words between two looks at Ctrl-C
FAR_TARGETS = 1e13  # size of the targets over their spread: of 53 bits ten are left, or fewer
FAR_APART = 1e6  # from which sizes of columns are a reason for rounding; not tuned
MOST_COMPARED = 1e9  # n d^2 up to which columns that nearly cancel are looked for: a second
NEARLY_NOTHING = 1e-5  # of the spread of columns: its square is a tenth of a double's digits
MOST_NAMED = 4  # columns, in a message
PART_OF_LARGEST = 0.1  # from which a column is named beside the one with the largest part
UNREMARKABLE_GAP = 1e-9  # relative: below, nobody is told that rounding ended a run before its tol
EPSILON = float(np.finfo(np.float64).eps)
ADVICE = {
    "max_epochs": "raise {epochs} or {lam}",
    "max_rounds": "raise max_rounds or {lam}",
    "max_seconds": "raise max_seconds or {lam}",
    "diverged": "{stronger}",
    "stalled": "{stronger} or {tol}",
    "rounding": "{stronger} or {tol}",
}
NAMES = {"epochs": "max_epochs", "lam": "lam", "stronger": "raise lam", "tol": "tol"}


def sample_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return one weight per row: ones, a number for all, or what was given, checked."""
    if sample_weight is None:
        return np.ones(n)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, float(sample_weight))
    check_weights(sample_weight, n)
    return np.asarray(sample_weight, dtype=np.float64)


def find_classes(y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, and the number of each row's: rows without weight are as good as absent.

    Two classes of numbers are found without sorting.
    """
    there = y if weights is None or weights.all() else y[weights > 0]
    if there.dtype.kind in "biuf":
        low, high = there.min(), there.max()
        upper = there == high
        if low < high and (upper | (there == low)).all():
            return np.array([low, high]), (y >= high).astype(np.intp)
    classes = np.unique(there)
    return classes, np.searchsorted(classes, y).clip(max=len(classes) - 1)


def class_factors(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the weight of each class; "balanced" counts a row with weight 2 as two rows."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights, minlength=len(classes))
        return weights.sum() / (len(classes) * np.where(totals > 0, totals, np.inf))
    factors = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    for name, factor in zip(classes.tolist(), factors.tolist(), strict=True):
        if not 0 <= factor < np.inf:
            raise ValueError(
                f"class_weight must be finite and not negative, got {factor} for class {name!r}"
            )
    return factors


def fingerprint(rows: Rows, targets: np.ndarray, weights: np.ndarray) -> str:
    """Return what tells the data of a fit from others: size and checksums, 500x20-1f00...

    The same numbers in another form (CSR, float32) have another fingerprint.
    """
    parts = []
    for array in (*rows.__getstate__().values(), targets, weights):
        if isinstance(array, np.ndarray):
            content: Any = np.ascontiguousarray(array).ravel().view(np.uint8)
            whole = len(content) // 8 * 8
            words, checksum = content[:whole].view(np.uint64), zlib.crc32(content[whole:])
            for start in range(0, len(words), _BLOCK):
                part = words[start : start + _BLOCK]
                checksum = (checksum + int(_weighted_sum(part, start))) % 2**64
            parts.append(f"{checksum:016x}")
    return "-".join([f"{rows.shape[0]}x{rows.shape[1]}", *parts])


@kernel
def _weighted_sum(words, first):
    """sum_k (2 k + 1) mix(words_k) modulo 2^64: ten times as fast as CRC-32.

    Odd factors are invertible, and so is the mix, so one word that changes always shows; growing
    factors show an order that changes, and the mix shows signs that change in pairs.
    """
    total = np.uint64(0)
    for k in range(len(words)):
        total += np.uint64(2 * (first + k) + 1) * (words[k] ^ (words[k] >> np.uint64(29)))
    return total


def check_number(name: str, value: Any, kind: Any, least: float) -> None:
    """Refuse a parameter that is not a number of that kind, or too small."""
    number = type(value) is int or isinstance(value, kind)  # the former is quick
    valid = number and not isinstance(value, bool) and value >= least
    if not valid:
        what = "an integer" if kind is Integral else "a number"
        raise ValueError(f"{name} must be {what} >= {least}, got {value!r}")


def is_plain(X: Any, y: Any) -> bool:
    """Tell whether these are arrays that scikit-learn's validation would return as they are.

    X may be a CSR matrix, too, whose structure is checked later.
    """
    dense = type(X) is np.ndarray and X.ndim == 2
    return (
        (dense or type(X) in (sparse.csr_matrix, sparse.csr_array))
        and type(y) is np.ndarray
        and len(X.shape) == 2
        and X.shape[0] > 0
        and X.shape[1] > 0
        and X.dtype in (np.float64, np.float32)
        and y.shape == X.shape[:1]
        and y.dtype.kind in "biuf"
    )


def refuse_type(X: Any) -> None:
    """Refuse what scikit-learn's validation would convert to numbers without a word."""
    if np.ma.isMaskedArray(X):
        raise ValueError("X is a masked array: fill or drop the masked entries first")
    if hasattr(X, "dtypes"):  # a frame of pandas or polars; names of the former may repeat
        columns = X.items() if hasattr(X, "items") else ((name, X[name]) for name in X.columns)
        for name, values in columns:
            _refuse_values(values, f"column {name!r} of X")
    else:
        is_array = sparse.issparse(X) or isinstance(X, np.ndarray)
        _refuse_values(X if is_array else np.asarray(X), "X")


def _refuse_values(values: Any, what: str) -> None:
    """Refuse text, times and numbers of more than 64 bits in an array or a column of a frame."""
    kind = getattr(values.dtype, "kind", "O")
    if kind in "buif" and values.dtype != np.longdouble:
        return
    if not sparse.issparse(values):
        values = np.asarray(values)
    if kind in "mM" or values.dtype.kind in "mM":
        raise ValueError(
            f"{what} holds times, of type {values.dtype}: turn them into numbers, such as days"
        )
    if values.dtype.kind == "V" or values.dtype.type is np.longdouble:
        raise ValueError(
            f"{what} has type {values.dtype}, which is not a real number of at most 64 bits"
        )
    if values.dtype.kind in "OUS" and not sparse.issparse(values):
        for place, value in np.ndenumerate(values):
            if isinstance(value, str | bytes):
                where = f"row {place[0]}" if len(place) == 1 else f"{place}"
                raise ValueError(
                    f"{what} holds text, {_plain(value)} at {where}: encode it as numbers first"
                )


def _plain(text: Any) -> str:
    """Return text in quotes, without numpy's name for its type."""
    return repr(bytes(text) if isinstance(text, bytes) else str(text))


def refuse_targets(y: Any, task: str = "classification") -> None:
    """Refuse targets that have no order (None, mixed types) or are not finite, with their place.

    Text is refused where the task is regression.
    """
    if np.ma.isMaskedArray(y):
        raise ValueError("y is a masked array: fill or drop the masked entries first")
    if y is None or sparse.issparse(y):
        return  # scikit-learn says what is wrong
    mixed = isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) > 1
    labels = np.asarray(y, dtype=object) if mixed else np.asarray(y)
    if labels.dtype.kind == "O":
        try:
            np.unique(labels)
        except TypeError:
            raise ValueError("y holds labels of mixed types or None: use one type") from None
    if task == "regression" and labels.dtype.kind in "OUS":
        for i, label in enumerate(labels.ravel()):
            if isinstance(label, str | bytes):
                raise ValueError(f"y holds text, {_plain(label)} at position {i}, not numbers")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        i = int(np.argmin(np.isfinite(labels.ravel())))
        kind = "NaN" if np.isnan(labels.ravel()[i]) else "infinity"
        raise ValueError(f"Input y contains {kind} at position {i}: drop the row")


def describe_columns(rows: Any, names: Any = None) -> str:
    """Say which columns leave doubles too few digits: by their sizes, or because they cancel.

    Parameters
    ----------
    rows : DenseRows or CSRRows
    names : sequence of str, optional
        Of the columns.

    Examples
    --------
    >>> from zerogap.rows import DenseRows
    >>> copies = np.array([[1.0, 3.0], [2.0, 6.0], [4.0, 12.0], [8.0, 24.0 + 1e-9]])
    >>> describe_columns(DenseRows(copies), ["metres", "feet"]).split(":")[0]
    'column 0 (metres) and column 1 (feet) nearly cancel'
    """
    sizes = np.sqrt(rows.square_sums(np.full(rows.shape[0], 1.0 / rows.shape[0])))
    several, left = _cancelling(rows) if _are_alike(sizes) else ([], 0.0)
    if not several:
        return describe_sizes(sizes, names)
    listed = [_named(j, names) for j in several]
    return (
        f"{', '.join(listed[:-1])} and {listed[-1]} nearly cancel: a sum of multiples of them is "
        f"{left:.0e} of their spread, of which double precision leaves too few digits at this lam"
    )


def describe_sizes(sizes: np.ndarray, names: Any = None) -> str:
    """Say what `describe_columns` does of columns of which only the sizes are known.

    Examples
    --------
    >>> describe_sizes(np.array([1e9, 1e-9]), ["money", "share"]).split(":")[0]
    'column 0 (money) has values of about 1e+09, column 1 (share) of about 1e-09'
    """
    present = np.flatnonzero(sizes)
    if not len(present):
        return "all columns of X are zero"
    large, small = present[sizes[present].argmax()], present[sizes[present].argmin()]
    if _are_alike(sizes):
        return f"at this lam double precision leaves columns of about {sizes[large]:.0e} few digits"
    return (
        f"{_named(large, names)} has values of about {sizes[large]:.0e}, {_named(small, names)} of "
        f"about {sizes[small]:.0e}: double precision does not resolve both in one model at this lam"
    )


def _are_alike(sizes: np.ndarray) -> bool:
    """Tell whether all columns that are not zero have sizes that one model can have."""
    present = sizes[sizes > 0.0]
    return bool(len(present) and present.max() < FAR_APART * present.min())


def _named(j: Any, names: Any) -> str:
    return f"column {j}" if names is None else f"column {j} ({names[j]})"


def describe_targets(y: np.ndarray, tol: float = 0.0) -> str:
    """Say that numbers to predict differ in digits that doubles hardly have, or nothing.

    `tol` is the relative gap that was asked for: predictions are rounded to doubles, too, and what
    that costs may be more.

    Examples
    --------
    >>> describe_targets(1e9 + 1e-6 * np.arange(4)).split(":")[0]
    'the targets are about 1e+09 and differ by about 1e-06'
    """
    size, spread = float(np.abs(y).max()), float(np.std(y - y[0]))
    far = min(FAR_TARGETS, tol / EPSILON) if tol else FAR_TARGETS
    if not size > far * spread > 0.0:
        return ""
    return (
        f"the targets are about {size:.0e} and differ by about {spread:.0e}: doubles have too few "
        f"digits for that difference, so record them as differences from one of them"
    )


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _cancelling(rows: Any) -> tuple[list[int], float]:
    """Return the columns of which a combination is smallest, and what is left of their spread.

    None if there is no such combination, or the table is too large for a look at all of them.
    """
    n, d = rows.shape
    if not 2 <= d <= n or n * d * d > MOST_COMPARED:
        return [], 0.0
    X = rows.dense()
    X = X - X.mean(axis=0)
    used = np.flatnonzero(np.square(X).sum(axis=0) > 0.0)
    X = X[:, used] / np.sqrt(np.square(X[:, used]).sum(axis=0))
    if len(used) < 2 or not np.isfinite(X).all():
        return [], 0.0
    _, left, ways = np.linalg.svd(X, full_matrices=False)
    if left[-1] > NEARLY_NOTHING:
        return [], 0.0
    parts = np.abs(ways[-1])
    most = np.argsort(-parts, kind="stable")[:MOST_NAMED]
    named = most[parts[most] >= PART_OF_LARGEST * parts.max()]
    return sorted(used[named].tolist()), max(float(left[-1]), EPSILON)


def warn_if_short(
    certificate: Certificate, tol: float, columns: str = "", names: Mapping[str, str] = NAMES
) -> None:
    """Warn if a run ended short of its gap: say how far it is from the optimum, and what to do.

    `columns` is what `describe_columns` says of the data; without it nothing is said of runs that
    rounding has stopped, which have computed what was asked for.  `names` are those of the
    parameters that the advice is about.
    """
    reason = certificate.stop_reason
    parts = certificate.parts or (certificate,)
    worst = max(parts, key=lambda part: part.relative_gap)
    if reason not in ADVICE:
        return
    if reason == "rounding" and (not columns or worst.relative_gap <= UNREMARKABLE_GAP):
        return
    which = f" of class number {parts.index(worst)}" if certificate.parts else ""
    message = (
        f"stopped ({reason}) at a relative duality gap{which} of "
        f"{worst.relative_gap:.1e}, asked for {tol:.0e}: the objective {worst.primal:.6g} is at "
        f"most {worst.gap:.2g} above its optimum{'; ' if columns else ''}{columns}.  If that is "
        f"not enough, {ADVICE[reason].format(**names)}, or standardise the columns of X"
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=4)

"""Random tables that nobody scaled, as people export them from a database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["COLUMN_KINDS", "TARGET_KINDS", "RawTable", "make_raw_table"]

Rng = np.random.Generator

LARGEST = 1e15
"""Every absolute value stays below: float64 tells neighbouring integers apart up to 9e15."""

FEWEST_ROWS, MOST_ROWS = 20, 5000
MOST_COLUMNS = 60
MOST_KINDS = 8
"""Of columns in one table: with all of them in every table, all tables would be alike."""

SHARE_SPARSE, SHARE_FLOAT32, SHARE_INTEGER = 0.15, 0.1, 0.1
SHARE_DUPLICATED_ROWS = 0.2
SHARE_UNRELATED = 0.15
"""Of all tables: those whose target has nothing to do with the columns."""


class RawTable(NamedTuple):
    """A table in the units it was recorded in.

    Attributes
    ----------
    X : ndarray or CSR matrix
        Columns in their own units.
    y : ndarray
        Targets in their own units, or classes.
    columns : list of str
        What each column is.
    target : str
        What the target is.
    """

    X: Any
    y: np.ndarray
    columns: list[str]
    target: str


def make_raw_table(
    n_samples: int | None = None,
    n_features: int | None = None,
    *,
    target: str | None = None,
    random_state: Any = None,
) -> RawTable:
    """Generate a table that nobody scaled, as people export it from a database.

    Columns are money, years, unix times, ids, counts, percentages, heavy tails, one-hot groups,
    booleans, constants, exact and near copies of other columns, the same quantity in another unit,
    sums of other columns, columns with an offset of up to 1e12 times their spread, tiny and huge
    units, mostly zeros, and missing values coded as -999 or 9999.  Some tables repeat rows, some
    hold integers or float32, some are sparse.  Targets may be unbalanced, separable, noise-free or
    unrelated to the columns, and numbers come in raw units too.

    Parameters
    ----------
    n_samples, n_features : int, optional
        Shape of X; by default drawn at random, 20 to 5000 rows, mostly few, and 1 to 60 columns.
    target : {"binary", "multiclass", "number"}, optional
        Two classes, 3 to 10 classes or numbers; by default drawn at random.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    RawTable
        A named tuple (X, y, columns, target): a dense array or a CSR matrix, integer labels or
        numbers, a name for each column that says what it is, such as "money_3", and the kind of
        target.  All absolute values are below 1e15.

    Examples
    --------
    >>> X, y, columns, target = make_raw_table(100, 4, target="binary", random_state=5)
    >>> X.shape, len(columns), len(set(y.tolist()))
    ((100, 4), 4, 2)
    """
    if target is not None and target not in TARGET_KINDS:
        raise ValueError(f"target must be one of {', '.join(TARGET_KINDS)}, got {target!r}")
    if n_samples is not None and n_samples < 2:
        raise ValueError(f"n_samples must be at least 2, got {n_samples}")
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features}")
    rng = np.random.default_rng(random_state)
    n = _number_of_rows(rng) if n_samples is None else n_samples
    d = _number_of_columns(rng) if n_features is None else n_features
    kind = str(rng.choice(list(TARGET_KINDS))) if target is None else target
    X, columns = _draw_columns(rng, n, d)
    y = TARGET_KINDS[kind](rng, X)
    X, y = _repeat_rows(rng, X, y)
    return RawTable(_stored(rng, X), y, columns, kind)


def _number_of_rows(rng: Rng) -> int:
    """Return the number of rows: log-uniform but skewed, half of all tables have less than 150."""
    return round(FEWEST_ROWS * (MOST_ROWS / FEWEST_ROWS) ** (rng.random() ** 1.5))


def _number_of_columns(rng: Rng) -> int:
    return round(float(MOST_COLUMNS) ** rng.random())


def _draw_columns(rng: Rng, n: int, d: int) -> tuple[np.ndarray, list[str]]:
    """Return d columns of a few kinds and their names; they may depend on the columns before."""
    X = np.empty((n, d))
    columns: list[str] = []
    kinds = rng.choice(list(COLUMN_KINDS), rng.integers(1, MOST_KINDS + 1), replace=False)
    while len(columns) < d:
        kind = str(rng.choice(kinds))
        start = len(columns)
        drawn = COLUMN_KINDS[kind](rng, X[:, :start]).reshape(n, -1)[:, : d - start]
        X[:, start : start + drawn.shape[1]] = _in_range(drawn)
        columns += [f"{kind}_{start + k}" for k in range(drawn.shape[1])]
    return X, columns


def _in_range(values: np.ndarray) -> np.ndarray:
    """Divide by a power of two where values are too large: exact, so that copies stay copies."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest < LARGEST:
        return values
    return np.ldexp(values, -int(np.ceil(np.log2(largest / LARGEST))) - 1)


def _repeat_rows(rng: Rng, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Overwrite some rows by copies of others; half of the time their targets are kept."""
    if rng.random() >= SHARE_DUPLICATED_ROWS:
        return X, y
    n = len(X)
    copied = rng.random(n) < rng.uniform(0.05, 0.9)
    source = np.where(copied, rng.integers(n, size=n), np.arange(n))
    same_target = y[source]
    keeps_classes = len(np.unique(same_target)) == len(np.unique(y))
    return X[source], same_target if keeps_classes and rng.random() < 0.5 else y


def _stored(rng: Rng, X: np.ndarray) -> Any:
    """Return the table in the type it is kept in; rounding to integers may empty tiny columns."""
    from scipy.sparse import csr_matrix

    draw = rng.random()
    if draw < SHARE_FLOAT32:
        X = X.astype(np.float32)
    elif draw < SHARE_FLOAT32 + SHARE_INTEGER:
        X = np.rint(X).astype(np.int64)
    return csr_matrix(X) if rng.random() < SHARE_SPARSE else X


# Columns that stand alone


def _money(rng: Rng, n: int) -> np.ndarray:
    """Return amounts with cents: log-normal, of a typical size between 7 and 160 000."""
    return np.round(rng.lognormal(rng.uniform(2, 12), rng.uniform(0.5, 2.0), n), 2)


def _year(rng: Rng, n: int) -> np.ndarray:
    return rng.integers(1950, 2026, n).astype(float)


def _unix_time(rng: Rng, n: int) -> np.ndarray:
    """Return seconds since 1970 around the year 2023, within an hour up to ten years."""
    return 1.7e9 + np.floor(10.0 ** rng.uniform(3.5, 8.5) * rng.random(n))


def _id(rng: Rng, n: int) -> np.ndarray:
    """Return numbers that only tell rows apart: consecutive, or any of up to 13 digits."""
    largest = int(10.0 ** rng.uniform(4, 13))
    if rng.random() < 0.5:
        return float(largest) + np.arange(n)
    return rng.integers(largest, size=n).astype(float)


def _count(rng: Rng, n: int) -> np.ndarray:
    mean = 10.0 ** rng.uniform(-1, 4)
    if rng.random() < 0.5:
        return rng.poisson(mean, n).astype(float)
    shape = rng.uniform(0.1, 2.0)  # of the negative binomial: small ones give many zeros
    return rng.negative_binomial(shape, shape / (shape + mean), n).astype(float)


def _percentage(rng: Rng, n: int) -> np.ndarray:
    return np.round(100 * rng.beta(rng.uniform(0.3, 5), rng.uniform(0.3, 5), n), 1)


def _heavy_tail(rng: Rng, n: int) -> np.ndarray:
    return np.clip(10.0 ** rng.uniform(-3, 6) * rng.standard_cauchy(n), -LARGEST / 2, LARGEST / 2)


def _boolean(rng: Rng, n: int) -> np.ndarray:
    return (rng.random(n) < rng.uniform(0.01, 0.99)).astype(float)


def _constant(rng: Rng, n: int) -> np.ndarray:
    return np.full(n, rng.choice([0.0, 1.0, 1e6]))


def _tiny_unit(rng: Rng, n: int) -> np.ndarray:
    return 1e-9 * (rng.uniform(-3, 3) + rng.standard_normal(n))


def _huge_unit(rng: Rng, n: int) -> np.ndarray:
    return 1e9 * (rng.uniform(-3, 3) + rng.standard_normal(n))


def _mostly_zero(rng: Rng, n: int) -> np.ndarray:
    """Return 1 to 10 % of values other than zero, and at least one."""
    values = rng.lognormal(rng.uniform(0, 8), 1.0, n) * (rng.random(n) < rng.uniform(0.01, 0.1))
    values[rng.integers(n)] = rng.lognormal(3.0)
    return values


def _one_hot(rng: Rng, n: int) -> np.ndarray:
    """Return a column per category, the k-th in proportion to 1 / k; the last may have one row."""
    categories = int(rng.integers(2, 13))
    shares = 1.0 / np.arange(1, categories + 1)
    drawn = rng.choice(categories, n, p=shares / shares.sum())
    if rng.random() < 0.5:
        drawn[drawn == categories - 1] = 0
        drawn[rng.integers(n)] = categories - 1
    return (drawn[:, None] == np.arange(categories)).astype(float)


Alone = Callable[[Rng, int], np.ndarray]

_ALONE: dict[str, Alone] = {
    "money": _money,
    "year": _year,
    "unix_time": _unix_time,
    "id": _id,
    "count": _count,
    "percentage": _percentage,
    "heavy_tail": _heavy_tail,
    "boolean": _boolean,
    "constant": _constant,
    "tiny_unit": _tiny_unit,
    "huge_unit": _huge_unit,
    "mostly_zero": _mostly_zero,
    "one_hot": _one_hot,
}


# Columns that are made from another one


def _any_column(rng: Rng, before: np.ndarray) -> np.ndarray:
    """Return one of the columns that the table has, or an amount of money if it has none."""
    if before.shape[1] == 0:
        return _money(rng, len(before))
    return before[:, rng.integers(before.shape[1])]


def _duplicate(rng: Rng, before: np.ndarray) -> np.ndarray:
    return _any_column(rng, before)


def _near_copy(rng: Rng, before: np.ndarray) -> np.ndarray:
    relative_noise = 10.0 ** rng.uniform(-9, -3)
    return _any_column(rng, before) * (1 + relative_noise * rng.standard_normal(len(before)))


def _other_unit(rng: Rng, before: np.ndarray) -> np.ndarray:
    return _any_column(rng, before) * 10.0 ** rng.integers(-9, 10)


def _sum(rng: Rng, before: np.ndarray) -> np.ndarray:
    """Return the sum of two columns or more, equal to them up to rounding."""
    if before.shape[1] < 2:
        return _any_column(rng, before)
    many = int(rng.integers(2, min(before.shape[1], 6) + 1))
    return before[:, rng.choice(before.shape[1], many, replace=False)].sum(axis=1)


def _offset(rng: Rng, before: np.ndarray) -> np.ndarray:
    """Return a column far from zero: up to 1e12 times its spread."""
    values = rng.standard_normal(len(before)) if rng.random() < 0.5 else _any_column(rng, before)
    spread = float(np.std(values)) or 1.0
    return values + rng.choice([-1.0, 1.0]) * spread * 10.0 ** rng.uniform(1, 12)


def _missing(rng: Rng, before: np.ndarray) -> np.ndarray:
    """Return a column in which a number stands for values that are not known."""
    kind = rng.choice(["money", "year", "count", "percentage", "boolean"])
    values = _ALONE[str(kind)](rng, len(before))
    values[rng.random(len(before)) < rng.uniform(0.01, 0.5)] = rng.choice([-999.0, 9999.0])
    return values


def _standing_alone(make: Alone) -> Callable[[Rng, np.ndarray], np.ndarray]:
    return lambda rng, before: make(rng, len(before))


COLUMN_KINDS: dict[str, Callable[[Rng, np.ndarray], np.ndarray]] = {
    **{kind: _standing_alone(make) for kind, make in _ALONE.items()},
    "duplicate": _duplicate,
    "near_copy": _near_copy,
    "other_unit": _other_unit,
    "sum": _sum,
    "offset": _offset,
    "missing": _missing,
}
"""Kind of column -> (random numbers, the columns before it) -> one column or several."""


# Targets


def _scores(rng: Rng, X: np.ndarray, outputs: int = 1) -> np.ndarray:
    """Return linear functions of the columns plus noise, about standard normal; n x outputs.

    A fifth is free of noise: classes made from them are separable, up to rounding.
    """
    n, d = X.shape
    if rng.random() < SHARE_UNRELATED:
        return rng.standard_normal((n, outputs))
    spread = X.std(axis=0)
    varies = np.ptp(X, axis=0) > 0
    units = np.where(varies, X - X.mean(axis=0), 0.0) / np.where(varies & (spread > 0), spread, 1.0)
    scores = units @ rng.standard_normal((d, outputs)) / np.sqrt(d)
    noise = rng.choice([0.0, 0.1, 0.5, 1.0, 3.0])
    return scores + noise * rng.standard_normal((n, outputs))


def _binary(rng: Rng, X: np.ndarray) -> np.ndarray:
    """Return two classes: the rows with the highest scores, from one row to all but one."""
    n = len(X)
    share = rng.choice([0.5, rng.uniform(0.05, 0.95), 2.0 / n])
    positive = int(np.clip(round(share * n), 1, n - 1))
    order = np.argsort(_scores(rng, X)[:, 0], kind="stable")
    low, high = [(0, 1), (-1, 1), (1, 2)][rng.integers(3)]
    y = np.full(n, low)
    y[order[n - positive :]] = high
    return y


def _multiclass(rng: Rng, X: np.ndarray) -> np.ndarray:
    """Return 3 to 10 classes, unbalanced; in a third of the tables one has 1 to 3 rows."""
    n = len(X)
    classes = min(int(rng.integers(3, 11)), n)
    log_shares = rng.choice([0.0, 0.5, 1.5]) * rng.standard_normal(classes)
    y = np.argmax(_scores(rng, X, classes) + log_shares, axis=1)
    if rng.random() < 1 / 3:
        rare = rng.integers(classes)
        y[np.flatnonzero(y == rare)[rng.integers(1, 4) :]] = (rare + 1) % classes
    for empty in set(range(classes)) - set(y.tolist()):
        sizes = np.bincount(y, minlength=classes)
        y[rng.choice(np.flatnonzero(y == np.argmax(sizes)))] = empty
    return y + rng.integers(2)


def _number(rng: Rng, X: np.ndarray) -> np.ndarray:
    """Return numbers in one of the units of NUMBER_UNITS."""
    unit = str(rng.choice(list(NUMBER_UNITS)))
    return _in_range(NUMBER_UNITS[unit](rng, _scores(rng, X)[:, 0]))


def _far_price(rng: Rng, score: np.ndarray) -> np.ndarray:
    """Return prices of which only the last digits differ."""
    return 1e9 + 10.0 ** rng.uniform(2, 7) * score


def _tail(rng: Rng, score: np.ndarray) -> np.ndarray:
    return 1e3 * (score + np.clip(rng.standard_cauchy(len(score)), -1e9, 1e9))


def _events(rng: Rng, score: np.ndarray) -> np.ndarray:
    """Return counts whose logarithms follow the score, at most 1e9 or so."""
    return rng.poisson(np.exp(np.clip(score + rng.uniform(-1, 4), -20, 20))).astype(float)


NUMBER_UNITS: dict[str, Callable[[Rng, np.ndarray], np.ndarray]] = {
    "plain": lambda rng, score: score,
    "linear": lambda rng, score: rng.uniform(-100, 100) + 10.0 ** rng.integers(-2, 5) * score,
    "far_price": _far_price,
    "tiny": lambda rng, score: 1e-9 * score,
    "huge": lambda rng, score: 1e9 * score,
    "tail": _tail,
    "events": _events,
}
"""Unit of a number to predict -> (random numbers, scores) -> numbers."""

TARGET_KINDS: dict[str, Callable[[Rng, np.ndarray], np.ndarray]] = {
    "binary": _binary,
    "multiclass": _multiclass,
    "number": _number,
}
"""Kind of target -> (random numbers, columns) -> labels or numbers."""

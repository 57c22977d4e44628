"""Effects with intervals over seeds, counts of runs, and sign tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

LEVEL = 0.95  # of confidence intervals
_RESAMPLES = 10_000  # of a bootstrap: ends of intervals swing by 1 % of their length


@dataclass(frozen=True)
class Interval:
    """An estimate over n runs and its 95 % confidence interval."""

    what: str
    estimate: float
    low: float
    high: float
    n: int
    method: str = "t"

    @property
    def numbers(self) -> str:
        """The estimate and its interval, where they differ; what is only rounding is 0."""
        if number(self.low) == number(self.high):
            return number(self.estimate)
        rounding = 1e-9 * max(abs(self.low), abs(self.high))
        estimate = 0.0 if abs(self.estimate) < rounding else self.estimate
        return f"{number(estimate)} [{number(self.low)}, {number(self.high)}]"

    def __str__(self) -> str:
        what = f"{self.what}: " if self.what else ""
        return f"{what}{self.numbers} ({self.n} runs, {self.method})"


@dataclass(frozen=True)
class Count:
    """In how many of n runs something was so, with an exact (Clopper-Pearson) interval."""

    what: str
    k: int
    n: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of the probability."""
        from scipy.stats import beta

        tail = (1 - LEVEL) / 2
        low = beta.ppf(tail, self.k, self.n - self.k + 1) if self.k else 0.0
        high = beta.ppf(1 - tail, self.k + 1, self.n - self.k) if self.k < self.n else 1.0
        return float(low), float(high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.what}: {self.k} of {self.n} runs [{100 * low:.0f} %, {100 * high:.0f} %]"


@dataclass(frozen=True)
class Calculation:
    """A number without randomness, such as a formula: its value is the evidence."""

    what: str

    def __str__(self) -> str:
        return f"{self.what} (calculated, no randomness)"


def mean(values: Any, what: str = "", *, method: str = "t") -> Interval:
    """Return the mean of one value per run with its interval: Student's t or the bootstrap.

    Examples
    --------
    >>> print(mean([1.0, 2.0, 3.0], "loss"))
    loss: 2 [-0.484, 4.48] (3 runs, t)
    """
    values = _checked(values, what)
    n, middle = len(values), float(values.mean())
    if method == "t":
        from scipy.stats import t

        half = float(t.ppf((1 + LEVEL) / 2, n - 1) * values.std(ddof=1) / math.sqrt(n))
        return Interval(what, middle, middle - half, middle + half, n)
    return _bootstrap(values, what, np.mean)


def median(values: Any, what: str = "") -> Interval:
    """Return the median of one value per run, with a bootstrap interval of fixed seed."""
    return _bootstrap(_checked(values, what), what, np.median)


def paired_difference(
    table: Any,
    column: str,
    first: Any,
    second: Any,
    *,
    of: str = "solver",
    method: str = "t",
    what: str = "",
) -> Interval:
    """Return the mean over seeds of `column` of `first` minus that of `second`, same seed.

    `table` has one row per seed and per value of the column `of`.
    """
    pair = differences(table, column, first, second, of=of)
    return mean(pair, what or f"{column}, {first} - {second}{_place(table)}", method=method)


def differences(table: Any, column: str, first: Any, second: Any, *, of: str = "solver") -> Any:
    """Return column of `first` minus column of `second` for every seed that both have."""
    wide = table.pivot_table(index="seed", columns=of, values=column, aggfunc="mean")
    for name in (first, second):
        if name not in wide:
            known = ", ".join(map(str, wide.columns))
            raise ValueError(f"the table has no {of} {name!r} with a {column}: it has {known}")
    return (wide[first] - wide[second]).dropna().to_numpy()


def sign_test(values: Any) -> float:
    """Return the two-sided p-value of "positive and negative are equally likely"; zeros left out.

    Examples
    --------
    >>> sign_test([1, 2, 3, 4, 5])
    0.0625
    """
    from scipy.stats import binomtest

    values = _checked(values, "sign test")
    k, n = int((values > 0).sum()), int((values != 0).sum())
    return float(binomtest(k, n).pvalue) if n else 1.0


def number(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits; thousands are written out.

    Examples
    --------
    >>> number(1648.2), number(0.00123456), number(10000.0, 4)
    ('1650', '0.00123', '10000')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if 10**digits <= abs(value) < 1e6 else text


def _bootstrap(values: np.ndarray, what: str, statistic: Any) -> Interval:
    rng = np.random.default_rng(0)
    drawn = values[rng.integers(0, len(values), (_RESAMPLES, len(values)))]
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(statistic(drawn, axis=1), [tail, 100 - tail])
    middle = float(statistic(values))
    return Interval(what, middle, float(low), float(high), len(values), "bootstrap")


def _checked(values: Any, what: str) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"{what or 'statistic'}: no verdict from {len(values)} run, repeat it")
    if not np.isfinite(values).all():
        raise ValueError(f"{what or 'statistic'}: some values are not finite")
    return values


def _place(table: Any) -> str:
    """Return on which data, where the table has one set only."""
    one = "data" in table and table["data"].nunique() == 1
    return f" on {table['data'].iloc[0]}" if one else ""

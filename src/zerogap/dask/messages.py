"""What travels between the client and the workers in a round."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.problem.gap import Terms
from zerogap.solvers.summed_newton import Sums


@dataclass(frozen=True, eq=False)
class Measure:
    """What bounds of rounding need to know of some rows."""

    squares: np.ndarray  # weighted means of x_ij^2
    width: int  # values of the longest row
    largest: np.ndarray  # sizes of the largest entries of columns
    shares: tuple[float, float]  # least and largest weight of a row

    def __add__(self, other: Measure) -> Measure:
        (least, most), (low, high) = self.shares, other.shares
        return Measure(
            self.squares + other.squares,
            max(self.width, other.width),
            np.maximum(self.largest, other.largest),
            (min(least, low), max(most, high)),
        )


@dataclass(frozen=True)
class Message:
    """What the client sends with a step."""

    u: np.ndarray
    b: Any
    mean: Any
    theta: float = 0.0  # how much of the last changes to accept
    alphas: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    job: str = "look"  # "look", "epoch" or "gather"
    rho: float = 0.0  # of the proximal term of the intercept
    grid: np.ndarray = field(default_factory=lambda: np.empty(0))
    save: bool = False


@dataclass
class Reply:
    """What a group answers: sums over its rows."""

    value: Any = 0.0  # of the loss
    excess: float = 0.0  # the rows' part of the gap
    u: Any = 0.0  # dual sum, or the change of it
    mean: Any = 0.0  # of alpha over all rows, or the change of it
    sums: Any = 0.0  # of `balance`
    conjugates: Any = 0.0  # on the grid of steps
    diagonal: Any = 0.0
    summed: Any = None  # what has an addition of its own: of a Newton step, a proof, or `Measure`
    numbers: list[np.ndarray] = field(default_factory=list)  # of `precise_balance`
    undecided: int = 0  # bytes of the rows that moved
    terms: list[Terms] = field(default_factory=list)  # of a certificate, for each offset of b
    alphas: dict[int, np.ndarray] = field(default_factory=dict)
    rows: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    origins: dict[int, str] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, which is nearly all that travels."""
        arrays = [self.u, self.diagonal, *self.alphas.values()]
        arrays += [] if self.summed is None else list(vars(self.summed).values())
        arrays += [a for row in self.rows.values() for a in row]
        return sum(getattr(a, "nbytes", 0) for a in arrays)

    @property
    def finite(self) -> bool:
        """Whether the sums are numbers."""
        numbers = [self.value, self.excess, self.u, self.mean, self.sums, self.conjugates]
        numbers += [x for terms in self.terms for x in (terms.value, terms.excess)]
        if isinstance(self.summed, Sums):
            numbers += [self.summed.value, self.summed.u, self.summed.hessian]
        return all(bool(np.isfinite(x).all()) for x in numbers)


def merge(replies: list[Reply]) -> Reply:
    """Add up answers, in the order of the groups whoever came first."""
    total = Reply()
    for name in ("value", "excess", "u", "mean", "sums", "conjugates", "diagonal", "undecided"):
        setattr(total, name, sum((getattr(reply, name) for reply in replies), start=0.0))
    columns = zip(*(reply.terms for reply in replies if reply.terms), strict=True)
    total.terms = [sum(column[1:], start=column[0]) for column in columns]
    summed = [reply.summed for reply in replies if reply.summed is not None]
    total.summed = functools.reduce(operator.add, summed) if summed else None
    total.numbers = [array for reply in replies for array in reply.numbers]
    for reply in replies:
        total.alphas |= reply.alphas
        total.rows |= reply.rows
        total.origins |= reply.origins
    return total


def sent(argument: Any) -> int:
    """Return the bytes of an argument of a task."""
    if isinstance(argument, Message):
        values = [a for pair in argument.alphas.values() for a in pair]
        return argument.u.nbytes + sum(a.nbytes for a in values)
    return getattr(argument, "nbytes", 0)

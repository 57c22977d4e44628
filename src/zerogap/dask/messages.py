"""What travels between the client and the workers in a round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.gap import Terms


@dataclass(frozen=True)
class Message:
    """What the client sends with a step."""

    u: np.ndarray
    b: Any
    mean: Any
    theta: float = 0.0  # how much of the last changes to accept
    alphas: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    job: str = "look"  # "look", "epoch" or "gather"
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
    undecided: int = 0  # bytes of the rows that moved
    terms: list[Terms] = field(default_factory=list)  # of a certificate, for each offset of b
    alphas: dict[int, np.ndarray] = field(default_factory=dict)
    rows: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    origins: dict[int, str] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, which is nearly all that travels."""
        arrays = [self.u, self.diagonal, *self.alphas.values()]
        arrays += [a for row in self.rows.values() for a in row]
        return sum(getattr(a, "nbytes", 0) for a in arrays)

    @property
    def finite(self) -> bool:
        """Whether the sums are numbers."""
        numbers = [self.value, self.excess, self.u, self.mean, self.sums, self.conjugates]
        numbers += [x for terms in self.terms for x in (terms.value, terms.excess)]
        return all(bool(np.isfinite(x).all()) for x in numbers)


def merge(replies: list[Reply]) -> Reply:
    """Add up answers, in the order of the groups whoever came first."""
    total = Reply()
    for name in ("value", "excess", "u", "mean", "sums", "conjugates", "diagonal", "undecided"):
        setattr(total, name, sum((getattr(reply, name) for reply in replies), start=0.0))
    columns = zip(*(reply.terms for reply in replies if reply.terms), strict=True)
    total.terms = [sum(column[1:], start=column[0]) for column in columns]
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

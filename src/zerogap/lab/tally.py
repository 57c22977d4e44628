"""How far the work is, and how long the rest will take."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from zerogap.lab.experiment import Cell

_SECONDS_TRUSTED = 10.0  # seconds of measured runs that weigh as much as `costs.toml`


class Group(NamedTuple):
    """Runs that take about as long as each other: one experiment on one data set."""

    experiment: str
    data: str
    timed: bool  # these run alone, whatever the number of processes


class Tally:
    """Runs done and to do, and the seconds they take.

    Parameters
    ----------
    jobs : int
        Processes.
    cells : iterable of (str, Cell)
        What is to do, with the experiment that each cell belongs to.
    kept : int
        Cells that are known from an earlier run.
    """

    def __init__(self, jobs: int, cells: Iterable[tuple[str, Cell]], kept: int = 0) -> None:
        self.jobs, self.kept, self.done, self.experiment = jobs, kept, 0, ""
        self.waiting = Counter(_group(experiment, cell) for experiment, cell in cells)
        self.total = self.waiting.total()
        self.seconds: dict[Group, list[float]] = defaultdict(list)

    def count(self, experiment: str, cell: Cell, seconds: float) -> None:
        """Count a cell as done."""
        group = _group(experiment, cell)
        self.experiment = experiment
        self.done += 1
        self.waiting[group] -= 1
        self.seconds[group].append(seconds)

    @property
    def left(self) -> float:
        """Seconds left: each waiting run takes as long as its group did, or as `costs.toml` says.

        `costs.toml` is from another machine, so its seconds are scaled by those measured here.  One
        run of each group also compiles kernels or reads the data: the longest run of a group counts
        as expected, not as measured.
        """
        spent = expected = _SECONDS_TRUSTED
        for group, found in self.seconds.items():
            if _known(group):
                spent += sum(found) - max(found)
                expected += (len(found) - 1) * _expected(group)
        scale = spent / expected
        total = {False: 0.0, True: 0.0}
        for group, count in self.waiting.items():
            own = self.seconds.get(group, [])
            guess = scale * _expected(group)
            if own and _known(group):
                guess = (guess + sum(own) - max(own)) / len(own)
            elif own:
                guess = sum(own) / len(own)
            total[group.timed] += count * guess
        return total[False] / max(self.jobs, 1) + total[True]


def _group(experiment: str, cell: Cell) -> Group:
    return Group(experiment, cell.data.label or cell.data.name, cell.timed)


def _known(group: Group) -> bool:
    return group.experiment in _costs()


def _expected(group: Group) -> float:
    """Return the seconds of one run by `costs.toml`; a second for what it does not know."""
    known = _costs().get(group.experiment, {})
    return float(known.get(group.data, max(known.values(), default=1.0)))


@cache
def _costs() -> dict[str, dict[str, float]]:
    text = files("zerogap.lab").joinpath("costs.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)

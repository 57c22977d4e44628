"""What a run records: one row per certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from zerogap.display import BLUE, Shown, finish, new_axes, records_html, to_frame
from zerogap.problem.certificate import Certificate
from zerogap.problem.proving import Proof


@dataclass(frozen=True, eq=False, repr=False)
class Record(Shown):
    """One certified point of a run: where it stands, what it cost, and the model itself."""

    epoch: float
    updates: int
    examples: int
    seconds: float
    cpu_seconds: float
    certificate: Certificate
    w: np.ndarray
    b: float
    alpha: np.ndarray
    metrics: dict[str, float] = field(default_factory=dict)
    proof: Proof | None = None

    @property
    def gap(self) -> float:
        """Certified distance from the optimum."""
        return self.certificate.gap

    def _facts(self) -> Mapping[str, Any]:
        return {"epoch": self.epoch, **self.certificate._facts(), **self.metrics}

    def row(self) -> dict[str, float]:
        """Return the numbers of this record, by column."""
        return {
            "epoch": self.epoch,
            "updates": self.updates,
            "examples": self.examples,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "primal": self.certificate.primal,
            "dual": self.certificate.dual,
            "gap": self.gap,
            **self.metrics,
        }


class History(Mapping[str, np.ndarray]):
    """Columns of the recorded certificates.

    ``epoch``, ``updates``, ``examples``, ``seconds``, ``cpu_seconds``, ``primal``, ``dual``,
    ``gap`` and one column per recorded metric.  Seconds count updates only, never certificates.
    A slice is a history of some records.

    Parameters
    ----------
    rows : list of dict, optional
        Records to begin with, one dict of numbers each.

    Examples
    --------
    >>> import zerogap as zg
    >>> problem = zg.Problem([[1.0], [2.0]], [-1, 1], "hinge", lam=0.5)
    >>> history = zg.solve(problem, zg.SDCA(), tol=1e-6, record="epoch").history
    >>> bool(history["gap"][-1] <= history["gap"][0])
    True
    """

    def __init__(self, rows: list[dict[str, float]] | None = None) -> None:
        self._rows = list(rows or [])

    def append(self, row: dict[str, float]) -> None:
        """Add one row.

        Parameters
        ----------
        row : dict of str to float
            A value for each column.
        """
        self._rows.append(row)

    @property
    def rows(self) -> list[dict[str, float]]:
        """The records, oldest first."""
        return self._rows

    @overload
    def __getitem__(self, column: str) -> np.ndarray: ...

    @overload
    def __getitem__(self, column: slice) -> History: ...

    def __getitem__(self, column: str | slice) -> np.ndarray | History:
        if isinstance(column, slice):
            return History(self._rows[column])
        if column not in self:
            raise KeyError(f"no column {column!r}: there are {', '.join(self)}")
        return np.array([row[column] for row in self._rows])

    def __contains__(self, column: object) -> bool:
        return bool(self._rows) and column in self._rows[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows[0] if self._rows else ())

    def __len__(self) -> int:
        return len(self._rows[0]) if self._rows else 0

    def __repr__(self) -> str:
        return f"History({len(self._rows)} records of {', '.join(self)})"

    def _repr_html_(self) -> str:
        return records_html(self._rows, "History")

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, a row per record (needs pandas).

        Returns
        -------
        pandas.DataFrame
        """
        return to_frame(self._rows)

    def plot(self, x: str = "epoch", ax: Any = None) -> Any:
        """Draw the gap along the run, on a logarithmic axis (needs matplotlib).

        Parameters
        ----------
        x : str
            The column to draw it against, such as "epoch", "examples" or "seconds".
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
        """
        axes = new_axes(ax)
        gaps = np.where(self["gap"] > 0.0, self["gap"], np.nan)  # zero has no place on the axis
        axes.semilogy(self[x], gaps, "o-", ms=3, color=BLUE)
        label = {"epoch": "epochs (passes over the data)", "examples": "rows read"}.get(x, x)
        return finish(axes, xlabel=label, ylabel="duality gap: proved distance from the optimum")

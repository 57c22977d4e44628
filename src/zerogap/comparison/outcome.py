"""What a comparison leaves: runs, curves, a summary, and files that show them."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zerogap.comparison.page import render
from zerogap.comparison.pictures import draw, save_figure
from zerogap.comparison.styles import style
from zerogap.display import Shown, finish, new_axes, records_html, to_frame
from zerogap.problem import Problem
from zerogap.problem.certificate import Certificate
from zerogap.solvers import Result, Solver

COLUMNS = ("epoch", "examples", "seconds", "cpu_seconds", "primal", "dual", "gap")


@dataclass(frozen=True, eq=False)
class Run:
    """One run of one solver."""

    name: str
    solver: Solver
    seed: int
    result: Result

    @property
    def final(self) -> dict[str, float]:
        """The record of the answer."""
        rows, epochs = self.result.history.rows, self.result.certificate.epochs
        return next(row for row in rows if row["epoch"] == epochs)


class Curve(NamedTuple):
    """Median, smallest and largest value over the runs of a solver, against the median of x."""

    x: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Summary:
    """How a solver did: medians over its runs, and the certificate with the largest gap."""

    name: str
    solver: str
    runs: int
    reached: int
    epochs: float
    examples: float
    seconds: float
    suboptimality: float
    test_error: float
    certificate: Certificate

    @property
    def verdict(self) -> str:
        """Why its runs ended."""
        if self.reached == self.runs:
            return "reached"
        reason = self.certificate.stop_reason.replace("_", " ")
        return reason if self.reached == 0 else f"{self.reached} of {self.runs} reached"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """What `compare` returns: all runs with their histories, and the best proved lower bound.

    Attributes
    ----------
    problem : Problem
        What was solved.
    tol : float
        The relative gap that was asked for.
    runs : tuple of Run
        Name, solver, seed and `Result` of each run.
    lower, upper : float
        The optimum lies between them: the largest dual and the smallest primal value of all
        certificates, those of a long run of SDCA after the comparison included.
    error_name : str
        What the column ``test_error`` holds, empty if there were no test data.
    data : str
        Name of the data.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    problem: Problem
    tol: float
    runs: tuple[Run, ...]
    lower: float
    upper: float
    error_name: str = ""
    data: str = ""
    interrupted: bool = False

    def _facts(self) -> Mapping[str, Any]:
        return {
            "problem": self.problem,
            "solvers": len(self.names),
            "runs": len(self.runs),
            "optimum at least": float(self.lower),
            "optimum at most": float(self.upper),
        }

    def _repr_html_(self) -> str:
        return records_html([self._line(line) for line in self.summary()], repr(self))

    @staticmethod
    def _line(line: Summary) -> dict[str, Any]:
        return {
            "solver": line.name,
            "epochs": line.epochs,
            "seconds": line.seconds,
            "above the best bound": line.suboptimality,
            "relative gap": line.certificate.relative_gap,
            "result": line.verdict,
        }

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, a row per record of each run (needs pandas).

        Returns
        -------
        pandas.DataFrame
        """
        return to_frame(self.rows())

    def plot(self, ax: Any = None) -> Any:
        """Draw the gap of each solver against epochs, median of its runs (needs matplotlib).

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
        """
        axes = new_axes(ax)
        for k, name in enumerate(self.names):
            look, curve = style(k), self.curve(name, "epoch", "gap")
            middle = np.where(curve.middle > 0, curve.middle, np.nan)
            dashes = (0, look.dashes) if look.dashes else "-"
            axes.semilogy(curve.x, middle, color=look.colour, ls=dashes, label=name)
        return finish(axes, xlabel="epochs (passes over the data)", ylabel="duality gap")

    @property
    def names(self) -> list[str]:
        """Names of the solvers that ran."""
        return list(dict.fromkeys(run.name for run in self.runs))

    @property
    def target(self) -> float:
        """The gap that was asked for, as a difference of objectives."""
        return self.tol * abs(self.upper)

    @property
    def is_share(self) -> bool:
        """Whether the test error is a share of rows, to be shown in percent."""
        return self.problem.loss.task != "regression"

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per record of each run, all with the same keys.

        Returns
        -------
        list of dict
            Solver, seed, and the columns of the history.
        """
        return [self._row(run, row) for run in self.runs for row in run.result.history.rows]

    def _row(self, run: Run, row: dict[str, float]) -> dict[str, Any]:
        extra = {"test_error": row["test_error"]} if self.error_name else {}
        values = {column: row[column] for column in COLUMNS}
        distance = max(row["primal"] - self.lower, 0.0)  # less than zero by rounding only
        return {"solver": run.name, "seed": run.seed, **values, "suboptimality": distance, **extra}

    def curve(self, name: str, x: str, y: str) -> Curve:
        """Return column y of a solver against column x, over its runs.

        It ends where half of the runs have stopped; those keep their last values until then.

        Parameters
        ----------
        name : str
            Name of the solver.
        x, y : str
            Columns of the history.

        Returns
        -------
        Curve
            The median over seeds, and how far they spread.
        """
        histories = [
            [self._row(run, row) for row in run.result.history.rows]
            for run in self.runs
            if run.name == name
        ]
        length = sorted(len(rows) for rows in histories)[len(histories) // 2]
        full = [(rows + rows[-1:] * length)[:length] for rows in histories]
        xs = np.array([[row[x] for row in rows] for rows in full])
        ys = np.array([[row[y] for row in rows] for rows in full])
        return Curve(np.median(xs, 0), np.median(ys, 0), ys.min(0), ys.max(0))

    def summary(self) -> list[Summary]:
        """Return one line per solver.

        Returns
        -------
        list of Summary
            In the order of the solvers.
        """
        return [self._summary([run for run in self.runs if run.name == n]) for n in self.names]

    def _summary(self, runs: list[Run]) -> Summary:
        finals = [self._row(run, run.final) for run in runs]
        certificates = [run.result.certificate for run in runs]

        def median(column: str) -> float:
            return float(np.median([row[column] for row in finals]))

        return Summary(
            name=runs[0].name,
            solver=repr(runs[0].solver),
            runs=len(runs),
            reached=sum(run.result.stop_reason == "converged" for run in runs),
            epochs=median("epoch"),
            examples=median("examples"),
            seconds=median("seconds"),
            suboptimality=median("suboptimality"),
            test_error=median("test_error") if self.error_name else math.nan,
            certificate=max(certificates, key=lambda c: c.relative_gap),
        )

    def save(self, folder: str | Path) -> dict[str, Path]:
        """Write curves.png, curves.svg, compare.html and records.csv; return where they are.

        Parameters
        ----------
        folder : path
            Where to; it is made if there is none.

        Returns
        -------
        dict of str to Path
            Files by name.
        """
        folder = Path(folder).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        names = {"png": "curves.png", "svg": "curves.svg"}
        paths = {kind: folder / name for kind, name in names.items()}
        figure = draw(self)
        for path in paths.values():
            save_figure(figure, path)
        paths |= {"page": folder / "compare.html", "records": folder / "records.csv"}
        paths["page"].write_text(render(self), encoding="utf-8")
        rows = self.rows()
        with paths["records"].open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return paths

"""What a sweep comes to: errors and certificates by setting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.display import Shown, as_text, new_axes, records_html, to_frame
from zerogap.problem.certificate import Certificate
from zerogap.sweeps.axes import draw_over, is_number

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Fit:
    """One model: a setting fitted to the training rows of one fold."""

    parameters: Parameters
    fold: int
    error: float
    row_spread: float  # standard error of `error` as a mean over the validation rows
    train_error: float
    certificate: Certificate


@dataclass(frozen=True, repr=False)
class Cell(Shown):
    """One setting of a sweep.

    Attributes
    ----------
    parameters : dict
        Values by name.
    fits : tuple of Fit
        One per fold.
    """

    parameters: Parameters
    fits: tuple[Fit, ...]

    def _facts(self) -> Mapping[str, Any]:
        errors = {"error": self.error, "standard error": self.standard_error}
        return {**self.parameters, **errors, "folds": len(self.fits)}

    @property
    def error(self) -> float:
        """Mean over the folds of the error on the validation rows."""
        return math.fsum(fit.error for fit in self.fits) / len(self.fits)

    @property
    def standard_error(self) -> float:
        """Standard error of `error`: between folds, or between rows if there is one fold."""
        if len(self.fits) == 1:
            return self.fits[0].row_spread
        return standard_error(np.array([fit.error for fit in self.fits]))

    @property
    def train_error(self) -> float:
        """Mean over the folds of the error on the training rows."""
        return math.fsum(fit.train_error for fit in self.fits) / len(self.fits)

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """A proof for each fit."""
        return tuple(fit.certificate for fit in self.fits)

    @property
    def relative_gap(self) -> float:
        """The largest relative gap of the fits."""
        return max(certificate.relative_gap for certificate in self.certificates)

    def row(self) -> dict[str, Any]:
        """Return the setting and what it came to, as columns of a table."""
        return {
            **self.parameters,
            "error": self.error,
            "standard_error": self.standard_error,
            "train_error": self.train_error,
            "relative_gap": self.relative_gap,
            "epochs": math.fsum(c.epochs for c in self.certificates) / len(self.fits),
            "seconds": math.fsum(c.seconds for c in self.certificates),
        }


@dataclass(frozen=True, repr=False)
class Sweep(Shown):
    """The outcome of a sweep.

    Attributes
    ----------
    cells : tuple of Cell
        The settings, in the order of the grid.
    folds, asked_folds : int
        Folds that every cell has, and folds that were asked for; less only after Ctrl-C.
    measure : str
        What the errors are: "misclassified rows", or the mean loss of a regression.
    tol : float
        Relative gap that was asked for.
    interrupted : bool
        Whether Ctrl-C ended the sweep; a first fold that is not whole then lacks some cells.
    """

    cells: tuple[Cell, ...]
    folds: int
    asked_folds: int
    measure: str
    tol: float
    interrupted: bool = False

    def _facts(self) -> Mapping[str, Any]:
        best = ", ".join(f"{name}={as_text(v)}" for name, v in self.best.parameters.items())
        return {
            "settings": len(self.cells),
            "folds": self.folds,
            "measure": self.measure,
            "lowest error": float(self.best.error),
            "at": best,
        }

    def _repr_html_(self) -> str:
        return records_html([cell.row() for cell in self.cells], "Sweep")

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, a row per setting (needs pandas).

        Returns
        -------
        pandas.DataFrame
        """
        return to_frame([cell.row() for cell in self.cells])

    def plot(self, name: str = "", ax: Any = None) -> Any:
        """Draw the error over one parameter, at the best values of the others (needs matplotlib).

        Parameters
        ----------
        name : str, optional
            The parameter; by default the first one that has several values.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
        """
        axes = new_axes(ax)
        draw_over(axes, self, name or (self.swept or tuple(self.cells[0].parameters))[0])
        return axes

    @property
    def swept(self) -> tuple[str, ...]:
        """Names of the parameters that have more than one value."""
        names = self.cells[0].parameters
        return tuple(name for name in names if len(self.values(name)) > 1)

    def values(self, name: str) -> list[Any]:
        """Return the values of a parameter, in increasing order if they are numbers.

        Parameters
        ----------
        name : str
            A parameter of the grid.

        Returns
        -------
        list
            Its values.
        """
        values = list(dict.fromkeys(cell.parameters[name] for cell in self.cells))
        return sorted(values) if all(is_number(value) for value in values) else values

    @property
    def best(self) -> Cell:
        """The cell of the lowest validation error; the largest lambda among equals."""
        return min(self.cells, key=lambda cell: (cell.error, -_lam(cell)))

    @property
    def simplest(self) -> Cell:
        """The largest lambda, whatever the rest, within one standard error of the best cell."""
        limit = self.best.error + self.best.standard_error
        close = [cell for cell in self.cells if cell.error <= limit]
        return min(close, key=lambda cell: (-_lam(cell), cell.error))

    @property
    def short(self) -> int:
        """Number of fits that stopped before the gap that was asked for."""
        gaps = (c.relative_gap for cell in self.cells for c in cell.certificates)
        return sum(not gap <= self.tol for gap in gaps)


def collect(fits: Sequence[Fit], settings: Sequence[Parameters], folds: int, **more: Any) -> Sweep:
    """Return the sweep of those fits, from the folds that are whole, or from the first one."""
    done = {(fit.fold, tuple(fit.parameters.values())): fit for fit in fits}
    keys = [tuple(setting.values()) for setting in settings]
    whole = sum(all((fold, key) in done for key in keys) for fold in range(folds))
    kept = max(1, whole)
    cells = tuple(
        Cell(setting, tuple(done[fold, key] for fold in range(kept)))
        for setting, key in zip(settings, keys, strict=True)
        if (0, key) in done
    )
    return Sweep(cells, kept, folds, **more)


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of the mean of the values."""
    if len(values) < 2:
        return math.nan
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def _lam(cell: Cell) -> float:
    return cell.parameters.get("lam") or 0.0

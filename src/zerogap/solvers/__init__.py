"""Solvers, one file each, and the loop that runs them."""

from __future__ import annotations

from typing import Any

from zerogap.solvers.asdca import ASDCA
from zerogap.solvers.auto import Auto
from zerogap.solvers.bcfw import BCFW
from zerogap.solvers.block_newton import BlockNewton
from zerogap.solvers.block_sdca import BlockSDCA
from zerogap.solvers.gd import GD
from zerogap.solvers.interior_point import InteriorPoint
from zerogap.solvers.loop import solve
from zerogap.solvers.multiclass_lbfgs import MulticlassLBFGS
from zerogap.solvers.multiclass_newton import MulticlassNewton
from zerogap.solvers.newton import Newton
from zerogap.solvers.pegasos import Pegasos
from zerogap.solvers.protocol import Solver, State
from zerogap.solvers.result import Result
from zerogap.solvers.sdca import SDCA
from zerogap.solvers.sgd import SGD

__all__ = [
    "ASDCA",
    "BCFW",
    "GD",
    "SDCA",
    "SGD",
    "SOLVERS",
    "Auto",
    "BlockNewton",
    "BlockSDCA",
    "InteriorPoint",
    "MulticlassLBFGS",
    "MulticlassNewton",
    "Newton",
    "Pegasos",
    "Result",
    "Solver",
    "State",
    "as_solver",
    "solve",
]

SOLVERS: dict[str, type[Solver]] = {
    "auto": Auto,
    "sdca": SDCA,
    "asdca": ASDCA,
    "pegasos": Pegasos,
    "sgd": SGD,
    "gd": GD,
    "bcfw": BCFW,
    "newton": Newton,
    "interior-point": InteriorPoint,
}
"""Solvers by the name that estimators and the command line accept."""


def as_solver(solver: Any) -> Solver:
    """Return the solver of that name, or the solver itself.

    Parameters
    ----------
    solver : str or Solver
        A name of `SOLVERS`, or a solver.

    Returns
    -------
    Solver
        The solver, with its default parameters if a name was given.

    Examples
    --------
    >>> type(as_solver("sdca")).__name__
    'SDCA'
    """
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    raise ValueError(f"unknown solver {solver!r}: choose {', '.join(SOLVERS)} or a Solver object")

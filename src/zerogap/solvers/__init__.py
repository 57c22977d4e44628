"""Solvers, one file each, and the loop that runs them."""

from __future__ import annotations

from typing import Any

from zerogap.solvers.asdca import ASDCA
from zerogap.solvers.base import Result, solve
from zerogap.solvers.bcfw import BCFW
from zerogap.solvers.gd import GD
from zerogap.solvers.pegasos import Pegasos
from zerogap.solvers.protocol import Solver, State
from zerogap.solvers.sdca import SDCA
from zerogap.solvers.sgd import SGD

__all__ = [
    "ASDCA",
    "BCFW",
    "GD",
    "SDCA",
    "SGD",
    "SOLVERS",
    "Pegasos",
    "Result",
    "Solver",
    "State",
    "as_solver",
    "solve",
]

SOLVERS: dict[str, type[Solver]] = {
    "sdca": SDCA,
    "asdca": ASDCA,
    "pegasos": Pegasos,
    "sgd": SGD,
    "gd": GD,
    "bcfw": BCFW,
}
"""Solvers by the name that estimators and the command line accept."""


def as_solver(solver: Any) -> tuple[Solver, str]:
    """Return a solver and, if the choice was ours, the reason for it."""
    if isinstance(solver, Solver):
        return solver, ""
    if solver == "auto":
        return SDCA(), "chosen automatically: exact dual steps suit every loss and shape of data"
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver](), ""
    raise ValueError(
        f"unknown solver {solver!r}: choose 'auto', {', '.join(SOLVERS)} or a Solver object"
    )

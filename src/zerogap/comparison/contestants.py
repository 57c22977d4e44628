"""Who runs: solvers by name, their options in a compact syntax, and short names for the results."""

from __future__ import annotations

import dataclasses

from zerogap._params import parse
from zerogap.problem import Problem
from zerogap.solvers import SOLVERS, Solver

_DEFAULTS = ("sdca", "asdca:batch_size=8", "pegasos", "pegasos:batch_size=8", "sgd")
_DEFAULTS_MULTICLASS = ("sdca", "bcfw", "sgd", "gd")


def parse_solver(text: str) -> Solver:
    """Return the solver that a text such as ``pegasos:batch_size=8:projection=true`` describes.

    Examples
    --------
    >>> parse_solver("bcfw:batch_size=16")
    BCFW(batch_size=16, ...)
    """
    return parse(text, SOLVERS)


def default_solvers(problem: Problem) -> tuple[list[Solver], dict[str, str]]:
    """Return the solvers to compare on this problem, and why others of the usual ones cannot."""
    multiclass = problem.loss.task == "multiclass"
    able, unable = [], {}
    for text in _DEFAULTS_MULTICLASS if multiclass else _DEFAULTS:
        solver = parse_solver(text)
        try:
            solver.check(problem)
            able.append(solver)
        except ValueError as error:
            unable[short_name(solver)] = str(error).removeprefix(f"{solver!r}: ")
    return able, unable


def short_name(solver: Solver) -> str:
    """Return the solver's class and the options that are not the default.

    Examples
    --------
    >>> short_name(parse_solver("pegasos:batch_size=8:projection=true"))
    'Pegasos(batch_size=8, projection=True)'
    """
    changed = [
        f"{field.name}={getattr(solver, field.name)!r}"
        for field in dataclasses.fields(solver)
        if getattr(solver, field.name) != field.default
    ]
    return type(solver).__name__ + (f"({', '.join(changed)})" if changed else "")

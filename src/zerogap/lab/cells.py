"""What a cell does by default: run a solver and return its records as rows of the tidy table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from zerogap._params import parse
from zerogap.comparison import error_rate
from zerogap.lab.data import Loaded
from zerogap.lab.experiment import Cell
from zerogap.lab.functions import find
from zerogap.losses import ALL_LOSSES, Loss
from zerogap.problem import Problem
from zerogap.problem.checks import code_targets
from zerogap.solvers import SOLVERS, solve

Rows = list[dict[str, Any]]
Metric = Callable[[np.ndarray, Any], float]


def run_solver(cell: Cell, data: Loaded) -> Rows:
    """Run the arm's solver on the cell's problem; a row per record."""
    problem, test = make_problem(cell, data)
    solver = parse(cell.arm.solver, SOLVERS)
    epochs = cell.epochs
    if cell.arm.updates is not None:  # half an update less, which `solve` rounds up
        epochs = (cell.arm.updates - 0.5) / solver.epoch_length(problem)
    end = cell.record == "end"
    at_end = sys.maxsize // 4 if cell.tol == 0 else "auto"  # a target has to be looked for
    result = solve(
        problem,
        solver,
        tol=cell.tol,
        max_epochs=epochs,
        record=at_end if end else cell.record,  # type: ignore[arg-type]
        metrics=make_metrics(cell, problem, data, test),
        random_state=cell.seed,
    )
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt
    rows = result.history.rows
    return [{"lam": problem.lam, **row} for row in (rows[-1:] if end else rows)]


def make_problem(cell: Cell, data: Loaded) -> tuple[Problem, np.ndarray | None]:
    """Return the cell's problem, and the test targets coded in the same way."""
    loss = make_loss(cell.loss)
    y, y_test = code_targets(loss, data.y, data.y_test, cell.data.label or cell.data.name)
    return Problem(data.X, y, loss, cell.lam, fit_intercept=cell.intercept), y_test


def make_loss(text: str) -> Loss:
    """Return the loss that a text such as "smooth-hinge:gamma=0.1" describes."""
    return parse(text, ALL_LOSSES)


def optimum(problem: Problem, tol: float = 1e-8, max_epochs: float = 10_000) -> Any:
    """Return a long run of SDCA: its certificate holds the optimum between dual and primal."""
    return solve(problem, SOLVERS["sdca"](), tol=tol, max_epochs=max_epochs, random_state=0)


def make_metrics(cell: Cell, problem: Problem, data: Loaded, y_test: Any) -> dict[str, Metric]:
    """Return the functions of (w, b) to record, by column."""
    columns: dict[str, Metric] = {}
    for text in cell.metrics:
        name, _, argument = text.partition(":")
        if name in METRICS:
            columns |= METRICS[name](problem, data, y_test, argument)
        elif argument:
            columns[argument] = find(text)(problem, data, y_test)
        else:
            known = ", ".join(METRICS)
            raise ValueError(f"unknown metric {text!r}: choose {known} or a function")
    return columns


def _primal(problem: Problem, data: Loaded, y_test: Any, loss: str) -> dict[str, Metric]:
    other = problem.with_loss(make_loss(loss))
    return {f"{loss.partition(':')[0].replace('-', '_')}_primal": other.primal}


def _train_error(problem: Problem, data: Loaded, y_test: Any, _: str) -> dict[str, Metric]:
    return {"train_error": error_rate(data.X, problem.y, problem.loss.task)}


def _test_error(problem: Problem, data: Loaded, y_test: Any, _: str) -> dict[str, Metric]:
    if y_test is None:
        raise ValueError("test_error needs test rows: give Data a share, as in test=0.25")
    return {"test_error": error_rate(data.X_test, y_test, problem.loss.task)}


def _coordinates(problem: Problem, data: Loaded, y_test: Any, _: str) -> dict[str, Metric]:
    def coordinate(j: int) -> Metric:
        return lambda w, b: float(w[j])

    return {f"w{j + 1}": coordinate(j) for j in range(problem.shape[1])}


def _norm(problem: Problem, data: Loaded, y_test: Any, _: str) -> dict[str, Metric]:
    return {"norm": lambda w, b: float(np.linalg.norm(w))}


METRICS: dict[str, Callable[..., dict[str, Metric]]] = {
    "test_error": _test_error,
    "train_error": _train_error,
    "primal": _primal,
    "coordinates": _coordinates,
    "norm": _norm,
}
"""Metrics by name: (problem, data, y_test, argument) -> columns.

"primal:hinge" is the objective with another loss than the one that is minimised, as the column
``hinge_primal``; "coordinates" are the columns w1, w2, ...  A function of a module (problem, data,
y_test) -> function of (w, b) is a metric, too.
"""

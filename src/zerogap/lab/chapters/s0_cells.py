"""Cells of chapter S0: the report's theorems held against runs, and what its tables describe."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerogap import bounds
from zerogap._params import parse
from zerogap.lab.cells import Metric, error_rate, make_problem, optimum
from zerogap.lab.data import Loaded
from zerogap.lab.experiment import Cell
from zerogap.problem import Problem
from zerogap.solvers import SDCA, SOLVERS, solve

_ROUNDING = 1e-9  # relative to the objective


def angle(problem: Problem, data: Loaded, y_test: Any) -> Metric:
    """Return the metric: angle between w and the true parameter, in degrees."""
    beta = np.asarray(data.beta)
    beta = beta / np.linalg.norm(beta)

    def degrees(w: np.ndarray, b: Any) -> float:
        along = float(w @ beta)
        return math.degrees(math.atan2(float(np.linalg.norm(w - along * beta)), along))

    return degrees


def beta_error(problem: Problem, data: Loaded, y_test: Any) -> Metric:
    """Return the metric: test error of the true parameter, the same for all w."""
    error = error_rate(data.X_test, y_test, problem.loss.task)(np.asarray(data.beta), 0.0)
    return lambda w, b: error


def largest_norm(problem: Problem, data: Loaded, y_test: Any) -> Metric:
    """Return the metric: norm of the largest row, the same for all w."""
    radius = math.sqrt(float(problem.sqnorms.max()))
    return lambda w, b: radius


def description(cell: Cell, data: Loaded) -> list[dict[str, Any]]:
    """Return shape, share of the positive class and lengths of the rows."""
    problem, _ = make_problem(cell, data)
    n, d = problem.shape
    norms = np.sqrt(problem.sqnorms)
    row = {"n": n, "d": d, "positive": float(np.mean(problem.y > 0))}
    return [row | {"mean_norm": float(norms.mean()), "largest_norm": float(norms.max())}]


def duality(cell: Cell, data: Loaded) -> list[dict[str, Any]]:
    """Check weak and strong duality, the rule to stop, and what a dual accuracy guarantees.

    A row per statement: the smallest of right side minus left side over the records of a run, as a
    share of the objective; negative means violated.
    """
    problem, _ = make_problem(cell, data)
    best = optimum(problem, tol=1e-10).certificate
    solver = parse(cell.arm.solver, SOLVERS)
    run = solve(
        problem, solver, tol=0, max_epochs=cell.epochs, record=1.1, random_state=cell.seed
    ).history
    primal, dual = run["primal"], run["dual"]
    # |w - w*|^2 <= 2 eps_D / lambda, and no slope of P is larger than R + lambda |w|
    slope = math.sqrt(float(problem.sqnorms.max())) + math.sqrt(2 * problem.lam)
    promised = slope * np.sqrt(2 * np.maximum(best.primal - dual, 0.0) / problem.lam)
    stopped = solve(
        problem, solver, tol=cell.arm.columns["eps"], random_state=cell.seed
    ).certificate
    wanted = cell.arm.columns["eps"] * stopped.primal
    slack = {
        "weak duality": min((best.primal - dual).min(), (primal - best.dual).min()),
        "strong duality": 1e-9 * best.primal - best.gap,
        "stopping rule": min(wanted - stopped.gap, stopped.gap - (stopped.primal - best.primal)),
        "dual accuracy": (promised - (primal - best.primal)).min(),
    }
    return [
        {
            "statement": name,
            "checks": len(primal) if name in ("weak duality", "dual accuracy") else 1,
            "slack": _share(float(value), best.primal),
            "stopped_after": stopped.epochs,
        }
        for name, value in slack.items()
    ]


def steps_to_accuracy(cell: Cell, data: Loaded) -> list[dict[str, Any]]:
    """Return how many updates bring P(w) - P* below eps for good, and the theorems' numbers.

    Rows must have norm 1 at most.  What a run does not reach takes infinitely many.
    """
    problem, _ = make_problem(cell, data)
    best = optimum(problem).certificate
    solver = parse(cell.arm.solver, SOLVERS)
    run = solve(
        problem, solver, tol=0, max_epochs=cell.epochs, record=1.05, random_state=cell.seed
    ).history
    far, updates = run["primal"] - best.dual, run["updates"]
    rows = []
    for eps in (0.3, 0.1, 0.03, 0.01):
        above = np.flatnonzero(far > eps)
        first = above[-1] + 1 if len(above) else 0
        steps = max(1.0, float(updates[first])) if first < len(far) else math.inf
        sdca = bounds.sdca(problem.shape[0], problem.lam, eps, sharp=True).iterations
        pegasos = bounds.pegasos(problem.lam, eps, projection=False).iterations
        rows.append({"eps": eps, "steps": steps, "sdca": sdca, "pegasos": pegasos})
    return rows


def promised_steps(cell: Cell, data: Loaded) -> list[dict[str, Any]]:
    """Run SDCA for the T of the theorem: gap at T, dual distance at T_0, and what was needed."""
    problem, _ = make_problem(cell, data)
    best = optimum(problem).certificate
    radius = math.sqrt(float(problem.sqnorms.mean()))
    eps = cell.arm.columns["eps"]
    rows = []
    for form, sharp in (("any loss, 20 / (lambda eps)", False), ("hinge, 5 / (lambda eps)", True)):
        bound = bounds.sdca(problem.shape[0], problem.lam, eps, radius=radius, sharp=sharp)
        assert bound.t0 is not None
        solver = SDCA(sampling="random", output="average", t0=bound.t0, shrink=False)
        epochs = (bound.iterations - 0.5) / problem.shape[0]  # rounded up
        run = solve(
            problem, solver, tol=0, max_epochs=epochs, record=bound.t0, random_state=cell.seed
        ).history
        early = solve(
            problem,
            SDCA(sampling="random", shrink=False),
            tol=0,
            max_epochs=epochs,
            record=1.1,
            random_state=cell.seed,
            callback=lambda record: bool(record.gap <= eps),
        ).history
        rows.append(
            {
                "form": form,
                "eps": eps,
                "T": bound.iterations,
                "T0": bound.t0,
                "gap_at_T": float(run["gap"][-1]),
                "dual_distance_at_T0": best.primal - float(run["dual"][1]),
                "needed": int(early["updates"][-1]),
            }
        )
    return rows


def _share(slack: float, objective: float) -> float:
    """Return a slack as a share of the objective, 0 where that is rounding."""
    share = slack / objective
    return 0.0 if abs(share) < _ROUNDING else share

"""Cells of chapter S2: the report's settings, its closed-form logistic step, its stopping times."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zerogap import bounds
from zerogap.kernels.jit import kernel
from zerogap.lab.cells import Metric, Rows, make_problem, optimum, run_solver
from zerogap.lab.data import Loaded
from zerogap.lab.experiment import Cell
from zerogap.losses import Logistic
from zerogap.problem import Problem
from zerogap.solvers import SDCA, solve

TARGET = 1e-3  # the duality gap of the report's table 2
CLOSED = "logistic:approximate=true"  # the step that the report used
# the report's modified Newton method: tolerance of the derivative, inner steps, way back inside
NEWTON_TOLERANCE, NEWTON_STEPS, NEWTON_SHRINK = 1e-6, 10, 0.1


def test_accuracy(problem: Problem, data: Loaded, y_test: Any) -> Metric:
    """Return the metric "share of test rows that are right"; a score of 0 means +1, as there."""

    def accuracy(w: np.ndarray, b: Any) -> float:
        z = data.X_test @ w.T + b
        predicted = z.argmax(axis=1) if z.ndim == 2 else np.where(z >= 0, 1.0, -1.0)
        return float(np.mean(predicted == y_test))

    return accuracy


def majority(problem: Problem, data: Loaded, y_test: Any) -> Metric:
    """Return the metric "accuracy of always naming the training rows' most frequent class"."""
    values, counts = np.unique(problem.y, return_counts=True)
    share = float(np.mean(y_test == values[counts.argmax()]))
    return lambda w, b: share


def distance(problem: Problem, data: Loaded, y_test: Any) -> Metric:
    """Return the metric |w - w*| / |w*|, with w* from a long run of SDCA."""
    best = optimum(problem, 1e-10).w
    return lambda w, b: float(np.linalg.norm(w - best) / np.linalg.norm(best))


def reported(cell: Cell, data: Loaded) -> Rows:
    """Run the arm with what table 1 of the report has for these data.

    The column lam_of says whose lambda: SGD's `c` there is 1 / lambda, SDCA's is lambda.
    """
    return run_solver(_as_reported(cell), data)


def sweep(cell: Cell, data: Loaded) -> Rows:
    """Run the arm with one of c and eps changed; its answer is the last iterate or the report's.

    The report's code returned the iterate with the smallest c sum_i phi_i + |w|^2 / 2, which is
    not the objective that was minimised.
    """
    asked = cell.arm.columns
    changed = replace(cell.data, columns={**cell.data.columns, asked["sweeps"]: asked["value"]})
    chosen = _as_reported(replace(cell, data=changed))
    rows = run_solver(chosen, data)
    row = rows[-1]
    if asked["answer"] == "returned":
        c = changed.columns["c_sdca" if asked["lam_of"] == "SDCA" else "c_sgd"]
        row = min(rows, key=lambda row: recorded_loss(row, c, len(data.y)))
    return [row]


def recorded_loss(row: Any, c: Any, n: Any) -> Any:
    """Return c sum_i phi_i + |w|^2 / 2, the loss that the report's code recorded."""
    square = 0.5 * row["norm"] ** 2
    return c * n * (row["primal"] - row["lam"] * square) + square


def _as_reported(cell: Cell) -> Cell:
    table, asked = cell.data.columns, cell.arm.columns
    lam = table["c_sdca"] if asked["lam_of"] == "SDCA" else 1.0 / table["c_sgd"]
    arm = cell.arm
    if arm.solver.startswith("sgd"):  # w -= eps (w + c phi') is a step of eps c on lambda = 1 / c
        step = min(table["eps"] * table["c_sgd"], 1.0 / lam)
        arm = replace(arm, solver=f"{arm.solver}:step={step!r}")
    return replace(cell, lam=lam, arm=arm, intercept=asked.get("intercept", False))


def from_anywhere(cell: Cell, data: Loaded) -> Rows:
    """Run SDCA from random dual variables; a row with where it ended."""
    problem, _ = make_problem(_as_reported(cell), data)
    alpha = problem.y * np.random.default_rng(cell.seed).uniform(size=len(problem.y))
    start = problem.weights(alpha), 0.0, alpha
    solver = SDCA(sampling="random", shrink=False)
    budget: Any = {"tol": 0.0, "max_epochs": cell.epochs, "random_state": cell.seed}
    result = solve(problem, solver, warm_start=start, **budget)
    away = distance(problem, data, None)
    return [
        {
            "lam": problem.lam,
            "start": away(start[0], 0.0),
            "end": away(result.w, 0.0),
            "primal": result.certificate.primal,
            "gap": result.certificate.gap,
        }
    ]


@dataclass(frozen=True)
class SmoothStep(Logistic):
    """The logistic loss with the step that the theory has for any 1/4-smooth loss."""

    def dual_step(self, a, y, z, q):
        return (-self.derivative(z, y) - a) / (1.0 + 0.25 * q)


RULES = {"exact": Logistic(), "published": Logistic(approximate=True), "theory": SmoothStep()}


@kernel
def _logistic_steps(problem, rule, order, alpha, w, shares):
    """Dual steps by the loss `rule` for each i in `order`.

    shares[k] is the gain in the dual as a share of the exact step's, NaN where there is nothing to
    gain.
    """
    rows, loss = problem.rows, problem.loss
    for k in range(len(order)):
        i = order[k]
        a, y, s = alpha[i], problem.y[i], problem.share[i]
        z = rows.dot(i, w, problem.penalty)
        q = s * problem.sqnorms[i] / problem.lam
        step, best = rule.dual_step(a, y, z, q), loss.dual_step(a, y, z, q)
        here = loss.conjugate(a, y)
        gain = here - loss.conjugate(a + step, y) - step * z - 0.5 * q * step * step
        most = here - loss.conjugate(a + best, y) - best * z - 0.5 * q * best * best
        shares[k] = gain / most if most > 1e-9 else np.nan
        alpha[i] = a + step
        rows.add_to(w, i, s * step / problem.lam)


def logistic_steps(cell: Cell, data: Loaded) -> Rows:
    """Run SDCA with the arm's rule for the logistic step; a certified row per epoch."""
    chosen = _as_reported(cell)
    problem, _ = make_problem(chosen, data)
    rng = np.random.default_rng(cell.seed)
    rule = RULES[cell.arm.columns["rule"]]
    n = len(problem.y)
    alpha, w, shares = np.zeros(n), np.zeros(problem.shape[1]), np.empty(n)
    q = problem.sqnorms / (n * problem.lam)
    rows: Rows = []
    for epoch in range(int(cell.epochs) + 1):
        proof = problem.certificate(w, alpha=alpha)
        rows.append(
            {"lam": problem.lam, "epoch": epoch, "updates": epoch * n, "examples": epoch * n}
        )
        rows[-1] |= {"primal": proof.primal, "dual": proof.dual, "gap": proof.gap}
        order = rng.permutation(n)
        _logistic_steps(problem, rule, order, alpha, w, shares)
        for name, some in {"share": q[order] > 0, "share_large_q": q[order] > 10}.items():
            known = shares[some & ~np.isnan(shares)]
            rows[-1][name] = float(known.mean()) if len(known) else None
    return rows


def stopping_times(cell: Cell, data: Loaded) -> Rows:
    """Return what the theorems ask for, the gap after that many updates, and what was needed."""
    X = data.X if data.X_test is None else np.concatenate([data.X, data.X_test])
    y = data.y if data.y_test is None else np.concatenate([data.y, data.y_test])
    n, lam, other = len(y), cell.data.columns["lam"], cell.data.columns["other_lam"]
    problem = Problem(X, np.where(y > 0, 1.0, -1.0), cell.loss, lam)
    as_report = problem.with_loss(Logistic(approximate=True))
    mean_square = float(problem.sqnorms.mean())
    lipschitz = bounds.sdca(n, lam, TARGET, lipschitz=1.0)
    smooth, scaled = (
        bounds.sdca(n, lam, TARGET, loss=cell.loss, output="last", radius=radius)
        for radius in (1.0, mean_square**0.5)
    )
    common: Any = {"tol": 0.0, "max_epochs": 1e6, "random_state": cell.seed}

    def gap_after(bound: bounds.Bound, **options: Any) -> float:
        solver = SDCA(sampling="random", shrink=False, **options)
        result = solve(problem, solver, max_examples=bound.iterations, record=n, **common)
        return result.certificate.gap

    def needed(problem: Problem) -> int:
        found = solve(
            problem,
            SDCA(sampling="random", shrink=False),
            record=max(1, n // 10),
            callback=lambda record: record.gap <= TARGET,
            **common,
        )
        return int(found.history["updates"][-1])

    return [
        {
            "n": n,
            "mean_square": mean_square,
            "largest_square": float(problem.sqnorms.max()),
            "lipschitz": lipschitz.iterations,
            "exchanged": bounds.sdca(n, other, TARGET, lipschitz=1.0).iterations,
            "smooth": smooth.iterations,
            "smooth_scaled": scaled.iterations,
            "gap_lipschitz": gap_after(lipschitz, output="average", t0=lipschitz.t0),
            "gap_smooth": gap_after(smooth),
            "needed": needed(as_report),
            "needed_exact": needed(problem),
        }
    ]


def step_time(cell: Cell, data: Loaded) -> Rows:
    """Time an epoch of SDCA by the arm's rule for the logistic step, in Python or compiled."""
    problem, _ = make_problem(_as_reported(cell), data)
    rule, code = cell.arm.columns["rule"], cell.arm.columns["code"]
    n = len(problem.y)
    if code == "compiled":
        loss = Logistic(approximate=rule == "closed form")
        solver = SDCA(sampling="random", shrink=False)
        budget: Any = {"tol": 0.0, "max_epochs": cell.epochs, "random_state": cell.seed}
        run = solve(problem.with_loss(loss), solver, record=n, **budget).history
        return [
            {"lam": problem.lam, "seconds_per_update": run["cpu_seconds"][-1] / run["updates"][-1]}
        ]
    step = {"closed form": closed_form_step, "Newton": newton_step}[rule]
    rng = np.random.default_rng(cell.seed)
    alpha, w = np.zeros(n), np.zeros(problem.shape[1])
    scale = 1.0 / (problem.lam * n)
    order = rng.integers(n, size=int(cell.epochs) * n)
    began = time.process_time()
    for i in order:
        x, y = data.X[i], problem.y[i]
        change = y * step(y * alpha[i], y * float(x @ w), problem.sqnorms[i] * scale)
        alpha[i] += change
        w += scale * change * x
    seconds = time.process_time() - began
    return [{"lam": problem.lam, "seconds_per_update": seconds / len(order)}]


def closed_form_step(b: float, margin: float, q: float) -> float:
    """Return the change of b = y alpha by the closed form of appendix A."""
    return (1.0 / (1.0 + math.exp(margin)) - b) / max(1.0, 0.25 + q)


def newton_step(b: float, margin: float, q: float) -> float:
    """Return the change of b = y alpha by the modified Newton method of Yu, Huang and Lin.

    It finds the root of log(z / (1 - z)) + margin + q (z - b), working on the side of 1/2 where the
    root is, so that no difference of near numbers is taken.
    """
    side = margin + q * (0.5 - b) > 0  # the root is below 1/2
    start, slope = (b, margin) if side else (1.0 - b, -margin)
    z = min(max(start, 1e-8), 0.5)
    for _ in range(NEWTON_STEPS):
        derivative = math.log(z / (1.0 - z)) + slope + q * (z - start)
        if abs(derivative) < NEWTON_TOLERANCE:
            break
        moved = z - derivative / (1.0 / (z * (1.0 - z)) + q)
        z = moved if 0.0 < moved < 1.0 else NEWTON_SHRINK * z
    return z - b if side else 1.0 - z - b

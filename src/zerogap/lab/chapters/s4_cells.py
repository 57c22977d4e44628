"""Cells of chapter S4: a plain projected Pegasos that looks at every inequality of the proofs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import issparse

from zerogap.lab.cells import make_problem, optimum
from zerogap.lab.data import Loaded
from zerogap.lab.experiment import Cell
from zerogap.problem import Problem

GRADIENT = "Gradient bound"
_ROUNDING = 1e-9  # of a difference, relative to what is subtracted


def constant(problem: Problem, data: Loaded, y_test: Any) -> Any:
    """Return the metric c = (sqrt(sigma) + R)^2 of the theorems, which is the same for all w."""
    c = (math.sqrt(problem.lam) + math.sqrt(float(problem.sqnorms.max()))) ** 2
    return lambda w, b: c


def proofs(cell: Cell, data: Loaded) -> list[dict[str, Any]]:
    """Check lemmas 1 to 5 and the gradient bound at every step; a row each with its worst slack.

    The slack is right side minus left side, as a share of the larger of the two: negative means
    that the inequality was violated.
    """
    problem, _ = make_problem(cell, data)
    k, T = cell.arm.columns["k"], cell.arm.columns["T"]
    best = optimum(problem)
    run = _Run(problem, data.X, k, cell.seed)
    names = [*(f"Lemma {j}" for j in range(1, 6)), GRADIENT]
    slack: dict[str, list[float]] = {name: [] for name in names}
    others = np.random.default_rng(cell.seed + 1)
    total = 0.0
    for t in range(1, T + 1):
        before, batch = run.w, run.draw()
        u = _in_ball(others.standard_normal(len(run.w)) * others.exponential(), run.radius)
        value, gradient = run.value(before, batch), run.gradient(before, batch)
        steepest = math.sqrt(run.lam) + run.largest
        slack[GRADIENT].append(_slack(float(np.linalg.norm(gradient)), steepest))
        bregman = 0.5 * run.lam * float(np.sum((u - before) ** 2))
        linear = float(gradient @ (u - before))
        slack["Lemma 1"].append(_slack(bregman, run.value(u, batch) - value - linear))
        half = before - gradient / (run.lam * t)
        run.w = _in_ball(half, run.radius)
        slack["Lemma 2"].append(_slack(float((u - run.w) @ (half - run.w)), 0.0, run.radius**2))
        far, near = (0.5 * run.lam * t * float(np.sum((u - w) ** 2)) for w in (before, run.w))
        size = float(gradient @ gradient) / (2 * run.lam * t)
        slack["Lemma 3"].append(_slack(-linear, far - near + size, far))
        total += value - run.value(best.w, batch)
        slack["Lemma 4"].append(_slack(total, steepest**2 / (2 * run.lam) * (1 + math.log(t))))
    slack["Lemma 5"].append(_slack(float(np.linalg.norm(best.w)), run.radius))
    return [
        {"statement": name, "checks": len(found), "worst_slack": min(found)}
        for name, found in slack.items()
    ]


def regret(cell: Cell, data: Loaded) -> list[dict[str, Any]]:
    """Return the average regret after T steps, at growing T, and the bounds of theorem 1."""
    problem, _ = make_problem(cell, data)
    k, last = cell.arm.columns["k"], cell.arm.columns["last"]
    best = optimum(problem)
    run = _Run(problem, data.X, k, cell.seed)
    c = (math.sqrt(run.lam) + run.largest) ** 2
    wanted = {int(T) for T in np.geomspace(3, last, 30)}
    rows, total = [], 0.0
    for t in range(1, last + 1):
        batch = run.draw()
        total += run.value(run.w, batch) - run.value(best.w, batch)
        run.w = _in_ball(run.w - run.gradient(run.w, batch) / (run.lam * t), run.radius)
        if t in wanted:
            bound = c * math.log(t) / (run.lam * t)
            tight = c * (1 + math.log(t)) / (2 * run.lam * t)
            rows.append({"T": t, "average_regret": total / t, "bound": bound, "tight": tight})
    return rows


class _Run:
    """Projected mini-batch Pegasos as on the slides, with its objectives f(w; A)."""

    def __init__(self, problem: Problem, X: Any, k: int, seed: int) -> None:
        self.X = X.toarray() if issparse(X) else X
        self.y, self.lam, self.k = problem.y, problem.lam, k
        self.rng = np.random.default_rng(seed)
        self.w = np.zeros(problem.shape[1])
        self.radius = 1.0 / math.sqrt(self.lam)
        self.largest = math.sqrt(float(problem.sqnorms.max()))

    def draw(self) -> np.ndarray:
        return self.rng.choice(len(self.y), self.k, replace=False)

    def value(self, w: np.ndarray, batch: np.ndarray) -> float:
        hinge = np.maximum(0.0, 1.0 - self.y[batch] * (self.X[batch] @ w))
        return 0.5 * self.lam * float(w @ w) + float(hinge.mean())

    def gradient(self, w: np.ndarray, batch: np.ndarray) -> np.ndarray:
        violated = batch[self.y[batch] * (self.X[batch] @ w) < 1.0]
        return self.lam * w - (self.y[violated] @ self.X[violated]) / len(batch)


def _in_ball(w: np.ndarray, radius: float) -> np.ndarray:
    norm = float(np.linalg.norm(w))
    return w if norm <= radius else w * (radius / norm)


def _slack(left: float, right: float, scale: float = 0.0) -> float:
    """Return right minus left as a share of their size, 0 where that is rounding."""
    size = max(abs(left), abs(right), scale)
    share = (right - left) / size if size else 0.0
    return 0.0 if abs(share) < _ROUNDING else share

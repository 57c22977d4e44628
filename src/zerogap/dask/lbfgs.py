"""L-BFGS on a cluster: the last digits of smooth objectives."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.dask.messages import Reply
from zerogap.dask.run import Rounds, Run
from zerogap.dask.workers import Restart
from zerogap.problem.row_sums import penalty_cost

PAIRS_REMEMBERED = 20  # steps and the changes of the gradient over them
MOST_STEP_LENGTHS = 10  # of one line search
DECREASE = 1e-4  # of what the slope promises: a step must gain as much (Armijo)


class LBFGS(Rounds):
    """Minimises a smooth objective: one round per evaluation, whatever the groups.

    The dual point that belongs to w has the dual sum u.  With the L2 penalty the gradient is
    lam (w - u) and, without intercept, the gap is |gradient|^2 / (2 lam) exactly.
    """

    def __init__(self, run: Run, w: np.ndarray | None = None) -> None:
        super().__init__(run)
        self.w = w  # where to begin; by default where the run is
        self.pairs: list[tuple[np.ndarray, np.ndarray]] = []
        self.x = np.empty(0)  # w and, if it is free, b
        self.scale = np.empty(0)  # curvatures along the axes
        self.value = 0.0
        self.gradient = np.empty(0)
        self.reply = Reply()

    def advance(self, runs: Any) -> None:
        """Evaluate the first point; later, make a step."""
        run = self.run
        if not len(self.x):
            self._start(run.w if self.w is None else self.w)
            return
        direction = -_two_loops(self.gradient, self.pairs, self.scale)
        here = (self.x, self.value, self.gradient, direction)
        self.x, self.value, self.gradient, self.reply, pair = _backtrack(self._look, *here)
        if pair is None:  # rounding: the objective cannot be made smaller, so this is the end
            run.ending = "max_rounds"
            self.value, self.gradient, self.reply = self._look(self.x)
        else:
            self.pairs = [*self.pairs, pair][-PAIRS_REMEMBERED:]

    def _start(self, w: np.ndarray) -> None:
        run, free = self.run, self.run.spec.fit_intercept
        self.shape = w.shape
        self.x = np.append(w.ravel(), run.b) if free else w.ravel()
        self.value, self.gradient, self.reply = self._look(self.x, first=True)
        curvature = run.spec.lam + run.loss.smoothness * self.reply.diagonal
        scale = np.broadcast_to(curvature, w.shape).ravel()
        of_intercept = np.full(np.size(run.b), run.loss.smoothness)
        self.scale = np.append(scale, of_intercept) if free else scale

    def _split(self, x: np.ndarray) -> tuple[np.ndarray, Any]:
        run, size = self.run, int(np.prod(self.shape))
        b = x[size:].reshape(np.shape(run.b)) if run.spec.fit_intercept else run.b
        return x[:size].reshape(self.shape), b

    def _look(self, x: np.ndarray, first: bool = False) -> tuple[float, np.ndarray, Any]:
        """Return P, its gradient, and the groups' answer."""
        run, (w, b) = self.run, self._split(x)
        lam, reply = run.spec.lam, run.workers.evaluate(w, b, first)
        value = reply.value + lam * penalty_cost(run.problem.penalty, w.ravel())
        gradient = lam * (w - reply.u).ravel()
        free = run.spec.fit_intercept
        return value, np.append(gradient, -reply.mean) if free else gradient, reply

    def certify(self, runs: Any) -> None:
        """Record an estimate; have the model audited if it may be good enough, or the last."""
        run = self.run
        w, run.b = self._split(self.x)
        gap = run.problem.penalty_terms(w.ravel(), np.ravel(self.reply.u))[1]
        if run.spec.fit_intercept:
            gap += 2.0 * float(np.sum(np.square(self.reply.mean)))
        run.estimated("L-BFGS", w, self.value, gap)
        run.keep(w)
        if run.ending or run.is_promising(self.value, gap):
            try:
                run.audit("L-BFGS", w, self.reply.sums, gap)
            except Restart:
                self.value, self.gradient, self.reply = self._look(self.x)
                self.certify(runs)


def _two_loops(
    gradient: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]], scale: np.ndarray
) -> np.ndarray:
    """Multiply the gradient by the inverse Hessian that L-BFGS has learned."""
    q = gradient.copy()
    factors = []
    for s, y in reversed(pairs):
        factors.append((s @ q) / (s @ y))
        q -= factors[-1] * y
    if pairs:
        s, y = pairs[-1]
        q *= (s @ y) / (y @ (y / scale))
    q /= scale
    for (s, y), factor in zip(pairs, reversed(factors), strict=True):
        q += (factor - (y @ q) / (s @ y)) * s
    return q


def _backtrack(
    look: Any, x: np.ndarray, value: float, gradient: np.ndarray, direction: np.ndarray
) -> Any:
    """Return the next point; a shorter step if the objective has not fallen enough."""
    slope, t = float(gradient @ direction), 1.0
    for _ in range(MOST_STEP_LENGTHS):
        there, then, reply = look(x + t * direction)
        if there <= value + DECREASE * t * slope + 1e-15 * abs(value):
            pair = t * direction, then - gradient
            curved = float(pair[0] @ pair[1]) > 0.0
            return x + t * direction, there, then, reply, pair if curved else None
        quadratic = -slope * t * t / (2.0 * (there - value - t * slope))
        t = min(max(quadratic, 0.1 * t), 0.5 * t)
    return x, value, gradient, reply, None

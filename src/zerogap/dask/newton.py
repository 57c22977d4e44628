"""Newton's method on a cluster, for few features: the groups send gradients and Hessians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerogap.dask.messages import Reply
from zerogap.dask.run import Rounds, Run
from zerogap.dask.workers import Restart
from zerogap.solvers.auto import IDLE_STEPS
from zerogap.solvers.summed_newton import Point, Sums, first_smoothing, intercept, step


class Newton(Rounds):
    """Minimises by Newton's method: one round for each step, and for each length that is tried."""

    def __init__(self, run: Run, w: np.ndarray | None = None) -> None:
        super().__init__(run)
        self.w = w  # where to begin; by default where the run is
        self.problem = run.problem._with(fit_intercept=run.spec.fit_intercept)
        self.point: Point | None = None
        self.recentre, self.answer = False, Reply()
        self.idle, self.least = 0, math.inf  # steps without halving the gap, the least gap

    def advance(self, runs: Any) -> None:
        """Make a step."""
        run, point = self.run, self.point or self._start()
        while True:
            try:
                if point.is_solved:
                    point.move_centre()
                    self.recentre = True
                step(self.problem, point, self._evaluate)
                break
            except Restart:
                point.sums = None
        run.b = intercept(self.problem, point.b)

    def _start(self) -> Point:
        run = self.run
        b = np.atleast_1d(np.asarray(run.b, float)) if run.spec.fit_intercept else np.empty(0)
        self.point = point = Point(w=run.w if self.w is None else self.w, b=b)
        point.gamma, point.least = first_smoothing(run, run.b)
        return point

    def _evaluate(self, w: np.ndarray, b: Any) -> Sums:
        assert self.point is not None
        bends = (self.point.gamma, self.point.damping)
        self.answer = self.run.workers.newton(w, b, bends, self.recentre)
        self.recentre = False
        return self.answer.summed

    def certify(self, runs: Any) -> None:
        """Record an estimate; have the model audited if it may be good enough, or the last."""
        run, point = self.run, self.point
        assert point is not None
        gap = point.excess + point.residual
        run.estimated("Newton", point.w, point.value, gap)
        run.keep(point.w)
        stuck = point.stalled or self.idle > IDLE_STEPS
        if run.ending or stuck or gap <= run.limits.tol * abs(point.value):
            try:
                run.audit("Newton", point.w, self.answer.sums, gap)
            except Restart:
                point.sums = None
                self.advance(runs)
                self.certify(runs)
                return
        halved = gap < 0.5 * self.least
        self.idle, self.least = (0, gap) if halved else (self.idle + 1, self.least)
        if stuck:
            run.ending = run.ending or "stalled"

"""Rounds of local epochs, whose changes a line search joins.

Reference: CoCoA (Jaggi et al., "Communication-efficient distributed dual coordinate ascent", NIPS
2014) with the line search of Lee and Chang, "Distributed block-diagonal approximation methods for
regularized empirical risk minimization", Machine Learning 109, 2020.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq

from zerogap.dask.messages import Reply
from zerogap.dask.run import Rounds, Run, totals
from zerogap.dask.workers import Restart
from zerogap.io.memory import free_memory

MOST_ROUNDS_LEFT = 4  # of local epochs: if more are to come, another way is quicker
SHARES_OF_CHANGES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of all groups, at which conjugates are known
SHARE_OF_MEMORY = 0.25  # that the undecided rows, gathered in one place, may take


class LocalEpochs(Rounds):
    """All groups run an epoch over their own rows; the client adds up as much as pays."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.grid = np.unique([*SHARES_OF_CHANGES, 1.0 / len(run.workers.groups)])
        self.gaps: list[float] = []
        self.undecided = 0.0  # bytes of the rows that moved
        self.estimate: tuple[np.ndarray, float, float]  # w, P and gap before the last changes

    def chosen(self, going: list[Any]) -> list[Any]:
        """Return the run, unless another way promises more."""
        run = self.run
        fits = run.smooth or 1.5 * self.undecided < SHARE_OF_MEMORY * free_memory()
        finishes = run.smooth or not math.isfinite(run.loss.smoothness)
        slow = _rounds_left(self.gaps, run.limits.tol) > MOST_ROUNDS_LEFT
        return [] if fits and finishes and slow else going

    def advance(self, runs: Any) -> None:
        """Make a round, and accept the share of the changes that raises the dual most."""
        run = self.run
        while True:
            try:
                reply = run.workers.step(run.message("epoch", grid=self.grid))
                break
            except Restart as lost:
                run.restart(lost.totals)
                self.gaps.clear()
        primal, gap = totals(run, reply)
        if reply.alphas:
            run.keep(run.w, reply.alphas)
        self.estimate, self.undecided = (run.w, primal, gap), reply.undecided
        self.gaps.append(gap / abs(primal) if primal else math.inf)
        run.theta = line_search(run, reply, self.grid)
        run.u = run.u + run.theta * reply.u
        shift = run.theta * reply.mean
        run.mean = run.mean + shift
        # the centre of the proximal term moves to b = centre + rho mean
        run.b = run.b + run.rho * (shift + run.mean)

    def certify(self, runs: Any) -> None:
        """Record an estimate; have the model audited if it may be good enough, or the last."""
        run, (w, primal, gap) = self.run, self.estimate
        run.estimated("epochs", w, primal, gap)
        if run.ending or run.is_promising(primal, gap):
            run.look("epochs", gap)


def line_search(run: Run, reply: Reply, grid: np.ndarray) -> float:
    """Return how much of the groups' changes to accept: the step that raises the dual most.

    Between the points of the grid the conjugates are at most their chord, so that what is
    maximised is a lower bound of the dual, exact on the grid, where 1 / groups always ascends.
    For the hinge it is exact everywhere.
    """
    du, dm = reply.u, reply.mean
    chords = np.diff(reply.conjugates) / np.diff(grid)

    def slope(theta: float, chord: float) -> float:
        w = run.problem.to_weights(run.u + theta * du)
        bias = run.b + run.rho * theta * dm
        return float(-chord - run.spec.lam * np.vdot(w, du) - np.vdot(bias, dm))

    for left, right, chord in zip(grid[:-1], grid[1:], chords, strict=True):
        if slope(right, chord) >= 0.0:
            continue
        if slope(left, chord) <= 0.0:
            return float(left)
        return float(brentq(slope, left, right, args=(chord,), xtol=1e-6))
    return 1.0


def _rounds_left(gaps: list[float], tol: float) -> float:
    """Extrapolate the better of two gaps, which go up and down, over three rounds."""
    if len(gaps) < 5:
        return 0.0
    now, before = min(gaps[-2:]), min(gaps[-5:-3])
    if now >= before:
        return math.inf
    return 3.0 * math.log(max(now / max(tol, 1e-300), 1.0)) / math.log(before / now)

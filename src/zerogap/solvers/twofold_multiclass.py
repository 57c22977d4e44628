"""Methods for many classes in twice the precision: the last resort for raw tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.kernels.twofold import rounded, times, twofold
from zerogap.solvers.interior_point import LEAST_MU, MOST_CENTRINGS
from zerogap.solvers.protocol import Answer
from zerogap.solvers.twofold_point import TwofoldPoint, TwofoldState
from zerogap.solvers.twofold_system import TwofoldLines
from zerogap.solvers.twofold_votes import (
    TwofoldVotes,
    VotesSystem,
    VotesTable,
    are_feasible,
    completed,
    duals,
)

FIRST_MU = 10.0  # over the largest difference of scores: votes then hardly depend on scores


@dataclass(frozen=True)
class TwofoldVotesPoint(TwofoldPoint):
    """`InteriorPoint` in twice the precision, for many classes and small tables.

    It begins on the central path, however far away: where mu is so large that votes do not depend
    on scores, they are the frequencies of the classes.
    """

    multiclass = True

    def begin(
        self, problem: Any, rng: np.random.Generator, warm: Answer | None = None
    ) -> TwofoldState:
        table = VotesTable.of(problem)
        inner, (C, d) = table.problem, problem.weight_shape
        share = np.full(C, 1.0 / C)
        if problem.fit_intercept:
            share = inner.share @ (inner.y[:, None] == np.arange(C)) / inner.share.sum()
        votes = completed(twofold(np.tile(share, (len(inner.y), 1))))
        sums = table.sums(duals(inner.y, votes))
        w = np.zeros((2, len(table.scale)))
        w[:, : C * d] = times(sums[:, : C * d], 1.0 / table.ridge[: C * d])
        z = table.scores(w)
        mu = FIRST_MU * max(float(np.ptp(z, axis=1).max()), 1.0)
        state = TwofoldState(rng, draw=rng, table=table)
        if problem.l1_ratio:
            of_units = inner.share.sum() / np.count_nonzero(inner.share)
            factor = inner.lam * inner.l1_ratio * table.scale[: C * d] / of_units
            mu = max(mu, FIRST_MU * float(np.abs(factor * w[0, : C * d]).max()))
            state.coordinates = TwofoldLines.of_coordinates(inner, of_units, mu)
            state.coordinates.settle(factor * rounded(w)[: C * d], mu)
        if problem.fit_intercept:
            w[0, C * d :] = -mu / share
            w[0, C * d :] -= w[0, C * d :].mean()
        state.w, state.rows = w, TwofoldVotes(inner, votes[0], mu / votes[0], votes[1])
        state.least = LEAST_MU
        return state

    def _step(self, problem: Any, state: Any) -> None:
        """Make a step; where that gains no more, go to the central path once.

        With the softmax a row's votes may be far from those of its scores, and rise by half of
        themselves at a step only.
        """
        super()._step(problem, state)
        lost = state.stalled and not self._is_near(problem, state)
        if lost and state.rows.entropy and not state.recentred and np.isfinite(state.w).all():
            state.stalled, state.idle, state.recentred = False, 0, True
            state.goal, state.centrings = state.mu, MOST_CENTRINGS

    def answer(self, problem: Any, state: Any) -> Answer:
        w, alpha = self._best(state)
        if state.rounded[0] is not w:
            system = self._system(problem, state)
            v = system.as_doubles(w)
            state.rounded = w, self._sparse(state, system, w, v) if problem.l1_ratio else v
        (C, d), table = problem.weight_shape, state.table
        v = table.by_class(state.rounded[1][0] * table.scale)
        b: Any = v[:, d].copy() if problem.fit_intercept else np.zeros(C)
        return np.ascontiguousarray(v[:, :d]), b, alpha[0].copy()

    def intercept_rest(self, problem: Any, state: Any) -> Any:
        low = state.rounded[1][1, state.table.n_weights :]
        return low.copy() if problem.fit_intercept else 0.0

    def rest(self, problem: Any, state: Any) -> np.ndarray | None:
        _, alpha = self._best(state)
        return alpha[1].copy() if are_feasible(problem, *alpha) else None

    def _system(self, problem: Any, state: Any) -> VotesSystem:
        return VotesSystem(state.table, state.w, state.rows, state.coordinates)

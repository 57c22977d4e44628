"""An interior point method in twice the precision: the last resort for raw tables."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.kernels.twofold import add
from zerogap.losses import Loss
from zerogap.solvers.history import Record
from zerogap.solvers.interior_parts import shape_of
from zerogap.solvers.interior_point import (
    CENTRED_TO,
    LEAST_MU,
    MOST_CENTRINGS,
    STEPS_WITHOUT_GAIN,
    InteriorPoint,
    InteriorPointState,
)
from zerogap.solvers.protocol import Answer
from zerogap.solvers.twofold_system import (
    Table,
    TwofoldCurves,
    TwofoldLines,
    TwofoldSystem,
    is_feasible,
)

MOST_WORK = 5e8  # n d^2 up to which the method is tried: some seconds for a step
MOST_FEATURES = 500  # features up to which the Hessian is factorised in twice the precision
COST_OF_ZEROS = 0.3  # share of the asked gap that setting small weights to zero may cost
# A weight is set to zero if it is so many times nearer to zero than its slope is to its bound; the
# three factors are tried in turn
NEARER_TO_ZERO = (1.0, 1e4, 1e8)
COOLING = 0.1  # next mu of an L1 penalty over the present one
STILL_FALLING = 0.9  # an objective below this share of its last value is still falling
LAST_ESTIMATE = 0.3  # the method ends at an estimate of this share of the asked gap
TIGHTER = 0.1  # the gap that is aimed at once certificates refute an estimate, over the last one
MOST_TIGHTER = 4  # times that this is tried


@dataclass
class TwofoldState(InteriorPointState):
    """State of `TwofoldPoint`: its weights are those of the columns of the table."""

    table: Any = field(default=None, metadata={"saved": False})
    rounded: Any = field(default=(None, None), metadata={"saved": False})  # weights, and doubles
    recentred: bool = False  # whether Newton steps have led back to the central path
    tighter: int = 0  # estimates that certificates have refuted: what is aimed at is below tol


@dataclass(frozen=True)
class TwofoldPoint(InteriorPoint):
    """`InteriorPoint` in twice the precision, for one score and small tables.

    Every operation takes some twenty times as long.  The digits suffice for columns that agree in
    ten digits, offsets of 1e12 and tiny lam.
    """

    multiclass = False

    def begin(
        self, problem: Any, rng: np.random.Generator, warm: Answer | None = None
    ) -> TwofoldState:
        table = Table.of(problem)
        state = TwofoldState(rng, draw=rng, w=np.zeros((2, len(table.scale))), table=table)
        if problem.fit_intercept:
            state.w[0, -1] = problem.first_intercept()
        inner = table.problem
        mu = self._place_rows(inner, state, table.scores(state.w))
        if problem.l1_ratio:
            share = inner.share.sum() / np.count_nonzero(inner.share)
            state.coordinates = TwofoldLines.of_coordinates(inner, share, mu)
        state.least = LEAST_MU * mu
        return state

    def _place_rows(self, inner: Any, state: TwofoldState, z: np.ndarray) -> float:
        """Set the rows' units for these scores; return the first mu."""
        state.rows = TwofoldLines.of_rows(inner, z)
        return state.rows.weigh() / state.rows.products

    def answer(self, problem: Any, state: Any) -> Answer:
        (w, alpha), d = self._best(state), problem.shape[1]
        if state.rounded[0] is not w:
            system = self._system(problem, state)
            v = system.as_doubles(w)
            state.rounded = w, self._sparse(state, system, w, v) if problem.l1_ratio else v
        v = state.rounded[1]
        b = float(v[0, d]) if problem.fit_intercept else 0.0
        return (v[0] * state.table.scale)[:d], b, alpha[0].copy()

    def intercept_rest(self, problem: Any, state: Any) -> Any:
        v, d = state.rounded[1], problem.shape[1]
        return float(v[1, d]) if problem.fit_intercept else 0.0

    def _sparse(
        self, state: Any, system: TwofoldSystem, w: np.ndarray, v: np.ndarray
    ) -> np.ndarray:
        """Return doubles for w with as many zeros as cost little, or v.

        Weights that tend to zero are nearer to it than their slopes are to the ends.
        """
        units, first_mu = state.coordinates, state.least / LEAST_MU
        slopes, sizes = np.minimum(units.t, units.s), np.maximum(units.r, units.v)
        nearer = np.zeros(w.shape[1])
        nearer[: len(sizes)] = (slopes / units.length / sizes * first_mu)[:, 0]
        enough = (1.0 + COST_OF_ZEROS * state.tol) * system.value(v)
        for much in NEARER_TO_ZERO:
            bare = system.as_doubles(w * (nearer < much))
            if system.value(bare) <= enough:
                return bare
        return v

    def rest(self, problem: Any, state: Any) -> np.ndarray | None:
        """Return what is to be added to the dual variables of the answer."""
        _, alpha = self._best(state)
        return alpha[1].copy() if is_feasible(problem, *alpha) else None

    def _best(self, state: TwofoldState) -> tuple[np.ndarray, np.ndarray]:
        near = math.isfinite(state.best)
        return (state.best_w, state.best_alpha) if near else (state.w, state.rows.alpha)

    def _system(self, problem: Any, state: Any) -> TwofoldSystem:
        return TwofoldSystem(state.table, state.w, state.rows, state.coordinates)

    def observe(self, problem: Any, state: Any, record: Record, tol: float) -> None:
        state.tol = tol * TIGHTER**state.tighter

    def tighten(self, problem: Any, state: Any) -> bool:
        """Aim at a smaller gap if certificates refute the one that was reached; tell whether."""
        near = self._is_near(problem, state)
        if near and state.tighter < MOST_TIGHTER:
            state.tighter += 1
            state.tol *= TIGHTER
            state.stalled, state.idle = False, 0
        return not state.stalled

    def _is_near(self, problem: Any, state: Any) -> bool:
        return self.relative_gap(problem, state) <= LAST_ESTIMATE * state.tol

    def _step(self, problem: Any, state: Any) -> None:
        super()._step(problem, state)
        state.stalled = state.stalled or self._is_near(problem, state)

    def relative_gap(self, problem: Any, state: Any) -> float:
        if not math.isfinite(state.best):
            return math.inf
        table, w = state.table, state.best_w
        primal = table.problem.value_at(table.scores(w), table.weights(w))
        return state.best / max(primal, 1e-300)


@dataclass(frozen=True)
class TwofoldNewton(TwofoldPoint):
    """Newton's method in twice the precision, for smooth losses.

    The kinks of an L1 penalty are rounded, less and less, as on the path of interior points.
    """

    def _place_rows(self, inner: Any, state: TwofoldState, z: np.ndarray) -> float:
        state.mu = inner.mean_loss(z) / inner.share.sum()
        state.rows = TwofoldCurves(inner)
        state.rows.settle(z, state.mu)
        return state.mu

    def _step(self, problem: Any, state: Any) -> None:
        system = self._system(problem, state)
        near = system.recentre(state.mu) <= CENTRED_TO
        value = system.objective()
        state.value = value / system.total_weight
        state.idle = 0 if value < STILL_FALLING * state.gained else state.idle + 1
        state.gained = min(value, state.gained)
        if near:
            self._land(state, self._system(problem, state))
            state.mu = max(COOLING * state.mu, state.least)
        state.stalled = (
            state.idle > STEPS_WITHOUT_GAIN + MOST_CENTRINGS or not np.isfinite(state.w).all()
        )
        state.stalled = state.stalled or self._is_near(problem, state)

    def _land(self, state: Any, system: TwofoldSystem) -> None:
        """Keep the weights of a whole step, and the dual variables whose sums belong to them."""
        dw, _ = system.turn(state.mu, exact=True)
        w, alpha = add(state.w, dw), state.rows.landing()
        gap = system.gap_of(w, alpha)
        if gap < 0.5 * state.best:
            state.idle = 0
        if gap <= state.best:
            state.best, state.best_w, state.best_alpha = gap, w, alpha


def twofold_methods(problem: Any) -> list[TwofoldPoint]:
    """Return the methods in twice the precision for a loss of one score, the better one first."""
    lines = shape_of(problem.loss)
    # measured: interior points of endless parabolas may run away where columns differ by 1e10 in
    # size, and Newton steps run from one active set to the next where classes can be separated, or
    # where parabolas end in lines, which have no curvature
    ends = math.isfinite(problem.loss.lipschitz)
    points: list[TwofoldPoint] = [TwofoldPoint()] if lines.segments else []
    if points and (ends or problem.l1_ratio):
        return points
    return [TwofoldNewton(), *points]


def can_be_twofold(problem: Any) -> bool:
    """Tell whether there is such a method for a problem, which takes seconds at most."""
    if problem.streamed or problem.on_device or problem.loss.task == "multiclass":
        return False
    loss, (n, d) = problem.loss, problem.shape
    smooth = math.isfinite(loss.smoothness) and type(loss).stiffness is not Loss.stiffness
    known = shape_of(loss).segments > 0 or smooth
    return known and d <= MOST_FEATURES and n * d * d <= MOST_WORK

"""Stochastic dual coordinate ascent on a GPU: many rows at a time, without locks.

Reference: C.-J. Hsieh, H.-F. Yu and I. S. Dhillon, "PASSCoDe: parallel asynchronous stochastic dual
coordinate descent", ICML 2015; T. Parnell, C. Dünner, K. Atasu, M. Sifalakis and H. Pozidis,
"Large-scale stochastic learning using GPUs", IPDPS 2017.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from zerogap.cuda.device import SIMULATED
from zerogap.cuda.kernels import THREADS, WIDTH, cuda, module_of, sum_of_lanes, view
from zerogap.cuda.rows import DeviceCSRRows, DeviceDenseRows
from zerogap.losses import Loss
from zerogap.penalties import L2, ElasticNet
from zerogap.problem import Problem
from zerogap.solvers.dual_start import RHO_OF_CURVATURE, warm_duals
from zerogap.solvers.history import Record
from zerogap.solvers.protocol import Answer, Solver, State

ROWS_APART = 64  # rows for each one that is worked on at a time: fewer disturb each other
ROWS_APART_AT_LAST = 32  # the same, for the few rows that still move
MOST_PASSES = 20  # over the rows that still move, between two over all
EPOCHS_BEFORE_PASSES = 32  # over the rows that still move
LEAST_GAIN = 0.01  # of what can be gained: with less, rows disturb each other
MOST_DAMPING = 4.0  # beyond, fewer rows at a time are better


@cuda.jit(device=True)
def _fresh(a, j):
    """Return a[j] as it is now: the caches of multiprocessors do not see what others add.

    For a j that changes from call to call: a compiler may ask once where j is the same.
    """
    return a[j] if SIMULATED else cuda.ldcg(a, j)


@functools.cache
def _steps_of(loss: Loss, penalty: L2 | ElasticNet) -> Any:
    """Return the kernel for a loss and a penalty."""
    dual_step, to_primal = module_of(loss).dual_step, module_of(penalty).to_primal
    convexity = penalty.convexity()

    @cuda.jit
    def steps(
        values, columns, starts, width, y, share, sqnorms, alpha, u, bias, moved, places,
        lam, rho, damping, factor, shift, first, last,
    ):  # fmt: skip
        """Maximise the dual over alpha_i alone, for the rows i = shift + k factor (mod n).

        If there are places, these are numbers of places, and the rows are those in them.

        Threads of a warp share a row; warps do not wait for each other, so that what a row sees of
        u may lack the steps of rows that are worked on at the same time.
        """
        some = places.shape[0]
        n = some if some > 0 else y.shape[0]
        lane = cuda.grid(1) % WIDTH
        for k in range(first + cuda.grid(1) // WIDTH, last, cuda.gridsize(1) // WIDTH):
            i = (shift + k * factor) % n
            i = places[i] if some > 0 else i
            start, end = i * width, (i + 1) * width
            if width == 0:
                start, end = starts[i], starts[i + 1]
            s, a, target, sqnorm = share[i], alpha[i], y[i], sqnorms[i]
            z = 0.0
            if rho > 0.0 and lane == 0:  # an atomic addition is the only way to look each time
                z = cuda.atomic.add(bias, 0, 0.0)
            for m in range(start + lane, end, WIDTH):
                j = m - start if width > 0 else columns[m]
                z += np.float64(values[m]) * to_primal(_fresh(u, j))
            z = sum_of_lanes(z)
            q = damping * s * (sqnorm / (lam * convexity) + rho)
            step = dual_step(a, target, z, q)
            if step != 0.0:
                c = s * step / lam
                for m in range(start + lane, end, WIDTH):
                    j = m - start if width > 0 else columns[m]
                    cuda.atomic.add(u, j, c * np.float64(values[m]))
                if lane == 0:
                    alpha[i], moved[i] = a + step, 1
                    if rho > 0.0:
                        cuda.atomic.add(bias, 0, rho * s * step)
                        cuda.atomic.add(bias, 1, s * step)
                if WIDTH > 1:
                    cuda.syncwarp()  # the next row is to see what all lanes have added

    return steps


@dataclass
class DeviceSDCAState(State):
    """State of `DeviceSDCA`: as in SDCA, and how many rows are worked on at a time."""

    alpha: Any = None
    u: Any = None
    bias: Any = None
    rho: float = 0.0
    warps: int = 1
    damping: float = 1.0
    moved: Any = None  # whether dual variables have moved in the last pass over all rows
    places: Any = None  # rows of this pass, if not all
    length: int = 0  # of this pass
    done: int = 0
    passes: int = 0  # since the last one over all rows
    factor: int = 1  # of this pass' order
    shift: int = 0
    best: Any = None  # dual variables and bias with the largest dual value
    dual: float = -math.inf
    primal: float = math.inf  # the smallest
    setbacks: int = 0
    models: int = 1  # that share the rows, see `zerogap.cuda.solvers.many_models`


@dataclass(frozen=True)
class DeviceSDCA(Solver):
    """Stochastic dual coordinate ascent on a GPU, many rows at a time.

    Rows that are worked on together do not see each other's steps.  If certificates show that this
    does harm, the last good dual variables come back, steps become shorter (`damping`) and then
    fewer rows are worked on at a time; in the end it is one, which cannot fail.

    Parameters
    ----------
    deterministic : bool
        Whether to work on one row at a time, so that the same seed gives the same bits.
    """

    deterministic: bool = False

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> DeviceSDCAState:
        xp, n = problem.xp, problem.shape[0]
        state = DeviceSDCAState(rng, draw=rng.spawn(1)[0], alpha=xp.zeros(n), bias=xp.zeros(2))
        state.moved, state.places = xp.zeros(n, np.uint8), xp.zeros(0, np.int64)
        if not self.deterministic:
            state.warps = max(1, min(_concurrent_warps(), n // ROWS_APART))
        if problem.fit_intercept:
            curvature = problem.mean_sqnorm / problem.strength
            # all rows that are worked on together move the intercept at most as far as one of
            # them moves its own score
            state.rho = max(curvature * min(RHO_OF_CURVATURE, 1.0 / state.warps), 1.0)
            state.warps = max(1, min(state.warps, int(curvature / state.rho)))
            state.bias[0] = problem.first_intercept() if warm is None else warm[1]
        if warm is not None:
            state.alpha = warm_duals(problem, warm)
        state.u = xp.zeros(problem.shape[1])
        if warm is not None:
            self.synchronise(problem, state)
        return state

    def answer(self, problem: Problem, state: DeviceSDCAState) -> Answer:
        return problem.to_weights(state.u), float(state.bias[0]), state.alpha.copy()

    def synchronise(self, problem: Problem, state: DeviceSDCAState) -> None:
        """Undo what rounding has done to u and to the mean of alpha."""
        state.u[:] = problem.dual_sum(state.alpha)
        state.bias[1] = problem.share @ state.alpha

    def observe(self, problem: Problem, state: DeviceSDCAState, record: Record, tol: float) -> None:
        """Step back if nothing was gained since the last certificate.

        To be gained is the distance between the smallest primal and the largest dual value so far.
        """
        certificate, before = record.certificate, state.primal - state.dual
        state.primal = min(state.primal, certificate.primal)
        if certificate.dual > state.dual:
            state.best, state.dual = (state.alpha.copy(), state.bias.copy()), certificate.dual
        if state.primal - state.dual <= (1.0 - LEAST_GAIN) * before or state.warps == 1:
            return
        state.alpha[:], state.bias[:] = state.best
        state.setbacks += 1
        if state.damping < MOST_DAMPING:
            state.damping *= 2.0
        else:
            state.warps = max(1, state.warps // 4)
        if state.warps == 1:
            state.damping = 1.0
        self.synchronise(problem, state)

    def epochs_apart(self, problem: Problem) -> int:
        return max(1, min(12, 300_000 // problem.shape[0]))

    def steps(self, problem: Problem, state: DeviceSDCAState, count: int) -> int:
        n, left = problem.shape[0], count
        while left:
            if state.done == state.length:
                self._begin_pass(problem, state, state.updates + count - left)
            part = min(left, state.length - state.done)
            self._visit(problem, state, part)
            state.done += part
            left -= part
        if state.rho and state.position + count == n:  # the multiplier's centre moves, as in SDCA
            state.bias[0] += state.rho * state.bias[1]
        return count

    def _begin_pass(self, problem: Problem, state: DeviceSDCAState, updates: int) -> None:
        """Choose the rows to visit next: all, or those that moved in the last pass over all.

        As in SDCA, but without further passes over ever fewer rows: the GPU would wait for them.
        """
        n = problem.shape[0]
        if not len(state.places) and updates >= EPOCHS_BEFORE_PASSES * n:
            chosen = np.flatnonzero(state.moved)
            state.places = chosen if len(chosen) < 0.5 * n else state.places
        elif state.passes == MOST_PASSES:
            state.places, state.passes = state.places[:0], 0
            self.synchronise(problem, state)
        if len(state.places):
            state.passes += 1
        else:
            state.moved[:] = 0
        state.length, state.done = len(state.places) or n, 0
        state.shift = int(state.rng.integers(state.length))
        state.factor = _coprime(state.rng, state.length)

    def _visit(self, problem: Problem, state: DeviceSDCAState, count: int) -> None:
        warps = max(1, min(state.warps, state.length // ROWS_APART_AT_LAST))
        threads = min(THREADS, warps * WIDTH)
        arrays = (problem.y, problem.share, problem.sqnorms, state.alpha, state.u, state.bias)
        _steps_of(problem.loss, problem.penalty)[-(-warps * WIDTH // threads), threads](
            *cast("DeviceDenseRows | DeviceCSRRows", problem.rows).parts,
            *map(view, (*arrays, state.moved, state.places)),
            *(problem.lam, state.rho, state.damping, state.factor, state.shift),
            *(state.done, state.done + count),
        )

    def story(self, problem: Problem, state: DeviceSDCAState) -> str:
        slowed = f", slowed down {state.setbacks} times" if state.setbacks else ""
        models = f" and {state.models} models" if state.models > 1 else ""
        return f"SDCA of {state.warps} rows{models} at a time{slowed}"


def _concurrent_warps() -> int:
    """Return how many rows to work on at first: more epochs and faster ones are in balance."""
    if SIMULATED:
        return 4
    return cuda.get_current_device().MULTIPROCESSOR_COUNT // 4 * (THREADS // WIDTH)


def _coprime(rng: np.random.Generator, n: int) -> int:
    """Return a factor whose multiples visit each row once."""
    while math.gcd(factor := int(rng.integers(1, n + 1)), n) > 1:
        pass
    return factor

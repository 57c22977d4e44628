"""Several problems with the same rows, solved together on a GPU: a row is read once for all.

The problems are the columns of matrices: dual variables (n x K), weights (d x K).  The threads of a
warp, which share a row in `DeviceSDCA`, share its columns here, so that threads side by side read
and write weights side by side.  Every column has its own run and its own certificates, and leaves
when these are good enough.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from zerogap.cuda.columns import Columns
from zerogap.cuda.device import to_host
from zerogap.cuda.kernels import THREADS, WIDTH, cuda, module_of, sum_of_parts, threads_across, view
from zerogap.cuda.solvers.auto import DeviceAuto, for_device
from zerogap.cuda.solvers.sdca import DeviceSDCA, DeviceSDCAState, _coprime, _fresh
from zerogap.losses import Loss
from zerogap.penalties import L2, ElasticNet
from zerogap.solvers.limits import Callback, Limits
from zerogap.solvers.loop import Alone, Way, run_all
from zerogap.solvers.progress import Progress
from zerogap.solvers.protocol import Answer, Solver
from zerogap.solvers.result import Result
from zerogap.solvers.run import Run


@functools.cache
def _steps_of(loss: Loss, penalty: L2 | ElasticNet) -> Any:
    """Return the kernel for a loss and a penalty."""
    dual_step, to_primal = module_of(loss).dual_step, module_of(penalty).to_primal
    convexity = penalty.convexity()

    @cuda.jit
    def steps(
        values, columns, starts, width, y, share, sqnorms, alpha, u, bias,
        lam, rho, across, factor, shift,
    ):  # fmt: skip
        """Maximise the duals of all columns over row i's own variables, i = shift + k factor mod n.

        `across` threads take a column each, and the others parts of the row for the same columns.
        """
        n, K = alpha.shape
        lane = cuda.grid(1) % WIDTH
        part, parts = lane // across, WIDTH // across
        for k in range(cuda.grid(1) // WIDTH, n, cuda.gridsize(1) // WIDTH):
            i = (shift + k * factor) % n
            start, end = i * width, (i + 1) * width
            if width == 0:
                start, end = starts[i], starts[i + 1]
            s = share[i]
            for first in range(0, K, across):
                c = first + lane % across
                a, z = 0.0, 0.0
                if c < K:
                    a = alpha[i, c]  # before the sum: no lane is then late for the old value
                    if rho[c] > 0.0 and part == 0:
                        z = cuda.atomic.add(bias, (0, c), 0.0)  # as in DeviceSDCA
                    for m in range(start + part, end, parts):
                        j = m - start if width > 0 else columns[m]
                        z += np.float64(values[m]) * to_primal(_fresh(u, j * K + c))
                z = sum_of_parts(z, across)
                if c < K:
                    q = s * (sqnorms[i] / (lam[c] * convexity) + rho[c])
                    step = dual_step(a, y[i, c % y.shape[1]], z, q)
                    if step != 0.0:
                        size = s * step / lam[c]
                        for m in range(start + part, end, parts):
                            j = m - start if width > 0 else columns[m]
                            cuda.atomic.add(u, j * K + c, size * np.float64(values[m]))
                        if part == 0:
                            alpha[i, c] = a + step
                            if rho[c] > 0.0:
                                cuda.atomic.add(bias, (0, c), rho[c] * s * step)
                                cuda.atomic.add(bias, (1, c), s * step)
            if WIDTH > 1:
                cuda.syncwarp()  # the next row is to see what all lanes have added

    return steps


def together_by(problems: Sequence[Any], solver: Solver, device: str) -> DeviceSDCA | None:
    """Return the solver that takes all problems at once, if each of them would have it."""
    first = problems[0]
    if first.loss.task == "multiclass":
        return None
    chosen = for_device(solver, deterministic=device == "cuda-deterministic")
    if isinstance(chosen, DeviceAuto):
        chosen, _ = chosen.chosen(first)
    return chosen if isinstance(chosen, DeviceSDCA) else None


def solve_together(
    problems: Sequence[Any],
    *,
    solver: DeviceSDCA,
    tol: float,
    max_epochs: float = 1000,
    max_seconds: float | None = None,
    callback: Callback | None = None,
    warm_starts: Sequence[Answer | None] | None = None,
    seeds: Sequence[int],
    verbose: int = 0,
    interrupt: threading.Event | None = None,
) -> list[Result]:
    """Solve problems on a GPU that differ in their targets or lambdas only; see `solve`.

    After a DeviceError its `result` is a list, if all problems have a certified model.
    """
    stop = interrupt or threading.Event()
    limits = Limits(tol, max_epochs, None, max_seconds, callback, stop)
    runs = [Run(p, solver, limits, seed) for p, seed in zip(problems, seeds, strict=True)]
    starts = list(warm_starts or [None] * len(runs))
    ways: list[Way] = [SideBySide(solver, starts), Alone()]
    return run_all(runs, ways, Progress(tol) if verbose else None)


class SideBySide:
    """The way of runs that read their rows together."""

    holds = True

    def __init__(self, solver: DeviceSDCA, starts: Sequence[Answer | None]) -> None:
        self.solver, self.starts = solver, starts
        self.members: list[Run] = []
        self.columns: Columns

    def begin(self, runs: Sequence[Run]) -> None:
        """Start all runs, and certify given points as they are."""
        self._admit(list(runs))
        points = [run.start(start) for run, start in zip(runs, self.starts, strict=True)]
        for run in runs:
            run.certifier.certify_constant()
            run.state.models = len(runs)
        self._certify(points)

    def _admit(self, runs: list[Run]) -> None:
        self.members, self.columns = runs, Columns([run.problem for run in runs])

    def chosen(self, going: list[Run]) -> list[Run]:
        """Return the runs that share rows well, if there are several."""
        # rows that disturb each other in one column are not to slow down the others
        staying = [run for run in going if run.state.damping <= 1.0]
        if len(staying) < 2:
            for run in going:
                self.solver.synchronise(run.problem, run.state)
            return []
        if staying != self.members:
            self._admit(staying)
        return staying

    def advance(self, runs: list[Run]) -> None:
        """Run epochs of all columns until the first of them is worth a certificate."""
        first, n = runs[0], runs[0].length
        target = min(first.last_update, *(run.next_record() for run in runs))
        epochs = max(1, -(-(target - first.state.updates) // n))
        began = time.perf_counter()
        done = _visit(self.columns, [run.state for run in runs], epochs, first.limits)
        first.problem.finish()
        for run in runs:
            run.seconds += (time.perf_counter() - began) / len(runs)
            run.state.updates += done * n
            run.state.examples += done * n

    def certify(self, runs: list[Run]) -> None:
        """Take a record of each run."""
        self._certify([None] * len(runs))

    def _certify(self, points: Sequence[Answer | None]) -> None:
        """Take a record of each run: of a given point as it is, else of its dual variables."""
        runs, columns = self.members, self.columns
        alpha = columns.xp.stack([run.state.alpha for run in runs], axis=1)
        W = columns.weights(alpha)
        for k, point in enumerate(points):
            if point is not None and point[2] is not None:
                W[k] = columns.xp.asarray(point[0])
        b = [float(b) for b in to_host(columns.xp.stack([run.state.bias[0] for run in runs]))]
        proofs = columns.examine(W, b, alpha, [run.accuracy() for run in runs])
        for run, w, proof in zip(runs, to_host(W), proofs, strict=True):
            run.take_record(point=(w, proof.b, proof.alpha), proof=proof)


def _visit(columns: Columns, states: list[DeviceSDCAState], epochs: int, limits: Limits) -> int:
    """Make passes over all rows for all columns, until time is up; return their number."""
    first, xp, rng = columns.first, columns.xp, states[0].rng
    n = first.shape[0]
    alpha = xp.stack([state.alpha for state in states], axis=1)
    bias = xp.stack([state.bias for state in states], axis=1)
    u = xp.ascontiguousarray(columns.dual_sums(alpha)).ravel()
    lam, rho = xp.asarray(columns.lam), xp.asarray([state.rho for state in states])
    warps = min(state.warps for state in states)
    threads = min(THREADS, warps * WIDTH)
    kernel = _steps_of(first.loss, first.penalty)[-(-warps * WIDTH // threads), threads]
    arrays = (columns.y, first.share, first.sqnorms, alpha, u, bias, lam, rho)
    given = (*cast("Any", first.rows).parts, *map(view, arrays), threads_across(len(states)))
    done = 0
    while done < epochs and not limits.interrupt.is_set() and not limits.out_of_time():
        kernel(*given, _coprime(rng, n), int(rng.integers(n)))
        bias[0] += rho * bias[1]  # the multiplier's centre moves, as in SDCA
        done += 1
    for k, state in enumerate(states):
        state.alpha, state.bias[:] = xp.ascontiguousarray(alpha[:, k]), bias[:, k]
    return done

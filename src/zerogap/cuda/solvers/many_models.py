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
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from zerogap.cuda.columns import Columns
from zerogap.cuda.device import to_host
from zerogap.cuda.kernels import (
    THREADS,
    WIDTH,
    cuda,
    module_of,
    sum_of_parts,
    threads_across,
    view,
)
from zerogap.cuda.solvers.auto import DeviceAuto, for_device
from zerogap.cuda.solvers.sdca import DeviceSDCA, DeviceSDCAState, _coprime, _fresh
from zerogap.losses import Loss
from zerogap.penalties import L2, ElasticNet
from zerogap.solvers.base import Result, _Limits, _Run
from zerogap.solvers.interrupt import interruptible
from zerogap.solvers.placement import DeviceError, failing
from zerogap.solvers.progress import Progress
from zerogap.solvers.protocol import Answer, Solver


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
    callback: Callable | None = None,
    warm_starts: Sequence[Answer | None] | None = None,
    seeds: Sequence[int],
    verbose: int = 0,
    interrupt: threading.Event | None = None,
) -> list[Result]:
    """Solve problems on a GPU that differ in their targets or lambdas only; see `solve`.

    After a DeviceError its `result` is a list, if all problems have a certified model.
    """
    limits = _Limits(max_epochs, None, max_seconds, interrupt or threading.Event())
    runs = [_Run(p, solver, tol, s, {}) for p, s in zip(problems, seeds, strict=True)]
    reasons: dict[_Run, str] = {}
    progress = Progress(tol) if verbose else None
    try:
        with interruptible(limits.interrupt) as hold, failing(problems[0]):
            starts = list(warm_starts or [None] * len(runs))
            for run, warm in zip(runs, starts, strict=True):
                given = None if warm is None else tuple(map(run.problem.place, warm))
                rng = np.random.default_rng(run.seed)
                run.state = solver.begin(run.problem, rng, cast("Answer | None", given))
                run.state.models = len(runs)
            members, columns = list(runs), Columns(problems)
            while True:
                _certify(members, columns, starts)
                starts = []
                if progress is not None:
                    progress.show(max((run.last for run in members), key=_relative_gap))
                for run in members:
                    if reason := run.verdict(limits, callback, None):
                        reasons[run] = reason
                # rows that disturb each other in one column are not to slow down the others
                staying = [run for run in members if run not in reasons and not _is_slow(run)]
                if len(staying) < 2:
                    break
                if len(staying) < len(members):
                    members, columns = staying, Columns([run.problem for run in staying])
                with hold():
                    _advance(members, columns, limits)
            for run in runs:
                solver.synchronise(run.problem, run.state)
                while run not in reasons:
                    with hold():
                        run.advance_to_record("auto", limits)
                    run.take_record()
                    if reason := run.verdict(limits, callback, progress):
                        reasons[run] = reason
    except KeyboardInterrupt:
        if any(run.best is None for run in runs):
            raise
    except DeviceError as error:
        if all(run.best is not None for run in runs):
            error.result = _results(runs, reasons, "device failed", progress)
        raise
    return _results(runs, reasons, "interrupted", progress)


def _is_slow(run: _Run) -> bool:
    return run.state.damping > 1.0


def _relative_gap(record: Any) -> float:
    return record.certificate.relative_gap


def _results(
    runs: list[_Run], reasons: dict[_Run, str], otherwise: str, progress: Progress | None
) -> list[Result]:
    if progress is not None:
        progress.close(max((run.last for run in runs), key=_relative_gap))
    return [run.result(reasons.get(run, otherwise), None) for run in runs]


def _certify(runs: list[_Run], columns: Columns, starts: Sequence[Answer | None]) -> None:
    """Take a record of each run: of a given point as it is, as `solve` does."""
    alpha = columns.xp.stack([run.state.alpha for run in runs], axis=1)
    W = columns.weights(alpha)
    for k, start in enumerate(starts):
        if start is not None and start[2] is not None:
            W[k] = columns.xp.asarray(start[0])
    b = [float(b) for b in to_host(columns.xp.stack([run.state.bias[0] for run in runs]))]
    proofs = columns.examine(W, b, alpha, [run.accuracy for run in runs])
    for run, w, proof in zip(runs, to_host(W), proofs, strict=True):
        run.take_record(point=(w, proof.b, proof.alpha), proof=proof)


def _advance(runs: list[_Run], columns: Columns, limits: _Limits) -> None:
    """Run epochs of all columns until the first of them is worth a certificate."""
    n = runs[0].length
    target = min(limits.last_update(runs[0]), *(run.next_record("auto") for run in runs))
    epochs = max(1, -(-(target - runs[0].state.updates) // n))
    began = time.perf_counter()
    done = _visit(columns, [run.state for run in runs], epochs, limits)
    runs[0].problem.finish()
    for run in runs:
        run.seconds += (time.perf_counter() - began) / len(runs)
        run.state.updates += done * n
        run.state.examples += done * n


def _visit(columns: Columns, states: list[DeviceSDCAState], epochs: int, limits: _Limits) -> int:
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

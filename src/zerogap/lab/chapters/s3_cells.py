"""Cells of chapter S3: digits split as in the practical, SSGD tuned, and Frank-Wolfe as printed."""

from __future__ import annotations

import functools
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from zerogap._params import parse
from zerogap.datasets import load_mnist
from zerogap.lab.cells import Rows, error_rate, make_metrics, run_solver
from zerogap.lab.data import Loaded
from zerogap.lab.experiment import Cell
from zerogap.lab.images import pixels
from zerogap.problem import Problem
from zerogap.solvers import SOLVERS, solve

GRID = tuple(
    f"sgd:batch_size={batch}:step={step:g}:schedule={schedule}:output=average"
    for batch, step, schedule in itertools.product(
        (4, 16), (1e-3, 3e-3, 1e-2, 3e-2, 1e-1), ("sqrt", "inverse")
    )
)
"""What SSGD may choose from when it is tuned."""
TUNING_SEED = 1000  # not one of the seeds that are measured
_ROUNDING = 1e-24  # of a squared length: two vectors that differ by less are the same


@dataclass(frozen=True, eq=False)
class Digits(Loaded):
    """Rows in three parts."""

    X_validation: Any = None
    y_validation: Any = None


@functools.lru_cache(maxsize=1)
def split(name: str, rows: int | None, folder: str | None) -> Digits:
    """Return the parts of `zerogap practical`, of the training rows the first so many."""
    X, y, X_validation, y_validation, X_test, y_test = load_mnist(name, folder)
    parts = {"X_validation": X_validation, "y_validation": y_validation}
    return Digits(X[:rows], y[:rows], X_test, y_test, folder=folder, **parts)


def validation_error(problem: Problem, data: Digits, y_test: Any) -> Any:
    """Return the metric: share of the validation rows that are misclassified."""
    return error_rate(data.X_validation, data.y_validation, problem.loss.task)


def digits(cell: Cell, data: Loaded) -> Rows:
    """Run the arm's solver on the practical's split.

    An arm with "tuned" is SSGD at its best, one with "printed" algorithm 5 word for word.
    """
    rows = split(cell.data.name, cell.data.rows, data.folder)
    if "printed" in cell.arm.columns:
        return _as_printed(cell, rows)
    if not cell.arm.columns.get("tuned"):
        return run_solver(cell, rows)
    key = (cell.data.name, cell.data.rows, data.folder)
    solver = _tuned(key, cell.loss, cell.lam, cell.epochs)
    found = run_solver(replace(cell, arm=replace(cell.arm, solver=solver)), rows)
    return [{**row, "setting": solver} for row in found]


def _as_printed(cell: Cell, rows: Digits) -> Rows:
    """Run algorithm 5 with its contiguous blocks and its step as printed; a row per pass."""
    problem = Problem(rows.X, rows.y, cell.loss, cell.lam)
    metrics = make_metrics(cell, problem, rows, rows.y_test)
    rng = np.random.default_rng(cell.seed)
    classes, batch = problem.weight_shape[0], cell.arm.columns["printed"]
    method = BlockFrankWolfe(rows.X, rows.y, classes, problem.lam, batch, clip=False)
    found: Rows = []
    for epoch in range(1, int(cell.epochs) + 1):
        for j in rng.permutation(len(method.blocks)):
            method.step(j)
        primal, steps = problem.primal(method.w), epoch * len(method.blocks)
        row = {"lam": problem.lam, "epoch": float(epoch), "updates": steps}
        row |= {"examples": epoch * len(rows.y), "primal": primal, "dual": method.dual}
        row |= {name: metric(method.w, 0.0) for name, metric in metrics.items()}
        found.append({**row, "gap": primal - method.dual})
    return found


@functools.lru_cache(maxsize=1)
def _tuned(key: tuple[Any, ...], loss: str, lam: float | None, epochs: float) -> str:
    """Return the setting with the best objective in a run that is not measured."""
    rows = split(*key)
    problem = Problem(rows.X, rows.y, loss, lam)

    def objective(text: str) -> float:
        result = solve(
            problem,
            parse(text, SOLVERS),
            tol=0.0,
            max_epochs=epochs,
            record=sys.maxsize // 4,
            random_state=TUNING_SEED,
        )
        return result.certificate.primal

    return min(GRID, key=objective)


class BlockFrankWolfe:
    """Algorithm 5 with w_j and l_j for every block; b = 1 is algorithm 4, b = N Frank-Wolfe.

    Parameters
    ----------
    X, y, n_classes, mu
        The problem.
    batch : int
        Rows per block; the blocks are the first b rows, the next b rows, and so on, as printed.
    clip : bool
        Whether the step is kept in [0, 1], which the printed algorithms forget.
    """

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        n_classes: int,
        mu: float,
        batch: int,
        clip: bool = True,
    ) -> None:
        self.X, self.y, self.mu, self.clip = X, y, mu, clip
        self.blocks = np.split(np.arange(len(y)), range(batch, len(y), batch))
        self.w, self.l = np.zeros((n_classes, X.shape[1])), 0.0
        self.w_blocks = np.full((len(self.blocks), *self.w.shape), 0.0)  # in memory at once
        self.l_blocks = np.zeros(len(self.blocks))

    def oracle(self, rows: Any) -> tuple[np.ndarray, float]:
        """Return w_s and l_s of the best vertex for these rows."""
        X, y = self.X[rows], self.y[rows]
        own = np.eye(len(self.w))[y]
        best = np.eye(len(self.w))[(X @ self.w.T + 1.0 - own).argmax(axis=1)]
        scale = self.mu * len(self.y)
        return (own - best).T @ X / scale, float((1.0 - (own * best).sum(axis=1)).sum()) / len(
            self.y
        )

    def step(self, j: int) -> float:
        """Move block j; return the step gamma before it is clipped."""
        w_s, l_s = self.oracle(self.blocks[j])
        away = self.w_blocks[j] - w_s
        gain = self.mu * float((away * self.w).sum()) - self.l_blocks[j] + l_s
        curvature = self.mu * float((away * away).sum())
        size = self.mu * float((w_s * w_s).sum())
        gamma = gain / curvature if curvature > _ROUNDING * size else 0.0
        taken = _taken(gamma, self.clip)
        self.w -= taken * away
        self.w_blocks[j] -= taken * away
        change = taken * (l_s - self.l_blocks[j])
        self.l += change
        self.l_blocks[j] += change
        return gamma

    @property
    def dual(self) -> float:
        """The dual objective, l - mu/2 |w|^2."""
        return self.l - 0.5 * self.mu * float((self.w * self.w).sum())

    @property
    def gap(self) -> float:
        """The duality gap mu <w, w - w_s> - l + l_s, with the best vertices of all blocks."""
        w_s, l_s = self.oracle(slice(None))
        return self.mu * float((self.w * (self.w - w_s)).sum()) - self.l + l_s


class DualFrankWolfe(BlockFrankWolfe):
    """Algorithm 3: dual variables alpha_i on a simplex each, and the matrices A_i written out.

    A alpha and b'alpha are kept up to date, as `w` and `l`.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, n_classes: int, mu: float, clip: bool) -> None:
        super().__init__(X, y, n_classes, mu, len(y), clip)
        self.blocks = np.split(np.arange(len(y)), len(y))
        self.alpha = np.eye(n_classes)[y]  # feasible, and w = 0

    def column_block(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return A_i, of shape (C d, C), and b_i."""
        C, d = self.w.shape
        A = np.zeros((C, d, C))
        for k in range(C):
            A[self.y[i], :, k] += self.X[i]
            A[k, :, k] -= self.X[i]
        b = (np.arange(C) != self.y[i]) / len(self.y)
        return A.reshape(C * d, C) / (self.mu * len(self.y)), b

    def step(self, j: int) -> float:
        """Move the dual variables of row j; return the step gamma before it is clipped."""
        A, b = self.column_block(j)
        s = np.eye(len(b))[(b - self.mu * (A.T @ self.w.ravel())).argmax()]
        towards = s - self.alpha[j]
        moved = A @ towards
        gain = -self.mu * float(moved @ self.w.ravel()) + float(b @ towards)
        curvature, size = (self.mu * float(v @ v) for v in (moved, A @ s))
        gamma = gain / curvature if curvature > _ROUNDING * size else 0.0
        taken = _taken(gamma, self.clip)
        self.alpha[j] += taken * towards
        self.w += taken * moved.reshape(self.w.shape)
        self.l += taken * float(b @ towards)
        return gamma


def _taken(gamma: float, clip: bool) -> float:
    return min(max(gamma, 0.0), 1.0) if clip else gamma


def textbook(cell: Cell, data: Loaded) -> Rows:
    """Run algorithm 3, 4 or 5 and check its step, gap and gradient; a row per pass.

    ``long_steps`` is the share of the steps beyond 1 so far; ``gap_error`` the difference of the
    two forms of the gap and ``slack`` the worst case of P(v) - P(w) - <mu (w - w_s), v - w>, which
    a sub-gradient keeps from being negative.  All are worst cases up to that pass.
    """
    rng = np.random.default_rng(cell.seed)
    X, y = _small_problem(cell, data, rng)
    problem, columns = Problem(X, y, cell.loss, cell.lam), cell.arm.columns
    size = len(y) if columns["b"] == "N" else int(columns["b"])
    problem_parts = X, y, problem.weight_shape[0], problem.lam
    method = (
        DualFrankWolfe(*problem_parts, columns["clipped"])
        if columns["algorithm"] == 3
        else BlockFrankWolfe(*problem_parts, size, columns["clipped"])
    )
    found: Rows = []
    long, error, slack = 0, 0.0, np.inf
    for epoch in range(1, int(cell.epochs) + 1):
        long += sum(method.step(j) > 1.0 for j in rng.permutation(len(method.blocks)))
        primal, dual = problem.primal(method.w), method.dual
        error = max(error, abs(primal - dual - method.gap) / max(1.0, abs(primal)))
        slack = min(slack, _subgradient_slack(problem, method, rng))
        row = {"epoch": epoch, "updates": epoch * len(method.blocks), "primal": primal}
        row |= {"dual": dual, "gap": primal - dual, "long_steps": long / (row["updates"])}
        found.append({**row, "gap_error": error, "slack": slack})
    return found


def _small_problem(cell: Cell, data: Loaded, rng: np.random.Generator) -> tuple[Any, Any]:
    if cell.data.name:
        rows = split(cell.data.name, None, data.folder)
        chosen = rng.choice(len(rows.y), 1000, replace=False)
        return rows.X[chosen].astype(np.float64), rows.y[chosen]
    X = rng.standard_normal((300, 12))
    return X, (X[:, :4] + rng.standard_normal((300, 4))).argmax(axis=1)


def _subgradient_slack(
    problem: Problem, method: BlockFrankWolfe, rng: np.random.Generator
) -> float:
    w_s, _ = method.oracle(slice(None))
    primal, slacks = problem.primal(method.w), []
    for length in (1e-3, 1e-2, 1e-1, 1.0):
        towards = length * rng.standard_normal(method.w.shape)
        rise = problem.lam * float(((method.w - w_s) * towards).sum())
        slack = problem.primal(method.w + towards) - primal - rise
        slacks.append(slack / max(1.0, abs(primal)))
    return min(slacks)


@dataclass(frozen=True)
class Size:
    """Rows, features and classes of a made-up problem, and rows per block."""

    N: int
    d: int
    C: int
    b: int = 1

    def rows(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and their classes, each class at least once."""
        rng = np.random.default_rng(seed)
        y = np.append(np.arange(self.C), rng.integers(self.C, size=self.N - self.C))
        return rng.standard_normal((self.N, self.d)), y


Step = Callable[[], Any]
Start = Callable[["Size", int], tuple[Step, int, int]]  # a step, numbers stored, multiplications


def cost(cell: Cell, data: Loaded) -> Rows:
    """Measure a step's seconds, and count what it stores and multiplies, as N, d, C or b grows."""
    columns = cell.arm.columns
    start, base, growing = COSTS[cell.arm.name]
    found: Rows = []
    for name in growing:
        for factor in (1, 2, 4):
            size = replace(base, **{name: factor * getattr(base, name)})
            step, numbers, operations = start(size, cell.seed)
            row = {"grows": name, "factor": factor, "numbers": numbers, "operations": operations}
            found.append({**row, "step_seconds": _fastest(step, columns["repeats"])})
    return found


def _fastest(step: Step, repeats: int) -> float:
    """Return the seconds of the fastest step: what is slower was disturbed."""
    step()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return min(times)


def _frank_wolfe(form: Callable[[Any], Any]) -> Start:
    """Return Frank-Wolfe on alpha; A, a column per row and class, is stored as `form`."""

    def start(size: Size, seed: int) -> tuple[Step, int, int]:
        (X, y), mu = size.rows(seed), 0.01
        N, d, C = size.N, size.d, size.C
        row, k = np.repeat(np.arange(N), C), np.tile(np.arange(C), N)
        columns = np.repeat(np.arange(N * C), d)
        places = (c[:, None] * d + np.arange(d) for c in (y[row], k))
        values = X[row].ravel() / (mu * N)
        own, other = (
            sparse.csc_array((sign * values, (place.ravel(), columns)), shape=(C * d, N * C))
            for sign, place in zip((1.0, -1.0), places, strict=True)
        )
        A = form(own + other)
        b = (k != y[row]) / N
        alpha = (k == y[row]).astype(np.float64)

        def step() -> None:
            gradient = b - mu * (A.T @ (A @ alpha))
            best = gradient.reshape(N, C).argmax(axis=1)
            direction = np.eye(C)[best].ravel() - alpha
            length = mu * float(((A @ direction) ** 2).sum())
            alpha[:] += min(1.0, float(gradient @ direction) / length) * direction

        stored = A.nnz if sparse.issparse(A) else A.size
        return step, int(stored + alpha.size), int(3 * stored + 2 * alpha.size)

    return start


def _products(size: Size, rows: int) -> int:
    """Return the multiplications of an oracle for so many rows: scores, and sums of rows."""
    return 2 * rows * size.d * size.C


def _blocks(size: Size, seed: int) -> tuple[Step, int, int]:
    """Return algorithm 5, which is algorithm 4 for b = 1."""
    X, y = size.rows(seed)
    method = BlockFrankWolfe(X, y, size.C, 0.01, size.b)
    turns = itertools.cycle(range(len(method.blocks)))
    stored = method.w.size + method.w_blocks.size + method.l_blocks.size + 1
    return (
        lambda: method.step(next(turns)),
        int(stored),
        _products(size, size.b) + 5 * method.w.size,
    )


def _gradient_steps(all_rows: bool) -> Start:
    """Return steps of SGD, or of GD with all rows: the oracle without anything stored by block."""

    def start(size: Size, seed: int) -> tuple[Step, int, int]:
        X, y = size.rows(seed)
        method = BlockFrankWolfe(X, y, size.C, 0.01, size.N)
        count = size.N if all_rows else size.b
        rows = np.arange(count)

        def step() -> None:
            w_s, _ = method.oracle(rows)
            method.w -= 1e-3 * (method.w - w_s)

        return step, int(method.w.size), _products(size, count) + method.w.size

    return start


_dense = _frank_wolfe(lambda A: A.toarray())
_BATCH = Size(N=4096, d=256, C=16, b=64)
COSTS: dict[str, tuple[Start, Size, str]] = {
    "Frank-Wolfe, A dense": (_dense, Size(N=64, d=32, C=4), "NdC"),
    "Frank-Wolfe, A dense, large": (_dense, Size(N=400, d=50, C=8), "NdC"),
    "Frank-Wolfe, A sparse": (_frank_wolfe(lambda A: A), Size(N=400, d=50, C=8), "NdC"),
    "GD": (_gradient_steps(all_rows=True), Size(N=1024, d=256, C=16), "NdC"),
    "SGD": (_gradient_steps(all_rows=False), _BATCH, "NdCb"),
    "algorithm 4": (_blocks, Size(N=256, d=512, C=8), "NdC"),
    "algorithm 4, large": (_blocks, Size(N=128, d=2048, C=16), "NdC"),
    "algorithm 5": (_blocks, _BATCH, "NdCb"),
}
"""By name: what starts a method and returns its step, the smallest size, and what grows from it.

The arrays of the large ones do not stay in the processor's cache while they grow.
"""


def pictures(cell: Cell, data: Loaded) -> Rows:
    """Return example digits, and three pictures of a conditional-gradient step."""
    rows = split(cell.data.name, None, data.folder)
    low, high = float(rows.X.min()), float(rows.X.max())
    found: Rows = []
    for digit in range(10):
        for row in rows.X[np.flatnonzero(rows.y == digit)[:2]]:
            image = np.rint(255 * (row.reshape(28, 28) - low) / (high - low))
            found.append({"figure": "digits", "label": str(digit), **pixels(image)})
    for label in STEP_PICTURES:
        found.append({"figure": "step", "label": label, **pixels(_step_picture(label))})
    return found


STEP_PICTURES = ("1 linearise", "2 best vertex s", "3 step towards s")


def _step_picture(label: str) -> np.ndarray:
    """Return a picture of one conditional-gradient step on a triangle, up to the part `label`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    H, target = np.array([[1.0, 0.4], [0.4, 0.8]]), np.array([0.62, 0.3])
    corners, x = np.array([[0.0, 0.0], [1.0, 0.0], [0.35, 0.9]]), np.array([0.3, 0.62])
    slope = H @ (x - target)
    s = corners[(corners @ slope).argmin()]
    gamma = min(1.0, float(slope @ (x - s)) / float((x - s) @ H @ (x - s)))
    figure = Figure(figsize=(3.0, 2.8), dpi=100, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots()
    grid = np.stack(np.meshgrid(np.linspace(-0.1, 1.1, 90), np.linspace(-0.1, 1.0, 90)), axis=-1)
    away = grid - target
    bowl = np.einsum("ijk,kl,ijl->ij", away, H, away)
    plane = (grid - x) @ slope
    part = STEP_PICTURES.index(label)
    axes.contour(grid[..., 0], grid[..., 1], bowl, 9, colors="#7fa8c9", linewidths=0.8)
    axes.contour(grid[..., 0], grid[..., 1], plane, 9, colors="#b3672e", linewidths=0.8)
    axes.fill(*corners.T, color="#123f63", alpha=0.18)
    axes.plot(*x, "o", color="black")
    axes.annotate("x", tuple(x), xytext=(6, 4), textcoords="offset points")
    if part >= 1:
        axes.plot(*s, "s", color="#c0392b")
        axes.annotate("s", tuple(s), xytext=(6, 6), textcoords="offset points")
    if part >= 2:
        arrow = {"arrowstyle": "->", "color": "green"}
        axes.annotate("", tuple(x + gamma * (s - x)), tuple(x), arrowprops=arrow)
    axes.set_axis_off()
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]

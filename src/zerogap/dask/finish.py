"""The finish: what local epochs are slow at, the last digits."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from scipy import sparse

from zerogap.dask.messages import Message, Reply
from zerogap.dask.training import Run, totals
from zerogap.dask.workers import Restart
from zerogap.problem import Problem
from zerogap.problem.row_sums import penalty_cost
from zerogap.rows import CSRRows
from zerogap.solvers.auto import IDLE_STEPS
from zerogap.solvers.sdca import SDCA
from zerogap.solvers.summed_newton import Point, Sums, first_smoothing, intercept, step

_PAIRS = 20
_EPOCHS = 3000  # over the gathered rows, at most
_SHARE = 0.3  # of the asked gap, for the gathered rows alone
_AHEAD = 1e-3  # of the present gap: rows fixed at wrong ends make more precision useless


def descend(run: Run, w: np.ndarray) -> None:
    """Minimise a smooth objective by L-BFGS: one round per evaluation, whatever the groups.

    The dual point that belongs to w has the dual sum u.  With the L2 penalty the gradient is
    lam (w - u) and, without intercept, the gap is |gradient|^2 / (2 lam) exactly.
    """
    lam, loss = run.spec.lam, run.spec.loss
    b, shape, w_size, free = run.b, w.shape, w.size, run.spec.fit_intercept
    pairs: list[tuple[np.ndarray, np.ndarray]] = []

    def look(x: np.ndarray, first: bool = False) -> tuple[float, np.ndarray, Any]:
        w = x[:w_size].reshape(shape)
        b = x[w_size:].reshape(np.shape(run.b)) if free else run.b
        reply = run.crew.evaluate(w, b, first)
        value = reply.value + lam * penalty_cost(run.frame.penalty, x[:w_size])
        gradient = lam * (w - reply.u).ravel()
        return value, np.append(gradient, -reply.mean) if free else gradient, reply

    x = np.append(w.ravel(), b) if free else w.ravel()
    value, gradient, reply = look(x, first=True)
    curvature = lam + loss.smoothness * reply.diagonal
    scale = np.broadcast_to(curvature, shape).ravel()
    scale = np.append(scale, np.full(np.size(b), loss.smoothness)) if free else scale
    while True:
        run.b = x[w_size:].reshape(np.shape(run.b)) if free else run.b
        w = x[:w_size].reshape(shape)
        gap = run.frame.penalty_terms(x[:w_size], np.ravel(reply.u))[1]
        if free:
            gap += 2.0 * float(np.sum(np.square(reply.mean)))
        run.estimated("L-BFGS", w, value, gap)
        run.save(w)
        if run.reason or run.is_promising(value, gap):
            try:
                run.audit("L-BFGS", w, reply.sums, gap)
            except Restart:
                value, gradient, reply = look(x)
                continue
        if run.reason:
            return
        direction = -_two_loops(gradient, pairs, scale)
        x, value, gradient, reply, pair = _backtrack(look, x, value, gradient, direction)
        if pair is None:  # rounding: the objective cannot be made smaller, so this is the end
            run.reason = "max_rounds"
            value, gradient, reply = look(x)
        else:
            pairs = [*pairs, pair][-_PAIRS:]


def newton(run: Run, w: np.ndarray) -> None:
    """Minimise by Newton's method: one round for each step, and for each length that is tried."""
    frame = run.frame._with(fit_intercept=run.spec.fit_intercept)
    b = np.atleast_1d(np.asarray(run.b, float)) if run.spec.fit_intercept else np.empty(0)
    point = Point(w=w, b=b)
    point.gamma, point.least = first_smoothing(run, run.b)
    recentre, sums = False, Reply()

    def evaluate(w: np.ndarray, b: Any) -> Sums:
        nonlocal recentre, sums
        sums = run.crew.newton(w, b, (point.gamma, point.damping), recentre)
        recentre = False
        return sums.summed

    idle, least = 0, math.inf
    while not run.reason:
        try:
            if point.is_solved:
                point.move_centre()
                recentre = True
            step(frame, point, evaluate)
            run.b = intercept(frame, point.b)
            gap = point.excess + point.residual
            run.estimated("Newton", point.w, point.value, gap)
            run.save(point.w)
            stuck = point.stalled or idle > IDLE_STEPS
            if run.reason or stuck or gap <= run.limits.tol * abs(point.value):
                run.audit("Newton", point.w, sums.sums, gap)
        except Restart:
            point.sums = None
            continue
        idle, least = (0, gap) if gap < 0.5 * least else (idle + 1, least)
        if stuck and not run.reason:
            run.reason = "stalled"


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
    for _ in range(10):
        there, then, reply = look(x + t * direction)
        if there <= value + 1e-4 * t * slope + 1e-15 * abs(value):
            pair = t * direction, then - gradient
            curved = float(pair[0] @ pair[1]) > 0.0
            return x + t * direction, there, then, reply, pair if curved else None
        quadratic = -slope * t * t / (2.0 * (there - value - t * slope))
        t = min(max(quadratic, 0.1 * t), 0.5 * t)
    return x, value, gradient, reply, None


def gather(run: Run) -> None:
    """Solve for the rows that are not decided here, with all others fixed; then look at all rows.

    A row at the right end of its dual domain adds nothing to the gap.  The rows that do come here;
    rows fixed at a wrong end turn up in the next look and join them.
    """
    near = _Near(run)
    message: Message | list[Message] = run.message("gather")
    while True:
        try:
            reply = run.crew.step(message)
            run.theta = 0.0
            primal, gap = totals(run, reply)
            if reply.alphas:
                run.save(run.w, reply.alphas)
            run.estimated("gather", run.w, primal, gap)
            near.add(reply.rows)
            if not near.chunks:
                run.reason = run.reason or "max_rounds"  # rounding: no row can do better
            losses = len(run.crew.recoveries)
            if (run.reason or run.is_promising(primal, gap)) and run.look("gather", gap):
                return
            if len(run.crew.recoveries) > losses:
                raise Restart(Reply(u=run.u, mean=run.mean))
            goal = _SHARE * min(run.limits.tol * primal, run.patience)
            message = near.solve(max(goal, _AHEAD * gap))
        except Restart as lost:
            run.restart(lost.totals)
            near = _Near(run)
            message = run.message("gather")


class _Near:
    """The rows gathered so far."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.chunks: list[int] = []
        self.places: list[np.ndarray] = []
        self.columns: list[list[Any]] = [[], [], [], []]  # rows, y, share, alpha
        self.rng = np.random.default_rng([run.spec.seed, 1])

    def add(self, rows: dict[int, tuple[Any, ...]]) -> None:
        """Add the rows that groups have sent."""
        for k, (places, *columns) in sorted(rows.items()):
            if len(places):
                self.chunks.append(k)
                self.places.append(places)
                for column, item in zip(self.columns, columns, strict=True):
                    column.append(item)

    def solve(self, goal: float) -> list[Message]:
        """Move to where the gathered rows add no more than `goal` to the gap."""
        run = self.run
        spec = run.spec
        X, y, share, alpha = map(_stacked, self.columns)
        classes = 0 if spec.classes is None else len(spec.classes)
        part = Problem.part(X, y, share, spec.loss, spec.lam, False, spec.l1_ratio, classes)
        solver = SDCA()
        state = solver.begin(part, self.rng)
        state.alpha = alpha[state.layout] if state.copied else alpha.copy()
        state.u = part.by_feature(run.u).copy()  # of all rows: the fixed ones pull along
        state.bias = np.array([np.asarray(run.b, float), np.asarray(run.mean, float)])
        state.rho = run.rho
        done, next_look = 0, 5
        while done < _EPOCHS:
            solver.epoch(part, state)
            done += 1
            if done < next_look:
                continue
            next_look += max(3, done // 4)
            w, b, alpha = solver.answer(part, state)
            excess = part.row_terms(part.scores(w), b, cast("np.ndarray", alpha)).excess
            off = 2.0 * float(np.abs(state.bias[1]).sum()) if spec.fit_intercept else 0.0
            late = run.limits.max_seconds is not None and run.seconds > run.limits.max_seconds
            if excess + off <= goal or late:
                break
        _, run.b, found = solver.answer(part, state)
        run.u, run.mean = part.by_class(state.u), state.bias[1].copy()
        self.columns[3] = np.split(
            cast("np.ndarray", found), np.cumsum([len(p) for p in self.places])[:-1]
        )
        return self._messages()

    def _messages(self) -> list[Message]:
        """Return to each group the dual variables of its rows."""
        found: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        for k, places, alpha in zip(self.chunks, self.places, self.columns[3], strict=True):
            found.setdefault(k, []).append((places, alpha))
        joined = {k: tuple(map(np.concatenate, zip(*v, strict=True))) for k, v in found.items()}
        return [
            self.run.message("gather", alphas={k: joined[k] for k in numbers if k in joined})
            for numbers in self.run.crew.groups
        ]


def _stacked(items: list[Any]) -> Any:
    if isinstance(items[0], CSRRows):
        return sparse.vstack([rows._matrix() for rows in items], format="csr")
    if not isinstance(items[0], np.ndarray):
        return np.concatenate([rows.X for rows in items])
    return np.concatenate(items)

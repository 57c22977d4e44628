"""The rows that are not decided, solved in one place: the last digits of losses with kinks."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import sparse

from zerogap.dask.messages import Message
from zerogap.dask.run import Rounds, Run, totals
from zerogap.dask.workers import Restart
from zerogap.problem import Problem
from zerogap.rows import CSRRows
from zerogap.solvers.sdca import SDCA

MOST_EPOCHS = 3000  # over the gathered rows, in one round
SHARE_OF_GAP = 0.3  # of the asked gap, for the gathered rows alone
GAP_SHARE_AHEAD = 1e-3  # of the present gap: rows fixed at wrong ends make more precision useless


class Gather(Rounds):
    """Solves for the rows that are not decided here, with all others fixed; then asks all rows.

    A row at the right end of its dual domain adds nothing to the gap.  The rows that do come here;
    rows fixed at a wrong end turn up in the next round and join them.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.near = _Near(run)
        self.estimate: tuple[float, float] | None = None  # P and gap of the last round

    def advance(self, runs: Any) -> None:
        """Solve for the rows that are here, and ask for those that are not decided now."""
        run = self.run
        while True:
            try:
                reply = run.workers.step(self._message())
                break
            except Restart as lost:
                run.restart(lost.totals)
                self._forget()
        run.theta = 0.0
        self.estimate = totals(run, reply)
        if reply.alphas:
            run.keep(run.w, reply.alphas)
        self.near.add(reply.rows)

    def _message(self) -> Message | list[Message]:
        run = self.run
        if self.estimate is None:
            return run.message("gather")
        primal, gap = self.estimate
        goal = SHARE_OF_GAP * min(run.limits.tol * primal, run.audit_below)
        return self.near.solve(max(goal, GAP_SHARE_AHEAD * gap))

    def _forget(self) -> None:
        """Begin anew: groups were lost, and with them what their rows had been told."""
        self.near, self.estimate = _Near(self.run), None

    def certify(self, runs: Any) -> None:
        """Record an estimate; have the model audited if it may be good enough, or the last."""
        run, (primal, gap) = self.run, cast("tuple[float, float]", self.estimate)
        run.estimated("gather", run.w, primal, gap)
        if not self.near.chunks:
            run.ending = run.ending or "max_rounds"  # rounding: no row can do better
        losses = len(run.workers.recoveries)
        if run.ending or run.is_promising(primal, gap):
            run.look("gather", gap)
        if len(run.workers.recoveries) > losses:
            self._forget()


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
        while done < MOST_EPOCHS:
            solver.epoch(part, state)
            done += 1
            if done < next_look:
                continue
            next_look += max(3, done // 4)
            w, b, alpha = solver.answer(part, state)
            excess = part.row_terms(part.scores(w), b, cast("np.ndarray", alpha)).excess
            off = 2.0 * float(np.abs(state.bias[1]).sum()) if spec.fit_intercept else 0.0
            if excess + off <= goal or run.limits.out_of_time():
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
            for numbers in self.run.workers.groups
        ]


def _stacked(items: list[Any]) -> Any:
    if isinstance(items[0], CSRRows):
        return sparse.vstack([rows._matrix() for rows in items], format="csr")
    if not isinstance(items[0], np.ndarray):
        return np.concatenate([rows.X for rows in items])
    return np.concatenate(items)

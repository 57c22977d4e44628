"""Stochastic dual coordinate ascent on data that are read block by block.

Reference: H.-F. Yu, C.-J. Hsieh, K.-W. Chang and C.-J. Lin, "Large linear classification when data
cannot fit in memory", KDD 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from zerogap.history import Record
from zerogap.multiclass import MulticlassProblem
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.solvers.protocol import Answer, Solver, State
from zerogap.solvers.sdca import block_steps, sdca_steps

_IDLE = 3  # visits without a change after which a block is left alone until the next certificate
_EMPTY = np.empty(0)


class _Near(NamedTuple):
    """A block in memory: its rows, the order to visit them in, and their dual variables."""

    part: Problem
    order: np.ndarray
    alpha: np.ndarray


@dataclass
class BlockState(State):
    """State of `BlockSDCA`: that of SDCA, and where it is in a pass over the blocks.

    In a pass the blocks enter the window one by one.  The rows of a block, in random order, are
    cut into as many chunks as the window has blocks; between two arrivals one chunk of each block
    in the window is visited, so that a block leaves when its last chunk is done.
    """

    alpha: Any = field(default_factory=lambda: _EMPTY)  # an array, or a column on disk
    u: np.ndarray = field(default_factory=lambda: _EMPTY)  # of many classes: by feature
    bias: np.ndarray = field(default_factory=lambda: np.zeros(2))
    rho: float = 0.0
    blocks: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # of this pass
    key: int = 0  # seed of the orders of their rows
    step: int = 0  # place in this pass of the block that came last
    place: int = 0  # of the block to visit
    done: int = 0  # rows of its chunk that are done
    idle: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8))  # visits in vain
    stream: Any = field(default=None, metadata={"saved": False})
    near: dict[int, _Near] = field(default_factory=dict, metadata={"saved": False})


@dataclass(frozen=True)
class BlockSDCA(Solver):
    """`SDCA` for a `zerogap.streamed.StreamedProblem`, whose rows are read block by block.

    Blocks come in random order, each of them once in a pass.  Ten of them, or as many as a quarter
    of `max_memory` holds, are in memory together and visited in turns: see `BlockState`.
    Blocks of which no dual variable has moved in three visits are not read again before the next
    certificate.  An epoch is always n_samples updates.

    Examples
    --------
    >>> from zerogap.solvers import BlockSDCA
    >>> BlockSDCA()
    BlockSDCA()
    """

    multiclass = True

    def begin(
        self, problem: Any, rng: np.random.Generator, warm: Answer | None = None
    ) -> BlockState:
        state = BlockState(rng, draw=rng.spawn(1)[0], alpha=problem.column())
        state.idle = np.zeros(len(problem.store.blocks), np.uint8)
        state.bias = np.zeros((2, *problem.weight_shape[:-1]))
        state.u = problem.by_feature(np.zeros(problem.weight_shape))
        if problem.fit_intercept:
            strength = problem.lam * problem.penalty.convexity()
            state.rho = max(0.1 * problem.mean_sqnorm / strength, 1.0)  # as in SDCA
            state.bias[0] = problem.first_intercept() if warm is None else warm[1]
        if warm is not None and warm[2] is not None:
            state.alpha = problem.feasible(warm[2])
            state.u = problem.by_feature(problem.dual_sum(state.alpha))
        return state

    def answer(self, problem: Any, state: BlockState) -> Answer:
        self._put_down(problem, state)  # a certificate needs the memory of the blocks
        w = problem.to_weights(problem.by_class(state.u))
        return w, state.bias[0].copy(), state.alpha

    def _steps(self, problem: Any, state: BlockState, count: int) -> int:
        left = count
        while True:
            near = self._take_up(problem, state)
            n, size, chunk = len(near.order), problem.window, state.step - state.place
            end = (chunk + 1) * n // size
            rows = near.order[chunk * n // size + state.done : end][:left]
            if self._visit(state, near, rows):
                state.idle[state.blocks[state.place]] = 0
            left -= len(rows)
            state.done += len(rows)
            if chunk * n // size + state.done == end:
                self._leave(problem, state)
            if not left:
                break
        if state.position + count == problem.shape[0]:
            state.bias[0] += state.rho * state.bias[1]  # the centre of the intercept, as in SDCA
        return count

    def _take_up(self, problem: Any, state: BlockState) -> _Near:
        """Return the block to visit, which may have to be read, and a pass to be begun."""
        if state.step >= len(state.blocks) + problem.window - 1 or not len(state.blocks):
            active = np.flatnonzero(state.idle < _IDLE)
            active = active if len(active) else np.arange(len(state.idle))
            state.idle[active] = np.minimum(state.idle[active] + 1, _IDLE)
            state.blocks, state.key = state.rng.permutation(active), int(state.rng.integers(2**62))
            state.step, state.place, state.stream = 0, 0, None
        if state.stream is None:
            oldest = max(0, state.step - problem.window + 1)
            first = oldest if state.place == oldest else max(0, state.step - problem.window + 2)
            parts = problem.stream(state.blocks[first:], problem.window)
            state.stream = enumerate(parts, first)
        while state.place not in state.near:
            place, (k, part) = next(state.stream)
            order = np.random.default_rng([state.key, k]).permutation(part.shape[0])
            state.near[place] = _Near(part, order, state.alpha[problem.span(k)])
        return state.near[state.place]

    def _leave(self, problem: Any, state: BlockState) -> None:
        """Go on to the next block of the window, or to a window with a new block."""
        if state.step - state.place == problem.window - 1:  # that was its last chunk
            near = state.near.pop(state.place)
            state.alpha[problem.span(state.blocks[state.place])] = near.alpha
        state.place, state.done = state.place + 1, 0
        if state.place > min(state.step, len(state.blocks) - 1):
            state.step += 1
            state.place = max(0, state.step - problem.window + 1)

    def _visit(self, state: BlockState, near: _Near, rows: np.ndarray) -> bool:
        """Update the dual variables of some rows; tell whether one of them has moved."""
        part: Any = near.part
        moved = np.zeros(len(rows), np.bool_)
        common = (part, part.rows, rows, rows, moved, near.alpha, state.u)
        bias = (state.bias, state.rho)
        if isinstance(part, MulticlassProblem):
            w = state.u if isinstance(part.penalty, L2) else part.to_weights(state.u)
            block_steps(*common, w, *bias, np.empty((0, part.n_classes)), 0, False)
        else:
            sdca_steps(*common, *bias, _EMPTY, 0, False)
        return bool(moved.any())

    def _put_down(self, problem: Any, state: BlockState) -> None:
        """Give all blocks back, to be taken up where they were left."""
        for j, near in state.near.items():
            state.alpha[problem.span(state.blocks[j])] = near.alpha
        state.near.clear()
        state.stream = None

    def observe(self, problem: Any, state: BlockState, record: Record, tol: float) -> None:
        """Have all blocks visited again: what was decided may not be so any more."""
        np.minimum(state.idle, _IDLE - 1, out=state.idle)

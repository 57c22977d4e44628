"""Stochastic dual coordinate ascent on data that are read block by block.

Reference: H.-F. Yu, C.-J. Hsieh, K.-W. Chang and C.-J. Lin, "Large linear classification when data
cannot fit in memory", KDD 2010.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.problem.multiclass import MulticlassProblem
from zerogap.solvers.dual_start import first_rho
from zerogap.solvers.protocol import Answer, Solver, State
from zerogap.solvers.sdca_steps import block_steps, sdca_steps

MOST_PASSES = 20  # over undecided rows, between two over all, as in SDCA
FEW_MOVED = 0.5  # of the rows of a pass: if no more have moved, the next pass is over them
_EMPTY = np.empty(0)


class _Near(NamedTuple):
    """A block in memory: its rows, the order to visit them in, and what there is of each row."""

    part: Problem
    order: np.ndarray
    alpha: np.ndarray
    moved: np.ndarray


@dataclass
class BlockState(State):
    """State of `BlockSDCA`: that of SDCA, and where it is in a pass over the blocks.

    In a pass the blocks enter the window one by one.  The rows of a block, in random order, are
    cut into as many chunks as the window has blocks; between two arrivals one chunk of each block
    in the window is visited, so that a block leaves when its last chunk is done.

    The blocks are those of the store or of its `source`, a copy of the undecided rows.  Neither
    this copy nor the one that grows during a pass is saved: both follow from the rest.
    """

    alpha: Any = field(default_factory=lambda: _EMPTY)  # an array, or a column on disk
    u: np.ndarray = field(default_factory=lambda: _EMPTY)  # of many classes: by feature
    bias: np.ndarray = field(default_factory=lambda: np.zeros(2))
    rho: float = 0.0
    passes: int = 0  # since the last one over all rows
    members: np.ndarray = field(default_factory=lambda: np.empty(0, np.bool_))  # rows to visit
    moved: np.ndarray = field(default_factory=lambda: np.empty(0, np.bool_))  # in this pass
    origin: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # of the source
    copying: bool = False  # whether the rows that move are being copied
    gone: int = 0  # rows of the blocks that have left the window in this pass
    blocks: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # of this pass
    key: int = 0  # seed of the orders of their rows
    step: int = 0  # place in this pass of the block that came last
    place: int = 0  # of the block to visit
    done: int = 0  # rows of its chunk that are done
    source: Any = field(default=None, metadata={"saved": False})
    copy: Any = field(default=None, metadata={"saved": False})
    stream: Any = field(default=None, metadata={"saved": False})
    near: dict[int, _Near] = field(default_factory=dict, metadata={"saved": False})


@dataclass(frozen=True)
class BlockSDCA(Solver):
    """`SDCA` for a `zerogap.streamed.StreamedProblem`, whose rows are read block by block.

    Blocks come in random order, each of them once in a pass.  Eight of them, or as many as a
    quarter of `max_memory` holds, are in memory together and visited in turns: see `BlockState`.

    As `SDCA` does, it makes up to 20 passes over those rows only whose dual variables still move
    before the next one over all.  If they are at most half of the rows of a pass, they are copied
    into a nameless file beside the store, which the next passes read instead: at most three
    quarters of the store's size on disk, and not done where there is no room for it.  An epoch is
    n_samples updates: it reads as many rows as one pass over the store.

    Examples
    --------
    >>> from zerogap.solvers import BlockSDCA
    >>> BlockSDCA()
    BlockSDCA()
    """

    multiclass = True
    reads = ("store",)

    def begin(
        self, problem: Any, rng: np.random.Generator, warm: Answer | None = None
    ) -> BlockState:
        n = problem.shape[0]
        state = BlockState(rng, draw=rng.spawn(1)[0], alpha=problem.column())
        state.members, state.moved = np.ones(n, np.bool_), np.zeros(n, np.bool_)
        state.bias = np.zeros((2, *problem.weight_shape[:-1]))
        state.u = problem.by_feature(np.zeros(problem.weight_shape))
        if problem.fit_intercept:
            state.rho = first_rho(problem.mean_sqnorm, problem.strength)
            state.bias[0] = problem.first_intercept() if warm is None else warm[1]
        if warm is not None and warm[2] is not None:
            state.alpha = problem.feasible(warm[2])
            state.u = problem.by_feature(problem.dual_sum(state.alpha))
        return state

    def answer(self, problem: Any, state: BlockState) -> Answer:
        self._put_down(problem, state)  # a certificate needs the memory of the blocks
        w = problem.to_weights(problem.by_class(state.u))
        return w, state.bias[0].copy(), state.alpha

    def steps(self, problem: Any, state: BlockState, count: int) -> int:
        left = count
        while True:
            near = self._take_up(problem, state)
            n, size, chunk = len(near.order), problem.window, state.step - state.place
            end = (chunk + 1) * n // size
            rows = near.order[chunk * n // size + state.done : end][:left]
            self._visit(state, near, rows)
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
        """Return the block to visit; begin a pass and read the block where that is due."""
        if state.stream is None:
            self._restore(problem, state)
        if state.step >= len(state.blocks) + problem.window - 1 or not len(state.blocks):
            self._begin_pass(problem, state)
        if state.stream is None:
            first = self._first(problem, state)
            parts = problem.stream(state.blocks[first:], problem.window, state.source)
            state.stream = enumerate(parts, first)
        while state.place not in state.near:
            place, (j, part) = next(state.stream)
            order = np.random.default_rng([state.key, j]).permutation(part.shape[0])
            origins = list(self._origins(problem, state, j))
            of_rows = (
                np.concatenate([column[span][rows] for _, span, rows, _ in origins])
                for column in (state.alpha, state.moved)
            )
            state.near[place] = _Near(part, order, *of_rows)
        return state.near[state.place]

    def _begin_pass(self, problem: Any, state: BlockState) -> None:
        """Choose the rows to visit next: all, or those that moved when they were visited last.

        Where too many have moved for a copy of them, the next pass is over the same rows again.
        """
        more = state.passes < MOST_PASSES and bool(state.moved.any())
        if more and state.copying:
            state.copy.finish()
            state.source, state.origin = state.copy, np.concatenate(state.copy.origins)
            state.members, state.moved = state.moved, state.members
        elif not more:
            state.source, state.origin = None, state.origin[:0]
            state.members[:] = True
        source = problem.store if state.source is None else state.source
        state.passes = 0 if state.source is None else state.passes + 1
        state.moved[:] = False
        state.copy, state.gone = problem.new_extract(), 0
        state.copying = state.passes < MOST_PASSES and state.copy.room > FEW_MOVED * source.nbytes
        state.blocks = state.rng.permutation(len(source.blocks))
        state.key, state.step, state.place = int(state.rng.integers(2**62)), 0, 0
        state.stream = None

    def _restore(self, problem: Any, state: BlockState) -> None:
        """Make the copies again that a checkpoint does not hold."""
        if len(state.origin) and state.source is None:
            state.source = problem.extract(state.origin, state.members)
            state.source.finish()
        if state.copying and state.copy is None:
            gone = state.blocks[: self._first(problem, state)]
            origins = [k for j in gone for k, *_ in self._origins(problem, state, j)]
            state.copy = problem.extract(origins, state.moved)

    def _first(self, problem: Any, state: BlockState) -> int:
        """Return the place of the first block of this pass that has not left the window."""
        oldest = max(0, state.step - problem.window + 1)
        return oldest if state.place == oldest else max(0, state.step - problem.window + 2)

    def _origins(
        self, problem: Any, state: BlockState, j: int
    ) -> Iterator[tuple[int, slice, np.ndarray, slice]]:
        """Yield where the rows of block j are from.

        That is the number of a block of the store, its span, which of its rows they are, and their
        places in block j.
        """
        start = 0
        for k in [j] if state.source is None else state.source.origins[j]:
            span = problem.span(k)
            rows = np.flatnonzero(state.members[span])
            yield k, span, rows, slice(start, start + len(rows))
            start += len(rows)

    def _leave(self, problem: Any, state: BlockState) -> None:
        """Go on to the next block of the window, or to a window with a new block."""
        if state.step - state.place == problem.window - 1:  # that was its last chunk
            near = state.near.pop(state.place)
            self._give_back(problem, state, state.place, near)
            if state.copying:
                self._copy(problem, state, near)
        state.place, state.done = state.place + 1, 0
        if state.place > min(state.step, len(state.blocks) - 1):
            state.step += 1
            state.place = max(0, state.step - problem.window + 1)

    def _copy(self, problem: Any, state: BlockState, near: _Near) -> None:
        """Copy the rows of a block that have moved, as long as they are few."""
        for k, _, _, places in self._origins(problem, state, state.blocks[state.place]):
            moved = places.start + np.flatnonzero(near.moved[places])
            state.copy.add(k, near.part.take(moved))
        state.gone += len(near.moved)
        if state.copy.n_samples > FEW_MOVED * state.gone:
            state.copying, state.copy = False, None

    def _visit(self, state: BlockState, near: _Near, rows: np.ndarray) -> None:
        """Update the dual variables of some rows."""
        part: Any = near.part
        moved = np.zeros(len(rows), np.bool_)
        common = (part, part.rows, rows, rows, moved, near.alpha, state.u)
        bias = (state.bias, state.rho, 1.0)
        if isinstance(part, MulticlassProblem):
            w = state.u if isinstance(part.penalty, L2) else part.to_weights(state.u)
            block_steps(*common, w, *bias, np.empty((0, part.n_classes)), 0, False)
        else:
            sdca_steps(*common, *bias, _EMPTY, 0, False, False)
        near.moved[rows] = moved

    def _give_back(self, problem: Any, state: BlockState, place: int, near: _Near) -> None:
        """Store the dual variables of a block in those of all rows."""
        for _, span, rows, places in self._origins(problem, state, state.blocks[place]):
            for column, values in ((state.alpha, near.alpha), (state.moved, near.moved)):
                block = column[span]
                block[rows] = values[places]
                column[span] = block

    def _put_down(self, problem: Any, state: BlockState) -> None:
        """Store the dual variables of all blocks in memory, and forget the blocks."""
        for place, near in state.near.items():
            self._give_back(problem, state, place, near)
        state.near.clear()
        state.stream = None

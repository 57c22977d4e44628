"""Block-coordinate Frank-Wolfe for the dual of the multiclass support vector machine.

Reference: S. Lacoste-Julien, M. Jaggi, M. Schmidt and P. Pletscher, "Block-coordinate Frank-Wolfe
optimization for structural SVMs", ICML 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from zerogap.kernels.jit import kernel
from zerogap.losses import MulticlassHinge
from zerogap.problem import Problem
from zerogap.rows import CLASSES
from zerogap.solvers.dual_start import first_rho, warm_duals
from zerogap.solvers.protocol import Answer, Solver, State, empty_like
from zerogap.solvers.sgd import check_batch_size, check_l2

_EMPTY = np.empty((0, 0))


@kernel
def _row_steps(problem, order, alpha, u, bias, rho, gaps, trace, age, weighted):
    """Frank-Wolfe steps on single rows: towards the most violating class, as far as is best."""
    rows, lam, identity = problem.rows, problem.lam, problem.penalty
    C, averaging = alpha.shape[1], len(trace) > 0
    padded = (C + CLASSES - 1) // CLASSES * CLASSES
    scores, step = np.empty(padded), np.zeros(padded)
    votes = np.empty(C)
    for k in range(len(order)):
        i = order[k]
        s, y = problem.share[i], problem.y[i]
        scores[:] = 0.0
        rows.add_scores(scores, i, u)
        for c in range(C):
            scores[c] += bias[0, c] + (c != y)
        best = scores[:C].argmax()
        gap, length = 0.0, 0.0
        for c in range(C):
            votes[c] = (c == best) - ((c == y) - alpha[i, c])  # the direction, from old to best
            gap += votes[c] * scores[c]
            length += votes[c] * votes[c]
        gaps[i] = s * gap
        curvature = s * (problem.sqnorms[i] / lam + rho) * length
        share = min(1.0, gap / curvature) if curvature > 0.0 else 1.0 * (gap > 0.0)
        if share > 0.0 and length > 0.0:
            for c in range(C):
                change = -share * votes[c]
                alpha[i, c] += change
                bias[0, c] += rho * s * change
                bias[1, c] += s * change
                step[c] = s * change / lam
                if averaging:
                    missed = age + k
                    trace[i, c] += change * (0.5 * missed * (missed + 1) if weighted else missed)
            rows.add_outer(u, u, i, step, identity)


@dataclass
class BCFWState(State):
    """State of `BCFW`: dual vectors, their sum, the intercepts, and the last known block gaps."""

    alpha: np.ndarray = field(default_factory=lambda: _EMPTY)
    u: np.ndarray = field(default_factory=lambda: _EMPTY)
    bias: np.ndarray = field(default_factory=lambda: _EMPTY)  # b and mean(alpha)
    rho: float = 0.0
    members: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # block by block
    gaps: np.ndarray = field(default_factory=lambda: np.empty(0))
    order: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    trace: np.ndarray = empty_like("alpha")
    drawn: np.ndarray = empty_like("alpha")

    def misfit(self) -> str:
        outside = len(self.order) > 0 and self.order.max() >= len(self.gaps)
        return super().misfit() or ("order" if outside else "")


@dataclass(frozen=True)
class BCFW(Solver):
    """Block-coordinate Frank-Wolfe for the multiclass hinge loss: no step size to tune.

    A step takes one block of rows, moves the dual variables of each row towards the vertex of the
    simplex that its most violating class names, and takes the step length in [0, 1] that is best
    for the dual, in closed form.  Blocks are a fixed random partition of the rows.

    Parameters
    ----------
    batch_size : int
        Rows per block: 1 for block-coordinate Frank-Wolfe proper, n_samples for Frank-Wolfe.
    sampling : "permutation", "random" or "gap"
        Blocks in a new order in each epoch, drawn independently, or drawn in proportion to their
        last known gaps.
    output, t0
        As in `SDCA`.

    Notes
    -----
    Memory is O(n_samples n_classes + n_classes n_features): the weights of the blocks are never
    stored, only their dual variables.  Larger blocks are evaluated by matrix products.

    Examples
    --------
    >>> import numpy as np, zerogap as zg
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> problem = zg.Problem(X, X[:, :3].argmax(axis=1), "multiclass-hinge", lam=0.1)
    >>> zg.solve(problem, zg.BCFW(), tol=0.01, random_state=0).stop_reason
    'converged'
    """

    multiclass = True
    batch_size: int = 1
    sampling: str = "permutation"
    output: str = "last"
    t0: int | None = None

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> BCFWState:
        n = problem.shape[0]
        state = BCFWState(rng, draw=rng.spawn(1)[0], alpha=np.zeros(problem.dual_shape))
        state.bias = np.zeros((2, *problem.weight_shape[:-1]))
        if problem.fit_intercept:
            state.rho = first_rho(problem.mean_sqnorm, problem.strength)
            state.bias[0] = 0.0 if warm is None else warm[1]
        if warm is not None:
            state.alpha = warm_duals(problem, warm)
        state.u = problem.by_feature(problem.dual_sum(state.alpha))
        state.bias[1] = problem.share @ state.alpha
        state.members = rng.permutation(n) if self.batch_size > 1 else np.arange(n)
        state.gaps = np.full(self.epoch_length(problem), math.inf)
        if self.averaging:
            state.trace = np.zeros(problem.dual_shape)
        return state

    def epoch_length(self, problem: Problem) -> int:
        return -(-problem.shape[0] // self.batch_size)

    def answer(self, problem: Problem, state: BCFWState) -> Answer:
        b = state.bias[0].copy()
        if self.output == "random" and len(state.drawn):
            return problem.weights(state.drawn), b, state.drawn
        if self.averaging and state.updates > state.t0:
            alpha = state.alpha - state.trace / self._total_weight(state)
            return problem.weights(alpha), b, alpha
        return problem.by_class(state.u), b, state.alpha.copy()

    def steps(self, problem: Problem, state: BCFWState, count: int) -> int:
        length = self.epoch_length(problem)
        if count and state.position == 0:
            state.order = self._order(length, state)
        order = state.order[state.position : state.position + count]
        trace = state.trace if self.averaging and state.updates >= state.t0 else _EMPTY
        age, weighted = state.updates - state.t0 + 1, self.output == "weighted-average"
        if self.batch_size == 1:
            arrays = (problem, order, state.alpha, state.u, state.bias, state.rho, state.gaps)
            _row_steps(*arrays, trace, age, weighted)
            visited = count
        else:
            visited = 0
            for k, block in enumerate(order):
                start = block * self.batch_size
                rows = state.members[start : start + self.batch_size]
                missed = age + k
                weight = missed * (missed + 1) / 2 if weighted else missed
                self._block_step(problem, state, block, rows, trace, weight)
                visited += len(rows)
        if count and state.position + count == length:
            state.bias[0] += state.rho * state.bias[1]
        return visited

    def _block_step(
        self,
        problem: Problem,
        state: BCFWState,
        block: int,
        rows: np.ndarray,
        trace: np.ndarray,
        weight: float,
    ) -> None:
        """Make the step of `_row_steps` for all rows of a block together, by matrix products."""
        X, share = problem.rows.take(rows), problem.share[rows, None]
        d, C = problem.shape[1], problem.dual_shape[1]
        u = state.u.reshape(d, -1)[:, :C].T
        own = problem.y[rows, None] == np.arange(C)
        scores = X.product(u) + state.bias[0] + ~own
        best = scores.argmax(axis=1)[:, None] == np.arange(C)
        direction = best - (own - state.alpha[rows])
        gap = float((share * direction * scores).sum())
        state.gaps[block] = gap
        towards = -X.transposed_product(share * direction) / problem.lam
        mean = -(share * direction).sum(axis=0)
        curvature = problem.lam * float((towards**2).sum()) + state.rho * float(mean @ mean)
        step = min(1.0, gap / curvature) if curvature > 0 else float(gap > 0)
        state.alpha[rows] -= step * direction
        u += step * towards
        state.bias[0] += state.rho * step * mean
        state.bias[1] += step * mean
        if len(trace):
            trace[rows] -= weight * step * direction

    def _draw(self, problem: Problem, state: BCFWState) -> None:
        state.drawn = state.alpha.copy()

    def _order(self, length: int, state: BCFWState) -> np.ndarray:
        """Return the blocks to visit in the coming epoch."""
        if self.sampling == "random":
            return state.rng.integers(length, size=length)
        known = np.isfinite(state.gaps).all() and state.gaps.sum() > 0
        if self.sampling == "gap" and known:
            # a tenth at random: a block whose gap was zero once may not be forgotten
            chances = 0.9 * state.gaps / state.gaps.sum() + 0.1 / length
            return state.rng.choice(length, size=length, p=chances / chances.sum())
        return state.rng.permutation(length)

    def check(self, problem: Problem) -> None:
        self._check_output()
        self._choose("sampling", ("permutation", "random", "gap"))
        check_batch_size(self, problem)
        check_l2(self, problem)
        hinge = isinstance(problem.loss, MulticlassHinge)
        self._require(
            hinge, f"is made for the multiclass hinge, not for {problem.loss!r}: use SDCA"
        )

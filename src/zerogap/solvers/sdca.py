"""Stochastic dual coordinate ascent.

Reference: S. Shalev-Shwartz and T. Zhang, "Stochastic dual coordinate ascent methods for
regularized loss minimization", JMLR 14, 2013; its proximal form for the elastic net: the same,
"Accelerated proximal stochastic dual coordinate ascent", Mathematical Programming 155, 2016.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from zerogap.io.memory import free_memory
from zerogap.kernels.machine_code import first_time
from zerogap.penalties import L2, ElasticNet
from zerogap.problem import Problem
from zerogap.problem.multiclass import MulticlassProblem
from zerogap.solvers.dual_start import first_rho, warm_duals
from zerogap.solvers.free_variables import compile_for, has_free_steps, improve
from zerogap.solvers.history import Record
from zerogap.solvers.protocol import Answer, Solver, State, empty_like
from zerogap.solvers.sdca_steps import block_steps, modified_sgd, sdca_steps

# Rows visited together: one cache line of alpha.  Larger buckets are hardly faster per epoch, but
# 64 fixed neighbours cost 2.5 times the epochs on data with few features (benchmarks/TABLES.md).
_ROWS_PER_BUCKET = 8
_BYTES_WORTH_COPYING = 16_000_000  # bytes: below, the data stay in cache whatever the order
# Passes over the undecided rows between two over all: few while many a row is decided wrongly,
# more of them where a row has many dual variables
FIRST_PASSES, LAST_PASSES, LAST_PASSES_OF_MANY = 4, 20, 40
EPOCHS_BEFORE_FREE_STEPS = 12  # epochs before steps on free variables: most fits end sooner
LEAST_PRODUCTS, MOST_PRODUCTS = 20, 200  # of conjugate gradients, in a step on the free variables
RECENT_PASSES = 20  # passes, roughly, that the average of recent weights covers
FIRST_UNIT = 2.0  # gap divided by the solver's estimate of it, until a certificate tells; a guess
SAMPLED_ROWS = 4096  # rows on which two models are compared
_EMPTY = np.empty(0)


@dataclass
class SDCAState(State):
    """State of `SDCA`: dual variables and, kept in step with them, the dual sum u and the bias."""

    alpha: np.ndarray = field(default_factory=lambda: _EMPTY)  # in storage order
    u: np.ndarray = field(default_factory=lambda: _EMPTY)  # of many classes: by feature
    bias: np.ndarray = field(default_factory=lambda: np.zeros(2))
    rho: float = 0.0
    mass: float = 0.0
    layout: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # storage -> row
    order: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # of this pass
    done: int = 0  # places of this order visited
    passes: int = 0  # since the last one over all rows
    span: int = FIRST_PASSES  # the most of these
    moved: np.ndarray = empty_like("order", np.bool_)  # in this pass
    members: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # undecided places
    chosen: np.ndarray = empty_like("order", np.int64)  # members to visit
    tally: float = 0.0  # what the rows visited in this pass add to the gap
    estimate: float = math.inf  # the tally of the last pass over all rows
    unit: float = math.nan  # multiplies `estimate` into a relative gap
    limit: int = LEAST_PRODUCTS  # products of the next step on the free variables
    recent: np.ndarray = empty_like("u")  # at the ends of recent passes
    recent_b: Any = 0.0
    ends: int = 0  # passes in them
    trace: np.ndarray = empty_like("alpha")
    drawn: np.ndarray = empty_like("alpha")
    copied: bool = False
    stored: Problem | None = field(default=None, metadata={"saved": False})
    near: Any = field(default=None, metadata={"saved": False})  # a copy of the members' rows
    sample: Problem | None = field(default=None, metadata={"saved": False})  # see `_sample`

    def misfit(self) -> str:
        n = len(self.alpha)
        fits = {
            "layout": len(self.layout) in (0, n) and len(np.unique(self.layout)) in (0, n),
            "copied": not self.copied or len(self.layout) == n,
            "moved": len(self.moved) == len(self.order),
            "done": self.done <= len(self.order),
            "chosen": not len(self.chosen) or self.chosen.max() < len(self.members),
            "ends": not self.ends or len(self.recent) > 0,
        }
        return super().misfit() or next((name for name in fits if not fits[name]), "")


@dataclass(frozen=True)
class SDCA(Solver):
    """Stochastic dual coordinate ascent: one exact dual step at a time, no step size to tune.

    Parameters
    ----------
    sampling : "permutation", "random" or "cyclic"
        A new order in each epoch, independent draws with replacement, or one random order kept.
    output : "last", "average", "weighted-average", "random", "best" or "recent"
        The last iterate, the average of the iterates after `t0` (plain, or with weights 1, 2, 3,
        ...), one of them drawn at random, or the one with the smallest certified gap.  "recent"
        takes the last dual variables and the better of two weights, by some thousand rows: the
        last, or their average over the ends of some twenty passes, the latest counting most.
        Changes the answer, never the path.
    t0 : int, optional
        Number of updates before averaging or drawing begins; half of the budget by default.
        Until then the answer is the last iterate.
    start : None or "sgd"
        "sgd" makes the first epoch one of modified SGD, in which row t is treated as the last row
        of a problem with t rows.
    layout : "auto", "shuffled" or "given"
        "shuffled" visits rows in buckets of 8 neighbours of one random order, and copies the data
        into that order if a quarter of the free memory holds it: faster epochs on data that exceed
        the processor's cache, for the memory of one copy.  "auto" does so for such data.  The copy
        changes the speed, never the bits of the result.
    shrink : bool
        Whether, under "permutation", a pass over all rows is followed by 4, later by up to 20
        passes (40 for losses of many classes) over those rows only whose dual variables still
        move.  An epoch is always n_samples
        updates, so fewer epochs are needed.
    finish : bool
        Whether, with `shrink` and for all losses but the logistic and those of many classes,
        conjugate gradients over the dual variables between their ends follow these passes.
        Coordinate ascent alone is very slow if rows are nearly collinear.
    relaxation : float
        At least 1 and below 2.  Above 1 steps are longer than those that raise the dual most, as
        if the curvature were divided by it: successive over-relaxation.  They still raise the
        dual, and weights that swing more gain more from ``output="recent"``.

    Notes
    -----
    An update costs O(non-zeros of a row).  Memory: the data, their copy if one is made and then,
    with `shrink`, at most half as much for the rows that still move, and a few numbers per row and
    feature.

    Examples
    --------
    >>> import zerogap as zg
    >>> problem = zg.Problem([[1.0], [2.0]], [-1, 1], "logistic", lam=0.5)
    >>> result = zg.solve(problem, zg.SDCA(sampling="cyclic"), tol=1e-9, random_state=0)
    >>> result.certificate.relative_gap <= 1e-9
    True
    """

    multiclass = True
    sampling: str = "permutation"
    output: str = "last"
    t0: int | None = None
    start: str | None = None
    layout: str = "auto"
    shrink: bool = True
    finish: bool = False
    relaxation: float = 1.0

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> SDCAState:
        n = problem.shape[0]
        state = SDCAState(rng, draw=rng.spawn(1)[0], alpha=np.zeros(problem.dual_shape))
        state.bias = np.zeros((2, *problem.weight_shape[:-1]))
        if problem.fit_intercept:
            state.rho = first_rho(problem.mean_sqnorm, problem.strength)
            state.bias[0] = problem.first_intercept() if warm is None else warm[1]
        if warm is not None:
            state.alpha = warm_duals(problem, warm)
        elif not problem.sqnorms.any():
            state.alpha = problem.dual_point(np.zeros(problem.dual_shape), state.bias[0])
        state.u = problem.by_feature(problem.dual_sum(state.alpha))
        state.bias[1] = problem.share @ state.alpha
        if self._shuffles(problem):
            state.layout = rng.permutation(n)
            state.copied = problem.rows.nbytes < 0.25 * free_memory()
            state.alpha = state.alpha[state.layout] if state.copied else state.alpha
        return state

    def answer(self, problem: Problem, state: SDCAState) -> Answer:
        alpha, u = state.alpha, state.u
        if self.averaging and state.updates > state.t0:
            alpha = alpha - state.trace / self._total_weight(state)
        elif self.output == "random" and len(state.drawn):
            alpha = state.drawn
        moved = alpha is not state.alpha
        if state.copied:
            rows = np.empty_like(alpha)
            rows[state.layout] = alpha
            alpha = rows
        b = state.bias[0].copy()
        w = problem.weights(alpha) if moved else problem.to_weights(problem.by_class(u))
        if state.ends:
            average = problem.to_weights(problem.by_class(state.recent)), np.copy(state.recent_b)
            few = self._sample(problem, state)
            w, b = min((w, b), average, key=lambda point: few.primal(*point))
        return w, b, alpha

    def _sample(self, problem: Problem, state: SDCAState) -> Problem:
        """Return some of the rows: enough to compare two models."""
        n = problem.shape[0]
        if n <= SAMPLED_ROWS:
            return problem
        if state.sample is None:
            few = problem.take(np.arange(0, n, n // SAMPLED_ROWS))
            total = few.share.sum()
            state.sample = few._with(share=few.share / total) if total > 0 else problem
        return state.sample

    def relative_gap(self, problem: Problem, state: SDCAState) -> float | None:
        """Return an estimate in the cases where certificates are too expensive to ask for often."""
        known = isinstance(problem, MulticlassProblem) or self._is_late(problem, state)
        begun = math.isfinite(state.estimate) or self.output == "recent"
        return state.unit * state.estimate if known and begun else None

    def observe(self, problem: Problem, state: SDCAState, record: Record, tol: float) -> None:
        """Learn the factor between `estimate` and the relative gap of the answer."""
        state.unit = 1.0 / max(abs(record.certificate.primal), 1e-300)
        if self.output == "recent":
            known = 0.0 < state.estimate < math.inf
            state.unit *= record.gap / state.estimate if known else FIRST_UNIT

    def finishes(self, problem: Problem, state: SDCAState) -> bool:
        """Tell whether steps on the free variables will follow: most rows have been decided."""
        return self.finish and state.span > FIRST_PASSES and has_free_steps(problem)

    def _watches(self, problem: Problem) -> bool:
        """Tell whether to add up the visited rows' parts of the gap."""
        return isinstance(problem, MulticlassProblem) or (self.finish and has_free_steps(problem))

    def steps(self, problem: Problem, state: SDCAState, count: int) -> int:
        n, products = problem.shape[0], 0
        if count and state.copied:
            self.prepare(problem, state)
            problem = cast("Problem", state.stored)
        if self.averaging and not len(state.trace):
            state.trace = np.zeros(problem.dual_shape)
        free_steps = self.finish and has_free_steps(problem)
        if not count and free_steps and first_time(SDCA, *problem.kind):
            compile_for(problem)
        left = count
        while True:
            if left and state.done == len(state.order):
                if state.passes == state.span and self._is_late(problem, state):
                    products += self._finish(problem, state)
                self._begin_pass(n, state)
            part = min(left, len(state.order) - state.done)
            self._visit(problem, state, part, state.updates + count - left)
            state.done += part
            left -= part
            if not left:
                break
        if state.position + count == n:
            # The centre of b moves once an epoch, see `dual_start`.  Measured: several times an
            # epoch gains nothing, and oscillates on few rows.
            state.bias[0] += state.rho * state.bias[1]
        return count + products

    def _is_late(self, problem: Problem, state: SDCAState) -> bool:
        """Tell whether coordinate ascent takes longer than usual: then free steps should help."""
        early = state.updates < EPOCHS_BEFORE_FREE_STEPS * problem.shape[0]
        return self.finish and not early and has_free_steps(problem)

    def _finish(self, problem: Problem, state: SDCAState) -> int:
        """Make a step on the variables that the last pass found free; return the rows it read."""
        state.near = None
        places = np.sort(state.order[state.moved])
        arrays = (state.alpha, state.u, state.bias, state.rho)
        products, whole = improve(problem, places, *arrays, state.limit)
        if not whole:
            state.limit = max(LEAST_PRODUCTS, state.limit // 2)
        elif products == state.limit:
            state.limit = min(MOST_PRODUCTS, 2 * state.limit)
        return 2 * products * len(places)

    def _visit(self, problem: Problem, state: SDCAState, count: int, updates: int) -> None:
        """Make the next `count` updates of this pass, after `updates` others."""
        begun = self.averaging and updates >= state.t0
        age = updates - state.t0 + 1
        trace = state.trace if begun else state.trace[:0].reshape(0, *state.alpha.shape[1:])
        averages = (trace, age, self.output == "weighted-average")
        span = slice(state.done, state.done + count)
        arrays, bias = (state.alpha, state.u), (state.bias, state.rho)
        relaxed = (*bias, self.relaxation)
        order, moved = state.order[span], state.moved[span]
        rows, slots = problem.rows, order
        if state.copied and count and len(state.chosen):
            if state.near is None:
                state.near = rows.take(state.members)
            rows, slots = state.near, state.chosen[span]
        common: Any = (problem, rows, slots, order, moved)
        if isinstance(problem, MulticlassProblem):
            w = state.u if isinstance(problem.penalty, L2) else problem.to_weights(state.u)
            state.tally += block_steps(*common, *arrays, w, *relaxed, *averages)
            return
        first = self.start == "sgd" and updates < problem.shape[0]
        if first:
            state.mass = modified_sgd(problem, order, *arrays, *bias, state.mass, *averages)
        if not first or not count:  # both are compiled before the clock starts
            watch = self._watches(problem)
            state.tally += sdca_steps(*common, *arrays, *relaxed, *averages, watch)

    def _begin_pass(self, n: int, state: SDCAState) -> None:
        """Choose the rows of the next pass: all, or those that moved when they were last visited.

        A step of zero means that the dual variable is at a bound and should stay there.  Most such
        rows stay decided; the next pass over all rows finds the others.
        """
        if len(state.order) and not len(state.chosen):  # other passes miss most of the gap
            state.estimate = state.tally
        if len(state.order) and self.output == "recent":
            self._average(state)
        state.tally = 0.0
        shrink = self.shrink and self.sampling == "permutation" and state.passes < state.span
        if shrink and 0 < np.count_nonzero(state.moved) < 0.5 * n:
            state.passes += 1
            if not len(state.chosen):
                state.members = state.order[state.moved]
                state.chosen = np.arange(len(state.members))
            else:
                state.chosen = state.chosen[state.moved]
                state.chosen.sort()
            size = _ROWS_PER_BUCKET if len(state.layout) else 1
            state.chosen = state.chosen[_shuffled(state.rng, len(state.chosen), size)]
            state.order = state.members[state.chosen]
        else:
            if state.passes:
                longest = LAST_PASSES if state.alpha.ndim == 1 else LAST_PASSES_OF_MANY
                state.span = min(longest, 2 * state.span)
            state.passes, state.near = 0, None
            state.members = state.chosen = state.chosen[:0]
            state.order = self._order(n, state)
        state.done, state.moved = 0, np.zeros(len(state.order), np.bool_)

    def _average(self, state: SDCAState) -> None:
        """Add the present weights to the average over recent passes."""
        if not state.ends:
            state.recent, state.recent_b = np.zeros_like(state.u), np.zeros_like(state.bias[0])
        state.ends += 1
        weight = 2.0 / (1 + min(state.ends, RECENT_PASSES))
        state.recent += weight * (state.u - state.recent)
        state.recent_b = state.recent_b + weight * (state.bias[0] - state.recent_b)

    def prepare(self, problem: Problem, state: SDCAState) -> None:
        """Copy the data into the order of the layout."""
        if state.copied and state.stored is None:
            state.stored = problem.take(state.layout)

    def _draw(self, problem: Problem, state: SDCAState) -> None:
        state.drawn = state.alpha.copy()

    def _order(self, n: int, state: SDCAState) -> np.ndarray:
        """Return the storage places to visit in a pass over all rows."""
        first = self.start == "sgd" and state.updates == 0  # which must see each row once
        if self.sampling == "random" and not first:
            return state.rng.integers(n, size=n)
        if self.sampling == "cyclic" and len(state.order):
            return state.order
        if not len(state.layout):
            return state.rng.permutation(n)
        cyclic = self.sampling == "cyclic"
        order = np.arange(n) if cyclic else _shuffled(state.rng, n, _ROWS_PER_BUCKET)
        return order if state.copied else state.layout[order]

    def _shuffles(self, problem: Problem) -> bool:
        if self.sampling == "random" or self.layout == "given":
            return False
        large = (
            problem.rows.nbytes >= _BYTES_WORTH_COPYING
            and problem.shape[0] >= 100 * _ROWS_PER_BUCKET
        )
        return large or self.layout == "shuffled"

    def check(self, problem: Problem) -> None:
        self._choose("sampling", ("permutation", "random", "cyclic"))
        self._check_output("recent")
        self._choose("start", (None, "sgd"))
        self._choose("layout", ("auto", "shuffled", "given"))
        self._choose("shrink", (True, False))
        self._choose("finish", (True, False))
        self._require(1.0 <= self.relaxation < 2.0, "relaxation must be at least 1 and below 2")
        last = self.output in ("last", "best")
        self._require(last or not self.finish, "finish=True needs output='last' or 'best'")
        if self.start == "sgd":
            l2 = not isinstance(problem.penalty, ElasticNet)
            self._require(l2, "start='sgd' is defined for the L2 penalty only, use l1_ratio=0")
            scalar = problem.loss.task != "multiclass"
            self._require(scalar, "start='sgd' is not defined for multiclass losses")


def _shuffled(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Return 0 ... n - 1 in random order, except for buckets of neighbours that stay together."""
    if size == 1:
        return rng.permutation(n)
    buckets = size * rng.permutation(-(-n // size))
    order = (buckets[:, None] + np.arange(size)).ravel()
    return order[order < n]

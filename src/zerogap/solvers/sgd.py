"""Stochastic (sub-)gradient descent, with lazy scaling, averages and dual variables.

A step w <- (1 - eta lam) w - eta g, where g is the mean of n share_i phi'(z_i) x_i over a batch,
only adds rows to v if w is stored as scale * v: on sparse data it costs O(non-zeros).  The sum of
all iterates is kept as (running sum of scales) * v + rest, again touching only the rows of a batch
(W. Xu, "Towards optimal one pass large scale learning with averaged stochastic gradient descent",
2011).  And since w = scale sum_i c_i x_i, each method has dual variables without asking for them:
alpha_i = lam scale c_i / share_i satisfies w = w(alpha).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.kernels.jit import kernel
from zerogap.penalties import ElasticNet
from zerogap.problem import Problem
from zerogap.solvers.protocol import Answer, Solver, State, empty_like

_EMPTY = np.empty(0)
_ROWS_AHEAD = 16  # rows between asking for one and using it
SCALE, SCALES, SQNORM, OBJECTIVE, BATCHES = range(5)  # places in `numbers`


@kernel
def _multiply_out(numbers, v, rest):
    """Give v the scale's size, after what the average owes it, if there is one, is in `rest`."""
    for j in range(len(v)):
        if len(rest) > 0:
            rest[j] += numbers[SCALES] * v[j]
        v[j] *= numbers[SCALE]


@kernel
def subgradient_steps(
    problem, order, batch, rates, v, c, bias, numbers, sums, radius, age, weighted
):
    """One mini-batch step for each row (eta, 1 - eta lam, rate of b) of `rates`.

    `numbers` holds the scale and what is summed along the way; `sums` the rests of the averages.
    """
    rows, loss, identity = problem.rows, problem.loss, problem.penalty
    n, lam, last = len(problem.y), problem.lam, len(order) - 1
    rest_v, rest_c = sums
    averaging = len(rest_v) > 0
    slopes, products = np.empty(batch), np.empty(batch)
    for k in range(len(rates)):
        eta, shrink, bias_rate = rates[k]
        first, end = k * batch, min((k + 1) * batch, len(order))
        size = end - first
        value, pull = 0.0, 0.0
        for j in range(size):
            rows.hint(order[min(first + j + 2 * _ROWS_AHEAD, last)])
            rows.fetch(order[min(first + j + _ROWS_AHEAD, last)])
            i = order[first + j]
            weight = n * problem.share[i] / size
            products[j] = rows.dot(i, v, identity)
            z = numbers[SCALE] * products[j] + bias[0]
            slopes[j] = weight * loss.derivative(z, problem.y[i])
            value += weight * loss.value(z, problem.y[i])
            pull += slopes[j]
        numbers[OBJECTIVE] += value + 0.5 * lam * numbers[SQNORM]
        numbers[BATCHES] += 1.0
        if averaging:
            numbers[SCALES] += numbers[SCALE] * (age + k if weighted else 1.0)
        numbers[SQNORM] *= shrink * shrink
        numbers[SCALE] *= shrink
        if numbers[SCALE] < 1e-9:  # also in Pegasos' first step, which forgets the start
            _multiply_out(numbers, v, rest_v)
            _multiply_out(numbers, c, rest_c)
            for j in range(size):
                products[j] *= numbers[SCALE]
            numbers[SCALES] = 0.0
            numbers[SCALE] = 1.0
        for j in range(size):
            if slopes[j] != 0.0:
                i = order[first + j]
                move = -eta * slopes[j] / numbers[SCALE]
                product = products[j] if size == 1 else rows.dot(i, v, identity)
                growth = (2.0 * product + move * problem.sqnorms[i]) * move
                numbers[SQNORM] += growth * numbers[SCALE] ** 2
                rows.add_to(v, i, move)
                c[i] += move
                if averaging:
                    rows.add_to(rest_v, i, -numbers[SCALES] * move)
                    rest_c[i] -= numbers[SCALES] * move
        bias[0] -= bias_rate * pull
        if numbers[SQNORM] > radius * radius:
            numbers[SCALE] *= radius / math.sqrt(numbers[SQNORM])
            numbers[SQNORM] = radius * radius


@dataclass
class SubgradientState(State):
    """State of the stochastic sub-gradient methods; see the head of this file for v, c and sums."""

    v: np.ndarray = field(default_factory=lambda: _EMPTY)
    c: np.ndarray = field(default_factory=lambda: _EMPTY)
    bias: np.ndarray = field(default_factory=lambda: _EMPTY)
    numbers: np.ndarray = field(default_factory=lambda: np.array([1.0, 0, 0, 0, 0]))
    rest_v: np.ndarray = empty_like("v", beside="rest_c")
    rest_c: np.ndarray = empty_like("c")
    order: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    drawn_w: np.ndarray = empty_like("v", beside="drawn_alpha")
    drawn_alpha: np.ndarray = empty_like("c")
    drawn_b: Any = 0.0


@dataclass(frozen=True)
class StochasticSubgradient(Solver):
    """What Pegasos and SGD share; they define ``_rates`` and their parameters."""

    dual = False
    batch_size = 1
    sampling = "epochs"
    radius = math.inf

    def _rates(self, problem: Problem, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return eta and 1 - eta lam for the steps with these numbers, counted from 1."""
        raise NotImplementedError

    def _ball(self, problem: Problem) -> float:
        """Return the radius of the ball that iterates are projected on."""
        return math.inf

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> SubgradientState:
        state = SubgradientState(rng, draw=rng.spawn(1)[0])
        zeros = problem.xp.zeros
        state.v, state.c = zeros(problem.weight_shape), zeros(problem.dual_shape)
        state.bias = zeros(problem.weight_shape[:-1] or 1)
        if problem.fit_intercept:
            state.bias[:] = problem.first_intercept()
        if warm is not None:
            w, state.bias[:], alpha = warm
            state.v[:] = w
            if alpha is not None:
                state.c[:] = (problem.share * np.transpose(alpha)).T / problem.lam
            norm = float(np.linalg.norm(state.v))
            ball = self._ball(problem)
            self._require(norm <= ball * (1 + 1e-9), f"must start in the ball |w| <= {ball:g}")
        return state

    def epoch_length(self, problem: Problem) -> int:
        return -(-problem.shape[0] // self.batch_size)

    def answer(self, problem: Problem, state: SubgradientState) -> Answer:
        v, c, numbers = state.v, state.c, state.numbers
        if self.output == "random" and len(state.drawn_w):
            return state.drawn_w, state.drawn_b, state.drawn_alpha
        if self.averaging and state.updates > state.t0:
            total = self._total_weight(state)
            w = (numbers[SCALES] * v + state.rest_v) / total
            c = (numbers[SCALES] * c + state.rest_c) / total
        else:
            w, c = numbers[SCALE] * v, numbers[SCALE] * c
        return w, self._intercept(problem, state), _duals(problem, c)

    def _intercept(self, problem: Problem, state: SubgradientState) -> Any:
        scalar = problem.loss.task != "multiclass"
        return float(state.bias[0]) if scalar else state.bias.copy()

    def extras(self, problem: Problem, state: SubgradientState) -> dict[str, float]:
        """Return the mean of the mini-batch objectives of the present epoch, before each update."""
        batches = state.numbers[BATCHES]
        return {"estimate": state.numbers[OBJECTIVE] / batches if batches else math.nan}

    def steps(self, problem: Problem, state: SubgradientState, count: int) -> int:
        n = problem.shape[0]
        numbers = state.numbers
        if count and state.position == 0:
            state.order = self._order(n, state.rng)
            numbers[[OBJECTIVE, BATCHES]] = 0.0
            numbers[SQNORM] = numbers[SCALE] ** 2 * float(np.sum(state.v**2))  # undo rounding
        begun = self.averaging and state.updates >= state.t0
        if begun and not len(state.rest_v):
            state.rest_v, state.rest_c = np.zeros_like(state.v), np.zeros_like(state.c)
        sums = (state.rest_v, state.rest_c) if begun else (_EMPTY, _EMPTY)
        steps = state.updates + 1.0 + np.arange(count)
        rates = np.zeros((count, 3))
        rates[:, 0], rates[:, 1] = self._rates(problem, steps)
        if problem.fit_intercept:  # not regularised, so that eta may be far too long for b
            rates[:, 2] = np.minimum(rates[:, 0], 1.0 / (curvature(problem) * np.sqrt(steps)))
        start = state.position * self.batch_size
        order = state.order[start : start + count * self.batch_size]
        age, weighted = state.updates - state.t0 + 1, self.output == "weighted-average"
        if problem.loss.task == "multiclass" or problem.on_device:
            for k, rate in enumerate(rates):
                members = problem.place(order[k * self.batch_size : (k + 1) * self.batch_size])
                self._matrix_step(
                    problem, state, members, rate, begun * (age + k if weighted else 1)
                )
        else:
            arrays = (state.v, state.c, state.bias, numbers, sums)
            common = (problem, order, self.batch_size, rates, *arrays)
            subgradient_steps(*common, self._ball(problem), age, weighted)
        return len(order)

    def _matrix_step(
        self,
        problem: Problem,
        state: SubgradientState,
        members: np.ndarray,
        rate: np.ndarray,
        weight: float,
    ) -> None:
        """Make one step of `subgradient_steps` by matrix products: many classes, or on a GPU."""
        (eta, shrink, bias_rate), numbers = rate, state.numbers
        part = problem.take(members)
        part = part._with(share=problem.shape[0] / len(members) * part.share)
        z = numbers[SCALE] * part.scores(state.v) + state.bias
        pull = (part.share * part.dual_from_scores(z).T).T
        value = part.mean_loss(z)
        numbers[OBJECTIVE] += value + 0.5 * problem.lam * numbers[SQNORM]
        numbers[BATCHES] += 1.0
        numbers[SCALES] += weight * numbers[SCALE]
        numbers[SCALE] *= shrink
        if numbers[SCALE] < 1e-9:
            if weight:
                state.rest_v += numbers[SCALES] * state.v
                state.rest_c += numbers[SCALES] * state.c
                numbers[SCALES] = 0.0
            state.v *= numbers[SCALE]
            state.c *= numbers[SCALE]
            numbers[SCALE] = 1.0
        moves = eta / numbers[SCALE] * pull
        many = problem.loss.task == "multiclass"
        change = (part.rows.transposed_product if many else part.rows.transposed_times)(moves)
        state.v += change
        state.c[members] += moves
        if weight:
            state.rest_v -= numbers[SCALES] * change
            state.rest_c[members] -= numbers[SCALES] * moves
        numbers[SQNORM] = numbers[SCALE] ** 2 * float(np.sum(state.v**2))
        state.bias += bias_rate * pull.sum(axis=0)
        if numbers[SQNORM] > (radius := self._ball(problem)) ** 2:
            numbers[SCALE] *= radius / math.sqrt(numbers[SQNORM])
            numbers[SQNORM] = radius**2

    def _draw(self, problem: Problem, state: SubgradientState) -> None:
        scale = state.numbers[SCALE]
        state.drawn_w, state.drawn_b = scale * state.v, self._intercept(problem, state)
        state.drawn_alpha = _duals(problem, scale * state.c)

    def _order(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return the rows of the epoch's batches, one batch after the other."""
        size = self.batch_size
        if self.sampling == "epochs":  # a random partition, its last batch smaller
            return rng.permutation(n)
        steps = -(-n // size)
        if size == 1:
            return rng.integers(n, size=n)
        if size * size > n:
            return np.concatenate([rng.choice(n, size, replace=False) for _ in range(steps)])
        batches = rng.integers(n, size=(steps, size))  # subsets: draw again where a row repeats
        while (twice := (np.diff(np.sort(batches, axis=1), axis=1) == 0).any(axis=1)).any():
            batches[twice] = rng.integers(n, size=(int(twice.sum()), size))
        return batches.ravel()

    def check(self, problem: Problem) -> None:
        self._check_output()
        self._choose("sampling", ("random", "epochs"))
        check_batch_size(self, problem)
        check_l2(self, problem)


@dataclass(frozen=True)
class SGD(StochasticSubgradient):
    """Stochastic (sub-)gradient descent with mini-batches and a step-size schedule.

    Parameters
    ----------
    batch_size : int
        Rows per update.
    step : float, optional
        Initial step eta_1, at most 1 / lam.  By default 1 / (L + lam) for losses with smoothness
        L / max|x|^2, and 1 / (max|x|^2 + lam) for losses with kinks.
    schedule : "constant", "sqrt" or "inverse"
        eta_t = step, step / sqrt(t), or step / (1 + lam step (t - 1)), which tends to 1 / (lam t).
    sampling : "epochs" or "random"
        A new random partition in batches for each epoch, or independent random batches.
    output, t0
        As in `SDCA`.

    Notes
    -----
    The history has a further column, ``estimate``: the mean of the mini-batch objectives before
    each update of the epoch, which costs nothing and is biased.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> problem = zg.Problem(X, y, "logistic", lam=0.01)
    >>> solver = zg.SGD(batch_size=10, schedule="inverse", output="average")
    >>> zg.solve(problem, solver, tol=1e-2, max_epochs=200, random_state=0).stop_reason
    'converged'
    """

    multiclass = True
    batch_size: int = 1
    step: float | None = None
    schedule: str = "sqrt"
    sampling: str = "epochs"
    output: str = "last"
    t0: int | None = None

    def _rates(self, problem: Problem, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = self.step
        if first is None:
            sqnorm = float(problem.sqnorms.max()) + problem.fit_intercept
            first = 1.0 / (curvature(problem) * sqnorm + problem.lam)
        if self.schedule == "constant":
            eta = np.full(len(steps), first)
        elif self.schedule == "sqrt":
            eta = first / np.sqrt(steps)
        else:
            eta = first / (1.0 + problem.lam * first * (steps - 1.0))
        return eta, 1.0 - problem.lam * eta

    def check(self, problem: Problem) -> None:
        super().check(problem)
        self._choose("schedule", ("constant", "sqrt", "inverse"))
        check_step(self, problem)


def _duals(problem: Problem, c: np.ndarray) -> np.ndarray:
    """Return alpha with w(alpha) = sum_i c_i x_i; rows without weight have none."""
    share = np.where(problem.share > 0, problem.share, np.inf)
    return problem.lam * (np.transpose(c) / share).T


def curvature(problem: Problem) -> float:
    """Return the smoothness of the loss, or 1 where it has kinks."""
    return problem.loss.smoothness if math.isfinite(problem.loss.smoothness) else 1.0


def check_batch_size(solver: Solver, problem: Problem) -> None:
    """Refuse a batch size that is not in 1, ..., n."""
    size, n = solver.batch_size, problem.shape[0]  # type: ignore[attr-defined]
    whole = isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= n
    solver._require(whole, f"batch_size must be a whole number from 1 to the {n} rows")


def check_step(solver: Solver, problem: Problem) -> None:
    """Refuse a step that is not positive, or so long that it turns w around."""
    step = solver.step  # type: ignore[attr-defined]
    limit = 1.0 / problem.lam
    solver._require(step is None or 0 < step <= limit, f"step must be in (0, 1 / lam = {limit:g}]")


def check_l2(solver: Solver, problem: Problem) -> None:
    """Refuse an elastic net, for which these methods are not made."""
    smooth = not isinstance(problem.penalty, ElasticNet)
    solver._require(smooth, "is made for the L2 penalty: use l1_ratio=0, or SDCA")

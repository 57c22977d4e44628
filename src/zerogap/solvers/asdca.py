"""Accelerated mini-batch stochastic dual coordinate ascent.

Reference: S. Shalev-Shwartz and T. Zhang, "Accelerated mini-batch stochastic dual coordinate
ascent", Advances in Neural Information Processing Systems 26, 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from zerogap.kernels.jit import kernel
from zerogap.losses import Hinge
from zerogap.problem import Problem
from zerogap.solvers.dual_start import first_rho, warm_duals
from zerogap.solvers.protocol import Answer, Solver, State, empty_like
from zerogap.solvers.sgd import check_batch_size, check_l2

_EMPTY = np.empty(0)


@kernel
def _asdca_steps(problem, order, batch, theta, alpha, u, w, bias, rho, sums, age, weighted):
    """Mini-batch steps of the paper's procedure; keeps u = u(alpha).

    `bias` holds the b of w, mean(alpha), and the centre of the multiplier method for b, as in SDCA.
    """
    rows, loss, identity = problem.rows, problem.loss, problem.penalty
    lam = problem.lam
    sum_w, trace = sums
    averaging = len(sum_w) > 0
    point = np.empty_like(w)
    for k in range(len(order) // batch):
        for j in range(len(w)):
            if averaging:
                sum_w[j] += (age + k if weighted else 1.0) * w[j]
            point[j] = (1.0 - theta) * w[j] + theta * u[j]  # where the batch takes its slopes
        b = (1.0 - theta) * bias[0] + theta * (bias[2] + rho * bias[1])
        missed = age + k
        for i in order[k * batch : (k + 1) * batch]:
            slope = loss.derivative(rows.dot(i, point, identity) + b, problem.y[i])
            step = -theta * (alpha[i] + slope)
            alpha[i] += step
            rows.add_to(u, i, problem.share[i] * step / lam)
            bias[1] += problem.share[i] * step
            if averaging:
                trace[i] += step * (0.5 * missed * (missed + 1) if weighted else missed)
        for j in range(len(w)):
            w[j] = (1.0 - theta) * w[j] + theta * u[j]
        bias[0] = (1.0 - theta) * bias[0] + theta * (bias[2] + rho * bias[1])


@dataclass
class ASDCAState(State):
    """State of `ASDCA`: one dual variable per row, their sum u, and the accelerated iterate w."""

    alpha: np.ndarray = field(default_factory=lambda: _EMPTY)
    u: np.ndarray = field(default_factory=lambda: _EMPTY)
    w: np.ndarray = field(default_factory=lambda: _EMPTY)
    bias: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rho: float = 0.0
    theta: float = 0.0
    order: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    sum_w: np.ndarray = empty_like("w", beside="trace")
    trace: np.ndarray = empty_like("alpha")
    drawn_w: np.ndarray = empty_like("w", beside="drawn_alpha")
    drawn_alpha: np.ndarray = empty_like("alpha")


@dataclass(frozen=True)
class ASDCA(Solver):
    """Accelerated mini-batch SDCA, for smooth losses.

    A step takes a random batch A of m rows and, with momentum theta::

        point   = (1 - theta) w + theta u(alpha)
        alpha_i <- (1 - theta) alpha_i - theta phi'(x_i.point)      for i in A
        w       <- (1 - theta) w + theta u(alpha)

    With theta = min(1, sqrt(g/m), g, g^(2/3) / m^(1/3)) / 4, where g = gamma lam n / R^2 for a
    (1 / gamma)-smooth loss and rows in a ball of radius R, m (P(w) - P*) + n (D* - D(alpha))
    shrinks by 1 - theta m / n per step in expectation, if batches are independent random subsets.
    Here the batches of an epoch are a random partition of the rows, for which the theorem does not
    hold as it stands.  A larger theta may diverge.

    Parameters
    ----------
    batch_size : int
        Rows per update, m.
    theta : float in (0, 1], optional
        Momentum; by default the largest that the theory allows for the data's own radius.
    gamma : float, optional
        For the default theta: 1 / smoothness of the loss, by default the loss' own.
    report_hinge : bool
        Whether to record the ordinary hinge objective of w as the further column ``hinge_primal``.
        The method does not minimise it: for the smooth hinge it lies up to gamma / 2 above.
    output, t0
        As in `SDCA`.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> problem = zg.Problem(X, y, "smooth-hinge", lam=0.01)
    >>> zg.solve(problem, zg.ASDCA(batch_size=8), tol=1e-6, random_state=0).stop_reason
    'converged'
    """

    batch_size: int = 8
    theta: float | None = None
    gamma: float | None = None
    report_hinge: bool = False
    output: str = "last"
    t0: int | None = None

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> ASDCAState:
        (n, d), zeros = problem.shape, problem.xp.zeros
        state = ASDCAState(rng, draw=rng.spawn(1)[0], alpha=zeros(n), w=zeros(d))
        if problem.fit_intercept:
            state.rho = first_rho(problem.mean_sqnorm, problem.strength)
            state.bias[[0, 2]] = problem.first_intercept() if warm is None else warm[1]
        if warm is not None:
            state.w = warm[0].copy()
            state.alpha = warm_duals(problem, warm)
        state.u = problem.dual_sum(state.alpha)
        state.bias[1] = float(problem.share @ state.alpha)
        state.theta = self._largest_theta(problem, state.rho) if self.theta is None else self.theta
        if self.averaging:
            state.sum_w, state.trace = zeros(d), zeros(n)
        return state

    def _largest_theta(self, problem: Problem, rho: float) -> float:
        """Return the momentum of the theorem, with weights as factors of the losses."""
        n, m = problem.shape[0], self.batch_size
        gamma = 1.0 / problem.loss.smoothness if self.gamma is None else self.gamma
        sqnorms = problem.sqnorms + rho * problem.lam  # the intercept is one more feature
        radius2 = float((n * problem.share * sqnorms).max())
        if radius2 == 0.0:
            return 0.25
        g = gamma * problem.lam * n / radius2
        return 0.25 * min(1.0, math.sqrt(g / m), g, g ** (2 / 3) / m ** (1 / 3))

    def epoch_length(self, problem: Problem) -> int:
        return -(-problem.shape[0] // self.batch_size)

    def answer(self, problem: Problem, state: ASDCAState) -> Answer:
        b = float(state.bias[0])
        if self.output == "random" and len(state.drawn_w):
            return state.drawn_w, b, state.drawn_alpha
        if self.averaging and state.updates > state.t0:
            total = self._total_weight(state)
            return state.sum_w / total, b, state.alpha - state.trace / total
        return state.w.copy(), b, state.alpha.copy()

    def extras(self, problem: Problem, state: ASDCAState) -> dict[str, float]:
        """Return the hinge objective of the answer, if it was asked for."""
        if not self.report_hinge:
            return {}
        w, b, _ = self.answer(problem, state)
        return {"hinge_primal": problem.with_loss(Hinge()).primal(w, b)}

    def steps(self, problem: Problem, state: ASDCAState, count: int) -> int:
        n, m = problem.shape[0], self.batch_size
        if count and state.position == 0:
            steps = self.epoch_length(problem)
            order = state.rng.permutation(n)
            # the last batch is filled up with rows of the first, so that all have m rows
            state.order = np.concatenate([order, order[: steps * m - n]])
        begun = self.averaging and state.updates >= state.t0
        sums = (state.sum_w, state.trace) if begun else (_EMPTY, _EMPTY)
        order = state.order[state.position * m : (state.position + count) * m]
        age, weighted = state.updates - state.t0 + 1, self.output == "weighted-average"
        if not problem.on_device:
            arrays = (problem, order, m, state.theta, state.alpha, state.u, state.w, state.bias)
            _asdca_steps(*arrays, state.rho, sums, age, weighted)
        else:
            for k in range(count):
                members = problem.place(order[k * m : (k + 1) * m])
                self._batch_step(problem, state, members, sums, age + k, weighted)
        if count and state.position + count == self.epoch_length(problem):
            # an epoch closes a share theta of the distance, so the centre moves by that share
            state.bias[2] += state.theta * state.rho * state.bias[1]
        return len(order)

    def _batch_step(
        self,
        problem: Problem,
        state: ASDCAState,
        members: np.ndarray,
        sums: tuple[np.ndarray, np.ndarray],
        age: int,
        weighted: bool,
    ) -> None:
        """Make one step of `_asdca_steps` by matrix products."""
        theta, bias, (sum_w, trace) = state.theta, state.bias, sums
        part = problem.take(members)
        if len(sum_w):
            sum_w += (age if weighted else 1.0) * state.w
        point = (1.0 - theta) * state.w + theta * state.u
        b = (1.0 - theta) * bias[0] + theta * (bias[2] + state.rho * bias[1])
        steps = -theta * (state.alpha[members] + part.slopes(part.scores(point) + b))
        state.alpha[members] += steps
        state.u += part.dual_sum(steps)
        bias[1] += float(part.share @ steps)
        if len(sum_w):
            trace[members] += steps * (0.5 * age * (age + 1) if weighted else age)
        state.w = (1.0 - theta) * state.w + theta * state.u
        bias[0] = (1.0 - theta) * bias[0] + theta * (bias[2] + state.rho * bias[1])

    def _draw(self, problem: Problem, state: ASDCAState) -> None:
        state.drawn_w, state.drawn_alpha = state.w.copy(), state.alpha.copy()

    def check(self, problem: Problem) -> None:
        self._check_output()
        check_batch_size(self, problem)
        check_l2(self, problem)
        smooth = math.isfinite(problem.loss.smoothness)
        self._require(smooth, f"needs a smooth loss, {problem.loss!r} has a kink: use SDCA")
        self._require(self.theta is None or 0 < self.theta <= 1, "theta must be in (0, 1]")
        self._require(self.gamma is None or 0 < self.gamma < math.inf, "gamma must be positive")
        classification = not self.report_hinge or problem.loss.task == "classification"
        self._require(classification, "report_hinge needs a classification loss")

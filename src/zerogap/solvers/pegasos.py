"""Pegasos: primal estimated sub-gradient solver for support vector machines.

Reference: S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, "Pegasos: primal estimated
sub-gradient solver for SVM", Mathematical Programming 127, 2011.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zerogap.problem import Problem
from zerogap.solvers.sgd import StochasticSubgradient


@dataclass(frozen=True)
class Pegasos(StochasticSubgradient):
    """Stochastic sub-gradient descent with steps 1 / (lam t), for Lipschitz losses.

    Step t draws a batch A_t, and with the rows of A_t whose margin is violated, y x.w < 1::

        w <- (1 - 1/t) w + 1/(lam t |A_t|) sum_{violators} y_i x_i

    for the hinge loss; other losses enter by their sub-gradients.  So w is 1/(lam t) times the sum
    of what was added: the start is forgotten after one step.  If row i was a violator k_i times,
    and nothing was projected, w = w(alpha) for a_i = y_i n k_i / (t |A|).  That is about the share
    of the row's visits in which it was a violator.  It may exceed 1 by chance, and does at first:
    while t |A| < n, a single visit makes it n / (t |A|).  Certificates clip it.

    Parameters
    ----------
    batch_size : int
        Rows per update, 1 for the classic method; with n_samples it is deterministic.
    projection : bool
        Whether to project w on the ball of radius 1 / sqrt(lam) after each step.  The ball holds
        the optimum for classification losses, whose value at 0 is at most 1.
    sampling : "random" or "epochs"
        Independent random batches, or a random partition of the rows in each epoch, whose last
        batch is smaller.
    output, t0
        As in `SDCA`.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> problem = zg.Problem(X, y, "hinge", lam=0.01)
    >>> solver = zg.Pegasos(batch_size=8, output="average")
    >>> zg.solve(problem, solver, tol=0.05, max_epochs=100, random_state=0).stop_reason
    'converged'
    """

    batch_size: int = 1
    projection: bool = False
    sampling: str = "random"
    output: str = "last"
    t0: int | None = None

    def _rates(self, problem: Problem, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return 1.0 / (problem.lam * steps), (steps - 1.0) / steps

    def _ball(self, problem: Problem) -> float:
        return 1.0 / math.sqrt(problem.lam) if self.projection else math.inf

    def check(self, problem: Problem) -> None:
        super().check(problem)
        loss = problem.loss
        lipschitz = math.isfinite(loss.lipschitz)
        self._require(lipschitz, f"needs a Lipschitz loss, {loss!r} is none: use SGD, GD or SDCA")
        self._choose("projection", (False, True))
        bounded = not self.projection or loss.task == "classification"
        self._require(
            bounded, "projection has no meaning for regression: |w| may exceed 1 / sqrt(lam)"
        )

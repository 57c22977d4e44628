"""Problems that share their rows, certified together: column k of every matrix is problem k's.

The formulas are those of `zerogap.problem.Problem`; each kernel serves all columns.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from zerogap.cuda.device import SIMULATED, to_host
from zerogap.cuda.kernels import cuda, launch, module_of, view
from zerogap.losses import Loss
from zerogap.problem import Problem
from zerogap.problem.gap import Sizes, Terms, conclude
from zerogap.problem.proving import Proof
from zerogap.problem.row_sums import (
    clip_duals,
    sum_conjugates,
    sum_penalty_terms,
    sum_terms,
)

_THREADS = 2 if SIMULATED else 512  # of a block, which finds an intercept


@functools.cache
def _intercepts_of(loss: Loss) -> Any:
    """Return the kernel that finds the intercepts of all columns, a block for each."""
    derivative = module_of(loss).derivative

    @cuda.jit(device=True)
    def slope(y, share, z, c, b, sums):
        """The derivative of P in b, to all threads of a block."""
        t, total = cuda.threadIdx.x, 0.0
        for i in range(t, z.shape[0], _THREADS):
            total += share[i] * derivative(z[i, c] + b, y[i, c % y.shape[1]])
        sums[t] = total
        cuda.syncthreads()
        half = _THREADS // 2
        while half > 0:
            if t < half:
                sums[t] += sums[t + half]
            cuda.syncthreads()
            half //= 2
        total = sums[0]
        cuda.syncthreads()
        return total

    @cuda.jit
    def find(y, share, z, near, accuracy, out):
        """`Problem.best_intercept` for each column"""
        sums = cuda.shared.array(_THREADS, np.float64)
        c = cuda.blockIdx.x
        old = near[c]
        at_old = slope(y, share, z, c, old, sums)
        best, new, at_new, width = old, old, at_old, abs(at_old)
        while at_new * at_old > 0.0 and width <= 1e300:
            old, at_old = new, at_new
            new -= math.copysign(width, at_old)
            at_new = slope(y, share, z, c, new, sums)
            width *= 2.0
        best = old
        if at_new * at_old < 0.0 or at_new == 0.0:
            left, at_left, right, at_right = old, at_old, new, at_new
            if new < old:
                left, at_left, right, at_right = new, at_new, old, at_old
            for trial in range(200):
                best, at_best = (
                    (left, at_left) if abs(at_left) <= abs(at_right) else (right, at_right)
                )
                middle = 0.5 * (left + right)
                if abs(at_best) * (right - left) <= accuracy[c] or not left < middle < right:
                    break
                if trial % 2 == 0:
                    secant = left - at_left * (right - left) / (at_right - at_left)
                    if left < secant < right:
                        middle = secant
                at_middle = slope(y, share, z, c, middle, sums)
                if at_middle < 0.0:
                    left, at_left = middle, at_middle
                else:
                    right, at_right = middle, at_middle
        if cuda.threadIdx.x == 0:
            out[c] = best

    return find


def best_intercepts(problem: Any, y: Any, z: Any, near: Any, accuracy: Any) -> Any:
    """Return minimisers of P(w, .) for the columns of the scores z."""
    xp = problem.xp
    out, given = xp.empty(z.shape[1]), (y, problem.share, z, xp.asarray(near), xp.asarray(accuracy))
    _intercepts_of(problem.loss)[z.shape[1], _THREADS](*map(view, given), view(out))
    return out


class Columns:
    """Problems on a GPU that differ in their targets and lambdas only."""

    def __init__(self, problems: Sequence[Any]) -> None:
        first = problems[0]
        self.problems, self.first, self.xp = list(problems), first, first.xp
        self.lam = np.array([problem.lam for problem in problems])
        self.y = self.xp.stack([problem.y for problem in problems], axis=1)
        self.share = self.xp.repeat(first.share[:, None], len(problems), axis=1)

    def dual_sums(self, alpha: Any) -> Any:
        """Return the dual sums u(alpha), of shape (n_features, k)."""
        return self.first.rows.transposed_product(self.share * alpha / self.xp.asarray(self.lam)).T

    def weights(self, alpha: Any) -> Any:
        """Return the weights w(alpha), of shape (k, n_features)."""
        u = self.xp.ascontiguousarray(self.dual_sums(alpha).T)
        return self.first.to_weights(u.ravel()).reshape(u.shape)

    def examine(self, W: Any, b: Any, alpha: Any, accuracy: Any) -> list[Proof]:
        """Certify all models as `Problem.examine` does one, with arrays of numpy in the proofs."""
        first, xp, K = self.first, self.xp, len(self.problems)
        z = first.rows.product(W)
        if first.fit_intercept:
            b = best_intercepts(first, self.y, z, b, np.asarray(accuracy, float))
        alpha = self._feasible(alpha)
        u = self.dual_sums(alpha)
        given = [a.ravel() for a in (self.y, self.share, alpha, z + xp.asarray(b))]
        sums = launch(sum_terms, z.size, first.loss, *given, 0.0, columns=K)
        pairs = [xp.ascontiguousarray(a).ravel() for a in (W.T, u)]
        penalties = launch(sum_penalty_terms, u.size, first.penalty, *pairs, columns=K)

        @functools.cache
        def conjugates() -> Any:
            (losses,) = launch(sum_conjugates, z.size, first.loss, *given[:3], columns=K)
            zeros_and_u = xp.zeros_like(pairs[1]), pairs[1]
            _, duals = launch(sum_penalty_terms, u.size, first.penalty, *zeros_and_u, columns=K)
            return losses, duals

        def far(k: int) -> tuple[float, float]:
            losses, duals = conjugates()
            return float(losses[k]), float(duals[k])

        points, scores = (np.ascontiguousarray(to_host(a).T) for a in (alpha, z))
        intercepts, weights, duals = to_host(b), to_host(W), to_host(u).T
        sizes = Sizes(first.shape[0], first.rows.width, first._length)
        proofs = []
        for k, problem in enumerate(self.problems):
            bk, terms = float(intercepts[k]), Terms(*map(float, sums[:, k]))
            penalty = float(penalties[0][k]), float(penalties[1][k])
            point = (weights[k], bk, penalty, duals[k], functools.partial(far, k))
            found, _ = conclude(problem, sizes, terms, *point)
            proofs.append(Proof.of(found, bk, points[k], scores[k]))
        return proofs

    def _feasible(self, alpha: Any) -> Any:
        """Return `Problem.feasible` of each column."""
        first, xp, alpha = cast("Problem", self.first), self.xp, alpha.copy()
        given = [a.ravel() for a in (self.y, self.share, alpha)]
        launch(clip_duals, alpha.size, first.loss, *given)
        if first.fit_intercept and first.loss.domain(1.0) == (-math.inf, math.inf):
            alpha -= first.share @ alpha
        elif first.fit_intercept:
            up = first.share @ xp.maximum(alpha, 0.0)
            down = -(first.share @ xp.minimum(alpha, 0.0))
            less, more = xp.minimum(up, down), xp.maximum(up, down)
            factor = xp.where(more > 0.0, less / xp.where(more > 0.0, more, 1.0), 1.0)
            alpha *= xp.where((alpha > 0.0) == (up > down), factor, 1.0)
        return alpha

"""Certificates of a run's answers, and the best model and dual bound so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from zerogap.problem.centring import Centred, centred
from zerogap.problem.gap import (
    ENOUGH,
    TINY,
    UNIT,
    blur_of_constant,
    displaced,
    is_blurred,
    size_of,
)
from zerogap.problem.proving import Proof
from zerogap.solvers.checkpoint import CheckpointError
from zerogap.solvers.protocol import Answer, Solver

# A gap counts as zero below FLOOR times the best constant model's objective, if the model's own
# objective is below NEARLY_ZERO times that: a relative gap has no meaning where P is zero.
FLOOR = 1e-13
NEARLY_ZERO = 1e-4
MOST_ALIGNED = 1e8  # n d^2 up to which all weights are rounded together: half a second
BY_SUBTRACTION = 1e-12  # share of P to which a gap is exact that was computed as P - D
CHECKPOINT_ERROR = 1e-9  # share of P by which a checkpoint's numbers may differ when recomputed

Delivered = tuple[np.ndarray, Any, Proof]
"""A model (w, b) on the data as given, and what is proved of it."""


@dataclass
class Best:
    """The best dual bound and the best model so far: the latest ones may be worse."""

    dual: float = -math.inf
    alpha: np.ndarray = field(default_factory=lambda: np.empty(0))
    primal: float = math.inf
    w: np.ndarray = field(default_factory=lambda: np.empty(0))
    b: Any = 0.0  # on centred data
    blur: float = 0.0  # how far `primal` may be from P
    gap: float = math.inf  # of the two, if they were proved together


class Certifier:
    """Certifies the answers of one run, by the best dual point that the run has found."""

    def __init__(self, inner: Centred, solver: Solver, tol: float) -> None:
        self.centred, self.problem = inner, inner.problem
        self.dual, self.keeps_best = solver.dual, solver.output == "best"
        self.tolerated = ENOUGH * tol  # share of P that rounding may take without harm
        self.best = Best()
        self.scale = 0.0  # objective of the best constant model

    @property
    def can_refine(self) -> bool:
        """Whether dual points in twice the precision may be tried."""
        return not self.problem.streamed and not self.problem.on_device

    def floor(self, primal: float) -> float:
        """Return the gap that counts as zero for a model with this objective."""
        return _floor(self.centred, self.scale, primal)

    def certify_constant(self) -> Proof:
        """Certify the best constant model: the first one that others are compared with."""
        proof, best, host = _constant_proof(self.problem), self.best, self.problem.host
        self.scale = proof.primal
        if self.keeps_best and proof.primal < best.primal:
            best.primal, best.blur, best.b = proof.primal, proof.blur, host(proof.b)
            best.w = np.zeros(self.problem.weight_shape)
            if proof.dual > best.dual:
                best.dual, best.alpha = proof.dual, host(proof.alpha)
        return proof

    def certify(self, point: Answer, accuracy: float, proof: Proof | None = None) -> Delivered:
        """Return the better of this model and the best one so far, with its proof.

        `accuracy` is how much b may raise P above its value at the best intercept.  If `proof` is
        given, it is taken as the proof of this point.
        """
        w, b, alpha = point
        if proof is None:
            proof = self.problem.examine(w, b, alpha, accuracy, self.dual, self.tolerated)
        host = self.problem.host
        w = host(w)
        proof = proof._replace(b=host(proof.b), alpha=host(proof.alpha), z=host(proof.z))
        if self.problem.fit_intercept or self.keeps_best:
            proof = self._with_best_dual(proof)
        if self.keeps_best:
            w, proof = self._with_best_model(w, proof)
        return self._delivered(w, proof)

    def refine(
        self, point: Answer, accuracy: float, rest: np.ndarray | None, b_low: Any = 0.0
    ) -> Delivered:
        """Certify an answer, and the best one so far, in twice the precision.

        The dual point is alpha + `rest`, and the intercept b + `b_low`, if the solver knows the
        second parts; they hold the digits that one double cannot.
        """
        b_low = b_low if self.centred else 0.0  # without a shift the user gets b alone
        best, (w, b, alpha) = self.best, point
        if alpha is None:
            alpha = self.problem.dual_point(self.problem.scores(w), b)
        points = [(w, b, alpha)]
        if rest is None and self.keeps_best and len(best.alpha):
            points += [(best.w, best.b, best.alpha), (best.w, best.b, alpha)]
        found = [
            self._delivered(*refined)
            for point in points
            for refined in self.problem.refined(*point, accuracy, self.tolerated, rest, b_low)
        ]
        return min(found, key=lambda delivered: delivered[2].gap)

    def _with_best_dual(self, proof: Proof) -> Proof:
        """Return the proof with the better of this dual point and the best one before."""
        # P - D by subtraction is only as exact as P, so the older point must be clearly better
        best, now = self.best, proof.gap
        before = proof.primal + proof.blur - best.dual
        if before < now - BY_SUBTRACTION * abs(proof.primal):
            # the older bound was also lowered by the uncertainty of its own P
            rounding = min(before, 2.0 * proof.blur)
            return proof._replace(alpha=best.alpha, gap=before, slack=math.nan, rounding=rounding)
        if proof.dual > best.dual:
            best.dual, best.alpha, best.gap = proof.dual, proof.alpha, math.inf
        return proof

    def _with_best_model(self, w: np.ndarray, proof: Proof) -> tuple[np.ndarray, Proof]:
        """Return the better of this model and the best one before, with its proof."""
        best = self.best
        if proof.primal <= best.primal + BY_SUBTRACTION * abs(best.primal):  # not if it is NaN
            best.primal, best.w, best.b, best.blur = proof.primal, w, proof.b, proof.blur
            best.gap = proof.gap if proof.alpha is best.alpha else math.inf
            return w, proof
        gap = min(best.gap, best.primal + best.blur - best.dual)
        z = None
        if not self.problem.streamed:  # where they are not kept
            z = self.problem.host(self.problem.scores(self.problem.place(best.w)))
        rounding = (min(gap, 2.0 * best.blur), best.blur)
        return best.w, Proof(best.b, best.alpha, best.primal, gap, math.nan, z, *rounding)

    def _delivered(
        self, w: np.ndarray, proof: Proof, rest: np.ndarray | None = None, b_low: Any = 0.0
    ) -> Delivered:
        """Return the model on the data as given, whose b is rounded, and what is proved of it.

        The proof is one of the intercept b + b_low.
        """
        b, problem = self.centred.outward(w, proof.b), self.problem
        if not self.centred:
            return w, b, proof
        moved = displaced(problem, proof, self.centred.doubt(w, b) + size_of(np.atleast_1d(b_low)))
        worse = moved.gap - proof.gap > max(ENOUGH * proof.gap, self.tolerated * proof.primal)
        blur = moved.blur - proof.blur
        if not worse and not is_blurred(blur, proof.gap, proof.primal, self.tolerated):
            return w, b, moved
        ways = [self.centred.nudged(w, proof.b, problem.host(problem.column_sizes))]
        small = math.prod(problem.shape) * problem.shape[1] <= MOST_ALIGNED
        if rest is not None and small:  # all digits matter
            ways.append(self.centred.aligned(w, proof.b, b_low))
        found = [self._brought_back(*way, proof, rest) for way in ways]
        return min(found, key=lambda delivered: delivered[2].gap)

    def _brought_back(
        self, w: np.ndarray, b: Any, proof: Proof, rest: np.ndarray | None
    ) -> Delivered:
        """Return a model of the data as given, and what is proved of it on shifted data."""
        problem = self.problem
        inner, low, off = self.centred.pair_inward(w, b)
        placed_w, placed_b, alpha = map(problem.place, (w, inner, proof.alpha))
        z = problem.scores(placed_w)
        again = problem.prove(placed_w, placed_b, z, alpha, self.tolerated, rest, off, b_low=low)
        return w, b, again._replace(b=inner, alpha=proof.alpha, z=problem.host(z))

    def check(self, path: Path) -> None:
        """Refuse a checkpoint whose best bound or best objective is better than its point says."""
        best = self.best
        if self.keeps_best and len(best.w):
            primal = self.problem.primal(self.problem.place(best.w), best.b)
            if not best.primal >= primal - CHECKPOINT_ERROR * (1.0 + abs(primal)):
                raise CheckpointError(
                    f"{path} claims an objective of {best.primal:.9g}, its model has {primal:.9g}: "
                    f"delete it to start anew"
                )
        least = best.primal - best.dual - CHECKPOINT_ERROR * (1.0 + abs(best.primal))
        if best.gap < least:
            raise CheckpointError(
                f"{path} claims a gap of {best.gap:.3g} between {best.primal:.9g} and "
                f"{best.dual:.9g}: delete it to start anew"
            )
        if len(best.alpha):
            alpha = self.problem.feasible(best.alpha)
            proved = self.problem.dual(alpha)
            if self.can_refine:  # large terms of the dual sum may cancel
                u = self.problem.precise_dual_sum_of(alpha)
                proved = max(proved, self.problem._dual_value(alpha, u))
            if not best.dual <= proved + CHECKPOINT_ERROR * (1.0 + abs(proved)):
                raise CheckpointError(
                    f"{path} claims a dual bound of {best.dual:.9g}, its dual point proves "
                    f"{proved:.9g}: delete it to start anew"
                )
            self._claim_no_more_than_proved(best)

    def _claim_no_more_than_proved(self, best: Best) -> None:
        """Take from a file the points alone, and from what it claims of them no more than is so."""
        problem = self.problem
        alpha = problem.feasible(problem.place(best.alpha))
        if self.keeps_best and len(best.w):
            w, b = map(problem.place, (best.w, best.b))
            proof = problem.prove(w, b, problem.scores(w), alpha)
            best.blur = max(best.blur, proof.blur + abs(best.primal - proof.primal))
            best.gap = max(best.gap, proof.gap)
        else:
            w = problem.to_weights(problem.dual_sum(alpha))
            proof = problem.examine(w, problem.constant(), alpha)
        best.dual = min(best.dual, proof.dual)


def gap_floor(problem: Any, primal: float) -> float:
    """Return the gap that counts as zero for a model with this objective: `Certificate.floor`."""
    inner = centred(problem)
    return _floor(inner, float(inner.problem.constant_loss(inner.problem.constant())), primal)


def _constant_proof(problem: Any) -> Proof:
    """Return what is proved of the best constant model, without any dual variables."""
    if not problem.streamed:
        return problem.constant_proof()
    b, alpha = problem.constant(), problem.column()
    primal = float(problem.constant_loss(b))
    blur = blur_of_constant(problem, b, primal)
    gap = primal + 2.0 * blur - float(problem.dual(alpha))
    return Proof(b, alpha, primal, gap, rounding=min(gap, 2.0 * blur), blur=blur)


def _floor(inner: Centred, scale: float, primal: float) -> float:
    problem = inner.problem
    if not primal <= NEARLY_ZERO * scale and primal > 0.0:
        return 0.0
    least = 0.0
    if problem.loss.task == "regression":
        largest = problem.largest_target + abs(inner.target)
        unit = 8.0 * UNIT * largest  # in the last place of the targets
        tube = problem.loss.tube if math.isfinite(problem.loss.tube) else 0.0
        least = float(problem.loss.value(tube + unit, 0.0))
    return max(FLOOR * scale, least, 4.0 * TINY)  # what underflow may hide, where P is zero

"""From points to proofs: best intercepts, feasible dual points, certificates."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from zerogap.kernels.minimiser import minimiser
from zerogap.kernels.twofold import exact_sum
from zerogap.losses import ALL_LOSSES, EXACT_SLOPES
from zerogap.problem.certificate import Certificate
from zerogap.problem.gap import (
    ASKED_FOR,
    ENOUGH,
    FAR_FROM_OPTIMUM,
    Terms,
    blur_of_constant,
)
from zerogap.problem.places import OnProcessor
from zerogap.problem.proving import Proof, Proving
from zerogap.problem.refining import refinement
from zerogap.problem.row_sums import (
    clip_duals,
    set_own_terms,
    sum_conjugates,
    sum_slopes,
    sum_terms,
)

_SIGNS = np.array([-1.0, 1.0])


class Examining(Proving, OnProcessor):
    """The part of a problem that turns what solvers find into models, dual points and proofs."""

    joint: ClassVar[Any]  # the class of problems with score vectors: set by `multiclass`
    checked_intercept: Any
    scores: Any
    slopes: Any
    mean_loss: Any
    to_weights: Any
    weight_shape: Any
    dual_shape: Any
    _vector: Any
    _dual_vector: Any

    def certificate(
        self, w: Any, b: float = 0.0, alpha: Any = None, tol: float = ASKED_FOR
    ) -> Certificate:
        """Return the certificate of the model (w, b).

        Parameters
        ----------
        w : array-like of shape (n_features,)
            Weights.
        b : float
            Intercept; zero if the problem has none.
        alpha : array-like of shape (n_samples,), optional
            A dual point; it is made feasible.  By default the one that belongs to (w, b),
            a_i = -phi'(x_i.w + b), which for smooth losses and the L2 penalty, without intercept,
            gives the gap |grad P|^2 / (2 lam) exactly.
        tol : float
            Relative gap that is asked for: if a bound of rounding is less than a tenth of it, none
            that is closer is computed.  Zero asks for the least gap that can be proved, which takes
            up to ten times as long where the model is exact.
        """
        return self.proof_of(w, b, alpha, tolerated=ENOUGH * tol).certificate

    def proof_of(
        self, w: Any, b: Any, alpha: Any = None, doubt: float = 0.0, tolerated: float = 0.0
    ) -> Proof:
        """Return what is proved of (w, b), as `certificate` does, if b may be off by `doubt`.

        Rounding up to the tolerated share of P does not ask for more precision.
        """
        w, b = self._vector(w), self.checked_intercept(b)
        z = self.scores(w)
        alpha = self.dual_point(z, b) if alpha is None else self.feasible(self._dual_vector(alpha))
        return self.prove(w, b, z, alpha, tolerated, doubt=doubt)

    def refined_proof_of(self, w: Any, b: Any, alpha: Any = None, doubt: float = 0.0) -> Proof:
        """Return the same, by a dual point with twice the digits of alpha if that proves more."""
        proof = self.proof_of(w, b, alpha, doubt)
        row_terms = proof.gap - proof.rounding - proof.slack
        if self.on_device or not math.isfinite(proof.primal) or row_terms > 0.5 * proof.gap:
            return proof
        w = self._vector(w)
        rest = refinement(self, w, proof.alpha)
        given = (w, proof.b, proof.z, proof.alpha)
        return min(proof, self.prove(*given, rest=rest, doubt=doubt), key=lambda found: found.gap)

    def examine(
        self,
        w: np.ndarray,
        b: float,
        alpha: np.ndarray | None,
        accuracy: float = 0.0,
        trust: bool = True,
        tolerated: float = 0.0,
    ) -> Proof:
        """Certify (w, b) with the best b for this w.

        Unless the given alpha is to be trusted, it competes with the point that belongs to (w, b)
        and with zero.  Rounding up to that share of P does not ask for more precision.
        """
        z = self.scores(w)
        b = self.best_intercept(z, b, accuracy) if self.fit_intercept else 0.0 * b
        points: list[tuple[np.ndarray, Terms | None]] = []
        if alpha is not None:
            points.append((self.feasible(alpha), None))
        if alpha is None or not trust:
            points.append(self._own_point(z, b))
        proofs = [self.prove(w, b, z, point, tolerated, terms=terms) for point, terms in points]
        if (alpha is None or not trust) and not proofs[-1].gap < FAR_FROM_OPTIMUM * proofs[
            -1
        ].primal:
            origin = self.xp.zeros(self.dual_shape)  # far from the optimum it may be better
            proofs.append(self.prove(w, b, z, origin, tolerated))
        return min(proofs, key=lambda proof: proof.gap)

    def refined(
        self,
        w: np.ndarray,
        b: Any,
        alpha: np.ndarray,
        accuracy: float,
        tolerated: float,
        rest: np.ndarray | None = None,
        b_low: Any = 0.0,
    ) -> Iterator[tuple[np.ndarray, Proof, np.ndarray | None, Any]]:
        """Yield weights, what is proved of them, and what to add to alpha and to b for it.

        The dual point has twice the digits of alpha: alpha + rest, if the rest is given and alpha
        is feasible with it.  The weights are w, and those that belong to the dual point, which
        differ where few dual variables are between their bounds.
        """
        intercepts = [(b, b_low)]
        if rest is None:
            alpha = self.feasible(alpha)
            rest, intercepts = refinement(self, w, alpha), []
        if rest is not None:  # the same point, of which alpha alone is as much as a double can be
            alpha, rest = exact_sum(alpha, rest)
        u = self.precise_dual_sum_of(alpha)
        u = u if rest is None else u + self.precise_dual_sum_of(rest)
        for v in (w, self.to_weights(u)):
            z = self.scores(v)
            best = self.best_intercept(z, b, accuracy) if self.fit_intercept else 0.0 * b
            for c, low in (*intercepts, (best, 0.0)):
                yield v, self.prove(v, c, z, alpha, tolerated, rest, b_low=low), rest, low

    def constant_proof(self) -> Proof:
        """Return what is proved of the best constant model, without any dual variables."""
        zeros, b = self.xp.zeros(self.dual_shape), self.constant()
        if type(self.loss) not in ALL_LOSSES.values():
            w = self.xp.zeros(self.weight_shape)
            return self.prove(w, b, zeros, zeros, u=w)
        # no weights and exact scores: rounding is that of the losses' sum, and D(0) is zero
        primal = float(self.constant_loss(b))
        blur = blur_of_constant(self, b, primal)
        if not math.isfinite(blur):
            return Proof(b, zeros, primal, math.inf, math.inf, zeros)
        gap = math.nextafter(primal + blur, math.inf)
        return Proof(b, zeros, primal, gap, 0.0, zeros, gap - primal, blur)

    def _constant_terms(self, b: float) -> Terms:
        """Return the sums over the rows of either class, without weights and dual variables."""
        none = np.zeros(2)
        return Terms(*sum_terms(self.loss, _SIGNS, self._class_shares, none, none, b, 0, 2))

    def first_intercept(self) -> Any:
        """Return the intercept to start from: the best one for w = 0."""
        return self._best_constant

    @functools.cached_property
    def _best_constant(self) -> float:
        if not self.has_two_kinds:
            return self.best_intercept(self.xp.zeros(self.shape[0]))
        given = (self.loss, _SIGNS, self._class_shares, np.zeros(2))
        return minimiser(lambda b: sum_slopes(*given, b, 0, 2))

    @property
    def has_two_kinds(self) -> bool:
        """Whether a constant model has the same loss on all rows of a class."""
        return self.loss.task == "classification" and not self.on_device

    def constant_loss(self, b: Any) -> float:
        """Return the mean loss of the model without weights whose intercept is b."""
        if self.has_two_kinds:
            return self._constant_terms(b).value
        return self.mean_loss(self.xp.zeros(self.dual_shape) + b)

    def _mean_conjugate(self, alpha: np.ndarray) -> float:
        """Return 1/S sum_i s_i phi*(-a_i)."""
        if self.has_two_kinds and not alpha.any():
            given = (self.loss, _SIGNS, self._class_shares, np.zeros(2))
            return sum_conjugates(*given, 0, 2)
        return self.over_rows(sum_conjugates, self.loss, self.y, self.share, alpha)

    @functools.cached_property
    def _class_shares(self) -> np.ndarray:
        """Shares of the rows of either class, which are alike to a constant model."""
        return np.array([self.share @ (self.y == sign) for sign in _SIGNS])

    def constant(self) -> Any:
        """Return the intercept of the best constant model: zero if there is none."""
        return self.first_intercept() if self.fit_intercept else 0.0

    def best_intercept(self, z: np.ndarray, near: float = 0.0, accuracy: float = 0.0) -> float:
        """Return a minimiser of P(w, .) for the scores z, to within `accuracy` in P."""
        slope = functools.partial(self.over_rows, sum_slopes, self.loss, self.y, self.share, z)
        if self.loss.is_parabola:
            return near - slope(near) / self.loss.smoothness
        return minimiser(slope, near, accuracy)

    def dual_point(self, z: np.ndarray, b: float = 0.0) -> np.ndarray:
        """Return a feasible dual point for the scores z and the intercept b: a_i = -phi'(z_i + b).

        With an intercept the a_i must sum to zero.  If b minimises P(w, .) they can: at a kink of
        the loss a_i may be anything between minus the two one-sided slopes.
        """
        if not self.fit_intercept:
            return -self.slopes(z)
        z = z + b
        if math.isfinite(self.loss.smoothness):
            return self.feasible(-self.slopes(z))
        hair = 1e-9 * (1.0 + np.abs(z))
        low, high = -self.slopes(z + hair), -self.slopes(z - hair)
        room = self.share @ (high - low)
        part = np.clip(-(self.share @ low) / room, 0.0, 1.0) if room > 0 else 0.5
        return self.feasible(low + part * (high - low))

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        """Return alpha clipped to the loss' domain and, with an intercept, made to sum to zero.

        See `balanced`.
        """
        alpha, sums = self._clipped(alpha)
        return self.balanced(alpha, sums) if self.fit_intercept else alpha

    def _clipped(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return alpha clipped to the loss' domain, and its `balance_sums`."""
        alpha = alpha.copy()
        sums = self.over_rows(clip_duals, self.loss, self.y, self.share, alpha)
        return alpha, np.array(sums)

    def _own_point(self, z: np.ndarray, b: Any) -> tuple[np.ndarray, Terms | None]:
        """Return `dual_point`, and the rows' terms if they are found on the way."""
        if self.fit_intercept or self.on_device or type(self.loss) not in EXACT_SLOPES:
            return self.dual_point(z, b), None
        alpha = np.empty_like(z)
        data = (self.loss, self.y, self.share, z, alpha)
        return alpha, Terms(*self.over_rows(set_own_terms, *data))

    def nearly_feasible(self, alpha: np.ndarray) -> np.ndarray:
        """Return `feasible` or, with many classes, a worse point in less time, for estimates."""
        return self.feasible(alpha)

    def balance_sums(self, alpha: np.ndarray) -> np.ndarray:
        """Return the sums that `balanced` needs; those of parts of the rows add up."""
        return self._clipped(alpha)[1]

    def balanced(self, alpha: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return alpha, which may be that of a part of the rows, with a sum of zero over all rows.

        The heavier sign is scaled down, which cannot leave a domain that contains zero; where the
        domain is the whole line the mean is subtracted, which changes D less.
        """
        up, down = map(float, sums)
        if self.loss.domain(1.0) == (-math.inf, math.inf):
            return alpha - (up - down)
        if up == down:
            return alpha
        heavy = alpha > 0.0 if up > down else alpha < 0.0
        return np.where(heavy, alpha * (min(up, down) / max(up, down)), alpha)

r"""Huber regression with its scale, as scikit-learn minimises it.

With weights of the share p_i = s_i / S, residuals r_i = y_i - x_i.w - b and H(t) = t^2 for |t| <=
epsilon, 2 epsilon |t| - epsilon^2 beyond, it minimises jointly in w, b and sigma > 0::

    F(w, b, sigma) / S = sigma + sigma sum_i p_i H(r_i / sigma) + alpha / S |w|^2
                       = sigma + 2 / sigma P(w, b),    P: Huber's loss at delta = epsilon sigma

At a fixed sigma that is a `Problem` with dual variables a.  As sigma H(r / sigma) is the largest
u r - sigma u^2 / 4 over |u| <= 2 epsilon, the same u = 2 a / sigma bound F at every sigma, as long
as sum_i p_i a_i^2 <= sigma^2.  So at most this much is to be gained by all of w, b and sigma::

    2 / sigma (P - D(a)) + sigma (1 - sum_i p_i a_i^2 / sigma^2)

The bracket is also the slope of min F over w and b, which rises with sigma: its root is the scale.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn import linear_model
from sklearn.utils.validation import _check_sample_weight

from zerogap.audit.convention import UnknownObjective
from zerogap.dropin.fit import NAMES, SMALLEST_GAP, RegressorDropIn
from zerogap.losses import Huber
from zerogap.problem import Problem
from zerogap.problem.centring import centred
from zerogap.problem.certificate import Certificate
from zerogap.problem.gap import gamma
from zerogap.problem.validation import warn_if_short
from zerogap.solvers import Auto, Result, solve
from zerogap.solvers.protocol import Answer

SMALLEST_SCALE = 1e-12  # of the targets' spread: below it the model fits all rows but outliers
ROUNDED = gamma(64)  # bounds the rounding of sum_i p_i a_i^2, summed exactly, relative to it


class HuberRegressor(RegressorDropIn, linear_model.HuberRegressor):
    """scikit-learn's HuberRegressor, certified in coefficients, intercept and scale together.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap.linear_model import HuberRegressor
    >>> model = HuberRegressor().fit(*load_diabetes(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-4
    True
    """

    def _fit_certified(self: Any, X: Any, y: Any, sample_weight: Any, **others: Any) -> Any:
        """Fit coefficients, intercept and scale to a proved distance from their joint optimum."""
        self._validate_params()
        rows, targets = self._checked(X, y)
        weights = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        try:
            if not self.alpha > 0:
                raise UnknownObjective("HuberRegressor with alpha=0 cannot be certified")
            run = _Scales(self, rows, targets, weights)
        except UnknownObjective as reason:
            return self._fit_by_scikit_learn(reason, X, y, sample_weight, others)
        found = run.best(self._previous(rows.shape[1]) if self.warm_start else None)
        self.certificate_, self.scale_ = found, np.float64(run.scale)
        w, b = run.result.w, run.result.b
        self._keep(np.asarray(w)[None, :], np.array([b]), 1)
        self.outliers_ = np.abs(targets - rows @ self.coef_ - self.intercept_) > (
            self.scale_ * self.epsilon
        )
        warn_if_short(found, run.asked, names=NAMES)
        return self

    def _previous(self: Any, n_features: int) -> tuple[float, Answer] | None:
        """Return the scale and the model of the last fit, if there was one of as many features."""
        if len(getattr(self, "coef_", ())) != n_features or not self.scale_ > 0:
            return None
        return float(self.scale_), (self.coef_, float(self.intercept_), None)


class _Scales:
    """Fits at one scale after the other, each from where the last one ended."""

    def __init__(self, model: Any, rows: Any, y: np.ndarray, weights: np.ndarray) -> None:
        self.model, self.rows, self.y, self.weights = model, rows, y, weights
        self.total = float(weights.sum())
        self.epochs = 0.0
        self.start: Answer | None = None
        self.asked = max(SMALLEST_GAP, float(model.tol) ** 2)  # relative gap
        middle = np.median(y) if model.fit_intercept else 0.0
        spread = float(np.average(np.abs(y - middle), weights=weights))
        self.least = SMALLEST_SCALE * spread
        if not spread > 0:
            raise UnknownObjective("HuberRegressor of constant targets has no scale")
        self.scale = spread
        self.limit = max(1, model._epochs())

    def slope(self, log_scale: float, gap: float = SMALLEST_GAP) -> float:
        """Return the slope of min F / S at a scale, and keep the solution there.

        It is 0, which ends a search for the root, where enough is proved or no epoch is left.
        """
        if self.epochs >= self.limit:
            return 0.0
        self.log_scale, self.scale = log_scale, math.exp(log_scale)
        problem = self.problem()
        self.result: Result = solve(
            problem,
            Auto(),
            tol=gap,
            max_epochs=max(1.0, self.limit - self.epochs),
            warm_start=self.start,
            random_state=0,
        )
        self.epochs += self.result.certificate.epochs
        self.start = self.result.w, self.result.b, None
        slope = 1.0 - _squares(problem, self.result.alpha, self.scale)
        near = abs(slope) * self.scale <= 2.0 * self.asked * self.primal()
        return 0.0 if near and self.certificate().stop_reason == "converged" else slope

    def primal(self) -> float:
        """Return F / S of the last solution."""
        return self.scale + 2.0 / self.scale * self.result.certificate.primal

    def problem(self) -> Problem:
        scale, model = self.scale, self.model
        loss, lam = Huber(model.epsilon * scale), model.alpha * scale / self.total
        return Problem(self.rows, self.y, loss, lam, self.weights, model.fit_intercept)

    def best(self, previous: tuple[float, Answer] | None = None) -> Certificate:
        """Find the root of the slope, and return what is proved there.

        The search begins at the scale and the model of a previous fit, if there is one.
        """
        if previous is not None:
            self.scale, self.start = previous
            if self.slope(math.log(self.scale), self.asked / 4) == 0:
                return self.certificate()
        low = high = math.log(self.scale)
        value = self.slope(low)
        while value > 0 and math.exp(low) > self.least:  # the root is below
            high, low = low, low - 2.0
            value = self.slope(low)
        while value < 0 and low == high:
            high += 2.0
            if self.slope(high) < 0:
                low = high
        if value < 0 and low < high:
            root = brentq(self.slope, low, high, xtol=1e-15, rtol=1e-15, maxiter=60)
            if self.log_scale != root:
                self.slope(root)
        return self.certificate()

    def certificate(self) -> Certificate:
        """Return what the last solution proves of w, b and the scale together."""
        problem, result, scale, shrunk = self.problem(), self.result, self.scale, 1.0
        shifted = centred(problem)
        b, off = shifted.precisely_inward(result.w, result.b)
        while True:
            proof = shifted.problem.refined_proof_of(result.w, b, shrunk * result.alpha, off)
            duals = proof.alpha if proof.rest is None else proof.alpha + proof.rest
            squares = _squares(problem, duals, scale) * (1.0 + ROUNDED)
            if squares <= 1.0:
                break
            shrunk /= math.sqrt(squares) * (1.0 + ROUNDED)
        primal = scale + 2.0 / scale * proof.primal
        left = 1.0 - squares * (1.0 - 2.0 * ROUNDED) + _lost(shifted.problem, duals, scale)
        gap = (2.0 / scale * proof.gap + scale * left) * (1.0 + ROUNDED)
        short = "max_epochs" if self.epochs >= self.limit else "rounding"
        return Certificate(
            primal,
            primal - gap - 2.0 / scale * proof.blur,
            gap,
            epochs=self.epochs,
            seconds=result.certificate.seconds,
            stop_reason="converged" if gap <= self.asked * primal else short,
            solver=result.certificate.solver,
            rounding=2.0 / scale * proof.rounding,
        )


def _squares(problem: Problem, alpha: np.ndarray, scale: float) -> float:
    """Return sum_i p_i a_i^2 / sigma^2."""
    return math.fsum(problem.share * (alpha / scale) ** 2)


def _lost(problem: Problem, alpha: np.ndarray, scale: float) -> float:
    """Return by how much `_squares` may be less at the point that a proof means.

    There the dual variables sum to zero exactly: some are nearer to zero, by what was missing.
    """
    if not problem.fit_intercept:
        return 0.0
    sizes = np.abs(alpha)
    off = problem.excess_of_balance(alpha, float(problem.share @ sizes))
    return 2.0 * off * float(sizes.max()) / scale**2

"""What a model and a dual point prove on rows in a store: sums over blocks, added up."""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from typing import Any

import numpy as np

from zerogap.losses import Loss
from zerogap.penalties import L2, ElasticNet
from zerogap.problem.certificate import Certificate
from zerogap.problem.checks import check_intercept
from zerogap.problem.gap import (
    ASKED_FOR,
    ENOUGH,
    Errors,
    Evaluation,
    Sizes,
    Terms,
    conclude,
    displaced,
    size_of,
)
from zerogap.problem.proving import Proof, conclude_precisely, rounded_columns
from zerogap.problem.row_sums import penalty_and_slack


class StreamedProving:
    """The part of a streamed problem that certifies; the rest is `StreamedProblem`."""

    shape: Any
    weight_shape: Any
    loss: Loss
    penalty: L2 | ElasticNet
    lam: float
    fit_intercept: bool
    origin: np.ndarray
    moves_columns: Any
    column_sizes: Any
    nothing: Any
    _survey: Any
    column: Any
    spans: Any
    span: Any
    frame: Any
    stream: Any
    dual_sum: Any
    best_intercept: Any
    _read: Any

    def dual(self, alpha: Any) -> float:
        """Return a lower bound of D of alpha made feasible, off by rounding alone."""
        return self.examine(np.zeros(self.weight_shape), 0.0, alpha).dual

    def certificate(
        self, w: Any, b: Any = 0.0, alpha: Any = None, tol: float = ASKED_FOR
    ) -> Certificate:
        """Return the certificate of the model (w, b), as `Problem.certificate` does.

        Without alpha it takes two passes: a_i = -phi'(x_i.w + b) comes from the first.
        """
        return self.proof_of(w, b, alpha, tolerated=ENOUGH * tol).certificate

    def proof_of(
        self, w: Any, b: Any, alpha: Any = None, doubt: float = 0.0, tolerated: float = 0.0
    ) -> Proof:
        """Return what is proved of (w, b), if b may be off by `doubt`."""
        w = np.ascontiguousarray(w, np.float64).reshape(self.weight_shape)
        b = check_intercept(b, self.fit_intercept)
        alpha = self.dual_point(self.scores(w), b) if alpha is None else self.feasible(alpha)
        z, u = self._read(w, alpha)
        return self._prove(w, b, alpha, z, u, tolerated, doubt)

    refined_proof_of = proof_of  # dual points have no more digits than their variables here

    def prove(
        self,
        w: np.ndarray,
        b: Any,
        z: Any,
        alpha: Any,
        tolerated: float = 0.0,
        rest: None = None,
        doubt: float = 0.0,
        b_low: Any = 0.0,
    ) -> Proof:
        """Return what (w, b), with the scores z of w, and a feasible alpha prove.

        There is no `rest` of dual points here.  The intercept that is meant is b + b_low, or at
        most `doubt` from it; the scores are those of b alone.
        """
        doubt += size_of(np.atleast_1d(b_low))
        return self._prove(w, b, alpha, z, self.dual_sum(alpha), tolerated, doubt)

    def scores(self, w: np.ndarray) -> Any:
        """Return x_i . w for all rows, from one pass over the store."""
        return self._read(w, self.column())[0]

    def dual_point(self, z: Any, b: Any = 0.0) -> Any:
        """Return the feasible point near a_i = -phi'(z_i + b), in place of the scores z."""
        for rows in self.spans():
            z[rows] = self.frame(rows).dual_from_scores(z[rows] + b)
        return self.feasible(z)

    def plain_gap(self, w: np.ndarray, b: Any, z: Any, alpha: Any) -> tuple[float, float]:
        """Return P and P - D as they are computed, for solvers: not a proof."""
        proof = self.prove(w, b, z, alpha)
        return proof.primal, proof.gap - proof.rounding

    def primal(self, w: np.ndarray, b: Any = 0.0) -> float:
        """Return P(w, b)."""
        return self.certificate(w, b, self.column()).primal

    def examine(
        self,
        w: np.ndarray,
        b: Any,
        alpha: Any,
        accuracy: float = 0.0,
        trust: bool = True,
        tolerated: float = 0.0,
    ) -> Proof:
        """Certify (w, b) with the best b for this w."""
        alpha = self.feasible(alpha)
        z, u = self._read(w, alpha)
        if not self.fit_intercept:
            b = 0.0 * b
        elif self.loss.task != "multiclass":
            b = self.best_intercept(z, b, accuracy)
        return self._prove(w, b, alpha, z, u, tolerated)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _prove(
        self,
        w: np.ndarray,
        b: Any,
        alpha: Any,
        z: Any,
        u: np.ndarray,
        tolerated: float = 0.0,
        doubt: float = 0.0,
    ) -> Proof:
        """Return what (w, b) with its scores and a feasible alpha with its dual sum prove."""
        if not np.isfinite(w.sum() + u.sum() + np.sum(b)):  # nothing is proved
            return Proof(b, alpha, math.nan, math.inf, math.inf)
        # frames of all rows together would take as much memory as the numbers of each row
        parts = (self.frame(rows).row_terms(z[rows], b, alpha[rows]) for rows in self.spans())
        terms = functools.reduce(operator.add, parts)
        sizes = Sizes(self.shape[0], self._survey.width, self.column_sizes)
        penalty = penalty_and_slack(self.penalty, w.ravel(), u.ravel())

        def conjugates() -> tuple[float, float]:
            parts = ((self.frame(rows), alpha[rows]) for rows in self.spans())
            means = math.fsum(part._mean_conjugate(own) for part, own in parts)
            return means, self.nothing._penalty_conjugate(u)

        found, errors = conclude(self, sizes, terms, w, b, penalty, u, conjugates)
        found = displaced(self, found, doubt)
        if found.is_coarse(tolerated):
            better = self._precisely(w, b, alpha, terms, sizes, errors, doubt)
            found = min(found, better, key=lambda e: e.gap)
        return Proof.of(found, b, alpha)

    def _precisely(
        self,
        w: np.ndarray,
        b: Any,
        alpha: Any,
        terms: Terms,
        sizes: Sizes,
        rough: Errors,
        doubt: float,
    ) -> Evaluation:
        """Return P and the gap from one more pass, in twice the precision."""
        known, rounded = self._survey, 0.0 * self.column_sizes
        if self.moves_columns:
            rounded = rounded_columns(self.column_sizes, known.largest, self.origin)
        numbers = [self.frame(rows).precise_balance(alpha[rows]) for rows in self.spans()]
        missing = self.nothing.missing_balance(np.concatenate(numbers), self.shape[0], terms.mass)
        sums: Any = None
        with contextlib.closing(self.stream()) as blocks:
            for k, part in blocks:
                point = (w, b, np.ascontiguousarray(alpha[self.span(k)]))
                more = part.precise_sums(*point, rounded, missing, doubt)
                sums = more if sums is None else sums + more
        given = (w, b, terms, sizes, rough, sums, missing, rounded, self.lam, known.even)
        return conclude_precisely(self, *given, doubt)

    def feasible(self, alpha: Any) -> Any:
        """Return alpha clipped to the loss' domain and, with an intercept, made to sum to zero.

        As `Problem.feasible` does, but the sums that decide by how much are those of all blocks.
        """
        clipped = self.column()
        for rows in self.spans():
            part = self.frame(rows)
            clipped[rows] = part._with(fit_intercept=False).feasible(alpha[rows])
        if self.fit_intercept:
            own = [self.frame(rows).balance_sums(clipped[rows]) for rows in self.spans()]
            sums = np.sum(own, axis=0)
            for rows in self.spans():
                clipped[rows] = self.frame(rows).balanced(clipped[rows], sums)
        return clipped

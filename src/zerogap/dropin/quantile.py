"""Quantile regression with an L1 penalty: scikit-learn's linear program, with a certificate."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.utils.validation import _check_sample_weight

from zerogap.audit.convention import UnknownObjective
from zerogap.audit.quantile import objective, program_of, solve_program
from zerogap.dropin.fit import NAMES, RegressorDropIn
from zerogap.dropin.refused import quantile_method
from zerogap.problem.certificate import Certificate
from zerogap.problem.validation import warn_if_short

SOLVED_GAP = 1e-6  # relative gap that counts as solved: there is no `tol`


class QuantileRegressor(RegressorDropIn, linear_model.QuantileRegressor):
    """scikit-learn's QuantileRegressor, certified: mean pinball loss + alpha |w|_1.

    The dual linear program is solved by HiGHS; its multipliers are the coefficients.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap.linear_model import QuantileRegressor
    >>> model = QuantileRegressor(alpha=0.01).fit(*load_diabetes(return_X_y=True))
    >>> model.certificate_.relative_gap <= 1e-6
    True
    """

    def _fit_certified(self: Any, X: Any, y: Any, sample_weight: Any, **others: Any) -> Any:
        """Solve the linear program, and prove how far the solution is from the optimum."""
        self._validate_params()
        quantile_method(self, X)
        rows, targets = self._checked(X, y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        began = time.perf_counter()
        try:
            program = program_of(self, rows, targets, sample_weight)
        except UnknownObjective as reason:
            return self._fit_by_scikit_learn(reason, X, y, sample_weight, others)
        found = solve_program(program)
        primal, blur = objective(program, found.w, found.b)
        gap = primal + blur - found.bound
        self.certificate_ = Certificate(
            primal,
            found.bound,
            gap,
            epochs=float(found.iterations),
            seconds=time.perf_counter() - began,
            stop_reason="converged" if gap <= SOLVED_GAP * primal else "stalled",
            solver="HiGHS",
            rounding=blur,
        )
        self._keep(found.w[None, :], np.array([found.b]), 1)
        warn_if_short(self.certificate_, SOLVED_GAP, names=NAMES)
        return self

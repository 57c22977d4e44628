"""Where ridge regression starts: at scikit-learn's direct solution, exact up to rounding."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge

from zerogap.losses import Squared
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.rows import DenseRows
from zerogap.solvers.protocol import Answer

MOST_VALUES = 4_000_000  # numbers of a table, 32 MB: a direct solution takes up to about a second
LONGEST_SHORT_SIDE = 1_000  # the shorter side of a table: its Gram matrix is factorised
METHODS = ("svd", "cholesky")  # of scikit-learn: "auto" is the second, with the first as a resort


def direct_answers(problems: list[Problem], method: str = "auto") -> list[Answer] | None:
    """Return the solutions of ridge problems that differ in targets and lam, if they are small.

    An iterative method that ends at a gap knows the weights up to the root of the gap; a direct
    solution knows them to the last digits.
    """
    first = problems[0]
    n, d = first.shape
    ridge = type(first.loss) is Squared and isinstance(first.penalty, L2)
    if not ridge or n * d > MOST_VALUES or min(n, d) > LONGEST_SHORT_SIDE:
        return None
    total = float(np.sum(first.weight)) if len(first.weight) else float(n)
    model = Ridge(
        alpha=np.array([problem.lam for problem in problems]) * total,
        fit_intercept=first.fit_intercept,
        solver=method if method in METHODS else "auto",
    )
    rows = first.rows.X if isinstance(first.rows, DenseRows) else first.rows.dense()
    targets = np.array([problem.y for problem in problems]).T
    weights = first.weight if len(first.weight) else None
    model.fit(rows.astype(np.float64, copy=False), targets, sample_weight=weights)
    coef, intercept = np.atleast_2d(model.coef_), np.broadcast_to(model.intercept_, len(problems))
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        return None
    return [(w, float(b), None) for w, b in zip(coef, intercept, strict=True)]


def shape_of_one_column() -> tuple[int, ...]:
    """Return the shape of the coefficients that scikit-learn finds for targets of shape (n, 1)."""
    return Ridge().fit([[0.0], [1.0]], [[0.0], [1.0]]).coef_.shape

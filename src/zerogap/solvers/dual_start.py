"""Where dual methods start: at feasible dual variables, with the intercept as a multiplier.

With a free intercept b the dual variables must sum to zero, and b is the multiplier of this
constraint.  The proximal method of multipliers finds both: while the dual variables move,
b = centre + rho mean(alpha); at the end of an epoch the centre moves to b.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zerogap.solvers.protocol import Answer

# rho over the curvature of a mean row, |x|^2 / lam; measured: a larger one is slower
RHO_OF_CURVATURE = 0.1


def first_rho(mean_sqnorm: float, strength: float) -> float:
    """Return rho for rows of this mean square and a penalty of this strong convexity."""
    return max(RHO_OF_CURVATURE * mean_sqnorm / strength, 1.0)


def warm_duals(problem: Any, warm: Answer) -> np.ndarray:
    """Return the feasible dual variables of a point; those that belong to (w, b) if it has none."""
    w, b, alpha = warm
    return problem.feasible(problem.dual_point(problem.scores(w), b) if alpha is None else alpha)

"""Shifts that a free intercept undoes: columns and targets seen from a point near their middle.

With a free intercept b, shifting column j by m_j changes nothing but b, since
x.w + b = (x - m).w + (b + m.w), nor does shifting the targets of a loss of residuals.  Far from
zero such columns cost digits and passes: a year is 2000 times as large as what it tells.  So
solvers work, and certificates are computed, on shifted columns; models leave with their own b.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zerogap.problem import Problem
from zerogap.rows import find_shift


class Centred(NamedTuple):
    """A problem whose columns and targets are near zero, and how its intercepts differ."""

    problem: Any
    origin: np.ndarray  # what was subtracted from each column; empty if nothing was
    target: float  # what was subtracted from the targets

    def inward(self, w: Any, b: Any) -> Any:
        """Return the intercept that belongs to (w, b) on the shifted data."""
        if not self:
            return b
        host = self.problem.host
        return self.problem.place(host(b) + self.origin @ host(w).T - self.target)

    def outward(self, w: Any, b: Any) -> Any:
        """Return the intercept on the data as given of a model (w, b) of the shifted data."""
        return b - self.origin @ w.T + self.target if self else b

    def __bool__(self) -> bool:
        return len(self.origin) > 0


def centred(problem: Any) -> Centred:
    """Return the problem on shifted data if that is easier and changes b alone, else as it is.

    Parameters
    ----------
    problem : Problem or StreamedProblem
        Rows in a store stay as they are.

    Examples
    --------
    >>> import zerogap as zg
    >>> given = zg.Problem([[2001.0], [2002.0]], [-1, 1], "hinge", fit_intercept=True)
    >>> shifted = centred(given)
    >>> shifted.origin, shifted.problem.rows.X.ravel()
    (array([2001.5]), array([-0.5,  0.5]))
    """
    nothing = Centred(problem, np.empty(0), 0.0)
    if not isinstance(problem, Problem) or not problem.fit_intercept:
        return nothing
    rows, origin = problem.rows.centred
    target = 0.0
    if problem.loss.task == "regression":
        target = float(find_shift(problem.host(problem.y)[:, None])[0])
    if not len(origin) and not target:
        return nothing
    if not len(origin):
        origin = np.zeros(problem.shape[1])
    y = problem.y - target if target else problem.y
    return Centred(problem._with(rows=rows, y=y, sqnorms=rows.sqnorms), origin, target)

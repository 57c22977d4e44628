"""Where small elastic nets start: next to the optimum, by coordinate descent on the Gram matrix.

One of the hundreds of fits of a cross-validation then takes no step of a solver, only its proof.
"""

from __future__ import annotations

import numpy as np

from zerogap.kernels.jit import kernel
from zerogap.losses import Squared
from zerogap.penalties import ElasticNet
from zerogap.problem import Problem
from zerogap.rows import DenseRows
from zerogap.solvers.protocol import Answer

MOST_VALUES = 4_000_000  # numbers of a table, 32 MB, of which a centred copy is made
MOST_FEATURES = 300  # features: their Gram matrix is in the cache
MOST_MULTIPLICATIONS = 20_000_000  # of all sweeps, about 20 ms: what needs more is for a solver
LEAST_GAIN = 1e-20  # of the targets' variance, of a sweep: raw columns leave a gap 1e7 times it


def descended(problem: Problem, start: Answer | None) -> Answer | None:
    """Return a start next to the optimum of a small elastic net; else the start as it is."""
    n, d = problem.shape
    elastic = type(problem.loss) is Squared and isinstance(problem.penalty, ElasticNet)
    if not elastic or n * d > MOST_VALUES or d > MOST_FEATURES:
        return start
    rows = problem.rows.X if isinstance(problem.rows, DenseRows) else problem.rows.dense()
    X, y = np.asarray(rows, dtype=np.float64), problem.y
    shares = problem.weight / problem.weight.sum() if len(problem.weight) else np.full(n, 1.0 / n)
    means, mean = np.zeros(d), 0.0
    if problem.fit_intercept:
        means, mean = shares @ X, float(shares @ y)
        X, y = X - means, y - mean
    weighted = X.T * shares
    w = np.zeros(d) if start is None else np.array(start[0], dtype=np.float64)
    l1, l2 = problem.lam * problem.l1_ratio, problem.lam * (1.0 - problem.l1_ratio)
    enough = LEAST_GAIN * float(shares @ (y * y))
    sweeps = MOST_MULTIPLICATIONS // (d * d)
    gram = weighted @ X
    _descend(gram, gram @ w - weighted @ y, w, l1, l2, sweeps, enough)
    return (w, mean - float(means @ w), None) if np.isfinite(w).all() else start


@kernel
def _descend(gram, slope, w, l1, l2, sweeps, enough):
    """Minimise w' gram w / 2 - p.w + l1 |w|_1 + l2 |w|^2 / 2 from w; slope is gram w - p."""
    for _ in range(sweeps):
        gain = 0.0
        for j in range(len(w)):
            curvature = gram[j, j] + l2
            aim = gram[j, j] * w[j] - slope[j]
            new = np.sign(aim) * max(0.0, abs(aim) - l1) / curvature
            step = new - w[j]
            if step != 0.0:
                w[j] = new
                gain += curvature * step * step
                for k in range(len(w)):
                    slope[k] += step * gram[j, k]
        if gain <= enough:
            break

r"""Quantile regression with an L1 penalty: a linear program, and a bound that any v gives.

scikit-learn's QuantileRegressor minimises, with p_i = s_i / S and the pinball loss rho::

    P(w, b) = sum_i p_i rho(y_i - x_i.w - b) + alpha |w|_1,    rho(r) = max(q r, (q - 1) r)

For all v_i between (q - 1) p_i and q p_i, whatever else they are::

    P(w, b) >= v.y - |X^T v|_inf,alpha W - |sum v| B,    |.|_inf,alpha: what exceeds alpha

where W bounds |w|_1 and B bounds |b| at the optimum: P(w, b) <= P(0, b0) gives W = P(0, b0) /
alpha, and the best b is a quantile of the residuals, so B = max_i |y_i| + |x_i|_inf W.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from sklearn.utils import column_or_1d

from zerogap.audit.bound import Audit
from zerogap.audit.convention import Convention, data_of, models_of, require
from zerogap.audit.parts import Part
from zerogap.losses import Quantile
from zerogap.problem import Problem
from zerogap.problem.checks import check_intercept, check_weights
from zerogap.problem.gap import gamma

MOST_BETWEEN = 1_000  # dual variables between their bounds: as many as coefficients that are not 0
ACCURACY = 1e-10  # of HiGHS, in units of scaled constraints: the smallest that it takes


class Program(NamedTuple):
    """A quantile regression: what is to be minimised."""

    X: Any
    y: np.ndarray
    share: np.ndarray
    quantile: float
    alpha: float
    fit_intercept: bool


class Solved(NamedTuple):
    """A solution with a lower bound of the optimum."""

    w: np.ndarray
    b: float
    bound: float
    iterations: int


def program_of(model: Any, X: Any, y: Any, sample_weight: Any) -> Program:
    """State what a QuantileRegressor minimises on data."""
    require(0 < model.alpha < np.inf, model, f"alpha={model.alpha!r}")
    require(0 < model.quantile < 1, model, f"quantile={model.quantile!r}")
    y = np.asarray(y, dtype=np.float64).ravel()
    share, _, _ = check_weights(sample_weight, len(y))
    kept = np.flatnonzero(share)
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    rows = (
        sparse.csr_array(X, dtype=np.float64) if sparse.issparse(X) else np.asarray(X, np.float64)
    )
    given = float(model.quantile), float(model.alpha), bool(model.fit_intercept)
    return Program(rows[kept], y[kept], share[kept], *given)


def objective(program: Program, w: np.ndarray, b: float) -> tuple[float, float]:
    """Return P(w, b), and a bound of how far rounding may have moved it.

    Residuals are computed in twice the precision, so those of a model that fits exactly are zero.
    """
    left, lost = _difference(program.y, program.X @ w)
    r, more = _difference(left, b)
    lost, q = lost + more, program.quantile
    r = r + lost
    sizes = gamma(4) * np.abs(lost) + gamma(program.X.shape[1] + 2) * (abs(program.X) @ np.abs(w))
    value = program.share @ np.maximum(q * r, (q - 1.0) * r) + program.alpha * np.abs(w).sum()
    blur = program.share @ sizes * (1.0 + 1e-12) + gamma(sum(program.X.shape) + 8) * value
    return float(value), float(blur)


def _difference(a: np.ndarray, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a - b rounded, and the exact rounding error (Knuth's TwoSum)."""
    rounded = a - b
    part = rounded - a
    return rounded, (a - (rounded - part)) - (b + part)


def solve_program(program: Program) -> Solved:
    """Solve the linear program; with an intercept, from columns and targets around zero.

    Subtraction moves each number by one rounding of its result, which the bounds allow for.
    """
    if not program.fit_intercept:
        return _solve(program)
    X, y, share, q = program[:4]
    middle = _quantile(y, share, q)
    origin = np.zeros(X.shape[1]) if sparse.issparse(X) else X.mean(axis=0)
    rows = X if sparse.issparse(X) else X - origin
    found = _solve(program._replace(X=rows, y=y - middle))
    return found._replace(b=found.b - float(origin @ found.w) + middle)


def _solve(program: Program) -> Solved:
    """Solve the dual linear program by HiGHS, columns and targets scaled to size 1."""
    X, y, p, q = program.X, program.y, program.share, program.quantile
    n, d = X.shape
    sizes = _largest(X, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    unit = max(float(np.abs(y).max()), np.finfo(float).tiny)
    scaled = sparse.csc_array(X).multiply(1.0 / sizes).T.tocsc()
    ones = sparse.csc_array(np.ones((1, n)))
    found = linprog(
        -y / unit,
        A_ub=sparse.vstack([scaled, -scaled], format="csc"),
        b_ub=np.tile(np.minimum(program.alpha * n / sizes, 2.0 * n), 2),  # no v reaches n
        A_eq=ones if program.fit_intercept else None,
        b_eq=np.zeros(1) if program.fit_intercept else None,
        bounds=np.column_stack([(q - 1.0) * p * n, q * p * n]),
        method="highs",
        options={
            "primal_feasibility_tolerance": ACCURACY,
            "dual_feasibility_tolerance": ACCURACY,
        },
    )
    if found.x is None:
        return Solved(np.zeros(d), float(np.median(y)) * program.fit_intercept, 0.0, 0)
    slopes = found.ineqlin.marginals
    w = (slopes[d:] - slopes[:d]) * unit / sizes
    b = -float(found.eqlin.marginals[0]) * unit if program.fit_intercept else 0.0
    v = _at_vertex(program, found.x / n, w, sizes)
    beyond = max(1.0, float(np.abs(X.T @ v).max(initial=0.0)) / program.alpha)
    bound = max(lower_bound(program, u) for u in (found.x / n, v, v / beyond))
    return Solved(w, b, bound, int(found.nit))


def _at_vertex(program: Program, v: np.ndarray, w: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return v with its active constraints solved once more, to the last digits.

    HiGHS knows them to its own accuracy, which large columns multiply.
    """
    X, _, p, q, alpha, free = program
    used = np.flatnonzero(w)
    low, high = (q - 1.0) * p, q * p
    between = np.flatnonzero((v > low + 1e-9 * p) & (v < high - 1e-9 * p))
    if not len(between) or len(between) > MOST_BETWEEN:
        return v
    columns = (X[:, used].toarray() if sparse.issparse(X) else X[:, used]) / sizes[used]
    aims = alpha * np.sign(w[used]) / sizes[used]
    if free:
        columns, aims = np.column_stack([columns, np.ones(len(p))]), np.append(aims, 0.0)
    better = np.where(v > 0.5 * (low + high), high, low)
    better[between] = v[between]
    for _ in range(3):  # refinement: the residual is computed anew
        step = np.linalg.lstsq(columns[between].T, aims - columns.T @ better, rcond=None)[0]
        better[between] += step
    return np.clip(better, low, high)


def lower_bound(program: Program, v: np.ndarray) -> float:
    """Return a lower bound of P, from any v: entries outside their bounds are moved to them."""
    X, y, p, q, alpha, free = program
    v = np.clip(v, (q - 1.0) * p, q * p)
    start = _quantile(y, p, q) if free else 0.0
    most, blur = objective(program, np.zeros(X.shape[1]), start)
    largest_w = (most + blur) / alpha
    slopes = np.abs(X.T @ v) + gamma(len(y) + 3) * (abs(X).T @ np.abs(v))
    excess = max(0.0, float(slopes.max(initial=0.0)) - alpha)
    largest_b = float((np.abs(y) + _largest(X, axis=1) * largest_w).max())
    unbalanced = abs(float(v.sum())) + gamma(len(y)) * float(np.abs(v).sum())
    lost = excess * largest_w + (unbalanced * largest_b if free else 0.0)
    rounding = gamma(2 * len(y) + 8) * float(np.abs(v) @ np.abs(y))  # of shares, too
    return max(0.0, float(v @ y) - lost * (1.0 + 1e-12) - rounding)


def audit_quantile(part: Part) -> Audit:
    """Certify a QuantileRegressor by the linear program that it solves."""
    model = part.model
    convention = Convention(Quantile(0.5), lambda total, n: 1.0)  # read in the same way as others
    ((coef, intercept, _),) = models_of(model, convention, 0)
    rows, y = data_of(part.X, convention), column_or_1d(part.y)
    if len(coef) != rows.shape[1]:
        raise ValueError(f"the model has {len(coef)} features, X has {rows.shape[1]}")
    Problem(rows, y, convention.loss, 1.0, part.sample_weight)  # refuses what are no such data
    program = program_of(model, part.X, y, part.sample_weight)
    w, b = coef, check_intercept(float(intercept), program.fit_intercept)
    primal, blur = objective(program, w, b)
    best = solve_program(program)
    lowest, off = objective(program, best.w, best.b)
    return Audit(
        primal,
        best.bound,
        primal + blur - best.bound,
        epochs=float(best.iterations),
        stop_reason="bound is tight",
        solver="HiGHS",
        at_least=max(0.0, primal - blur - lowest - off),
        rounding=blur,
    )


def _quantile(y: np.ndarray, p: np.ndarray, q: float) -> float:
    """Return a q-quantile of weighted numbers, which minimises the pinball loss."""
    order = np.argsort(y)
    place = np.searchsorted(np.cumsum(p[order]), q)
    return float(y[order[min(int(place), len(y) - 1)]])


def _largest(X: Any, axis: int) -> np.ndarray:
    found = abs(X).max(axis=axis)
    return np.ravel(found.toarray() if sparse.issparse(found) else found)

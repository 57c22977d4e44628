"""Leave-one-out predictions: bounds from one fit, and fits for the rows that they leave open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import linalg

from zerogap.display import Shown
from zerogap.kernels import machine_code
from zerogap.kernels.jit import kernel
from zerogap.leave_one_out.bounds import Origin, PrimalDualPair
from zerogap.losses import Loss
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.problem.centring import centred
from zerogap.problem.gap import EVALUATION, UNIT, of_rows
from zerogap.problem.proving import Proof
from zerogap.solvers import Auto, Result, solve
from zerogap.solvers.hessian import DIRECT
from zerogap.solvers.history import Record
from zerogap.solvers.protocol import Answer

FIRST_TOLERANCE = 1e-9  # relative gap of the fit with all rows, which is made once
LEAST_TOLERANCE = 1e-12  # smallest relative gap that is asked for: below it there is rounding
MOST_EPOCHS = 20_000  # epochs of one fit
EPOCHS_BETWEEN_LOOKS = 4  # epochs between two bounds of a row's score, each of which costs an epoch
_ALL = slice(None)
_NONE = np.empty(0)


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut(Shown):
    """What the models without one row each predict for that row.

    Attributes
    ----------
    error_low, error_high : float
        Bounds of the leave-one-out error: the share of wrong labels, or the mean loss of a
        regression (half the mean squared residual for the squared loss), with sample weights.
    low, high : ndarray of shape (n_samples,)
        Bounds of the scores x_i.w + b of the optimal models without row i.  Without the last row
        of a class any large b is optimal: the interval then has no end.
    how : ndarray of str
        What decided each row: "free" (its dual variable is zero), "bound", "solved", "tied" (both
        labels, or several scores, are optimal as far as double precision can tell) or "undecided"
        (time or epochs were up).
    epochs, seconds : float
        What was spent, the sharpened fit with all rows included.
    """

    error_low: float
    error_high: float
    low: np.ndarray
    high: np.ndarray
    how: np.ndarray
    epochs: float
    seconds: float

    @property
    def error(self) -> float:
        """The leave-one-out error; the middle of its bounds if they differ."""
        return 0.5 * (self.error_low + self.error_high)

    @property
    def signs(self) -> np.ndarray:
        """The signs of the scores: +1, -1, or 0 where both are possible."""
        return 1 * (self.low > 0.0) - 1 * (self.high < 0.0)

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows decided in each way."""
        kinds = ("free", "bound", "solved", "tied", "undecided")
        return {kind: int(np.sum(self.how == kind)) for kind in kinds}

    def _facts(self) -> Mapping[str, Any]:
        error = {"error at least": self.error_low, "error at most": self.error_high}
        ways = {f"rows {kind}": count for kind, count in self.counts.items() if count}
        return {**error, **ways, "epochs": self.epochs, "seconds": self.seconds}

    def __str__(self) -> str:
        if self.error_high - self.error_low <= 1e-3 * self.error_high:
            error = f"{self.error:.6g}"
        else:
            error = f"between {self.error_low:.6g} and {self.error_high:.6g}"
        ways = ", ".join(f"{count} {kind}" for kind, count in self.counts.items() if count)
        spent = f"{self.epochs:.0f} epochs, {self.seconds:.3g} s"
        return f"leave-one-out error {error} of {len(self.how)} rows: {ways}; {spent}"


def leave_one_out(
    problem: Problem,
    *,
    start: Result | Answer | None = None,
    tol: float = 1e-3,
    width: float | None = None,
    max_seconds: float | None = None,
    random_state: Any = 0,
) -> LeaveOneOut:
    """Predict every row by the optimal model of the others, without fitting most of them.

    The model without row i minimises the objective with the same lam S, that is with the same C,
    as its loss' other terms are left as they are.

    Parameters
    ----------
    problem : Problem
        The problem with all rows, of two classes or a regression.
    start : Result or (w, b, alpha), optional
        A solution, as good as there is.
    tol : float
        Relative accuracy of the error of a regression; that of a classifier is exact.
    width : float, optional
        Also bound each score of a classifier to an interval of this length at most.
    max_seconds : float, optional
        Return bounds of the error after about so many seconds.
    random_state : None, int, numpy Generator or RandomState
        Seed of the fits.

    Returns
    -------
    LeaveOneOut
        Bounds of the score of each row, and of the error.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> found = leave_one_out(zg.Problem(X, y, "logistic", lam=0.1))
    >>> found.error_low == found.error_high
    True
    """
    _check(problem, tol, max_seconds)
    clock, shifted = _Clock(max_seconds), centred(problem)
    problem = shifted.problem
    if start is not None:
        w, b, alpha = (start.w, start.b, start.alpha) if isinstance(start, Result) else start
        start = (w, shifted.inward(w, b), alpha)
    fit = _run(problem, start, FIRST_TOLERANCE, clock, random_state)
    sharp = PrimalDualPair.of(problem, fit.w, cast("Proof", fit.proof))
    origin = Origin.of(sharp)
    grid = 1e-8 * (1.0 + abs(fit.b)) * 2.0 ** np.arange(60) if problem.fit_intercept else _NONE
    low, high = sharp.bounds(np.arange(problem.shape[0]), origin, grid)
    for i in _alone(problem):
        ends = -problem.y[i] * np.array([_flat_from(problem.loss), math.inf])
        low[i], high[i] = ends.min(), ends.max()
    rule = _Rule.of(problem, low, high, tol, math.inf if width is None else width)
    known, free = rule.known(low, high), problem.share * sharp.alpha == 0.0
    how = np.where(known, np.where(free, "free", "bound"), "undecided")
    epochs = fit.certificate.epochs
    for i, warm in _starts(sharp, np.flatnonzero(~known).tolist()):
        if clock.is_over():
            break
        search = _Search(_without(problem, i), i, origin, rule, low[i], high[i])
        epochs += search.run(warm, clock, random_state)
        low[i], high[i], how[i] = search.low, search.high, search.how
    counted = problem.share > 0.0
    errors = (errors[counted] for errors in rule.errors(low, high))
    least, most = (float(problem.share[counted] @ part) for part in errors)
    if problem.loss.task == "regression":
        sums = of_rows(problem.shape[0])
        least, most = least * (1.0 - sums), most * (1.0 + sums)
    if shifted.target:
        low = np.nextafter(low + shifted.target, -math.inf)
        high = np.nextafter(high + shifted.target, math.inf)
    return LeaveOneOut(least, most, low, high, how, epochs, clock.seconds())


def _check(problem: Problem, tol: float, max_seconds: float | None) -> None:
    if problem.loss.task == "multiclass":
        raise ValueError(
            f"leave-one-out needs two classes or a regression, not {problem.loss}: separate one "
            f"class from the rest by a binary loss"
        )
    if not 0 < tol < math.inf:
        raise ValueError(f"tol must be a positive number, got {tol!r}")
    if max_seconds is not None and not max_seconds > 0:
        raise ValueError(f"max_seconds must be positive, got {max_seconds!r}")
    if np.sum(problem.share > 0.0) < 2:
        raise ValueError("leave-one-out needs at least two rows with positive weight")


class _Clock:
    """The time that is left.  Compiling does not count, as in fits."""

    def __init__(self, limit: float | None) -> None:
        self.began, self.limit = machine_code.clock(), limit

    def seconds(self) -> float:
        return machine_code.clock() - self.began

    def is_over(self) -> bool:
        return self.limit is not None and self.seconds() >= self.limit

    def left(self) -> float | None:
        return None if self.limit is None else max(1e-3, self.limit - self.seconds())


def _run(
    problem: Problem,
    start: Any,
    tol: float,
    clock: _Clock,
    seed: Any,
    callback: Callable[[Record], bool] | None = None,
) -> Result:
    found = solve(
        problem,
        Auto(),
        tol=tol,
        max_epochs=MOST_EPOCHS if callback else 1000,
        max_seconds=clock.left(),
        record=EPOCHS_BETWEEN_LOOKS * problem.shape[0] if callback else "auto",
        callback=callback,
        warm_start=start,
        random_state=seed,
    )
    if found.stop_reason == "interrupted":
        raise KeyboardInterrupt
    return found


def _without(problem: Problem, i: int) -> Problem:
    """Return the problem with weight 0 for row i, and the same lam S."""
    share, weight = problem.share.copy(), problem.weight.copy()
    share[i] = 0.0
    total = math.fsum(share)
    if len(weight):
        weight[i] = 0.0
        total = math.fsum(weight) / math.fsum(problem.weight)
    return problem._with(share=share / total, lam=problem.lam / total, weight=weight)


def _alone(problem: Problem) -> np.ndarray:
    """Return the rows without which a class is empty.

    The other rows are then fitted best by w = 0 and any b beyond which their loss is flat.
    """
    if not problem.fit_intercept or problem.loss.task == "regression":
        return np.empty(0, np.int64)
    classes = [np.flatnonzero((problem.share > 0.0) & (problem.y == y)) for y in (-1.0, 1.0)]
    return np.array([rows[0] for rows in classes if len(rows) == 1], np.int64)


def _flat_from(loss: Loss) -> float:
    """Return a margin below which the loss of a class still falls: no optimal b has a smaller one.

    1 for the hinge and its smooth forms; infinity for the logistic loss, which falls forever: its
    slope vanishes by underflow alone.
    """
    falling, flat = 0.0, 1.0
    while loss.derivative(flat, 1.0) < 0.0 and flat < 1e300:
        falling, flat = flat, 2.0 * flat
    while falling < (middle := 0.5 * (falling + flat)) < flat:
        falling, flat = (middle, flat) if loss.derivative(middle, 1.0) < 0.0 else (falling, middle)
    underflows = falling > 100.0 and abs(loss.derivative(falling, 1.0)) < 1e-300
    return math.inf if underflows else falling


@dataclass(frozen=True, eq=False)
class _Rule:
    """How errors follow from bounds of scores, and which bounds are tight enough."""

    problem: Problem
    accuracy: float = 0.0  # of the error of a row, relative to
    scale: float = 0.0  # its own size plus this
    width: float = math.inf  # of the bounds of a score

    @classmethod
    def of(
        cls, problem: Problem, low: np.ndarray, high: np.ndarray, tol: float, width: float
    ) -> _Rule:
        if problem.loss.task == "classification":
            return cls(problem, width=width)
        least, _ = cls(problem).errors(low, high)
        return cls(problem, 0.5 * tol, float(problem.share @ least))

    def known(self, low: Any, high: Any, rows: Any = _ALL) -> Any:
        """Return whether the rows' predictions are known."""
        least, most = self.errors(low, high, rows)
        sure = most - least <= self.accuracy * (least + self.scale)
        if math.isinf(self.width):
            return sure
        low, high = np.atleast_1d(low), np.atleast_1d(high)
        endless = np.isinf(low) | np.isinf(high)  # of the only row of a class
        with np.errstate(invalid="ignore"):
            return sure & (endless | (high - low <= self.width))

    def errors(self, low: Any, high: Any, rows: Any = _ALL) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest errors, given bounds of the scores."""
        y = np.atleast_1d(self.problem.y[rows])
        if self.problem.loss.task == "classification":
            wrong, right = np.where(y > 0, (high < 0, low > 0), (low > 0, high < 0))
            return 1.0 * wrong, 1.0 - right
        values = np.empty((3, len(y)))  # a loss is least at its target
        for out, z in zip(values, (low, high, np.clip(y, low, high)), strict=True):
            _values(self.problem.loss, y, np.broadcast_to(z, len(y)), out)
        room = EVALUATION * UNIT
        return values[2] * (1.0 - room), values[:2].max(axis=0) * (1.0 + room)


class _Search:
    """The score of one row by the model without it, ever closer."""

    how = "undecided"

    def __init__(
        self, rest: Problem, i: int, origin: Origin, rule: _Rule, low: float, high: float
    ) -> None:
        self.rest, self.i, self.origin, self.rule = rest, i, origin, rule
        self.low, self.high = low, high

    def run(self, warm: Answer, clock: _Clock, seed: Any) -> float:
        """Solve until the prediction is known; return the epochs spent."""
        w, *_ = warm
        proof = self.rest.examine(*warm, trust=False)
        if self.look(w, proof):
            return 0.0
        start = (w, proof.b, proof.alpha)
        found = _run(self.rest, start, LEAST_TOLERANCE, clock, seed, self.callback)
        if self.how != "solved":
            self.look(found.w, cast("Proof", found.proof), last=True)
        if self.how != "solved" and found.stop_reason in ("converged", "rounding"):
            self.how = "tied"
        return found.certificate.epochs

    def callback(self, record: Record) -> bool:
        return self.look(record.w, cast("Proof", record.proof))

    def look(self, w: np.ndarray, proof: Proof, last: bool = False) -> bool:
        """Return whether the prediction is known, now that there is this proof."""
        found, row = PrimalDualPair.of(self.rest, w, proof), np.array([self.i])
        low, high = found.bounds(row, self.origin)
        if self.rest.fit_intercept:
            if not last and not self.rule.known(low, high, row).all():
                return False  # it would not be if the intercept were
            low, high = found.bounds(row, self.origin, found.steps(self.origin))
        self.low, self.high = max(self.low, low[0]), min(self.high, high[0])
        if known := bool(self.rule.known(self.low, self.high, row).all()):
            self.how = "solved"
        return known


def _starts(sharp: PrimalDualPair, rows: list[int]) -> Iterator[tuple[int, Answer]]:
    """Yield rows, each with a start for the model without it: one step of Newton's method.

    The Hessian is that of the other rows.  Losses with kinks start at the model of all rows.
    """
    factor, h = _factorised_hessian(sharp) if rows else (None, _NONE)
    problem, d = sharp.problem, sharp.problem.shape[1]
    slopes = problem.share * problem.slopes(sharp.z)
    for i in rows:
        if factor is not None:
            row = problem.rows.take(np.array([i])).transposed_product(np.ones((1, 1)))[0]
            x = np.append(row, 1.0) if problem.fit_intercept else row
            step = linalg.cho_solve(factor, x)
            remains = 1.0 - h[i] * float(x @ step)
            if remains > 1e-8:
                step *= slopes[i] / remains
                yield i, (sharp.w + step[:d], sharp.b + float(step[d:].sum()), None)
                continue
        alpha = sharp.alpha.copy()
        alpha[i] = 0.0
        yield i, (sharp.w, sharp.b, alpha)


def _factorised_hessian(sharp: PrimalDualPair) -> tuple[Any, np.ndarray]:
    """Return the factorised Hessian, or None if it is not used, and the part of its rows."""
    problem = sharp.problem
    n, d = problem.shape
    known = type(problem.loss).stiffness is not Loss.stiffness and isinstance(problem.penalty, L2)
    if not known or not math.isfinite(problem.loss.smoothness) or d > DIRECT:
        return None, _NONE
    h = np.empty(n)
    _curvatures(problem.loss, problem.y, problem.share, sharp.z, h)
    hessian = problem.rows.moments(h)
    hessian[np.diag_indices(d)] += problem.lam
    if problem.fit_intercept:
        border = problem.rows.transposed_product(h[:, None])
        hessian = np.block([[hessian, border.T], [border, np.full((1, 1), h.sum())]])
    try:
        return linalg.cho_factor(hessian), h
    except linalg.LinAlgError:  # the loss is flat: nothing holds the intercept
        return None, _NONE


@kernel
def _curvatures(loss, y, share, z, h):
    """h_i = s_i phi''(z_i)"""
    for i in range(len(z)):
        h[i] = share[i] / loss.stiffness(-loss.derivative(z[i], y[i]), y[i])


@kernel
def _values(loss, y, z, out):
    for i in range(len(z)):
        out[i] = loss.value(z[i], y[i])

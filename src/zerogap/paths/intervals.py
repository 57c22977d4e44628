r"""What a model that is certified at one lambda proves at others, and how many prove them all.

A model (w, b) and a feasible dual point a, found for one lambda, prove something at every other
one.  With v = 1/S sum_i s_i a_i x_i, which has no lambda in it::

    P_lam(w, b) = 1/S sum_i s_i phi(x_i.w + b) + lam g(w)
    gap(lam)    = E + lam (g(w) + g*(v/lam) - w.v/lam)
    E           = 1/S sum_i s_i (phi(x_i.w + b) + phi*(-a_i) + a_i (x_i.w + b))  >= 0

because a stays feasible (with an intercept, sum_i s_i a_i = 0 has no lambda in it either) and E is
a matter of rows alone.  For L2 that is E + |lam w - v|^2 / (2 lam), or, for a gap of zero at lam0,
|w|^2 (lam - lam0)^2 / (2 lam).  The objective is linear in lam and the gap is convex, lam g*(v/lam)
being the perspective of g*: the lambdas with gap <= tol P are an interval around lam0.  A path
without holes is a set of models whose intervals touch.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from zerogap.losses import MulticlassHinge
from zerogap.problem import Problem
from zerogap.problem.centring import centred
from zerogap.problem.certificate import Certificate
from zerogap.problem.checks import is_positive
from zerogap.problem.gap import (
    ENOUGH,
    UNIT,
    gamma,
    hidden_by_underflow,
    of_weights,
    slack_above,
)
from zerogap.problem.row_sums import penalty_and_slack, penalty_cost
from zerogap.solvers import Result
from zerogap.solvers.progress import Progress
from zerogap.solvers.protocol import Answer

SHARE_OF_TOL = 0.25  # share of tol that each solve is run to: the rest serves lambdas around it
HALF_WITHIN = 1e-9  # a class whose share is this close to 1/2 counts as half of the rows
ENDS_WITHIN = 0.01  # error of an interval's end, as a share of its length
MOST_MODELS = 1e6  # models that one hole may need: a quarter of an hour at a millisecond each


class PathError(RuntimeError):
    """A path would have a hole: a solve ended before the gap that its neighbours need.

    Attributes
    ----------
    found : str
        What happened, without the advice that the message ends in.
    """

    def __init__(self, found: str, advice: str = "") -> None:
        super().__init__(f"{found}: {advice}" if advice else found)
        self.found = found


class Reach:
    """What a certified pair proves at every lambda, in exact arithmetic."""

    def __init__(
        self, problem: Problem, result: Result, tol: float, lam_min: float, lam_max: float
    ) -> None:
        self.result, self.penalty, self.lam, self.tol = result, problem.penalty, problem.lam, tol
        shifted, w = centred(problem), result.w
        inner, (b, slip) = shifted.problem, shifted.precisely_inward(w, result.b)
        tolerated = ENOUGH * SHARE_OF_TOL * tol
        rest = None if result.proof is None else result.proof.rest
        given = (w, b, inner.scores(w), result.alpha, tolerated, rest, slip)
        found, u, _ = inner.evaluated(*given)
        self.off, self.blur, self.sums = found.off, found.blur, of_weights(problem)
        self.v = problem.lam * u
        self.cost = penalty_cost(problem.penalty, w.ravel())
        self.loss = max(0.0, found.primal - self.lam * self.cost)
        slack = 0.0 if math.isnan(found.slack) else found.slack
        self.excess = max(0.0, found.gap - slack) + 2.0 * UNIT * found.gap
        self.excess += hidden_by_underflow(max(self.lam, lam_max))
        self.low, self.high = self._reach(lam_min), self._reach(lam_max)

    def certificate(self, lam: float) -> Certificate:
        """Return the certificate that the pair has at another lambda."""
        primal, gap, blur = self._values(lam)
        known = self.result.certificate
        return dataclasses.replace(known, primal=primal, dual=primal - gap - blur, gap=gap)

    def is_within(self, lam: float) -> bool:
        """Tell whether the pair is within tol at a lambda, whatever was rounded."""
        primal, gap, blur = self._values(lam)
        return gap * (1.0 + gamma(4)) <= self.tol * (primal - blur)

    def _values(self, lam: float) -> tuple[float, float, float]:
        """Return P, the gap, and how far P may be off."""
        penalty = lam * self.cost
        blur = self.blur * max(1.0, lam / self.lam) + self.sums * penalty
        blur += self.sums * (self.loss + self.lam * self.cost)
        gap = self.excess + lam * self._slack(lam)
        return self.loss + penalty, gap * (1.0 + gamma(8)), blur

    def _slack(self, lam: float) -> float:
        """Return g(w) + g*(v / lam) - w.v / lam, or a little more."""
        u = self.v.ravel() / lam
        off = self.off * self.lam / lam + 8.0 * UNIT * math.sqrt(float(u @ u))
        _, slack = penalty_and_slack(self.penalty, self.result.w.ravel(), u)
        return slack_above(self.penalty, self.cost, slack, self.sums, off)

    def _reach(self, end: float) -> float:
        """Return how far the pair is within tol: `end`, or almost the end of its interval.

        The gap is convex in lambda and P linear: between two lambdas within tol all are.
        """
        inside, outside = self.lam, end
        middle = end
        while abs(math.log(outside / inside)) > ENDS_WITHIN * abs(math.log(outside / self.lam)):
            if self.is_within(middle):
                inside = middle
            else:
                outside = middle
            middle = math.sqrt(inside) * math.sqrt(outside)
            if middle in (inside, outside):  # no number lies between them
                break
        return inside


def check_interval(
    make: Callable[..., Problem], lam_min: float | None, lam_max: float | None, tol: float
) -> tuple[Problem, float]:
    """Return the problem at lam_min, and lam_max; refuse an empty interval."""
    if lam_min is None:
        raise ValueError("give lams, or lam_min for a path without holes")
    if not (is_positive(tol) and tol < 1):
        raise ValueError(f"tol must be a number in (0, 1), got {tol!r}")
    problem = make(lam=lam_min)
    why = ""
    if lam_max is None:
        lam_max, why = _trivial(problem, tol), ", at which w = 0 is within tol"
    elif not is_positive(lam_max):
        raise ValueError(f"lam_max must be a positive, finite number, got {lam_max!r}")
    if not lam_min < lam_max:
        raise ValueError(f"lam_min={lam_min:g} must be below lam_max={lam_max:.3g}{why}")
    return problem, float(lam_max)


def _trivial(problem: Problem, tol: float) -> float:
    """Return a lambda from which on w = 0 is proved to be within tol.

    For the best constant model and its dual point the gap is E + lam g*(v/lam), which falls with
    lam; E is zero up to rounding.
    """
    problem = centred(problem).problem
    w, b = np.zeros(problem.weight_shape), problem.constant()
    z = problem.scores(w)
    alpha = _constant_dual(problem, z, b)
    terms = problem.row_terms(z, b, alpha)
    primal, excess = terms.value, terms.excess
    v = problem.lam * problem.dual_sum(alpha).ravel()
    square, allowed = float(v @ v), tol * primal - excess
    if not square > 0.0 or not primal > 0.0:
        raise ValueError("w = 0 is optimal for every lambda: give lam_max")
    if not allowed > 0.0:
        raise ValueError("no lambda is known at which w = 0 is within tol: give lam_max")
    outside, inside = 0.0, square / (2.0 * problem.penalty.convexity() * allowed)
    while problem.l1_ratio and inside - outside > ENDS_WITHIN * inside:
        middle = 0.5 * (outside + inside)
        if middle * penalty_and_slack(problem.penalty, w.ravel(), v / middle)[1] <= allowed:
            inside = middle
        else:
            outside = middle
    if not is_positive(inside):
        raise ValueError(f"w = 0 is within tol from lam={inside:g} on: give lam_max")
    return inside


def _constant_dual(problem: Problem, z: np.ndarray, b: Any) -> np.ndarray:
    """Return the dual point of the best constant model, which has the scores z = 0 and b."""
    if not (problem.fit_intercept and isinstance(problem.loss, MulticlassHinge)):
        return problem.dual_point(z, b)
    own = problem.y[:, None] == np.arange(z.shape[1])
    counts = problem.share @ own
    votes = balanced_votes(counts) / counts[:, None]
    return problem.feasible(own - votes[problem.y])


def balanced_votes(counts: np.ndarray) -> np.ndarray:
    """Return f with f_lk, the votes of class l for class k, that prove the best constant model.

    For the multiclass hinge its objective is the largest sum of f_lk, k != l, among votes that
    classes give as often as they get: counts_l = sum_k f_lk = sum_k f_kl.  A class with half of
    all votes gives each other class what it gets from it.  Else f_lk = c_l c_k, with
    c_l (T - c_l) = counts_l and T = sum_l c_l: a root of one equation.
    """
    top = int(np.argmax(counts))
    others = np.arange(len(counts)) != top
    rest = float(counts[others].sum())
    if counts[top] >= (1.0 - HALF_WITHIN) * rest:
        flow = np.zeros((len(counts), len(counts)))
        flow[top, others] = flow[others, top] = counts[others] * min(1.0, counts[top] / rest)
        flow[np.diag_indices_from(flow)] = np.maximum(counts - flow.sum(axis=1), 0.0)
        return flow

    def factors(total: float) -> np.ndarray:
        return 2.0 * counts / (total + np.sqrt(np.maximum(total**2 - 4.0 * counts, 0.0)))

    least = 2.0 * math.sqrt(counts[top])
    larger = factors(least).sum() < least  # whether c_top is the larger root of its parabola

    def surplus(total: float) -> float:
        c = factors(total)
        return c[top] - c[others].sum() if larger else c.sum() - total

    most = 2.0 * least
    while surplus(most) > 0.0:
        most *= 2.0
    total = optimize.brentq(surplus, least, most, xtol=1e-15)
    c = factors(total)
    if larger:
        c[top] = total - c[top]
    flow = np.outer(c, c)
    np.fill_diagonal(flow, 0.0)
    return flow * (counts / flow.sum(axis=1))[:, None]


def cover(
    problem: Problem,
    lam_max: float,
    tol: float,
    run: Callable[..., Result],
    report: Callable[[int, float], None] | None = None,
) -> tuple[list[Reach], np.ndarray]:
    """Solve at as many lambdas as prove all of them, from the problem's own to lam_max.

    Returns what was found, from the smallest lambda to the largest, and edges: the k-th model
    serves from edges[k] to edges[k + 1].

    Parameters
    ----------
    problem, lam_max
        The problem at the smallest lambda, and the largest.
    tol : float
        Relative gap that no lambda exceeds.
    run : callable
        `solve` with all but the problem, tol and warm_start.
    report : callable, optional
        Called after each solve with the number of models and the share of the interval that they
        cover.
    """

    def prove(lam: float, warm: Result | Answer | None) -> Reach:
        at = problem._with(lam=lam)
        result = run(at, tol=SHARE_OF_TOL * tol, warm_start=warm)
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt
        if result.stop_reason != "converged":
            raise PathError(
                f"a solve at lam={lam:.3g} stopped ({result.stop_reason}) at a relative gap of "
                f"{result.certificate.relative_gap:.1e}, where {SHARE_OF_TOL * tol:.1e} is needed",
                "raise max_epochs, lam_min or tol, or standardise the columns of X",
            )
        reach = Reach(at, result, tol, problem.lam, lam_max)
        if not reach.is_within(lam):
            raise PathError(
                f"rounding hides what is needed at lam={lam:.3g}", "raise lam_min or tol"
            )
        return reach

    last = prove(lam_max, None)
    first = prove(problem.lam, last.result)
    reaches, holes = [first, last], [(first, last)]
    while True:
        holes = [hole for hole in holes if _width(*hole) > 0.0]
        if report is not None:
            unproved = math.fsum(_width(*hole) for hole in holes)
            report(len(reaches), 1.0 - unproved / math.log(lam_max / problem.lam))
        if not holes:
            break
        left, right = holes.pop()
        middle = prove(*_between(problem, left, right))
        reaches.append(middle)
        holes += [(left, middle), (middle, right)]
    reaches.sort(key=lambda reach: reach.lam)
    return reaches, np.array([problem.lam, *map(_edge, reaches, reaches[1:]), lam_max])


def _width(left: Reach, right: Reach) -> float:
    """Return the width of the hole between two intervals, on a logarithmic scale."""
    return max(0.0, math.log(right.low / left.high))


def _edge(left: Reach, right: Reach) -> float:
    """Return a lambda between the two models that both intervals contain."""
    low, high = max(left.lam, right.low), min(left.high, right.lam)
    return min(max(math.sqrt(low) * math.sqrt(high), low), high)


def _between(problem: Problem, left: Reach, right: Reach) -> tuple[float, Answer]:
    """Return a lambda in a hole at which to solve, and a start.

    New intervals will be about as long as the mean of their neighbours'.  So many of them fill the
    hole, side by side; the one in the middle comes first.  It starts at the mixture of its
    neighbours, which is feasible and, if phi is smooth, often good enough already.
    """
    width, length = _width(left, right), math.log(left.high / left.lam * right.lam / right.low)
    if width > MOST_MODELS * length:
        raise PathError(
            f"a model at lam={left.lam:.3g} proves hardly more than its own lambda, so that more "
            f"than {MOST_MODELS:.0e} models would be needed",
            "raise tol or lam_min, or standardise the columns of X",
        )
    count = math.ceil(width / length)
    lam = left.high * math.exp(width * (count // 2 + 0.5) / count)
    share = (lam - left.lam) / (right.lam - left.lam)

    def mix(a: Any, b: Any) -> Any:
        return (1.0 - share) * a + share * b

    a, b = left.result, right.result
    shifted = centred(problem)
    if problem.l1_ratio:
        w = problem.to_weights(mix(left.v, right.v) / lam)
    else:  # lam w is v, except for what rounding does to sums over raw columns
        w = mix(left.lam * a.w, right.lam * b.w) / lam
    seen = mix(*(shifted.inward(found.w, found.b) for found in (a, b)))
    return lam, (w, shifted.outward(w, seen), mix(a.alpha, b.alpha))


class CoverLine(Progress):
    """One live line: models of one or several paths, and how much of the interval they prove."""

    def __init__(self, paths: int) -> None:
        super().__init__(tol=0.0)
        self.models, self.shares = np.zeros(paths, dtype=int), np.zeros(paths)

    def advance(self, models: int, share: float, path: int = 0) -> None:
        self.models[path], self.shares[path] = models, share
        done = bool(np.all(self.shares == 1.0))
        now = time.monotonic() - self.began
        if now - self.shown < (0.1 if self.live else 5.0) and not done:
            return
        self.shown = now
        share = self.shares.mean()
        self._write(f"{self.models.sum()} models prove {100 * share:.3g} %  {now:.1f} s")
        if self.live and done:
            self.stream.write("\n")

r"""Where the optimum lies: what a certificate says about weights, intercepts and scores.

Let (w, b) be a model, alpha a feasible dual point, p = w(alpha), and mu = lam times the strong
convexity of the penalty.  The optimum (w*, b*) satisfies both

    P(w, b) - P*  >=  mu/2 |w - w*|^2                                          P is strongly convex
    P* - D(alpha) >=  mu/2 |p - w*|^2 + 1/S sum_i s_i e_i(x_i.w* + b*)                 Fenchel-Young

with e_i(z) = phi(z) + phi*(-alpha_i) + alpha_i z >= 0.  The left sides add up to the gap, and
|w - w*|^2 + |p - w*|^2 = 2 |w* - c|^2 + |w - p|^2 / 2 for c = (w + p) / 2.  Hence

    |w* - c|^2 <= gap / mu - |w - p|^2 / 4 =: r^2,       |w* - w| <= radius := |w - p| / 2 + r

(the root of gap / mu where w = p, and never more than that of 2 gap / mu), and the free intercept
satisfies, with scores that differ from those of w by |x_i| radius at most,

    1/S sum_i s_i min_{|t| <= |x_i| radius} e_i(x_i.w + t + b*)  <=  gap,

whose left side is convex in b*: an interval.  Of many classes it is a convex set, around which a
box is put by linear cuts.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zerogap._jit import kernel
from zerogap.centring import centred
from zerogap.losses import Loss
from zerogap.problem import Problem
from zerogap.proving import Proof

_LOOKS = 30  # at the function of the intercept, to either side: the result is true for any number
_ROUNDING = 1e-12  # of a score, relative to the sizes it is made of


@dataclass(frozen=True, eq=False)
class Region:
    """A set that contains the optimum of one problem.

    Attributes
    ----------
    radius : float
        The optimal weights are no further than this from those of the model (of several classes
        together, as one vector).
    low, high : ndarray of shape (n_outputs,)
        The optimal intercepts lie between these; of many classes, if their mean is that of the
        model's intercepts.
    """

    radius: float
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a proof says of the optimum, kept without the rows: `region` is found when asked for.

    It has the size of the dual variables, and the numbers of each row that the loss needs.
    """

    proved: ClassVar[bool] = True
    loss: Loss
    y: np.ndarray
    share: np.ndarray
    sqnorms: np.ndarray
    strength: float  # mu
    fit_intercept: bool
    proof: Proof  # on centred data
    size: float  # |w|
    origin: float = 0.0  # how far the origin of the centred data is from that of the given ones
    moved: Any = 0.0  # the intercepts on the given data, less those on the centred ones

    @classmethod
    def of(cls, problem: Problem, w: np.ndarray, proof: Proof) -> Evidence:
        """Return what is needed of a problem and a proof about the weights w.

        The proof is that of a `Result` for the problem: on its centred data.
        """
        shifted = centred(problem)
        problem = shifted.problem
        strength = problem.lam * problem.penalty.convexity()
        host = problem.host
        rows = (host(problem.y), host(problem.share), host(problem.sqnorms))
        size, proof = float(np.linalg.norm(w)), proof._replace(z=host(proof.z))
        intercept = (problem.fit_intercept, proof, size)
        origin = float(np.linalg.norm(shifted.origin))
        moved = np.atleast_1d(shifted.outward(w, 0.0))
        return cls(problem.loss, *rows, strength, *intercept, origin, moved)

    @functools.cached_property
    def region(self) -> Region:
        """Where the optimum is."""
        proof = self.proof
        b = np.atleast_1d(np.asarray(proof.b, dtype=float))
        # rounding of the gap's terms and of the weights is added to what they may be
        budget = max(proof.gap, 0.0) + _ROUNDING * abs(proof.primal)
        squared = budget / self.strength
        if not 2.0 * squared < math.inf:  # nor if it is NaN
            nowhere = np.full(len(b), math.inf)
            return Region(math.inf, -nowhere, nowhere)
        slack = budget if math.isnan(proof.slack) else min(proof.slack, budget)
        distance = math.sqrt(2.0 * slack / self.strength)  # |w - p|, or more
        rest = math.sqrt(squared - 0.25 * distance * distance)
        radius = 0.5 * distance + rest + _ROUNDING * self.size
        if not self.fit_intercept:
            return Region(radius, b, b)
        reach = radius * np.sqrt(self.sqnorms)
        if self.loss.task == "multiclass":
            low, high = _box(self, b, reach, budget)
        else:
            low, high = _interval(self, float(b[0]), reach, budget)
        # b differs by m.w, and the optimal weights are within the radius of w
        doubt = self.origin * (radius + _ROUNDING * self.size) if self.origin else 0.0
        return Region(radius, low + self.moved - doubt, high + self.moved + doubt)


@dataclass(frozen=True, eq=False)
class Known:
    """A region that was found before: proved from the data in this process, or said by a file."""

    region: Region
    proved: bool


def find_region(problem: Problem, w: np.ndarray, b: Any, alpha: np.ndarray | None = None) -> Region:
    """Return where the optimum of the problem is, given a model and a dual point.

    Parameters
    ----------
    problem : Problem
        The problem.
    w, b, alpha
        A model and a dual point, such as those of a `Result`; alpha is made feasible, and by
        default the one that belongs to (w, b).

    Examples
    --------
    >>> import numpy as np, zerogap as zg
    >>> problem = zg.Problem([[1.0], [2.0]], [-1, 1], "hinge", lam=0.5)
    >>> rough, exact = (zg.solve(problem, zg.SDCA(), tol=tol) for tol in (1e-1, 1e-12))
    >>> region = find_region(problem, rough.w, rough.b, rough.alpha)
    >>> bool(np.linalg.norm(rough.w - exact.w) <= region.radius)
    True
    """
    shifted = centred(problem)
    inner: Problem = shifted.problem
    b = shifted.inward(w, problem.checked_intercept(b))
    z = inner.scores(w)
    alpha = inner.dual_point(z, b) if alpha is None else inner.feasible(alpha)
    return Evidence.of(problem, w, inner.prove(w, b, z, alpha)).region


def _interval(
    evidence: Evidence, b: float, reach: np.ndarray, budget: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of the intercepts at which the rows add no more than `budget` to the gap."""
    rows = (evidence.y, evidence.share, evidence.proof.alpha, evidence.proof.z)

    def least(at: float) -> float:
        return _least_excess(evidence.loss, *rows, reach, at)

    ends = []
    for sign in (-1.0, 1.0):
        inside, outside = 0.0, 1e-6 * (1.0 + abs(b))
        while least(b + sign * outside) <= budget and outside < 1e300:
            inside, outside = outside, 4.0 * outside
        for _ in range(_LOOKS):
            middle = 0.5 * (inside + outside)
            if outside - inside <= 0.01 * outside:
                break
            if least(b + sign * middle) <= budget:
                inside = middle
            else:
                outside = middle
        ends.append(b + sign * (outside if outside < 1e300 else math.inf))
    return np.array(ends[:1]), np.array(ends[1:])


@kernel
def _least_excess(loss, y, share, alpha, z, reach, b):
    """1/S sum_i s_i min_{|t| <= reach_i} e_i(z_i + t + b); e_i falls, is zero somewhere, rises"""
    total = 0.0
    for i in range(len(z)):
        if share[i] > 0.0:
            left, right = z[i] + b - reach[i], z[i] + b + reach[i]
            term = 0.0
            if loss.derivative(left, y[i]) + alpha[i] > 0.0:
                term = loss.excess(alpha[i], left, y[i])
            elif loss.derivative(right, y[i]) + alpha[i] < 0.0:
                term = loss.excess(alpha[i], right, y[i])
            total += share[i] * max(0.0, term)
    return total


def _box(
    evidence: Evidence, b: np.ndarray, reach: np.ndarray, budget: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return a box around the intercepts at which the rows add no more than `budget` to the gap."""
    from scipy.optimize import linprog

    C = len(b)
    normals, limits = [], []
    for k in range(C):
        direction = np.eye(C)[k] - 1.0 / C  # the mean stays
        for sign in (-1.0, 1.0):
            cut = _cut_beyond(evidence, b, sign * direction, reach, budget)
            if cut is not None:
                normals.append(cut[0])
                limits.append(cut[1])
    ends = np.full((2, C), math.inf)
    if normals:
        options: dict[str, Any] = {"A_eq": np.ones((1, C)), "b_eq": [0.0], "bounds": (None, None)}
        for k in range(C):
            for side, sign in enumerate((1.0, -1.0)):
                found = linprog(sign * np.eye(C)[k], np.array(normals), limits, **options)
                if found.status == 0:  # else it is unbounded
                    ends[side, k] = -found.fun * (1.0 + 1e-6) + 1e-6  # more than its tolerance
    return b - ends[0], b + ends[1]


def _cut_beyond(
    evidence: Evidence, b: np.ndarray, direction: np.ndarray, reach: np.ndarray, budget: float
) -> tuple[np.ndarray, float] | None:
    """Return (normal, limit) with normal.(b* - b) <= limit, from a point outside, near the set.

    Terms e_i and their slopes at a point give a plane below them; those below zero are left out.
    """
    z, votes = evidence.proof.z + b, -evidence.proof.alpha
    votes[np.arange(len(votes)), evidence.y] += 1.0
    best = None
    inside, outside = 0.0, 1e-6 * (1.0 + float(np.abs(b).max()))
    for _ in range(2 * _LOOKS):
        at = outside if best is None else 0.5 * (inside + outside)
        point = at * direction
        slope = np.zeros(len(b))
        height = _plane(evidence.loss, evidence.y, evidence.share, votes, z + point, reach, slope)
        size = float(np.linalg.norm(slope))
        if height > budget and size > 0.0:
            outside = at
            best = slope / size, (budget - height + float(slope @ point)) / size
        elif best is None:
            inside, outside = at, 4.0 * outside
        else:
            inside = at
        if best is not None and outside - inside <= 0.05 * outside:
            break
    return best


@kernel
def _plane(loss, y, share, p, z, reach, slope):
    """The height of a plane below the rows' part of the gap, where they move least; sets its slope

    e_i(z + t) >= e_i(z) - |t| |g|, g = votes(z) - p.
    """
    C = z.shape[1]
    g, height = np.empty(C), 0.0
    for i in range(len(y)):
        if share[i] > 0.0:
            loss.votes(z[i], y[i], g)
            size = 0.0
            for k in range(C):
                g[k] -= p[i, k]
                size += g[k] * g[k]
            term = loss.vector_excess(p[i], z[i], y[i]) - reach[i] * np.sqrt(size)
            if term > 0.0:
                height += share[i] * term
                for k in range(C):
                    slope[k] += share[i] * g[k]
    return height

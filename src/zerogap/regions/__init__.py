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
box is put by linear cuts.  Where data are far from zero, x_i and b are seen from an origin m near
them: b is the score at m then.  All bounds hold in exact arithmetic, see
`zerogap.regions.enclosures`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from zerogap.display import Shown
from zerogap.kernels.jit import kernel
from zerogap.problem import Problem
from zerogap.problem.centring import centred
from zerogap.problem.gap import EVALUATION, UNIT, gamma, of_rows
from zerogap.problem.proving import Proof
from zerogap.regions.enclosures import (
    LARGEST_LOG,
    UNDERFLOW,
    Slip,
    dual_slope,
    empty_rows,
    excess_below,
    length_above,
    lengths_above,
    outward,
    score_doubt,
    times_length,
)

__all__ = ["Region", "find_region"]

_POINTS_PER_SIDE = 30  # intercepts that are tried on each side: the bound holds for any number


@dataclass(frozen=True, eq=False, repr=False)
class Region(Shown):
    """A set that contains the optimum of one problem.

    Attributes
    ----------
    radius : float
        The optimal weights are no further than this from those of the model (of several classes
        together, as one vector).
    low, high : ndarray of shape (n_outputs,)
        The scores of the optimum at the origin lie between these: its intercepts, if the origin is
        zero.  Of many classes, if their mean is that of the model's scores.
    origin : ndarray of shape (n_features,)
        A point near the data; empty if it is zero.
    """

    radius: float
    low: np.ndarray
    high: np.ndarray
    origin: np.ndarray = field(default_factory=lambda: np.empty(0))

    def _facts(self) -> Mapping[str, Any]:
        about = {"radius": self.radius, "low": self.low, "high": self.high}
        return about | ({"origin": self.origin} if len(self.origin) else {})


@dataclass(frozen=True, eq=False)
class ProofWithoutRows:
    """What is left of a proof without the rows; the `region` is computed on first use.

    Its size is that of the dual variables, and of the numbers per row that the loss needs.
    """

    proved: ClassVar[bool] = True
    problem: Problem  # centred, without its features
    width: int  # number of values of the longest row
    empty: np.ndarray  # places of rows without entries
    length: float  # |w|, or a little more
    proof: Proof  # on centred data
    origin: np.ndarray  # of the centred data; empty if it is zero
    target: float  # what was subtracted from the targets

    @classmethod
    def of(cls, problem: Problem, w: np.ndarray, proof: Proof) -> ProofWithoutRows:
        """Return what is needed of a problem and a proof about the weights w.

        The proof is that of a `Result` for the problem: on its centred data.
        """
        shifted = centred(problem)
        rows, bare = shifted.problem.rows, shifted.problem.without_features()
        alpha = proof.alpha if proof.rest is None else proof.alpha + proof.rest
        proof = proof._replace(alpha=bare.host(alpha), rest=None, z=shifted.problem.host(proof.z))
        about_rows = (rows.width, empty_rows(rows, bare.sqnorms), length_above(np.asarray(w)))
        return cls(bare, *about_rows, proof, shifted.origin, shifted.target)

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """|x_i|, or a little more."""
        return lengths_above(self.problem.sqnorms, self.width, self.empty)

    @functools.cached_property
    def doubt(self) -> np.ndarray:
        """How far the scores of the proof may be off."""
        doubt = score_doubt(self.width, self.lengths, self.length)
        if self.problem.loss.task == "regression":
            doubt = doubt + gamma(4) * np.abs(self.problem.y)  # the shift of targets
        return doubt

    @functools.cached_property
    def slip(self) -> Slip:
        """How far the dual variables may be off."""
        return Slip.of(self.problem, self.proof.alpha)

    @functools.cached_property
    def region(self) -> Region:
        """Where the optimum is."""
        proof, budget = self.proof, self.proof.gap
        b = np.atleast_1d(np.asarray(proof.b, dtype=float))
        radius = self._radius()
        if not radius < math.inf:
            nowhere = np.full(len(b), math.inf)
            return Region(radius, -nowhere, nowhere, self.origin)
        if not self.problem.fit_intercept:
            return Region(radius, b, b)
        reach = (times_length(self.lengths, radius) + self.doubt) * (1.0 + gamma(4))
        find = _box if self.problem.loss.task == "multiclass" else _interval
        low, high = find(self, b, reach, budget)
        if self.target:
            low = np.nextafter(low + self.target, -math.inf)
            high = np.nextafter(high + self.target, math.inf)
        return Region(radius, low, high, self.origin)

    def _radius(self) -> float:
        """Return how far the optimal weights are at most, rounded up."""
        gap, mu = self.proof.gap, self.problem.strength * (1.0 - gamma(4))
        if not 2.0 * (gap / mu) < math.inf:  # nor if it is NaN
            return math.inf
        slack = gap if math.isnan(self.proof.slack) else min(self.proof.slack, gap)
        distance = math.sqrt(2.0 * slack / mu)  # |w - p|, or more
        rest = math.sqrt(max(0.0, gap / mu - 0.25 * distance * distance))
        return (0.5 * distance + rest) * (1.0 + gamma(16)) + math.sqrt(UNDERFLOW)


@dataclass(frozen=True, eq=False)
class KnownRegion:
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

    Returns
    -------
    Region
        A set that contains the optimum, if rounding allows one.

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
    b, slip = shifted.precisely_inward(w, problem.checked_intercept(b))
    return ProofWithoutRows.of(problem, w, inner.refined_proof_of(w, b, alpha, slip)).region


def _interval(
    kept: ProofWithoutRows, b: np.ndarray, reach: np.ndarray, budget: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of the intercepts at which the rows add no more than `budget` to the gap."""
    rows = (kept.problem.y, kept.problem.share, kept.proof.alpha, kept.proof.z)
    loss, slip = kept.problem.loss, kept.slip
    middle, sums = float(b[0]), of_rows(len(reach))

    def is_outside(at: float) -> bool:
        least, farthest = _least_excess(loss, slip, *rows, reach, at)
        return (1.0 - sums) * least - (1.0 + sums) * slip.moved * farthest > budget

    ends = []
    for sign in (-1.0, 1.0):
        inside, outside = 0.0, 1e-6 * (1.0 + abs(middle))
        while not is_outside(middle + sign * outside) and outside < 1e300:
            inside, outside = outside, 4.0 * outside
        for _ in range(_POINTS_PER_SIDE):
            between = 0.5 * (inside + outside)
            if outside - inside <= 0.01 * outside:
                break
            if is_outside(middle + sign * between):
                outside = between
            else:
                inside = between
        ends.append(middle + sign * (outside if outside < 1e300 else math.inf))
    return np.array(ends[:1]), np.array(ends[1:])


@kernel
def _least_excess(loss, slip, y, share, alpha, z, reach, b):
    """A lower bound of 1/S sum_i s_i min_{|t| <= reach_i} e_i(z_i + t + b), except for one row

    e_i falls, is zero somewhere, and rises.  The second number is what the row whose dual variable
    is moved may take from it, over how far that is.
    """
    total, farthest = 0.0, 0.0
    for i in range(len(z)):
        if share[i] > 0.0:
            room = reach[i] + 8.0 * UNIT * (abs(z[i]) + abs(b) + reach[i])
            at = z[i] + b - room
            slope = loss.derivative(at, y[i])
            rises = slope + alpha[i] > 0.0
            if not rises:
                at = z[i] + b + room
                slope = loss.derivative(at, y[i])
            if rises or slope + alpha[i] < 0.0:
                off = EVALUATION * UNIT * (abs(slope) + abs(alpha[i])) + slip.scaled * abs(alpha[i])
                term = excess_below(loss, slip, alpha[i], at, y[i]) - 2.0 * room * off
                if term > 0.0:
                    total += share[i] * term
                    pull = dual_slope(loss, slip, alpha[i], at, y[i]) + 2.0 * room
                    farthest = max(farthest, pull if alpha[i] != 0.0 else 0.0)
    return total, farthest


def _box(
    kept: ProofWithoutRows, b: np.ndarray, reach: np.ndarray, budget: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return a box around the intercepts at which the rows add no more than `budget` to the gap.

    Of each linear program only the multipliers are used, which prove a bound whatever they are:
    with c = A'm + nu 1 + rest and m <= 0, c.d >= m.limits - |rest|_1 max_k |d_k| for every d that
    obeys A d <= limits and sums to zero.
    """
    from scipy.optimize import linprog

    C = len(b)
    directions = np.concatenate([np.eye(C) - 1.0 / C, 1.0 / C - np.eye(C)])  # the mean stays
    cuts = [_cut_beyond(kept, b, direction, reach, budget) for direction in directions]
    known = [cut for cut in cuts if cut is not None]
    nowhere = np.full(C, math.inf)
    if not known:
        return -nowhere, nowhere
    normals, limits, drifts = (np.array(part) for part in zip(*known, strict=True))
    unit = float(np.abs(limits).max()) or 1.0
    options: dict[str, Any] = {"A_eq": np.ones((1, C)), "b_eq": [0.0], "bounds": (None, None)}
    ends, rests = np.empty((2, C)), np.empty((2, C))
    for k in range(C):
        for side, sign in enumerate((1.0, -1.0)):
            found = linprog(sign * np.eye(C)[k], normals, limits / unit, **options)
            if found.status != 0:  # it is unbounded, and what is left of the others unknown
                return -nowhere, nowhere
            m, nu = np.minimum(found.ineqlin.marginals, 0.0), found.eqlin.marginals[0]
            rest = np.abs(sign * np.eye(C)[k] - m @ normals - nu)
            rest += gamma(len(m) + 4) * (np.abs(m) @ np.abs(normals) + abs(nu))
            ends[side, k] = float(-m @ limits + gamma(len(m) + 4) * (np.abs(m) @ np.abs(limits)))
            rests[side, k] = float(rest.sum() + math.sqrt(C) * (np.abs(m) @ drifts))
    shrinks = 1.0 - float(rests.max())
    if not shrinks > 0.0:
        return -nowhere, nowhere
    largest = max(0.0, float(ends.max())) / shrinks  # |d_k| <= ends + rests |d_k|
    ends += rests * largest * (1.0 + gamma(8))
    return outward(b - ends[0], b + ends[1], b, ends[0], ends[1])


def _cut_beyond(
    kept: ProofWithoutRows, b: np.ndarray, direction: np.ndarray, reach: np.ndarray, budget: float
) -> tuple[np.ndarray, float, float] | None:
    """Return (normal, limit, drift) with normal.d <= limit + drift |d| for d = b* - b.

    Terms e_i and their slopes at a point outside, near the set, give a plane below them; those
    below zero are left out.
    """
    z, votes, problem = kept.proof.z + b, -kept.proof.alpha, kept.problem
    votes[np.arange(len(votes)), problem.y] += 1.0
    data = (problem.loss, problem.y, problem.share, votes)
    best = None
    inside, outside = 0.0, 1e-6 * (1.0 + float(np.abs(b).max()))
    for _ in range(2 * _POINTS_PER_SIDE):
        at = outside if best is None else 0.5 * (inside + outside)
        point = at * direction
        far = float(np.abs(b).max()) + at
        slope = np.zeros(len(b))
        least, drift = _plane(*data, z + point, reach, far, kept.slip.scaled, slope)
        least *= 1.0 - of_rows(len(z))
        size, away = float(np.linalg.norm(slope)), length_above(point)
        if least > budget and size > 0.0:
            outside = at
            drift = (drift / size + 4.0 * UNIT) * (1.0 + gamma(8))
            limit = (budget - least + float(slope @ point)) / size + drift * away
            limit += gamma(len(b) + 8) * ((budget + least) / size + away)
            best = slope / size, limit, drift
        elif best is None:
            inside, outside = at, 4.0 * outside
        else:
            inside = at
        if best is not None and outside - inside <= 0.05 * outside:
            break
    return best


@kernel
def _plane(loss, y, share, p, z, reach, far, scaled, slope):
    """The height of a plane below the rows' part of the gap, where they move least; sets its slope

    e_i(z + t) >= e_i(z) - |t| |g|, g = votes(z) - p.  The second number is how far the slope may be
    off; scores were rounded with others up to `far`.
    """
    C = z.shape[1]
    g, height, drift = np.empty(C), 0.0, 0.0
    units = (EVALUATION + 2.0 * C) * UNIT
    for i in range(len(y)):
        if share[i] > 0.0:
            loss.votes(z[i], y[i], g)
            size, cross, top = 0.0, 0.0, far
            for k in range(C):
                g[k] -= p[i, k]
                size += g[k] * g[k]
                top = max(top, abs(z[i, k]))
                if k != y[i]:
                    cross += abs(p[i, k] * (z[i, k] - z[i, y[i]]))
            room = reach[i] + 8.0 * C * UNIT * (top + reach[i])
            term = loss.vector_excess(p[i], z[i], y[i])
            lost = units * (2.0 * (loss.vector_value(z[i], y[i]) + abs(term) + cross) + 3.0)
            lost += scaled * (cross + 2.0 * LARGEST_LOG)
            off = 4.0 * (units + scaled)
            term -= lost + room * (np.sqrt(size) + off)
            if term > 0.0:
                height += share[i] * term
                drift += share[i] * (off + 2.0 * len(y) * UNIT)
                for k in range(C):
                    slope[k] += share[i] * g[k]
    return height, drift

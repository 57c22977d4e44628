"""One distributed run: rounds of local epochs with a line search, a finish, and the certificate.

Reference: CoCoA (Jaggi et al., "Communication-efficient distributed dual coordinate ascent", NIPS
2014) with the line search of Lee and Chang, "Distributed block-diagonal approximation methods for
regularized empirical risk minimization", Machine Learning 109, 2020.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import brentq

from zerogap.dask.messages import Message, Reply
from zerogap.dask.saving import Saved, save
from zerogap.dask.work import Spec
from zerogap.dask.workers import Crew, Restart
from zerogap.io.memory import free_memory
from zerogap.losses import Loss
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.problem.centring import Centred
from zerogap.problem.certificate import Certificate
from zerogap.problem.gap import ENOUGH, Sizes, conclude, displaced
from zerogap.problem.proving import Proof, conclude_precisely, rounded_columns
from zerogap.problem.row_sums import penalty_and_slack, penalty_cost
from zerogap.solvers.hessian import DIRECT
from zerogap.solvers.history import History, Record
from zerogap.solvers.second import HOPELESS_CONDITION

_PATIENCE = 4  # further rounds of local epochs that are worth waiting for
_GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
_OFFSETS = np.array([0.0, *(s * x for x in (1.0, 0.3, 0.1, 0.03, 0.01) for s in (1, -1))])


@dataclass(frozen=True)
class Limits:
    """When to stop, and whom to tell."""

    tol: float
    max_rounds: int
    max_seconds: float | None
    verbose: int
    callback: Any
    began: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Outcome:
    """The model of one problem and its certificate."""

    w: np.ndarray
    b: Any
    certificate: Certificate
    history: History


class Run:
    """Where a run stands: the point (u, b) that all groups know, the records, and the limits."""

    def __init__(self, crew: Crew, spec: Spec, rows: int, limits: Limits, b: Any) -> None:
        self.crew, self.spec, self.limits = crew, spec, limits
        n_features = len(spec.origin)
        self.sizes = Sizes(rows, n_features, np.ones(n_features))
        self.even, self.rounded = True, np.zeros(n_features)
        self.rho = 0.0  # of the proximal term of the intercept
        classes = 0 if spec.classes is None else len(spec.classes)
        nothing = sparse.csr_matrix((1, n_features))
        some = np.zeros(1, np.int64 if spec.loss.task == "multiclass" else np.float64)
        given = (spec.loss, spec.lam, False, spec.l1_ratio, classes)
        self.frame = Problem.part(nothing, some, np.ones(1), *given)  # of one row, without entries
        moved = spec.origin.any() or spec.target
        self.centred = Centred(self.frame, spec.origin if moved else np.empty(0), spec.target)
        self.u: np.ndarray = np.zeros(self.frame.weight_shape)
        self.b, self.mean = b, np.zeros(np.shape(b))
        self.theta = 0.0  # of the changes that the groups hold
        self.history = History()
        self.best: Outcome | None = None
        self.reason = ""
        self.first_round, self.first_bytes = crew.rounds, crew.bytes
        self.patience = math.inf  # estimate below which the next audit is worth its round trips
        self.path: Path | None = None
        self.identity = ""

    def measure(self) -> None:
        """Ask for the sizes of columns, which bounds of rounding and steps of b depend on."""
        found = self.crew.measure()
        self.sizes = Sizes(self.sizes.rows, found.width, np.sqrt(found.squares))
        self.even = found.shares[0] == found.shares[1]
        self.rounded = rounded_columns(self.sizes.columns, found.largest, self.spec.origin)
        if self.spec.fit_intercept:
            self.rho = max(0.1 * float(found.squares.sum()) / self.frame.strength, 1.0)

    @property
    def loss(self) -> Loss:
        """The loss."""
        return self.spec.loss

    def constant_loss(self, b: Any) -> float:
        """Return the mean loss of the model without weights whose intercept is b."""
        return float(self.crew.evaluate(np.zeros(self.u.shape), b, False).value)

    @property
    def is_hopeless(self) -> bool:
        """Whether coordinate ascent has no chance, as in `zerogap.Auto`."""
        squares = float(np.square(self.sizes.columns).sum())
        return squares / (self.frame.strength * self.sizes.rows) > HOPELESS_CONDITION

    @property
    def takes_newton(self) -> bool:
        """Whether the Hessian is known, and small."""
        known = self.loss.task == "multiclass" or type(self.loss).stiffness is not Loss.stiffness
        return known and self.u.size <= DIRECT and isinstance(self.frame.penalty, L2)

    @property
    def smooth(self) -> bool:
        """Whether the objective has a gradient."""
        return math.isfinite(self.spec.loss.smoothness) and isinstance(self.frame.penalty, L2)

    @property
    def w(self) -> np.ndarray:
        """The weights that belong to the dual sum."""
        return self.frame.to_weights(self.u)

    def restart(self, totals: Reply) -> None:
        """Go on from the dual variables that are held now."""
        self.u, self.mean, self.theta = totals.u, totals.mean, 0.0

    def message(self, job: str, **more: Any) -> Message:
        """Return what the groups need to know for a step."""
        return Message(self.u, self.b, self.mean, self.theta, job=job, rho=self.rho, **more)

    def is_promising(self, primal: float, gap: float) -> bool:
        """Tell whether an audit may prove the asked gap, after those that did not."""
        return gap <= min(self.limits.tol * abs(primal), self.patience)

    def audit(self, phase: str, w: np.ndarray, sums: Any, estimate: float) -> bool:
        """Certify (w, b) by the dual variables that the groups hold; tell whether to stop.

        A run has converged only when an audit says so: the dual sum is added up anew from all
        dual variables, and the gap is that of the model that is returned.
        """
        step = max(1e-6, 1e-3 * (1.0 + abs(float(np.max(np.abs(self.b))))))
        offsets = (
            _OFFSETS * step if self.spec.fit_intercept and not np.ndim(self.b) else np.zeros(1)
        )
        w, b, proof = self._delivered(self._proof(w, self.b, offsets, sums), w, sums)
        self.patience = 0.3 * estimate
        if proof.gap <= self.limits.tol * abs(proof.primal):
            self.reason, self.best = "converged", None
        self.record(phase, w, b, proof.certificate, True)
        return bool(self.reason)

    def _proof(
        self, w: np.ndarray, b: Any, offsets: np.ndarray, sums: Any, doubt: float = 0.0
    ) -> Proof:
        """Return what w, with the best of the intercepts b + offsets, proves.

        `doubt` is how far b may be from the one that is meant.
        """
        reply = self.crew.examine(w, b, offsets, sums)
        best = int(np.argmin([terms.value for terms in reply.terms]))
        b, frame = b + offsets[best], self.frame._with(fit_intercept=self.spec.fit_intercept)
        penalty = penalty_and_slack(frame.penalty, w.ravel(), np.ravel(reply.u))

        def conjugates() -> tuple[float, float]:
            return float(reply.conjugates), frame._penalty_conjugate(reply.u)

        point = (w, b, penalty, reply.u, conjugates)
        terms = reply.terms[best]
        found, errors = conclude(frame, self.sizes, terms, *point)
        found = displaced(frame, found, doubt)
        if found.is_coarse(ENOUGH * self.limits.tol):
            missing = frame.missing_balance(
                np.concatenate(reply.numbers), self.sizes.rows, terms.mass
            )
            precise = self.crew.precisely(w, b, sums, self.rounded, missing, doubt)
            known = (terms, self.sizes, errors, precise, missing, self.rounded, self.spec.lam)
            better = conclude_precisely(frame, w, b, *known, self.even, doubt)
            found = min(found, better, key=lambda e: e.gap)
        return Proof.of(found, b, None)

    def _delivered(self, proof: Proof, w: np.ndarray, sums: Any) -> tuple[np.ndarray, Any, Proof]:
        """Return the model on the data as given, whose b is rounded, and what is proved of it."""
        b = self.centred.outward(w, proof.b)
        if not self.centred:
            return w, b, proof
        moved = displaced(self.frame, proof, self.centred.doubt(w, b))
        if not moved.gap - proof.gap > ENOUGH * max(proof.gap, self.limits.tol * proof.primal):
            return w, b, moved
        w, b = self.centred.nudged(w, proof.b, self.sizes.columns)
        inner, off = self.centred.precisely_inward(w, b)
        return w, b, self._proof(w, inner, np.zeros(1), sums, off)

    def look(self, phase: str, estimate: float) -> bool:
        """Add up the dual sum anew, and audit the model that belongs to it."""
        while True:
            try:
                totals = self.crew.step(self.message("look"))
                self.restart(totals)
                return self.audit(phase, self.w, totals.sums, estimate)
            except Restart as lost:
                self.restart(lost.totals)

    def estimated(self, phase: str, w: np.ndarray, primal: float, gap: float) -> None:
        """Write down what is known of a point that is not certified."""
        self.record(phase, w, self.b, Certificate(primal, primal - gap, gap), False)

    def record(
        self, phase: str, w: np.ndarray, b: Any, certificate: Certificate, exact: bool
    ) -> None:
        """Write a row of history, keep a certified point if it is the best, look at the limits."""
        rounds, seconds, gap = self.crew.rounds - self.first_round, self.seconds, certificate.gap
        certificate = replace(certificate, epochs=rounds, seconds=seconds, solver=phase)
        b = b if np.ndim(b) else float(b)
        if exact and math.isfinite(gap) and (self.best is None or gap < self.best.certificate.gap):
            self.best = Outcome(w, b, certificate, self.history)
        counts = {
            "round": rounds,
            "bytes": self.crew.bytes - self.first_bytes,
            "workers": len(set(self.crew.places)),
            "certified": float(exact),
        }
        record = Record(rounds, 0, 0, seconds, 0.0, certificate, w, b, np.empty(0), counts)
        self.history.append(record.row())
        if self.limits.verbose:
            sign = " " if exact else "~"
            print(
                f"round {rounds:<3d} {phase:6s} gap {sign}{certificate.relative_gap:.2e}  "
                f"{counts['bytes'] / 1e6:8.1f} MB  {counts['workers']} workers  {seconds:.1f} s",
                flush=True,
            )
        stopped = self.limits.callback is not None and self.limits.callback(record) is True
        if self.reason:
            return
        if stopped:
            self.reason = "callback"
        elif self.crew.rounds - self.first_round >= self.limits.max_rounds:
            self.reason = "max_rounds"
        elif self.limits.max_seconds is not None and self.seconds >= self.limits.max_seconds:
            self.reason = "max_seconds"

    @property
    def seconds(self) -> float:
        """Seconds since the fit began."""
        return time.monotonic() - self.limits.began

    def save(self, w: np.ndarray, alphas: dict[int, np.ndarray] | None = None) -> None:
        """Write a checkpoint, if there is a folder for it."""
        if self.path is not None:
            save(self.path, Saved(self.identity, w, np.asarray(self.b, float), alphas or {}))

    def outcome(self) -> Outcome:
        """Return the last audited model, or the best certified one if the run was cut short."""
        assert self.best is not None
        return replace(
            self.best, certificate=replace(self.best.certificate, stop_reason=self.reason)
        )


def local_epochs(run: Run) -> None:
    """Run rounds of local epochs until the run stops or the finish promises more."""
    grid = np.unique([*_GRID, 1.0 / len(run.crew.groups)])
    gaps: list[float] = []
    while not run.reason:
        try:
            reply = run.crew.step(run.message("epoch", grid=grid))
            primal, gap = totals(run, reply)
            if reply.alphas:
                run.save(run.w, reply.alphas)
            run.estimated("epochs", run.w, primal, gap)
            gaps.append(gap / abs(primal) if primal else math.inf)
            run.theta = line_search(run, reply, grid)
            run.u = run.u + run.theta * reply.u
            shift = run.theta * reply.mean
            run.mean = run.mean + shift
            # the centre of the proximal term moves to b = centre + rho mean
            run.b = run.b + run.rho * (shift + run.mean)
            if (run.reason or run.is_promising(primal, gap)) and run.look("epochs", gap):
                break
        except Restart as lost:
            run.restart(lost.totals)
            gaps.clear()
            continue
        fits = run.smooth or 1.5 * reply.undecided < 0.25 * free_memory()
        finishes = run.smooth or not math.isfinite(run.spec.loss.smoothness)
        if fits and finishes and _rounds_left(gaps, run.limits.tol) > _PATIENCE:
            break


def totals(run: Run, reply: Reply) -> tuple[float, float]:
    """Return P and the gap at the point of a step; with an intercept an estimate of the gap."""
    primal = reply.value + run.spec.lam * penalty_cost(run.frame.penalty, run.w.ravel())
    gap = reply.excess
    if run.spec.fit_intercept:  # to be feasible, dual variables lose about what they are off by
        gap += 2.0 * float(np.abs(run.mean).sum())
    return float(primal), float(gap)


def line_search(run: Run, reply: Reply, grid: np.ndarray) -> float:
    """Return how much of the groups' changes to accept: the step that raises the dual most.

    Between the points of the grid the conjugates are at most their chord, so that what is
    maximised is a lower bound of the dual, exact on the grid, where 1 / groups always ascends.
    For the hinge it is exact everywhere.
    """
    du, dm = reply.u, reply.mean
    chords = np.diff(reply.conjugates) / np.diff(grid)

    def slope(theta: float, chord: float) -> float:
        w = run.frame.to_weights(run.u + theta * du)
        bias = run.b + run.rho * theta * dm
        return float(-chord - run.spec.lam * np.vdot(w, du) - np.vdot(bias, dm))

    for left, right, chord in zip(grid[:-1], grid[1:], chords, strict=True):
        if slope(right, chord) >= 0.0:
            continue
        if slope(left, chord) <= 0.0:
            return float(left)
        return float(brentq(slope, left, right, args=(chord,), xtol=1e-6))
    return 1.0


def _rounds_left(gaps: list[float], tol: float) -> float:
    """Extrapolate the better of two gaps, which go up and down, over three rounds."""
    if len(gaps) < 5:
        return 0.0
    now, before = min(gaps[-2:]), min(gaps[-5:-3])
    if now >= before:
        return math.inf
    return 3.0 * math.log(max(now / max(tol, 1e-300), 1.0)) / math.log(before / now)

"""One run on a cluster: the point that all groups know, and what is proved of it."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from zerogap.dask.messages import Message, Reply
from zerogap.dask.saving import Saved, save
from zerogap.dask.work import Spec
from zerogap.dask.workers import Restart, Workers
from zerogap.losses import Loss
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.problem.centring import Centred
from zerogap.problem.certificate import Certificate
from zerogap.problem.gap import ENOUGH, Sizes, conclude, displaced
from zerogap.problem.proving import Proof, conclude_precisely, rounded_columns
from zerogap.problem.row_sums import penalty_and_slack, penalty_cost
from zerogap.solvers.dual_start import first_rho
from zerogap.solvers.hessian import DIRECT
from zerogap.solvers.history import History, Record
from zerogap.solvers.limits import Limits
from zerogap.solvers.result import Result
from zerogap.solvers.second import HOPELESS_CONDITION

_OFFSETS = np.array([0.0, *(s * x for x in (1.0, 0.3, 0.1, 0.03, 0.01) for s in (1, -1))])
"""Shifts of the intercept that an audit tries, in parts of 0.1 % of its size."""
FIRST_AUDIT = 0.3  # of the last estimate that did not hold: what the next one must be below


class Run:
    """Where a run stands: the point (u, b) that all groups know, the records, and the limits.

    A round is an epoch to its limits.  The ways to step are `LocalEpochs`, `Newton`, `LBFGS` and
    `Gather`; `zerogap.solvers.loop` runs them.
    """

    def __init__(
        self,
        workers: Workers,
        spec: Spec,
        rows: int,
        limits: Limits,
        b: Any,
        verbose: int = 0,
    ) -> None:
        self.workers, self.spec, self.limits, self.verbose = workers, spec, limits, verbose
        n_features = len(spec.origin)
        self.sizes = Sizes(rows, n_features, np.ones(n_features))
        self.even, self.rounded = True, np.zeros(n_features)
        self.rho = 0.0  # of the proximal term of the intercept
        classes = 0 if spec.classes is None else len(spec.classes)
        nothing = sparse.csr_matrix((1, n_features))
        some = np.zeros(1, np.int64 if spec.loss.task == "multiclass" else np.float64)
        given = (spec.loss, spec.lam, False, spec.l1_ratio, classes)
        self.problem = Problem.part(nothing, some, np.ones(1), *given)  # one row, without entries
        moved = spec.origin.any() or spec.target
        self.centred = Centred(self.problem, spec.origin if moved else np.empty(0), spec.target)
        self.u: np.ndarray = np.zeros(self.problem.weight_shape)
        self.b, self.mean = b, np.zeros(np.shape(b))
        self.theta = 0.0  # of the changes that the groups hold
        self.history = History()
        self.last: Record
        self.best: Record | None = None
        self.ending = ""  # why to stop, once the model is certified
        self.reason = ""  # why the run has stopped
        self.first_round, self.first_bytes = workers.rounds, workers.bytes
        self.audit_below = math.inf  # estimates for which an audit is worth its round trips
        self.path: Path | None = None
        self.identity = ""

    def measure(self) -> None:
        """Ask for the sizes of columns, which bounds of rounding and steps of b depend on."""
        found = self.workers.measure()
        self.sizes = Sizes(self.sizes.rows, found.width, np.sqrt(found.squares))
        self.even = found.shares[0] == found.shares[1]
        self.rounded = rounded_columns(self.sizes.columns, found.largest, self.spec.origin)
        if self.spec.fit_intercept:
            self.rho = first_rho(float(found.squares.sum()), self.problem.strength)

    @property
    def loss(self) -> Loss:
        """The loss."""
        return self.spec.loss

    def constant_loss(self, b: Any) -> float:
        """Return the mean loss of the model without weights whose intercept is b."""
        return float(self.workers.evaluate(np.zeros(self.u.shape), b, False).value)

    @property
    def is_hopeless(self) -> bool:
        """Whether coordinate ascent has no chance, as in `zerogap.Auto`."""
        squares = float(np.square(self.sizes.columns).sum())
        return squares / (self.problem.strength * self.sizes.rows) > HOPELESS_CONDITION

    @property
    def takes_newton(self) -> bool:
        """Whether the Hessian is known, and small."""
        known = self.loss.task == "multiclass" or type(self.loss).stiffness is not Loss.stiffness
        return known and self.u.size <= DIRECT and isinstance(self.problem.penalty, L2)

    @property
    def smooth(self) -> bool:
        """Whether the objective has a gradient."""
        return math.isfinite(self.spec.loss.smoothness) and isinstance(self.problem.penalty, L2)

    @property
    def w(self) -> np.ndarray:
        """The weights that belong to the dual sum."""
        return self.problem.to_weights(self.u)

    def restart(self, totals: Reply) -> None:
        """Go on from the dual variables that are held now."""
        self.u, self.mean, self.theta = totals.u, totals.mean, 0.0

    def message(self, job: str, **more: Any) -> Message:
        """Return what the groups need to know for a step."""
        return Message(self.u, self.b, self.mean, self.theta, job=job, rho=self.rho, **more)

    def is_promising(self, primal: float, gap: float) -> bool:
        """Tell whether an audit may prove the asked gap, after those that did not."""
        return gap <= min(self.limits.tol * abs(primal), self.audit_below)

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
        self.audit_below = FIRST_AUDIT * estimate
        if proof.gap <= self.limits.tol * abs(proof.primal):
            self.ending, self.best = "converged", None
        self.record(phase, w, b, proof.certificate, True)
        return bool(self.ending)

    def _proof(
        self, w: np.ndarray, b: Any, offsets: np.ndarray, sums: Any, doubt: float = 0.0
    ) -> Proof:
        """Return what w, with the best of the intercepts b + offsets, proves.

        `doubt` is how far b may be from the one that is meant.
        """
        reply = self.workers.examine(w, b, offsets, sums)
        best = int(np.argmin([terms.value for terms in reply.terms]))
        b, frame = b + offsets[best], self.problem._with(fit_intercept=self.spec.fit_intercept)
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
            precise = self.workers.precisely(w, b, sums, self.rounded, missing, doubt)
            known = (terms, self.sizes, errors, precise, missing, self.rounded, self.spec.lam)
            better = conclude_precisely(frame, w, b, *known, self.even, doubt)
            found = min(found, better, key=lambda e: e.gap)
        return Proof.of(found, b, None)

    def _delivered(self, proof: Proof, w: np.ndarray, sums: Any) -> tuple[np.ndarray, Any, Proof]:
        """Return the model on the data as given, whose b is rounded, and what is proved of it."""
        b = self.centred.outward(w, proof.b)
        if not self.centred:
            return w, b, proof
        moved = displaced(self.problem, proof, self.centred.doubt(w, b))
        if not moved.gap - proof.gap > ENOUGH * max(proof.gap, self.limits.tol * proof.primal):
            return w, b, moved
        w, b = self.centred.nudged(w, proof.b, self.sizes.columns)
        inner, off = self.centred.precisely_inward(w, b)
        return w, b, self._proof(w, inner, np.zeros(1), sums, off)

    def look(self, phase: str, estimate: float) -> bool:
        """Compute the dual sum from all rows again, and certify its model."""
        while True:
            try:
                totals = self.workers.step(self.message("look"))
                self.restart(totals)
                return self.audit(phase, self.w, totals.sums, estimate)
            except Restart as lost:
                self.restart(lost.totals)

    def estimated(self, phase: str, w: np.ndarray, primal: float, gap: float) -> None:
        """Record a point whose gap is an estimate, not a certificate."""
        self.record(phase, w, self.b, Certificate(primal, primal - gap, gap), False)

    def record(
        self, phase: str, w: np.ndarray, b: Any, certificate: Certificate, exact: bool
    ) -> None:
        """Write a row of history, keep a certified point if it is the best, look at the limits."""
        rounds, seconds = self.workers.rounds - self.first_round, self.seconds
        gap = certificate.gap
        certificate = replace(certificate, epochs=rounds, seconds=seconds, solver=phase)
        counts = {
            "round": rounds,
            "bytes": self.workers.bytes - self.first_bytes,
            "workers": len(set(self.workers.places)),
            "certified": float(exact),
        }
        b = b if np.ndim(b) else float(b)
        self.last = Record(rounds, 0, 0, seconds, 0.0, certificate, w, b, np.empty(0), counts)
        if exact and math.isfinite(gap) and (self.best is None or gap < self.best.gap):
            self.best = self.last
        self.history.append(self.last.row())
        if self.verbose:
            sign = " " if exact else "~"
            print(
                f"round {rounds:<3d} {phase:6s} gap {sign}{certificate.relative_gap:.2e}  "
                f"{counts['bytes'] / 1e6:8.1f} MB  {counts['workers']} workers  {seconds:.1f} s",
                flush=True,
            )
        callback = self.limits.callback
        stopped = callback is not None and callback(self.last) is True
        reached = self.limits.reached(0, rounds, int(self.limits.epochs))
        reached = "max_rounds" if reached == "max_epochs" else reached
        self.ending = self.ending or ("callback" if stopped else reached)

    @property
    def seconds(self) -> float:
        """Seconds since the fit began."""
        return time.monotonic() - self.limits.began

    def verdict(self) -> str:
        """Return why to stop now, or nothing; whoever sets `ending` has the model audited."""
        return self.ending

    def keep(self, w: np.ndarray, alphas: dict[int, np.ndarray] | None = None) -> None:
        """Write a checkpoint, if there is a folder for it."""
        if self.path is not None:
            save(self.path, Saved(self.identity, w, np.asarray(self.b, float), alphas or {}))

    def save(self, now: bool = False) -> None:
        """Write nothing: the ways to step `keep` what the groups have sent, when it comes."""

    def result(self, otherwise: str) -> Result:
        """Return the last audited model, or the best certified one if the run was cut short."""
        assert self.best is not None
        reason = self.reason or otherwise
        certificate = replace(self.best.certificate, stop_reason=reason)
        return Result(self.best.w, self.best.b, np.empty(0), certificate, self.history, reason)


def totals(run: Run, reply: Reply) -> tuple[float, float]:
    """Return P and the gap at the point of a step; with an intercept an estimate of the gap."""
    primal = reply.value + run.spec.lam * penalty_cost(run.problem.penalty, run.w.ravel())
    gap = reply.excess
    if run.spec.fit_intercept:  # to be feasible, dual variables lose about what they are off by
        gap += 2.0 * float(np.abs(run.mean).sum())
    return float(primal), float(gap)


class Rounds:
    """What the ways to step on a cluster share: they have one run, and Ctrl-C comes at once."""

    holds = False

    def __init__(self, run: Run) -> None:
        self.run = run

    def begin(self, runs: Any) -> None:
        """Do nothing: the groups have begun."""

    def chosen(self, going: list[Any]) -> list[Any]:
        """Return the run, until it ends."""
        return going

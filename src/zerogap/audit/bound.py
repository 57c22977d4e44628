"""A lower bound of the optimum, raised until the distance of a model is known to 10 %."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from zerogap.problem.centring import centred
from zerogap.problem.certificate import Certificate
from zerogap.problem.gap import ASKED_FOR, ENOUGH
from zerogap.problem.proving import Proof
from zerogap.solvers import Auto, Solver, solve
from zerogap.solvers.history import Record
from zerogap.solvers.protocol import Answer

# The bound is within 10 % of the truth once this share of it is all that is undecided.
_UNDECIDED_SHARE = 1.0 - 1.0 / 1.1
CLOSE = 1e-6  # gap over objective from which on an audit computes in twice the precision
_AUTO = Auto()


@dataclass(frozen=True, repr=False)
class Audit(Certificate):
    """The certificate of somebody's model, with a bound from below as well.

    The model's objective is at least ``at_least`` and at most ``gap`` above the optimum.

    Attributes
    ----------
    at_least : float
        The objective is proved to be at least so much above the optimum.
    primal, dual, gap, rounding, floor, epochs, seconds, stop_reason, solver, parts
        As for `Certificate`.
    """

    at_least: float = 0.0

    def _facts(self) -> Mapping[str, Any]:
        bounds = {"distance at least": self.at_least, "distance at most": float(self.gap)}
        return bounds | dict(super()._facts())

    def __str__(self) -> str:
        return (
            f"{super().__str__()}; between {self.at_least:.3g} and {self.gap:.3g} above the optimum"
        )


def audit_all(
    problems: Sequence[Any],
    answers: Sequence[Answer],
    effort: int,
    random_state: Any = 0,
    goals: Sequence[float | None] | None = None,
    solver: Solver = _AUTO,
) -> Audit:
    """Certify the answers to problems that belong to one model.

    Parameters
    ----------
    problems : list of Problem or StreamedProblem
        What the model minimises.
    answers : list of (w, b, alpha)
        Its weights, intercept and, if it has them, dual variables for each problem.
    effort : int
        Epochs to spend on the bound of each problem at most.
    random_state : None, int, numpy Generator or RandomState
        Seed of the bounds.
    goals : list of float, optional
        Gaps to prove or to refute; by default each distance is found to 10 %.
    solver : Solver
        What raises the bounds.
    """
    given: Any = effort
    if not (isinstance(given, Real) and float(given) >= 0):
        raise ValueError(f"effort must be a number of epochs >= 0, got {effort!r}")
    aims = [None] * len(problems) if goals is None else goals
    parts = [
        _audit(problem, answer, effort, random_state, goal, solver)
        for problem, answer, goal in zip(problems, answers, aims, strict=True)
    ]
    return combined(parts)


def combined(parts: Sequence[Audit]) -> Audit:
    """Return what is known of a model that is several."""
    if len(parts) == 1:
        return parts[0]
    whole = {
        f.name: getattr(Certificate.combine(parts), f.name) for f in dataclasses.fields(Certificate)
    }
    return Audit(**whole, at_least=math.fsum(part.at_least for part in parts))


def _audit(
    problem: Any,
    model: Answer,
    effort: int,
    random_state: Any,
    goal: float | None,
    solver: Solver,
    exactly: bool = False,
) -> Audit:
    """Certify a model, raising the dual bound until that is enough or the effort is spent."""
    own = _own_proof(problem, model, exactly or effort == 0)
    relative_gap = own.certificate.relative_gap
    if effort == 0 or relative_gap <= 1e-12:
        return Audit(own.primal, own.dual, own.gap, stop_reason="own dual point")
    done = []

    def enough(record: Record) -> bool:
        distance = own.primal - max(own.dual, record.certificate.dual)
        if goal is None:
            done.append(record.gap <= _UNDECIDED_SHARE * distance)
        else:
            done.append(distance <= goal or own.primal - record.certificate.primal > goal)
        return done[-1]

    # far from the optimum a start at alpha = 0 is better, where D = 0 as no loss is negative
    start: Any = model if own.dual > 0.0 else None
    tol, spent, seconds = max(1e-12, min(1e-3, 0.05 * relative_gap)), 0.0, 0.0
    while True:
        result = solve(
            problem,
            solver,
            tol=tol,
            max_epochs=effort - spent,
            callback=enough,
            warm_start=start,
            random_state=random_state,
        )
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt
        found = result.certificate
        spent, seconds = spent + found.epochs, seconds + found.seconds
        if done[-1] or result.stop_reason != "converged" or tol <= 1e-12 or spent >= effort:
            break
        tol, start = max(1e-12, 0.01 * tol), result  # the model is closer than its own bound says
    gap = min(own.gap, own.primal + own.blur - found.dual)
    if gap <= CLOSE * own.primal < own.gap and not exactly:  # digits of P matter after all
        return _audit(problem, model, effort, random_state, goal, solver, exactly=True)
    unknown = own.blur + (0.0 if result.proof is None else result.proof.blur)
    short = not done[-1] and result.stop_reason in ("max_epochs", "stalled")
    return Audit(
        own.primal,
        own.primal - own.blur - gap,
        gap,
        epochs=spent,
        seconds=seconds,
        stop_reason="effort spent" if short else "bound is tight",
        solver=found.solver,
        at_least=max(0.0, own.primal - found.primal - unknown),
    )


def _own_proof(problem: Any, model: Answer, exactly: bool) -> Proof:
    """Return what a model's own dual point proves.

    Twice the precision is for models that are close to the optimum: of others the bound tells more,
    and in less time than the dual point takes.
    """
    shifted = centred(problem)
    w, b, alpha = model
    inner, off = shifted.precisely_inward(problem.host(w), problem.host(b))
    point = (w, problem.place(inner), alpha, off)
    own = None if exactly else shifted.problem.proof_of(*point, tolerated=ENOUGH * ASKED_FOR)
    if own is None or own.gap <= CLOSE * own.primal:
        own = shifted.problem.refined_proof_of(*point)
    if not math.isfinite(own.primal):
        largest = max(float(np.abs(w).max()), float(np.abs(b).max()))
        raise ValueError(
            f"the model's objective overflows, as its coefficients or intercepts reach "
            f"{largest:.3g}: nothing can be certified"
        )
    return own

"""What is proved of weights that are kept in place of those of a run: rounded once more, say."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from zerogap.problem.centring import centred
from zerogap.problem.certificate import Certificate
from zerogap.problem.proving import Proof
from zerogap.solvers.result import Result


def proof_of_kept(problem: Any, result: Result, w: np.ndarray, b: Any) -> Proof:
    """Return what the dual point of a result proves of another model."""
    shifted = centred(problem)
    inner, off = shifted.precisely_inward(w, b)
    proof = shifted.problem.proof_of(w, inner, result.alpha, off)
    rest = None if result.proof is None else result.proof.rest
    if rest is None:
        return proof
    given = (w, inner, proof.z, result.alpha)
    refined = shifted.problem.prove(*given, rest=rest, doubt=off)
    return min(proof, refined, key=lambda found: found.gap)


def certificate_with(known: Certificate, proof: Proof, asked: float) -> Certificate:
    """Return the certificate of a run with the numbers of another proof.

    Where these are no longer within the relative gap that was asked for, rounding is the reason.
    """
    enough = max(asked * proof.primal, known.floor)
    short = known.stop_reason == "converged" and not proof.gap <= enough
    return dataclasses.replace(
        known,
        primal=proof.primal,
        dual=proof.dual,
        gap=proof.gap,
        rounding=proof.rounding,
        stop_reason="rounding" if short else known.stop_reason,
    )


def with_opposite_classes(problem: Any, result: Result, asked: float) -> Result:
    """Return a joint model of two classes whose weights are each other's opposites.

    Binary models keep the difference of the classes, which is exact then: the difference of other
    weights is rounded, and may be another model than the one that was certified.
    """
    w, b = opposites(result.w), opposites(np.broadcast_to(result.b, 2))
    if np.array_equal(w, result.w) and np.array_equal(b, result.b):
        return result
    proof = proof_of_kept(problem, result, w, b)
    certificate = certificate_with(result.certificate, proof, asked)
    return dataclasses.replace(
        result,
        w=w,
        b=b,
        certificate=certificate,
        stop_reason=certificate.stop_reason,
        proof=proof,
    )


def opposites(parts: Any) -> Any:
    """Return minus and plus half the difference of two parts."""
    half = 0.5 * (parts[1] - parts[0])
    return np.stack([-half, half])

"""What is proved of weights that are kept in place of those of a run: rounded once more, say."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, cast

import numpy as np

from zerogap.kernels.lattice import rounded_along
from zerogap.kernels.twofold import Factor, exact_sum, factorised
from zerogap.problem.centring import centred
from zerogap.problem.certificate import Certificate
from zerogap.problem.proving import Proof
from zerogap.solvers.certifying import MOST_ALIGNED
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
    apart = np.diff(result.w, axis=0)[0], float(np.diff(np.broadcast_to(result.b, 2))[0])
    kept = _as_opposites(problem, result, *apart, asked)
    small = math.prod(problem.shape) * problem.shape[1] <= MOST_ALIGNED
    here = small and not (problem.streamed or problem.on_device)
    if kept.stop_reason == result.stop_reason or not here:
        return kept
    other = _as_opposites(problem, result, *_difference(problem, result), asked)
    return min(kept, other, key=lambda found: found.certificate.gap)


def _as_opposites(problem: Any, result: Result, v: np.ndarray, c: float, asked: float) -> Result:
    """Return the joint model of two classes whose weights differ by v, and intercepts by c."""
    w, b = np.stack([-0.5 * v, 0.5 * v]), cast("Any", np.array([-0.5 * c, 0.5 * c]))
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


def _difference(problem: Any, result: Result) -> tuple[np.ndarray, float]:
    """Return how the weights and intercepts of two classes differ, all rounded together."""
    X, free = problem.rows.dense(), problem.fit_intercept
    ridge = np.full(X.shape[1] + free, problem.strength)
    ones = np.ones((len(X), int(free)))
    ridge[X.shape[1] :] = 0.0
    w = np.column_stack([result.w, np.broadcast_to(result.b, 2)])[:, : len(ridge)]
    meant = exact_sum(w[1], -w[0])
    columns = factorised(np.column_stack([X, ones]), problem.share, ridge).columns()
    sizes = np.abs(meant[0]) * np.sqrt(np.square(columns[0]).sum(axis=1))
    order = np.argsort(sizes, kind="stable")  # what adds the most to scores is rounded first
    order = order[meant[0, order] != 0.0]
    factor, found = Factor.of_columns(columns[:, order]), np.zeros(len(ridge))
    found[order] = rounded_along(np.ascontiguousarray(meant[:, order]), factor, 0)[0]
    return found[: X.shape[1]], float(found[-1]) if free else 0.0

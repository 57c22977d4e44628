"""What is proved of coefficients as a model keeps them, which may be rounded once more."""

from __future__ import annotations

import math

import numpy as np

from zerogap.audit.convention import Convention, models_of
from zerogap.audit.parts import bare
from zerogap.problem import Problem
from zerogap.problem.certificate import Certificate
from zerogap.problem.gap import UNIT, displaced, size_of
from zerogap.solvers import Result
from zerogap.solvers.kept import certificate_with, proof_of_kept
from zerogap.solvers.protocol import Answer


def certificate_of(
    problems: list[Problem],
    results: list[Result],
    coef: np.ndarray,
    intercept: np.ndarray,
    convention: Convention,
    asked: float,
) -> Certificate:
    """Return the certificate of a model that is kept, of which the results are the fits.

    Coefficients are of the rows' type, which may be single precision, intercepts of several classes
    have a mean of zero, and of two classes there are differences.

    Parameters
    ----------
    problems, results
        What was solved, and how; a result with an infinite intercept is one of no problem.
    coef, intercept : ndarray
        What is kept.
    convention : Convention
        What they mean.
    asked : float
        Relative gap that the fits were to reach.
    """
    finite = np.where(np.isfinite(intercept), intercept, 0.0)
    answers, left, found = models_of(bare(coef, finite), convention, 0), iter(problems), []
    for result, answer in zip(results, answers, strict=True):
        if np.isfinite(result.b).all():
            more = (answer, convention.penalised, asked)
            found.append(_certificate(next(left), result, *more))
        else:  # all weight on one side: there is no problem
            found.append(result.certificate)
    return Certificate.combine(found)


def _certificate(
    problem: Problem, result: Result, answer: Answer, scaling: float, asked: float
) -> Certificate:
    w, b, _ = answer
    same, known = np.array_equal(w, result.w), result.certificate
    exact = not scaling or math.frexp(scaling)[0] == 0.5  # of intercepts over the constant feature
    if same and exact and np.array_equal(b, result.b):
        return known
    if same and result.proof is not None:
        proof = displaced(problem, result.proof, 2.0 * UNIT * size_of(np.atleast_1d(b)))
    else:
        proof = proof_of_kept(problem, result, w, b)
    if not exact:
        weight = float(np.abs(w[..., -1]).max()) * scaling
        proof = displaced(problem, proof, 4.0 * UNIT * weight)
        more = 8.0 * UNIT * proof.primal  # of which the square of that weight is a part
        proof = proof._replace(gap=proof.gap + more, rounding=proof.rounding + more)
    return certificate_with(known, proof, asked)

"""Proofs that others can check without this library: see docs/proof-format.md and verify.py."""

from __future__ import annotations

import json
import math
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from zerogap import verify
from zerogap.audit import convention_of, models_of, targets_of
from zerogap.io.atomic import write_file
from zerogap.losses import ALL_LOSSES, EpsilonInsensitive, Loss
from zerogap.model_io.files import Model
from zerogap.problem import Problem
from zerogap.problem.centring import centred
from zerogap.problem.refining import refinement
from zerogap.problem.validation import class_factors
from zerogap.readers import Encoder
from zerogap.rows import CSRRows, as_rows
from zerogap.solvers import Auto, solve

_LEAST_TOL = 1e-12  # relative gap that float64 still reaches
_NAMES = {cls: name for name, cls in ALL_LOSSES.items()}


def prove(
    model: Model, X: Any, y: Any, sample_weight: Any = None, *, effort: int = 1000
) -> dict[str, np.ndarray]:
    """Return a proof of how far a fitted model is at most from the optimum on these data.

    The dual variables that the model has are used; if it has none, or not for these rows, `Auto`
    looks for some.  The claims are what the verifier finds, rounded outwards to float64, so they
    are always true.

    Parameters
    ----------
    model : LinearClassifier or LinearRegressor
        Fitted, with a loss of this library.
    X, y : array-like
        The data that the model was fitted to.
    sample_weight : array-like, optional
        The weights it was fitted with.
    effort : int
        Epochs to spend at most on dual variables, where the model has none.

    Returns
    -------
    dict of arrays
        For `save_proof`, and for `zerogap.verify.verify`.

    Examples
    --------
    >>> import zerogap as zg
    >>> from zerogap.model_io import prove
    >>> from zerogap.verify import verify
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> model = zg.LinearClassifier("hinge", random_state=0).fit(X, y)
    >>> answer, reason, numbers = verify(prove(model, X, y), X, y)
    >>> answer
    'true'
    """
    convention = convention_of(model)
    rows = as_rows(X.to_numpy() if hasattr(X, "to_numpy") else X)
    X = rows._matrix() if isinstance(rows, CSRRows) else rows.X
    y = np.asarray(y)
    targets, weights = targets_of(model, y, sample_weight, convention)
    name, parameter = _named(convention.loss)
    header: dict[str, Any] = {
        "format": verify.FORMAT,
        "loss": name,
        "parameter": parameter,
        "lam": convention.lam(float(np.sum(weights[0])), len(y)),
        "l1_ratio": float(convention.l1_ratio),
        "fit_intercept": bool(convention.fit_intercept),
        "classes": None,
        "class_weight": _class_weight(model, y, sample_weight),
        "weighted": sample_weight is not None,
    }
    if hasattr(model, "classes_"):
        header["classes"] = model.classes_.tolist()
    matrix, codes, s, header["data"] = verify.prepare(header, X, y, sample_weight)
    arrays: dict[str, list[np.ndarray]] = {"w": [], "b": [], "alpha": [], "rest": []}
    header["primal"], header["dual"], known = [], [], model.certificate_
    for k, answer in enumerate(models_of(model, convention, len(y))):
        problem = Problem(
            rows,
            targets[k],
            convention.loss,
            header["lam"],
            weights[k],
            header["fit_intercept"],
            header["l1_ratio"],
        )
        w, b = np.atleast_2d(answer[0]), np.atleast_1d(np.asarray(answer[1], dtype=np.float64))
        alpha = _inside(problem, _dual_point(problem, answer, effort, 0.1 * model.tol))
        given = (header, matrix, codes, s, w, b)
        rest, claims = 0.0 * alpha, _claims(verify.bounds(*given, alpha[:, None], k))
        if claims[0] - claims[1] > (known.parts[k] if known.parts else known).gap:
            rest = _rest(problem, *answer[:2], alpha)
            claims = _claims(verify.bounds(*given, np.stack([alpha, rest], axis=1), k))
        for key, value in (("w", w), ("b", b), ("alpha", alpha), ("rest", rest)):
            arrays[key].append(value)
        for key, claim in zip(("primal", "dual"), claims, strict=True):
            header[key].append(claim)
    proof = {"header": _encoded(header), **{key: np.array(x) for key, x in arrays.items()}}
    if not proof["rest"].any():
        del proof["rest"]
    return proof


def save_proof(
    proof: dict[str, np.ndarray], path: str | os.PathLike[str], *, encoder: Any = None
) -> None:
    """Write a proof to one file, atomically.

    Parameters
    ----------
    proof : dict of arrays
        From `prove`.
    path : path
        Where to.
    encoder : zerogap.readers.Encoder, optional
        How tables become the rows of the proof; kept with it for `zerogap verify`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import zerogap as zg
    >>> from zerogap.model_io import prove
    >>> X, y, _ = zg.datasets.make_simulated(50, random_state=0)
    >>> proof = prove(zg.LinearClassifier("hinge", random_state=0).fit(X, y), X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_proof(proof, Path(folder) / "model.proof")
    ...     sorted(zg.verify.load(Path(folder) / "model.proof")) == sorted(proof)
    True
    """
    if encoder is not None:
        header = json.loads(proof["header"].tobytes())
        proof = {**proof, "header": _encoded({**header, "reader": encoder.to_json()})}
    write_file(Path(path), lambda file: np.savez(file, **proof))  # type: ignore[arg-type]


def reader_of(proof: dict[str, np.ndarray]) -> Any:
    """Return the encoder that a proof holds, for as many features as it has."""
    try:
        value = json.loads(proof["header"].tobytes()).get("reader")
        return Encoder(proof["w"].shape[-1]) if value is None else Encoder.from_json(value)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"is no proof: {error}") from None


def _encoded(header: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)


def _named(loss: Loss) -> tuple[str, float | None]:
    """Return the name and the parameter of a loss in the format of proofs."""
    if isinstance(loss, EpsilonInsensitive) and loss.eps == 0:
        return "absolute", None
    if type(loss) not in _NAMES:
        raise ValueError(f"{loss} is not part of zerogap: the format of proofs has no name for it")
    parameters = [value for key, value in loss.get_params().items() if key != "approximate"]
    return _NAMES[type(loss)], float(parameters[0]) if parameters else None


def _class_weight(model: Any, y: np.ndarray, sample_weight: Any) -> list[float] | None:
    """Return the weight of each class."""
    if getattr(model, "class_weight", None) is None:
        return None
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    codes = np.searchsorted(model.classes_, y)
    return class_factors(model.class_weight, model.classes_, codes, weights).tolist()


def _dual_point(problem: Problem, answer: Any, effort: int, tol: float) -> np.ndarray:
    """Return the dual variables of a model, or new ones for a bound this near to the optimum."""
    w, b, alpha = answer
    if alpha is not None:
        return problem.feasible(alpha)
    alpha = problem.dual_point(problem.scores(w), b)
    own = problem.certificate(w, b, alpha)
    tol = max(_LEAST_TOL, tol)
    if effort == 0 or own.relative_gap <= tol:
        return alpha
    found = solve(problem, Auto(), tol=tol, max_epochs=effort, warm_start=answer, random_state=0)
    return found.alpha if found.certificate.dual > own.dual else alpha


def _inside(problem: Problem, alpha: np.ndarray) -> np.ndarray:
    """Return dual variables in the form of proofs, moved into their domain where rounding left it.

    One row for each score; of many scores, the votes for the other classes, which must sum to 1 at
    most without rounding.
    """
    if problem.loss.task != "multiclass":
        low, high = np.array([_domain(problem.loss, target) for target in (-1.0, 1.0)]).T
        upper = (problem.y > 0).astype(int)
        return np.clip(alpha, low[upper], high[upper])[None, :]
    votes = np.maximum(-alpha, 0.0)
    votes[np.arange(len(votes)), problem.y] = 0.0
    for i in np.flatnonzero(votes.sum(axis=1) > 1.0 - 1e-12):
        while math.fsum((*votes[i], -1.0)) > 0.0:
            votes[i] *= 1.0 - 2.0**-52
    return np.ascontiguousarray(votes.T)


def _rest(problem: Problem, w: np.ndarray, b: Any, alpha: np.ndarray) -> np.ndarray:
    """Return what to add to dual variables in the form of proofs, zeros if that proves no more.

    See `zerogap.refining`.
    """
    shifted = centred(problem)
    inner, many = shifted.problem, problem.loss.task == "multiclass"
    rows, votes = np.arange(problem.shape[0]), np.ascontiguousarray(-alpha.T)
    if many:
        votes[rows, problem.y] = alpha.sum(axis=0)
    dual = votes if many else alpha[0]
    rest = refinement(inner, w, dual)
    if rest is not None:
        b, low, doubt = shifted.pair_inward(w, b)
        given = (w, b, inner.scores(w), dual)
        rest = inner.prove(*given, rest=rest, doubt=doubt, b_low=low).rest
    if rest is None:
        return np.zeros_like(alpha)
    if not many:
        return rest[None]
    rest = -rest
    rest[rows, problem.y] = 0.0
    for i in rows[alpha.sum(axis=0) + rest.sum(axis=1) > 1.0 - 1e-12]:
        while (over := math.fsum((*alpha[:, i], *rest[i], -1.0))) > 0.0:
            rest[i, np.argmax(alpha[:, i])] -= 2.0 * over
    return np.ascontiguousarray(rest.T)


def _domain(loss: Loss, target: float) -> tuple[float, float]:
    """Return the ends of the domain, moved inwards to where they are not rounded outwards."""
    low, high = loss.domain(target)
    q = getattr(loss, "q", None)
    if q is not None and Fraction(low) < Fraction(q) - 1:
        low = math.nextafter(low, 0.0)
    return low, high


def _claims(found: Any) -> tuple[float, float]:
    """Return floats P(w, b) <= primal and D >= dual, as near as there are."""
    (_, most), (least, _) = found
    primal, dual = float(most), float(least)
    primal = math.nextafter(primal, math.inf) if primal < most else primal
    return primal, math.nextafter(dual, -math.inf) if dual > least else dual

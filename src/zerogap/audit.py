"""Certificates for models that somebody else trained."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import compute_class_weight

from zerogap.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    MulticlassHinge,
    Softmax,
    Squared,
    SquaredHinge,
    as_loss,
)
from zerogap.problem import Problem
from zerogap.problem.centring import centred
from zerogap.problem.certificate import Certificate
from zerogap.problem.validation import class_factors
from zerogap.rows import DenseRows, as_rows
from zerogap.solvers import Auto, Solver, solve
from zerogap.solvers.history import Record
from zerogap.solvers.protocol import Answer

_SKLEARN_BALANCES_WEIGHTS = "sample_weight" in inspect.signature(compute_class_weight).parameters

# The bound is within 10 % of the truth once this share of it is all that is undecided.
_TIGHT = 1.0 - 1.0 / 1.1
_AUTO = Auto()


@dataclass(frozen=True)
class Audit(Certificate):
    """The certificate of somebody's model, with a bound from below as well.

    The model's objective is at least ``at_least`` and at most ``gap`` above the optimum.
    """

    at_least: float = 0.0

    def __str__(self) -> str:
        return (
            f"{super().__str__()}; between {self.at_least:.3g} and {self.gap:.3g} above the optimum"
        )


@dataclass(frozen=True)
class _Convention:
    """What a model minimises: loss, weights, penalty, and how it treats its intercept."""

    loss: Loss
    lam: Callable[[float, int], float]  # from the sum of the weights and the number of rows
    l1_ratio: float = 0.0
    fit_intercept: bool = True
    penalised: float = 0.0  # value of the constant feature, if the intercept is its weight
    class_weight: Any = None
    one_class_weighted: bool = False  # one against rest: the rest has weight 1, whatever its class
    balances_weights: bool = True  # "balanced" counts sample weights, not rows


def certify(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    effort: int = 1000,
    loss: str | Loss | None = None,
    lam: float | None = None,
    l1_ratio: float = 0.0,
    random_state: Any = 0,
) -> Audit:
    """Prove how far any fitted linear model is from the optimum of what it minimises.

    The objective is evaluated at the model's own weights, in the model's own convention for C or
    alpha, weights and intercept (LIBLINEAR regularises it).  A lower bound of the optimum starts
    from the dual point that belongs to the model and is raised by `Auto` until the distance is
    known to 10 %, or until `effort` epochs are spent.  The bound is valid at any time.  Classes
    trained together (softmax, Crammer and Singer) are one problem, one-against-rest models are
    added up.

    Parameters
    ----------
    model : fitted estimator
        One of ours, or scikit-learn's LinearSVC, LogisticRegression, SGDClassifier, SGDRegressor,
        Ridge, RidgeClassifier or LinearSVR, or a pipeline that ends in one.  For any other object
        with ``coef_`` and ``intercept_`` give `loss` and `lam`.
    X, y : array-like
        The data that the model was fitted to.
    sample_weight : array-like, optional
        The weights it was fitted with.
    effort : int
        Epochs to spend on the bound at most; 0 for the model's own dual point alone.
    loss, lam, l1_ratio
        What a model minimises, as in `Problem`, if its type is not known or its own parameters do
        not count; `loss` and `lam` go together.  The intercept is free if it is not zero.
    random_state : None, int, numpy Generator or RandomState
        Seed of the bound.

    Returns
    -------
    Audit
        A certificate with primal, dual and gap, and ``at_least``, a lower bound of the distance.

    Raises
    ------
    ValueError
        If no certificate is possible: coefficients or intercepts that are NaN, infinite or so
        large that the objective overflows, a model that minimises no known objective, other data.

    Examples
    --------
    >>> import zerogap as zg
    >>> from sklearn.linear_model import Ridge
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> zg.certify(Ridge(alpha=1.0).fit(X, y), X, y).relative_gap < 1e-9
    True
    """
    convention = None
    if (loss is None) != (lam is None) or (l1_ratio and loss is None):
        raise ValueError(
            "loss, lam and l1_ratio say together what a model minimises: give loss and lam, or "
            "none of them for a model whose own parameters say it"
        )
    if loss is not None and lam is not None:
        fixed = float(lam)
        free = bool(np.any(getattr(model, "intercept_", 0.0)))
        convention = _Convention(as_loss(loss), lambda total, n: fixed, l1_ratio, free)
    return audit(model, X, y, sample_weight, effort, convention, random_state)


def audit(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    effort: int,
    convention: _Convention | None = None,
    random_state: Any = 0,
) -> Audit:
    """Do the work of `certify`."""
    return audit_all(*posed(model, X, y, sample_weight, convention), effort, random_state)


def posed(
    model: Any, X: Any, y: Any, sample_weight: Any, convention: _Convention | None = None
) -> tuple[list[Problem], list[Answer]]:
    """Return the problems that a model solves on these data, and its answers to them."""
    if hasattr(model, "steps"):  # a pipeline: audit its last step on what that step sees
        X = model[:-1].transform(X) if len(model.steps) > 1 else X
        model = model[-1]
    if not hasattr(model, "coef_"):
        raise ValueError(
            f"{type(model).__name__} has no coef_: fit it first, and only linear models work"
        )
    convention = convention_of(model) if convention is None else convention
    rows, n_features = _data(X, convention), np.shape(model.coef_)[-1]
    if rows.shape[1] != n_features + bool(convention.penalised):
        raise ValueError(f"the model has {n_features} features, X has {np.shape(X)[1]}")
    targets, weights = targets_of(model, y, sample_weight, convention)
    answers = models_of(model, convention, rows.shape[0])
    if len(answers) != len(targets):
        raise ValueError(
            f"the model predicts {len(answers)} targets at once: certify one at a time"
        )
    problems = [
        Problem(
            rows,
            target,
            convention.loss,
            convention.lam(float(np.sum(weight)), len(weight)),
            weight,
            convention.fit_intercept and not convention.penalised,
            convention.l1_ratio,
        )
        for target, weight in zip(targets, weights, strict=True)
    ]
    return problems, answers


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
    if not effort >= 0:
        raise ValueError(f"effort must be a number of epochs >= 0, got {effort!r}")
    aims = [None] * len(problems) if goals is None else goals
    parts = [
        _audit(problem, answer, effort, random_state, goal, solver)
        for problem, answer, goal in zip(problems, answers, aims, strict=True)
    ]
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
) -> Audit:
    """Certify a model, raising the dual bound until that is enough or the effort is spent."""
    shifted = centred(problem)
    w, b, alpha = model
    inner, off = shifted.precisely_inward(problem.host(w), problem.host(b))
    own = shifted.problem.refined_proof_of(w, problem.place(inner), alpha, off)
    if not math.isfinite(own.primal):
        largest = max(float(np.abs(w).max()), float(np.abs(b).max()))
        raise ValueError(
            f"the model's objective overflows, as its coefficients or intercepts reach "
            f"{largest:.3g}: nothing can be certified"
        )
    relative_gap = own.certificate.relative_gap
    if effort == 0 or relative_gap <= 1e-12:
        return Audit(own.primal, own.dual, own.gap, stop_reason="own dual point")
    done = []

    def enough(record: Record) -> bool:
        distance = own.primal - max(own.dual, record.certificate.dual)
        if goal is None:
            done.append(record.gap <= _TIGHT * distance)
        else:
            done.append(distance <= goal or own.primal - record.certificate.primal > goal)
        return done[-1]

    origin = np.broadcast_to(0.0, problem.dual_shape)  # which takes no memory
    useful = own.dual > problem.dual(origin)  # far from the optimum, a start at zero is better
    start: Any = model if useful else None
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


def convention_of(model: Any) -> _Convention:
    """Read from a fitted model what it minimises."""
    name = type(model).__name__
    if type(model).__module__.startswith("zerogap."):
        given = model.lam
        return _Convention(
            model._loss(),
            lambda total, n: 1.0 / total if given is None else given,
            model.l1_ratio,
            model.fit_intercept,
            class_weight=getattr(model, "class_weight", None),
        )
    if name not in _READERS or not type(model).__module__.startswith("sklearn."):
        known = ", ".join(sorted(_READERS))
        raise ValueError(
            f"no convention is known for {name}: give loss= and lam=, or use one of {known}"
        )
    return _READERS[name](model)


def _linear_svm(model: Any) -> _Convention:
    """LinearSVC and LinearSVR: |w|^2/2 + C sum s_i phi_i, the intercept regularised."""
    names = {
        "hinge": Hinge(),
        "squared_hinge": SquaredHinge(),
        "epsilon_insensitive": EpsilonInsensitive(float(getattr(model, "epsilon", 0.0))),
    }
    # Crammer and Singer's method ignores the parameters loss and penalty
    joint = getattr(model, "multi_class", "ovr") == "crammer_singer"
    _require(joint or model.loss in names, model, f"loss={model.loss!r}")
    _require(joint or getattr(model, "penalty", "l2") == "l2", model, "an l1 penalty")
    scaling = float(model.intercept_scaling) if model.fit_intercept else 0.0
    return _Convention(
        MulticlassHinge() if joint else names[model.loss],
        lambda total, n: 1.0 / (model.C * total),
        fit_intercept=False,
        penalised=scaling,
        class_weight=getattr(model, "class_weight", None),
        one_class_weighted=True,
        balances_weights=_SKLEARN_BALANCES_WEIGHTS,
    )


def _logistic_regression(model: Any) -> _Convention:
    """C sum s_i phi_i + penalty; liblinear regularises the intercept, the other solvers do not."""
    liblinear = model.solver == "liblinear"
    penalty = {None: None, "deprecated": "elasticnet"}.get(model.penalty, model.penalty)
    l1_ratio = {"l2": 0.0, "l1": 1.0, None: 1.0}.get(penalty, model.l1_ratio or 0.0)
    _require(np.isfinite(model.C) and l1_ratio < 1, model, "no L2 penalty")
    multi_class = getattr(model, "multi_class", "auto")  # until scikit-learn 1.7
    _require(multi_class in ("auto", "deprecated"), model, f"multi_class={multi_class!r}")
    return _Convention(
        Softmax() if len(model.classes_) > 2 and not liblinear else Logistic(),
        lambda total, n: 1.0 / (model.C * total),
        float(l1_ratio),
        model.fit_intercept and not liblinear,
        float(model.intercept_scaling) if liblinear and model.fit_intercept else 0.0,
        model.class_weight,
        liblinear,
        _SKLEARN_BALANCES_WEIGHTS,
    )


def _sgd(model: Any) -> _Convention:
    """1/n sum s_i phi_i + alpha penalty; one against the rest, which has weight 1."""
    names = {
        "hinge": Hinge(),
        "squared_hinge": SquaredHinge(),
        "log_loss": Logistic(),
        "squared_error": Squared(),
        "huber": Huber(float(model.epsilon)),
        "epsilon_insensitive": EpsilonInsensitive(float(model.epsilon)),
    }
    passive = model.learning_rate in ("pa1", "pa2")  # passive-aggressive steps use no penalty
    _require(not passive, model, f"learning_rate={model.learning_rate!r}")
    _require(model.loss in names, model, f"loss={model.loss!r}")
    _require(model.penalty in ("l2", "elasticnet"), model, f"penalty={model.penalty!r}")
    l1_ratio = float(model.l1_ratio) if model.penalty == "elasticnet" else 0.0
    _require(l1_ratio < 1, model, "no L2 penalty")
    return _Convention(
        names[model.loss],
        lambda total, n: model.alpha * n / total,
        l1_ratio,
        model.fit_intercept,
        class_weight=getattr(model, "class_weight", None),
        one_class_weighted=True,
        balances_weights=False,
    )


def _ridge(model: Any) -> _Convention:
    """Sum s_i r_i^2 + alpha |w|^2, which is twice our objective times the sum of the weights."""
    _require(np.ndim(model.alpha) == 0 and model.alpha > 0, model, f"alpha={model.alpha!r}")
    _require(not getattr(model, "positive", False), model, "positive=True")
    return _Convention(
        Squared(),
        lambda total, n: float(model.alpha) / total,
        fit_intercept=model.fit_intercept,
        class_weight=getattr(model, "class_weight", None),
        balances_weights=False,
    )


_READERS: dict[str, Callable[[Any], _Convention]] = {
    "LinearSVC": _linear_svm,
    "LinearSVR": _linear_svm,
    "LogisticRegression": _logistic_regression,
    "SGDClassifier": _sgd,
    "SGDRegressor": _sgd,
    "Ridge": _ridge,
    "RidgeClassifier": _ridge,
}


def _require(condition: bool, model: Any, what: str) -> None:
    if not condition:
        raise ValueError(f"{type(model).__name__} with {what} cannot be certified")


def models_of(model: Any, convention: _Convention, n: int) -> list[Answer]:
    """Return weights, intercept and, if n of them were kept, dual variables of each problem."""
    coefs = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    coefs = np.atleast_2d(np.ascontiguousarray(coefs, dtype=np.float64))
    intercepts = np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64).ravel()
    for name, values in (("coef_", coefs), ("intercept_", intercepts)):
        if not np.isfinite(values).all():
            place = tuple(map(int, np.argwhere(~np.isfinite(values))[0]))
            raise ValueError(f"{name} holds {values[place]} at {place}: nothing can be certified")
    intercepts = np.broadcast_to(intercepts, (len(coefs),))
    if convention.penalised:
        coefs = np.column_stack([coefs, intercepts / convention.penalised])
        intercepts = np.zeros(len(coefs))
    ours = type(model).__module__.startswith("zerogap.")
    duals = np.atleast_2d(model.dual_coef_) if ours else np.empty((len(coefs), 0))
    parts: Any = zip(coefs, intercepts, duals, strict=True)
    if convention.loss.task == "multiclass":
        if len(coefs) == 1:  # two classes, their difference kept: the optimum is symmetric
            coefs, duals = np.vstack([-coefs, coefs]) / 2, np.vstack([-duals, duals])
            intercepts = np.append(-intercepts, intercepts) / 2
        parts = [(coefs, intercepts, np.ascontiguousarray(duals.T))]
    return [(w, b, alpha if len(alpha) == n else None) for w, b, alpha in parts]


def _data(X: Any, convention: _Convention) -> Any:
    """Return the rows, with the constant feature of LIBLINEAR's intercept if there is one."""
    rows = as_rows(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if not convention.penalised:
        return rows
    constant = np.full((rows.shape[0], 1), convention.penalised)
    if isinstance(rows, DenseRows):
        return as_rows(np.hstack([rows.X, constant]))
    return as_rows(sparse.hstack([X, constant], format="csr"))


def targets_of(
    model: Any, y: Any, sample_weight: Any, convention: _Convention
) -> tuple[np.ndarray, np.ndarray]:
    """Return targets and sample weights, one row of each for every problem of the model."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got shape {y.shape}")
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if not hasattr(model, "classes_"):
        return y[None, :], weights[None, :]
    classes = model.classes_
    if len(unknown := np.setdiff1d(y, classes)):
        raise ValueError(f"y holds labels that the model was not trained on, such as {unknown[0]}")
    codes = np.searchsorted(classes, y)
    joint = convention.loss.task == "multiclass"
    if joint and len(absent := np.setdiff1d(classes, y)):
        raise ValueError(f"y has no row of class {absent[0]}: give the data of the fit")
    positive = np.arange(len(classes) == 2, len(classes))
    targets = codes[None, :] if joint else np.where(codes == positive[:, None], 1.0, -1.0)
    if convention.class_weight is not None:
        counted = weights if convention.balances_weights else np.ones(len(y))
        factors = class_factors(convention.class_weight, classes, codes, counted)[codes]
        alone = convention.one_class_weighted and len(targets) > 1
        weights = weights * (np.where(targets > 0, factors, 1.0) if alone else factors)
    return targets, np.broadcast_to(weights, targets.shape)

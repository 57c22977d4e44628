"""Certificates for models that somebody else trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from zerogap.audit.bound import Audit, audit_all, combined
from zerogap.audit.convention import (
    Convention,
    UnknownObjective,
    models_of,
    positive,
    problems_of,
    require,
    targets_of,
)
from zerogap.audit.parts import Part, bare
from zerogap.audit.pure_l1 import PureL1, audit_pure_l1
from zerogap.audit.quantile import audit_quantile
from zerogap.audit.table import convention_of, refusal
from zerogap.audit.wrappers import parts_of
from zerogap.losses import Loss, as_loss
from zerogap.solvers.protocol import Answer


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
        One of ours, or of a class that `zerogap.audit.conventions` lists: of scikit-learn (also in
        pipelines, searches and ensembles), celer, cyanure, glum, ReHLine, skglm and Snap ML, or
        what `zerogap.audit.read_liblinear` returns.  For any other object with ``coef_`` and
        ``intercept_`` give `loss` and `lam`; for bare numbers there is `certify_weights`.
    X, y : array-like
        The data that the model was fitted to.
    sample_weight : array-like, optional
        The weights it was fitted with.
    effort : int
        Epochs to spend on the bound at most; 0 for the model's own dual point alone.
    loss, lam, l1_ratio
        What a model minimises, as in `Problem`, if its type is not known or its own parameters do
        not count; `loss` and `lam` go together, and `l1_ratio` may be 1.  The intercept is free if
        it is not zero.
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
        fixed = positive(lam, "lam")
        free = bool(np.any(getattr(model, "intercept_", 0.0)))
        convention = Convention(as_loss(loss), lambda total, n: fixed, l1_ratio, free)
    return audit(model, X, y, sample_weight, effort, convention, random_state)


def certify_weights(
    w: Any,
    b: Any,
    X: Any,
    y: Any,
    *,
    loss: str | Loss,
    lam: float,
    l1_ratio: float = 0.0,
    fit_intercept: bool | None = None,
    intercept_scaling: float | None = None,
    sample_weight: Any = None,
    effort: int = 1000,
    random_state: Any = 0,
) -> Audit:
    """Prove how far bare numbers are from the optimum of 1/S sum s_i phi_i + lam penalty(w).

    For weights from anywhere: a paper, R's glmnet, statsmodels, ``torch.nn.Linear``, a
    spreadsheet.

    Parameters
    ----------
    w : array-like of shape (n_features,) or (n_targets, n_features)
        Weights; one row for each class of a joint loss, or for each target.
    b : float or array-like
        Intercept.
    X, y : array-like
        The data of the fit; classes may have any names, the larger of two is the positive one.
    loss, lam, l1_ratio
        As in `Problem`; `l1_ratio` may be 1.
    fit_intercept : bool, optional
        Whether b was free; by default, whether it is not zero.
    intercept_scaling : float, optional
        If b was regularised as the weight of a constant feature: the value of that feature.
    sample_weight : array-like, optional
        Weights of the rows.
    effort, random_state
        As in `certify`.

    Returns
    -------
    Audit
        As from `certify`.

    Examples
    --------
    >>> import zerogap as zg
    >>> audit = zg.certify_weights([0.5], 0.0, [[1.0], [2.0]], [-1, 1], loss="hinge", lam=0.5)
    >>> audit.at_least <= audit.gap
    True
    """
    loss = as_loss(loss)
    free = bool(np.any(b)) if fit_intercept is None else fit_intercept
    scaling = 0.0 if intercept_scaling is None else positive(intercept_scaling, "intercept_scaling")
    fixed = positive(lam, "lam")
    convention = Convention(loss, lambda total, n: fixed, l1_ratio, free and not scaling, scaling)
    classes = None if loss.task == "regression" else np.unique(np.asarray(y))
    model = bare(np.atleast_2d(np.asarray(w, dtype=np.float64)), b, classes)
    return audit(model, X, y, sample_weight, effort, convention, random_state)


def audit(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    effort: int,
    convention: Convention | None = None,
    random_state: Any = 0,
) -> Audit:
    """Do the work of `certify`."""
    with _reading(model):
        _require_fitted(model)
        programs = _quantile_parts(model, X, y, sample_weight, convention)
        if programs:
            return combined([audit_quantile(part) for part in programs])
        posed_parts = zip(*posed(model, X, y, sample_weight, convention), strict=True)
    return combined([_audit_one(*part, effort, random_state) for part in posed_parts])


@contextmanager
def _reading(model: Any) -> Iterator[None]:
    """Refuse a model that somebody has changed, so that it cannot be read, with what went wrong."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(
            f"{type(model).__name__} cannot be certified, as it is not what a fit leaves, or the "
            f"data are not those of one: {type(error).__name__}: {error}"
        ) from error


def _audit_one(problem: Any, answer: Answer, effort: int, random_state: Any) -> Audit:
    """Certify the answer to one problem, which may have no L2 part."""
    if isinstance(problem, PureL1):
        return audit_pure_l1(problem, answer, effort, random_state)
    return audit_all([problem], [answer], effort, random_state)


def _require_fitted(model: Any) -> None:
    """Refuse a class, and an estimator that has not been fitted."""
    if isinstance(model, type):
        raise ValueError(f"{model.__name__} is a class: give a fitted model of it")
    try:
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)
    except NotFittedError:
        raise ValueError(f"{type(model).__name__} is not fitted: call its fit first") from None


def _quantile_parts(
    model: Any, X: Any, y: Any, sample_weight: Any, convention: Convention | None
) -> list[Part]:
    """Return the parts of a model that are linear programs: all of them, or none."""
    if convention is not None or isinstance(getattr(model, "convention", None), Convention):
        return []
    parts = list(parts_of(Part(model, X, y, sample_weight)))
    found = [part for part in parts if type(part.model).__name__ == "QuantileRegressor"]
    if found and len(found) < len(parts):
        raise UnknownObjective("quantile regressions beside other models: certify them one by one")
    return found


def posed(
    model: Any, X: Any, y: Any, sample_weight: Any, convention: Convention | None = None
) -> tuple[list[Any], list[Answer]]:
    """Return the problems that a model solves on these data, and its answers to them."""
    problems: list[Any] = []
    answers: list[Answer] = []
    known = getattr(model, "convention", None) if convention is None else convention
    for part in parts_of(Part(model, X, y, sample_weight, known)):
        found = _posed_part(part)
        problems += found[0]
        answers += found[1]
    return problems, answers


def _posed_part(part: Part) -> tuple[list[Any], list[Answer]]:
    model, X = part.model, part.X
    kernel = getattr(model, "kernel", "linear")
    require(kernel == "linear", model, f"kernel={kernel!r}")
    if not hasattr(model, "coef_"):
        raise refusal(model)
    convention = convention_of(model) if part.convention is None else part.convention
    if np.ndim(model.coef_) not in (1, 2):
        raise ValueError(f"coef_ must have one or two dimensions, got {np.ndim(model.coef_)}")
    n_features, shape = np.shape(model.coef_)[-1], np.shape(X)
    if len(shape) != 2:
        raise ValueError(f"X must have two dimensions, rows and features, got shape {shape}")
    if shape[1] != n_features:
        raise ValueError(f"the model has {n_features} features, X has {shape[1]}")
    targets, weights = targets_of(model, part.y, part.sample_weight, convention)
    answers = models_of(model, convention, shape[0])
    if len(answers) != len(targets):
        raise ValueError(
            f"the model predicts {len(answers)} targets at once, y has {len(targets)}: give the "
            f"targets of the fit"
        )
    return problems_of(convention, X, targets, weights), answers

"""What a model minimises, and the problems and answers that follow from it on given data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import compute_sample_weight

from zerogap.audit.pure_l1 import PureL1
from zerogap.losses import Loss
from zerogap.problem import Problem
from zerogap.problem.validation import class_factors
from zerogap.rows import DenseRows, as_rows
from zerogap.solvers.protocol import Answer


class UnknownObjective(ValueError):
    """A model minimises nothing that a certificate is known for."""


@dataclass(frozen=True)
class Convention:
    """What a model minimises: loss, weights, penalty, and how it treats its intercept.

    Attributes
    ----------
    loss : Loss
        The loss of a row.
    lam : callable
        Our lambda, from the sum of the weights and the number of rows; one, or one per target.
    l1_ratio : float
        Share of L1 in the penalty; 1 for models that can be audited, and not fitted.
    fit_intercept : bool
        Whether there is an intercept that is not regularised.
    penalised : float
        Value of the constant feature, if the intercept is the weight of one (LIBLINEAR).
    class_weight : dict, "balanced" or None
        Weights of the classes.
    one_class_weighted : bool
        Whether, one against the rest, the rest has weight 1, whatever its class.
    balances_weights : bool
        Whether "balanced" counts sample weights rather than rows.
    scales_weights : bool
        Whether sample weights are divided by their mean.
    """

    loss: Loss
    lam: Callable[[float, int], Any]
    l1_ratio: float = 0.0
    fit_intercept: bool = True
    penalised: float = 0.0
    class_weight: Any = None
    one_class_weighted: bool = False
    balances_weights: bool = True
    scales_weights: bool = False


def require(condition: Any, model: Any, what: str) -> None:
    """Refuse a model with a parameter that no certificate is known for."""
    if not condition:
        raise UnknownObjective(f"{type(model).__name__} with {what} cannot be certified")


def positive(value: Any, name: str) -> float:
    """Return a number above zero, or refuse what is none by its name."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = np.nan
    if not 0.0 < found < np.inf:
        raise ValueError(f"{name} must be a positive, finite number, got {value!r}")
    return found


def from_C(C: Any, factor: float = 1.0) -> Callable[[float, int], float]:
    """Return the lambda of an objective |w|^2/2 + factor C sum s_i phi_i."""
    strength = factor * positive(C, "C")
    return lambda total, n: 1.0 / (strength * total)


def problems_of(
    convention: Convention, X: Any, targets: np.ndarray, weights: np.ndarray
) -> list[Any]:
    """Return one problem per row of targets and weights."""
    rows = data_of(X, convention)
    pure = convention.l1_ratio == 1
    problems: list[Problem | PureL1] = []
    for k, (target, weight) in enumerate(zip(targets, weights, strict=True)):
        lam = np.ravel(convention.lam(float(np.sum(weight)), len(weight)))
        if len(lam) not in (1, len(targets)):
            raise ValueError(
                f"Number of targets and number of penalties do not correspond: "
                f"{len(lam)} != {len(targets)}"
            )
        strength = float(lam[k if len(lam) > 1 else 0])
        free = convention.fit_intercept and not convention.penalised
        given = rows, target, convention.loss, strength, weight, free
        problems.append(PureL1(*given) if pure else Problem(*given, convention.l1_ratio))
    return problems


def data_of(X: Any, convention: Convention) -> Any:
    """Return the rows, with the constant feature of LIBLINEAR's intercept if there is one."""
    rows = as_rows(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if not convention.penalised:
        return rows
    constant = np.full((rows.shape[0], 1), convention.penalised)
    if isinstance(rows, DenseRows):
        return as_rows(np.hstack([rows.X, constant]))
    return as_rows(sparse.hstack([X, constant], format="csr"))


def targets_of(
    model: Any, y: Any, sample_weight: Any, convention: Convention
) -> tuple[np.ndarray, np.ndarray]:
    """Return targets and sample weights, one row of each for every problem of the model."""
    y = np.asarray(y)
    if y.ndim not in (1, 2):
        raise ValueError(f"y must have one or two dimensions, got shape {y.shape}")
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weights.shape != (len(y),):
        raise ValueError(f"sample_weight has shape {weights.shape}, y has {len(y)} rows")
    if len(weights) and not weights.any():
        raise ValueError("sample_weight must contain at least one number that is not zero")
    if convention.scales_weights:
        weights = weights / weights.mean()
    if not hasattr(model, "classes_"):
        targets = y[None, :] if y.ndim == 1 else np.ascontiguousarray(y.T)
        return targets, np.broadcast_to(weights, targets.shape)
    if y.ndim == 2:  # several labels at once: each is there, or is not
        if convention.class_weight is not None:
            weights = weights * compute_sample_weight(convention.class_weight, y)
        targets = np.where(np.ascontiguousarray(y.T) > 0, 1.0, -1.0)
        return targets, np.broadcast_to(weights, targets.shape)
    return _class_targets(model.classes_, y, weights, convention)


def _class_targets(
    classes: np.ndarray, y: np.ndarray, weights: np.ndarray, convention: Convention
) -> tuple[np.ndarray, np.ndarray]:
    """Return codes for a joint model, else one row of signs for each class against the rest."""
    if len(unknown := np.setdiff1d(y, classes)):
        raise ValueError(f"y holds labels that the model was not trained on, such as {unknown[0]}")
    codes = np.searchsorted(classes, y)
    joint = convention.loss.task == "multiclass"
    if joint and len(absent := np.setdiff1d(classes, y)):
        raise ValueError(f"y has no row of class {absent[0]}: give the data of the fit")
    positive = np.arange(len(classes)) if len(classes) > 2 else np.ones(1)
    targets = codes[None, :] if joint else np.where(codes == positive[:, None], 1.0, -1.0)
    if convention.class_weight is not None:
        counted = weights if convention.balances_weights else np.ones(len(y))
        factors = class_factors(convention.class_weight, classes, codes, counted)[codes]
        alone = convention.one_class_weighted and len(targets) > 1
        weights = weights * (np.where(targets > 0, factors, 1.0) if alone else factors)
    return targets, np.broadcast_to(weights, targets.shape)


def models_of(model: Any, convention: Convention, n: int) -> list[Answer]:
    """Return weights, intercept and, if n of them were kept, dual variables of each problem."""
    coefs = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    coefs = np.atleast_2d(np.ascontiguousarray(_real(coefs, "coef_")))
    intercepts = _real(getattr(model, "intercept_", 0.0), "intercept_").ravel()
    for name, values in (("coef_", coefs), ("intercept_", intercepts)):
        if not np.isfinite(values).all():
            place = tuple(map(int, np.argwhere(~np.isfinite(values))[0]))
            raise ValueError(f"{name} holds {values[place]} at {place}: nothing can be certified")
    if len(intercepts) not in (1, len(coefs)):
        raise ValueError(f"there are {len(coefs)} rows of coef_ and {len(intercepts)} intercepts")
    intercepts = np.broadcast_to(intercepts, (len(coefs),))
    if convention.penalised:
        coefs = np.column_stack([coefs, intercepts / convention.penalised])
        intercepts = np.zeros(len(coefs))
    duals = np.atleast_2d(model.dual_coef_) if is_ours(model) else np.empty((len(coefs), 0))
    parts: Any = zip(coefs, intercepts, duals, strict=True)
    if convention.loss.task == "multiclass":
        if len(coefs) == 1:  # two classes, their difference kept: the optimum is symmetric
            coefs, duals = np.vstack([-coefs, coefs]) / 2, np.vstack([-duals, duals])
            intercepts = np.append(-intercepts, intercepts) / 2
        parts = [(coefs, intercepts, np.ascontiguousarray(duals.T))]
    return [(w, b, alpha if len(alpha) == n else None) for w, b, alpha in parts]


def _real(values: Any, name: str) -> np.ndarray:
    """Return numbers as doubles; those of another kind would lose a part without a word."""
    found = np.asarray(values)
    if found.dtype.kind not in "biufO":
        raise ValueError(f"{name} holds {found.dtype}, which are no real numbers")
    try:
        return found.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} holds what is no number: {error}") from None


def is_ours(model: Any) -> bool:
    """Tell whether a model is a LinearClassifier or LinearRegressor: those keep dual variables."""
    return hasattr(model, "lam") and any(package_of(c) == "zerogap" for c in type(model).__mro__)


def package_of(model: Any) -> str:
    """Return the name of the package that a class, or a model's class, is from."""
    cls = model if isinstance(model, type) else type(model)
    return cls.__module__.partition(".")[0]

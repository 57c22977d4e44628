"""The conventions of scikit-learn's linear models: one reader for each family."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight

from zerogap.audit.convention import Convention, from_C, require
from zerogap.audit.losses import SquaredEpsilonInsensitive
from zerogap.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    MulticlassHinge,
    SmoothHinge,
    Softmax,
    Squared,
    SquaredHinge,
)

_SKLEARN_BALANCES_WEIGHTS = "sample_weight" in inspect.signature(compute_class_weight).parameters


def linear_svm(model: Any) -> Convention:
    """LinearSVC and LinearSVR: |w|^2/2 + C sum s_i phi_i, the intercept regularised."""
    eps = float(getattr(model, "epsilon", 0.0))
    names = {  # loss, and how often ours is in theirs
        "hinge": (Hinge(), 1.0),
        "squared_hinge": (SquaredHinge(), 1.0),
        "epsilon_insensitive": (EpsilonInsensitive(eps), 1.0),
        "squared_epsilon_insensitive": (SquaredEpsilonInsensitive(eps), 2.0),
    }
    # Crammer and Singer's method ignores the parameters loss and penalty
    joint = getattr(model, "multi_class", "ovr") == "crammer_singer"
    require(joint or model.loss in names, model, f"loss={model.loss!r}")
    pure = not joint and getattr(model, "penalty", "l2") == "l1"
    require(eps >= 0, model, f"epsilon={eps}")
    scaling = float(model.intercept_scaling) if model.fit_intercept else 0.0
    loss, factor = (MulticlassHinge(), 1.0) if joint else names[model.loss]
    return Convention(
        loss,
        from_C(model.C, factor),
        l1_ratio=float(pure),
        fit_intercept=False,
        penalised=scaling,
        class_weight=getattr(model, "class_weight", None),
        one_class_weighted=True,
        balances_weights=_SKLEARN_BALANCES_WEIGHTS,
    )


def logistic_regression(model: Any) -> Convention:
    """C sum s_i phi_i + penalty; liblinear regularises the intercept, the other solvers do not."""
    named: Any = getattr(model, "penalty", "deprecated")  # scikit-learn 1.10 removes it
    if named == "elasticnet" and model.l1_ratio is None:
        raise ValueError("penalty='elasticnet' needs an l1_ratio between 0 and 1, got None")
    l1_ratio = {"l2": 0.0, "l1": 1.0}.get(named, model.l1_ratio or 0.0)
    multi_class = getattr(model, "multi_class", "auto")  # until scikit-learn 1.7
    require(multi_class in ("auto", "deprecated"), model, f"multi_class={multi_class!r}")
    require(named is not None, model, "no penalty")
    known = ("l1", "l2", "elasticnet", "deprecated")
    require(named in known, model, f"penalty={named!r}")
    return _logistic(model, model.C, float(l1_ratio))


def logistic_regression_cv(model: Any) -> Convention:
    """As LogisticRegression, at the C and l1_ratio that were chosen."""
    require(model.refit, model, "refit=False, whose coefficients are means of those of the folds,")
    strengths, ratios = np.unique(model.C_), np.ravel(model.l1_ratio_)
    require(len(strengths) == 1, model, "a C for each class")
    named = getattr(model, "penalty", "deprecated")
    mixed = named in ("elasticnet", "deprecated")
    chosen = ratios[0] if mixed and ratios[0] is not None else 0.0
    return _logistic(model, float(strengths[0]), 1.0 if named == "l1" else float(chosen))


def _logistic(model: Any, C: Any, l1_ratio: float) -> Convention:
    liblinear = model.solver == "liblinear"
    require(not np.array_equal(C, np.inf), model, "no penalty")
    return Convention(
        Softmax() if len(model.classes_) > 2 and not liblinear else Logistic(),
        from_C(C),
        l1_ratio,
        model.fit_intercept and not liblinear,
        float(model.intercept_scaling) if liblinear and model.fit_intercept else 0.0,
        model.class_weight,
        liblinear,
        _SKLEARN_BALANCES_WEIGHTS,
    )


def sgd(model: Any) -> Convention:
    """1/n sum s_i phi_i + alpha penalty; one against the rest, which has weight 1."""
    eps = float(model.epsilon)
    names = {  # loss, and how often ours is in theirs
        "hinge": (Hinge(), 1.0),
        "squared_hinge": (SquaredHinge(), 1.0),
        "log_loss": (Logistic(), 1.0),
        "modified_huber": (SmoothHinge(2.0), 4.0),
        "squared_error": (Squared(), 1.0),
        "huber": (Huber(eps), 1.0) if eps > 0 else None,
        "epsilon_insensitive": (EpsilonInsensitive(eps), 1.0),
        "squared_epsilon_insensitive": (SquaredEpsilonInsensitive(eps), 2.0),
    }
    passive = model.learning_rate in ("pa1", "pa2")  # passive-aggressive steps use no penalty
    require(not passive, model, f"learning_rate={model.learning_rate!r}")
    require(names.get(model.loss), model, f"loss={model.loss!r}")
    ratios = {"l2": 0.0, "elasticnet": model.l1_ratio, "l1": 1.0}
    require(model.penalty in ratios, model, f"penalty={model.penalty!r}")
    require(model.alpha > 0, model, f"alpha={model.alpha!r}")
    loss, factor = names[model.loss] or (Squared(), 1.0)
    return Convention(
        loss,
        lambda total, n: model.alpha * n / total / factor,
        float(ratios[model.penalty]),
        model.fit_intercept,
        class_weight=getattr(model, "class_weight", None),
        one_class_weighted=True,
        balances_weights=False,
        scales_weights=getattr(model, "_scales_weights", False),
    )


def ridge(model: Any) -> Convention:
    """Sum s_i r_i^2 + alpha |w|^2, which is twice our objective times the sum of the weights."""
    require(not getattr(model, "positive", False), model, "positive=True")
    return ridge_at(model, model.alpha)


def ridge_cv(model: Any) -> Convention:
    """As Ridge, at the alpha that was chosen, which may be one for each target."""
    return ridge_at(model, model.alpha_)


def ridge_at(model: Any, alpha: Any) -> Convention:
    """Ridge regression at an alpha, or at one for each target."""
    strengths = np.asarray(alpha, dtype=np.float64)
    require((strengths > 0).all(), model, f"alpha={alpha!r}")
    return Convention(
        Squared(),
        lambda total, n: strengths / total,
        fit_intercept=getattr(model, "fit_intercept", False),
        class_weight=getattr(model, "class_weight", None),
        balances_weights=False,
    )


def bayesian_ridge(model: Any) -> Convention:
    """Ridge at the precisions that were found: alpha = lambda_ / alpha_."""
    return ridge_at(model, model.lambda_ / model.alpha_)


def elastic_net(model: Any) -> Convention:
    """1/S sum s_i r_i^2 / 2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2); 1 for Lasso."""
    return _elastic_net(model, model.alpha, getattr(model, "l1_ratio", 1.0))


def elastic_net_cv(model: Any) -> Convention:
    """As ElasticNet, at the alpha and the l1_ratio that were chosen."""
    return _elastic_net(model, model.alpha_, getattr(model, "l1_ratio_", 1.0))


def _elastic_net(model: Any, alpha: float, l1_ratio: float) -> Convention:
    require(not getattr(model, "positive", False), model, "positive=True")
    fixed = float(alpha)
    require(fixed > 0, model, f"alpha={fixed!r}")
    return Convention(Squared(), lambda total, n: fixed, float(l1_ratio), model.fit_intercept)


def huber(model: Any) -> Convention:
    """Sum s_i (scale + scale H(r_i / scale)) + alpha |w|^2, at the scale that was found."""
    require(model.alpha > 0, model, f"alpha={model.alpha!r}")
    scale = float(model.scale_)
    return Convention(
        Huber(float(model.epsilon) * scale),
        lambda total, n: model.alpha * scale / total,
        fit_intercept=model.fit_intercept,
    )


def support_vectors(model: Any) -> Convention:
    """SVC and SVR with a linear kernel: |w|^2/2 + C sum s_i phi_i, the intercept free."""
    require(model.kernel == "linear", model, f"kernel={model.kernel!r}")
    classes = getattr(model, "classes_", None)
    return Convention(
        EpsilonInsensitive(float(model.epsilon)) if classes is None else Hinge(),
        from_C(model.C),
        class_weight=None
        if classes is None
        else dict(zip(classes.tolist(), model.class_weight_, strict=True)),
    )

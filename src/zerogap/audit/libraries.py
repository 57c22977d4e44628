"""The conventions of other libraries, by package and class.

Each reader returns models in scikit-learn's shapes, with what they minimise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from zerogap.audit import scikit_learn as sk
from zerogap.audit.convention import Convention, from_C, require
from zerogap.audit.glmnet import glmnet
from zerogap.audit.parts import Part, bare
from zerogap.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Quantile,
    SmoothHinge,
    Softmax,
    Squared,
    SquaredHinge,
)


def _fixed(lam: float) -> Callable[[float, int], float]:
    return lambda total, n: lam


def _mixed(l1: float, l2: float, model: Any) -> dict[str, Any]:
    """Return lam and l1_ratio of l1 |w|_1 + l2 |w|^2 / 2."""
    require(l1 + l2 > 0, model, "no penalty")
    return {"lam": _fixed(l1 + l2), "l1_ratio": l1 / (l1 + l2)}


def cyanure(part: Part) -> list[Part]:
    """1/n sum phi_i + penalty, the intercept free; its squared hinge has a half."""
    model = part.model
    several = len(getattr(model, "classes_", ())) > 2
    joint = several and model.loss in ("logistic", "multiclass-logistic")
    losses: dict[str, tuple[Loss, float]] = {
        "square": (Squared(), 1.0),
        "logistic": (Softmax() if joint else Logistic(), 1.0),
        "multiclass-logistic": (Softmax(), 1.0),
        "sqhinge": (SquaredHinge(), 0.5),
        "squared_hinge": (SquaredHinge(), 0.5),
    }
    require(model.loss in losses, model, f"loss={model.loss!r}")
    strengths = {"l2": (0.0, model.lambda_1), "l1": (model.lambda_1, 0.0)}
    strengths["elasticnet"] = (model.lambda_1, model.lambda_2)
    require(model.penalty in strengths, model, f"penalty={model.penalty!r}")
    (loss, factor), (l1, l2) = losses[model.loss], strengths[model.penalty]
    penalty = _mixed(l1 / factor, l2 / factor, model)
    convention = Convention(loss, fit_intercept=bool(model.fit_intercept), **penalty)
    coef = np.asarray(model.coef_).T if np.ndim(model.coef_) == 2 else model.coef_
    intercept = model.intercept_ if model.fit_intercept else 0.0
    found = bare(coef, intercept, getattr(model, "classes_", None))
    return [replace(part, model=found, convention=convention)]


def snap_ml(part: Part) -> list[Part]:
    """Sum s_i phi_i + regularizer |w|^2 / 2, the intercept the weight of a constant feature."""
    model = part.model
    require(getattr(model, "penalty", None) in (None, "l2"), model, "an l1 penalty")
    require(not model.normalize, model, "normalize=True")
    require(not getattr(model, "privacy", False), model, "privacy=True")
    require(getattr(model, "kernel", "linear") == "linear", model, "a kernel")
    losses: dict[str, Loss] = {"hinge": Hinge(), "squared_hinge": SquaredHinge()}
    name = type(model).__name__.removeprefix("Snap")
    loss = {"LogisticRegression": Logistic(), "LinearRegression": Squared()}.get(name)
    scaling = float(model.intercept_scaling) if model.fit_intercept else 0.0
    convention = Convention(
        losses[model.loss] if loss is None else loss,
        from_C(1.0 / model.regularizer),
        fit_intercept=False,
        penalised=scaling,
        class_weight=getattr(model, "class_weight", None),
        balances_weights=False,
    )
    intercept = np.asarray(model.intercept_) * scaling if model.fit_intercept else 0.0
    found = bare(model.coef_, intercept, getattr(model, "classes_", None))
    return [replace(part, model=found, convention=convention)]


def rehline(part: Part) -> list[Part]:
    """C sum s_i phi_i + |w|^2 / 2, or a mix with |w|_1; the intercept weighs a constant feature."""
    model, given = part.model, part.model.loss or {"name": "QR", "qt": 0.5}
    name = given["name"]
    losses: dict[str, Callable[[], Loss]] = {
        **dict.fromkeys(("hinge", "svm", "SVM"), Hinge),
        **dict.fromkeys(("sSVM", "smooth SVM", "smooth hinge"), lambda: SmoothHinge(1.0)),
        **dict.fromkeys(("squared hinge", "squared svm", "squared SVM"), SquaredHinge),
        **dict.fromkeys(("mae", "MAE", "mean absolute error"), Absolute),
        **dict.fromkeys(
            ("check", "quantile", "quantile regression", "QR"), lambda: Quantile(given["qt"])
        ),
        **dict.fromkeys(("huber", "Huber"), lambda: Huber(given.get("tau", 1.0))),
        **dict.fromkeys(("SVR", "svr"), lambda: EpsilonInsensitive(given["epsilon"])),
    }
    require(name in losses, model, f"loss={name!r}")
    require(not model.constraint, model, "constraints")
    omega = getattr(model, "omega", None)
    require(omega is None or not np.size(omega), model, "weights of features")
    classes: Any = getattr(model, "classes_", None)
    pairs = getattr(model, "multi_class", "") == "ovo" and len(classes) > 2
    require(not pairs, model, "multi_class='ovo'")
    scaling = float(getattr(model, "intercept_scaling", 1.0))
    scaling *= bool(getattr(model, "fit_intercept", False))
    convention = Convention(
        losses[name](),
        from_C(model.C),
        float(getattr(model, "l1_ratio", 0.0)),
        fit_intercept=False,
        penalised=scaling,
        class_weight=getattr(model, "class_weight", None),
        balances_weights=False,
    )
    found = bare(model.coef_, getattr(model, "intercept_", 0.0), classes)
    return [replace(part, model=found, convention=convention)]


def glum(part: Part) -> list[Part]:
    """Half the mean deviance + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2)."""
    model = part.model
    family = type(getattr(model, "_family_instance", model.family)).__name__
    losses: dict[str, Loss] = {"NormalDistribution": Squared(), "BinomialDistribution": Logistic()}
    require(family in losses, model, f"family={model.family!r}")
    require(model.link == "auto", model, f"link={model.link!r}")
    require(not model.scale_predictors, model, "scale_predictors=True")
    usual = all(isinstance(P, str) and P == "identity" for P in (model.P1, model.P2))
    require(usual, model, "penalties of its own")
    chosen = hasattr(model, "alpha_")  # by cross-validation
    alpha = float(model.alpha_ if chosen else model.alpha or 0.0)
    l1_ratio = float(model.l1_ratio_ if chosen else model.l1_ratio)
    penalty = _mixed(alpha * l1_ratio, alpha * (1 - l1_ratio), model)
    convention = Convention(losses[family], fit_intercept=model.fit_intercept, **penalty)
    y = np.asarray(part.y)
    if family == "BinomialDistribution":
        require(np.isin(y, (0, 1)).all(), model, "shares as targets")
        y = np.where(y > 0, 1.0, -1.0)
    return [replace(part, model=bare(model.coef_, model.intercept_), y=y, convention=convention)]


def skglm_svc(part: Part) -> list[Part]:
    """|w|^2 / 2 + C sum hinge_i, without an intercept, whatever `fit_intercept` says."""
    model = part.model
    convention = Convention(Hinge(), from_C(model.C), fit_intercept=False)
    return [replace(part, model=bare(model.coef_, 0.0, model.classes_), convention=convention)]


def skglm_logistic(part: Part) -> list[Part]:
    """1/n sum log-loss + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2)."""
    model = part.model
    convention = Convention(
        Logistic(), _fixed(model.alpha), float(model.l1_ratio), model.fit_intercept
    )
    return [replace(part, convention=convention)]


def skglm_any(part: Part) -> list[Part]:
    """1/n sum datafit_i + penalty."""
    model = part.model
    datafit, penalty = type(model.datafit).__name__, type(model.penalty).__name__
    losses: dict[str, Callable[[], Loss]] = {
        "Quadratic": Squared,
        "Logistic": Logistic,
        "Huber": lambda: Huber(float(model.datafit.delta)),
    }
    require(datafit in losses, model, f"the datafit {datafit}")
    ratios = {"L2": 0.0, "L1": 1.0, "L1_plus_L2": getattr(model.penalty, "l1_ratio", 0.0)}
    require(penalty in ratios, model, f"the penalty {penalty}")
    require(not getattr(model.penalty, "positive", False), model, "positive=True")
    free = bool(getattr(model.solver, "fit_intercept", False))
    convention = Convention(
        losses[datafit](), _fixed(float(model.penalty.alpha)), float(ratios[penalty]), free
    )
    classes = getattr(model, "classes_", None)
    found = bare(model.coef_, model.intercept_ if free else 0.0, classes)
    return [replace(part, model=found, convention=convention)]


def celer(part: Part) -> list[Part]:
    """As scikit-learn's Lasso and ElasticNet; it can weight features, which is refused."""
    model = part.model
    require(getattr(model, "weights", None) is None, model, "weights of features")
    return [replace(part, convention=sk.elastic_net(model))]


def celer_logistic(part: Part) -> list[Part]:
    """C sum log-loss + |w|_1, without an intercept."""
    model = part.model
    convention = Convention(Logistic(), from_C(model.C), 1.0, fit_intercept=False)
    return [replace(part, model=bare(model.coef_, 0.0, model.classes_), convention=convention)]


def as_scikit_learn(part: Part) -> list[Part]:
    """Libraries that follow scikit-learn to the letter."""
    return [replace(part, convention=sk.elastic_net(part.model))]


LIBRARIES: dict[tuple[str, str], Callable[[Part], list[Part]]] = {
    ("celer", "ElasticNet"): celer,
    ("celer", "Lasso"): celer,
    ("celer", "LogisticRegression"): celer_logistic,
    ("cyanure", "Classifier"): cyanure,
    ("cyanure", "L1Logistic"): cyanure,
    ("cyanure", "Lasso"): cyanure,
    ("cyanure", "LinearSVC"): cyanure,
    ("cyanure", "LogisticRegression"): cyanure,
    ("cyanure", "Regression"): cyanure,
    ("glum", "GeneralizedLinearRegressor"): glum,
    ("glum", "GeneralizedLinearRegressorCV"): glum,
    ("rehline", "plqERM_ElasticNet"): rehline,
    ("rehline", "plqERM_Ridge"): rehline,
    ("rehline", "plq_ElasticNet_Classifier"): rehline,
    ("rehline", "plq_ElasticNet_Regressor"): rehline,
    ("rehline", "plq_Ridge_Classifier"): rehline,
    ("rehline", "plq_Ridge_Regressor"): rehline,
    ("skglm", "ElasticNet"): as_scikit_learn,
    ("skglm", "GeneralizedLinearEstimator"): skglm_any,
    ("skglm", "Lasso"): as_scikit_learn,
    ("skglm", "LinearSVC"): skglm_svc,
    ("skglm", "SparseLogisticRegression"): skglm_logistic,
    ("snapml", "LinearRegression"): snap_ml,
    ("snapml", "LogisticRegression"): snap_ml,
    ("snapml", "SnapLogisticRegression"): snap_ml,
    ("snapml", "SnapSVMClassifier"): snap_ml,
    ("snapml", "SupportVectorMachine"): snap_ml,
    ("zerogap", "Glmnet"): glmnet,
}

_GROUPS = "has an L1 penalty of groups of weights"
_SHARED = "has an L1 penalty of the weights of all targets together"

#: package, class -> why no certificate can be given
REFUSED_LIBRARIES: dict[tuple[str, str], str] = {
    ("celer", "GroupLasso"): _GROUPS,
    ("celer", "GroupLassoCV"): _GROUPS,
    ("celer", "MultiTaskLasso"): _SHARED,
    ("celer", "MultiTaskLassoCV"): _SHARED,
    ("rehline", "CQR_Ridge"): "has several quantiles at once",
    ("rehline", "ReHLine"): "has a loss of its own for each row",
    ("rehline", "plqMF_Ridge"): "factorises a matrix, which is not convex",
    ("skglm", "CoxEstimator"): "has a loss that no certificate is known for yet",
    ("skglm", "GroupLasso"): _GROUPS,
    ("skglm", "MCPRegression"): "has a penalty that is not convex",
    ("skglm", "MultiTaskLasso"): _SHARED,
    ("skglm", "WeightedLasso"): "has a penalty of its own for each feature",
}

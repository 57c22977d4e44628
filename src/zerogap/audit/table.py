"""The table of conventions: what each class of each library minimises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zerogap.audit import scikit_learn as sk
from zerogap.audit.convention import Convention, UnknownObjective, is_ours, package_of
from zerogap.audit.libraries import REFUSED_LIBRARIES

_ROWS = "has an L1 penalty of the weights of all targets together"
_GREEDY = "adds feature after feature, and minimises nothing over all of them"
_NO_LOSS = "has a loss that no certificate is known for yet"

#: class -> reader of what a fitted model of scikit-learn minimises
READERS: dict[str, Callable[[Any], Convention]] = {
    "BayesianRidge": sk.bayesian_ridge,
    "ElasticNet": sk.elastic_net,
    "ElasticNetCV": sk.elastic_net_cv,
    "HuberRegressor": sk.huber,
    "Lasso": sk.elastic_net,
    "LassoCV": sk.elastic_net_cv,
    "LassoLars": sk.elastic_net,
    "LassoLarsCV": sk.elastic_net_cv,
    "LassoLarsIC": sk.elastic_net_cv,
    "LinearSVC": sk.linear_svm,
    "LinearSVR": sk.linear_svm,
    "LogisticRegression": sk.logistic_regression,
    "LogisticRegressionCV": sk.logistic_regression_cv,
    "Ridge": sk.ridge,
    "RidgeCV": sk.ridge_cv,
    "RidgeClassifier": sk.ridge,
    "RidgeClassifierCV": sk.ridge_cv,
    "SGDClassifier": sk.sgd,
    "SGDRegressor": sk.sgd,
    "SVC": sk.support_vectors,
    "SVR": sk.support_vectors,
}

#: class -> why no certificate can be given
REFUSED = {
    "ARDRegression": "has a penalty of its own for each feature",
    "AdaBoostClassifier": "keeps no weights of the rows of its models",
    "AdaBoostRegressor": "keeps no weights of the rows of its models",
    "GammaRegressor": _NO_LOSS,
    "Lars": _GREEDY,
    "LarsCV": _GREEDY,
    "LinearDiscriminantAnalysis": "minimises no loss of rows",
    "LinearRegression": "has no penalty",
    "MultiTaskElasticNet": _ROWS,
    "MultiTaskElasticNetCV": _ROWS,
    "MultiTaskLasso": _ROWS,
    "MultiTaskLassoCV": _ROWS,
    "OneClassSVM": _NO_LOSS,
    "OrthogonalMatchingPursuit": _GREEDY,
    "OrthogonalMatchingPursuitCV": _GREEDY,
    "PassiveAggressiveClassifier": "minimises nothing over all rows",
    "PassiveAggressiveRegressor": "minimises nothing over all rows",
    "Perceptron": "minimises a loss whose optimum is w = 0",
    "PoissonRegressor": _NO_LOSS,
    "SGDOneClassSVM": _NO_LOSS,
    "StackingClassifier": "trains its last model on predictions that it does not keep",
    "StackingRegressor": "trains its last model on predictions that it does not keep",
    "TheilSenRegressor": "is a median of fits to parts of the rows",
    "TweedieRegressor": _NO_LOSS,
}


def convention_of(model: Any) -> Convention:
    """Read from a fitted model what it minimises."""
    if is_ours(model):
        given = model.lam
        return Convention(
            model._loss(),
            lambda total, n: 1.0 / total if given is None else given,
            model.l1_ratio,
            model.fit_intercept,
            class_weight=getattr(model, "class_weight", None),
        )
    name = _name_of(model)
    if name in READERS:
        return READERS[name](model)
    raise refusal(model)


def refusal(model: Any) -> UnknownObjective:
    """Return an error that says why a model cannot be certified, by name."""
    package, name = package_of(model), _name_of(model)
    key = package, type(model).__name__
    if name in REFUSED or key in REFUSED_LIBRARIES:
        why = REFUSED_LIBRARIES.get(key) or REFUSED[name]
        return UnknownObjective(
            f"{key[1] if key in REFUSED_LIBRARIES else name} cannot be certified: it {why}"
            + "; with loss= and lam= it is measured against another objective"
            * hasattr(model, "coef_")
        )
    name = type(model).__name__
    if not hasattr(model, "coef_"):
        return UnknownObjective(
            f"{name} cannot be certified: it has no coef_, and no linear models that are known"
        )
    return UnknownObjective(
        f"no convention is known for {name} of {package}: give loss= and lam=, or use one of "
        f"{', '.join(sorted(READERS))}"
    )


def _name_of(model: Any) -> str:
    """Return the name of a class of scikit-learn or of ours; a subclass of ours minimises alike."""
    cls = next((c for c in type(model).__mro__ if package_of(c) == "zerogap"), type(model))
    return cls.__name__ if package_of(cls) in ("sklearn", "zerogap") else ""

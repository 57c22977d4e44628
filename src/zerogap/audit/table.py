"""The table of conventions: what each class of each library minimises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zerogap.audit import scikit_learn as sk
from zerogap.audit.convention import Convention, UnknownObjective, is_ours, package_of

_L1 = "has an L1 penalty and no L2 one"
_NO_LOSS = "has a loss that no certificate is known for yet"

#: class -> reader of what a fitted model of scikit-learn minimises
READERS: dict[str, Callable[[Any], Convention]] = {
    "BayesianRidge": sk.bayesian_ridge,
    "ElasticNet": sk.elastic_net,
    "ElasticNetCV": sk.elastic_net_cv,
    "HuberRegressor": sk.huber,
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
    "GammaRegressor": _NO_LOSS,
    "Lasso": _L1,
    "LassoCV": _L1,
    "LassoLars": _L1,
    "LinearRegression": "has no penalty",
    "PassiveAggressiveClassifier": "minimises nothing over all rows",
    "PassiveAggressiveRegressor": "minimises nothing over all rows",
    "Perceptron": "minimises a loss whose optimum is w = 0",
    "PoissonRegressor": _NO_LOSS,
    "SGDOneClassSVM": _NO_LOSS,
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
    cls = next((c for c in type(model).__mro__ if package_of(c) == "zerogap"), type(model))
    name = cls.__name__  # a subclass of our own minimises the same
    if package_of(cls) in ("sklearn", "zerogap"):
        if name in READERS:
            return READERS[name](model)
        if name in REFUSED:
            raise UnknownObjective(
                f"{name} cannot be certified: it {REFUSED[name]}; with loss= and lam= it is "
                f"measured against another objective"
            )
    raise UnknownObjective(
        f"no convention is known for {name}: give loss= and lam=, or use one of "
        f"{', '.join(sorted(READERS))}"
    )

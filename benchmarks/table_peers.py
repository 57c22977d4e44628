"""scikit-learn's solvers of what a raw table's fit minimises, with their default settings.

A peer is listed only where it minimises the same objective: LIBLINEAR regularises the intercept,
so it takes part in fits without one; where nothing else has a free intercept or an L1 share, there
are stochastic gradients.  Nothing in scikit-learn minimises the smooth hinge or the quantile loss
with an L2 penalty, or the logistic loss one against the rest with a free intercept.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import (
    ElasticNet,
    LogisticRegression,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.svm import LinearSVC, LinearSVR

import zerogap as zg
from raw_cases import Case


@dataclass(frozen=True)
class Peer:
    """One way to ask scikit-learn for the optimum of a case."""

    name: str
    losses: tuple[str, ...]
    suits: Callable[[Case], bool]
    make: Callable[[Case], Any]


def _is_plain(case: Case) -> bool:
    return case.l1_ratio == 0


def _liblinear_suits(case: Case) -> bool:
    return _is_plain(case) and not case.fit_intercept


def _is_joint_or_binary(case: Case) -> bool:
    """Whether LogisticRegression's choice, softmax from three classes on, is the case's loss."""
    return (case.name == "softmax") == (case.table.target == "multiclass")


def _logistic(solver: str) -> Callable[[Case], Any]:
    def make(case: Case) -> Any:
        options = {"solver": solver, "C": case.C, "fit_intercept": case.fit_intercept}
        if case.l1_ratio:
            options |= {"l1_ratio": case.l1_ratio, "random_state": 0}
        return LogisticRegression(**options)

    return make


def _liblinear(case: Case) -> Any:
    options = {"C": case.C, "fit_intercept": False, "random_state": 0}
    if case.name == "multiclass-hinge":
        return LinearSVC(multi_class="crammer_singer", **options)
    if case.is_regression:
        return LinearSVR(epsilon=getattr(case.loss, "eps", 0.0), **options)
    return LinearSVC(loss=case.name.replace("-", "_"), **options)


def _ridge(case: Case) -> Any:
    solver = "auto" if sparse.issparse(case.table.X) else "cholesky"  # which takes dense ones only
    return Ridge(1.0 / case.C, solver=solver, fit_intercept=case.fit_intercept)


def _elastic_net(case: Case) -> Any:
    return ElasticNet(case.lam, l1_ratio=case.l1_ratio, fit_intercept=case.fit_intercept)


def _sgd(case: Case) -> Any:
    n = len(case.table.y)
    options = {
        "alpha": case.lam * case.total_weight / n,  # its loss is a sum over n, not over weights
        "fit_intercept": case.fit_intercept,
        "random_state": 0,
    }
    if case.l1_ratio:
        options |= {"penalty": "elasticnet", "l1_ratio": case.l1_ratio}
    if case.name == "huber":
        return SGDRegressor("huber", epsilon=case.loss.delta, **options)
    if case.is_regression:
        return SGDRegressor(
            "epsilon_insensitive", epsilon=getattr(case.loss, "eps", 0.0), **options
        )
    return SGDClassifier(case.name.replace("-", "_"), **options)


SVM = ("hinge", "squared-hinge", "multiclass-hinge", "absolute", "epsilon-insensitive")
SGD = ("hinge", "squared-hinge", "absolute", "epsilon-insensitive", "huber")
PEERS = (
    *(
        Peer(
            solver,
            ("logistic", "softmax"),
            lambda case: _is_plain(case) and _is_joint_or_binary(case),
            _logistic(solver),
        )
        for solver in ("newton-cholesky", "lbfgs")
    ),
    Peer(
        "saga",
        ("logistic", "softmax"),
        lambda case: case.l1_ratio > 0 and _is_joint_or_binary(case),
        _logistic("saga"),
    ),
    Peer("LIBLINEAR", SVM, _liblinear_suits, _liblinear),
    Peer("Ridge", ("squared",), _is_plain, _ridge),
    Peer("ElasticNet", ("squared",), lambda case: case.l1_ratio > 0, _elastic_net),
    Peer("SGD", SGD, lambda case: case.name == "huber" or not _liblinear_suits(case), _sgd),
)


def peers_of(case: Case) -> list[Peer]:
    """Return the peers that minimise what the case's fit minimises."""
    return [peer for peer in PEERS if case.name in peer.losses and peer.suits(case)]


def fit_peer(peer: Peer, case: Case) -> tuple[float, float]:
    """Return seconds of `fit` and our objective at what it found, infinite if it failed.

    The table is handed over in float64: some solvers compute in the type that they are given.
    """
    X, model = case.table.X.astype(np.float64), peer.make(case)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        try:
            model.fit(X, case.table.y, sample_weight=case.weights)
            seconds = time.perf_counter() - start
            return seconds, objective(case, X, model)
        except Exception:  # whatever it is, there is no model
            return time.perf_counter() - start, float("inf")


def objective(case: Case, X: Any, model: Any) -> float:
    """Return P at a model's weights, summed over the classes that are separated one by one."""
    coefs, intercepts = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    coefs = np.ascontiguousarray(coefs, dtype=np.float64)
    if not np.isfinite(coefs).all() or not np.isfinite(intercepts).all():
        return float("inf")
    intercepts = np.broadcast_to(intercepts, len(coefs)).astype(np.float64)
    common = (case.loss, case.lam, case.weights, case.fit_intercept, case.l1_ratio)
    if case.is_regression:
        return zg.Problem(X, case.table.y, *common).primal(coefs[0], float(intercepts[0]))
    labels = np.unique(case.table.y)
    if case.loss.task == "multiclass":
        codes = np.searchsorted(labels, case.table.y)
        return zg.Problem(X, codes, *common).primal(coefs, intercepts)
    positives = labels if len(labels) > 2 else labels[1:]
    return sum(
        zg.Problem(X, np.where(case.table.y == label, 1.0, -1.0), *common).primal(w, float(b))
        for label, w, b in zip(positives, coefs, intercepts, strict=True)
    )

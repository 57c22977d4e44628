"""The contenders: what each can solve, how it is asked to, and the tolerances it is swept over.

All minimise 1/n sum phi(x_i.w, y_i) + lam/2 |w|^2, with C = 1 / (lam n): without an intercept or,
on raw data, with one.  Those that have no free intercept get a column of ones there instead, whose
weight is regularised: that is what LIBLINEAR minimises by itself.  `race_run.agreement` checks
that they do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from scipy import sparse

import zerogap as zg

Make = Callable[[str, float, int, float], Any]  # (loss, C, rows, tolerance) -> estimator

MANY = 1_000_000  # passes or iterations: tolerances stop a run, not counts
ALONE = {"fit_intercept": False, "max_iter": MANY}
SEEDED = {**ALONE, "random_state": 0}
SMALL = 3_000_000  # values of a set for solvers that are not made for large ones


def decades(first: int, last: int) -> tuple[float, ...]:
    """Return powers of ten, the loosest tolerance first."""
    return tuple(10.0**-k for k in range(first, last + 1))


def anything(X: Any, y: np.ndarray) -> bool:
    return True


@dataclass(frozen=True)
class Contender:
    """A solver with its ladder of tolerances, the loosest first."""

    name: str
    package: str
    losses: tuple[str, ...]
    make: Make
    ladder: tuple[float, ...]
    takes: Callable[[Any, np.ndarray], bool] = anything
    prepare: Callable[[Any, np.ndarray], tuple] = lambda X, y: (X, y)  # not timed
    compiles: bool = False  # in Python, once per process: warmed before the processes part
    free_intercept: bool = False  # has one that is not regularised

    def missing(self) -> str:
        """Return why the contender cannot run here, if it cannot."""
        try:
            version(self.package)
        except PackageNotFoundError:
            return f"{self.package} is not installed: pip install --group bench"
        return ""


def zerogap(solver: Any, targets: tuple[float, ...], cap: float) -> Contender:
    """Return ours: one call of `fit` per target."""

    def make(loss: str, C: float, n: int, tol: float) -> Any:
        kind = zg.LinearRegressor if loss in ("squared", "absolute") else zg.LinearClassifier
        return kind(
            loss=loss,
            lam=1.0 / (C * n),
            fit_intercept=False,
            solver=solver,
            tol=tol,
            max_epochs=MANY,
            max_seconds=cap,
            random_state=0,
        )

    return Contender("zerogap", "zerogap", (), make, targets, compiles=True, free_intercept=True)


def liblinear(dual: bool) -> Make:
    """Return LIBLINEAR's coordinate descent (dual) or Newton method (primal) in scikit-learn."""

    def make(loss: str, C: float, n: int, tol: float) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC, LinearSVR

        options = {"dual": dual, "tol": tol, **SEEDED}
        if loss == "logistic":
            return LogisticRegression(solver="liblinear", C=C, **options)
        if loss == "absolute":
            return LinearSVR(epsilon=0.0, C=C, **options)
        if loss == "squared":  # ours is half the square
            return LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.0, C=C / 2, **options)
        if loss == "multiclass-hinge":
            return LinearSVC(multi_class="crammer_singer", C=C, tol=tol, **SEEDED)
        return LinearSVC(loss=loss.replace("-", "_"), C=C, **options)

    return make


class Official:
    """LIBLINEAR's own Python package as an estimator."""

    def __init__(self, solver: int, C: float, tol: float) -> None:
        self.options = f"-s {solver} -c {C!r} -e {tol!r} -p 0 -q"

    @staticmethod
    def prepare(X: Any, y: np.ndarray) -> tuple:
        from liblinear.liblinearutil import problem

        return (problem(y, sparse.csr_matrix(X, dtype=float)),)

    def fit(self, problem: Any) -> Official:
        from liblinear.liblinearutil import parameter, train

        self.model = train(problem, parameter(self.options))
        return self

    @property
    def coef_(self) -> np.ndarray:
        w = np.ctypeslib.as_array(self.model.w, (self.model.get_nr_feature(),))
        is_classifier = self.model.param.solver_type < 11
        return w * self.model.get_labels()[0] if is_classifier else w.copy()


def official(solvers: dict[str, int]) -> Make:
    def make(loss: str, C: float, n: int, tol: float) -> Any:
        return Official(solvers[loss], C / 2 if loss == "squared" else C, tol)

    return make


def logistic(solver: str) -> Make:
    """Return one of the methods of scikit-learn's LogisticRegression."""

    def make(loss: str, C: float, n: int, tol: float) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(solver=solver, C=C, tol=tol, **SEEDED)

    return make


def ridge(solver: str) -> Make:
    def make(loss: str, C: float, n: int, tol: float) -> Any:
        from sklearn.linear_model import Ridge

        return Ridge(1.0 / C, solver=solver, tol=tol, **SEEDED)

    return make


def sgd(loss: str, C: float, n: int, passes: float) -> Any:
    """Return stochastic gradients, swept over passes: its own test only sees a noisy loss."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    options = {"alpha": 1.0 / (C * n), "max_iter": int(passes), "tol": None}
    options |= {"fit_intercept": False, "random_state": 0}
    if loss == "squared":
        return SGDRegressor("squared_error", learning_rate="optimal", **options)
    if loss == "absolute":
        kind = "epsilon_insensitive"
        return SGDRegressor(kind, epsilon=0.0, learning_rate="optimal", **options)
    return SGDClassifier("log_loss" if loss == "logistic" else loss.replace("-", "_"), **options)


def snapml(threads: int) -> Make:
    def make(loss: str, C: float, n: int, tol: float) -> Any:
        from snapml import LinearRegression, LogisticRegression, SupportVectorMachine

        options = {"regularizer": 1.0 / C, "tol": tol, "n_jobs": threads, **SEEDED}
        if loss == "logistic":
            return LogisticRegression(**options)
        if loss == "squared":
            return LinearRegression(**options)
        return SupportVectorMachine(loss=loss.replace("-", "_"), **options)

    return make


def cyanure(loss: str, C: float, n: int, tol: float) -> Any:
    from cyanure.estimators import Classifier, Regression

    options = {"penalty": "l2", "tol": tol, "verbose": False, "n_threads": 1, **SEEDED}
    lam = 1.0 / (C * n)
    if loss == "squared":
        return Regression(lambda_1=lam, **options)
    if loss == "logistic":
        return Classifier("logistic", lambda_1=lam, **options)
    return Classifier("sqhinge", lambda_1=lam / 2, **options)  # half of our squared hinge


class SkglmSmooth:
    """skglm's solver for smooth problems, for which it has no estimator."""

    def __init__(self, datafit: Any, penalty: Any, solver: Any) -> None:
        self.datafit, self.penalty, self.solver = datafit, penalty, solver

    def fit(self, X: Any, y: np.ndarray) -> SkglmSmooth:
        self.coef_ = self.solver.solve(X, y, self.datafit, self.penalty)[0]
        return self


def skglm(loss: str, C: float, n: int, tol: float) -> Any:
    from skglm import LinearSVC
    from skglm.datafits import Logistic, Quadratic
    from skglm.penalties import L2
    from skglm.solvers import LBFGS

    if loss == "hinge":
        return LinearSVC(C=C, tol=tol, max_iter=10_000, fit_intercept=False)
    datafit = Logistic() if loss == "logistic" else Quadratic()
    return SkglmSmooth(datafit, L2(1.0 / (C * n)), LBFGS(MANY, tol))


def by_columns(X: Any, y: np.ndarray) -> tuple:
    """Return what skglm and glum take: the values of each column together."""
    return X.tocsc() if sparse.issparse(X) else np.asfortranarray(X), y


def small(X: Any, y: np.ndarray) -> bool:
    return X.shape[0] * X.shape[1] <= SMALL


def narrow(X: Any, y: np.ndarray) -> bool:
    classes = len(np.unique(y)) if y.dtype.kind == "i" else 1
    return X.shape[1] * classes <= 3000


def short_or_narrow(X: Any, y: np.ndarray) -> bool:
    return min(X.shape) <= 3000


def rehline(loss: str, C: float, n: int, tol: float) -> Any:
    from rehline import plqERM_Ridge

    name = {"squared-hinge": "squared hinge", "absolute": "mae"}.get(loss, loss)
    return plqERM_Ridge({"name": name}, C=C, max_iter=MANY, tol=tol)


class ZeroOrOne:
    """An estimator whose classes are 0 and 1 instead of -1 and +1."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: np.ndarray) -> ZeroOrOne:
        self.model.fit(X, (y > 0).astype(float))
        self.coef_, self.intercept_ = self.model.coef_, self.model.intercept_
        return self

    def set_params(self, **options: Any) -> ZeroOrOne:
        self.model.set_params(**options)
        return self


def glum(loss: str, C: float, n: int, tol: float) -> Any:
    from glum import GeneralizedLinearRegressor

    options = {"alpha": 1.0 / (C * n), "gradient_tol": tol, **ALONE}
    if loss == "logistic":
        return ZeroOrOne(GeneralizedLinearRegressor(family="binomial", **options))
    return GeneralizedLinearRegressor(family="normal", **options)


ALL_LOSSES = ("hinge", "squared-hinge", "logistic", "absolute", "squared")
MULTICLASS = ("softmax", "multiclass-hinge")
SMOOTH = ("squared-hinge", "logistic", "squared")
SKLEARN, OFFICIAL = "scikit-learn", "liblinear-official"
DUAL = {"hinge": 3, "squared-hinge": 1, "logistic": 7, "squared": 12, "absolute": 13}
PRIMAL = {"squared-hinge": 2, "logistic": 0, "squared": 11}
SNAPML = ("hinge", "squared-hinge", "logistic", "squared")
PASSES = (3, 10, 30, 100, 300, 1000)

PEERS = (
    Contender(
        *("LIBLINEAR dual", SKLEARN, (*ALL_LOSSES, "multiclass-hinge"), liblinear(True)),
        decades(0, 12),
    ),
    Contender("LIBLINEAR primal", SKLEARN, SMOOTH, liblinear(False), decades(1, 12)),
    Contender(
        *("official dual", OFFICIAL, ALL_LOSSES, official(DUAL), decades(0, 12)),
        prepare=Official.prepare,
    ),
    Contender(
        *("official primal", OFFICIAL, SMOOTH, official(PRIMAL), decades(1, 12)),
        prepare=Official.prepare,
    ),
    *(
        Contender(
            *(method, SKLEARN, ("logistic", "softmax"), logistic(method), decades(1, 12)),
            takes=narrow if method == "newton-cholesky" else anything,
            free_intercept=True,
        )
        for method in ("newton-cg", "newton-cholesky", "lbfgs", "saga")
    ),
    Contender("SGD", SKLEARN, ALL_LOSSES, sgd, PASSES, free_intercept=True),
    Contender(
        *("Ridge direct", SKLEARN, ("squared",), ridge("cholesky"), (1e-4,)),
        takes=short_or_narrow,
        free_intercept=True,
    ),
    Contender(
        *("Ridge cg", SKLEARN, ("squared",), ridge("sparse_cg"), decades(1, 12)),
        free_intercept=True,
    ),
    Contender("snapml", "snapml", SNAPML, snapml(1), decades(1, 12)),
    Contender(
        *("snapml, all cores", "snapml", SNAPML, snapml(os.cpu_count() or 1), decades(1, 12))
    ),
    Contender("cyanure", "cyanure", SMOOTH, cyanure, decades(2, 12)),
    Contender(
        *("skglm", "skglm", ("hinge", "logistic", "squared"), skglm, decades(1, 12)),
        takes=small,
        prepare=by_columns,
        compiles=True,
    ),
    Contender(
        "ReHLine", "rehline", ("hinge", "squared-hinge", "absolute"), rehline, decades(1, 12)
    ),
    Contender(
        *("glum", "glum", ("logistic", "squared"), glum, decades(1, 12)),
        takes=narrow,
        prepare=by_columns,
        free_intercept=True,
    ),
)

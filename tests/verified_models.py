"""Proves every model that is fitted while this is on, and has the proof checked by the verifier."""

import contextlib
import functools

import numpy as np

import zerogap as zg
from zerogap import verify
from zerogap.estimators import LinearClassifier, LinearRegressor
from zerogap.model_io import prove

MOST = 200_000  # numbers of a matrix: the verifier takes a tenth of a second for them


@contextlib.contextmanager
def verified_models(as_asked=False):
    """Yield a list of the names of losses, one for each model that was fitted and verified.

    Each proof shows the gap of the certificate or, where that will do, the gap that was asked for.
    """
    checked: list[str] = []
    before = {cls: cls.fit for cls in (LinearClassifier, LinearRegressor)}
    for cls, fit in before.items():
        cls.fit = _proving(fit, checked, as_asked)
    try:
        yield checked
    finally:
        for cls, fit in before.items():
            cls.fit = fit


def _proving(fit, checked, as_asked):
    @functools.wraps(fit)
    def fit_and_prove(self, X, y=None, sample_weight=None, *more, **named):
        before = _copy(X)
        fit(self, X, y, sample_weight, *more, **named)
        with contextlib.suppress(_NotProvable):
            _require(np.array_equal(before, _copy(X), equal_nan=True))
            _prove(self, X, y, sample_weight, as_asked)
            checked.append(type(self._loss()).__name__)
        return self

    return fit_and_prove


class _NotProvable(Exception):
    """Rows in a store or on a GPU, a loss of one's own, several targets, or too many numbers.

    Or rows that changed while they were fitted, or labels that no row with a weight has.
    """


def _require(condition):
    if not condition:
        raise _NotProvable


def _copy(X):
    """Return the numbers of an array or a matrix, nothing for other rows."""
    if hasattr(X, "indptr") and X.data.dtype.kind in "fiub":
        X = np.concatenate([X.data, X.indices, X.indptr], dtype=np.float64)
    return X.copy() if isinstance(X, np.ndarray) and X.dtype.kind in "fiub" else np.empty(0)


def _prove(model, X, y, sample_weight, as_asked=False):
    plain = isinstance(X, np.ndarray) or hasattr(X, "indptr") or hasattr(X, "to_numpy")
    plain = plain and getattr(X, "dtype", np.dtype(float)).kind in "fiub"
    small = plain and np.prod(np.shape(X)) <= MOST and model.dual_coef_.size <= MOST
    _require(small and type(model._loss()) in zg.losses.ALL_LOSSES.values() and np.ndim(y) == 1)
    _require(set(np.unique(y)) <= set(getattr(model, "classes_", y)))
    proof = prove(model, X, y, sample_weight, effort=30)
    rows = X.to_numpy() if hasattr(X, "to_numpy") else X
    rows = rows.tocsr(copy=True) if hasattr(rows, "tocsr") else np.asarray(rows)
    if hasattr(rows, "sum_duplicates"):  # whatever the flag of sorted indices says
        rows = type(rows)((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        rows.sum_duplicates()
    answer, reason, found = verify.verify(proof, rows, np.asarray(y), sample_weight)
    assert answer == "true", (answer, reason, model)
    said = model.certificate_
    proved = float(sum(P[1] - D[0] for P, D in found))
    allowed = 1.000001 * said.gap + 1e-13 * abs(said.primal)
    if as_asked:
        done = said.stop_reason == "converged"
        allowed = max(allowed, model.tol * abs(said.primal), said.floor) if done else np.inf
    assert proved <= allowed, (model, said, proved)


def model_of(problem, run):
    """Return the estimator that a result is."""
    kind = LinearRegressor if problem.loss.task == "regression" else LinearClassifier
    given = {"fit_intercept": problem.fit_intercept, "l1_ratio": problem.l1_ratio}
    model = kind(problem.loss, lam=problem.lam, **given)
    model.coef_, model.intercept_, model.dual_coef_ = run.w, run.b, run.alpha
    if kind is LinearClassifier:
        model.classes_ = np.unique(problem.y)
        model.coef_, model.dual_coef_ = np.atleast_2d(run.w), np.atleast_2d(run.alpha.T)
        model.intercept_ = np.atleast_1d(run.b)
    model.certificate_ = run.certificate
    return model


def verify_result(problem, run):
    """Have the proof of a result of `solve` checked."""
    rows = problem.rows.X if hasattr(problem.rows, "X") else problem.rows._matrix()
    weights = problem.weight if len(problem.weight) else None
    _prove(model_of(problem, run), rows, problem.y, weights)

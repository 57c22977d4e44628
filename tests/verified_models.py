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
def verified_models():
    """Yield a list of the names of losses, one for each model that was fitted and verified."""
    checked: list[str] = []
    before = {cls: cls.fit for cls in (LinearClassifier, LinearRegressor)}
    for cls, fit in before.items():
        cls.fit = _proving(fit, checked)
    try:
        yield checked
    finally:
        for cls, fit in before.items():
            cls.fit = fit


def _proving(fit, checked):
    @functools.wraps(fit)
    def fit_and_prove(self, X, y, sample_weight=None, *more, **named):
        fit(self, X, y, sample_weight, *more, **named)
        with contextlib.suppress(_NotProvable):
            _prove(self, X, y, sample_weight)
            checked.append(type(self._loss()).__name__)
        return self

    return fit_and_prove


class _NotProvable(Exception):
    """Rows in a store or on a GPU, a loss of one's own, or too many numbers."""


def _prove(model, X, y, sample_weight):
    plain = isinstance(X, np.ndarray) or hasattr(X, "indptr") or hasattr(X, "to_numpy")
    plain = plain and getattr(X, "dtype", np.dtype(float)).kind in "fiub"
    small = plain and np.prod(np.shape(X)) <= MOST and model.dual_coef_.size <= MOST
    if not small or type(model._loss()) not in zg.losses.ALL_LOSSES.values():
        raise _NotProvable
    proof = prove(model, X, y, sample_weight, effort=30)
    rows = X.to_numpy() if hasattr(X, "to_numpy") else X
    rows = rows.tocsr() if hasattr(rows, "tocsr") else np.asarray(rows)
    answer, reason, found = verify.verify(proof, rows, np.asarray(y), sample_weight)
    assert answer == "true", (answer, reason, model)
    said = model.certificate_
    proved = float(sum(P[1] - D[0] for P, D in found))
    allowed = 1.000001 * said.gap + 1e-13 * abs(said.primal)
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

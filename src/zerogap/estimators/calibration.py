r"""Probabilities from scores: Platt's sigmoid, fitted to scores of rows that a model has not seen.

A model's scores of its own training rows are too good.  Those of the models without each row are
known from one fit for all rows whose dual variable is zero, which change nothing when they leave,
and take a short fit from there for each of the others (`zerogap.leave_one_out`).  For many rows or
classes, scores of models without a fold take their place.

The sigmoid 1 / (1 + exp(-(slope z + offset))) is itself a certified logistic regression in one
feature, with Platt's targets (n+ + 1) / (n+ + 2) and 1 / (n- + 2) in place of 1 and 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from zerogap.leave_one_out.models import leave_one_out_of
from zerogap.losses import Logistic
from zerogap.problem import Problem
from zerogap.problem.certificate import Certificate
from zerogap.solvers import Auto, solve

MOST_LEFT_OUT = 2_000  # rows up to which each is left out: 0.1 to 10 s on one core
# Of left-out scores, in units of their mean size: blurs a probability by .005 at most
WIDTH_OF_SCORES = 0.02
LAM_OF_SIGMOID = 1e-6  # of the sigmoid, whose feature has size 1: bends a slope by about as much


@dataclass(frozen=True)
class Calibration:
    """What turns scores into probabilities.

    Attributes
    ----------
    slope, offset : ndarray of shape (1,) or (n_classes,)
        The sigmoid of each score.
    scores : "leave-one-out" or "folds"
        Which scores it was fitted to.
    refitted : int
        How many models were fitted for them.
    certificate : Certificate
        Of the sigmoid's own fit.
    """

    slope: np.ndarray
    offset: np.ndarray
    scores: str
    refitted: int
    certificate: Certificate

    def likely(self, scores: np.ndarray) -> np.ndarray:
        """Return one probability for each score."""
        return expit(scores * self.slope + self.offset)


def calibrate(
    model: Any, X: Any, y: Any, sample_weight: Any, scores: str, folds: Any
) -> Calibration:
    """Fit sigmoids to scores of unseen rows, see `LinearClassifier.calibrate`."""
    if scores not in ("auto", "leave-one-out", "folds"):
        raise ValueError(f"scores must be 'auto', 'leave-one-out' or 'folds', got {scores!r}")
    y = np.asarray(y)
    two = len(model.classes_) == 2 and model._loss().task != "multiclass"
    if scores == "auto":
        scores = "leave-one-out" if two and len(y) <= MOST_LEFT_OUT else "folds"
    if scores == "leave-one-out":
        sizes = np.abs(np.asarray(model.decision_function(X)))
        width = WIDTH_OF_SCORES * float(sizes.mean()) if sizes.any() else WIDTH_OF_SCORES
        found = leave_one_out_of(model, X, y, sample_weight, 1e-3, None, width)
        unseen, refitted = _middles(found)[:, None], found.counts["solved"] + found.counts["tied"]
    else:
        unseen, refitted = _cross_fitted(model, X, y, sample_weight, folds)
    codes = np.searchsorted(model.classes_, y)
    signs = np.where(codes[:, None] == np.arange(len(model.classes_)), 1.0, -1.0)
    signs = signs[:, 1:] if unseen.shape[1] == 1 else signs
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    fits = [_sigmoid(z, sign, weights) for z, sign in zip(unseen.T, signs.T, strict=True)]
    slope, offset, certificates = zip(*fits, strict=True)
    certificate = Certificate.combine(list(certificates))
    return Calibration(np.array(slope), np.array(offset), scores, refitted, certificate)


def _middles(found: Any) -> np.ndarray:
    """Return the middle of each row's bounds; where one is infinite, the other."""
    low, high = found.low, found.high
    low, high = np.where(np.isfinite(low), low, high), np.where(np.isfinite(high), high, low)
    return 0.5 * (low + high)


def _cross_fitted(
    model: Any, X: Any, y: np.ndarray, sample_weight: Any, folds: Any
) -> tuple[np.ndarray, int]:
    """Return the scores of each row by a model of the other folds."""
    rows = X if hasattr(X, "shape") else np.asarray(X)
    rows = rows.tocsr() if hasattr(rows, "tocsr") else rows
    take = rows.iloc.__getitem__ if hasattr(rows, "iloc") else rows.__getitem__
    weights = None if sample_weight is None else np.asarray(sample_weight)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=0)
    found: np.ndarray | None = None
    for train, test in splitter.split(np.empty(len(y)), y):
        part = clone(model).set_params(stop="gap", checkpoint=None, callback=None, keep_data=False)
        part.fit(take(train), y[train], None if weights is None else weights[train])
        scores = np.asarray(part.decision_function(take(test))).reshape(len(test), -1)
        found = np.empty((len(y), scores.shape[1])) if found is None else found
        found[test] = scores
    return np.asarray(found), splitter.get_n_splits()


def _sigmoid(
    z: np.ndarray, signs: np.ndarray, weights: np.ndarray
) -> tuple[float, float, Certificate]:
    """Fit a sigmoid to scores: each row counts for both labels, in Platt's shares."""
    size = float(np.sqrt(np.mean(z**2))) or 1.0
    ups = float(weights[signs > 0].sum())
    downs = float(weights[signs < 0].sum())
    share = np.where(signs > 0, (ups + 1.0) / (ups + 2.0), 1.0 / (downs + 2.0))
    feature = np.tile(z / size, 2)[:, None]
    labels = np.repeat([1.0, -1.0], len(z))
    both = np.append(weights * share, weights * (1.0 - share))
    problem = Problem(feature, labels, Logistic(), LAM_OF_SIGMOID, both, fit_intercept=True)
    found = solve(problem, Auto(), tol=1e-9, random_state=0)
    return float(found.w[0]) / size, float(found.b), found.certificate

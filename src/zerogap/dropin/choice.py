"""Choosing a strength of regularisation by cross-validation, folds in threads, each fit proved."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import _check_method_params


@dataclass(frozen=True, eq=False)
class Choice:
    """What is known of a choice by cross-validation.

    Attributes
    ----------
    settings : tuple of dict
        The parameters that were tried.
    scores : ndarray of shape (n_folds, n_settings)
        The score of each model on the rows that it has not seen; more is better.
    gaps : ndarray of shape (n_folds, n_settings)
        Proved: each model is at most this share of its objective above its optimum.
    best : int
        The setting of the largest mean score, the first among equals.
    """

    settings: tuple[dict[str, Any], ...]
    scores: np.ndarray
    gaps: np.ndarray
    best: int

    @property
    def parameters(self) -> dict[str, Any]:
        """The setting that was chosen."""
        return self.settings[self.best]

    @property
    def best_of_folds(self) -> np.ndarray:
        """The setting of the largest score in each fold."""
        return self.scores.argmax(axis=1)

    def first_of(self, shape: tuple[int, ...]) -> Choice:
        """Return the choice that, among equal scores, prefers the first along the last axis."""
        means = self.scores.mean(axis=0).reshape(shape[1:])
        place = np.unravel_index(means.T.argmax(), means.T.shape)
        return replace(self, best=int(np.ravel_multi_index(place[::-1], means.shape)))

    @property
    def standard_error(self) -> float:
        """Standard error, between folds, of the mean score of the chosen setting."""
        column = self.scores[:, self.best]
        return float(column.std(ddof=1) / np.sqrt(len(column)))

    @property
    def within_standard_error(self) -> tuple[dict[str, Any], ...]:
        """The settings whose mean score is within one standard error of the best."""
        means = self.scores.mean(axis=0)
        near = np.flatnonzero(means >= means[self.best] - self.standard_error)
        return tuple(self.settings[k] for k in near)

    def __str__(self) -> str:
        return (
            f"{self.parameters} of {len(self.settings)} settings, score "
            f"{self.scores[:, self.best].mean():.6g} +- {self.standard_error:.2g} over "
            f"{len(self.scores)} folds; {len(self.within_standard_error)} settings are within one "
            f"standard error; every fit is proved within {self.gaps.max():.1e} of its optimum"
        )


def choose(
    make: Callable[[], Any],
    settings: list[dict[str, Any]],
    data: tuple[Any, np.ndarray, np.ndarray | None],
    folds: list[tuple[np.ndarray, np.ndarray]],
    score: Callable[..., float],
    scored: dict[str, Any],
    n_jobs: int | None,
) -> tuple[Choice, list[list[Any]]]:
    """Fit every setting on every fold, and return the choice with all models, fold by fold.

    Settings are fitted in the order given, each from where the last one ended.  `make` makes the
    model of a fold; `scored` has further arguments of the score, by rows.
    """
    X, y, weights = data
    if not settings:
        raise ValueError("there is nothing to choose from: give at least one strength")

    def validate(fold: tuple[np.ndarray, np.ndarray]) -> list[Any]:
        train, test = fold
        seen = None if weights is None else weights[train]
        unseen = _check_method_params(X, scored, indices=test)
        model, found = make(), []
        for setting in settings:
            model.set_params(**setting).fit(X[train], y[train], sample_weight=seen)
            found.append((copy(model), score(model, X[test], y[test], **unseen)))
        return found

    with warnings.catch_warnings(), ThreadPoolExecutor(_threads(n_jobs, folds)) as pool:
        warnings.simplefilter("ignore")  # the choice tells all gaps
        found = list(pool.map(validate, folds))
    models = [[model for model, _ in row] for row in found]
    scores = np.array([[value for _, value in row] for row in found])
    gaps = np.array([[_gap(model) for model in row] for row in models])
    return Choice(tuple(settings), scores, gaps, int(scores.mean(axis=0).argmax())), models


def _gap(model: Any) -> float:
    return np.inf if model.certificate_ is None else model.certificate_.relative_gap


def _threads(n_jobs: int | None, folds: list) -> int:
    return max(1, min(effective_n_jobs(n_jobs), len(folds)))

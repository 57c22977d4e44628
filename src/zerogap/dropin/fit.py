"""One fit for all estimators with scikit-learn's names.

Parameters, their checks, `predict` and the rest are inherited from scikit-learn's own class.  What
it minimises is read by the same table that audits scikit-learn's models (`zerogap.audit.table`).
"""

from __future__ import annotations

import threading
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import is_classifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from zerogap.audit.convention import Convention, UnknownObjective, problems_of, targets_of
from zerogap.audit.table import convention_of
from zerogap.dropin.descent import descended
from zerogap.dropin.direct import direct_answers
from zerogap.dropin.kept import certificate_of
from zerogap.estimators.outputs import joint_model
from zerogap.estimators.threads import run_all
from zerogap.problem import Problem
from zerogap.problem.certificate import Certificate
from zerogap.problem.checks import as_seed
from zerogap.problem.validation import describe_columns, warn_if_short
from zerogap.solvers import Auto, Result, solve
from zerogap.solvers.dual_start import warm_duals
from zerogap.solvers.protocol import Answer

NAMES = {"epochs": "max_iter", "lam": "alpha", "stronger": "raise alpha", "tol": "tol"}
NAMES_OF_C = NAMES | {"lam": "lower C", "stronger": "lower C", "tol": "raise tol"}
SMALLEST_GAP = 1e-20  # relative: below it a run ends at what rounding allows to prove
ANY_GAP = 2.0  # relative: more than that of w = 0, so that a run ends where it starts
ENOUGH_EPOCHS = 10_000  # unless `max_iter` is below scikit-learn's default: no fit has needed more


class NothingProved(UserWarning):
    """A model was fitted by scikit-learn's solver, as no certificate is known for its objective."""


class OnProcessor:
    """Takes arrays of NumPy, and no others by the array API."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.array_api_support = False
        return tags


class DropIn(OnProcessor):
    """Fits what scikit-learn's class of the same name minimises, with a certificate.

    A subclass names scikit-learn's class as its second base and, where its attributes are special,
    overrides `_keep`.
    """

    certificate_: Certificate | None
    _several_targets = False  # whether y may have two dimensions
    _keeps_float32 = True  # whether float32 rows give float32 coefficients, as in scikit-learn
    _given: tuple[Any, Any] | None = None  # coefficients and intercepts to start from

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model to a proved distance from the optimum of scikit-learn's objective.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        self
            The fitted model, with a `certificate_`.
        """
        return self._fit_certified(X, y, sample_weight)

    def _fit_certified(self: Any, X: Any, y: Any, sample_weight: Any, **others: Any) -> Any:
        self._validate_params()
        self._refuse_method(X)
        rows, targets = self._checked(X, y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        try:
            convention = convention_of(self)
            if convention.l1_ratio == 1:
                raise UnknownObjective(
                    f"{type(self).__name__} without an L2 penalty has no solver here, though "
                    f"zerogap.certify audits it"
                )
        except UnknownObjective as reason:
            return self._fit_by_scikit_learn(reason, X, y, sample_weight, others)
        problems = self._posed(rows, targets, sample_weight, convention)
        results = self._solved(problems, convention)
        asked = self._gap(convention)
        dtype = np.float32 if rows.dtype == np.float32 and self._keeps_float32 else np.float64
        coef, intercept = (part.astype(dtype) for part in model_of(results, convention))
        given = (problems, results, coef, intercept, convention, asked)
        self.certificate_ = certificate_of(*given)
        self._keep(coef, intercept, np.ndim(targets))
        lost = self.certificate_.stop_reason in ("stalled", "rounding")
        columns = getattr(self, "feature_names_in_", None)
        warn_if_short(
            self.certificate_,
            asked,
            describe_columns(problems[0].rows, columns) if lost else "",
            names=NAMES_OF_C if hasattr(self, "C") else NAMES,
        )
        if self.certificate_.stop_reason == "interrupted":
            raise KeyboardInterrupt("fit interrupted; the best certified model so far is kept")
        return self

    def _refuse_method(self: Any, X: Any) -> None:
        """Refuse parameters that scikit-learn's methods do not take together."""

    def _posed(
        self: Any, X: Any, y: np.ndarray, sample_weight: Any, convention: Convention
    ) -> list[Problem]:
        """Return the problems whose solutions are the model."""
        return problems_of(convention, X, *targets_of(self, y, sample_weight, convention))

    def _checked(self: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Validate by scikit-learn's rules, and set `classes_`."""
        classifies = is_classifier(self)
        rows, targets = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            multi_output=self._several_targets,
            y_numeric=not classifies,
        )
        if classifies:
            check_classification_targets(targets)
            self._find_classes(targets)
        elif targets.dtype.kind != "f":
            targets = targets.astype(np.float64)
        return rows, targets

    def _find_classes(self: Any, y: np.ndarray) -> None:
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {self.classes_[0]!r}"
            )

    def _fit_by_scikit_learn(
        self: Any, reason: Exception, X: Any, y: Any, sample_weight: Any, others: dict
    ) -> Any:
        warnings.warn(
            f"{reason}; scikit-learn's own solver fits this model, and nothing is proved of it",
            NothingProved,
            stacklevel=4,
        )
        self.certificate_ = None
        return super().fit(X, y, sample_weight=sample_weight, **others)  # type: ignore[misc]

    def _solved(self: Any, problems: list[Problem], convention: Convention) -> list[Result]:
        """Solve all problems, in threads if there are several."""
        given = getattr(self, "random_state", None)  # without one, fits are repeatable, too
        seed = 0 if given is None else as_seed(given)
        seeds = np.random.SeedSequence(seed).generate_state(len(problems))
        starts, stop = self._starts(problems, convention), threading.Event()
        gap, epochs = self._gap(convention), self._epochs()

        def run(k: int) -> Result:
            found = solve(
                problems[k],
                Auto(),
                tol=gap if epochs else ANY_GAP,
                max_epochs=max(1, epochs),
                warm_start=starts[k],
                random_state=int(seeds[k]),
                verbose=int(getattr(self, "verbose", 0)),
                interrupt=stop,
            )
            return found if epochs else _stopped(found)

        if len(problems) == 1:
            return [run(0)]
        jobs = effective_n_jobs(getattr(self, "n_jobs", None))
        return run_all(run, len(problems), jobs, stop)

    def _gap(self: Any, convention: Convention) -> float:
        """Return the relative gap to reach.

        scikit-learn's `tol` bounds a gradient or the like.  Near the optimum of a smooth objective
        a gap is like the square of the gradient, so tol^2 is asked for; where the loss has kinks,
        tol.
        """
        tol = 1e-3 if self.tol is None or self.tol == -np.inf else float(self.tol)
        return max(SMALLEST_GAP, tol**2 if np.isfinite(convention.loss.smoothness) else tol)

    def _epochs(self: Any) -> int:
        """Return how many epochs to run at most: `max_iter`, if it is below its default."""
        default = type(self)().max_iter
        short = self.max_iter is not None and (default is None or self.max_iter < default)
        return int(self.max_iter) if short else ENOUGH_EPOCHS

    def _starts(self: Any, problems: list[Problem], convention: Convention) -> list[Any]:
        """Return where to begin: what was given, direct solutions, or near the previous fit."""
        if self._given is not None:
            coef, b = self._given
            starts = _checked_start(coef, b, len(problems), problems[0].shape[1])
        elif direct := direct_answers(problems, getattr(self, "solver", "auto")):
            return direct
        else:
            starts = self._previous_fit(problems, convention)
        starts = [descended(*pair) for pair in zip(problems, starts, strict=True)]
        return [_with_duals(*pair) for pair in zip(problems, starts, strict=True)]

    def _previous_fit(self: Any, problems: list[Problem], convention: Convention) -> list[Any]:
        """Return the previous fit, if it is to be the start and is alike."""
        none = [None] * len(problems)
        if not getattr(self, "warm_start", False) or getattr(self, "coef_", None) is None:
            return none
        coef = np.atleast_2d(np.asarray(self.coef_, dtype=np.float64))
        b = np.broadcast_to(np.asarray(self.intercept_, dtype=np.float64), (len(coef),))
        if convention.loss.task == "multiclass":
            joint = coef.shape == problems[0].weight_shape and np.isfinite(b).all()
            return [(coef, b, None)] if joint else none
        if convention.penalised:
            coef, b = np.column_stack([coef, b / convention.penalised]), np.zeros(len(coef))
        if coef.shape != (len(problems), problems[0].shape[1]) or not np.isfinite(b).all():
            return none
        return [(w, float(c), None) for w, c in zip(coef, b, strict=True)]

    def _keep(self: Any, coef: np.ndarray, intercept: np.ndarray, dimensions: int) -> None:
        """Set the fitted attributes, in the shapes that scikit-learn gives them."""
        self.coef_, self.n_iter_ = coef, self._epochs_of(self.certificate_)
        self.intercept_ = intercept if self.fit_intercept else 0.0

    def _epochs_of(self: Any, certificate: Certificate) -> int:
        """Return the epochs of a fit: at least one, or none if it began at the previous fit."""
        again = getattr(self, "warm_start", False) and hasattr(self, "n_iter_")
        least = 0 if again or getattr(self, "max_iter", None) == 0 else 1
        return max(least, int(np.ceil(certificate.epochs)))


class RegressorDropIn(DropIn):
    """One target has coefficients of one dimension."""

    def _keep(self: Any, coef: np.ndarray, intercept: np.ndarray, dimensions: int) -> None:
        super()._keep(coef, intercept, dimensions)
        if dimensions == 1:
            self.coef_ = coef[0]
            self.intercept_ = intercept[0] if self.fit_intercept else 0.0


class BinarizedDropIn(DropIn):
    """A classifier by the regression of signs, which takes several labels at once."""

    _several_targets = True

    def _checked(self: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        rows, targets = super()._checked(X, y)
        several = self._label_binarizer.y_type_.startswith("multilabel")
        return rows, targets if several else column_or_1d(targets, warn=True)

    def _find_classes(self: Any, y: np.ndarray) -> None:
        self._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(y)
        self.classes_ = self._label_binarizer.classes_


def _with_duals(problem: Problem, start: Answer | None) -> Answer | None:
    """Return a start with dual variables: `solve` certifies it as it is, before its first step."""
    return start and (*start[:2], warm_duals(problem, start))


def _stopped(result: Result) -> Result:
    """Return where a run of no epochs ended: at its limit, not at the gap that was asked for."""
    reason = "max_epochs"
    return replace(
        result, certificate=replace(result.certificate, stop_reason=reason), stop_reason=reason
    )


def _checked_start(coef: Any, intercept: Any, count: int, d: int) -> list[Any]:
    """Return given coefficients and intercepts, zero where there are none, for each problem."""
    W = np.zeros((count, d)) if coef is None else np.asarray(coef, dtype=np.float64)
    b = np.zeros(count) if intercept is None else np.asarray(intercept, dtype=np.float64)
    if W.size != count * d or (count > 1 and W.shape != (count, d)):
        raise ValueError(f"Provided coef_init does not match dataset: {W.shape}, not {count, d}")
    if b.size != count:
        raise ValueError(f"Provided intercept_init does not match dataset: {b.shape}, not {count}")
    return [(w, float(c), None) for w, c in zip(W.reshape(count, d), b.ravel(), strict=True)]


def model_of(results: list[Result], convention: Convention) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and intercepts, one row for each target or class."""
    if convention.loss.task == "multiclass":
        coef = np.array(results[0].w)
        intercept = np.broadcast_to(results[0].b, (len(coef),))
        if not convention.penalised:  # the same number in all scores changes nothing
            intercept = intercept - intercept.mean()
    else:
        coef = np.array([result.w for result in results])
        intercept = np.array([result.b for result in results], dtype=np.float64)
    if convention.penalised:
        intercept = coef[:, -1] * convention.penalised
        coef = coef[:, :-1]
    if convention.loss.task == "multiclass":
        coef, intercept = joint_model(coef, intercept)
    return np.ascontiguousarray(coef), intercept

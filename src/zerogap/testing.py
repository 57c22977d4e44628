"""Assertions about fitted models, for test suites."""

from __future__ import annotations

from typing import Any

from zerogap.audit import Audit, certify

__all__ = ["assert_near_optimal"]


def assert_near_optimal(model: Any, X: Any, y: Any, tol: float = 1e-3, **options: Any) -> None:
    """Fail unless a fitted linear model is proved to be near the optimum of its own objective.

    Parameters
    ----------
    model, X, y
        As in `zerogap.certify`: a fitted model and the data of its fit.
    tol : float
        Largest distance allowed, as a share of the model's objective.
    **options
        Further arguments of `certify`, such as sample_weight, effort, loss and lam.

    Raises
    ------
    AssertionError
        If the model is further away, or cannot be proved to be that near: the message says which,
        and what is known of the distance.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from zerogap.testing import assert_near_optimal
    >>> X, y = load_diabetes(return_X_y=True)
    >>> assert_near_optimal(Ridge(alpha=2.0).fit(X, y), X, y, tol=1e-8)
    """
    audit: Audit = certify(model, X, y, **options)
    if audit.relative_gap <= tol:
        return
    low, high = audit.at_least / audit.primal, audit.relative_gap
    what = "is not near its optimum" if low > tol else "could not be proved near its optimum"
    raise AssertionError(
        f"{type(model).__name__} {what}: between {low:.2g} and {high:.2g} of its objective above "
        f"it, allowed {tol:.2g} ({audit})"
    )

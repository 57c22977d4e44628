"""Coefficients of glmnet, from R or Python, and what they minimise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from zerogap.audit.convention import Convention, UnknownObjective
from zerogap.audit.parts import Part, bare
from zerogap.losses import Logistic, Loss, Squared


@dataclass(frozen=True, eq=False)
class Glmnet:
    """Coefficients of glmnet at one lambda, for `certify`.

    glmnet minimises 1/n sum phi + lambda ((1 - alpha) / 2 |v|^2 + alpha |v|_1).  With
    ``standardize`` v are the weights of columns divided by their standard deviations.  The
    gaussian family also divides y by its own, which leaves the L1 part as it is and divides the L2
    part by the standard deviation of y.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        ``coef(fit, s = lam)`` without its first row.
    intercept_ : float
        Its first row.
    lam, alpha : float
        ``lambda`` and ``alpha`` of glmnet.
    family : "gaussian" or "binomial"
        Squared or logistic loss; the second class is the positive one.
    standardize, intercept : bool
        As in glmnet.

    Examples
    --------
    >>> import numpy as np, zerogap as zg
    >>> from zerogap.audit import Glmnet
    >>> X = np.array([[0.0], [1.0], [2.0], [4.0]])
    >>> zg.certify(Glmnet([0.5], 1.0, lam=0.1, alpha=0.0), X, X[:, 0]).at_least > 0.0
    True
    """

    coef_: Any
    intercept_: Any
    lam: float
    alpha: float
    family: str = "gaussian"
    standardize: bool = True
    intercept: bool = True


def glmnet(part: Part) -> list[Part]:
    """State the problem on columns divided by their standard deviations."""
    model, y = part.model, np.asarray(part.y)
    losses: dict[str, Loss] = {"gaussian": Squared(), "binomial": Logistic()}
    if model.family not in losses or not 0 <= model.alpha <= 1 or not model.lam > 0:
        raise UnknownObjective(
            f"glmnet with family={model.family!r}, alpha={model.alpha!r} and lam={model.lam!r} "
            f"cannot be certified: families are gaussian and binomial, 0 <= alpha <= 1, lam > 0"
        )
    n = len(y)
    weights = np.ones(n) if part.sample_weight is None else np.asarray(part.sample_weight, float)
    share = weights / weights.sum()
    X = part.X.to_numpy() if hasattr(part.X, "to_numpy") else part.X
    deviations = _deviations(X, share) if model.standardize else np.ones(X.shape[1])
    spread = 1.0
    if model.family == "gaussian":
        targets = y.astype(float)
        middle = share @ targets if model.intercept else 0.0
        spread = float(np.sqrt(share @ (targets - middle) ** 2))
    l1, l2 = model.lam * model.alpha, model.lam * (1.0 - model.alpha) / spread
    scaled = X @ sparse.diags_array(1 / deviations) if sparse.issparse(X) else X / deviations
    convention = Convention(
        losses[model.family], lambda total, n: l1 + l2, l1 / (l1 + l2), bool(model.intercept)
    )
    classes = np.unique(y) if model.family == "binomial" else None
    coef = np.asarray(model.coef_, dtype=float).ravel() * deviations
    found = bare(coef[None, :], model.intercept_, classes)
    return [replace(part, model=found, X=scaled, convention=convention)]


def _deviations(X: Any, share: np.ndarray) -> np.ndarray:
    """Return standard deviations of columns; 1 for constant ones, whose weights are zero."""
    means = X.T @ share
    if sparse.issparse(X):
        found = np.sqrt(np.maximum(0.0, (X.multiply(X)).T @ share - means**2))
    else:
        found = np.sqrt(share @ (X - means) ** 2)
    return np.where(found > 0, found, 1.0)

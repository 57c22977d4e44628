"""A linear model with the data of its fit."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from zerogap.audit.convention import Convention


@dataclass(frozen=True)
class Part:
    """A model with the data it was fitted to, and what it minimises if its type does not say."""

    model: Any
    X: Any
    y: Any
    sample_weight: Any = None
    convention: Convention | None = None

    def rows(self, places: Any) -> dict[str, Any]:
        """Return some rows of the data."""
        weights = self.sample_weight
        return {
            "X": _safe_indexing(self.X, places),
            "y": np.asarray(self.y)[places],
            "sample_weight": None if weights is None else np.asarray(weights)[places],
        }


def bare(coef: Any, intercept: Any = 0.0, classes: Any = None) -> SimpleNamespace:
    """Return coefficients and intercepts as a model in scikit-learn's shapes."""
    model = SimpleNamespace(coef_=np.asarray(coef), intercept_=np.ravel(intercept))
    if classes is not None:
        model.classes_ = np.asarray(classes)
    return model

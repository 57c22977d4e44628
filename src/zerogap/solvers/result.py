"""What a run returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.display import Shown
from zerogap.problem.certificate import Certificate
from zerogap.problem.proving import Proof
from zerogap.solvers.history import History


@dataclass(frozen=True, eq=False, repr=False)
class Result(Shown):
    """What `solve` returns: the model, its dual point, its certificate and the history.

    Attributes
    ----------
    w : ndarray
        Weights; with many classes, one column per class.
    b : float or ndarray
        Intercept, one per class if there are many; 0.0 without.
    alpha : ndarray
        Dual variables that prove the certificate.
    certificate : Certificate
        How far (w, b) is from the optimum.
    history : History
        The certificates along the way.
    stop_reason : str
        Why the run ended, as in the certificate.
    proof : Proof, optional
        What the certificate was computed from, where it was kept.
    """

    w: np.ndarray
    b: float
    alpha: np.ndarray
    certificate: Certificate
    history: History
    stop_reason: str
    proof: Proof | None = None

    def _facts(self) -> Mapping[str, Any]:
        shape = " x ".join(map(str, np.shape(self.w)))
        return {"weights": shape, **self.certificate._facts()}

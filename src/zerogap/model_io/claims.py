"""Whether the certificate in a model file is true, from the data alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.audit import Audit, audit_all, posed
from zerogap.certificate import Certificate
from zerogap.model_io.files import ModelFile
from zerogap.updates import data_fingerprint

_ROUNDING = 1e-9  # relative difference of two sums of the same numbers, at most


@dataclass(frozen=True)
class Recertified:
    """What became of a stored certificate when it was computed again.

    Attributes
    ----------
    claim : "true", "false", "unproved" or "other data"
        "true": the objective is as stored and a gap no larger than the stored one is proved.
        "false": it is not, on the very data of the fit.  "unproved": the objective is as stored,
        but the bound found is weaker than the stored one.  "other data": the model has another
        objective on these data, which are not those of the fit.
    stored : Certificate
        What the file says.
    found : Audit
        What these data prove.
    same_data : bool
        Whether rows, targets and weights are those of the fit, to the bit.
    """

    claim: str
    stored: Certificate
    found: Audit
    same_data: bool

    def __str__(self) -> str:
        gaps = f"stored gap {self.stored.gap:.3g}, proved now {self.found.gap:.3g}"
        primals = f"stored primal {self.stored.primal:.9g}, on these data {self.found.primal:.9g}"
        return {
            "true": f"the certificate is true: {gaps}",
            "false": f"the certificate is false: {primals}, {gaps}",
            "unproved": f"the certificate is not proved: {gaps}; raise the effort, or save the "
            "model with keep_dual=True",
            "other data": f"these are not the data of the fit: {primals}",
        }[self.claim]


def recertify(
    file: ModelFile, X: Any, y: Any, sample_weight: Any = None, *, effort: int = 1000
) -> Recertified:
    """Compute the certificate of a model file from scratch and compare it with the stored one.

    Parameters
    ----------
    file : ModelFile
        From `read`.
    X, y : array-like
        The data that the model was fitted to.
    sample_weight : array-like, optional
        The weights it was fitted with.
    effort : int
        Epochs to spend at most on a bound of one's own, where the file has no dual variables.

    Returns
    -------
    Recertified

    Examples
    --------
    >>> import zerogap as zg
    >>> from tempfile import NamedTemporaryFile
    >>> from zerogap.model_io import read, save
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> with NamedTemporaryFile(suffix=".zg") as file:
    ...     save(zg.LinearClassifier("hinge", random_state=0).fit(X, y), file.name)
    ...     stored = read(file.name)
    >>> recertify(stored, X, y).claim
    'true'
    """
    model = file.model
    problems, answers = posed(model, X, y, sample_weight)
    goals = goals_of(model.certificate_)

    def find(effort: int) -> Audit:
        return audit_all(problems, answers, effort, goals=goals)

    same = data_fingerprint(model, X, y, sample_weight) == file.fingerprint
    return settle(model.certificate_, find, same, effort)


def settle(
    stored: Certificate, find: Callable[[int], Audit], same: bool, effort: int
) -> Recertified:
    """Compare a stored certificate with what `find` proves with so many epochs, first with none."""
    found = find(0)
    pairs = _pairs(stored, found)
    if not all(np.isclose(a.primal, b.primal, _ROUNDING, 1e-300) for a, b in pairs):
        return Recertified("false" if same else "other data", stored, found, same)
    if not all(_proves(b, a) for a, b in pairs):
        found = find(effort)
        pairs = _pairs(stored, found)
    if all(_proves(b, a) for a, b in pairs):
        return Recertified("true", stored, found, same)
    refuted = any(b.at_least > a.gap + _ROUNDING * abs(a.primal) for a, b in pairs)
    return Recertified("false" if refuted else "unproved", stored, found, same)


def goals_of(stored: Certificate) -> list[float]:
    """Return the gaps that prove a stored certificate, one for each of its problems."""
    return [_allowed(part) for part in stored.parts or (stored,)]


def _proves(found: Certificate, stored: Certificate) -> bool:
    return found.gap <= _allowed(stored)


def _allowed(stored: Certificate) -> float:
    """Return the gap that proves the stored one, but for rounding."""
    return 1.000001 * stored.gap + 1e-13 * abs(stored.primal)


def _pairs(stored: Certificate, found: Audit) -> list[tuple[Certificate, Any]]:
    """Return what to compare: the whole and, of several models in one, the parts."""
    parts = zip(stored.parts, found.parts, strict=False)
    return [(stored, found), *parts]

"""Whether what a model file says of itself is true, from the data alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.audit import Audit, audit_all, posed
from zerogap.estimators.updates import data_fingerprint
from zerogap.model_io.files import Model, ModelFile
from zerogap.model_io.parts import allowed_gap
from zerogap.model_io.region_claims import check_regions
from zerogap.problem.certificate import Certificate
from zerogap.regions import KnownRegion, Region
from zerogap.solvers.certifying import gap_floor

_ROUNDING = 1e-9  # relative difference of two sums of the same numbers, at most


@dataclass(frozen=True)
class Recertified:
    """What became of a stored certificate, and of stored regions, when they were computed again.

    Attributes
    ----------
    claim : "true", "false", "unproved" or "other data"
        "true": the objective is as stored, a gap no larger than the stored one is proved, and the
        optimum is proved to lie where the file says, if it does.  "false": one of these is not so,
        on the very data of the fit.  "unproved": the objective is as stored, but what is found is
        weaker than what is stored.  "other data": the model has another objective on these data,
        which are not those of the fit.
    stored : Certificate
        What the file says.
    found : Audit
        What these data prove.
    same_data : bool
        Whether rows, targets and weights are those of the fit, to the bit.
    region : "true", "false", "unproved", "none" or "not checked"
        Whether the optimum is where the file says, which is what ``predict_certified`` relies on.
        "none": the file does not say.  "not checked": the certificate is not true, or the rows are
        in a store that is too large for memory.
    stored_regions, found_regions : tuple of zerogap.regions.Region
        What the file says, and what these data prove; empty where there is nothing.
    """

    claim: str
    stored: Certificate
    found: Audit
    same_data: bool
    region: str = "not checked"
    stored_regions: tuple[Region, ...] = ()
    found_regions: tuple[Region, ...] = ()

    def __str__(self) -> str:
        gaps = f"stored gap {self.stored.gap:.3g}, proved now {self.found.gap:.3g}"
        primals = f"stored primal {self.stored.primal:.9g}, on these data {self.found.primal:.9g}"
        floor = f", stored floor {self.stored.floor:.3g}" if self.stored.floor else ""
        more = "raise the effort, or save the model with keep_dual=True"
        if self.region in ("false", "unproved"):
            radii = [
                max(region.radius for region in regions)
                for regions in (self.stored_regions, self.found_regions)
            ]
            what = "not where the file says" if self.region == "false" else "not proved to be there"
            where = f"stored radius {radii[0]:.3g}, proved now {radii[1]:.3g}"
            text = f"the certificate is true, but the optimum is {what}: {where}"
            return text if self.region == "false" else f"{text}; {more}"
        return {
            "true": f"the certificate is true: {gaps}",
            "false": f"the certificate is false: {primals}, {gaps}{floor}",
            "unproved": f"the certificate is not proved: {gaps}; {more}",
            "other data": f"these are not the data of the fit: {primals}",
        }[self.claim]


def recertify(
    file: ModelFile | Model, X: Any, y: Any, sample_weight: Any = None, *, effort: int = 1000
) -> Recertified:
    """Compute what a model file says of itself from scratch, and compare.

    That is its certificate, and the region around the model in which the optimum lies.  If both
    are found true, the model has from then on the region that was found here, and its
    ``predict_certified`` is no longer the word of a file.

    Parameters
    ----------
    file : ModelFile, LinearClassifier or LinearRegressor
        From `read` or `load`.
    X, y : array-like
        The data that the model was fitted to.
    sample_weight : array-like, optional
        The weights it was fitted with.
    effort : int
        Epochs to spend at most on a bound of one's own, where the file has no dual variables.

    Returns
    -------
    Recertified
        What is true of it.

    Examples
    --------
    >>> import zerogap as zg
    >>> from tempfile import NamedTemporaryFile
    >>> from zerogap.model_io import load, save
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> with NamedTemporaryFile(suffix=".zg") as file:
    ...     save(zg.LinearClassifier("hinge", random_state=0).fit(X, y), file.name)
    ...     model = load(file.name)
    >>> recertify(model, X, y).claim
    'true'
    >>> labels, certified = model.predict_certified(X)  # proved in this process
    """
    model = file.model if isinstance(file, ModelFile) else file
    same = data_fingerprint(model, X, y, sample_weight) == model.fingerprint_
    return recertify_rows(model, X, y, sample_weight, same, effort)


def recertify_rows(
    model: Model, X: Any, y: Any, sample_weight: Any, same: bool, effort: int
) -> Recertified:
    """Do the work of `recertify`, given whether the data are those of the fit."""
    problems, answers = posed(model, X, y, sample_weight)
    goals = goals_of(model.certificate_)

    def find(effort: int) -> Audit:
        return audit_all(problems, answers, effort, goals=goals)

    first = settle(model.certificate_, find, problems, same, effort)
    if first.claim != "true":
        return first
    stored = [source.region for source in model._region_sources]
    region, found = check_regions(problems, answers, stored, effort)
    if region in ("true", "none"):
        model._region_sources = [KnownRegion(region, proved=True) for region in found]
    return dataclasses.replace(
        first,
        claim=region if region in ("false", "unproved") else "true",
        region=region,
        stored_regions=tuple(stored),
        found_regions=tuple(found),
    )


def settle(
    stored: Certificate, find: Callable[[int], Audit], problems: list[Any], same: bool, effort: int
) -> Recertified:
    """Compare a stored certificate with what `find` proves: at once, then after `effort` epochs."""
    found = find(0)
    pairs = _pairs(stored, found)
    if not all(np.isclose(a.primal, b.primal, _ROUNDING, 1e-300) for a, b in pairs):
        return Recertified("false" if same else "other data", stored, found, same)
    for part, problem in zip(stored.parts or (stored,), problems, strict=True):
        if part.floor and part.floor > (1.0 + 1e-6) * gap_floor(problem, part.primal):
            return Recertified("false", stored, found, same)
    if not all(_proves(b, a) for a, b in pairs):
        found = find(effort)
        pairs = _pairs(stored, found)
    if all(_proves(b, a) for a, b in pairs):
        return Recertified("true", stored, found, same)
    refuted = any(b.at_least > a.gap + _ROUNDING * abs(a.primal) for a, b in pairs)
    return Recertified("false" if refuted else "unproved", stored, found, same)


def goals_of(stored: Certificate) -> list[float]:
    """Return the gaps that prove a stored certificate, one for each of its problems."""
    return [allowed_gap(part.primal, part.gap) for part in stored.parts or (stored,)]


def _proves(found: Certificate, stored: Certificate) -> bool:
    return found.gap <= allowed_gap(stored.primal, stored.gap)


def _pairs(stored: Certificate, found: Audit) -> list[tuple[Certificate, Any]]:
    """Return what to compare: the whole and, of several models in one, the parts."""
    return [(stored, found), *zip(stored.parts, found.parts, strict=True)]

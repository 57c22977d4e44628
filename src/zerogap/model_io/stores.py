"""Whether the certificate in a model file is true on a store."""

from __future__ import annotations

import dataclasses
import math

from zerogap.audit import Audit, convention_of, models_of
from zerogap.certificate import Certificate
from zerogap.model_io.claims import Recertified, settle
from zerogap.model_io.files import ModelFile
from zerogap.solvers import BlockSDCA, solve
from zerogap.solvers.protocol import Answer
from zerogap.store import Store
from zerogap.streamed import StreamedProblem


def recertify_store(file: ModelFile, store: Store, *, effort: int = 1000) -> Recertified:
    """Compute the certificate of a model file from the rows of a store, read block by block.

    Parameters
    ----------
    file : ModelFile
        From `read`.
    store : Store
        The one that the model was fitted to.
    effort : int
        Epochs to spend at most on a bound of one's own, where the file has no dual variables.

    Returns
    -------
    Recertified
        As from `zerogap.model_io.recertify`.
    """
    model = file.model
    problems = model._streamed_problems(store)
    answers = models_of(model, convention_of(model), store.n_samples)
    goals = [part.gap for part in model.certificate_.parts or (model.certificate_,)]

    def find(effort: int) -> Audit:
        given = zip(problems, answers, goals, strict=True)
        parts = [_audit(*part, effort) for part in given]
        if len(parts) == 1:
            return parts[0]
        whole = Certificate.combine(parts)
        fields = {f.name: getattr(whole, f.name) for f in dataclasses.fields(Certificate)}
        return Audit(**fields, at_least=math.fsum(part.at_least for part in parts))

    return settle(model.certificate_, find, store.fingerprint == file.fingerprint, effort)


def _audit(problem: StreamedProblem, model: Answer, goal: float, effort: int) -> Audit:
    """Certify a model, raising the dual bound until the gap is the goal or the effort is spent."""
    own = problem.certificate(*model)
    if effort == 0:
        return Audit(own.primal, own.dual, own.gap, stop_reason="own dual point")
    result = solve(
        problem,
        BlockSDCA(),
        tol=1e-12,
        max_epochs=effort,
        callback=lambda record: own.primal - record.certificate.dual <= goal,
        random_state=0,
    )
    found = result.certificate
    gap = min(own.gap, own.primal - found.dual)
    return Audit(
        own.primal,
        own.primal - gap,
        gap,
        epochs=found.epochs,
        seconds=found.seconds,
        stop_reason=found.stop_reason,
        solver=found.solver,
        at_least=max(0.0, own.primal - found.primal),
    )

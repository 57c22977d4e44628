"""Whether the certificate in a model file is true on a store."""

from __future__ import annotations

from zerogap.audit import Audit, audit_all, convention_of, models_of
from zerogap.model_io.claims import Recertified, goals_of, settle
from zerogap.model_io.files import ModelFile
from zerogap.solvers import BlockSDCA
from zerogap.store import Store


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
    goals = goals_of(model.certificate_)

    def find(effort: int) -> Audit:
        return audit_all(problems, answers, effort, goals=goals, solver=BlockSDCA())

    return settle(model.certificate_, find, store.fingerprint == file.fingerprint, effort)

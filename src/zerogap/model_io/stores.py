"""Whether the certificate in a model file is true on a store."""

from __future__ import annotations

from zerogap.audit import Audit, audit_all, convention_of, models_of
from zerogap.model_io.claims import Recertified, goals_of, recertify_rows, settle
from zerogap.model_io.files import ModelFile
from zerogap.solvers import Auto
from zerogap.store import Store
from zerogap.streamed import load, worth_loading


def recertify_store(file: ModelFile, store: Store, *, effort: int = 1000) -> Recertified:
    """Compute what a model file says of itself from the rows of a store.

    A store that has no `max_memory` and takes less than a quarter of the free memory is loaded.
    Others are read block by block, and the model's region is not checked.

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
    model, same = file.model, store.fingerprint == file.fingerprint
    if worth_loading(store):
        return recertify_rows(model, *load(store), same, effort)
    problems = model._streamed_problems(store)
    answers = models_of(model, convention_of(model), store.n_samples)
    goals = goals_of(model.certificate_)

    def find(effort: int) -> Audit:
        return audit_all(problems, answers, effort, goals=goals, solver=Auto())

    return settle(model.certificate_, find, problems, same, effort)

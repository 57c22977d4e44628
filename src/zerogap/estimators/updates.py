r"""Rows that come and rows that go: a fitted model follows from the dual point that it has.

New rows start at alpha = 0, which is feasible for every loss here; rows to be forgotten take their
alpha with them, out of w.  With ``lam=None`` lam S stays 1, and nothing else changes w; an explicit
lam stays, so that u(alpha), the w of L2, is multiplied by S / S' as the sum of the weights becomes
S'.  The solver goes on from there and ends with a
certificate of the new problem, as good as one of a training from scratch.  That takes a fraction of
the epochs as long as few of the rows that matter change; from some hundredths of them on, training
anew is as fast.  Memory: one copy of the rows.

What the certificate after `forget` proves: on the rows that are left, the objective of the model
is at most the gap above the optimum, and so, the penalty being strongly convex, its weights are no
further than sqrt(2 gap / mu) from the optimal ones, mu = lam (1 - l1_ratio).  The optimum does not
depend on the forgotten rows, whatever was done before; anybody with the rows that are left can
check it.

What it does not prove: that nothing else remembers the rows.  Copies of the data, older models,
checkpoints, backups, pickles and the files of the operating system are not touched.  Parameters
that were chosen with the rows (`lam`, the loss, the features, their scaling, the random state)
keep what they owe to them.  Within the gap the model may still depend on them: a smaller `tol`
leaves less room.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from zerogap.cuda.device import to_host
from zerogap.problem import Problem
from zerogap.problem.certificate import Certificate
from zerogap.problem.validation import fingerprint, refuse_targets, sample_weights
from zerogap.rows import CSRRows, DenseRows, as_rows
from zerogap.solvers.protocol import Answer
from zerogap.store import Store
from zerogap.streamed import load, worth_loading


@dataclass(frozen=True)
class Removal:
    """The record of rows forgotten: enough to check, too little to know them.

    Attributes
    ----------
    removed : int
        How many rows were forgotten.
    digest : str
        BLAKE2b of their numbers, features, targets and weights.  Who has the rows can compute it
        again; who can guess a row can test the guess.
    before, after : str
        Fingerprints of the training data with and without them.
    certificate : Certificate
        What is proved about the model on the rows that are left.
    """

    removed: int
    digest: str
    before: str
    after: str
    certificate: Certificate


@dataclass(frozen=True)
class _Data:
    """Rows, labels or numbers, and weights."""

    rows: DenseRows | CSRRows
    y: np.ndarray
    weights: np.ndarray

    def take(self, order: np.ndarray) -> _Data:
        return _Data(self.rows.take(order), self.y[order], self.weights[order])


def update(model: Any, X: Any, y: Any, sample_weight: Any = None, data: Any = None) -> None:
    """Add rows to the training data of a fitted model, see `LinearClassifier.update`."""
    old = _training_data(model, data)
    new = _validated(model, X, y, sample_weight)
    if hasattr(model, "classes_") and len(unknown := np.setdiff1d(y, model.classes_)):
        raise ValueError(
            f"the new rows have a class that the model does not know, {unknown[0]!r}: fit it to "
            f"all rows"
        )
    both = _joined(old, new)
    zeros = np.zeros((*model.dual_coef_.shape[:-1], len(new.y)))
    first = model.row_ids_.max() + 1
    ids = np.append(model.row_ids_, np.arange(first, first + len(new.y)))
    _refit(model, both, np.concatenate([to_host(model.dual_coef_), zeros], axis=-1), ids)


def forget(model: Any, rows: Any, data: Any = None) -> Removal:
    """Remove rows from the training data of a fitted model, see `LinearClassifier.forget`."""
    old = _training_data(model, data)
    gone = _places(rows, model.row_ids_)
    kept = np.delete(np.arange(len(old.y)), gone)
    left, before = old.take(kept), model.fingerprint_
    if hasattr(model, "classes_"):
        absent = np.setdiff1d(model.classes_, left.y[left.weights > 0])
        if len(absent):
            raise ValueError(
                f"these are the last rows of class {absent[0]!r}: fit a model without the class"
            )
    digest = _digest(old.take(gone), model.row_ids_[gone])
    duals = to_host(model.dual_coef_)
    alpha, leaves = duals[..., kept], bool(duals[..., gone].any())
    _refit(model, left, np.ascontiguousarray(alpha), model.row_ids_[kept], leaves)
    return Removal(len(gone), digest, before, model.fingerprint_, model.certificate_)


def partial_fit(model: Any, X: Any, y: Any, sample_weight: Any, seen: _Data | None) -> _Data:
    """Fit a model to new rows and those seen before, and return all of them."""
    first = seen is None
    rows, labels = model._rows(X, y) if first else (model._rows(X), column_or_1d(y))
    refuse_targets(labels)
    check_consistent_length(labels, np.empty(rows.shape[0]))
    if np.ndim(labels) > 1:
        raise ValueError("partial_fit needs one target: fit takes several at once")
    new = _Data(rows, labels, sample_weights(sample_weight, len(labels)))
    whole = new if seen is None else _joined(seen, new)
    classifies = model._task == "classification"
    known = classifies and hasattr(model, "classes_") and not first
    fitted = hasattr(model, "coef_") and not first
    if fitted and (not known or np.isin(labels, model.classes_).all()):
        update(model, rows, labels, new.weights, (seen.rows, seen.y, seen.weights))  # type: ignore
    elif not classifies or len(np.unique(whole.y[whole.weights > 0])) > 1:
        model.fit(_matrix(whole.rows), whole.y, whole.weights)
    return whole


def _joined(old: _Data, new: _Data) -> _Data:
    return _Data(
        _stack(old.rows, new.rows),
        np.concatenate([old.y, new.y]),
        np.concatenate([old.weights, new.weights]),
    )


def _matrix(rows: DenseRows | CSRRows) -> Any:
    return rows.X if isinstance(rows, DenseRows) else rows._matrix()


def start_without(
    problem: Problem, answer: tuple[np.ndarray, Any, np.ndarray], tol: float
) -> Answer:
    """Return where to start once rows have left the dual variables of an answer.

    The old weights are nearest to the new optimum.  Where they would do as they are, the part of
    the rows would stay in them: then the weights of the dual variables that are left.
    """
    w, b, alpha = map(problem.place, answer)
    proof = problem.examine(w, b, alpha)
    if proof.gap <= tol * abs(proof.primal):
        w = problem.weights(problem.feasible(alpha))
    return w, b, alpha


def data_fingerprint(model: Any, X: Any, y: Any, sample_weight: Any = None) -> str:
    """Return the fingerprint that a fit of the model to these data would have."""
    data = _validated(model, X, y, sample_weight)
    return _fingerprint(model, data)


def _training_data(model: Any, data: Any) -> _Data:
    """Return the data that the model was fitted to: those given or kept, if they are the ones."""
    check_is_fitted(model, "coef_")
    n = model.dual_coef_.shape[-1]
    if not n:
        raise ValueError(
            "the model has no dual variables to go on from: it was saved without them "
            "(keep_dual=True keeps them) or trained block by block.  Fit it again"
        )
    data = model._data if data is None else data
    if data is None:
        raise ValueError(
            "the model does not have its training data: give data=(X, y) or "
            "data=(X, y, sample_weight), or fit it with keep_data=True"
        )
    stored = isinstance(data, Store)
    if stored and not worth_loading(data):
        raise ValueError("the store is too large for memory, where its rows are needed")
    if not stored and not (isinstance(data, tuple | list) and len(data) in (2, 3)):
        raise ValueError("data must be (X, y), (X, y, sample_weight) or a Store")
    given = _validated(model, *(load(data) if stored else data))
    if len(given.y) > n and len(given.y) > model.row_ids_.max():
        given = given.take(model.row_ids_)  # rows forgotten earlier are still there
    found = _fingerprint(model, given)
    if model.fingerprint_ not in (found, data.fingerprint if stored else found):
        raise ValueError(
            f"these are not the data that the model was trained on: their fingerprint is {found}, "
            f"that of the training {model.fingerprint_}.  Give the same rows, targets and weights, "
            f"in the same order and of the same type"
        )
    return given


def _validated(model: Any, X: Any, y: Any, sample_weight: Any = None) -> _Data:
    """Return data by the rules of a fit, labels as the model has them."""
    rows = X if isinstance(X, DenseRows | CSRRows) else model._rows(X)
    refuse_targets(y)
    y = column_or_1d(y)
    check_consistent_length(y, np.empty(rows.shape[0]))
    if hasattr(model, "classes_"):
        last = len(model.classes_) - 1
        y = model.classes_[np.searchsorted(model.classes_, y).clip(max=last)]
    else:
        y = y.astype(np.float64)
    return _Data(rows, y, sample_weights(sample_weight, len(y)))


def _fingerprint(model: Any, data: _Data) -> str:
    classes = getattr(model, "classes_", None)
    targets = data.y if classes is None else np.searchsorted(classes, data.y)
    return fingerprint(data.rows, targets, data.weights)


def _places(rows: Any, ids: np.ndarray) -> np.ndarray:
    """Return where the rows of these numbers are, in order."""
    wanted = np.atleast_1d(np.asarray(rows))
    if wanted.ndim != 1 or wanted.dtype.kind not in "iu" or not len(wanted):
        raise ValueError(f"rows must be one or more row numbers, got {rows!r:.80}")
    unique, counts = np.unique(wanted, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"row {unique[counts > 1][0]} is named more than once")
    if len(unknown := np.setdiff1d(unique, ids)):
        raise ValueError(
            f"row {unknown[0]} is not one of the {len(ids)} rows that the model was trained on, "
            f"which have numbers from {ids.min()} to {ids.max()}"
        )
    if len(unique) == len(ids):
        raise ValueError("these are all rows that the model was trained on: delete the model")
    return np.flatnonzero(np.isin(ids, unique))


def _stack(old: DenseRows | CSRRows, new: DenseRows | CSRRows) -> DenseRows | CSRRows:
    """Return the rows of both, stored as the old ones are."""
    if isinstance(old, DenseRows):
        below = new.X if isinstance(new, DenseRows) else new._matrix().toarray()
        return as_rows(np.vstack([old.X, below]))
    below = new._matrix() if isinstance(new, CSRRows) else sparse.csr_matrix(new.X)
    return as_rows(sparse.vstack([old._matrix(), below], format="csr"))


def _digest(data: _Data, ids: np.ndarray) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for array in (ids, *data.rows.__getstate__().values(), data.weights):
        digest.update(np.ascontiguousarray(array).data)
    digest.update("\n".join(map(str, data.y.tolist())).encode())
    return digest.hexdigest()


def _refit(
    model: Any, data: _Data, alpha: np.ndarray, ids: np.ndarray, leaves: bool = False
) -> None:
    """Fit the model to other data from this dual point; if that fails, it stays as it was."""
    changes: dict[str, Any] = {"warm_start": True, "checkpoint": None}
    if hasattr(model, "stop"):
        changes["stop"] = "gap"
    params = model.get_params(deep=False)
    fresh = type(model)(**{**params, **changes})
    for name in ("coef_", "intercept_", "classes_"):
        if hasattr(model, name):
            setattr(fresh, name, getattr(model, name))
    fresh.dual_coef_, fresh._rows_left = alpha, leaves
    fresh.fit(_matrix(data.rows), data.y, data.weights)
    del fresh._rows_left
    fresh.row_ids_ = ids
    vars(model).update({k: v for k, v in vars(fresh).items() if k not in params})

"""Targets of a fit: classes, labels that occur together, several numbers at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import type_of_target

from zerogap.io.memory import free_memory


def several_targets(y: Any) -> bool:
    """Tell whether there are two or more targets for each row."""
    try:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    except ValueError:  # rows of different lengths: scikit-learn says what is wrong
        return False
    if len(shape) > 2:
        raise ValueError(f"y must have one or two dimensions, got shape {shape}")
    return len(shape) == 2 and shape[1] > 1


def refuse_several(model: Any, what: str) -> None:
    """Refuse what is not defined for models of several targets at once."""
    labels = getattr(model, "multilabel_", False)
    if labels or (not hasattr(model, "classes_") and np.ndim(model.coef_) > 1):
        raise ValueError(f"{what} needs a model of one target: fit one for each column of y")


def label_targets(
    y: Any, weights: np.ndarray, class_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels as 0 and 1, one row of signs for each label, and the weights of the rows."""
    labels = y.toarray() if sparse.issparse(y) else np.asarray(y)
    if not type_of_target(labels).startswith("multilabel"):
        raise ValueError(
            f"y of shape {labels.shape} must tell which labels a row has, by 0 and 1: give classes "
            f"as one column"
        )
    labels = (labels > 0).astype(np.int64)
    there = labels[weights > 0]
    same = np.flatnonzero(there.min(axis=0) == there.max(axis=0))
    if len(same):
        raise ValueError(f"label {same[0]} is {there[0, same[0]]} in all rows: leave it out")
    if class_weight is not None:
        weights = weights * compute_sample_weight(class_weight, labels)
    return labels, np.ascontiguousarray(np.where(labels.T > 0, 1.0, -1.0)), weights


def are_integers(classes: np.ndarray) -> bool:
    """Tell whether labels are whole numbers, which scikit-learn takes for classes if few differ."""
    kind = classes.dtype.kind
    return kind in "biu" or (kind == "f" and bool((np.trunc(classes) == classes).all()))


def signs_of(codes: np.ndarray, n_classes: int, shape: tuple[int, int]) -> np.ndarray:
    """Return targets -1 and +1: one row for two classes, one row per class for more."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[None, :]
    needed = 8.0 * n_classes * (3 * shape[0] + 2 * shape[1])
    if needed > free_memory():
        raise ValueError(
            f"{n_classes} classes against the rest need about {needed / 1e9:.1f} GB, but "
            f"{free_memory() / 1e9:.1f} GB are free: is y really a column of class labels?"
        )
    return np.where(codes == np.arange(n_classes)[:, None], 1.0, -1.0)


def joint_model(w: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and intercepts of a joint model in the shapes of binary models.

    That is a row for each class; for two classes one row, as only their difference matters.
    """
    W, b = np.array(w), np.broadcast_to(b, (len(w),)).copy()
    return (W[1:] - W[:1], b[1:] - b[:1]) if len(W) == 2 else (W, b)

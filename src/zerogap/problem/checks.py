"""Checks of what a problem is made of: what is wrong, where, and what to do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerogap.errors import ScaleError
from zerogap.losses import Loss

_LARGEST_TARGET = 1e140  # its square, times a number of rows, is finite
_LEAST_SHARE = 1e-290  # of the weights, of a row that has one: its products have all digits
_LARGEST = 1e290  # |x|^2 / lam beyond this would overflow inside a kernel


def is_positive(value: Any) -> bool:
    """Tell whether value is a positive, finite number."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    return number and not isinstance(value, bool) and 0 < value < math.inf


def check_vector(v: Any, size: int, name: str, what: str) -> np.ndarray:
    """Return v as a finite float64 vector of that size."""
    v = np.ascontiguousarray(v, dtype=np.float64)
    if v.shape != (size,):
        raise ValueError(
            f"{name} must have one entry for each of {size} {what}, got shape {v.shape}"
        )
    # a finite square proves that all entries are finite, in a third of the time
    with np.errstate(over="ignore", invalid="ignore"):
        square = float(v.dot(v))
    if not math.isfinite(square) and not np.isfinite(v).all():
        raise ValueError(
            f"{name} contains NaN or infinity at position {int(np.argmin(np.isfinite(v)))}"
        )
    return v


def check_targets(y: Any, n: int, loss: Loss) -> np.ndarray:
    """Return the targets as float64, finite and fit for the loss."""
    if np.ma.isMaskedArray(y):
        raise ValueError("y is a masked array: fill or drop the masked entries first")
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got shape {y.shape}")
    if len(y) != n:
        raise ValueError(f"X has {n} rows but y has {len(y)} entries")
    try:
        y = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers, got {y.dtype}: {error}") from None
    if not np.isfinite(y).all():
        i = int(np.argmin(np.isfinite(y)))
        raise ValueError(
            f"Input y contains {'NaN' if np.isnan(y[i]) else 'infinity'} at position {i}"
        )
    if np.abs(y).max() > _LARGEST_TARGET:
        i = int(np.argmax(np.abs(y)))
        raise ValueError(f"y^2 overflows at position {i}: scale the targets")
    if loss.task == "multiclass":
        codes = y.astype(np.int64)
        if not (valid := (codes == y) & (codes >= 0)).all():
            i = int(np.argmin(valid))
            raise ValueError(f"{loss} needs classes 0, 1, 2, ..., got {y[i]:g} at position {i}")
        return codes
    if loss.task == "classification" and not (valid := np.abs(y) == 1.0).all():
        i = int(np.argmin(valid))
        raise ValueError(f"{loss} needs targets -1 and +1, got {y[i]:g} at position {i}")
    return y


def check_classes(y: np.ndarray, share: np.ndarray, loss: Loss) -> None:
    """Refuse rows without which a free intercept has no best value: it would be infinite."""
    there = y[share > 0]
    if not there.min() < there.max():
        raise ValueError("an intercept needs two classes at least: the rows hold one only")
    if loss.task != "multiclass":
        return
    present = np.unique(there)
    absent = np.setdiff1d(np.arange(y.max() + 1), present)
    if len(absent):
        raise ValueError(
            f"an intercept needs rows of every class, but class {absent[0]} has none with weight: "
            f"number the classes 0, 1, 2, ... without gaps"
        )


def check_weights(sample_weight: Any, n: int) -> tuple[np.ndarray, float, np.ndarray]:
    """Return the weights divided by their sum, the sum, and the weights if they are not equal.

    The latter are multiplied by a power of two, for a sum near one.
    """
    if sample_weight is None:
        return np.full(n, 1.0 / n), float(n), np.empty(0)
    if np.ma.isMaskedArray(sample_weight):
        raise ValueError("sample_weight is a masked array: fill the masked entries first")
    s = np.asarray(sample_weight, dtype=np.float64)
    if s.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},) like y, got {s.shape}")
    if not np.isfinite(s).all() or (s < 0).any():
        i = int(np.argmax(~np.isfinite(s) | (s < 0)))
        raise ValueError(
            f"sample_weight must be finite and not negative, got {s[i]:g} at position {i}"
        )
    if not s.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    with np.errstate(over="ignore"):
        total = float(s.sum())
    if not 0 < total < math.inf or not 0 < 1.0 / total < math.inf:
        raise ValueError(
            f"sample_weight must have a positive, finite sum, got {total:g}: rescale it"
        )
    if not s.min() < s.max():
        return np.full(n, 1.0 / n), total, np.empty(0)
    share = s / total
    check_shares(share, s)
    near_one = np.ldexp(s, -math.frexp(total)[1])  # contiguous: kernels for it serve all weights
    return share, total, near_one


def check_shares(share: np.ndarray, weight: np.ndarray, factor: Any = 1.0) -> None:
    """Refuse weights so small beside the others that their shares would lose digits.

    The weights are products with factors; rows of weight zero may be there.
    """
    if not share.min(initial=1.0) < _LEAST_SHARE:
        return
    if (lost := (share < _LEAST_SHARE) & (weight > 0.0) & (factor > 0.0)).any():
        i = int(np.argmax(lost))
        raise ValueError(
            f"sample_weight at position {i} is {share[i]:.3g} of the sum of all weights: set it "
            f"to 0, or to {_LEAST_SHARE:g} of the sum at least"
        )


def check_intercept(b: Any, free: bool) -> Any:
    """Return an intercept, or several; refuse one that a problem without intercepts cannot have."""
    if isinstance(b, float) and (b == 0.0 or (free and math.isfinite(b))):
        return b
    if not np.isfinite(b).all():
        raise ValueError(f"b must be finite, got {b}")
    if not free and np.count_nonzero(b):
        raise ValueError(
            f"the problem has no intercept, so b must be 0, got {b}: make it with "
            f"fit_intercept=True, or leave b out"
        )
    return b


def check_scale(norms: np.ndarray, lam: float, total: float) -> None:
    """Refuse rows so long, or a lam so small, that products would overflow."""
    i = int(np.argmax(norms))
    largest = float(norms[i])
    if not largest < _LARGEST:
        raise ScaleError(f"|x|^2 overflows at row {i}: standardise the columns of X")
    if not largest / lam < _LARGEST or not 1.0 / lam < _LARGEST:
        raise ValueError(
            f"lam={lam:g} is too small for rows with |x|^2 = {largest:g}: it overflows "
            f"(by default lam is 1 / the sum of sample_weight, here 1 / {total:g})"
        )


def as_seed(random_state: Any) -> int:
    """Return a seed: the number itself, or one drawn from what was given."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if (
        isinstance(random_state, (int, np.integer))
        and not isinstance(random_state, bool)
        and random_state >= 0
    ):
        return int(random_state)
    raise ValueError(
        f"random_state must be None, an integer >= 0, a Generator or a RandomState, "
        f"got {random_state!r}"
    )


def code_targets(loss: Loss, y: Any, y_test: Any = None, name: str = "data") -> tuple[Any, Any]:
    """Return labels coded as the loss wants them: -1 and +1, 0 to K - 1, or numbers."""
    if loss.task == "regression":
        return y, y_test
    classes, y = np.unique(y, return_inverse=True)
    if loss.task == "classification" and len(classes) != 2:
        raise ValueError(
            f"{name}: {loss} separates two classes, there are {len(classes)}: choose "
            f"multiclass-hinge or softmax, or one class against the rest"
        )
    if y_test is not None:
        strange = np.setdiff1d(y_test, classes)
        if len(strange):
            raise ValueError(f"class {strange[0]} of the test data is not in the training data")
        y_test = np.searchsorted(classes, y_test)
    if loss.task == "classification":
        y, y_test = 2.0 * y - 1.0, None if y_test is None else 2.0 * y_test - 1.0
    return y, y_test

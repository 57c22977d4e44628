"""All losses by name."""

from __future__ import annotations

from zerogap.losses.base import Loss
from zerogap.losses.margin import Hinge, Logistic, SmoothHinge, SquaredHinge
from zerogap.losses.multiclass import MulticlassHinge, Softmax
from zerogap.losses.residual import Absolute, EpsilonInsensitive, Huber, Quantile, Squared

LOSSES: dict[str, type[Loss]] = {
    "hinge": Hinge,
    "smooth-hinge": SmoothHinge,
    "squared-hinge": SquaredHinge,
    "logistic": Logistic,
    "squared": Squared,
    "absolute": Absolute,
    "epsilon-insensitive": EpsilonInsensitive,
    "huber": Huber,
    "quantile": Quantile,
}
"""Losses of one score, by the name that estimators and the command line accept."""

MULTICLASS_LOSSES: dict[str, type[Loss]] = {"multiclass-hinge": MulticlassHinge, "softmax": Softmax}
"""Losses of a score per class."""

EXACT_SLOPES: frozenset[type[Loss]] = frozenset(
    {SmoothHinge, SquaredHinge, Logistic, Squared, Huber}
)
"""Smooth losses whose derivative is right to a few units in the last place, whatever the score.

The dual variable -phi'(z) adds nothing to the gap but what bounds of rounding count anyway.
"""

ALL_LOSSES = {**LOSSES, **MULTICLASS_LOSSES}


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the loss itself, with its parameters checked.

    Parameters
    ----------
    loss : str or Loss
        A name of `LOSSES` or `MULTICLASS_LOSSES`, or a loss.

    Returns
    -------
    Loss
        The loss, with its default parameters if a name was given.

    Examples
    --------
    >>> as_loss("huber")
    Huber(delta=1.35)
    """
    if isinstance(loss, str):
        if loss not in ALL_LOSSES:
            raise ValueError(f"unknown loss {loss!r}: choose one of {', '.join(ALL_LOSSES)}")
        loss = ALL_LOSSES[loss]()
    if not isinstance(loss, Loss):
        raise ValueError(f"loss must be a name or a zerogap Loss, got {loss!r}")
    loss.check()
    return loss

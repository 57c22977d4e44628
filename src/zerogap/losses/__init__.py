"""Losses phi(z; y): what is minimised, over the scores z of the rows and their targets y."""

from zerogap.losses.base import Loss, MarginLoss, ResidualLoss
from zerogap.losses.margin import Hinge, Logistic, SmoothHinge, SquaredHinge
from zerogap.losses.multiclass import MulticlassHinge, MulticlassLoss, Softmax
from zerogap.losses.registry import ALL_LOSSES, EXACT_SLOPES, LOSSES, MULTICLASS_LOSSES, as_loss
from zerogap.losses.residual import Absolute, EpsilonInsensitive, Huber, Quantile, Squared

__all__ = [
    "ALL_LOSSES",
    "EXACT_SLOPES",
    "LOSSES",
    "MULTICLASS_LOSSES",
    "Absolute",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MarginLoss",
    "MulticlassHinge",
    "MulticlassLoss",
    "Quantile",
    "ResidualLoss",
    "SmoothHinge",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "as_loss",
]

"""Rough costs of the methods, and which of them to begin with."""

from __future__ import annotations

import math
from typing import Any

from zerogap.losses import Logistic
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.solvers.accelerated_ascent import AcceleratedAscent
from zerogap.solvers.hessian import DIRECT, moments_cost, worth_sampling
from zerogap.solvers.multiclass_lbfgs import suits
from zerogap.solvers.second import is_hopeless, second_methods

# Leave SDCA if more epochs than this seem to remain.  Over a store, Newton's method takes about 50
# passes for losses with kinks, ten for others; in memory, `max_epochs` counts epochs, not seconds.
MOST_PASSES_LEFT = 50
MOST_EPOCHS_LEFT = 300


def has_few_features(problem: Problem) -> bool:
    """Tell whether there are so few features that a second-order method should begin."""
    n, d = problem.shape
    if not math.isfinite(problem.loss.smoothness):
        return n >= 200 * d
    if d > DIRECT:  # measured: with several rows per feature five steps or so are enough
        return n >= 4 * d and (_condition(problem) >= 1.5 or is_slow(problem))
    return is_slow(problem)


def has_momentum(problem: Problem) -> bool:
    """Tell whether accelerated ascent should begin.

    With losses of residuals most rows of text stay free, unless the penalty is strong.  Measured on
    the absolute loss, seconds of coordinate ascent and of the accelerated one: reuters at C = 1 to
    1e-3 0.15 and 0.06, to 1e-6 3.3 and 0.54, at C = 10 2.5 and 0.46; rcv1 at C = 1 0.33 and 0.43,
    at C = 10 15 and 1.9.
    """
    loss, (n, d) = problem.loss, problem.shape
    if loss.task != "regression" or math.isfinite(loss.smoothness) or d <= DIRECT:
        return False
    momentum = any(isinstance(method, AcceleratedAscent) for method in second_methods(problem))
    return momentum and problem.mean_sqnorm >= problem.strength * n


def _condition(problem: Problem) -> float:
    """Return the curvature of the losses over that of the penalty, roughly."""
    return problem.mean_sqnorm * problem.loss.smoothness / problem.lam / problem.shape[0]


def is_slow(problem: Problem) -> bool:
    """Tell whether SDCA, whose epochs grow with the condition, takes longer than Newton's steps."""
    epochs = 3.0 + 3.0 * _condition(problem)
    return epochs * epoch_cost(problem) > second_cost(problem, 1.0)


def most_epochs_left(problem: Any) -> int:
    """Return the number of remaining epochs from which on another method is tried."""
    return MOST_PASSES_LEFT if problem.streamed else MOST_EPOCHS_LEFT


def least_epochs(problem: Problem) -> int:
    """Return the epochs after which SDCA's rate is trusted: with kinks, rows are decided late."""
    kinks = not math.isfinite(problem.loss.smoothness)
    return 20 if kinks and problem.shape[1] > DIRECT else 0


def epoch_cost(problem: Problem) -> float:
    """Return the nanoseconds of an epoch of SDCA, roughly."""
    if problem.loss.task == "multiclass":  # measured on digits
        return (1.0 * problem.rows.stored + 30.0 * problem.shape[0]) * problem.weight_shape[0]
    per_row = 250.0 if isinstance(problem.loss, Logistic) else 30.0
    return 3.0 * problem.rows.stored + per_row * problem.shape[0]


def second_cost(problem: Problem, decades: float) -> float:
    """Return the nanoseconds that a second-order method takes for so many decades of the gap."""
    n, d = problem.shape
    smooth = math.isfinite(problem.loss.smoothness)
    stored, per_row = problem.rows.stored, problem.rows.stored / n
    if problem.loss.task == "multiclass":
        classes = problem.weight_shape[0]
        flat = d * classes
        direct = 1.0 * n * flat * flat + 0.02 * flat**3 if flat <= DIRECT else math.inf
        # measured on images: 30 products of matrices for each step
        products = 10.0 if problem.by_matrices else 40.0
        step = min(direct, products * stored * classes) + 3e5
        return ((4.0 + 2.0 * decades) if smooth else (10.0 + 3.0 * decades)) * step
    if d > DIRECT:  # some conjugate gradients for each step, of few after SDCA
        steps = 4.0 + 2.0 * decades if smooth else 60.0 + 20.0 * decades
        return steps * (15.0 * stored + 100.0 * d)
    sampled = min(n, worth_sampling(problem.rows))
    moments = 2.0 * per_row * sampled * moments_cost(problem.rows)
    step = 4.0 * stored + 60.0 * n + moments + 0.02 * d**3 + 3e5
    return ((2.0 + decades) if smooth else (5.0 + 8.0 * decades)) * step


def reason_for_second(problem: Problem, inner: Problem) -> str:
    """Return why a second-order method should begin, or nothing if SDCA should."""
    if is_hopeless(inner):
        return "coordinate ascent would take thousands of epochs"
    if problem.streamed:
        return ""
    if problem.loss.task == "multiclass":
        if suits(inner):
            return "products with many weights are fast"
        slow = math.isfinite(problem.loss.smoothness) and is_slow(inner)
        return "coordinate ascent would take many epochs" if slow else ""
    if not isinstance(problem.penalty, L2):
        smooth = math.isfinite(problem.loss.smoothness)
        return "an L1 penalty leaves few weights" if smooth else ""
    # on inner products SDCA takes few epochs: Newton's method is faster only if it takes few steps
    if inner is not problem and isinstance(problem.loss, Logistic):
        return ""
    if has_momentum(inner):
        return "most dual variables stay between their ends"
    if not has_few_features(inner):
        return ""
    few = "few features" if inner.shape[1] <= DIRECT else "several rows for each feature"
    return f"there are {few}"

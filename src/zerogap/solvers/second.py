"""The second-order methods, and which of them suit a problem in memory."""

from __future__ import annotations

import math

from zerogap.io.memory import free_memory
from zerogap.losses import Loss, MulticlassHinge, Softmax
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.solvers.hessian import DIRECT, needed_memory
from zerogap.solvers.interior_parts import shape_of
from zerogap.solvers.interior_point import InteriorPoint
from zerogap.solvers.multiclass_newton import MOST_DIRECT, MulticlassNewton
from zerogap.solvers.newton import Newton
from zerogap.solvers.protocol import Solver

SMALL_TABLE = 3e5  # n d^2: an interior point step takes a millisecond or so
LARGE_TABLE = 3e8  # n d^2, d of all classes: an interior point step takes some ten milliseconds


def second_methods(problem: Problem) -> list[Solver]:
    """Return the second-order methods for a problem, in the order in which they are tried."""
    if needed_memory(problem) >= free_memory():
        return []
    (n, d), flat = problem.shape, math.prod(problem.weight_shape)
    l2 = isinstance(problem.penalty, L2)
    if problem.loss.task == "multiclass":
        known = isinstance(problem.loss, Softmax | MulticlassHinge)
        newton: list[Solver] = [MulticlassNewton()] if known and (l2 or flat <= MOST_DIRECT) else []
        straight = isinstance(problem.loss, MulticlassHinge) and flat <= DIRECT
        if straight and n * flat * flat > LARGE_TABLE:
            return [*newton, InteriorPoint()]
        return [InteriorPoint(), *newton] if straight else newton
    if type(problem.loss).stiffness is Loss.stiffness:
        return []
    shape = shape_of(problem.loss)
    straight = shape.is_straight and d <= DIRECT
    bent = shape.bend > 0.0 and d <= DIRECT
    if not straight and d > DIRECT and n < 4 * d and not math.isfinite(problem.loss.smoothness):
        return [] if l2 else [Newton()]  # measured: SDCA is faster on text, whatever lam
    if straight and (n * d * d <= SMALL_TABLE or not l2):
        return [InteriorPoint(), Newton()]
    return [Newton(), InteriorPoint()] if straight or bent else [Newton()]

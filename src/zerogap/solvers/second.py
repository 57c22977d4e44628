"""The second-order methods, and which of them suit a problem in memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerogap.io.memory import free_memory
from zerogap.losses import Loss, MulticlassHinge, Softmax
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.solvers import multiclass_lbfgs
from zerogap.solvers.accelerated_ascent import AcceleratedAscent
from zerogap.solvers.hessian import DIRECT, needed_memory
from zerogap.solvers.interior_parts import shape_of
from zerogap.solvers.interior_point import InteriorPoint
from zerogap.solvers.multiclass_lbfgs import MulticlassLBFGS, suits
from zerogap.solvers.multiclass_newton import MulticlassNewton
from zerogap.solvers.newton import Newton
from zerogap.solvers.protocol import Solver
from zerogap.solvers.twofold_multiclass import TwofoldVotesPoint
from zerogap.solvers.twofold_point import TwofoldPoint, can_be_twofold, twofold_methods
from zerogap.solvers.wide_hessian import can_factorise, factor_width, is_wide

LEAST_TOLERANCE = 1e-13  # relative gap: less is not proved in twice the precision, either
SOON_TWOFOLD = 3e6  # n d^2 up to which twice the precision takes less time than other methods
SMALL_TABLE = 3e5  # n d^2: an interior point step takes a millisecond or so
# n d^2, and rows for each feature, up to which interior points need two thirds of the time that
# Newton's method takes on raw tables with kinked losses (6 tables: 73 and 119 ms)
MIDDLE_TABLE, FEW_ROWS = 3e6, 16
MOST_TWOFOLD = 1000  # weights of all classes: a factor in twice the precision takes 0.3 s
TWOFOLD_WORK = 4e9  # multiplications of pairs, n (d C)^2: half a second
# Mean of |x|^2 / (lam n) from which coordinate ascent is hopeless: on raw tables it takes
# thousands of epochs from 1e3 on, and the scaled data sets of the race are below 1e3 at C = 1.
HOPELESS_CONDITION = 1e4
# n^2 d of an elastic net with few rows up to which interior points take 0.2 s, whatever C; descents
# of Newton's method take milliseconds, or do not end
WIDE_WORK = 2e8
LARGE_TABLE = 3e8  # n d^2, d of all classes: an interior point step takes some ten milliseconds


def is_small_enough(problem: Problem) -> bool:
    """Tell whether a Hessian of all classes in twice the precision takes a second at most."""
    (n, d), classes = problem.shape, problem.weight_shape[0]
    width = classes * (d + problem.fit_intercept)
    return (
        width <= MOST_TWOFOLD
        and n * width * width <= TWOFOLD_WORK
        and not problem.on_device
        and not problem.streamed
    )


def second_methods(problem: Problem) -> list[Solver]:
    """Return the second-order methods for a problem, in the order in which they are tried."""
    free = free_memory()
    if needed_memory(problem) >= free:
        lean = suits(problem) and multiclass_lbfgs.needed_memory(problem) < free
        return [MulticlassLBFGS()] if lean else []
    n, d = problem.shape
    l2 = isinstance(problem.penalty, L2)
    if problem.loss.task == "multiclass":
        return _multiclass_methods(problem)
    if type(problem.loss).stiffness is Loss.stiffness:
        return []
    shape = shape_of(problem.loss)
    few = can_factorise(problem)
    straight, bent = shape.is_straight and few, shape.bend > 0.0 and few
    if not straight and d > DIRECT and n < 4 * d and not math.isfinite(problem.loss.smoothness):
        # measured: coordinate ascent is faster on text, whatever lam, but not beside raw columns
        if not l2 or is_badly_scaled(problem):
            return [Newton()]
        return [] if problem.on_device else [AcceleratedAscent()]
    wide = bent and is_wide(problem) and n * n * d <= WIDE_WORK
    small = n * d * d <= (MIDDLE_TABLE if n < FEW_ROWS * d else SMALL_TABLE)
    if wide or (straight and (small or not l2)):
        return [InteriorPoint(), Newton()]
    return [Newton(), InteriorPoint()] if straight or bent else [Newton()]


def _multiclass_methods(problem: Problem) -> list[Solver]:
    """Return the methods for many classes.

    Twice the precision comes after them, where they end without a proof: on raw tables of softmax
    that is one in ten, and it takes ten times as long.
    """
    if not isinstance(problem.loss, Softmax | MulticlassHinge):
        return []
    n, width = problem.shape[0], factor_width(problem)
    straight, work = isinstance(problem.loss, MulticlassHinge), n * width * width
    few = isinstance(problem.penalty, L2) or can_factorise(problem)
    newton: list[Solver] = [MulticlassNewton()] if few else []
    if suits(problem):
        return [MulticlassLBFGS(), *newton]
    if is_wide(problem) and width <= DIRECT:
        return [InteriorPoint(), *newton]
    if straight and width <= DIRECT:
        return [*newton, InteriorPoint()] if work > LARGE_TABLE else [InteriorPoint(), *newton]
    return newton


def sharp_methods(problem: Problem) -> list[Solver]:
    """Return the methods in twice the precision that take seconds at most, as they are tried."""
    if problem.loss.task != "multiclass":
        return list(twofold_methods(problem)) if can_be_twofold(problem) else []
    known = isinstance(problem.loss, Softmax | MulticlassHinge)
    return [TwofoldVotesPoint()] if known and is_small_enough(problem) else []


def can_sharpen(problem: Problem, methods: tuple[Solver, ...], tol: float) -> bool:
    """Tell whether twice the precision is possible, and not among the methods already."""
    tried = any(isinstance(method, TwofoldPoint) for method in methods)
    return not tried and tol >= LEAST_TOLERANCE and bool(sharp_methods(problem))


def is_small(problem: Problem) -> bool:
    """Tell whether a second-order method takes milliseconds, even in twice the precision."""
    n, d = problem.shape
    return n * d * d <= SOON_TWOFOLD


def is_finite(part: Any) -> bool:
    """Tell whether a part of an answer is given with finite numbers, or not given."""
    return part is None or bool(np.isfinite(part).all())


def is_hopeless(problem: Problem) -> bool:
    """Tell whether coordinate ascent has no chance, and that there is a matrix to factorise."""
    return problem.shape[1] <= DIRECT and is_badly_scaled(problem)


def is_badly_scaled(problem: Problem) -> bool:
    """Tell whether columns differ so much in size that coordinate ascent hardly moves."""
    return problem.mean_sqnorm / (problem.strength * problem.shape[0]) > HOPELESS_CONDITION

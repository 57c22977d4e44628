"""The solvers that work on a GPU, and the one that is chosen there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.cuda import directions
from zerogap.cuda.solvers.sdca import DeviceSDCA
from zerogap.losses import Loss
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.solvers.asdca import ASDCA
from zerogap.solvers.auto import Auto
from zerogap.solvers.gd import GD
from zerogap.solvers.hessian import DIRECT
from zerogap.solvers.history import Record
from zerogap.solvers.interior_parts import is_straight
from zerogap.solvers.interior_point import InteriorPoint
from zerogap.solvers.multiclass_lbfgs import MulticlassLBFGS, suits
from zerogap.solvers.multiclass_newton import MulticlassNewton
from zerogap.solvers.newton import Newton
from zerogap.solvers.pegasos import Pegasos
from zerogap.solvers.protocol import Answer, Solver
from zerogap.solvers.sdca import SDCA
from zerogap.solvers.sgd import SGD

_BOTH = (
    GD,
    Newton,
    MulticlassLBFGS,
    MulticlassNewton,
    InteriorPoint,
    Pegasos,
    SGD,
    ASDCA,
    DeviceSDCA,
)
# stored values from which a few hundred products beat a few dozen epochs
_VALUES_FOR_PRODUCTS = 20_000_000


def for_device(solver: Solver, deterministic: bool) -> Solver:
    """Return the solver that does the work of `solver` on a GPU."""
    if isinstance(solver, Auto):
        return DeviceAuto(deterministic)
    if isinstance(solver, SDCA):
        plain = SDCA(layout=solver.layout, shrink=solver.shrink)
        if solver != plain:
            raise ValueError(f"{solver} has options that SDCA does not have on a GPU: use {plain}")
        return DeviceSDCA(deterministic)
    if isinstance(solver, _BOTH):
        return solver
    raise ValueError(f"{type(solver).__name__} does not work on a GPU: use device='cpu'")


@dataclass(frozen=True)
class DeviceAuto(Solver):
    """The fastest way to a certificate on a GPU, chosen by shape and loss.

    With few features the interior point method for losses made of straight lines, else Newton's
    method; with many, dual coordinate ascent, or Newton's method if the data are large: there
    products with all of them run at the speed of the memory, and random rows do not.
    """

    multiclass = True
    deterministic: bool = False

    def begin(self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None) -> Any:
        return self.chosen(problem)[0].begin(problem, rng, warm)

    def prepare(self, problem: Problem, state: Any) -> None:
        self.chosen(problem)[0].prepare(problem, state)

    def epoch_length(self, problem: Problem) -> int:
        return self.chosen(problem)[0].epoch_length(problem)

    def answer(self, problem: Problem, state: Any) -> Answer:
        return self.chosen(problem)[0].answer(problem, state)

    def relative_gap(self, problem: Problem, state: Any) -> float | None:
        return self.chosen(problem)[0].relative_gap(problem, state)

    def observe(self, problem: Problem, state: Any, record: Record, tol: float) -> None:
        self.chosen(problem)[0].observe(problem, state, record, tol)

    def epochs_apart(self, problem: Problem) -> int:
        return self.chosen(problem)[0].epochs_apart(problem)

    def story(self, problem: Problem, state: Any) -> str:
        solver, reason = self.chosen(problem)
        return f"{solver.story(problem, state)} on a GPU, chosen automatically: {reason}"

    def steps(self, problem: Problem, state: Any, count: int) -> int:
        return self.chosen(problem)[0].steps(problem, state, count)

    def check(self, problem: Problem) -> None:
        self.chosen(problem)[0].check(problem)

    def chosen(self, problem: Problem) -> tuple[Solver, str]:
        """Return the solver, and why."""
        n, d = problem.shape
        if problem.loss.task == "multiclass":
            # products for fewer classes are one launch
            many = problem.weight_shape[0] > directions.MOST_CLASSES
            if many and suits(problem):
                return MulticlassLBFGS(), "products with many weights are fast"
            return MulticlassNewton(), "there are many classes"
        if not isinstance(problem.penalty, L2) and d > min(n, DIRECT):
            return DeviceSDCA(self.deterministic), "it is the one for elastic nets"
        if type(problem.loss).stiffness is Loss.stiffness:
            return DeviceSDCA(self.deterministic), "nothing is known of the loss' curvature"
        if d <= min(n, DIRECT):
            straight = is_straight(problem.loss) and isinstance(problem.penalty, L2)
            return InteriorPoint() if straight else Newton(), "there are few features"
        if problem.rows.stored >= _VALUES_FOR_PRODUCTS:
            return Newton(), "the data are large"
        return DeviceSDCA(self.deterministic), "there are many features"

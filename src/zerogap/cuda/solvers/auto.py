"""The solvers that work on a GPU, and the one that is chosen there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zerogap.cuda import directions
from zerogap.cuda.solvers.sdca import DeviceSDCA
from zerogap.losses import Loss
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.solvers.asdca import ASDCA
from zerogap.solvers.auto import Auto, AutoState
from zerogap.solvers.gd import GD
from zerogap.solvers.hessian import DIRECT
from zerogap.solvers.interior_parts import is_straight, shape_of
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
class DeviceAuto(Auto):
    """The fastest way to a certificate on a GPU, chosen by shape and loss.

    With few features the interior point method for losses made of straight lines, else Newton's
    method; with many, dual coordinate ascent, or Newton's method if the data are large: there
    products with all of them run at the speed of the memory, and random rows do not.  Where that
    stalls, or would take hundreds of epochs more, another method goes on from there.
    """

    deterministic: bool = False

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> AutoState:
        state = AutoState(rng, draw=rng)
        first, state.reason = self.chosen(problem)
        ascent = isinstance(first, DeviceSDCA)
        others = _others(problem, first)
        state.methods = (first, *others) if ascent else (self._ascent, first, *others)
        state.stage = 0 if ascent else 1
        state.part = self._method(state).begin(problem, rng, warm)
        return state

    @property
    def _ascent(self) -> DeviceSDCA:
        return DeviceSDCA(self.deterministic)

    def epochs_apart(self, problem: Problem) -> int:
        return self.chosen(problem)[0].epochs_apart(problem)

    def story(self, problem: Problem, state: AutoState) -> str:
        method = self._method(state).story(problem, state.part)
        return f"{state.before}{method} on a GPU, chosen automatically: {state.reason}"

    def check(self, problem: Problem) -> None:
        self.chosen(problem)[0].check(problem)

    def _reconsider(
        self, problem: Problem, state: AutoState, epoch: float, gap: float, primal: float
    ) -> None:
        if problem.loss.task != "multiclass":  # which has no ascent to come from or to end with
            super()._reconsider(problem, state, epoch, gap, primal)

    def _settles(self, problem: Problem, state: AutoState) -> bool:
        return False  # there are no steps on free variables here

    def _change(self, problem: Problem, state: AutoState) -> None:
        if state.final and problem.loss.task == "multiclass":
            state.switch = False
            return
        super()._change(problem, state)

    def chosen(self, problem: Problem) -> tuple[Solver, str]:
        """Return the first method, and why it is that."""
        n, d = problem.shape
        if problem.loss.task == "multiclass":
            # products for fewer classes are one launch
            many = problem.weight_shape[0] > directions.MOST_CLASSES
            if many and suits(problem):
                return MulticlassLBFGS(), "products with many weights are fast"
            return MulticlassNewton(), "there are many classes"
        if not isinstance(problem.penalty, L2) and d > min(n, DIRECT):
            return self._ascent, "it is the one for elastic nets"
        if type(problem.loss).stiffness is Loss.stiffness:
            return self._ascent, "nothing is known of the loss' curvature"
        if d <= min(n, DIRECT):
            straight = is_straight(problem.loss) and isinstance(problem.penalty, L2)
            return InteriorPoint() if straight else Newton(), "there are few features"
        if problem.rows.stored >= _VALUES_FOR_PRODUCTS:
            return Newton(), "the data are large"
        return self._ascent, "there are many features"


def _others(problem: Problem, first: Solver) -> tuple[Solver, ...]:
    """Return the methods that follow the first one where it stalls."""
    if problem.loss.task == "multiclass":
        return (MulticlassNewton(),) if isinstance(first, MulticlassLBFGS) else ()
    if type(problem.loss).stiffness is Loss.stiffness or not isinstance(problem.penalty, L2):
        return ()
    if not isinstance(first, Newton):
        return (Newton(),)
    shape, d = shape_of(problem.loss), problem.shape[1]
    return (InteriorPoint(),) if shape.segments and d <= DIRECT else ()

"""The solver that chooses: dual coordinate ascent first, second-order methods when they pay."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from zerogap.problem import Problem
from zerogap.solvers.accelerated_ascent import AcceleratedAscent
from zerogap.solvers.block_newton import BlockNewton, why_not
from zerogap.solvers.block_sdca import BlockSDCA
from zerogap.solvers.certifying import FLOOR
from zerogap.solvers.costs import (
    epoch_cost,
    least_epochs,
    most_epochs_left,
    reason_for_second,
    second_cost,
)
from zerogap.solvers.dual_start import warm_duals
from zerogap.solvers.free_variables import has_free_steps
from zerogap.solvers.hessian import DIRECT
from zerogap.solvers.history import Record
from zerogap.solvers.interior_point import InteriorPoint, InteriorPointState
from zerogap.solvers.multiclass_lbfgs import MulticlassLBFGS
from zerogap.solvers.newton import Newton, NewtonState
from zerogap.solvers.protocol import Answer, Solver, State
from zerogap.solvers.rotation import can_rotate, rotated, simpler
from zerogap.solvers.sdca import SDCA
from zerogap.solvers.second import (
    can_sharpen,
    is_badly_scaled,
    is_finite,
    is_small,
    second_methods,
    sharp_methods,
)
from zerogap.solvers.twofold_point import TwofoldNewton, TwofoldPoint
from zerogap.solvers.wide_hessian import is_wide

NEAR_ROUNDING = 1e-8  # relative gap below which Newton's method halves it in a few steps, or never
STALLED_PASSES = 50  # passes over a store that gain less than a tenth of the gap: a stall
ENOUGH_EPOCHS_OF_ASCENT = 100  # epochs of SDCA that seem to be left: accelerated ascent is faster
ENOUGH_EPOCHS = 50  # of SDCA where other methods take milliseconds
EPOCHS_OF_A_RATE = 3  # epochs from which a rate is estimated: single gaps go up and down
RELAXATION = 1.5  # measured: saves up to half the epochs, but none beside steps on free variables
# Steps of a second-order method before the next one is tried, if there is one: tens are usual
MOST_STEPS = 120
MOST_DESCENTS = 30  # of Newton's method over many more features than rows: ten or so, or no end
MOST_QUICK_STEPS = 200  # the same for L-BFGS: about ten of its steps cost one Newton step
# Steps that neither halve the gap nor gain 1 % of the objective: then the method has stalled.
# The second number is for many classes, if another method is left to try.
IDLE_STEPS = 40
IDLE_BEFORE_NEXT = 10
# The same for the last method, with more features than a matrix is factorised of: on categories
# beside money, at C = 1e4, sub-problems by conjugate gradients took a hundred steps
PATIENT_STEPS = 160
MOST_TWOFOLD_STEPS = 200  # steps of TwofoldNewton before TwofoldPoint is tried, if it is there
USELESS_GAP = 0.9  # relative gap of coordinate ascent from which the next method starts anew
AT_ZERO = 0.5  # times the gap that counts as zero: such an objective is certified without a dual
DOUBTED_ESTIMATES = 3  # estimates of the gap that certificates refuted, before the next method
NAMES = {
    "AcceleratedAscent": "accelerated coordinate ascent",
    "DeviceSDCA": "SDCA",
    "MulticlassLBFGS": "L-BFGS",
    "MulticlassNewton": "Newton",
    "TwofoldVotesPoint": "InteriorPoint in twice the precision",
    "TwofoldPoint": "InteriorPoint in twice the precision",
    "TwofoldNewton": "Newton in twice the precision",
}


@dataclass
class AutoState(State):
    """State of `Auto`: that of the method at work, and what certificates have shown."""

    stage: int = 0  # number of the method at work
    part: Any = None  # its state
    methods: tuple[Solver, ...] = field(default=(), metadata={"saved": False})  # SDCA is the first
    final: bool = False  # whether the method at work, or the next one, is the last
    stalled: bool = False  # whether there is no other method to change to
    switch: bool = False  # whether the next method begins with the next update
    stuck: bool = False  # whether the present method makes no more progress
    before: str = ""  # the methods so far, in words
    since: float = 0.0  # epochs before the present method began
    epoch: float = 0.0  # of an earlier certificate, to compare the present one with
    gap: float = math.inf
    best_estimate: float = math.inf  # of a second-order method, relative
    best_value: float = math.inf
    doubted: int = 0  # certificates that refuted the method's own estimate
    proved: float = 0.0  # relative gap of the last certificate
    idle: int = 0  # steps since `best_estimate` or `best_value` was much improved
    rotate: bool = False  # whether the next change is to rotated columns
    turned: bool = False  # whether that change has been made
    back: bool = False  # whether the next change is from inner products to the given columns
    returned: bool = False  # whether that change has been made
    sharpen: bool = False  # whether the next change is to twice the precision
    sharp: bool = False  # whether that change has been made
    tol: float = 0.0
    reason: str = ""
    zero: float = 0.0  # objective that counts as zero
    problem: Problem | None = field(default=None, metadata={"saved": False})  # to be solved instead
    outward: Any = field(default=None, metadata={"saved": False})  # from its weights to the given


@dataclass(frozen=True)
class Auto(Solver):
    """The fastest way to a certificate that we know, chosen by shape, loss, lambda and progress.

    1. If rows are fewer than features, and dense or badly scaled, each row is replaced by one
       coordinate per row, such that all inner products stay the same, until methods are stuck.  Raw
       columns that are nearly copies of each other are rotated until they are orthogonal.
    2. `SDCA` runs first: with `finish` if the loss allows steps on the free dual variables, else
       with `relaxation`.
    3. A second-order method takes over when it promises to be cheaper: at once if there are few
       features for the number of rows, or if the columns are too badly scaled for coordinate
       ascent; else when certificates show that too many epochs would be left.  The methods are
       `Newton`, and `InteriorPoint` for losses made of straight lines and few features.  When one
       stalls, the next one begins.  For losses with kinks and many more words than rows it is
       coordinate ascent with momentum, with which absolute and quantile losses begin.
    4. If rounding stops them, far beyond usual accuracies, `SDCA` continues to the end.

    The answer is the best model so far, the best constant one included.  The choices depend on the
    data and on certificates, never on a clock: same seed, same bits.  The certificate says what was
    done.

    Examples
    --------
    >>> import zerogap as zg
    >>> X, y, beta = zg.datasets.make_simulated(random_state=0)
    >>> problem = zg.Problem(X, y, "hinge", lam=1e-4)
    >>> result = zg.solve(problem, zg.Auto(), tol=1e-9, random_state=0)
    >>> result.certificate.relative_gap <= 1e-9
    True
    """

    multiclass = True
    output = "best"
    reads = ("memory", "store")

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> AutoState:
        state = AutoState(rng, draw=rng)
        coordinates = simpler(problem, is_badly_scaled(problem))
        if coordinates.problem is not problem:
            state.problem, state.outward = coordinates.problem, coordinates.outward
            if warm is not None:
                w, b, _ = warm
                alpha = warm_duals(problem, warm)
                warm = coordinates.inward(w, alpha), b, alpha
        inner = self._inner(problem, state)
        state.methods = _methods(inner)
        state.reason = reason_for_second(problem, inner) if len(state.methods) > 1 else ""
        state.stage = 1 if state.reason else 0
        state.part = self._method(state).begin(inner, rng, warm)
        state.zero = AT_ZERO * FLOOR * float(problem.constant_loss(problem.constant()))
        return state

    def reshape(self, problem: Problem, state: AutoState, saved: dict[str, Any]) -> None:
        state.stage = saved["stage"]
        if saved["turned"]:
            state.problem, state.outward, _ = rotated(problem)
        if saved["sharp"] or saved["returned"]:
            state.problem = state.outward = None
        inner = self._inner(problem, state)
        state.methods = _methods(inner)
        if saved["sharp"]:
            state.methods = (*state.methods, *sharp_methods(problem))
        if state.stage >= len(state.methods):
            raise ValueError("there is not enough free memory for the method that it goes on with")
        state.part = self._method(state).begin(inner, np.random.default_rng(0))

    def answer(self, problem: Problem, state: AutoState) -> Answer:
        inner = self._inner(problem, state)
        w, b, alpha = self._method(state).answer(inner, state.part)
        if state.outward is None:
            return w, b, alpha
        # coordinate ascent keeps w = w(alpha), which is exact in any coordinates
        return state.outward(w) if state.stage else problem.weights(alpha), b, alpha

    def observe(self, problem: Problem, state: AutoState, record: Record, tol: float) -> None:
        """Change the method if another one promises to be cheaper."""
        # Newton's method goes as far as it can: rounding costs some of it
        if not state.stage or isinstance(self._method(state), InteriorPoint):
            self._method(state).observe(self._inner(problem, state), state.part, record, tol)
        state.tol, primal = tol, abs(record.certificate.primal)
        state.proved = record.gap / max(primal, 1e-300)
        if isinstance(state.part, NewtonState):
            state.part.tol = tol
        if state.stage and record.gap > tol * primal:
            estimate = self._method(state).relative_gap(self._inner(problem, state), state.part)
            if estimate is not None and estimate <= tol:
                state.doubted += problem.loss.task == "multiclass"
        self._reconsider(problem, state, record.epoch, record.gap, primal)
        if self._value(state) <= state.zero:
            state.zero = AT_ZERO * self._value(state)  # the objective was not small enough

    def _reconsider(
        self, problem: Problem, state: AutoState, epoch: float, gap: float, primal: float
    ) -> None:
        """Ask for another method if the gap shows that this would be cheaper."""
        inner = self._inner(problem, state)
        epochs, target = epoch - state.epoch, state.tol * primal
        if inner.streamed and len(state.methods) == 1:
            if gap < 0.9 * state.gap:
                state.epoch, state.gap = epoch, gap
            state.stalled = target > 0.0 and epochs > STALLED_PASSES and epoch > state.epoch
        if state.final or len(state.methods) == 1:
            return
        if state.stage:
            deep = state.gap <= NEAR_ROUNDING * primal and gap > 0.5 * state.gap
            if deep and not isinstance(self._method(state), InteriorPoint):
                state.switch, state.final = True, True
                state.reason = f"rounding stopped {self._name(state)}"
            state.epoch, state.gap = epoch, gap
            return
        if epochs > 0 and gap > target > 0:
            decades = math.log10(gap / target)
            rate = math.log10(state.gap / gap) / epochs if 0 < gap < state.gap else 0.0
            left = decades / rate if rate > 0 else math.inf
            elsewhere = inner.streamed or inner.on_device  # where the costs are others
            second = math.inf if elsewhere else second_cost(inner, decades)
            hopeless = left > most_epochs_left(inner) or (
                left * epoch_cost(inner) > second and not self._settles(problem, state)
            )
            if isinstance(state.methods[1], AcceleratedAscent):
                settles = self._settles(problem, state)
                hopeless = left > ENOUGH_EPOCHS_OF_ASCENT and not settles
            kinks = not math.isfinite(inner.loss.smoothness)  # gaps fall by fits and starts
            if epoch > ENOUGH_EPOCHS and kinks and not inner.streamed and is_small(inner):
                hopeless = True  # however few epochs seem to be left
            if hopeless and epoch >= least_epochs(inner):
                about = f"{left:.2g}" if left < 1e6 else "countless"
                state.switch, state.reason = True, f"{about} epochs of SDCA seemed to be left"
        if epoch >= 2.0 * state.epoch:
            state.epoch, state.gap = epoch, gap

    def relative_gap(self, problem: Problem, state: AutoState) -> float | None:
        inner = self._inner(problem, state)
        if state.stuck or state.stalled:
            ended = state.switch and state.epoch == state.updates / inner.shape[0]
            return math.inf if ended else None  # None asks for a certificate, which may end the run
        if state.switch:
            return math.inf  # the next method may have an estimate of its own
        if self._value(state) <= state.zero:
            return 0.0
        if inner is problem or state.stage:
            waits = not state.stage and len(state.methods) > 1
            if waits and not self._settles(problem, state):
                return None  # certificates tell when to change
            return self._method(state).relative_gap(inner, state.part)
        epoch = state.updates // inner.shape[0]
        if epoch % max(1, epoch // 4):  # an estimate takes as long as an epoch
            return math.inf
        proof = inner.examine(*self._method(state).answer(inner, state.part))
        if epoch >= max(EPOCHS_OF_A_RATE, 2.0 * state.epoch):
            self._reconsider(problem, state, epoch, proof.gap, proof.primal)
        return math.inf if state.switch else proof.gap / max(proof.primal, 1e-300)

    def rest(self, problem: Problem, state: AutoState) -> np.ndarray | None:
        return self._method(state).rest(problem, state.part)

    def intercept_rest(self, problem: Problem, state: AutoState) -> Any:
        return self._method(state).intercept_rest(problem, state.part)

    def sharpen(self, problem: Problem, state: AutoState) -> bool:
        method = self._method(state)
        if isinstance(method, TwofoldPoint):
            state.stalled = state.stuck = not method.tighten(problem, state.part)
            return not state.stalled
        if state.sharp or not can_sharpen(problem, state.methods, state.tol):
            return False
        state.switch = state.sharpen = state.final = True
        state.reason = f"rounding stopped {self._name(state)}"
        return True

    def prepare(self, problem: Problem, state: AutoState) -> None:
        inner = self._inner(problem, state)
        self._method(state).prepare(inner, state.part)

    def is_stalled(self, state: AutoState) -> bool:
        return state.stalled

    def is_stuck(self, state: AutoState) -> bool:
        return state.stuck or state.doubted > 0

    def story(self, problem: Problem, state: AutoState) -> str:
        where = ""
        if state.problem is not None:
            rotated_columns = state.problem.shape == problem.shape
            where = " on rotated columns" if rotated_columns else " on inner products"
        why = f": {state.reason}" if state.reason else ""
        return f"{state.before}{self._name(state)}{where}, chosen automatically{why}"

    def steps(self, problem: Problem, state: AutoState, count: int) -> int:
        inner = self._inner(problem, state)
        if state.switch:
            self._change(problem, state)
            inner = self._inner(problem, state)
        method = self._method(state)
        if not count:
            return method.steps(inner, state.part, 0)
        if not state.stage:
            method.advance(inner, state.part, count)
            return count
        # one step of a second-order method for one epoch: made when the epoch ends
        if state.position + count < self.epoch_length(problem) or state.stalled:
            return 0
        examples = method.steps(inner, state.part, 1)
        self._watch(problem, inner, state, method)
        return examples

    def _watch(self, problem: Problem, inner: Problem, state: AutoState, method: Solver) -> None:
        """Ask for the next method if this one makes no progress."""
        estimate = method.relative_gap(inner, state.part)
        value = self._value(state)
        gained = estimate is not None and estimate < 0.5 * state.best_estimate
        if gained or value < state.best_value - 0.01 * abs(state.best_value):
            state.best_estimate = math.inf if estimate is None else estimate
            state.best_value, state.idle = min(value, state.best_value), 0
        elif estimate is not None and not isinstance(method, InteriorPoint | AcceleratedAscent):
            state.idle += 1  # the one notices stalls, the other is never done but by rounding
        stuck = state.idle > _patience(inner, state) or getattr(state.part, "stalled", False)
        if isinstance(method, TwofoldNewton) and state.stage < len(state.methods) - 1:
            stuck = stuck or state.updates / inner.shape[0] - state.since > MOST_TWOFOLD_STEPS
        quick = isinstance(method, MulticlassLBFGS)  # many cheap steps
        patient = isinstance(method, TwofoldPoint)  # it notices itself when it has stalled
        if state.stage < len(state.methods) - 1 and state.tol > 0.0 and not patient:
            most = MOST_QUICK_STEPS if quick else MOST_STEPS
            if isinstance(method, Newton) and is_wide(inner):
                most = MOST_DESCENTS
            stuck = stuck or state.updates / inner.shape[0] - state.since > most
            if problem.loss.task == "multiclass" and not quick:
                doubtful = state.doubted > DOUBTED_ESTIMATES
                stuck = stuck or state.idle > IDLE_BEFORE_NEXT or doubtful
        state.stuck = stuck
        if stuck and not state.final:
            last = state.stage == len(state.methods) - 1
            # other methods first: where one is stuck, they seldom are, and pairs take much longer
            state.sharpen = last and can_sharpen(problem, state.methods, state.tol)
            state.rotate = (
                last and not state.sharpen and state.problem is None and can_rotate(inner)
            )
            # rows that differ by millions in length lose digits in inner products
            condensed = state.problem is not None and inner.shape != problem.shape
            state.back = last and not state.sharpen and condensed
            anew = state.rotate or state.back
            if last and not anew and not state.sharpen and state.tol > 0.0:
                state.stalled = True
            else:  # without a tolerance only a budget ends the run: SDCA goes on until then
                state.switch, state.final = True, (last or state.sharpen) and not anew
                state.reason = f"{self._name(state)} stalled"
        elif stuck and state.sharp and state.stage < len(state.methods) - 1:
            state.switch, state.reason = True, f"{self._name(state)} stalled"
        elif stuck and state.sharp:
            state.stalled = True

    def _settles(self, problem: Problem, state: AutoState) -> bool:
        """Tell whether SDCA may soon converge faster: by steps on the free dual variables."""
        many = problem.shape[1] > DIRECT  # measured: on text they are
        inner = self._inner(problem, state)
        ascent = cast("SDCA", self._method(state))
        return many and ascent.finishes(inner, state.part)

    def _change(self, problem: Problem, state: AutoState) -> None:
        """Continue with the next method, from the present answer."""
        inner = self._inner(problem, state)
        epoch = state.updates / inner.shape[0]
        if epoch > state.since:
            name = self._name(state)
            state.before += f"{name} for {epoch - state.since:g} epochs, then "
        answer: Answer | None = self._method(state).answer(inner, state.part)
        state.stage = 0 if state.final and not state.sharp else state.stage + 1
        if state.sharpen:
            state.problem = state.outward = answer = None
            before, inner = _methods(problem), problem
            state.methods = (*before, *sharp_methods(problem))
            state.stage, state.sharpen, state.sharp = len(before), False, True
            state.turned = False
        elif state.rotate:
            state.problem, state.outward, _ = rotated(inner)
            state.stage, state.rotate, state.turned = 1, False, True
            answer, inner = None, state.problem
            state.methods = _methods(inner)
        elif state.back:
            state.problem = state.outward = answer = None
            state.back, state.returned, inner = False, True, problem
            state.methods = _methods(inner)
            state.stage = min(1, len(state.methods) - 1)
        state.stuck = False
        state.switch, state.since, state.epoch, state.gap = False, epoch, epoch, math.inf
        state.best_estimate, state.best_value, state.idle = math.inf, math.inf, 0
        state.doubted = 0
        useless = state.proved > USELESS_GAP and not state.turned and state.stage == 1
        if useless or (answer is not None and not all(map(is_finite, answer))):
            answer = None  # the method has broken down, or has not moved
        method = self._method(state)
        state.part = method.begin(inner, state.rng, answer)
        if state.sharp or isinstance(state.part, NewtonState | InteriorPointState):
            state.part.tol = state.tol
        method.prepare(inner, state.part)

    def _value(self, state: AutoState) -> float:
        """Return the objective, if the method at work knows it."""
        return getattr(state.part, "value", math.inf)

    def _name(self, state: AutoState) -> str:
        name = type(self._method(state)).__name__
        return NAMES.get(name, name)

    def _inner(self, problem: Problem, state: AutoState) -> Problem:
        return problem if state.problem is None else state.problem

    def _method(self, state: AutoState) -> Solver:
        return state.methods[state.stage]


def _patience(problem: Problem, state: AutoState) -> int:
    """Return the idle steps after which a method has stalled."""
    last = state.stage == len(state.methods) - 1
    return PATIENT_STEPS if last and problem.shape[1] > DIRECT else IDLE_STEPS


def _ascent(problem: Problem) -> SDCA:
    """Return the kind of dual coordinate ascent for a problem."""
    if has_free_steps(problem):
        return SDCA(finish=True)
    kinks = not math.isfinite(problem.loss.smoothness)
    calm = kinks and problem.loss.task == "multiclass"
    return SDCA(relaxation=RELAXATION, output="recent" if calm else "last")


def _methods(problem: Problem) -> tuple[Solver, ...]:
    """Return the methods for a problem: coordinate ascent, and then what may follow it."""
    if problem.streamed:
        return (BlockSDCA(),) if why_not(problem) else (BlockSDCA(), BlockNewton())
    return (_ascent(problem), *second_methods(problem))

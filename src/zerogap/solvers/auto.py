"""The solver that chooses: dual coordinate ascent first, Newton's method when that pays."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from scipy import linalg

from zerogap.history import Record
from zerogap.losses import Logistic, Loss
from zerogap.memory import free_memory
from zerogap.penalties import L2
from zerogap.problem import Problem
from zerogap.rows import DenseRows
from zerogap.solvers.face import has_faces
from zerogap.solvers.hessian import DIRECT, moments_cost, needed_memory, worth_sampling
from zerogap.solvers.newton import Newton, NewtonState
from zerogap.solvers.protocol import Answer, Solver, State
from zerogap.solvers.sdca import SDCA, SDCAState

_FEW = 1000  # rows up to which their inner products are worth computing
_DEEP = 1e-8  # a relative gap below which Newton's method halves it in a few steps, or never
_PATIENCE = 300  # epochs, however cheap: budgets count them
_APART = 3  # epochs that tell a rate: gaps swing
_COLUMNS = 1 << 16  # of X, converted at a time
_RELAXATION = 1.5  # measured: up to half the epochs, but none where steps on the face are made


@dataclass
class AutoState(State):
    """State of `Auto`: those of both methods, which one works, and what certificates have shown."""

    sdca: SDCAState = field(init=False)
    newton: NewtonState = field(init=False)
    second: bool = False  # whether Newton's method works
    final: bool = False  # whether no further change is wanted
    switch: bool = False  # whether the other method begins with the next update
    before: str = ""  # what has worked so far
    since: float = 0.0  # epochs before the present method began
    epoch: float = 0.0  # of an earlier certificate, with which to compare
    gap: float = math.inf
    tol: float = 0.0
    reason: str = ""
    problem: Problem | None = field(default=None, metadata={"saved": False})

    def __post_init__(self) -> None:
        self.sdca, self.newton = SDCAState(self.rng, self.draw), NewtonState(self.rng, self.draw)


@dataclass(frozen=True)
class Auto(Solver):
    """The fastest way to a certificate that we know, chosen by shape, loss, lambda and progress.

    Dense rows fewer than features are first replaced by as many coordinates as there are rows,
    with the same inner products.  Then stochastic dual coordinate ascent (`SDCA` with `finish`
    or, where there are no faces, with `relaxation`) works until Newton's method (`Newton`)
    promises to be cheaper: at once if there are few features for the number of rows, else when
    certificates show that too many epochs would be left: hundreds with more than 3000 features
    once rows are decided, as steps on the face may save most of them.  Where rounding stops
    Newton's method, far beyond usual accuracies, SDCA ends the work.

    The choices depend on the data and on certificates, never on a clock: same seed, same bits.
    The certificate says what was done.

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

    def begin(
        self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None
    ) -> AutoState:
        state = AutoState(rng, draw=rng.spawn(1)[0])
        if _is_wide(problem):
            state.problem = _condensed(problem)
            if warm is not None:
                w, b, alpha = warm
                alpha = problem.dual_point(problem.scores(w), b) if alpha is None else alpha
                warm = state.problem.weights(problem.feasible(alpha)), b, alpha
        inner = self._inner(problem, state)
        # on inner products SDCA is soon done, and only where Newton's steps are few they are sooner
        second = inner is problem or not isinstance(problem.loss, Logistic)
        if second and _newton_applies(problem) and _has_few_features(inner):
            few = "few features" if inner.shape[1] <= DIRECT else "several rows for each feature"
            state.second, state.reason = True, f"there are {few}"
            state.newton = Newton().begin(inner, rng, warm)
        else:
            state.sdca = _ascent(inner).begin(inner, rng, warm)
        return state

    def answer(self, problem: Problem, state: AutoState) -> Answer:
        inner = self._inner(problem, state)
        w, b, alpha = self._at_work(inner, state).answer(inner, self._part(state))
        return w if inner is problem else problem.weights(alpha), b, alpha

    def observe(self, problem: Problem, state: AutoState, record: Record, tol: float) -> None:
        """Change the method if the other one promises to be cheaper."""
        if not state.second:
            inner = self._inner(problem, state)
            _ascent(inner).observe(inner, state.sdca, record, tol)
        state.tol, primal = tol, abs(record.certificate.primal)
        self._reconsider(problem, state, record.epoch, record.gap, primal)

    def _reconsider(
        self, problem: Problem, state: AutoState, epoch: float, gap: float, primal: float
    ) -> None:
        """Ask for the other method if the gap shows that it would be cheaper."""
        epochs, target = epoch - state.epoch, state.tol * primal
        if state.final or not _newton_applies(problem):
            return
        if state.second:
            if state.gap <= _DEEP * primal and gap > 0.5 * state.gap:
                state.switch, state.reason = True, "rounding stopped Newton's method"
            state.epoch, state.gap = epoch, gap
            return
        if epochs > 0 and gap > target > 0:
            inner = self._inner(problem, state)
            decades = math.log10(gap / target)
            rate = math.log10(state.gap / gap) / epochs if 0 < gap < state.gap else 0.0
            left = decades / rate if rate > 0 else math.inf
            costly = left * _epoch_cost(inner) > _newton_cost(inner, decades)
            hopeless = left > _PATIENCE or (costly and not self._settles(problem, state))
            if hopeless and epoch >= _least_epochs(inner):
                about = f"{left:.2g}" if left < 1e6 else "countless"
                state.switch, state.reason = True, f"{about} epochs of SDCA seemed to be left"
        if epoch >= 2.0 * state.epoch:
            state.epoch, state.gap = epoch, gap

    def relative_gap(self, problem: Problem, state: AutoState) -> float | None:
        inner, part = self._inner(problem, state), self._part(state)
        if state.switch:
            return math.inf  # the other method, which begins now, may know its own
        if inner is problem or state.second:
            waits = not state.second and _newton_applies(problem)
            if waits and not self._settles(problem, state):
                return None  # certificates tell when to change
            return self._at_work(inner, state).relative_gap(inner, part)
        epoch = state.updates // inner.shape[0]
        if epoch % max(1, epoch // 4):  # an estimate takes as long as an epoch
            return math.inf
        proof = inner.examine(*_ascent(inner).answer(inner, part))
        if epoch >= max(_APART, 2.0 * state.epoch):
            self._reconsider(problem, state, epoch, proof.gap, proof.primal)
        return math.inf if state.switch else proof.gap / max(proof.primal, 1e-300)

    def prepare(self, problem: Problem, state: AutoState) -> None:
        inner = self._inner(problem, state)
        self._at_work(inner, state).prepare(inner, self._part(state))

    def story(self, problem: Problem, state: AutoState) -> str:
        where = " on inner products" if state.problem is not None else ""
        why = f": {state.reason}" if state.second or state.final else ""
        return f"{state.before}{self._name(state)}{where}, chosen automatically{why}"

    def _steps(self, problem: Problem, state: AutoState, count: int) -> int:
        inner = self._inner(problem, state)
        if state.switch:
            self._change(inner, state)
        if not count:
            return self._at_work(inner, state)._steps(inner, self._part(state), 0)
        if not state.second:
            _ascent(inner).advance(inner, state.sdca, count)
            return count
        # one step of Newton's method for one epoch: made when the epoch ends
        ends = state.position + count == self.epoch_length(problem)
        return Newton()._steps(inner, state.newton, 1) if ends else 0

    def _settles(self, problem: Problem, state: AutoState) -> bool:
        """Tell whether steps on the face may be cheaper than they look from the epochs so far."""
        many = problem.shape[1] > DIRECT  # measured: on text they are
        inner = self._inner(problem, state)
        return many and _ascent(inner).finishes(inner, state.sdca)

    def _change(self, inner: Problem, state: AutoState) -> None:
        """Let the other method go on from where this one is."""
        epoch = state.updates / inner.shape[0]
        if epoch > state.since:
            state.before += f"{self._name(state)} for {epoch - state.since:g} epochs, then "
        answer = self._at_work(inner, state).answer(inner, self._part(state))
        state.switch, state.final, state.second = False, state.second, not state.second
        state.since, state.epoch, state.gap = epoch, epoch, math.inf
        if state.second:
            state.newton = Newton().begin(inner, state.rng, answer)
        else:
            state.sdca = _ascent(inner).begin(inner, state.rng, answer)
            _ascent(inner).prepare(inner, state.sdca)

    def _name(self, state: AutoState) -> str:
        return "Newton" if state.second else "SDCA"

    def _inner(self, problem: Problem, state: AutoState) -> Problem:
        return problem if state.problem is None else state.problem

    def _at_work(self, inner: Problem, state: AutoState) -> Solver:
        return Newton() if state.second else _ascent(inner)

    def _part(self, state: AutoState) -> Any:
        return state.newton if state.second else state.sdca


def _ascent(problem: Problem) -> SDCA:
    """Return the kind of dual coordinate ascent for a problem."""
    if has_faces(problem):
        return SDCA(finish=True)
    kinks = not math.isfinite(problem.loss.smoothness)
    calm = kinks and problem.loss.task == "multiclass"
    return SDCA(relaxation=_RELAXATION, output="recent" if calm else "last")


def _newton_applies(problem: Problem) -> bool:
    """Tell whether Newton's method is defined, and has room in memory."""
    known = type(problem.loss).stiffness is not Loss.stiffness
    if not known or problem.loss.task == "multiclass" or not isinstance(problem.penalty, L2):
        return False
    n, d = problem.shape
    if d > DIRECT and n < 4 * d and not math.isfinite(problem.loss.smoothness):
        return False  # measured: SDCA is faster on text, whatever lam
    return needed_memory(problem) < free_memory()


def _has_few_features(problem: Problem) -> bool:
    n, d = problem.shape
    if not math.isfinite(problem.loss.smoothness):
        return n >= 200 * d
    # the epochs of SDCA grow with the condition number
    condition = float(problem.share @ problem.sqnorms) * problem.loss.smoothness / problem.lam / n
    cheaper = (3.0 + 3.0 * condition) * _epoch_cost(problem) > _newton_cost(problem, 1.0)
    if d > DIRECT:  # measured: with several rows per feature five steps or so are enough
        return n >= 4 * d and (condition >= 1.5 or cheaper)
    return cheaper


def _least_epochs(problem: Problem) -> int:
    """Return the epochs of SDCA before its rate is believed: with kinks rows are decided late."""
    kinks = not math.isfinite(problem.loss.smoothness)
    return 20 if kinks and problem.shape[1] > DIRECT else 0


def _is_wide(problem: Problem) -> bool:
    n, d = problem.shape
    few = isinstance(problem.rows, DenseRows) and n <= _FEW and d >= 2 * n
    return few and problem.loss.task != "multiclass" and isinstance(problem.penalty, L2)


def _condensed(problem: Problem) -> Problem:
    """Return the problem with rows in n coordinates: the dual knows their inner products only."""
    X = cast("DenseRows", problem.rows).X
    n, d = X.shape
    gram = np.zeros((n, n))
    for start in range(0, d, _COLUMNS):
        part = X[:, start : start + _COLUMNS].astype(np.float64, copy=False)
        gram += part @ part.T
    diagonal = np.diagonal(gram).copy()
    for ridge in 10.0 ** np.arange(-16, 0):  # no more than equal rows and rounding ask for
        with contextlib.suppress(linalg.LinAlgError):
            factor = linalg.cholesky(gram, lower=True, check_finite=False)
            return problem._with(rows=DenseRows(np.ascontiguousarray(factor)))
        np.fill_diagonal(gram, diagonal + ridge * diagonal.max())
    raise ValueError("the rows of X have no finite inner products: scale the features")


def _epoch_cost(problem: Problem) -> float:
    """Nanoseconds of an epoch of SDCA, roughly."""
    per_row = 250.0 if isinstance(problem.loss, Logistic) else 30.0
    return 3.0 * problem.rows.stored + per_row * problem.shape[0]


def _newton_cost(problem: Problem, decades: float) -> float:
    """Nanoseconds of Newton's method for so many decades of the gap, roughly."""
    n, d = problem.shape
    smooth = math.isfinite(problem.loss.smoothness)
    stored, per_row = problem.rows.stored, problem.rows.stored / n
    if d > DIRECT:  # some conjugate gradients for each step, of few after SDCA
        steps = 4.0 + 2.0 * decades if smooth else 60.0 + 20.0 * decades
        return steps * (15.0 * stored + 100.0 * d)
    sampled = min(n, worth_sampling(problem.rows))
    moments = 2.0 * per_row * sampled * moments_cost(problem.rows)
    step = 4.0 * stored + 60.0 * n + moments + 0.02 * d**3 + 3e5
    return ((2.0 + decades) if smooth else (5.0 + 8.0 * decades)) * step

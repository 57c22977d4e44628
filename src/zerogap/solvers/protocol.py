"""What a solver is: hyper-parameters, a state, and the updates that change it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, cast

import numpy as np

from zerogap._params import Parameters
from zerogap.problem import Problem
from zerogap.solvers.history import Record

OUTPUTS = ("last", "average", "weighted-average", "random", "best")
"""Output rules: they change the answer, never the path."""

Answer = tuple[np.ndarray, float, np.ndarray | None]


@dataclass
class State:
    """Everything a run needs to go on, bit for bit: arrays, numbers and generators.

    Attributes
    ----------
    rng : numpy.random.Generator
        Draws the rows that are visited.
    draw : numpy.random.Generator
        Serves the output rule alone, which must not change the path.
    updates, examples : int
        Updates made, and rows visited.
    position : int
        Updates since the epoch began.
    t0 : int
        Updates before averaging or drawing begins.
    next_draw : int
        Update at which the random output is drawn anew.
    """

    rng: np.random.Generator
    draw: np.random.Generator
    updates: int = 0
    examples: int = 0
    position: int = 0
    t0: int = 0
    next_draw: int = 0

    def misfit(self) -> str:
        """Name a field that does not fit the others: no run leaves such a state.

        Returns
        -------
        str
            The name, or "" if all fields fit.
        """
        for item in fields(self):
            value, like = getattr(self, item.name), item.metadata.get("like")
            if like and np.size(value) and np.shape(value) != np.shape(getattr(self, like)):
                return item.name
            beside = item.metadata.get("beside")
            if beside and np.size(value) and not np.size(getattr(self, beside)):
                return beside
        return ""


def empty_like(other: str, dtype: Any = np.float64, beside: str = "") -> Any:
    """Return a field of a state: an array that begins empty, and then is as long as another.

    The one that it is `beside` is then filled, too.
    """
    known = {"like": other, "beside": beside}
    return field(default_factory=lambda: np.empty(0, dtype), metadata=known)


@dataclass(frozen=True)
class Solver(Parameters):
    """Base of the solvers: a small frozen object of hyper-parameters.

    A solver defines ``begin``, ``steps`` and ``answer``, and ``check`` to refuse parameters or
    problems; see `zerogap.SDCA` for the shape.

    Examples
    --------
    >>> import zerogap as zg
    >>> isinstance(zg.SDCA(), zg.Solver), zg.SDCA().get_params()["sampling"]
    (True, 'permutation')
    """

    dual = True  # whether the dual point of an answer is as good as any that belongs to it
    multiclass = False  # whether losses of score vectors are accepted
    reads: ClassVar[tuple[str, ...]] = ("memory",)  # where rows may lie: there, or in a "store"
    output = "last"
    t0 = cast("int | None", None)

    def begin(self, problem: Problem, rng: np.random.Generator, warm: Answer | None = None) -> Any:
        """Return the state before the first update, from the point `warm` if there is one."""
        raise NotImplementedError

    def answer(self, problem: Problem, state: Any) -> Answer:
        """Return w, b and the dual point (None if the solver has none) by the output rule."""
        raise NotImplementedError

    def steps(self, problem: Problem, state: Any, count: int) -> int:
        """Make `count` updates, all in the same epoch; return the number of examples visited.

        Called with 0 once before the clock starts, so that compilation is not timed.
        """
        raise NotImplementedError

    def prepare(self, problem: Problem, state: Any) -> None:
        """Do long work before the first update, on the clock; Ctrl-C may end it at any point."""

    def _draw(self, problem: Problem, state: Any) -> None:
        """Keep the present iterate as the random output."""
        raise NotImplementedError

    def epoch_length(self, problem: Problem) -> int:
        """Return the number of updates that visit as many examples as there are."""
        return problem.shape[0]

    def epoch(self, problem: Problem, state: Any) -> None:
        """Finish the present epoch, in place: one pass' worth of updates from its beginning."""
        self.advance(problem, state, self._left_of_epoch(problem, state))

    def _left_of_epoch(self, problem: Problem, state: Any) -> int:
        """Return the updates until the epoch ends, at least one whatever a checkpoint says."""
        length = self.epoch_length(problem)
        return length - state.position % length

    def advance(self, problem: Problem, state: Any, updates: int) -> None:
        """Make `updates` updates in place, pausing where an epoch or an output rule needs it."""
        length = self.epoch_length(problem)
        goal = state.updates + updates
        while state.updates < goal:
            draw = max(state.next_draw, state.t0 + 1)
            until = min(goal, state.updates + self._left_of_epoch(problem, state))
            for pause in (state.t0, draw):
                until = pause if state.updates < pause < until else until
            count = until - state.updates
            state.examples += self.steps(problem, state, count)
            state.updates += count
            state.position = (state.position + count) % length
            if self.output == "random" and state.updates == draw:
                self._draw(problem, state)
                # Any iterate after t0 must be as likely, whenever the run stops (reservoir
                # sampling): P(the next draw is at age k or later) = age / (k - 1).
                age = draw - state.t0
                state.next_draw = state.t0 + int(age / (1.0 - state.draw.random())) + 1

    def relative_gap(self, problem: Problem, state: Any) -> float | None:
        """Return gap over primal by the solver's own bookkeeping, None if it keeps none.

        Certificates that come when they pay wait until it is small enough.
        """
        return None

    def observe(self, problem: Problem, state: Any, record: Record, tol: float) -> None:
        """Learn from a certificate."""

    def reshape(self, problem: Problem, state: Any, saved: dict[str, Any]) -> None:
        """Give a state the parts that it had when it was saved, before they are filled."""

    def is_stalled(self, state: Any) -> bool:
        """Tell whether further updates would gain nothing."""
        return False

    def is_stuck(self, state: Any) -> bool:
        """Tell whether a certificate in twice the precision is worth its time now."""
        return self.is_stalled(state)

    def rest(self, problem: Problem, state: Any) -> np.ndarray | None:
        """Return what to add to the dual point of the answer, in twice the precision, if known."""
        return None

    def intercept_rest(self, problem: Problem, state: Any) -> Any:
        """Return what to add to the intercept of the last answer, in twice the precision."""
        return 0.0

    def sharpen(self, problem: Problem, state: Any) -> bool:
        """Go on in higher precision where rounding hides the gap; tell whether there is a way."""
        return False

    def epochs_apart(self, problem: Problem) -> int:
        """Return the number of epochs that take as long as a certificate, roughly."""
        return 1

    def story(self, problem: Problem, state: Any) -> str:
        """Return what was run, for the certificate: the solver, and parameters that were chosen."""
        chosen = [
            f"{parameter.name}={getattr(self, parameter.name)!r}"
            for parameter in fields(self)
            if getattr(self, parameter.name) != parameter.default
        ]
        return f"{type(self).__name__}({', '.join(chosen)})"

    def extras(self, problem: Problem, state: Any) -> dict[str, float]:
        """Return further columns of the history that this solver knows."""
        return {}

    @property
    def averaging(self) -> bool:
        """Whether the answer is an average of the iterates after t0."""
        return self.output in ("average", "weighted-average")

    def _total_weight(self, state: Any) -> float:
        """Return the sum of the weights of the iterates averaged so far: 1 each, or 1, 2, 3, ..."""
        count = state.updates - state.t0
        return count * (count + 1) / 2.0 if self.output == "weighted-average" else count

    def _check_output(self, *others: str) -> None:
        self._choose("output", (*OUTPUTS, *others))
        t0 = self.t0
        whole = t0 is None or (isinstance(t0, int) and not isinstance(t0, bool) and t0 >= 0)
        self._require(whole, "t0 must be a number of updates >= 0")

    def check(self, problem: Problem) -> None:
        """Raise ValueError if a hyper-parameter is impossible, or impossible for this problem."""

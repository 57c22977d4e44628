"""Where a run takes place: the problem moved to a GPU, and the solver that does its work there."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from zerogap.cuda.device import watched
from zerogap.problem import Problem
from zerogap.solvers.multiclass_newton import MulticlassNewton
from zerogap.solvers.newton import Newton
from zerogap.solvers.protocol import Solver

Together = Callable[..., list[Any]]
DEVICES = ("cpu", "cuda", "cuda-deterministic")

__all__ = [
    "DEVICES",
    "Together",
    "check_device",
    "failing",
    "placed",
    "problems_together",
    "watched",
]


def check_device(device: Any) -> None:
    """Refuse a device that there is not."""
    if device not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {device!r}")


def placed(problem: Any, solver: Solver, device: str | None) -> tuple[Any, Solver]:
    """Return the problem on its device, and the solver that does the work there."""
    if isinstance(solver, Newton) and problem.loss.task == "multiclass":
        solver = MulticlassNewton()
    there = problem.on_device
    if device is None:
        device = "cuda" if there else "cpu"
    check_device(device)
    if device == "cpu":
        if there:
            raise ValueError("the arrays of this problem are on a GPU: use device='cuda'")
        return problem, solver
    if not isinstance(problem, Problem):
        raise ValueError("rows in a store are read by the processor: use device='cpu'")
    from zerogap.cuda import to_device
    from zerogap.cuda.solvers.auto import for_device

    with watched():
        problem = to_device(problem)
    return problem, for_device(solver, deterministic=device == "cuda-deterministic")


def problems_together(problems: Any, solver: Solver, device: str) -> Together | None:
    """Return what solves all problems at once, if they are on a GPU and that pays."""
    if len(problems) == 1 or not problems[0].on_device:
        return None
    from zerogap.cuda.solvers.many_models import solve_together, together_by

    chosen = together_by(problems, solver, device)
    return None if chosen is None else functools.partial(solve_together, solver=chosen)


@contextlib.contextmanager
def failing(problem: Any) -> Iterator[None]:
    """Make DeviceErrors of what a GPU's libraries raise; elsewhere do nothing."""
    with watched() if problem.on_device else contextlib.nullcontext():
        yield

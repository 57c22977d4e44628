"""Cell of chapter S2: how much an output changes from one stop to the next."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np

from zerogap._params import parse
from zerogap.lab.cells import Rows, make_problem
from zerogap.lab.data import Loaded
from zerogap.lab.experiment import Cell
from zerogap.solvers import SOLVERS, solve

STOPS = range(40, 51)  # epochs after which the run may be stopped


def changes(cell: Cell, data: Loaded) -> Rows:
    """Stop the same run after 40, 41, ... 50 epochs; one row with what changes between stops.

    Lambda is the one of the report's table 1.
    """
    problem, _ = make_problem(replace(cell, lam=cell.data.columns["c_sdca"]), data)
    outputs = [
        solve(
            problem,
            parse(cell.arm.solver, SOLVERS),
            tol=0.0,
            max_epochs=epochs,
            record=sys.maxsize // 4,  # at the end alone
            random_state=cell.seed,
        ).w
        for epochs in STOPS
    ]
    shares = [np.linalg.norm(b - a) / np.linalg.norm(b) for a, b in pairwise(outputs)]
    return [{"lam": problem.lam, "change": float(np.mean(shares))}]

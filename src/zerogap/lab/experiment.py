"""Experiments declared as data, and the cells they expand to."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zerogap.lab.figures import Figure
from zerogap.lab.functions import function_digest, library_digest, name_of
from zerogap.lab.verdicts import Claim, Table

REFERENCE = "reference"  # name of the arm that looks for the best lower bound
RUN_SOLVER = "zerogap.lab.cells:run_solver"
_QUICK_SEEDS, _QUICK_EPOCHS, _QUICK_ROWS = 3, 5, 1000


@dataclass(frozen=True)
class Data:
    """Rows for an experiment: where they come from and what happens to them.

    Attributes
    ----------
    name : str
        A data set of the registry, a generator such as "simulated", or a file.
    label : str
        Name in tables and figures; `name` if empty.
    options : dict
        Options of a generator (n_samples, noise ...) or of the reader of a file (target).
    positive : label, optional
        The class that becomes +1 while all others become -1, for sets of several classes.
    rows : int, optional
        Take so many random rows for training, and as many at most for the test.
    test : float, optional
        Share of the rows for a random test part.  None: the set's own test part, if it has one.
    groups : bool
        Whether a random test part keeps groups undivided, where the set has groups.
    first, transforms : tuple of str
        Transforms such as "standardise" or "pca:n_components=40:whiten=true", see
        `zerogap.lab.data.TRANSFORMS`: `first` ones are fitted to all rows before the split, as
        some reports did, the others to the training rows.
    seed : int, optional
        Seed of generator, rows, split and transforms; None: the seed of the run.
    columns : dict
        Further columns of the table, such as {"h": 10.0}, which say what is special here.
    """

    name: str = ""
    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    positive: Any = None
    rows: int | None = None
    test: float | None = None
    groups: bool = True
    first: tuple[str, ...] = ()
    transforms: tuple[str, ...] = ()
    seed: int | None = 0
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Arm:
    """One line of an experiment: a solver with its options, and what differs for it alone.

    Attributes
    ----------
    name : str
        Name in tables and figures.
    solver : str
        As on the command line: "pegasos:batch_size=8:projection=true".  Empty for experiments with
        a function of their own that need none.
    loss, lam, epochs, updates, tol, seeds
        Instead of the experiment's.  `updates` is a budget in steps, whatever a step reads.
    columns : dict
        Further columns of the table, such as {"k": 8}: an arm per value makes a sweep.
    """

    name: str = ""
    solver: str = ""
    loss: str | None = None
    lam: float | None = None
    epochs: float | None = None
    updates: int | None = None
    tol: float | None = None
    seeds: tuple[int, ...] | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One run: everything that decides its rows, as plain data."""

    function: str
    data: Data
    loss: str
    lam: float | None
    arm: Arm
    seed: int
    epochs: float
    tol: float
    record: str | int | float
    metrics: tuple[str, ...]
    intercept: bool
    timed: bool

    def as_json(self) -> str:
        """Return the cell as canonical JSON."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))

    def digest(self, data_digest: str) -> str:
        """Return what names the cell's result: settings, code and data all count."""
        parts = [self.as_json(), library_digest(), function_digest(self.function), data_digest]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def labels(self) -> dict[str, Any]:
        """The columns that tell this cell's rows from those of others."""
        named = {
            "data": self.data.label or self.data.name,
            "loss": self.loss,
            "lam": self.lam,
            "solver": self.arm.name,
            "seed": self.seed,
        }
        named = {name: value for name, value in named.items() if value not in ("", None)}
        return {**named, **self.data.columns, **self.arm.columns}


@dataclass(frozen=True)
class Experiment:
    """A question, how it is answered, and how the answer is shown.

    Attributes
    ----------
    id, title, question : str
        "S0-fig1", a heading, and what is asked.
    data, losses, lams, arms, seeds
        What is run: every combination.  A lam of None means 1 / n.
    epochs, tol, record, metrics, intercept
        Budget of a run in passes over the data, relative gap at which it ends (0: never), when to
        record ("epoch", every so many updates, a ratio > 1, or "end"), what to record beside
        primal, dual and gap (see `zerogap.lab.cells.METRICS`), and whether there is an intercept.
    reference : float, optional
        Relative gap of a long run of SDCA that adds the column ``suboptimality``.
    timed : bool
        Whether time is the subject: its cells then run alone, after all others.
    function : callable, optional
        A module-level function (cell, data) -> rows instead of the run of a solver.  Keep it in a
        file of its own: editing that file makes its cells run anew.
    figures, tables, claims
        What is shown.  Each says which rows of the inventory it covers.
    original : dict
        The report's own settings, by name.
    differs : tuple of str
        What is not as in the report, and why.
    errata : tuple of str
        Ids of the mistakes that matter here.
    quick : dict
        Fields of the small version, where the derived one is not right, and "rows" (None: all):
        3 seeds, 5 epochs, 1000 rows.
    """

    id: str
    title: str
    question: str
    data: tuple[Data, ...] = (Data(),)
    losses: tuple[str, ...] = ("hinge",)
    lams: tuple[float | None, ...] = (None,)
    arms: tuple[Arm, ...] = (Arm(),)
    seeds: Sequence[int] = range(10)
    epochs: float = 50
    tol: float = 0.0
    record: str | int | float = "epoch"
    metrics: tuple[str | Callable[..., Any], ...] = ()
    intercept: bool = False
    reference: float | None = None
    timed: bool = False
    function: Callable[..., Any] | None = None
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()
    original: Mapping[str, str] = field(default_factory=dict)
    differs: tuple[str, ...] = ()
    errata: tuple[str, ...] = ()
    quick: Mapping[str, Any] = field(default_factory=dict)

    @property
    def covers(self) -> tuple[str, ...]:
        """Rows of the inventory that have their place here."""
        parts: tuple[Any, ...] = (*self.figures, *self.tables, *self.claims)
        return tuple(dict.fromkeys(name for part in parts for name in part.covers))

    @property
    def solvers(self) -> dict[str, str]:
        """The solver of each arm, by its name."""
        return {arm.name: arm.solver for arm in self.arms}

    def cells(self) -> list[Cell]:
        """Return all runs, each once, in the order of the declaration."""
        cells: dict[str, Cell] = {}
        reference = () if self.reference is None else (self._reference_arm(),)
        for data, arm in itertools.product(self.data, self.arms + reference):
            losses = self.losses if arm.loss is None else (arm.loss,)
            lams = self.lams if arm.lam is None else (arm.lam,)
            seeds = self.seeds if arm.seeds is None else arm.seeds
            if arm.name == REFERENCE:
                losses = tuple(dict.fromkeys([*losses, *(a.loss for a in self.arms if a.loss)]))
                seeds = self.seeds if data.seed is None else (0,)
            for loss, lam, seed in itertools.product(losses, lams, seeds):
                cell = self._cell(data, arm, loss, lam, seed)
                cells.setdefault(cell.as_json(), cell)
        return list(cells.values())

    def _reference_arm(self) -> Arm:
        return Arm(REFERENCE, "sdca", tol=self.reference, epochs=10_000)

    def _cell(self, data: Data, arm: Arm, loss: str, lam: float | None, seed: int) -> Cell:
        reference = arm.name == REFERENCE
        return Cell(
            function=RUN_SOLVER if self.function is None else name_of(self.function),
            data=data,
            loss=loss,
            lam=lam,
            arm=arm,
            seed=int(seed),
            epochs=self.epochs if arm.epochs is None else arm.epochs,
            tol=self.tol if arm.tol is None else arm.tol,
            record="end" if reference else self.record,
            metrics=() if reference else tuple(map(name_of, self.metrics)),
            intercept=self.intercept,
            timed=self.timed,
        )

    def small(self) -> Experiment:
        """Return the quick version: fewer seeds, epochs and rows."""
        quick = dict(self.quick)
        rows = quick.pop("rows", _QUICK_ROWS)
        seeds = quick.setdefault("seeds", tuple(self.seeds)[:_QUICK_SEEDS])
        quick.setdefault("epochs", min(self.epochs, _QUICK_EPOCHS))
        if "data" not in quick and rows is not None:
            quick["data"] = tuple(_fewer(data, rows) for data in self.data)
        if "arms" not in quick:
            quick["arms"] = tuple(
                arm
                if arm.seeds is None
                else dataclasses.replace(arm, seeds=arm.seeds[: len(seeds)])
                for arm in self.arms
            )
        return dataclasses.replace(self, **quick)


@dataclass(frozen=True)
class Chapter:
    """The experiments of one report.

    Attributes
    ----------
    id, title, source : str
        "S4", a heading, and the report it is about.
    introduction : str
        A paragraph or several, separated by empty lines.
    experiments : tuple of Experiment
        Its sections.
    notes : dict
        Rows of the inventory that a sentence settles, such as a definition, with that sentence.
    """

    id: str
    title: str
    source: str
    introduction: str
    experiments: tuple[Experiment, ...]
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def covers(self) -> set[str]:
        """Rows of the inventory that have their place in this chapter."""
        return set(self.notes).union(*(experiment.covers for experiment in self.experiments))


def _fewer(data: Data, rows: int) -> Data:
    if not data.name:
        return data
    return dataclasses.replace(data, rows=min(data.rows or rows, rows))

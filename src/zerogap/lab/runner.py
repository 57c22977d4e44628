"""From experiments to tidy tables: each cell once, in parallel, kept for the next time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zerogap.comparison.page import environment
from zerogap.lab import tables
from zerogap.lab.data import digest, missing
from zerogap.lab.experiment import Cell, Experiment
from zerogap.lab.tally import Tally
from zerogap.lab.workers import Done, work


@dataclass(frozen=True)
class Failure:
    """A cell that could not be run."""

    experiment: str
    cell: Cell
    error: str

    def __str__(self) -> str:
        labels = ", ".join(f"{name} {value}" for name, value in self.cell.labels.items())
        return f"{self.experiment} ({labels}): {self.error}"


@dataclass(frozen=True)
class Outcome:
    """What `run` returns.

    Attributes
    ----------
    tables : dict of DataFrame
        The tidy table of each experiment that has one.
    facts : dict
        For each table, what its file's metadata hold: environment, seeds, digests of the data.
    failures : list of Failure
        Cells that could not be run.
    missing : dict of str
        Data sets that could not be had, and why.
    unfinished : dict of int
        Cells that a table lacks, by experiment, except for those of missing data sets.
    interrupted : bool
        Whether Ctrl-C ended it; a second call goes on from there.
    """

    tables: dict[str, Any]
    facts: dict[str, dict[str, Any]]
    failures: list[Failure]
    missing: dict[str, str]
    unfinished: dict[str, int]
    interrupted: bool = False


def run(
    experiments: Sequence[Experiment],
    out: str | Path,
    *,
    folder: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    on_progress: Callable[[Tally], Any] | None = None,
) -> Outcome:
    """Run experiments and write a tidy table for each; what was computed before is not again.

    Parameters
    ----------
    experiments : sequence of Experiment
        What to run.
    out : path
        Folder: ``tables/ID.parquet`` and ``.csv``, and ``cells/`` with the rows of every cell.
    folder : path, optional
        Folder of the data files, see `zerogap.datasets.load`.
    jobs : int, optional
        Processes; by default one per CPU.  Cells whose subject is time run alone, after the rest.
        0 runs all in this process.
    on_progress : callable, optional
        Called with a `Tally` at the beginning and after every cell.
    """
    out, place = Path(out), None if folder is None else str(folder)
    jobs = (os.cpu_count() or 1) if jobs is None else jobs
    lacking = _missing(experiments, place)
    plan = _Plan(experiments, out / "cells", place, lacking)
    tally = Tally(jobs, plan.todo.values(), kept=len(plan.rows))
    failures, interrupted = [], False
    try:
        if on_progress is not None:
            on_progress(tally)
        for experiment, path, done in plan.work(jobs, place):
            tally.count(experiment, done.cell, done.seconds)
            if done.rows is None:
                failures.append(Failure(experiment, done.cell, done.error))
            else:
                tables.save_rows(done.rows, path)
                plan.rows[path] = tables.load_rows(path) or []  # the same as the next time
            if on_progress is not None:
                on_progress(tally)
    except KeyboardInterrupt:
        interrupted = True
    return _collect(plan, experiments, out / "tables", (failures, lacking, interrupted))


class _Plan:
    """Which cells there are, which are known already, and in which order to run the rest."""

    def __init__(
        self,
        experiments: Sequence[Experiment],
        cells: Path,
        folder: str | None,
        lacking: dict[str, str],
    ) -> None:
        self.paths: dict[str, list[tuple[Cell, Path]]] = {}
        self.todo: dict[Path, tuple[str, Cell]] = {}
        self.digests: dict[str, str] = {}
        self.rows: dict[Path, list[dict[str, Any]]] = {}  # of cells that are done
        for experiment in experiments:
            found = self.paths[experiment.id] = []
            for cell in experiment.cells():
                name = cell.data.name
                if name in lacking:
                    continue
                if name not in self.digests:
                    self.digests[name] = digest(cell.data)
                key = cell.digest(self.digests[name])
                path = cells / key[:2] / f"{key}.parquet"
                found.append((cell, path))
                if path in self.rows or path in self.todo:
                    continue  # another experiment has the same cell
                rows = tables.load_rows(path)
                if rows is None:
                    self.todo[path] = experiment.id, cell
                else:
                    self.rows[path] = rows

    def work(self, jobs: int, folder: str | None) -> Iterator[tuple[str, Path, Done]]:
        """Run the cells, those that share rows one after the other, the timed ones last, alone."""
        order = list(dict.fromkeys(experiment for experiment, _ in self.todo.values()))
        names = {id(cell): (name, path) for path, (name, cell) in self.todo.items()}

        def place(cell: Cell) -> tuple[Any, ...]:
            seed = cell.seed if cell.data.seed is None else 0
            return order.index(names[id(cell)][0]), repr(cell.data), seed

        cells = sorted((cell for _, cell in self.todo.values()), key=place)
        where = {cell.as_json(): names[id(cell)] for cell in cells}
        for timed, processes in ((False, jobs), (True, min(jobs, 1))):
            chosen = [cell for cell in cells if cell.timed is timed]
            for done in work(chosen, processes, folder):
                yield *where[done.cell.as_json()], done


def _missing(experiments: Sequence[Experiment], folder: str | None) -> dict[str, str]:
    every = {data.name: data for experiment in experiments for data in experiment.data}
    reasons = {name: missing(data, folder) for name, data in every.items()}
    return {name: reason for name, reason in reasons.items() if reason}


def _collect(
    plan: _Plan,
    experiments: Sequence[Experiment],
    folder: Path,
    rest: tuple[list[Failure], dict[str, str], bool],
) -> Outcome:
    """Write the tables of what there is."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    facts: dict[str, dict[str, Any]] = {}
    unfinished: dict[str, int] = {}
    for experiment in experiments:
        cells = plan.paths[experiment.id]
        whole = [(cell, plan.rows[path]) for cell, path in cells if path in plan.rows]
        short = len(cells) - len(whole)
        if short:
            unfinished[experiment.id] = short
        if not any(rows for _, rows in whole):
            continue
        names = dict.fromkeys(cell.data.name for cell, _ in whole)
        facts[experiment.id] = {
            "experiment": experiment.id,
            "environment": environment(),
            "seeds": sorted({cell.seed for cell, _ in whole}),
            "data": {name: plan.digests[name] for name in names if name},
            "cells": len(whole),
        }
        found[experiment.id] = table = tables.tidy(whole)
        tables.write(table, folder / f"{experiment.id}.parquet", facts[experiment.id])
    failures, lacking, interrupted = rest
    return Outcome(found, facts, failures, lacking, unfinished, interrupted)

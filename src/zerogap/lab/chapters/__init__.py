"""The chapters of the report, one module each."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from zerogap.lab.experiment import Chapter, Experiment
from zerogap.lab.inventory import REPORTS


@cache
def chapter(label: str) -> Chapter:
    """Return the chapter of a report."""
    return importlib.import_module(f"{__name__}.{label.lower()}").CHAPTER


def chapters() -> tuple[Chapter, ...]:
    """Return all chapters, in the order of the reports."""
    return tuple(map(chapter, REPORTS))


def select(names: Sequence[str]) -> tuple[Chapter, ...]:
    """Return the chapters with the experiments of those names only.

    A name is "all", a report ("S0"), an experiment, figure, table or claim ("S0-fig4"), or a row of
    the inventory ("S0-44").

    Examples
    --------
    >>> [experiment.id for experiment in select(["S4-14", "S4-lemmas"])[0].experiments]
    ['S4-fixT', 'S4-lemmas']
    """
    known = {"all"}
    wanted = {name.lower() for name in names}
    chosen = []
    asked = [label for label in REPORTS if "all" in wanted or _begins(wanted, label.lower())]
    for found in map(chapter, asked or REPORTS):
        kept = []
        for experiment in found.experiments:
            called = {"all", found.id.lower(), *map(str.lower, _names(experiment))}
            known |= called
            if called & wanted:
                kept.append(experiment)
        if kept:
            chosen.append(replace(found, experiments=tuple(kept)))
    if strange := sorted(wanted - known):
        close = difflib.get_close_matches(strange[0], sorted(known), 3)
        hint = f"did you mean {' or '.join(close)}?" if close else "choose all or S0 to S4"
        raise ValueError(f"nothing is called {strange[0]!r}: {hint}")
    return tuple(chosen)


def _begins(names: set[str], label: str) -> bool:
    return any(name.startswith(label) for name in names)


def _names(experiment: Experiment) -> set[str]:
    parts: tuple[Any, ...] = (*experiment.figures, *experiment.tables, *experiment.claims)
    return {experiment.id, *experiment.covers, *(part.id for part in parts)}

"""What the reports contain, what they claim, and their mistakes."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from zerogap.lab.verdicts import Claim, Verdict

REPORTS = {
    "S0": "Ouillade & Vengathesa Sarma 2017: SDCA against Pegasos for linear SVM",
    "S1": "Bouche & Verluise 2018: SDCA against Pegasos on blood cell images",
    "S2": "Desforges, Karpe & Roux 2018: SDCA with logistic regression and other losses",
    "S3": "Oxford AIMS practical: gradient descent, SGD and Frank-Wolfe on MNIST",
    "S4": "Shen 2014: slides on Pegasos, with proofs",
}


@dataclass(frozen=True)
class Item:
    """One thing that a report shows or says."""

    id: str
    kind: str  # figure, table, number, claim, theorem, formula, algorithm, option ...
    text: str
    name: str = ""  # what has it in the library, such as "SDCA.output"

    @property
    def report(self) -> str:
        """Label of the report."""
        return self.id.partition("-")[0]


@dataclass(frozen=True)
class Erratum:
    """A mistake of a report: where, what is printed, and what is right."""

    id: str
    where: str
    printed: str
    correct: str

    @property
    def report(self) -> str:
        """Label of the report."""
        return f"S{self.id[1]}"


@cache
def items() -> dict[str, Item]:
    """Return all items by id."""
    read = _read("inventory.toml")
    return {id: Item(id, *row) for report in read.values() for id, row in report.items()}


@cache
def errata() -> dict[str, Erratum]:
    """Return all mistakes by id."""
    read = _read("errata.toml")
    return {id: Erratum(id, *row) for report in read.values() for id, row in report.items()}


@cache
def claims() -> dict[str, dict[str, Any]]:
    """Return what is known of each claim, by id: where, says, setting, caution, extension."""
    return _read("claims.toml")


def claim(id: str, judge: Callable[..., Verdict], *tables: str) -> Claim:
    """Return the claim of that id, judged from these tables; by default from its experiment's."""
    known = claims()[id]
    return Claim(
        id,
        known["says"],
        judge,
        tables,
        where=known["where"],
        setting=known["setting"],
        caution=known.get("caution", ""),
        extension=known.get("extension", False),
    )


def _read(name: str) -> Any:
    return tomllib.loads(files("zerogap.lab").joinpath(name).read_text(encoding="utf-8"))

"""Claims, and verdicts that come with their statistic: never from a single run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zerogap.lab.statistics import Calculation, Count, Interval, number, paired_difference

HOLDS, FAILS, DEPENDS = "holds", "does not hold", "depends"
Evidence = Interval | Count | Calculation


@dataclass(frozen=True)
class Verdict:
    """What the runs say about a claim.

    Attributes
    ----------
    verdict : "holds", "does not hold" or "depends"
        The finding.
    sentence : str
        One sentence that a reader can quote.
    evidence : tuple of Interval, Count or Calculation
        The statistic, with the number of runs; a single run is refused.
    on_what : str
        What it depends on.
    """

    verdict: str
    sentence: str
    evidence: tuple[Evidence, ...]
    on_what: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in (HOLDS, FAILS, DEPENDS):
            raise ValueError(f"a verdict is {HOLDS!r}, {FAILS!r} or {DEPENDS!r}: {self.verdict!r}")
        if (self.verdict == DEPENDS) != bool(self.on_what):
            raise ValueError(f"say on_what, if and only if the verdict is {DEPENDS!r}")
        if not self.evidence:
            raise ValueError("a verdict needs a statistic: an Interval, a Count or a Calculation")
        for part in self.evidence:
            if not isinstance(part, Calculation) and part.n < 2:
                raise ValueError(f"no verdict from a single run: {part}")


@dataclass(frozen=True)
class Claim:
    """A statement of a report, and the function of the tidy table that judges it.

    Attributes
    ----------
    id : str
        "S0-52", or "S0-52a" where a row of the inventory makes several statements.
    statement : str
        What the report says, in our words.
    judge : callable
        Function (table, ...) -> Verdict.
    tables : tuple of str
        Ids of the experiments whose tables it takes, by default the one it belongs to.
    covers : tuple of str
        Rows of the inventory; by default the one that `id` begins with.
    """

    id: str
    statement: str
    judge: Callable[..., Verdict]
    tables: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.covers:
            object.__setattr__(self, "covers", (self.id.rstrip("abcdefghijklmnopqrstuvwxyz"),))


@dataclass(frozen=True)
class Table:
    """A table of the report.

    Attributes
    ----------
    id, title : str
        Name of its files, and heading.
    make : callable
        Function (table) -> list of dict, one per line: texts, numbers, `Interval` or `Count`.
    covers : tuple of str
        Rows of the inventory.
    note : str
        A line below it.
    """

    id: str
    title: str
    make: Callable[[Any], Sequence[Mapping[str, Any]]]
    covers: tuple[str, ...] = ()
    note: str = ""


def lower(
    table: Any,
    column: str,
    first: str,
    second: str,
    *,
    by: Sequence[str] = ("data",),
    sentence: str = "",
) -> Verdict:
    """Judge "`first` ends with a lower `column` than `second`", paired by seed.

    The claim holds if the 95 % interval of the difference is below 0 in every group of `by`, does
    not hold if in none, and depends on the group otherwise.

    Parameters
    ----------
    table : DataFrame
        Tidy table; the last record of each run counts.
    column : str
        What is compared.
    first, second : str
        Names of two solvers.
    by : sequence of str
        Columns that split the table into groups, each judged by itself.
    sentence : str
        Instead of the derived one.
    """
    by = [name for name in by if name in table and table[name].nunique() > 1]
    effects = {
        name: paired_difference(
            final(part), column, first, second, what=_effect(column, first, second, name)
        )
        for name, part in split(table, by)
    }
    below = [name for name, effect in effects.items() if effect.high < 0]
    above = [name for name, effect in effects.items() if effect.low > 0]
    evidence = tuple(effects.values())
    if len(below) == len(effects):
        text = f"{first} ends with a lower {column} than {second}."
        return Verdict(HOLDS, sentence or text, evidence)
    if not below:
        verb = "a higher" if len(above) == len(effects) else "no lower"
        return Verdict(
            FAILS, sentence or f"{first} ends with {verb} {column} than {second}.", evidence
        )
    text = f"{first} ends with a lower {column} than {second} on {'; '.join(below)} only."
    return Verdict(DEPENDS, sentence or text, evidence, on_what=" and ".join(by))


def final(table: Any) -> Any:
    """Return the last record of every run."""
    labels = [name for name in ("data", "loss", "lam", "solver", "seed") if name in table]
    keys = ["run"] if "run" in table else labels
    return table.groupby(keys, sort=False, dropna=False).tail(1)


def split(table: Any, by: Sequence[str]) -> list[tuple[str, Any]]:
    """Return the groups of a table with their names, in the order of appearance."""
    by = [name for name in by if name in table]
    if not by:
        return [("", table)]
    groups = table.groupby(by, sort=False, dropna=False)
    return [(", ".join(map(_text, key)), part) for key, part in groups]


def _effect(column: str, first: str, second: str, group: str) -> str:
    return f"{column}, {first} - {second}" + (f" on {group}" if group else "")


def _text(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)

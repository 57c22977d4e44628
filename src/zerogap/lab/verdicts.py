"""Claims, and verdicts that come with their statistic: never from a single run.

A verdict answers whether a claim holds in the report's own setting.  Whether it also holds in other
settings is a second line, the robustness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zerogap.lab.statistics import Calculation, Count, Interval, number, paired_difference

HOLDS, FAILS, DEPENDS, UNDECIDED = "holds", "does not hold", "depends", "undecided"
YES, NO, OPEN = "yes", "no", "open"  # answers of one comparison; open: the interval holds both
Statistic = Interval | Count | Calculation


@dataclass(frozen=True)
class Verdict:
    """What the runs say about a claim.

    Attributes
    ----------
    verdict : "holds", "does not hold", "depends" or "undecided"
        The finding in the report's own setting.
    sentence : str
        One sentence that a reader can quote.
    evidence : tuple of Interval, Count or Calculation
        The statistic, with the number of runs; a single run is refused.
    on_what : str
        What it depends on.
    robustness : str
        Whether it is so in other settings: other lambdas, data, axes, tuned opponents.
    further : tuple of Interval, Count or Calculation
        The statistics behind the robustness.
    """

    verdict: str
    sentence: str
    evidence: tuple[Statistic, ...]
    on_what: str = ""
    robustness: str = ""
    further: tuple[Statistic, ...] = ()

    def __post_init__(self) -> None:
        known = (HOLDS, FAILS, DEPENDS, UNDECIDED)
        if self.verdict not in known:
            raise ValueError(f"a verdict is one of {', '.join(known)}: {self.verdict!r}")
        if (self.verdict == DEPENDS) != bool(self.on_what):
            raise ValueError(f"say on_what, if and only if the verdict is {DEPENDS!r}")
        if not self.evidence:
            raise ValueError("a verdict needs a statistic: an Interval, a Count or a Calculation")
        if self.further and not self.robustness:
            raise ValueError("further statistics need the sentence on robustness")
        for part in (*self.evidence, *self.further):
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
        What the report says, in our words, in one sentence.
    judge : callable
        Function (table, ...) -> Verdict.
    tables : tuple of str
        Ids of the experiments whose tables it takes, by default the one it belongs to.
    covers : tuple of str
        Rows of the inventory; by default the one that `id` begins with.
    where : str
        Section of the report.
    setting : str
        Data, axis and quantity by which the verdict is given.
    caution : str
        The report's own caution, such as "seems".
    extension : bool
        Whether no report says so: we found it worth testing.
    """

    id: str
    statement: str
    judge: Callable[..., Verdict]
    tables: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    where: str = ""
    setting: str = ""
    caution: str = ""
    extension: bool = False

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


def below(effect: Interval, limit: float = 0.0) -> str:
    """Answer "the value is below the limit" by its interval.

    Examples
    --------
    >>> [below(Interval("", x, x - 1, x + 1, 9)) for x in (-2.0, 0.5, 2.0)]
    ['yes', 'open', 'no']
    """
    return YES if effect.high < limit else NO if effect.low > limit else OPEN


def above(effect: Interval, limit: float = 0.0) -> str:
    """Answer "the value is above the limit" by its interval."""
    return {YES: NO, NO: YES, OPEN: OPEN}[below(effect, limit)]


def within(effect: Interval, low: float, high: float) -> str:
    """Answer "the value lies between low and high" by its interval."""
    if low <= effect.low and effect.high <= high:
        return YES
    return NO if effect.high < low or effect.low > high else OPEN


def mostly(count: Count) -> str:
    """Answer "it is so more often than not" by the exact interval of the probability."""
    low, high = count.interval
    return YES if low > 0.5 else NO if high < 0.5 else OPEN


def always(count: Count) -> str:
    """Answer "it is so in every run"."""
    return YES if count.k == count.n else NO


def settle(answers: Iterable[str]) -> str:
    """Return the verdict on "it is so in every comparison".

    A comparison whose interval holds both answers refutes nothing: with it a claim is undecided,
    unless another comparison says no.

    Examples
    --------
    >>> [settle(found) for found in ([YES, YES], [YES, NO], [NO, OPEN], [YES, OPEN])]
    ['holds', 'depends', 'does not hold', 'undecided']
    """
    found = set(answers)
    if NO in found:
        return DEPENDS if YES in found else FAILS
    return UNDECIDED if OPEN in found or not found else HOLDS


def conclude(
    answers: Iterable[str],
    sentence: str | Mapping[str, str],
    evidence: Iterable[Statistic],
    on_what: str,
    robustness: str = "",
    further: Iterable[Statistic] = (),
) -> Verdict:
    """Return the verdict that the answers come to, with its sentence.

    `sentence` is one text made of what was measured, or a text per verdict; `on_what` is said only
    where the verdict depends.
    """
    verdict = settle(answers)
    text = sentence if isinstance(sentence, str) else sentence[verdict]
    on_what = on_what if verdict == DEPENDS else ""
    return Verdict(verdict, text, tuple(evidence), on_what, robustness, tuple(further))


def sorted_by(answers: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names that have each answer: yes, no and open."""
    return {kind: [n for n, a in answers.items() if a == kind] for kind in (YES, NO, OPEN)}


def listed(names: Iterable[str]) -> str:
    """Return names as one reads them: "a", "a and b", "a, b and c".

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def lower(
    table: Any,
    column: str,
    first: str,
    second: str,
    *,
    by: Sequence[str] = ("data",),
) -> Verdict:
    """Judge "`first` ends with a lower `column` than `second`", paired by seed.

    The claim holds if the 95 % interval of the difference is below 0 in every group of `by`, does
    not hold if it is above 0 somewhere and below 0 nowhere, depends on the group if it is both, and
    is undecided otherwise.

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
    """
    by = [name for name in by if name in table and table[name].nunique() > 1]
    effects = {
        name: paired_difference(
            final(part), column, first, second, what=_effect(column, first, second, name)
        )
        for name, part in split(table, by)
    }
    found = sorted_by({name: below(effect) for name, effect in effects.items()})
    words = {YES: "a lower", NO: "a higher", OPEN: "neither a lower nor a higher"}
    parts = [
        f"{words[kind]} {column} than {second}" + (f" on {listed(names)}" if any(names) else "")
        for kind, names in found.items()
        if names
    ]
    sentence = f"{first} ends with {', '.join(parts)}."
    answers = (below(effect) for effect in effects.values())
    return conclude(answers, sentence, effects.values(), " and ".join(by))


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

"""Which columns of a table are what: target, weights, names of rows, features."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from zerogap.readers.columns import Column, Number
from zerogap.readers.files import DataError
from zerogap.readers.options import TableOptions
from zerogap.readers.tables import TableFile

_TARGETS = ("target", "label", "y", "class")
_OF_NAMES = re.compile(r"(?i)(^|[_\W])(id|zip|zipcode|postcode|plz|code)$|[a-z]I[dD]$")


class Roles:
    """Which columns are what, before anything is known of their cells."""

    def __init__(self, file: TableFile, target: str | None, options: TableOptions) -> None:
        names = list(file.names)
        if not names:
            raise DataError("has no columns")
        named: dict[str, tuple[str | None, ...]] = {"--drop": options.drop, "--only": options.only}
        named["--text"] = options.text
        named |= {"--category": options.category, "--id": (options.id,)}
        named["--weight"] = (options.weight,)
        for option, asked in named.items():
            for name in asked:
                if name is not None and name not in names:
                    raise DataError(f"has no column {name!r} for {option}; {listed(names)}")
        named_ones = [name for name in names if name not in file.unnamed] or names
        known = names if target in names else named_ones
        self.target = find_target(
            known,
            target,
            labelled=True,
            sheets=file.sheets,
            lines=file.is_text or file.kind == "xlsx",
        )
        for copy in file.copies:
            if copy.startswith(f"{self.target} (") and copy not in options.drop:
                raise DataError(
                    f"has two columns named {self.target!r}, the target: --drop "
                    f"{shlex.quote(copy)} leaves the later one out"
                )
        self.left_out: list[tuple[str, str]] = []
        self.features: list[str] = []
        special = {self.target, options.weight, options.id}
        for name in names:
            if name in special:
                continue
            if name in options.drop or (options.only and name not in options.only):
                self.left_out.append((name, "--drop" if name in options.drop else "not in --only"))
            else:
                self.features.append(name)


def tell_codes(file: TableFile, learnt: Sequence[Column]) -> None:
    """Note columns of numbers that are rather names of something."""
    for column in learnt:
        coded = column.name in file.coded
        if type(column) is Number and (coded or _OF_NAMES.search(column.name)):
            name, why = shlex.quote(column.name), "has leading zeros, and " if coded else ""
            file.notes.append(
                f"column {column.name!r} {why}counts as a number: --category {name} makes "
                f"categories of it, --id {name} or --drop {name} leaves it out"
            )


def find_target(
    names: list[str],
    target: str | None,
    labelled: bool,
    sheets: tuple[str, ...] = (),
    lines: bool = True,
) -> str | None:
    """Return the name of the target column, None if it need not be there and is not.

    `sheets` are those of a spreadsheet, of which the first one was read; `lines` tells whether the
    names stood in a line of text.
    """
    if target is None and names[-1].lower() in _TARGETS:
        target = names[-1]
    if target in names or not labelled:
        return target if target in names else None
    what = (
        "needs the name of its target column (--target)"
        if target is None
        else f"has no column {target!r}"
    )
    alike = get_close_matches(str(target).casefold(), [name.casefold() for name in names], 1)
    usual = [name for name in names if target is None and name.lower() in _TARGETS]
    if usual:
        hint = f"--target {shlex.quote(usual[0])} takes that one"
    elif target is not None and alike:
        name = next(name for name in names if name.casefold() == alike[0])
        hint = f"did you mean --target {shlex.quote(name)}?"
    elif sheets:
        others = ", ".join(shlex.quote(name) for name in sheets[1:])
        hint = f"this is sheet {sheets[0]!r}: --sheet reads another one, of {others}"
    elif not lines:
        hint = ""
    elif len(names) == 1:
        hint = "--sep SIGN tells what parts the cells, if they are several"
    else:
        hint = "--no-header tells that the first line names none, --skip-lines 1 that they follow"
    raise DataError(f"{what}; {listed(names)}{'; ' if hint else ''}{hint}")


def listed(names: Iterable[str]) -> str:
    """Return the names of columns, the first twenty of many."""
    shown = list(names)
    return f"its columns are {', '.join(shown[:20])}{', ...' if len(shown) > 20 else ''}"

"""Options that say how a table is read, and what its columns are, for all commands that need it."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.output import Reporting, failures

_COLUMN = "COLUMN"


def _text(metavar: str, help: str) -> Any:
    return Annotated[str | None, typer.Option(metavar=metavar, help=help, show_default=False)]


def _texts(metavar: str, help: str) -> Any:
    more = f"{help}  May be repeated."
    return Annotated[list[str] | None, typer.Option(metavar=metavar, help=more, show_default=False)]


def _flag(help: str, *names: str) -> Any:
    return Annotated[bool, typer.Option(*names, help=help)]


_FILE: dict[str, tuple[Any, Any]] = {
    "sep": (
        _text("SIGN", "What separates the cells of a line: , ; | tab or blanks.  Guessed."),
        None,
    ),
    "decimal": (_text("SIGN", "Decimal sign, . or a comma.  Guessed."), None),
    "encoding": (_text("NAME", "Encoding of the text, as latin-1.  Guessed."), None),
    "header": (
        Annotated[
            bool | None,
            typer.Option(
                "--header/--no-header",
                help="Whether the first line names the columns.  Guessed; without names, columns "
                "are called column1, column2 and so on.",
                show_default=False,
            ),
        ],
        None,
    ),
    "names": (_text("A,B,...", "Names of the columns of a file that has none."), None),
    "skip_lines": (
        Annotated[int, typer.Option(min=0, help="Lines to pass over before the table begins.")],
        0,
    ),
    "skip_below": (
        Annotated[
            int,
            typer.Option(
                min=0, help="Lines below the names to pass over, as those of units or questions."
            ),
        ],
        0,
    ),
    "skip_bad_lines": (
        _flag("Leave out lines with more or fewer cells than the first.", "--skip-bad-lines"),
        False,
    ),
    "quote": (_text("SIGN", "What cells are quoted by: ' or \", or none.  Guessed."), None),
    "comment": (_text("SIGN", "Pass over lines that begin with this, as #."), None),
    "sheet": (_text("NAME", "Sheet of a spreadsheet; the first if not given."), None),
    "missing": (
        _texts("TEXT", "A text that means that there is no value, besides NA, ? ..."),
        None,
    ),
}
_COLUMNS: dict[str, tuple[Any, Any]] = {
    "drop": (_texts(_COLUMN, "Column to leave out."), None),
    "only": (_texts(_COLUMN, "Column to use, and no others."), None),
    "id": (_text(_COLUMN, "Column that names the rows: no feature, but printed by predict."), None),
    "category": (_texts(_COLUMN, "Column of categories, also if it holds numbers."), None),
    "min_count": (
        Annotated[int, typer.Option(min=1, help="Pool categories of fewer rows than this.")],
        1,
    ),
    "text": (_texts(_COLUMN, "Column of long texts, whose words become features."), None),
    "text_method": (
        Annotated[
            str,
            typer.Option(
                metavar="HOW",
                help="What --text makes of words: tf-idf weighs the most frequent ones, hashed "
                "gives each the place of its hash and learns nothing.",
            ),
        ],
        "tf-idf",
    ),
    "max_words": (
        Annotated[
            int, typer.Option(min=1, help="The most words for --text, or the places of hashes.")
        ],
        10_000,
    ),
    "dates": (
        _flag("Make features of dates: days, year, month, weekday.  Else left out.", "--dates"),
        False,
    ),
    "date_order": (_text("ORDER", "Order of dates: dmy, mdy or ymd.  Guessed."), None),
    "impute": (
        _text(
            "HOW",
            "Fill missing numbers in, and add a feature that tells of them: median, mean, "
            "most-frequent, constant or constant=NUMBER.  Missing text is a category of its own.",
        ),
        None,
    ),
    "drop_missing": (
        _flag(
            "Leave out rows in which something is missing; with --impute, those without target.",
            "--drop-missing",
        ),
        False,
    ),
}
_REPORTING: dict[str, tuple[Any, Any]] = {
    "quiet": (_flag("Print results and errors only: no notes, no progress.", "--quiet"), False),
    "log": (
        Annotated[
            Path | None,
            typer.Option(
                metavar="FILE", help="File to which notes, progress and results are added."
            ),
        ],
        None,
    ),
}
_WEIGHT: dict[str, tuple[Any, Any]] = {
    "weight": (_text(_COLUMN, "Column of weights of rows."), None)
}


def table_options(learn: bool = False, weight: bool = False) -> Callable[[Any], Any]:
    """Give a command these options, as one argument `table`, which `as_options` understands.

    With `learn`, also those that say what the columns are; with `weight`, a column of weights.
    """
    added = _FILE | (_COLUMNS if learn else {}) | (_WEIGHT if weight else {})

    def decorate(command: Any) -> Any:
        own = inspect.signature(command)

        @functools.wraps(command)
        def wrapped(**given: Any) -> Any:
            with failures(command.__name__):
                Reporting.set(given.pop("quiet"), given.pop("log"))
            table = {name: given.pop(name) for name in added}
            return command(**given, table=table)

        more = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )
            for name, (kind, default) in (added | _REPORTING).items()
        ]
        kept = [
            p.replace(kind=p.KEYWORD_ONLY) for p in own.parameters.values() if p.name != "table"
        ]
        parameters = [*kept, *more]
        wrapped.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
        del wrapped.__wrapped__
        return wrapped

    return decorate


def as_options(table: dict[str, Any]) -> Any:
    """Return the TableOptions that a command was given."""
    from zerogap.readers import TableOptions

    names = table.get("names")
    given = {k: v for k, v in table.items() if v is not None}
    plain: dict[str, Any] = {k: tuple(v) if type(v) is list else v for k, v in given.items()}
    return TableOptions(**plain | ({"names": tuple(names.split(","))} if names else {}))


def is_given(table: dict[str, Any]) -> list[str]:
    """Return the options that were given, by name."""
    from zerogap.readers import TableOptions

    plain, asked = TableOptions(), as_options(table)
    names = [f.name for f in fields(plain) if getattr(plain, f.name) != getattr(asked, f.name)]
    return [name.replace("_", "-") for name in names]

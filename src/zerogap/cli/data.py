"""`zerogap data`: which data sets there are, what they are, and where their files lie."""

import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli import convert
from zerogap.cli.output import USAGE, as_json, failures, print_table, printer, stop

LINE_WIDTH = 96  # letters of a printed table

Name = Annotated[str, typer.Argument(help="Name of the data set, from zerogap data list.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: Any) -> None:
    """Add the commands to the application."""
    data = typer.Typer(help="List, describe and fetch data sets; convert data to a store.")
    app.add_typer(data, name="data")
    convert.register(data)

    @data.callback(invoke_without_command=True)
    def start(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    @data.command("list")
    def list_(json: Json = False) -> None:
        """List the data sets that there are."""
        from zerogap.datasets import info, names

        sets = [info(name) for name in names()]
        if json:
            typer.echo(as_json({"datasets": [_summary(known) for known in sets]}))
            return
        rows: list[tuple[str, ...]] = [
            ("name", "rows", "test", "features", "classes", "size", "here")
        ]
        rows += [_row(known) for known in sets]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        say = printer()
        for k, row in enumerate(rows):
            middle = (text.rjust(width) for text, width in zip(row[1:6], widths[1:6], strict=True))
            say("  ".join([row[0].ljust(widths[0]), *middle, row[6]]), "bold" if k == 0 else "")

    @data.command("info")
    def info_(
        name: Annotated[str, typer.Argument(help="Name of the data set, or path of a store.")],
        json: Json = False,
    ) -> None:
        """Describe a data set or a store, without reading it."""
        if Path(name).is_dir():
            with failures("data info"):
                from zerogap.store import Store

                convert.describe(Store(name), json)
                return
        known = _known(name)
        if json:
            words = {key: getattr(known, key) for key in ("licence", "citation", "notes")}
            files = [_place(file) for file in known.files]
            about = {"description": known.description, **words, "files": files}
            typer.echo(as_json(_summary(known) | about))
            return
        test = f", and {known.n_test} for test" if known.n_test else ""
        rows = [
            ("name", known.name),
            ("content", known.description),
            ("rows", f"{known.n_samples}{test}"),
            ("features", f"{known.n_features}"),
            ("classes", f"{known.n_classes}"),
            ("licence", known.licence),
            ("citation", known.citation),
            *_lines("notes", known.notes),
        ]
        for file in map(_place, known.files):
            rows += [
                ("file", f"{file['path']}  {_size(file['bytes'])}"),
                ("  sha256", file["sha256"] or "not known"),
                ("  here", file["found"] or "no"),
                ("  source", file["url"] or "none"),
            ]
        print_table(rows)

    @data.command()
    def get(name: Name) -> None:
        """Check the files of a data set; download those that are not here."""
        from zerogap.datasets.files import find, read

        known, say = _known(name), printer()
        with failures("data get"):
            for file in known.files:
                done = "checked   " if find(file) else "downloaded"
                read(file)
                say(f"{done}  {find(file)}")
        if not known.files:
            say(f"{name} is simulated: nothing to fetch")


def _known(name: str) -> Any:
    from zerogap.datasets import info

    try:
        return info(name)
    except ValueError as error:
        stop("data", str(error), USAGE)


def _summary(known: Any) -> dict[str, Any]:
    from zerogap.datasets.files import find

    sizes = ("name", "n_samples", "n_test", "n_features", "n_classes")
    return {key: getattr(known, key) for key in sizes} | {
        "bytes": sum(file.size for file in known.files),
        "here": all(find(file) for file in known.files),
        "downloadable": all(file.url for file in known.files),
    }


def _row(known: Any) -> tuple[str, ...]:
    about = _summary(known)
    here = "yes" if about["here"] else "no, can be fetched" if about["downloadable"] else "no"
    return (
        known.name,
        str(known.n_samples),
        str(known.n_test or "-"),
        str(known.n_features),
        str(known.n_classes),
        _size(about["bytes"]) if known.files else "-",
        here if known.files else "simulated",
    )


def _place(file: Any) -> dict[str, Any]:
    from zerogap.datasets.files import find

    found = find(file)
    return {
        "path": file.path,
        "bytes": file.size,
        "sha256": file.sha256,
        "found": str(found) if found else None,
        "url": file.url,
    }


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"


def _lines(name: str, text: str) -> list[tuple[str, str]]:
    """Wrap a long text into rows; the first row carries its name."""
    lines = textwrap.wrap(text, LINE_WIDTH - 10)
    return [(name if k == 0 else "", line) for k, line in enumerate(lines)]

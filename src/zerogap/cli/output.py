"""What all commands share: exit codes, and how they print."""

import sys
from typing import Any, NoReturn

FAILURE, USAGE, NOT_REACHED, INTERRUPTED = 1, 2, 3, 130  # exit codes


def stop(command: str, message: str, code: int) -> NoReturn:
    """Say why on standard error, and leave."""
    import typer

    typer.echo(f"zerogap {command}: {message}", err=True)
    raise typer.Exit(code)


def printer() -> Any:
    """Return a function that prints a line: styled on a terminal, else plain."""
    import typer

    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False, markup=False, soft_wrap=True)
        return lambda text, style="": console.print(text, style=style or None)
    return lambda text, style="": typer.echo(text)

"""The command `zerogap`.  Its commands import what they need when they run."""

import sys
from typing import Annotated, Any

from zerogap.cli.output import FAILURE, INTERRUPTED


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        import typer
    except ModuleNotFoundError:
        print(
            "zerogap: the command line needs typer and rich: pip install 'zerogap[cli]'",
            file=sys.stderr,
        )
        sys.exit(FAILURE)
    # a ClickException, of click or of the copy of click that recent versions of typer hold
    click_error: Any = typer.BadParameter.__mro__[2]
    try:
        sys.exit(make_app()(prog_name="zerogap", standalone_mode=False))
    except click_error as error:
        message = " ".join(error.format_message().split()).rstrip(".")
        print(f"zerogap: {message}; see zerogap --help", file=sys.stderr)
        sys.exit(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)


def make_app() -> Any:
    """Return the typer application."""
    import typer

    app = typer.Typer(
        help="Linear models trained to a proved distance from the optimum.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
    )

    @app.callback(invoke_without_command=True)
    def start(
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    ) -> None:
        if version:
            from importlib.metadata import version as installed

            typer.echo(f"zerogap {installed('zerogap')}")
            raise typer.Exit
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    from zerogap.cli import practical

    for command in (practical,):
        command.register(app)
    return app

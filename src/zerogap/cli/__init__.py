"""The command `zerogap`.  Its commands import what they need when they run."""

import os
import signal
import sys
import warnings
from typing import Annotated, Any


def main() -> None:
    """Run the command line and leave with its exit code."""
    _open_closed_streams()
    try:
        import typer
    except ModuleNotFoundError:
        print(
            "zerogap: the command line needs typer and rich: pip install 'zerogap[cli]'",
            file=sys.stderr,
        )
        sys.exit(1)
    from zerogap.cli.output import FAILURE, INTERRUPTED, Reporting, one_line, visible

    # a ClickException, of click or of the copy of click that recent versions of typer hold
    click_error: Any = typer.BadParameter.__mro__[2]
    for number in _requests_to_end():
        signal.signal(number, _as_ctrl_c)
    Reporting.stopped = False  # whatever an earlier command of this process did
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = make_app()(prog_name="zerogap", standalone_mode=False)
        if code == INTERRUPTED and not Reporting.stopped:  # before a command has begun
            print("zerogap: interrupted", file=sys.stderr)
        sys.exit(code)
    except click_error as error:
        message = " ".join(error.format_message().split()).rstrip(".")
        command = error.ctx.command_path if getattr(error, "ctx", None) else "zerogap"
        print(visible(f"{command}: {message}; see {command} --help"), file=sys.stderr)
        sys.exit(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        print("zerogap: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        raise
    except (ImportError, MemoryError, OSError) as error:  # as a library that finds no memory
        print(visible(f"zerogap: {one_line(error)}"), file=sys.stderr)
        sys.exit(FAILURE)


def _requests_to_end() -> list[signal.Signals]:
    """Return the signals that ask this process to end, except for those that nohup turned off."""
    requests = [signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        requests.append(signal.SIGHUP)  # the terminal is gone
    return requests


def _as_ctrl_c(number: int, frame: Any) -> None:
    """Do what Ctrl-C would do: the best certified model is saved.

    Only once: who asks to end often, or also in another way, would lose the model.
    """
    for request in _requests_to_end():
        signal.signal(request, signal.SIG_IGN)
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # a shell that runs a job in the background turns Ctrl-C off
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


def _open_closed_streams() -> None:
    """Give input and outputs that the caller has closed a place to go to.

    A file that is opened later would otherwise get the number of one of them, and what a library
    prints would go into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _show_warning(message: Warning | str, *details: Any, **more: Any) -> None:
    """Print a warning as one line, without the place in the code."""
    from zerogap.cli.output import visible

    print(f"zerogap: {visible(' '.join(str(message).split()))}", file=sys.stderr)


def make_app() -> Any:
    """Return the typer application."""
    import typer

    from zerogap.cli import (
        audit,
        bounds,
        certify,
        compare,
        data,
        export,
        forget,
        path,
        practical,
        predict,
        prove,
        reproduce,
        show,
        sweep,
        train,
        warmup,
    )
    from zerogap.cli.examples import add_examples, epilog

    app = typer.Typer(
        help="Linear models trained to a proved distance from the optimum.",
        epilog=(
            f"{epilog('zerogap')}\n\n"
            "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 stopped before the asked gap, or "
            "undecided, 130 interrupted (Ctrl-C, SIGTERM, SIGHUP) with nothing to keep.  "
            "docs/command-line.md has worked examples."
        ),
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=True,
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

    commands = (
        train,
        show,
        predict,
        certify,
        audit,
        prove,
        export,
        forget,
        compare,
        sweep,
        path,
        bounds,
        reproduce,
        data,
        practical,
        warmup,
    )
    for command in commands:
        command.register(app)
    add_examples(app)
    return app

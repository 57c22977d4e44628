"""The command `zerogap`.  Its commands import what they need when they run."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

USAGE, FAILURE, INTERRUPTED = 2, 1, 130  # exit codes


class Dataset(StrEnum):
    """Data sets of the practical."""

    MNIST = "mnist"
    MINI_MNIST = "mini-mnist"


class Optimiser(StrEnum):
    """Solvers of the practical."""

    GD = "gd"
    SGD = "sgd"
    BCFW = "bcfw"


class Objective(StrEnum):
    """Objectives of the practical."""

    SVM = "svm"
    LOGISTIC = "logistic"


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

    @app.command()
    def practical(
        dataset: Annotated[Dataset, typer.Option(help="Data set.")] = Dataset.MNIST,
        opt: Annotated[
            Optimiser,
            typer.Option(help="Gradient descent, SGD or block-coordinate Frank-Wolfe."),
        ] = Optimiser.SGD,
        obj: Annotated[
            Objective, typer.Option(help="Multiclass hinge loss or cross-entropy.")
        ] = Objective.SVM,
        init_lr: Annotated[
            float | None,
            typer.Option(
                help="First step of sgd (0.01 if not given) or every step of gd (1 / L).",
                show_default=False,
            ),
        ] = None,
        fix_lr: Annotated[
            bool, typer.Option("--fix-lr", help="Keep the step; else it is init-lr / sqrt(t).")
        ] = False,
        batch_size: Annotated[
            int | None,
            typer.Option(
                help="Rows per step of sgd and bcfw (256 if not given).", show_default=False
            ),
        ] = None,
        epochs: Annotated[int, typer.Option(help="Passes over the data.")] = 5,
        mu: Annotated[float, typer.Option(help="Weight of the penalty mu/2 |w|^2.")] = 1e-3,
        seed: Annotated[
            int | None,
            typer.Option(help="Seed of the run; random if not given.", show_default=False),
        ] = None,
        xp_name: Annotated[
            str, typer.Option(help="Name of the picture; dataset_obj_opt if not given.")
        ] = "",
        out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path(),
    ) -> None:
        """Train a linear model on MNIST and print a line per epoch."""
        from zerogap.practical import Settings, UsageError, run

        settings = Settings(
            dataset=str(dataset),
            opt=str(opt),
            obj=str(obj),
            init_lr=init_lr,
            fix_lr=fix_lr,
            batch_size=batch_size,
            epochs=epochs,
            mu=mu,
            seed=seed,
            xp_name=xp_name,
        )
        try:
            outcome = run(settings, out, _printer())
        except UsageError as error:
            _stop(str(error), USAGE)
        except (OSError, ValueError, MemoryError) as error:
            _stop(str(error) or type(error).__name__, FAILURE)
        except KeyboardInterrupt:
            _stop("interrupted", INTERRUPTED)
        if outcome.result.stop_reason == "interrupted":
            _stop("interrupted", INTERRUPTED)

    return app


def _stop(message: str, code: int) -> NoReturn:
    """Say why on standard error, and leave."""
    import typer

    typer.echo(f"zerogap practical: {message}", err=True)
    raise typer.Exit(code)


def _printer() -> Any:
    """Return a function that prints a line: styled on a terminal, else plain."""
    import typer

    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False, markup=False, soft_wrap=True)
        return lambda text, style="": console.print(text, style=style or None)
    return lambda text, style="": typer.echo(text)

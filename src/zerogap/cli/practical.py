"""`zerogap practical`: the command lines of a classic course on MNIST."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.output import FAILURE, INTERRUPTED, USAGE, printer, stop


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


def register(app: Any) -> None:
    """Add the command to the application."""

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
        from zerogap.lab.practical import Settings, UsageError, run

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
            outcome = run(settings, out, printer())
        except UsageError as error:
            stop("practical", str(error), USAGE)
        except (OSError, ValueError, MemoryError) as error:
            stop("practical", str(error) or type(error).__name__, FAILURE)
        except KeyboardInterrupt:
            stop("practical", "interrupted", INTERRUPTED)
        if outcome.result.stop_reason == "interrupted":
            stop("practical", "interrupted", INTERRUPTED)

"""`zerogap path`: validation error at every lambda of an interval."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.choices import (
    DATA_HELP,
    FormatOption,
    JsonOption,
    Loss,
    Scale,
    ScaleOption,
    Solver,
    TargetOption,
    name_or_object,
    or_scale,
)
from zerogap.cli.inputs import Input, column_scaler, open_data, tell
from zerogap.cli.output import NOT_REACHED, USAGE, as_json, check_output, failures, printer, stop
from zerogap.cli.table_options import table_options

_LOSSES = [loss for loss in Loss if loss not in (Loss.MULTICLASS_HINGE, Loss.SOFTMAX)]
_LAMBDAS_SHOWN = 13  # in equal ratios


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    @table_options(learn=True)
    def path(
        data: Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)],
        lam_min: Annotated[float, typer.Option(help="Smallest lambda.")] = 1e-6,
        lam_max: Annotated[
            float | None,
            typer.Option(
                help="Largest lambda; by default one at which w = 0 is within --tol.",
                show_default=False,
            ),
        ] = None,
        loss: Annotated[
            str,
            typer.Option(
                metavar="NAME", help=f"{', '.join(_LOSSES)}; with an option as in quantile:q=0.9."
            ),
        ] = "hinge",
        l1_ratio: Annotated[float, typer.Option(help="Share of L1 in the penalty.")] = 0.0,
        no_intercept: Annotated[
            bool, typer.Option("--no-intercept", help="Fit no intercept.")
        ] = False,
        scale: ScaleOption = Scale.NONE,
        folds: Annotated[int, typer.Option(help="Folds of the validation.", min=2)] = 5,
        solver: Annotated[
            str, typer.Option(metavar="NAME", help=f"{', '.join(Solver)}, with or without options.")
        ] = "auto",
        tol: Annotated[
            float, typer.Option(help="Gap that no lambda exceeds, as a share of the objective.")
        ] = 1e-3,
        max_epochs: Annotated[
            int, typer.Option(help="Passes over the data for one model.", min=1)
        ] = 1000,
        jobs: Annotated[int, typer.Option(help="Threads, at most one per fold.", min=1)] = 1,
        seed: Annotated[int, typer.Option(help="Same seed, same folds and fits.", min=0)] = 0,
        target: TargetOption = None,
        format: FormatOption = None,
        out: Annotated[
            Path | None,
            typer.Option(metavar="PICTURE", help="File for a picture: .png, .svg or .pdf."),
        ] = None,
        json: JsonOption = False,
        table: Any = None,
    ) -> None:
        """Measure the validation error at every lambda of an interval.

        Each fold has models whose certificates hold at all lambdas, those between their own ones
        too.  So the error is a step function without guesses in between, and bounds of the error
        that the exact optima have come with it.
        """
        from zerogap.losses import LOSSES
        from zerogap.solvers import SOLVERS

        try:
            options = {
                "loss": name_or_object(loss, LOSSES),
                "solver": name_or_object(solver, SOLVERS),
            }
        except ValueError as error:
            stop("path", str(error), USAGE)
        options |= {
            "l1_ratio": l1_ratio,
            "fit_intercept": not no_intercept,
            "transform": column_scaler(str(scale), not no_intercept),
            "folds": folds,
            "tol": tol,
            "max_epochs": max_epochs,
            "n_jobs": jobs,
            "random_state": seed,
        }
        with failures("path", can_scale=True):
            if out is not None:
                check_output(out, data)
            read = open_data(data, target=target, format=format, table=table)
            tell("path", read)
            curve = _validate(read, lam_min, lam_max, options, or_scale(scale))
            if out is not None:
                from zerogap.io.atomic import naming
                from zerogap.sweeps import draw_curve

                with naming(out):
                    draw_curve(curve, f"{Path(read.name).name}, {loss}").savefig(out, dpi=150)
        if json:
            typer.echo(as_json(_report(curve, read)))
        else:
            _show(curve, read)


def _validate(
    read: Input, lam_min: float, lam_max: float | None, options: dict[str, Any], advice: str
) -> Any:
    """Return the curve; if a fit falls short, stop and say what to do."""
    from zerogap.paths import PathError
    from zerogap.sweeps import path_cv

    verbose = sys.stderr.isatty()
    try:
        return path_cv(
            read.X, read.y, lam_min, lam_max, groups=read.groups, verbose=verbose, **options
        )
    except PathError as error:
        raising = "raise --max-epochs, --lam-min or --tol"
        stop("path", f"{error.found}: {raising}{advice}", NOT_REACHED)


def _report(curve: Any, read: Input) -> dict[str, Any]:
    """Return the curve as a JSON object."""
    rows, features = read.X.shape
    return {
        "data": read.name,
        "rows": rows,
        "features": features,
        "measure": curve.measure,
        "tol": curve.tol,
        "folds": curve.folds,
        "models": curve.models,
        "epochs": curve.epochs,
        "best": {"lam": curve.best.lam, **curve.best._asdict()},
        "within_one_standard_error": {"lam": curve.simplest.lam, **curve.simplest._asdict()},
        "steps": [step._asdict() for step in curve.steps],
    }


def _show(curve: Any, read: Input) -> None:
    """Print the curve at some lambdas, and the choice."""
    import numpy as np

    from zerogap.sweeps.axes import unit

    say, (scale, percent) = printer(), unit(curve.measure)
    rows, features = read.X.shape
    start, end = curve.steps[0].start, curve.steps[-1].stop
    say(
        f"{read.name}: {rows:,} rows, {features:,} features, {curve.folds} folds; "
        f"error: {curve.measure}{percent}\n"
        f"{curve.models:,} models, {curve.epochs:,.0f} epochs: at no lambda from {start:.4g} to "
        f"{end:.4g} is a gap above {curve.tol:g} of the objective\n"
    )
    marks = {curve.simplest.lam: "within one s.e.", curve.best.lam: "lowest"}
    shown = dict.fromkeys([start, *np.geomspace(start, end, _LAMBDAS_SHOWN)[1:-1], end], "") | marks
    say(f"{'lam':>10}  {'error':>8}  {'s.e.':>8}  optimum's error between".rstrip(), "bold")
    for lam, mark in sorted(shown.items()):
        step = curve.at(lam)
        error, spread, low, high = (f"{scale * value:.4g}" for value in step[2:])
        line = f"{lam:10.4g}  {error:>8}  {spread:>8}  {low:>8} and {high:<8}  {mark}"
        say(line.rstrip(), "bold" if mark == "lowest" else "")
    if curve.best.high - curve.best.low > 2.0 * curve.best.standard_error:
        say("\nA smaller --tol narrows the bounds of the optimum's error, like its root.")

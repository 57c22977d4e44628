"""`zerogap sweep`: validation error over a grid of parameters."""

import csv
import sys
import warnings
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
from zerogap.cli.output import NOT_REACHED, USAGE, as_json, check_outputs, failures, printer, stop
from zerogap.cli.table_options import table_options

_DEFAULT_LAM = "1e-6:1:7"
_COLUMNS = ("error", "standard_error", "train_error", "relative_gap", "epochs")


def _grid_option(text: str) -> Any:
    return typer.Option(metavar="GRID", help=text, show_default=False)


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    @table_options(learn=True)
    def sweep(
        data: Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)],
        lam: Annotated[
            str | None,
            _grid_option(f"Regularisation; {_DEFAULT_LAM} if no GRID is given at all."),
        ] = None,
        h: Annotated[
            str | None,
            _grid_option(
                "Bandwidth of gaussian features exp(-|x - c|^2 / h^2) to random rows c; "
                "features are scaled before and after."
            ),
        ] = None,
        step: Annotated[str | None, _grid_option("Step of sgd or gd.")] = None,
        theta: Annotated[str | None, _grid_option("Parameter theta of asdca.")] = None,
        batch_size: Annotated[
            str | None, _grid_option("Rows per step of asdca, pegasos, sgd or bcfw.")
        ] = None,
        share: Annotated[
            float, typer.Option(help="Share of the rows for gaussian features.", min=0, max=1)
        ] = 0.1,
        loss: Annotated[
            str,
            typer.Option(
                metavar="NAME", help=f"{', '.join(Loss)}; with an option as in quantile:q=0.9."
            ),
        ] = "hinge",
        solver: Annotated[
            str,
            typer.Option(
                metavar="NAME",
                help=f"{', '.join(Solver)}; with options as in sgd:schedule=constant.",
            ),
        ] = "auto",
        scale: ScaleOption = Scale.NONE,
        no_intercept: Annotated[
            bool, typer.Option("--no-intercept", help="Fit no intercept.")
        ] = False,
        folds: Annotated[int, typer.Option(help="Folds of the validation.", min=2)] = 5,
        validation: Annotated[
            float | None,
            typer.Option(
                help="Share of the rows for a single validation part, instead of folds.",
                show_default=False,
            ),
        ] = None,
        tol: Annotated[
            float,
            typer.Option(help="Stop a fit at this gap, as a share of the objective.", min=0),
        ] = 1e-3,
        max_epochs: Annotated[
            int, typer.Option(help="Stop a fit after so many passes over the data.", min=1)
        ] = 1000,
        cold: Annotated[
            bool,
            typer.Option("--cold", help="Start every fit from nothing, not from its neighbour."),
        ] = False,
        seed: Annotated[int, typer.Option(help="Same seed, same folds and fits.", min=0)] = 0,
        target: TargetOption = None,
        format: FormatOption = None,
        out: Annotated[
            Path | None,
            typer.Option(metavar="PICTURE", help="File for a picture: .png, .svg or .pdf."),
        ] = None,
        csv: Annotated[
            Path | None, typer.Option(metavar="FILE", help="File for the table, as CSV.")
        ] = None,
        json: JsonOption = False,
        table: Any = None,
    ) -> None:
        """Measure the validation error over a grid of parameters.

        A GRID is a list such as 0.01,0.1,1 or a range such as 1e-5:1e-1:9, which means 9 values
        from 1e-5 to 1e-1 in equal ratios.  Groups of rows that a data set has stay on one side of
        each split.  Ctrl-C keeps the folds done so far.
        """
        texts = {"h": h, "step": step, "theta": theta, "batch_size": batch_size, "lam": lam}
        given = {name: text for name, text in texts.items() if text is not None}
        try:
            grid = {
                name: parse_grid(name, text)
                for name, text in (given or {"lam": _DEFAULT_LAM}).items()
            }
            model = _model(loss, solver)
        except ValueError as error:
            stop("sweep", str(error), USAGE)
        options = {
            **model,
            "fit_intercept": not no_intercept,
            "folds": folds,
            "validation": validation,
            "warm_start": not cold,
            "tol": tol,
            "max_epochs": max_epochs,
            "random_state": seed,
        }
        with failures("sweep", can_scale=True):
            check_outputs((out, csv), data)
            read = open_data(data, target=target, format=format, table=table)
            tell("sweep", read)
            transform = _transform(str(scale), not no_intercept, share if h else None, seed)
            outcome = _sweep(read, grid, transform, options)
            if out is not None:
                _draw(outcome, f"{Path(read.name).name}, {loss}", out)
            if csv is not None:
                _write_csv(outcome, csv)
        if json:
            typer.echo(as_json(_report(outcome, read)))
        else:
            _show(outcome, read)
        _leave(outcome, tol, or_scale(scale))


def parse_grid(name: str, text: str) -> list[float] | list[int]:
    """Return the values of 0.01,0.1 or of 1e-5:1e-1:9; whole numbers for batch sizes."""
    import numpy as np

    option = f"--{name.replace('_', '-')}"
    try:
        if ":" in text:
            low, high, count = text.split(":")
            values = np.geomspace(float(low), float(high), int(count)).tolist()
            values = [float(f"{value:.6g}") for value in values]
        else:
            values = [float(value) for value in text.split(",")]
        if not values or not all(0 < value < np.inf for value in values):
            raise ValueError
    except ValueError:
        raise ValueError(
            f"{option} needs positive numbers, as 0.01,0.1,1 or as 1e-5:1e-1:9, not {text!r}"
        ) from None
    if name != "batch_size":
        return list(dict.fromkeys(values))
    if "," in text and any(value != round(value) for value in values):
        raise ValueError(f"{option} needs whole numbers, not {text!r}")
    return list(dict.fromkeys(round(value) for value in values))


def _model(loss: str, solver: str) -> dict[str, Any]:
    """Return loss and solver, with their options."""
    from zerogap.losses import ALL_LOSSES
    from zerogap.solvers import SOLVERS

    return {
        "loss": name_or_object(loss, ALL_LOSSES),
        "solver": name_or_object(solver, SOLVERS),
    }


def _transform(scale: str, has_intercept: bool, share: float | None, seed: int) -> Any:
    """Return what happens to the rows of each fold before the fit."""
    from sklearn.pipeline import make_pipeline

    from zerogap.transforms import GaussianLandmarks

    scaler = column_scaler(scale, has_intercept)
    landmarks = [] if share is None else [GaussianLandmarks(share, random_state=seed), scaler]
    steps = [step for step in (scaler, *landmarks) if step is not None]
    return make_pipeline(*steps) if steps else None


def _sweep(read: Input, grid: dict[str, Any], transform: Any, options: dict[str, Any]) -> Any:
    from zerogap.sweeps import sweep

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exit code and a line say it
        return sweep(
            read.X,
            read.y,
            grid,
            transform=transform,
            groups=read.groups,
            verbose=sys.stderr.isatty(),
            **options,
        )


def _draw(outcome: Any, title: str, out: Path) -> None:
    from zerogap.io.atomic import naming
    from zerogap.sweeps import draw

    with naming(out):
        draw(outcome, title).savefig(out, dpi=150)


def _write_csv(outcome: Any, path: Path) -> None:
    from zerogap.io.atomic import naming

    rows = [cell.row() for cell in outcome.cells]
    with naming(path), path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def _report(outcome: Any, read: Input) -> dict[str, Any]:
    """Return the sweep as a JSON object."""
    rows, features = read.X.shape
    return {
        "data": read.name,
        "rows": rows,
        "features": features,
        "measure": outcome.measure,
        "folds": outcome.folds,
        "interrupted": outcome.interrupted,
        "fits_short_of_gap": outcome.short,
        "best": outcome.best.row(),
        "within_one_standard_error": outcome.simplest.row(),
        "cells": [cell.row() for cell in outcome.cells],
    }


def _show(outcome: Any, read: Input) -> None:
    """Print the table and the choice."""
    say = printer()
    rows, features = read.X.shape
    done, asked = outcome.folds, outcome.asked_folds
    parts = "one validation part" if asked == 1 else f"{done} of {asked} folds"
    say(f"{read.name}: {rows:,} rows, {features:,} features, {parts}; error: {outcome.measure}\n")
    best, simplest = outcome.best, outcome.simplest
    names = list(best.parameters)
    heads = [*names, "validation error", "training error", "largest gap", "epochs", ""]
    percent = outcome.measure == "misclassified rows"
    lines = []
    for cell in outcome.cells:
        row = cell.row()
        mark = "lowest" if cell is best else "within one s.e." if cell is simplest else ""
        error, spread, train = (_error(row[name], percent) for name in _COLUMNS[:3])
        lines.append(
            [
                *(f"{row[name]:.4g}" for name in names),
                f"{error} +- {spread}",
                train,
                f"{row['relative_gap']:.1e}",
                f"{row['epochs']:.4g}",
                mark,
            ]
        )
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
    say("  ".join(h.rjust(w) for h, w in zip(heads, widths, strict=True)).rstrip(), "bold")
    for line in lines:
        text = [*(t.rjust(w) for t, w in zip(line[:-1], widths, strict=False)), line[-1]]
        say("  ".join(text).rstrip(), "bold" if line[-1] == "lowest" else "")


def _error(value: float, percent: bool) -> str:
    return f"{100 * value:.2f} %" if percent else f"{value:.4g}"


def _leave(outcome: Any, tol: float, advice: str) -> None:
    if outcome.interrupted:
        kept = f"{outcome.folds} of {outcome.asked_folds} folds, {len(outcome.cells)} settings"
        stop("sweep", f"interrupted; kept are {kept}", NOT_REACHED)
    if outcome.short:
        stop(
            "sweep",
            f"{outcome.short} fits stopped before the gap of {tol:g}: raise --max-epochs or "
            f"the smallest --lam{advice}",
            NOT_REACHED,
        )

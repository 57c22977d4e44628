"""`zerogap compare`: solvers side by side on one problem."""

from dataclasses import asdict
from importlib.util import find_spec
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
    TargetOption,
    or_scale,
)
from zerogap.cli.inputs import Input, open_with_test, scale_input, tell
from zerogap.cli.output import (
    NOT_REACHED,
    USAGE,
    as_json,
    certificate_json,
    failures,
    note,
    print_table,
    stop,
)
from zerogap.cli.table_options import table_options

_LOSSES = {"binary": "smooth-hinge", "multiclass": "multiclass-hinge", "continuous": "squared"}


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    @table_options(learn=True)
    def compare(
        data: Annotated[
            str | None,
            typer.Argument(
                metavar="DATA", help=f"{DATA_HELP} Simulated if not given.", show_default=False
            ),
        ] = None,
        loss: Annotated[
            Loss | None,
            typer.Option(
                metavar="NAME",
                help=f"{', '.join(Loss)}.  If not given, smooth-hinge for two classes, "
                "multiclass-hinge for more and squared for numbers.",
            ),
        ] = None,
        lam: Annotated[
            float | None,
            typer.Option(help="Regularisation; 1 / n if not given, 1/1000 for simulated data."),
        ] = None,
        no_intercept: Annotated[
            bool,
            typer.Option("--no-intercept", help="Fit no intercept, as with the simulated data."),
        ] = False,
        scale: ScaleOption = Scale.NONE,
        solvers: Annotated[
            str | None,
            typer.Option(
                metavar="LIST",
                help="Solvers with options, such as sdca,pegasos:batch_size=8:projection=true.  If "
                "not given, SDCA, ASDCA, Pegasos with batches of 1 and 8, and SGD.",
            ),
        ] = None,
        repeats: Annotated[
            int, typer.Option(help="Runs of each solver, with different seeds.", min=1)
        ] = 5,
        epochs: Annotated[
            int, typer.Option(help="Stop a run after so many passes over the data.", min=1)
        ] = 100,
        tol: Annotated[
            float,
            typer.Option(help="Stop a run at this gap, as a share of the objective.", min=0),
        ] = 1e-3,
        seed: Annotated[int, typer.Option(help="Seed of the first repeat.", min=0)] = 0,
        test: Annotated[
            str | None, typer.Option(metavar="DATA", help="Further data for the test error.")
        ] = None,
        target: TargetOption = None,
        format: FormatOption = None,
        out: Annotated[
            Path, typer.Option(metavar="FOLDER", help="Folder for pictures, page and records.")
        ] = Path("zerogap-compare"),
        config: Annotated[
            Path | None,
            typer.Option(
                metavar="TOML",
                help="File that declares an experiment on your own data: several problems, "
                "figures and verdicts.  All options but --out and --json are then in the file.",
            ),
        ] = None,
        json: JsonOption = False,
        table: Any = None,
    ) -> None:
        """Race solvers on one problem, with a certificate for every epoch of each.

        Shows a live table, then writes curves.png, curves.svg, compare.html and records.csv.
        Ctrl-C keeps the curves so far.
        """
        if config is not None:
            if data is not None:
                stop("compare", "name the data in the file of --config, not beside it", USAGE)
            _run_config(config, out, json)
            return
        with failures("compare", can_scale=True):
            _check_packages()
            if data is None and test is not None:
                stop("compare", "--test needs DATA to train on", USAGE)
            if data is None:  # the setting of the report that these data come from
                given, no_intercept = _simulated(), True
                lam = 1e-3 if lam is None else lam
            else:
                given = open_with_test(data, test, target=target, format=format, table=table)
                tell("compare", given)
            given = scale_input(given, str(scale), not no_intercept)
            problem, y_test = _problem(given, loss, lam, not no_intercept)
            try:
                field = _field(problem, solvers)
            except ValueError as error:
                stop("compare", str(error), USAGE)
            seeds = range(seed, seed + repeats)
            options = {"tol": tol, "max_epochs": epochs, "seeds": seeds, "data": given.name}
            out.mkdir(parents=True, exist_ok=True)
            outcome = _race(problem, field, given.X_test, y_test, options)
            paths = outcome.save(out)
        if json:
            typer.echo(as_json(_report(outcome, paths)))
        else:
            _show(outcome, paths)
        if outcome.interrupted:
            stop("compare", "interrupted; kept are the runs so far", NOT_REACHED)
        if not any(line.reached for line in outcome.summary()):
            advice = f"raise --epochs{or_scale(scale)}"
            stop("compare", f"no solver reached a gap of {tol:g}: {advice}", NOT_REACHED)


def _run_config(config: Path, out: Path, json: bool) -> None:
    """Run the experiment that a file declares, and write its report."""
    from zerogap.cli.progress_table import ProgressTable
    from zerogap.cli.reproduce import check_packages, show_report

    with failures("compare"):
        check_packages()
        from zerogap.lab.config import read_config
        from zerogap.lab.study import study

        chapter = read_config(config)
        with ProgressTable() as shown:
            found = study([chapter], out, title=chapter.title, on_progress=shown.show)
    show_report("compare", *found, json)


def _check_packages() -> None:
    """See that pictures and page can be made, before the work that they show."""
    for package in ("matplotlib", "plotly", "jinja2"):
        if find_spec(package) is None:
            raise ValueError(f"pictures and page need {package}: pip install 'zerogap[lab]'")


def _simulated() -> Input:
    """Return 670 rows of the simulated data for training, the other 330 for test."""
    from zerogap.datasets import make_simulated

    X, y, _ = make_simulated(random_state=10)
    return Input(X[:670], y[:670], X[670:], y[670:], name="simulated data")


def _problem(given: Input, loss: str | None, lam: float | None, intercept: bool) -> Any:
    """Return the problem, and the test targets coded in the same way."""
    from sklearn.utils.multiclass import type_of_target

    from zerogap.losses import as_loss
    from zerogap.problem import Problem
    from zerogap.problem.checks import code_targets

    kind = type_of_target(given.y)
    if loss is None and kind not in _LOSSES:
        raise ValueError(f"{given.name}: targets of kind {kind} fit no loss")
    chosen = as_loss(str(loss or _LOSSES[kind]))
    y, y_test = code_targets(chosen, given.y, given.y_test, given.name)
    return Problem(given.X, y, chosen, lam, fit_intercept=intercept), y_test


def _field(problem: Any, text: str | None) -> list[Any]:
    """Return the solvers to race; say which of the usual ones cannot."""
    from zerogap.comparison import default_solvers, parse_solver

    if text is not None:
        return [parse_solver(part) for part in text.split(",")]
    able, unable = default_solvers(problem)
    for name, reason in unable.items():
        note("compare", f"without {name}: {reason}")
    return able


def _race(problem: Any, field: list[Any], X_test: Any, y_test: Any, options: dict[str, Any]) -> Any:
    from zerogap.cli.compare_table import CompareTable, error_form
    from zerogap.comparison import compare
    from zerogap.comparison.contestants import short_name

    names = [short_name(solver) for solver in field]
    form = error_form(problem, X_test is not None)
    with CompareTable(names, options["seeds"], options["tol"], form) as shown:
        return compare(
            problem, field, X_test=X_test, y_test=y_test, on_record=shown.show, **options
        )


def _show(outcome: Any, paths: dict[str, Path]) -> None:
    from zerogap.cli.compare_table import print_summary

    typer.echo(f"{outcome.data}: {outcome.problem}\n")
    print_summary(outcome)
    typer.echo("\nGaps: the largest of the runs, as a share of the objective.  The rest: medians.")
    typer.echo(
        f"The optimum is proved to be between {outcome.lower:.9g} and {outcome.upper:.9g}.\n"
    )
    print_table([(name, str(path)) for name, path in paths.items()])


def _report(outcome: Any, paths: dict[str, Path]) -> dict[str, Any]:
    problem = outcome.problem
    rows, features = problem.shape
    return {
        "data": outcome.data,
        "rows": rows,
        "features": features,
        "loss": str(problem.loss),
        "lam": problem.lam,
        "intercept": problem.fit_intercept,
        "tol": outcome.tol,
        "optimum": [outcome.lower, outcome.upper],
        "interrupted": outcome.interrupted,
        "solvers": [
            asdict(line) | {"certificate": certificate_json(line.certificate)}
            for line in outcome.summary()
        ],
        "files": {name: str(path) for name, path in paths.items()},
    }

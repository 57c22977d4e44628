"""`zerogap train`: from a file to a certified model."""

import shlex
import tempfile
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.choices import (
    DATA_HELP,
    Device,
    FormatOption,
    JsonOption,
    Loss,
    Scale,
    ScaleOption,
    Solver,
    TargetOption,
    losses_like,
    name_or_object,
    or_scale,
    solvers_like,
)
from zerogap.cli.inputs import (
    Input,
    column_scaler,
    file_digest,
    open_data,
    open_with_test,
    scale_input,
    tell,
)
from zerogap.cli.output import (
    NOT_REACHED,
    USAGE,
    as_json,
    check_outputs,
    compiling,
    failures,
    note,
    progress,
    stop,
)
from zerogap.cli.stores import MemoryOption, is_store, open_store, refuse_memory
from zerogap.cli.table_options import as_options, is_given, table_options
from zerogap.cli.train_text import shortfall, show_report, training_report

_FEW_CLASSES, _MANY_ROWS = 20, 50  # with more rows and fewer classes, one of one row is an error


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    @table_options(learn=True, weight=True)
    def train(
        data: Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)],
        loss: Annotated[
            str,
            typer.Option(
                metavar="NAME",
                help=f"{', '.join(Loss)}; with an option as in quantile:q=0.9.",
                autocompletion=losses_like,
            ),
        ] = "hinge",
        lam: Annotated[
            float | None, typer.Option(help="Regularisation; 1 / number of rows if not given.")
        ] = None,
        l1_ratio: Annotated[
            float, typer.Option(help="Share of L1 in the penalty, below 1.", min=0)
        ] = 0.0,
        no_intercept: Annotated[
            bool, typer.Option("--no-intercept", help="Fit no intercept.")
        ] = False,
        class_weight: Annotated[
            str | None,
            typer.Option(
                metavar="WEIGHTS",
                help="Weights of classes: balanced lets all count the same, no=1,yes=5 gives them.",
                show_default=False,
            ),
        ] = None,
        cv: Annotated[
            int | None,
            typer.Option(
                min=2,
                metavar="FOLDS",
                help="Choose lam by cross-validation in so many folds, over all lambdas between "
                "--cv-min and the largest that matters; in place of --lam.",
                show_default=False,
            ),
        ] = None,
        cv_min: Annotated[float, typer.Option(help="Smallest lambda of --cv.", min=0)] = 1e-5,
        scale: ScaleOption = Scale.NONE,
        solver: Annotated[
            str,
            typer.Option(
                metavar="NAME",
                help=f"{', '.join(Solver)}; with options as in sgd:batch_size=64:step=0.1.",
                autocompletion=solvers_like,
            ),
        ] = "auto",
        tol: Annotated[
            float,
            typer.Option(help="Stop at this duality gap, as a share of the objective.", min=0),
        ] = 1e-3,
        max_epochs: Annotated[
            int, typer.Option(help="Stop after so many passes over the data.", min=1)
        ] = 1000,
        max_seconds: Annotated[
            float | None, typer.Option(help="Stop after so many seconds.", min=0)
        ] = None,
        device: Annotated[
            Device,
            typer.Option(help="Where to train; cuda is an NVIDIA GPU, and needs zerogap[gpu]."),
        ] = Device.CPU,
        seed: Annotated[int, typer.Option(help="Same seed, same model.", min=0)] = 0,
        test: Annotated[
            str | None, typer.Option(metavar="DATA", help="Further data to score the model on.")
        ] = None,
        target: TargetOption = None,
        format: FormatOption = None,
        max_memory: MemoryOption = None,
        checkpoint: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="File to save the run to, and to resume it from."),
        ] = None,
        out: Annotated[
            Path | None, typer.Option(metavar="MODEL", help="File to save the model to.")
        ] = None,
        keep_dual: Annotated[
            bool,
            typer.Option(
                "--keep-dual",
                help="Save the dual variables, for zerogap forget; those of up to a million rows "
                "are saved unasked.",
            ),
        ] = False,
        report: Annotated[
            Path | None,
            typer.Option(
                metavar="PAGE",
                help="File for a page on the model: certificate, coefficients, curves, columns.",
            ),
        ] = None,
        json: JsonOption = False,
        table: Any = None,
    ) -> None:
        """Train a linear model to a proved distance from the optimum.

        DATA may be a store, made by zerogap data convert, that is larger than memory.

        Ctrl-C keeps the best certified model so far and saves it.  Like every run that stops
        before the asked gap, it then leaves with exit code 3.
        """
        settings: dict[str, Any] = {
            "lam": lam,
            "l1_ratio": l1_ratio,
            "fit_intercept": not no_intercept,
            "tol": tol,
            "max_epochs": max_epochs,
            "max_seconds": max_seconds,
            "device": str(device),
            "random_state": seed,
            "checkpoint": checkpoint and str(checkpoint),
        }
        with failures("train", can_scale=not is_store(data)):
            check_outputs((out, checkpoint, report), data, test)
            try:
                model = _make_model(loss, solver, class_weight, settings)
                if cv is not None and lam is not None:
                    raise ValueError("--cv chooses lam: leave --lam out")
                as_options(table)
            except ValueError as error:
                stop("train", str(error), USAGE)
            options = {"target": target, "format": format, "table": table}
            if is_store(data):
                for name, value in (("cv", cv), ("report", report)):
                    if value is not None:
                        raise ValueError(f"--{name} needs rows in memory, not a store")
                given = _open(data, test, max_memory, scale, **options)
            else:
                refuse_memory(max_memory, data)
                given = _read(data, test, model, options)
            _set_class_weight(model, class_weight, given)
            chosen = None if cv is None else _choose_lam(model, given, cv, cv_min, str(scale))
            if not is_store(data):
                given = scale_input(given, str(scale), not no_intercept)
            with compiling("train") as compiled:
                _fit(model, given, tol)
            about = {"training": _training(given, data), "deviation": _deviation(given)}
            if out is not None:
                _save(model, out, encoder=given.encoder, keep_dual=keep_dual or None, **about)
            more = {} if chosen is None else {"cv": chosen}
            told = training_report(model, given, out) | {"compile_seconds": compiled(), **more}
            if report is not None:
                from zerogap.cli.report import write_report

                write_report(report, model, given, told, about["deviation"])
        if json:
            typer.echo(as_json(told))
        else:
            show_report(told, model, tol)
        if not told["converged"]:
            advice = "" if is_store(data) else or_scale(scale)
            stop("train", shortfall(model, tol, out, advice), NOT_REACHED)


def _make_model(loss: str, solver: str, class_weight: str | None, settings: dict[str, Any]) -> Any:
    """Return the estimator for this loss."""
    from zerogap.estimators import LinearClassifier, LinearRegressor
    from zerogap.losses import ALL_LOSSES, as_loss
    from zerogap.solvers import SOLVERS

    phi = name_or_object(loss, ALL_LOSSES)
    method = name_or_object(solver, SOLVERS)
    if as_loss(phi).task != "regression":
        return LinearClassifier(phi, solver=method, **settings)
    if class_weight is not None:
        raise ValueError(f"--class-weight is for classes, and --loss {loss} for numbers")
    return LinearRegressor(phi, solver=method, **settings)


def _set_class_weight(model: Any, text: str | None, given: Input) -> None:
    """Set weights of classes, which the classes in the data must have."""
    import numpy as np

    if text is None or text == "balanced":
        if text is not None:
            model.set_params(class_weight=text)
        return
    classes = given.X.classes if given.y is None else np.unique(given.y)
    known = {str(label): label for label in classes.tolist()}
    known |= {name.removesuffix(".0"): label for name, label in known.items()}
    weights = {}
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        try:
            weights[known[name.strip()]] = float(number)
        except (KeyError, ValueError):
            wrong = "names no class" if name and name.strip() not in known else "is wrong"
            raise ValueError(
                f"--class-weight must be balanced or CLASS=NUMBER,...; {part!r} {wrong}; the "
                f"classes are {', '.join(map(str, classes.tolist()[:10]))}"
            ) from None
    model.set_params(class_weight=weights)


def _choose_lam(model: Any, given: Input, folds: int, least: float, scale: str) -> dict[str, Any]:
    """Set lam to the one of the lowest error in cross-validation, and return what was found."""
    from zerogap.paths import PathError
    from zerogap.sweeps import path_cv

    if given.sample_weight is not None or getattr(model, "class_weight", None) is not None:
        raise ValueError("--cv knows no weights: leave --weight and --class-weight out")
    names = ("loss", "l1_ratio", "fit_intercept", "solver", "tol", "max_epochs", "random_state")
    options = {name: getattr(model, name) for name in names}
    options["transform"] = column_scaler(scale, model.fit_intercept)
    try:
        curve = path_cv(given.X, given.y, least, None, folds=folds, groups=given.groups, **options)
    except PathError as error:
        stop("train", f"--cv: {error.found}: raise --cv-min or --tol{or_scale(scale)}", NOT_REACHED)
    model.set_params(lam=float(curve.best.lam))
    best = curve.best
    return {
        "folds": folds,
        "lam": float(best.lam),
        "measure": curve.measure,
        "error": float(best.error),
        "standard_error": float(best.standard_error),
    }


def _deviation(given: Input) -> Any:
    """Return the standard deviations of the features; None of those in a store."""
    if not hasattr(given.X, "shape"):
        return None
    from zerogap.readers.scaling import deviation

    return deviation(given.X)


def _training(given: Input, data: str) -> dict[str, Any]:
    """Return what a model file says of the data it was trained on."""
    store = not hasattr(given.X, "shape")
    rows = given.X.n_samples if store else given.X.shape[0]
    return {"name": Path(given.name).name or given.name, "rows": int(rows)} | (
        {} if store or (digest := file_digest(data)) is None else {"sha256": digest}
    )


def _open(data: str, test: str | None, max_memory: str | None, scale: Any, **options: Any) -> Input:
    """Open a store to train from, and the data for test."""
    from zerogap.readers import Encoder

    table = options.pop("table")
    unfit = {**options, "scale": scale if scale != Scale.NONE else None}
    unfit |= dict.fromkeys(is_given(table), True)
    given = open_store(data, max_memory, **unfit)
    if test is None:
        return given
    encoder = given.encoder or Encoder(given.X.n_features)
    tested = open_store(test) if is_store(test) else open_data(test, encoder=encoder)
    for text in tested.notes:
        note("train", text)
    return replace(given, X_test=tested.X, y_test=tested.y)


def _read(data: str, test: str | None, model: Any, options: dict[str, Any]) -> Input:
    """Read data for training and test into memory, and see that the model can be of them."""
    from sklearn.base import is_regressor

    table = options["table"] | {"numeric_target": is_regressor(model)}
    given = open_with_test(data, test, **options | {"table": table})
    tell("train", given)
    _check_targets(given, model)
    return given


def _check_targets(given: Input, model: Any) -> None:
    """Refuse targets that the loss cannot be about."""
    from sklearn.base import is_regressor
    from sklearn.utils.multiclass import type_of_target

    from zerogap.readers import DataError

    if given.sample_weight is not None and not given.sample_weight.any():
        raise DataError(f"{given.name}: column {given.encoder.weight!r}: all weights are 0")
    text = given.y.dtype.kind in "OUS"
    if is_regressor(model) and text:
        raise DataError(
            f"{given.name}: the targets are text such as {given.y[0]!s}, and {model.loss} is a "
            f"loss for numbers: choose --loss hinge or another one for classes"
        )
    if not is_regressor(model) and type_of_target(given.y).startswith("continuous"):
        number = next(y for y in given.y if y != int(y))
        raise DataError(
            f"{given.name}: the targets are numbers such as {number:g}, and {model.loss} is a "
            f"loss for classes: choose --loss squared or another one for numbers"
        )
    if not is_regressor(model):
        _check_classes(given)
    if given.y_test is not None and text != (given.y_test.dtype.kind in "OUS"):
        raise DataError("the targets are text in one of training and test data, not in the other")


def _check_classes(given: Input) -> None:
    """Refuse a single class, and tell of classes that differ in capitals only."""
    import numpy as np

    from zerogap.readers import DataError
    from zerogap.readers.cells import MISSING_NUMBERS

    classes = np.unique(given.y).tolist()
    column = getattr(given.encoder, "target", None)
    target = f"the target {column!r}" if column else "the target"
    if len(classes) < 2:
        rows = f"all {len(given.y):,} rows" if len(given.y) > 1 else "the only row"
        raise DataError(
            f"{given.name}: {target} is {classes[0]!r} in {rows}, and a classifier needs two "
            f"classes: choose another column by --target"
        )
    if len(classes) > max(_FEW_CLASSES, len(given.y) // 2):
        number = ", or --loss squared takes it for a number" if given.y.dtype.kind in "iuf" else ""
        note(
            "train",
            f"{target} has {len(classes):,} classes in {len(given.y):,} rows: --target NAME "
            f"chooses another column{number}",
        )
    counts = Counter(given.y.tolist())
    alone = [str(label) for label in classes if counts[label] == 1]
    if alone and len(classes) <= _FEW_CLASSES and len(given.y) >= _MANY_ROWS:
        name = shlex.quote(alone[0])
        note(
            "train",
            f"{target} is {alone[0]!r} in one row only: --missing {name} with --drop-missing "
            f"leaves it out",
        )
    for label in classes:
        if str(label).casefold() in MISSING_NUMBERS:
            name = shlex.quote(str(label))
            note(
                "train",
                f"{target} is {label!r} in {counts[label]:,} rows, a class like others: --missing "
                f"{name} with --drop-missing leaves them out",
            )
    alike = Counter(str(label).casefold() for label in classes)
    twins = [str(label) for label in classes if alike[str(label).casefold()] > 1]
    if twins:
        note("train", f"{target} has classes that differ in capitals only: {', '.join(twins[:6])}")


def _fit(model: Any, given: Input, tol: float) -> None:
    """Fit the model; after Ctrl-C it is the best one so far, if there is one."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), progress(tol, model.max_seconds) as show:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the exit code and a line say it
        warnings.filterwarnings("ignore", "The number of unique classes")  # a note has said it
        model.set_params(callback=show)
        weights = () if given.sample_weight is None else (given.sample_weight,)
        try:
            model.fit(given.X, given.y, *weights)
        except TypeError as error:  # of an option's value
            raise ValueError(f"{model.loss}, {model.solver}: {error}") from error
        except KeyboardInterrupt:
            if not hasattr(model, "certificate_"):
                raise
    model.set_params(callback=None)
    if given.kept is not None:
        model.row_ids_ = given.kept  # as zerogap forget counts them


def _save(model: Any, out: Path, **options: Any) -> None:
    """Save the model, elsewhere if the disk has filled up meanwhile."""
    from zerogap.model_io import save

    try:
        save(model, out, **options)
    except OSError as error:
        spare = Path(tempfile.mkdtemp(prefix="zerogap-"), out.name)
        try:
            save(model, spare, **options)
        except OSError:  # not there either: the user knows the first place
            raise OSError(error.errno, error.strerror, str(out)) from error
        raise OSError(f"cannot write {out} ({error.strerror}): the model is in {spare}") from error

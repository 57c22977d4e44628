"""`zerogap audit`: how far somebody's model is from the optimum of what it minimises."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.choices import DATA_HELP, FormatOption, JsonOption, Loss, TargetOption
from zerogap.cli.inputs import open_data, open_for_model
from zerogap.cli.output import NOT_REACHED, as_json, certificate_json, failures, print_table, stop
from zerogap.cli.table_options import table_options

PICKLES = (b"\x80", b"PK")  # begins a pickle, or an archive of pickles as of PyTorch


class Kind(StrEnum):
    """Files of models that are read without running anything of them."""

    ZEROGAP = "zerogap"
    LIBLINEAR = "liblinear"
    VW = "vw"
    ONNX = "onnx"
    GLMNET = "glmnet"
    TABLE = "table"


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    @table_options()
    def audit(
        model: Annotated[
            Path,
            typer.Argument(
                metavar="MODEL",
                help="A model of zerogap or LIBLINEAR, a readable model of Vowpal Wabbit, an ONNX "
                "file with one linear model, or a table of names and coefficients.",
            ),
        ],
        data: Annotated[
            str, typer.Argument(metavar="DATA", help=f"The data of the training.  {DATA_HELP}")
        ],
        kind: Annotated[
            Kind | None,
            typer.Option(
                metavar="NAME", help=f"{', '.join(Kind)}; told from the file if not given."
            ),
        ] = None,
        loss: Annotated[
            Loss | None, typer.Option(metavar="NAME", help=f"{', '.join(Loss)}.")
        ] = None,
        lam: Annotated[
            float | None,
            typer.Option(help="Strength of 1/S sum s phi + lam penalty; glmnet's lambda."),
        ] = None,
        l1_ratio: Annotated[float, typer.Option(help="Share of L1; glmnet's alpha.")] = 0.0,
        C: Annotated[
            float, typer.Option("--C", help="The option -c of LIBLINEAR, which its file lacks.")
        ] = 1.0,
        eps: Annotated[float, typer.Option(help="The option -p of LIBLINEAR.")] = 0.1,
        positive: Annotated[
            str | None,
            typer.Option(
                metavar="CLASS",
                help="The class of scores above zero, where the file does not name its classes; "
                "the last in order if not given.",
            ),
        ] = None,
        tol: Annotated[
            float | None,
            typer.Option(help="Largest distance allowed, as a share of the objective."),
        ] = None,
        effort: Annotated[int, typer.Option(min=0, help="Epochs to spend at most.")] = 1000,
        target: TargetOption = None,
        format: FormatOption = None,
        json: JsonOption = False,
        table: Any = None,
    ) -> None:
        """Prove how far a model is from the optimum of what it minimises.

        Pickles are refused, as they can run code.  The exit code is 3 if the model
        is not proved to be within --tol, where that is given, else 0.
        """
        with failures("audit"):
            found_kind = _kind_of(model) if kind is None else kind
            options: dict[str, Any] = {"format": format, "table": table}
            if found_kind == Kind.ZEROGAP:
                file, given = open_for_model(model, data, **options)
                known = file.model
            else:
                given = open_data(data, target=target, **options)
                known = _read(model, found_kind, given, C, eps, (loss, lam, l1_ratio))
            y, above = _with_positive(given.y, positive, found_kind, loss)
            objective = (loss, lam, l1_ratio)
            found = _certify(known, found_kind, given, y, effort, objective)
        low, high = found.at_least / found.primal, found.relative_gap
        if json:
            told = {"kind": found_kind.value, "at_least": found.at_least, "near": None}
            told["positive"] = above
            if tol is not None:
                told["near"] = high <= tol
            typer.echo(as_json(told | certificate_json(found)))
        else:
            print_table(
                [
                    ("model", f"{model} ({found_kind.value})"),
                    ("data", f"{given.name}: {given.X.shape[0]:,} rows"),
                    *([] if above is None else [("positive class", above)]),
                    ("objective", f"{found.primal:.10g}"),
                    (
                        "optimum",
                        f"between {found.dual:.10g} and {found.primal - found.at_least:.10g}",
                    ),
                    ("above it by", f"{100 * low:.3g} % to {100 * high:.3g} %"),
                ]
            )
        if tol is not None and high > tol:
            what = (
                "is not near its optimum" if low > tol else "could not be proved near its optimum"
            )
            stop("audit", f"{model} {what}: allowed {tol:g} of its objective", NOT_REACHED)


def _kind_of(path: Path) -> Kind:
    """Tell a model file by its first bytes."""
    with open(path, "rb") as file:
        head = file.read(4096)
    if head.startswith(PICKLES):
        raise ValueError(
            f"{path} is or holds a pickle, which can run any code when it is read: save "
            f"coefficients as a table of names and numbers, or call zerogap.certify in a program"
        )
    if head.startswith(b"\x89ZGP"):
        return Kind.ZEROGAP
    if path.suffix == ".onnx":
        return Kind.ONNX
    if head.startswith(b"solver_type "):
        return Kind.LIBLINEAR
    return Kind.VW if head.startswith(b"Version ") else Kind.TABLE


def _read(
    path: Path, kind: Kind, given: Any, C: float, eps: float, objective: tuple[Any, Any, float]
) -> Any:
    from zerogap import audit

    if kind == Kind.LIBLINEAR:
        return audit.read_liblinear(path, C=C, eps=eps)
    loss, lam, l1_ratio = objective
    if lam is None or (loss is None and kind != Kind.GLMNET):
        raise ValueError(f"{path} does not say what it minimises: give --loss and --lam")
    if kind == Kind.VW:
        return audit.read_vw(path, given.X.shape[1])
    if kind == Kind.ONNX:
        return audit.read_onnx(path)
    model = _in_order(path, audit.read_coefficients(path), given)
    if kind != Kind.GLMNET:
        return model
    family = "binomial" if loss == Loss.LOGISTIC else "gaussian"
    return audit.Glmnet(model.coef_[0], model.intercept_, lam, l1_ratio, family)


def _with_positive(
    y: Any, positive: str | None, kind: Kind, loss: Loss | None
) -> tuple[Any, str | None]:
    """Return targets, and the class of scores above zero where the file does not name classes."""
    import numpy as np

    from zerogap.losses import as_loss

    named = kind in (Kind.ZEROGAP, Kind.LIBLINEAR)
    two_sided = not named and loss is not None and as_loss(loss.value).task == "classification"
    classes = np.unique(y).tolist() if two_sided else []
    texts = [str(c) for c in classes]
    if positive is None:
        return y, texts[1] if len(texts) == 2 else None
    if len(texts) != 2 or positive not in texts:
        why = "the file names its classes" if named else f"the data have {', '.join(texts[:5])}"
        raise ValueError(f"--positive {positive} is not one of two classes: {why}")
    return np.where(np.asarray(y) == classes[texts.index(positive)], 1, -1), positive


def _in_order(path: Path, model: Any, given: Any) -> Any:
    """Return coefficients in the order of the features, if those have the same names."""
    features = given.encoder.feature_names if given.encoder is not None else None
    if features is not None and sorted(features) == sorted(model.names):
        model.coef_ = model.coef_[:, [model.names.index(name) for name in features]]
    elif features is not None and set(features) & set(model.names):
        raise ValueError(
            f"{path} has coefficients of {len(model.names)} features, {model.names[0]!r} ..., the "
            f"data have {len(features)}, {features[0]!r} ...: use the same names"
        )
    return model


def _certify(
    model: Any, kind: Kind, given: Any, y: Any, effort: int, objective: tuple[Any, Any, float]
) -> Any:
    from zerogap import audit

    loss, lam, l1_ratio = objective
    data = (given.X, y)
    more: dict[str, Any] = {"sample_weight": given.sample_weight, "effort": effort}
    if kind in (Kind.ZEROGAP, Kind.LIBLINEAR, Kind.GLMNET):
        return audit.certify(model, *data, **more)
    return audit.certify_weights(
        model.coef_, model.intercept_, *data, loss=loss.value, lam=lam, l1_ratio=l1_ratio, **more
    )

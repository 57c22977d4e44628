"""Options that several commands have.  The registries behind them would bring Numba."""

from enum import StrEnum
from typing import Annotated, Any

import typer


class Loss(StrEnum):
    """Losses by name."""

    HINGE = "hinge"
    SMOOTH_HINGE = "smooth-hinge"
    SQUARED_HINGE = "squared-hinge"
    LOGISTIC = "logistic"
    MULTICLASS_HINGE = "multiclass-hinge"
    SOFTMAX = "softmax"
    SQUARED = "squared"
    ABSOLUTE = "absolute"
    EPSILON_INSENSITIVE = "epsilon-insensitive"
    HUBER = "huber"
    QUANTILE = "quantile"


class Solver(StrEnum):
    """Solvers by name."""

    AUTO = "auto"
    SDCA = "sdca"
    ASDCA = "asdca"
    PEGASOS = "pegasos"
    SGD = "sgd"
    GD = "gd"
    BCFW = "bcfw"
    NEWTON = "newton"
    INTERIOR_POINT = "interior-point"


def losses_like(incomplete: str) -> list[str]:
    """Return what the shell offers for the beginning of a loss."""
    return [name for name in Loss if name.startswith(incomplete)]


def solvers_like(incomplete: str) -> list[str]:
    """Return what the shell offers for the beginning of a solver."""
    return [name for name in Solver if name.startswith(incomplete)]


class Format(StrEnum):
    """Formats of data."""

    SVMLIGHT = "svmlight"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    ARROW = "arrow"
    JSONL = "jsonl"
    XLSX = "xlsx"
    NPZ = "npz"


class Device(StrEnum):
    """Where to train."""

    CPU = "cpu"
    CUDA = "cuda"
    CUDA_DETERMINISTIC = "cuda-deterministic"


class Scale(StrEnum):
    """How features are scaled."""

    NONE = "none"
    STANDARD = "standard"
    MAX_ABS = "max-abs"


DATA_HELP = (
    "File: CSV, TSV, xlsx, Parquet, Arrow, JSON lines, svmlight or npz, also compressed; - for "
    "standard input; or the name of a data set, see zerogap data list."
)
MODEL_HELP = "File that zerogap train has saved."
LossOption = Annotated[Loss, typer.Option(metavar="NAME", help=f"{', '.join(Loss)}.")]
TargetOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the targets; not needed if the last one is "
        "called target, label, y or class.",
    ),
]
FormatOption = Annotated[
    Format | None,
    typer.Option(metavar="NAME", help=f"{', '.join(Format)}; not needed if name or content tell."),
]
ScaleOption = Annotated[
    Scale,
    typer.Option(
        help="Scale features: standard to standard deviation 1 and, if dense, mean 0 (sparse data "
        "stay sparse, but need an intercept), max-abs to largest absolute value 1.  Learnt from "
        "the training rows."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def or_scale(scale: str) -> str:
    """Return the end of an advice: to scale, unless the features are scaled that way already."""
    return "" if scale == Scale.STANDARD else f", or --scale {Scale.STANDARD}"


def name_or_object(text: str, known: dict[str, Any]) -> Any:
    """Return a known name as it is, and of quantile:q=0.9 the object that it describes."""
    from zerogap._params import parse

    return text if text in known else parse(text, known)

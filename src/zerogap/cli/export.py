"""`zerogap export`: a saved model as an ONNX graph, for programs without Python."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.choices import MODEL_HELP
from zerogap.cli.output import check_output, failures, print_table


class Dtype(StrEnum):
    """Types to compute with."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    def export(
        model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
        out: Annotated[Path, typer.Argument(metavar="FILE", help="File to write: .onnx.")],
        dtype: Annotated[
            Dtype, typer.Option(help="Type of the inputs that are numbers, and of all arithmetic.")
        ] = Dtype.FLOAT64,
    ) -> None:
        """Write a saved model as an ONNX graph, with all that was done to its columns inside.

        Each column of the training table is an input; zerogap.model_io.to_onnx has the details.
        """
        with failures("export"):
            from zerogap.model_io import load, to_onnx

            check_output(out, str(model))
            proto = to_onnx(load(model), out, dtype=str(dtype))
            names = ", ".join(one.name for one in proto.graph.input)
            outputs = ", ".join(one.name for one in proto.graph.output)
            print_table([("inputs", names), ("outputs", outputs), ("written", str(out))])

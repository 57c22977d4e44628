"""`zerogap certify`: whether the certificate in a model file is true."""

from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.choices import DATA_HELP, MODEL_HELP, FormatOption, JsonOption
from zerogap.cli.inputs import open_for_model
from zerogap.cli.output import FAILURE, as_json, certificate_json, failures, print_table, stop


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    def certify(
        model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
        data: Annotated[
            str, typer.Argument(metavar="DATA", help=f"The data of the training.  {DATA_HELP}")
        ],
        effort: Annotated[
            int,
            typer.Option(
                help="Epochs to spend at most on a bound of the optimum, where the file has no "
                "dual variables to prove it.",
                min=0,
            ),
        ] = 1000,
        format: FormatOption = None,
        json: JsonOption = False,
    ) -> None:
        """Compute the certificate of a saved model from scratch.

        The exit code is 0 if the stored certificate is true, and 1 if it is not or cannot be
        proved from these data.
        """
        with failures("certify"):
            from zerogap.model_io import recertify

            file, given = open_for_model(model, data, format=format)
            result = recertify(file, given.X, given.y, effort=effort)
            true = result.claim == "true"
            if json:
                typer.echo(as_json(_report(result, true)))
            else:
                _show(result)
        if not true:
            stop("certify", str(result), FAILURE)


def _report(result: Any, true: bool) -> dict[str, Any]:
    return {
        "true": true,
        "claim": result.claim,
        "same_data": result.same_data,
        "stored": certificate_json(result.stored),
        "found": certificate_json(result.found),
    }


def _show(result: Any) -> None:
    stored, found = result.stored, result.found
    rows = [("", f"{'stored':16}found")]
    for name in ("primal", "dual", "gap", "relative_gap"):
        form = ".10g" if name in ("primal", "dual") else ".4g"
        values = [f"{getattr(c, name):{form}}" for c in (stored, found)]
        rows.append((name.replace("_", " "), f"{values[0]:16}{values[1]}"))
    rows.append(("data", "those of the training" if result.same_data else "not the same bits"))
    rows.append(("certificate", result.claim))
    print_table(rows)

"""`zerogap certify`: whether the certificate in a model file is true."""

from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.choices import DATA_HELP, MODEL_HELP, FormatOption, JsonOption
from zerogap.cli.inputs import open_for_model
from zerogap.cli.output import FAILURE, as_json, certificate_json, failures, print_table, stop
from zerogap.cli.stores import MemoryOption, is_store, open_store_for_model, refuse_memory
from zerogap.cli.table_options import table_options


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    @table_options()
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
        leave_one_out: Annotated[
            bool,
            typer.Option(
                "--leave-one-out",
                help="Also predict every row by the model of the others, and count the errors.",
            ),
        ] = False,
        format: FormatOption = None,
        max_memory: MemoryOption = None,
        json: JsonOption = False,
        table: Any = None,
    ) -> None:
        """Compute the certificate of a saved model from scratch.

        It also computes the region of the optimum, on which predict --certified relies.  The exit
        code is 0 if what is stored is true, and 1 if it is not or cannot be proved from these data.
        """
        found = None
        with failures("certify"):
            if is_store(data):
                if leave_one_out:
                    raise ValueError("--leave-one-out needs rows in memory, not a store")
                from zerogap.model_io.stores import recertify_store

                result = recertify_store(
                    *open_store_for_model(model, data, max_memory), effort=effort
                )
            else:
                from zerogap.model_io import recertify

                refuse_memory(max_memory, data)
                file, given = open_for_model(model, data, format=format, table=table)
                result = recertify(file, given.X, given.y, given.sample_weight, effort=effort)
                if leave_one_out:
                    found = file.model.leave_one_out(given.X, given.y, given.sample_weight)
            true = result.claim == "true"
            if json:
                typer.echo(as_json(_report(result, true) | _left_out(found)))
            else:
                _show(result)
                if found is not None:
                    typer.echo(found)
        if not true:
            stop("certify", str(result), FAILURE)


def _report(result: Any, true: bool) -> dict[str, Any]:
    return {
        "true": true,
        "claim": result.claim,
        "region": result.region,
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
    told = {"true": "proved to be where the file says", "false": "not where the file says"}
    if result.region != "none":
        rows.append(("optimum", told.get(result.region, result.region)))
    rows.append(("certificate", result.claim))
    print_table(rows)


def _left_out(found: Any) -> dict[str, Any]:
    names = ("error_low", "error_high", "counts", "epochs", "seconds")
    return {} if found is None else {"leave_one_out": {n: getattr(found, n) for n in names}}

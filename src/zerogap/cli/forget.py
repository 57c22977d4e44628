"""`zerogap forget`: a saved model without some of its training rows."""

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.choices import DATA_HELP, MODEL_HELP, FormatOption, JsonOption, Scale
from zerogap.cli.inputs import Input, open_for_model
from zerogap.cli.output import (
    NOT_REACHED,
    as_json,
    certificate_json,
    certificate_rows,
    check_output,
    check_outputs,
    failures,
    print_table,
    progress,
    stop,
)
from zerogap.cli.table_options import as_options, table_options


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    @table_options()
    def forget(
        model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
        rows: Annotated[
            Path,
            typer.Option(
                metavar="FILE",
                help="Numbers of the rows to forget, one per line; the first row of DATA is 0.  "
                "The other rows keep their numbers.",
            ),
        ],
        data: Annotated[
            str,
            typer.Option(
                metavar="DATA",
                help=f"The data of the training, with or without rows forgotten earlier.  "
                f"{DATA_HELP}",
            ),
        ],
        out: Annotated[
            Path | None,
            typer.Option(metavar="MODEL", help="File to save the new model to."),
        ] = None,
        left: Annotated[
            Path | None,
            typer.Option(
                metavar="FILE",
                help="File for DATA without the rows, on which zerogap certify proves the new "
                "model.",
            ),
        ] = None,
        force: Annotated[
            bool,
            typer.Option(
                "--force", help="Replace files that are there; without --out, the old model."
            ),
        ] = False,
        scale: Annotated[
            Scale | None,
            typer.Option(
                help="Scaling of the features, which has to be that of the training.  By default, "
                "and always, what the model file holds is used: it is not learnt anew from the "
                "rows that are left.",
                show_default=False,
            ),
        ] = None,
        format: FormatOption = None,
        json: JsonOption = False,
        table: Any = None,
    ) -> None:
        """Train a saved model on without some of its rows, and prove how good the result is.

        The certificate proves how far the new model is from the optimum of the problem without
        the rows, which owes nothing to them.  It does not prove that other copies of the rows
        are gone, nor that options chosen with them owe nothing to them.
        """
        with failures("forget"):
            import numpy as np

            from zerogap.model_io import save

            if out is None and not force:
                raise ValueError("give --out MODEL, or --force to replace the old model")
            for path in (out, left):
                if path is not None and path.exists() and not force:
                    raise ValueError(f"{path}: is there already; --force replaces it")
            check_outputs((out or model, left), data, str(rows))
            if left is not None:
                check_output(left, str(model))
            numbers = _read_numbers(rows)
            file, given = open_for_model(model, data, format=format, table=table)
            _check_scale(scale, file.encoder, model)
            places, ids = _rows_of(given, file.model.row_ids_)
            known = np.isin(ids, file.model.row_ids_)  # without those forgotten earlier
            weights = None if given.sample_weight is None else given.sample_weight[known]
            removal = _forget(file.model, numbers, (given.X[known], given.y[known], weights))
            if left is not None:
                gone = places[~np.isin(ids, file.model.row_ids_)]
                _write_left(data, left, gone, file.encoder, format, table)
            about = {"name": left.name, "rows": len(file.model.row_ids_)} if left else {}
            save(
                file.model,
                out or model,
                encoder=file.encoder,
                keep_dual=True,
                training=about or file.training | {"rows": len(file.model.row_ids_)},
            )
        certificate, tol = removal.certificate, file.model.tol
        if json:
            typer.echo(as_json(_report(removal, out or model, left)))
        else:
            _show(removal, tol, out or model, left, data)
        if certificate.stop_reason != "converged":
            gap = f"a relative gap of {certificate.relative_gap:.2g}, asked for {tol:g}"
            stop("forget", f"stopped ({certificate.stop_reason}) at {gap}", NOT_REACHED)


def _check_scale(scale: str | None, encoder: Any, model: Path) -> None:
    """Refuse a scaling that is not that of the model."""
    own = "none" if encoder is None else encoder.scaling
    if scale is not None and scale != own:
        raise ValueError(
            f"{model} was trained with --scale {own}, which the rows left keep: leave --scale out, "
            f"or train again with --scale {scale} without the rows"
        )


def _rows_of(given: Input, ids: Any) -> tuple[Any, Any]:
    """Return which rows of the file the features are of, and their numbers in the training.

    The file is that of the training, or what is left of it: then it has the model's own rows.
    """
    import numpy as np

    rows = given.X.shape[0]
    places = np.arange(rows) if given.kept is None else given.kept
    return places, ids if rows == len(ids) else places


def _write_left(
    data: str, left: Path, gone: Any, encoder: Any, format: str | None, table: dict[str, Any]
) -> None:
    """Write the data without the rows."""
    from zerogap.readers.reduced import write_without

    options = as_options(table)
    write_without(data, left, gone, format=format, options=options, encoder=encoder)


def _read_numbers(path: Path) -> list[int]:
    """Return the row numbers in a file."""
    numbers = []
    for count, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip()
        if text and not (text.isascii() and text.isdigit()):
            raise ValueError(f"{path}, line {count}: {text!r:.40} is no row number")
        numbers += [int(text)] if text else []
    if not numbers:
        raise ValueError(f"{path}: has no row numbers")
    return numbers


def _forget(model: Any, rows: list[int], data: Any) -> Any:
    """Let the model forget the rows, and show how it goes."""
    from sklearn.exceptions import ConvergenceWarning

    from zerogap.estimators import updates

    with warnings.catch_warnings(), progress(model.tol) as show:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the exit code and a line say it
        model.set_params(callback=show)
        removal = updates.forget(model, rows, data)
    model.set_params(callback=None)
    return removal


def _report(removal: Any, out: Path, left: Path | None) -> dict[str, Any]:
    return {
        "data": None if left is None else str(left),
        "removed": removal.removed,
        "digest": removal.digest,
        "fingerprint_before": removal.before,
        "fingerprint_after": removal.after,
        "certificate": certificate_json(removal.certificate),
        "model": str(out),
    }


def _show(removal: Any, tol: float, out: Path, left: Path | None, data: str) -> None:
    proof = f"zerogap certify {out} {left}" if left else f"give --left FILE to have {data} reduced"
    print_table(
        [
            ("forgotten", f"{removal.removed:,} rows, digest {removal.digest}"),
            ("data before", removal.before),
            ("data after", removal.after),
            *certificate_rows(removal.certificate, tol),
            ("model", str(out)),
            ("data left", str(left) if left else "not written"),
            ("to check", proof),
        ]
    )

"""`zerogap prove` and `zerogap verify`: proofs that anybody can check with one short file."""

import json
import zipfile
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.choices import DATA_HELP, MODEL_HELP, FormatOption, JsonOption
from zerogap.cli.inputs import Input, open_data, open_for_model
from zerogap.cli.output import (
    FAILURE,
    NOT_REACHED,
    as_json,
    check_output,
    failures,
    note,
    print_table,
    stop,
)
from zerogap.cli.stores import is_store, open_store, open_store_for_model
from zerogap.cli.table_options import table_options


def register(app: Any) -> None:
    """Add the commands to the application."""

    @app.command()
    @table_options()
    def prove(
        model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
        data: Annotated[
            str, typer.Argument(metavar="DATA", help=f"The data of the training.  {DATA_HELP}")
        ],
        out: Annotated[Path, typer.Option(metavar="PROOF", help="File to write the proof to.")],
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
        table: Any = None,
    ) -> None:
        """Write a proof of how far a saved model is at most from the optimum.

        The proof can be checked by zerogap verify, by the one file verify.py of this package,
        which needs NumPy only, or by a program of your own: its format is documented in
        docs/proof-format.md.
        """
        with failures("prove"):
            from zerogap import model_io

            check_output(out, str(model), data)
            file, given = _open_for_model(model, data, format, table)
            rows = (given.X, given.y, given.sample_weight)
            proof = model_io.prove(file.model, *rows, effort=effort)
            model_io.save_proof(proof, out, encoder=file.encoder)
            claims = _claims(proof)
        if json:
            typer.echo(as_json({"claims": claims, "proof": str(out)}))
            return
        print_table([*_rows(claims), ("proof", str(out))])

    @app.command()
    @table_options()
    def verify(
        proof: Annotated[
            Path, typer.Argument(metavar="PROOF", help="File that zerogap prove has written.")
        ],
        data: Annotated[
            str, typer.Argument(metavar="DATA", help=f"The data of the proof.  {DATA_HELP}")
        ],
        format: FormatOption = None,
        json: JsonOption = False,
        table: Any = None,
    ) -> None:
        """Decide whether a proof is true on these data, in exact arithmetic.

        The exit code is 0 if it is true, 1 if it is false, and 3 if that cannot be decided.
        """
        with failures("verify"):
            from zerogap import verify as verifier
            from zerogap.model_io.proofs import reader_of

            held = verifier.load(proof)
            given = _open(data, reader_of(held), format, table)
            answer, reason, found = verifier.verify(held, given.X, given.y, given.sample_weight)
            claims = _claims(held) if answer == "true" else []
            if json:
                numbers = [{"primal": map(float, P), "dual": map(float, D)} for P, D in found]
                bounds = [{name: list(pair) for name, pair in part.items()} for part in numbers]
                report = {"answer": answer, "reason": reason, "claims": claims, "bounds": bounds}
                typer.echo(as_json(report))
        if answer != "true":
            code = FAILURE if answer == "false" else NOT_REACHED
            stop("verify", f"{answer}: {reason}", code)
        if not json:
            rows, features = given.X.shape
            size = f"{rows:,} rows, {features:,} features, the same as those of the proof"
            print_table([*_rows(claims), ("data", size), ("answer", "true")])


def _open_for_model(
    model: Path, data: str, format: str | None, table: dict[str, Any]
) -> tuple[Any, Input]:
    """Read a model, and data in the way that the model's own were read.

    Weights beside the data are kept if the model was fitted with them.
    """
    if is_store(data):
        file, store = open_store_for_model(model, data, None)
        return file, _loaded(store)
    from zerogap.estimators.updates import data_fingerprint

    file, given = open_for_model(model, data, format=format, table=table)
    for weights in (given.sample_weight, None, _weights(data)):
        if data_fingerprint(file.model, given.X, given.y, weights) == file.fingerprint:
            return file, replace(given, sample_weight=weights)
    note("prove", "these are not the data of the training, bit for bit; the proof is for these")
    return file, given


def _open(data: str, encoder: Any, format: str | None, table: dict[str, Any]) -> Input:
    """Read data from a file or a store, with the weights that are beside them."""
    if is_store(data):
        return _loaded(open_store(data, format=format).X)
    given = open_data(data, encoder=encoder, format=format, table=table)
    return (
        given if given.sample_weight is not None else replace(given, sample_weight=_weights(data))
    )


def _loaded(store: Any) -> Input:
    from zerogap.streamed import load, worth_loading

    if not worth_loading(store):
        raise ValueError("proofs need all rows in memory, for which the store is too large")
    part = load(store)
    return Input(part.X, part.y, sample_weight=part.sample_weight)


def _weights(data: str) -> Any:
    """Return the weights in an npz file, None if there are none."""
    import numpy as np

    if not Path(data).is_file() or not zipfile.is_zipfile(data):
        return None
    with np.load(data, allow_pickle=False) as arrays:
        return arrays.get("sample_weight")


def _claims(proof: Any) -> list[dict[str, float]]:
    """Return what a proof claims, for each of its parts."""
    header = json.loads(proof["header"].tobytes())
    pairs = zip(header["primal"], header["dual"], strict=True)
    return [{"primal": primal, "dual": dual} for primal, dual in pairs]


def _rows(claims: list[dict[str, float]]) -> list[tuple[str, str]]:
    """Return claims in plain words; distances are rounded up."""
    rows = []
    for k, claim in enumerate(claims):
        primal, dual = claim["primal"], claim["dual"]
        up = Context(prec=3, rounding=ROUND_CEILING)
        distance = up.subtract(Decimal(primal), Decimal(dual))
        share = f" ({100 * float(distance) / primal:.2g} % of it)" if primal > 0 else ""
        part = f", class {k}" if len(claims) > 1 else ""
        rows += [
            (f"objective{part}", f"{primal!r} at most"),
            ("optimum", f"{dual!r} at least: no model whatsoever is below it"),
            ("distance", f"{float(distance):g} at most{share}"),
        ]
    return rows

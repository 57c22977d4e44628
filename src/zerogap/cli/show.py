"""`zerogap show`: what a saved model is, in words and numbers."""

import csv
import io
from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.choices import MODEL_HELP, JsonOption
from zerogap.cli.output import (
    USAGE,
    as_json,
    certificate_json,
    certificate_rows,
    check_output,
    failures,
    print_data,
    print_table,
    printer,
    stop,
)


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    def show(
        model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
        top: Annotated[
            int, typer.Option(min=1, help="Print so many features, those with most effect.")
        ] = 20,
        csv: Annotated[
            bool, typer.Option("--csv", help="Print all coefficients as CSV, and nothing else.")
        ] = False,
        picture: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="File for a picture of the coefficients: .svg."),
        ] = None,
        json: JsonOption = False,
    ) -> None:
        """Show a saved model: certificate, data, columns and coefficients by name.

        The effect of a feature is the change of the score over one standard deviation of it.
        """
        if csv and json:
            stop("show", "give one of --csv and --json", USAGE)
        with failures("show"):
            from zerogap.cli.coefficients import coefficients
            from zerogap.io.atomic import write_file
            from zerogap.model_io import read

            if picture is not None:
                if picture.suffix != ".svg":
                    raise ValueError(f"{picture}: the picture is SVG, call it something.svg")
                check_output(picture, str(model))
            file = read(model)
            found = coefficients(file.model, file.encoder, file.deviation)
            if picture is not None:
                drawn = draw(found[:top], predicted_number(file.model, file.encoder)).encode()
                write_file(picture, lambda to: to.write(drawn))
            if csv:
                print_data(_csv(found))
            elif json:
                typer.echo(as_json(_report(file, found)))
            else:
                _print(file, found[: top * _outputs(file.model)])


def draw(found: Any, score: str = "the score") -> str:
    """Return bars of the effects, or coefficients where those are not known.

    `score` is what the model predicts from: the target's name, if that is a number.
    """
    from zerogap.cli.drawings import bars

    known = all(c.effect is not None for c in found)
    names = [f"{c.feature} ({c.label})" if c.label else c.feature for c in found]
    unit = f"change of {score} per standard deviation" if known else "coefficient"
    return bars(names, [c.effect if known else c.coef for c in found], unit)


def predicted_number(model: Any, encoder: Any) -> str:
    """Return the name of the target of a regression, in quotes; of classes, the score."""
    target = getattr(encoder, "target", None)
    return "the score" if hasattr(model, "classes_") else repr(target) if target else "the target"


def _outputs(model: Any) -> int:
    classes = getattr(model, "classes_", ())
    return len(classes) if len(classes) > 2 else 1


def columns_of(encoder: Any) -> list[tuple[str, str]]:
    """Return each column of the table, and what was done to it."""
    if encoder is None or not encoder.columns:
        return []
    found = [(column.name, column.words()) for column in encoder.columns]
    found += [(name, f"left out: {why}") for name, why in encoder.left_out]
    special = {"target": encoder.target, "weights": encoder.weight, "names of rows": encoder.id}
    return found + [(name, f"{what}") for what, name in special.items() if name is not None]


def decision(model: Any) -> str | None:
    """Say when which class is predicted."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return None
    if len(classes) > 2:
        more = ", ..." if len(classes) > 10 else ""
        return f"{', '.join(map(str, classes[:10]))}{more}: the one of the largest score"
    likely = " (probability above 0.5)" if hasattr(model, "predict_proba") else ""
    return f"{classes[1]} where the score is above 0{likely}, else {classes[0]}"


def _report(file: Any, found: Any) -> dict[str, Any]:
    model, encoder = file.model, file.encoder
    return {
        "certificate": certificate_json(model.certificate_),
        "tol": model.tol,
        "loss": str(model.loss),
        "lam": model.lam,
        "training": file.training,
        "fingerprint": file.fingerprint,
        "version": file.version,
        "scaling": "none" if encoder is None else encoder.scaling,
        "columns": dict(columns_of(encoder)),
        "encoder": None if encoder is None else encoder.to_json(),
        "classes": getattr(model, "classes_", None),
        "decision": decision(model),
        "intercept": model.intercept_,
        "coefficients": [c._asdict() for c in found],
    }


def _csv(found: Any) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("feature", "class", "coef", "per_unit", "effect"))
    writer.writerows(found)
    return buffer.getvalue()


def _print(file: Any, found: Any) -> None:
    model, say = file.model, printer()
    training = file.training
    digest = f", sha256 {training['sha256']}" if "sha256" in training else ""
    rows = [("data", f"{training.get('name', 'not known')}{digest}")]
    if "rows" in training:
        rows.append(("rows", f"{training['rows']:,}"))
    rows += [("loss", f"{model.loss}, lam {'1 / rows' if model.lam is None else model.lam}")]
    rows += certificate_rows(model.certificate_, model.tol)
    if (told := decision(model)) is not None:
        rows.append(("predicts", told))
    print_table([*rows, ("written by", f"zerogap {file.version}")])
    if columns := columns_of(file.encoder):
        say("")
        say(f"columns, features scaled: {file.encoder.scaling}", "bold")
        print_table([(f"  {name}", what) for name, what in columns])
    say("")
    width = max(len(c.feature) for c in found)
    label = max(len(c.label) for c in found)
    head = f"  {'feature':{width}}  {'class':{label}}" if label else f"  {'feature':{width}}"
    say(f"{head}  {'effect':>10}  {'per unit':>10}", "bold")
    for c in found:
        effect = "not known" if c.effect is None else f"{c.effect:.4g}"
        name = f"  {c.feature:{width}}  {c.label:{label}}" if label else f"  {c.feature:{width}}"
        say(f"{name}  {effect:>10}  {c.per_unit:>10.4g}")
    intercept = ", ".join(f"{b:.4g}" for b in _flat(model.intercept_))
    say(f"  {'intercept':{width}}  {intercept:>10}")


def _flat(values: Any) -> Any:
    import numpy as np

    return np.atleast_1d(values).tolist()

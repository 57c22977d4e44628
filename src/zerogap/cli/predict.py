"""`zerogap predict`: a saved model on new data."""

from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.choices import DATA_HELP, MODEL_HELP, FormatOption, JsonOption
from zerogap.cli.inputs import open_for_model
from zerogap.cli.output import USAGE, as_json, check_output, failures, note, score_text, stop
from zerogap.cli.stores import is_store, open_store_for_model

_INTERVAL = ("prediction", "low", "high")


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    def predict(
        model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
        data: Annotated[
            str,
            typer.Argument(metavar="DATA", help=f"{DATA_HELP}  Targets need not be there."),
        ],
        proba: Annotated[
            bool, typer.Option("--proba", help="Probabilities of the classes, as CSV.")
        ] = False,
        scores: Annotated[
            bool, typer.Option("--scores", help="Scores x.w + b, as CSV if there are several.")
        ] = False,
        certified: Annotated[
            bool,
            typer.Option(
                "--certified",
                help="Also whether the exact optimum is proved to predict the same, as CSV; of "
                "numbers, bounds of its predictions.  By the word of the model file, which "
                "zerogap certify checks.",
            ),
        ] = False,
        format: FormatOption = None,
        out: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="File to write to instead of standard output."),
        ] = None,
        json: JsonOption = False,
    ) -> None:
        """Predict with a saved model, one line per row.

        Where the data have targets, the accuracy, or R2, is printed on standard error.  Of a data
        set with a test part, that part is predicted.  The rows of a store are in its own order.
        """
        if proba + scores + certified > 1:
            stop("predict", "give one of --proba, --scores and --certified", USAGE)
        with failures("predict"):
            if out is not None:
                check_output(out, data, str(model))
            if is_store(data):
                file, X = open_store_for_model(model, data, None)
                y = None
            else:
                file, given = open_for_model(model, data, format=format, labelled=False)
                for text in given.notes:
                    note("predict", text)
                tested = given.X_test is not None
                X, y = (given.X_test, given.y_test) if tested else (given.X, given.y)
            what = "probabilities" if proba else "scores" if scores else "predictions"
            proved = _certify(file.model, X) if certified else {}
            word = {"word_of": str(model)} if certified else {}
            values = proved["prediction"] if certified else _compute(file.model, X, what)
            classes = getattr(file.model, "classes_", None)
            quality = _score(file.model, X, y)
            content = {what: values, "classes": classes, **quality, **proved, **word}
            content.pop("prediction", None)
            table = _table(proved) if certified else _lines(values, classes)
            text = as_json(content) if json else table
            if out is None:
                typer.echo(text)
            else:
                out.write_text(f"{text}\n", encoding="utf-8")
        for name, value in quality.items():
            note("predict", f"{score_text(name, value)} on {len(values):,} rows")
        if "certified" in proved:
            share = 100.0 * proved["certified"].mean()
            note("predict", f"{share:.4g} % of the labels are proved to be the exact optimum's")
        if certified:
            note("predict", f"by the word of {model}: zerogap certify {model} DATA checks it")


def _compute(model: Any, X: Any, what: str) -> Any:
    if what == "predictions":
        return model.predict(X)
    method = {"probabilities": "predict_proba", "scores": "decision_function"}[what]
    if not hasattr(model, "classes_"):
        raise ValueError(f"a model of numbers has no {what}: leave --proba and --scores out")
    if not hasattr(model, method):
        raise ValueError(
            f"a model with {model.loss} loss has no {what}: use --scores, or train with --loss "
            f"logistic or softmax"
        )
    return getattr(model, method)(X)


def _certify(model: Any, X: Any) -> dict[str, Any]:
    """Return predictions and what the file says is proved of them, by column."""
    import warnings

    names = ("prediction", "certified") if hasattr(model, "classes_") else _INTERVAL
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "what is certified here is the word of a model file")
        return dict(zip(names, model.predict_certified(X), strict=True))


def _table(columns: dict[str, Any]) -> str:
    """Return columns as CSV."""
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    lists = [[_text(value) for value in column.tolist()] for column in columns.values()]
    writer.writerows(zip(*lists, strict=True))
    return buffer.getvalue().rstrip("\n")


def _score(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Return accuracy or R2, where the data have targets and not just something in their place."""
    import numpy as np

    from zerogap.store import Store

    if isinstance(X, Store):
        same_kind = (X.classes is not None) == hasattr(model, "classes_")
        name = "R2" if X.classes is None else "accuracy"
        return {name: float(model.score(X))} if same_kind else {}
    if y is None:
        return {}
    if hasattr(model, "classes_"):
        known = np.isin(y, model.classes_).any()
        return {"accuracy": float(model.score(X, y))} if known else {}
    return {"R2": float(model.score(X, y))} if y.dtype.kind not in "OUS" else {}


def _lines(values: Any, classes: Any) -> str:
    """Return one line per row; several columns are CSV, under the names of the classes."""
    if values.ndim == 1:
        return "\n".join(map(_text, values.tolist()))
    return _table(dict(zip(map(_text, classes.tolist()), values.T, strict=True)))


def _text(label: Any) -> str:
    """Return a label or number as text, from which it can be read back bit for bit."""
    return str(label).removesuffix(".0") if isinstance(label, float) else str(label)

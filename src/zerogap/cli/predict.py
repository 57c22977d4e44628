"""`zerogap predict`: a saved model on new data."""

import csv
import io
import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from zerogap.cli.choices import DATA_HELP, MODEL_HELP, FormatOption, JsonOption
from zerogap.cli.inputs import Input, open_data, tell
from zerogap.cli.output import (
    USAGE,
    as_json,
    check_output,
    failures,
    note,
    print_data,
    score_text,
    stop,
)
from zerogap.cli.stores import is_store, open_store_for_model
from zerogap.cli.table_options import as_options, table_options

_INTERVAL = ("prediction", "low", "high")


class Piece(NamedTuple):
    """Rows to predict, their targets or None, and their names or None."""

    X: Any
    y: Any
    ids: Any
    left_out: int = 0


def register(app: Any) -> None:
    """Add the command to the application."""

    @app.command()
    @table_options()
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
        threshold: Annotated[
            float | None,
            typer.Option(
                help="Predict the second of two classes where its probability, or without "
                "probabilities its score, is above this.",
                show_default="0.5, or a score of 0",
            ),
        ] = None,
        drop_missing: Annotated[
            bool,
            typer.Option(
                "--drop-missing",
                help="Leave out rows in which something is missing, which models without --impute "
                "refuse; --id of the training tells which ones are left.",
            ),
        ] = False,
        format: FormatOption = None,
        out: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="File to write to instead of standard output."),
        ] = None,
        json: JsonOption = False,
        table: Any = None,
    ) -> None:
        """Predict with a saved model, one line per row.

        Tables of any size are read some rows after others.  Models trained with --id print CSV,
        with that column first.  Where the data have targets, the accuracy, or R2, is printed on
        standard error.  Of a data set with a test part, that part is predicted.  The rows of a
        store are in its own order.
        """
        if proba + scores + certified > 1:
            stop("predict", "give one of --proba, --scores and --certified", USAGE)
        if threshold is not None and (proba or scores or certified):
            stop("predict", "--threshold is for labels: leave the other options out", USAGE)
        what = "probabilities" if proba else "scores" if scores else "predictions"
        with failures("predict"):
            if out is not None:
                check_output(out, data, str(model))
            file, pieces = _open(model, data, format, table | {"drop_missing": drop_missing})
            kind = "certified" if certified else what
            work = _Work(file.model, kind, threshold)
            results = map(work.add, pieces)
            if json:
                content = work.together(list(results), str(model) if certified else None)
                texts: Any = [as_json(content), "\n"]
            else:
                texts = itertools.chain.from_iterable(work.lines(part) for part in results)
            if out is None:
                for text in texts:
                    print_data(text)
            else:
                from zerogap.io.atomic import write_file

                write_file(out, lambda to: to.writelines(text.encode() for text in texts))
        if work.left_out:
            rows = "row" if work.left_out == 1 else "rows"
            note("predict", f"left out {work.left_out:,} {rows} with missing values")
        for name, value in work.quality().items():
            note("predict", f"{score_text(name, value)} on {work.rows:,} rows")
        if certified:
            if work.certified is not None:
                share = 100.0 * work.certified / work.rows
                note("predict", f"{share:.4g} % of the labels are proved to be the exact optimum's")
            note("predict", f"by the word of {model}: zerogap certify {model} DATA checks it")


def _open(
    model: Path, data: str, format: str | None, table: dict[str, Any]
) -> tuple[Any, Iterator[Piece]]:
    """Return a model file, and rows to predict, some after others."""
    if is_store(data):
        file, store = open_store_for_model(model, data, None)
        return file, iter([Piece(store, None, None)])
    from zerogap.model_io import read
    from zerogap.readers import Encoder

    file = read(model)
    encoder = file.encoder or Encoder(file.model.n_features_in_)
    if encoder.columns and (data == "-" or Path(data).exists()):
        return file, _pieces(data, encoder, format, table)
    given = open_data(data, encoder=encoder, format=format, table=table, labelled=False)
    tell("predict", given)
    tested = given.X_test is not None
    X, y = (given.X_test, given.y_test) if tested else (given.X, given.y)
    return file, iter([Piece(X, y, None)])


def _pieces(data: str, encoder: Any, format: str | None, table: dict[str, Any]) -> Iterator[Piece]:
    """Read a table, and tell once what was guessed."""
    from zerogap.readers import read_pieces

    told: set[str] = set()
    for part in read_pieces(data, encoder, format=format, options=as_options(table)):
        guesses = {} if told else part.guesses
        fresh = tuple(text for text in part.notes if text.split(" in training")[0] not in told)
        tell("predict", Input(None, None, name=part.name, notes=fresh, guesses=guesses))
        told.update(("", *(text.split(" in training")[0] for text in fresh)))
        yield Piece(part.X, part.y, part.ids, part.left_out)


class _Work:
    """Predict some rows after others, and score them."""

    def __init__(self, model: Any, what: str, threshold: float | None) -> None:
        self.model, self.what, self.threshold = model, what, threshold
        self.classes: Any = getattr(model, "classes_", None)
        if threshold is not None and (self.classes is None or len(self.classes) != 2):
            raise ValueError("--threshold is for models of two classes")
        if threshold is not None and hasattr(model, "predict_proba") and not 0 <= threshold <= 1:
            raise ValueError(f"--threshold is a probability, from 0 to 1, got {threshold:g}")
        self.rows = self.left_out = 0
        self.right: int | None = None
        self.sums: tuple[float, ...] | None = None  # rows, first, sum, squares, squared residuals
        self.certified: int | None = None
        self.store: Any = None
        self.begun = False

    def add(self, piece: Piece) -> dict[str, Any]:
        """Return the columns that there are to print of some rows."""
        ids = {} if piece.ids is None else {"id": piece.ids}
        if self.what == "certified":
            columns = _certify(self.model, piece.X)
            values = columns["prediction"]
            if "certified" in columns:
                self.certified = (self.certified or 0) + int(columns["certified"].sum())
        else:
            values = _compute(self.model, piece.X, self.what, self.threshold)
            columns = {"": values}
        self.rows += len(values)
        self.left_out += piece.left_out
        if self.what in ("predictions", "certified"):
            self._score(piece, values)
        else:
            self._score(piece, _compute(self.model, piece.X, "predictions", None))
        return ids | columns

    def _score(self, piece: Piece, labels: Any) -> None:
        """Count what is right, where the data have targets and not something in their place."""
        import numpy as np

        if not hasattr(piece.X, "shape"):
            self.store = piece.X
        if piece.y is None:
            return
        y = piece.y
        if self.classes is not None:
            if self.right is not None or np.isin(y, self.classes).any():
                self.right = (self.right or 0) + int((y == labels).sum())
        elif y.dtype.kind not in "OUS":
            n, first, total, squares, left = self.sums or (0, float(y[0]), 0.0, 0.0, 0.0)
            away = y - first
            more = float(away.sum()), float((away**2).sum()), float(((y - labels) ** 2).sum())
            self.sums = (n + len(y), first, total + more[0], squares + more[1], left + more[2])

    def quality(self) -> dict[str, float]:
        """Return accuracy or R2, if it is known."""
        if self.store is not None:
            same = (self.store.classes is not None) == (self.classes is not None)
            name = "R2" if self.classes is None else "accuracy"
            return {name: float(self.model.score(self.store))} if same else {}
        if self.right is not None:
            return {"accuracy": self.right / self.rows}
        if self.sums is None:
            return {}
        n, _, total, squares, left = self.sums
        spread = squares - total * total / n
        return {"R2": 1.0 - left / spread if spread > 0 else float(left == 0)}

    def lines(self, columns: dict[str, Any]) -> Iterator[str]:
        """Yield some rows as text: one value per line, or CSV under a header."""
        if set(columns) == {""} and columns[""].ndim == 1:
            yield "".join(f"{_text(value)}\n" for value in columns[""].tolist())
            return
        shown: dict[str, Any] = {}
        for name, values in columns.items():
            if name:
                shown[name] = values
            elif values.ndim == 1:
                shown["prediction"] = values
            else:
                shown |= dict(zip(map(_text, self.classes.tolist()), values.T, strict=True))
        yield _table(shown, header=not self.begun)
        self.begun = True

    def together(self, parts: list[dict[str, Any]], word_of: str | None) -> dict[str, Any]:
        """Return all rows as one object."""
        import numpy as np

        names = list(parts[0])
        whole = {n: np.concatenate([np.asarray(part[n]) for part in parts]) for n in names}
        first = "predictions" if self.what == "certified" else self.what
        renamed = {{"": first, "prediction": first}.get(n, n): v for n, v in whole.items()}
        word = {} if word_of is None else {"word_of": word_of}
        return renamed | {"classes": self.classes, **self.quality(), **word}


def _compute(model: Any, X: Any, what: str, threshold: float | None) -> Any:
    if what == "predictions" and threshold is None:
        return model.predict(X)
    if what == "predictions":
        likely = hasattr(model, "predict_proba")
        values = model.predict_proba(X)[:, 1] if likely else model.decision_function(X)
        return model.classes_[(values > threshold).astype(int)]
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
    names = ("prediction", "certified") if hasattr(model, "classes_") else _INTERVAL
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "what is certified here is the word of a model file")
        return dict(zip(names, model.predict_certified(X), strict=True))


def _table(columns: dict[str, Any], header: bool) -> str:
    """Return columns as CSV."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if header:
        writer.writerow(columns)
    lists = [
        [_text(value) for value in (c.to_pylist() if hasattr(c, "to_pylist") else c.tolist())]
        for c in columns.values()
    ]
    writer.writerows(zip(*lists, strict=True))
    return buffer.getvalue()


def _text(label: Any) -> str:
    """Return a label or number as text, from which it can be read back bit for bit."""
    return str(label).removesuffix(".0") if isinstance(label, float) else str(label)

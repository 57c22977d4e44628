"""What commands read: a file, standard input, or a data set known by name."""

import hashlib
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from zerogap.cli.output import note
from zerogap.cli.table_options import as_options


@dataclass(frozen=True)
class Input:
    """Rows and targets, and whatever comes with them."""

    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None
    groups: Any = None
    encoder: Any = None
    name: str = ""
    notes: tuple[str, ...] = ()
    sample_weight: Any = None
    guesses: dict[str, str] = field(default_factory=dict)
    kept: Any = None


def open_data(
    text: str, *, encoder: Any = None, table: dict[str, Any] | None = None, **options: Any
) -> Input:
    """Read the file of that name, standard input for "-", or else the data set of that name.

    `table` is what `table_options` gave the command; other options are those of
    `zerogap.readers.read`.  Data sets of the registry need none.
    """
    options["options"] = as_options(table or {})
    if text != "-" and not Path(text).exists():
        return _data_set(text, encoder)
    from zerogap.readers import read

    data = read(text, encoder=encoder, **options)
    return Input(
        data.X,
        data.y,
        encoder=data.encoder,
        name=data.name,
        notes=data.notes,
        sample_weight=data.weight,
        guesses=data.guesses,
        kept=data.kept,
    )


def file_digest(text: str) -> str | None:
    """Return the SHA-256 of a file, None if it is none."""
    if not Path(text).is_file():
        return None
    with open(text, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tell(command: str, given: Input) -> None:
    """Print notes, and what was guessed of a table, on standard error."""
    if given.guesses:
        found = ", ".join(f"{name} {value}" for name, value in given.guesses.items())
        note(command, f"{given.name}: guessed {found}")
    for text in given.notes:
        note(command, text)


def open_with_test(data: str, test: str | None, **options: Any) -> Input:
    """Read data for training, and data for test into the same features; nothing is scaled."""
    from zerogap.readers import Encoder

    given = open_data(data, **options)
    encoder = given.encoder or Encoder(given.X.shape[1])
    if test is None:
        return replace(given, encoder=encoder)
    tested = open_data(test, encoder=encoder, **options)
    notes = given.notes + tested.notes
    return replace(given, X_test=tested.X, y_test=tested.y, encoder=encoder, notes=notes)


def scale_input(given: Input, kind: str, has_intercept: bool) -> Input:
    """Scale data for training, and data for test in the same way."""
    from zerogap.readers import Encoder

    encoder = given.encoder or Encoder(given.X.shape[1])
    encoder = encoder.fit_scaling(given.X, kind, has_intercept)
    X_test = None if given.X_test is None else encoder.scaled(given.X_test)
    return replace(given, X=encoder.scaled(given.X), X_test=X_test, encoder=encoder)


def column_scaler(kind: str, has_intercept: bool) -> Any:
    """Return what learns the same scaling from the training rows of each fold, or None."""
    from zerogap.transforms import ColumnScaler

    return None if kind == "none" else ColumnScaler(kind, has_intercept=has_intercept)


def _data_set(name: str, encoder: Any) -> Input:
    from zerogap import datasets
    from zerogap.readers import DataError, Encoder

    if name not in datasets.names():
        close = get_close_matches(name, datasets.names())
        hint = f"did you mean {' or '.join(close)}?" if close else "see zerogap data list"
        raise DataError(f"{name}: neither a file nor a data set; {hint}")
    data = datasets.load(name)
    X, X_test = data.X, data.X_test
    if encoder is None and data.feature_names is not None:
        encoder = Encoder(X.shape[1], names=data.feature_names)
    if encoder is not None:
        X, X_test = encoder.scaled(X), None if X_test is None else encoder.scaled(X_test)
    return Input(X, data.y, X_test, data.y_test, data.groups, encoder, name)


def open_for_model(path: Path, text: str, **options: Any) -> tuple[Any, Input]:
    """Read a model file, and data in the way that the model's own were read."""
    from zerogap.model_io import read
    from zerogap.readers import Encoder

    file = read(path)
    encoder = file.encoder or Encoder(file.model.n_features_in_)
    return file, open_data(text, encoder=encoder, **options)

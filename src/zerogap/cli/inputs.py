"""What commands read: a file, standard input, or a data set known by name."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any


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


def open_data(text: str, *, encoder: Any = None, **options: Any) -> Input:
    """Read the file of that name, standard input for "-", or else the data set of that name.

    Options are those of `zerogap.readers.read`; data sets of the registry need none.
    """
    if text != "-" and not Path(text).exists():
        return _data_set(text, encoder)
    from zerogap.readers import read

    data = read(text, encoder=encoder, **options)
    return Input(data.X, data.y, encoder=data.encoder, name=data.name, notes=data.notes)


def _data_set(name: str, encoder: Any) -> Input:
    from zerogap import datasets
    from zerogap.readers import DataError

    if name not in datasets.names():
        close = get_close_matches(name, datasets.names())
        hint = f"did you mean {' or '.join(close)}?" if close else "see zerogap data list"
        raise DataError(f"{name}: neither a file nor a data set; {hint}")
    data = datasets.load(name)
    X, X_test = data.X, data.X_test
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

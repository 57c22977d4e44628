"""Stores in the place of files: what train, predict and certify read."""

from pathlib import Path
from typing import Annotated, Any

import typer

from zerogap.cli.inputs import Input

MemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory that a store may take in all, as 2GB; by default it is loaded if it takes "
        "less than a quarter of what is free, and else read block by block.",
    ),
]


def is_store(text: str | None) -> bool:
    """Tell whether a path is that of a store."""
    return text is not None and Path(text, "manifest.json").is_file()


def open_store(text: str, max_memory: str | None = None, **unfit: Any) -> Input:
    """Open a store; options that say how to read a file are refused."""
    from zerogap.readers import Encoder
    from zerogap.store import Store

    for name, value in unfit.items():
        if value is not None:
            raise ValueError(
                f"--{name} is for files: {text} is a store, whose rows are as they are"
            )
    store = Store(text, max_memory)
    encoder = None if store.encoder is None else Encoder.from_json(store.encoder)
    return Input(store, None, encoder=encoder, name=text)


def open_store_for_model(path: Path, text: str, max_memory: str | None) -> tuple[Any, Any]:
    """Open a model file, and a store whose features are those of the model."""
    from zerogap.model_io import read

    file, store = read(path), open_store(text, max_memory).X
    theirs = {} if file.encoder is None else file.encoder.to_json()
    ours = store.encoder or {}
    if theirs.get("shift") is not None or theirs.get("scale") is not None:
        raise ValueError(f"{path} scales its features, and the rows of {text} are as they are")
    if theirs.get("columns") and theirs["columns"] != ours.get("columns"):
        raise ValueError(f"{text} has not the columns that {path} was trained on")
    if store.n_features != file.model.n_features_in_:
        raise ValueError(
            f"{text} has {store.n_features} features, the model has {file.model.n_features_in_}"
        )
    return file, store


def refuse_memory(max_memory: str | None, text: str) -> None:
    """Refuse --max-memory for data in memory, where it would have no effect."""
    if max_memory is not None:
        raise ValueError(
            f"--max-memory is for stores, and {text} is none: make one by zerogap data convert"
        )

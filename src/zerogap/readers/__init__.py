"""Data from files: svmlight, CSV, TSV, Parquet and npz, plain or packed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.readers.encoder import Column, Encoder
from zerogap.readers.files import DataError, default_limit
from zerogap.readers.formats import FORMATS, TABLES, open_as

__all__ = ["FORMATS", "Column", "Data", "DataError", "Encoder", "read"]

_MOST_FEATURES = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Data:
    """Rows and targets that were read.

    Attributes
    ----------
    X : float64 array or CSR matrix
    y : array or None
        Numbers, or strings where the target column holds text.
    feature_names : tuple of str or None
        Of tables; column=category for text columns.
    target_name : str or None
    encoder : Encoder or None
        What `read` needs to read other data the same way; of tables, or as it was given.
    name : str
        The source's name for messages.
    notes : tuple of str
        What was ignored, for the user to know.
    """

    X: Any
    y: np.ndarray | None
    feature_names: tuple[str, ...] | None = None
    target_name: str | None = None
    encoder: Encoder | None = None
    name: str = ""
    notes: tuple[str, ...] = ()


def read(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    target: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    encoder: Encoder | None = None,
    labelled: bool = True,
    max_bytes: int | None = None,
) -> Data:
    r"""Read rows, and targets where there are any, from a file.

    Parameters
    ----------
    source : path, or "-" for standard input
        gzip, bzip2 and xz are unpacked, whatever the name says.
    format : {"svmlight", "csv", "tsv", "parquet", "npz"}, optional
        By default told from the first bytes (Parquet, npz) or the name (.csv, .tsv); anything
        else is svmlight.
    target : str, optional
        The column to predict (CSV, TSV, Parquet).  By default the last column if it is called
        target, label, y or class.
    n_features : int, optional
        Number of columns of svmlight data; by default the largest index.
    zero_based : bool
        Whether the first index of svmlight data is 0 instead of 1.
    encoder : Encoder, optional
        The training data's encoder: new data are read to the same features.
    labelled : bool
        Whether targets must be there; if not, `y` is None where there are none.
    max_bytes : int, optional
        The most that the unpacked file, and the arrays made of it, may take.  By default three
        quarters of the machine's memory.

    Returns
    -------
    Data

    Raises
    ------
    DataError
        The content is malformed: file, line and column, and what is wrong.
    OSError
        The file cannot be opened or is no regular file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.svm")
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1  # a comment\n")
    ...     data = read(path)
    >>> data.X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> data.y
    array([ 1., -1.])
    """
    _check_features(n_features)
    limit = default_limit() if max_bytes is None else max_bytes
    with open_as(source, format, limit) as (stream, kind):
        name = stream.name
        if kind in TABLES:
            from zerogap.readers.tables import read_table

            X, y, encoder, notes = read_table(stream, kind, target, encoder, labelled)
            return Data(X, y, encoder.feature_names, encoder.target, encoder, name, notes)
        if encoder is not None and encoder.columns:
            raise DataError(f"is a matrix ({kind}), but the model was trained on a table")
        if kind == "npz":
            from zerogap.readers.arrays import read_arrays

            X, y = read_arrays(stream, labelled)
        else:
            from zerogap.readers.svmlight import read_svmlight

            d = n_features if encoder is None else encoder.n_features
            X, y = read_svmlight(stream, d, zero_based, labelled)
        return Data(encoder.scaled(X) if encoder else X, y, encoder=encoder, name=name)


def _check_features(n_features: int | None) -> None:
    if n_features is not None and not 0 < n_features <= _MOST_FEATURES:
        raise ValueError(f"n_features must be from 1 to {_MOST_FEATURES}, got {n_features}")

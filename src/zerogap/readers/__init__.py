"""Data from files: svmlight, tables of many formats and npz, plain or packed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerogap.display import Shown
from zerogap.readers import passes, recipes, roles
from zerogap.readers.arrays import read_arrays
from zerogap.readers.columns import Category, Column, Date, Flag, HashedText, Number, Text
from zerogap.readers.encoder import Encoder
from zerogap.readers.files import DataError, Stream, default_limit, open_source
from zerogap.readers.formats import FORMATS, TABLES, open_as
from zerogap.readers.options import TableOptions
from zerogap.readers.tables import TableFile

__all__ = [
    "FORMATS",
    "Category",
    "Column",
    "Data",
    "DataError",
    "Date",
    "Encoder",
    "Flag",
    "HashedText",
    "Number",
    "TableOptions",
    "Text",
    "read",
    "read_pieces",
]

_MOST_FEATURES = 2**31 - 1


@dataclass(frozen=True, eq=False, repr=False)
class Data(Shown):
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
    guesses : dict of str
        What was guessed of a table: separator, decimal sign, encoding, target, sheet.
    weight, ids : arrays or None
        Weights and names of the rows, of tables that have columns for them.
    kept : array or None
        Numbers of the rows of a table, from 0, where those with missing values are left out.
    left_out : int
        How many rows were left out for that since the piece before.
    """

    X: Any
    y: np.ndarray | None
    feature_names: tuple[str, ...] | None = None
    target_name: str | None = None
    encoder: Encoder | None = None
    name: str = ""
    notes: tuple[str, ...] = ()
    guesses: dict[str, str] = field(default_factory=dict)
    weight: np.ndarray | None = None
    ids: Any = None
    kept: np.ndarray | None = None
    left_out: int = 0

    def _facts(self) -> Mapping[str, Any]:
        rows, columns = self.X.shape
        facts = {"name": self.name, "rows": rows, "features": columns, "target": self.target_name}
        return {name: fact for name, fact in facts.items() if fact not in ("", None)}


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
    options: TableOptions | None = None,
) -> Data:
    r"""Read rows, and targets where there are any, from a file.

    Parameters
    ----------
    source : path, or "-" for standard input
        gzip, bzip2 and xz are unpacked, whatever the name says.
    format : {"svmlight", "csv", "tsv", "parquet", "arrow", "jsonl", "xlsx", "npz"}, optional
        By default told from the first bytes or the name; anything else is CSV if its first line
        has separators and is no line of svmlight.
    target : str, optional
        The column of a table to predict.  By default the last column if it is called target,
        label, y or class.
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
    options : TableOptions, optional
        What else is known of a table, and what to do with its columns.

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
    with open_as(source, format, limit, _is_table(encoder, options)) as (stream, kind):
        name = stream.name
        if kind in TABLES:
            with _again(source, stream, limit) as opened:
                how = options or TableOptions()
                return _read_table(opened, kind, target, encoder, labelled, how, limit, name)
        if encoder is not None and encoder.columns:
            raise DataError(f"is a matrix ({kind}), but the model was trained on a table")
        if kind == "npz":
            X, y = read_arrays(stream, labelled)
        else:
            from zerogap.readers.svmlight import read_svmlight

            d = n_features if encoder is None else encoder.n_features
            X, y = read_svmlight(stream, d, zero_based, labelled)
        return Data(encoder.scaled(X) if encoder else X, y, encoder=encoder, name=name)


def read_pieces(
    source: str | os.PathLike[str],
    encoder: Encoder,
    *,
    format: str | None = None,
    options: TableOptions | None = None,
) -> Iterator[Data]:
    r"""Read new data some rows after others, to the features of an encoder; targets if there.

    Parameters
    ----------
    source, encoder, format, options
        As for `read`.

    Yields
    ------
    Data
        Some rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.csv"
    ...     _ = path.write_text("age,paid\n30,0\n50,1\n")
    ...     encoder = read(path, target="paid").encoder
    ...     [piece.X.tolist() for piece in read_pieces(path, encoder)]
    [[[30.0], [50.0]]]
    """
    with open_as(source, format, 1 << 62, _is_table(encoder, options)) as (stream, kind):
        if kind not in TABLES or not encoder.columns:
            found = read(source, format=kind, encoder=encoder, labelled=False, options=options)
            yield found
            return
        with _again(source, stream, 1 << 62) as opened:
            how = (options or TableOptions()).after(encoder.reading)
            file = TableFile(opened, kind, how, encoder.reading.get("decimal"))
            notes: tuple[str, ...] = (*file.notes, *encoder.check_names(list(file.names)))
            rows = missing = done = 0
            for part in recipes.read_pieces(file, encoder, labelled=False):
                count = part.X.shape[0]
                missing, rows = missing + part.rows - rows - count, part.rows
                if not count:
                    continue
                gone, missing, done = missing, 0, done + count
                yield Data(
                    part.X,
                    part.y,
                    encoder=encoder,
                    name=stream.name,
                    notes=(*notes, *(text for text in part.notes if text not in notes)),
                    guesses=file.guesses,
                    ids=part.ids,
                    kept=part.kept,
                    left_out=gone,
                )
            if not done:
                raise DataError("has no row without missing values")


def _is_table(encoder: Encoder | None, options: TableOptions | None) -> bool:
    """Tell whether text can only be a table."""
    told = options or TableOptions()
    said = told.sep is not None or bool(told.names or told.comment or told.skip_lines)
    return said or (encoder is not None and bool(encoder.columns))


@contextmanager
def _again(source: Any, stream: Stream, limit: int) -> Iterator[Any]:
    """Yield what opens a source anew; standard input is copied into a file for that."""
    if source != "-":
        yield lambda: open_source(source, limit)
        return
    with tempfile.TemporaryDirectory(prefix="zerogap-") as folder:
        path = os.path.join(folder, "stdin")
        with open(path, "xb") as copy:
            while piece := stream.read():
                copy.write(piece)
        yield lambda: open_source(path, limit)  # closed: Windows opens no file twice


def _read_table(
    opened: Any,
    kind: str,
    target: str | None,
    encoder: Encoder | None,
    labelled: bool,
    options: TableOptions,
    limit: int,
    name: str,
) -> Data:
    """Read a table into memory; its encoder is learnt here unless given."""
    if encoder is not None and not encoder.columns:
        raise DataError("is a table, but the model was trained on a matrix (svmlight or npz)")
    if encoder is None:
        file = TableFile(opened, kind, options)
        plain = passes.read_plain(file, target, options, limit)
        if plain is not None:
            encoder, part = plain
        else:
            encoder, table = passes.learn_whole(file, target, options)
            part = _part(file, encoder, table, True, limit)
        if target is None:
            file.guesses["target"] = str(encoder.target)
    else:
        options = options.after(encoder.reading)
        file = TableFile(opened, kind, options, encoder.reading.get("decimal"))
        if labelled:
            roles.find_target(list(file.names), encoder.target, labelled)
        table = file.table(recipes.new_types(file, encoder))
        part = _part(file, encoder, table, labelled, limit)
    notes = [*file.notes, *part.notes]
    if file.bad_lines:
        of_cells = "with more or fewer cells than the header"
        lines = "1 line" if file.bad_lines == 1 else f"{file.bad_lines:,} lines"
        notes.append(f"left out {lines} {'(no JSON)' if kind == 'jsonl' else of_cells}")
    return Data(
        part.X,
        part.y,
        encoder.feature_names,
        encoder.target,
        encoder,
        name,
        tuple(notes),
        file.guesses,
        part.weight,
        part.ids,
        part.kept,
    )


def _part(file: Any, encoder: Encoder, table: Any, labelled: bool, limit: int) -> Any:
    """Return the features of a table, if they fit."""
    names = len(table.column_names)
    needed = table.num_rows * (8 * encoder.n_features if encoder.is_dense else 12 * names)
    if needed > limit:
        raise DataError(
            f"becomes {encoder.n_features} features of {table.num_rows} rows, more than "
            f"max_bytes={limit} bytes: leave out columns with many categories (--drop), or pool "
            f"rare ones (--min-count)"
        )
    return recipes.whole_part(file, encoder, table, labelled)


def _check_features(n_features: int | None) -> None:
    if n_features is not None and not 0 < n_features <= _MOST_FEATURES:
        raise ValueError(f"n_features must be from 1 to {_MOST_FEATURES}, got {n_features}")

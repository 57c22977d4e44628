"""Ways to go through a table: learn what its columns are, in one look or some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from zerogap.readers import columns as kinds
from zerogap.readers import doubts, reading
from zerogap.readers.encoder import Encoder
from zerogap.readers.files import DataError
from zerogap.readers.large import Retyped
from zerogap.readers.options import TableOptions
from zerogap.readers.recipes import Incomplete, Part, Recipe, located, read_pieces
from zerogap.readers.roles import Roles, tell_codes
from zerogap.readers.tables import TableFile

_MOST_RETYPED = 8  # columns, one after the other: then all are read as text
_SPARE = 4  # a matrix that grows gets room for a quarter more rows
_BATCHES_AT_A_TIME = 8  # learnt from: 8 MB of text

Seen = Callable[[int], Any]


def learn_whole(file: TableFile, target: str | None, options: TableOptions) -> tuple[Encoder, Any]:
    """Return the encoder of a table, and the table."""
    import pyarrow as pa

    roles = Roles(file, target, options)
    forced = {n: pa.string() for n in roles.features if n in (*options.category, *options.text)}
    table, notes = file.table(forced), list(file.notes)
    numeric: set[str] = set()
    while True:
        recipe = Recipe(file, target, options, exact=True, numeric=numeric)
        try:
            with located(file):
                recipe.add(table)
                return recipe.encoder(), table
        except Incomplete as found:
            numeric, file.notes[:] = found.columns, notes


def read_plain(
    file: TableFile, target: str | None, options: TableOptions, limit: int
) -> tuple[Encoder, Part] | None:
    """Return the encoder and the features of a long text of numbers alone, None of anything else.

    Row by row this is what `learn_whole` and `whole_part` find, in half the memory and time: each
    piece goes into the matrix while it is in the cache.
    """
    if not file.is_text or file.is_short or options.weight or options.id:
        return None
    notes = list(file.notes)
    try:
        encoder = _of_numbers(file, Roles(file, target, options), file.first_types(), options)
        if encoder is None:
            return None
        X, targets, n = np.empty((0, encoder.n_features)), [], 0
        for part in read_pieces(file, encoder, labelled=True):
            if file.retyped or X.nbytes > limit or part.y is None:
                raise DataError("needs a look at all rows")
            if not n:
                doubts.tell(file, zip((c.name for c in encoder.columns), part.X.T, strict=True))
            before, n = n, part.rows
            if n > len(X):  # where it lies, which copies nothing
                X.resize((n + n // _SPARE, encoder.n_features), refcheck=False)
            X[before:n] = part.X
            targets.append(part.y)
        X.resize((n, encoder.n_features), refcheck=False)
    except DataError:  # that tells better what is wrong, and what to do
        file.notes[:] = notes
        return None
    return encoder, Part(X, np.concatenate(targets), None, None, n, None, ())


def learn_pieces(
    file: TableFile, target: str | None, options: TableOptions, numeric: bool, seen: Seen
) -> Encoder:
    """Return the encoder of a table that is read some rows after others.

    `numeric` tells that the target is to be a number, `seen` is told the rows so far.
    """
    roles, types = Roles(file, target, options), file.first_types()
    quick = _of_numbers(file, roles, types, replace(options, numeric_target=numeric))
    if quick is not None:
        return quick
    return learn_all(file, target, options, numeric, seen, types)


def _of_numbers(
    file: TableFile, roles: Roles, types: dict[str, Any], options: TableOptions
) -> Encoder | None:
    """Return the encoder of a table whose first rows hold numbers alone: no need to read the rest.

    What turns out to be something else is refused when it is reached.
    """
    import pyarrow as pa

    plain = all(
        pa.types.is_integer(types[n]) or pa.types.is_floating(types[n]) for n in roles.features
    )
    learns = options.impute or options.drop_missing or options.category or options.text
    if not plain or learns or file.unnamed or not roles.features:
        return None
    if reading.is_date(types[str(roles.target)]):
        return None
    recipe = Recipe(file, roles.target, options, exact=False)
    if text := reading.is_text(types[str(roles.target)]):
        recipe.target.add(_first_texts(file, str(roles.target)))
        if options.numeric_target or not recipe.text_target():
            return None
    decimal = file.dialect.decimal
    learnt = [kinds.Number(name, decimal=decimal) for name in roles.features]
    tell_codes(file, learnt)
    return Encoder.of_columns(
        tuple(learnt),
        roles.target,
        text,
        weight=options.weight,
        id=options.id,
        left_out=tuple(roles.left_out),
        reading=recipe.reading(),
    )


def _first_texts(file: TableFile, name: str) -> Any:
    """Return the first rows of a column, as text."""
    import pyarrow as pa

    while True:
        try:
            found = next(file.batches({name: pa.string()}, [name]), None)
        except Retyped:
            continue
        if found is None:
            raise DataError("has no rows")
        return found[name]


def learn_all(
    file: TableFile,
    target: str | None,
    options: TableOptions,
    numeric: bool,
    seen: Seen,
    types: dict[str, Any],
) -> Encoder:
    """Return the encoder of a table after reading all of it; see `learn_pieces`."""
    import pyarrow as pa

    options = replace(options, numeric_target=numeric)
    roles = Roles(file, target, options)
    for name, type_ in types.items():
        if name in (*options.category, *options.text):
            types[name] = pa.string()
        elif pa.types.is_integer(type_) and (name != roles.target or numeric):
            types[name] = pa.float64()  # a number of the next piece may have a point
    retyped, gaps, notes = 0, set[str](), list(file.notes)
    while True:
        recipe = Recipe(file, target, options, exact=False, numeric=gaps)
        try:
            with located(file):
                for table in _gathered(file.batches(types)):
                    recipe.add(table)
                    seen(recipe.rows)
                return recipe.encoder()
        except Incomplete as found:
            gaps, file.notes[:] = found.columns, notes
        except Retyped:
            retyped += 1
            if retyped > _MOST_RETYPED:
                types = dict.fromkeys(types, pa.string())


def _gathered(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield several batches as one table: what is done for each text is done less often."""
    import pyarrow as pa

    while tables := list(islice(batches, _BATCHES_AT_A_TIME)):
        yield pa.concat_tables(tables)

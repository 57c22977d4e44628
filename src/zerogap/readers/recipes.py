"""From tables to features: learn an encoder from the training rows, and apply it.

Both work on some rows after others, so that the same code reads tables into memory, turns files of
any size into stores, and predicts them.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap.readers import cells, reading, tables
from zerogap.readers import columns as kinds
from zerogap.readers.columns import Column
from zerogap.readers.doubts import refuse_open_quotes
from zerogap.readers.encoder import Encoder
from zerogap.readers.files import DataError
from zerogap.readers.large import Retyped
from zerogap.readers.learning import LeftOut, Tally
from zerogap.readers.options import TableOptions
from zerogap.readers.reading import CellError
from zerogap.readers.roles import Roles, listed, tell_codes
from zerogap.readers.tables import TableFile


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a table: features, targets, weights and names, of which all but X may be None.

    `rows` counts those of the table up to here, `kept` are the numbers of those that are not left
    out of this part, None if all are here.
    """

    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None
    ids: Any
    rows: int
    kept: np.ndarray | None
    notes: tuple[str, ...]


class Incomplete(Exception):
    """Columns of numbers and dates hold what only there means that nothing is known, as a dash.

    Rows with it are to be left out: the recipe is learnt again, and knows these `columns`.
    """

    def __init__(self, columns: set[str]) -> None:
        self.columns = columns


class Recipe:
    """What is learnt of a table, some rows after others.

    `numeric` names columns of numbers and dates, in which more texts mean that nothing is known.
    """

    def __init__(
        self,
        file: TableFile,
        target: str | None,
        options: TableOptions,
        exact: bool,
        numeric: set[str] | None = None,
    ) -> None:
        self.file, self.options = file, options
        self.numeric = (numeric or set()) | {str(options.weight)}
        self.roles = Roles(file, target, options)
        decimal = file.dialect.decimal
        self.tallies = {n: Tally(n, options, decimal, exact) for n in self.roles.features}
        units = None if options.numeric_target else ()
        self.target = Tally(str(self.roles.target), options, decimal, exact, units)
        self.exact = exact
        self.gaps: Counter[str] = Counter()  # cells without a value, where rows are left out
        self.rows = self.dropped = 0
        self.kept: list[np.ndarray] = []  # rows, where some are left out
        self.counting = dict.fromkeys(file.unnamed & set(self.roles.features), True)

    def add(self, table: Any) -> None:
        """Learn from some rows."""
        names = [*self.roles.features, str(self.roles.target)]
        if self.options.drop_missing:
            own = Counter({name: table[name].null_count for name in names})
            self.gaps += own
            if self.exact:  # empty columns are left out all the same
                names = [name for name in names if own[name] < table.num_rows]
        if self.options.impute:  # what is missing there is filled in
            names = names[-1:]
        more = [name for name in (self.options.weight,) if name is not None]
        kept = _complete(table, [*names, *more], self.options, self.numeric)
        before, self.rows = self.rows, self.rows + table.num_rows
        if kept is not None:
            self.dropped += table.num_rows - len(kept)
            table = table.take(kept)
        if self.options.drop_missing:
            whole = np.arange(table.num_rows) if kept is None else kept
            self.kept.append(before + whole)
        for name in self.counting:
            self.counting[name] &= _counts(table[name], before)
        with self._rows():
            for name, tally in self.tallies.items():
                tally.add(table[name])
            self.target.add(table[self.roles.target])

    def _rows(self) -> _rows_as_in_the_file:
        """Let errors of cells tell the row before others were left out."""
        return _rows_as_in_the_file(np.concatenate(self.kept) if self.kept else None)

    def encoder(self) -> Encoder:
        """Return what was learnt; refuse what needs a word of the user first."""
        if self.rows == self.dropped:
            if not self.rows:
                raise DataError("has no rows")
            name, rows = self.gaps.most_common(1)[0] if self.gaps else (self.target.name, self.rows)
            raise DataError(
                f"has no row without missing values: column {name!r} has none in {rows:,} of "
                f"{self.rows:,} rows; --drop {shlex.quote(name)} leaves it out, --impute median "
                f"fills numbers in"
            )
        if self.options.drop_missing:
            self._learn_again_without_gaps()
        refuse_open_quotes(self.file, [self.target, *self.tallies.values()])
        learnt: list[Column] = []
        left_out, notes = list(self.roles.left_out), self.file.notes
        for name, tally in self.tallies.items():
            try:
                if self.counting.get(name):
                    raise LeftOut("has no name, and numbers the rows")
                with self._rows():
                    learnt.append(tally.column(notes))
            except LeftOut as why:
                left_out.append((name, str(why)))
                notes.append(f"column {name!r} {why}; it is left out")
        if not learnt and left_out:
            name, reason = left_out[0]
            reason = f"is left out by {reason}" if reason == "--drop" else reason
            raise DataError(f"has no column besides the target: column {name!r} {reason}")
        self._refuse_missing(learnt)
        tell_codes(self.file, learnt)
        tallies = [self.tallies[column.name] for column in learnt]
        tallies += [self.target] * self.options.numeric_target
        notes += [f"column {t.name!r} {t.doubt}" for t in tallies if t.doubt]
        if self.dropped:
            notes.append(f"left out {self.dropped:,} of {self.rows:,} rows with missing values")
        return Encoder.of_columns(
            tuple(learnt),
            self.roles.target,
            self.text_target(),
            weight=self.options.weight,
            id=self.options.id,
            drop_missing=self.options.drop_missing,
            left_out=tuple(left_out),
            reading=self.reading(),
        )

    def _learn_again_without_gaps(self) -> None:
        """Raise Incomplete if columns of numbers and dates have gaps yet."""
        tallies = [self.target] if self.options.impute else [self.target, *self.tallies.values()]
        found = {tally.name for tally in tallies if tally.has_gaps()}
        if not found <= self.numeric:
            raise Incomplete(found | self.numeric)

    def reading(self) -> dict[str, Any]:
        """Return how the file is written, for new files like it."""
        known = {"decimal": self.file.dialect.decimal} if self.file.is_text else {}
        asked = self.options.of_file() | known | {"target_form": self._target_form()}
        return {name: value for name, value in asked.items() if value not in (None, [])}

    def text_target(self) -> bool:
        """Tell whether the target is text, and not numbers in the way that people write them."""
        tally = self.target
        if reading.is_date(tally.type):
            raise DataError(f"column {tally.name!r}, the target, holds dates: choose another one")
        if self.options.numeric_target and self._decimal_of_target() is None:
            with self._rows():
                tally.refuse_stray_target()
        return reading.is_text(tally.type) and self._decimal_of_target() is None

    def _decimal_of_target(self) -> str | None:
        """Return the decimal sign with which the texts of the target are numbers, if they are."""
        found = self.target.decimals.items()
        return next((sign for sign, t in found if t.bad == 0 and t.count > 0), None)

    def _target_form(self) -> list[str] | None:
        """Return decimal sign and unit of the target, where it is not written like the file."""
        if self.target.type is None or not reading.is_text(self.target.type):
            return None
        form = [self._decimal_of_target() or ".", self.target.unit]
        usual = [self.file.dialect.decimal, ""]
        return None if self._decimal_of_target() is None or form == usual else form

    def _refuse_missing(self, learnt: list[Column]) -> None:
        pairs = [(c, self.tallies[c.name]) for c in learnt]
        short = [(c.name, t) for c, t in pairs if t.refuse_missing(c)]
        if not short:
            return
        name, tally = short[0]
        place = "line" if self.file.is_text else "row"
        first = tally.first_missing
        first = int(np.concatenate(self.kept)[first]) if self.kept else first
        number = self.file.line(first) if self.file.is_text else self.file.row(first)
        rest = [other for other, _ in short[1:]]
        others = f"; so do {', '.join(map(repr, rest[:5]))}" if rest else ""
        others += f" and {len(rest) - 5} more" if len(rest) > 5 else ""
        raise DataError(
            f"column {name!r} has no value in {tally.missing:,} of {tally.rows:,} rows, first in "
            f"{place} {number}{others}: --impute median fills numbers in, --drop-missing leaves "
            f"the rows out, --drop {shlex.quote(name)} the column"
        )


def whole_part(file: TableFile, encoder: Encoder, table: Any, labelled: bool) -> Part:
    """Return the features of a table that is in memory."""
    with located(file):
        return _encoded(encoder, table, 0, labelled)


def read_pieces(
    file: TableFile, encoder: Encoder, labelled: bool, skip: int = 0, task: str | None = None
) -> Iterator[Part]:
    """Yield the features of some rows after others, from row number `skip` on.

    Integers in the target column stay such unless the task is regression; other numbers are
    refused if it is classification.  Rows in which something is missing are left out where the
    file's options say so, and of labelled ones where the encoder does.
    """
    types = new_types(file, encoder)
    first = file.first_types() if file.is_text else {}
    import pyarrow as pa

    if not encoder.text_target and encoder.target in first:
        own = first[encoder.target]
        types[encoder.target] = (
            own if task != "regression" or not pa.types.is_integer(own) else pa.float64()
        )
    for name, column in ((c.name, c) for c in encoder.columns):
        if isinstance(column, kinds.Number) and name in first and name not in types:
            text = reading.is_text(first[name])
            types[name] = pa.string() if text else pa.float64()
    wide = encoder.n_features if encoder.is_dense else max(8, len(encoder.columns))
    step = max(1, tables.PIECE // (2 * wide))  # a quarter takes 1.6 times as long for text
    rows = done = 0
    while True:
        rows = 0
        try:
            for table in file.batches(types):
                begin, rows = rows, rows + table.num_rows
                for before in range(max(begin, skip, done), rows, step):
                    part = table.slice(before - begin, step)
                    with located(file):
                        drops = file.options.drop_missing
                        yield _encoded(encoder, part, before, labelled, task, drops)
                    done = before + part.num_rows
            break
        except Retyped:
            continue
    if not rows:
        raise DataError("has no rows")


def new_types(file: TableFile, encoder: Encoder) -> dict[str, Any]:
    """Return types of the columns of new text that must not be guessed."""
    import pyarrow as pa

    texts = [c.name for c in encoder.columns if type(c) is not kinds.Number and not _is_iso(c)]
    texts += [encoder.target] if encoder.text_target and encoder.target else []
    texts += [encoder.id] if encoder.id else []
    return {name: pa.string() for name in texts if name in file.names}


def _is_iso(column: Column) -> bool:
    """Tell whether a column holds dates that pyarrow reads by itself."""
    return isinstance(column, kinds.Date) and column.order == "ymd"


def _encoded(
    encoder: Encoder,
    table: Any,
    before: int,
    labelled: bool,
    task: str | None = None,
    drops: bool = False,
) -> Part:
    """Return the features of some rows; rows with missing values are left out where asked."""
    names, rows = table.column_names, before + table.num_rows
    target = encoder.target if encoder.target in names else None
    kept = None
    if drops or (labelled and encoder.drop_missing):
        options = TableOptions(drop_missing=True, missing=encoder.missing)
        there = set(names)
        used = encoder.used if labelled else [c.name for c in encoder.columns]
        if labelled and encoder.reading.get("impute"):
            used = [str(name) for name in (encoder.target, encoder.weight)]
        numeric = {c.name for c in encoder.columns if isinstance(c, kinds.Number | kinds.Date)}
        numeric |= {str(encoder.weight), "" if encoder.text_target else str(encoder.target)}
        kept = _complete(table, [n for n in used if n in there], options, numeric)
    table = table if kept is None else table.take(kept)
    with _rows_as_in_the_file(None if kept is None else before + kept, before):
        X, notes = encoder.transform(table, before)
        y = None if target is None else _targets(encoder, table[target], before, labelled)
        if labelled and task == "classification" and y is not None and y.dtype.kind == "f":
            _refuse_fractions(str(target), y, before)
        weight = None
        if labelled and encoder.weight is not None:
            if encoder.weight not in names:
                raise DataError(f"has no column {encoder.weight!r} of weights; {listed(names)}")
            weight = _weights(encoder, table[encoder.weight], before)
    ids = table[encoder.id] if encoder.id in names else None
    return Part(X, y, weight, ids, rows, None if kept is None else before + kept, notes)


def _targets(encoder: Encoder, column: Any, before: int, labelled: bool) -> np.ndarray | None:
    """Return a column as strings, whole numbers, booleans or finite float64."""
    import pyarrow as pa

    name = str(encoder.target)
    decimal, unit = encoder.reading.get("target_form", [encoder.reading.get("decimal", "."), ""])
    if not (labelled or encoder.text_target) and reading.is_text(column.type):
        found = cells.numbers(column, decimal, encoder.missing, unit)  # or something else: None
        return None if np.isnan(found.values).any() else found.values
    if encoder.text_target:
        if encoder.reading:
            texts, places = reading.category_texts(column, encoder.missing)
        else:  # earlier versions did not trim
            texts, places = reading.plain_texts(column), np.arange(len(column))
        absent = _absent(texts)[places]
        if absent.any():
            if not labelled:
                return None
            raise CellError(
                before + int(np.argmax(absent)),
                name,
                "no target; --drop-missing leaves the row out",
            )
        return np.array(texts.to_pylist())[places]
    values = reading.read_numbers(name, column, before, decimal, encoder.missing, unit)
    if (absent := np.isnan(values)).any():
        if not labelled:
            return None
        row = before + int(np.argmax(absent))
        raise CellError(row, name, "no value, in the target; --drop-missing leaves the row out")
    whole = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    return column.to_numpy(**cells.copied(column)) if whole else values


def _refuse_fractions(name: str, y: np.ndarray, before: int) -> None:
    """Refuse numbers that cannot be classes."""
    if not (whole := y == np.floor(y)).all():
        row = int(np.argmin(whole))
        what = f"{y[row]:g} is no class; --task regression predicts numbers"
        raise CellError(before + row, name, what)


def _absent(texts: Any) -> np.ndarray:
    import pyarrow.compute as pc

    absent = pc.equal(texts, "").fill_null(True)
    return absent.to_numpy(**cells.copied(absent))


def _weights(encoder: Encoder, column: Any, before: int) -> np.ndarray:
    name, decimal = str(encoder.weight), encoder.reading.get("decimal", ".")
    values = reading.read_numbers(name, column, before, decimal, encoder.missing)
    bad = ~(values >= 0)
    if bad.any():
        row = int(np.argmax(bad))
        what = "no weight" if np.isnan(values[row]) else f"the weight {values[row]:g}"
        hint = "; --drop-missing leaves the row out" if np.isnan(values[row]) else ""
        raise CellError(before + row, name, f"{what}: weights are 0 or more{hint}")
    return values


def _complete(
    table: Any, names: list[str], options: TableOptions, numeric: set[str]
) -> np.ndarray | None:
    """Return the rows in which nothing is missing; None for all, where nobody asked.

    Columns of numbers and dates have more words for what is missing.
    """
    if not options.drop_missing:
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = np.ones(table.num_rows, dtype=bool)
    absent = pa.array([*cells.MISSING_TEXTS, *options.missing], pa.string())
    numbers = pa.array(reading.as_numbers(options.missing), pa.float64())
    for name in names:
        column = table[name]
        gone = column.is_null(nan_is_null=True)
        if reading.is_text(column.type):
            texts = pc.utf8_trim_whitespace(reading.plain_texts(column))
            gone = pc.or_(gone, pc.is_in(texts, absent))
            if name in numeric:
                chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
                more = [cells.gone(chunk, options.missing) for chunk in chunks]
                gone = pc.or_(gone, pa.array(np.concatenate(more)))
        elif options.missing and reading.is_number(column.type):
            gone = pc.or_(gone, pc.is_in(column.cast(pa.float64(), safe=False), numbers))
        whole &= ~gone.to_numpy(**cells.copied(gone))
    return None if whole.all() else np.flatnonzero(whole)


def _counts(column: Any, before: int) -> bool:
    """Tell whether numbers go up by one, from 0 or 1."""
    import pyarrow as pa

    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return False
    values = column.to_numpy(**cells.copied(column))
    first = values[0] - before if len(values) else 0
    return first in (0, 1) and bool(np.array_equal(values, first + before + np.arange(len(values))))


class located:
    """Let errors of cells tell the line of the file."""

    def __init__(self, file: TableFile) -> None:
        self.file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, CellError):
            raise self.file.locate(error) from None


class _rows_as_in_the_file:
    """Let errors of cells tell the row before others were left out.

    `kept` are the rows that were not, of which the first one is called `before` in errors.
    """

    def __init__(self, kept: np.ndarray | None, before: int = 0) -> None:
        self.kept, self.before = kept, before

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, CellError) and self.kept is not None:
            row = int(self.kept[error.row - self.before])
            raise CellError(row, error.column, error.what) from None

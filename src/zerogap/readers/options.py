"""How a table is to be read: what its user says of it, in one place."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields
from typing import Any

from zerogap.readers.dates import DATE_ORDERS
from zerogap.readers.files import DataError

SEPARATORS = (",", ";", "\t", "|")
TEXT_METHODS = ("tf-idf", "hashed")
MOST_COLUMNS = 500_000  # of a table: pyarrow and what is learnt take 16 kB and .1 ms for each
MOST_WORDS = 1 << 24  # features of a text: a weight and a name each
IMPUTATIONS = ("median", "mean", "most-frequent", "constant")
_NAMED = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "\\t": "\t", "blanks": " "}
_FILE = (
    *("sep", "decimal", "encoding", "header", "names", "skip_lines", "skip_bad_lines", "sheet"),
    *("missing", "date_order", "quote", "comment", "skip_below", "impute"),
)


@dataclass(frozen=True)
class TableOptions:
    """What is said of a table; whatever is not said is guessed, and the guess is reported.

    Parameters
    ----------
    sep : str, optional
        What separates the cells of a line: one character, or tab, comma, semicolon, pipe, blanks; a
        blank stands for any number of blanks and tabs.
    decimal : {".", ","}, optional
        The decimal sign.
    encoding : str, optional
        Of the text, as latin-1.
    header : bool, optional
        Whether the first line names the columns.
    names : tuple of str
        Names of the columns of a file that has none.
    skip_lines : int
        Lines to pass over before the table begins.
    skip_below : int
        Lines, or rows of a sheet, to pass over below the names: of units, or of questions.
    skip_bad_lines : bool
        Whether to leave out lines with more or fewer cells than the header.
    quote : str, optional
        What cells are quoted by; by default the double quote, or the single one where it is around
        all names of columns.  None where it is "none": quotes are letters then.
    comment : str, optional
        Lines that begin with it are passed over.
    sheet : str, optional
        Sheet of a spreadsheet; by default the first.
    missing : tuple of str
        Further texts that mean that there is no value.
    drop, only, category, text : tuples of str
        Columns to leave out; to use alone; to take as categories; to take apart into words.
    id, weight : str, optional
        Column that names the rows, and is no feature; column of their weights.
    dates : bool
        Whether dates become features; by default their columns are left out.
    date_order : {"dmy", "mdy", "ymd"}, optional
        Order of day, month and year.
    impute : str, optional
        What takes the place of missing numbers: median, mean, most-frequent, constant (0) or
        constant=NUMBER.
    drop_missing : bool
        Whether to leave out rows in which something is missing; with `impute`, those without target
        or weight.
    min_count : int
        Categories of fewer rows than this are pooled.
    max_words : int
        Features of a column of text at most: its most frequent words, or the places of its hashes.
    text_method : {"tf-idf", "hashed"}
        Whether words are learnt and weighed by how rare they are, or hashed to `max_words` places.
    numeric_target : bool
        Whether the target is to be numbers, which a unit may follow, as in 12 kg.

    Examples
    --------
    >>> TableOptions(impute="constant=-1").filling()
    ('constant', -1.0)
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    names: tuple[str, ...] = ()
    skip_lines: int = 0
    skip_below: int = 0
    skip_bad_lines: bool = False
    quote: str | None = None
    comment: str | None = None
    sheet: str | None = None
    missing: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    id: str | None = None
    weight: str | None = None
    dates: bool = False
    date_order: str | None = None
    impute: str | None = None
    drop_missing: bool = False
    min_count: int = 1
    max_words: int = 10_000
    text_method: str = "tf-idf"
    numeric_target: bool = False

    def __post_init__(self) -> None:
        sep = None if self.sep is None else _NAMED.get(self.sep.lower(), self.sep)
        object.__setattr__(self, "sep", sep)
        _require(sep is None or (len(sep) == 1 and sep.isascii()), "--sep", self.sep, "one sign")
        if self.quote is not None and self.quote.lower() == "none":
            object.__setattr__(self, "quote", "")
        _require(
            self.quote is None or len(self.quote) < 2, "--quote", self.quote, "one sign, or none"
        )
        _require(self.comment != "", "--comment", self.comment, "a sign")
        _require(self.decimal in (None, ".", ","), "--decimal", self.decimal, ". or ,")
        _require(
            sep is None or sep != self.decimal, "--decimal", self.decimal, "another sign than --sep"
        )
        orders = (None, *DATE_ORDERS)
        _require(self.date_order in orders, "--date-order", self.date_order, "dmy, mdy or ymd")
        _require(self.min_count >= 1, "--min-count", self.min_count, "1 or more")
        methods = " or ".join(TEXT_METHODS)
        _require(self.text_method in TEXT_METHODS, "--text-method", self.text_method, methods)
        most = f"from 1 to {MOST_WORDS:,}"
        _require(1 <= self.max_words <= MOST_WORDS, "--max-words", self.max_words, most)
        if self.encoding is not None:
            try:
                with contextlib.suppress(UnicodeError):
                    b"a".decode(self.encoding)  # those from bytes to bytes, as base64, are none
            except LookupError:
                _require(False, "--encoding", self.encoding, "one that Python knows, as latin-1")
        if any(text.casefold() == "inf" for text in self.missing):  # in every spelling
            spelt = [w for v in ("inf", "infinity") for w in (v, v.capitalize(), v.upper())]
            signed = [sign + word for sign in ("", "+", "-") for word in spelt]
            object.__setattr__(self, "missing", tuple(dict.fromkeys((*self.missing, *signed))))
        self.filling()

    def filling(self) -> tuple[str, float] | None:
        """Return how missing numbers are filled in, and the constant; None if they are not.

        Returns
        -------
        tuple of str and float, or None
            A name such as median, and the constant.
        """
        if self.impute is None:
            return None
        name, _, value = self.impute.partition("=")
        try:
            _require(name in IMPUTATIONS, "", 0, "")
            return name, float(value) if value else 0.0
        except ValueError:
            wanted = f"{', '.join(IMPUTATIONS)} or constant=NUMBER"
            raise ValueError(f"--impute must be {wanted}, got {self.impute!r}") from None

    def of_file(self) -> dict[str, Any]:
        """Return, as JSON, what new files like this one are to be read with.

        Returns
        -------
        dict
            Options by name.
        """
        kept = {name: getattr(self, name) for name in _FILE}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in kept.items()}

    def after(self, stored: dict[str, Any]) -> TableOptions:
        """Return these options, and where nothing was said those of the training file.

        Parameters
        ----------
        stored : dict
            From `of_file`.

        Returns
        -------
        TableOptions
            What new files are read with.
        """
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = TableOptions()
        for name, value in stored.items():
            if name in own and own[name] == getattr(plain, name):
                own[name] = tuple(value) if isinstance(value, list) else value
        return TableOptions(**own)

    @classmethod
    def check_stored(cls, stored: Any) -> None:
        """Refuse what `of_file` cannot have written."""
        if not isinstance(stored, dict) or not set(stored) <= {*_FILE, "target_form"}:
            raise DataError("is no encoder: reading is not what it should be")
        stored = dict(stored)
        form = stored.pop("target_form", [".", ""])
        pair = isinstance(form, list) and [type(v) for v in form] == [str, str]
        if not pair or form[0] not in (".", ","):
            raise DataError("is no encoder: reading has a bad target_form")
        lists = {"names", "missing"}
        for name, value in stored.items():
            texts = isinstance(value, list) and all(type(v) is str for v in value)
            plain = value is None or type(value) in (str, bool, int)
            if not (texts if name in lists else plain):
                raise DataError(f"is no encoder: reading has a bad {name}")
        try:
            cls().after(stored)
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"is no encoder: reading: {error}") from None


def _require(valid: bool, option: str, value: Any, wanted: str) -> None:
    if not valid:
        raise ValueError(f"{option} must be {wanted}, got {value!r}")

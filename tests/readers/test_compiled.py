"""Large text is cut into cells by compiled code: the same as pyarrow reads, or nothing."""

import numpy as np
import pyarrow as pa
import pytest

from cli import test_nasty, test_tables_as_sent
from cli.test_nasty import write
from zerogap.readers import TableOptions, compiled, large, lines, read
from zerogap.readers.conversion import _TableFile
from zerogap.readers.files import open_source
from zerogap.readers.large import Retyped
from zerogap.readers.tables import TableFile

RNG = np.random.default_rng(4)
WORDS = ["a", "", "NA", 'say ""so""', "größe", "x,y", "two\nlines", "  ", "null", "?"]


@pytest.fixture
def compiles(monkeypatch):
    """Let compiled code read files of any size, in pieces of few lines."""
    monkeypatch.setattr(large, "LEAST", 0)


def rows_of(path, monkeypatch, *, least):
    """Return all rows, as batches have them, and whether compiled code has cut them."""
    monkeypatch.setattr(large, "LEAST", least)
    file = TableFile(lambda: open_source(path, 1 << 30), "csv", TableOptions())
    types = file.first_types()
    while True:
        try:
            return pa.concat_tables(file.batches(types)), file.is_plain and least == 0
        except Retyped:
            continue


def plain(column):
    """Return a column as a list, with its type."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return kind, column.cast(kind).to_pylist()


@pytest.mark.parametrize("name", test_nasty.TRAINS | test_tables_as_sent.TRAINS)
def test_nasty_files_are_what_pyarrow_reads(name, tmp_path, monkeypatch):
    content, *_ = (test_nasty.TRAINS | test_tables_as_sent.TRAINS)[name]
    path = write(tmp_path, name, content)
    if path.suffix not in (".csv", ".txt", ".data", ".tsv") or name in ("named.data", "tabs.txt"):
        pytest.skip("no text with a header")
    try:
        expected, _ = rows_of(path, monkeypatch, least=1 << 40)
    except Exception as error:  # options are missing here
        with pytest.raises(type(error)):
            rows_of(path, monkeypatch, least=0)
        return
    found, _ = rows_of(path, monkeypatch, least=0)
    assert found.column_names == expected.column_names
    for ours, theirs in zip(found.columns, expected.columns, strict=True):
        assert plain(ours) == plain(theirs)


def messy(rows, rng):
    """Return lines of numbers in all forms, texts, dates, gaps and truth values."""
    found = ["i,f,g,t,d,w,q"]
    for _ in range(rows):
        f = rng.standard_normal() * 10.0 ** rng.integers(-30, 30)
        cells = [
            str(rng.integers(-(10**14), 10**14)) if rng.random() < 0.9 else "",
            [repr(float(f)), f"{f:.3e}", f"{f:.25f}"[:19], "", "NA"][rng.integers(5)],
            f"{rng.standard_normal():.4f}",
            f'"{rng.choice(WORDS)}"',
            str(np.datetime64("2020-01-01") + rng.integers(2000)),
            rng.choice(["true", "false", ""]),
            f'"{rng.integers(99)}"',
        ]
        found.append(",".join(cells))
    return "\n".join(found)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n"])
def test_cells_are_bit_by_bit_those_of_pyarrow(ends, last, tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    text = messy(20_000, np.random.default_rng(7)) + last
    path.write_bytes(
        text.replace("two\n", "two\0").replace("\n", ends).replace("\0", "\n").encode()
    )
    expected, _ = rows_of(path, monkeypatch, least=1 << 40)
    found, whole = rows_of(path, monkeypatch, least=0)
    assert whole
    assert found.num_rows == expected.num_rows == 20_000
    for name in expected.column_names:
        assert plain(found[name]) == plain(expected[name])
    for name in ("f", "g"):
        bits = (t[name].to_numpy().view(np.uint64) for t in (found, expected))
        assert np.array_equal(*bits)


@pytest.mark.parametrize(
    "late", ["1,2", "1,2,3,4", 'a"b,oops,yes', "1,1e999,yes", "1,+5,yes", "1,0x1F,yes", '1,5,"a']
)
def test_what_does_not_fit_is_left_to_pyarrow(late, tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("x,z,y\n" + "1,2.5,no\n" * 150_000 + late + "\n")
    outcomes = []
    for least in (1 << 40, 0):
        monkeypatch.setattr(large, "LEAST", least)
        try:
            data = read(path, target="y")
            outcomes.append((data.X.tolist(), data.y.tolist()))
        except ValueError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("cells", [[" 5", "6 "], ["5.", ".5"], ["-0", "-0.0"], ["1e5", "1E-5"]])
def test_forms_of_numbers(cells, tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{cell},1\n" for cell in ["0.25", *cells]))
    expected, _ = rows_of(path, monkeypatch, least=1 << 40)
    found, _ = rows_of(path, monkeypatch, least=0)
    bits = (t["x"].to_numpy().view(np.uint64).tolist() for t in (found, expected))
    assert next(bits) == next(bits)


def test_text_targets_are_known_without_a_look_at_all_rows(compiles, tmp_path, monkeypatch):
    """A table of numbers whose target is text is read once, into memory and for a store."""
    path = tmp_path / "a.csv"
    n = 20_000
    X = np.round(RNG.standard_normal((n, 3)), 3)
    y = np.where(X[:, 0] > 0, "yes", "no")
    path.write_text(
        "a,b,c,label\n" + "".join(f"{a},{b},{c},{t}\n" for (a, b, c), t in zip(X, y, strict=True))
    )
    opened = []
    monkeypatch.setattr(
        compiled.Cutter, "tables", _counted(compiled.Cutter.tables, lambda: opened.append(1))
    )
    data = read(path)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.y, y)
    assert len(opened) == 2  # the target's first rows, and all
    source = _TableFile(path, "csv", None, False, lambda progress: None, TableOptions())
    parts = list(source.pieces(None))
    assert np.array_equal(np.vstack([part.X for part in parts]), X)
    assert np.array_equal(np.concatenate([part.y for part in parts]), y)


def _counted(method, told):
    def counted(*given):
        told()
        return method(*given)

    return counted


def test_targets_that_are_money_need_all_rows(compiles, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,label\n" + "".join(f"{k},${k}.50\n" for k in range(60_000)))
    assert read(path).y.tolist() == [k + 0.5 for k in range(60_000)]
    path.write_text(
        "x,label\n" + "".join(f"{k},${k}.50\n" for k in range(60_000)) + "1,none at all\n"
    )
    assert read(path).y.dtype.kind == "U"


def test_numbers_are_rounded_as_python_rounds_them(tmp_path, monkeypatch):
    rng = np.random.default_rng(11)
    texts = [
        repr(float(x)) for x in rng.integers(0, 1 << 63, 3000).view(np.float64) if np.isfinite(x)
    ]
    texts += [f"{rng.integers(10**15)}.{'0' * k}{rng.integers(10**6)}" for k in range(12)]
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{text},1\n" for text in texts))
    found, _ = rows_of(path, monkeypatch, least=0)
    assert found["x"].to_pylist() == [float(text) for text in texts]


def test_codes_of_many_texts_are_told_apart():
    """All texts of a piece are different, and of all lengths."""
    texts = [f"{'w' * (k % 40)}{k}".encode() for k in range(5000)]
    content = b"".join(b"%s\n" % text for text in texts * 2)
    cutter = compiled.Cutter(_Plain, {"t": pa.string()}, ())
    table, place = cutter.cut(content)
    assert place == len(content)
    assert table["t"].cast(pa.string()).to_pylist() == [t.decode() for t in texts * 2]
    assert len(table["t"].chunk(0).dictionary) == len(texts)
    assert lines.count_ends(np.frombuffer(content, np.uint8)) == 2 * len(texts)


class _Plain:
    sep, quote, decimal, encoding = ",", '"', ".", "utf-8"
    skip_lines, header, below = 0, False, 0

"""svmlight text: what is read, and what is refused, with line and column."""

import io
import math
import random
import re
import struct

import fuzz
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from zerogap.readers import DataError, read
from zerogap.readers.svmlight import read_svmlight


class Pieces:
    """A stream that gives its bytes in pieces of at most `size`."""

    def __init__(self, text, size=1 << 20, max_bytes=1 << 30):
        self.file, self.size, self.max_bytes = io.BytesIO(text), size, max_bytes

    def read(self, size=1 << 20):
        return self.file.read(min(size, self.size))


def parse(text, n_features=None, zero_based=False, labelled=True, **stream):
    return read_svmlight(Pieces(text, **stream), n_features, zero_based, labelled)


def values(tokens):
    """Return the numbers that these tokens are read as."""
    return parse("".join(f"1 1:{token}\n" for token in tokens).encode())[0].data


def assert_same_bits(got, expected):
    assert np.array_equal(np.asarray(got).view(np.uint64), np.asarray(expected).view(np.uint64))


def make_rows(seed=0, n=200, d=50):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density=0.2, format="csr", rng=rng)
    X.data = rng.standard_normal(X.nnz) * 10.0 ** rng.integers(-20, 20, X.nnz)
    return X, rng.choice([-1.0, 1.0, 2.5], n)


@pytest.mark.parametrize("zero_based", [False, True])
def test_reads_what_scikit_learn_writes_and_reads(tmp_path, zero_based):
    X, y = make_rows()
    path = tmp_path / "rows"
    dump_svmlight_file(
        X, y, str(path), zero_based=zero_based, comment="two\nlines", query_id=np.arange(200) // 9
    )
    data = read(path, zero_based=zero_based, n_features=50)
    expected, targets = load_svmlight_file(str(path), n_features=50, zero_based=zero_based)
    assert data.X.shape == (200, 50)
    assert data.X.nnz == X.nnz > 1000
    assert_same_bits(data.X.data, expected.data)
    assert np.array_equal(data.X.indices, expected.indices)
    assert np.array_equal(data.X.indptr, expected.indptr)
    assert np.array_equal(data.y, targets)
    assert np.array_equal(data.y, y)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_rows_do_not_depend_on_where_the_pieces_end(size):
    X, y = make_rows(n=40)
    file = io.BytesIO()
    dump_svmlight_file(X, y, file, zero_based=False)
    whole, targets = parse(file.getvalue())
    cut, cut_targets = parse(file.getvalue(), size=size)
    assert (whole != cut).nnz == 0
    assert whole.shape == cut.shape
    assert np.array_equal(targets, cut_targets)


def test_real_data(data_folder):
    data = read(data_folder / "a9a/a9a.gz", n_features=123)
    X, y = load_svmlight_file(str(data_folder / "a9a/a9a.gz"), n_features=123)
    assert (data.X != X).nnz == 0
    assert np.array_equal(data.y, y)
    data = read(data_folder / "ijcnn1/ijcnn1.trn.bz2")
    X, y = load_svmlight_file(str(data_folder / "ijcnn1/ijcnn1.trn.bz2"))
    assert_same_bits(data.X.data, X.data)
    assert np.array_equal(data.X.indices, X.indices)


# Numbers

HARD = [
    "0", "-0", "+0.0", "0e999999999999999999", "1.", ".5", "-.5e-3", "+1E+2", "007.250",
    "9007199254740993", "9007199254740993.0", "9007199254740992.5", "9007199254740991.5",
    "1e22", "1e23", "8.5e22", "123456789012345678", "1234567890123456789", "12345678901234567890",
    "18446744073709551615", "18446744073709551616", "1.7976931348623157e308", "1e308", "1e-308",
    "2.2250738585072014e-308", "2.2250738585072011e-308", "5e-324", "2e-324", "1e-400",
    "1e-999999999999999999", "4.9406564584124654e-324", "6929495644600919.5",
    "3.7455744005952583e15", "10000000000000000000000e-22", "0." + "0" * 400 + "1e401",
    "1" + "0" * 400 + "e-400", "0." + "3" * 1000, "1e00000000000000000000001",
    "2.22507385850720113605740979670913197593481954635164564e-308",
    "179769313486231580793728971405301e276",
    "0.500000000000000166533453693773481063544750213623046875",
]  # fmt: skip


def test_hard_numbers_are_rounded_as_by_python():
    assert_same_bits(values(HARD), [float(token) for token in HARD])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_doubles_survive_the_way_through_text(numbers):
    assert_same_bits(values(map(repr, numbers)), numbers)
    assert_same_bits(values(f"{v:.18e}" for v in numbers), numbers)


def test_random_decimals_are_rounded_as_by_python():
    rng = random.Random(0)
    tokens = [f"{rng.getrandbits(rng.randrange(1, 70))}e{rng.randrange(-345, 288)}"
              for _ in range(20_000)]  # fmt: skip
    tokens += [f"{rng.random():.{rng.randrange(1, 25)}f}" for _ in range(20_000)]
    for _ in range(20_000):  # exactly between two doubles, and a hair beside
        between, k = (1 << 53 | rng.getrandbits(53)) << 1 | 1, rng.randrange(4)
        tokens.append(f"{between * 5**k + rng.choice([0, 0, -1, 1])}e-{k}")
    for _ in range(20_000):
        (number,) = struct.unpack("d", struct.pack("Q", rng.getrandbits(63)))
        if np.isfinite(number):
            tokens.append(f"{number:.{rng.randrange(15, 22)}g}")
    assert len(tokens) > 79_000
    assert_same_bits(values(tokens), [float(token) for token in tokens])


# Shapes and labels


def test_labels_and_numbers_of_features():
    X, y = parse(b"+1 2:1\n-2.5 1:1 3:2\n1e3\n")
    assert y.tolist() == [1.0, -2.5, 1000.0]
    assert X.toarray().tolist() == [[0, 1, 0], [1, 0, 2], [0, 0, 0]]
    assert X.has_canonical_format
    assert parse(b"1 2:1\n", n_features=7)[0].shape == (1, 7)
    assert parse(b"1\n-1\n", n_features=7)[0].shape == (2, 7)
    assert parse(b"1 0:3 1:4\n", zero_based=True)[0].toarray().tolist() == [[3, 4]]


def test_labels_may_be_absent():
    X, y = parse(b"# no labels\n1:1 2:2\n3:1\n", labelled=False)
    assert y is None
    assert X.toarray().tolist() == [[1, 2, 0], [0, 0, 1]]
    X, y = parse(b"5 1:1 2:2\n", labelled=False)
    assert y.tolist() == [5.0]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b"1 1:2\n-1 2:3", 2),  # no newline at the end
        (b"1 1:2\r\n-1 2:3\r\n", 2),
        (b"\xef\xbb\xbf1 1:2\n", 1),  # byte order mark
        (b"\n\n 1\t1:2 \t 2:3 \n\t\n-1\n", 2),
        (b"# head\n1 1:2 # tail 3:4\n#\n1 1:2#x\n", 2),
        (b"1 qid:7 1:2\n", 1),
        (b"1 1:2 # \xff\xfe\x00 invalid UTF-8\n", 1),
        (b"1 1:2\n# the end", 1),
    ],
)
def test_accepted(text, rows):
    X, y = parse(text)
    assert X.shape[0] == len(y) == rows
    assert X[0, 0] == 2.0


# Refusals: what, line, column

REFUSED = [
    # bad tokens
    (b"abc 1:2\n", 1, 1, "label, found 'abc'"),
    (b"1 1:2\n1 1:2 x\n", 2, 7, "index:value with a whole index, found 'x'"),
    (b"1 1 2:3\n", 1, 3, "found '1'"),
    (b"1 1:\n", 1, 5, "found ''"),
    (b"1 :2\n", 1, 3, "found ':2'"),
    (b"1 1:2x 2:3\n", 1, 5, "found '2x'"),
    (b"1 1:2 2 :3\n", 1, 7, "found '2'"),
    (b"1 1: 2\n", 1, 5, "found ''"),
    (b"1 1:2:3\n", 1, 5, "found '2:3'"),
    (b"1 1.0:2\n", 1, 3, "found '1.0:2'"),
    (b"1,2 1:2\n", 1, 1, "several labels, '1,2'"),
    (b"1, 1:2\n", 1, 1, "several labels"),
    (b"1 1:2 qid:3\n", 1, 7, "found 'qid:3'"),
    (b"1 qid:x 1:2\n", 1, 3, "found 'qid:x'"),
    (b"1:2\n", 1, 1, "expected a label before '1:2'"),
    (b"1 1:2\n\n2:2\n", 3, 1, "expected a label"),
    # indices
    (b"1 0:2\n", 1, 3, "index 0 in '0:2'"),
    (b"1 -3:2\n", 1, 3, "whole index, found '-3:2'"),
    (b"1 2:2 1:2\n", 1, 7, "'1:2' is not larger"),
    (b"1 2:2 2:2\n", 1, 7, "'2:2' is not larger"),
    (b"1 2147483648:2\n", 1, 3, "beyond the 2147483647 features"),
    (b"1 99999999999999999999999999999:2\n", 1, 3, "beyond the 2147483647 features"),
    (b"1 2147483647:2\n", 1, 3, "index 2147483647 is too large for 1 entries"),
    (b"1 1:1\n1 1:1 2000000:2\n1 5:1\n", 2, 7, "index 2000000 is too large for 4 entries"),
    # numbers
    *((b"1 1:%s\n" % bad, 1, 5, "expected a finite decimal number")
      for bad in (b"nan", b"inf", b"-inf", b"Infinity", b"0x10", b"1_0", b"1e", b"1e+", b"--1",
                  b"+-1", b".", b"e5", b"1.2.3", b"1d5", b"\xd9\xa1", b"1\0", b"1,5", b"1e5.0")),
    (b"1 1:1e999\n", 1, 5, "'1e999' is too large"),
    (b"1 1:-1e309\n", 1, 5, "'-1e309' is too large"),
    (b"1 1:1\n1e400 1:1\n", 2, 1, "'1e400' is too large"),
    (b"1 1:1\n1 1:1\nnan 1:1\n", 3, 1, "label, found 'nan'"),
    # bytes
    (b"\0\n", 1, 1, r"found '\x00'"),
    (b"1 1:2\0\n", 1, 5, r"found '2\x00'"),
    (b"1 1:2 \xff\n", 1, 7, r"found '\xff'"),
    (b"1 1:2\r-1 1:2\r", 1, 5, r"found '2\r-1'"),
    (b"1 1:2\x0b2:3\n", 1, 5, "found"),
    (b"1 1:2\xc2\xa02:3\n", 1, 5, "found"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "what"), REFUSED)
def test_refused_with_line_and_column(tmp_path, text, line, column, what):
    path = tmp_path / "rows.svm"
    path.write_bytes(text)
    with pytest.raises(DataError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: line {line}, column {column}: ")
    assert what in message
    assert "\n" not in message


def test_lines_are_counted_across_pieces():
    text = b"1 1:2\n# comment\n\n" * 1000 + b"1 1:2 1:2\n"
    for size in (5, 1000, 1 << 20):
        with pytest.raises(DataError, match=r"^line 3001, column 7: "):
            parse(text, size=size)


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# only\n# comments", b"\xef\xbb\xbf", b"\r\n"])
def test_files_without_rows_are_refused(text):
    with pytest.raises(DataError, match="has no rows"):
        parse(text)


def test_rows_without_entries_need_n_features():
    with pytest.raises(DataError, match="give n_features"):
        parse(b"1\n-1\n")


def test_utf_16_is_named(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes("1 1:2\n".encode("utf-16"))
    with pytest.raises(DataError, match=r"a\.svm: is text in UTF-16"):
        read(path)


def test_declared_features_are_the_limit():
    assert parse(b"1 2000000000:2\n", n_features=2_000_000_000)[0].shape[1] == 2_000_000_000
    with pytest.raises(DataError, match=r"line 1, column 7: .* '4:1' is beyond the 3 features"):
        parse(b"1 3:1 4:1\n", n_features=3)
    with pytest.raises(DataError, match=r"line 1, column 3: .* beyond the 3 features"):
        parse(b"1 3:1\n", n_features=3, zero_based=True)


@pytest.mark.parametrize("n_features", [0, -1, 2**31])
def test_impossible_numbers_of_features_are_refused(tmp_path, n_features):
    with pytest.raises(ValueError, match="n_features must be from 1 to 2147483647"):
        read(tmp_path / "a.svm", n_features=n_features)


def test_rows_without_labels_are_all_without():
    with pytest.raises(DataError, match=r"line 2, column 1: .* found '1'"):
        parse(b"1:1\n1 1:1\n", labelled=False)
    with pytest.raises(DataError, match="line 2, column 1: expected a label"):
        parse(b"1 1:1\n1:1\n", labelled=False)
    with pytest.raises(DataError, match="line 2, column 1: an empty line"):
        parse(b"1:1\n\n1:1\n", labelled=False)  # or the rows would be shifted


@pytest.mark.parametrize("unit", [b"1", b" ", b"# comment", b"1 1:1 "])
def test_endless_lines_are_refused_with_a_bounded_buffer(unit):
    class Endless:
        max_bytes, given = 1 << 40, 0

        def read(self, size=1 << 20):
            self.given += size
            assert self.given < 1 << 28
            return unit * (size // len(unit))

    with pytest.raises(DataError, match="line 1: longer than 67108864 bytes"):
        read_svmlight(Endless(), None, False, True)


def test_arrays_count_as_bytes():
    text = b"1\n" * 10_000  # 16 bytes of arrays for each 2 bytes
    with pytest.raises(DataError, match=r"line 10000: .* max_bytes=100000"):
        parse(text, n_features=1, max_bytes=100_000)
    assert parse(text, n_features=1, max_bytes=200_000)[0].shape == (10_000, 1)


# The same format, plainly


def plain_rows(text):
    """Return labels and rows as dictionaries, or None if the text is to be refused."""
    labels, rows = [], []
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        row = line.split(b"#")[0] if b"#" in line else line.removesuffix(b"\r")
        tokens = [token for token in re.split(b"[ \t]", row) if token]
        if not tokens:
            continue
        if len(tokens) > 1 and re.fullmatch(rb"qid:\d+", tokens[1]):
            del tokens[1]
        pairs = [re.fullmatch(rb"(\d+):(.*)", token, re.DOTALL) for token in tokens[1:]]
        numbers = [tokens[0], *(pair[2] for pair in pairs if pair)]
        if None in pairs or not all(PLAIN_NUMBER.fullmatch(number) for number in numbers):
            return None
        indices, numbers = [int(pair[1]) for pair in pairs], [float(v) for v in numbers]
        if any(map(math.isinf, numbers)) or sorted(set(indices)) != indices or 0 in indices:
            return None
        labels.append(numbers[0])
        rows.append(dict(zip(indices, numbers[1:], strict=True)))
    widest = max((index for row in rows for index in row), default=0)
    fits = 0 < widest <= min(2**31 - 1, max(2**20, 1000 * sum(map(len, rows))))
    return (labels, rows) if fits else None


PLAIN_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def test_damaged_text_is_read_as_by_a_plain_reader():
    seeds = (
        b"1 1:0.5 2:3 70:1e-3\n-1 1:2 # x\n\n0.5 qid:3 4:12345678901234567890\n",
        b"# y\r\n+1 3:-.5 6:5.\r\n-1\r\n2 9:9e9 11:0",
    )
    target = fuzz.Target(parse, DataError, seeds)
    counts = [0, 0]
    for number in range(5000):
        text = fuzz.damaged(target, 3, number)
        expected = plain_rows(text)
        try:
            X, y = parse(text)
        except DataError:
            assert expected is None, text
            counts[0] += 1
            continue
        assert expected is not None, text
        counts[1] += 1
        labels, rows = expected
        assert_same_bits(y, labels)
        assert_same_bits(X.data, [value for row in rows for value in row.values()])
        assert (X.indices + 1).tolist() == [index for row in rows for index in row]
        assert np.diff(X.indptr).tolist() == [len(row) for row in rows]
    assert min(counts) > 500

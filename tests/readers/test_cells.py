"""Cells as numbers and dates: the same as Python reads them one by one."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from zerogap.readers.cells import numbers, read_numbers
from zerogap.readers.dates import dates
from zerogap.readers.shapes import digits, shaped

RNG = np.random.default_rng(3)
VALUES = RNG.lognormal(3, 6, 300) * RNG.choice([-1, 1], 300)


@pytest.mark.parametrize("form", ["{:.2f}", "{:.0f}", "{:.12f}", "{:.17g}", "{:.3e}", "{:,.4f}"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_numbers_are_rounded_as_python_rounds_them(form, decimal):
    plain = [form.format(value) for value in VALUES]
    texts = [t.translate(str.maketrans(".,", ",.")) if decimal == "," else t for t in plain]
    found = numbers(pa.array([f"${t}" if "e" not in t else t for t in texts]), decimal)
    assert found.values.tolist() == [float(t.replace(",", "")) for t in plain]


@pytest.mark.parametrize(
    ("form", "order"),
    [
        ("%d/%m/%Y %H:%M:%S", "dmy"),
        ("%m-%d-%Y %I:%M %p", "mdy"),
        ("%Y-%m-%dT%H:%M:%S.%f", "ymd"),
        ("%d %B %Y %H:%M", "ymd"),
        ("%b %d, %Y", "ymd"),
        ("%Y/%m/%d", "ymd"),
    ],
)
def test_dates_are_those_of_python(form, order):
    seconds = RNG.integers(-(10**9), 2 * 10**9, 200)
    start = datetime.datetime(1970, 1, 1)
    texts = [
        (start + datetime.timedelta(seconds=int(s), milliseconds=9)).strftime(form) for s in seconds
    ]
    expected = [(datetime.datetime.strptime(t, form) - start).total_seconds() for t in texts]
    found = dates(pa.array(texts), order)
    assert not found.bad.any()
    assert found.days * 86400 == pytest.approx(expected, abs=1e-4)


def test_shapes_keep_the_bytes_of_their_texts():
    apart = shaped(pa.array(["x", "€ 12,5", "", "€ 34,7", "7%"]).slice(1))
    assert apart.shapes.to_pylist() == ["€ 00,0", "", "0%"]
    (_, shape, rows), *_ = apart.groups(np.array([True, False, False]))
    assert digits(shape) == [4, 5, 7]
    assert apart.whole(rows, digits(shape)).tolist() == [125, 347]


def test_letters_among_digits_are_no_hexadecimal_number_without_0x():
    found = read_numbers(pa.array(["0x1F", "4x44", "1X5", "0X10", "7"]), ".")
    np.testing.assert_array_equal(found.values, [31.0, np.nan, np.nan, 16.0, 7.0])
    assert found.bad.tolist() == [False, True, True, False, False]

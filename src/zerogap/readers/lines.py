"""Rows out of lines of text, of svmlight and of tables: the compiled part.

Numbers are rounded to the nearest double, as Python's float() does, by integers alone: D. Lemire,
Number parsing at a gigabyte per second, Software: Practice and Experience 51 (2021).  What that
method does not cover is left to the caller, as a NaN that holds its place in the text.
"""

from __future__ import annotations

import functools

import numpy as np

from zerogap.kernels.jit import exact_kernel, inlined, kernel

# What may be wrong at a place.
FINE, BAD_LABEL, NO_LABEL, EMPTY, BAD_PAIR, BAD_INDEX, BAD_ORDER, BAD_VALUE = range(8)
# Whether rows begin with a label; where that is optional, the first row decides.
UNLABELLED, OPTIONAL, LABELLED = range(3)

# What a column of a table becomes.
NUMBER, WHOLE, TEXT = range(3)

PLACE_BITS = (1 << 48) - 1  # these bits of a NaN tell where its number begins
_NAN = np.uint64(0xFFF8 << 48)
_MALFORMED, _UNFINISHED = -1, -2

_TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _PLUS, _MINUS, _POINT, _ZERO, _COLON = b"\t\n\r #+-.0:"
_E, _SMALL_E, _Q, _I, _D = b"Eeqid"

_LEAST_POWER, _LARGEST_POWER = -342, 308  # of ten, beyond which 19 digits are zero or infinite
_MOST_DIGITS = 19  # of a number below 2^64
_EXACT_DIGITS = 15  # of a number that a double holds, as it does powers of ten up to 22
_TENS = np.array([10.0**k for k in range(23)])
_FIRST_HASH, _NEXT_HASH = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a
_U0, _U1, _U9, _U10, _U32, _U52, _U63 = map(np.uint64, (0, 1, 9, 10, 32, 52, 63))
_LOW_9, _LOW_32, _LOW_52 = (np.uint64((1 << k) - 1) for k in (9, 32, 52))


@functools.cache
def powers_of_five() -> np.ndarray:
    """Return 5^q, q = -342 ... 308, as their first 128 bits.

    They are cut off, except for small reciprocals, rounded up: exactly as the method's proof needs.
    """
    table = np.empty((_LARGEST_POWER - _LEAST_POWER + 1, 2), dtype=np.uint64)
    for q in range(_LEAST_POWER, _LARGEST_POWER + 1):
        power = 5 ** abs(q)
        if q >= 0:
            bits = power << 128 >> power.bit_length()
        else:
            bits = (1 << 127 + power.bit_length()) // power + (q >= -27)
        table[q - _LEAST_POWER] = bits >> 64, bits & (1 << 64) - 1
    return table


@kernel
def parse(text, first, most, powers, targets, indptr, indices, values, state):
    """Append the rows of `text`, whole lines, to the arrays; return what is wrong, and where.

    `state` holds rows, entries, columns, the place of the last column's index, and whether there
    are labels.  Columns are numbered from `first`, and there may be `most`.  Targets and values
    are the bits of doubles.
    """
    row, k, columns, widest, labels = state[0], state[1], state[2], state[3], state[4]
    fault, i = FINE, 0
    while i < len(text):
        i = _skip_blanks(text, i)
        if _ends_row(text, i):
            if labels == UNLABELLED and text[i] != _HASH:
                fault = EMPTY
                break
            i = _next_line(text, i)
            continue
        if labels != UNLABELLED:
            bits, after = _number(text, i, powers)
            if after != _MALFORMED and text[after] == _COLON:
                if labels == LABELLED or row > 0:
                    fault = NO_LABEL
                    break
                labels = UNLABELLED
            elif after == _MALFORMED or not _ends_token(text, after):
                fault = BAD_LABEL
                break
            else:
                targets[row] = bits
                i = _skip_query(text, _skip_blanks(text, after))
        last = -1
        while True:
            i = _skip_blanks(text, i)
            if _ends_row(text, i):
                break
            index, after = _index(text, i)
            if after == i or text[after] != _COLON:
                fault = BAD_PAIR
                break
            column = index - first
            if not last < column < most:
                fault = BAD_ORDER if 0 <= column <= last else BAD_INDEX
                break
            bits, end = _number(text, after + 1, powers)
            if end == _MALFORMED or not _ends_token(text, end):
                fault, i = BAD_VALUE, after + 1
                break
            indices[k], values[k] = column, bits
            k += 1
            if column >= columns:
                columns, widest = column + 1, i
            last, i = column, end
        if fault != FINE:
            break
        i = _next_line(text, i)
        row += 1
        indptr[row] = k
    state[0], state[1], state[2], state[3], state[4] = row, k, columns, widest, labels
    return fault, i


@kernel
def _skip_blanks(text, i):
    while text[i] == _SPACE or text[i] == _TAB:
        i += 1
    return i


@kernel
def _ends_row(text, i):
    """Whether text[i] is the end of the line or of what matters of it."""
    if text[i] == _RETURN:
        i += 1
    elif text[i] == _HASH:
        return True
    return text[i] == _NEWLINE


@kernel
def _ends_token(text, i):
    return text[i] == _SPACE or text[i] == _TAB or _ends_row(text, i)


@kernel
def _next_line(text, i):
    while text[i] != _NEWLINE:
        i += 1
    return i + 1


@kernel
def _skip_query(text, i):
    """Return the place after qid:number, or i if there is none."""
    if text[i] == _Q and text[i + 1] == _I and text[i + 2] == _D and text[i + 3] == _COLON:
        _, after = _index(text, i + 4)
        if after > i + 4 and _ends_token(text, after):
            return after
    return i


@kernel
def _index(text, i):
    """Return the whole number at text[i], or 2^40 if it is larger, and the place after it."""
    index = 0
    while _ZERO <= text[i] < _ZERO + 10:
        index = min(10 * index + text[i] - _ZERO, 1 << 40)
        i += 1
    return index, i


@kernel
def _skip_zeros(text, i):
    while text[i] == _ZERO:
        i += 1
    return i


@kernel
def _digits(text, i, number):
    """Return `number` followed by the digits at text[i], modulo 2^64, and the place after them."""
    while True:
        digit = np.uint8(text[i] - _ZERO)
        if digit > 9:
            return number, i
        number = _U10 * number + np.uint64(digit)
        i += 1


@kernel
def _number(text, i, powers):
    """Return the bits of the decimal number at text[i], and the place after it."""
    start = i
    sign = _U1 if text[i] == _MINUS else _U0
    if text[i] == _MINUS or text[i] == _PLUS:
        i += 1
    first = i
    leading = i = _skip_zeros(text, i)
    mantissa, i = _digits(text, i, _U0)
    digits, written, exponent = i - leading, i - first, 0
    if text[i] == _POINT:
        i += 1
        first = i
        leading = i = _skip_zeros(text, i) if digits == 0 else i
        mantissa, i = _digits(text, i, mantissa)
        digits, written, exponent = digits + i - leading, written + i - first, first - i
    if written == 0:
        return _U0, _MALFORMED
    if text[i] == _E or text[i] == _SMALL_E:
        i += 1
        down = text[i] == _MINUS
        if down or text[i] == _PLUS:
            i += 1
        power, after = _index(text, i)
        if after == i:
            return _U0, _MALFORMED
        exponent += -power if down else power
        i = after
    bits = _U0
    if digits > _MOST_DIGITS:
        bits = _NAN
    elif mantissa != _U0:
        bits = _nearest(mantissa, exponent, powers)
    if bits == _NAN:
        return _NAN | np.uint64(start), i
    return sign << _U63 | bits, i


@kernel
def _nearest(w, q, powers):
    """Return the bits of the double nearest to w 10^q, for w > 0, or of NaN if it is not normal."""
    if q < _LEAST_POWER or q > _LARGEST_POWER:
        return _NAN
    zeros = _leading_zeros(w)
    w <<= np.uint64(zeros)
    high, low = _product(w, powers[q - _LEAST_POWER, 0])
    if high & _LOW_9 == _LOW_9:  # the rest of 5^q may carry
        more, _ = _product(w, powers[q - _LEAST_POWER, 1])
        low += more
        if low < more:
            high += _U1
    upper = high >> _U63
    mantissa = high >> (upper + _U9)  # 54 bits: one more than a double has
    exponent = ((217706 * q) >> 16) + 1086 - zeros + np.int64(upper)
    if exponent <= 0 or exponent >= 2046:
        return _NAN
    between = low <= _U1 and -4 <= q <= 23 and mantissa << (upper + _U9) == high
    if between and mantissa & np.uint64(3) == _U1:  # two doubles, of which this takes the even
        mantissa -= _U1
    mantissa = (mantissa + (mantissa & _U1)) >> _U1
    if mantissa >> np.uint64(53) != _U0:
        mantissa >>= _U1
        exponent += 1
    return np.uint64(exponent) << _U52 | (mantissa & _LOW_52)


@kernel
def _product(a, b):
    """a b as two words."""
    a1, a0, b1, b0 = a >> _U32, a & _LOW_32, b >> _U32, b & _LOW_32
    low = a0 * b0
    middle = a1 * b0 + (low >> _U32)
    other = a0 * b1 + (middle & _LOW_32)
    return a1 * b1 + (middle >> _U32) + (other >> _U32), other << _U32 | (low & _LOW_32)


@kernel
def _leading_zeros(w):
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == _U0:
            w <<= np.uint64(step)
            zeros += step
    return zeros


@exact_kernel
def cut(text, signs, kinds, slots, absent, ends, powers, numbers, gaps, codes, table, starts, into):
    """Cut the lines of `text` into the cells of a table.

    Return how many rows there are, the place after them, and whether that is one which needs
    another reader.  Of a row that the text has not whole, nothing is taken.

    Parameters
    ----------
    text : uint8 array
        Ends with the end of a line.
    signs : tuple of int
        Separator, quote and decimal sign.
    kinds, slots : integer arrays
        What each column becomes, and its place among those that become the same.
    absent, ends : uint8 and integer array
        Texts that mean that there is no value, one after the other, and the ends of them.
    powers : array
        `powers_of_five`.
    numbers, gaps : float64 and bool array
        Numbers of each column, NaN where there is none, and whether that is so anywhere.
    codes, table, starts, into : integer arrays
        Of each column of text the place of each row's text among the different ones, a table of
        their hashes, full of -1, where each begins in their bytes, and these bytes.
    """
    sep, quote, point = signs
    counts = np.zeros(len(codes), dtype=np.int64)
    row, i, n = 0, 0, len(text)
    while i < n:
        begin = i
        if _ends_line(text, i):
            i = _next_line(text, i)
            continue
        for j in range(len(kinds)):
            slot = slots[j]
            if kinds[j] == TEXT:
                count = counts[slot]
                i, last, code = _copied(text, i, sep, quote, into[slot], starts[slot, count])
                if i >= 0:
                    found = _coded(code, table[slot], starts[slot], into[slot], count, last)
                    counts[slot] = max(count, found + 1)
                    codes[slot, row] = found
            else:
                value, after, whole = _decimal(text, i, point)
                if after == _MALFORMED or not (text[after] == sep or _ends_line(text, after)):
                    value, after, whole = _unusual(text, i, signs, absent, ends, powers)
                    gaps[slot] |= value != value
                i = after if whole or kinds[j] == NUMBER else _MALFORMED
                numbers[slot, row] = value
            if i < 0:
                return row, begin, i == _MALFORMED
            if text[i] != sep if j < len(kinds) - 1 else not _ends_line(text, i):
                return row, begin, True  # too few cells, or too many
            i += j < len(kinds) - 1
        i = _next_line(text, i)
        row += 1
    return row, i, False


@kernel
def count_ends(text):
    """Return how many ends of lines there are."""
    found = 0
    for sign in text:
        found += sign == _NEWLINE
    return found


@kernel
def _ends_line(text, i):
    return text[i] == _NEWLINE or (text[i] == _RETURN and text[i + 1] == _NEWLINE)


@inlined
def _decimal(text, i, point):
    """Return the decimal number at text[i], the place after it, and whether it is a whole one.

    It is one of few digits, without an exponent.  Places as unsigned numbers spare a comparison.
    """
    negative = text[np.uint64(i)] == _MINUS
    if negative:
        i += 1
    first, mantissa = i, _U0
    while np.uint8(text[np.uint64(i)] - _ZERO) <= 9:
        mantissa = _U10 * mantissa + np.uint64(text[np.uint64(i)] - _ZERO)
        i += 1
    digits, after, whole = i - first, 0, text[np.uint64(i)] != point
    if not whole:
        i += 1
        first = i
        while np.uint8(text[np.uint64(i)] - _ZERO) <= 9:
            mantissa = _U10 * mantissa + np.uint64(text[np.uint64(i)] - _ZERO)
            i += 1
        after = i - first
    if 0 < digits + after <= _EXACT_DIGITS:
        value = np.float64(mantissa) / _TENS[after]
        return -value if negative else value, i, whole
    return 0.0, _MALFORMED, whole


@kernel
def _unusual(text, i, signs, absent, ends, powers):
    """Return a number in quotes, of more digits or with an exponent; NaN for a cell without one.

    And the place after it, and whether it may be a whole number.
    """
    sep, quote, point = signs
    quoted = text[i] == quote
    value, after, whole = _decimal(text, i + quoted, point)
    after = _after_cell(text, after, sep, quote, quoted)
    if after == _MALFORMED and point == _POINT and text[i + quoted] != _PLUS:
        bits, after = _number(text, i + quoted, powers)
        value, whole = np.uint64(bits).view(np.float64), False
        after = _after_cell(text, after, sep, quote, quoted) if value == value else _MALFORMED
    if after != _MALFORMED:
        return value, after, whole
    i, first = i + quoted, 0
    for end in ends:
        same, at = i + end - first < len(text), 0
        while same and at < end - first:
            same = text[i + at] == absent[first + at]
            at += 1
        after = _after_cell(text, i + at, sep, quote, quoted) if same else _MALFORMED
        if after != _MALFORMED:
            return np.nan, after, True
        first = end
    return np.nan, _MALFORMED, False


@kernel
def _after_cell(text, i, sep, quote, quoted):
    """Return i, or the place after a quote there, if a cell ends there."""
    if i != _MALFORMED and quoted:
        i = i + 1 if text[i] == quote else _MALFORMED
    return i if i != _MALFORMED and (text[i] == sep or _ends_line(text, i)) else _MALFORMED


@kernel
def _copied(text, i, sep, quote, to, last):
    """Copy the cell at text[i] to to[last:]; return the place after it, the new end, and a hash."""
    code, quoted = _FIRST_HASH, text[i] == quote
    i += quoted
    while i < len(text):
        sign = text[i]
        if quoted:
            if sign == quote:
                i += 1
                if text[i] != quote:
                    return i, last, code
        elif sign in (sep, _NEWLINE):
            return i, last, code
        elif sign == _RETURN:
            return i if text[i + 1] == _NEWLINE else _MALFORMED, last, code
        to[last] = sign
        last += 1
        code = (code ^ np.uint64(sign)) * _NEXT_HASH
        i += 1
    return _UNFINISHED, last, code


@kernel
def _coded(code, table, starts, texts, count, last):
    """Return the place among `count` texts of the one after them, which ends at `last`."""
    first = starts[count]
    mask = np.uint64(len(table) - 1)
    k = (code ^ (code >> _U32)) & mask
    while table[k] >= 0:
        other = starts[table[k]]
        size = starts[table[k] + 1] - other
        same, at = size == last - first, 0
        while same and at < size:
            same = texts[other + at] == texts[first + at]
            at += 1
        if same:
            return table[k]
        k = (k + _U1) & mask
    table[k], starts[count + 1] = count, last
    return count

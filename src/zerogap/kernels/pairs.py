"""Loops over numbers of twice the working precision, each a pair of doubles: see `twofold`."""

from __future__ import annotations

import numpy as np

from zerogap.kernels.instructions import fused
from zerogap.kernels.jit import exact_kernel


@exact_kernel
def plus(x, x_low, y, y_low):
    """x + y."""
    total = x + y
    back = total - x
    rest = (x - (total - back)) + (y - back)
    low = x_low + y_low
    back = low - x_low
    rounded_away = (x_low - (low - back)) + (y_low - back)
    rest += low
    high = total + rest
    rest = (rest - (high - total)) + rounded_away
    total = high + rest
    return total, rest - (total - high)


@exact_kernel
def product_of(x, x_low, y, y_low):
    """x y."""
    high = x * y
    low = fused(x, y, -high) + (x * y_low + x_low * y)
    total = high + low
    return total, low - (total - high)


@exact_kernel
def quotient(x, x_low, y, y_low):
    """x / y."""
    first = x / y
    back, back_low = product_of(first, 0.0, y, y_low)
    rest, _ = plus(x, x_low, -back, -back_low)
    second = rest / y
    total = first + second
    return total, second - (total - first)


@exact_kernel
def root(x, x_low):
    """The square root of x."""
    first = np.sqrt(x)
    back = first * first
    rest, _ = plus(x, x_low, -back, -fused(first, first, -back))
    second = 0.5 * rest / first
    total = first + second
    return total, second - (total - first)


@exact_kernel
def scale(x, x_low, c, high, low):
    """x_i c_i for doubles c."""
    for i in range(len(x)):
        high[i], low[i] = product_of(x[i], x_low[i], c[i], 0.0)


@exact_kernel
def multiply(X, w, w_low, high, low):
    """X w for doubles X."""
    for i in range(X.shape[0]):
        total, rest = 0.0, 0.0
        for j in range(X.shape[1]):
            x = X[i, j]
            product = x * w[j]
            rounded_away = fused(x, w[j], -product) + x * w_low[j]
            new = total + product
            back = new - total
            rest += (total - (new - back)) + (product - back) + rounded_away
            total = new
        high[i] = total + rest
        low[i] = rest - (high[i] - total)


@exact_kernel
def add_rows(X, c, c_low, high, low):
    """Add c_i times the rows of X, doubles."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            product = c[i] * X[i, j]
            rounded_away = fused(c[i], X[i, j], -product) + c_low[i] * X[i, j]
            total = high[j]
            new = total + product
            back = new - total
            low[j] += (total - (new - back)) + (product - back) + rounded_away
            high[j] = new
    for j in range(X.shape[1]):
        total = high[j] + low[j]
        low[j] -= total - high[j]
        high[j] = total


@exact_kernel
def add_moments(X, h, high, low):
    """Add sum_i h_i x_i x_i' for doubles X and h, its lower triangle."""
    for i in range(X.shape[0]):
        if h[i] == 0.0:
            continue
        for j in range(X.shape[1]):
            c = h[i] * X[i, j]
            if c == 0.0:
                continue
            c_low = fused(h[i], X[i, j], -c)
            for k in range(j + 1):
                product = c * X[i, k]
                rounded_away = fused(c, X[i, k], -product) + c_low * X[i, k]
                total = high[j, k]
                new = total + product
                back = new - total
                low[j, k] += (total - (new - back)) + (product - back) + rounded_away
                high[j, k] = new
    for j in range(X.shape[1]):
        for k in range(j + 1):
            total = high[j, k] + low[j, k]
            low[j, k] -= total - high[j, k]
            high[j, k] = total


@exact_kernel
def add_class_moments(X, of_rows, h, high, low):
    """Add what `twofold.class_moments` returns."""
    width = X.shape[1]
    block, block_low = np.empty((width, width)), np.empty((width, width))
    for k in range(len(h)):
        for m in range(k):
            block[:], block_low[:] = 0.0, 0.0
            add_moments(X, of_rows * h[k] * h[m], block, block_low)
            for i in range(width):
                for j in range(width):
                    x, x_low = block[max(i, j), min(i, j)], block_low[max(i, j), min(i, j)]
                    high[k * width + i, m * width + j] = -x
                    low[k * width + i, m * width + j] = -x_low
                    for c in (k, m):
                        a, b = c * width + i, c * width + j
                        if j <= i:
                            high[a, b], low[a, b] = plus(high[a, b], low[a, b], x, x_low)


@exact_kernel
def add_product(a, a_low, b, b_low, out, out_low):
    """Add the matrix product of a and b."""
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            x, x_low = a[i, k], a_low[i, k]
            if x == 0.0:
                continue
            for j in range(b.shape[1]):
                high = x * b[k, j]
                low = fused(x, b[k, j], -high) + (x * b_low[k, j] + x_low * b[k, j])
                total = out[i, j] + high
                back = total - out[i, j]
                low += (out[i, j] - (total - back)) + (high - back) + out_low[i, j]
                out[i, j] = total + low
                out_low[i, j] = low - (out[i, j] - total)


@exact_kernel
def factorise(high, low, smallest):
    """Replace the lower triangle by that of the factor; return how many columns are left out.

    Each column is subtracted from all later ones at once: such loops have vector instructions.
    """
    left_out, size = 0, len(high)
    column, column_low = np.empty(size), np.empty(size)
    for k in range(size):
        if not high[k, k] > smallest:
            left_out += 1
            high[k:, k], low[k:, k] = 0.0, 0.0
            high[k, k] = np.inf
            continue
        pivot, pivot_low = root(high[k, k], low[k, k])
        high[k, k], low[k, k] = pivot, pivot_low
        for i in range(k + 1, size):
            column[i], column_low[i] = quotient(high[i, k], low[i, k], pivot, pivot_low)
            high[i, k], low[i, k] = column[i], column_low[i]
        for i in range(k + 1, size):
            x, x_low = column[i], column_low[i]
            if x == 0.0:
                continue
            for j in range(k + 1, i + 1):
                part = x * column[j]
                rest = fused(x, column[j], -part) + (x * column_low[j] + x_low * column[j])
                total = high[i, j] - part
                back = total - high[i, j]
                rest = (high[i, j] - (total - back)) - (part + back) + (low[i, j] - rest)
                high[i, j] = total + rest
                low[i, j] = rest - (high[i, j] - total)
    return left_out


@exact_kernel
def substitute(high, low, x, x_low):
    """Replace a right-hand side by the solution."""
    size = len(high)
    for j in range(size):
        total, rest = x[j], x_low[j]
        for m in range(j):
            y, y_low = product_of(high[j, m], low[j, m], x[m], x_low[m])
            total, rest = plus(total, rest, -y, -y_low)
        x[j], x_low[j] = 0.0, 0.0
        if high[j, j] < np.inf:
            x[j], x_low[j] = quotient(total, rest, high[j, j], low[j, j])
    for j in range(size - 1, -1, -1):
        total, rest = x[j], x_low[j]
        for m in range(j + 1, size):
            y, y_low = product_of(high[m, j], low[m, j], x[m], x_low[m])
            total, rest = plus(total, rest, -y, -y_low)
        x[j], x_low[j] = 0.0, 0.0
        if high[j, j] < np.inf:
            x[j], x_low[j] = quotient(total, rest, high[j, j], low[j, j])


@exact_kernel
def dot(x, x_low, y, y_low, start):
    """The sum of x_i y_i from `start` on."""
    total, rest = 0.0, 0.0
    for i in range(start, len(x)):
        product = x[i] * y[i]
        rounded_away = fused(x[i], y[i], -product) + (x[i] * y_low[i] + x_low[i] * y[i])
        new = total + product
        back = new - total
        rest += (total - (new - back)) + (product - back) + rounded_away
        total = new
    high = total + rest
    return high, rest - (high - total)


@exact_kernel
def orthogonalise(columns, columns_low, high, low, smallest):
    """Fill in the transposed triangle of a QR factorisation, by Householder's reflections.

    Returns how many columns are left out; they take no row.
    """
    size, top = len(columns), 0
    for j in range(size):
        v, v_low = columns[j], columns_low[j]
        square, square_low = dot(v, v_low, v, v_low, top)
        if not square > smallest * smallest:
            high[j, j] = np.inf
            continue
        length, length_low = root(square, square_low)
        if v[top] > 0.0:
            length, length_low = -length, -length_low
        # |v|^2 / 2 of the vector v - length e_top that is reflected along
        half, half_low = product_of(length, length_low, v[top], v_low[top])
        half, half_low = plus(square, square_low, -half, -half_low)
        v[top], v_low[top] = plus(v[top], v_low[top], -length, -length_low)
        high[j, j], low[j, j] = length, length_low
        for k in range(j + 1, size):
            x, x_low = columns[k], columns_low[k]
            c, c_low = dot(v, v_low, x, x_low, top)
            c, c_low = quotient(c, c_low, half, half_low)
            for i in range(top, len(v)):
                product, rest = product_of(c, c_low, v[i], v_low[i])
                x[i], x_low[i] = plus(x[i], x_low[i], -product, -rest)
            high[k, j], low[k, j] = x[top], x_low[top]
        top += 1
    return size - top


@exact_kernel
def subtract(high, low, k, j, moves):
    """Subtract from row k the multiple of row j that leaves the least in column j."""
    for _ in range(4):  # a quotient of more than 53 bits is rounded
        times = np.round(high[k, j] / high[j, j])
        if times == 0.0:
            break
        for i in range(j + 1):
            part = times * high[j, i]
            rest = fused(times, high[j, i], -part) + times * low[j, i]
            high[k, i], low[k, i] = plus(high[k, i], low[k, i], -part, -rest)
        for i in range(moves.shape[1]):
            moves[k, i] -= times * moves[j, i]


@exact_kernel
def reduce_basis(high, low, moves, lovasz, most):
    """Reduce a basis, the rows of a lower triangle, and then a last row by it, all in place.

    `moves` gets the same changes.  After so many swaps the basis stays as it is.
    """
    size, k = len(high) - 1, 1
    while k < size:
        subtract(high, low, k, k - 1, moves)
        shorter = high[k, k - 1] ** 2 + high[k, k] ** 2 < lovasz * high[k - 1, k - 1] ** 2
        if not shorter or most <= 0:
            for j in range(k - 2, -1, -1):
                subtract(high, low, k, j, moves)
            k += 1
            continue
        most -= 1
        for i in range(k + 1):
            high[k - 1, i], high[k, i] = high[k, i], high[k - 1, i]
            low[k - 1, i], low[k, i] = low[k, i], low[k - 1, i]
        for i in range(moves.shape[1]):
            moves[k - 1, i], moves[k, i] = moves[k, i], moves[k - 1, i]
        rotate(high, low, k)
        k = max(k - 1, 1)
    for j in range(size - 1, -1, -1):
        subtract(high, low, size, j, moves)


@exact_kernel
def rotate(high, low, k):
    """Turn columns k - 1 and k until row k - 1 has nothing in column k."""
    x, x_low, y, y_low = high[k - 1, k - 1], low[k - 1, k - 1], high[k - 1, k], low[k - 1, k]
    first, first_low = product_of(x, x_low, x, x_low)
    second, second_low = product_of(y, y_low, y, y_low)
    length, length_low = root(*plus(first, first_low, second, second_low))
    cosine, cosine_low = quotient(x, x_low, length, length_low)
    sine, sine_low = quotient(y, y_low, length, length_low)
    for i in range(k - 1, len(high)):
        x, x_low, y, y_low = high[i, k - 1], low[i, k - 1], high[i, k], low[i, k]
        first, first_low = product_of(cosine, cosine_low, x, x_low)
        second, second_low = product_of(sine, sine_low, y, y_low)
        high[i, k - 1], low[i, k - 1] = plus(first, first_low, second, second_low)
        first, first_low = product_of(cosine, cosine_low, y, y_low)
        second, second_low = product_of(sine, sine_low, x, x_low)
        high[i, k], low[i, k] = plus(first, first_low, -second, -second_low)
    high[k - 1, k], low[k - 1, k] = 0.0, 0.0

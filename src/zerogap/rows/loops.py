"""Loops over rows, dense or CSR alike."""

from __future__ import annotations

import numpy as np

from zerogap.kernels.jit import kernel

_BLOCK = 1 << 18  # numbers that stay in cache


@kernel
def compress(rows, start, stop, indptr, data, indices):
    """Append the rows' values that are not zero, until no room for a whole row might be left."""
    k, d = np.uintp(indptr[start]), rows.X.shape[1]
    for i in range(start, stop):
        if k + np.uintp(d) <= np.uintp(len(data)):
            for j in range(d):  # no question that a processor could guess wrong
                data[k], indices[k] = rows.X[i, j], j
                k += np.uintp(rows.X[i, j] != 0.0)
        else:
            k = np.uintp(len(data))
        indptr[i + 1] = k


@kernel
def gather(rows, order, indptr, data, indices):
    """Copy row order[i] of a CSR matrix to place i."""
    for i in range(len(order)):
        place = np.uintp(indptr[i])
        for k in rows.span(order[i]):
            data[place], indices[place] = rows.data[k], rows.indices[k]
            place += np.uintp(1)


@kernel
def subtract(rows, origin, far, indptr, data, indices):
    """Store the rows minus an origin, with all values of its far columns; return how many"""
    place = np.uintp(0)
    for i in range(len(indptr) - 1):
        indptr[i], f = place, 0
        for k in rows.span(i):
            column = rows.indices[k]
            while f < len(far) and far[f] < column:
                data[place], indices[place] = -origin[far[f]], far[f]
                place, f = place + np.uintp(1), f + 1
            f += f < len(far) and far[f] == column
            data[place], indices[place] = np.float64(rows.data[k]) - origin[column], column
            place += np.uintp(1)
        while f < len(far):
            data[place], indices[place] = -origin[far[f]], far[f]
            place, f = place + np.uintp(1), f + 1
    indptr[-1] = place
    return place


@kernel
def add_moments(rows, h, lower, start, stop):
    """lower += the lower triangle of sum_i h_i x_i x_i'"""
    for i in range(start, stop):
        for k in rows.span(i):
            scaled = h[i] * np.float64(rows.data[k])
            row = lower[rows.indices[k]]
            for m in range(np.uintp(rows.indptr[i]), k + np.uintp(1)):
                row[rows.indices[m]] += scaled * np.float64(rows.data[m])


@kernel
def add_few_moments(rows, h, lower, columns, start, stop):
    """`add_moments` in blocks of rows whose columns stay in cache: rows share instructions"""
    length = columns.shape[1]
    scaled = np.empty(length)
    for first in range(start, stop, length):
        count = min(length, stop - first)
        for i in range(count):
            for j in range(columns.shape[0]):
                columns[j, i] = rows.entry_value(first + i, j)
        for j in range(columns.shape[0]):
            for i in range(count):
                scaled[i] = h[first + i] * columns[j, i]
            for k in range(j + 1):
                total = 0.0
                for i in range(count):
                    total += scaled[i] * columns[k, i]
                lower[j, k] += total


@kernel
def mirror(lower):
    """Make a matrix of its lower triangle symmetric"""
    for j in range(len(lower)):
        for k in range(j):
            lower[k, j] = lower[j, k]


def is_canonical(rows):
    """Tell whether the column indices of each row rise, without duplicates.

    Of all places where they do not, counted in one go, each must be the beginning of a row.
    """
    indices, pointers, last = rows.indices, rows.indptr, 0
    falls, begins = 0, 0
    for k in range(0, len(indices) - 1, _BLOCK):
        part = indices[k : k + _BLOCK + 1]
        falls += int(np.count_nonzero(part[1:] <= part[:-1]))
    for i in range(1, len(pointers) - 1, _BLOCK):
        places = pointers[i : min(i + _BLOCK, len(pointers) - 1)]
        inside = places[(np.diff(places, prepend=last) > 0) & (places < len(indices))]
        begins += int(np.count_nonzero(indices[inside] <= indices[inside - 1]))
        last = int(places[-1])
    return falls == begins


def is_inside(rows):
    """Tell whether all column indices exist; negative ones look huge without their sign."""
    return bool(rows.indices.max(initial=0) < max(rows.n_columns, 1))


@kernel
def dots(rows, w, identity, z, start, stop):
    """z_i = x_i . w"""
    for i in range(start, stop):
        z[i] = rows.dot(i, w, identity)


@kernel
def add_rows(rows, c, u, start, stop):
    """u += sum_i c_i x_i"""
    for i in range(start, stop):
        if c[i] != 0.0:
            rows.add_to(u, i, c[i])


@kernel
def add_products(rows, h, v, offset, identity, out, start, stop):
    """out += sum_i h_i (x_i.v + offset) x_i; returns the sum of the factors"""
    total = 0.0
    for i in range(start, stop):
        factor = h[i] * (rows.dot(i, v, identity) + offset)
        rows.add_to(out, i, factor)
        total += factor
    return total


@kernel
def add_squares(rows, h, out, start, stop):
    """out_j += sum_i h_i x_ij^2"""
    for i in range(start, stop):
        rows.add_squares(out, i, h[i])


@kernel
def sqnorms(rows, start, stop, out):
    """out_i = |x_i|^2"""
    for i in range(start, stop):
        out[i] = rows.sqnorm(i)

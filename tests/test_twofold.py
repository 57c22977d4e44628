"""Linear algebra in twice the precision, held against rational numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest

from zerogap.kernels import lattice, twofold
from zerogap.problem.votes import fix_shifts

TWICE = Fraction(1, 2**100)  # 2^-106 is the unit; sums of some ten terms lose a few bits


def exact(x):
    """Return numbers of twice the precision as rational ones."""
    return [Fraction(float(high)) + Fraction(float(low)) for high, low in zip(*x, strict=True)]


def near(found, wanted, size):
    return all(
        abs(a - b) <= TWICE * Fraction(float(size)) for a, b in zip(found, wanted, strict=True)
    )


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.standard_normal((9, 4)) * 10.0 ** rng.integers(-6, 7, (9, 4))


def test_sums_and_products_have_twice_the_digits(table):
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(50) * 10.0 ** rng.integers(-8, 9, 50) for _ in range(2))
    wide = twofold.exact_sum(x, 1e-17 * y)
    assert exact(wide) == [Fraction(a) + Fraction(b) for a, b in zip(x, 1e-17 * y, strict=True)]
    both = twofold.add(wide, twofold.twofold(y))
    wanted = [a + Fraction(b) for a, b in zip(exact(wide), y, strict=True)]
    assert near(exact(both), wanted, 1e9)
    scaled = twofold.times(wide, y)
    wanted = [a * Fraction(b) for a, b in zip(exact(wide), y, strict=True)]
    assert all(abs(a - b) <= TWICE * abs(b) for a, b in zip(exact(scaled), wanted, strict=True))


def test_products_of_rows_have_twice_the_digits(table):
    w, c = twofold.exact_sum(np.ones(4), 1e-18), twofold.exact_sum(np.ones(9), 1e-19)
    rows = [sum(Fraction(x) * v for x, v in zip(row, exact(w), strict=True)) for row in table]
    assert near(exact(twofold.products(table, w)), rows, np.abs(table).sum())
    sums = [sum(Fraction(x) * a for x, a in zip(col, exact(c), strict=True)) for col in table.T]
    assert near(exact(twofold.column_sums(table, c)), sums, np.abs(table).sum())


def test_factor_solves_with_columns_that_are_copies_but_for_twelve_digits():
    table = np.random.default_rng(2).standard_normal((9, 4))
    X = np.column_stack([table, table[:, 0], 1e9 * table[:, 2]])
    X[:, 4] *= 1.0 + 1e-12 * np.arange(9)
    X[:, 5] *= 1.0 + 1e-11 * np.arange(9)[::-1]
    wanted = twofold.twofold(np.array([1.0, -2.0, 3.0, 0.5, -1.0, 1e-9]))
    assert np.linalg.cond(X / np.linalg.norm(X, axis=0)) > 1e11
    factor = twofold.Factor(twofold.moments(X, np.ones(9)))
    found = factor.solve(twofold.column_sums(X, twofold.products(X, wanted)))
    assert factor.complete
    np.testing.assert_allclose(twofold.rounded(found), wanted[0], rtol=1e-5)


def test_factor_leaves_out_what_depends_on_columns_before():
    X = np.array([[1.0, 2.0, 1.0], [3.0, 6.0, -1.0], [0.5, 1.0, 4.0]])
    factor = twofold.Factor(twofold.moments(X, np.ones(3)))
    target = twofold.column_sums(X, twofold.twofold(np.array([1.0, -1.0, 2.0])))
    found = factor.solve(target)
    assert not factor.complete
    assert found[0, 1] == 0.0
    again = twofold.column_sums(X, twofold.products(X, found))
    np.testing.assert_allclose(again[0], target[0], rtol=1e-25)


def test_bases_are_orthonormal_to_twice_the_digits():
    rough, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))
    basis = twofold.orthonormalised(rough)
    gram = twofold.matrix_product(twofold.transposed(basis), basis)
    assert np.abs((gram[0] - np.eye(6)) + gram[1]).max() < 1e-29
    assert np.abs(basis[0] - rough).max() < 1e-14


def test_matrix_products():
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((3, 40)), rng.standard_normal((40, 2))
    found = twofold.matrix_product(twofold.twofold(A), twofold.twofold(B))
    for j in range(2):
        wanted = [
            sum(Fraction(x) * Fraction(y) for x, y in zip(a, B[:, j], strict=True)) for a in A
        ]
        assert near(exact(found[:, :, j]), wanted, 40)


def test_orthogonalised_columns_have_twice_the_digits_of_a_factor():
    X = np.random.default_rng(3).standard_normal((12, 3))
    X = np.column_stack([X, X[:, 1]])
    ridge = np.full(4, 1e-30)  # all that tells the last column from the second one
    assert not twofold.Factor(twofold.moments(X, np.ones(12))).complete
    factor = twofold.factorised(X, np.ones(12), ridge)
    assert factor.complete
    own = abs(factor.triangle[0, 3, 3]) / factor.scale[3]
    assert own == pytest.approx(math.sqrt(2e-30), rel=1e-10)


def test_rounding_along_a_factor_costs_less_than_one_by_one():
    """A column of years beside one of months makes up for what rounding the other one costs."""
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(30), 1e9 + rng.standard_normal(30), 1e9 * np.ones(30)])
    w = twofold.exact_sum(np.array([1.0, 1.0 / 3.0, -1.0 / 3.0]), 1e-17)
    factor = twofold.factorised(X, np.ones(30), np.full(3, 1e-20))

    def off(v):
        return np.abs(twofold.products(X, twofold.add(twofold.twofold(v), -w))[0]).max()

    assert off(lattice.rounded_along(w, factor, 0)[0]) < 1e-3 * off(twofold.rounded(w))


def test_a_reduced_lattice_has_points_nearer_by():
    """A column in three units of measurement: moves of all three together are fine ones."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 1)) * [1e9, 0.70710678e9, 0.31830989e9]
    X *= 1.0 + 1e-12 * rng.standard_normal(X.shape)
    w = twofold.exact_sum(rng.standard_normal(3), 1e-17)
    factor = twofold.factorised(X, np.ones(40), np.full(3, 1e-20))

    def off(v):
        return np.abs(twofold.products(X, twofold.add(twofold.twofold(v), -w))[0]).max()

    one_by_one = lattice._one_by_one(w, factor, 0)
    assert off(lattice.rounded_along(w, factor, 0)[0]) < 1e-2 * off(one_by_one)
    assert off(one_by_one) <= off(twofold.rounded(w))


def test_free_numbers_make_up_for_what_rounding_others_costs():
    rng = np.random.default_rng(6)
    X = np.column_stack([np.ones(30), 1e9 + rng.standard_normal((30, 2))])
    w = twofold.exact_sum(np.array([1.0, 1.0 / 3.0, -2.0 / 3.0]), 1e-17)
    factor = twofold.factorised(X, np.ones(30), np.full(3, 1e-20))
    found = lattice.rounded_along(w, factor, 1)
    assert not found[1, 1:].any()
    assert np.abs(twofold.products(X, twofold.add(found, -w))[0]).max() < 1e-14


def test_curvature_along_shifts_leaves_other_solutions_alone():
    """Classes of very different curvature: solutions are 1e12 times as large as votes show."""
    rng = np.random.default_rng(2)
    X, share, h = rng.standard_normal((20, 2)), np.full(20, 0.05), rng.random((20, 4))
    h[:, 3] *= 1e-12
    matrix = twofold.class_moments(X, share, h)
    fixed = matrix.copy()
    fix_shifts(fixed, 4)
    target = rng.standard_normal((4, 2))
    target -= target.mean(axis=0)
    found = twofold.Factor(fixed).solve(twofold.twofold(target.ravel()))
    lower = [np.tril(part) + np.tril(part, -1).T for part in matrix]
    back = twofold.matrix_product(np.stack(lower), found[:, :, None])[:, :, 0]
    assert np.abs(twofold.rounded(found)).max() > 1e11
    assert np.abs(twofold.rounded(back) - target.ravel()).max() < 1e-14

"""Many classes in twice the precision: columns that cancel, and scores that are far apart."""

from fractions import Fraction

import numpy as np
import pytest

import zerogap as zg
from raw_cases import CERTIFIED, draw_case, fit_case
from zerogap.kernels.twofold import products
from zerogap.solvers.twofold_votes import VotesFactor, VotesTable, apart, contrasts

LOSSES = (zg.MulticlassHinge(), zg.Softmax())


def test_contrasts_are_the_curvature_of_votes_and_sum_to_zero():
    rng = np.random.default_rng(0)
    h = 10.0 ** rng.uniform(-30, 3, (50, 5))
    h[0, :4], h[1, 0], h[2] = 0.0, 0.0, 0.0
    share = rng.random(50)
    high, low = contrasts(h, share)
    found = np.einsum("nkc,nkd->ncd", high, high)
    others = np.where(np.eye(5) > 0.0, 0.0, h[:, None]).sum(axis=2)
    meant = h[:, :, None] * np.where(np.eye(5) > 0.0, others[:, :, None], -h[:, None])
    meant *= (share / np.maximum(h.sum(axis=1), 1e-300))[:, None, None]
    np.testing.assert_allclose(found, meant, rtol=1e-13)
    for vector, rest in zip(high.reshape(-1, 5), low.reshape(-1, 5), strict=True):
        off = sum(map(Fraction, [*vector.tolist(), *rest.tolist()]))
        assert abs(off) <= Fraction(1e-31) * Fraction(float(np.abs(vector).max()))


@pytest.mark.parametrize("copies", [2.0**-10, 2.0**-48])
def test_columns_of_votes_that_nearly_cancel_are_not_left_out(copies):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    X[:, 2] = X[:, 1] * (1.0 + copies * rng.standard_normal(30))
    problem = zg.Problem(X, np.arange(30) % 3, "softmax", 1e-40, fit_intercept=True)
    table, h = VotesTable.of(problem), np.full((30, 3), 0.25)
    meant = apart(rng.standard_normal((2, 3, 4)) * [[[1.0]], [[1e-18]]])
    scores = apart(np.stack([products(table.X, v) for v in meant.swapaxes(0, 1)], axis=1))
    target = table.sums(0.25 * np.moveaxis(scores, 1, 2))
    found = table.by_class(VotesFactor(table, h, table.ridge).solve(target))
    off = np.ptp((found - meant)[0], axis=0)  # shifts of all classes are penalised
    assert off.max() <= 1e-15 + 1e-30 / copies**2


@pytest.mark.parametrize("seed", [4160, 5049, 6083])  # the first one is a softmax
def test_default_fits_of_columns_that_cancel_are_certified(seed):
    assert fit_case(draw_case(seed)).verdict == CERTIFIED


@pytest.mark.parametrize("loss", LOSSES)
def test_doubt_of_each_score_bounds_loss_and_excess(loss):
    rng = np.random.default_rng(0)
    for _ in range(300):
        z, y = 3.0 * rng.standard_normal(4), int(rng.integers(4))
        doubt = 10.0 ** rng.uniform(-6, 0, 4)
        p = rng.dirichlet(np.full(4, 0.5))
        off, worst = loss.within(p, z, y, doubt)
        for signs in rng.uniform(-1.0, 1.0, (20, 4)).round(rng.integers(2)):
            moved = z + signs * doubt
            change = loss.vector_value(moved, y) - loss.vector_value(z, y)
            assert abs(change) <= off + 1e-12
            assert loss.vector_excess(p, moved, y) <= worst + 1e-12


def test_votes_that_go_to_the_own_class_cost_the_hinge_no_more_than_its_loss():
    rng, loss = np.random.default_rng(0), zg.MulticlassHinge()
    assert not loss.bends_in_votes
    for _ in range(300):
        z, y, most = 1e3 * rng.standard_normal(5), int(rng.integers(5)), rng.random()
        p = rng.dirichlet(np.full(5, 0.3))
        fewer = p * (1.0 - most * rng.random(5))
        fewer[y] += 1.0 - fewer.sum()
        rise = loss.vector_excess(fewer, z, y) - loss.vector_excess(p, z, y)
        assert rise <= most * loss.vector_value(z, y) + 1e-9


def test_scores_of_classes_that_are_out_of_reach_cost_no_digits():
    """One row of 1e9 puts a class 1e9 below the others, whose differences keep all digits."""
    X = np.array([[1e9, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 3.0]])
    problem = zg.Problem(X, np.array([0, 0, 1, 2]), "multiclass-hinge", 1e-3)
    W = np.array([[1.0, 0.25], [1.0 - 2.0**-30, -0.5], [-2.0, 0.25]])
    alpha = problem.duals_of(
        np.array([[1 - 2.0**-20, 2.0**-20, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    )
    proof = problem.prove(W, np.zeros(3), problem.scores(W), alpha, tolerated=1e-16)
    assert abs(proof.primal - problem.primal(W, np.zeros(3))) <= 1e-15 * proof.primal
    given = ((loss_of(row, k, W)) for row, k in zip(X, problem.y, strict=True))
    exact = sum(given) / 4 + Fraction(problem.lam) / 2 * sum(Fraction(v) ** 2 for v in W.ravel())
    assert abs(Fraction(proof.primal) - exact) <= Fraction(4e-16) * exact


def loss_of(row, k, W):
    """Return the multiclass hinge of a row in exact arithmetic."""
    z = [sum(Fraction(x) * Fraction(v) for x, v in zip(row, w, strict=True)) for w in W.tolist()]
    return max(score + (j != k) for j, score in enumerate(z)) - z[k]

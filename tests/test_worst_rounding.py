"""Data on which rounding takes as much as it can: no bound of it may be too small."""

import math
from fractions import Fraction

import numpy as np
import pytest

import zerogap as zg
from zerogap.dask.work import Spec
from zerogap.problem.gap import Sizes, Terms, gamma
from zerogap.problem.proving import rounded_columns
from zerogap.rows import moved_targets
from zerogap.store import write_store
from zerogap.streamed import StreamedProblem


def in_fractions(values):
    return [Fraction(float(value)) for value in values]


def distances(X, y, w, b):
    """Return |x_i.w + b - y_i|, exactly."""
    X = [in_fractions(row) for row in X]
    w, b = in_fractions(w), Fraction(float(b))
    scores = [sum(x * v for x, v in zip(row, w, strict=True)) + b for row in X]
    return [abs(z - Fraction(float(target))) for z, target in zip(scores, y, strict=True)]


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("loss", ["multiclass-hinge", "softmax"])
def test_scores_of_two_classes_may_be_off_in_opposite_directions(loss, sign):
    """Each of 1900 products is lost beside the first one: nearly as much as bounds allow."""
    lost = 2.0**-53 if sign > 0.0 else 2.0**-54
    x = np.append(1.0, np.full(1899, math.sqrt(lost) * 0.9999))
    v = np.append(1.0 + 2.0**-51, np.full(1899, sign * math.sqrt(lost) * 0.9999))
    X, y = np.array([x] * 39 + [-x]), np.append(np.zeros(39, int), 1)
    problem = zg.Problem(X, y, loss, lam=1e-12)
    certificate = problem.certificate(np.array([-v, v]), np.zeros(2), np.zeros((40, 2)))
    margin = sum(a * b for a, b in zip(in_fractions(x), in_fractions(v), strict=True))
    penalty = Fraction(1e-12) * sum(a * a for a in in_fractions(v))
    # a softmax's loss is its margin and exp(-2 margin), one of the hinge its margin and one
    least = 2 * margin + (1 if loss == "multiclass-hinge" else 0) + penalty
    assert Fraction(certificate.gap) >= least
    assert Fraction(certificate.gap) <= least + Fraction(0.2)


def targets_with_one_that_a_shift_rounds():
    y = 1e6 + np.round(np.random.default_rng(1).standard_normal(40), 2)
    y[0] = 0.1
    X = np.zeros((40, 1))
    X[0, 0] = 1.0
    return X, y


def hold_absolute(X, y, lam, w, b, certificate):
    """A gap is at least the distance to the model that fits the first row exactly."""
    here = distances(X, y, w, b)
    cost = Fraction(lam) / 2
    primal = sum(here) / len(y) + cost * Fraction(float(w[0])) ** 2
    exactly = Fraction(float(y[0])) - Fraction(float(b))
    better = sum(here[1:]) / len(y) + cost * exactly**2
    assert primal > better
    assert Fraction(certificate.gap) >= primal - better
    assert Fraction(certificate.dual) <= better
    assert certificate.gap < 1e-11 * certificate.primal


@pytest.mark.parametrize("tol", [1e-12, 1e-15])
def test_targets_that_a_shift_rounds_count_as_rounding(tol, tmp_path):
    X, y = targets_with_one_that_a_shift_rounds()
    problem = zg.Problem(X, y, "absolute", lam=1e-30, fit_intercept=True)
    moved, _, target = problem.shifted()
    assert Fraction(y[0]) - Fraction(target) != Fraction(moved.y[0])
    assert moved.blurred == abs(Fraction(y[0]) - Fraction(target) - Fraction(moved.y[0]))
    found = zg.solve(problem, zg.solvers.Auto(), tol=tol, max_epochs=60, random_state=0)
    hold_absolute(X, y, 1e-30, found.w, found.b, found.certificate)
    store = write_store(tmp_path / "store", [(X, y)], task="regression", dtype="float64")
    stored = StreamedProblem(store, "absolute", 1e-30, True).shifted()[0]
    with_block = list(stored.stream())
    assert with_block[0][1].blurred == moved.blurred > 0.0
    given = (0, zg.Absolute(), 1.0, 0.0, True, 40.0, None, None, 0, np.zeros(1), target)
    data = type("Data", (), {"rows": problem.rows, "y": y, "weights": np.ones(40)})
    assert Spec(*given).part(data).blurred == moved.blurred


def test_targets_are_rounded_only_where_they_have_more_digits_than_the_difference():
    assert moved_targets(np.array([1e6, 2e6, 0.0, 600000.125]), 983040.0)[1] == 0.0
    assert 0.0 < moved_targets(np.array([0.1]), 983040.0)[1] < 1e-10


def test_residuals_beyond_a_tube_are_not_as_exact_as_residuals():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        eps, middle = float(10.0 ** rng.uniform(0, 6)), float(rng.uniform(0, 1))
        y = middle + eps * np.array([1.0, -1.0, 1.0 + 2.0**-52, -1.0 - 2.0**-51])
        X, loss = np.zeros((4, 1)), zg.EpsilonInsensitive(eps=eps)
        proof = zg.Problem(X, y, loss, lam=1.0, fit_intercept=True).constant_proof()
        beyond = [max(Fraction(0), r - Fraction(eps)) for r in distances(X, y, [0.0], proof.b)]
        primal = sum(beyond) / 4
        assert Fraction(proof.gap) >= primal >= Fraction(proof.primal) - Fraction(proof.blur)


def test_weights_whose_shares_would_lose_digits_are_refused(tmp_path):
    X, y = np.array([[1.0], [0.0], [0.0]]), np.array([1e130, 3e-100, 0.0])
    tiny = np.array([1.23e-15, 1.7e304, 1.1e304])
    with pytest.raises(ValueError, match=r"at position 0 is 4\.39e-320 of the sum"):
        zg.Problem(X, y, "squared", lam=1e-3, sample_weight=tiny)
    batches = [(X[:1], y[:1], tiny[:1]), (X[1:], y[1:], tiny[1:])]
    store = write_store(tmp_path / "store", batches, task="regression", dtype="float64")
    with pytest.raises(ValueError, match="of the sum of all weights: set it to 0"):
        StreamedProblem(store, "squared", 1e-3).certificate(np.zeros(1))
    zg.Problem(X, y, "squared", lam=1e-3, sample_weight=np.append(0.0, tiny[1:]))


def test_weights_next_to_underflow_have_all_their_digits_in_dual_sums():
    rng = np.random.default_rng(0)
    X, y, weights = rng.standard_normal((30, 3)), rng.standard_normal(30), rng.uniform(1, 2, 30)
    sums = []
    for unit in (1.0, 2.0**-1019):
        problem = zg.Problem(X, y, "absolute", lam=1e-15, sample_weight=unit * weights)
        sums.append(problem.precise_dual_sum_of(0.5 * np.sign(y)))
    np.testing.assert_array_equal(*sums)


def test_a_row_of_many_classes_sums_up_its_votes():
    w, alone = np.ones((500, 1)), Sizes(1, 1, 1.0)
    errors = alone.errors(Terms(1.0, 0.0), w, 0.0, 1.0)
    assert errors.dual_sum >= gamma(500) * errors.lengths


def test_a_difference_of_half_the_origin_may_be_rounded():
    x = 0.5 - 2.0**-54
    assert Fraction(x) - 1 != Fraction(x - 1.0) == Fraction(-0.5)
    sizes, origin = np.ones(2), np.ones(2)
    np.testing.assert_array_equal(rounded_columns(sizes, np.array([0.5, 0.49]), origin), [1.0, 0.0])


@pytest.mark.parametrize("size", [1e-184, 6e161])
def test_parameters_whose_squares_are_no_numbers_are_refused(size):
    for loss in (zg.Huber(delta=size), zg.SmoothHinge(gamma=size)):
        with pytest.raises(ValueError, match="must be between 1e-100 and 1e"):
            zg.Problem([[1.0]], [1.0], loss, lam=1.0)
    if size > 1.0:
        with pytest.raises(ValueError, match="eps must be 1e"):
            zg.Problem([[1.0]], [1.0], zg.EpsilonInsensitive(eps=size), lam=1.0)

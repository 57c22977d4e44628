"""Dual points with twice the digits: they belong to the weights, and certify what is true."""

from fractions import Fraction

import numpy as np
import pytest

import zerogap as zg
from zerogap.problem.refining import refinement
from zerogap.solvers.multiclass_newton import MulticlassNewton


def raw_problem(loss, seed, fit_intercept=False, l1_ratio=0.0):
    """Return a problem with columns between 1 and 1e12, none of them scaled."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 4)) * [1.0, 1e3, 1e9, 1e12]
    score = (X / [1.0, 1e3, 1e9, 1e12]) @ rng.standard_normal(4) + rng.standard_normal(40)
    if loss in ("multiclass-hinge", "softmax"):
        y = np.digitize(score, [-0.7, 0.7])
    else:
        y = score if loss in ("squared", "absolute", "huber") else np.sign(score)
    weight = rng.integers(1, 4, 40).astype(float)
    return zg.Problem(X, y, loss, 1e-4, weight, fit_intercept, l1_ratio)


def fractions(array):
    return [Fraction(float(x)) for x in np.ravel(array)]


def exact_dual_sum(problem, duals):
    """Return u for exact dual variables, one list per row of `duals`."""
    weight, lam = fractions(problem.weight), Fraction(problem.lam)
    X = problem.rows.X
    scale = lam * sum(weight)
    return [
        sum(s * a * Fraction(float(x)) for s, a, x in zip(weight, duals, X[:, j], strict=True))
        / scale
        for j in range(X.shape[1])
    ]


# what `Auto` finds for many classes has all its digits already
METHODS_IN_DOUBLE_PRECISION = {
    "softmax": MulticlassNewton(),
    "multiclass-hinge": zg.InteriorPoint(),
}
LOSSES = ("hinge", "absolute", "squared", "logistic", "squared-hinge", "huber")


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", [*LOSSES, "softmax", "multiclass-hinge"])
def test_refined_dual_sums_belong_to_the_weights(loss, fit_intercept):
    problem = raw_problem(loss, 0, fit_intercept)
    method = METHODS_IN_DOUBLE_PRECISION.get(loss, zg.Auto())
    run = zg.solve(problem, method, tol=1e-4, max_epochs=60, random_state=0)
    rest = refinement(problem, run.w, run.alpha)
    before = np.abs(problem.lack(run.w, run.alpha, np.zeros_like(run.alpha)))
    after = np.abs(problem.lack(run.w, run.alpha, rest))
    unit = np.abs(problem.lack(0 * run.w, np.abs(run.alpha) + 0.01, 0 * run.alpha)) + 1e-300
    assert np.all(after <= np.maximum(before, 1e-14 * unit))
    assert (after / unit).max() < 1e-3 * (before / unit).max() + 1e-20


@pytest.mark.parametrize("seed", range(5))
def test_certificates_of_refined_points_hold_exactly_for_the_hinge(seed):
    problem = raw_problem("hinge", seed)
    run = zg.solve(problem, zg.InteriorPoint(), tol=1e-3, max_epochs=30)
    alpha = problem.feasible(run.alpha)
    rest = refinement(problem, run.w, alpha)
    z = problem.scores(run.w)
    found = problem.prove(run.w, 0.0, z, alpha, 0.0, rest)
    plain = problem.prove(run.w, 0.0, z, alpha)
    assert found.gap <= plain.gap
    duals = [a + r for a, r in zip(fractions(alpha), fractions(rest), strict=True)]
    targets, weight, lam = fractions(problem.y), fractions(problem.weight), Fraction(problem.lam)
    assert all(0 <= a * y <= 1 for a, y in zip(duals, targets, strict=True))
    u = exact_dual_sum(problem, duals)
    w, total = fractions(run.w), sum(weight)
    scores = [
        sum(Fraction(float(x)) * v for x, v in zip(row, w, strict=True)) for row in problem.rows.X
    ]
    losses = [max(Fraction(0), 1 - y * t) for y, t in zip(targets, scores, strict=True)]
    primal = sum(s * t for s, t in zip(weight, losses, strict=True)) / total
    primal += lam / 2 * sum(v * v for v in w)
    dual = sum(s * a * y for s, a, y in zip(weight, duals, targets, strict=True)) / total
    dual -= lam / 2 * sum(v * v for v in u)
    assert primal - dual <= Fraction(found.gap)
    assert Fraction(found.dual) <= dual
    assert found.gap <= 2e-3 * found.primal


@pytest.mark.parametrize("seed", range(3))
def test_certificates_of_refined_points_hold_exactly_for_the_multiclass_hinge(seed):
    problem = raw_problem("multiclass-hinge", seed)
    run = zg.solve(problem, zg.InteriorPoint(), tol=1e-3, max_epochs=40)
    alpha = problem.feasible(run.alpha)
    rest = refinement(problem, run.w, alpha)
    found = problem.prove(run.w, 0.0, problem.scores(run.w), alpha, 0.0, rest)
    weight, lam = fractions(problem.weight), Fraction(problem.lam)
    total, value, penalty = sum(weight), Fraction(0), Fraction(0)
    votes = [
        [-(Fraction(float(a)) + Fraction(float(r))) for a, r in zip(*pair, strict=True)]
        for pair in zip(alpha, rest, strict=True)
    ]
    for p, y in zip(votes, problem.y, strict=True):
        p[y] = 1 - sum(q for k, q in enumerate(p) if k != y)
        assert all(q >= -Fraction(1, 10**15) for q in p)
    dual = sum(s * (1 - p[y]) for s, p, y in zip(weight, votes, problem.y, strict=True)) / total
    for k in range(problem.n_classes):
        duals = [(k == y) - p[k] for p, y in zip(votes, problem.y, strict=True)]
        penalty += sum(v * v for v in exact_dual_sum(problem, duals))
    dual -= lam / 2 * penalty
    for s, row, y in zip(weight, problem.rows.X, problem.y, strict=True):
        z = [
            sum(Fraction(float(x)) * Fraction(float(v)) for x, v in zip(row, w, strict=True))
            for w in run.w
        ]
        value += s * (max(z[k] + (k != y) for k in range(len(z))) - z[y])
    primal = value / total + lam / 2 * sum(v * v for v in fractions(run.w))
    assert primal - dual <= Fraction(found.gap)


def test_weights_of_zero_leave_their_dual_sums_free():
    problem = raw_problem("squared", 3, fit_intercept=True, l1_ratio=0.9)
    run = zg.solve(problem, zg.Auto(), tol=1e-6, random_state=0)
    rest = refinement(problem, run.w, run.alpha)
    u = problem.precise_dual_sum_of(run.alpha) + problem.precise_dual_sum_of(rest)
    zero = run.w == 0.0
    assert np.all(np.abs(u[zero]) <= 0.9 * (1 + 1e-12))


@pytest.mark.parametrize("classes", [2, 3, 12])
@pytest.mark.parametrize("shift", [1e-6, 1e-3, 0.03, 0.3])
def test_refined_points_stay_in_their_domain(classes, shift):
    """Whatever the weights are, and however many classes take votes from the same one."""
    rng = np.random.default_rng(classes)
    X, moved = rng.standard_normal((200, 3)), 0
    loss = "softmax" if classes > 2 else "logistic"
    y = rng.integers(classes, size=200) if classes > 2 else rng.choice([-1.0, 1.0], 200)
    problem = zg.Problem(X, y, loss, 0.1, fit_intercept=True)
    run = zg.solve(problem, zg.Auto(), tol=1e-9, random_state=0)
    for _ in range(20):
        change = shift * rng.standard_normal(run.w.shape) * np.exp2(rng.integers(-3, 4))
        w = run.w + (change - change.mean(axis=0) if classes > 2 else change)
        rest = refinement(problem, w, run.alpha)
        room = problem.room(run.alpha)
        assert np.all(np.abs(rest) <= 0.5 * room)
        moved += rest.any()
    assert shift > 1e-6 or moved == 20


def test_nothing_can_move_where_all_dual_variables_are_at_their_bounds():
    problem = zg.Problem([[1.0], [-1.0]], [1, -1], "hinge", lam=10.0)
    assert refinement(problem, np.array([0.1]), np.array([1.0, -1.0])) is None


@pytest.mark.parametrize("power", [9, 10, 11, 12])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax", "multiclass-hinge", "huber"])
def test_columns_of_any_unit_are_proved(loss, power):
    """Dual variables in double precision prove nothing where a column is 1e12 and C is large."""
    rng = np.random.default_rng(power)
    X = rng.standard_normal((60, 3)) * [1.0, 1e3, 10.0**power]
    score = X[:, 0] + X[:, 2] / 10.0**power + rng.standard_normal(60)
    edges = [-0.7, 0.7] if loss in ("softmax", "multiclass-hinge") else [0.0]
    kind, y = zg.LinearClassifier, np.digitize(score, edges)
    if loss == "huber":
        kind, y = zg.LinearRegressor, score
    model = kind(loss, lam=1e-4 / 60, tol=1e-6, random_state=0).fit(X, y)
    assert model.certificate_.stop_reason == "converged"
    assert model.certificate_.relative_gap <= 1e-6

"""Methods in twice the precision: they end where doubles are stuck, and claim nothing too much."""

from fractions import Fraction

import numpy as np
import pytest

import zerogap as zg
from raw_cases import CERTIFIED, draw_case, fit_case
from zerogap.problem.centring import centred
from zerogap.solvers import auto
from zerogap.solvers.twofold_point import can_be_twofold, twofold_methods
from zerogap.solvers.twofold_system import is_feasible

MARGIN = ("hinge", "smooth-hinge", "squared-hinge", "logistic")
RESIDUAL = ("absolute", "quantile", "epsilon-insensitive", "huber", "squared")


def nearly_copied(loss, seed, n=40, **settings):
    """Return a problem with copies of columns but for eight digits, far from zero, at C = 1e4."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * [1.0, 1e3, 1e9]
    near = X * (1.0 + 1e-8 * rng.standard_normal(X.shape))
    X = np.column_stack([X, near, X[:, 0] + X[:, 1], 1e12 + rng.standard_normal(n)])
    score = X[:, 0] + 1e-3 * X[:, 1] + 0.3 * rng.standard_normal(n)
    y = np.where(score > 0.0, 1.0, -1.0) if loss in MARGIN else 1e-3 * score
    if loss == "epsilon-insensitive":
        loss = zg.EpsilonInsensitive(eps=1e-4)
    return zg.Problem(X, y, loss, 1e-4 / n, rng.uniform(0.5, 2.0, n), **settings)


def run(problem, tol=1e-6):
    """Return the method, its last state and the problem that it works on."""
    inner = centred(problem).problem
    method = twofold_methods(inner)[0]
    state = method.begin(inner, np.random.default_rng(0))
    state.tol = tol
    for _ in range(200):
        method.steps(inner, state, 1)
    return method, state, inner


@pytest.mark.parametrize("l1_ratio", [0.0, 0.4])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", [*MARGIN, *RESIDUAL])
def test_near_copies_far_from_zero_are_solved(loss, fit_intercept, l1_ratio):
    problem = nearly_copied(loss, 0, fit_intercept=fit_intercept, l1_ratio=l1_ratio)
    method, state, inner = run(problem)
    w, b, alpha = method.answer(inner, state)
    rest = method.rest(inner, state)
    assert is_feasible(inner, alpha, rest)
    proof = inner.prove(w, b, inner.scores(w), alpha, rest=rest)
    assert 0.0 <= proof.gap <= 1e-6 * proof.primal


@pytest.mark.parametrize("loss", [*MARGIN, *RESIDUAL])
def test_default_fits_of_near_copies_are_certified(loss):
    for seed in range(3):
        problem = nearly_copied(loss, seed, fit_intercept=bool(seed % 2), l1_ratio=0.2 * (seed > 1))
        result = zg.solve(problem, zg.Auto(), tol=1e-6, random_state=0)
        assert result.stop_reason == "converged", (loss, seed, result.certificate)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ["hinge", "absolute", "quantile"])
def test_certificates_hold_exactly_for_lines(loss, seed):
    """P - D of alpha + rest, in rational numbers, is at most the gap that is claimed."""
    problem = nearly_copied(loss, seed, n=20)
    method, state, _ = run(problem)
    w, _, alpha = method.answer(problem, state)
    rest = method.rest(problem, state)
    claimed = problem.prove(w, 0.0, problem.scores(w), alpha, rest=rest)
    weight, y, v = (list(map(Fraction, x.tolist())) for x in (problem.weight, problem.y, w))
    rows = [list(map(Fraction, row)) for row in problem.rows.X.tolist()]
    duals = [Fraction(a) + Fraction(r) for a, r in zip(alpha.tolist(), rest.tolist(), strict=True)]
    scores = [sum(x * c for x, c in zip(row, v, strict=True)) for row in rows]
    if loss == "hinge":
        losses = [max(Fraction(0), 1 - t * z) for t, z in zip(y, scores, strict=True)]
    else:
        q = Fraction(0.5)
        losses = [max(q * (t - z), (1 - q) * (z - t)) for t, z in zip(y, scores, strict=True)]
        losses = losses if loss == "quantile" else [2 * value for value in losses]
    for a, t in zip(duals, y, strict=True):
        low, high = problem.loss.domain(float(t))
        assert Fraction(low) <= a <= Fraction(high)
    total, lam = sum(weight), Fraction(problem.lam)
    u = [
        sum(s * a * row[j] for s, a, row in zip(weight, duals, rows, strict=True)) / (lam * total)
        for j in range(len(v))
    ]
    primal = sum(s * value for s, value in zip(weight, losses, strict=True)) / total
    primal += lam / 2 * sum(c * c for c in v)
    dual = sum(s * a * t for s, a, t in zip(weight, duals, y, strict=True)) / total
    dual -= lam / 2 * sum(c * c for c in u)
    assert 0 <= primal - dual <= Fraction(claimed.gap)


def test_estimates_that_certificates_refute_do_not_end_a_run(monkeypatch):
    """The gap of the dual point at hand was four times the estimate; the next steps mend it."""
    monkeypatch.setattr(auto, "second_methods", lambda problem: [zg.Newton()])
    outcome = fit_case(draw_case(382))
    assert outcome.verdict == CERTIFIED
    assert "twice the precision" in outcome.model.certificate_.solver


def test_rounding_asks_for_more_digits():
    """Targets of 1e-9 beside columns of 1e12: a slope of 0.23 + 1e-21 is none to a double."""
    rng = np.random.default_rng(0)
    X = 1e9 * (1.0 + rng.standard_normal((80, 4))) * [1.0, 1e2, 1e3, 1e-3]
    X[:, 2] = 1e3 * X[:, 0]
    y = 1e-9 * (X[:, 1] / 1e11 + rng.standard_normal(80))
    problem = zg.Problem(X, y, "squared", 1.0 / (31.4 * 80), None, True, 0.23)
    result = zg.solve(problem, zg.Auto(), tol=1e-3, random_state=0)
    assert result.stop_reason == "converged"


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_weights_that_vanish_are_zero(loss):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 8)) * 10.0 ** np.arange(-2, 6)
    y = X[:, 3] + 1e-2 * X[:, 5] + rng.standard_normal(60)
    method, state, problem = run(zg.Problem(X, y, loss, 0.2, l1_ratio=0.9), tol=1e-9)
    w, _, alpha = method.answer(problem, state)
    u = problem.precise_dual_sum_of(alpha)
    assert np.all(w[np.abs(u) < 0.8] == 0.0)
    assert 0 < np.count_nonzero(w) < 7


def test_targets_within_the_tube_need_no_model():
    X = np.random.default_rng(0).standard_normal((20, 2)) * [1.0, 1e12]
    fit = zg.LinearRegressor("epsilon-insensitive", fit_intercept=False).fit(X, 1e-3 * X[:, 0])
    assert fit.certificate_.stop_reason == "converged"
    assert fit.certificate_.primal == 0.0


def test_large_tables_and_many_classes_are_left_alone():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 501))
    assert not can_be_twofold(zg.Problem(X, X[:, 0], "squared"))
    assert can_be_twofold(zg.Problem(X[:, :20], X[:, 0], "squared"))
    assert not can_be_twofold(zg.Problem(X[:, :3], np.arange(30) % 3, "softmax"))


def test_resumed_runs_go_on_in_twice_the_precision(tmp_path):
    problem = nearly_copied("absolute", 0)
    path = tmp_path / "run"
    options = {"tol": 1e-9, "random_state": 0, "record": "epoch"}
    whole = zg.solve(problem, zg.Auto(), **options)
    assert "twice the precision" in whole.certificate.solver
    epochs = whole.certificate.epochs
    for until in (epochs - 2, 1000):
        again = zg.solve(
            problem,
            zg.Auto(),
            max_epochs=until,
            checkpoint=path,
            checkpoint_every=0.0,
            **options,
        )
    assert again.certificate.epochs == epochs
    assert np.array_equal(again.w, whole.w)


def test_intercepts_far_from_zero_are_rounded_together_with_all_weights():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6)) + 10.0 ** np.arange(7, 13)
    given = zg.Problem(X, rng.standard_normal(30), "absolute", 1e-3, fit_intercept=True)
    shifted = centred(given)
    w, b = rng.standard_normal(6) / 3.0, 1.0 / 3.0

    def off(v, c):
        """Return how far scores are from those of w and b, on the shifted data."""
        inner, _ = shifted.precisely_inward(v, c)
        return np.abs(shifted.problem.scores(v - w) + (inner - b)).max()

    plain = off(w, shifted.outward(w, b))
    assert plain > 1e-6  # some of a unit in the last place of an intercept of 1e11
    assert off(*shifted.aligned(w, b, 0.0)) < 1e-3 * plain


def test_intercepts_of_twice_the_precision_are_proved_exactly():
    """A shift of 1e16 leaves b no digit after the point; what it lacks is a second double."""
    rng = np.random.default_rng(2)
    X, y = rng.integers(-5, 6, (20, 2)) + 1e16 * np.array([0.0, 1.0]), rng.standard_normal(20)
    problem = zg.Problem(X, y, "absolute", 0.1, fit_intercept=True)
    w, alpha = np.array([0.25, -1.0]), np.where(np.arange(20) % 2, 0.5, -0.5)
    b, low = 1e16, 0.3
    claimed = problem.prove(w, b, problem.scores(w), alpha, b_low=low)
    rows = [[Fraction(x) for x in row] for row in X.tolist()]
    v, c = [Fraction(x) for x in w.tolist()], Fraction(b) + Fraction(low)
    losses = [
        abs(sum(x * k for x, k in zip(row, v, strict=True)) + c - Fraction(t))
        for row, t in zip(rows, y.tolist(), strict=True)
    ]
    lam, duals = Fraction(problem.lam), [Fraction(a) for a in alpha.tolist()]
    u = [sum(a * row[j] for a, row in zip(duals, rows, strict=True)) / (20 * lam) for j in range(2)]
    primal = sum(losses) / 20 + lam / 2 * sum(k * k for k in v)
    gains = sum(a * Fraction(t) for a, t in zip(duals, y.tolist(), strict=True)) / 20
    gap = primal - gains + lam / 2 * sum(k * k for k in u)
    assert gap <= Fraction(claimed.gap) <= gap + Fraction(1, 10**6)
    assert abs(primal - Fraction(claimed.primal)) <= Fraction(claimed.blur) < Fraction(1, 10**6)
    vague = problem.prove(w, b, problem.scores(w), alpha, doubt=low)
    assert vague.gap > claimed.gap + 0.1


def test_intercepts_are_shifted_in_twice_the_precision():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 4)) + 10.0 ** np.arange(9, 13)
    given = zg.Problem(X, 1e9 + rng.standard_normal(30), "absolute", fit_intercept=True)
    shifted, w, b = centred(given), rng.standard_normal(4), 1e3 / 3.0
    high, low, off = shifted.pair_inward(w, b)
    meant = sum(Fraction(m) * Fraction(c) for m, c in zip(shifted.origin, w.tolist(), strict=True))
    meant += Fraction(b) - Fraction(shifted.target)
    assert abs(meant - Fraction(high) - Fraction(low)) <= Fraction(off) < Fraction(1, 10**12)


def test_rounded_shifts_of_one_column_cost_nothing_in_others():
    """Entries of a mean of 1 are rounded by a shift; those of 1e14 beside them are not."""
    rng = np.random.default_rng(0)
    X = np.column_stack([1.0 + rng.standard_normal(30), 1e14 * rng.integers(-3, 4, 30)])
    problem = centred(zg.Problem(X, np.sign(X[:, 0] - 1.0), "hinge", 1e-2, None, True)).problem
    rounded_columns = np.array([1.0, 0.0])
    z = problem.scores(np.array([0.5, 0.0]))
    doubt = problem._doubt(np.abs(z), np.array([0.5, 0.0]), 0.0, rounded_columns)
    assert doubt.max() < 1e-13
    assert np.all(doubt >= 2.0**-53 * 0.5 * np.abs(problem.rows.X[:, 0]))

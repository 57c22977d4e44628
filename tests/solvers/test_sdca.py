"""SDCA reaches the optimum that others find, by a dual that never falls."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import ElasticNet, LogisticRegression

import zerogap as zg
from problems import make_data, make_problem
from zerogap.losses import LOSSES

every_loss = pytest.mark.parametrize("loss", LOSSES)
VARIANTS = [
    *product(("dense", "csr"), (np.float64, np.float32), (False, True), (False, True), (0.0,)),
    ("dense", np.float32, True, False, 0.3),
    ("csr", np.float64, True, True, 0.3),
]  # storage, dtype, weighted, intercept, l1_ratio


def linear_pieces(loss, y):
    """Slopes and offsets of the linear functions whose maximum a piecewise linear loss is."""
    one = np.ones_like(y)
    return {
        "hinge": [(-y, one)],
        "absolute": [(one, -y), (-one, y)],
        "epsilon-insensitive": [(one, -y - 0.1), (-one, y - 0.1)],
        "quantile": [(-0.5 * one, 0.5 * y), (0.5 * one, -0.5 * y)],
    }[loss]


def independent_optimum(problem, loss):
    """min P by scipy: L-BFGS on smooth losses, a quadratic program with slacks on the others."""
    X = problem.rows.product(np.eye(problem.shape[1]))
    n, d = X.shape
    free = int(problem.fit_intercept)
    if math.isfinite(problem.loss.smoothness):

        def both(p):
            w, b = p[:d], p[d] if free else 0.0
            return problem.primal(w, b), problem.gradient(w, b)

        options = {"maxiter": 100000, "ftol": 1e-16, "gtol": 1e-12, "maxfun": 10**6}
        return minimize(both, np.zeros(d + free), jac=True, method="L-BFGS-B", options=options).fun
    design = np.hstack([X, np.ones((n, free))])
    constraints = [
        {
            "type": "ineq",
            "fun": lambda p: p[d + free :],
            "jac": lambda p: np.hstack([np.zeros((n, d + free)), np.eye(n)]),
        }
    ]
    for slope, offset in linear_pieces(loss, problem.y):
        jacobian = np.hstack([-slope[:, None] * design, np.eye(n)])
        constraints.append(
            {
                "type": "ineq",
                "fun": lambda p, J=jacobian, c=offset: J @ p - c,
                "jac": lambda p, J=jacobian: J,
            }
        )
    gradient = np.concatenate([np.zeros(d + free), problem.share])
    ridge = np.concatenate([np.full(d, problem.lam), np.zeros(free + n)])
    result = minimize(
        lambda p: gradient @ p + 0.5 * ridge @ p**2,
        np.concatenate([np.zeros(d + free), np.full(n, 10.0)]),
        jac=lambda p: gradient + ridge * p,
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    return result.fun


@every_loss
@pytest.mark.parametrize(
    "variant", VARIANTS, ids=lambda v: "-".join(map(str, (v[0], v[1].__name__, *v[2:])))
)
def test_reaches_a_tiny_gap_with_a_dual_that_never_falls(loss, variant):
    problem = make_problem(loss, *variant)
    result = zg.solve(problem, zg.SDCA(), tol=1e-9, max_epochs=20000, random_state=0)
    assert result.stop_reason == "converged"
    assert result.certificate.relative_gap <= 1e-9
    dual, primal = result.history["dual"], result.history["primal"]
    assert np.all(np.diff(dual) >= -1e-13 * abs(dual[-1]))
    assert np.all(dual <= primal[-1] + 1e-13)
    again = problem.certificate(result.w, result.b, result.alpha)
    assert again.gap <= result.certificate.gap + 2e-12 * again.primal


@every_loss
@pytest.mark.parametrize("intercept", [False, True])
def test_optimum_equals_an_independent_one(loss, intercept):
    problem = make_problem(loss, intercept=intercept, n=24, d=3)
    result = zg.solve(problem, zg.SDCA(), tol=1e-10, max_epochs=50000, random_state=0)
    other = independent_optimum(problem, loss)
    assert result.certificate.primal == pytest.approx(other, rel=1e-6)
    assert other >= result.certificate.dual - 1e-9, "nobody is below our lower bound"


@pytest.mark.parametrize("relaxation", [1.0, 1.5, 1.99])
@every_loss
def test_dual_rises_at_every_single_update(loss, relaxation):
    problem = make_problem(loss, n=15, d=3)
    solver = zg.SDCA(relaxation=relaxation)
    state = solver.begin(problem, np.random.default_rng(0))
    dual = problem.dual(state.alpha)
    for _ in range(60):
        solver.advance(problem, state, 1)
        risen = problem.dual(solver.answer(problem, state)[2])
        assert risen >= dual - 1e-14
        dual = risen


def test_relaxed_steps_are_those_of_a_smaller_curvature():
    problem = make_problem("squared", n=15, d=3)
    exact, relaxed = (zg.SDCA("cyclic", relaxation=factor) for factor in (1.0, 1.6))
    states = [solver.begin(problem, np.random.default_rng(0)) for solver in (exact, relaxed)]
    for solver, state in zip((exact, relaxed), states, strict=True):
        solver.advance(problem, state, 1)
    i = int(np.flatnonzero(states[0].alpha)[0])
    q = problem.share[i] * problem.sqnorms[i] / problem.lam
    assert states[0].alpha[i] == pytest.approx(problem.y[i] / (1.0 + q), rel=1e-14)
    assert states[1].alpha[i] == pytest.approx(problem.y[i] / (1.0 + q / 1.6), rel=1e-14)


def test_recent_weights_are_the_better_of_the_last_and_an_average():
    problem = make_problem("hinge", n=60, d=20, lam=1e-3)
    solver = zg.SDCA(output="recent", shrink=False)
    state, ends, averaged = solver.begin(problem, np.random.default_rng(0)), [], 0
    for epoch in range(1, 41):
        solver.epoch(problem, state)
        ends.append(state.u.copy())
        average = np.zeros(20)
        for k, u in enumerate(ends[:-1], 1):  # the pass that has just ended is not in it yet
            average += 2.0 / (1 + min(k, 20)) * (u - average)
        w, _, alpha = solver.answer(problem, state)
        candidates = [problem.primal(ends[-1])] + ([problem.primal(average)] if epoch > 1 else [])
        assert problem.primal(w) == pytest.approx(min(candidates), rel=1e-13)
        np.testing.assert_array_equal(alpha, state.alpha)
        averaged += min(candidates) < candidates[0]
    assert 0 < averaged < 40, "sometimes the one, sometimes the other"


def test_elastic_net_equals_scikit_learn():
    X, y = make_data("squared", n=60, d=8)
    problem = zg.Problem(X, y, "squared", 0.1, fit_intercept=True, l1_ratio=0.6)
    result = zg.solve(problem, zg.SDCA(), tol=1e-13, max_epochs=50000, random_state=0)
    other = ElasticNet(alpha=0.1, l1_ratio=0.6, tol=1e-14, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(result.w, other.coef_, atol=1e-6)
    assert result.b == pytest.approx(other.intercept_, abs=1e-6)
    assert np.array_equal(result.w == 0, other.coef_ == 0)

    X, y = make_data("logistic", n=60, d=8)
    problem = zg.Problem(X, y, "logistic", 1 / (0.5 * 60), fit_intercept=True, l1_ratio=0.5)
    result = zg.solve(problem, zg.SDCA(), tol=1e-13, max_epochs=50000, random_state=0)
    saga = LogisticRegression(solver="saga", l1_ratio=0.5, C=0.5, tol=1e-12, max_iter=10**6).fit(
        X, y
    )
    np.testing.assert_allclose(result.w, saga.coef_[0], atol=1e-6)
    assert result.b == pytest.approx(saga.intercept_[0], abs=1e-6)


@every_loss
def test_weights_equal_repeated_rows(loss):
    X, y = make_data(loss)
    s = np.random.default_rng(1).integers(0, 4, len(y))
    options = {"tol": 1e-11, "max_epochs": 50000, "random_state": 0}
    weighted = zg.solve(zg.Problem(X, y, loss, 0.1, s, True), zg.SDCA(), **options)
    repeated = zg.Problem(np.repeat(X, s, axis=0), np.repeat(y, s), loss, 0.1, None, True)
    other = zg.solve(repeated, zg.SDCA(), **options)
    assert weighted.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-9)
    np.testing.assert_allclose(weighted.w, other.w, atol=1e-4)


@pytest.mark.parametrize("sampling", ["permutation", "random", "cyclic"])
@pytest.mark.parametrize("start", [None, "sgd"])
@pytest.mark.parametrize("output", ["last", "average", "random", "best"])
def test_every_option_converges_and_keeps_its_promise(sampling, start, output):
    problem = make_problem("smooth-hinge", weighted=True, intercept=start is None)
    solver = zg.SDCA(sampling, output, t0=None, start=start)
    result = zg.solve(problem, solver, tol=1e-6, max_epochs=4000, random_state=0)
    assert result.stop_reason == "converged"
    best = zg.solve(problem, zg.SDCA(), tol=1e-9, max_epochs=4000, random_state=1)
    assert result.certificate.primal == pytest.approx(best.certificate.primal, rel=2e-6)


@pytest.mark.parametrize("output", ["average", "random", "best", "recent"])
def test_output_rules_change_the_answer_never_the_path(output):
    problem = make_problem("hinge", n=30)
    states = []
    for solver in (zg.SDCA(), zg.SDCA(output=output, t0=45)):
        state = solver.begin(problem, np.random.default_rng(3))
        for _ in range(4):
            solver.epoch(problem, state)
        states.append(state)
    np.testing.assert_array_equal(states[0].alpha, states[1].alpha)
    np.testing.assert_array_equal(states[0].u, states[1].u)


@pytest.mark.parametrize("sampling", ["permutation", "random", "cyclic"])
@pytest.mark.parametrize("start", [None, "sgd"])
def test_average_is_the_plain_mean_of_the_iterates(sampling, start):
    """The mean of alpha^(t-1) for t = t0 + 1 .. T, computed outside from single updates."""
    problem = make_problem("logistic", n=20)
    t0, end = 27, 90
    solver = zg.SDCA(sampling, "average", t0=t0, start=start)
    last = zg.SDCA(sampling, start=start)
    plain = last.begin(problem, np.random.default_rng(5))
    iterates = []
    for _ in range(end):
        iterates.append(last.answer(problem, plain)[2].copy())
        last.advance(problem, plain, 1)
    state = solver.begin(problem, np.random.default_rng(5))
    state.t0 = t0
    solver.advance(problem, state, end)
    w, _, alpha = solver.answer(problem, state)
    expected = np.mean(iterates[t0:], axis=0)
    np.testing.assert_allclose(alpha, expected, atol=1e-13)
    np.testing.assert_allclose(w, problem.weights(expected), atol=1e-12)


def test_random_output_is_uniform_over_the_iterates_after_t0():
    problem = make_problem("logistic", n=10)
    t0, end = 15, 25
    last = zg.SDCA()
    plain = last.begin(problem, np.random.default_rng(5))
    iterates = []
    for _ in range(end):
        last.advance(problem, plain, 1)
        iterates.append(last.answer(problem, plain)[2].copy())
    counts = np.zeros(end - t0)
    solver = zg.SDCA(output="random", t0=t0)
    draws = 2000
    for seed in range(draws):
        state = solver.begin(problem, np.random.default_rng(5))
        state.t0, state.draw = t0, np.random.default_rng(1000 + seed)
        solver.advance(problem, state, end)
        alpha = solver.answer(problem, state)[2]
        (match,) = [k for k in range(t0, end) if np.array_equal(iterates[k], alpha)]
        counts[match - t0] += 1
    expected = draws / len(counts)
    assert np.sum((counts - expected) ** 2 / expected) < 27.9  # chi-square, 9 degrees, p = 0.001


def test_modified_sgd_epoch_is_the_paper_s():
    """Row t solves the t-row problem from w^(t-1), and after n rows w is w(alpha)."""
    problem = make_problem("hinge", n=25)
    solver = zg.SDCA(start="sgd")
    state = solver.begin(problem, np.random.default_rng(0))
    solver.epoch(problem, state)
    X = problem.rows.X
    w, alpha = np.zeros(5), np.zeros(25)
    for t, i in enumerate(state.order, start=1):
        q = problem.sqnorms[i] / (problem.lam * t)
        alpha[i] = problem.loss.dual_step(0.0, problem.y[i], X[i] @ w, q)
        w = ((t - 1) / t) * w + alpha[i] * X[i] / (problem.lam * t)
    np.testing.assert_allclose(state.alpha, alpha, atol=1e-12)
    np.testing.assert_allclose(state.u, w, atol=1e-12)
    np.testing.assert_allclose(state.u, problem.weights(alpha), atol=1e-12)


@pytest.mark.parametrize("sampling", ["permutation", "cyclic"])
def test_layout_changes_speed_never_bits(sampling, monkeypatch):
    """With and without room for the shuffled copy the visits, and so the result, are the same."""
    problem = make_problem("hinge", "csr", n=100)
    results = []
    for free in (math.inf, 0.0):
        monkeypatch.setattr("zerogap.solvers.sdca.free_memory", lambda free=free: free)
        solver = zg.SDCA(sampling, layout="shuffled")
        results.append(zg.solve(problem, solver, tol=1e-8, max_epochs=5000, random_state=0))
        state = solver.begin(problem, np.random.default_rng(0))
        assert state.copied == (free > 0)
    np.testing.assert_array_equal(results[0].w, results[1].w)
    np.testing.assert_array_equal(results[0].alpha, results[1].alpha)
    assert results[0].certificate.relative_gap <= 1e-8


def test_large_data_are_shuffled_by_themselves():
    X = np.random.default_rng(0).standard_normal((10_000, 210))
    problem = zg.Problem(X, np.sign(X[:, 0]), "hinge")
    state = zg.SDCA().begin(problem, np.random.default_rng(0))
    assert len(state.layout) == 10_000
    assert len(zg.SDCA(layout="given").begin(problem, np.random.default_rng(0)).layout) == 0


@pytest.mark.parametrize("sampling", ["permutation", "random", "cyclic"])
def test_epochs_visit_rows_as_they_should(sampling):
    problem = make_problem("hinge", n=50)
    solver = zg.SDCA(sampling, shrink=False)
    state = solver.begin(problem, np.random.default_rng(0))
    orders = []
    for _ in range(3):
        solver.epoch(problem, state)
        orders.append(state.order.copy())
    permutation = [sorted(order) == list(range(50)) for order in orders]
    assert permutation == [sampling != "random"] * 3
    assert np.array_equal(orders[0], orders[1]) == (sampling == "cyclic")


def test_shrinking_visits_what_moved_then_all_rows_again():
    problem = make_problem("hinge", n=200)
    solver = zg.SDCA()
    state = solver.begin(problem, np.random.default_rng(0))
    sizes = []
    for _ in range(60):
        start = state.order, state.alpha.copy()
        solver.advance(problem, state, 1)
        while state.done < len(state.order):
            solver.advance(problem, state, 1)
        if len(state.order) < 200 and len(start[0]):
            assert set(state.order) <= set(start[0])
        moved = np.flatnonzero(state.alpha != start[1])
        assert set(moved) <= set(state.order)
        sizes.append(len(state.order))
    assert min(sizes) < 100
    full = np.flatnonzero(np.array(sizes) == 200)
    assert len(full) > 3
    assert np.diff(full).max() <= 21  # at most 20 passes between two over all rows


@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon-insensitive"])
@pytest.mark.parametrize("intercept", [False, True])
def test_shrinking_changes_the_path_not_the_optimum(loss, intercept):
    problem = make_problem(loss, n=150, intercept=intercept)
    ends = [
        zg.solve(problem, zg.SDCA(shrink=shrink), tol=1e-7, random_state=0)
        for shrink in (False, True)
    ]
    assert all(end.stop_reason == "converged" for end in ends)
    primals = [end.certificate.primal for end in ends]
    assert abs(primals[0] - primals[1]) <= 1e-7 * primals[0]


def test_dense_and_csr_take_the_same_path():
    paths = []
    for storage in ("dense", "csr"):
        problem = make_problem("logistic", storage, intercept=True)
        paths.append(zg.solve(problem, zg.SDCA(), tol=0, max_epochs=5, random_state=0).w)
    np.testing.assert_allclose(*paths, rtol=1e-12)


def test_all_zero_rows_need_no_epoch():
    for loss, y in (("hinge", [1, 1, 1, -1, -1]), ("absolute", [1.0, 2, 3, 4, 9])):
        problem = zg.Problem(np.zeros((5, 2)), y, loss, fit_intercept=True)
        result = zg.solve(problem, zg.SDCA(), tol=1e-12)
        assert result.certificate.epochs == 0
        assert not result.w.any()


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (zg.SDCA(sampling="perm"), "sampling must be one of"),
        (zg.SDCA(output="mean"), "output must be one of"),
        (zg.SDCA(start="pegasos"), "start must be one of"),
        (zg.SDCA(layout="random"), "layout must be one of"),
        (zg.SDCA(t0=-1), "t0 must be"),
        (zg.SDCA(relaxation=2.0), "relaxation must be at least 1 and below 2"),
        (zg.SDCA(relaxation=math.nan), "relaxation must be at least 1 and below 2"),
        (zg.SDCA(output="recent", finish=True), "finish=True needs output"),
    ],
)
def test_impossible_options_are_refused(solver, message):
    with pytest.raises(ValueError, match=message):
        zg.solve(make_problem("hinge"), solver)


def test_sgd_start_needs_l2():
    with pytest.raises(ValueError, match="L2 penalty only"):
        zg.solve(make_problem("hinge", l1_ratio=0.5), zg.SDCA(start="sgd"))

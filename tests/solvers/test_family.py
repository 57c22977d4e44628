"""Every solver of the family: the paper's iterates, the output rules, a valid certificate."""

import math

import numpy as np
import pytest

import zerogap as zg
from problems import make_data, make_problem
from zerogap.losses import LOSSES
from zerogap.solvers import SOLVERS as ALL_SOLVERS
from zerogap.solvers.protocol import OUTPUTS

SOLVERS = {name: ALL_SOLVERS[name] for name in ("sdca", "asdca", "pegasos", "sgd", "gd")}
SMOOTH = [name for name, cls in LOSSES.items() if math.isfinite(cls().smoothness)]
LIPSCHITZ = [name for name, cls in LOSSES.items() if math.isfinite(cls().lipschitz)]
ACCEPTED = {
    "sdca": list(LOSSES),
    "asdca": SMOOTH,
    "pegasos": LIPSCHITZ,
    "sgd": list(LOSSES),
    "gd": list(LOSSES),
}
PAIRS = [(solver, loss) for solver, losses in ACCEPTED.items() for loss in losses]
MINI = {
    "asdca": {"batch_size": 7},
    "pegasos": {"batch_size": 7},
    "sgd": {"batch_size": 7, "schedule": "inverse"},
}


def solver_of(name, **options):
    return SOLVERS[name](**{**MINI.get(name, {}), **options})


@pytest.mark.parametrize(("name", "loss"), PAIRS)
@pytest.mark.parametrize("intercept", [False, True])
def test_every_solver_approaches_the_optimum_with_a_valid_gap(name, loss, intercept):
    problem = make_problem(loss, weighted=True, intercept=intercept, lam=0.1)
    best = zg.solve(problem, zg.SDCA(), tol=1e-10, max_epochs=20000, random_state=0).certificate
    run = zg.solve(
        problem, solver_of(name), tol=1e-6, max_epochs=300, record="epoch", random_state=0
    )
    above = run.history["primal"] - best.primal
    assert np.all(run.history["gap"] >= above - 1e-9 * best.primal), "never below the true distance"
    assert np.all(run.history["dual"] <= best.primal * (1 + 1e-9))
    assert above[-1] <= 0.02 * best.primal
    again = problem.certificate(run.w, run.b, run.alpha)
    assert again.gap <= run.certificate.gap * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize(("name", "loss"), PAIRS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_runs_is_deterministic_and_agrees_dense_and_sparse(name, loss, output):
    options = {"tol": 0.0, "max_epochs": 5, "record": "epoch", "random_state": 3}
    solver = solver_of(name, output=output, t0=2)
    answers = []
    for storage in ("dense", "csr"):
        problem = make_problem(loss, storage, np.float32, True, True)
        run, again = (zg.solve(problem, solver, **options) for _ in range(2))
        np.testing.assert_array_equal(run.w, again.w)
        assert problem.dual(run.alpha) <= problem.primal(run.w, run.b)
        assert run.certificate.gap >= problem.primal(run.w, run.b) - problem.dual(run.alpha) - 1e-9
        answers.append(run.w)
    np.testing.assert_allclose(*answers, rtol=1e-8, atol=1e-10)


def iterates(problem, solver, count, seed=5):
    """The iterate before each of `count` updates, made one at a time."""
    state = solver.begin(problem, np.random.default_rng(seed))
    found = []
    for _ in range(count + 1):
        w, b, alpha = solver.answer(problem, state)
        found.append((w.copy(), b, alpha.copy()))
        solver.advance(problem, state, 1)
    return found


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("output", ["average", "weighted-average"])
def test_averages_are_those_of_the_iterates(name, output):
    problem = make_problem("logistic", n=23, lam=0.05, weighted=True)
    t0, end = 9, 31
    found = iterates(problem, solver_of(name), end)[t0:end]
    weights = np.arange(1, end - t0 + 1) if output == "weighted-average" else None
    solver = solver_of(name, output=output, t0=t0)
    state = solver.begin(problem, np.random.default_rng(5))
    state.t0 = t0
    solver.advance(problem, state, end)
    w, _, alpha = solver.answer(problem, state)
    np.testing.assert_allclose(
        w, np.average([f[0] for f in found], axis=0, weights=weights), atol=1e-11
    )
    np.testing.assert_allclose(
        alpha, np.average([f[2] for f in found], axis=0, weights=weights), atol=1e-10
    )


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("output", OUTPUTS[1:])
def test_outputs_never_change_the_path(name, output):
    problem = make_problem("logistic", n=23, intercept=True)
    last = solver_of(name)
    plain = last.begin(problem, np.random.default_rng(1))
    last.advance(problem, plain, 17)
    solver = solver_of(name, output=output, t0=4)
    state = solver.begin(problem, np.random.default_rng(1))
    state.t0 = 4
    solver.advance(problem, state, 17)
    final = SOLVERS[name].answer(last, problem, state)
    np.testing.assert_allclose(final[0], last.answer(problem, plain)[0], rtol=1e-12)


@pytest.mark.parametrize("name", SOLVERS)
def test_random_output_is_one_of_the_iterates(name):
    problem = make_problem("logistic", n=23)
    found = iterates(problem, solver_of(name), 30)[10:31]
    seen = set()
    for seed in range(40):
        solver = solver_of(name, output="random", t0=9)
        state = solver.begin(problem, np.random.default_rng(5))
        state.t0, state.draw = 9, np.random.default_rng(seed)
        solver.advance(problem, state, 30)
        w, _, alpha = solver.answer(problem, state)
        same = [k for k, f in enumerate(found) if np.allclose(f[0], w, rtol=0, atol=1e-14)]
        same = [k for k in same if np.allclose(found[k][2], alpha, rtol=0, atol=1e-12)]
        assert same
        seen.update(same)
    assert len(seen) > 8


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("output", ["last", "weighted-average", "random"])
def test_resume_is_exact(name, output, tmp_path):
    problem, path = make_problem("logistic", intercept=True), tmp_path / "run.ckpt"
    solver = solver_of(name, output=output, t0=3)
    for epochs in (1, 2.3, 9, 20):
        pieces = zg.solve(
            problem, solver, tol=0.0, max_epochs=epochs, random_state=2, checkpoint=path
        )
    whole = zg.solve(problem, solver, tol=0.0, max_epochs=20, random_state=2)
    np.testing.assert_array_equal(pieces.w, whole.w)


@pytest.mark.parametrize("name", ["pegasos", "sgd", "gd"])
def test_the_dual_point_belongs_to_w(name):
    """w = w(alpha) at every step, without and with averaging, for methods that start at zero."""
    problem = make_problem("hinge", n=30, weighted=True)
    for output in ("last", "average", "weighted-average"):
        solver = solver_of(name, output=output, t0=2)
        state = solver.begin(problem, np.random.default_rng(0))
        state.t0 = 2
        for _ in range(20):
            solver.advance(problem, state, 1)
            w, _, alpha = solver.answer(problem, state)
            np.testing.assert_allclose(w, problem.weights(alpha), atol=1e-10)


# Pegasos


@pytest.mark.parametrize("sampling", ["random", "epochs"])
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("batch", [1, 6, 25])
def test_pegasos_is_the_paper_s(sampling, projection, batch):
    """Algorithm 1 of the paper in NumPy, on the batches that the solver drew."""
    problem = make_problem("hinge", n=25, lam=0.02)
    X, y, lam = problem.rows.X, problem.y, problem.lam
    solver = zg.Pegasos(batch, projection, sampling)
    state = solver.begin(problem, np.random.default_rng(0))
    w, t = np.zeros(5), 0
    for _ in range(4):
        solver.epoch(problem, state)
        for start in range(0, len(state.order), batch):
            members = state.order[start : start + batch]
            t += 1
            violators = members[y[members] * (X[members] @ w) < 1]
            w = (1 - 1 / t) * w + (y[violators] @ X[violators]) / (lam * t * len(members))
            if projection:
                w = w * min(1.0, 1 / (math.sqrt(lam) * max(np.linalg.norm(w), 1e-300)))
        np.testing.assert_allclose(solver.answer(problem, state)[0], w, atol=1e-10)
        sizes = {len(state.order[s : s + batch]) for s in range(0, len(state.order), batch)}
        assert sizes == ({batch, 25 % batch} - {0} if sampling == "epochs" else {batch})


def test_pegasos_is_the_mean_of_its_violators():
    problem = make_problem("hinge", n=30, lam=0.02)
    solver = zg.Pegasos()
    state = solver.begin(problem, np.random.default_rng(0))
    total = np.zeros(5)
    for t in range(1, 91):
        w = solver.answer(problem, state)[0]
        solver.advance(problem, state, 1)
        i = state.order[(t - 1) % 30]
        if problem.y[i] * (problem.rows.X[i] @ w) < 1:
            total += problem.y[i] * problem.rows.X[i]
        np.testing.assert_allclose(
            solver.answer(problem, state)[0], total / (problem.lam * t), atol=1e-10
        )


def test_full_batches_are_deterministic():
    problem = make_problem("hinge", n=30)
    runs = [
        zg.solve(problem, zg.Pegasos(batch_size=30), tol=0.0, max_epochs=50, random_state=s)
        for s in (1, 2)
    ]
    np.testing.assert_allclose(runs[0].w, runs[1].w, rtol=1e-9)


@pytest.mark.parametrize("size", [2, 5, 9, 30])
def test_random_batches_are_uniform_subsets(size):
    rng = np.random.default_rng(0)
    solver = zg.Pegasos(batch_size=size)
    counts = np.zeros(30)
    for _ in range(400):
        order = solver._order(30, rng).reshape(-1, size)
        assert all(len(set(batch)) == size for batch in order)
        counts += np.bincount(order.ravel(), minlength=30)
    expected = counts.sum() / 30
    assert np.abs(counts / expected - 1).max() < 0.25


def test_pegasos_forgets_its_start_inside_the_ball():
    problem = make_problem("hinge", n=30, lam=0.04)
    w = np.array([3.0, 0, 0, 0, 0])
    solver = zg.Pegasos(projection=True, sampling="epochs")
    state = solver.begin(problem, np.random.default_rng(0), (w, 0.0, None))
    np.testing.assert_array_equal(solver.answer(problem, state)[0], w)
    solver.advance(problem, state, 1)
    i = state.order[0]
    violated = problem.y[i] * (problem.rows.X[i] @ w) < 1
    expected = violated * problem.y[i] * problem.rows.X[i] / problem.lam
    expected *= min(1.0, 5.0 / max(np.linalg.norm(expected), 1e-300))
    np.testing.assert_allclose(solver.answer(problem, state)[0], expected, atol=1e-12)
    with pytest.raises(ValueError, match="must start in the ball"):
        solver.begin(problem, np.random.default_rng(0), (2 * w, 0.0, None))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("batch", [1, 10])
def test_pegasos_theorems_hold_along_real_runs(seed, projection, batch):
    """Average and random iterate stay below c (1 + ln T) / (2 lam T), in the mean over 40 runs.

    c = (sqrt(lam) + R)^2 bounds the squared sub-gradients with projection, 4 R^2 without.
    """
    X, y, _ = zg.datasets.make_simulated(120, 6, noise=0.5 + seed, random_state=seed)
    X = X / np.linalg.norm(X, axis=1).max()
    lam, T = 0.05, 240
    problem = zg.Problem(X, y, "hinge", lam)
    optimum = zg.solve(
        problem, zg.SDCA(), tol=1e-10, max_epochs=50000, random_state=0
    ).certificate.dual
    c = (math.sqrt(lam) + 1.0) ** 2 if projection else 4.0
    bound = c * (1 + math.log(T)) / (2 * lam * T)
    for output in ("average", "random"):
        above = []
        for s in range(40):
            solver = zg.Pegasos(batch, projection, output=output, t0=0)
            run = zg.solve(
                problem, solver, tol=0.0, max_examples=T * batch, record=T, random_state=s
            )
            assert run.history["updates"][-1] == T
            above.append(run.certificate.primal - optimum)
        assert 0 <= np.mean(above) <= bound


# SGD and GD


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("schedule", ["constant", "sqrt", "inverse"])
def test_sgd_is_sgd_and_its_estimate_the_mean_of_batch_objectives(loss, schedule):
    problem = make_problem(loss, n=25, lam=0.05, weighted=True)
    X, y, lam, step, batch = problem.rows.X, problem.y, problem.lam, 0.1, 4
    solver = zg.SGD(batch, step, schedule)
    state = solver.begin(problem, np.random.default_rng(0))
    w, t = np.zeros(5), 0
    phi = problem.loss
    for _ in range(3):
        solver.epoch(problem, state)
        values = []
        for start in range(0, 25, batch):
            members = state.order[start : start + batch]
            t += 1
            eta = {
                "constant": step,
                "sqrt": step / math.sqrt(t),
                "inverse": step / (1 + lam * step * (t - 1)),
            }
            weights = 25 * problem.share[members] / len(members)
            z = X[members] @ w
            values.append(
                weights @ [phi.value(a, b) for a, b in zip(z, y[members], strict=True)]
                + lam / 2 * w @ w
            )
            slopes = weights * [phi.derivative(a, b) for a, b in zip(z, y[members], strict=True)]
            w = w - eta[schedule] * (slopes @ X[members] + lam * w)
        np.testing.assert_allclose(solver.answer(problem, state)[0], w, atol=1e-11)
        assert solver.extras(problem, state)["estimate"] == pytest.approx(np.mean(values), rel=1e-9)


@pytest.mark.parametrize("loss", SMOOTH)
def test_gd_follows_the_gradient_and_descends(loss):
    problem = make_problem(loss, intercept=True, weighted=True)
    solver = zg.GD(step=0.05)
    state = solver.begin(problem, np.random.default_rng(0))
    for _ in range(5):
        w, b, _ = solver.answer(problem, state)
        solver.advance(problem, state, 1)
        gradient = problem.gradient(w, b)
        after = solver.answer(problem, state)
        np.testing.assert_allclose(after[0], w - 0.05 * gradient[:-1], atol=1e-12)
        assert after[1] == pytest.approx(b - 0.05 * gradient[-1])
    run = zg.solve(problem, zg.GD(), tol=1e-8, max_epochs=5000, random_state=0)
    assert run.stop_reason == "converged"
    assert np.all(np.diff(run.history["primal"]) <= 1e-12), "1 / L never climbs"
    assert run.history["estimate"][-1] >= run.certificate.primal


# ASDCA


def test_asdca_is_the_paper_s():
    """The procedure with dual vectors alpha_i in R^d, as printed, against our scalars."""
    problem = make_problem("smooth-hinge", n=24, lam=0.05)
    X, lam, n, m, theta = problem.rows.X, problem.lam, 24, 6, 0.2
    solver = zg.ASDCA(m, theta)
    state = solver.begin(problem, np.random.default_rng(0))
    alphas, w = np.zeros((n, 5)), np.zeros(5)
    for _ in range(3):
        solver.epoch(problem, state)
        for start in range(0, n, m):
            u = (1 - theta) * w + theta / lam * alphas.mean(axis=0)
            for i in state.order[start : start + m]:
                slope = problem.loss.derivative(X[i] @ u, problem.y[i])
                alphas[i] = (1 - theta) * alphas[i] - theta * slope * X[i]
            w = (1 - theta) * w + theta / lam * alphas.mean(axis=0)
        np.testing.assert_allclose(solver.answer(problem, state)[0], w, atol=1e-12)


def wide_problem(loss="smooth-hinge"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 800))
    y = np.sign(X[:, 0] + rng.standard_normal(60))
    return zg.Problem(X, y, loss, 1e-3)


def test_asdca_keeps_the_theory_s_rate_where_a_larger_theta_diverges():
    """m (P - P*) + n (D* - D) shrinks by 1 - theta m / n per step, in the mean over runs."""
    problem, m = wide_problem(), 8
    n = problem.shape[0]
    best = zg.solve(problem, zg.SDCA(), tol=1e-13, max_epochs=50000, random_state=0).certificate
    solver = zg.ASDCA(m)
    theta = solver.begin(problem, np.random.default_rng(0)).theta
    g = problem.lam * n / problem.sqnorms.max()
    assert theta == pytest.approx(0.25 * min(1, math.sqrt(g / m), g, g ** (2 / 3) / m ** (1 / 3)))
    start = m * (1.0 - best.primal) * 0.5 + n * best.primal  # P(0) = 1/2 for gamma = 1, D(0) = 0
    epochs = 400
    steps = epochs * solver.epoch_length(problem)
    left = []
    for seed in range(10):
        run = zg.solve(problem, solver, tol=0.0, max_epochs=epochs, record=steps, random_state=seed)
        dual = problem.dual(problem.feasible(run.alpha))
        left.append(m * (run.certificate.primal - best.dual) + n * (best.primal - dual))
    assert np.mean(left) <= start * (1 - theta * m / n) ** steps + 1e-9
    bold = zg.solve(problem, zg.ASDCA(m, theta=0.9), tol=0.0, max_epochs=50, random_state=0)
    assert bold.certificate.primal > 10 * best.primal


def test_asdca_reports_the_hinge_beside_its_own_objective():
    problem = wide_problem()
    run = zg.solve(
        problem, zg.ASDCA(8, report_hinge=True), tol=1e-3, max_epochs=3000, random_state=0
    )
    hinge = zg.Problem(problem.rows, problem.y, "hinge", problem.lam)
    assert run.history["hinge_primal"][-1] == pytest.approx(hinge.primal(run.w))
    difference = run.history["hinge_primal"] - run.history["primal"]
    assert np.all((difference >= -1e-12) & (difference <= 0.5 + 1e-12)), (
        "0 <= P_hinge - P_smooth <= gamma / 2"
    )


# Errors


@pytest.mark.parametrize(
    ("solver", "loss", "message"),
    [
        (zg.ASDCA(theta=0.0), "logistic", r"theta must be in \(0, 1\]"),
        (zg.ASDCA(theta=1.5), "logistic", r"theta must be in \(0, 1\]"),
        (zg.ASDCA(gamma=-1), "logistic", "gamma must be positive"),
        (zg.ASDCA(batch_size=41), "logistic", "batch_size must be a whole number from 1 to the 40"),
        (zg.ASDCA(), "hinge", "needs a smooth loss, Hinge.. has a kink"),
        (zg.ASDCA(report_hinge=True), "squared", "report_hinge needs a classification loss"),
        (zg.Pegasos(batch_size=0), "hinge", "batch_size must be"),
        (zg.Pegasos(batch_size=2.5), "hinge", "batch_size must be"),
        (zg.Pegasos(sampling="cyclic"), "hinge", "sampling must be one of"),
        (zg.Pegasos(projection="yes"), "hinge", "projection must be one of"),
        (zg.Pegasos(projection=True), "absolute", "projection has no meaning for regression"),
        (zg.Pegasos(), "squared", "needs a Lipschitz loss"),
        (zg.SGD(step=0.0), "hinge", r"step must be in \(0, 1 / lam"),
        (zg.SGD(step=1e9), "hinge", r"step must be in \(0, 1 / lam"),
        (zg.SGD(schedule="linear"), "hinge", "schedule must be one of"),
        (zg.SGD(output="mean"), "hinge", "output must be one of"),
        (zg.SGD(t0=1.5), "hinge", "t0 must be"),
        (zg.GD(step=-1.0), "hinge", r"step must be in \(0, 1 / lam"),
    ],
    ids=repr,
)
def test_impossible_options_are_refused(solver, loss, message):
    with pytest.raises(ValueError, match=message):
        zg.solve(make_problem(loss), solver)


@pytest.mark.parametrize("name", ["asdca", "pegasos", "sgd", "gd"])
def test_elastic_net_is_for_sdca(name):
    with pytest.raises(ValueError, match="made for the L2 penalty"):
        zg.solve(
            make_problem("logistic", l1_ratio=0.5),
            SOLVERS[name](batch_size=2) if name != "gd" else zg.GD(),
        )


@pytest.mark.parametrize("name", SOLVERS)
def test_estimators_take_every_solver_by_name(name):
    X, y = make_data("logistic", n=60)
    clf = zg.LinearClassifier("logistic", solver=name, tol=0.05, random_state=0).fit(X, y)
    assert clf.certificate_.relative_gap <= 0.05
    assert clf.score(X, y) > 0.8


@pytest.mark.parametrize("name", SOLVERS)
def test_solve_averages_from_the_t0_it_was_given(name):
    """An explicit t0, and half of the budget by default."""
    problem = make_problem("logistic", n=23, lam=0.05)
    length = solver_of(name).epoch_length(problem)
    budget = 10 * length
    found = iterates(problem, solver_of(name), budget, seed=4)
    for t0 in (3, None):
        start = budget // 2 if t0 is None else t0
        solver = solver_of(name, output="average", t0=t0)
        run = zg.solve(problem, solver, tol=0.0, max_epochs=10, random_state=4)
        mean = np.mean([f[0] for f in found[start:budget]], axis=0)
        np.testing.assert_allclose(run.w, mean, atol=1e-10)

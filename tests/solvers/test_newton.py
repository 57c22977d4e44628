"""Newton's method and the solver that chooses: two roads to the same optimum, at any accuracy."""

import itertools
import math
import re
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

import zerogap as zg
from problems import make_data, make_problem
from zerogap.losses import LOSSES
from zerogap.solvers import auto, hessian
from zerogap.solvers import costs as auto_costs

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_solver = pytest.mark.parametrize("solver", [zg.Newton(), zg.Auto()], ids=repr)


def optimum(problem):
    return zg.solve(problem, zg.SDCA(), tol=1e-11, max_epochs=50_000, random_state=0).certificate


@every_solver
@every_loss
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_same_optimum_as_coordinate_ascent(solver, loss, storage, weighted, intercept):
    problem = make_problem(loss, storage, weighted=weighted, intercept=intercept)
    best = optimum(problem)
    run = zg.solve(problem, solver, tol=1e-10, max_epochs=200, record="epoch", random_state=0)
    assert run.stop_reason == "converged"
    assert run.certificate.primal == pytest.approx(best.primal, rel=1e-9)
    above = run.history["primal"] - best.dual
    assert np.all(run.history["gap"] >= above - 1e-9 * best.primal), "never below the true distance"


@every_loss
def test_ill_conditioned_data_need_few_steps(loss):
    """Columns of scales 1 to 10^4, hardly any regularisation: hopeless for first-order methods."""
    X, y = make_data(loss, n=300, d=12)
    scales = np.logspace(0, 4, 12)
    problem = zg.Problem(X * scales, y, loss, lam=1e-7)
    run = zg.solve(problem, zg.Newton(), tol=1e-7, max_epochs=150, random_state=0)
    assert run.certificate.relative_gap <= 1e-7
    slow = zg.solve(problem, zg.SDCA(), tol=1e-7, max_epochs=150, random_state=0)
    assert slow.certificate.relative_gap > 1e-7


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared-hinge"])
@pytest.mark.parametrize("intercept", [False, True])
def test_sampled_factorised_and_diagonal_hessians_lead_to_one_optimum(loss, intercept, monkeypatch):
    problem = make_problem(loss, "csr", n=700, d=9, intercept=intercept, lam=1e-3)
    values = []
    for direct, passes in ((3000, 4), (3000, 0), (5, 4)):
        monkeypatch.setattr(hessian, "DIRECT", direct)
        monkeypatch.setattr(hessian, "MOST_PASSES", passes)
        run = zg.solve(problem, zg.Newton(), tol=1e-9, max_epochs=200, random_state=0)
        assert run.stop_reason == "converged"
        values.append(run.certificate.primal)
    np.testing.assert_allclose(values, values[0], rtol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_products_and_directions_are_those_of_the_matrix(intercept):
    problem = make_problem("logistic", "csr", n=60, d=6, intercept=intercept, lam=0.01)
    rng = np.random.default_rng(0)
    h = rng.random(60) * (rng.random(60) < 0.5)
    X = np.hstack([problem.rows.product(np.eye(6)), np.ones((60, int(intercept)))])
    matrix = X.T @ (h[:, None] * X)
    matrix[np.arange(6), np.arange(6)] += 0.01
    of = hessian.Hessian(problem, h)
    v = rng.standard_normal(6 + intercept)
    np.testing.assert_allclose(of @ v, matrix @ v, rtol=1e-7)
    direction, products, factor = of.solve(v, rng)
    assert (products, factor) == (0, 1)
    np.testing.assert_allclose(matrix @ direction, v, atol=1e-6)


def test_samples_grow_while_directions_take_many_products(monkeypatch):
    monkeypatch.setattr(hessian, "MOST_PASSES", 0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 40)) * np.logspace(0, -3, 40)
    X[rng.random(4000) < 0.02] *= 100.0  # rows that few samples have
    problem = zg.Problem(X, np.sign(X @ rng.standard_normal(40)), "logistic", lam=1e-8)
    of, target = hessian.Hessian(problem, np.full(4000, 1 / 4000)), rng.standard_normal(40)
    factors, counts = [1], []
    while len(factors) < 8:
        direction, products, factor = of.solve(target, rng, factors[-1])
        assert direction @ (of @ direction) < 2.0 * (direction @ target)  # a step down
        factors.append(factor)
        counts.append(products)
    assert factors[1] == 2
    assert factors[-1] == factors[-2]
    assert counts[-1] < counts[0]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_ridge_regression_takes_one_step(storage, intercept):
    X, y = make_data("squared", n=20_000, d=20, storage=storage)
    problem = zg.Problem(X, y, "squared", lam=1e-6, fit_intercept=intercept)
    run = zg.solve(problem, zg.Newton(), tol=1e-13, random_state=0)
    assert (run.stop_reason, run.certificate.epochs) == ("converged", 1)


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e12])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared-hinge"])
def test_hessians_in_single_precision_lead_to_the_same_optimum(loss, scale, monkeypatch):
    """Columns of scales 1 to 10^-4: far below what single precision tells apart in a Hessian."""
    X, y = make_data(loss, n=2000, d=40)
    X *= scale * np.logspace(0, -4, 40)
    problem = zg.Problem(X, y, loss, lam=1e-9 * scale**2)
    of = hessian.Hessian(problem, problem.share)
    monkeypatch.setattr(hessian, "SINGLE_FEATURES", 40)
    monkeypatch.setattr(hessian, "SINGLE_FEATURES_OF_PARABOLA", 40)
    monkeypatch.setattr(hessian, "SINGLE_WORK", 0.0)
    rough = hessian.Hessian(problem, problem.share)
    assert (of.rough, rough.rough) == (False, True)
    target = X.T @ y / 2000
    exact, near = (solver.inverse()(target) for solver in (of, rough))
    np.testing.assert_array_equal(near, exact)  # interior point methods count on it
    direction, products, _ = rough.solve(target, np.random.default_rng(0))
    assert 0 < products <= 30
    distance = direction - exact
    assert distance @ (of @ distance) <= 0.1 * (exact @ (of @ exact))
    run = zg.solve(problem, zg.Newton(), tol=1e-9, max_epochs=60, random_state=0)
    assert run.stop_reason == "converged"


@pytest.mark.parametrize("scale", [1e-30, 1e25])
def test_hessians_that_single_precision_has_no_room_for_are_in_double(scale, monkeypatch):
    monkeypatch.setattr(hessian, "SINGLE_FEATURES", 5)
    monkeypatch.setattr(hessian, "SINGLE_WORK", 0.0)
    X, y = make_data("logistic", n=300)
    problem = zg.Problem(X * scale, y, "logistic", lam=1e-3 * scale**2)
    assert not hessian.Hessian(problem, problem.share).rough
    run = zg.solve(problem, zg.Newton(), tol=1e-9, random_state=0)
    assert run.stop_reason == "converged"


def test_a_row_far_larger_than_the_others_keeps_hessians_in_double(monkeypatch):
    monkeypatch.setattr(hessian, "SINGLE_FEATURES", 5)
    monkeypatch.setattr(hessian, "SINGLE_WORK", 0.0)
    X, y = make_data("logistic", n=3000, d=80)
    X[0] *= 1e12
    problem = zg.Problem(X, y, "logistic", lam=1e-4, fit_intercept=True)
    run = zg.solve(problem, zg.Newton(), tol=1e-6, max_epochs=40, random_state=0)
    assert run.stop_reason == "converged"


def test_rows_that_cannot_move_are_left_out_and_nothing_changes():
    """Late in a run most rows are far from their kinks: the steps are over the others only."""
    X, y = make_data("hinge", n=3000, d=4)
    problem = zg.Problem(X, y, "hinge", lam=1e-5)
    solver = zg.Newton()
    state = solver.begin(problem, np.random.default_rng(0))
    sizes = []
    for _ in range(40):
        solver.advance(problem, state, 1)
        w, b, alpha = solver.answer(problem, state)
        proof = problem.certificate(w, b, alpha)
        inside = np.linalg.norm(np.append(w, b) - state.at) <= state.radius
        if inside:  # the solver's own bookkeeping is then exact
            own = solver.relative_gap(problem, state) * state.value
            assert own == pytest.approx(proof.gap, rel=1e-6, abs=1e-14 + proof.rounding)
            assert state.value <= problem.primal(w, b) * (1 + 1e-12)
        sizes.append(len(state.near))
    assert sizes[0] == 3000
    assert min(sizes) < 1000


@every_solver
def test_resume_is_exact(solver, tmp_path):
    for loss in ("hinge", "logistic"):
        problem, path = make_problem(loss, n=80, intercept=True, lam=1e-4), tmp_path / loss
        # Auto keeps the best of all certified models: those of both runs must be the same
        options = {"tol": 0.0, "random_state": 2, "record": "epoch"}
        for epochs in (1, 2, 7, 12):
            pieces = zg.solve(problem, solver, max_epochs=epochs, checkpoint=path, **options)
        whole = zg.solve(problem, solver, max_epochs=12, **options)
        np.testing.assert_array_equal(pieces.w, whole.w)


@every_solver
def test_weights_equal_repetition(solver):
    X, y = make_data("hinge", n=50)
    times = np.random.default_rng(3).integers(0, 4, 50)
    twice = np.repeat(np.arange(50), times)
    kwargs = {"tol": 1e-10, "max_epochs": 300, "random_state": 0}
    weighted = zg.solve(zg.Problem(X, y, "hinge", 0.01, times), solver, **kwargs)
    repeated = zg.solve(zg.Problem(X[twice], y[twice], "hinge", 0.01), solver, **kwargs)
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-4)
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=1e-9)


@every_solver
def test_a_warm_start_at_the_optimum_is_certified_at_once(solver):
    problem = make_problem("hinge", n=80, intercept=True, lam=1e-3)
    first = zg.solve(problem, solver, tol=1e-8, random_state=0)
    again = zg.solve(problem, solver, tol=1e-8, warm_start=first, random_state=0)
    assert again.certificate.epochs == 0
    near = zg.Problem(*make_data("hinge", n=80), "hinge", 1.1e-3, fit_intercept=True)
    cold = zg.solve(near, zg.Newton(), tol=1e-8, random_state=0).certificate.epochs
    assert zg.solve(near, zg.Newton(), tol=1e-8, warm_start=first).certificate.epochs <= cold


@dataclass(frozen=True)
class Own(zg.losses.MarginLoss):
    """Hinge without a stiffness."""

    lipschitz = 1.0
    value, derivative = zg.Hinge.value, zg.Hinge.derivative
    conjugate, dual_step = zg.Hinge.conjugate, zg.Hinge.dual_step


def test_losses_that_newton_cannot_take():
    X, y = make_data("hinge")
    problem = zg.Problem(X, y, Own(), 0.1)
    with pytest.raises(ValueError, match=r"Own.* has no stiffness\(a, y\)"):
        zg.solve(problem, zg.Newton())
    assert zg.solve(problem, zg.Auto(), tol=1e-8, random_state=0).stop_reason == "converged"


@pytest.mark.parametrize("solver", [zg.Newton(), zg.InteriorPoint()], ids=repr)
def test_what_would_exceed_the_memory_is_refused_with_numbers(solver, monkeypatch):
    monkeypatch.setattr("zerogap.problem.places.free_memory", lambda: 1e3)
    with pytest.raises(ValueError, match=r"needs about .* GB beyond the data, but .* GB are free"):
        zg.solve(make_problem("hinge"), solver)


# The choice


def story(problem, **options):
    return zg.solve(problem, zg.Auto(), random_state=0, **options).certificate.solver


def test_auto_says_what_it_did():
    X, y = make_data("hinge", n=400, d=6)
    easy = zg.Problem(X, y, "hinge", lam=1.0)
    assert story(easy) == "SDCA, chosen automatically"
    hard = zg.Problem(X, y, "hinge", lam=1e-7)
    slow = "coordinate ascent would take thousands of epochs"
    assert story(hard, tol=1e-6) == f"InteriorPoint, chosen automatically: {slow}"
    for loss in ("hinge", "logistic"):
        tall = zg.Problem(*make_data(loss, n=20_000, d=6), loss, lam=1e-6)
        assert story(tall) == "Newton, chosen automatically: there are few features"
    net = zg.Problem(X, y, "hinge", lam=1e-3, l1_ratio=0.5)
    assert story(net, max_epochs=50, tol=1e-2) == "SDCA, chosen automatically"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("intercept", [False, True])
@every_loss
def test_wide_data_are_solved_on_their_inner_products(loss, intercept, dtype):
    X, y = make_data(loss, n=30, d=400, dtype=dtype)
    problem = zg.Problem(X, y, loss, lam=0.05, fit_intercept=intercept)
    run = zg.solve(problem, zg.Auto(), tol=1e-9, random_state=0)
    assert "on inner products" in run.certificate.solver
    assert run.stop_reason == "converged"
    assert run.certificate.primal == pytest.approx(optimum(problem).primal, rel=1e-8)
    assert len(run.history["epoch"]) <= (6 if intercept else 3), (
        "inner products tell when to read the features"
    )
    again = zg.solve(problem, zg.Auto(), tol=1e-9, random_state=0, warm_start=run)
    assert again.certificate.epochs == 0


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
def test_auto_makes_no_step_too_many_after_a_change(tol, monkeypatch):
    monkeypatch.setattr(auto_costs, "has_few_features", lambda problem: False)
    monkeypatch.setattr(auto_costs, "is_hopeless", lambda problem: False)
    costs = itertools.chain([math.inf] * 4, itertools.repeat(0.0))  # when certificates are rare
    monkeypatch.setattr(auto, "second_cost", lambda problem, decades: next(costs))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 300)) * np.logspace(0, -2, 300)
    y = np.sign(X @ rng.standard_normal(300) + 0.3 * rng.standard_normal(2000))
    problem = zg.Problem(X, y, "logistic", lam=1e-6)
    options = {"tol": tol, "random_state": 0}
    run = zg.solve(problem, zg.Auto(), **options)
    assert run.stop_reason == "converged"
    changed = float(re.search(r"SDCA for (\d+) epochs, then Newton", run.certificate.solver)[1])
    costs = itertools.chain([math.inf] * 4, itertools.repeat(0.0))
    fewer = zg.solve(problem, zg.Auto(), max_epochs=run.certificate.epochs - 1, **options)
    assert fewer.stop_reason == "max_epochs"
    assert fewer.certificate.relative_gap > tol
    assert run.certificate.epochs - changed > 1


def test_auto_gives_up_coordinate_ascent_on_rows_that_are_alike():
    """Some rows are decided, but most move forever: steps on free variables are never made."""
    rng = np.random.default_rng(0)
    some = sparse.random(100, 3100, 0.01, format="csr", random_state=1)
    X = sparse.vstack([some] * 12).tocsr()
    X.data *= 1.0 + 1e-3 * rng.standard_normal(len(X.data))
    y = np.where(X @ rng.standard_normal(3100) + 0.05 * rng.standard_normal(1200) > 0, 1.0, -1.0)
    problem = zg.Problem(X, y, "squared-hinge", lam=1.0 / (100 * 1200))
    run = zg.solve(problem, zg.Auto(), tol=1e-4, random_state=0, max_epochs=300)
    assert run.stop_reason == "converged"


def test_auto_is_deterministic():
    problem = make_problem("hinge", n=200, lam=1e-5)
    runs = [zg.solve(problem, zg.Auto(), tol=1e-9, random_state=7) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert runs[0].certificate.solver == runs[1].certificate.solver


def test_estimators_say_what_was_chosen():
    X, y = make_data("hinge", n=200)
    clf = zg.LinearClassifier(lam=1e-6, tol=1e-6, random_state=0).fit(X, y)
    assert "InteriorPoint" in clf.certificate_.solver
    text = sparse.random(300, 2000, density=0.02, format="csr", random_state=0)
    target = np.where(np.arange(300) % 2, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = zg.LinearClassifier(random_state=0).fit(text, target)
    assert clf.certificate_.solver == "SDCA, chosen automatically"
    assert math.isfinite(clf.certificate_.gap)


def test_a_rough_hessian_of_a_parabola_that_takes_long_to_mend_is_made_anew(monkeypatch):
    monkeypatch.setattr(hessian, "SINGLE_FEATURES", 40)
    monkeypatch.setattr(hessian, "SINGLE_FEATURES_OF_PARABOLA", 40)
    monkeypatch.setattr(hessian, "SINGLE_WORK", 0.0)
    monkeypatch.setattr(hessian, "MENDING_PRODUCTS", 0)
    X, y = make_data("squared", n=2000, d=40)
    X *= np.logspace(0, -4, 40)  # beyond what single precision resolves
    problem = zg.Problem(X, y, "squared", lam=1e-9)
    of = hessian.Hessian(problem, problem.share)
    assert of.rough
    target = X.T @ y / 2000
    direction, _, _ = of.solve(target, np.random.default_rng(0))
    assert not of.rough
    exact = np.linalg.solve(X.T @ X / 2000 + 1e-9 * np.eye(40), target)
    assert direction == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_ridge_on_text_takes_one_step(tol):
    """Conjugate gradients end where the gap, which they know, is small enough.

    It is that of the gradient, or of a dual point of other weights, which is better.
    """
    X, y = make_data("squared", n=60, d=3100, storage="csr")
    problem = zg.Problem(X, y, "squared", lam=1e-4)
    run = zg.solve(problem, zg.Newton(), tol=tol, random_state=0)
    assert (run.stop_reason, run.certificate.epochs) == ("converged", 1)
    gap = np.square(problem.gradient(run.w)).sum() / (2.0 * problem.lam)
    assert run.certificate.gap <= 1.001 * gap + 1e-12
    assert problem.certificate(run.w, alpha=run.alpha).relative_gap <= tol

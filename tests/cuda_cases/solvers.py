"""Solvers on a device reach the optimum of the processor."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import zerogap as zg
from cuda_cases.common import BOTH, PLAIN, make, near_optimum, solve
from problems import make_data
from zerogap.cuda import directions, to_device
from zerogap.cuda.device import arrays, to_host
from zerogap.cuda.solvers import auto as device_auto
from zerogap.cuda.solvers import sdca as device_sdca
from zerogap.cuda.solvers.sdca import DeviceSDCA
from zerogap.losses import MULTICLASS_LOSSES, ResidualLoss
from zerogap.solvers import MulticlassNewton, hessian
from zerogap.solvers import auto as solver_auto

SOLVERS = {  # with a tolerance that suits, and losses
    "sdca": (zg.SDCA(), 1e-5, ["hinge", "logistic", "huber"]),
    "newton": (zg.Newton(), 1e-8, ["hinge", "logistic"]),
    "interior-point": (zg.InteriorPoint(), 1e-8, ["hinge", "epsilon-insensitive"]),
    "gd": (zg.GD(), 1e-4, ["squared", "softmax"]),
    "sgd": (zg.SGD(batch_size=7, schedule="inverse", output="average"), 0.03, ["logistic"]),
    "pegasos": (zg.Pegasos(batch_size=7, output="average"), 0.05, ["hinge"]),
    "asdca": (zg.ASDCA(batch_size=2), 0.05, ["smooth-hinge"]),
    "multiclass-newton": (MulticlassNewton(), 1e-4, list(MULTICLASS_LOSSES)),
    "auto": (zg.Auto(), 1e-6, ["quantile", "squared-hinge", "softmax"]),
}
PAIRS = [(name, loss) for name, (_, _, losses) in SOLVERS.items() for loss in losses]


@pytest.mark.parametrize("variant", BOTH)
@pytest.mark.parametrize(("name", "loss"), PAIRS)
def test_solver_reaches_the_optimum(name, loss, variant):
    problem = make(loss, *BOTH[variant], lam=0.3)
    solver, tol, _ = SOLVERS[name]
    best, run = near_optimum(problem), solve(problem, solver, tol)
    assert run.stop_reason == "converged"
    assert isinstance(run.w, np.ndarray)
    found, rounding = run.certificate, 1e-9 * best.primal
    assert best.dual - rounding <= found.primal <= best.primal + found.gap + rounding
    again = problem.certificate(run.w, run.b, run.alpha)
    assert again.gap == pytest.approx(found.gap, rel=1e-6, abs=rounding)


SAME_PATH = {
    "gd": (zg.GD(output="weighted-average", t0=1), "logistic"),
    "gd, many classes": (zg.GD(), "softmax"),
    "sgd": (zg.SGD(batch_size=4, output="average", t0=3), "logistic"),
    "sgd, many classes": (zg.SGD(batch_size=4), "multiclass-hinge"),
    "pegasos": (zg.Pegasos(batch_size=5, projection=True, output="weighted-average"), "hinge"),
    "asdca": (zg.ASDCA(batch_size=4, output="average", t0=2), "huber"),
    "random": (zg.SGD(batch_size=3, output="random"), "squared"),
    "newton": (zg.Newton(), "squared-hinge"),
    "interior-point": (zg.InteriorPoint(), "quantile"),
}


@pytest.mark.parametrize("variant", BOTH)
@pytest.mark.parametrize("name", SAME_PATH)
def test_solver_walks_the_path_of_the_processor(name, variant):
    solver, loss = SAME_PATH[name]
    problem = make(loss, *BOTH[variant])
    options = {"tol": 0.0, "max_epochs": 3, "record": 10**6}
    here, there = (solve(problem, solver, where=place, **options) for place in ("cpu", "cuda"))
    assert there.history["updates"][-1] == here.history["updates"][-1] > 0
    assert np.abs(here.w).max() > 0.01
    np.testing.assert_allclose(there.w, here.w, rtol=1e-7, atol=1e-9)
    assert there.certificate.primal == pytest.approx(here.certificate.primal, rel=1e-7)


@pytest.mark.parametrize("name", ["sdca", "newton", "gd", "sgd", "asdca"])
def test_solver_goes_on_from_a_warm_start(name):
    problem = make("smooth-hinge", *BOTH["csr"], lam=0.3)
    solver, tol, _ = SOLVERS[name]
    first = solve(problem, solver, tol)
    assert first.certificate.epochs > 0
    again = solve(problem, solver, tol, warm_start=first)
    assert (again.stop_reason, again.certificate.epochs) == ("converged", 0)
    without_dual = solve(problem, solver, tol, warm_start=(first.w, first.b, None))
    assert without_dual.stop_reason == "converged"


def test_solver_solves_with_more_features_than_are_factorised(monkeypatch):
    monkeypatch.setattr(hessian, "DIRECT", 2)
    for variant in BOTH.values():
        problem = make("logistic", *variant, lam=0.01)
        run = solve(problem, zg.Newton(), 1e-7)
        assert run.stop_reason == "converged"
        assert run.certificate.primal == pytest.approx(near_optimum(problem).primal, rel=1e-6)


def wide(loss, l1_ratio=0.0):
    X, _ = make_data(loss, 4, 9)
    return zg.Problem(X, np.array([1.0, -1.0, 1.0, -1.0]), loss, 0.1, l1_ratio=l1_ratio)


def test_solver_is_chosen_and_named(monkeypatch):
    def story(problem):
        return solve(problem, zg.Auto(), 1e-3).certificate.solver

    chosen = "on a GPU, chosen automatically"
    few = "there are few features"
    assert story(make("hinge", *PLAIN)) == f"InteriorPoint() {chosen}: {few}"
    assert story(make("logistic", *PLAIN)) == f"Newton() {chosen}: {few}"
    assert story(make("softmax", *PLAIN)).startswith(f"MulticlassNewton() {chosen}")
    many = f"SDCA of 1 rows at a time {chosen}: there are many features"
    assert story(wide("logistic")) == many
    net = make("logistic", "dense", np.float64, False, False, 0.3)
    assert story(net).endswith("there are few features")
    monkeypatch.setattr(device_auto, "_VALUES_FOR_PRODUCTS", 30)
    assert story(wide("logistic")) == f"Newton() {chosen}: the data are large"


def test_newton_follows_coordinate_ascent_that_would_take_hundreds_of_epochs():
    X, y = make_data("logistic", 6, 9)
    X[:, 0] *= 1e4  # in another unit
    run = solve(zg.Problem(X, y, "logistic", 1e-5), zg.Auto(), 1e-6)
    assert run.stop_reason == "converged"
    assert run.certificate.solver.startswith("SDCA for ")
    assert "epochs, then Newton() on a GPU" in run.certificate.solver


@pytest.mark.parametrize(
    ("loss", "first", "then"),
    [("hinge", zg.InteriorPoint, "Newton"), ("squared-hinge", zg.Newton, "InteriorPoint")],
)
def test_another_method_follows_one_that_stalls(loss, first, then, monkeypatch):
    steps = first.steps

    def stalling(self, problem, state, count):
        if first is zg.Newton:
            return 0
        state.stalled = True
        return steps(self, problem, state, count)

    monkeypatch.setattr(first, "steps", stalling)
    monkeypatch.setattr(solver_auto, "IDLE_STEPS", 2)
    run = solve(make(loss, *PLAIN), zg.Auto(), 1e-6)
    assert run.stop_reason == "converged"
    assert f"{first.__name__} for " in run.certificate.solver
    assert f"then {then}() on a GPU" in run.certificate.solver


@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax"])
def test_what_is_returned_is_no_worse_than_the_best_constant_model(loss):
    problem = make(loss, "dense", np.float64, False, True, 0.0, lam=1e-9)
    run = solve(problem, zg.Auto(), 1e-12, max_epochs=1)
    zeros = np.zeros(problem.weight_shape)
    assert run.certificate.primal <= problem.primal(zeros, problem.constant()) * (1 + 1e-12)


@dataclass(frozen=True)
class OwnLoss(ResidualLoss):
    """Half the squared residual, without the curvature that second-order methods ask for."""

    scale: float = 0.5

    def domain(self, y):
        return (-math.inf, math.inf)

    def value(self, z, y):
        return self.scale * (z - y) * (z - y)

    def derivative(self, z, y):
        return 2.0 * self.scale * (z - y)

    def conjugate(self, a, y):
        return a * (a / (4.0 * self.scale) - y)

    def dual_step(self, a, y, z, q):
        return (y - z - a / (2.0 * self.scale)) / (1.0 / (2.0 * self.scale) + q)


def test_solver_takes_a_loss_of_ones_own():
    X, y = make_data("squared", 12, 3)
    for scale in (0.5, 2.0):
        run = solve(zg.Problem(X, y, OwnLoss(scale), 0.1 * scale), zg.Auto(), 1e-6)
        assert "nothing is known of the loss' curvature" in run.certificate.solver
        best = near_optimum(zg.Problem(X, y, "squared", 0.05))
        assert run.certificate.primal == pytest.approx(2.0 * scale * best.primal, rel=1e-5)


def crowd(monkeypatch):
    """Let a third of the rows be worked on at a time, or four."""
    monkeypatch.setattr(device_sdca, "ROWS_APART", 3)
    monkeypatch.setattr(device_sdca, "ROWS_APART_AT_LAST", 3)


@pytest.mark.parametrize("intercept", [False, True])
def test_solver_works_on_many_rows_at_a_time(intercept, monkeypatch):
    crowd(monkeypatch)
    problem = make("hinge", "csr", np.float64, False, intercept, 0.0)
    run = solve(problem, zg.SDCA(), 1e-4)
    assert run.stop_reason == "converged"
    assert run.certificate.solver.startswith("SDCA of 4 rows at a time")


def test_solver_that_is_deterministic_repeats_its_bits(monkeypatch):
    crowd(monkeypatch)
    problem = make("logistic", *BOTH["csr"])
    options = {"tol": 0.0, "max_epochs": 5, "where": "cuda-deterministic"}
    first, second = (solve(problem, zg.SDCA(), **options) for _ in range(2))
    assert first.certificate.solver == "SDCA of 1 rows at a time"
    np.testing.assert_array_equal(first.w, second.w)
    np.testing.assert_array_equal(first.alpha, second.alpha)
    assert (first.b, first.certificate.gap) == (second.b, second.certificate.gap)


def test_solver_steps_back_when_nothing_was_gained():
    problem = to_device(make("hinge", *BOTH["csr"]))
    state = DeviceSDCA().begin(problem, np.random.default_rng(0))
    state.warps = 16

    def observe(primal, dual):
        record = SimpleNamespace(certificate=SimpleNamespace(primal=primal, dual=dual))
        DeviceSDCA().observe(problem, state, record, 1e-3)
        return state.damping, state.warps

    good = problem.feasible(0.3 * problem.y)
    assert observe(1.0, 0.0) == (1.0, 16)
    state.alpha[:], state.bias[0] = good, 0.25
    assert observe(3.0, 0.1) == (1.0, 16), "the dual value has risen"
    state.alpha[:] = 0.0
    assert observe(0.9, 0.05) == (1.0, 16), "the primal value has fallen"
    nothing = [(3.0, -2.0), (0.9, 0.1), (0.899, 0.1), (math.nan, math.nan)]
    for values, expected in zip(nothing, ((2.0, 16), (4.0, 16), (4.0, 4), (1.0, 1)), strict=True):
        state.alpha[:], state.bias[:], state.u[:] = problem.y, 7.0, 7.0
        assert observe(*values) == expected
        np.testing.assert_array_equal(to_host(state.alpha), to_host(good))
        np.testing.assert_allclose(to_host(state.u), to_host(problem.dual_sum(good)))
        assert float(state.bias[0]) == 0.25
        assert float(state.bias[1]) == pytest.approx(float(problem.share @ good))
    assert observe(3.0, -2.0) == (1.0, 1), "one row at a time does not fail"
    assert state.setbacks == 4


@pytest.mark.parametrize("intercept", [False, True])
def test_solver_recovers_from_steps_that_went_astray(intercept, monkeypatch):
    steps, strays = DeviceSDCA.steps, [2, 4]

    def stray(self, problem, state, count):
        visited = steps(self, problem, state, count)
        if strays and state.updates >= strays[0] * problem.shape[0]:
            strays.pop(0)
            state.alpha[:] = problem.y
        return visited

    monkeypatch.setattr(DeviceSDCA, "steps", stray)
    crowd(monkeypatch)
    problem = make("hinge", "dense", np.float64, False, intercept, 0.0, lam=0.03)
    run = solve(problem, zg.SDCA(), 1e-3, record="epoch")
    assert run.stop_reason == "converged"
    assert not strays
    assert "rows at a time, slowed down" in run.certificate.solver


def test_solver_visits_rows_that_still_move_more_often(monkeypatch):
    monkeypatch.setattr(device_sdca, "EPOCHS_BEFORE_PASSES", 4)
    problem = make("hinge", *BOTH["csr"], lam=0.03, n=24)
    passes, visit = set(), DeviceSDCA._visit

    def visited(self, problem, state, count):
        passes.add(state.length)
        visit(self, problem, state, count)

    monkeypatch.setattr(DeviceSDCA, "_visit", visited)
    best, run = near_optimum(problem), solve(problem, zg.SDCA(), 1e-3)
    assert run.stop_reason == "converged"
    assert best.dual - 1e-9 <= run.certificate.primal <= best.primal + run.certificate.gap + 1e-9
    assert max(passes) == 24
    assert min(passes) < 12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "C", "intercept"), [(35, 5, 3, 0), (6, 9, 2, 1), (1, 1, 4, 1)])
def test_directions_in_one_launch_solve_newton_s_equations(n, d, C, intercept, dtype):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d)).astype(dtype)
    share, h, least = rng.dirichlet(np.ones(n)), rng.random((n, C)), np.full(d + intercept, 0.01)
    J = np.stack([np.diag(v) - np.outer(v, v) / v.sum() for v in h])
    rows = np.hstack([X, np.ones((n, intercept))]).astype(np.float64)
    matrix = np.einsum("i,iab,ij,ik->ajbk", share, J, rows, rows)
    own = np.einsum("ajak->ajk", matrix) + np.diag(least)
    target = rng.standard_normal((C, d + intercept))
    target -= target.mean(axis=0)
    size = target.size
    exact = np.linalg.solve(
        matrix.reshape(size, size) + np.diag(np.tile(least, C)), target.ravel()
    ).reshape(target.shape)
    place = arrays().asarray
    given = [place(a) for a in (X, share, h, least, np.linalg.inv(own), target)]
    found, products = directions.solve(*given, 1e-24, 100)
    np.testing.assert_allclose(to_host(found), exact, atol=1e-8)
    assert 0 < products < 100
    rough, one = directions.solve(*given, 1e-24, 1)
    energy = [np.sum(e * target) for e in (to_host(rough), exact)]
    assert one == 1
    assert 0.0 < energy[0] <= energy[1] * (1 + 1e-12)


@pytest.mark.parametrize("classes", [directions.MOST_CLASSES, directions.MOST_CLASSES + 1])
def test_many_classes_are_solved_in_one_launch_or_in_several(classes):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.arange(40) % classes
    problem = zg.Problem(X, y, "softmax", lam=0.1)
    best, run = near_optimum(problem), solve(problem, MulticlassNewton(), 1e-6)
    assert run.stop_reason == "converged"
    assert run.certificate.primal <= best.primal + run.certificate.gap


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", [False, True])
def test_many_classes_take_products_alone(dtype, intercept):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)).astype(dtype), np.arange(60) % (directions.MOST_CLASSES + 1)
    problem = zg.Problem(X, y, "softmax", lam=0.01, fit_intercept=intercept)
    best, run = near_optimum(problem), solve(problem, zg.Auto(), 1e-6)
    assert run.stop_reason == "converged"
    assert run.certificate.solver.startswith("MulticlassLBFGS()")
    assert run.certificate.primal <= best.primal + run.certificate.gap

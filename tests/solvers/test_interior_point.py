"""The interior point method: the same optimum in a few steps, from inside the domain."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import zerogap as zg
from problems import make_data, make_problem
from zerogap.losses import LOSSES, MULTICLASS_LOSSES
from zerogap.solvers import hessian
from zerogap.solvers.interior_parts import shape_of

LINES = ["hinge", "absolute", "epsilon-insensitive", "quantile"]
PARABOLAS = ["squared-hinge", "smooth-hinge", "huber", "squared"]
every_loss = pytest.mark.parametrize("loss", [*LINES, *PARABOLAS])
every_line = pytest.mark.parametrize("loss", LINES)
with_or_without_intercept = pytest.mark.parametrize("intercept", [False, True])


def optimum(problem):
    return zg.solve(problem, zg.SDCA(), tol=1e-11, max_epochs=50_000, random_state=0).certificate


@every_loss
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@with_or_without_intercept
def test_same_optimum_as_coordinate_ascent(loss, storage, weighted, intercept):
    problem = make_problem(loss, storage, weighted=weighted, intercept=intercept)
    assert (np.min(problem.share) == 0.0) == weighted
    best = optimum(problem)
    run = zg.solve(problem, zg.InteriorPoint(), tol=1e-10, max_epochs=25, record="epoch")
    assert run.stop_reason == "converged"
    assert run.certificate.primal == pytest.approx(best.primal, rel=1e-9)
    above = run.history["primal"] - best.dual
    assert np.all(run.history["gap"] >= above - 1e-9 * best.primal), "never below the true distance"


@pytest.mark.parametrize(
    "loss", [zg.Quantile(0.9), zg.EpsilonInsensitive(0.0), zg.EpsilonInsensitive(2.0)], ids=repr
)
def test_parameters_of_the_loss(loss):
    problem = make_problem(loss, intercept=True)
    run = zg.solve(problem, zg.InteriorPoint(), tol=1e-10, max_epochs=25)
    assert run.stop_reason == "converged"
    assert run.certificate.primal == pytest.approx(optimum(problem).primal, rel=1e-9)


@every_line
@with_or_without_intercept
def test_every_iterate_is_inside_and_its_gap_is_known(loss, intercept):
    problem = make_problem(loss, weighted=True, intercept=intercept, lam=1e-3)
    solver = zg.InteriorPoint()
    state = solver.begin(problem, np.random.default_rng(0))
    low, high = np.transpose([problem.loss.domain(y) for y in problem.y])
    for _ in range(16):
        solver.advance(problem, state, 1)
        rows = state.rows
        assert min(x.min() for x in (rows.t, rows.s, rows.r, rows.v)) > 0.0
        assert np.all((rows.alpha >= low - 1e-15) & (rows.alpha <= high + 1e-15))
        np.testing.assert_allclose(
            (rows.t + rows.s).sum(axis=1), high - low, rtol=1e-12, err_msg="one length"
        )
        weighted = problem.share > 0.0
        if loss != "epsilon-insensitive":  # r - v = z + c = z - y
            score = problem.scores(state.w[: problem.shape[1]])[weighted]
            score += state.w[-1] if intercept else 0.0
            found = (rows.r - rows.v)[weighted, 0]
            np.testing.assert_allclose(found, score - problem.y[weighted], atol=1e-9)
    w, b, alpha = solver.answer(problem, state)
    assert problem.certificate(w, b, alpha).relative_gap < 1e-6
    if intercept:
        assert abs(problem.share @ alpha) < 1e-9


@every_loss
@with_or_without_intercept
def test_ill_conditioned_data_need_hardly_more_steps(loss, intercept):
    X, y = make_data(loss, n=300, d=12)
    problem = zg.Problem(X * np.logspace(0, 4, 12), y, loss, lam=1e-7, fit_intercept=intercept)
    run = zg.solve(problem, zg.InteriorPoint(), tol=1e-10, max_epochs=40)
    assert run.stop_reason == "converged"


@every_loss
def test_steps_beyond_rounding_do_no_harm(loss):
    problem = make_problem(loss, weighted=True, intercept=True, lam=1e-3)
    run = zg.solve(problem, zg.InteriorPoint(), tol=0.0, max_epochs=100, record="epoch")
    assert run.certificate.epochs in (100.0, *run.history["epoch"][run.history["gap"] == 0.0])
    assert run.certificate.relative_gap < 1e-12


def test_rows_without_weight_are_not_there():
    X, y = make_data("hinge", n=60)
    weights = np.arange(60) % 3
    some = weights > 0
    options = {"tol": 0.0, "max_epochs": 12}
    all_rows = zg.Problem(X, y, "hinge", 0.01, weights, fit_intercept=True)
    fewer = zg.Problem(X[some], y[some], "hinge", 0.01, weights[some], fit_intercept=True)
    runs = [zg.solve(problem, zg.InteriorPoint(), **options) for problem in (all_rows, fewer)]
    np.testing.assert_allclose(runs[0].w, runs[1].w, rtol=1e-8)
    assert runs[0].certificate.relative_gap < 1e-2


def test_same_bits_whatever_the_seed_and_the_start():
    problem = make_problem("hinge", n=200, intercept=True, lam=1e-4)
    start = zg.solve(problem, zg.SDCA(), tol=0.1, random_state=0)
    options = {"tol": 0.0, "max_epochs": 9}
    runs = [
        zg.solve(problem, zg.InteriorPoint(), random_state=seed, warm_start=warm, **options)
        for seed, warm in ((0, None), (1, None), (0, start))
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.w, runs[0].w)
    solved = zg.solve(problem, zg.InteriorPoint(), tol=1e-9)
    again = zg.solve(problem, zg.InteriorPoint(), tol=1e-9, warm_start=solved)
    assert again.certificate.epochs == 0


@every_loss
def test_resume_is_exact(loss, tmp_path):
    problem, path = make_problem(loss, n=80, intercept=True, lam=1e-4), tmp_path / "run"
    solver, options = zg.InteriorPoint(), {"tol": 0.0, "random_state": 2}
    for epochs in (1, 2, 7, 10):
        pieces = zg.solve(problem, solver, max_epochs=epochs, checkpoint=path, **options)
    whole = zg.solve(problem, solver, max_epochs=10, **options)
    np.testing.assert_array_equal(pieces.w, whole.w)
    np.testing.assert_array_equal(pieces.alpha, whole.alpha)
    assert pieces.b == whole.b


@dataclass(frozen=True)
class Costly(zg.losses.MarginLoss):
    """Hinge that counts five times for positive targets, as a user would write it."""

    lipschitz = 5.0

    def value(self, z, y):
        return (5.0 if y > 0.0 else 1.0) * max(0.0, 1.0 - y * z)

    def derivative(self, z, y):
        return -y * (5.0 if y > 0.0 else 1.0) if y * z < 1.0 else 0.0

    def domain(self, y):
        return (0.0, 5.0) if y > 0.0 else (-1.0, 0.0)

    def conjugate(self, a, y):
        return -a * y if 0.0 <= a * y <= (5.0 if y > 0.0 else 1.0) else np.inf


def test_own_losses_need_neither_dual_step_nor_stiffness():
    X, y = make_data("hinge", n=100)
    weights = np.where(y > 0, 5.0, 1.0)
    lam = 0.01 * weights.mean()  # weights have sum S, costs do not: P / S times their mean
    run = zg.solve(zg.Problem(X, y, Costly(), lam), zg.InteriorPoint(), tol=1e-10)
    same = zg.solve(zg.Problem(X, y, "hinge", 0.01, weights), zg.InteriorPoint(), tol=1e-10)
    assert run.certificate.relative_gap <= 1e-10
    np.testing.assert_allclose(run.w, same.w, rtol=1e-4)


@pytest.mark.parametrize("loss", PARABOLAS)
@with_or_without_intercept
def test_slopes_of_parabolas_rise_with_their_dual_variables(loss, intercept):
    problem = make_problem(loss, weighted=True, intercept=intercept, lam=1e-3)
    solver, (segments, bend) = zg.InteriorPoint(), shape_of(problem.loss)
    state = solver.begin(problem, np.random.default_rng(0))
    assert segments == 1
    weighted = problem.share > 0.0
    for _ in range(12):
        solver.advance(problem, state, 1)
        rows = state.rows
        assert min(x.min() for x in (rows.t, rows.s, rows.r, rows.v)) > 0.0
        z = problem.scores(state.w[: problem.shape[1]]) + (state.w[-1] if intercept else 0.0)
        slope = rows.slope[:, 0] + bend * rows.t[:, 0]
        # of a parabola, differences to both sides give the slope of phi*(-a) without error
        room = 0.5 * np.minimum(rows.t, rows.s)[:, 0]
        ends = [(rows.a + room, problem.y), (rows.a - room, problem.y)]
        up, down = ([problem.loss.conjugate(*x) for x in zip(*end, strict=True)] for end in ends)
        rise = (np.array(up) - np.array(down)) / (2.0 * room)
        clear = room > 1e-6
        np.testing.assert_allclose(slope[clear], rise[clear], atol=1e-8)
        found = (rows.r - rows.v)[weighted, 0]
        np.testing.assert_allclose(found, (z + slope)[weighted], atol=1e-9)


def test_near_separation_is_no_harder():
    """Newton's method runs from one set of active rows to the next there."""
    rng = np.random.default_rng(1)
    X = np.c_[rng.standard_normal((60, 3)), 1e3 * rng.standard_normal((60, 2))]
    y = np.sign(X[:, 0] + 1e-3 * X[:, 3])
    for loss in PARABOLAS[:2]:
        problem = zg.Problem(X, y, loss, lam=1e-9, fit_intercept=True)
        run = zg.solve(problem, zg.InteriorPoint(), tol=1e-6, max_epochs=60)
        assert run.stop_reason == "converged"


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - set(LINES) - set(PARABOLAS)))
def test_curved_losses_are_refused(loss):
    with pytest.raises(ValueError, match=r"is not made of lines and parabolas.*use Newton"):
        zg.solve(make_problem(loss), zg.InteriorPoint())


def test_other_problems_are_refused():
    wide = zg.Problem(np.ones((2, hessian.DIRECT + 1)), [-1, 1], "hinge", 0.1)
    with pytest.raises(ValueError, match="3,001 features are too many"):
        zg.solve(wide, zg.InteriorPoint())
    many = zg.Problem(np.ones((6, 1001)), np.arange(6) % 3, "multiclass-hinge", 0.1)
    with pytest.raises(ValueError, match="1,001 features for each of 3 classes are too many"):
        zg.solve(many, zg.InteriorPoint())


def make_classes(
    storage="dense",
    weighted=False,
    intercept=False,
    l1_ratio=0.0,
    classes=3,
    loss="multiclass-hinge",
):
    X, score = make_data("absolute", n=60, storage=storage)
    y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    weights = np.random.default_rng(1).integers(0, 4, len(y)) if weighted else None
    return zg.Problem(X, y, loss, 0.03, weights, intercept, l1_ratio)


@pytest.mark.parametrize("loss", [*LINES, *MULTICLASS_LOSSES])
@pytest.mark.parametrize("l1_ratio", [0.5, 0.95])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@with_or_without_intercept
def test_elastic_net(loss, l1_ratio, storage, intercept):
    options = {"weighted": True, "intercept": intercept, "l1_ratio": l1_ratio}
    joint = loss in MULTICLASS_LOSSES
    make = partial(make_classes, loss=loss) if joint else partial(make_problem, loss)
    problem = make(storage, **options)
    run = zg.solve(problem, zg.InteriorPoint(), tol=1e-9, max_epochs=40)
    assert run.stop_reason == "converged"
    best = zg.solve(problem, zg.SDCA(), tol=1e-4, max_epochs=20_000, random_state=0).certificate
    assert best.dual <= run.certificate.primal <= best.primal * (1.0 + 1e-9), "weak duality"
    assert run.certificate.dual <= best.primal


def test_elastic_net_finds_zeros():
    problem = make_problem("hinge", l1_ratio=0.95, lam=0.2)
    run = zg.solve(problem, zg.InteriorPoint(), tol=1e-10)
    same = zg.solve(problem, zg.SDCA(), tol=1e-10, max_epochs=20_000, random_state=0)
    np.testing.assert_array_equal(run.w == 0.0, same.w == 0.0)
    assert np.any(run.w == 0.0)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 7])
@with_or_without_intercept
def test_many_classes(storage, weighted, classes, intercept):
    problem = make_classes(storage, weighted, intercept, classes=classes)
    run = zg.solve(problem, zg.InteriorPoint(), tol=1e-10, max_epochs=40)
    assert run.stop_reason == "converged"
    options = {"tol": 1e-9, "max_epochs": 50_000, "random_state": 0}
    assert run.certificate.primal == pytest.approx(
        zg.solve(problem, zg.SDCA(), **options).certificate.primal, rel=1e-8
    )
    np.testing.assert_allclose(run.w.sum(axis=0), 0.0, atol=1e-9 * np.abs(run.w).max())


def test_two_classes_are_the_hinge_of_half_the_weights():
    X, y = make_data("hinge", n=80)
    options = {"tol": 1e-11, "max_epochs": 60}
    many = zg.Problem(X, (y > 0).astype(int), "multiclass-hinge", 0.01, fit_intercept=True)
    two = zg.Problem(X, y, "hinge", 0.005, fit_intercept=True)  # W = (-w, w) / 2
    many, two = (zg.solve(problem, zg.InteriorPoint(), **options) for problem in (many, two))
    assert many.certificate.primal == pytest.approx(two.certificate.primal, rel=1e-10)
    np.testing.assert_allclose(many.w[1] - many.w[0], two.w, rtol=1e-4, atol=1e-6)


@every_loss
def test_units_of_features_are_no_matter(loss):
    X, y = make_data(loss, n=200, d=6)
    X = np.column_stack([X * np.logspace(-9, 9, 6), X[:, 3], np.ones(len(X))])
    for l1_ratio in (0.0, 0.5):
        problem = zg.Problem(X, y, loss, lam=1e-4, fit_intercept=True, l1_ratio=l1_ratio)
        run = zg.solve(problem, zg.InteriorPoint(), tol=1e-6, max_epochs=100)
        assert run.stop_reason == "converged"


@pytest.mark.parametrize("size", [1e100, 1e121])
def test_huge_rows_do_not_overflow(size):
    X, y = make_data("hinge", n=30)
    problem = zg.Problem(X * size, y, "hinge", lam=1e-3)
    solver = zg.InteriorPoint()
    state = solver.begin(problem, np.random.default_rng(0))
    solver.advance(problem, state, 60)
    w, b, alpha = solver.answer(problem, state)
    assert np.isfinite(w).all()
    assert np.isfinite(b)
    assert np.isfinite(alpha).all()


def test_a_run_at_its_end_says_so():
    problem = make_problem("hinge", intercept=True)
    solver = zg.InteriorPoint()
    state = solver.begin(problem, np.random.default_rng(0))
    solver.advance(problem, state, 80)
    assert state.stalled
    assert problem.certificate(*solver.answer(problem, state)).relative_gap < 1e-12


def test_small_dual_variables_of_many_classes_keep_their_digits():
    problem = zg.Problem(1e15 * np.eye(4)[:, :3], [0, 1, 2, 0], "multiclass-hinge", 1.0)
    tiny = np.array([[1e-20, -1e-20, 0.0]] * 4)
    alpha = problem.feasible(tiny)
    np.testing.assert_array_equal(alpha[0], tiny[0])


def test_estimators_take_it_by_name():
    X, y = make_data("hinge", n=200)
    clf = zg.LinearClassifier(solver="interior-point", lam=1e-6, tol=1e-9).fit(X, y)
    assert clf.certificate_.relative_gap <= 1e-9
    assert clf.certificate_.solver == "InteriorPoint()"


@pytest.mark.parametrize("loss", ["hinge", "absolute", "squared-hinge", "multiclass-hinge"])
def test_weights_that_span_much_are_no_matter(loss):
    """With the same mu for all rows those of little weight took thousands of steps."""
    rng = np.random.default_rng(0)
    X = np.ceil(rng.lognormal(1.0, 2.0, (200, 60))) * (rng.random((200, 60)) < 0.1)
    score = rng.standard_normal(200)
    y = np.digitize(score, [-1.0, 0.0, 1.0]) if loss in MULTICLASS_LOSSES else np.sign(score)
    weights = 10.0 ** rng.uniform(-4.0, 4.0, 200)
    problem = zg.Problem(X, y, loss, 1.0 / weights.sum(), weights, fit_intercept=True)
    run = zg.solve(problem, zg.InteriorPoint(), tol=1e-6, max_epochs=100)
    assert run.stop_reason == "converged", str(run.certificate)


def test_a_giant_among_counts_is_led_back_to_the_central_path():
    """Products were as small as they had to be, and the gap was a million times the objective."""
    rng = np.random.default_rng(0)
    X = rng.poisson(3.0, (400, 6)).astype(float)
    X[7, 2] = 1e12
    y = np.where(X[:, 0] + 3.0 * rng.standard_normal(400) > 3.0, 1.0, -1.0)
    problem = zg.Problem(X, y, "hinge", 1e-7 / 400, fit_intercept=True)
    run = zg.solve(problem, zg.InteriorPoint(), tol=1e-6, max_epochs=150)
    assert run.stop_reason == "converged", str(run.certificate)

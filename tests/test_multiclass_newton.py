"""Newton's method for many classes: the optimum of coordinate ascent, at any accuracy."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

import zerogap as zg
from zerogap.solvers import hessian, multiclass_hessian
from zerogap.solvers.multiclass_hessian import MulticlassHessian
from zerogap.solvers.multiclass_newton import MulticlassNewton
from zerogap.solvers.warm_votes import vote

SOLVER = MulticlassNewton()
every_loss = pytest.mark.parametrize("loss", ["softmax", "multiclass-hinge"])
intercepts = pytest.mark.parametrize("intercept", [False, True])


def make_data(n=90, d=5, C=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.8)
    centres = rng.standard_normal((C, d))
    y = np.argmax(X @ centres.T + rng.standard_normal((n, C)) + np.linspace(0.8, -0.5, C), axis=1)
    y[:C] = np.arange(C)
    return X.astype(dtype), y


def make(loss, storage="dense", intercept=False, weighted=False, lam=0.02, **size):
    X, y = make_data(**size)
    s = np.random.default_rng(1).integers(0, 3, len(y)) if weighted else None
    if weighted:
        s[: y.max() + 1] = 1
    return zg.Problem(sparse.csr_matrix(X) if storage == "csr" else X, y, loss, lam, s, intercept)


def solve(problem, tol=1e-10, max_epochs=200, **options):
    return zg.solve(problem, SOLVER, tol=tol, max_epochs=max_epochs, random_state=0, **options)


@every_loss
@intercepts
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
def test_same_optimum_as_coordinate_ascent(loss, intercept, storage, weighted):
    problem = make(loss, storage, intercept, weighted)
    best = zg.solve(problem, zg.SDCA(), tol=1e-10, max_epochs=50_000, random_state=0).certificate
    assert best.relative_gap <= 1e-10
    run = solve(problem, record="epoch")
    assert run.stop_reason == "converged"
    assert run.certificate.primal == pytest.approx(best.primal, rel=1e-9)
    above = run.history["primal"] - best.dual
    assert np.all(run.history["gap"] >= above - 1e-9 * best.primal), "never below the true distance"


@every_loss
def test_ill_conditioned_data_need_few_steps(loss):
    """Columns of scales 1 to 1000, hardly any regularisation: hopeless for first-order methods."""
    X, y = make_data(n=200, d=8)
    problem = zg.Problem(X * np.logspace(0, 3, 8), y, loss, lam=1e-6)
    run = solve(problem, tol=1e-8, max_epochs=80)
    assert run.certificate.relative_gap <= 1e-8
    slow = zg.solve(problem, zg.SDCA(), tol=1e-8, max_epochs=800, random_state=0)
    assert slow.certificate.relative_gap > 1e-8


@every_loss
@intercepts
def test_sampled_full_and_diagonal_preconditioners_lead_to_one_optimum(
    loss, intercept, monkeypatch
):
    problem = make(loss, "csr", intercept, lam=1e-3, n=700, d=30)
    values = []
    for direct, sample in ((3000, 100), (3000, 2), (5, 100)):
        monkeypatch.setattr(multiclass_hessian, "DIRECT", direct)
        monkeypatch.setattr(multiclass_hessian, "ROWS_PER_FEATURE", sample)
        run = solve(problem, tol=1e-9)
        assert run.stop_reason == "converged"
        values.append(run.certificate.primal)
    np.testing.assert_allclose(values, values[0], rtol=1e-8)


# The pieces


@every_loss
def test_votes_have_the_slope_and_the_derivative_that_are_claimed(loss):
    problem = make(loss)
    n, C = problem.dual_shape
    rng = np.random.default_rng(3)
    mu = 0.0 if loss == "softmax" else 0.7
    centre = np.log(rng.dirichlet(np.ones(C), n))
    z, dz = rng.standard_normal((2, n, C))
    p, left, right, step = *np.empty((3, n, C)), 1e-5
    _, slope, excess = vote(problem, z, dz, p, centre, mu)
    low, _, _ = vote(problem, z - step * dz, dz, left, centre, mu)
    high, _, _ = vote(problem, z + step * dz, dz, right, centre, mu)
    assert slope == pytest.approx((high - low) / (2 * step), rel=1e-7)
    alpha = np.eye(C)[problem.y] - p
    assert excess == pytest.approx(problem.row_terms(z, 0.0, alpha).excess, abs=1e-12)
    claimed = dz.copy()
    problem.over_rows(multiclass_hessian.bend, problem.share, p / (mu or 1.0), claimed)
    change = problem.share[:, None] * (right - left) / (2 * step)
    np.testing.assert_allclose(claimed, change, atol=1e-8)


def test_votes_at_a_temperature_are_the_best_for_it():
    """They maximise the dual less mu KL(p, centre), which bounds the loss from below."""
    problem = make("multiclass-hinge", n=20)
    n, C = problem.dual_shape
    rng = np.random.default_rng(4)
    before, mu = rng.dirichlet(np.ones(C), n), 0.3
    z, p = rng.standard_normal((n, C)), np.empty((n, C))
    value, _, _ = vote(problem, z, z, p, np.log(before), mu)

    def worth(votes):
        rows = np.arange(n)
        gained = np.sum(votes * (z + 1.0), axis=1) - votes[rows, problem.y] - z[rows, problem.y]
        return problem.share @ (gained - mu * np.sum(votes * np.log(votes / before), axis=1))

    assert value == pytest.approx(worth(p), rel=1e-12)
    assert value <= problem.mean_loss(z)
    for _ in range(20):
        assert worth(0.9 * p + 0.1 * rng.dirichlet(np.ones(C), n)) < value


@intercepts
def test_products_are_those_of_the_matrix_and_directions_solve_it(intercept):
    problem = make("softmax", "csr", intercept, n=60)
    (n, d), C = problem.shape, problem.n_classes
    rng = np.random.default_rng(0)
    h = 3.0 * rng.dirichlet(np.ones(C), n)
    h[n // 3 :, 1:] = 0.0  # these rows vote for one class
    X = np.hstack([problem.rows.product(np.eye(d)), np.ones((n, int(intercept)))])
    width = X.shape[1]
    whole = np.zeros((C, width, C, width))
    for i in range(n):
        J = np.diag(h[i]) - np.outer(h[i], h[i]) / h[i].sum()
        whole += problem.share[i] * np.einsum("ab,j,k->ajbk", J, X[i], X[i])
    for c in range(C):
        whole[c, np.arange(d), c, np.arange(d)] += problem.lam
    of = MulticlassHessian(problem, h)
    assert len(of.h) == n // 3, "rows without curvature are left out"
    v = rng.standard_normal((C, width))
    np.testing.assert_allclose(of @ v, np.einsum("ajbk,bk->aj", whole, v), atol=1e-8)
    target = v - v.mean(axis=0)
    direction, products = of.solve(target, *of.preconditioner(rng))
    assert 1 <= products < 20
    np.testing.assert_allclose(direction.sum(axis=0), 0.0, atol=1e-9)
    exact = np.linalg.pinv(whole.reshape(C * width, -1)) @ target.ravel()
    error, size = direction.ravel() - exact, whole.reshape(C * width, -1)
    assert error @ size @ error < 0.1 * (exact @ size @ exact)


@intercepts
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("few", [0, multiclass_hessian.FEW_VALUES])
def test_the_matrix_is_the_sum_over_rows_and_classes(intercept, storage, few, monkeypatch):
    monkeypatch.setattr(multiclass_hessian, "FEW_VALUES", few)
    problem = make("softmax", storage, intercept, weighted=True)
    h = np.random.default_rng(2).dirichlet(np.ones(4), problem.shape[0])
    matrix = MulticlassHessian(problem, h).rows_part()
    X = np.hstack([make_data()[0], np.ones((len(h), 1))])[:, : matrix.shape[1]]
    of_classes = np.eye(4) * h[:, :, None] - h[:, :, None] * h[:, None]
    expected = np.einsum("i,ikm,ij,il->kjml", problem.share, of_classes, X, X)
    assert np.allclose(matrix, expected, rtol=1e-13, atol=1e-15)


@every_loss
def test_own_bookkeeping_is_the_certificate(loss):
    problem = make(loss, "csr", lam=1e-3, n=200)
    state = SOLVER.begin(problem, np.random.default_rng(0))
    gaps = []
    for _ in range(30):
        SOLVER.advance(problem, state, 1)
        w, b, alpha = SOLVER.answer(problem, state)
        certificate = problem.certificate(w, b, alpha)
        own = state.excess + state.residual
        assert own == pytest.approx(certificate.gap, rel=1e-6, abs=1e-12)
        assert state.value <= certificate.primal * (1 + 1e-12)
        gaps.append(certificate.relative_gap)
    assert min(gaps) < 1e-4


def test_rows_decided_for_one_class_are_left_out_late():
    problem = make("multiclass-hinge", lam=1e-4, n=600)
    state = SOLVER.begin(problem, np.random.default_rng(0))
    sizes = []
    for _ in range(40):
        SOLVER.advance(problem, state, 1)
        sizes.append(len(MulticlassHessian(problem, state.p).h))
    assert sizes[0] > 300
    assert sizes[-1] < 100


@intercepts
def test_classes_have_nothing_in_common(intercept):
    """A part common to all classes changes no vote and costs: none is made, a given one goes."""
    problem = make("softmax", intercept=intercept)
    run = solve(problem)
    np.testing.assert_allclose(run.w.sum(axis=0), 0.0, atol=1e-12)
    before = problem.first_intercept().mean() if intercept else 0.0
    assert np.mean(run.b) == pytest.approx(before, abs=1e-12)
    again = solve(problem, warm_start=(run.w + 1.0, run.b, None))
    np.testing.assert_allclose(again.w, run.w, atol=1e-4)


# Runs


@every_loss
def test_weights_equal_repetition(loss):
    X, y = make_data(n=60)
    times = np.random.default_rng(3).integers(0, 4, 60)
    twice = np.repeat(np.arange(60), times)
    weighted = solve(zg.Problem(X, y, loss, 0.01, times))
    repeated = solve(zg.Problem(X[twice], y[twice], loss, 0.01))
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-4)
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=1e-9)


@every_loss
def test_a_warm_start_saves_steps(loss):
    problem = make(loss, intercept=True, lam=1e-3)
    first = solve(problem, tol=1e-8)
    assert solve(problem, tol=1e-8, warm_start=first).certificate.epochs == 0
    near = make(loss, intercept=True, lam=1.1e-3)
    cold, warm = solve(near, tol=1e-8), solve(near, tol=1e-8, warm_start=first)
    assert warm.stop_reason == "converged"
    assert warm.certificate.epochs < cold.certificate.epochs


@every_loss
@intercepts
def test_many_rows_start_from_the_optimum_of_a_part(loss, intercept):
    problem = make(loss, intercept=intercept, lam=1e-4, n=9000, d=4)
    run = solve(problem, tol=1e-7)
    assert run.stop_reason == "converged"
    state = SOLVER.begin(problem, np.random.default_rng(0))
    start = problem.primal(*SOLVER.answer(problem, state)[:2])
    SOLVER.prepare(problem, state)
    prepared = problem.primal(*SOLVER.answer(problem, state)[:2])
    assert prepared - run.certificate.dual < 0.05 * (start - run.certificate.dual)


@every_loss
def test_resume_is_exact(loss, tmp_path):
    problem = make(loss, intercept=True, lam=1e-4)
    for epochs in (1, 2, 7, 12):
        options = {"tol": 0.0, "max_epochs": epochs, "record": "epoch"}
        pieces = solve(problem, **options, checkpoint=tmp_path / "run")
    whole = solve(problem, **options)
    np.testing.assert_array_equal(pieces.w, whole.w)
    np.testing.assert_array_equal(pieces.alpha, whole.alpha)


@dataclass(frozen=True)
class Own(zg.losses.Loss):
    """A loss of score vectors of which nothing is known."""

    task = "multiclass"


def test_what_cannot_be_solved_is_refused_with_the_reason(monkeypatch):
    X, y = make_data(n=900)
    many = np.hstack([X] * 400)
    with pytest.raises(ValueError, match="an elastic net with up to 3,000 weights"):
        solve(zg.Problem(many, y, "softmax", l1_ratio=0.5))
    with pytest.raises(ValueError, match=r"no derivative of the votes of Own\(\): use SDCA"):
        solve(zg.Problem(X, y, Own()))
    problem = make("softmax")
    monkeypatch.setattr(hessian, "needed_memory", lambda problem: 1e18)
    with pytest.raises(ValueError, match=r"needs about .* GB beyond the data, but .* GB are free"):
        solve(problem)


def test_a_start_far_from_the_optimum_costs_no_more_than_none():
    """Votes of coordinate ascent that has hardly begun are no centre to stay close to."""
    rng = np.random.default_rng(0)
    y, means = rng.integers(0, 6, 300), rng.standard_normal((6, 60))
    common = rng.standard_normal((300, 1)) * rng.standard_normal(60)
    X = np.clip(0.5 + 0.25 * (means[y] + 1.5 * common + rng.standard_normal((300, 60))), 0, 1)
    problem = zg.Problem(X, y, "multiclass-hinge", 1e-4)
    far = zg.solve(problem, zg.SDCA(), tol=0.0, max_epochs=3, random_state=0)
    assert far.certificate.relative_gap > 0.9
    runs = [solve(problem, tol=1e-3, **start) for start in ({}, {"warm_start": far})]
    assert all(run.stop_reason == "converged" for run in runs)
    read = [run.history["examples"][-1] for run in runs]
    assert read[1] <= 1.1 * read[0]

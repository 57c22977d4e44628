"""The certificate is true: weak duality everywhere, the exact gap where it is known."""

import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime

import zerogap as zg
from problems import make_data, make_problem, random_dual
from zerogap.losses import LOSSES

SMOOTH = [name for name, cls in LOSSES.items() if math.isfinite(cls().smoothness)]
every_loss = pytest.mark.parametrize("loss", LOSSES)


@every_loss
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.4])
def test_weak_duality_at_random_points(loss, storage, intercept, l1_ratio):
    rng = np.random.default_rng(0)
    problem = make_problem(loss, storage, np.float32, True, intercept, l1_ratio)
    for _ in range(20):
        w, b = rng.standard_normal(5), rng.standard_normal() * intercept
        alpha = random_dual(problem, rng)
        primal, dual = problem.primal(w, b), problem.dual(alpha)
        certificate = problem.certificate(w, b, alpha)
        assert dual <= primal
        assert certificate.primal == pytest.approx(primal, rel=1e-13)
        assert certificate.gap == pytest.approx(primal - dual, rel=1e-9, abs=1e-12)
        assert problem.certificate(w, b).dual <= primal


@every_loss
@pytest.mark.parametrize("l1_ratio", [0.0, 0.4])
def test_values_are_the_formulas(loss, l1_ratio):
    """P and D written out in NumPy, with weights, from the definitions alone."""
    rng = np.random.default_rng(1)
    X, y = make_data(loss)
    s = rng.integers(0, 4, len(y))
    problem = zg.Problem(X, y, loss, 0.1, s, False, l1_ratio)
    phi = LOSSES[loss]()
    w, alpha = rng.standard_normal(5), problem.feasible(rng.standard_normal(len(y)))
    penalty = (1 - l1_ratio) / 2 * w @ w + l1_ratio * np.abs(w).sum()
    values = np.array([phi.value(z, t) for z, t in zip(X @ w, y, strict=True)])
    assert problem.primal(w) == pytest.approx(s @ values / s.sum() + 0.1 * penalty, rel=1e-12)
    u = X.T @ (s * alpha) / (0.1 * s.sum())
    soft = np.sign(u) * np.maximum(np.abs(u) - l1_ratio, 0)
    conjugates = np.array([phi.conjugate(a, t) for a, t in zip(alpha, y, strict=True)])
    dual = -(s @ conjugates) / s.sum() - 0.1 * (soft @ soft) / (2 * (1 - l1_ratio))
    assert problem.dual(alpha) == pytest.approx(dual, rel=1e-12)
    np.testing.assert_allclose(problem.weights(alpha), soft / (1 - l1_ratio), atol=1e-14)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("intercept", [False, True])
def test_gradient_is_the_finite_difference(loss, intercept):
    problem = make_problem(loss, intercept=intercept, weighted=True, l1_ratio=0.3)
    point = np.random.default_rng(2).standard_normal(5 + intercept)

    def primal(p):
        return problem.primal(p[:5], p[5] if intercept else 0.0)

    gradient = problem.gradient(point[:5], point[5] if intercept else 0.0)
    np.testing.assert_allclose(gradient, approx_fprime(point, primal, 1e-7), atol=1e-5)


@pytest.mark.parametrize("loss", SMOOTH)
def test_gap_of_a_primal_point_is_the_squared_gradient(loss):
    problem = make_problem(loss, weighted=True)
    w = np.random.default_rng(3).standard_normal(5)
    gradient = problem.gradient(w)
    expected = gradient @ gradient / (2 * problem.lam)
    assert problem.certificate(w).gap == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "huber"])
def test_gap_is_accurate_when_it_is_tiny(loss):
    """Move an optimum by epsilon: with smooth losses the gap shrinks as its square, to 1e-14."""
    problem = make_problem(loss, lam=0.5)
    best = zg.solve(problem, zg.SDCA(), tol=1e-16, max_epochs=5000, random_state=0)
    direction = np.ones(5) / math.sqrt(5)
    gaps = [problem.certificate(best.w + e * direction, 0.0, best.alpha).gap for e in (1e-4, 1e-6)]
    assert gaps[0] > 0
    if loss != "hinge":
        assert gaps[0] / gaps[1] == pytest.approx(1e4, rel=0.05)
        assert 1e-15 < gaps[1] < 1e-10


def test_large_targets_do_not_spoil_the_gap():
    """Targets of a million: the terms a y cancel because residual losses shift them away."""
    X, y = make_data("squared")
    for loss in ("squared", "huber", "absolute"):
        near = zg.Problem(X, y, loss, 0.1, fit_intercept=True)
        far = zg.Problem(X, y + 2**20, loss, 0.1, fit_intercept=True)
        result = zg.solve(near, zg.SDCA(), tol=1e-10, random_state=0, max_epochs=20000)
        shifted = far.certificate(result.w, result.b + 2**20, result.alpha)
        assert abs(shifted.gap - result.certificate.gap) <= 1e-9 * result.certificate.primal


@every_loss
def test_feasible_points_are_feasible(loss):
    rng = np.random.default_rng(4)
    problem = make_problem(loss, intercept=True, weighted=True)
    for scale in (0.1, 1.0, 100.0):
        alpha = problem.feasible(scale * rng.standard_normal(problem.shape[0]))
        assert abs(problem.share @ alpha) <= 1e-13 * scale
        assert problem.dual(alpha) > -math.inf
    assert problem.dual(problem.feasible(np.zeros(problem.shape[0]))) > -math.inf


@every_loss
def test_best_intercept_minimises(loss):
    problem = make_problem(loss, intercept=True, weighted=True)
    w = np.random.default_rng(5).standard_normal(5)
    z = problem.scores(w)
    b = problem.best_intercept(z, near=7.0)
    values = [problem.primal(w, b + step) for step in (0.0, 1e-3, -1e-3, 0.1, -0.1, 5.0, -5.0)]
    assert min(values) >= values[0] - 1e-14
    rough = problem.best_intercept(z, near=7.0, accuracy=1e-3)
    assert problem.primal(w, rough) <= values[0] + 1e-3


@every_loss
def test_dual_point_at_the_best_intercept_loses_nothing_in_the_loss(loss):
    """With w = 0 and the best b, Fenchel-Young holds with equality in every row."""
    problem = make_problem(loss, intercept=True)
    z = np.zeros(problem.shape[0])
    b = problem.best_intercept(z)
    alpha = problem.dual_point(z, b)
    excess = [problem.loss.excess(a, b, y) for a, y in zip(alpha, problem.y, strict=True)]
    assert max(excess) <= 1e-8
    assert abs(problem.share @ alpha) <= 1e-14


def test_weights_equal_repetition_in_value():
    X, y = make_data("logistic")
    s = np.random.default_rng(6).integers(0, 4, len(y))
    w = np.ones(5)
    weighted = zg.Problem(X, y, "logistic", sample_weight=s)
    repeated = zg.Problem(np.repeat(X, s, axis=0), np.repeat(y, s), "logistic")
    assert weighted.lam == pytest.approx(repeated.lam)
    assert weighted.primal(w) == pytest.approx(repeated.primal(w), rel=1e-13)
    assert weighted.certificate(w).gap == pytest.approx(repeated.certificate(w).gap, rel=1e-12)


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_float32_agrees_with_float64(storage):
    X, y = make_data("hinge", storage=storage, dtype=np.float32)
    single = zg.Problem(X, y, "hinge")
    double = zg.Problem(X.astype(np.float64), y, "hinge")
    assert single.rows.__getstate__()["X" if storage == "dense" else "data"].dtype == np.float32
    assert single.primal(np.ones(5)) == pytest.approx(double.primal(np.ones(5)), rel=1e-14)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic", "multiclass-hinge"])
def test_rounding_of_huge_objectives_is_no_bound(loss, l1_ratio):
    """Beyond all margins the dual value is zero, however far the weights have gone."""
    rng = np.random.default_rng(0)
    direction, X = rng.standard_normal(30), rng.standard_normal((80, 30))
    X = X[np.abs(X @ direction) > 0.5]
    y, way = np.sign(X @ direction), direction
    if loss == "multiclass-hinge":
        y, way = y > 0, np.stack([-direction, direction])
    problem = zg.Problem(X, y, loss, 0.01, l1_ratio=l1_ratio)
    best = zg.solve(problem, zg.SDCA(), tol=1e-3, random_state=0).certificate
    for scale in 10.0 ** rng.uniform(4, 140, 100):
        assert problem.certificate(scale * way).dual <= best.primal


def test_infeasible_dual_points_prove_nothing():
    problem = make_problem("hinge")
    assert problem.dual(np.full(40, 2.0)) == -math.inf
    balanced = make_problem("hinge", intercept=True)
    assert balanced.dual(np.where(balanced.y > 0, 0.5, 0.0)) == -math.inf


def test_fingerprint_tells_problems_apart():
    X, y = make_data("hinge")
    base = zg.Problem(X, y, "hinge", 0.1)
    assert base.fingerprint == zg.Problem(X.copy(), y.copy(), "hinge", 0.1).fingerprint
    changed = X.copy()
    changed[3, 2] += 1e-12
    others = [
        zg.Problem(changed, y, "hinge", 0.1),
        zg.Problem(X, -y, "hinge", 0.1),
        zg.Problem(X, y, "hinge", 0.1 + 1e-12),
        zg.Problem(X, y, zg.SmoothHinge(), 0.1),
        zg.Problem(X, y, "hinge", 0.1, np.arange(40)),
        zg.Problem(X, y, "hinge", 0.1, fit_intercept=True),
        zg.Problem(X, y, "hinge", 0.1, l1_ratio=0.1),
        zg.Problem(sparse.csr_matrix(X), y, "hinge", 0.1),
    ]
    assert len({problem.fingerprint for problem in [base, *others]}) == len(others) + 1


def test_pickling_keeps_the_problem():
    problem = make_problem("huber", "csr", intercept=True)
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.fingerprint == problem.fingerprint
    assert copy.primal(np.ones(5), 0.3) == problem.primal(np.ones(5), 0.3)


def test_certificates_add_up():
    parts = [
        zg.Certificate(1.0, 0.9, 0.1, 5, 0.1, "converged"),
        zg.Certificate(2.0, 1.5, 0.5, 9, 0.2, "max_epochs"),
    ]
    whole = zg.Certificate.combine(parts)
    assert (whole.primal, whole.gap, whole.epochs, whole.stop_reason) == (3.0, 0.6, 9, "max_epochs")
    assert whole.parts == tuple(parts)
    assert "gap 6.0e-01 (20 % of primal)" in str(whole)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.primal(np.ones(4)), "w must have one entry for each of 5 features"),
        (lambda p: p.dual(np.ones(4)), "alpha must have one entry for each of 40 samples"),
        (lambda p: p.primal([1, 2, np.nan, 4, 5]), "w contains NaN or infinity at position 2"),
    ],
)
def test_wrong_vectors_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(make_problem("hinge"))


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "softmax", "multiclass-hinge"])
def test_parts_add_up_to_the_whole(loss):
    rng = np.random.default_rng(3)
    X, weight = rng.standard_normal((30, 4)), rng.uniform(0.5, 2.0, 30)
    labels = {"squared": rng.standard_normal(30), "softmax": np.arange(30) % 3}
    labels["multiclass-hinge"] = labels["softmax"]
    y = labels.get(loss, np.where(rng.random(30) < 0.5, -1.0, 1.0))
    whole = zg.Problem(X, y, loss, 0.1, weight, True, l1_ratio=0.2)
    w, b = rng.standard_normal(whole.weight_shape), 0.3
    alpha = whole.dual_point(whole.scores(w), b)
    pieces = [slice(0, 7), slice(7, 30)]
    parts = [
        zg.Problem.part(X[s], whole.y[s], whole.share[s], whole.loss, 0.1, True, 0.2, n_classes=3)
        for s in pieces
    ]
    z = np.concatenate([part.scores(w) for part in parts])
    np.testing.assert_allclose(z, whole.scores(w), rtol=1e-14)
    terms = [part.row_terms(z[s], b, alpha[s]) for part, s in zip(parts, pieces, strict=True)]
    together, all_rows = sum(terms), whole.row_terms(z, b, alpha)
    for name in ("value", "excess", "balance", "mass", "energy", "cross", "target"):
        given = getattr(together, name), getattr(all_rows, name)
        np.testing.assert_allclose(*given, rtol=1e-12, atol=1e-16)
    sums = [part.dual_sum(alpha[s]) for part, s in zip(parts, pieces, strict=True)]
    np.testing.assert_allclose(np.sum(sums, axis=0), whole.dual_sum(alpha), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("loss", ["logistic", "squared", "smooth-hinge"])
def test_M6_the_gap_is_the_squared_gradient_for_l2_only(loss):
    """By default alpha belongs to w; with an L1 part the dual point is not the same function."""
    X, y = make_data(loss)
    w = np.random.default_rng(0).standard_normal(X.shape[1])
    problem = zg.Problem(X, y, loss, lam=0.1)
    gradient = problem.gradient(w)
    assert problem.certificate(w).gap == pytest.approx(gradient @ gradient / 0.2, rel=1e-9)
    mixed = zg.Problem(X, y, loss, lam=0.1, l1_ratio=0.5)
    gradient = mixed.gradient(w)
    assert mixed.certificate(w).gap != pytest.approx(gradient @ gradient / 0.2, rel=1e-2)


def test_M6_dual_variables_of_pegasos_are_counts_of_violations():
    """w = w(alpha) for the alpha of the docstring, which begins outside of [0, 1]."""
    X, y = make_data("hinge")
    problem = zg.Problem(X, y, "hinge", lam=0.1)
    solver, n = zg.Pegasos(sampling="epochs"), len(y)
    state = solver.begin(problem, np.random.default_rng(0))
    for t in (1, 5, 10 * n):
        solver.advance(problem, state, t - state.updates)
        w, _, alpha = solver.answer(problem, state)
        np.testing.assert_allclose(problem.weights(alpha), w, rtol=1e-9, atol=1e-12)
        counts = alpha * y * t / n
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
        assert (np.max(alpha * y) > 1 + 1e-9) == (t < n)


def test_a_part_without_rows_adds_nothing():
    """Newton's method leaves out rows that cannot change: sometimes that is all of them."""
    problem = zg.Problem([[1.0], [2.0]], [0.5, 1.0], "squared", lam=0.1)
    nothing = problem.take(np.empty(0, np.intp))
    assert nothing.mean_loss(np.empty(0)) == 0.0
    terms = nothing.row_terms(np.empty(0), 0.0, np.empty(0))
    assert (terms.value, terms.excess) == (0.0, 0.0)


@pytest.mark.parametrize("loss", sorted(SMOOTH))
@pytest.mark.parametrize("size", [0.01, 1.0, 1e4])
def test_own_dual_points_prove_what_row_by_row_terms_prove(loss, size):
    """Terms that are zero but for rounding are left out; bounds of rounding are not."""
    problem = make_problem(loss, "csr", np.float64, True)
    w = size * np.random.default_rng(5).standard_normal(5)
    z = problem.scores(w)
    quick = problem.examine(w, 0.0, None)
    alpha = problem.dual_point(z)
    whole = min(problem.prove(w, 0.0, z, alpha), problem.prove(w, 0.0, z, 0.0 * alpha), key=_gap)
    assert quick.gap == pytest.approx(whole.gap, rel=1e-9, abs=1e-12)
    own = problem._own_point(z, 0.0)[1]
    assert own is not None
    excess = problem.row_terms(z, 0.0, alpha).excess
    assert excess <= 1e-14 * (1.0 + problem.mean_loss(z))
    exact = problem.prove(w, 0.0, z, alpha, terms=own)
    assert exact.gap >= np.square(problem.gradient(w)).sum() / (2.0 * problem.lam)


def _gap(proof):
    return proof.gap


def test_derivatives_of_losses_that_are_not_ours_are_not_believed():
    class Wrong(zg.losses.SquaredHinge):
        def derivative(self, z, y):
            return -1.0 * y * max(0.0, 1.0 - y * z)  # half of it

    X, y = make_data("hinge")
    problem = zg.Problem(X, y, Wrong(), lam=0.03)
    assert problem._own_point(problem.scores(np.zeros(5)), 0.0)[1] is None


def test_constant_models_of_two_classes_need_no_row():
    problem = make_problem("logistic", weighted=True, intercept=True)
    zeros = np.zeros(40)
    rows = problem.mean_loss(zeros + 0.7)
    assert problem.constant_loss(0.7) == pytest.approx(rows, rel=1e-13)
    assert problem._mean_conjugate(zeros) == pytest.approx(-problem.dual(zeros), abs=1e-15)

"""Multiclass: laws of the losses, one exact objective, several roads to it, a certificate."""

import math
import pickle
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import zerogap as zg
from zerogap.losses import MULTICLASS_LOSSES
from zerogap.problem.circulation import balancing_factors
from zerogap.problem.rerouting import rerouted

LOSSES = [cls() for cls in MULTICLASS_LOSSES.values()]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
seeds = st.integers(0, 2**32 - 1)


def draw(seed):
    """Scores of any size, a class, a mixture, a curvature."""
    rng = np.random.default_rng(seed)
    C = int(rng.integers(2, 7))
    z = rng.standard_normal(C) * 10.0 ** rng.uniform(-2, 2.5)
    z = np.round(z) + 0.1 if rng.random() < 0.2 else z  # scores that are equal but for rounding
    p = rng.dirichlet(np.full(C, rng.choice([0.1, 1.0])))
    q = 10.0 ** rng.uniform(-4, 4) if rng.random() < 0.9 else 0.0
    return rng, z, int(rng.integers(C)), p, q


def make(loss, storage="dense", intercept=False, weighted=False, lam=0.05, n=90, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5)).astype(dtype)
    y = np.argmax(X[:, :4] + 0.8 * rng.standard_normal((n, 4)) + [0.8, 0, 0, -0.5], axis=1)
    s = rng.integers(0, 3, n) if weighted else None
    X = sparse.csr_matrix(X) if storage == "csr" else X
    return zg.Problem(X, y, loss, lam, s, intercept)


@every_loss
@given(seed=seeds)
def test_fenchel_young(loss, seed):
    _, z, y, p, _ = draw(seed)
    a = np.eye(len(z))[y] - p
    plain = loss.vector_value(z, y) + loss.vector_conjugate(p, y) + a @ z
    rounding = 1e-12 * (1 + np.abs(z).max())
    assert loss.vector_excess(p, z, y) >= -rounding
    assert loss.vector_excess(p, z, y) == pytest.approx(plain, abs=rounding)


@every_loss
@pytest.mark.parametrize("small", [1e-12, 1e-20, 1e-200])
def test_conjugates_of_small_votes_keep_their_digits(loss, small):
    votes = [small, 3.0 * small]
    p = np.array([votes[0], 1.0 - sum(votes), votes[1]])
    gone = sum(map(Decimal, votes))
    with localcontext(Context(prec=450)):
        logs = [Decimal(x) * Decimal(x).ln() for x in votes] + [(1 - gone) * (1 - gone).ln()]
        exact = -gone if loss == zg.MulticlassHinge() else sum(logs)
    assert loss.vector_conjugate(p, 1) == pytest.approx(float(exact), rel=1e-15)


@every_loss
@given(seed=seeds)
def test_votes_are_the_gradient(loss, seed):
    rng, z, y, p, _ = draw(seed)
    loss.votes(z, y, p)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1)
    assert loss.vector_excess(p, z, y) <= 1e-12 * (1 + np.abs(z).max())
    other = z + rng.standard_normal(len(z))  # convexity: a sub-gradient supports phi from below
    slope = p - np.eye(len(z))[y]
    below = loss.vector_value(z, y) + slope @ (other - z)
    assert loss.vector_value(other, y) >= below - 1e-11 * (1 + np.abs(z).max())


@every_loss
@given(seed=seeds)
@settings(max_examples=200)
def test_block_step_is_the_argmax(loss, seed):
    rng, z, y, p, q = draw(seed)
    new = np.empty(len(z))
    loss.block_step(p, z, y, q, new)
    assert new.min() >= 0
    assert new.sum() == pytest.approx(1, abs=1e-12)

    def dual(mixture):
        near = 0.5 * q * np.sum((mixture - p) ** 2)
        return -loss.vector_conjugate(mixture, y) + z @ mixture - near

    for size in (1.0, 0.1, 1e-3):
        other = (1 - size) * new + size * rng.dirichlet(np.full(len(z), rng.choice([0.1, 1.0])))
        assert dual(other) <= dual(new) + 1e-10 * (1 + abs(dual(new)))


def test_scores_of_any_size():
    z = np.array([1e5, -1e5, 0.0])
    softmax = zg.Softmax()
    assert softmax.vector_value(z, 0) == 0.0
    assert softmax.vector_value(z, 1) == 2e5
    p = np.empty(3)
    softmax.votes(z, 1, p)
    np.testing.assert_array_equal(p, [1, 0, 0])


@every_loss
@pytest.mark.parametrize("intercept", [False, True])
def test_weak_duality_and_formulas(loss, intercept):
    rng = np.random.default_rng(1)
    problem = make(loss, intercept=intercept, weighted=True)
    for _ in range(20):
        W, b = rng.standard_normal((4, 5)), rng.standard_normal(4) * intercept
        alpha = problem.feasible(np.eye(4)[problem.y] - rng.dirichlet(np.ones(4), len(problem.y)))
        certificate = problem.certificate(W, b, alpha)
        z = problem.rows.X @ W.T + b
        values = [loss.vector_value(s, y) for s, y in zip(z, problem.y, strict=True)]
        assert certificate.primal == pytest.approx(problem.share @ values + 0.025 * np.sum(W**2))
        assert problem.primal(W, b) == pytest.approx(certificate.primal, rel=1e-12)
        assert problem.dual(alpha) > -math.inf
        assert certificate.gap == pytest.approx(certificate.primal - problem.dual(alpha), abs=1e-10)
        assert problem.certificate(W, b).gap >= 0
        if intercept:
            assert np.abs(problem.share @ alpha).max() <= 1e-13


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@every_loss
def test_sdca_reaches_a_tiny_gap(loss, storage, dtype, weighted, intercept):
    problem = make(loss, storage, intercept, weighted, dtype=dtype)
    run = zg.solve(problem, zg.SDCA(), tol=1e-9, max_epochs=20000, random_state=0)
    assert run.stop_reason == "converged"
    assert np.all(np.diff(run.history["dual"]) >= -1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_softmax_optimum_equals_l_bfgs(intercept):
    problem = make("softmax", intercept=intercept, weighted=True)
    run = zg.solve(problem, zg.SDCA(), tol=1e-11, max_epochs=20000, random_state=0)

    def both(v):
        M = v.reshape(4, 5 + intercept)
        W, b = (M[:, :5], M[:, 5]) if intercept else (M, 0.0)
        return problem.primal(W, b), problem.gradient(W, b).ravel()

    options = {"maxiter": 10**5, "ftol": 1e-16, "gtol": 1e-12}
    other = minimize(
        both, np.zeros(4 * (5 + intercept)), jac=True, method="L-BFGS-B", options=options
    )
    assert run.certificate.primal == pytest.approx(other.fun, rel=1e-9)


def test_crammer_singer_equals_liblinear():
    problem = make("multiclass-hinge", lam=1 / (0.5 * 90))
    run = zg.solve(problem, zg.SDCA(), tol=1e-10, max_epochs=50000, random_state=0)
    options = {"multi_class": "crammer_singer", "fit_intercept": False, "tol": 1e-10}
    other = LinearSVC(C=0.5, max_iter=10**6, **options).fit(problem.rows.X, problem.y)
    np.testing.assert_allclose(run.w, other.coef_, atol=1e-4)
    assert problem.primal(other.coef_) >= run.certificate.dual - 1e-12


def test_two_classes_are_the_binary_loss():
    """W and -W split a binary w in halves, so that lam becomes lam / 2."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    y = (X[:, 0] + 0.5 * rng.standard_normal(80) > 0.3).astype(int)
    for joint, binary in (("softmax", "logistic"), ("multiclass-hinge", "hinge")):
        options = {"tol": 1e-10, "max_epochs": 50000, "random_state": 0}
        one = zg.LinearClassifier(joint, lam=0.02, **options).fit(X, y)
        two = zg.LinearClassifier(binary, lam=0.01, **options).fit(X, y)
        assert one.coef_.shape == two.coef_.shape
        np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-4)
        np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_softmax_classifier_equals_scikit_learn():
    problem = make("softmax")
    X, y = problem.rows.X, problem.y
    weights = np.random.default_rng(0).integers(1, 4, 90)
    ours = zg.LinearClassifier("softmax", lam=1 / weights.sum(), tol=1e-13, random_state=0)
    ours.fit(X, y, weights)
    other = LogisticRegression(C=1.0, tol=1e-11, max_iter=10**5).fit(X, y, weights)
    np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X), atol=1e-5)
    assert ours.dual_coef_.shape == (4, 90)
    again = zg.LinearClassifier("softmax", lam=1 / weights.sum(), tol=1e-5, warm_start=True)
    again.coef_, again.intercept_, again.dual_coef_, again.classes_ = (
        ours.coef_,
        ours.intercept_,
        ours.dual_coef_,
        ours.classes_,
    )
    assert again.fit(X, y, weights).certificate_.epochs == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        zg.LinearClassifier("softmax", tol=1e-18, max_epochs=2000),
        zg.LinearClassifier("multiclass-hinge", tol=1e-12, max_epochs=5000),
    ]
)
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)


@every_loss
def test_weights_equal_repeated_rows(loss):
    problem = make(loss, intercept=True)
    X, y = problem.rows.X, problem.y
    s = np.random.default_rng(3).integers(0, 3, len(y))
    options = {"tol": 1e-10, "max_epochs": 50000, "random_state": 0}
    weighted = zg.solve(zg.Problem(X, y, loss, 0.1, s, True), zg.SDCA(), **options)
    repeated = zg.Problem(np.repeat(X, s, axis=0), np.repeat(y, s), loss, 0.1, None, True)
    other = zg.solve(repeated, zg.SDCA(), **options)
    assert weighted.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)


def test_pickling_keeps_the_problem():
    problem = make("softmax", "csr", intercept=True)
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.fingerprint == problem.fingerprint
    assert copy.primal(np.ones((4, 5))) == problem.primal(np.ones((4, 5)))


def test_gap_is_the_sum_of_the_rows_gaps():
    for loss in LOSSES:
        problem = make(loss, weighted=True)
        run = zg.solve(problem, zg.SDCA(), tol=0.0, max_epochs=3, random_state=0)
        gaps = problem.row_gaps(run.w, run.b, run.alpha)
        assert gaps.min() >= -1e-15
        assert gaps.sum() == pytest.approx(run.certificate.gap, rel=1e-9)


# Frank-Wolfe and its relatives


@pytest.mark.parametrize("batch", [1, 7, 90])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_bcfw_is_the_paper_s(batch, storage):
    """Algorithm 4 of the paper with w_s and l_s, in NumPy, on the blocks that the solver visits."""
    problem = make("multiclass-hinge", storage, weighted=True)
    X = np.asarray(problem.rows.product(np.eye(5)))
    solver = zg.BCFW(batch)
    state = solver.begin(problem, np.random.default_rng(0))
    lam, w, blocks = problem.lam, np.zeros((4, 5)), {}
    for _ in range(3):
        solver.epoch(problem, state)
        for j in state.order:
            rows = state.members[j * batch : (j + 1) * batch]
            w_j, l_j = blocks.get(j, (np.zeros((4, 5)), 0.0))
            w_s, l_s = np.zeros((4, 5)), 0.0
            for i in rows:
                cost = 1.0 - np.eye(4)[problem.y[i]]
                k = np.argmax(X[i] @ w.T + cost)
                w_s[problem.y[i]] += problem.share[i] * X[i] / lam
                w_s[k] -= problem.share[i] * X[i] / lam
                l_s += problem.share[i] * cost[k]
            top = lam * np.sum((w_j - w_s) * w) - l_j + l_s
            bottom = lam * np.sum((w_j - w_s) ** 2)
            gamma = min(1.0, max(0.0, top / bottom)) if bottom > 0 else 0.0
            w = w + gamma * (w_s - w_j)
            blocks[j] = (1 - gamma) * w_j + gamma * w_s, (1 - gamma) * l_j + gamma * l_s
        np.testing.assert_allclose(solver.answer(problem, state)[0], w, atol=1e-10)
        dual = sum(block[1] for block in blocks.values()) - lam / 2 * np.sum(w**2)
        assert problem.dual(solver.answer(problem, state)[2]) == pytest.approx(dual)


ROADS = [
    zg.SDCA(output="recent", relaxation=1.5),
    zg.BCFW(),
    zg.BCFW(sampling="random"),
    zg.BCFW(sampling="gap"),
    zg.BCFW(batch_size=9),
    zg.BCFW(output="weighted-average"),
    zg.BCFW(batch_size=90, output="average"),
    zg.SGD(9, schedule="inverse", output="average"),
    zg.GD(),
]


@pytest.mark.parametrize("solver", ROADS, ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
def test_all_roads_lead_to_the_optimum(solver, intercept):
    problem = make("multiclass-hinge", intercept=intercept, lam=0.1)
    best = zg.solve(problem, zg.SDCA(), tol=1e-9, max_epochs=20000, random_state=0).certificate
    run = zg.solve(problem, solver, tol=1e-5, max_epochs=400, record="epoch", random_state=0)
    above = run.history["primal"] - best.primal
    assert np.all(run.history["gap"] >= above - 1e-9)
    assert above[-1] <= 0.005 * best.primal
    if isinstance(solver, zg.BCFW) and solver.output == "last" and not intercept:
        assert np.all(np.diff(run.history["dual"]) >= -1e-13), "line search never loses"


@pytest.mark.parametrize("solver", [zg.SGD(9, schedule="inverse"), zg.GD(), zg.SDCA()], ids=repr)
def test_softmax_has_several_roads_too(solver):
    problem = make("softmax", intercept=True, weighted=True)
    run = zg.solve(problem, solver, tol=1e-2, max_epochs=300, random_state=0)
    assert run.stop_reason == "converged"


@pytest.mark.parametrize("loss", MULTICLASS_LOSSES)
def test_relaxed_blocks_raise_the_dual(loss):
    problem, solver = make(loss, weighted=True), zg.SDCA(relaxation=1.9)
    state = solver.begin(problem, np.random.default_rng(0))
    dual = problem.dual(state.alpha)
    for _ in range(200):
        solver.advance(problem, state, 1)
        risen = problem.dual(problem.feasible(state.alpha))
        assert risen >= dual - 1e-14
        dual = risen


@pytest.mark.parametrize("loss", MULTICLASS_LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
def test_relaxation_saves_epochs(loss, intercept):
    problem = make(loss, n=600, lam=1e-4, intercept=intercept)
    options = {"tol": 1e-5, "max_epochs": 20000, "random_state": 0}
    plain, relaxed = (zg.solve(problem, solver, **options) for solver in (zg.SDCA(), zg.Auto()))
    assert plain.stop_reason == relaxed.stop_reason == "converged"
    assert relaxed.certificate.epochs < 0.8 * plain.certificate.epochs
    assert relaxed.certificate.dual <= plain.certificate.primal


@pytest.mark.parametrize("output", ["average", "weighted-average"])
@pytest.mark.parametrize("solver", [zg.BCFW, zg.SDCA, zg.SGD, zg.GD])
def test_averages_are_those_of_the_iterates(solver, output):
    problem = make("multiclass-hinge", n=20, weighted=True)
    options = {"batch_size": 4} if solver in (zg.BCFW, zg.SGD) else {}
    t0, end = 5, 17
    plain = solver(**options)
    state = plain.begin(problem, np.random.default_rng(0))
    found = []
    for _ in range(end):
        found.append(plain.answer(problem, state)[0].copy())
        plain.advance(problem, state, 1)
    averaged = solver(output=output, t0=t0, **options)
    state = averaged.begin(problem, np.random.default_rng(0))
    state.t0 = t0
    averaged.advance(problem, state, end)
    weights = np.arange(1, end - t0 + 1) if output == "weighted-average" else None
    mean = np.average(found[t0:], axis=0, weights=weights)
    np.testing.assert_allclose(averaged.answer(problem, state)[0], mean, atol=1e-11)


@pytest.mark.parametrize(
    "solver",
    [
        zg.BCFW(7),
        zg.SDCA(output="average", t0=50),
        zg.SDCA(output="recent", relaxation=1.5),
        zg.Auto(),
        zg.SGD(7),
        zg.GD(),
    ],
    ids=repr,
)
def test_resume_is_exact(solver, tmp_path):
    problem = make("multiclass-hinge", intercept=True)
    for epochs in (1, 3, 8):
        pieces = zg.solve(
            problem, solver, tol=0.0, max_epochs=epochs, random_state=0, checkpoint=tmp_path / "run"
        )
    whole = zg.solve(problem, solver, tol=0.0, max_epochs=8, random_state=0)
    np.testing.assert_array_equal(pieces.w, whole.w)


@pytest.mark.parametrize(
    ("solver", "loss", "message"),
    [
        (zg.BCFW(), "softmax", "made for the multiclass hinge"),
        (zg.BCFW(), "hinge", "made for the multiclass hinge"),
        (zg.BCFW(batch_size=91), "multiclass-hinge", "batch_size must be"),
        (zg.BCFW(sampling="cyclic"), "multiclass-hinge", "sampling must be one of"),
        (zg.Pegasos(), "softmax", "Pegasos cannot take Softmax"),
        (zg.ASDCA(), "softmax", "ASDCA cannot take Softmax"),
        (zg.SDCA(start="sgd"), "softmax", "not defined for multiclass"),
    ],
    ids=repr,
)
def test_impossible_combinations_are_refused(solver, loss, message):
    problem = make(loss) if loss != "hinge" else zg.Problem(np.ones((2, 1)), [1, -1], "hinge")
    with pytest.raises(ValueError, match=message):
        zg.solve(problem, solver)


@pytest.mark.parametrize("y", [[0, 1.5], [0, -1], ["a", "b"]])
def test_classes_are_numbers(y):
    with pytest.raises(ValueError, match=r"classes 0, 1, 2|y must hold numbers"):
        zg.Problem(np.ones((2, 1)), y, "softmax")


@pytest.mark.parametrize(
    ("y", "s"), [([0, 2, 3, 0], None), ([0, 1, 2, 0], [1, 0, 1, 1]), ([0, 0, 2, 1], [1, 1, 1, 0])]
)
def test_an_intercept_needs_rows_of_every_class(y, s):
    """The intercept of an absent class has its best value at minus infinity."""
    X = np.random.default_rng(0).standard_normal((4, 2))
    with pytest.raises(ValueError, match=r"class 1 has none with weight"):
        zg.Problem(X, y, "softmax", sample_weight=s, fit_intercept=True)
    run = zg.solve(
        zg.Problem(X, y, "softmax", sample_weight=s), zg.SDCA(), tol=1e-6, random_state=0
    )
    assert run.stop_reason == "converged"


def test_groups_of_classes_without_votes_between_them_are_balanced_one_by_one():
    flow = np.zeros((5, 5))
    flow[0, 1] = flow[1, 0] = 0.3
    flow[2, 3] = flow[3, 2] = 1e-3
    missing = np.array([1e-16, 1e-16, 1e-16, 1e-16, 0.0])
    assert rerouted(flow, missing) < 1e-12
    flow[3, 2] = 0.0  # no way back
    assert rerouted(flow, missing) == 1.0


def test_votes_of_decided_classes_do_not_hide_those_of_others():
    flow = np.array([[0.0, 0.2, 3e-17], [0.2, 0.0, 1e-17], [1e-17, 1e-17, 0.0]])
    factors = balancing_factors(flow)
    assert factors[0, 1] == factors[1, 0] == 1.0
    assert not factors[2].any()
    assert not factors[:, 2].any()


@every_loss
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_of_matrices_and_loops_agree(loss, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 500)).astype(dtype)
    y = rng.integers(0, 10, 60)
    by_matrices = zg.Problem(X, y, loss, lam=0.01)
    by_loops = zg.Problem(sparse.csr_matrix(X), y, loss, lam=0.01)
    assert by_matrices.by_matrices
    assert not by_loops.by_matrices
    w = rng.standard_normal((10, 500))
    size = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(w, axis=1)
    difference = np.abs(by_matrices.scores(w) - by_loops.scores(w))
    assert (difference <= 1e-13 * size).all()
    c = rng.standard_normal((60, 10))
    difference = np.abs(by_matrices.gathered(c) - by_loops.gathered(c))
    assert (difference <= 1e-13 * (np.abs(c).T @ np.abs(X))).all()
    one, other = by_matrices.certificate(0.01 * w), by_loops.certificate(0.01 * w)
    assert abs(one.primal - other.primal) <= one.rounding + other.rounding

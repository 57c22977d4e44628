"""Points handed over from one problem to another prove nothing but what is true of the other."""

import numpy as np
import pytest

import zerogap as zg
from zerogap.leave_one_out import leave_one_out
from zerogap.problem.circulation import balancing_factors
from zerogap.regions import find_region
from zerogap.solvers.checkpoint import CheckpointError

RNG = np.random.default_rng(7)
X = RNG.standard_normal((60, 4)) + 1.0
LABELS = (X[:, 0] > 0.8).astype(int) + (X[:, 1] > 1.5)
SIGNS = np.where(X[:, 0] + 0.5 * RNG.standard_normal(60) > 0.3, 1.0, -1.0)
NUMBERS = X @ [1.0, -2.0, 0.5, 0.0] + 3.0 + RNG.standard_normal(60)
WEIGHTS = RNG.integers(1, 30, 60).astype(float)
OPTIMUM = 1e-10  # relative gap of reference solutions

ONE_SCORE = {"hinge": SIGNS, "logistic": SIGNS}
MANY = {"softmax": LABELS, "multiclass-hinge": LABELS}
REAL = {"squared": NUMBERS, "quantile": NUMBERS}
SETTINGS = [
    {"lam": 0.05, "fit_intercept": True},
    {"lam": 0.05, "fit_intercept": False},
    {"lam": 5.0, "fit_intercept": True},
    {"lam": 0.05, "fit_intercept": True, "sample_weight": WEIGHTS},
    {"lam": 0.05, "fit_intercept": False, "l1_ratio": 0.5},
]


def problems(kind):
    return [zg.Problem(X, y, loss, **setting) for loss, y in kind.items() for setting in SETTINGS]


def optimum(problem):
    return zg.solve(problem, zg.Auto(), tol=OPTIMUM, random_state=0)


def assert_true(certificate, best):
    """The lower bound is below the optimum's objective, and the gap covers the distance to it."""
    slack = 1e-9 * best.primal
    assert certificate.dual <= best.primal + slack
    assert certificate.primal - certificate.gap <= best.primal + slack


@pytest.mark.parametrize(
    ("kind", "solver"),
    [(ONE_SCORE, zg.Auto), (ONE_SCORE, zg.Newton), (MANY, zg.SDCA), (REAL, zg.Auto)],
)
def test_M1_warm_starts_prove_only_what_is_true_of_the_new_problem(kind, solver):
    best = [(problem, optimum(problem)) for problem in problems(kind)]
    for _, start in best:
        for problem, reference in best:
            run = zg.solve(problem, solver(), tol=1e-3, max_epochs=30, warm_start=start)
            assert_true(run.certificate, reference.certificate)
            if not problem.fit_intercept:
                assert not np.any(run.b)


def test_M1_a_problem_without_intercept_refuses_one():
    for y, loss, w in ((SIGNS, "hinge", np.ones(4)), (LABELS, "softmax", np.ones((3, 4)))):
        problem = zg.Problem(X, y, loss, lam=0.1)
        b = -3.0 if loss == "hinge" else np.array([0.0, 1.0, 2.0])
        for ask in (problem.certificate, problem.primal, problem.gradient):
            with pytest.raises(ValueError, match="the problem has no intercept, so b must be 0"):
                ask(w, b)
        with pytest.raises(ValueError, match="no intercept"):
            find_region(problem, w, b)
        assert problem.certificate(w, 0 * b).primal == problem.certificate(w).primal


def test_M1_an_estimator_that_loses_its_intercept_certifies_the_new_problem():
    model = zg.LinearClassifier(lam=0.01, warm_start=True, tol=1e-6).fit(X, SIGNS)
    assert model.intercept_[0] != 0
    model.set_params(fit_intercept=False).fit(X, SIGNS)
    fresh = zg.LinearClassifier(lam=0.01, fit_intercept=False, tol=1e-9).fit(X, SIGNS)
    assert model.intercept_[0] == 0
    assert_true(model.certificate_, fresh.certificate_)
    labels, certain = model.predict_certified(X)
    assert np.array_equal(labels[certain], fresh.predict(X)[certain])


CHANGES = {
    "intercept": {"fit_intercept": False},
    "lam": {"lam": 1.0},
    "loss": {"loss": "logistic"},
    "penalty": {"l1_ratio": 0.5},
    "weights": {"sample_weight": WEIGHTS},
    "classes": {"y": LABELS},
}
ESTIMATOR = {"loss": "hinge", "lam": 0.01, "warm_start": True, "tol": 1e-6, "random_state": 0}
ALL_ROWS = slice(None)
STATEMENT = {"y": SIGNS, "loss": "hinge", "lam": 0.1, "fit_intercept": True}


def stated(rows=ALL_ROWS, **change):
    """Return the problem of `STATEMENT` after a change, of some rows."""
    given = {**STATEMENT, **change}
    if len(np.unique(given["y"])) > 2:
        given["loss"] = "multiclass-hinge"
    per_row = {key: given.pop(key)[rows] for key in ("y", "sample_weight") if key in given}
    return zg.Problem(X[rows], **per_row, **given)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", ["fit", "update", "forget", "load"])
def test_M1_estimators_hand_over_across_changes(change, way, tmp_path):
    """What an estimator kept of one problem proves only what is true of the next."""
    model, params = zg.LinearClassifier(**ESTIMATOR).fit(X, SIGNS), dict(CHANGES[change])
    if way == "load":
        zg.save(model, tmp_path / "model.zerogap")
        model = zg.load(tmp_path / "model.zerogap")
    y, weights = params.pop("y", SIGNS), params.pop("sample_weight", np.ones(60))
    model.set_params(**params)
    held, rows = (X, y, weights), np.arange(60)
    if way in ("update", "forget"):
        if change in ("classes", "weights"):  # these are other data
            with pytest.raises(ValueError, match="not the data that the model was trained on"):
                model.forget([0], data=held)
            return
        if way == "update":
            model.update(X[:10], SIGNS[:10], data=held)
            rows = np.append(rows, np.arange(10))
        else:
            model.forget(np.arange(5), data=held)
            rows = rows[5:]
    else:
        model.fit(*held)
    fresh = zg.LinearClassifier(**{**ESTIMATOR, **params, "tol": 1e-9})
    fresh.fit(X[rows], y[rows], weights[rows])
    assert_true(model.certificate_, fresh.certificate_)
    assert model.certificate_.primal == pytest.approx(fresh.certificate_.primal, rel=1e-5)
    labels, certain = model.predict_certified(X)
    assert np.array_equal(labels[certain], fresh.predict(X)[certain])


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "classes"])
def test_M1_leave_one_out_starts_from_a_model_of_another_problem(change):
    some = np.arange(0, 60, 3)
    changed, start = stated(some, **CHANGES[change]), optimum(stated(some))
    told = leave_one_out(changed, start=start, random_state=0)
    fresh = leave_one_out(changed, random_state=0)
    assert np.all((told.low <= fresh.high) & (fresh.low <= told.high))
    assert told.error == fresh.error


@pytest.mark.parametrize("change", CHANGES)
def test_M1_a_checkpoint_of_another_problem_is_refused(change, tmp_path):
    path = tmp_path / "run.zerogap"
    zg.solve(stated(), zg.SDCA(), tol=1e-3, checkpoint=path, checkpoint_every=0.0, random_state=0)
    with pytest.raises(CheckpointError):
        zg.solve(stated(**CHANGES[change]), zg.SDCA(), checkpoint=path, random_state=0)


@pytest.mark.parametrize("change", CHANGES)
def test_M1_regions_of_points_of_another_problem_hold_the_optimum(change):
    changed, start = stated(**CHANGES[change]), optimum(stated())
    if change == "classes":
        start = optimum(stated(y=np.roll(LABELS, 7)))
    b = start.b if changed.fit_intercept else 0.0 * start.b
    region, best = find_region(changed, start.w, b, start.alpha), optimum(changed)
    nearest = find_region(changed, best.w, best.b, best.alpha)
    assert np.linalg.norm(start.w - best.w) <= region.radius + nearest.radius


@pytest.mark.parametrize("change", CHANGES)
def test_M1_models_of_a_path_start_from_each_other(change):
    """Each lambda is another problem, and starts from the answer of the one before."""
    lams = [5.0, 0.5, 0.05]
    given = {key: value for key, value in {**STATEMENT, **CHANGES[change]}.items() if key != "lam"}
    given["loss"] = "multiclass-hinge" if given["y"] is LABELS else given["loss"]
    path = zg.path(X, lams=lams, tol=1e-4, random_state=0, **given)
    for lam, certificate in zip(path.lams, path.certificates, strict=True):
        reference = optimum(stated(**{**CHANGES[change], "lam": float(lam)}))
        assert_true(certificate, reference.certificate)


def test_M2_factors_balance_every_matrix_of_flows():
    rng = np.random.default_rng(0)
    for _ in range(300):
        classes = rng.integers(2, 9)
        flow = 10.0 ** rng.uniform(-12, 0, (classes, classes))
        flow *= rng.random(flow.shape) < rng.uniform(0.1, 1.0)
        np.fill_diagonal(flow, 0.0)
        pairs = np.minimum(flow, flow.T)  # there and back is a circulation
        for largest in (True, False):
            factors = balancing_factors(flow, largest)
            assert np.all((factors >= 0) & (factors <= 1))
            kept = flow * factors
            assert np.abs(kept.sum(axis=0) - kept.sum(axis=1)).max() <= 1e-13 * kept.sum()
            assert kept.sum() > 0 or not pairs.any()
            assert not largest or kept.sum() >= 0.5 * pairs.sum()


def test_M2_skewed_weights_are_proved_in_memory():
    rng = np.random.default_rng(3)
    for seed in range(7):
        rows = rng.standard_normal((12, 2))
        y = np.append(np.arange(3), rng.integers(3, size=9))
        weights = (10.0 ** np.array([0.0, seed, -seed]))[y]
        problem = zg.Problem(rows, y, "multiclass-hinge", 0.1, weights, fit_intercept=True)
        run = zg.solve(problem, zg.Auto(), tol=1e-3, random_state=0)
        assert run.stop_reason == "converged"

"""Problems that share their rows, solved together on a device."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import zerogap as zg
from cuda_cases.common import BOTH, make, near_optimum
from problems import make_data
from zerogap.cuda import DeviceError, to_device
from zerogap.cuda.columns import Columns, best_intercepts
from zerogap.cuda.device import to_host
from zerogap.cuda.solvers import auto as device_auto
from zerogap.cuda.solvers import many_models as together
from zerogap.cuda.solvers import sdca as device_sdca
from zerogap.cuda.solvers.sdca import DeviceSDCA
from zerogap.losses import LOSSES
from zerogap.solvers.placement import problems_together

LAMS = [0.1, 1.0, 0.3]


def columns(loss="hinge", variant="csr", lams=LAMS):
    """Problems that differ in lam, here and on the device."""
    here = [make(loss, *BOTH[variant], lam=lam) for lam in lams]
    return here, [to_device(problem) for problem in here]


def solve(problems, solver=DeviceSDCA(), **options):  # noqa: B008
    options = {"tol": 1e-3, "max_epochs": 5000, "seeds": range(len(problems)), **options}
    return together.solve_together(problems, solver=solver, **options)


@pytest.mark.parametrize(
    ("loss", "variant"), [*((loss, "dense") for loss in LOSSES), ("hinge", "csr"), ("huber", "csr")]
)
def test_each_column_reaches_its_own_optimum(loss, variant):
    here, there = columns(loss, variant)
    for problem, run in zip(here, solve(there, tol=1e-2), strict=True):
        assert run.stop_reason == "converged"
        best, found = near_optimum(problem), run.certificate
        rounding = 1e-9 * best.primal
        assert best.dual - rounding <= found.primal <= best.primal + found.gap + rounding
        again = problem.certificate(run.w, run.b, run.alpha)
        assert again.gap == pytest.approx(found.gap, rel=1e-6, abs=rounding)
        assert found.epochs > 0
        assert found.seconds > 0
        assert np.all(np.diff(run.history["epoch"]) > 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_intercepts_are_the_best(loss):
    problem = make(loss, *BOTH["csr"])
    z = np.random.default_rng(0).standard_normal((problem.shape[0], 2)) * [1.0, 30.0]
    there = to_device(problem)
    y, scores = (there.xp.asarray(a) for a in (problem.y[:, None], z))
    found = to_host(best_intercepts(there, y, scores, [0.0, -5.0], [0.0, 1e-3]))
    for k, accuracy in enumerate((1e-12, 1e-3)):
        best = problem.best_intercept(np.ascontiguousarray(z[:, k]))
        least = problem.mean_loss(z[:, k] + best)
        assert problem.mean_loss(z[:, k] + found[k]) <= least + accuracy * (1.0 + least)


@pytest.mark.parametrize("variant", BOTH)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "absolute"])
def test_columns_are_certified_as_single_problems(loss, variant):
    here, there = columns(loss, variant)
    rng, (n, d) = np.random.default_rng(0), here[0].shape
    W, alpha = rng.standard_normal((3, d)), 0.5 * rng.standard_normal((n, 3))
    W[0] *= 1e8  # far from the optimum, where a gap by terms would be rounding
    xp, b = there[0].xp, [0.3, 0.0, -1.0] if here[0].fit_intercept else [0.0] * 3
    proofs = Columns(there).examine(xp.asarray(W), b, xp.asarray(alpha), [0.0] * 3)
    for k, (problem, proof) in enumerate(zip(here, proofs, strict=True)):
        other = problem.examine(W[k], b[k], alpha[:, k].copy())
        assert proof.primal == pytest.approx(other.primal, rel=1e-9)
        assert proof.gap == pytest.approx(other.gap, rel=1e-9)
        assert proof.slack == pytest.approx(other.slack, rel=1e-9, nan_ok=True)
        np.testing.assert_allclose(proof.alpha, other.alpha, atol=1e-12)
        np.testing.assert_allclose(proof.z, other.z, rtol=1e-9, atol=1e-9)


def test_one_column_is_the_plain_method():
    """With one row at a time a pass is that of DeviceSDCA, whatever the other columns are."""
    _, (*problems, _) = columns("logistic")
    solver = DeviceSDCA(deterministic=True)
    states = [solver.begin(problem, np.random.default_rng(0)) for problem in problems]
    limits = SimpleNamespace(interrupt=threading.Event(), out_of_time=lambda: False)
    states[0].rng = np.random.default_rng(5)
    assert together._visit(Columns(problems), states, 2, limits) == 2
    rng, alone = np.random.default_rng(5), solver.begin(problems[0], np.random.default_rng(0))
    alone.length = n = problems[0].shape[0]
    for _ in range(2):
        alone.factor, alone.shift = device_sdca._coprime(rng, n), int(rng.integers(n))
        alone.done = 0
        solver._visit(problems[0], alone, n)
        alone.bias[0] += alone.rho * alone.bias[1]
    np.testing.assert_allclose(to_host(states[0].alpha), to_host(alone.alpha), rtol=1e-12)
    np.testing.assert_allclose(to_host(states[0].bias), to_host(alone.bias), rtol=1e-11)


@pytest.mark.parametrize("count", [2, 5, 33])
def test_any_number_of_columns(count):
    lams = np.geomspace(0.1, 1.0, count)
    _, there = columns("smooth-hinge", "dense", lams)
    for lam, run in zip(lams, solve(there, tol=1e-2), strict=True):
        w = run.certificate
        assert w.relative_gap <= 1e-2
        plain = zg.solve(make("smooth-hinge", *BOTH["dense"], lam=lam), zg.SDCA(), tol=1e-4)
        distance = np.linalg.norm(run.w - plain.w)
        assert distance <= np.sqrt(2.0 * w.gap / lam) + np.sqrt(2.0 * plain.certificate.gap / lam)


def test_one_row_at_a_time_gives_the_same_bits():
    _, there = columns("hinge", "dense")
    first, second = (solve(there, DeviceSDCA(deterministic=True)) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.w, other.w)
        np.testing.assert_array_equal(one.alpha, other.alpha)


def test_budgets_callbacks_and_interrupts_end_it():
    _, there = columns("hinge", "dense")
    for run in solve(there, tol=0.0, max_epochs=6):
        assert run.stop_reason == "max_epochs"
        assert run.certificate.epochs == 6
    seen = []
    for run in solve(there, tol=0.0, callback=lambda record: seen.append(record) or "enough"):
        assert run.stop_reason == "enough"
    assert len(seen) == 3
    stop = threading.Event()
    ended = solve(there, tol=0.0, callback=lambda record: stop.set(), interrupt=stop)
    assert {run.stop_reason for run in ended} == {"interrupted"}
    assert all(np.isfinite(run.certificate.gap) for run in ended)


def test_warm_starts_are_taken_up():
    _, there = columns("logistic")
    first = solve(there)
    starts = [(run.w, run.b, run.alpha) for run in first]
    assert all(run.certificate.epochs == 0 for run in solve(there, warm_starts=starts))


def test_columns_far_from_zero_are_certified_as_they_are_given():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(30))
    here = [zg.Problem(X + 2000.0, y, "hinge", lam, fit_intercept=True) for lam in LAMS]
    there = [to_device(problem) for problem in here]
    starts = None
    for _ in range(2):
        found = solve(there, tol=1e-2, warm_starts=starts)
        starts = [(run.w, run.b, run.alpha) for run in found]
        for problem, run in zip(here, found, strict=True):
            assert run.stop_reason == "converged"
            again = problem.certificate(run.w, run.b, run.alpha)
            assert again.primal == pytest.approx(run.certificate.primal, rel=1e-9)
            assert again.gap == pytest.approx(run.certificate.gap, abs=1e-9)
    assert all(run.certificate.epochs == 0 for run in found)


@pytest.fixture
def failing(monkeypatch):
    """A device that fails after its first epochs."""
    visit = together._visit

    def once(columns, states, *rest):
        if states[0].updates > 0:
            raise DeviceError("the GPU has failed")
        return visit(columns, states, *rest)

    monkeypatch.setattr(together, "_visit", once)


@pytest.mark.usefixtures("failing")
def test_a_failing_device_leaves_all_models():
    _, there = columns("hinge", "dense")
    with pytest.raises(DeviceError) as caught:
        solve(there, tol=0.0)
    assert [run.stop_reason for run in caught.value.result] == ["device failed"] * 3
    assert all(np.abs(run.w).max() > 0 for run in caught.value.result)


def labelled(n=15):
    X, y = make_data("squared", n, 3)
    return X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_one_against_rest_is_solved_together(storage, monkeypatch):
    monkeypatch.setattr(device_auto, "DIRECT", 1)  # three features are many
    calls = []
    visit = together._visit
    monkeypatch.setattr(together, "_visit", lambda *a: calls.append(len(a[1])) or visit(*a))
    X, y = labelled()
    X = sparse.csr_matrix(X) if storage == "csr" else X
    options = {"lam": 0.1, "tol": 1e-3, "fit_intercept": False, "random_state": 0}
    here, there = (
        zg.LinearClassifier("hinge", device=device, **options).fit(X, y)
        for device in ("cpu", "cuda")
    )
    assert calls[0] == 3
    assert there.certificate_.relative_gap <= 1e-3
    assert len(there.certificate_.parts) == 3
    assert "3 models at a time" in there.certificate_.parts[0].solver
    limit = sum(2.0 * model.certificate_.gap / 0.1 for model in (here, there))
    assert np.linalg.norm(there.coef_ - here.coef_) ** 2 <= 2.0 * limit
    again = zg.LinearClassifier("hinge", device="cuda", warm_start=True, **options).fit(X, y)
    assert again.fit(X, y).certificate_.epochs == 0
    with pytest.raises(ValueError, match="checkpoints are not written from a GPU"):
        again.set_params(checkpoint="run").fit(X, y)


@pytest.mark.usefixtures("failing")
def test_a_failing_device_leaves_the_estimator_its_models(monkeypatch):
    monkeypatch.setattr(device_auto, "DIRECT", 1)
    options = {"lam": 0.1, "tol": 0.0, "fit_intercept": False, "random_state": 0}
    model = zg.LinearClassifier("hinge", device="cuda", **options)
    with pytest.raises(DeviceError):
        model.fit(*labelled())
    assert model.coef_.shape == (3, 3)
    assert model.certificate_.stop_reason == "device failed"


def test_methods_for_few_features_take_them_one_by_one():
    _, there = columns("hinge")
    assert problems_together(there, zg.Auto(), "cuda") is None
    assert problems_together(there, zg.Newton(), "cuda") is None
    assert problems_together(there, zg.SDCA(), "cuda") is not None
    assert problems_together(there[:1], zg.SDCA(), "cuda") is None


@pytest.mark.parametrize("solver", ["sdca", "newton"])
def test_a_path_of_lambdas(solver):
    X, y = make_data("logistic", 30, 3)
    lams = [0.05, 0.5, 0.2]
    options = {"loss": "logistic", "solver": solver, "tol": 1e-4, "random_state": 0}
    here, there = (zg.path(X, y, lams, device=device, **options) for device in ("cpu", "cuda"))
    np.testing.assert_array_equal(there.lams, lams)
    assert max(certificate.relative_gap for certificate in there.certificates) <= 1e-4
    np.testing.assert_allclose(there.coefs, here.coefs, atol=0.1)
    np.testing.assert_allclose(there.intercepts, here.intercepts, atol=0.1)


def test_a_path_without_holes():
    X, y = make_data("logistic", 15, 3)
    options = {"loss": "logistic", "fit_intercept": False, "tol": 0.05, "random_state": 0}
    path = zg.path(X, y, lam_min=0.3, device="cuda", **options)
    for lam in np.geomspace(path.edges[0], path.edges[-1], 20):
        model = path.at(float(lam))
        again = zg.Problem(X, y, "logistic", float(lam)).certificate(model.w, 0.0, model.alpha)
        assert again.gap == pytest.approx(model.certificate.gap, rel=1e-6, abs=1e-12)
        assert again.relative_gap <= 0.05

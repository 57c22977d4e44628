"""A problem on a device says what it says on the processor."""

import numpy as np
import pytest
from scipy import sparse

import zerogap as zg
from cuda_cases.common import BOTH, PLAIN, VARIANTS, make
from problems import make_data
from zerogap.cuda import DeviceProblem, to_device
from zerogap.cuda.device import to_host
from zerogap.cuda.rows import as_device_rows
from zerogap.losses import LOSSES, MULTICLASS_LOSSES


def point_of(problem):
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal(problem.weight_shape), rng.standard_normal(problem.weight_shape[:-1])
    raw = 0.5 * rng.standard_normal(problem.dual_shape)
    return w, (b if np.ndim(b) else float(b)) * problem.fit_intercept, raw


def numbers(problem, w, b, raw):
    """All that a problem says of a point."""
    w, b, raw = map(problem.place, (w, b, raw))
    z, alpha = problem.scores(w), problem.feasible(raw)
    found = {
        "scores": z,
        "feasible": alpha,
        "dual_sum": problem.dual_sum(alpha),
        "weights": problem.weights(alpha),
        "dual_from_scores": problem.dual_from_scores(z + b),
        "dual_point": problem.dual_point(z, b),
        "gradient": problem.gradient(w, b),
        "primal": problem.primal(w, b),
        "dual": problem.dual(alpha),
        "sqnorms": problem.sqnorms,
    }
    for name, given in (("given", alpha), ("own", None)):
        certificate = problem.certificate(w, b, given)
        found[name] = np.array([certificate.primal, certificate.dual, certificate.gap])
    return {name: problem.host(value) for name, value in found.items()}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", [*LOSSES, *MULTICLASS_LOSSES])
def test_problem_has_the_numbers_of_the_processor(loss, variant):
    problem = make(loss, *variant)
    point = point_of(problem)
    expected, found = numbers(problem, *point), numbers(to_device(problem), *point)
    assert np.isfinite(expected["dual"])
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("loss", LOSSES)
def test_problem_has_as_good_an_intercept(loss):
    problem = make(loss, *BOTH["csr"])
    w, _, _ = point_of(problem)
    z, on_device = problem.scores(w), to_device(problem)
    found = on_device.best_intercept(on_device.place(z), accuracy=1e-12)
    best = problem.primal(w, problem.best_intercept(z))
    assert problem.primal(w, found) <= best * (1 + 1e-10) + 1e-12


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_problem_counts_a_weight_as_a_repetition(storage):
    X, y = make_data("logistic", 8, 3)
    times = np.array([0, 1, 2, 3, 1, 0, 2, 1])
    places = np.repeat(np.arange(8), times)
    wrap = sparse.csr_matrix if storage == "csr" else np.asarray
    weighted = to_device(zg.Problem(wrap(X), y, "logistic", 0.1, times))
    repeated = to_device(zg.Problem(wrap(X[places]), y[places], "logistic", 0.1))
    w, _, raw = point_of(weighted)
    alpha = to_host(weighted.feasible(weighted.place(raw)))
    gradients = (to_host(p.gradient(w)) for p in (weighted, repeated))
    np.testing.assert_allclose(*gradients, rtol=1e-12)
    assert weighted.primal(w) == pytest.approx(repeated.primal(w), rel=1e-13)
    assert weighted.dual(alpha) == pytest.approx(repeated.dual(alpha[places]), rel=1e-13)


def test_problem_is_moved_once_and_made_of_rows_that_were():
    problem = make("hinge", *BOTH["csr"])
    moved = to_device(problem)
    assert isinstance(moved, DeviceProblem)
    assert to_device(moved) is moved
    rows = as_device_rows(problem.rows)
    assert as_device_rows(rows) is rows
    made = zg.Problem(rows, problem.y, "hinge", 0.1, np.arange(14) % 3, True)
    w, b, raw = point_of(problem)
    assert made.rows is rows
    assert made.certificate(w, b, raw) == moved.certificate(w, b, raw)


def test_problem_without_rows_has_no_loss():
    moved = to_device(make("hinge", *BOTH["csr"]))
    nothing = moved.take(moved.xp.zeros(0, np.int64))
    assert nothing.mean_loss(moved.xp.zeros(0)) == 0.0
    np.testing.assert_array_equal(to_host(nothing.dual_sum(moved.xp.zeros(0))), np.zeros(3))


def test_problem_refuses_points_that_do_not_belong_to_it():
    moved = to_device(make("hinge", *PLAIN))
    with pytest.raises(ValueError, match=r"w must be finite numbers of shape \(3,\), got \(5,\)"):
        moved.primal(np.ones(5))
    with pytest.raises(ValueError, match=r"alpha must be finite numbers of shape \(14,\)"):
        moved.dual(np.full(14, np.nan))

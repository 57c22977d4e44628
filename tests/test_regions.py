"""Regions contain the optimum, whatever the model and the dual point they are made of."""

import numpy as np
import pytest

import zerogap as zg
from problems import make_problem
from zerogap.losses import LOSSES
from zerogap.problem.proving import Proof
from zerogap.regions import ProofWithoutRows, find_region

MULTICLASS = ("multiclass-hinge", "softmax")


def make_multiclass(loss, intercept, l1_ratio, lam, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((40, 4)), np.arange(40) % 3
    X[:, 0] += y
    return zg.Problem(X, y, loss, lam, rng.integers(1, 4, 40), intercept, l1_ratio)


def optimum(problem):
    """Return weights and intercepts of a solution that is a million times closer than needed."""
    return zg.solve(problem, zg.SDCA(), tol=1e-13, max_epochs=20_000, random_state=0)


def rough(problem, epochs, seed):
    """Return a model and a dual point on the way, and the gap between them."""
    found = zg.solve(problem, zg.SDCA(), tol=0, max_epochs=epochs, random_state=seed)
    return found.w, found.b, found.alpha, found.certificate.gap


@pytest.mark.parametrize("loss", [*LOSSES, *MULTICLASS])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.3])
def test_the_optimum_is_in_its_region(loss, intercept, l1_ratio):
    for seed, lam in enumerate([0.3, 0.03, 0.003]):
        if loss in MULTICLASS:
            problem = make_multiclass(loss, intercept, l1_ratio, lam, seed)
        else:
            problem = make_problem(
                loss,
                "csr",
                weighted=True,
                intercept=intercept,
                l1_ratio=l1_ratio,
                lam=lam,
                seed=seed,
            )
        exact = optimum(problem)
        assert exact.certificate.relative_gap <= 1e-9
        slack = 2.0 * np.sqrt(exact.certificate.gap / lam)
        for epochs in (1, 3, 20):
            w, b, alpha, _ = rough(problem, epochs, seed)
            region = find_region(problem, w, b, alpha)
            assert np.linalg.norm(w - exact.w) <= region.radius + slack
            shift = np.mean(b) - np.mean(exact.b) if loss in MULTICLASS else 0.0
            unique = loss in ("logistic", "squared", "softmax")  # others may have an interval of b
            width = 1e-3 if not unique else 1e-6
            assert np.all(region.low <= np.asarray(exact.b) + shift + width)
            assert np.all(np.asarray(exact.b) + shift <= region.high + width)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_radius_is_not_larger_than_theory_asks_for(loss):
    problem = make_problem(loss, intercept=False)
    w, b, alpha, gap = rough(problem, 2, 0)
    region = find_region(problem, w, b, alpha)
    assert region.radius <= np.sqrt(2.0 * gap / problem.lam) * (1 + 1e-9)
    assert region.radius == pytest.approx(np.sqrt(gap / problem.lam), rel=1e-6)
    other = find_region(problem, w + 0.1, b, alpha)
    assert other.radius <= np.sqrt(2.0 * problem.certificate(w + 0.1, b, alpha).gap / problem.lam)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "absolute", "softmax"])
def test_regions_shrink_with_the_gap(loss):
    problem = (
        make_multiclass(loss, True, 0.0, 0.03, 0)
        if loss in MULTICLASS
        else make_problem(loss, intercept=True)
    )
    sizes = []
    for tol in (1e-2, 1e-4, 1e-8):
        found = zg.solve(problem, zg.SDCA(), tol=tol, max_epochs=20_000, random_state=0)
        region = find_region(problem, found.w, found.b, found.alpha)
        sizes.append([region.radius, float(np.max(region.high - region.low))])
    assert np.all(np.isfinite(sizes))
    assert np.all(np.diff(sizes, axis=0) < 0)
    assert sizes[-1][1] < 0.1


def test_what_a_run_keeps_is_enough():
    problem = make_problem("hinge", intercept=True)
    found = zg.solve(problem, zg.SDCA(), tol=1e-3, random_state=0)
    kept = ProofWithoutRows.of(problem, found.w, found.proof).region
    anew = find_region(problem, found.w, found.b, found.alpha)
    assert kept.radius >= anew.radius * (1 - 1e-9)  # the dual point may be an older one
    assert kept.radius <= np.sqrt(2.0 * found.certificate.gap / problem.lam) * (1 + 1e-9)
    assert kept.high - kept.low == pytest.approx(anew.high - anew.low, rel=0.5)


def test_without_a_gap_nothing_is_known():
    problem = make_problem("hinge", intercept=True)
    proof = Proof(0.0, np.zeros(40), 1.0, np.inf)
    region = ProofWithoutRows.of(problem, np.zeros(5), proof).region
    assert region.radius == np.inf
    assert region.low[0] == -np.inf
    assert region.high[0] == np.inf


def test_P6_a_gap_over_lam_that_overflows_says_nothing():
    """The radius is infinite then, not NaN, and no exception is raised."""
    problem = zg.Problem([[1.0], [-1.0]], [1e140, -1e140], "squared", lam=1e-100)
    region = find_region(problem, np.array([1e100]), 0.0)
    assert region.radius == np.inf
    assert region.low == -np.inf
    assert region.high == np.inf

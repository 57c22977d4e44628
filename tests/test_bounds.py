"""A-priori bounds: published numbers, inverses and scales, and the theorems along real runs."""

import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import zerogap as zg
from zerogap import bounds

LAM = 0.02
KINDS = [
    {"kind": "average"},
    {"kind": "random", "projection": False},
    {"kind": "random", "delta": 0.05},
    {"kind": "high-probability", "delta": 0.05},
    {"kind": "high-probability-random", "delta": 0.3, "projection": False},
]
CASES = [
    {"loss": "hinge"},
    {"loss": "hinge", "sharp": True},
    {"loss": "logistic", "theorem": "lipschitz"},
    {"loss": "logistic"},
    {"loss": "smooth-hinge", "output": "last"},
    {"loss": "squared", "initial": 3.0},
    {"lipschitz": 2.0, "gamma": 0.1},
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def make_rows(which):
    """Two data sets with rows of norm at most 1, and exactly 1 in the wide and noisy one."""
    if which == "simulated":
        X, y, _ = zg.datasets.make_simulated(150, 5, noise=0.5, random_state=0)
        return X / np.linalg.norm(X, axis=1).max(), y
    X, y, _ = zg.datasets.make_simulated(100, 30, noise=10.0, random_state=1)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


every_data_set = pytest.mark.parametrize("which", ["simulated", "wide"])


# Counts


@pytest.mark.parametrize(
    ("n", "lam", "count"),
    [(452, 0.1, 201862), (48842, 0.05, 795985), (452, 0.05, 401549), (48842, 0.1, 629840)],
)
def test_published_counts_of_lipschitz_losses(n, lam, count):
    bound = bounds.sdca(n, lam, 1e-3, loss="logistic", theorem="lipschitz")
    assert bound.iterations == count
    assert bound.epochs == count / n
    assert bound.iterations - bound.t0 == n + round(4 / (lam * 1e-3))
    assert bounds.sdca(n, lam, 1e-3) == bounds.sdca(n, lam, 1e-3, lipschitz=1.0) == bound


def test_published_counts_of_smooth_losses():
    def last(radius):
        return bounds.sdca(452, 0.1, 1e-3, loss="logistic", output="last", radius=radius).iterations

    a = 452 + 262 / 0.4
    assert last(1.0) == 5921
    assert last(math.sqrt(262)) == 15407 == math.ceil(a * math.log(a / 1e-3))
    assert last(math.sqrt(2814)) == 118510
    assert bounds.sdca(452, 0.1, 1e-3, gamma=4.0, output="last").iterations == 5921


def test_sharp_constants():
    sharp = bounds.sdca(452, 0.1, 1e-3, sharp=True)
    assert sharp.iterations == math.ceil(452 * math.log(2 * 0.1 * 452)) + 452 + 50_000
    # The dual variables of the absolute loss fill an interval of width 2 L: nothing is gained
    plain = bounds.sdca(452, 0.1, 1e-3, loss="absolute")
    assert bounds.sdca(452, 0.1, 1e-3, loss="absolute", sharp=True) == plain
    narrow = bounds.sdca(452, 0.1, 1e-3, loss=zg.Quantile(q=0.9), sharp=True)
    assert narrow.iterations == sharp.iterations


def test_smaller_bound_by_default():
    lipschitz, smooth, auto = (
        bounds.sdca(1000, 1e-2, 1e-2, loss="logistic", theorem=theorem)
        for theorem in ("lipschitz", "smooth", "auto")
    )
    assert auto == smooth
    assert smooth.iterations < lipschitz.iterations
    rough = zg.SmoothHinge(gamma=1e-6)
    auto = bounds.sdca(1000, 1e-2, 1e-2, loss=rough)
    assert auto == bounds.sdca(1000, 1e-2, 1e-2, loss=rough, theorem="lipschitz")


def test_the_choice_of_t0_makes_smooth_counts_smallest():
    bound = bounds.sdca(300, 0.02, 1e-2, loss="logistic", theorem="smooth")
    a = 300 + 1 / (0.02 * 4)
    k = np.arange(1, 3000)
    t0 = np.maximum(0, np.ceil(a * np.log(a / (k * 1e-2))))
    assert bound.iterations <= (t0 + k).min() + 1
    loose = bounds.sdca(300, 0.02, 5.0, loss="logistic", theorem="smooth")
    assert (loose.t0, loose.iterations) == (0, math.ceil(a / 5.0))


@every_case
def test_sdca_counts_reach_eps(case):
    for n, lam, eps in [(452, 0.1, 1e-3), (50, 1e-3, 0.2), (7, 3.0, 1e-6), (10_000, 1e-5, 1e-2)]:
        bound = bounds.sdca(n, lam, eps, radius=1.5, **case)
        T = bound.iterations
        assert bound.error == eps
        assert bound.curve(T, bound.t0) <= eps * (1 + 1e-12)
        if bound.t0 is None:
            assert bound.curve(T - 1) > eps
        else:
            assert 0 <= bound.t0 < T
            assert math.isnan(bound.curve(bound.t0, bound.t0))


@every_kind
@pytest.mark.parametrize(("lam", "eps"), [(0.1, 0.05), (1e-4, 1e-3), (0.2, 2.0), (1e-5, 1e-6)])
def test_pegasos_counts_are_the_smallest(kind, lam, eps):
    bound = bounds.pegasos(lam, eps, **kind)
    T = bound.iterations
    assert bound.error == bound.curve(T) <= eps < bound.curve(T - 1)
    assert bounds.pegasos(lam, n_iterations=T, **kind) == bound


def test_pegasos_formulas():
    T, lam, R = 1000, 0.04, 2.0
    c = (0.2 + R) ** 2

    def error(**case):
        return bounds.pegasos(lam, n_iterations=T, radius=R, **case).error

    expected = c * (1 + math.log(T)) / (2 * lam * T)
    assert error() == error(kind="random") == pytest.approx(expected)
    assert error() <= c * math.log(T) / (lam * T)  # as published
    assert error(delta=0.1) == pytest.approx(10 * expected)
    assert error(projection=False) == pytest.approx(expected * 4 * R * R / c)
    strong = 21 * c * math.log(T / 0.1) / (lam * T)
    assert error(kind="high-probability", delta=0.1) == pytest.approx(strong)
    assert error(kind="high-probability-random", delta=0.1) == pytest.approx(2 * strong)


def test_probabilities():
    found = [bounds.pegasos(LAM, 0.1, **kind).probability for kind in KINDS]
    assert found == [None, None, 0.95, 0.95, 0.35]
    assert bounds.sdca(10, LAM, 0.1).probability is None


# Laws


@every_case
def test_sdca_is_monotone(case):
    def count(n=500, lam=1e-2, eps=1e-2, radius=1.0):
        return bounds.sdca(n, lam, eps, radius=radius, **case).iterations

    grid = np.geomspace(0.1, 10, 9)
    assert np.all(np.diff([count(eps=1e-2 * g) for g in grid]) < 0)
    assert np.all(np.diff([count(lam=1e-2 * g) for g in grid[:5]]) < 0)
    assert np.all(np.diff([count(radius=g) for g in grid[4:]]) > 0)
    assert np.all(np.diff([count(n=int(500 * g)) for g in grid]) > 0)


@every_kind
def test_pegasos_is_monotone(kind):
    def count(lam=1e-3, eps=1e-2, radius=1.0):
        return bounds.pegasos(lam, eps, radius=radius, **kind).iterations

    grid = np.geomspace(0.1, 10, 9)
    assert np.all(np.diff([count(eps=1e-2 * g) for g in grid]) < 0)
    assert np.all(np.diff([count(lam=1e-3 * g) for g in grid]) < 0)
    assert np.all(np.diff([count(radius=g) for g in grid]) > 0)
    if "delta" in kind:
        deltas = [{**kind, "delta": d} for d in (0.01, 0.1, 0.5)]
        assert np.all(np.diff([bounds.pegasos(1e-3, 1e-2, **d).iterations for d in deltas]) < 0)


@pytest.mark.parametrize("scale", [0.125, 4.0, 1024.0])
def test_counts_do_not_depend_on_scale(scale):
    """Rows c x with c^2 lam are the same problem for w / c."""
    for case in CASES:
        one = bounds.sdca(200, 0.01, 0.01, radius=1.5, **case)
        other = bounds.sdca(200, scale**2 * 0.01, 0.01, radius=scale * 1.5, **case)
        assert (one.t0, one.iterations) == (other.t0, other.iterations)
    for kind in KINDS:
        one = bounds.pegasos(0.01, 0.01, radius=1.5, **kind)
        other = bounds.pegasos(scale**2 * 0.01, 0.01, radius=scale * 1.5, **kind)
        assert abs(one.iterations - other.iterations) <= 1


@every_case
def test_curves_are_vectorised_and_fall(case):
    curve = bounds.sdca(200, 0.01, 0.01, **case).curve
    T = np.unique(np.geomspace(2, 1e6, 60).astype(int))
    values = curve(T)
    assert values.shape == T.shape
    assert np.all(values >= 0)
    assert values[-1] < 1e-2 < values[0]
    assert [curve(int(t)) for t in T] == pytest.approx(values)
    later = T >= 4000  # beyond the first phase, where halves of odd numbers do not matter
    assert np.all(np.diff(values[later]) <= 0)


@every_kind
def test_pegasos_curves(kind):
    curve = bounds.pegasos(0.01, 0.1, **kind).curve
    values = curve(np.arange(0, 1000))
    assert math.isnan(values[0])
    assert np.all(np.diff(values[3:]) < 0)
    assert math.isnan(curve(2)) == kind["kind"].startswith("high")


def test_bounds_are_plain_values():
    bound = bounds.sdca(100, LAM, 0.01, loss="smooth-hinge")
    copy = pickle.loads(pickle.dumps(bound))
    assert copy == bound
    assert copy.curve(500) == bound.curve(500)
    assert "smooth loss" in bound.assumptions
    assert "without projection" in bounds.pegasos(LAM, 0.1, projection=False).assumptions


def test_import_needs_no_compiler():
    code = "import sys, zerogap.bounds as b; b.pegasos(0.1, 0.1); assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Bad input


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "1", None, True])
def test_bad_numbers_are_refused(value):
    good = {"n_samples": 10, "lam": 0.1, "eps": 0.1}
    for name in ("n_samples", "lam", "eps", "radius", "initial"):
        with pytest.raises(ValueError, match=f"{name} must be a positive .*, got {value!r}"):
            bounds.sdca(**{**good, name: value})
    for name in ("lam", "radius"):
        with pytest.raises(ValueError, match=f"{name} must be .*, got {value!r}"):
            bounds.pegasos(**{"lam": 0.1, "eps": 0.1, name: value})
    if value is not None:
        for name in ("lipschitz", "gamma"):
            with pytest.raises(ValueError, match=f"{name} must be .*, got {value!r}"):
                bounds.sdca(**good, **{name: value})
        for case in ({"eps": value}, {"n_iterations": value}, {"eps": 1.0, "delta": value}):
            with pytest.raises(ValueError, match=f"{list(case)[-1]} must be .*, got {value!r}"):
                bounds.pegasos(0.1, **case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"loss": "hinge", "output": "last"}, "output='last' and a loss that is 1-Lipschitz"),
        ({"loss": "hinge", "theorem": "smooth"}, "theorem='smooth'"),
        ({"loss": "squared", "theorem": "lipschitz"}, "inf-Lipschitz and 1-smooth"),
        ({"loss": "hinge", "gamma": 1.0}, "give loss or its constants"),
        ({"loss": "hing"}, "unknown loss 'hing'"),
        ({"theorem": "both"}, "theorem must be one of .*, got 'both'"),
        ({"output": "best"}, "output must be one of .*, got 'best'"),
        ({"radius": 1e150}, "exceeds 10\\^15 updates"),
    ],
)
def test_bad_cases_of_sdca_are_refused(case, message):
    with pytest.raises(ValueError, match=message):
        bounds.sdca(10, 0.1, 0.1, **case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({}, "give either eps or n_iterations"),
        ({"eps": 0.1, "n_iterations": 5}, "give either eps or n_iterations"),
        ({"eps": 0.1, "kind": "last"}, "kind must be one of .*, got 'last'"),
        ({"eps": 0.1, "delta": 1.0}, "delta must be a positive number below 1, got 1.0"),
        ({"eps": 0.1, "kind": "high-probability"}, "delta must be .*, got None"),
        ({"n_iterations": 2, "kind": "high-probability", "delta": 0.1}, "at least 3"),
        ({"n_iterations": 2.5}, "n_iterations must be a positive integer .*, got 2.5"),
        ({"eps": 1e-30}, "exceeds 10\\^15 updates"),
    ],
)
def test_bad_cases_of_pegasos_are_refused(case, message):
    with pytest.raises(ValueError, match=message):
        bounds.pegasos(0.1, **case)


def test_strong_regularisation_has_no_strong_bound():
    """Proved for radius >= 1 and lam <= 1/4 or, after a change of scale, lam <= radius^2 / 4."""
    strong = {"n_iterations": 100, "kind": "high-probability", "delta": 0.1}
    assert bounds.pegasos(0.25, **strong).error > 0
    assert bounds.pegasos(50.0, radius=20.0, **strong).error > 0
    for lam, radius in [(0.3, 1.0), (0.2, 0.5)]:
        with pytest.raises(ValueError, match="needs lam <= radius"):
            bounds.pegasos(lam, radius=radius, **strong)


# The theorems along real runs


def optimum(problem):
    return zg.solve(problem, zg.SDCA(), tol=1e-10, max_epochs=100_000, random_state=0).certificate


@every_data_set
@pytest.mark.parametrize("output", ["average", "random"])
@pytest.mark.parametrize("case", [*CASES[:2], {"loss": "smooth-hinge", "theorem": "smooth"}])
def test_sdca_keeps_its_promise(which, output, case):
    """Mean over 20 runs; the gap must also stay below the curve on the way."""
    X, y = make_rows(which)
    problem, eps = zg.Problem(X, y, case["loss"], LAM), 0.05
    bound = bounds.sdca(len(y), LAM, eps, output=output, **case)
    solver = zg.SDCA(sampling="random", output=output, t0=bound.t0)
    best, distances, gaps = optimum(problem).primal, [], []
    for seed in range(20):
        budget = {"max_examples": bound.iterations, "record": bound.iterations // 30}
        run = zg.solve(problem, solver, tol=0.0, **budget, random_state=seed)
        assert run.history["updates"][-1] == bound.iterations
        distances.append(run.certificate.primal - best)
        gaps.append(run.history["gap"])
    T = np.asarray(run.history["updates"])
    later = bound.t0 < T
    assert -1e-9 <= np.mean(distances) <= np.mean(gaps, axis=0)[-1] <= eps
    assert np.all(np.mean(gaps, axis=0)[later] <= bound.curve(T[later], bound.t0))


@every_data_set
def test_sdca_last_iterate_of_a_smooth_loss(which):
    X, y = make_rows(which)
    problem = zg.Problem(X, y, "smooth-hinge", LAM)
    bound = bounds.sdca(len(y), LAM, 1e-4, loss="smooth-hinge", output="last")
    gaps = []
    for seed in range(20):
        budget = {"max_examples": bound.iterations, "record": bound.iterations // 30}
        run = zg.solve(problem, zg.SDCA("random"), tol=0.0, **budget, random_state=seed)
        gaps.append(run.history["gap"])
    T = np.asarray(run.history["updates"])
    assert T[-1] == bound.iterations
    assert np.mean(gaps, axis=0)[-1] <= 1e-4
    assert np.all(np.mean(gaps, axis=0)[T > 0] <= bound.curve(T[T > 0]))


def pegasos_runs(X, y, lam, T, projection, runs=100, batch=1):
    """Return P of w_1..w_T and of their running averages, each of shape (T, runs)."""
    rng = np.random.default_rng(0)
    W, mean = np.zeros((2, runs, X.shape[1]))
    values = np.empty((2, T, runs))
    for t in range(1, T + 1):
        mean += (W - mean) / t
        for k, V in enumerate((W, mean)):
            hinge = np.maximum(0.0, 1.0 - y * (V @ X.T)).mean(axis=1)
            values[k, t - 1] = hinge + 0.5 * lam * (V * V).sum(axis=1)
        i = rng.integers(len(y), size=(runs, batch)) if batch else np.arange(len(y))[None]
        Z = y[i][..., None] * X[i]
        active = (Z * W[:, None]).sum(axis=2) < 1.0
        W = (1.0 - 1.0 / t) * W + (active[..., None] * Z).mean(axis=1) / (lam * t)
        if projection:
            norms = np.linalg.norm(W, axis=1, keepdims=True)
            W *= np.minimum(1.0, 1.0 / (np.sqrt(lam) * np.maximum(norms, 1e-300)))
    return values


@every_data_set
@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("lam", [1e-3, LAM, 1.0])
def test_pegasos_keeps_its_promise(which, projection, lam):
    X, y = make_rows(which)
    T = 600
    iterates, averages = pegasos_runs(X, y, lam, T, projection)
    best = optimum(zg.Problem(X, y, "hinge", lam)).dual
    steps = np.arange(1, T + 1)

    def curve(**case):
        return bounds.pegasos(lam, n_iterations=T, projection=projection, **case).curve(steps)

    # The mean over w_1..w_T is the expectation over the random choice among them
    of_random = np.cumsum(iterates - best, axis=0) / steps[:, None]
    assert np.all((averages - best).mean(axis=1) <= of_random.mean(axis=1) + 1e-12)
    assert np.all(of_random.mean(axis=1) <= curve(kind="random"))
    for delta in (0.1, 0.5):
        assert np.mean(iterates - best <= curve(kind="random", delta=delta)[-1]) >= 1 - delta
        assert np.all((averages - best <= curve(delta=delta)[:, None]).mean(axis=1) >= 1 - delta)
        if lam <= 0.25:
            strong = curve(kind="high-probability", delta=delta)[2:, None]
            assert np.all((averages[2:] - best <= strong).mean(axis=1) >= 1 - delta)


@every_data_set
@pytest.mark.parametrize("projection", [True, False])
def test_pegasos_with_all_rows_is_certain(which, projection):
    X, y = make_rows(which)
    bound = bounds.pegasos(LAM, 0.5, projection=projection)
    _, averages = pegasos_runs(X, y, LAM, bound.iterations, projection, runs=1, batch=0)
    distance = averages[:, 0] - optimum(zg.Problem(X, y, "hinge", LAM)).dual
    assert np.all(distance <= bound.curve(np.arange(1, bound.iterations + 1)))
    assert distance[-1] <= 0.5

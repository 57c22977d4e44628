"""What follows from certificates on raw columns, held against exact optima.

Columns of units from 1e-9 to 1e9 with offsets to 1e12, unequal weights, L1: regions, certified
labels and intervals, paths without holes and leave-one-out must hold for the optimum in fractions,
see `exact_optimum`.
"""

import warnings
from fractions import Fraction

import numpy as np
from scipy import sparse

import zerogap as zg
from exact_optimum import exact_optimum
from proofs import JOINT, optima, random_case, rough_model, score_bounds
from proofs_extreme import _loss, check, dual_point, refused
from zerogap.leave_one_out import leave_one_out
from zerogap.losses import LOSSES
from zerogap.paths import PathError
from zerogap.regions import ProofWithoutRows, find_region

DIGIT = Fraction(1, 10**40)  # of the optimum: more than the logistic loss needs


def draw(seed, most=12):
    """Return X, y, loss, lam, weights, whether b is free, and the share of L1."""
    rng = np.random.default_rng([seed, 7])
    loss = _loss(rng, str(rng.choice(list(LOSSES))))
    n, d = int(rng.integers(4, most)), int(rng.integers(1, 4))
    units = 10.0 ** rng.uniform(-1, 1, d) ** rng.choice([1, 9])
    X = rng.standard_normal((n, d))
    score = X @ rng.standard_normal(d) + rng.choice([0.0, 0.7]) * rng.standard_normal(n)
    X = X * units + units * 10.0 ** rng.uniform(0, 12, d) * rng.choice([0.0, 1.0], d)
    if rng.random() < 0.2:
        X[rng.integers(n)] = X[0]
    if rng.random() < 0.1:
        X[rng.integers(n)] = 0.0
    y = (score + rng.choice([0.0, 1e6])) * 10.0 ** rng.choice([-6, 0, 6])
    if loss.task == "classification":
        y = np.where(score > np.median(score), 1.0, -1.0)
        y[:4] = -1.0, 1.0, -1.0, 1.0
    weights = 10.0 ** rng.uniform(-3, 3, n) if rng.random() < 0.3 else None
    if weights is not None and seed % 3 == 0:
        weights[4:][seed % 2 :: 2] = 0.0
    lam = 10.0 ** rng.uniform(-6, 3) * float(np.mean(units**2)) ** rng.choice([0, 1])
    ratio = 0.5 if rng.random() < 0.15 else 0.0
    X = X.astype(np.float32) if rng.random() < 0.1 and units.max() < 1e20 else X
    return X, y, loss, lam, weights, bool(rng.random() < 0.7), ratio


def optimum_of(data):
    """Return the exact optimum, or None if it is not found."""
    run = _solve(zg.Problem(*data), zg.Auto(), tol=1e-14, max_epochs=300)
    return exact_optimum(*data, (run.w, run.b, run.alpha))


def _solve(problem, solver, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zg.solve(problem, solver, random_state=0, **options)


def _score(x, best):
    w, b = best
    return sum(Fraction(float(t)) * v for t, v in zip(x, w, strict=True)) + b


def _distance(x, y):
    return sum((Fraction(float(t)) - v) ** 2 for t, v in zip(x, y, strict=True))


def prove_raw_regions(seed):
    """The optimum is in the region of every run; return the radius."""
    data = draw(seed)
    rng = np.random.default_rng([seed, 8])
    solver = [zg.SDCA(), zg.Auto(), zg.Newton(), zg.InteriorPoint()][rng.integers(4)]
    tol, epochs = 10.0 ** rng.uniform(-12, -1), int(rng.integers(1, 60))
    try:
        problem, best = zg.Problem(*data), optimum_of(data)
        run = _solve(problem, solver, tol=tol, max_epochs=epochs)
    except ValueError as error:
        return refused(error)
    if best is None:
        return None
    regions = [ProofWithoutRows.of(problem, run.w, run.proof).region]
    regions.append(find_region(problem, run.w, run.b, run.alpha))
    for region in regions:
        if not np.isfinite(region.radius):
            continue
        away, radius = _distance(run.w, best[0]), Fraction(region.radius)
        assert away <= radius**2 * (1 + DIGIT), (seed, float(away) ** 0.5, region)
        origin = region.origin if len(region.origin) else np.zeros(len(run.w))
        level, room = _score(origin, best), DIGIT * (1 + abs(_score(origin, best)))
        for end, sign in ((region.low[0], 1), (region.high[0], -1)):
            inside = np.isinf(end) or sign * (level - Fraction(end)) >= -room
            assert inside, (seed, float(level), region)
    return float(regions[0].radius)


def prove_raw_predictions(seed):
    """Certified labels and intervals of raw rows are those of the optimum; return their share."""
    X, y, loss, lam, weights, free, ratio = data = draw(seed)
    try:
        best = optimum_of(data)
    except ValueError as error:
        return refused(error)
    if best is None:
        return None
    rng = np.random.default_rng([seed, 9])
    cls = zg.LinearRegressor if loss.task == "regression" else zg.LinearClassifier
    settings = {"lam": lam, "fit_intercept": free, "l1_ratio": ratio, "random_state": 0}
    tol, epochs = 10.0 ** rng.uniform(-12, -1), int(rng.integers(1, 100))
    model = cls(loss, tol=tol, max_epochs=epochs, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, weights)
    dense = _dense(X)
    rows = dense + dense.std(axis=0) * rng.standard_normal(dense.shape)
    rows[0] *= rng.choice([1.0, 1e150, 1e-150])
    exact = [_score(x, best) for x in rows]
    if loss.task == "regression":
        _, low, high = model.predict_certified(rows)
        for z, left, right in zip(exact, low, high, strict=True):
            room = DIGIT * (1 + abs(z))
            assert np.isinf(left) or Fraction(left) <= z + room, (seed, float(z), left, right)
            assert np.isinf(right) or z - room <= Fraction(right), (seed, float(z), left, right)
        return float(np.mean(np.isfinite(high - low)))
    labels, certified = model.predict_certified(rows)
    for z, label, sure in zip(exact, labels, certified, strict=True):
        assert not sure or (z > 0) == (label > 0), (seed, float(z), label)
    return float(certified.mean())


def prove_raw_paths(seed):
    """Every lambda of an interval is within tol, in exact arithmetic; return how many models."""
    X, y, loss, lam, weights, free, ratio = draw(seed)
    rng = np.random.default_rng([seed, 10])
    tol = 10.0 ** rng.uniform(-6, -1)
    low, high = lam, lam * (1.0 + 10.0 * np.sqrt(tol) * rng.random())
    given = {"loss": loss, "l1_ratio": ratio, "fit_intercept": free, "sample_weight": weights}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = zg.path(
                X, y, lam_min=low, lam_max=high, tol=tol, max_epochs=300, random_state=0, **given
            )
    except (PathError, ValueError) as error:
        return refused(error)
    for at in (low, high, *np.exp(rng.uniform(np.log(low), np.log(high), 2)), *path.edges[1:-1]):
        at = float(min(max(at, low), high))
        found = path.at(at)
        claimed = found.certificate
        assert claimed.gap <= tol * claimed.primal, (seed, at, claimed)
        data = (X, y, loss, at, weights, free, ratio)
        served = next(run for run in path.results if run.alpha is found.alpha)
        alpha, rest = dual_point(served)
        check(data, found.w, found.b, alpha, claimed, (seed, at), rest)
    return len(path.lams)


def prove_raw_leave_one_out(seed):
    """Scores of rows by the optimum without them are within bounds; return how many were known."""
    X, y, loss, lam, weights, free, ratio = data = draw(seed, most=9)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = leave_one_out(zg.Problem(*data), max_seconds=2.0)
    except ValueError as error:
        return refused(error)
    s = np.ones(len(y)) if weights is None else weights
    checked = 0
    for i in range(0, len(y), 2):
        rest = np.arange(len(y)) != i
        if loss.task == "classification" and free and abs(y[rest].sum()) == rest.sum():
            continue
        share = Fraction(sum(map(Fraction, s))) / Fraction(sum(map(Fraction, s[rest])))
        without = (X[rest], y[rest], loss, Fraction(lam) * share, s[rest], free, ratio)
        near = (*without[:3], float(without[3]), *without[4:])
        run = _solve(zg.Problem(*near), zg.Auto(), tol=1e-14, max_epochs=300)
        best = exact_optimum(*without, (run.w, run.b, run.alpha))
        if best is None:
            continue
        z = _score(X[i], best)
        room = DIGIT * (1 + abs(z))
        where = (seed, i, found.low[i], float(z), found.high[i], found.how[i])
        assert np.isinf(found.low[i]) or Fraction(found.low[i]) <= z + room, where
        assert np.isinf(found.high[i]) or z - room <= Fraction(found.high[i]), where
        checked += 1
    return checked or None


def prove_raw_classes(seed):
    """Labels of many classes, certified far from zero, are those of the optimum near zero.

    Shifts by powers of two of rows with few digits are exact and change intercepts alone.
    """
    rng = np.random.default_rng([seed, 11])
    loss, X, y, weights, X_test, settings = random_case(seed, JOINT)
    X, X_test = (np.round(64.0 * _dense(part)) / 64.0 for part in (X, X_test))
    settings["fit_intercept"] = True
    offset = 2.0 ** rng.integers(0, 36, X.shape[1]) * rng.choice([-1.0, 0.0, 1.0], X.shape[1])
    low, high = score_bounds(optima(loss, X, y, weights, settings), X_test)
    data = (X + offset, y, weights, settings)
    rough = rough_model(zg.LinearClassifier, loss, *data, seed)
    labels, certified = rough.predict_certified(X_test + offset)
    rows = np.arange(len(labels))
    beaten = low > high[rows, labels][:, None]
    assert not np.any(certified & beaten.any(axis=1)), (seed, loss, settings)
    return float(certified.mean())


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X

"""Random problems on which every lambda of a path is held against the exact optimum."""

import numpy as np

import zerogap as zg
from optimum import optimum
from proofs import BINARY, JOINT, REGRESSION, random_case
from zerogap.paths import PathError


def prove_path(seed):
    """What a path claims between its models is what they prove there; return how many it has."""
    loss, X, y, weights, _, settings = random_case(seed, [*BINARY, *REGRESSION, *JOINT])
    rng = np.random.default_rng(seed)
    tol, middle = 10.0 ** rng.uniform(-3.5, -1), settings.pop("lam")
    low, high = middle * 10.0 ** rng.uniform([-1, 0.1], [-0.1, 1])
    del settings["random_state"]
    if loss in BINARY:
        y = np.where(y > y.min(), 1.0, -1.0)
    given = {"loss": loss, "sample_weight": weights, **settings}
    options = {"tol": tol, "max_epochs": 20_000, "random_state": 0}
    try:
        path = zg.path(X, y, lam_min=low, lam_max=high, **given, **options)
    except PathError:
        return None
    assert np.all((path.edges[:-1] <= path.lams) & (path.lams <= path.edges[1:])), seed
    assert (path.edges[0], path.edges[-1]) == (low, high), seed
    lams = np.exp(rng.uniform(np.log(low), np.log(high), 3))
    for lam in (*lams, *path.edges):
        found, problem = path.at(lam), zg.Problem(X, y, lam=lam, **given)
        claimed, true = found.certificate, problem.certificate(found.w, found.b, found.alpha)
        assert claimed.gap <= tol * claimed.primal, (seed, lam)
        assert abs(claimed.primal - true.primal) <= 1e-9 * true.primal, (seed, lam)
        assert abs(claimed.gap - true.gap) <= 1e-6 * true.gap + 1e-9 * true.primal, (seed, lam)
    for lam in lams:
        found, best = path.at(lam), optimum(X, y, lam=lam, weights=weights, loss=loss, **settings)
        claimed, rounding = found.certificate, 1e-12 * best.primal
        assert claimed.dual <= best.primal + rounding, (seed, lam)
        assert claimed.primal >= best.primal - best.gap - rounding, (seed, lam)
        radius = np.sqrt(2.0 * claimed.gap / (lam * (1.0 - settings["l1_ratio"])))
        assert np.linalg.norm(found.w - best.w) <= radius + best.radius, (seed, lam)
    return len(path.lams)

"""Certificates of extreme problems, held against exact arithmetic.

Entries from 1e-300 to 1e300, offsets to 1e15, weights and lambdas over many decades, rows that are
equal, zero or absorbed by others, denormal numbers, small integers, single precision, separable
classes, quantiles near 0 and 1, fifty classes.  `prove_extreme` draws one from a seed, runs a
solver for a while, and evaluates P and D with the fractions of `zerogap.verify`, which shares
nothing with the code that certifies.
"""

import tempfile
import traceback
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy import sparse

import zerogap as zg
from zerogap import solvers, verify
from zerogap.losses import ALL_LOSSES, LOSSES, MULTICLASS_LOSSES, as_loss
from zerogap.solvers.block_sdca import BlockSDCA
from zerogap.store import write_store
from zerogap.streamed import StreamedProblem

ONE_SCORE = ["Auto", "SDCA", "Newton", "InteriorPoint", "ASDCA", "Pegasos", "SGD", "GD", "BCFW"]
JOINT = ["Auto", "SDCA", "MulticlassNewton", "InteriorPoint", "BCFW", "SGD", "GD"]
DECADES = [0, 3, 8, 15, 100, 300]  # of the entries' sizes
PACKAGE = Path(zg.__file__).parent
STORED = 0.1  # of the problems are read from a store


def draw(seed):
    """Return X, y, loss, lam, weights, whether b is free, and the share of L1."""
    rng = np.random.default_rng(seed)
    names = [*LOSSES, *MULTICLASS_LOSSES]
    loss = _loss(rng, str(rng.choice(names)))
    n, d = int(rng.integers(2, 20)), int(rng.integers(1, 6))
    classes = 0
    if loss.task == "multiclass":
        classes = 50 if rng.random() < 0.05 else int(rng.integers(2, 6))
        n = max(n, classes + 2)
    X = _entries(rng, n, d)
    y = _targets(rng, X, loss, classes)
    weights = None if rng.random() < 0.5 else 10.0 ** rng.uniform(-1, 1, n) ** rng.choice([1, 3])
    if weights is not None and rng.random() < 0.3:
        weights = 10.0 ** rng.uniform(-30, 30, n)
    lam = 10.0 ** rng.uniform(*(rng.choice([[-3, 0], [-18, 18]])))
    ratio = 0.0 if rng.random() < 0.7 else float(rng.choice([0.01, 0.5, 0.99]))
    return _stored(rng, X), y, loss, lam, weights, bool(rng.random() < 0.5), ratio


def _loss(rng, name):
    if name == "quantile":
        return zg.Quantile(q=float(rng.choice([1e-9, 0.1, 0.5, 0.9, 1.0 - 1e-9])))
    if name == "smooth-hinge":
        return zg.SmoothHinge(gamma=float(10.0 ** rng.uniform(-3, 3)))
    if name == "huber":
        return zg.Huber(delta=float(10.0 ** rng.uniform(-3, 3)))
    if name == "epsilon-insensitive":
        return zg.EpsilonInsensitive(eps=float(10.0 ** rng.uniform(-3, 3)))
    return as_loss(name)


def _entries(rng, n, d):
    decades = float(rng.choice(DECADES))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-decades, decades, (1, d))
    if rng.random() < 0.3:  # every entry has a size of its own
        X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-decades, decades, (n, d))
    if rng.random() < 0.3:
        X = X + 10.0 ** rng.uniform(0, 15, d)
    if rng.random() < 0.2:
        X[rng.random((n, d)) < 0.5] = 0.0
    if rng.random() < 0.2:
        X[rng.integers(n)] = X[rng.integers(n)]
    if rng.random() < 0.1:
        X[rng.integers(n)] = 0.0
    if rng.random() < 0.1:  # large numbers that cancel
        X[: n // 2] = 2.0**54 * np.sign(X[: n // 2] + 0.5)
    if rng.random() < 0.05:
        X *= 1e-310 / max(np.abs(X).max(), 1e-300)
    return X


def _targets(rng, X, loss, classes):
    n = len(X)
    with np.errstate(all="ignore"):
        spread = np.abs(X).max(axis=0)
        score = (X / np.where(spread > 0, spread, 1.0)) @ rng.standard_normal(X.shape[1])
    score = score + rng.choice([0.0, 0.5]) * rng.standard_normal(n)
    if loss.task == "regression":
        return (score + rng.choice([0.0, 1e9])) * 10.0 ** rng.choice([-9, 0, 9])
    if loss.task == "classification":
        y = np.where(score > np.median(score), 1.0, -1.0)
        y[:2] = -1.0, 1.0
        return y
    return np.append(np.arange(classes), rng.integers(classes, size=n - classes))


def _stored(rng, X):
    kind = rng.random()
    if kind < 0.1 and np.abs(X).max() < 1e30:
        X = X.astype(np.float32)
    elif kind < 0.2 and np.abs(X).max() < 100:
        X = X.astype(np.int8)
    return sparse.csr_matrix(X) if rng.random() < 0.3 else X


def refused(error):
    """Return None for a ValueError that zerogap raised itself; any other is a fault."""
    *_, raised = traceback.walk_tb(error.__traceback__)
    if not Path(raised[0].f_code.co_filename).is_relative_to(PACKAGE):
        raise error
    return None


def exact(problem_data, w, b, alpha, rest=None):
    """Return bounds of P(w, b) and of D(alpha), None if alpha is a little outside its domain.

    The dual point is alpha, or alpha + rest.
    """
    X, y, loss, lam, weights, free, ratio = problem_data
    many = loss.task == "multiclass"
    names = {cls: name for name, cls in ALL_LOSSES.items()}
    parameter = next(
        (getattr(loss, p) for p in ("gamma", "eps", "delta", "q") if hasattr(loss, p)), None
    )
    classes = None if loss.task == "regression" else list(range(int(y.max()) + 1 if many else 2))
    header = {
        "loss": names[type(loss)],
        "parameter": parameter,
        "classes": classes,
        "lam": lam,
        "l1_ratio": ratio,
        "fit_intercept": free,
    }
    places = (y > 0).astype(float) if loss.task == "classification" else y.astype(float)
    s = np.ones(len(y)) if weights is None else weights
    w = np.atleast_2d(w).astype(float)
    b = np.broadcast_to(b, len(w)).astype(float)  # 0.0 without an intercept
    points = [alpha] if rest is None else [alpha, rest]
    votes = np.array(points)[None, :, :] if not many else -np.stack(points).transpose(2, 0, 1)
    if many:
        votes = votes + 0.0
        votes[y, :, np.arange(len(y))] = 0.0
    matrix = verify.Matrix(X.astype(float))
    try:
        return verify.bounds(header, matrix, places, s, w, b, votes)
    except ValueError:
        return verify.bounds(header, matrix, places, s, w, b, 0.0 * votes)[0], None


def prove_extreme(seed):
    """No certificate claims more than exact arithmetic grants; return its relative gap."""
    data = draw(seed)
    X, y, loss, lam, weights, free, ratio = data
    rng = np.random.default_rng([seed, 1])
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        try:
            if loss.task != "multiclass" and rng.random() < STORED:
                codes = (y > 0).astype(int) if loss.task == "classification" else y
                batches = [(X, codes)] if weights is None else [(X, codes, weights)]
                task = "regression" if loss.task == "regression" else "classification"
                store = write_store(f"{folder}/store", batches, task=task, dtype="float64")
                problem = StreamedProblem(store, loss, lam, free, ratio)
                solver = BlockSDCA()
            else:
                problem = zg.Problem(X, y, loss, lam, weights, free, ratio)
                names = JOINT if loss.task == "multiclass" else ONE_SCORE
                solver = getattr(solvers, str(rng.choice(names)))()
            run = zg.solve(
                problem, solver, tol=float(rng.choice([1e-3, 1e-9])), max_epochs=30, random_state=0
            )
        except ValueError as error:
            return refused(error)
    # a store has its rows in another order
    point = (np.empty(0), None) if isinstance(problem, StreamedProblem) else dual_point(run)
    check(data, run.w, run.b, point[0], run.certificate, seed, point[1])
    return run.certificate.relative_gap


def dual_point(run):
    """Return the dual point of a result, and what is to be added to it or None."""
    return run.alpha, None if run.proof is None else run.proof.rest


def check(data, w, b, alpha, certificate, seed, rest=None):
    """Hold a certificate against P and D of its own point, and against P of constant models.

    The dual point is alpha, or alpha + rest.
    """
    assert not certificate.gap < 0.0, (seed, certificate)
    assert not certificate.relative_gap < 0.0, (seed, certificate)
    if not np.isfinite(certificate.gap):
        return
    known = len(alpha) > 0
    joint = data[2].task == "multiclass"
    alpha = alpha if known else np.zeros((len(data[1]), len(w)) if joint else len(data[1]))
    (low, high), dual = exact(data, w, b, alpha, rest)
    if dual is not None and known and not data[5]:
        assert Fraction(certificate.gap) >= low - dual[1], (seed, certificate, float(low - dual[1]))
        assert Fraction(certificate.dual) <= dual[1], (seed, certificate, float(dual[1]))
    bound = Fraction(certificate.dual)
    assert bound <= high, (seed, certificate, float(high))
    for value in (0.0, float(np.max(data[1])), float(np.median(data[1]))):
        if value and not data[5]:
            continue
        constant = np.full(np.shape(b), value) if np.ndim(b) else value
        (_, most), _ = exact(data, np.zeros(np.shape(w)), constant, 0.0 * alpha)
        assert bound <= most, (seed, certificate, value, float(most))
        reached = Fraction(certificate.gap) >= low - most
        assert reached, (seed, certificate, "the gap is less than the distance to a constant")


def prove_given_points(seed):
    """The same for points that nobody computed; return the relative gap."""
    data = draw(seed)
    X, y, loss, lam, weights, free, ratio = data
    rng = np.random.default_rng([seed, 2])
    try:
        problem = zg.Problem(X, y, loss, lam, weights, free, ratio)
    except ValueError as error:
        return refused(error)
    w = rng.standard_normal(problem.weight_shape) * 10.0 ** rng.uniform(-20, 20)
    alpha = rng.standard_normal(problem.dual_shape) * 10.0 ** rng.uniform(-3, 3)
    b = 0.0
    if free:
        b = rng.standard_normal(w.shape[:-1]) * 10.0 ** rng.uniform(-3, 15)
        b = b if np.ndim(b) else float(b)
    with np.errstate(all="ignore"):
        try:
            alpha = problem.feasible(alpha)
            certificate = problem.prove(w, b, problem.scores(w), alpha).certificate
        except ValueError as error:
            return refused(error)
    check(data, w, b, alpha, certificate, seed)
    return certificate.relative_gap

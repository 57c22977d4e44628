"""The same extreme points in memory, in a store, on Dask's workers and in a GPU's simulator.

One point - a model and a dual point, drawn or on the way to the optimum - is certified by all of
them, and each certificate is held against the fractions of `zerogap.verify`.
"""

import itertools
import tempfile
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

import zerogap as zg
from proofs_extreme import check, draw, exact, refused
from zerogap import cuda
from zerogap.cuda.device import SIMULATED, DeviceError
from zerogap.dask import fitting, work
from zerogap.dask.messages import merge
from zerogap.dask.run import Run
from zerogap.solvers.limits import Limits
from zerogap.store import write_store
from zerogap.streamed import StreamedProblem, load

_RUNS = itertools.count()


def prove_evaluators(seed):
    """No evaluator claims more than exact arithmetic grants; return the least relative gap."""
    data = draw(seed)
    rng = np.random.default_rng([seed, 3])
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        store, data = stored(folder, data)
        try:
            problem = zg.Problem(*data)
            near = zg.solve(problem, zg.Auto(), tol=1e-9, max_epochs=30, random_state=0)
        except ValueError as error:
            return refused(error)
        points = [(near.w, near.b, near.alpha), drawn(rng, problem)]
        if loss_knows_differences(problem):
            points.append((near.w, offset(rng, near.b), near.alpha))
        gaps = []
        for point in points:
            for evaluator in (in_memory, in_store, on_workers, on_device):
                found = certified(evaluator, data, store, point)
                if found is not None:
                    hold(data, evaluator.__name__, *found, near, seed)
                    gaps.append(found[-1].relative_gap)
    return min(gaps, default=None)


def stored(folder, data):
    """Return a store of the rows, and the data in its order; None and the data if it refuses."""
    X, y, loss, *rest, weights, free, ratio = data
    task = "regression" if loss.task == "regression" else "classification"
    batches = [(X, y)] if weights is None else [(X, y, weights)]
    try:
        store = write_store(f"{folder}/store", batches, task=task, dtype="float64")
    except ValueError as error:
        return refused(error), data
    X, y, weights = load(store)
    return store, (X, y, loss, *rest, weights, free, ratio)


def drawn(rng, problem):
    """Return a point that nobody computed."""
    w = rng.standard_normal(problem.weight_shape) * 10.0 ** rng.uniform(-20, 20)
    alpha = rng.standard_normal(problem.dual_shape) * 10.0 ** rng.uniform(-3, 3)
    b = rng.standard_normal(w.shape[:-1]) * 10.0 ** rng.uniform(-3, 15) * problem.fit_intercept
    return w, b if np.ndim(b) else float(b), alpha


def loss_knows_differences(problem):
    """Tell whether a common offset of all intercepts changes no loss."""
    return problem.loss.task == "multiclass" and problem.fit_intercept


def offset(rng, b):
    """Return intercepts with a common offset, off by about the root of what that rounds."""
    size = 10.0 ** rng.uniform(0, 12)
    return b + size + np.sqrt(1e-16 * size) * rng.standard_normal(len(b))


def certified(evaluator, data, store, point):
    """Return w, b, alpha and the certificate of an evaluator; None if it refuses."""
    try:
        with np.errstate(all="ignore"):
            return evaluator(data, store, *point)
    except (ValueError, DeviceError) as error:
        return refused(error)


def in_memory(data, store, w, b, alpha):
    problem = zg.Problem(*data)
    alpha = problem.feasible(alpha)  # what `certificate` would do again, with other roundings
    return w, b, alpha, problem.prove(w, b, problem.scores(w), alpha).certificate


def in_store(data, store, w, b, alpha):
    if store is None:
        return None
    _, _, loss, lam, _, free, ratio = data
    problem = StreamedProblem(store, loss, lam, free, ratio)
    alpha = problem.feasible(alpha)
    found = problem._prove(w, b, alpha, *problem._read(w, alpha))
    return w, b, np.array(alpha), found.certificate


def on_device(data, store, w, b, alpha):
    if not SIMULATED:
        return None
    problem = cuda.to_device(zg.Problem(*data))
    alpha = problem.feasible(problem.place(alpha))
    placed = problem.place(w)
    found = problem.prove(placed, problem.place(b), problem.scores(placed), alpha)
    return w, b, problem.host(alpha), found.certificate


def on_workers(data, store, w, b, alpha):
    """What Dask's workers answer, and what the client makes of it, in this process."""
    X, y, loss, lam, weights, free, ratio = data
    classify, run, parts = loss.task != "regression", f"run {next(_RUNS)}", 3
    places = np.array_split(np.arange(len(y)), parts)
    rows = [(X[p], y[p]) if weights is None else (X[p], y[p], weights[p]) for p in places]
    try:
        summaries = [work.load(run, k, classify, [k], rows[k])[0] for k in range(parts)]
        stated = fitting.state(summaries, classify, None)
        (spec, _), *_ = fitting.specs(stated, loss, lam, ratio, free, 0)
        saved = [{k: (0, alpha[p])} for k, p in enumerate(places)]
        totals = merge([work.resync(run, k, 0, spec, saved[k]) for k in range(parts)])

        def ask(job, *given):
            return merge([job(run, k, *given) for k in range(parts)])

        workers = SimpleNamespace(
            measure=lambda: ask(work.measure).summed,
            examine=lambda *given: ask(work.examine, 0, *given),
            precisely=lambda *given: ask(work.precisely, 0, *given).summed,
            **{"rounds": 0, "bytes": 0, "places": []},
        )
        seen = []
        limits = Limits(0.0, 1, callback=lambda record: seen.append(record) or False)
        audited = Run(workers, spec, stated.rows, limits, b)
        audited.measure()
        audited.audit("audit", w, totals.sums, 0.0)
        duals = []
        for k in range(parts):
            for chunk in work._GROUPS[run, k].chunks.values():
                held = chunk.part.feasible(chunk.versions[0][0])
                duals.append(chunk.part.balanced(held, totals.sums) if free else held)
        return seen[0].w, seen[0].b, np.concatenate(duals), seen[0].certificate
    finally:
        work.forget(run)


def hold(data, name, w, b, alpha, certificate, near, seed):
    """Hold a certificate against P and D of its point, and against P of a model near the best."""
    check(data, w, b, alpha, certificate, (seed, name))
    if np.isfinite(certificate.gap):
        low, _ = exact(data, w, b, 0.0 * alpha)[0]
        _, most = exact(data, near.w, near.b, 0.0 * alpha)[0]
        assert Fraction(certificate.dual) <= most, (seed, name, certificate, float(most))
        assert Fraction(certificate.gap) >= low - most, (seed, name, certificate)

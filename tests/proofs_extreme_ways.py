"""Every way to a certificate on extreme problems, held against exact arithmetic.

Points of other problems, checkpoints, runs that a callback or Ctrl-C ends, records on the way,
estimators with weights of classes, rows added and rows forgotten, files, audits of anybody's model,
and stores in single precision: what each of them claims must be true of its own problem.
"""

import dataclasses
import signal
import tempfile
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

import zerogap as zg
from proofs_extreme import JOINT, ONE_SCORE, _entries, _loss, _stored, draw, exact, refused
from zerogap import model_io, solvers, verify
from zerogap.losses import ALL_LOSSES, LOSSES, MULTICLASS_LOSSES
from zerogap.solvers.block_newton import BlockNewton
from zerogap.solvers.block_sdca import BlockSDCA
from zerogap.solvers.protocol import OUTPUTS
from zerogap.store import write_store
from zerogap.streamed import StreamedProblem, load

SHARPEST = {"tol": 1e-13, "max_epochs": 100, "random_state": 0}


def quietly(prove):
    """Run a proof without warnings."""

    def proved(seed):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return prove(seed)

    proved.__name__, proved.__doc__, proved.__module__ = prove.__name__, prove.__doc__, __name__
    return proved


def no_point(data):
    """Return dual variables of zero."""
    many = data[2].task == "multiclass"
    return np.zeros((len(data[1]), int(data[1].max()) + 1) if many else len(data[1]))


def lowest(data, *models):
    """Return the least objective of these and of constant models, or more: P* is not above it."""
    _, y, loss, _, _, free, _ = data
    outputs = (int(y.max()) + 1,) if loss.task == "multiclass" else ()
    nothing = np.zeros((*outputs, data[0].shape[1]))
    constants = {0.0, float(np.median(y)), float(np.max(y))} if free and not outputs else {0.0}
    models = [*models, *((nothing, np.full(outputs, value)) for value in constants)]
    return min(exact(data, w, b, no_point(data))[0][1] for w, b in models)


def sharpest(data):
    """Return the model that `Auto` finds with all digits."""
    run = zg.solve(zg.Problem(*data), zg.Auto(), **SHARPEST)
    return run.w, run.b


def hold(data, w, b, certificate, best, where):
    """Hold a certificate of (w, b) against its objective and an objective that is not below P*."""
    assert not certificate.gap < 0.0, (where, certificate)
    assert not certificate.relative_gap < 0.0, (where, certificate)
    if not np.isfinite(certificate.gap):
        return
    (low, high), _ = exact(data, w, b, no_point(data))
    best = min(best, high)
    assert Fraction(certificate.dual) <= best, (where, certificate, float(best))
    assert Fraction(certificate.gap) >= low - best, (where, certificate, float(low - best))


def other_problem(rng, data):
    """Return the data with another lam, loss, weights, intercept or share of L1."""
    X, y, loss, lam, weights, free, ratio = data
    change = rng.integers(6)
    if change == 0:
        free = not free
    elif change == 1:
        lam *= 10.0 ** rng.uniform(-6, 6)
    elif change == 2:
        weights = 10.0 ** rng.uniform(-9, 9, len(y))
        weights[rng.random(len(y)) < 0.3] = 0.0
        weights[: 2 if loss.task != "multiclass" else int(y.max()) + 1] = 1.0
    elif change == 3:
        tables = (LOSSES, MULTICLASS_LOSSES)
        table = next(t for t in tables if type(loss) in t.values())
        names = [name for name, cls in table.items() if cls.task == loss.task]
        loss = _loss(rng, str(rng.choice(names)))
    elif change == 4:
        ratio = 0.0 if ratio else 0.5
    else:
        y = rng.permutation(y)
    return X, y, loss, lam, weights, free, ratio


@quietly
def prove_handed_over(seed):
    """A point of another problem proves what is true of this one; return the relative gap."""
    rng = np.random.default_rng([seed, 20])
    data = draw(seed)
    other = other_problem(rng, data)
    joint = data[2].task == "multiclass"
    solver = getattr(solvers, str(rng.choice(JOINT if joint else ONE_SCORE)))()
    if rng.random() < 0.3 and "output" in solver.get_params():
        solver = dataclasses.replace(solver, output=str(rng.choice(OUTPUTS)))
    tol, epochs = float(rng.choice([1e-3, 1e-9])), float(rng.choice([0.01, 1.0, 30.0]))
    records = []

    def look(record):
        records.append((record.w.copy(), np.copy(record.b), record.certificate))
        if ending == "callback":
            return len(records) > 1
        if ending == "Ctrl-C" and len(records) == 2:
            signal.raise_signal(signal.SIGINT)
        return False

    ending = str(rng.choice(["budget", "callback", "Ctrl-C"]))
    try:
        start = zg.solve(zg.Problem(*data), zg.Auto(), tol=1e-6, max_epochs=20, random_state=0)
        if rng.random() < 0.3:  # and a point from nowhere
            start = dataclasses.replace(start, w=1e3 * start.w, alpha=-3.0 * start.alpha)
        problem, best = zg.Problem(*other), lowest(other, sharpest(other))
        with tempfile.TemporaryDirectory() as folder:
            saved = f"{folder}/run" if rng.random() < 0.3 else None
            given = {"tol": tol, "callback": look, "random_state": 0, "record": "epoch"}
            given |= {"warm_start": start, "checkpoint": saved, "checkpoint_every": 0.0}
            run = zg.solve(problem, solver, max_epochs=epochs, **given)
            if saved is not None:  # and on from there
                hold(other, run.w, run.b, run.certificate, best, (seed, "before"))
                ending = "budget"
                run = zg.solve(problem, solver, max_epochs=epochs + 5, **given)
    except ValueError as error:
        return refused(error)
    hold(other, run.w, run.b, run.certificate, best, (seed, ending))
    for place in {0, len(records) // 2, len(records) - 1} if records else ():
        hold(other, *records[place], best, (seed, "record", place))
    return run.certificate.relative_gap


def draw_table(rng):
    """Return X, y, weights and an estimator for some extreme rows of one kind of target."""
    loss = _loss(rng, str(rng.choice(list(ALL_LOSSES))))
    n, d = int(rng.integers(10, 24)), int(rng.integers(1, 5))
    X = _entries(rng, n, d)
    classes = 2 if rng.random() < 0.6 else 3
    y = np.append(np.tile(np.arange(classes), 2), rng.integers(classes, size=n - 2 * classes))
    if loss.task == "regression":
        y = rng.standard_normal(n) * 10.0 ** rng.choice([-9, 0, 9]) + rng.choice([0.0, 1e6])
    weights = None if rng.random() < 0.5 else 10.0 ** rng.uniform(-3, 3, n)
    if weights is not None and rng.random() < 0.5:
        weights[2 * classes :][rng.random(n - 2 * classes) < 0.3] = 0.0
    options = {
        "lam": None if rng.random() < 0.3 else 10.0 ** rng.uniform(-6, 3),
        "fit_intercept": bool(rng.random() < 0.7),
        "l1_ratio": 0.0 if rng.random() < 0.8 else 0.5,
        "tol": float(rng.choice([1e-2, 1e-6, 1e-12])),
        "max_epochs": int(rng.choice([1, 5, 100])),
        "random_state": 0,
    }
    kind = zg.LinearRegressor
    if loss.task != "regression":
        kind = zg.LinearClassifier
        heavy = {k: 10.0 ** rng.uniform(-6, 6) for k in range(classes)}
        options["class_weight"] = [None, "balanced", heavy][rng.integers(3)]
    return _stored(rng, X), y, weights, kind(loss, **options)


def parts_of(model, X, y, weights):
    """Return for each problem of a model its data for `exact`, w, b and certificate."""
    problems, answers = zg.audit.posed(model, X, y, weights)
    certificates = model.certificate_.parts or (model.certificate_,)
    for problem, (w, b, _), certificate in zip(problems, answers, certificates, strict=True):
        s = problem.weight if len(problem.weight) else problem.share
        given = (problem.y, problem.loss, problem.lam, s, problem.fit_intercept, problem.l1_ratio)
        yield (X, *given), w, b, certificate


def hold_model(model, X, y, weights, where):
    """Hold an estimator's certificate against the optimum of each of its problems."""
    whole = [Fraction(0), Fraction(0)]
    for data, w, b, certificate in parts_of(model, X, y, weights):
        best = lowest(data, sharpest(data))
        hold(data, w, b, certificate, best, where)
        whole[0] += exact(data, w, b, no_point(data))[0][0]
        whole[1] += best
    said = model.certificate_
    if np.isfinite(said.gap):
        assert Fraction(said.dual) <= whole[1], (where, said)
        assert Fraction(said.gap) >= whole[0] - whole[1], (where, said)


@quietly
def prove_estimators(seed):
    """Fits, rows that come and go, files and audits; return the relative gap of the last model."""
    rng = np.random.default_rng([seed, 21])
    X, y, weights, model = draw_table(rng)
    n = X.shape[0]
    first = n - int(rng.integers(1, 4))
    s = np.ones(n) if weights is None else weights
    try:
        model.fit(X[:first], y[:first], s[:first])
        hold_model(model, X[:first], y[:first], s[:first], (seed, "fit"))
        held = (X[:first], y[:first], s[:first])
        if rng.random() < 0.5:
            model.update(X[first:], y[first:], s[first:], data=held)
            hold_model(model, X, y, s, (seed, "update"))
            held = (X, y, s)
        if rng.random() < 0.5:
            gone = int(rng.integers(6, held[0].shape[0]))
            rest = np.delete(np.arange(held[0].shape[0]), gone)
            model.forget([gone], data=held)
            held = (held[0][rest], held[1][rest], held[2][rest])
            hold_model(model, *held, (seed, "forget"))
        with tempfile.TemporaryDirectory() as folder:
            zg.save(model, f"{folder}/model")
            again = zg.load(f"{folder}/model")
        again.set_params(warm_start=True, fit_intercept=not again.fit_intercept).fit(*held)
        hold_model(again, *held, (seed, "load"))
    except ValueError as error:
        return refused(error)
    said = zg.certify(model, *held[:2], sample_weight=held[2], effort=int(rng.choice([0, 30])))
    audited(model, held, said, seed)
    proof = model_io.prove(model, *held, effort=30)
    answer, reason, _ = verify.verify(proof, *held)
    assert answer == "true", (seed, answer, reason)
    return model.certificate_.relative_gap


def audited(model, held, said, seed):
    """Hold an audit against the optimum: not further away than `gap`, nor nearer than claimed."""
    away, most = Fraction(0), Fraction(0)
    for data, w, b, _ in parts_of(model, *held):
        (low, high), _ = exact(data, w, b, no_point(data))
        near = zg.solve(zg.Problem(*data), zg.Auto(), **SHARPEST)
        away += low - min(high, lowest(data, (near.w, near.b)))
        most += high - Fraction(near.certificate.dual)
    if np.isfinite(said.gap):
        assert Fraction(said.gap) >= away, (seed, said, float(away))
        assert Fraction(said.at_least) <= most, (seed, said, float(most))


@quietly
def prove_audits(seed):
    """Models that nobody fitted, audited; return the relative gap."""
    rng = np.random.default_rng([seed, 22])
    X, y, loss, lam, _, _, ratio = draw(seed)
    joint = loss.task == "multiclass"
    outputs = (int(y.max()) + 1,) if joint else ()
    if joint and outputs[0] == 2:
        return None  # such a model keeps the difference of its classes
    w = rng.standard_normal((*outputs, X.shape[1])) * 10.0 ** rng.uniform(-12, 6)
    b = rng.standard_normal(outputs) * 10.0 ** rng.uniform(-6, 6) * (rng.random() < 0.6)
    data = (X, y, loss, lam, None, bool(np.any(b)), ratio)
    effort = int(rng.choice([0, 5, 30]))
    try:
        if rng.random() < 0.5:  # a model near the best, rounded to single precision
            w, b = (np.asarray(part, np.float32).astype(float) for part in sharpest(data))
            data = (*data[:5], bool(np.any(b)), ratio)
        model = SimpleNamespace(coef_=w, intercept_=b)
        if loss.task != "regression":
            model.classes_ = np.unique(y)
        given = {"loss": loss, "lam": lam, "l1_ratio": ratio, "effort": effort}
        said = zg.certify(model, X, y, **given)
        near = zg.solve(zg.Problem(*data), zg.Auto(), **SHARPEST)
    except ValueError as error:
        return refused(error)
    hold(data, w, b, said, lowest(data, (near.w, near.b)), seed)
    most = exact(data, w, b, no_point(data))[0][1] - Fraction(near.certificate.dual)
    assert Fraction(said.at_least) <= most, (seed, said, float(most))
    return said.relative_gap


@quietly
def prove_stored_runs(seed):
    """Runs over stores, of single precision too; return the relative gap."""
    rng = np.random.default_rng([seed, 23])
    X, y, loss, lam, weights, free, ratio = draw(seed)
    codes = (y > 0).astype(int) if loss.task == "classification" else y
    task = "regression" if loss.task == "regression" else "classification"
    batches = [(X, codes)] if weights is None else [(X, codes, weights)]
    solver = [BlockSDCA(), zg.Auto(), BlockNewton()][rng.integers(3)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            kind = str(rng.choice(["float32", "float64"]))
            store = write_store(f"{folder}/store", batches, task=task, dtype=kind)
            problem = StreamedProblem(store, loss, lam, free, ratio)
            tol = float(rng.choice([1e-3, 1e-9]))
            run = zg.solve(problem, solver, tol=tol, max_epochs=20, random_state=0)
            X, y, weights = load(store)
            y = np.where(y > 0, 1.0, -1.0) if loss.task == "classification" else y
            data = (X, y, loss, lam, weights, free, ratio)
            best = lowest(data, sharpest(data))
        except ValueError as error:
            return refused(error)
    hold(data, run.w, run.b, run.certificate, best, (seed, solver, kind))
    return run.certificate.relative_gap

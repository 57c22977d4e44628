"""Rounds, stamps and recovery, on workers that live in this process and die on command."""

import copy
import dataclasses
import itertools

import numpy as np
import pytest
from scipy import sparse

import zerogap as zg
from raw_stored import CASES, make_table
from zerogap.dask import work
from zerogap.dask import workers as module
from zerogap.dask.backend import LOST, RUNNING
from zerogap.dask.fitting import specs, state, train
from zerogap.dask.messages import Message
from zerogap.dask.workers import Restart, Workers
from zerogap.losses import as_loss
from zerogap.solvers.checkpoint import CheckpointError
from zerogap.solvers.limits import Limits


class Machines:
    """Workers without processes: each has its own state, and can die, freeze or stumble."""

    def __init__(self, count=2):
        self.states = {f"worker-{k}": {} for k in range(count)}
        self.born = count
        self.frozen = set()
        self.before = []  # functions to call before a task runs
        self.calls = 0
        self.limit = 0  # bytes of memory, 0 for none
        self.without_memory = set()  # workers that are paused

    def memory(self):
        return [self.limit] * len(self.states)

    def workers(self):
        return sorted(self.states)

    def submit(self, worker, function, *args):
        for hook in list(self.before):
            hook(self, worker, function)
        self.calls += 1
        if worker not in self.states or worker in self.frozen:
            return RUNNING if worker in self.states else LOST
        return self.on(worker, function, *args)

    def on(self, worker, function, *args):
        """Run a function with the state of a worker; nothing is shared but by a copy."""
        work._GROUPS.clear()
        work._GROUPS.update(self.states[worker])
        try:
            return function(*args)
        finally:
            self.states[worker] = dict(work._GROUPS)
            work._GROUPS.clear()

    def wait(self, tasks, seconds):
        pass

    def outcome(self, task):
        return task

    def cancel(self, tasks):
        pass

    def data(self, source, worker):
        return source() if callable(source) else source

    def stuck(self):
        return self.without_memory

    def check(self, data):
        pass

    def homes(self, data, seconds):
        return [None] * len(data)

    def kill(self, worker, replace=True):
        del self.states[worker]
        if replace:
            self.states[f"worker-{self.born}"] = {}
            self.born += 1


def make(n=200, d=15, seed=0, task="classification", classes=2, density=0.3):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density, format="csr", rng=rng)
    scores = X @ rng.standard_normal((d, classes)) + 0.1 * rng.standard_normal((n, classes))
    if task == "regression":
        return X, scores[:, 0]
    return X, scores.argmax(axis=1) if classes > 2 else np.where(scores[:, 0] > 0, 1.0, -1.0)


def chunks(X, y, count=5, weights=None):
    cuts = np.linspace(0, len(y), count + 1).astype(int)
    spans = [slice(a, b) for a, b in itertools.pairwise(cuts)]
    if weights is None:
        return [(X[s], y[s]) for s in spans]
    return [(X[s], y[s], weights[s]) for s in spans]


def fit(
    machines,
    parts,
    loss="hinge",
    *,
    tol=1e-6,
    lam=None,
    fit_intercept=False,
    l1_ratio=0.0,
    max_rounds=200,
    folder=None,
    callback=None,
    number=0,
    class_weight=None,
    **more,
):
    """Fit one problem; return its outcome and the workers."""
    loss = as_loss(loss)
    classify = loss.task != "regression"
    workers = Workers(machines, parts, "run", classify=classify, **{"n_groups": 2, **more})
    stated = state(workers.load(), classify, class_weight)
    spec, b = specs(stated, loss, lam, l1_ratio, fit_intercept, 0)[number]
    limits = Limits(tol, max_rounds, callback=callback)
    return train(workers, spec, stated, b, limits, folder), workers


def problem_of(X, y, loss, **more):
    codes = np.unique(y, return_inverse=True)[1]
    kind = as_loss(loss).task
    targets = {"regression": y, "multiclass": codes, "classification": 2.0 * codes - 1.0}[kind]
    return zg.Problem(X, targets, loss, **more)


def solved(problem):
    """Return the certificate of one machine."""
    return zg.solve(problem, zg.Auto(), tol=1e-7, max_epochs=3000, random_state=0).certificate


@pytest.mark.parametrize(("loss", "kind"), CASES)
def test_raw_tables_are_proved_as_on_one_machine(loss, kind):
    X, y = make_table(kind, loss)
    settings = {"lam": 1 / len(y), "fit_intercept": True}
    tol = 1e-5 if loss == "multiclass-hinge" else 1e-6
    outcome, workers = fit(Machines(), chunks(X, y), loss, tol=tol, **settings)
    found, best = outcome.certificate, solved(problem := problem_of(X, y, loss, **settings))
    assert found.stop_reason == "converged", str(found)
    assert found.relative_gap <= tol
    assert best.dual <= found.primal <= best.primal + found.gap
    assert found.dual <= best.primal  # weak duality
    assert problem.primal(outcome.w, outcome.b) == pytest.approx(found.primal, rel=1e-5)
    assert workers.rounds <= 150


def test_newton_survives_lost_workers():
    X, y = make_table("million", "hinge")
    settings = {"lam": 1 / len(y), "fit_intercept": True}
    machines, lost = Machines(), []

    def stumble(machines, worker, function):
        if function is work.newton and machines.calls % 17 == 0 and len(lost) < 3:
            lost.append(worker)
            machines.kill(worker)

    machines.before.append(stumble)
    outcome, workers = fit(machines, chunks(X, y), "hinge", **settings)
    assert lost
    assert workers.recoveries
    assert outcome.certificate.stop_reason == "converged"
    best = solved(problem_of(X, y, "hinge", **settings))
    assert best.dual <= outcome.certificate.primal <= best.primal + outcome.certificate.gap


def test_only_what_is_far_everywhere_is_shifted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3)) + np.array([2000.0, 0.0, 0.0])
    X[:200, 2] += 1e6  # far from zero in some chunks only
    X[200:, 2] -= 1e6
    parts = chunks(X, 1e9 + X[:, 1], 4)
    summaries = Workers(Machines(), parts, "run", classify=False, n_groups=2).load()
    stated = state(summaries, False, None)
    assert list(stated.origin != 0) == [True, False, False]
    assert abs(stated.origin[0] - 2000) < 1
    assert abs(stated.target - 1e9) < 1


SCALAR = ["hinge", "smooth-hinge", "squared-hinge", "logistic"]
REAL = ["squared", "absolute", "epsilon-insensitive", "huber", "quantile"]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", [*SCALAR, *REAL, "multiclass-hinge", "softmax"])
def test_answer_is_that_of_one_machine_to_the_gap(loss, fit_intercept):
    task = "regression" if loss in REAL else "classification"
    X, y = make(task=task, classes=3 if loss in ("multiclass-hinge", "softmax") else 2)
    outcome, workers = fit(Machines(), chunks(X, y), loss, lam=0.01, fit_intercept=fit_intercept)
    problem = problem_of(X, y, loss, lam=0.01, fit_intercept=fit_intercept)
    certificate = outcome.certificate
    assert certificate.stop_reason == "converged"
    assert certificate.gap <= 1e-6 * certificate.primal
    assert problem.primal(outcome.w, outcome.b) == pytest.approx(certificate.primal, rel=1e-12)
    exact = solved(problem)
    assert certificate.dual <= exact.primal * (1.0 + 1e-15)  # which is rounded too
    assert exact.dual <= certificate.primal <= exact.primal + certificate.gap + exact.gap
    assert not workers.recoveries


@pytest.mark.parametrize("loss", ["multiclass-hinge", "softmax"])
def test_M2_skewed_weights_do_not_make_certificates_false(loss):
    rng = np.random.default_rng(0)
    for power in range(1, 9):
        X, y = rng.standard_normal((24, 2)), np.append(np.arange(3), rng.integers(3, size=21))
        weights = (10.0 ** np.array([0.0, power, -power]))[y]
        given = {"lam": 0.1, "fit_intercept": True}
        parts = chunks(X, y, weights=weights)
        outcome, _ = fit(Machines(), parts, loss, tol=1e-3, max_rounds=40, **given)
        exact = solved(problem_of(X, y, loss, sample_weight=weights, **given))
        assert outcome.certificate.dual <= exact.primal * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_elastic_net(loss):
    X, y = make()
    outcome, _ = fit(Machines(), chunks(X, y), loss, lam=0.05, l1_ratio=0.9, tol=1e-4)
    problem = problem_of(X, y, loss, lam=0.05, l1_ratio=0.9)
    exact = solved(problem)
    assert outcome.certificate.stop_reason == "converged"
    assert exact.dual <= outcome.certificate.primal <= exact.primal + outcome.certificate.gap
    assert (outcome.w == 0).any()


def test_dual_rises_and_gap_is_exact_in_every_round_of_local_epochs():
    X, y = make(1000)
    seen = []
    fit(
        Machines(4),
        chunks(X, y, 8),
        "logistic",
        lam=1e-2,
        n_groups=4,
        tol=1e-5,
        callback=lambda record: seen.append(record),
    )
    epochs = [record for record in seen if record.certificate.solver == "epochs"]
    duals = [record.certificate.dual for record in epochs]
    assert len(duals) >= 4
    assert all(b > a for a, b in itertools.pairwise(duals))
    problem = problem_of(X, y, "logistic", lam=1e-2)
    for record in epochs:
        assert problem.primal(record.w) == pytest.approx(record.certificate.primal, rel=1e-12)


def test_result_does_not_depend_on_the_number_of_workers():
    X, y = make()
    results = [fit(Machines(count), chunks(X, y, 6), n_groups=3)[0] for count in (1, 2, 5)]
    assert all(np.array_equal(results[0].w, result.w) for result in results)


def test_weights_are_repeated_rows():
    X, y = make(200)
    weights = np.random.default_rng(1).integers(0, 3, 200).astype(float)
    twice = np.repeat(np.arange(200), weights.astype(int))
    a, _ = fit(Machines(), chunks(X, y, weights=weights), "logistic", tol=1e-9)
    b, _ = fit(Machines(), chunks(X[twice], y[twice]), "logistic", tol=1e-9)
    assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=1e-8)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("given", [{0: 5.0, 2: 0.2}, "balanced"], ids=str)
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_class_weights_are_those_of_one_machine(loss, given, weighted):
    """Class 0 against the rest, and all classes jointly; names that are missing weigh 1."""
    X, y = make(classes=3)
    rows = np.random.default_rng(1).uniform(0.2, 3.0, len(y)) if weighted else np.ones(len(y))
    totals = np.bincount(y, rows)
    factors = rows.sum() / (3 * totals) if given == "balanced" else np.ones(3)
    if given != "balanced":
        factors[list(given)] = list(given.values())
    parts = chunks(X, y, weights=rows if weighted else None)
    outcome, _ = fit(Machines(), parts, loss, class_weight=given, fit_intercept=True)
    targets = y if loss == "softmax" else np.where(y == 0, 1.0, -1.0)
    weights = rows * factors[y]
    problem = zg.Problem(X, targets, loss, sample_weight=weights, fit_intercept=True)
    exact = solved(problem)
    certificate = outcome.certificate
    assert certificate.stop_reason == "converged"
    assert problem.primal(outcome.w, outcome.b) == pytest.approx(certificate.primal, rel=1e-12)
    assert exact.dual <= certificate.primal <= exact.primal + certificate.gap + exact.gap


def test_class_weights_without_an_optimum_are_refused():
    X, y = make(classes=3)
    for given, message in (
        ({1: 0.0}, "class 1 has no weight"),
        ({0: 0, 1: 0, 2: 0}, "leaves rows of the total weight 0"),
        ({2: -1.0}, "got -1.0 for class 2"),
        ({2: np.nan}, "got nan for class 2"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(Machines(), chunks(X, y), "softmax", class_weight=given, fit_intercept=True)
    outcome, _ = fit(Machines(), chunks(X, y), "softmax", class_weight={1: 0.0})
    assert outcome.certificate.stop_reason == "converged"


def test_empty_chunks_and_chunks_of_one_class():
    X, y = make()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    parts = [(X[:0], y[:0]), *chunks(X, y, 4), (X[:0], y[:0]), (X[:0], y[:0])]
    outcome, workers = fit(Machines(), parts, n_groups=4)
    assert outcome.certificate.stop_reason == "converged"
    assert len(workers.groups) == 3  # the last one had no rows


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([(np.eye(3), [0, 1, 0]), (np.eye(2), [0, 1])], "chunk 1 has 2 features"),
        ([(np.eye(3), [0, 1, 0]), (np.eye(3) * np.nan, [0, 1, 1])], "chunk 1: .*NaN"),
        ([(np.eye(3), [1, 1, 1])], "only one class"),
        ([(np.eye(3), [0, 1])], "chunk 0: X has shape"),
        ([np.eye(3)], "chunk 0"),
        ([(np.eye(2), ["a", "b"]), (np.eye(2), [0, 1])], "text"),
    ],
)
def test_bad_chunks_are_named(parts, message):
    with pytest.raises(ValueError, match=message):
        fit(Machines(), parts)


def held(machines, group):
    """Return the versions of a group's first chunk, wherever it is."""
    for groups in machines.states.values():
        if ("run", group) in groups:
            return next(iter(groups["run", group].chunks.values())).versions
    raise AssertionError


def test_a_step_that_runs_twice_or_late_changes_nothing():
    X, y = make()
    machines = Machines()
    workers = Workers(machines, chunks(X, y), "run", classify=True, n_groups=2)
    stated = state(workers.load(), True, None)
    (spec, _), *_ = specs(stated, as_loss("hinge"), 1e-3, 0.0, False, 0)
    totals = workers.begin(spec)
    message = Message(totals.u, 0.0, 0.0, job="epoch", grid=np.array([0.0, 1.0]))
    stamp, place = workers.stamp, workers.places[0]
    first = machines.on(place, work.step, "run", 0, stamp, message)
    before = copy.deepcopy(held(machines, 0))
    again = machines.on(place, work.step, "run", 0, stamp, message)
    assert np.array_equal(first.u, again.u)
    assert all(
        np.array_equal(before[s][j], held(machines, 0)[s][j], equal_nan=True)
        for s in before
        for j in range(2)
        if before[s][j] is not None
    )
    later = dataclasses.replace(message, theta=1.0)
    assert machines.on(place, work.step, "run", 0, stamp + 1, later) is not None
    third = machines.on(place, work.step, "run", 0, stamp + 2, later)
    assert third is not None
    now = copy.deepcopy(held(machines, 0))
    assert machines.on(place, work.step, "run", 0, stamp, message) is None  # late: no such state
    assert now.keys() == held(machines, 0).keys()
    elsewhere = next(w for w in machines.workers() if w != place)
    assert machines.on(elsewhere, work.step, "run", 0, stamp + 2, later) is None  # stolen


def killer(every, limit=1000):
    """Return a hook that kills the worker of every so-many-th task."""
    count = {"calls": 0, "kills": 0}

    def hook(machines, worker, function):
        count["calls"] += 1
        due = count["calls"] % every == 0 and count["kills"] < limit
        if due and worker in machines.states and function is not work.forget:
            machines.kill(worker)
            count["kills"] += 1

    hook.count = count
    return hook


@pytest.mark.parametrize("loss", ["hinge", "logistic", "softmax", "absolute"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_storm_of_deaths_ends_certified(loss, fit_intercept):
    task = "regression" if loss == "absolute" else "classification"
    X, y = make(task=task, classes=3 if loss == "softmax" else 2)
    machines = Machines(3)
    machines.before.append(hook := killer(17, limit=12))
    parts = chunks(X, y, 6)
    outcome, workers = fit(
        machines, parts, loss, lam=0.01, fit_intercept=fit_intercept, n_groups=3,
        checkpoint_every=2, max_rounds=2000,
    )  # fmt: skip
    assert outcome.certificate.stop_reason == "converged"
    assert hook.count["kills"] >= 2
    assert len(workers.recoveries) >= 2
    problem = problem_of(X, y, loss, lam=0.01, fit_intercept=fit_intercept)
    assert problem.primal(outcome.w, outcome.b) == pytest.approx(
        outcome.certificate.primal, rel=1e-12
    )
    exact = solved(problem)
    assert outcome.certificate.dual <= exact.primal
    assert exact.dual <= outcome.certificate.primal


def test_lost_dual_variables_come_from_the_checkpoint_or_are_zero():
    X, y = make()
    for every, expected in ((1, "checkpoint"), (1000, "zeros")):
        machines = Machines()
        hook = killer(11, limit=1)
        machines.before.append(hook)
        _, workers = fit(machines, chunks(X, y), "logistic", checkpoint_every=every, lam=1e-3)
        found = workers.recoveries[0].origins
        assert found[expected] >= 2
        assert found["kept"] >= 2  # the other group's
        assert sum(found.values()) == 5


def test_all_workers_die_and_come_back(monkeypatch):
    X, y = make()
    machines = Machines(2)
    asked = []

    def all_dead(machines, worker, function):
        asked.append(function)
        if len(asked) == 9:
            machines.states.clear()

    def absent():
        asked.append("who")
        if not machines.states and len(asked) > 15:
            machines.states["worker-9"] = {}
        return sorted(machines.states)

    machines.before.append(all_dead)
    machines.workers = absent
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    outcome, workers = fit(machines, chunks(X, y))
    assert outcome.certificate.stop_reason == "converged"
    assert {g for recovery in workers.recoveries for g in recovery.groups} == {0, 1}
    assert set(workers.places) == {"worker-9"}


def test_no_worker_ever_is_an_error(monkeypatch):
    monkeypatch.setattr(module, "ABSENCE_SECONDS", 0.02)
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    with pytest.raises(RuntimeError, match="no workers"):
        fit(Machines(0), chunks(*make()))


def test_workers_that_leave_while_rows_are_read_are_an_error(monkeypatch):
    machines = Machines()

    def homes(data, seconds):
        machines.states.clear()

    machines.homes = homes
    monkeypatch.setattr(module, "ABSENCE_SECONDS", 0.02)
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    with pytest.raises(RuntimeError, match="no workers"):
        fit(machines, chunks(*make()))


def test_paused_workers_are_an_error_with_numbers(monkeypatch):
    machines = Machines(2)
    machines.limit, machines.without_memory = 10**9, set(machines.states)
    monkeypatch.setattr(module, "ABSENCE_SECONDS", 0.02)
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    with pytest.raises(MemoryError, match=r"paused.*2 workers may use 2 GB, 1 to 1 GB each"):
        fit(machines, chunks(*make()))


def test_rows_that_a_paused_worker_holds_up_are_read_by_others(monkeypatch):
    """A worker whose disk was full, too, kept rows waiting for good."""
    machines = Machines(2)
    machines.without_memory.add("worker-0")
    machines.homes = lambda data, seconds: None
    monkeypatch.setattr(module, "STUCK_SECONDS", 0.0)
    outcome, workers = fit(machines, chunks(*make()))
    assert outcome.certificate.stop_reason == "converged"
    assert set(workers.places) == {"worker-1"}


def test_a_frozen_worker_is_left_alone_until_it_answers():
    X, y = make()
    machines = Machines(2)

    def freeze(machines, worker, function):
        if machines.calls == 9:
            machines.frozen.add(worker)

    machines.before.append(freeze)
    outcome, workers = fit(machines, chunks(X, y), round_timeout=0.05, checkpoint_every=1000)
    assert outcome.certificate.stop_reason == "converged"
    assert len(workers.recoveries) == 1
    assert "no answer" in workers.recoveries[0].reason
    assert len(set(workers.places)) == 1
    assert set(workers.suspects) == machines.frozen


def test_work_goes_to_workers_that_come_back():
    X, y = make(1000, 200)
    machines = Machines(2)

    def lose_then_add(machines, worker, function):
        if machines.calls == 9:
            machines.kill(worker, replace=False)
        if machines.calls == 20:
            machines.states["worker-7"] = {}

    machines.before.append(lose_then_add)
    outcome, workers = fit(machines, chunks(X, y), "logistic", lam=1e-5, checkpoint_every=2)
    assert outcome.certificate.stop_reason == "converged"
    moved = [r for r in workers.recoveries if "moved" in r.reason]
    assert len(moved) == 1
    assert "zeros" not in moved[0].origins
    assert len(set(workers.places)) == 2


def test_changed_source_is_refused():
    X, y = make()
    parts = chunks(X, y)
    reads = []

    def changing():
        reads.append(1)
        return parts[0] if len(reads) == 1 else (parts[0][0] * 1.0000001, parts[0][1])

    machines = Machines()
    machines.before.append(killer(11, limit=1))
    with pytest.raises(ValueError, match="chunk 0 has changed since the fit began"):
        fit(machines, [changing, *parts[1:]], "logistic", n_groups=1)


def test_an_answer_that_is_not_finite_is_asked_for_again_once():
    X, y = make()
    for times, ends in ((1, True), (3, False)):
        machines = Machines()
        left = [times]
        plain = machines.submit

        def spoilt(worker, function, *args, plain=plain, left=left):
            reply = plain(worker, function, *args)
            if function is work.step and left[0] and args[1] == 0:
                left[0] -= 1
                reply.excess = np.nan
            return reply

        machines.submit = spoilt
        if ends:
            outcome, workers = fit(machines, chunks(X, y))
            assert outcome.certificate.stop_reason == "converged"
            assert "not finite" in workers.recoveries[0].reason
        else:
            with pytest.raises(ValueError, match=r"chunks \[0, 1, 2\] are not finite, twice"):
                fit(machines, chunks(X, y))


def test_rows_that_kill_every_worker_are_an_error_not_a_loop():
    machines = Machines()

    def hook(machines, worker, function):
        if function is work.step and worker in machines.states:
            machines.kill(worker)

    machines.before.append(hook)
    with pytest.raises(RuntimeError, match="gave up after 5 recoveries"):
        fit(machines, chunks(*make()), max_recoveries=5)


def test_rows_that_do_not_fit_are_refused_with_numbers():
    machines = Machines()
    workers = Workers(machines, chunks(*make()), "run", classify=True, size=3_000_000_000)
    workers.load()  # nobody has a limit
    machines.limit = 1_500_000_000
    workers.load()
    machines.limit -= 1
    with pytest.raises(MemoryError, match=r"take 3 GB; 2 workers may use 3 GB, 1.5 to 1.5 GB each"):
        workers.load()


def test_restart_carries_the_sums_over_what_is_held():
    X, y = make()
    machines = Machines()
    workers = Workers(machines, chunks(X, y), "run", classify=True, n_groups=2)
    stated = state(workers.load(), True, None)
    (spec, _), *_ = specs(stated, as_loss("hinge"), 1e-3, 0.0, False, 0)
    start = {k: 0.5 * s[1] for k, s in enumerate(chunks(X, y))}
    totals = workers.begin(spec, start)
    problem = problem_of(X, y, "hinge", lam=1e-3)
    assert np.allclose(totals.u, problem.dual_sum(0.5 * y), atol=1e-12)
    workers.saved = {}
    machines.kill(workers.places[0])
    with pytest.raises(Restart) as lost:
        workers.step(Message(totals.u, 0.0, 0.0))
    rest = np.concatenate(
        [np.zeros(sum(len(start[k]) for k in workers.groups[0]))]
        + [start[k] for k in workers.groups[1]]
    )
    assert np.allclose(lost.value.totals.u, problem.dual_sum(rest), atol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_new_client_goes_on_from_the_checkpoint(loss, tmp_path):
    X, y = make(1000, 200)
    parts = chunks(X, y)

    class Killed(Exception):
        pass

    first = []

    def killed(record):
        first.append(record.certificate.primal)
        if record.epoch >= 9:
            raise Killed

    given = {"lam": 1e-5, "checkpoint_every": 1, "folder": tmp_path}
    with pytest.raises(Killed):
        fit(Machines(), parts, loss, callback=killed, **given)
    seen = []
    outcome, _ = fit(Machines(), parts, loss, callback=seen.append, **given)
    assert outcome.certificate.stop_reason == "converged"
    assert seen[0].certificate.primal < 0.5 * first[0]
    with pytest.raises(CheckpointError, match="another fit"):
        fit(Machines(), parts, loss, **{**given, "lam": 1e-4})


def test_one_class_after_the_other():
    X, y = make(classes=4)
    loss = as_loss("logistic")
    workers = Workers(Machines(), chunks(X, y), "run", classify=True, n_groups=2)
    stated = state(workers.load(), True, None)
    problems = specs(stated, loss, 1e-3, 0.0, False, 0)
    assert len(problems) == 4
    for number, (spec, b) in enumerate(problems):
        outcome = train(workers, spec, stated, b, Limits(1e-6, 200), None)
        problem = zg.Problem(X, np.where(y == number, 1.0, -1.0), "logistic", lam=1e-3)
        assert outcome.certificate.stop_reason == "converged"
        assert problem.certificate(outcome.w).relative_gap <= 1e-5

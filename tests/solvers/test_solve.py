"""The one loop: it stops when it says, records what happened, survives Ctrl-C and kill -9."""

import io
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import checkpointed_run
import zerogap as zg
from problems import make_problem
from zerogap.solvers.checkpoint import CheckpointError
from zerogap.solvers.progress import Progress

SLOW = {"tol": 0.0, "max_epochs": 10**7, "random_state": 0}  # never ends by itself


def problem(**options):
    return make_problem("hinge", **options)


def test_stops_at_the_asked_gap():
    for tol in (1e-1, 1e-3, 1e-6):
        result = zg.solve(problem(), zg.SDCA(), tol=tol, random_state=0)
        assert result.stop_reason == result.certificate.stop_reason == "converged"
        assert result.certificate.gap <= tol * result.certificate.primal


def test_stops_at_budgets():
    run = zg.solve(problem(), zg.SDCA(), tol=0.0, max_epochs=7, random_state=0)
    assert (run.stop_reason, run.history["epoch"][-1]) == ("max_epochs", 7)
    run = zg.solve(problem(), zg.SDCA(), tol=0.0, max_examples=90, random_state=0)
    assert (run.stop_reason, run.history["examples"][-1]) == ("max_examples", 90)
    run = zg.solve(problem(), zg.SDCA(), max_seconds=0.05, **SLOW)
    assert run.stop_reason == "max_seconds"
    run = zg.solve(
        problem(), zg.SDCA(), callback=lambda record: record.epoch >= 3, record="epoch", **SLOW
    )
    assert (run.stop_reason, run.history["epoch"][-1]) == ("callback", 3)


def test_recording():
    options = {"tol": 0.0, "max_epochs": 4, "random_state": 0}
    epoch = zg.solve(problem(), zg.SDCA(), record="epoch", **options).history
    assert list(epoch["epoch"]) == [0, 1, 2, 3, 4]
    every = zg.solve(problem(), zg.SDCA(), record=15, **options).history
    assert list(every["updates"]) == [*range(0, 160, 15), 160]
    ratio = zg.solve(problem(), zg.SDCA(), record=2.0, **options).history
    assert list(ratio["updates"]) == [0, 1, 2, 4, 8, 16, 32, 64, 128, 160]
    for column in ("seconds", "cpu_seconds", "examples"):
        assert np.all(np.diff(every[column]) >= 0)
    assert set(every) == {
        "epoch",
        "updates",
        "examples",
        "seconds",
        "cpu_seconds",
        "primal",
        "dual",
        "gap",
    }


def test_recording_never_changes_the_path():
    options = {"tol": 0.0, "max_epochs": 20, "random_state": 0}
    runs = [
        zg.solve(problem(intercept=True), zg.SDCA(), record=record, **options)
        for record in ("auto", "epoch", 7, 1.3)
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.w, runs[0].w)


def test_manual_loop_equals_solve():
    p, solver = problem(), zg.SDCA()
    state = solver.begin(p, np.random.default_rng(0))
    for _ in range(6):
        solver.epoch(p, state)
    run = zg.solve(p, solver, tol=0.0, max_epochs=6, random_state=0)
    np.testing.assert_array_equal(run.w, solver.answer(p, state)[0])


def test_metrics_are_columns():
    p = problem()
    run = zg.solve(p, zg.SDCA(), metrics={"norm": lambda w, b: np.linalg.norm(w)}, random_state=0)
    assert run.history["norm"][-1] == pytest.approx(np.linalg.norm(run.w))
    assert len(run.history.to_frame()) == len(run.history["gap"])
    with pytest.raises(KeyError, match="no column 'loss'"):
        run.history["loss"]


def test_same_seed_same_bits():
    one, two, other = (
        zg.solve(problem(), zg.SDCA(), tol=1e-5, random_state=seed) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one.w, two.w)
    assert not np.array_equal(one.w, other.w)


def test_warm_start_continues():
    p = problem()
    first = zg.solve(p, zg.SDCA(), tol=1e-4, random_state=0)
    again = zg.solve(p, zg.SDCA(), tol=1e-4, warm_start=first, random_state=1)
    assert again.certificate.epochs == 0
    from_weights = zg.solve(p, zg.SDCA(), tol=1e-8, warm_start=(first.w, 0.0, None), random_state=1)
    assert from_weights.stop_reason == "converged"


def test_best_output_is_the_best_certificate():
    p = problem(intercept=True)
    run = zg.solve(
        p, zg.SDCA(output="best"), tol=0.0, max_epochs=30, record="epoch", random_state=0
    )
    assert run.certificate.gap == run.history["gap"].min()


def test_auto_recording_overshoots_little():
    p = make_problem("hinge", n=300, d=20)
    exact = zg.solve(p, zg.SDCA(shrink=False), tol=1e-4, record="epoch", random_state=0)
    auto = zg.solve(p, zg.SDCA(shrink=False), tol=1e-4, random_state=0)
    assert auto.certificate.epochs <= 1.5 * exact.certificate.epochs + 2
    assert len(auto.history["gap"]) < 0.5 * len(exact.history["gap"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": -1}, "tol must be"),
        ({"tol": float("nan")}, "tol must be"),
        ({"max_epochs": 0}, "max_epochs must be positive"),
        ({"max_examples": 0}, "max_examples must be positive"),
        ({"max_seconds": 0}, "max_seconds must be positive"),
        ({"record": "always"}, "record must be"),
        ({"record": 0}, "record must be"),
        ({"record": 0.5}, "record must be"),
        ({"record": True}, "record must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"random_state": "seed"}, "random_state must be"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        zg.solve(problem(), zg.SDCA(), **options)


def test_unknown_parameter_of_a_solver():
    with pytest.raises(ValueError, match="SDCA has no parameter 'step'"):
        zg.SDCA().set_params(step=1)
    assert zg.SDCA().set_params(sampling="cyclic").get_params()["sampling"] == "cyclic"


# Ctrl-C


@pytest.mark.posix
def test_ctrl_c_in_the_middle_of_the_updates_leaves_a_certified_answer():
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    p = make_problem("hinge", n=2000, d=50)
    run = zg.solve(p, zg.SDCA(), **SLOW)
    timer.join()
    assert run.stop_reason == "interrupted"
    assert run.certificate.gap == pytest.approx(p.certificate(run.w, run.b, run.alpha).gap)
    assert run.certificate.gap == run.history["gap"].min()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_a_callback_counts_too():
    def callback(record):
        if record.epoch >= 5:
            signal.raise_signal(signal.SIGINT)

    run = zg.solve(problem(), zg.SDCA(), callback=callback, record="epoch", **SLOW)
    assert (run.stop_reason, run.history["epoch"][-1]) == ("interrupted", 5)


def test_ctrl_c_while_the_data_are_copied_leaves_a_certified_answer(monkeypatch):
    X = np.random.default_rng(0).standard_normal((10_000, 210))
    p = zg.Problem(X, np.sign(X[:, 0]), "hinge")

    def take(self, order):
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the interrupt must come at once")

    monkeypatch.setattr("zerogap.rows.DenseRows.take", take)
    run = zg.solve(p, zg.SDCA(layout="shuffled"), **SLOW)
    assert (run.stop_reason, run.certificate.epochs) == ("interrupted", 0)
    assert run.certificate.primal == pytest.approx(1.0)


def test_event_stops_a_run_in_another_thread():
    stop = threading.Event()
    runs = []
    p = make_problem("hinge", n=500, d=20)
    thread = threading.Thread(
        target=lambda: runs.append(zg.solve(p, zg.SDCA(), interrupt=stop, **SLOW))
    )
    thread.start()
    stop.set()
    thread.join(timeout=60)
    assert runs[0].stop_reason == "interrupted"


def test_foreign_signal_handlers_stay_in_charge():
    seen = []
    previous = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        zg.solve(
            problem(),
            zg.SDCA(),
            callback=lambda r: signal.raise_signal(signal.SIGINT),
            random_state=0,
        )
    finally:
        signal.signal(signal.SIGINT, previous)
    assert seen


# checkpoints


RESUMED = [
    zg.SDCA(),
    zg.SDCA(output="average", t0=200),
    zg.SDCA(output="random", t0=10),
    zg.SDCA("cyclic", layout="shuffled"),
    zg.SDCA("random", start="sgd"),
]


@pytest.mark.parametrize("solver", RESUMED, ids=repr)
def test_resume_is_exact(solver, tmp_path):
    """Stopped four times, once in the middle of an epoch: the same bits as in one go."""
    p, path = problem(intercept=True), tmp_path / "run.ckpt"
    options = {"tol": 0.0, "random_state": 5}
    for epochs in (1, 2.3, 9, 30, 60):
        pieces = zg.solve(p, solver, checkpoint=path, max_epochs=epochs, **options)
    whole = zg.solve(p, solver, max_epochs=60, **options)
    np.testing.assert_array_equal(pieces.w, whole.w)
    assert pieces.certificate.epochs == 60


def test_interrupted_and_resumed_equals_uninterrupted(tmp_path):
    """Stopped by Ctrl-C, history and bits go on as if nothing had happened."""
    p, path = make_problem("logistic", n=200, d=10, intercept=True), tmp_path / "run.ckpt"
    options = {"tol": 1e-12, "random_state": 1, "max_epochs": 300}
    whole = zg.solve(p, zg.SDCA(), **options)
    stop = threading.Event()
    stopped = zg.solve(
        p,
        zg.SDCA(),
        checkpoint=path,
        callback=lambda r: stop.set() if r.epoch >= 3 else None,
        interrupt=stop,
        **options,
    )
    assert stopped.stop_reason == "interrupted"
    resumed = zg.solve(p, zg.SDCA(), checkpoint=path, **options)
    np.testing.assert_array_equal(resumed.w, whole.w)
    np.testing.assert_array_equal(resumed.history["gap"], whole.history["gap"])


@pytest.mark.parametrize("intercept", [False, True])
def test_finished_checkpoint_answers_at_once(intercept, tmp_path):
    p, path = problem(intercept=intercept), tmp_path / "run.ckpt"
    done = zg.solve(p, zg.SDCA(), tol=1e-6, random_state=0, checkpoint=path)
    again = zg.solve(p, zg.SDCA(), tol=1e-6, random_state=0, checkpoint=path)
    np.testing.assert_array_equal(done.w, again.w)
    np.testing.assert_array_equal(done.alpha, again.alpha)
    assert done.b == again.b
    np.testing.assert_array_equal(done.history["gap"], again.history["gap"])


@pytest.mark.parametrize("change", ["data", "lam", "solver", "seed"])
def test_another_run_s_checkpoint_is_refused(change, tmp_path):
    path = tmp_path / "run.ckpt"
    zg.solve(problem(), zg.SDCA(), random_state=0, checkpoint=path)
    p = {"data": problem(seed=1), "lam": problem(lam=0.5)}.get(change, problem())
    solver = zg.SDCA("cyclic") if change == "solver" else zg.SDCA()
    with pytest.raises(CheckpointError, match="belongs to another run"):
        zg.solve(p, solver, random_state=1 if change == "seed" else 0, checkpoint=path)


def test_damaged_checkpoints_are_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    zg.solve(problem(), zg.SDCA(), random_state=0, checkpoint=path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for damaged in (b"", b"hello", content[: len(content) // 2], content[:-30]):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"run\.ckpt"):
            zg.solve(problem(), zg.SDCA(), random_state=0, checkpoint=path)
    for _ in range(60):  # a flipped byte is either noticed or harmless
        place = rng.integers(len(content))
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            run = zg.solve(problem(), zg.SDCA(), random_state=0, checkpoint=path)
        except CheckpointError:
            continue
        assert run.certificate.relative_gap <= 1e-3


def test_a_full_disk_costs_the_checkpoint_not_the_run(tmp_path):
    missing = tmp_path / "no such folder" / "run.ckpt"
    with pytest.warns(UserWarning, match="could not write checkpoint"):
        run = zg.solve(problem(), zg.SDCA(), random_state=0, checkpoint=missing)
    assert run.stop_reason == "converged"


@pytest.fixture
def start(monkeypatch):
    """Start a run in a process of its own, forked where there is fork; return it and its pipe."""
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(checkpointed_run.__file__))
    kind = "spawn" if sys.platform == "win32" else "forkserver"
    processes = multiprocessing.get_context(kind)
    if kind == "forkserver":
        processes.set_forkserver_preload([checkpointed_run.__name__])

    def started(path):
        here, there = processes.Pipe()
        process = processes.Process(target=checkpointed_run.answer, args=(path, there))
        process.start()
        there.close()
        assert here.recv() == "ready"
        return process, here

    return started


def test_kill_9_never_leaves_an_unreadable_checkpoint(tmp_path, start):
    path = tmp_path / "run.ckpt"
    rng = np.random.default_rng(0)
    kills = 0
    for _ in range(12):
        process, pipe = start(path)
        time.sleep(float(rng.uniform(0.0, 0.1)))
        kills += process.exitcode is None
        process.kill()
        process.join()
        pipe.close()
    assert kills > 0
    answers = []
    for place in (path, tmp_path / "fresh"):
        process, pipe = start(place)
        answers.append(pipe.recv())
        process.join()
    assert answers[0] == answers[1]
    assert not [f for f in os.listdir(tmp_path) if "part" in f]


# progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run_with(stream, monkeypatch):
    monkeypatch.setattr("zerogap.solvers.progress.sys.stderr", stream)
    return zg.solve(problem(), zg.SDCA(), tol=1e-6, random_state=0, verbose=1)


def test_progress_is_plain_when_piped(monkeypatch):
    run = run_with(stream := io.StringIO(), monkeypatch)
    lines = stream.getvalue().splitlines()
    assert "\r" not in stream.getvalue()
    assert lines[0].startswith("epoch 0  gap ")
    assert "target 1e-06" in lines[0]
    assert lines[-1] == str(run.certificate)


def test_progress_is_one_live_line_on_a_terminal(monkeypatch):
    run = run_with(stream := Terminal(), monkeypatch)
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().split("\r")[-1].strip() == str(run.certificate)


def test_time_left_is_extrapolated():
    progress = Progress(1e-4, io.StringIO())
    assert progress._seconds_left(1.0, 1e-1) is None
    assert progress._seconds_left(2.0, 1e-2) == pytest.approx(2.0)
    assert progress._seconds_left(2.5, 1e-5) is None


def test_no_spurious_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zg.solve(problem(), zg.SDCA(), random_state=0)

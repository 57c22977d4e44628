"""Checkpoints are written by one run at a time, survive disk errors, and prove what they claim."""

import errno
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import zerogap as zg
from problems import make_problem
from zerogap.io.atomic import locked, write_file
from zerogap.io.container import unpack, write
from zerogap.solvers.checkpoint import CheckpointError

OPTIONS = {"tol": 1e-9, "random_state": 0, "record": "epoch", "checkpoint_every": 0}


def problem():
    return make_problem("hinge", n=80, intercept=True)


def half_a_run(path, **options):
    return zg.solve(problem(), zg.SDCA(), checkpoint=path, **OPTIONS, max_epochs=5, **options)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("call", ["os.fsync", "os.replace"])
def test_disk_errors_cost_checkpoints_not_the_run(number, call, tmp_path, monkeypatch):
    path = tmp_path / "run"
    half_a_run(path)
    good = path.read_bytes()

    def fail(*args):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(call, fail)
        with pytest.warns(UserWarning, match=f"could not write checkpoint .*{os.strerror(number)}"):
            run = zg.solve(problem(), zg.SDCA(), checkpoint=path, **OPTIONS)
    assert run.stop_reason == "converged"
    assert path.read_bytes() == good, "the last good one is kept"
    assert os.listdir(tmp_path) == ["run"]
    resumed = zg.solve(problem(), zg.SDCA(), checkpoint=path, **OPTIONS)
    np.testing.assert_array_equal(resumed.w, run.w)


def test_a_second_run_is_refused_while_the_first_goes_on(tmp_path):
    path, refused = tmp_path / "run", []

    def intrude(record):
        if record.epoch >= 2 and not refused:
            with pytest.raises(CheckpointError, match="another run is writing"):
                half_a_run(path)
            refused.append(record)

    run = half_a_run(path, callback=intrude)
    assert len(refused) == 1
    assert os.listdir(tmp_path) == ["run"]
    resumed = half_a_run(path)
    np.testing.assert_array_equal(resumed.w, run.w)


def test_another_process_is_refused_and_a_dead_one_is_not_waited_for(tmp_path):
    path = tmp_path / "run"
    code = (
        "import sys, time; from pathlib import Path; from zerogap.io.atomic import locked\n"
        "with locked(Path(sys.argv[1])) as free: print(free, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(path)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "True\n"
        with pytest.raises(CheckpointError, match="another run is writing"):
            half_a_run(path)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    half_a_run(path)
    assert os.listdir(tmp_path) == ["run"]


@pytest.fixture
def windows(monkeypatch):
    """Let files be locked by the calls of Windows, which this system's own stand in for."""
    fcntl = pytest.importorskip("fcntl")

    def locking(handle, mode, size):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(errno.EACCES, "Permission denied") from error

    calls = SimpleNamespace(LK_NBLCK=2, locking=locking)
    monkeypatch.setitem(sys.modules, "msvcrt", calls)
    monkeypatch.setattr("zerogap.io.atomic.sys", SimpleNamespace(platform="win32"))


@pytest.mark.usefixtures("windows")
def test_a_second_run_is_refused_on_windows(tmp_path):
    test_a_second_run_is_refused_while_the_first_goes_on(tmp_path)


@pytest.mark.usefixtures("windows")
def test_writers_wait_for_each_other_on_windows(tmp_path):
    path, order = tmp_path / "file", []

    def second():
        write_file(path, lambda file: order.append("second") or file.write(b"second"))

    with locked(path) as free:
        assert free
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
    assert path.read_bytes() == b"second"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("times", [3, 10**6])
def test_a_file_that_is_open_elsewhere_is_replaced_when_it_is_closed(times, tmp_path, monkeypatch):
    path, refused, replace = tmp_path / "file", [], os.replace
    path.write_bytes(b"old")

    def busy(*args):
        refused.append(args)
        if len(refused) <= times:
            raise PermissionError(errno.EACCES, "Permission denied")
        replace(*args)

    monkeypatch.setattr("os.replace", busy)
    monkeypatch.setattr("zerogap.io.atomic.SECONDS_BETWEEN_TRIES", 0.001)
    if times == 3:
        write_file(path, lambda file: file.write(b"new"))
    else:
        with pytest.raises(PermissionError, match="file"):
            write_file(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == (b"new" if times == 3 else b"old")
    assert os.listdir(tmp_path) == ["file"]


def forge(path, change):
    """Change header or arrays of a checkpoint, behind a valid checksum."""
    header, arrays = unpack(path.read_bytes())
    change(header, arrays)
    with open(path, "wb") as file:
        write(file, header, arrays)


IMPOSSIBLE = {
    "nan": lambda h, a: a["state.alpha"].__setitem__(3, np.nan),
    "infinite weights": lambda h, a: a["state.u"].__setitem__(0, np.inf),
    "too few rows": lambda h, a: a.update({"state.alpha": a["state.alpha"][:-1]}),
    "another type": lambda h, a: a.update({"state.alpha": a["state.alpha"].astype(np.float32)}),
    "no such row": lambda h, a: a["state.order"].__setitem__(0, 80),
    "negative row": lambda h, a: a["state.order"].__setitem__(0, -1),
    "more rows visited than the pass has": lambda h, a: h["parts"]["state"].update(done=2**31),
    "an average of nothing": lambda h, a: h["parts"]["state"].update(ends=2**31),
    "an order of other rows": lambda h, a: a.update({"state.layout": np.zeros(1, np.int64)}),
    "dual variables in a matrix": lambda h, a: a.update({"best.alpha": np.zeros((1, 80))}),
    "dual variables of other rows": lambda h, a: a.update({"best.alpha": np.zeros(3)}),
    "weights of other features": lambda h, a: a.update({"best.w": np.zeros(1)}),
    "a matrix of rows": lambda h, a: a.update({"state.members": np.zeros((1, 1), np.int64)}),
    "marks of other rows": lambda h, a: a.update({"state.moved": np.ones(3, np.bool_)}),
    "an average of other features": lambda h, a: a.update({"state.recent": np.ones(1)}),
    "no intercept": lambda h, a: h["parts"]["best"].update(b=float("nan")),
    "a negative count": lambda h, a: h["parts"]["state"].update(updates=-1),
    "a part is missing": lambda h, a: h["parts"].pop("best"),
    "no history": lambda h, a: h.update(history=[]),
    "half a history": lambda h, a: h["history"][0].pop("gap"),
    "a generator of another kind": lambda h, a: h["parts"]["state"].update(
        rng={"generator": {"bit_generator": "MT19937"}}
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_states_are_refused(case, tmp_path):
    path = tmp_path / "run"
    half_a_run(path)
    forge(path, IMPOSSIBLE[case])
    with pytest.raises(CheckpointError, match="run is not a readable checkpoint"):
        half_a_run(path)


def test_a_forged_place_in_the_epoch_does_not_stop_the_run(tmp_path):
    path = tmp_path / "run"
    half_a_run(path)
    forge(path, lambda h, a: h["parts"]["state"].update(position=2**53))
    assert zg.solve(problem(), zg.SDCA(), checkpoint=path, **OPTIONS).stop_reason == "converged"


def test_dual_variables_outside_their_domain_prove_nothing_false(tmp_path):
    path = tmp_path / "run"
    half_a_run(path)
    forge(path, lambda h, a: a["state.alpha"].__imul__(7.0))
    run = zg.solve(problem(), zg.SDCA(), tol=1e-4, random_state=0, max_epochs=50, checkpoint=path)
    best = zg.solve(problem(), zg.SDCA(), tol=1e-8, max_epochs=10**4, random_state=0)
    assert run.certificate.primal >= best.certificate.dual
    assert run.certificate.dual <= best.certificate.primal
    proof = problem().certificate(run.w, run.b, run.alpha)
    assert run.certificate.gap == pytest.approx(proof.gap, rel=1e-6, abs=1e-12)


def test_a_dual_bound_that_is_too_good_is_refused(tmp_path):
    path = tmp_path / "run"
    half_a_run(path)
    forge(path, lambda h, a: h["parts"]["best"].update(dual=h["parts"]["best"]["dual"] + 1e-3))
    with pytest.raises(CheckpointError, match="claims a dual bound"):
        half_a_run(path)


def test_P4_an_objective_that_is_too_good_is_refused(tmp_path):
    """Auto returns the best model so far: what a file says of it must be true."""
    path = tmp_path / "run"
    options = {"tol": 1e-9, "random_state": 0, "checkpoint": path, "checkpoint_every": 0}
    zg.solve(problem(), zg.Auto(), max_epochs=2, **options)
    assert zg.solve(problem(), zg.Auto(), max_epochs=4, **options).certificate.gap >= 0
    forge(path, lambda h, a: h["parts"]["best"].update(primal=h["parts"]["best"]["dual"]))
    with pytest.raises(CheckpointError, match="claims an objective of"):
        zg.solve(problem(), zg.Auto(), max_epochs=6, **options)


@pytest.mark.parametrize("solver", [zg.Auto(), zg.SDCA()])
def test_P4_tiny_objectives_are_not_taken_from_a_file(solver, tmp_path):
    """A bound that is far too good for objectives of 1e-12 is within 1e-9 of the truth."""
    rng, path = np.random.default_rng(0), tmp_path / "run"
    X = rng.standard_normal((40, 4))
    tiny = zg.Problem(X, 1e-6 * rng.standard_normal(40), "squared", 0.1, fit_intercept=True)
    options = {"tol": 1e-15, "random_state": 0, "checkpoint": path, "checkpoint_every": 0}
    zg.solve(tiny, solver, max_epochs=1, **options)
    forge(path, lambda h, a: h["parts"]["best"].update(dual=1e-10, primal=2e-10, gap=1e-10))
    best = zg.solve(tiny, zg.Auto(), tol=1e-12).certificate
    found = zg.solve(tiny, solver, max_epochs=2, **options).certificate
    assert best.primal < 1e-11
    assert found.dual <= best.primal
    assert found.gap >= found.primal - best.primal


def test_a_diverged_run_does_not_overwrite_its_last_good_checkpoint(tmp_path):
    path = tmp_path / "run"
    p = make_problem("squared", n=80)
    options = {"tol": 0.0, "random_state": 0, "record": "epoch", "checkpoint_every": 0}
    with np.errstate(all="ignore"):
        run = zg.solve(p, zg.SGD(step=30.0, schedule="constant"), checkpoint=path, **options)
    assert run.stop_reason == "diverged"
    _, arrays = unpack(path.read_bytes())
    assert all(np.isfinite(array).all() for array in arrays.values())

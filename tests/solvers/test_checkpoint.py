"""Checkpoints are written by one run at a time, survive disk errors, and prove what they claim."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

import zerogap as zg
from problems import make_problem
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


def test_a_diverged_run_does_not_overwrite_its_last_good_checkpoint(tmp_path):
    path = tmp_path / "run"
    p = make_problem("squared", n=80)
    options = {"tol": 0.0, "random_state": 0, "record": "epoch", "checkpoint_every": 0}
    with np.errstate(all="ignore"):
        run = zg.solve(p, zg.SGD(step=30.0, schedule="constant"), checkpoint=path, **options)
    assert run.stop_reason == "diverged"
    _, arrays = unpack(path.read_bytes())
    assert all(np.isfinite(array).all() for array in arrays.values())

"""`zerogap train`: options, exit codes, refusals, and Ctrl-C."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import zerogap as zg
from zerogap import cli
from zerogap.cli.choices import Format, Loss, Solver
from zerogap.losses import LOSSES, MULTICLASS_LOSSES
from zerogap.model_io import load
from zerogap.readers import FORMATS
from zerogap.solvers import SOLVERS

REFUSED = {  # what comes after train: exit code, what the message says
    "DATA --loss hing": (2, "'hing' is unknown: choose one of hinge, "),
    "DATA --loss quantile:0.9": (2, "write options as name=value, not '0.9'"),
    "DATA --loss quantile:p=0.9": (2, "Quantile has no parameter 'p'; it has ['q']"),
    "DATA --loss quantile:q=2": (2, "q must lie strictly between 0 and 1"),
    "DATA --solver sgd:step=small": (1, "not supported between instances"),
    "DATA --loss huber --class-weight balanced": (2, "--class-weight is for classes"),
    "DATA --loss squared": (1, "the targets are text such as yes, and squared is a loss for num"),
    "DATA --lam 0": (1, "lam must be a positive, finite number, got 0.0"),
    "DATA --l1-ratio 1": (1, "l1_ratio must be in [0, 1)"),
    "DATA --solver bcfw": (1, "BCFW"),
    "NUMBERS": (1, "and hinge is a loss for classes: choose --loss squared"),
    "NUMBERS --test DATA --loss squared": (1, "has 4 features, the model has 3"),
    "nothing.csv": (1, "nothing.csv: neither a file nor a data set; see zerogap data list"),
    "simulatd": (1, "simulatd: neither a file nor a data set; did you mean simulated?"),
    "FOLDER": (1, "Is a directory"),
    "DATA --format csv": (1, "data.npz"),
    "DATA --test nothing": (1, "nothing: neither a file nor a data set"),
    "DATA --out FOLDER": (1, "is a folder or a device, not a file"),
    "DATA --out FOLDER/no/model.zg": (1, "no does not exist"),
    "DATA --out DATA": (1, "is what is read, choose another name"),
    "NUMBERS --test DATA --out DATA": (1, "is what is read, choose another name"),
}


def arrays(path):
    with np.load(path) as file:
        return dict(file)


@pytest.mark.parametrize("line", REFUSED)
def test_refusals_are_one_line(line, zerogap, npz, numbers, tmp_path):
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    places = {"DATA": npz, "NUMBERS": numbers, "FOLDER": tmp_path}
    arguments = [re.sub("[A-Z]{4,}", lambda m: str(places[m[0]]), word) for word in line.split()]
    outcome = zerogap("train", *arguments)
    code, text = REFUSED[line]
    assert (outcome.exit_code, outcome.stdout) == (code, "")
    assert outcome.stderr.startswith("zerogap train: ")
    assert outcome.stderr.count("\n") == 1
    assert text in outcome.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_choices_are_those_of_the_library():
    assert set(Loss) == {*LOSSES, *MULTICLASS_LOSSES}
    assert set(Solver) == set(SOLVERS)
    assert set(Format) == set(FORMATS)


def test_options_reach_the_estimator(zerogap, npz, tmp_path):
    options = (
        "--loss smooth-hinge:gamma=0.5 --lam 0.01 --l1-ratio 0.3 --no-intercept --tol 1e-4 "
        "--class-weight balanced --solver sdca:sampling=cyclic --max-epochs 500 --seed 5"
    )
    model = tmp_path / "model.zg"
    assert zerogap("train", npz, *options.split(), "--out", model).exit_code == 0
    saved = load(model)
    same = zg.LinearClassifier(
        zg.SmoothHinge(gamma=0.5),
        lam=0.01,
        l1_ratio=0.3,
        fit_intercept=False,
        class_weight="balanced",
        solver=zg.SDCA(sampling="cyclic"),
        tol=1e-4,
        max_epochs=500,
        random_state=5,
    )
    assert repr(saved) == repr(same)
    assert np.array_equal(saved.coef_, same.fit(**arrays(npz)).coef_)


def test_the_report(zerogap, npz):
    outcome = zerogap("train", npz, "--test", npz, "--tol", 1e-4)
    assert outcome.exit_code == 0
    assert outcome.stderr == ""
    shown = dict(re.split("  +", line, maxsplit=1) for line in outcome.stdout.splitlines())
    report = json.loads(zerogap("train", npz, "--test", npz, "--tol", 1e-4, "--json").stdout)
    proof = report["certificate"]
    assert shown["data"] == f"{npz}: 200 rows, 4 features, 2 classes"
    assert shown["loss"] == "hinge, lam 0.005"
    assert float(shown["primal"]) == pytest.approx(proof["primal"], rel=1e-7)
    assert float(shown["dual"]) == pytest.approx(proof["dual"], rel=1e-7)
    assert float(shown["gap"]) == pytest.approx(proof["gap"], rel=1e-2)
    assert shown["relative gap"].endswith("(asked for 0.0001)")
    assert shown["stopped"] == proof["stop_reason"] == "converged"
    assert shown["solver"].startswith("SDCA, chosen automatically")
    accuracy = f"accuracy {100 * report['train_score']:.2f} %"
    assert shown["train score"] == shown["test score"] == accuracy
    assert shown["model"] == "not saved: give --out MODEL"
    assert report["model"] is None
    assert proof["gap"] == pytest.approx(proof["primal"] - proof["dual"])


def test_numbers(zerogap, numbers, tmp_path):
    model = tmp_path / "model.zg"
    report = json.loads(
        zerogap("train", numbers, "--loss", "squared", "--out", model, "--json").stdout
    )
    assert (report["score"], report["classes"]) == ("R2", None)
    assert report["train_score"] > 0.9
    lines = zerogap("predict", model, numbers).stdout.split()
    assert list(map(float, lines)) == load(model).predict(arrays(numbers)["X"]).tolist()
    assert zerogap("certify", model, numbers).exit_code == 0


@pytest.mark.parametrize("budget", [("--max-epochs", 2), ("--max-seconds", 1e-9)])
def test_a_budget_is_no_failure(budget, zerogap, npz, tmp_path):
    model = tmp_path / "model.zg"
    outcome = zerogap("train", npz, "--tol", 1e-9, *budget, "--out", model, "--json")
    assert outcome.exit_code == 3
    assert re.fullmatch(
        r"zerogap train: stopped \(max_\w+\) at a relative gap of .*, asked for 1e-09: raise .*\n",
        outcome.stderr,
    )
    report = json.loads(outcome.stdout)
    assert not report["converged"]
    assert report["certificate"]["relative_gap"] > 1e-9
    assert zerogap("certify", model, npz).exit_code == 0


def test_a_full_disk_does_not_cost_the_model(zerogap, npz, tmp_path, monkeypatch):
    from zerogap import model_io

    out, spare, real = tmp_path / "model.zg", tmp_path / "spare", model_io.save

    def save(model, path, **options):
        if path == out:
            raise OSError(28, "No space left on device")
        real(model, path, **options)

    spare.mkdir()
    monkeypatch.setattr(model_io, "save", save)
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(spare))
    outcome = zerogap("train", npz, "--out", out)
    assert outcome.exit_code == 1
    assert "No space left on device" in outcome.stderr
    assert str(spare / "model.zg") in outcome.stderr
    assert load(spare / "model.zg").score(**arrays(npz)) > 0.8


def test_interrupted_before_there_is_a_model(npz, monkeypatch, capsys, tmp_path):
    def fit(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(zg.LinearClassifier, "fit", fit)
    monkeypatch.setattr(sys, "argv", ["zerogap", "train", str(npz), "--out", f"{tmp_path}/m.zg"])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 130
    assert capsys.readouterr() == ("", "zerogap train: interrupted\n")
    assert list(tmp_path.iterdir()) == [npz]


@pytest.mark.posix
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("names", ["SIGINT", "SIGTERM", "SIGHUP", "SIGTERM SIGHUP " * 5])
def test_F2_ctrl_c_and_sigterm_keep_the_best_certified_model(zerogap, tmp_path, names):
    rng = np.random.default_rng(0)
    data, model = tmp_path / "slow.npz", tmp_path / "model.zg"
    X = rng.standard_normal((5000, 30))
    np.savez(data, X=X, y=np.sign(X[:, 0] + 3 * rng.standard_normal(5000)))
    ours, theirs = os.openpty()  # on a terminal the progress tells when there is a certificate
    options = f"--solver sdca --lam 1e-9 --tol 1e-12 --max-epochs 1000000000 --out {model}"
    command = [sys.executable, "-c", "from zerogap.cli import main; main()", "train", str(data)]
    with (
        subprocess.Popen(
            [*command, *options.split()], stdout=subprocess.PIPE, stderr=theirs, text=True
        ) as process,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(process.kill)  # if a check fails: it would run for ever
        os.close(theirs)
        seen = b""
        while not re.search(rb"gap .* of 1e-12, epoch [1-9]", seen):
            seen += os.read(ours, 4096)
        for name in names.split():
            process.send_signal(signal.Signals[name])
            time.sleep(0.01)  # many at once are one
        while b"zerogap train: " not in seen or not seen.endswith(b"\n"):
            seen += os.read(ours, 4096)
        out, _ = process.communicate()
    os.close(ours)
    assert process.returncode == 3
    assert re.search(r"^stopped +interrupted$", out, re.MULTILINE)
    last = seen.decode().splitlines()[-1]
    assert "zerogap train: interrupted at a relative gap of " in last
    assert last.endswith(f"; the best certified model so far is in {model}")
    assert b"Traceback" not in seen
    assert load(model).certificate_.stop_reason == "interrupted"
    assert zerogap("certify", model, data).exit_code == 0

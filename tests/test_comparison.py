"""Solvers side by side: records, bounds, curves, and the command `zerogap compare`."""

import csv
import doctest
import json
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import zerogap as zg
from zerogap.comparison import Curve, compare, contestants, default_solvers, parse_solver
from zerogap.comparison.styles import style

typer = pytest.importorskip("typer")
testing = pytest.importorskip("typer.testing")


@pytest.fixture(scope="module")
def data():
    X, y, _ = zg.datasets.make_simulated(160, 4, random_state=3)
    return X[:100], y[:100], X[100:], y[100:]


@pytest.fixture(scope="module")
def problem(data):
    return zg.Problem(data[0], data[1], "smooth-hinge", lam=0.01)


@pytest.fixture(scope="module")
def outcome(problem, data):
    solvers = ["sdca", "pegasos:batch_size=8", zg.GD()]
    test = {"X_test": data[2], "y_test": data[3]}
    return compare(problem, solvers, max_epochs=20, seeds=[0, 1, 2], data="small data", **test)


def test_every_record_is_certified(outcome):
    assert outcome.names == ["SDCA", "Pegasos(batch_size=8)", "GD"]
    assert [(run.name, run.seed) for run in outcome.runs[:4]] == [
        ("SDCA", 0),
        ("Pegasos(batch_size=8)", 0),
        ("GD", 0),
        ("SDCA", 1),
    ]
    rows = outcome.rows()
    assert len({tuple(row) for row in rows}) == 1
    assert len(rows) == sum(len(run.result.history.rows) for run in outcome.runs)
    for row in rows:
        assert row["gap"] >= row["suboptimality"] - 1e-15  # no dual value is above the best one
        assert row["suboptimality"] >= 0
        assert 0 <= row["test_error"] <= 1
    for run in outcome.runs:
        assert np.all(np.diff(run.result.history["epoch"]) == 1)
        assert run.result.history["seconds"][0] == 0


def test_optimum_is_enclosed(outcome, problem):
    best = zg.solve(problem, zg.SDCA(), tol=1e-12, max_epochs=10_000, random_state=5).certificate
    assert outcome.lower <= best.primal * (1 + 1e-12)
    assert outcome.upper >= best.dual * (1 - 1e-12)
    assert outcome.upper - outcome.lower <= 1e-6 * best.primal  # a thousandth of the target
    finals = {run.name: run.final for run in outcome.runs if run.seed == 0}
    for line in outcome.summary():
        true = finals[line.name]["primal"] - best.primal
        assert line.suboptimality >= 0
        assert finals[line.name]["gap"] >= true - 1e-12


def test_same_seeds_same_records(outcome, problem, data):
    solvers = ["sdca", "pegasos:batch_size=8", zg.GD()]
    again = compare(
        problem, solvers, max_epochs=20, seeds=[0, 1, 2], X_test=data[2], y_test=data[3]
    )
    assert (again.lower, again.upper) == (outcome.lower, outcome.upper)
    for column in ("epoch", "examples", "primal", "gap", "suboptimality", "test_error"):
        assert [row[column] for row in again.rows()] == [row[column] for row in outcome.rows()]


def test_summary(outcome, data):
    sdca, pegasos, gd = outcome.summary()
    assert (sdca.runs, sdca.reached, sdca.verdict) == (3, 3, "reached")
    assert (pegasos.reached, pegasos.verdict) == (0, "max epochs")
    runs = [run for run in outcome.runs if run.name == "SDCA"]
    assert sdca.epochs == np.median([run.result.certificate.epochs for run in runs])
    gaps = [run.result.certificate.relative_gap for run in runs]
    assert sdca.certificate.relative_gap == max(gaps) <= outcome.tol
    wrong = [np.mean(np.sign(data[2] @ run.result.w) != data[3]) for run in runs]
    assert sdca.test_error == pytest.approx(np.median(wrong))
    assert gd.solver == repr(zg.GD())


def test_curves_are_medians_and_ranges(outcome):
    runs = [run.result.history for run in outcome.runs if run.name == "SDCA"]
    lengths = sorted(len(history["gap"]) for history in runs)
    curve = outcome.curve("SDCA", "epoch", "gap")
    assert len(curve.x) == lengths[1]  # two of three are still running or have just stopped
    assert curve.x.tolist() == list(range(lengths[1]))
    shortest = lengths[0]
    stacked = np.array([history["gap"][:shortest] for history in runs])
    assert np.array_equal(curve.middle[:shortest], np.median(stacked, axis=0))
    assert np.array_equal(curve.low[:shortest], stacked.min(axis=0))
    assert np.array_equal(curve.high[:shortest], stacked.max(axis=0))
    assert np.all(np.diff(outcome.curve("SDCA", "seconds", "gap").x) >= 0)
    assert isinstance(curve, Curve)


def test_followers_see_every_record_and_every_end(problem):
    seen = []
    outcome = compare(
        problem,
        ["sdca", "gd"],
        max_epochs=3,
        tol=0.0,
        seeds=[7],
        on_record=lambda *event: seen.append(event),
    )
    for name in outcome.names:
        reasons = [r.certificate.stop_reason for n, seed, r in seen if n == name and seed == 7]
        assert reasons == ["", "", "", "", "max_epochs"]
    assert seen[-1][0] == "reference"
    assert outcome.error_name == ""
    assert math.isnan(outcome.summary()[0].test_error)


def test_interruption_keeps_what_was_done(problem):
    def follow(name, seed, record):
        running = not record.certificate.stop_reason
        if name == "GD" and seed == 1 and record.epoch == 2 and running:
            raise KeyboardInterrupt

    outcome = compare(problem, ["sdca", "gd"], tol=1e-9, max_epochs=4, on_record=follow)
    assert outcome.interrupted
    done = [(run.name, run.seed, run.result.stop_reason) for run in outcome.runs]
    assert done == [
        ("SDCA", 0, "max_epochs"),
        ("GD", 0, "max_epochs"),
        ("SDCA", 1, "max_epochs"),
        ("GD", 1, "interrupted"),
    ]
    assert outcome.lower < outcome.upper


def test_interruption_before_there_is_anything(problem, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("zerogap.comparison.solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compare(problem, ["sdca"])


def test_regression_and_divergence(data):
    X, y = 10 * data[0], data[0] @ [1.0, -2.0, 0.5, 0.0]
    problem = zg.Problem(X, y, "squared", lam=0.1)
    solvers = ["sdca", zg.SGD(step=10.0, schedule="constant")]
    outcome = compare(problem, solvers, seeds=[0], X_test=10 * data[2], y_test=np.ones(60))
    sdca, sgd = outcome.summary()
    w = outcome.runs[0].result.w
    assert sdca.test_error == pytest.approx(np.mean(np.abs(10 * data[2] @ w - 1)))
    assert sgd.verdict == "diverged"
    assert math.isfinite(sgd.certificate.gap)
    assert not outcome.is_share


def test_multiclass_defaults(data, tmp_path):
    y = (data[0][:, 0] > 0).astype(int) + (data[0][:, 1] > 0)
    problem = zg.Problem(data[0], y, "multiclass-hinge", lam=0.01, fit_intercept=True)
    outcome = compare(problem, max_epochs=5, seeds=[0], X_test=data[0], y_test=y)
    assert outcome.names == ["SDCA", "BCFW", "SGD", "GD"]
    run = outcome.runs[0].result
    wrong = np.argmax(data[0] @ run.w.T + run.b, axis=1) != y
    assert outcome.runs[0].final["test_error"] == np.mean(wrong)
    assert {path.name for path in outcome.save(tmp_path).values()} == {
        "curves.png",
        "curves.svg",
        "compare.html",
        "records.csv",
    }


def test_default_solvers(problem):
    able, unable = default_solvers(problem)
    assert [type(solver).__name__ for solver in able] == [
        "SDCA",
        "ASDCA",
        "Pegasos",
        "Pegasos",
        "SGD",
    ]
    assert unable == {}
    able, unable = default_solvers(problem.with_loss(zg.Hinge()))
    assert zg.ASDCA() not in able
    assert "needs a smooth loss" in unable["ASDCA"]


def test_solvers_from_text():
    assert parse_solver("sdca") == zg.SDCA()
    text = "pegasos:batch_size=8:projection=true:sampling=epochs:t0=none"
    assert parse_solver(text) == zg.Pegasos(batch_size=8, projection=True, sampling="epochs")
    assert parse_solver(" sgd:step=1e-2 ") == zg.SGD(step=0.01)
    assert doctest.testmod(contestants, optionflags=doctest.ELLIPSIS).failed == 0
    for text, message in {
        "svm": "'svm' is unknown",
        "sdca:batch=8": "SDCA has no parameter 'batch'",
        "sdca:fast": "write options as name=value",
    }.items():
        with pytest.raises(ValueError, match=message):
            parse_solver(text)


def test_refusals(problem, data):
    with pytest.raises(ValueError, match="GD is listed twice"):
        compare(problem, ["gd", zg.GD()])
    with pytest.raises(ValueError, match="name one solver"):
        compare(problem, [])
    with pytest.raises(ValueError, match="seeds"):
        compare(problem, ["gd"], seeds=[])
    with pytest.raises(ValueError, match="X_test must have 4 columns"):
        compare(problem, ["gd"], X_test=data[2][:, :3], y_test=data[3])
    with pytest.raises(ValueError, match="needs a smooth loss"):
        compare(problem.with_loss(zg.Hinge()), ["asdca"])


def test_looks_differ():
    assert len({style(k) for k in range(140)}) == 140


def test_saved_files(outcome, tmp_path):
    paths = outcome.save(tmp_path / "new" / "folder")
    assert paths["png"].read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(paths["svg"]).getroot().tag.endswith("svg")
    with paths["records"].open(newline="") as file:
        records = list(csv.DictReader(file))
    rows = outcome.rows()
    assert len(records) == len(rows)
    for column in ("seed", "epoch", "gap", "test_error"):
        assert [float(record[column]) for record in records] == [row[column] for row in rows]
    before = paths["svg"].read_bytes()
    outcome.save(tmp_path / "new" / "folder")
    assert paths["svg"].read_bytes() == before


@pytest.fixture
def command(tmp_path):
    """Run `zerogap compare`; what it writes goes to tmp_path."""
    from zerogap import cli

    def call(line):
        arguments = ["compare", "--out", str(tmp_path / "out"), *line.split()]
        outcome = testing.CliRunner().invoke(cli.make_app(), arguments)
        if outcome.exception and not isinstance(outcome.exception, SystemExit):
            raise outcome.exception
        return outcome

    return call


def test_command_without_arguments(command, tmp_path):
    outcome = command("--repeats 2 --epochs 70")
    assert outcome.exit_code == 0, outcome.stderr
    assert "\x1b" not in outcome.stdout + outcome.stderr  # no colours where nobody sees them
    assert "670 x 10, SmoothHinge" in outcome.stdout
    for name in ("SDCA", "ASDCA", "Pegasos", "Pegasos(batch_size=8)", "SGD"):
        assert f"\n{name} " in outcome.stdout
        assert f"{name}  run 2/2  epochs" in outcome.stderr
    assert "reference  epochs" in outcome.stderr
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"curves.png", "curves.svg", "compare.html", "records.csv"}
    assert all(str(tmp_path / "out" / name) in outcome.stdout for name in files)


def test_command_with_files_and_json(command, data, tmp_path):
    for name, X, y in (("train", *data[:2]), ("test", *data[2:])):
        lines = ["a,b,c,d,class"]
        lines += [
            ",".join([*map(repr, map(float, x)), "no" if t < 0 else "yes"])
            for x, t in zip(X, y, strict=True)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    line = f"{tmp_path}/train.csv --test {tmp_path}/test.csv --json --solvers sdca,gd --seed 4"
    outcome = command(f"{line} --loss logistic --lam 0.01 --repeats 1")
    assert outcome.exit_code == 0, outcome.stderr
    report = json.loads(outcome.stdout)
    assert (report["rows"], report["features"], report["intercept"]) == (100, 4, True)
    assert report["lam"] == 0.01
    low, high = report["optimum"]
    problem = zg.Problem(data[0], data[1], "logistic", lam=0.01, fit_intercept=True)
    best = zg.solve(problem, zg.SDCA(), tol=1e-10, max_epochs=10_000, random_state=0)
    assert low <= best.certificate.primal
    assert high >= best.certificate.dual
    sdca, gd = report["solvers"]
    assert sdca["certificate"]["stop_reason"] == "converged"
    assert gd["name"] == "GD"
    assert 0 <= sdca["test_error"] < 0.5
    assert outcome.stdout.count("\n") == 1


def test_command_stops_short(command):
    outcome = command("--solvers gd --epochs 2 --repeats 1")
    assert outcome.exit_code == 3
    assert "no solver reached a gap of 0.001" in outcome.stderr
    assert "max epochs" in outcome.stdout


def test_command_says_who_cannot_run(command):
    outcome = command("--loss hinge --epochs 2 --repeats 1")
    assert "without ASDCA: needs a smooth loss" in outcome.stderr


@pytest.mark.parametrize(
    ("line", "message", "code"),
    [
        ("--solvers fast", "'fast' is unknown", 2),
        ("--solvers sdca:batch=1", "SDCA has no parameter 'batch'", 2),
        ("--solvers asdca --loss hinge", "needs a smooth loss", 1),
        ("--lam -1", "lam must be a positive", 1),
        ("no-such-data", "neither a file nor a data set", 1),
    ],
)
def test_command_refusals(line, message, code, command, tmp_path):
    outcome = command(line)
    assert outcome.exit_code == code
    assert message in outcome.stderr
    assert outcome.stdout == ""
    assert not list(tmp_path.glob("out/*"))


def test_command_interrupted(command, monkeypatch, tmp_path):
    from zerogap.cli.compare_table import CompareTable

    show = CompareTable.show

    def press(self, name, seed, record):
        show(self, name, seed, record)
        if name == "GD" and record.epoch == 2 and not record.certificate.stop_reason:
            raise KeyboardInterrupt

    monkeypatch.setattr(CompareTable, "show", press)
    outcome = command("--solvers sdca,gd --epochs 5")
    assert outcome.exit_code == 3
    assert "interrupted" in outcome.stderr
    assert (tmp_path / "out" / "compare.html").exists()
    assert "Interrupted" in (tmp_path / "out" / "compare.html").read_text()


def test_live_table_on_a_terminal(monkeypatch, problem):
    import io

    from zerogap.cli.compare_table import CompareTable

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with CompareTable(["SDCA", "GD"], [0], 1e-3, "") as table:
        outcome = compare(problem, ["sdca", "gd"], seeds=[0], on_record=table.show)
        assert table.lines["SDCA"].status == "reached"
        assert table.lines["SDCA"].way == 1.0
        assert 0 < table.lines["GD"].way <= 1.0
    text = screen.getvalue()
    assert "warming up" in text
    assert "waiting" in text
    assert "reached" in text
    assert "━" in text
    assert outcome.names == ["SDCA", "GD"]

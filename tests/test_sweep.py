"""A sweep is cross-validation with a certificate for every fit."""

import csv
import doctest
import json
import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import zerogap as zg
from problems import make_data
from zerogap.problem.certificate import Certificate
from zerogap.sweeps import Cell, Fit, Sweep, draw, picture, run, sweep
from zerogap.transforms import GaussianLandmarks

LAMS = [1e-3, 1e-2, 1e-1, 1.0]


def noisy(n=120, d=8, seed=0):
    X, y, _ = zg.datasets.make_simulated(n, d, noise=2.0, random_state=seed)
    return X, y


def test_errors_are_those_of_cross_validation():
    X, y = noisy()
    options = {"loss": "logistic", "tol": 1e-6, "random_state": 3}
    result = sweep(X, y, {"lam": LAMS}, folds=4, warm_start=False, **options)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    for lam, cell in zip(LAMS, result.cells, strict=True):
        model = zg.LinearClassifier(lam=lam, **options)
        expected = 1 - cross_val_score(model, X, y, cv=folds)
        assert cell.parameters == {"lam": lam}
        np.testing.assert_allclose([fit.error for fit in cell.fits], expected, atol=1e-12)
        assert cell.error == pytest.approx(expected.mean())
        assert cell.standard_error == pytest.approx(expected.std(ddof=1) / 2)
    assert not result.interrupted
    assert (result.folds, result.asked_folds, result.short) == (4, 4, 0)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "huber", "softmax"])
def test_every_fit_is_certified(loss):
    X, y = make_data("hinge" if loss == "softmax" else loss, n=60)
    result = sweep(X, y, {"lam": LAMS}, loss=loss, folds=3, tol=1e-4, random_state=0)
    for cell in result.cells:
        assert len(cell.certificates) == 3
        assert 0 <= cell.relative_gap <= 1e-4
        assert cell.row()["relative_gap"] == max(c.relative_gap for c in cell.certificates)


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge"])
def test_warm_starts_save_epochs_and_change_nothing(loss):
    X, y = noisy(300)
    options = {"loss": loss, "folds": 2, "tol": 1e-5, "max_epochs": 20_000, "random_state": 0}
    grid = {"lam": np.geomspace(1e-4, 1.0, 9)}
    warm, cold = (sweep(X, y, grid, warm_start=warm, **options) for warm in (True, False))
    assert sum(c.row()["epochs"] for c in warm.cells) < 0.9 * sum(
        c.row()["epochs"] for c in cold.cells
    )
    for a, b in zip(warm.cells, cold.cells, strict=True):
        for p, q in zip(a.certificates, b.certificates, strict=True):
            assert p.primal == pytest.approx(q.primal, rel=2e-5)


def test_order_of_the_grid_does_not_matter():
    X, y = noisy()
    up, down = (sweep(X, y, {"lam": lams}, random_state=0) for lams in (LAMS, LAMS[::-1]))
    assert [c.error for c in up.cells] == [c.error for c in down.cells][::-1]
    assert [c.parameters["lam"] for c in down.cells] == LAMS[::-1]
    assert up.values("lam") == down.values("lam") == LAMS


def test_regression_errors_are_mean_losses():
    X, y = make_data("huber", n=80)
    loss = zg.Quantile(q=0.8)
    result = sweep(X, y, {"lam": [0.1]}, loss=loss, validation=0.25, tol=1e-6, random_state=0)
    (fit,) = result.cells[0].fits
    ((train, test),) = run.split(y, None, 5, 0.25, True, 0)
    model = zg.LinearRegressor(loss=loss, lam=0.1, tol=1e-6, random_state=0)
    values = [
        loss.value(z, t)
        for z, t in zip(model.fit(X[train], y[train]).predict(X[test]), y[test], strict=True)
    ]
    assert len(test) == 20
    assert fit.error == pytest.approx(np.mean(values))
    assert result.cells[0].standard_error == pytest.approx(np.std(values, ddof=1) / math.sqrt(20))
    assert result.measure == "mean loss, Quantile(q=0.8)"


@pytest.mark.parametrize("validation", [None, 0.25])
@pytest.mark.parametrize("regression", [False, True])
def test_groups_stay_on_one_side(validation, regression):
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(30), 4))
    y = (groups % 3 == 0).astype(float)
    parts = run.split(y, groups, 5, validation, regression, 0)
    assert len(parts) == (5 if validation is None else 1)
    for train, test in parts:
        assert not set(groups[train]) & set(groups[test])
        assert len(train) + len(test) == 120
        assert 16 <= len(test) <= 40
        if not regression:
            assert abs(y[test].mean() - 1 / 3) < 0.15, "classes in proportion"


@pytest.mark.parametrize("validation", [None, 0.2])
def test_classes_stay_in_proportion(validation):
    y = np.arange(200) % 10 == 0
    for train, test in run.split(y, None, 5, validation, False, 0):
        assert y[test].sum() == 4
        assert not set(train) & set(test)


def test_the_transform_sees_training_rows_only():
    seen = []

    class Spy(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            seen.append(len(X))
            return self

        def transform(self, X):
            return X

    X, y = noisy()
    sweep(X, y, {"lam": LAMS}, transform=Spy(), folds=3, random_state=0)
    assert seen == [80, 80, 80], "once per fold, not per lambda"


def test_bandwidths_are_swept():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = np.where((X**2).sum(1) > 1.4, 1, -1)  # a disc: no line separates it
    grid = {"h": [0.01, 1.0], "lam": [1e-3]}
    result = sweep(X, y, grid, loss="logistic", random_state=0)
    assert result.best.parameters == {"h": 1.0, "lam": 1e-3}
    assert result.best.error < 0.1
    assert result.cells[0].error > 0.25
    transform = GaussianLandmarks(n_landmarks=20, random_state=0)
    by_hand = sweep(X, y, grid, loss="logistic", transform=transform, random_state=0)
    assert by_hand.best.error < 0.1


def test_parameters_are_found_where_they_are():
    X, y = noisy()
    options = {"max_epochs": 2, "tol": 2.0, "folds": 2, "random_state": 0}
    grid = {"step": [0.01, 0.1], "batch_size": [1, 4], "lam": [0.1]}
    result = sweep(X, y, grid, solver="sgd", **options)
    assert [cell.parameters for cell in result.cells][1] == {
        "step": 0.01,
        "batch_size": 4,
        "lam": 0.1,
    }
    for cell in result.cells:
        solver = cell.certificates[0].solver
        batch_size = cell.parameters["batch_size"]  # named unless it is the default, 1
        assert ("batch_size=" in solver) == (batch_size != 1)
        assert batch_size == 1 or f"batch_size={batch_size}" in solver
        assert f"step={cell.parameters['step']}" in solver
    assert result.swept == ("step", "batch_size")
    solver = zg.ASDCA(batch_size=4)
    result = sweep(X, y, {"theta": [0.3, 0.6]}, loss="logistic", solver=solver, **options)
    assert all("batch_size=4, theta=0." in c.certificates[0].solver for c in result.cells)
    result = sweep(X, y, {"gamma": [0.1, 1.0]}, loss="smooth-hinge", **options)
    assert result.swept == ("gamma",)


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        ({}, {}, "grid must be a dict"),
        ([0.1], {}, "grid must be a dict"),
        ({"lam": []}, {}, r"grid\['lam'\] has no values"),
        ({"lam": 0.1}, {}, r"grid\['lam'\] must be a list of values, got 0.1"),
        ({"lam": [0.1, 0.1]}, {}, "has a value twice"),
        ({"lam": [-1.0]}, {}, "lam must be a positive"),
        ({"step": [0.1]}, {}, "no parameter 'step' .* it is a parameter of solver 'sgd' or 'gd'"),
        ({"nonsense": [1]}, {}, "no parameter 'nonsense' to sweep in LinearClassifier"),
        (
            {"gamma": [1.0]},
            {"loss": "smooth-hinge", "solver": "asdca"},
            "write 'loss__gamma' or 'solver__gamma'",
        ),
        (
            {"lam": [0.1]},
            {"validation": 1.5},
            r"validation must be a share of the rows in \(0, 1\)",
        ),
        ({"lam": [0.1]}, {"folds": 1}, "n_splits=1"),
        ({"lam": [0.1]}, {"loss": "nonsense"}, "unknown loss"),
    ],
)
def test_impossible_sweeps_are_refused(grid, options, message):
    X, y = noisy()
    with pytest.raises(ValueError, match=message):
        sweep(X, y, grid, **options)


def test_unknown_parameters_are_refused():
    X, y = noisy()
    with pytest.raises(TypeError, match="LinearClassifier has no parameter nonsense"):
        sweep(X, y, {"lam": [0.1]}, nonsense=1)
    with pytest.raises(ValueError, match="continuous"):
        sweep(X, X[:, 0], {"lam": [0.1]})
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        sweep(X, y[:-1], {"lam": [0.1]})


def cell(lam, *errors, spread=0.0):
    certificate = Certificate(1.0, 0.999, 1e-3)
    fits = (
        Fit({"lam": lam}, k, error, spread, error / 2, certificate)
        for k, error in enumerate(errors)
    )
    return Cell({"lam": lam}, tuple(fits))


def test_the_simplest_of_the_good_cells():
    cells = (
        cell(1e-3, 0.1, 0.14),
        cell(1e-2, 0.13, 0.15),
        cell(1e-1, 0.14, 0.143),
        cell(1, 0.3, 0.3),
    )
    result = Sweep(cells, 2, 2, "misclassified rows", 1e-3)
    assert result.best is cells[0]
    assert result.best.standard_error == pytest.approx(0.02)
    assert result.simplest is cells[1], "0.14 is one standard error above 0.12, 0.1415 is more"
    equal = Sweep((cell(1e-3, 0.1), cell(1e-2, 0.1)), 1, 1, "misclassified rows", 1e-3)
    assert equal.best.parameters == {"lam": 1e-2}, "the largest lambda among equals"


@pytest.mark.parametrize(("fits", "folds", "cells"), [(11, 2, 4), (4, 1, 4), (3, 1, 3)])
def test_ctrl_c_keeps_what_is_done(fits, folds, cells):
    X, y = noisy()
    done = []

    def interrupt(fit):
        done.append(fit)
        if len(done) == fits:
            raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match=f"interrupted after {fits} of 20 fits: {folds} of 5"):
        result = sweep(X, y, {"lam": LAMS}, random_state=0, callback=interrupt)
    whole = sweep(X, y, {"lam": LAMS}, random_state=0)
    assert result.interrupted
    assert (result.folds, result.asked_folds, len(result.cells)) == (folds, 5, cells)
    for kept in result.cells:
        other = next(c for c in whole.cells if c.parameters == kept.parameters)
        assert [fit.error for fit in kept.fits] == [fit.error for fit in other.fits[:folds]]
        assert kept.standard_error >= 0


def test_ctrl_c_before_the_first_fit_is_passed_on(monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(zg.LinearClassifier, "fit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sweep(*noisy(), {"lam": LAMS})


def test_unfinished_fits_warn_once():
    X, y = noisy()
    with pytest.warns(ConvergenceWarning) as caught:
        result = sweep(X, y, {"lam": LAMS}, folds=2, tol=1e-12, max_epochs=1, random_state=0)
    assert len(caught) == 1
    assert str(caught[0].message).startswith(f"{result.short} of 8 fits stopped before")
    assert result.short == 8


def test_progress_says_rate_and_time_left(capsys):
    X, y = noisy()
    sweep(X, y, {"lam": LAMS}, folds=2, random_state=0, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("fit 8 of 8  ")
    assert lines[-1].endswith(" fits/s  about 0 s left")


@pytest.fixture(scope="module")
def curve():
    return sweep(*noisy(), {"lam": [*LAMS, 10.0, 100.0, 1000.0]}, folds=3, random_state=0)


def test_the_curve_shows_the_errors(curve, tmp_path):
    pytest.importorskip("matplotlib")
    figure = draw(curve, "title")
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    assert axes.get_ylabel() == "misclassified rows (%)"
    assert "lambda" in axes.get_xlabel()
    marked = [line for line in axes.lines if line.get_marker() in ("o", "s")]
    shown = {line.get_color(): line.get_xydata() for line in marked}
    np.testing.assert_allclose(shown["#0072B2"][:, 1], [100 * c.error for c in curve.cells])
    np.testing.assert_allclose(shown["#D55E00"][:, 1], [100 * c.train_error for c in curve.cells])
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts[:2] == ["validation, with standard error", "training"]
    assert texts[2] == f"lowest error, at {curve.best.parameters['lam']:.4g}"
    for suffix in ("png", "svg"):
        figure.savefig(tmp_path / f"sweep.{suffix}")
        assert (tmp_path / f"sweep.{suffix}").stat().st_size > 1000


def test_two_parameters_give_a_heat_map():
    pytest.importorskip("matplotlib")
    grid = {"l1_ratio": [0.5, 0.0], "lam": [1e-2, 1e-1, 1.0]}
    result = sweep(*noisy(), grid, folds=2, random_state=0)
    axes, bar = draw(result).axes

    def place(cell):
        values = cell.parameters
        return [0.0, 0.5].index(values["l1_ratio"]), grid["lam"].index(values["lam"])

    shown = np.asarray(axes.images[0].get_array())
    assert shown.shape == (2, 3)
    for cell in result.cells:
        assert shown[place(cell)] == pytest.approx(100 * cell.error)
    assert axes.get_ylabel() == "l1_ratio"
    assert bar.get_ylabel() == "misclassified rows (%)"
    (frame,) = axes.patches
    row, column = place(result.best)
    assert frame.get_xy() == (column - 0.5, row - 0.5)


def test_more_parameters_give_a_curve_each():
    pytest.importorskip("matplotlib")
    grid = {"sampling": ["cyclic", "permutation"], "l1_ratio": [0.0, 0.5], "lam": [0.1, 1.0]}
    result = sweep(*noisy(), grid, solver="sdca", folds=2, random_state=0)
    figure = draw(result)
    assert [axes.get_xlabel() for axes in figure.axes][:2] == ["sampling", "l1_ratio"]
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["cyclic", "permutation"]
    for axes in figure.axes:
        (curve,) = (line for line in axes.lines if line.get_marker() == "o")
        assert len(curve.get_ydata()) == 2
        assert min(curve.get_ydata()) == pytest.approx(100 * result.best.error)


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Run `zerogap sweep` on a small file."""
    testing = pytest.importorskip("typer.testing")
    from zerogap import cli

    monkeypatch.chdir(tmp_path)
    X, y = noisy()
    np.savez("data.npz", X=X, y=y)

    def call(line):
        outcome = testing.CliRunner().invoke(cli.make_app(), ["sweep", "data.npz", *line.split()])
        if outcome.exception and not isinstance(outcome.exception, SystemExit):
            raise outcome.exception
        return outcome

    return call


def test_the_command_prints_a_table(command):
    outcome = command("--lam 1e-3:1:4 --folds 3")
    assert outcome.exit_code == 0, outcome.stderr
    lines = outcome.stdout.splitlines()
    assert "120 rows, 8 features, 3 of 3 folds" in lines[0]
    assert " ".join(lines[2].split()) == "lam validation error training error largest gap epochs"
    assert [line.split()[0] for line in lines[3:]] == ["0.001", "0.01", "0.1", "1"]
    assert sum("lowest" in line for line in lines) == 1


def test_the_command_writes_json_csv_and_a_picture(command, tmp_path):
    pytest.importorskip("matplotlib")
    outcome = command(
        "--h 1,5 --lam 0.01,0.1 --loss logistic --scale standard --validation 0.25 "
        "--json --csv table.csv --out sweep.svg --seed 1"
    )
    assert outcome.exit_code == 0, outcome.stderr
    report = json.loads(outcome.stdout)
    assert report["folds"] == 1
    assert [(c["h"], c["lam"]) for c in report["cells"]] == [
        (1, 0.01),
        (1, 0.1),
        (5, 0.01),
        (5, 0.1),
    ]
    assert report["best"]["error"] == min(c["error"] for c in report["cells"])
    X, y = noisy()
    transform = make_pipeline(StandardScaler(), GaussianLandmarks(random_state=1), StandardScaler())
    expected = sweep(
        X,
        y,
        {"h": [1.0, 5.0], "lam": [0.01, 0.1]},
        loss="logistic",
        transform=transform,
        validation=0.25,
        random_state=1,
    )
    assert [c["error"] for c in report["cells"]] == [c.error for c in expected.cells]
    with open(tmp_path / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["error"]) for row in rows] == [c["error"] for c in report["cells"]]
    assert "<svg" in (tmp_path / "sweep.svg").read_text()


def test_the_command_says_when_fits_fall_short(command):
    outcome = command("--lam 1e-5 --tol 1e-9 --max-epochs 1 --folds 2")
    assert outcome.exit_code == 3
    assert "2 fits stopped before the gap of 1e-09" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            "--lam 1:2",
            2,
            "--lam needs positive numbers, as 0.01,0.1,1 or as 1e-5:1e-1:9, not '1:2'",
        ),
        ("--lam 0,1", 2, "--lam needs positive numbers"),
        ("--lam x", 2, "--lam needs positive numbers"),
        ("--lam 1:2:0", 2, "--lam needs positive numbers"),
        ("--batch-size 1.5,2 --solver sgd", 2, "--batch-size needs whole numbers"),
        ("--loss nonsense", 2, "'nonsense' is unknown"),
        ("--step 0.1", 1, "it is a parameter of solver 'sgd' or 'gd'"),
        ("--out absent/x.png", 1, "the folder absent does not exist"),
        ("--out data.npz", 1, "is what is read"),
        ("--validation 2", 1, "validation must be a share"),
    ],
)
def test_the_command_refuses(command, arguments, code, message):
    outcome = command(arguments)
    assert outcome.exit_code == code
    assert message in outcome.stderr
    assert outcome.stderr.count("\n") == 1, "one line"


def test_examples_in_docstrings():
    for module in (run, picture):
        assert doctest.testmod(module).failed == 0


def test_grids():
    pytest.importorskip("typer")
    from zerogap.cli.sweep import parse_grid

    assert parse_grid("lam", "1e-5:1e-1:5") == [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
    assert parse_grid("lam", "0.5,2") == [0.5, 2.0]
    assert parse_grid("h", "3") == [3.0]
    assert parse_grid("batch_size", "1:100:5") == [1, 3, 10, 32, 100]
    assert all(isinstance(value, int) for value in parse_grid("batch_size", "1,8"))

"""Cross-validation over all lambdas: exact steps, and bounds that the optima keep."""

import dataclasses
import threading

import numpy as np
import pytest
from sklearn.model_selection import RepeatedKFold
from sklearn.preprocessing import StandardScaler

import zerogap as zg
from problems import make_data
from zerogap.losses import as_loss
from zerogap.paths import PathError
from zerogap.sweeps import Curve, Step, curve, draw_curve, path_cv
from zerogap.sweeps.run import losses, split

LOW, HIGH = 0.1, 1.0


def fold_errors(X, y, loss, model):
    """The mean error on the validation rows of each fold, of models made of training rows."""
    errors = []
    for train, test in split(y, None, 5, None, as_loss(loss).task == "regression", 0):
        w, b = model(X[train], y[train])
        z = X[test] @ w + b
        if as_loss(loss).task == "regression":
            errors.append(losses(as_loss(loss), z, y[test]).mean())
        else:
            errors.append(np.mean((z > 0) != (y[test] > 0)))
    return np.array(errors)


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_steps_are_the_errors_of_the_paths_models(loss):
    X, y = make_data(loss, n=100)
    options = {"loss": loss, "tol": 1e-2, "random_state": 0}
    found = path_cv(X, y, LOW, HIGH, **options)
    edges = [found.steps[0].start, *(step.stop for step in found.steps)]
    assert edges == sorted(set(edges))
    assert (edges[0], edges[-1]) == (LOW, HIGH)
    for lam in np.random.default_rng(0).uniform(LOW, HIGH, 2):

        def model(X, y, lam=lam):
            return zg.path(X, y, lam_min=LOW, lam_max=HIGH, **options).at(lam)[:2]

        errors = fold_errors(X, y, loss, model)
        step = found.at(lam)
        assert step.start <= lam <= step.stop
        assert step.error == pytest.approx(errors.mean())
        assert step.standard_error == pytest.approx(errors.std(ddof=1) / np.sqrt(5))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "quantile"])
def test_optima_err_within_the_bounds(loss, intercept):
    X, y = make_data(loss, n=100, seed=3)
    options = {"loss": loss, "fit_intercept": intercept, "tol": 1e-3, "random_state": 0}
    found = path_cv(X, y, LOW, HIGH, **options)
    widths = [step.high - step.low for step in found.steps]
    assert 0.0 < np.mean(widths) < 0.5 * abs(y).max()
    for lam in np.random.default_rng(1).uniform(LOW, HIGH, 2):

        def optimum(X, y, lam=lam):
            problem = zg.Problem(X, y, loss, lam, fit_intercept=intercept)
            exact = zg.solve(problem, zg.Auto(), tol=1e-9, max_epochs=50_000, random_state=0)
            return exact.w, exact.b

        error = fold_errors(X, y, loss, optimum).mean()
        step = found.at(lam)
        assert step.low - 1e-12 <= error <= step.high + 1e-12
        assert step.low <= step.error <= step.high


def test_bounds_shrink_with_tol_and_standard_errors_do_not():
    X, y = make_data("logistic", n=100)
    rough, fine = (
        path_cv(X, y, LOW, HIGH, loss="logistic", tol=tol, random_state=0) for tol in (1e-2, 1e-4)
    )
    before, after = (step.high - step.low for step in (rough.at(0.1), fine.at(0.1)))
    assert after < 0.3 * before
    assert fine.at(0.1).standard_error == pytest.approx(rough.at(0.1).standard_error, rel=0.5)
    assert fine.models > 5 * rough.models


def test_threads_change_nothing():
    X, y = make_data("hinge", n=100)
    one, two = (
        path_cv(X, y, LOW, HIGH, tol=1e-2, n_jobs=jobs, random_state=0) for jobs in (None, 2)
    )
    assert one.steps == two.steps
    assert (one.models, one.epochs) == (two.models, two.epochs)


def test_splitters_and_groups():
    X, y = make_data("squared", n=60)
    options = {"loss": "squared", "tol": 1e-2, "random_state": 0}
    splitter = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    assert path_cv(X, y, LOW, HIGH, folds=splitter, **options).folds == 6
    groups = np.repeat(np.arange(12), 5)
    found = path_cv(X, y, LOW, HIGH, folds=3, groups=groups, **options)
    assert found.folds == 3
    assert found.steps != path_cv(X, y, LOW, HIGH, folds=3, **options).steps


def test_best_and_simplest():
    errors = [0.3, 0.2, 0.1, 0.1, 0.15, 0.14, 0.4]
    steps = [Step(k + 1.0, k + 2.0, e, 0.045, 0.0, 1.0) for k, e in enumerate(errors)]
    found = Curve(tuple(steps), "misclassified rows", 1e-3, 5, 7, 1.0)
    assert found.best is steps[3]
    assert found.simplest is steps[5]
    assert found.best.lam == pytest.approx(np.sqrt(4 * 5))
    assert (found.at(1.0), found.at(8.0)) == (steps[0], steps[6])
    for lam in (0.99, 8.01, np.nan):
        with pytest.raises(ValueError, match="outside of the path, from 1 to 8"):
            found.at(lam)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "softmax"}, "loss of many classes"),
        ({"loss": "nonsense"}, "unknown loss"),
        ({"lam_min": 0.0}, "lam must be a positive"),
        ({"lam_max": 1e-3}, "must be below lam_max"),
        ({"folds": 1}, "n_splits=1"),
    ],
)
def test_impossible_curves_are_refused(options, message):
    X, y = make_data("hinge")
    with pytest.raises(ValueError, match=message):
        path_cv(X, y, **{"lam_min": LOW, **options})
    with pytest.raises(ValueError, match="two classes, got 3"):
        path_cv(X, np.arange(40) % 3, LOW)


def test_a_hole_in_one_fold_ends_all():
    X, y = make_data("hinge", n=100)
    before = set(threading.enumerate())  # libraries that other tests use keep threads of their own
    with pytest.raises(PathError, match="max_epochs"):
        path_cv(X, y, 1e-5, HIGH, tol=1e-8, solver="sdca", max_epochs=2, n_jobs=2)
    assert set(threading.enumerate()) <= before


def test_ctrl_c_ends_all_folds(monkeypatch):
    X, y = make_data("hinge", n=100)

    def interrupted(*arguments, **options):
        result = zg.solve(*arguments, **options)
        return dataclasses.replace(result, stop_reason="interrupted")

    monkeypatch.setattr(curve, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        path_cv(X, y, LOW, HIGH, n_jobs=2, random_state=0)


def test_the_picture_shows_both_uncertainties(capsys):
    pytest.importorskip("matplotlib")
    X, y = make_data("hinge", n=100)
    found = path_cv(X, y, LOW, HIGH, tol=1e-2, random_state=0, verbose=1)
    assert f"{found.models} models prove 100 %" in capsys.readouterr().err
    left, right = draw_curve(found, "title").axes
    for axes, text in ((left, "standard error of the folds"), (right, "exact optima")):
        names = [label.get_text() for label in axes.get_legend().get_texts()]
        assert any(text in name for name in names)
        assert any(f"lowest error, at {found.best.lam:.3g}" in name for name in names)
        assert axes.get_xscale() == "log"
        line = next(p for p in axes.patches if p.get_label() == "validation")
        np.testing.assert_allclose(line.get_data().values, [100 * s.error for s in found.steps])


def test_a_transform_sees_the_training_rows_of_each_fold_only():
    """The curve has the errors of optima whose folds are standardised one by one."""
    X, y = make_data("logistic", n=100)
    X = X * np.geomspace(1.0, 1e3, X.shape[1]) + 1e4
    options = {"loss": "logistic", "tol": 1e-6, "random_state": 0}
    found = path_cv(X, y, LOW, HIGH, transform=StandardScaler(), **options)
    for lam in (LOW, HIGH):

        def optimum(X, y, lam=lam):
            scaler = StandardScaler().fit(X)
            problem = zg.Problem(scaler.transform(X), y, "logistic", lam, fit_intercept=True)
            exact = zg.solve(problem, zg.Auto(), tol=1e-9, random_state=0)
            w = exact.w / scaler.scale_
            return w, exact.b - scaler.mean_ @ w

        error = fold_errors(X, y, "logistic", optimum).mean()
        step = found.at(lam)
        assert step.low - 1e-12 <= error <= step.high + 1e-12
        assert step.high - step.low < 0.05

"""A path is a certified model per lambda, and between its ends a proof for every lambda."""

import dataclasses
import functools

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import zerogap as zg
from problems import make_data
from proofs_path import prove_path
from zerogap.paths import PathError, run
from zerogap.paths.intervals import Reach, balanced_votes, check_interval
from zerogap.problem.row_sums import penalty_and_slack

LAMS = np.geomspace(1e-3, 1.0, 7)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "huber"])
def test_every_lambda_is_certified(loss):
    X, y = make_data(loss, n=100)
    path = zg.path(X, y, LAMS, loss=loss, tol=1e-5, max_epochs=20_000, random_state=0)
    for lam, w, b, certificate in zip(
        LAMS, path.coefs, path.intercepts, path.certificates, strict=True
    ):
        problem = zg.Problem(X, y, loss, lam, fit_intercept=True)
        assert certificate.relative_gap <= 1e-5
        assert certificate.primal == pytest.approx(problem.primal(w, b), rel=1e-12)
    norms = np.linalg.norm(path.coefs, axis=1)
    assert np.all(np.diff(norms) < 0), "more regularisation, smaller weights"


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", "huber"])
def test_warm_starts_save_epochs(loss):
    X, y = make_data(loss, n=300, d=10)
    path = zg.path(X, y, LAMS, loss=loss, tol=1e-4, max_epochs=20_000, random_state=0)
    cold = [
        zg.solve(
            zg.Problem(X, y, loss, lam, fit_intercept=True),
            zg.SDCA(),
            tol=1e-4,
            max_epochs=20_000,
            random_state=0,
        )
        for lam in LAMS
    ]
    assert sum(c.epochs for c in path.certificates) < 0.8 * sum(r.certificate.epochs for r in cold)


def test_order_of_the_grid_does_not_matter():
    X, y = make_data("hinge")
    up, down = (zg.path(X, y, lams, random_state=0) for lams in (LAMS, LAMS[::-1]))
    np.testing.assert_array_equal(up.coefs, down.coefs[::-1])


def test_labels_of_any_kind():
    X, y = make_data("hinge")
    names = np.where(y > 0, "yes", "no")
    np.testing.assert_array_equal(
        zg.path(X, names, [0.1], random_state=0).coefs, zg.path(X, y, [0.1], random_state=0).coefs
    )
    with pytest.raises(ValueError, match="two classes, got 3"):
        zg.path(X, np.arange(40) % 3, [0.1])


@pytest.mark.parametrize(
    ("lams", "message"),
    [([], "list of numbers"), (0.1, "list of numbers"), ([0.1, -1], "lam must be a positive")],
)
def test_impossible_grids_are_refused(lams, message):
    X, y = make_data("hinge")
    with pytest.raises(ValueError, match=message):
        zg.path(X, y, lams)


def test_unfinished_paths_warn():
    X, y = make_data("hinge", n=100)
    with pytest.warns(ConvergenceWarning, match="asked for 1e-12"):
        zg.path(X, y, [1e-4], tol=1e-12, max_epochs=2, random_state=0)


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_every_lambda_of_an_interval_is_proved(start):
    models = [prove_path(seed) for seed in range(start, start + 50)]
    assert sum(count is not None for count in models) >= 48


@pytest.mark.parametrize("seed", [824, 1539])
def test_the_dual_variables_of_a_path_prove_what_it_claims(seed):
    """They were those of before a refinement that moved them by percents."""
    assert prove_path(seed)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda reach, lam: penalty_and_slack(reach.penalty, reach.result.w, reach.v / reach.lam)[1],
        lambda reach, lam: 0.9 * penalty_and_slack(reach.penalty, reach.result.w, reach.v / lam)[1],
    ],
)
def test_a_wrong_theorem_would_be_found(wrong, monkeypatch):
    monkeypatch.setattr(Reach, "_slack", wrong)
    with pytest.raises(AssertionError):
        prove_path(0)


def test_the_gap_of_an_optimum_in_closed_form():
    X, y = make_data("squared")
    options = {"loss": "squared", "tol": 1e-11, "random_state": 0}
    path = zg.path(X, y, lam_min=0.01, lam_max=0.0100001, **options)
    for reach, lam in [(path.reaches[0], 1.0), (path.reaches[-1], 1e-3)]:
        expected = np.sum(reach.result.w**2) * (lam - reach.lam) ** 2 / (2 * lam)
        assert reach.certificate(lam).gap == pytest.approx(expected, rel=1e-3)


def test_models_grow_like_the_root_of_tol():
    X, y = make_data("logistic", n=200)
    paths = [
        zg.path(X, y, lam_min=1e-3, lam_max=1.0, loss="logistic", tol=tol, random_state=0)
        for tol in (1e-2, 1e-4)
    ]
    rough, fine = (len(path.lams) for path in paths)
    assert 5 < fine / rough < 20
    solved = [sum(c.epochs > 0 for c in path.certificates) for path in paths]
    assert solved[1] < 0.5 * fine, "mixtures of neighbours are good enough"
    assert solved[0] <= solved[1]


def test_models_do_not_overlap_more_than_needed():
    X, y = make_data("hinge", n=200)
    path = zg.path(X, y, lam_min=1e-3, lam_max=1.0, tol=1e-3, random_state=0)
    lengths = [np.log(reach.high / reach.low) for reach in path.reaches]
    assert np.log(1000) <= sum(lengths) < 1.5 * np.log(1000)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "absolute"])
def test_an_interval_ends_where_no_feature_is_needed(loss, l1_ratio):
    X, y = make_data(loss)
    options = {"fit_intercept": True, "l1_ratio": l1_ratio}
    path = zg.path(X, y, lam_min=0.1, loss=loss, tol=1e-2, random_state=0, **options)
    problem = zg.Problem(X, y, loss, path.edges[-1], **options)
    assert problem.certificate(np.zeros(5), problem.first_intercept()).relative_gap <= 1.001e-2


def distance_of_constant(X, y, loss, lam, options):
    """P(0, b) - min P over P(0, b), to nine digits."""
    problem = zg.Problem(X, y, loss, lam, **options)
    best = zg.solve(problem, zg.Auto(), tol=1e-9, random_state=0).certificate
    constant = problem.primal(np.zeros(problem.weight_shape), problem.constant())
    return (constant - best.dual) / constant


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("skew", [0.0, 1.5, 2.5])
@pytest.mark.parametrize("loss", ["multiclass-hinge", "softmax", "logistic"])
def test_M4_w_is_zero_at_the_default_end_and_not_far_below(loss, skew, fit_intercept, l1_ratio):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    scores = X[:, :3] + 0.6 * rng.standard_normal((90, 3)) + [skew, 0.0, 0.0]
    y = np.argmax(scores, axis=1)
    y = np.where(y == 0, 1.0, -1.0) if loss == "logistic" else y
    options = {"fit_intercept": fit_intercept, "l1_ratio": l1_ratio}
    make = functools.partial(zg.Problem, X, y, loss, **options)
    _, lam = check_interval(make, 1e-6, None, 1e-2)
    assert distance_of_constant(X, y, loss, lam, options) <= 1e-2
    # dual points that are the same for all rows of a class can be far from the best: a model more
    far = 200 if loss == "multiclass-hinge" else 3
    assert distance_of_constant(X, y, loss, lam / far, options) > 1e-2


def test_M4_a_path_of_the_multiclass_hinge_needs_no_lam_max():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(80), [0.8, 1.2])  # half of them in class 0
    path = zg.path(X, y, lam_min=0.1, loss="multiclass-hinge", tol=1e-2, random_state=0)
    for lam in np.geomspace(path.edges[0], path.edges[-1], 7):
        model = path.at(lam)
        problem = zg.Problem(X, y, "multiclass-hinge", lam, fit_intercept=True)
        proof = problem.certificate(model.w, model.b, model.alpha)
        assert proof.gap <= 1.0001e-2 * proof.primal


@pytest.mark.parametrize("seed", range(40))
def test_M4_votes_of_the_best_constant_model(seed):
    """Given as often as got, none negative, and as many for other classes as there can be."""
    rng = np.random.default_rng(seed)
    counts = rng.dirichlet(np.full(rng.integers(2, 9), [0.1, 1.0, 10.0][seed % 3])) + 1e-9
    if seed % 4 == 0:  # half of all, or almost
        counts[0] = (1.0 - [0.0, 1e-15, 1e-10, 1e-7][seed % 16 // 4]) * counts[1:].sum()
    counts /= counts.sum()
    flow = balanced_votes(counts)
    assert flow.min() >= 0.0
    np.testing.assert_allclose(flow.sum(axis=0), counts, atol=1e-9)
    np.testing.assert_allclose(flow.sum(axis=1), counts, atol=1e-9)
    most = min(1.0, 2.0 * (1.0 - counts.max()))
    assert flow.sum() - np.trace(flow) == pytest.approx(most, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give lams, or lam_min"),
        ({"lam_max": 1.0}, "give lams, or lam_min"),
        ({"lams": [0.1], "lam_min": 0.1}, "either lams, or lam_min"),
        ({"lam_min": -1.0}, "lam must be a positive"),
        ({"lam_min": 1.0, "lam_max": 0.1}, "lam_min=1 must be below lam_max=0.1"),
        ({"lam_min": 1e9}, "must be below lam_max=.*, at which w = 0 is within tol"),
        ({"lam_min": 0.1, "lam_max": np.inf}, "lam_max must be a positive, finite"),
        ({"lam_min": 0.1, "tol": 0.0}, r"tol must be a number in \(0, 1\)"),
        ({"lam_min": 0.1, "tol": 1.0}, r"tol must be a number in \(0, 1\)"),
    ],
)
def test_impossible_intervals_are_refused(options, message):
    X, y = make_data("hinge")
    with pytest.raises(ValueError, match=message):
        zg.path(X, y, **options)


def test_lambdas_that_a_path_does_not_have():
    X, y = make_data("hinge")
    path = zg.path(X, y, lam_min=0.1, lam_max=1.0, random_state=0)
    for lam in (0.0999, 1.001, np.nan, -1.0):
        with pytest.raises(ValueError, match=r"outside of the path, from 0\.1 to 1"):
            path.at(lam)
    with pytest.raises(ValueError, match="for the given lams only"):
        zg.path(X, y, [0.1, 1.0], random_state=0).at(0.5)
    with pytest.raises(ValueError, match="w = 0 is optimal for every lambda"):
        zg.path(np.zeros_like(X), y, lam_min=0.1)


def test_a_hole_is_an_error():
    X, y = make_data("hinge", n=100)
    options = {"lam_max": 1.0, "tol": 1e-9, "solver": "sdca", "max_epochs": 2}
    with pytest.raises(PathError, match=r"at lam=.* stopped \(max_epochs\) .*: raise max_epochs"):
        zg.path(X, y, lam_min=1e-4, random_state=0, **options)


def test_a_pair_that_proves_its_own_lambda_alone(monkeypatch):
    """The search for the ends of its interval stops where no number is left in between."""
    X, y = make_data("logistic", n=40)
    monkeypatch.setattr(Reach, "is_within", lambda self, lam: lam == self.lam)
    with pytest.raises(PathError, match=r"hardly more than its own lambda.*: raise tol"):
        zg.path(X, y, lam_min=0.1, lam_max=0.2, loss="logistic", tol=1e-3)


def test_ctrl_c_ends_a_path(monkeypatch):
    X, y = make_data("hinge")
    solves = []

    def interrupted(*arguments, **options):
        solves.append(zg.solve(*arguments, **options))
        reason = "interrupted" if len(solves) == 3 else solves[-1].stop_reason
        return dataclasses.replace(solves[-1], stop_reason=reason)

    monkeypatch.setattr(run, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        zg.path(X, y, lam_min=1e-3, lam_max=1.0, random_state=0)
    assert len(solves) == 3


def test_progress_of_an_interval(capsys):
    X, y = make_data("hinge")
    path = zg.path(X, y, lam_min=0.1, lam_max=1.0, random_state=0, verbose=1)
    assert f"{len(path.lams)} models prove 100 %" in capsys.readouterr().err

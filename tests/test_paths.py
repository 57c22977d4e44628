"""A path is a certified model per lambda, cheaper than solving each from nothing."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import zerogap as zg
from problems import make_data

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

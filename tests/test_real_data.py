"""On real data SDCA needs the epochs that are known for it."""

import numpy as np
import pytest
from data import load

import zerogap as zg

# Epochs to a relative gap of 1e-3, hinge, C = 1, no intercept: what plain permutation SDCA needs.
KNOWN = {"a9a": 145, "ijcnn1": 35, "rcv1": 20, "skin": 20}


@pytest.mark.parametrize("name", KNOWN)
def test_epochs_to_the_gap(name, data_folder):
    X, y = load(name, data_folder)
    problem = zg.Problem(X, y, "hinge")
    result = zg.solve(problem, zg.SDCA(), tol=1e-3, record="epoch", random_state=0)
    assert result.stop_reason == "converged"
    assert result.certificate.epochs <= KNOWN[name] * 1.05
    assert np.all(np.diff(result.history["dual"]) > 0)


@pytest.mark.parametrize("name", ["ijcnn1", "rcv1"])
def test_intercept_costs_little(name, data_folder):
    X, y = load(name, data_folder)
    problem = zg.Problem(X, y, "hinge", fit_intercept=True)
    result = zg.solve(problem, zg.SDCA(), tol=1e-3, record="epoch", random_state=0)
    assert result.certificate.epochs <= 1.3 * KNOWN[name]

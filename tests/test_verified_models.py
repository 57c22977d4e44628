"""The verifier checks the models of the README and those that tests of estimators fit."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import zerogap as zg
from verified_models import model_of, verified_models, verify_result
from zerogap.problem import Problem

ROOT = Path(__file__).parents[1]
ELSEWHERE = ("zerogap.dask", "cuda")  # blocks that need a cluster or a GPU


def python_of(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def test_the_verifier_checks_every_model_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    results = []
    solve = zg.solve

    def kept(problem, *given, **named):
        results.append((problem, solve(problem, *given, **named)))
        return results[-1][1]

    monkeypatch.setattr(zg, "solve", kept)
    names = {}
    with verified_models() as checked, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in python_of(ROOT / "README.md"):
            if not any(word in block for word in ELSEWHERE):
                exec(compile(block, "README.md", "exec"), names)
    assert len(checked) >= 3  # fit, forget, fit
    assert len(results) >= 6
    for problem, run in results:
        verify_result(problem, run)
    path, (X, y) = names["path"], (names["X"], names["y"])
    for lam, run in zip(path.lams, path.results, strict=True):
        verify_result(Problem(X, y, "squared-hinge", float(lam), fit_intercept=True), run)


def test_models_that_claim_too_much_would_be_found():
    X, y, _ = zg.datasets.make_simulated(random_state=0)
    problem = Problem(X, y, "hinge", 0.01, fit_intercept=True)
    run = zg.solve(problem, zg.Auto(), tol=1e-3, max_epochs=3, random_state=0)
    verify_result(problem, run)
    model = model_of(problem, run)
    assert np.array_equal(model.predict(X) == 1, model.decision_function(X) > 0)
    run.alpha[:] = 0.0
    with pytest.raises(AssertionError):
        verify_result(problem, run)

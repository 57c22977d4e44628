"""The verifier checks the models of the pages and those that tests of estimators fit."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import zerogap as zg
from verified_models import model_of, verified_models, verify_result
from zerogap.problem import Problem

ROOT = Path(__file__).parents[1]
MODELS = {"README.md": (3, 0), "docs/how-to/solve.md": (0, 6), "docs/understand/beyond.md": (2, 0)}
"""How many models estimators fit on a page, at least, and how many `solve` returns."""


def python_of(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", MODELS)
def test_the_verifier_checks_every_model_of_a_page(page, tmp_path, monkeypatch, capsys):
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
        for block in python_of(ROOT / page):
            exec(compile(block, page, "exec"), names)
    fitted, solved = MODELS[page]
    assert len(checked) >= fitted
    assert len(results) >= solved
    for problem, run in results:
        verify_result(problem, run)
    path, (X, y) = names["path"], (names["X"], names["y"])
    loss = "logistic" if fitted else "squared-hinge"
    for lam, run in zip(path.lams, path.results, strict=True):
        verify_result(Problem(X, y, loss, float(lam), fit_intercept=True), run)
    if page == "README.md":
        printed = capsys.readouterr().out.splitlines()
        assert printed[:2] == ["True", "True"]
        assert printed[2].startswith("primal 0.2170455, dual 0.2170455, ")
        assert printed[3:5] == ["1.0", "True"]


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

"""Run scikit-learn's own tests of its linear models against ours of the same names.

The tests are those of the installed package; nothing of them is kept here.  What fails is compared
with `sklearn_tests.toml`, which gives a reason for each: python benchmarks/sklearn_tests.py
A failure that is not listed is an error, and so is a listed test of which no case fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = {  # scikit-learn's test modules -> where their classes are defined
    "linear_model/tests/test_logistic.py": "_logistic",
    "linear_model/tests/test_ridge.py": "_ridge",
    "linear_model/tests/test_coordinate_descent.py": "_coordinate_descent",
    "linear_model/tests/test_sparse_coordinate_descent.py": "_coordinate_descent",
    "linear_model/tests/test_sgd.py": "_stochastic_gradient",
    "linear_model/tests/test_huber.py": "_huber",
    "linear_model/tests/test_quantile.py": "_quantile",
    "svm/tests/test_svm.py": "_classes",
    "svm/tests/test_sparse.py": "_classes",
}


def put_ours_in_place() -> list[str]:
    """Make scikit-learn's names mean our classes, in its package and where it defines them."""
    import sklearn.linear_model
    import sklearn.svm

    from zerogap import linear_model, svm

    names = []
    for package, ours in ((sklearn.linear_model, linear_model), (sklearn.svm, svm)):
        for name in ours.__all__:
            theirs = getattr(package, name, None)
            if theirs is not None:
                names.append(name)
                setattr(sys.modules[theirs.__module__], name, getattr(ours, name))
                setattr(package, name, getattr(ours, name))
    return names


class Outcomes:
    """A plugin of pytest that keeps what became of each test."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.reasons: dict[str, str] = {}

    def pytest_runtest_logreport(self, report) -> None:
        name = report.nodeid.partition("sklearn/")[2] or report.nodeid
        if report.failed or (report.when == "call" and self.found.get(name) != "failed"):
            self.found[name] = report.outcome
        if report.failed:
            self.reasons[name] = str(report.longrepr).strip().splitlines()[-1]


def expected() -> set[str]:
    """Return the tests that are listed: module and function."""
    groups = tomllib.loads((HERE / "sklearn_tests.toml").read_text())["group"]
    return {test for group in groups for test in group["tests"]}


def function_of(name: str) -> str:
    """Return module and function of a test, without its parameters."""
    module, _, function = name.partition("::")
    return f"{Path(module).stem}::{function.partition('[')[0]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="parts of names of test modules")
    parser.add_argument("-k", default="", help="as pytest's")
    parser.add_argument("--timeout", type=int, default=600, help="seconds that a test may take")
    options = parser.parse_args()
    import sklearn

    names = put_ours_in_place()
    root = Path(sklearn.__file__).parent
    chosen = [m for m in MODULES if not options.modules or any(x in m for x in options.modules)]
    outcomes = Outcomes()
    arguments = [str(root / module) for module in chosen]
    settings = [
        "-q",
        "--no-header",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore",
        f"--timeout={options.timeout}",
    ]
    select = ["-k", options.k] if options.k else []
    known = ["-c", os.devnull, "--rootdir", str(root.parent)]  # not our settings
    pytest.main([*arguments, *settings, *select, *known], plugins=[outcomes])
    return report(names, outcomes)


def report(names: list[str], outcomes: Outcomes) -> int:
    failed = {name for name, outcome in outcomes.found.items() if outcome == "failed"}
    passed = sum(outcome == "passed" for outcome in outcomes.found.values())
    print(f"\n{', '.join(sorted(names))}: {passed} passed, {len(failed)} failed")
    listed, failing = expected(), {function_of(name) for name in failed}
    left = sorted(name for name in failed if function_of(name) not in listed)
    for name in left:
        print(f"not expected: {name}\n    {outcomes.reasons[name][:200]}")
    idle = sorted((listed & {function_of(name) for name in outcomes.found}) - failing)
    for function in idle:
        print(f"does not fail: {function}")
    return 1 if left or idle else 0


if __name__ == "__main__":
    sys.exit(main())

"""Validate the docstrings of all public names with numpydoc: python tests/check_docstrings.py.

A public name is one that `zerogap` or one of its public modules lists in ``__all__``, and a method
of these classes.  Methods of losses, solvers, problems and columns implement a protocol that
their base describes.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

from numpydoc.validate import validate

import zerogap

# Not here: `verify`, one file of 300 lines to be read as a whole; `lab`, for the chapters inside
# of the package.
MODULES = (
    *("audit", "bounds", "dask", "datasets", "leave_one_out", "losses", "model_io", "readers"),
    *("regions", "solvers", "store", "testing", "transforms"),
)
BETWEEN_ROOMS = {  # listed for other rooms of the package, not for people
    *("audit", "audit_all", "convention_of", "leave_one_out_of", "models_of", "posed"),
    "targets_of",
}
DROP_INS = ("linear_model", "svm")  # scikit-learn describes their parameters and methods
PROTOCOLS = (zerogap.Loss, zerogap.Solver, zerogap.Problem, zerogap.readers.Column)
RULES = {
    "GL08": "there is a docstring",
    "SS01": "it has a summary",
    "PR01": "parameters are described; of what functions return, attributes",
    "PR02": "no parameter is described that does not exist",
    "RT01": "what is returned is described",
    "YD01": "what is yielded is described",
    "EX01": "an example runs; what functions return has its example there",
}
"""Not taken: See Also and extended summaries (SA01, ES01), which would be filled for the sake of
the rule; rules of layout, which ruff has; types (PR04), which the signature has.
"""


def public() -> Iterator[tuple[str, Any]]:
    """Yield the public functions and classes, each once, by a name that leads to them."""
    seen = set()
    names = (*MODULES, *DROP_INS)
    for module in (zerogap, *(importlib.import_module(f"zerogap.{name}") for name in names)):
        for name, thing in listed(module):
            documented = inspect.isclass(thing) or inspect.isfunction(thing)
            if documented and name not in BETWEEN_ROOMS and thing not in seen:
                seen.add(thing)
                yield f"{module.__name__}.{name}", thing


def methods(name: str, thing: Any) -> Iterator[str]:
    """Yield the names of methods that people call."""
    if inspect.isclass(thing) and not issubclass(thing, PROTOCOLS) and not is_drop_in(name):
        for own, method in vars(thing).items():
            if not own.startswith("_") and inspect.isfunction(method):
                yield f"{name}.{own}"


def listed(module: Any) -> list[tuple[str, Any]]:
    """Return what a module has in ``__all__`` or, without one, what it defines itself."""
    if hasattr(module, "__all__"):
        return [(name, getattr(module, name)) for name in module.__all__]
    things = vars(module).items()
    own = [(name, x) for name, x in things if getattr(x, "__module__", "") == module.__name__]
    return [(name, thing) for name, thing in own if not name.startswith("_")]


def is_drop_in(name: str) -> bool:
    """Tell whether a public name is that of a class of scikit-learn."""
    return name.split(".")[1] in DROP_INS


def problems(name: str, thing: Any) -> Iterator[str]:
    """Yield what is missing in a docstring."""
    described = inspect.getdoc(thing) or ""
    returned = inspect.isclass(thing) and "Attributes\n---" in described
    is_result = returned and "Parameters\n---" not in described
    is_error = inspect.isclass(thing) and issubclass(thing, BaseException)
    for code, message in validate(name)["errors"]:
        if code not in RULES or (code == "EX01" and (is_result or is_error)):
            continue
        if code == "PR01" and is_drop_in(name):
            continue
        if code == "PR01" and is_result:
            attributes = described.split("Attributes\n---", 1)[1]
            missing = [p for p in inspect.signature(thing).parameters if p not in attributes]
            if not missing:
                continue
            message = f"attributes {missing} not documented"
        if code != "PR01" or not is_error:
            yield f"{name}: {code} {message}"


def main() -> int:
    """Print what is missing; return how many docstrings lack something."""
    found = []
    for name, thing in public():
        found += problems(name, thing)
        for method in methods(name, thing):
            errors = validate(method)["errors"]  # the example of a class serves its methods
            found += [f"{method}: {c} {text}" for c, text in errors if c in RULES and c != "EX01"]
    print("\n".join(found) or "all public names are documented")
    return len(found)


if __name__ == "__main__":
    sys.exit(min(main(), 1))

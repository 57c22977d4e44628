"""Imports point downwards only."""

import ast
from pathlib import Path

import pytest

import zerogap

PACKAGE = Path(zerogap.__file__).parent
LAYERS = [
    ["_jit", "_params", "memory", "certificate", "atomic", "errors", "minimiser", "verify"],
    ["container", "elementary", "penalties"],
    ["losses", "rows", "gap", "precise", "row_sums"],
    ["multiclass_losses"],
    ["checks", "bounds", "refining", "enclosures"],
    ["proving"],
    ["problem"],
    ["multiclass"],
    ["cuda", "centring"],
    ["regions"],
    ["store", "history", "checkpoint"],
    ["streamed"],
    ["progress"],
    ["solvers", "validation"],
    ["certified", "loo", "updates"],
    ["estimators", "paths", "audit"],
    ["dask"],
    ["readers"],
    ["conversion"],
    ["transforms"],
    ["datasets"],
    ["model_io"],
    ["practical", "comparison", "sweeps"],
    ["lab"],
    ["cli"],
]
LATER = {  # inside functions
    ("losses", "multiclass_losses"),
    ("problem", "multiclass"),
    ("problem", "cuda"),
}


def level(module):
    return next((k for k, names in enumerate(LAYERS) if module in names), None)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_point_downwards(path):
    module = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if module == "__init__":
        return
    assert level(module) is not None, f"{module} has no layer"
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif node.module == "zerogap":
            names = [f"zerogap.{a.name}" for a in node.names]
        else:
            names = [node.module or ""]
        for used in (name.split(".")[1] for name in names if name.startswith("zerogap.")):
            below = (module, used) in LATER or level(used) < level(module)
            assert used == module or below, f"{module} imports {used}"


def test_only_one_file_knows_numba():
    users = {
        p.name
        for p in PACKAGE.rglob("*.py")
        if "import numba" in p.read_text() or "from numba" in p.read_text()
    }
    assert users == {"_jit.py", "kernels.py"}  # for processors and for GPUs

"""Imports point downwards only."""

import ast
from pathlib import Path

import pytest

import zerogap

PACKAGE = Path(zerogap.__file__).parent
LAYERS = [
    ["_params", "display", "errors", "io", "kernels", "verify"],
    ["penalties"],
    ["losses", "rows"],
    ["bounds", "problem"],
    ["cuda"],
    ["store"],
    ["streamed"],
    ["solvers"],
    ["cuda.solvers"],
    ["regions"],
    ["leave_one_out"],
    ["paths", "audit", "estimators"],
    ["dask", "testing"],
    ["readers"],
    ["transforms"],
    ["datasets"],
    ["model_io"],
    ["comparison", "sweeps"],
    ["dropin"],
    ["linear_model", "svm"],
    ["lab"],
    ["cli"],
    ["__main__"],
]
"""Rooms from the ground up; a room inside another one may stand on a higher floor."""
LATER = {("problem", "cuda"), ("solvers", "cuda.solvers")}  # inside functions, for GPUs


def room(module):
    """The most special room of a dotted module."""
    parts = module.split(".")
    names = {name for names in LAYERS for name in names}
    known = (".".join(parts[:k]) for k in range(len(parts), 0, -1))
    return next((name for name in known if name in names), None)


def level(name):
    return next(k for k, names in enumerate(LAYERS) if name in names)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_point_downwards(path):
    module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    if module == "__init__":
        return
    here = room(module)
    assert here is not None, f"{module} has no room"
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        else:
            names = [f"{node.module}.{a.name}" for a in node.names]
        for name in names:
            if not name.startswith("zerogap."):
                continue
            used = room(name.removeprefix("zerogap."))
            assert used is not None, f"{module} imports {name}, which has no room"
            below = (here, used) in LATER or level(used) < level(here)
            assert used == here or below, f"{module} imports {used}"


def test_one_room_alone_knows_numba():
    users = {
        p.name
        for p in PACKAGE.rglob("*.py")
        if "import numba" in p.read_text() or "from numba" in p.read_text()
    }
    assert users == {"jit.py", "machine_code.py", "kernels.py"}  # for processors and for GPUs

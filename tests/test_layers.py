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
        p.relative_to(PACKAGE).as_posix()
        for p in PACKAGE.rglob("*.py")
        if "import numba" in p.read_text() or "from numba" in p.read_text()
    }
    of_processors = {"instructions", "jit", "machine_code"}
    assert users == {"cuda/kernels.py", *(f"kernels/{name}.py" for name in of_processors)}


OPTIONAL = {
    *("cupyx", "cv2", "fcntl", "jinja2", "matplotlib", "msvcrt", "onnx", "openpyxl", "pandas"),
    *("plotly", "pooch", "pyarrow", "rich", "typer"),
}
SLOW = {"importlib", "scipy", "sklearn"}
BRING_NUMBA = {  # into rooms that do without it otherwise
    "bounds": "losses",
    "datasets/pictures": "transforms",
    "datasets/texts": "readers",
    "readers/__init__": "readers.svmlight",
    "readers/large": "readers.compiled",
}
CYCLES = {"readers/frames": "readers"}


def imported_later(path):
    """The modules that functions of a file import when they are called."""
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_only_optional_and_slow_packages_are_imported_in_functions():
    for path in PACKAGE.rglob("*.py"):
        file = str(path.relative_to(PACKAGE).with_suffix(""))
        allowed = tuple(
            f"zerogap.{names[file]}" for names in (BRING_NUMBA, CYCLES) if file in names
        )
        for name in imported_later(path):
            top = name.partition(".")[0]
            if top in OPTIONAL | SLOW or name.startswith(allowed):
                continue
            if file.startswith("cli/") and top in ("zerogap", "numpy"):
                continue  # a command starts quickly, and loads what it needs
            assert name.startswith("zerogap.cuda"), f"{file} imports {name} in a function"


def test_no_file_is_long():
    for path in PACKAGE.rglob("*.py"):
        if "chapters" not in path.parts:
            lines = len(path.read_text().splitlines())
            assert lines <= 450, f"{path}: {lines} lines"


def own_lines(function):
    """The lines of a function's body, without its docstring and the functions inside of it."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    lines = set(range(body[0].lineno, function.end_lineno + 1)) if body else set()
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef) and node is not function:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            lines -= set(range(first, node.end_lineno + 1))
    return len(lines)


def test_no_function_is_long():
    """Ruff counts their branches: C901."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert own_lines(node) <= 60, f"{path}: {node.name}"

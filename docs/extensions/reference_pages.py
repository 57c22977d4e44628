"""Write the reference of commands and of public names from the code, before the site is built."""

from __future__ import annotations

import inspect
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.errors import ExtensionError

COMMANDS = "reference/commands.md"
NAMES = "reference/names.md"
SHARED = "Options of many commands"
MANY = 4  # commands that have an option in the same words: it is explained once

Row = tuple[str, str]


def write_commands(app: Any) -> None:
    """Write a section for every command: what it does, its arguments and its options."""
    import typer

    from zerogap.cli import make_app

    group = typer.main.get_command(make_app())
    leaves = list(_leaves(group, ("zerogap",)))
    shared = shared_options([command for _, command in leaves])
    lines = ["# Commands", "", f"{group.help}", "", *_epilog(group), ""]
    lines += ["[The command line on real tables](../command-line.md) has worked examples.", ""]
    for path, command in leaves:
        lines += _section(path, command, shared)
    lines += [f"## {SHARED}", "", "They mean the same wherever they are.", ""]
    write(Path(app.srcdir) / COMMANDS, "\n".join([*lines, *_table(shared)]) + "\n")


def shared_options(commands: list[Any]) -> list[Row]:
    """Return the options that many commands have in the same words."""
    rows = Counter(row for command in commands for row in set(_rows(command)))
    shared = [row for row, count in rows.items() if count >= MANY and row[0].startswith("`-")]
    order = {row: k for command in commands for k, row in enumerate(_rows(command))}
    return sorted(shared, key=lambda row: (order[row], row))


def _leaves(group: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield commands, those inside groups too."""
    for name in sorted(group.commands):
        command = group.commands[name]
        if hasattr(command, "commands"):
            yield from _leaves(command, (*path, name))
        else:
            yield (*path, name), command


def _section(path: tuple[str, ...], command: Any, shared: Collection[Row] = ()) -> list[str]:
    lines = [f"## {' '.join(path)}", "", *_prose(command.help or ""), "", *_epilog(command), ""]
    rows = _rows(command)
    lines += _table([row for row in rows if row not in shared])
    if others := [names for names, _ in rows if (names, _) in shared]:
        link = f"[of many commands](#{SHARED.lower().replace(' ', '-')})"
        lines += ["", f"And the options {link}: {', '.join(others)}."]
    return [*lines, ""]


def _rows(command: Any) -> list[Row]:
    """Return names and meaning of each argument and option, with its default."""
    rows = [(_names(p), _meaning(p)) for p in command.params]
    return [row for row in rows if row[0]]


def _meaning(parameter: Any) -> str:
    text = " ".join(_prose(getattr(parameter, "help", "") or ""))
    default = parameter.default
    if default in (None, "", False, ...) or callable(default) or "efault" in text:
        return text
    shown = getattr(default, "value", default)
    if default is True:
        shown = parameter.opts[0] if parameter.opts else "yes"
    return f"{text}  By default `{shown}`."


def _table(rows: Iterable[Row]) -> list[str]:
    lines = [f"| {names} | {_cell(text)} |" for names, text in rows]
    return ["| argument or option | meaning |", "| --- | --- |", *lines] if lines else []


def _epilog(command: Any) -> list[str]:
    """Return the examples of a command as a block, and what stands below them as prose."""
    head, _, rest = (command.epilog or "").strip("\b\n").partition("\n\n")
    examples = [line.strip() for line in head.splitlines() if line.startswith("  ")]
    block = ["```console no-run", *(f"$ {line}" for line in examples), "```"] if examples else []
    return [*block, "", *_prose(re.sub(r"\s+docs/command-line.md has .*", "", rest))]


def _names(parameter: Any) -> str:
    if getattr(parameter, "hidden", False) or parameter.name == "help":
        return ""
    if parameter.param_type_name == "argument":
        return f"`{(parameter.metavar or parameter.name).upper()}`"
    names = [*parameter.opts, *parameter.secondary_opts]
    return ", ".join(f"`{name}`" for name in names)


def _prose(text: str) -> list[str]:
    """Return the lines of a help text, without the marks that keep line breaks."""
    return [line.strip() for line in text.replace("\b", "").strip().splitlines()]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def write_names(app: Any) -> None:
    """Write the list of public names, each with a page of its own."""
    shutil.rmtree(Path(app.srcdir) / "reference" / "api", ignore_errors=True)  # of older names
    lines = ["# Public names", "", "Every name, with its parameters and an example.", ""]
    for title, (words, names) in sections().items():
        lines += [f"## {title}", "", *words, "| name | what it is |", "| --- | --- |"]
        for name in names:
            lines.append(f"| [`{name}`](api/{name}.rst) | {_cell(_summary(name))} |")
            write(Path(app.srcdir) / "reference" / "api" / f"{name}.rst", _page(name))
        lines += ["", "```{toctree}", ":hidden:", ""]
        lines += [f"{name.removeprefix('zerogap.')} <api/{name}>" for name in names]
        lines += ["```", ""]
    write(Path(app.srcdir) / NAMES, "\n".join(lines))


def sections() -> dict[str, tuple[list[str], list[str]]]:
    """Return what stands above each table of names, and the names; refuse modules without one."""
    import zerogap

    if missing := sorted(set(zerogap._SUBMODULES) ^ set(MODULES)):
        raise ExtensionError(f"public modules and sections of the reference differ: {missing}")
    found: dict[str, tuple[list[str], list[str]]] = {title: ([], []) for title in KINDS.values()}
    tops = [(name, getattr(zerogap, name)) for name in sorted(zerogap.__all__)]
    for name, thing in tops:
        if not isinstance(thing, ModuleType | str):
            found[KINDS[_kind(thing)]][1].append(f"zerogap.{name}")
    for module, title in MODULES.items():
        room = import_module(f"zerogap.{module}")
        names = sorted(NAMES_OF.get(module) or room.__all__)
        things = {name: getattr(room, name) for name in names}
        new = [
            f"zerogap.{module}.{name}"
            for name, thing in things.items()
            if callable(thing) and not any(thing is top for _, top in tops)
        ]
        words = (room.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        found[title] = ([f"`zerogap.{module}`. {words}", ""], new)
    return found


ROUTING = (  # scikit-learn's own
    "get_metadata_routing, set_fit_request, set_partial_fit_request, set_predict_request, "
    "set_score_request, set_output, path"
)
ROLE = re.compile(r":(?:ref|term):`([^`<]+?)\s*(?:<[^`>]+>)?`")
FORMULA = re.compile(r":math:`([^`]+)`")  # would be drawn by a script from another host
FRACTION = re.compile(r"\\frac\{(\w+)\}\{(\w+)\}")


def mend(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Let |x| be a norm, no substitution, and scikit-learn's links and formulas plain text."""
    text = FRACTION.sub(r"\1/\2", FORMULA.sub(r"``\1``", ROLE.sub(r"\1", "\n".join(lines))))
    lines[:] = text.split("\n")
    literal = None  # indentation of the text above a literal block
    for k, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        if literal is None and ">>>" not in line:
            lines[k] = line.replace("|", "\\|")
        if line.rstrip().endswith("::"):
            literal = indent


def _thing(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def _summary(name: str) -> str:
    """Return the first sentence of a docstring."""
    text = inspect.getdoc(_thing(name)) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _page(name: str) -> str:
    """Return the page of one name, which Sphinx fills from the docstring."""
    thing = _thing(name)
    head = f"{name}\n{'=' * len(name)}\n\n"
    if not isinstance(thing, type):
        return f"{head}.. autofunction:: {name}\n"
    options = "   :members:\n"
    if _kind(thing) == "estimator":
        options += f"   :inherited-members: BaseEstimator\n   :exclude-members: {ROUTING}\n"
    return f"{head}.. autoclass:: {name}\n{options}"


KINDS = {
    "estimator": "Estimators",
    "function": "Functions",
    "loss": "Losses",
    "solver": "Solvers",
    "record": "Problems, certificates and results",
    "error": "Errors",
}
MODULES = {
    "linear_model": "scikit-learn's linear models",
    "svm": "scikit-learn's support vector machines",
    "audit": "Audits",
    "testing": "Assertions for test suites",
    "leave_one_out": "Leave-one-out",
    "model_io": "Model files and proofs",
    "verify": "The verifier",
    "readers": "Readers",
    "datasets": "Data sets",
    "store": "Stores",
    "dask": "Clusters",
    "regions": "Regions that contain the optimum",
    "bounds": "Bounds known in advance",
    "losses": "Bases of losses",
    "solvers": "Parts of solvers",
    "transforms": "Transforms",
    "lab": "The lab",
}
NAMES_OF = {"verify": ("load", "verify")}  # the file is copied and run alone
"""Public modules and their sections; names of those that have no `__all__`."""


def _kind(thing: Any) -> str:
    """Return the section that a public name belongs to."""
    from sklearn.base import BaseEstimator

    from zerogap.losses import Loss
    from zerogap.solvers import Solver

    if not isinstance(thing, type):
        return "function"
    bases = {BaseEstimator: "estimator", Loss: "loss", Solver: "solver", Exception: "error"}
    return next((kind for base, kind in bases.items() if issubclass(thing, base)), "record")


def write(path: Path, text: str) -> None:
    """Write a page unless it is there already, so that Sphinx reads only what has changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Register both with Sphinx; autosummary comes after them."""
    app.connect("builder-inited", write_commands, priority=100)
    app.connect("builder-inited", write_names, priority=100)
    app.connect("autodoc-process-docstring", mend, priority=100)
    return {"parallel_read_safe": True}

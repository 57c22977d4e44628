"""Write the reference of commands and of public names from the code, before the site is built."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

COMMANDS = "reference/commands.md"
NAMES = "reference/names.md"


def write_commands(app: Any) -> None:
    """Write a section for every command: what it does, its arguments and its options."""
    import typer

    from zerogap.cli import make_app

    group = typer.main.get_command(make_app())
    lines = [
        "# Commands",
        "",
        f"{group.help}",
        "",
        f"{group.epilog}",
        "",
    ]
    for path, command in _leaves(group, ("zerogap",)):
        lines += _section(path, command)
    write(Path(app.srcdir) / COMMANDS, "\n".join(lines) + "\n")


def _leaves(group: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield commands, those inside groups too."""
    for name in sorted(group.commands):
        command = group.commands[name]
        if hasattr(command, "commands"):
            yield from _leaves(command, (*path, name))
        else:
            yield (*path, name), command


def _section(path: tuple[str, ...], command: Any) -> list[str]:
    lines = [f"## {' '.join(path)}", "", *_prose(command.help or ""), ""]
    rows = [(_names(p), _prose(getattr(p, "help", "") or "")) for p in command.params]
    rows = [(names, " ".join(text)) for names, text in rows if names]
    if rows:
        lines += ["| argument or option | meaning |", "| --- | --- |"]
        lines += [f"| {names} | {_cell(text)} |" for names, text in rows]
    return [*lines, ""]


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
    import zerogap

    shutil.rmtree(Path(app.srcdir) / "reference" / "api", ignore_errors=True)  # of older names
    sections: dict[str, list[str]] = {title: [] for title in (*KINDS.values(), *MODULES.values())}
    for name in sorted(zerogap.__all__):
        thing = getattr(zerogap, name)
        if not isinstance(thing, ModuleType | str):
            sections[KINDS[_kind(thing)]].append(f"zerogap.{name}")
    for module, title in MODULES.items():
        for name in sorted(import_module(f"zerogap.{module}").__all__):
            thing = getattr(import_module(f"zerogap.{module}"), name)
            known = any(thing is getattr(zerogap, top) for top in zerogap.__all__)
            if callable(thing) and not known:
                sections[title].append(f"zerogap.{module}.{name}")
    lines = ["# Public names", "", "Every name, with its parameters and an example.", ""]
    for title, names in sections.items():
        lines += [f"## {title}", "", "| name | what it is |", "| --- | --- |"]
        for name in names:
            lines.append(f"| [`{name}`](api/{name}.rst) | {_cell(_summary(name))} |")
            write(Path(app.srcdir) / "reference" / "api" / f"{name}.rst", _page(name))
        lines += ["", "```{toctree}", ":hidden:", "", *(f"api/{name}" for name in names), "```", ""]
    write(Path(app.srcdir) / NAMES, "\n".join(lines))


ROUTING = "get_metadata_routing, set_fit_request, set_score_request"  # scikit-learn's own


def keep_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Let |x| be a norm: reStructuredText would look for a substitution."""
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
    "datasets": "Data sets",
    "bounds": "Bounds known in advance",
    "regions": "Regions that contain the optimum",
    "model_io": "Model files and proofs",
    "readers": "Readers",
}


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
    app.connect("autodoc-process-docstring", keep_bars, priority=100)
    return {"parallel_read_safe": True}

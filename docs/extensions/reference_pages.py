"""Write the reference of commands and of public names from the code, before the site is built."""

from __future__ import annotations

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

    sections: dict[str, list[str]] = {title: [] for title in (*KINDS.values(), *MODULES.values())}
    for name in sorted(zerogap.__all__):
        thing = getattr(zerogap, name)
        if not isinstance(thing, ModuleType | str):
            sections[KINDS[_kind(thing)]].append(f"zerogap.{name}")
    for module, title in MODULES.items():
        for name in sorted(import_module(f"zerogap.{module}").__all__):
            thing = getattr(import_module(f"zerogap.{module}"), name)
            if isinstance(thing, type) or callable(thing):
                sections[title].append(f"zerogap.{module}.{name}")
    lines = ["# Public names", "", "Every name, with its parameters and an example.", ""]
    for title, names in sections.items():
        lines += [f"## {title}", "", "```{eval-rst}", ".. autosummary::", "   :toctree: api"]
        lines += ["", *(f"   {name}" for name in names), "```", ""]
    write(Path(app.srcdir) / NAMES, "\n".join(lines))


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
    return {"parallel_read_safe": True}

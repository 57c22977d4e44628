"""Experiments of one's own, from a TOML file."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from zerogap import datasets
from zerogap.comparison import parse_solver
from zerogap.lab.experiment import Arm, Chapter, Data, Experiment
from zerogap.lab.figures import Figure, Lines
from zerogap.lab.verdicts import Claim, lower

_PLAIN = (
    "losses",
    "lams",
    "epochs",
    "tol",
    "record",
    "metrics",
    "intercept",
    "reference",
    "timed",
    "differs",
)
_KNOWN = {"title", "question", "seeds", "data", "solvers", "claims", *_PLAIN}
_CLAIM = {"statement", "column", "lower", "than"}


def read_config(path: str | Path) -> Chapter:
    """Return the experiment that a TOML file declares, as a chapter of its own.

    The keys are the fields of `Experiment`; ``[[data]]`` has those of `Data`, ``[[solvers]]`` those
    of `Arm`.  A data set is a file, looked for beside the TOML file, or a name of the registry.
    ``[[claims]]`` have a statement, a column, and the names of two solvers, ``lower`` and ``than``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> text = '''
    ... title = "Which order?"
    ... lams = [0.01]
    ... [[data]]
    ... name = "simulated"
    ... [[solvers]]
    ... solver = "sdca"
    ... [[solvers]]
    ... solver = "sdca:sampling=random"
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "order.toml"
    ...     size = path.write_text(text)
    ...     chapter = read_config(path)
    >>> [arm.name for arm in chapter.experiments[0].arms], len(chapter.experiments[0].cells())
    (['sdca', 'sdca:sampling=random'], 11)
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    try:
        return _chapter(content, path)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def _chapter(content: dict[str, Any], path: Path) -> Chapter:
    _check(content, _KNOWN, "the file")
    for name in ("data", "solvers"):
        if not content.get(name):
            raise ValueError(f"has no [[{name}]]")
    given = {name: _tuple(content[name]) for name in _PLAIN if name in content}
    metrics = given.get("metrics", ())
    arms = tuple(_arm(table) for table in content["solvers"])
    experiment = Experiment(
        id=path.stem,
        title=str(content.get("title", path.stem)),
        question=str(content.get("question", "")),
        data=tuple(_data(table, path.parent) for table in content["data"]),
        arms=arms,
        seeds=_seeds(content.get("seeds", 5)),
        **{"reference": 1e-6, "timed": True, **given},
        figures=_figures(path.stem, metrics),
        claims=_claims(content.get("claims", []), {arm.name for arm in arms}, path.stem),
    )
    return Chapter(path.stem, experiment.title, str(path.name), "", (experiment,))


def _data(table: dict[str, Any], folder: Path) -> Data:
    _check(table, {field.name for field in fields(Data)}, "[[data]]")
    data = Data(**{name: _tuple(value) for name, value in table.items()})
    file = folder / data.name
    if file.is_file():
        label = data.label or file.name
        return Data(**{**vars(data), "name": str(file.resolve()), "label": label})
    datasets.info(data.name)  # says which names there are
    return data


def _arm(table: dict[str, Any]) -> Arm:
    _check(table, {field.name for field in fields(Arm)}, "[[solvers]]")
    parse_solver(str(table.get("solver", "")))
    given = {name: _tuple(value) for name, value in table.items()}
    return Arm(**{"name": given["solver"], **given})


def _claims(tables: list[dict[str, Any]], names: set[str], id: str) -> tuple[Claim, ...]:
    found = []
    for k, table in enumerate(tables, 1):
        _check(table, _CLAIM, "[[claims]]")
        if lacking := sorted(_CLAIM - set(table) - {"statement"}):
            raise ValueError(f"claim {k} has no {lacking[0]}")
        if strange := {table["lower"], table["than"]} - names:
            raise ValueError(f"claim {k}: there is no solver {strange.pop()!r}")
        text = f"{table['lower']} ends with a lower {table['column']} than {table['than']}"
        found.append(Claim(f"{id}-{k}", table.get("statement", text), _judge(table), covers=(id,)))
    return tuple(found)


def _judge(table: dict[str, Any]) -> Callable[..., Any]:
    return functools.partial(
        lower,
        column=table["column"],
        first=table["lower"],
        second=table["than"],
        by=("data", "loss", "lam"),
    )


def _figures(id: str, metrics: tuple[str, ...]) -> tuple[Figure, ...]:
    measures = ["gap", "suboptimality", "primal"]
    measures += [name for name in ("test_error", "train_error") if name in metrics]
    return (Lines(id=id, title="Convergence", y=tuple(measures), panels="problem", prepare=_named),)


def _named(table: Any) -> Any:
    """Add the column that tells the problems apart."""
    parts = [name for name in ("data", "loss", "lam") if table[name].nunique() > 1] or ["data"]
    texts = [table[name].map("{:g}".format if name == "lam" else str) for name in parts]
    return table.assign(problem=texts[0].str.cat(texts[1:], sep=", "))


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return tuple(range(value))
    if isinstance(value, list) and value and all(isinstance(seed, int) for seed in value):
        return tuple(value)
    raise ValueError(f"seeds must be a number of runs or a list of seeds, got {value!r}")


def _check(table: Mapping[str, Any], known: set[str], where: str) -> None:
    if not isinstance(table, Mapping):
        raise ValueError(f"{where} must be a table, got {table!r}")
    if strange := sorted(set(table) - known):
        names = ", ".join(sorted(known))
        raise ValueError(f"{where} has no key {strange[0]!r}: it may have {names}")


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value

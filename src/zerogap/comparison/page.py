"""The comparison as one HTML file that needs no network: curves to explore, table, facts."""

from __future__ import annotations

import json
import math
import os
import platform
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap.comparison.styles import BLACK, percent, style

if TYPE_CHECKING:
    from zerogap.comparison.outcome import Comparison

X_AXES = {
    "epoch": "epochs (passes over the data)",
    "examples": "examples visited",
    "seconds": "seconds of updates",
    "cpu_seconds": "CPU seconds of updates",
}


def render(comparison: Comparison) -> str:
    """Return the page."""
    solvers = [_solver(comparison, k, name) for k, name in enumerate(comparison.names)]
    data = {
        "x": X_AXES,
        "y": _measures(comparison),
        "solvers": solvers,
        "target": _target(comparison),
        "percent": comparison.is_share,
    }
    return fill(
        resource("page.html.j2"),
        comparison=comparison,
        percent=percent,
        lines=comparison.summary(),
        solvers=solvers,
        x_axes=X_AXES,
        measures=data["y"],
        facts=_facts(comparison),
        environment=environment(),
        data=script_json(data),
    )


def fill(template: str, **values: Any) -> str:
    """Return a self-contained page: values, style sheet and scripts are inside of it."""
    from jinja2 import Environment, PackageLoader
    from plotly.offline import get_plotlyjs

    pages = Environment(
        loader=PackageLoader("zerogap.comparison", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    parts = {"css": resource("base.css"), "plots": resource("plots.js"), "plotly": get_plotlyjs()}
    return pages.from_string(template).render(**parts, **values)


def resource(name: str, package: str = "zerogap.comparison") -> str:
    """Return the text of a file that belongs to a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _measures(comparison: Comparison) -> dict[str, dict[str, str]]:
    """Return what can be drawn: the words for its button and its axis, and its natural scale."""
    measures = {
        "gap": {"button": "Duality gap", "axis": "duality gap", "scale": "log"},
        "suboptimality": {
            "button": "Primal sub-optimality",
            "axis": "primal minus the best lower bound",
            "scale": "log",
        },
    }
    if comparison.error_name:
        axis = f"test error ({comparison.error_name})"
        measures["test_error"] = {"button": "Test error", "axis": axis, "scale": "linear"}
    return measures


def _solver(comparison: Comparison, k: int, name: str) -> dict[str, Any]:
    look = style(k)
    x = {axis: comparison.curve(name, axis, "gap").x for axis in X_AXES}
    y = {column: comparison.curve(name, "epoch", column)[1:] for column in _measures(comparison)}
    # black is drawn in the colour of the text, which is light on a dark page
    colour = "" if look.colour == BLACK else look.colour
    dashes = list(look.dashes)
    return {"name": name, "colour": colour, "dashes": dashes, "symbol": look.symbol, "x": x, "y": y}


def _target(comparison: Comparison) -> dict[str, Any]:
    text = f"target {100 * comparison.tol:g} %"
    return {"value": comparison.target, "text": text}


def _facts(comparison: Comparison) -> dict[str, str]:
    problem = comparison.problem
    n, d = problem.shape
    seeds = sorted({run.seed for run in comparison.runs})
    return {
        "data": comparison.data or "not named",
        "rows (n)": f"{n:,}",
        "features (d)": f"{d:,}",
        "loss": str(problem.loss),
        "lam": f"{problem.lam:.6g}",
        "penalty": str(problem.penalty),
        "intercept": "free, not regularised" if problem.fit_intercept else "none",
        "target": f"gap at most {comparison.tol:g} times the primal value",
        "seeds": ", ".join(map(str, seeds)),
        "optimum": f"between {comparison.lower:.9g} and {comparison.upper:.9g}, proved",
    }


def environment() -> dict[str, str]:
    """Return the versions and the machine that numbers were computed with."""
    packages = {name: version(name) for name in ("zerogap", "numpy", "scipy", "numba")}
    system = f"{platform.system()} {platform.machine()}"
    cpus = str(os.cpu_count())
    return {**packages, "Python": platform.python_version(), "system": system, "CPUs": cpus}


def script_json(data: Any) -> str:
    """Return data as JSON for a script element of a page: nothing in it can end the element."""
    return json.dumps(_finite(data), separators=(",", ":")).replace("<", "\\u003c")


def _finite(value: Any) -> Any:
    """Return arrays as lists of numbers of seven digits, without what JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value

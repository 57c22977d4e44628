"""Show the notebooks of the tutorials as pages: run their cells, and write what comes out.

The notebooks are kept without outputs.  A cell shows what it prints, the figures that it leaves
open, and the value of its last line: as a table where that has one, and else as text.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import warnings
from pathlib import Path
from typing import Any

from reference_pages import write
from sphinx.errors import ExtensionError

FOLDER = "tutorials"
LAST_STATE = re.compile(r"^.*\r", re.MULTILINE)  # what a line showed before it was written again


def write_pages(app: Any) -> None:
    """Write a page beside every notebook."""
    folder = Path(app.srcdir) / FOLDER
    for notebook in sorted(folder.glob("*.ipynb")):
        write(notebook.with_suffix(".md"), page_of(notebook, app.config.run_code_blocks))


def page_of(notebook: Path, run: bool = True) -> str:
    """Return a notebook as a page, with the outputs of its cells if they are to be run."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    parts = []
    for number, cell in enumerate(cells):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python no-run\n{text}\n```")
        if run:
            where = f"{notebook.name}, cell {number + 1}"
            picture = notebook.parent / "images" / f"{notebook.stem}-{number + 1}.png"
            parts += outputs_of(text, names, where, picture)
    parts.append(f"{{download}}`This page as a notebook <{notebook.name}>`")
    return "\n\n".join(parts) + "\n"


def outputs_of(text: str, names: dict[str, Any], where: str, picture: Path) -> list[str]:
    """Run a cell, and return what a notebook would show below it."""
    body = ast.parse(text)
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.redirect_stdout(printed))
            stack.enter_context(contextlib.redirect_stderr(printed))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            exec(compile(body, where, "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    except Exception as error:
        raise ExtensionError(f"{where}: {error}") from error
    said = LAST_STATE.sub("", printed.getvalue()).rstrip()
    return [*shown_text(said), *shown_figure(picture), *shown_value(value)]


def shown_text(text: str) -> list[str]:
    """Return a block of text, if there is any."""
    return [f"```text no-run\n{text}\n```"] if text else []


def shown_value(value: Any) -> list[str]:
    """Return a value as its own table, or as text."""
    if value is None:
        return []
    if hasattr(value, "_repr_html_"):
        return [f'```{{raw}} html\n<div class="shown">{value._repr_html_()}</div>\n```']
    return shown_text(repr(value))


def shown_figure(picture: Path) -> list[str]:
    """Save the figure that a cell has left open, and return a link to it."""
    from matplotlib import pyplot

    if not pyplot.get_fignums():
        return []
    picture.parent.mkdir(exist_ok=True)
    pyplot.savefig(picture, dpi=100)
    pyplot.close("all")
    return [f"![What the cell above draws.](images/{picture.name})"]


def setup(app: Any) -> dict[str, Any]:
    """Register the pages with Sphinx."""
    app.connect("builder-inited", write_pages, priority=100)
    return {"parallel_read_safe": True}
